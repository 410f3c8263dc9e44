//! Counters of a link, and its backlog.

use super::{Link, Serializer};
use crate::queue;
use crate::stats::{Drops, Histogram, Ledger};
use crate::time::{Duration, Time};

/// Counters of a link, as of the last call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets that the link has serialized (segments of giant frames). Without a rate, packets taken in.
    pub packets: u64,
    /// Their bytes, as the rate counts them.
    pub bytes: u64,
    /// Most packets that ever waited at once.
    pub queue_peak_packets: u64,
    /// Most bytes that ever waited at once, as the rate counts them.
    pub queue_peak_bytes: u64,
    /// Frames dropped, by reason.
    pub drops: Drops,
    /// ACKs erased because newer ones of their flows made them redundant.
    pub filtered: u64,
    /// ACKs that arrived while the ACK filter fell back to classical filtering.
    pub fallback: u64,
    /// Packets (segments of giant frames) marked here with Congestion Experienced.
    pub marks: u64,
    /// Frames that came out twice.
    pub duplicated: u64,
    /// Frames that came out with a bit flipped.
    pub corrupted: u64,
    /// Time that the rate takes for those packets. Utilization is this over the time elapsed. On a link with
    /// a trace, the bytes sent are compared with those that the trace [offers](super::RateTrace::offered).
    pub busy: Duration,
    /// Nanoseconds that frames waited before the rate began to serialize them. Empty without a rate.
    pub queue_delay: Histogram,
}

impl Link {
    /// Returns the counters, as of the last call.
    pub fn stats(&self) -> LinkStats {
        let queue = self.queue_stats();
        let (duplicated, corrupted) = self.wire.damaged();
        LinkStats {
            packets: self.wire.packets,
            bytes: self.wire.bytes,
            queue_peak_packets: queue.peak_packets,
            queue_peak_bytes: queue.peak_bytes,
            drops: self.lost.with(&queue.drops),
            filtered: queue.filtered,
            fallback: queue.fallback,
            marks: queue.marks,
            duplicated,
            corrupted,
            busy: self.wire.busy,
            queue_delay: self.wire.queue_delay.clone(),
        }
    }
    /// Returns the account of the conservation law.
    pub fn ledger(&self) -> Ledger {
        let Link { received, sent, .. } = *self;
        let queue = self.queue_stats();
        let (drops, absorbed) = (self.lost.with(&queue.drops), queue.filtered);
        let made = self.wire.damaged().0;
        Ledger { received, made, sent, absorbed, drops }
    }
    /// Returns the packets that wait for the rate, as of the last call.
    pub fn queue_packets(&self) -> u64 {
        match &self.serializer {
            Serializer::None => 0,
            Serializer::Pipe(pipe) => pipe.backlog.packets(),
            Serializer::Bottleneck(bottleneck) => bottleneck.queue.packets(),
        }
    }
    /// Returns the bytes that wait for the rate, as the rate counts them, as of the last call.
    pub fn queue_bytes(&self) -> u64 {
        match &self.serializer {
            Serializer::None => 0,
            Serializer::Pipe(pipe) => pipe.backlog.bytes(),
            Serializer::Bottleneck(bottleneck) => bottleneck.queue.bytes(),
        }
    }
    /// Returns the time in which the link sends what waits at `now`, in whatever order. `None` without a
    /// rate, and for never.
    pub fn queue_time(&self, now: Time) -> Option<Duration> {
        let (rate, bytes) = (self.config.rate?, self.queue_bytes());
        let from = now.since(self.config.epoch);
        self.config.trace.map_or_else(|| Some(rate.time_for(bytes)), |trace| trace.time_for(bytes, from))
    }
    fn queue_stats(&self) -> queue::Stats {
        match &self.serializer {
            Serializer::None => queue::Stats::default(),
            Serializer::Pipe(pipe) => pipe.backlog.stats,
            Serializer::Bottleneck(bottleneck) => *bottleneck.queue.stats(),
        }
    }
}
