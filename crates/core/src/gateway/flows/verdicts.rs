//! Verdicts on flows for the kernel, kept until the driver fetches them.

use crate::flow::{ClassId, Key};
use crate::time::{Duration, Time};
use std::collections::VecDeque;

/// Operations kept. Further flows are neither begun nor forgotten until some were fetched.
pub(in crate::gateway) const LIMIT: usize = 5120;

/// Verdicts that may wait when a flow is added that the kernel does not know.
const NEW_LIMIT: usize = 4096;

/// Places among these for flows that pass. Any of them may be lost.
const PASS_LIMIT: usize = 1024;

/// Most flows that are told of at their handshake within the window.
const EARLY_LIMIT: u32 = 500;

const EARLY_WINDOW: Duration = Duration::from_millis(100);

/// An operation on the kernel's table of flows. `ack_key` is the flow as its ACKs show it: the source is
/// the receiver of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The flow's ACKs are controlled by this slot, under this tag: the entry is made or replaced. Never
    /// lost.
    Shape {
        /// The flow as its ACKs show it.
        ack_key: Key,
        /// Number of the slot, and of the flow's record.
        slot: u32,
        /// See [`Slot::tag`](crate::steer::Slot::tag).
        tag: u32,
    },
    /// The entry is removed if it has this slot and tag. Never lost.
    Forget {
        /// The flow as its ACKs show it.
        ack_key: Key,
        /// Number of the slot.
        slot: u32,
        /// The tag that the entry has.
        tag: u32,
    },
    /// The flow passes untouched. One that is lost costs a look at one more segment.
    Pass {
        /// The flow as its ACKs show it.
        ack_key: Key,
    },
    /// Packets with this key are counted by a tally, if by any. One that is lost costs a look at one more
    /// packet.
    Count {
        /// Flow of TCP as its data shows it; otherwise what the [`Fields`](crate::steer::Fields) of the
        /// direction leave of the packet's key.
        key: Key,
        /// Number of the tally.
        tally: Option<u32>,
    },
}

/// The operations that the driver has not fetched.
pub(in crate::gateway) struct Verdicts {
    queue: VecDeque<Verdict>,
    /// There is a kernel that is told of slots.
    hooked: bool,
    /// Flows told of at their handshake since when.
    early: (u32, Time),
}

impl Verdicts {
    pub(in crate::gateway) fn new(hooked: bool) -> Verdicts {
        Verdicts { queue: VecDeque::with_capacity(LIMIT), hooked, early: (0, Time::ZERO) }
    }

    /// Returns whether the kernel may be told of a flow of which nothing but the handshake was seen. That
    /// spares a look at its first segment, and the answers to a flood of SYNs must not keep the kernel busy.
    pub(super) fn may_tell_early(&mut self, now: Time) -> bool {
        if now.since(self.early.1) >= EARLY_WINDOW {
            self.early = (0, now);
        }
        self.early.0 += 1;
        self.early.0 <= EARLY_LIMIT
    }

    /// Returns whether there is room for one that must not be lost.
    pub(in crate::gateway) fn has_room(&self) -> bool {
        !self.hooked || self.queue.len() < LIMIT
    }

    /// Returns whether there is room for a flow that the kernel does not know. Part of the room is for those
    /// that it knows, so that many new flows do not keep them from being followed or forgotten.
    pub(super) fn has_room_for_new(&self) -> bool {
        !self.hooked || self.queue.len() < NEW_LIMIT
    }

    /// One that must not be lost: [`Verdicts::has_room`] was asked.
    pub(in crate::gateway) fn push(&mut self, verdict: Verdict) {
        debug_assert!(self.has_room());
        if self.hooked {
            self.queue.push_back(verdict);
        }
    }

    /// Loses the ones that tell of what passes.
    pub(super) fn forget_passing(&mut self) {
        self.queue.retain(|verdict| !matches!(verdict, Verdict::Pass { .. } | Verdict::Count { .. }));
    }

    /// One that may be lost.
    pub(in crate::gateway) fn pass(&mut self, ack_key: Key) {
        self.may_be_lost(Verdict::Pass { ack_key });
    }

    /// See [`Verdict::Count`]. It may be lost.
    pub(in crate::gateway) fn count(&mut self, key: Key, class: Option<ClassId>) {
        self.may_be_lost(Verdict::Count { key, tally: class.map(|class| class.0) });
    }

    fn may_be_lost(&mut self, verdict: Verdict) {
        if self.queue.len() < PASS_LIMIT {
            self.queue.push_back(verdict);
        }
    }

    pub(in crate::gateway) fn drain(&mut self, max: usize) -> impl Iterator<Item = Verdict> + '_ {
        let n = max.min(self.queue.len());
        self.queue.drain(..n)
    }
}
