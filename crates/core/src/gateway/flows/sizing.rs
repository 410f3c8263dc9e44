//! The size of a window: rate × (round-trip time + standing delay) at most.
//!
//! Release alone cannot bound what is held, since the sender's window grows until something stops it. The
//! first right edge that a sender sees counts as much as every later one, because an edge never moves
//! back: the window of the SYN-ACK is sized like the others. Where the data's receiver is the client
//! that is its first ACK.

use crate::ack::{window, Window};
use crate::flow::{flag, Record};
use crate::steer::Slot;
use crate::time::Duration;

/// The largest window there is (RFC 7323 §2.3).
pub(super) const MOST: u64 = 1 << 30;

impl Record {
    /// Returns whether the right edge that may be told now, with a window of at most `limit` bytes, is right
    /// of the last one.
    pub(in crate::gateway) fn edge_moves(&self, limit: Option<u32>) -> bool {
        self.window != 0 && window::is_news(self, self.window, limit)
    }

    /// The most bytes that the window may be of a flow with a rate of its own and this round-trip time, by
    /// its policy.
    #[inline(always)]
    pub(in crate::gateway) fn window_limit(&self, policy: &Window, rtt: Duration) -> Option<u32> {
        Some(self.full_window(policy, rtt)?.saturating_sub(self.law.pace().lag()).max(1))
    }

    /// As [`Record::window_limit`], of a flow that owes nothing.
    #[inline(always)]
    pub(super) fn full_window(&self, policy: &Window, rtt: Duration) -> Option<u32> {
        let Window::Size { standing_delay } = *policy else { return None };
        // Releases are a period apart, so what waits for them is at least two steps.
        let standing = standing_delay.max(self.law.pace().period().saturating_mul(2));
        let bytes = self.law.pace().rate()?.bytes_in(rtt + standing);
        let (bytes, mss) = (bytes.min(MOST) as u32, u32::from(self.mss.max(1)));
        Some((bytes.div_ceil(mss) * mss).min(MOST as u32))
    }

    /// The receiver's numbers and both right edges are those of the slot.
    #[inline(always)]
    pub(in crate::gateway) fn catch_up(&mut self, slot: &Slot) {
        self.seq = slot.nxt();
        let (own, sent) = (slot.edge(), slot.sent());
        if self.has(flag::SCALE_KNOWN) && own.is_after(self.right) {
            self.right = own;
        }
        if self.has(flag::EDGE_KNOWN) && sent.is_after(self.edge) {
            self.edge = sent;
        }
    }
}
