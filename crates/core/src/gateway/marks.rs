//! Congestion marks of held progress.
//!
//! *ECE* (RFC 3168, RFC 8257): the gateway keeps how many of the held bytes came with ECE, and the ACKs that
//! it makes carry ECE until as many bytes were acknowledged with it. A sender that counts marked bytes
//! (DCTCP) sees the same share. A sender that reacts to ECE as such sees it with the next release, and for as
//! long as the receiver would have shown it, since marks leave first and are rounded up. A change of ECE is
//! no reason to release anything early.
//!
//! *AccECN* (RFC 9768): ACE counts marked packets in three bits. The difference between two values that a
//! sender is shown must never be more than it can tell apart. So an ACK that would carry the counter around
//! is preceded by one that shows the counter as it was.

use crate::ack::{Pace, ACE_MOST};
use crate::flow::Record;

impl Record {
    /// Notes bytes of progress, with ECE or without.
    pub(super) fn note_marks(&mut self, bytes: u32, ece: bool) {
        if ece {
            self.marked = self.marked.saturating_add_unsigned(bytes);
        }
    }

    /// Is the next ACK to carry ECE?
    pub(super) fn shows_ece(&self) -> bool {
        self.marked > 0
    }

    /// Notes acknowledged bytes, with ECE or without. What was marked too much is taken off later marks, at
    /// most a step: more would hide congestion.
    pub(super) fn told_marks(&mut self, bytes: u32, ece: bool) {
        if ece {
            let step = self.kept().pace().map_or(0, Pace::step);
            let step = step.max(2 * u32::from(self.mss));
            let least = -i32::try_from(step).unwrap_or(i32::MAX);
            self.marked = self.marked.saturating_sub_unsigned(bytes).max(least);
        }
    }

    /// Returns how far the AccECN counter has moved since the sender saw it.
    pub(super) fn ace_unseen(&self) -> u8 {
        self.ace.wrapping_sub(self.ace_sent) & ACE_MOST
    }
}
