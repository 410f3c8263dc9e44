//! Departure of a frame, and its charges.

use super::bucket;
use super::tree::{Inside, Popped, Tree, ROOT};
use crate::classify::spec::PRIORITIES;
use crate::frame::Charge;
use crate::node::Cx;

/// Units of virtual time per byte at weight 1. 64 bits last 29 years at 10 Gb/s.
const SCALE: u64 = 16;

impl Tree {
    /// Dequeues the next frame that can leave at [`Tree::now`]. Call it until it returns `None`, then call
    /// [`Tree::advance`].
    pub fn pop(&mut self, cx: &mut Cx<'_>) -> Option<Popped> {
        while let Some((class, leaf)) = self.next_leaf() {
            let queue = &mut self.leaves[leaf as usize].queue;
            let waiting = queue.pop(&mut Cx { now: self.now, frames: cx.frames });
            let ends = queue.packets() == 0;
            let borrowed = match &waiting {
                Some(waiting) => self.charge(class, waiting.charge),
                None => 0,
            };
            if ends {
                self.end(class);
            }
            self.refresh_path(cx, class);
            let Some(waiting) = waiting else { continue };
            let stats = &mut self.leaves[leaf as usize].stats;
            stats.packets += u64::from(waiting.charge.packets);
            stats.bytes += waiting.charge.bytes;
            stats.borrowed += borrowed;
            if stats.records_delay {
                stats.delay.record(self.now.since(waiting.since).as_nanos());
            }
            return Some(Popped { class: class as usize - 1, waiting, at: self.now });
        }
        None
    }

    /// Charges the frame to the classes from the leaf up. All ceilings are charged. Rates are charged from
    /// the first class on that is below its own rate. The classes below that one have borrowed. Returns the
    /// bytes that the leaf borrowed.
    fn charge(&mut self, leaf: u32, charge: Charge) -> u64 {
        let (mut i, mut paid, now) = (leaf, false, self.now);
        let priority = self.classes[leaf as usize].priority;
        let mut borrowed = 0;
        while i != ROOT {
            let class = &mut self.classes[i as usize];
            let (since, strict) = (class.since, class.parent == ROOT);
            paid |= class.rate.is_some_and(|rate| rate.due() <= now);
            if let Some(ceil) = &mut class.ceil {
                bucket::charge(ceil, now, since, charge.bytes, strict);
            }
            if let Some(rate) = class.rate.as_mut().filter(|_| paid) {
                bucket::charge(rate, now, since, charge.bytes, strict);
            }
            let parent = class.parent;
            if let Some(usage) = self.usage.get_mut(i as usize) {
                usage.note(charge.bytes, now);
            }
            if !paid {
                self.borrow(i, parent, priority, charge.bytes);
                borrowed = charge.bytes;
            }
            i = parent;
        }
        borrowed
    }

    /// Notes that a class borrows. Its siblings may borrow as much, by their weights, before its next turn.
    fn borrow(&mut self, i: u32, parent: u32, priority: u8, bytes: u64) {
        let Inside::Feed(feed) = self.classes[parent as usize].inside else { return };
        let class = &mut self.classes[i as usize];
        let own = &mut self.virtual_times[i as usize * usize::from(PRIORITIES) + usize::from(priority)];
        self.feeds[feed as usize].virtual_time[usize::from(priority)] = *own;
        let owed = bytes * SCALE + u64::from(class.carried);
        *own += owed / u64::from(class.weight);
        class.carried = (owed % u64::from(class.weight)) as u32;
    }

    /// Updates the offers of all classes from the leaf up.
    fn refresh_path(&mut self, cx: &mut Cx<'_>, leaf: u32) {
        let mut i = leaf;
        while i != ROOT {
            self.refresh_one(cx.frames, i);
            i = self.classes[i as usize].parent;
        }
    }
}
