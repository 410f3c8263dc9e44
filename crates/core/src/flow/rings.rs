//! Circular lists of numbers. Any number can be removed in constant time. No allocation after construction.

use super::NONE;

const PREV: usize = 0;
const NEXT: usize = 1;

/// Neighbours of numbers. Each number is in at most one list. A list is its first number, [`NONE`] if it is
/// empty.
pub(super) struct Rings {
    links: Vec<[u32; 2]>,
}

impl Rings {
    /// Returns the numbers below `n`, in no list.
    pub(super) fn new(n: u32) -> Rings {
        Rings { links: vec![[NONE; 2]; n as usize] }
    }

    /// Grows to at least `n` numbers.
    pub(super) fn grow(&mut self, n: u32) {
        if self.links.len() < n as usize {
            self.links.resize(n as usize, [NONE; 2]);
        }
    }

    /// Adds a number as the last of a list.
    pub(super) fn push(&mut self, first: &mut u32, i: u32) {
        if *first == NONE {
            self.links[i as usize] = [i, i];
            *first = i;
            return;
        }
        let last = self.links[*first as usize][PREV];
        self.links[i as usize] = [last, *first];
        self.links[last as usize][NEXT] = i;
        self.links[*first as usize][PREV] = i;
    }

    /// Removes a number from the list that it is in.
    pub(super) fn remove(&mut self, first: &mut u32, i: u32) {
        let [prev, next] = self.links[i as usize];
        self.links[prev as usize][NEXT] = next;
        self.links[next as usize][PREV] = prev;
        if *first == i {
            *first = if next == i { NONE } else { next };
        }
    }

    /// Returns the first `n` numbers of a list, or all.
    pub(super) fn some(&self, first: u32, n: usize) -> impl Iterator<Item = u32> + '_ {
        let next = move |&i: &u32| Some(self.links[i as usize][NEXT]).filter(|&next| next != first);
        core::iter::successors(Some(first).filter(|&i| i != NONE), next).take(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares with a vector for each list.
        #[test]
        fn like_vectors(ops in prop::collection::vec((0usize..2, 0u32..8), 1..200)) {
            let mut rings = Rings::new(4);
            rings.grow(8);
            let mut firsts = [NONE; 2];
            let mut model = [Vec::new(), Vec::new()];
            for (list, i) in ops {
                if let Some(of) = model.iter().position(|m: &Vec<u32>| m.contains(&i)) {
                    rings.remove(&mut firsts[of], i);
                    model[of].retain(|&m| m != i);
                } else {
                    rings.push(&mut firsts[list], i);
                    model[list].push(i);
                }
                for (first, model) in firsts.iter().zip(&model) {
                    prop_assert_eq!(&rings.some(*first, 9).collect::<Vec<_>>(), model);
                }
            }
        }
    }
}
