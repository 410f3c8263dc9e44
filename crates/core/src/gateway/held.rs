//! Accounts of what is held.

use super::ClassStats;
use crate::flow::Record;

/// Bytes and ACKs that a flow holds.
#[derive(Clone, Copy)]
pub(super) struct Held {
    pub(super) bytes: u32,
    pub(super) acks: u32,
}

impl Record {
    /// Returns the bytes and ACKs that the flow holds.
    #[inline]
    pub(super) fn held_now(&self) -> Held {
        let bytes = self.held();
        let acks = match self.queues_acks() {
            true => self.law.steps().waiting_acks(),
            false if bytes > 0 => self.held_acks,
            false => 0,
        };
        Held { bytes, acks }
    }
}

impl ClassStats {
    /// A flow that held so much `before` does so `now`.
    #[inline]
    pub(super) fn note_held(&mut self, before: Held, now: Held) {
        self.held_bytes = self.held_bytes + u64::from(now.bytes) - u64::from(before.bytes);
        self.held_bytes_peak = self.held_bytes_peak.max(self.held_bytes);
        self.held_acks = self.held_acks + u64::from(now.acks) - u64::from(before.acks);
        self.held_acks_peak = self.held_acks_peak.max(self.held_acks);
    }

    /// As [`ClassStats::note_held`], of a flow that does not hold more than before.
    #[inline]
    pub(super) fn note_released(&mut self, before: Held, now: Held) {
        self.held_bytes -= u64::from(before.bytes) - u64::from(now.bytes);
        self.held_acks -= u64::from(before.acks) - u64::from(now.acks);
    }
}
