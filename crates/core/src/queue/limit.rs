//! Limits of queues, in packets or bytes.

use super::backlog::Backlog;
use super::Queue;
use crate::frame::Charge;
use crate::rate::Rate;
use crate::time::Duration;

/// Maximum content of a drop-tail queue. Only waiting frames count. The frame being serialized has left the
/// queue, as in mahimahi's link, and as behind Linux's queueing disciplines, where it belongs to the device.
/// A link without a rate has no queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum QueueLimit {
    /// No limit but the frame pool's.
    Unlimited,
    /// Limit in packets (segments of giant frames); 0 keeps nothing waiting.
    Packets(u32),
    /// Limit in bytes, counted as the rate counts them.
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
    /// Returns the most bytes that wait in front of `rate` if packets have `packet` bytes each; saturating.
    pub fn most_bytes(self, rate: Rate, packet: u64) -> u64 {
        match self {
            QueueLimit::Unlimited => u64::MAX,
            QueueLimit::Packets(n) => packet.saturating_mul(u64::from(n)),
            QueueLimit::Bytes(n) => n,
            QueueLimit::Bdp { rtt } => rate.bytes_in(rtt),
        }
    }
}

/// A limit at a known rate, in packets and in bytes. Both hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    packets: u64,
    bytes: u64,
}

impl Bound {
    pub(crate) fn new(limit: QueueLimit, rate: Rate) -> Bound {
        let (packets, bytes) = match limit {
            QueueLimit::Unlimited => (u64::MAX, u64::MAX),
            QueueLimit::Packets(n) => (u64::from(n), u64::MAX),
            QueueLimit::Bytes(n) => (u64::MAX, n),
            QueueLimit::Bdp { rtt } => (u64::MAX, rate.bytes_in(rtt)),
        };
        Bound { packets, bytes }
    }
    /// Returns whether the packet fits behind the waiting ones.
    pub(crate) fn admits(&self, backlog: &Backlog, charge: Charge) -> bool {
        backlog.packets() + u64::from(charge.packets) <= self.packets
            && backlog.bytes() + charge.bytes <= self.bytes
    }
    /// Returns whether the packet fits into an empty queue.
    pub(super) fn admits_alone(&self, charge: Charge) -> bool {
        u64::from(charge.packets) <= self.packets && charge.bytes <= self.bytes
    }
    /// Returns whether the queue holds more than this bound divided by `parts`.
    pub(crate) fn is_exceeded_by(&self, queue: &Queue, parts: u64) -> bool {
        queue.packets() > self.packets / parts || queue.bytes() > self.bytes / parts
    }
    /// Returns whether the queue holds more than this bound.
    pub(super) fn is_exceeded(&self, backlog: &Backlog) -> bool {
        backlog.packets() > self.packets || backlog.bytes() > self.bytes
    }
}
