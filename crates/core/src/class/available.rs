//! What a class could send now.

use super::tree::{Tree, ROOT};
use crate::time::Time;

impl Tree {
    /// Bits per second that are there for the class with this index, of a tree in which a leaf guarantees its flows anything: its own
    /// rate, or what the others of its parent leave of what is there for that, up to its ceiling.
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
