//! Congested classes: their queues say so ([`Sharing`](crate::systems::link_sharing::Sharing)), and the
//! gateway asks before it holds an ACK of a class that controls ACKs [only
//! then](crate::ack::When::Congested).

use super::release::gap;
use super::{Congestion, Gateway};
use crate::ack::{AckControl, When};
use crate::flow::{flag, Record};
use crate::node::Cx;
use crate::time::Time;

impl AckControl {
    /// Returns whether ACKs may be held now, of the class with this index if it still has one.
    #[inline(always)]
    pub(super) fn engages(&self, congestion: &Congestion, class: Option<u32>) -> bool {
        self.when == When::Always || class.is_some_and(|class| congestion.is(class as usize))
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
        self.policy(r).engages(&self.congestion, index)
    }

    /// The flow's ACKs are not held now, so its rate is not asked.
    pub(super) fn not_asked(&mut self, i: u32, now: Time) {
        let depth = self.policy(&self.table[i]).release.depth();
        self.table[i].law.pace_mut().begin_anew(now, depth);
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
            let pace = self.table[i].law.pace_mut();
            pace.due = (cx.now + pace.period()).saturating_sub(gap(pace)).as_nanos();
        }
        self.wait(i, cx.now);
    }
}

impl Record {
    /// What the flow's rate is in a period.
    pub(super) fn step(&self) -> u32 {
        let pace = self.law.pace();
        let step = pace.rate().map_or(0, |rate| rate.bytes_in(pace.period()));
        step.min(u64::from(u32::MAX)) as u32
    }
}
