//! What each class offers, of which the best is taken.

use super::{Class, Inside, Tree, ROOT};
use crate::class::bucket::Bucket;
use crate::class::spec::PRIORITIES;
use crate::frame::Frames;
use crate::time::{Duration, Time};

/// The level of an offer to borrow: after all levels that lend.
pub(super) const BORROWS: u8 = u8::MAX;
/// The level of a leaf below its rate: before all others.
pub(super) const LEAF: u8 = 0;

/// What a class has to offer, the best first: by level, priority, and then the time at which its first frame would be through, or its
/// virtual time where it borrows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::class) struct Offer {
    /// The level of the class that pays: leaves, then the lower classes, then the upper ones, then nobody yet.
    level: u8,
    pub(in crate::class) priority: u8,
    key: u64,
}

impl Offer {
    pub(in crate::class) fn borrows(&self) -> bool {
        self.level == BORROWS
    }
}

impl Tree {
    /// What the class offers now, and when it has something else to offer if nothing happens before.
    pub(super) fn offer(&mut self, frames: &Frames, i: u32) -> (Option<Offer>, Option<Time>) {
        let class = &self.classes[i as usize];
        let Some(best) = self.best_inside(class) else { return (None, None) };
        match class.ceil {
            Some(ceil) if ceil.paid() > self.now => return (None, Some(ceil.paid())),
            _ if !best.borrows() => return (Some(best), None),
            _ => {}
        }
        let priority = best.priority;
        match class.rate {
            Some(rate) if rate.paid() <= self.now => {
                let key = rate.paid().max(class.since) + self.first_takes(frames, class, rate);
                (Some(Offer { level: class.level, priority, key: key.as_nanos() }), None)
            }
            // Nobody lends to a class at the top.
            rate if class.parent == ROOT => (None, rate.map(|rate| rate.paid())),
            rate => {
                let key = self.virtual_time(i, priority);
                (Some(Offer { level: BORROWS, priority, key }), rate.map(|rate| rate.paid()))
            }
        }
    }

    /// The best that its children offer it; of a leaf, that it has something to send.
    fn best_inside(&self, class: &Class) -> Option<Offer> {
        match class.inside {
            Inside::Feed(feed) => Some(self.feeds[feed as usize].offers.first()?.key),
            Inside::Leaf(leaf) => (self.leaves[leaf as usize].queue.packets() > 0).then_some(Offer {
                level: BORROWS,
                priority: class.priority,
                key: 0,
            }),
        }
    }

    /// How long a leaf's first frame takes at its own rate.
    fn first_takes(&self, frames: &Frames, class: &Class, rate: Bucket) -> Duration {
        match class.inside {
            Inside::Feed(_) => Duration::ZERO,
            Inside::Leaf(leaf) => {
                let head = self.leaves[leaf as usize].queue.head(frames);
                head.map_or(Duration::ZERO, |head| rate.rate().time_for(head.charge.bytes))
            }
        }
    }

    /// The virtual time at which the class borrows next: not before that of the last that borrowed there.
    fn virtual_time(&mut self, i: u32, priority: u8) -> u64 {
        let parent = self.classes[i as usize].parent;
        let Inside::Feed(feed) = self.classes[parent as usize].inside else { return 0 };
        let last = self.feeds[feed as usize].virtual_time[usize::from(priority)];
        let own = &mut self.virtual_times[i as usize * usize::from(PRIORITIES) + usize::from(priority)];
        *own = (*own).max(last);
        *own
    }
}
