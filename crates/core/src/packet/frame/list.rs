//! Parked frames, and lists of waiting frames in order of arrival.
//!
//! A parked frame lies at the place of its first chunk until it is taken back. While it waits, is sent and
//! flies, only the number of that place is handed on. A list is two such numbers and a count. The rest lies
//! at the place: the frame's charge, its time of arrival, and the next frame. A million lists thus take 12
//! MB, and a frame costs the same in any of them.

use super::{Charge, Frame, Frames, NO_CHUNK};
use crate::base::time::Time;

/// A frame parked with [`Frames::park`]. Its owner takes the frame back with [`Frames::unpark`].
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a parked frame is taken back"]
pub struct Parked(pub(super) u32);

/// A waiting frame, with the data that a queue needs.
#[derive(Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The frame.
    pub frame: Parked,
    /// Charge of the frame.
    pub charge: Charge,
    /// Time since which it waits.
    pub since: Time,
}

/// Data of the frame that waits longest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Charge of the frame.
    pub charge: Charge,
    /// Time since which it waits.
    pub since: Time,
}

/// Place of a parked frame: one cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Place {
    pub(super) frame: Option<Frame>,
    charge: Charge,
    since: Time,
    /// First chunk of the next frame in its list. Undefined for the last one.
    next: u32,
}

/// Frames parked in a pool, first in, first out. A list belongs to one pool and is handed that pool in each
/// call.
///
/// Dropping a list leaves its frames parked in the pool.
#[derive(Debug, PartialEq, Eq)]
pub struct List {
    first: u32,
    last: u32,
    len: u32,
}

impl Default for List {
    fn default() -> List {
        List::new()
    }
}

impl List {
    /// Returns an empty list.
    pub const fn new() -> List {
        List { first: NO_CHUNK, last: NO_CHUNK, len: 0 }
    }
    /// Returns the list as three numbers, for a record of plain integers.
    pub(crate) const fn to_raw(&self) -> [u32; 3] {
        [self.first, self.last, self.len]
    }
    /// Returns the list of the numbers from [`List::to_raw`]. Copies of the numbers mean the same list.
    pub(crate) const fn from_raw([first, last, len]: [u32; 3]) -> List {
        List { first, last, len }
    }
    /// Returns the number of frames.
    pub fn len(&self) -> usize {
        self.len as usize
    }
    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Returns the data of the frame that waits longest.
    pub fn head(&self, frames: &Frames) -> Option<Head> {
        let place = frames.places.get(self.first as usize)?;
        Some(Head { charge: place.charge, since: place.since })
    }
    /// Prefetches the cache lines of the frame that waits longest.
    pub(crate) fn load(&self, frames: &Frames) {
        if !self.is_empty() {
            frames.load(self.first);
        }
    }
    /// Appends a frame.
    pub fn push(&mut self, frames: &mut Frames, waiting: Waiting) {
        let Waiting { frame: Parked(chunk), charge, since } = waiting;
        let place = &mut frames.places[chunk as usize];
        (place.charge, place.since) = (charge, since);
        match self.len {
            0 => self.first = chunk,
            _ => frames.places[self.last as usize].next = chunk,
        }
        self.last = chunk;
        self.len += 1;
    }
    /// Removes the frame that waits longest.
    pub fn pop(&mut self, frames: &Frames) -> Option<Waiting> {
        self.len = self.len.checked_sub(1)?;
        let chunk = self.first;
        let place = &frames.places[chunk as usize];
        self.first = if self.len == 0 { NO_CHUNK } else { place.next };
        Some(Waiting { frame: Parked(chunk), charge: place.charge, since: place.since })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::stats::DropReason;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn waiting(frames: &mut Frames, n: u32) -> Waiting {
        let frame = frames.receive_copy(&n.to_be_bytes(), 1514, Time::ZERO).unwrap();
        let frame = frames.park(frame);
        let charge = Charge { packets: n, bytes: 7 * u64::from(n) };
        Waiting { frame, charge, since: Time::from_nanos(n.into()) }
    }

    #[test]
    fn a_list_takes_twelve_bytes_and_a_place_one_cache_line() {
        assert_eq!((size_of::<List>(), size_of::<Place>()), (12, 64));
    }

    proptest! {
        /// Two lists share a pool that grows. Steps are (list, push or pop).
        #[test]
        fn lists_are_first_in_first_out(steps in prop::collection::vec((0usize..2, prop::bool::weighted(0.7)), 0..3000)) {
            let mut frames = Frames::growing(128);
            let (mut lists, mut model) = ([List::new(), List::new()], [VecDeque::new(), VecDeque::new()]);
            for (n, (i, push)) in (1u32..).zip(steps) {
                if push {
                    let parked = waiting(&mut frames, n);
                    lists[i].push(&mut frames, parked);
                    model[i].push_back(n);
                } else {
                    let first = lists[i].head(&frames).map(|w| w.charge.packets);
                    let popped = lists[i].pop(&frames);
                    let expected = model[i].pop_front();
                    prop_assert_eq!((first, popped.as_ref().map(|w| w.since.as_nanos() as u32)), (expected, expected));
                    if let Some(w) = popped {
                        let frame = frames.unpark(w.frame);
                        prop_assert_eq!(frames.bytes(&frame), w.charge.packets.to_be_bytes());
                        frames.transmitted(frame);
                    }
                }
                prop_assert_eq!(lists[i].len(), model[i].len());
                prop_assert_eq!(lists[i].is_empty(), model[i].is_empty());
            }
            let left = lists.iter().map(List::len).sum::<usize>();
            prop_assert_eq!(frames.ledger().held(), left as u64);
            prop_assert_eq!(frames.chunks() - frames.free_chunks(), left);
        }
    }

    #[test]
    fn a_fixed_pool_has_its_places_from_the_start() {
        let mut frames = Frames::new(4, 128, 0);
        let mut list = List::new();
        assert_eq!((list.head(&frames), list.pop(&frames)), (None, None));
        for n in 0..4 {
            let parked = waiting(&mut frames, n);
            list.push(&mut frames, parked);
        }
        while let Some(w) = list.pop(&frames) {
            let frame = frames.unpark(w.frame);
            frames.drop(frame, DropReason::Shutdown);
        }
        assert_eq!((list.head(&frames), list.len(), frames.free_chunks()), (None, 0, 4));
    }
}
