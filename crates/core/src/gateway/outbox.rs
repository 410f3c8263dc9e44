//! Frames on their way out, per port, in the order of their times.

use super::flows::earliest;
use crate::frame::{Charge, Frame, Waiting};
use crate::node::WAN;
use crate::node::{Cx, Port, PortSet, Transmit};
use crate::queue::{Fifo, Queue};
use crate::stats::{DropReason, Ledger};
use crate::time::Time;

/// Frames that may wait for a port; a port that stays blocked longer drops.
const LIMIT: u32 = 4096;
/// Releases stop making ACKs for a port with this many frames waiting.
const BUSY: u64 = 64;

/// Frames that wait for a port. Giant segments count as one frame.
struct Outlet {
    /// The frame that leaves next. Without one none waits.
    next: Option<Frame>,
    /// Time at which it was due; [`Time::MAX`] without one.
    due: Time,
    /// Frames behind it, and their number.
    queue: Queue,
    behind: u64,
    /// The time of the last frame that came.
    last: Time,
}

impl Outlet {
    fn new() -> Outlet {
        let queue = Queue::Fifo(Fifo::of_packets(LIMIT - 1));
        Outlet { next: None, due: Time::MAX, queue, behind: 0, last: Time::ZERO }
    }

    fn packets(&self) -> u64 {
        u64::from(self.next.is_some()) + self.behind
    }

    #[inline(always)]
    fn push(&mut self, cx: &mut Cx<'_>, at: Time, frame: Frame) -> Option<DropReason> {
        let since = self.last.max(at);
        if self.next.is_some() {
            return self.wait(cx, since, frame);
        }
        (self.last, self.due) = (since, since);
        self.next = Some(frame);
        None
    }

    /// A frame waits behind the next.
    #[cold]
    fn wait(&mut self, cx: &mut Cx<'_>, since: Time, frame: Frame) -> Option<DropReason> {
        let charge = Charge { packets: 1, bytes: frame.len() as u64 };
        let frame = cx.frames.park(frame);
        let dropped = self.queue.push(cx, Waiting { frame, charge, since });
        if dropped.is_none() {
            self.last = since;
            self.behind += 1;
        }
        dropped
    }

    #[inline]
    fn pop(&mut self, cx: &mut Cx<'_>) -> Option<(Time, Frame)> {
        let next = (self.due, self.next.take()?);
        self.due = Time::MAX;
        if self.behind > 0 {
            self.move_up(cx);
        }
        Some(next)
    }

    /// The first of those behind the next is the next.
    #[cold]
    fn move_up(&mut self, cx: &mut Cx<'_>) {
        let Some(waiting) = self.queue.pop(cx) else { return };
        self.behind -= 1;
        self.due = waiting.since;
        self.next = Some(cx.frames.unpark(waiting.frame));
    }
}

pub(super) struct Outbox {
    outlets: [Outlet; 2],
}

impl Outbox {
    pub(super) fn new() -> Outbox {
        Outbox { outlets: [Outlet::new(), Outlet::new()] }
    }

    fn outlet(&self, port: Port) -> &Outlet {
        &self.outlets[usize::from(port == WAN)]
    }

    fn outlet_mut(&mut self, port: Port) -> &mut Outlet {
        &mut self.outlets[usize::from(port == WAN)]
    }

    /// A frame leaves by `port`, as due at `at`, or when the one before it is, if that is later.
    #[inline(always)]
    pub(super) fn push(&mut self, cx: &mut Cx<'_>, ledger: &mut Ledger, port: Port, at: Time, frame: Frame) {
        if let Some(reason) = self.outlet_mut(port).push(cx, at, frame) {
            ledger.drops.count(reason);
        }
    }

    /// Returns whether no frame waits for any port.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.outlets.iter().all(|outlet| outlet.due == Time::MAX)
    }

    /// Returns the due time of the first frame for a writable port, and that port.
    #[inline]
    pub(super) fn first(&self, writable: PortSet) -> Option<(Time, Port)> {
        earliest(writable, |port| self.outlet(port).due)
    }

    /// The first frame for this port leaves.
    #[inline]
    pub(super) fn pop(&mut self, cx: &mut Cx<'_>, ledger: &mut Ledger, port: Port) -> Option<Transmit> {
        let (at, frame) = self.outlet_mut(port).pop(cx)?;
        ledger.sent += 1;
        Some(Transmit { port, at, frame })
    }

    /// Returns whether there is room for this many more.
    #[inline]
    pub(super) fn has_room(&self, port: Port, frames: u64) -> bool {
        self.outlet(port).packets() + frames <= u64::from(LIMIT)
    }

    pub(super) fn busy(&self, port: Port) -> bool {
        self.outlet(port).packets() >= BUSY
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frames;
    use crate::gateway::LAN;

    struct Bench {
        outbox: Outbox,
        frames: Frames,
        ledger: Ledger,
    }

    impl Bench {
        fn new() -> Bench {
            Bench { outbox: Outbox::new(), frames: Frames::growing(128), ledger: Ledger::default() }
        }
        fn push(&mut self, port: Port, at: u64) {
            let at = Time::from_nanos(at);
            let frame = self.frames.receive_copy(&[0; 60], 60, at).unwrap();
            self.ledger.received += 1;
            let mut cx = Cx { now: at, frames: &mut self.frames };
            self.outbox.push(&mut cx, &mut self.ledger, port, at, frame);
        }
        fn due(&self, writable: PortSet) -> Option<u64> {
            self.outbox.first(writable).map(|(due, _)| due.as_nanos())
        }
        fn pop(&mut self, writable: PortSet) -> Option<(Port, u64)> {
            let mut cx = Cx { now: Time::MAX, frames: &mut self.frames };
            let (_, port) = self.outbox.first(writable)?;
            let Transmit { port, at, frame } = self.outbox.pop(&mut cx, &mut self.ledger, port)?;
            self.frames.transmitted(frame);
            Some((port, at.as_nanos()))
        }
    }

    #[test]
    fn what_is_due_first_leaves_first_and_times_of_a_port_never_decrease() {
        let mut b = Bench::new();
        for (port, at) in [(WAN, 5), (LAN, 7), (WAN, 3), (WAN, 9), (LAN, 8)] {
            b.push(port, at);
        }
        let open = PortSet::ALL;
        assert_eq!(b.due(open), Some(5));
        assert_eq!(b.due(open.without(WAN)), Some(7));
        assert_eq!(b.pop(open.without(WAN)), Some((LAN, 7)));
        let rest: Vec<_> = core::iter::from_fn(|| b.pop(open)).collect();
        assert_eq!(rest, [(WAN, 5), (WAN, 5), (LAN, 8), (WAN, 9)]);
        assert_eq!((b.due(open), b.ledger.held(), b.frames.ledger().held()), (None, 0, 0));
    }

    #[test]
    fn a_port_that_stays_blocked_drops_and_holds_up_no_other() {
        let mut b = Bench::new();
        (0..u64::from(LIMIT)).for_each(|n| b.push(WAN, n));
        assert!(b.outbox.busy(WAN) && !b.outbox.has_room(WAN, 1));
        b.push(WAN, 1 << 20);
        assert_eq!(b.ledger.drops.get(DropReason::QueueFull), 1);
        assert_eq!(b.frames.drops(), &b.ledger.drops);
        assert!(!b.outbox.busy(LAN) && b.outbox.has_room(LAN, u64::from(LIMIT)));
        b.push(LAN, 1 << 21);
        assert_eq!(b.pop(PortSet::ALL.without(WAN)), Some((LAN, 1 << 21)));
        // What was dropped left no time behind.
        assert_eq!(b.pop(PortSet::ALL), Some((WAN, 0)));
        b.push(WAN, 5000);
        let last = core::iter::from_fn(|| b.pop(PortSet::ALL)).last();
        assert_eq!((last, b.ledger.held()), (Some((WAN, 5000)), 0));
    }
}
