//! The classes of flows that were seen lately, so that a packet's class costs the same however many rules there are.

use crate::flow::Key;

/// Most flows remembered: 3 MB.
const MOST: u32 = 1 << 16;

/// What a flow is taken by.
#[derive(Clone, Copy, Debug)]
struct Known {
    key: Key,
    /// The place of its class in the tree, [`NONE`] or [`FREE`].
    place: u32,
}

/// No class takes it.
const NONE: u32 = u32::MAX;
/// Nothing is known here.
const FREE: u32 = u32::MAX - 1;

/// A table in which each flow has one place, which it takes from whoever had it.
#[derive(Debug)]
pub(super) struct Cache {
    known: Box<[Known]>,
    seed: u64,
}

impl Cache {
    pub(super) fn new(flows: u32, seed: u64) -> Cache {
        let count = flows.clamp(1, MOST).next_power_of_two() as usize;
        let free = Known { key: Key::default(), place: FREE };
        Cache { known: vec![free; count].into(), seed }
    }

    /// What takes the flow: as it was `found` before, or now.
    pub(super) fn find(&mut self, key: &Key, found: impl FnOnce() -> Option<usize>) -> Option<usize> {
        let at = key.hash(self.seed) as usize & (self.known.len() - 1);
        let known = &mut self.known[at];
        if known.place == FREE || known.key != *key {
            let place = found().map_or(NONE, |place| place as u32);
            *known = Known { key: *key, place };
        }
        (known.place != NONE).then_some(known.place as usize)
    }
}
