//! Counters that all disciplines share.

use crate::frame::{Charge, Parked, Waiting};
use crate::node::Cx;
use crate::stats::{DropReason, Drops};

/// Counters of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Most packets that ever waited at once.
    pub peak_packets: u64,
    /// Most bytes that ever waited at once, as charged.
    pub peak_bytes: u64,
    /// Packets (segments of giant frames) marked with Congestion Experienced.
    pub marks: u64,
    /// ACKs erased because a newer ACK of the flow carries their information: absorbed, not dropped.
    pub filtered: u64,
    /// ACKs that arrived while an ACK filter fell back to classical filtering, because more flows were active
    /// than it measures.
    pub fallback: u64,
    /// Frames dropped on arrival or on departure, by reason.
    pub drops: Drops,
    /// Bytes of these frames, as charged.
    pub dropped_bytes: u64,
}

/// Current length of a queue, and its counters.
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
    /// Counts an enqueued frame.
    pub(crate) fn enter(&mut self, charge: Charge) {
        self.enter_first(charge);
        self.note_peak();
    }
    /// Counts an enqueued frame before others are dropped in its place.
    pub(super) fn enter_first(&mut self, charge: Charge) {
        self.packets += u64::from(charge.packets);
        self.bytes += charge.bytes;
    }
    /// Raises the peaks to the current length.
    pub(super) fn note_peak(&mut self) {
        self.stats.peak_packets = self.stats.peak_packets.max(self.packets);
        self.stats.peak_bytes = self.stats.peak_bytes.max(self.bytes);
    }
    /// Counts a frame that has left the queue.
    pub(crate) fn leave(&mut self, charge: Charge) {
        self.packets -= u64::from(charge.packets);
        self.bytes -= charge.bytes;
    }
    /// Counts that of a part of the queue, with these packets and bytes `before`, others wait now.
    pub(super) fn replace(&mut self, before: (u64, u64), now: (u64, u64)) {
        self.packets = self.packets + now.0 - before.0;
        self.bytes = self.bytes + now.1 - before.1;
    }
    /// Absorbs a frame that has left the queue, because a newer one carries its information.
    pub(super) fn absorb(&mut self, cx: &mut Cx<'_>, frame: Parked) {
        self.stats.filtered += 1;
        let frame = cx.frames.unpark(frame);
        cx.frames.absorb(frame);
    }
    /// Drops and counts a frame that is not counted as waiting. All losses of a queue pass here.
    pub(super) fn drop(&mut self, cx: &mut Cx<'_>, waiting: Waiting, reason: DropReason) -> DropReason {
        self.stats.drops.count(reason);
        self.stats.dropped_bytes += waiting.charge.bytes;
        let frame = cx.frames.unpark(waiting.frame);
        cx.drop(frame, reason);
        reason
    }
}
