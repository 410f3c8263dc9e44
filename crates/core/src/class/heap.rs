//! A heap of numbered things whose places are known, so that any of them can be moved or taken out.

/// What is nowhere in a heap.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// A thing and what it is ordered by; of those with equal keys, the lower number is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry<K> {
    pub(crate) key: K,
    pub(crate) id: u32,
}

/// A heap of at most as many things as it was made for. Where each of them is, is kept outside, by number, in `places`:
/// several heaps that no thing is in at the same time share one such list.
#[derive(Debug)]
pub(crate) struct Heap<K> {
    entries: Vec<Entry<K>>,
}

impl<K: Copy + Ord> Heap<K> {
    pub(crate) fn new(most: usize) -> Heap<K> {
        Heap { entries: Vec::with_capacity(most) }
    }

    /// The first thing.
    pub(crate) fn first(&self) -> Option<Entry<K>> {
        self.entries.first().copied()
    }

    /// Is the thing in this heap, and not in another one that shares the list?
    pub(crate) fn holds(&self, places: &[u32], id: u32) -> bool {
        let place = places[id as usize] as usize;
        self.entries.get(place).is_some_and(|entry| entry.id == id)
    }

    /// The thing is in the heap with this key, or not at all.
    pub(crate) fn set(&mut self, places: &mut [u32], id: u32, key: Option<K>) {
        let place = places[id as usize];
        match (place, key) {
            (NOWHERE, None) => {}
            (NOWHERE, Some(key)) => {
                self.entries.push(Entry { key, id });
                self.rise(places, self.entries.len() - 1);
            }
            (place, Some(key)) if self.entries[place as usize].key == key => {}
            (place, Some(key)) => {
                self.entries[place as usize].key = key;
                self.settle(places, place as usize);
            }
            (place, None) => {
                places[id as usize] = NOWHERE;
                self.entries.swap_remove(place as usize);
                if (place as usize) < self.entries.len() {
                    self.settle(places, place as usize);
                }
            }
        }
    }

    /// Moves what is at `at` to where it belongs.
    fn settle(&mut self, places: &mut [u32], at: usize) {
        let at = self.rise(places, at);
        self.sink(places, at);
    }

    fn rise(&mut self, places: &mut [u32], mut at: usize) -> usize {
        let entry = self.entries[at];
        while at > 0 {
            let above = (at - 1) / 2;
            if self.entries[above] <= entry {
                break;
            }
            self.put(places, at, self.entries[above]);
            at = above;
        }
        self.put(places, at, entry);
        at
    }

    fn sink(&mut self, places: &mut [u32], mut at: usize) {
        let entry = self.entries[at];
        while let Some(mut below) = Some(2 * at + 1).filter(|&b| b < self.entries.len()) {
            if self.entries.get(below + 1).is_some_and(|other| *other < self.entries[below]) {
                below += 1;
            }
            if entry <= self.entries[below] {
                break;
            }
            self.put(places, at, self.entries[below]);
            at = below;
        }
        self.put(places, at, entry);
    }

    fn put(&mut self, places: &mut [u32], at: usize, entry: Entry<K>) {
        self.entries[at] = entry;
        places[entry.id as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Against an ordered map: (number, key or out).
        #[test]
        fn the_first_is_the_least(steps in prop::collection::vec((0u32..20, prop::option::of(0u8..30)), 0..300)) {
            let (mut heap, mut places, mut model) = (Heap::new(20), [NOWHERE; 20], BTreeMap::new());
            for (id, key) in steps {
                heap.set(&mut places, id, key);
                match key {
                    Some(key) => drop(model.insert(id, key)),
                    None => drop(model.remove(&id)),
                }
                let least = model.iter().map(|(&id, &key)| (key, id)).min();
                prop_assert_eq!(heap.first().map(|e| (e.key, e.id)), least);
                let known = |id: &u32| places[*id as usize] != NOWHERE;
                prop_assert_eq!((0..20).filter(known).collect::<Vec<_>>(), model.keys().copied().collect::<Vec<_>>());
            }
        }
    }
}
