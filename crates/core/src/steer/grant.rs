//! Grants: what passes without the gateway, because it would let it pass at once.
//!
//! A grant is an acknowledgement number. The gateway makes one where it holds nothing of a flow and its pace has credit,
//! for no more than that, and charges what has passed when it next looks at the flow: [`Slot::tx`] tells. A grant is for
//! segments that tell nothing but progress. Any other is taken, or passes and is shown, as without one.
//!
//! What is taken ends the grant, so that nothing passes ahead of what waits for the gateway. The two may be at it at
//! once on two processors: a hook writes `waits` and then looks at `grant`, the gateway writes `grant` and then looks at
//! `waits`, and one of them sees what the other has written.

use super::{after, Seen, Slot, ACK, PSH};
use crate::time::Time;
use core::sync::atomic::{
    fence,
    Ordering::{Relaxed, SeqCst},
};

/// How a segment taken at `at` is known in `waits`.
fn mark(at: Time) -> u32 {
    at.as_nanos() as u32 | 1
}

impl Slot {
    /// Lets plain segments pass up to the acknowledgement number `to`. False if that would let them overtake one that
    /// waits for the gateway: none pass.
    pub fn grant(&self, to: u32) -> bool {
        if self.waits.load(Relaxed) != 0 {
            return false;
        }
        // One byte less where the number would say that there is none.
        self.grant.store(if to == 0 { u32::MAX } else { to }, Relaxed);
        fence(SeqCst);
        let stands = self.waits.load(Relaxed) == 0;
        if !stands {
            self.revoke();
        }
        stands
    }

    /// Lets nothing pass any more. A hook that is at it on another processor may still let one segment.
    pub fn revoke(&self) {
        self.grant.store(0, Relaxed);
        fence(SeqCst);
    }

    /// Up to where plain segments pass, if any do.
    pub fn granted(&self) -> Option<u32> {
        Some(self.grant.load(Relaxed)).filter(|&to| to != 0)
    }

    /// A segment is about to be given to the gateway, which will get it as of time `at`: nothing passes ahead of it.
    pub fn take(&self, at: Time) {
        self.waits.store(mark(at), Relaxed);
        fence(SeqCst);
        if self.grant.load(Relaxed) != 0 {
            self.grant.store(0, Relaxed);
        }
    }

    /// The gateway has the segment that was taken at `at`.
    pub fn has_come(&self, at: Time) {
        // Unless another one was taken since.
        let _ = self.waits.compare_exchange(mark(at), 0, Relaxed, Relaxed);
    }

    /// Has a segment been taken that the gateway has not had yet?
    pub fn is_waited_for(&self) -> bool {
        self.waits.load(Relaxed) != 0
    }

    /// May this segment, which is believed, pass by the grant? Its sequence number is the next one, and it
    /// tells nothing but progress.
    pub(super) fn grants(&self, seen: &Seen) -> bool {
        let Some(to) = self.granted() else { return false };
        seen.plain
            && seen.flags & !PSH == ACK
            && seen.window != 0
            && self.window.load(Relaxed) != 0
            && seen.seq == self.nxt.load(Relaxed)
            && after(seen.ack, self.tx.load(Relaxed))
            && !after(seen.ack, to)
    }
}
