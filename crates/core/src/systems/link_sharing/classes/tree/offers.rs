//! Offers of the classes. The best one is taken.

use super::{Class, Inside, Tree, ROOT};
use crate::base::VirtualClock;
use crate::classify::spec::PRIORITIES;
use crate::frame::Frames;
use crate::time::{Duration, Time};

/// Level of an offer to borrow: after all levels that lend.
pub(super) const BORROWS: u8 = u8::MAX;
/// Level of a leaf below its rate: before all others.
pub(super) const LEAF: u8 = 0;

/// Offer of a class, best first. The order is by level, by priority, and by the time at which the first frame
/// would finish, or the virtual time of a borrower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::systems::link_sharing::classes) struct Offer {
    /// Level of the class that pays: leaves, then the lower classes, then the upper ones, then `BORROWS`.
    level: u8,
    pub(in crate::systems::link_sharing::classes) priority: u8,
    key: u64,
}

impl Offer {
    pub(in crate::systems::link_sharing::classes) fn borrows(&self) -> bool {
        self.level == BORROWS
    }
}

impl Tree {
    /// Returns the current offer of the class, and the time at which it changes if nothing else happens
    /// before.
    pub(super) fn offer(&mut self, frames: &Frames, i: u32) -> (Option<Offer>, Option<Time>) {
        let class = &self.classes[i as usize];
        let Some(best) = self.best_inside(class) else { return (None, None) };
        match class.ceil {
            Some(ceil) if ceil.due() > self.now => return (None, Some(ceil.due())),
            _ if !best.borrows() => return (Some(best), None),
            _ => {}
        }
        let priority = best.priority;
        match class.rate {
            Some(rate) if rate.due() <= self.now => {
                let key = rate.due().max(class.since) + self.first_takes(frames, class, rate);
                (Some(Offer { level: class.level, priority, key: key.as_nanos() }), None)
            }
            // A class at the top has no lender.
            rate if class.parent == ROOT => (None, rate.map(|rate| rate.due())),
            rate => {
                let key = self.virtual_time(i, priority);
                (Some(Offer { level: BORROWS, priority, key }), rate.map(|rate| rate.due()))
            }
        }
    }

    /// Returns the best offer of its children. For a leaf, returns an offer if its queue is not empty.
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

    /// Returns the time that a leaf's first frame takes at its own rate.
    fn first_takes(&self, frames: &Frames, class: &Class, rate: VirtualClock) -> Duration {
        match class.inside {
            Inside::Feed(_) => Duration::ZERO,
            Inside::Leaf(leaf) => {
                let head = self.leaves[leaf as usize].queue.head(frames);
                head.map_or(Duration::ZERO, |head| rate.rate().time_for(head.charge.bytes))
            }
        }
    }

    /// Returns the virtual time at which the class borrows next. It is never before that of the last borrower
    /// from the same parent.
    fn virtual_time(&mut self, i: u32, priority: u8) -> u64 {
        let parent = self.classes[i as usize].parent;
        let Inside::Feed(feed) = self.classes[parent as usize].inside else { return 0 };
        let last = self.feeds[feed as usize].virtual_time[usize::from(priority)];
        let own = &mut self.virtual_times[i as usize * usize::from(PRIORITIES) + usize::from(priority)];
        *own = (*own).max(last);
        *own
    }
}
