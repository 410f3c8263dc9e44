//! Calls of a node at the times that its contract demands, however late the driver wakes: the same calls at
//! the same times as in virtual time. No clock and no I/O here.

use weir_core::frame::{Frame, Frames};
use weir_core::node::{Cx, Node, Port, PortSet, Transmit};
use weir_core::time::Time;

/// Destination of transmitted frames.
pub trait Egress {
    /// Ports that take a frame now.
    fn writable(&mut self) -> PortSet;
    /// Takes a frame for one of these ports.
    fn send(&mut self, frames: &mut Frames, transmit: Transmit);
}

/// Steps a node through time.
#[derive(Debug)]
pub struct Stepper {
    /// Time of the last call, which never goes backwards.
    last: Time,
    /// Ports that took frames at that time.
    writable: PortSet,
}

impl Default for Stepper {
    fn default() -> Stepper {
        Stepper { last: Time::ZERO, writable: PortSet::ALL }
    }
}

impl Stepper {
    /// Time of the last call.
    pub fn last(&self) -> Time {
        self.last
    }

    /// Delivers a frame that arrived on `port` at `at`, after everything that was due before.
    pub fn deliver(
        &mut self,
        node: &mut impl Node,
        frames: &mut Frames,
        out: &mut impl Egress,
        (at, port, frame): (Time, Port, Frame),
    ) {
        self.catch_up(node, frames, out, at);
        node.handle_frame(&mut Cx { now: self.last, frames }, port, frame);
        self.drain(node, frames, out);
    }

    /// Steps every deadline up to `until`, each at its own time. A port that has begun to take frames again
    /// counts as open from `until` on, not at the missed deadlines.
    pub fn catch_up(
        &mut self,
        node: &mut impl Node,
        frames: &mut Frames,
        out: &mut impl Egress,
        until: Time,
    ) {
        let steady = self.writable;
        while let Some(due) = node.next_deadline(out.writable().and(steady)).filter(|due| *due <= until) {
            self.last = self.last.max(due);
            self.drain_by(node, frames, out, steady);
        }
        self.last = self.last.max(until);
        self.writable = out.writable();
        if self.writable != self.writable.and(steady) {
            self.drain(node, frames, out);
        }
    }

    /// Takes the frames that the node can send now, whether or not a deadline has come.
    pub fn drain(&self, node: &mut impl Node, frames: &mut Frames, out: &mut impl Egress) {
        self.drain_by(node, frames, out, PortSet::ALL);
    }

    /// Takes the frames that the node can send now by one of these ports.
    fn drain_by(&self, node: &mut impl Node, frames: &mut Frames, out: &mut impl Egress, ports: PortSet) {
        let now = self.last;
        while let Some(transmit) = node.poll_transmit(&mut Cx { now, frames }, out.writable().and(ports)) {
            debug_assert!(transmit.at <= self.last, "a frame left before it was due");
            out.send(frames, transmit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use weir_core::time::Duration;

    /// A node that sends each frame by the port of the same number, 10 ns after it came.
    #[derive(Default)]
    struct Delay {
        held: VecDeque<(Time, Port, Frame)>,
        calls: Vec<Time>,
    }

    impl Node for Delay {
        fn handle_frame(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
            self.calls.push(cx.now);
            self.held.push_back((cx.now + Duration::from_nanos(10), port, frame));
        }
        fn poll_transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
            self.calls.push(cx.now);
            let i = self.held.iter().position(|(at, port, _)| *at <= cx.now && writable.contains(*port))?;
            let (at, port, frame) = self.held.remove(i)?;
            Some(Transmit { port, at, frame })
        }
        fn next_deadline(&self, writable: PortSet) -> Option<Time> {
            self.held.iter().find(|(_, port, _)| writable.contains(*port)).map(|(at, _, _)| *at)
        }
    }

    struct Wire {
        writable: PortSet,
        sent: Vec<(u64, u8)>,
    }

    impl Egress for Wire {
        fn writable(&mut self) -> PortSet {
            self.writable
        }
        fn send(&mut self, frames: &mut Frames, transmit: Transmit) {
            self.sent.push((transmit.at.as_nanos(), transmit.port.0));
            frames.transmitted(transmit.frame);
        }
    }

    struct Rig {
        stepper: Stepper,
        node: Delay,
        frames: Frames,
        wire: Wire,
    }

    impl Rig {
        fn new() -> Rig {
            Rig {
                stepper: Stepper::default(),
                node: Delay::default(),
                frames: Frames::new(8, 128, 0),
                wire: Wire { writable: PortSet::ALL, sent: Vec::new() },
            }
        }
        fn deliver(&mut self, at: u64, port: u8) {
            let frame = self.frames.receive_copy(&[0; 60], 60, Time::ZERO).unwrap();
            let arrival = (Time::from_nanos(at), Port(port), frame);
            self.stepper.deliver(&mut self.node, &mut self.frames, &mut self.wire, arrival);
        }
        fn catch_up(&mut self, until: u64) {
            let until = Time::from_nanos(until);
            self.stepper.catch_up(&mut self.node, &mut self.frames, &mut self.wire, until);
        }
        fn calls(&mut self) -> Vec<u64> {
            let mut calls: Vec<u64> = self.node.calls.drain(..).map(Time::as_nanos).collect();
            calls.dedup();
            calls
        }
    }

    #[test]
    fn missed_deadlines_come_at_their_own_times_before_later_frames() {
        let mut rig = Rig::new();
        rig.deliver(100, 0);
        rig.deliver(103, 0);
        rig.calls();
        rig.deliver(200, 1);
        rig.catch_up(1000);
        assert_eq!(rig.calls(), [110, 113, 200, 210]);
        assert_eq!(rig.wire.sent, [(110, 0), (113, 0), (210, 1)]);
    }

    #[test]
    fn time_never_goes_backwards() {
        let mut rig = Rig::new();
        rig.deliver(100, 0);
        rig.deliver(90, 0);
        rig.catch_up(50);
        assert_eq!(rig.calls(), [100]);
        rig.catch_up(120);
        assert_eq!(rig.wire.sent, [(110, 0), (110, 0)]);
    }

    #[test]
    fn a_full_port_does_not_block_the_other() {
        let mut rig = Rig::new();
        rig.wire.writable = PortSet::ALL.without(Port(0));
        rig.deliver(100, 0);
        rig.deliver(105, 1);
        rig.catch_up(200);
        assert_eq!(rig.wire.sent, [(115, 1)]);
        rig.catch_up(300);
        rig.wire.writable = PortSet::ALL;
        rig.catch_up(300);
        assert_eq!(rig.wire.sent, [(115, 1), (110, 0)]);
        assert_eq!(rig.stepper.last(), Time::from_nanos(300));
    }

    #[test]
    fn a_port_that_opens_has_not_been_open_before() {
        let mut rig = Rig::new();
        rig.wire.writable = PortSet::ALL.without(Port(0));
        rig.deliver(100, 0);
        rig.deliver(105, 1);
        rig.calls();
        rig.wire.writable = PortSet::ALL;
        rig.catch_up(200);
        // The other port's deadline is stepped at its own time.
        assert_eq!((rig.calls(), rig.wire.sent), (vec![115, 200], vec![(115, 1), (110, 0)]));
    }
}
