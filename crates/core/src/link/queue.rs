//! The queue in front of a rate, and the rate. Neither knows of the propagation line behind them, so a
//! limit never counts frames in flight (an emulator that mixes the two drops frames of a long path at
//! any load).

use super::charge::Charge;
use crate::frame::Frame;
use crate::rate::{ByteClock, Rate};
use crate::time::{Duration, Time};
use std::collections::VecDeque;

/// What a drop-tail queue holds at most. Counted are the frames that wait; the one being serialized
/// has left the queue, as in mahimahi's link and behind Linux's queueing disciplines, where it is the
/// device's. A link without a rate has no queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// No limit but the frame pool's.
    Unlimited,
    /// This many packets (segments of giant frames); 0 keeps nothing waiting.
    Packets(u32),
    /// This many bytes, counted as the rate counts them.
    Bytes(u64),
    /// The bytes that the link sends in this round-trip time: rate × rtt, rounded down.
    Bdp {
        /// The round-trip time of the path.
        rtt: Duration,
    },
}

impl Default for QueueLimit {
    /// 1,000 packets, netem's default.
    fn default() -> QueueLimit {
        QueueLimit::Packets(1000)
    }
}

impl QueueLimit {
    fn resolve(self, rate: Rate) -> Resolved {
        let (packets, bytes) = match self {
            QueueLimit::Unlimited => (u64::MAX, u64::MAX),
            QueueLimit::Packets(n) => (u64::from(n), u64::MAX),
            QueueLimit::Bytes(n) => (u64::MAX, n),
            QueueLimit::Bdp { rtt } => (u64::MAX, rate.bytes_in(rtt)),
        };
        Resolved { packets, bytes }
    }
}

/// A limit at a known rate: both hold.
#[derive(Clone, Copy, Debug)]
struct Resolved {
    packets: u64,
    bytes: u64,
}

/// A frame that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) frame: Frame,
    pub(super) charge: Charge,
    pub(super) since: Time,
}

/// First in, first out; what does not fit is refused.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: VecDeque<Waiting>,
    packets: u64,
    bytes: u64,
    limit: Resolved,
    mark: Resolved,
}

impl Queue {
    /// A queue that holds `limit` and, with `mark`, says when more than that waits.
    pub(super) fn new(limit: QueueLimit, mark: Option<QueueLimit>, rate: Rate) -> Queue {
        let limit = limit.resolve(rate);
        let mark = mark.unwrap_or(QueueLimit::Unlimited).resolve(rate);
        let frames = limit.packets.min(limit.bytes / super::SMALL_PACKET);
        Queue { waiting: super::storage(frames), packets: 0, bytes: 0, limit, mark }
    }
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
    pub(super) fn admits(&self, charge: Charge) -> bool {
        self.packets + u64::from(charge.packets) <= self.limit.packets
            && self.bytes + charge.bytes <= self.limit.bytes
    }
    /// Does more than the marking threshold wait?
    pub(super) fn congested(&self) -> bool {
        self.packets > self.mark.packets || self.bytes > self.mark.bytes
    }
    pub(super) fn push(&mut self, waiting: Waiting) {
        self.packets += u64::from(waiting.charge.packets);
        self.bytes += waiting.charge.bytes;
        self.waiting.push_back(waiting);
    }
    pub(super) fn pop(&mut self) -> Option<Waiting> {
        let first = self.waiting.pop_front()?;
        self.packets -= u64::from(first.charge.packets);
        self.bytes -= first.charge.bytes;
        Some(first)
    }
}

/// A frame on its way through the rate.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) frame: Frame,
    pub(super) charge: Charge,
    pub(super) took: Duration,
    /// When its last bit leaves.
    pub(super) done: Time,
}

/// Sends one frame after the other, bit by bit. What a departure cannot express in whole nanoseconds is
/// carried to the next one of the same busy period.
#[derive(Debug)]
pub(super) struct Serializer {
    clock: ByteClock,
    serving: Option<Served>,
    free_at: Time,
}

impl Serializer {
    pub(super) fn new(rate: Rate) -> Serializer {
        Serializer { clock: ByteClock::new(rate), serving: None, free_at: Time::ZERO }
    }
    pub(super) fn serving(&self) -> Option<&Served> {
        self.serving.as_ref()
    }
    /// The frame that is through by `now`.
    pub(super) fn finish(&mut self, now: Time) -> Option<Served> {
        self.serving.take_if(|s| s.done <= now)
    }
    /// Begins a frame at `start`, or when the last one was done if that is later. Call when nothing is
    /// served.
    pub(super) fn start(&mut self, start: Time, frame: Frame, charge: Charge) {
        debug_assert!(self.serving.is_none());
        let start = start.max(self.free_at);
        if start > self.free_at {
            self.clock.idle();
        }
        let took = self.clock.advance(charge.bytes);
        self.free_at = start + took;
        self.serving = Some(Served { frame, charge, took, done: self.free_at });
    }
}
