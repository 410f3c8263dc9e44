//! A driver in virtual time for tests and benchmarks: hands frames to a node at given times, steps
//! its deadlines, collects what it transmits, and panics when the node breaks the contract of
//! [`crate::node`].
//!
//! ```
//! use weir_core::{link, node::Port, rate::Rate, rig::{TestFrame, Rig}, time::{Duration, Time}};
//! let config = link::Config {
//!     rate: Some(Rate::mbit(10)),
//!     delay: Duration::from_millis(5),
//!     ..link::Config::default()
//! };
//! let mut rig = Rig::new(link::Link::new(config));
//! // 1,500 bytes of IP behind 14 of Ethernet; only 60 bytes are present.
//! rig.at(Time::from_millis(1)).inject(Port(0), TestFrame::zeros(60).long(1514));
//! let sent = rig.run_until(Time::from_secs(1));
//! assert_eq!((sent[0].at, sent[0].port), (Time::from_micros(7200), Port(1)));
//! rig.finish();
//! ```
//!
//! Checked after every call:
//! - `at <= now`, never decreasing per port, and only on a writable port;
//! - after `None`, the next deadline is `None` or later;
//! - an early or repeated poll returns nothing and leaves the deadline as it was;
//! - conservation: chunks in use = received + made - sent - dropped - absorbed.
//!
//! [`Rig::finish`] checks at the end that nothing is held.

pub mod busy;
mod ends;
mod frame;
pub mod second;
#[cfg(test)]
mod tests;
pub mod trial;

pub use ends::Ends;
pub use frame::TestFrame;

use crate::frame::{Checksum, Frame, Frames};
use crate::node::{Cx, Node, Port, PortSet, Transmit};
use crate::time::{Duration, Time};
use std::collections::VecDeque;

/// Most polls in one wake that return a frame, before the rig calls it a runaway.
const POLLS_PER_WAKE: u32 = 1 << 20;

/// A frame that the node transmitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Time at which it was due.
    pub at: Time,
    /// Port by which it left.
    pub port: Port,
    /// The bytes present.
    pub bytes: Vec<u8>,
    /// Length of the frame in bytes.
    pub len: usize,
    /// Segment size, see [`Frame::gso_size`].
    pub gso_size: u16,
    /// Checksum state, see [`Frame::checksum`].
    pub checksum: Checksum,
}

/// Times at which the driver wakes. The stamps of a node's frames must not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Wake {
    /// Exactly at every arrival and deadline.
    #[default]
    Exact,
    /// Only at multiples of this. Once awake, the driver steps every missed deadline, each with `now` = its
    /// time, before it hands in frames that arrived later, as the contract requires.
    Late(Duration),
    /// Only at multiples of this. The driver hands in frames (with `now` = their arrival) without stepping
    /// the deadlines missed before them: catching up is left to the node.
    Lazy(Duration),
}

struct Arrival {
    at: Time,
    port: Port,
    given: TestFrame,
}

struct Closed {
    port: Port,
    from: Time,
    until: Time,
}

/// A node, a frame pool and virtual time. See the [module documentation](self).
pub struct Rig<N> {
    node: N,
    frames: Frames,
    cursor: Time,
    /// `now` of the last call on the node, `None` before the first.
    called: Option<Time>,
    arrivals: VecDeque<Arrival>,
    closed: Vec<Closed>,
    wake: Wake,
    last_at: [Time; 64],
    received: u64,
    sent: u64,
}

impl<N: Node> Rig<N> {
    /// Returns a rig around `node` with 8,192 chunks of 2,048 bytes, 512 of them reserved for made frames.
    pub fn new(node: N) -> Rig<N> {
        Rig::with_pool(node, Frames::new(8192, 2048, 512))
    }

    /// Returns a rig around `node` with a pool of its own.
    pub fn with_pool(node: N, frames: Frames) -> Rig<N> {
        Rig {
            node,
            frames,
            cursor: Time::ZERO,
            called: None,
            arrivals: VecDeque::new(),
            closed: Vec::new(),
            wake: Wake::Exact,
            last_at: [Time::ZERO; 64],
            received: 0,
            sent: 0,
        }
    }

    /// Makes the driver wake late.
    #[must_use]
    pub fn wake(mut self, wake: Wake) -> Rig<N> {
        self.wake = wake;
        self
    }

    /// Lets frames injected next arrive at `t`.
    pub fn at(&mut self, t: Time) -> &mut Rig<N> {
        self.cursor = t;
        self
    }

    /// Lets frames injected next arrive `d` later than the last.
    pub fn after(&mut self, d: Duration) -> &mut Rig<N> {
        self.cursor += d;
        self
    }

    /// Injects a frame that arrives on `port`. Frames of the same time arrive in the order of these calls.
    /// Panics if that time has already been run.
    pub fn inject(&mut self, port: Port, frame: impl Into<TestFrame>) -> &mut Rig<N> {
        let at = self.cursor;
        assert!(self.called.is_none_or(|now| at >= now), "{at:?} is in the past");
        let i = self.arrivals.partition_point(|a| a.at <= at);
        self.arrivals.insert(i, Arrival { at, port, given: frame.into() });
        self
    }

    /// Closes `port` from `from` until `until`.
    pub fn close(&mut self, port: Port, from: Time, until: Time) -> &mut Rig<N> {
        self.closed.push(Closed { port, from, until });
        self
    }

    /// Returns the node.
    pub fn node(&self) -> &N {
        &self.node
    }
    /// Returns the node, to be reconfigured between runs.
    pub fn node_mut(&mut self) -> &mut N {
        &mut self.node
    }
    /// Calls another method of the node, now.
    pub fn with_cx<R>(&mut self, call: impl FnOnce(&mut N, &mut Cx<'_>) -> R) -> R {
        let now = self.called.unwrap_or(Time::ZERO).max(self.cursor);
        self.called = Some(now);
        call(&mut self.node, &mut Cx { now, frames: &mut self.frames })
    }
    /// Returns the frame pool.
    pub fn frames(&self) -> &Frames {
        &self.frames
    }
    /// Returns the number of frames inside the node.
    pub fn held(&self) -> u64 {
        let f = &self.frames;
        (self.received + f.made()).wrapping_sub(self.sent + f.drops().total() + f.absorbed())
    }

    /// Runs up to and including `end` and returns the transmitted frames, in that order.
    pub fn run_until(&mut self, end: Time) -> Vec<Sent> {
        let mut sent = Vec::new();
        while let Some(wake) = self.next_wake().filter(|&t| t <= end) {
            self.wake_at(wake, &mut sent);
            self.check_early_poll(end);
        }
        self.cursor = self.cursor.max(end);
        sent
    }

    /// Checks that no frame is held, none is still to arrive, and the pool is whole.
    pub fn finish(&self) {
        assert!(self.arrivals.is_empty(), "{} frames still to arrive", self.arrivals.len());
        assert_eq!(self.held(), 0, "frames held at the end");
        assert_eq!(self.frames.free_chunks(), self.frames.chunks(), "chunks lost");
    }

    fn next_wake(&self) -> Option<Time> {
        let arrival = self.arrivals.front().map(|a| a.at);
        let writable = self.writable(self.called.unwrap_or(Time::ZERO));
        let deadline = self.node.next_deadline(writable);
        let event = arrival.into_iter().chain(deadline).chain(self.next_opening()).min()?;
        Some(match self.wake {
            Wake::Exact => event,
            Wake::Late(q) | Wake::Lazy(q) => {
                let q = q.as_nanos().max(1);
                Time::from_nanos(event.as_nanos().div_ceil(q).saturating_mul(q))
            }
        })
    }

    /// Returns the time at which a port opens next.
    fn next_opening(&self) -> Option<Time> {
        let called = self.called?;
        self.closed.iter().map(|c| c.until).filter(|&t| t > called).min()
    }

    /// Returns the ports that are open at `t`.
    fn writable(&self, t: Time) -> PortSet {
        let shut = self.closed.iter().filter(|c| c.from <= t && t < c.until);
        shut.fold(PortSet::ALL, |set, c| set.without(c.port))
    }

    /// Returns the ports that have been open since the last call until `t`.
    fn open_until(&self, t: Time) -> PortSet {
        let called = self.called.unwrap_or(Time::ZERO);
        let shut = self.closed.iter().filter(|c| c.from <= t && called < c.until);
        shut.fold(PortSet::ALL, |set, c| set.without(c.port))
    }

    fn wake_at(&mut self, wake: Time, sent: &mut Vec<Sent>) {
        // A port that opened meanwhile is open as of now.
        let writable = self.open_until(wake);
        loop {
            let arrival = self.arrivals.front().map(|a| a.at).filter(|&t| t <= wake);
            let lazy = matches!(self.wake, Wake::Lazy(_));
            let due = self.node.next_deadline(writable);
            let due = due.filter(|&d| !lazy && d <= wake && arrival.is_none_or(|a| d <= a));
            let step = match (due, arrival) {
                (Some(due), _) => due.max(self.called.unwrap_or(due)),
                (None, Some(at)) => {
                    self.hand_in();
                    at
                }
                (None, None) => break,
            };
            self.drain(step, writable, sent);
        }
        self.drain(wake, self.writable(wake), sent);
    }

    fn hand_in(&mut self) {
        let Some(Arrival { at, port, given }) = self.arrivals.pop_front() else { return };
        let frame = self.frames.receive_copy(&given.head, given.len, at);
        let mut frame = frame.expect("the rig's pool is exhausted, or the frame longer than a chunk");
        frame.gso_size = given.gso_size;
        frame.checksum = given.checksum;
        self.received += 1;
        self.called = Some(at);
        self.node.handle_frame(&mut Cx { now: at, frames: &mut self.frames }, port, frame);
        self.check_conservation();
    }

    /// Polls at `now` until `None`, then once more to check that a repetition changes nothing.
    fn drain(&mut self, now: Time, writable: PortSet, sent: &mut Vec<Sent>) {
        let mut polls = 0;
        while let Some(Transmit { port, at, frame }) = self.poll(now, writable) {
            polls += 1;
            assert!(polls < POLLS_PER_WAKE, "the node keeps sending at {now:?}");
            assert!(at <= now, "{port:?}: sent at {at:?}, later than now {now:?}");
            assert!(writable.contains(port), "{port:?} is closed at {now:?}");
            let last = &mut self.last_at[usize::from(port.0)];
            assert!(*last <= at, "{port:?}: sent at {at:?} after {last:?}");
            *last = at;
            sent.push(self.take(port, at, frame));
            self.check_conservation();
        }
        let deadline = self.node.next_deadline(writable);
        assert!(
            deadline.is_none_or(|d| d > now),
            "nothing to send at {now:?}, yet the deadline is {deadline:?}"
        );
        self.expect_nothing(now, writable, deadline);
    }

    fn poll(&mut self, now: Time, writable: PortSet) -> Option<Transmit> {
        self.called = Some(now);
        let sent = self.node.poll_transmit(&mut Cx { now, frames: &mut self.frames }, writable);
        if sent.is_none() {
            self.check_conservation();
        }
        sent
    }

    fn expect_nothing(&mut self, now: Time, writable: PortSet, deadline: Option<Time>) {
        let again = self.poll(now, writable);
        assert_eq!(again, None, "a poll at {now:?}, early or repeated, sent a frame");
        assert_eq!(self.node.next_deadline(writable), deadline, "a poll at {now:?} changed the deadline");
    }

    /// Polls half-way to the next event and expects nothing.
    fn check_early_poll(&mut self, end: Time) {
        let Some(now) = self.called else { return };
        let writable = self.writable(now);
        let Some(next) = self.node.next_deadline(writable) else { return };
        let arrival = self.arrivals.front().map_or(end, |a| a.at);
        let event = next.min(arrival).min(end).min(self.next_opening().unwrap_or(end));
        let early = now + Duration::from_nanos(event.since(now).as_nanos() / 2);
        if early > now && early < event {
            self.expect_nothing(early, writable, Some(next));
        }
    }

    fn take(&mut self, port: Port, at: Time, frame: Frame) -> Sent {
        let sent = Sent {
            at,
            port,
            bytes: self.frames.bytes(&frame).to_vec(),
            len: frame.len(),
            gso_size: frame.gso_size,
            checksum: frame.checksum,
        };
        self.frames.transmitted(frame);
        self.sent += 1;
        sent
    }

    fn check_conservation(&self) {
        let used = (self.frames.chunks() - self.frames.free_chunks()) as u64;
        assert_eq!(used, self.held(), "frames lost or doubled");
    }
}
