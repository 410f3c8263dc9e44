//! A cache of the classes of recent flows. It makes a packet's classification independent of the number of
//! rules.

use crate::flow::Key;

/// Most flows remembered: 3 MB.
const MOST: u32 = 1 << 16;

/// Cached class of a flow.
#[derive(Clone, Copy, Debug)]
struct Known {
    key: Key,
    /// Place of its class in the tree, [`NONE`] or [`FREE`].
    place: u32,
}

/// Place of a flow without a class.
const NONE: u32 = u32::MAX;
/// Place of an empty entry.
const FREE: u32 = u32::MAX - 1;

/// A table with one entry for each hash. A new flow replaces the one before.
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

    /// Returns the place of the flow's class, from the cache or else by `found`.
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
