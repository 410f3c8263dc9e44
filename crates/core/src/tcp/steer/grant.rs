//! Grants: what passes without the gateway, because it would let it pass at once.
//!
//! A grant is an acknowledgement number. The gateway makes one where it holds nothing of a flow and its pace
//! has credit, for no more than that, and charges what has passed when it next looks at the flow:
//! [`Slot::tx`] tells. A grant is for segments that tell nothing but progress. Any other is taken, or passes
//! and is shown, as without one.
//!
//! A taken segment ends the grant, so that nothing overtakes it: hooks count the segments that they take, the
//! gateway what has come, and a grant is good as long as no more has been taken than when it was made.

use super::words::{barrier, halves, pair};
use super::{after, Numbers, Seen, Slot, ACK, PSH};
use crate::packet::wire::Seq;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

impl Slot {
    /// Lets plain segments pass up to the acknowledgement number `to`. False if that would let them overtake
    /// one that waits for the gateway: none pass.
    pub fn grant(&self, to: Seq) -> bool {
        let taken = self.taken.load(Relaxed);
        if self.is_waited_for() {
            return false;
        }
        // One byte less where the number would say that there is none.
        self.grant.store(pair(taken, if to == 0 { u32::MAX } else { to.0 }), Relaxed);
        barrier();
        let stands = self.taken.load(Relaxed) == taken;
        if !stands {
            self.revoke();
        }
        stands
    }

    /// Lets nothing pass any more. A hook that is at it on another processor may still let one segment.
    pub fn revoke(&self) {
        self.grant.store(0, Relaxed);
        barrier();
    }

    /// Up to where plain segments pass, if any do.
    #[inline(always)]
    pub fn granted(&self) -> Option<Seq> {
        let (taken, to) = halves(self.grant.load(Relaxed));
        Some(Seq(to)).filter(|&to| to != 0 && taken == self.taken.load(Relaxed))
    }

    /// A segment is about to be given to the gateway: nothing passes ahead of it.
    pub fn take(&self) {
        self.taken.fetch_add(1, SeqCst);
    }

    /// The gateway has one of the segments that were taken.
    #[inline(always)]
    pub fn has_come(&self) {
        self.come.store(self.come.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Returns whether a segment was taken that the gateway has not had yet.
    #[inline(always)]
    pub fn is_waited_for(&self) -> bool {
        after(self.taken.load(Relaxed), self.come.load(Relaxed))
    }

    /// The gateway begins with nothing to come: those that its predecessor had not dealt with are its own.
    pub fn begin(&self) {
        self.come.store(self.taken.load(Relaxed), Relaxed);
        self.revoke();
    }

    /// Returns whether this segment, which is believed, may pass by the grant. Its sequence number is the
    /// next one, and it tells nothing but progress.
    #[inline(always)]
    pub(super) fn grants(&self, n: &Numbers, seen: &Seen) -> bool {
        let Some(to) = self.granted() else { return false };
        seen.plain
            && seen.flags & !PSH == ACK
            && seen.window != 0
            && n.window != 0
            && seen.seq == n.nxt
            && seen.ack.is_after(n.tx)
            && !seen.ack.is_after(to)
    }
}
