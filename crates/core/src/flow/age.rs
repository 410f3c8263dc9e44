//! Lists of numbers in the order of their last activity: O(1), no allocation after construction.

use super::NONE;
use crate::base::prefetch;

const PREV: usize = 0;
const NEXT: usize = 1;

#[derive(Clone, Copy)]
struct List {
    newest: u32,
    oldest: u32,
    len: u32,
}

/// `LISTS` lists of the numbers below a capacity. Each number is in at most one of them.
pub struct Ages<const LISTS: usize> {
    lists: [List; LISTS],
    /// Neighbours of each number in its list: the one that was active after it, and the one before.
    links: Box<[[u32; 2]]>,
}

impl<const LISTS: usize> Ages<LISTS> {
    /// Returns empty lists of numbers below `capacity`.
    pub fn new(capacity: u32) -> Self {
        let empty = List { newest: NONE, oldest: NONE, len: 0 };
        Ages { lists: [empty; LISTS], links: vec![[NONE; 2]; capacity as usize].into() }
    }

    /// Returns the length of a list.
    pub fn len(&self, list: usize) -> u32 {
        self.lists[list].len
    }

    /// Returns the number of the list that was active last.
    pub fn newest(&self, list: usize) -> Option<u32> {
        Some(self.lists[list].newest).filter(|&i| i != NONE)
    }

    /// Returns the number of the list that has been silent longest.
    pub fn oldest(&self, list: usize) -> Option<u32> {
        Some(self.lists[list].oldest).filter(|&i| i != NONE)
    }

    /// Returns the number that was active before `i`.
    pub fn before(&self, i: u32) -> Option<u32> {
        Some(self.links[i as usize][NEXT]).filter(|&i| i != NONE)
    }

    /// Returns the number that was active after `i`.
    pub fn after(&self, i: u32) -> Option<u32> {
        Some(self.links[i as usize][PREV]).filter(|&i| i != NONE)
    }

    /// Prefetches the links of the neighbours of a number.
    #[inline]
    pub fn load(&self, i: u32) {
        for neighbour in self.links[i as usize] {
            self.links.get(neighbour as usize).map(prefetch);
        }
    }

    /// Adds a number that is in no list, as active now.
    pub fn add(&mut self, list: usize, i: u32) {
        let List { newest, oldest, len } = &mut self.lists[list];
        let second = core::mem::replace(newest, i);
        *len += 1;
        match self.links.get_mut(second as usize) {
            Some(links) => links[PREV] = i,
            None => *oldest = i,
        }
        self.links[i as usize] = [NONE, second];
    }

    /// Removes a number from its list.
    pub fn remove(&mut self, list: usize, i: u32) {
        let [prev, next] = self.links[i as usize];
        let List { newest, oldest, len } = &mut self.lists[list];
        *len -= 1;
        match self.links.get_mut(prev as usize) {
            Some(links) => links[NEXT] = next,
            None => *newest = next,
        }
        match self.links.get_mut(next as usize) {
            Some(links) => links[PREV] = prev,
            None => *oldest = prev,
        }
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
