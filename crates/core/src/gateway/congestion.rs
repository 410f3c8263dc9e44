//! Congested classes: their queues say so ([`Sharing`](crate::sharing::Sharing)), and the gateway asks before
//! it holds an ACK of a class that controls ACKs [only then](crate::ack::When::Congested).

use super::release::gap;
use super::{ClassConfig, Gateway};
use crate::ack::{AckControl, When};
use crate::flow::{flag, Record};
use crate::node::Cx;
use crate::queue::{Bound, Queue};
use crate::rate::Rate;
use crate::time::Time;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

/// What is known of the classes of a configuration, by their index in it; of all of whom it knows nothing,
/// that they are not congested. Clones are of one and the same.
#[derive(Clone, Debug, Default)]
pub struct Congestion(Arc<[AtomicBool]>);

impl Congestion {
    /// Of so many classes.
    pub fn new(classes: usize) -> Congestion {
        Congestion((0..classes).map(|_| AtomicBool::new(false)).collect())
    }

    /// Is the class with this index congested?
    pub fn is(&self, class: usize) -> bool {
        self.0.get(class).is_some_and(|congested| congested.load(Relaxed))
    }

    /// May ACKs be held now that are controlled in this way, of the class with this index if it still has
    /// one?
    #[inline(always)]
    pub(super) fn engages(&self, policy: &AckControl, class: Option<u32>) -> bool {
        policy.when == When::Always || class.is_some_and(|class| self.is(class as usize))
    }

    /// The class with this index is congested, or not. Panics if there is none.
    pub fn set(&self, class: usize, congested: bool) {
        self.0[class].store(congested, Relaxed);
    }
}

/// When the queue of a class makes it congested: as soon as more than a threshold waits, and until no more
/// than half of that does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    class: usize,
    above: Bound,
}

impl Watch {
    /// On the queue of the class with this index, if it has one and that matters.
    pub(crate) fn of(class: usize, config: &ClassConfig) -> Option<Watch> {
        config.share?.queue?;
        match config.ack?.when {
            When::Always => None,
            // No threshold depends on a rate.
            When::Congested { above } => Some(Watch { class, above: Bound::new(above, Rate::mbit(1)) }),
        }
    }

    /// Says how its class is with this queue.
    pub(crate) fn look(&self, queue: &Queue, congestion: &Congestion) {
        let is = congestion.is(self.class);
        let part = if is { 2 } else { 1 };
        if self.above.is_exceeded_by(queue, part) != is {
            congestion.set(self.class, !is);
        }
    }
}

impl Gateway {
    /// From now on this says which classes are congested.
    pub fn heed(&mut self, congestion: Congestion) {
        self.congestion = congestion;
    }

    /// May ACKs of the flow be held now?
    #[inline]
    pub(super) fn is_engaged(&self, i: u32) -> bool {
        let r = &self.table[i];
        let index = self.classes.index(r.class).map(|index| index as u32);
        self.congestion.engages(self.policy(r), index)
    }

    /// The flow's ACKs are not held now, so its rate is not asked.
    pub(super) fn not_asked(&mut self, i: u32, now: Time) {
        let depth = self.policy(&self.table[i]).release.depth();
        self.table[i].pace.begin_anew(now, depth);
    }

    /// Nothing is held back any more, and what is held leaves by and by: up to `most` bytes now, a segment at
    /// least, and a step after each period in which no ACK brings more. All at once would be as large a burst
    /// as the window. Where there is no room, it is tried again.
    pub(super) fn pass_held(&mut self, cx: &mut Cx<'_>, i: u32, most: u32) {
        self.not_asked(i, cx.now);
        let r = &mut self.table[i];
        r.set(flag::WAITING, false);
        let to = r.tx.wrapping_add(r.held().min(most.max(r.mss.into())));
        if self.generate(cx, i, to, cx.now) {
            let pace = &mut self.table[i].pace;
            pace.due = (cx.now + pace.period()).saturating_sub(gap(pace)).as_nanos();
        }
        self.wait(i, cx.now);
    }
}

impl Record {
    /// What the flow's rate is in a period.
    pub(super) fn step(&self) -> u32 {
        let step = self.pace.rate().map_or(0, |rate| rate.bytes_in(self.pace.period()));
        step.min(u64::from(u32::MAX)) as u32
    }
}
