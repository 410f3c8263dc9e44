//! What the kernel is to know of flows, until the driver fetches it.

use crate::flow::Key;
use crate::time::{Duration, Time};
use std::collections::VecDeque;

/// Operations kept. Further flows are neither begun nor forgotten until some were fetched.
const LIMIT: usize = 4096;
/// Of these, how many may tell of flows that pass, any of which may be lost.
const PASS_LIMIT: usize = 1024;

/// So many flows are told of at their handshake in this time.
const EARLY_LIMIT: u32 = 500;
const EARLY_WINDOW: Duration = Duration::from_millis(100);

/// An operation on the kernel's table of flows. `ack_key` is the flow as its ACKs show it: the source is
/// the receiver of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The flow's ACKs are controlled by this slot, under this tag: the entry is made or replaced. Never lost.
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
}

/// The operations that the driver has not fetched.
pub(super) struct Verdicts {
    queue: VecDeque<Verdict>,
    /// There is a kernel that is told of slots.
    hooked: bool,
    /// Flows told of at their handshake since when.
    early: (u32, Time),
}

impl Verdicts {
    pub(super) fn new(hooked: bool) -> Verdicts {
        Verdicts { queue: VecDeque::with_capacity(LIMIT), hooked, early: (0, Time::ZERO) }
    }

    /// May the kernel be told of a flow of which nothing but the handshake was seen? That spares a look at its
    /// first segment, and the answers to a flood of SYNs must not keep the kernel busy.
    pub(super) fn may_tell_early(&mut self, now: Time) -> bool {
        if now.since(self.early.1) >= EARLY_WINDOW {
            self.early = (0, now);
        }
        self.early.0 += 1;
        self.early.0 <= EARLY_LIMIT
    }

    /// Is there room for one that must not be lost?
    pub(super) fn has_room(&self) -> bool {
        !self.hooked || self.queue.len() < LIMIT
    }

    /// One that must not be lost: [`Verdicts::has_room`] was asked.
    pub(super) fn push(&mut self, verdict: Verdict) {
        debug_assert!(self.has_room());
        if self.hooked {
            self.queue.push_back(verdict);
        }
    }

    /// One that may be lost.
    pub(super) fn pass(&mut self, ack_key: Key) {
        if self.queue.len() < PASS_LIMIT {
            self.queue.push_back(Verdict::Pass { ack_key });
        }
    }

    pub(super) fn drain(&mut self, max: usize) -> impl Iterator<Item = Verdict> + '_ {
        let n = max.min(self.queue.len());
        self.queue.drain(..n)
    }
}
