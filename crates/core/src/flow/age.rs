//! Lists of numbers in the order of their last activity: O(1), no allocation after construction.

use crate::base::linked::{LinkedList, Links};
use crate::base::prefetch;

/// `LISTS` lists of the numbers below a capacity, the newest first. Each number is in at most one of them.
pub struct Ages<const LISTS: usize> {
    lists: [(LinkedList, u32); LISTS],
    links: Box<[Links]>,
}

impl<const LISTS: usize> Ages<LISTS> {
    /// Returns empty lists of numbers below `capacity`.
    pub fn new(capacity: u32) -> Self {
        Ages { lists: [(LinkedList::EMPTY, 0); LISTS], links: vec![Links::NONE; capacity as usize].into() }
    }

    /// Returns the length of a list.
    pub fn len(&self, list: usize) -> u32 {
        self.lists[list].1
    }

    /// Returns the number of the list that was active last.
    pub fn newest(&self, list: usize) -> Option<u32> {
        self.lists[list].0.first()
    }

    /// Returns the number of the list that has been silent longest.
    pub fn oldest(&self, list: usize) -> Option<u32> {
        self.lists[list].0.last()
    }

    /// Returns the number that was active before `i`.
    pub fn before(&self, i: u32) -> Option<u32> {
        self.links[i as usize].next()
    }

    /// Returns the number that was active after `i`.
    pub fn after(&self, i: u32) -> Option<u32> {
        self.links[i as usize].prev()
    }

    /// Prefetches the links of the neighbours of a number.
    #[inline]
    pub fn load(&self, i: u32) {
        for neighbour in [self.before(i), self.after(i)].into_iter().flatten() {
            prefetch(&self.links[neighbour as usize]);
        }
    }

    /// Adds a number that is in no list, as active now.
    pub fn add(&mut self, list: usize, i: u32) {
        let (list, len) = &mut self.lists[list];
        list.push_first(&mut self.links[..], i);
        *len += 1;
    }

    /// Removes a number from its list.
    pub fn remove(&mut self, list: usize, i: u32) {
        let (list, len) = &mut self.lists[list];
        list.remove(&mut self.links[..], i);
        *len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares with a vector for each list, the newest first.
        #[test]
        fn like_vectors(ops in prop::collection::vec((0usize..3, 0u32..12), 1..200)) {
            let mut ages = Ages::<2>::new(12);
            let mut model = [Vec::new(), Vec::new()];
            for (to, i) in ops {
                if let Some(from) = model.iter().position(|list| list.contains(&i)) {
                    ages.remove(from, i);
                    model[from].retain(|&n| n != i);
                }
                if to < 2 {
                    ages.add(to, i);
                    model[to].insert(0, i);
                }
                for (n, list) in model.iter().enumerate() {
                    let order = core::iter::successors(ages.newest(n), |&i| ages.before(i)).collect::<Vec<_>>();
                    prop_assert_eq!(&order, list);
                    prop_assert_eq!(ages.oldest(n), list.last().copied());
                    prop_assert_eq!(ages.len(n) as usize, list.len());
                }
            }
        }
    }
}
