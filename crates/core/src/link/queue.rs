//! The queue in front of a rate, and the rate, as numbers: the frames themselves are in the line from their arrival
//! on, since first in, first out at a constant rate says then when each leaves. A limit counts what waits
//! for the rate and never frames in flight (an emulator that mixes the two drops frames of a long path at
//! any load).

use super::charge::Charge;
use crate::rate::{ByteClock, Rate};
use crate::time::{Duration, Time};

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

/// What waits; more than fits is refused.
#[derive(Debug)]
pub(super) struct Queue {
    packets: u64,
    bytes: u64,
    limit: Resolved,
    mark: Resolved,
}

impl Queue {
    /// A queue that holds `limit` and, with `mark`, says when more than that waits.
    pub(super) fn new(limit: QueueLimit, mark: Option<QueueLimit>, rate: Rate) -> Queue {
        let mark = mark.unwrap_or(QueueLimit::Unlimited).resolve(rate);
        Queue { packets: 0, bytes: 0, limit: limit.resolve(rate), mark }
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
    /// A frame begins to wait.
    pub(super) fn enter(&mut self, charge: Charge) {
        self.packets += u64::from(charge.packets);
        self.bytes += charge.bytes;
    }
    /// A frame begins to be serialized.
    pub(super) fn leave(&mut self, charge: Charge) {
        self.packets -= u64::from(charge.packets);
        self.bytes -= charge.bytes;
    }
}

/// Sends one frame after the other, bit by bit. What a departure cannot express in whole nanoseconds is
/// carried to the next one of the same busy period.
#[derive(Debug)]
pub(super) struct Serializer {
    clock: ByteClock,
    /// How long the rate takes for what it may send at once after it has been idle.
    ahead: Duration,
    /// When the last bit of the last frame would have left without that.
    free_at: Time,
    /// When the frame being serialized was begun.
    pub(super) begun: Time,
}

impl Serializer {
    /// `burst` is the depth of the token bucket in bytes; 0 sends no bit early.
    pub(super) fn new(rate: Rate, burst: u64) -> Serializer {
        let ahead = rate.time_for(burst);
        Serializer { clock: ByteClock::new(rate), ahead, free_at: Time::ZERO, begun: Time::ZERO }
    }
    /// A frame finds nothing in front of it at `now`. When its last bit leaves.
    pub(super) fn start(&mut self, now: Time, charge: Charge) -> Time {
        // The bucket is full once the rate has been idle for as long as it takes to fill it.
        let full = now.saturating_sub(self.ahead);
        if full > self.free_at {
            self.clock.idle();
            self.free_at = full;
        }
        self.begun = now;
        self.free_at += self.clock.advance(charge.bytes);
        self.free_at.max(now)
    }
    /// A frame waits for those in front of it. When its last bit leaves.
    pub(super) fn follow(&mut self, charge: Charge) -> Time {
        self.free_at += self.clock.advance(charge.bytes);
        self.free_at
    }
}
