//! A heap of numbered items with known positions, so that any item can be moved or removed.

/// Position of an item that is in no heap.
pub const NOWHERE: u32 = u32::MAX;

/// An item and its key. With equal keys, the lower number comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry<K> {
    /// Key, by which items are ordered.
    pub key: K,
    /// Number of the item.
    pub id: u32,
}

/// A heap with a fixed capacity. The position of each item is kept outside, by number, in `places`. Several
/// heaps can share one such list if no item is in two of them.
#[derive(Debug)]
pub struct Heap<K> {
    entries: Vec<Entry<K>>,
}

impl<K: Copy + Ord> Heap<K> {
    /// Returns an empty heap with room for `most` items.
    pub fn new(most: usize) -> Heap<K> {
        Heap { entries: Vec::with_capacity(most) }
    }

    /// Returns the first item.
    pub fn first(&self) -> Option<Entry<K>> {
        self.entries.first().copied()
    }

    /// Returns whether the item is in this heap, and not in another one that shares the list.
    pub fn holds(&self, places: &[u32], id: u32) -> bool {
        let place = places[id as usize] as usize;
        self.entries.get(place).is_some_and(|entry| entry.id == id)
    }

    /// Inserts or moves the item to this key, or removes it. Panics if `places` has no entry for it.
    pub fn set(&mut self, places: &mut [u32], id: u32, key: Option<K>) {
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

    /// Moves the item at `at` to its place.
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
        /// Compares with an ordered map. Steps are (number, key or removal).
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
