//! Counters that all disciplines share.

use crate::frame::{Charge, Parked};
use crate::node::Cx;
use crate::stats::{DropReason, Drops};

/// What a queue has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Most packets that ever waited at once.
    pub peak_packets: u64,
    /// Most bytes that ever waited at once, as charged.
    pub peak_bytes: u64,
    /// Packets (segments of giant frames) marked with Congestion Experienced.
    pub marks: u64,
    /// ACKs erased because newer ones of their flows say what they did: absorbed, not dropped.
    pub filtered: u64,
    /// ACKs that came while an ACK filter fell back to classical filtering, since more flows were active than it measures.
    pub fallback: u64,
    /// Frames dropped, on their way in or out, by reason.
    pub drops: Drops,
}

/// How much waits, and what has become of it.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    packets: u64,
    bytes: u64,
    pub(crate) stats: Stats,
}

impl Backlog {
    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
    /// A frame begins to wait.
    pub(crate) fn enter(&mut self, charge: Charge) {
        self.enter_first(charge);
        self.note_peak();
    }
    /// A frame begins to wait, before others are dropped in its place.
    pub(super) fn enter_first(&mut self, charge: Charge) {
        self.packets += u64::from(charge.packets);
        self.bytes += charge.bytes;
    }
    /// What waits now may be the most.
    pub(super) fn note_peak(&mut self) {
        self.stats.peak_packets = self.stats.peak_packets.max(self.packets);
        self.stats.peak_bytes = self.stats.peak_bytes.max(self.bytes);
    }
    /// A frame no longer waits.
    pub(crate) fn leave(&mut self, charge: Charge) {
        self.packets -= u64::from(charge.packets);
        self.bytes -= charge.bytes;
    }
    /// A frame that no longer waits: a newer one says what it did.
    pub(super) fn absorb(&mut self, cx: &mut Cx<'_>, frame: Parked) {
        self.stats.filtered += 1;
        let frame = cx.frames.unpark(frame);
        cx.frames.absorb(frame);
    }
    /// The one door for losses: of a frame that does not wait, or no longer.
    pub(super) fn drop(&mut self, cx: &mut Cx<'_>, frame: Parked, reason: DropReason) -> DropReason {
        self.stats.drops.count(reason);
        let frame = cx.frames.unpark(frame);
        cx.drop(frame, reason);
        reason
    }
}
