//! Bandwidth that a class could use now.

use super::tree::{Tree, ROOT};
use crate::time::Time;

impl Tree {
    /// Returns the bits per second available to the class with this index, in a tree in which a leaf
    /// guarantees its flows a rate. That is its own rate, or the part of its parent's available rate that the
    /// other children leave, up to its ceiling.
    pub fn available(&self, class: usize, now: Time) -> u64 {
        self.available_to(class as u32 + 1, now)
    }

    fn available_to(&self, i: u32, now: Time) -> u64 {
        let class = &self.classes[i as usize];
        let own = class.rate.map_or(0, |rate| rate.rate().bps());
        let most = class.ceil.map_or(u64::MAX, |ceil| ceil.rate().bps());
        if class.parent == ROOT {
            return own;
        }
        let used = |i: u32| self.usage.get(i as usize).map_or(0, |usage| usage.bps(now));
        let by_others = used(class.parent).saturating_sub(used(i));
        let left = self.available_to(class.parent, now).saturating_sub(by_others);
        own.max(left).min(most)
    }
}
