//! Replacement of one tree by another while frames wait.
//!
//! [`Tree::follow`] comes first. Then come [`Tree::adopt`] for each class that stays, and the frames of the
//! other classes ([`Tree::release`] there, [`Tree::admit`] here). [`Tree::resume`] comes last. No frame is
//! lost: a limit that is exceeded refuses only later frames.

use super::tree::{Inside, Leaf, Tree};
use crate::frame::{Frames, Waiting};
use crate::node::Cx;
use crate::queue::QueueLimit;
use crate::time::Time;

impl Tree {
    /// Starts an unused tree at `now`.
    pub(crate) fn follow(&mut self, now: Time) {
        self.now = now;
        self.classes.iter_mut().for_each(|class| class.since = now);
    }

    /// Takes over the class with index `was` of the other tree as the class with this index. Debt for sent
    /// bytes stays, to the bit, and waiting frames wait here. A queue of the same discipline and settings is
    /// moved. Another one is filled in the order in which the old one would have sent.
    pub(crate) fn adopt(&mut self, cx: &mut Cx<'_>, class: usize, old: &mut Tree, was: usize) {
        let now = self.now;
        let (own, before) = (&mut self.classes[class + 1], &old.classes[was + 1]);
        own.since = before.since;
        if let (Some(own), Some(before)) = (self.usage.get_mut(class + 1), old.usage.get(was + 1)) {
            *own = *before;
        }
        for (bucket, before) in [(&mut own.rate, before.rate), (&mut own.ceil, before.ceil)] {
            if let (Some(bucket), Some(before)) = (bucket, before) {
                let rate = core::mem::replace(bucket, before).rate();
                bucket.set_rate(now, rate);
            }
        }
        if let (Inside::Leaf(leaf), Inside::Leaf(before)) = (own.inside, before.inside) {
            self.leaves[leaf as usize].adopt(cx, &mut old.leaves[before as usize]);
        }
    }

    /// Dequeues the next frame of the class with this index, in a tree that is given up.
    pub(crate) fn release(&mut self, frames: &Frames, class: usize) -> Option<Waiting> {
        match self.classes[class + 1].inside {
            Inside::Leaf(leaf) => self.leaves[leaf as usize].queue.release(frames),
            Inside::Feed(_) => None,
        }
    }

    /// Enqueues a frame in the class with this index before [`Tree::resume`], whatever its limit. Panics if
    /// the class has no queue.
    pub(crate) fn admit(&mut self, cx: &mut Cx<'_>, class: usize, waiting: Waiting) {
        let Inside::Leaf(leaf) = self.classes[class + 1].inside else { panic!("a class without a queue") };
        self.leaves[leaf as usize].admit(cx, core::iter::once(waiting));
    }

    /// Lets waiting frames leave from now on.
    pub(crate) fn resume(&mut self, frames: &Frames) {
        let full = |tree: &Tree, i: usize| match tree.classes[i].inside {
            Inside::Leaf(leaf) => tree.leaves[leaf as usize].queue.packets() > 0,
            Inside::Feed(_) => false,
        };
        let full: Vec<u32> = (1..self.classes.len()).filter(|&i| full(self, i)).map(|i| i as u32).collect();
        full.iter().for_each(|&i| self.activate(i, |_| ()));
        full.iter().for_each(|&i| self.refresh(frames, i));
    }
}

impl Leaf {
    fn adopt(&mut self, cx: &mut Cx<'_>, old: &mut Leaf) {
        let records_delay = self.stats.records_delay;
        core::mem::swap(&mut self.stats, &mut old.stats);
        self.stats.records_delay = records_delay;
        if (self.config.kind, self.config.tins) == (old.config.kind, old.config.tins) {
            core::mem::swap(&mut self.queue, &mut old.queue);
            return self.queue.set_limit(self.config.limit, self.rate);
        }
        self.queue.set_stats(*old.queue.stats());
        let queue = &mut old.queue;
        let frames: Vec<Waiting> = core::iter::from_fn(|| queue.release(cx.frames)).collect();
        self.admit(cx, frames);
    }

    /// Enqueues these frames, whatever the limit.
    fn admit(&mut self, cx: &mut Cx<'_>, frames: impl IntoIterator<Item = Waiting>) {
        self.queue.set_limit(QueueLimit::Unlimited, self.rate);
        for waiting in frames {
            self.queue.admit(cx, waiting);
        }
        self.queue.set_limit(self.config.limit, self.rate);
    }
}
