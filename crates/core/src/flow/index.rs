//! An index that finds a number by a hash: open addressing, at most half full, O(1), no allocation after
//! construction. The user of the index defines the numbers and their keys.
//!
//! An entry has 32 bits of the hash beside the number. A look-up therefore costs one line of memory here, and
//! does not read the keys of other numbers.

use super::NONE;
use crate::base::prefetch;

/// An entry of the index. `number` is [`NONE`] when it is empty.
#[derive(Clone, Copy)]
struct Entry {
    hash: u32,
    number: u32,
}

const VACANT: Entry = Entry { hash: 0, number: NONE };

/// See the module documentation.
pub struct Index {
    /// Entries. Their number is a power of two.
    entries: Box<[Entry]>,
}

impl Index {
    /// Returns an index of at most `capacity` numbers.
    pub fn new(capacity: u32) -> Index {
        let len = 2 * (capacity.max(1) as usize).next_power_of_two();
        Index { entries: vec![VACANT; len].into() }
    }

    /// Returns the number with this hash for which `is` returns true.
    #[inline]
    pub fn find(&self, hash: u32, is: impl Fn(u32) -> bool) -> Option<u32> {
        let mut at = self.home(hash);
        loop {
            let Entry { hash: other, number } = self.entries[at];
            if number == NONE {
                return None;
            }
            if other == hash && is(number) {
                return Some(number);
            }
            at = self.after(at);
        }
    }

    /// Prefetches the line of memory that most likely has the number with this hash.
    #[inline]
    pub fn load(&self, hash: u32) {
        prefetch(&self.entries[self.home(hash)]);
    }

    /// Adds a number, up to the capacity.
    pub fn insert(&mut self, hash: u32, number: u32) {
        let mut at = self.home(hash);
        while self.entries[at].number != NONE {
            at = self.after(at);
        }
        self.entries[at] = Entry { hash, number };
    }

    /// Removes a number that was added with this hash, and moves up the entries placed behind it (Knuth,
    /// TAOCP vol. 3, §6.4, algorithm R). No tombstones are left.
    pub fn remove(&mut self, hash: u32, number: u32) {
        let mut hole = self.home(hash);
        while self.entries[hole].number != number {
            hole = self.after(hole);
        }
        let mut at = hole;
        loop {
            at = self.after(at);
            let entry = self.entries[at];
            if entry.number == NONE {
                break;
            }
            let distance = |from: usize, to: usize| to.wrapping_sub(from) & (self.entries.len() - 1);
            if distance(self.home(entry.hash), at) >= distance(hole, at) {
                self.entries[hole] = entry;
                hole = at;
            }
        }
        self.entries[hole] = VACANT;
    }

    fn home(&self, hash: u32) -> usize {
        hash as usize & (self.entries.len() - 1)
    }

    fn after(&self, at: usize) -> usize {
        (at + 1) & (self.entries.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Compares with a map, for hashes that collide in their place and in full.
        #[test]
        fn like_a_map(ops in prop::collection::vec((any::<bool>(), 0u32..16, 0u32..20), 1..200)) {
            let mut index = Index::new(16);
            let mut model = BTreeMap::new();
            for (add, number, hash) in ops {
                if let Some(hash) = model.remove(&number) {
                    index.remove(hash, number);
                }
                if add {
                    index.insert(hash, number);
                    model.insert(number, hash);
                }
                for number in 0..16 {
                    for hash in 0..20 {
                        let expected = (model.get(&number) == Some(&hash)).then_some(number);
                        prop_assert_eq!(index.find(hash, |n| n == number), expected);
                    }
                }
            }
        }
    }
}
