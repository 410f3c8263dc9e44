//! Lanes of a paced class.

use crate::flow::Key;
use crate::systems::gap_pacing::{Each, Lanes};

/// A paced class with several lanes.
#[derive(Debug)]
pub(super) struct Spreading {
    users: Lanes,
    /// Place of each lane.
    places: Box<[usize]>,
}

impl Spreading {
    /// Returns the class at place `first` with these further lanes.
    pub(super) fn new(first: usize, each: Each, further: Vec<usize>, seed: u64) -> Spreading {
        let places: Box<[usize]> = core::iter::once(first).chain(further).collect();
        Spreading { users: Lanes::new(each, places.len() as u32, seed), places }
    }

    /// Returns the place at which a packet with this key waits. `is_empty` tells of a place if nothing waits
    /// there.
    pub(super) fn place(&mut self, key: &Key, is_empty: impl Fn(usize) -> bool) -> usize {
        let places = &self.places;
        places[self.users.lane(key, |lane| is_empty(places[lane as usize])) as usize]
    }

    /// Leaves each user in the lane that it had before.
    pub(super) fn follow(&mut self, before: &mut Spreading) {
        self.users.follow(&mut before.users);
    }
}
