//! The timers of a host's endpoints, one for each.

use weir_core::time::Time;

/// Children of a node of the heap: four lie in two cache lines.
const CHILDREN: usize = 4;
/// An endpoint whose timer is not armed has no place in the heap.
const NONE: u32 = u32::MAX;

/// An armed timer. Of those due at the same time the one that was armed first comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    due: Time,
    turn: u64,
    endpoint: u32,
}

/// A heap that knows where each endpoint's timer is, so that it can be moved. Endpoints arm their timers a few times in a
/// round trip, not with every segment; a host without endpoints takes no memory for them.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: Vec<Entry>,
    /// By endpoint.
    places: Vec<u32>,
    turn: u64,
    /// When the timer popped last was due: what is armed for an earlier time is due then.
    last: Time,
}

impl Timers {
    /// One more endpoint. Its timer is not armed.
    pub(super) fn add(&mut self) {
        self.places.push(NONE);
    }

    /// Arms the timer of an endpoint for `due`, unless it is armed for that time or an earlier one. Returns when it is due.
    pub(super) fn arm(&mut self, endpoint: u32, due: Time) -> Time {
        let place = self.places[endpoint as usize];
        if let Some(armed) = self.heap.get(place as usize).filter(|armed| armed.due <= due) {
            return armed.due;
        }
        self.turn += 1;
        let entry = Entry { due: due.max(self.last), turn: self.turn, endpoint };
        let place = if place == NONE {
            self.heap.push(entry);
            self.heap.len() - 1
        } else {
            place as usize
        };
        self.rise(place, entry);
        entry.due
    }

    /// The endpoint whose timer is due next, at `now` or before. It is not armed any more.
    #[inline]
    pub(super) fn pop(&mut self, now: Time) -> Option<u32> {
        let first = *self.heap.first().filter(|first| first.due <= now)?;
        self.take(first)
    }

    fn take(&mut self, first: Entry) -> Option<u32> {
        self.last = first.due;
        self.places[first.endpoint as usize] = NONE;
        let moved = self.heap.pop()?;
        if !self.heap.is_empty() {
            self.sink(moved);
        }
        Some(first.endpoint)
    }

    /// When the next timer is due; [`Time::MAX`] if none is armed.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.heap.first().map_or(Time::MAX, |first| first.due)
    }

    /// Puts an entry at a place, or above it as far as it comes before what is there.
    fn rise(&mut self, mut place: usize, entry: Entry) {
        while place > 0 {
            let above = (place - 1) / CHILDREN;
            if self.heap[above] < entry {
                break;
            }
            self.put(place, self.heap[above]);
            place = above;
        }
        self.put(place, entry);
    }

    /// Puts an entry at the top, or below it as far as what is there comes before it.
    fn sink(&mut self, entry: Entry) {
        let mut place = 0;
        loop {
            let first = CHILDREN * place + 1;
            let children = first..(first + CHILDREN).min(self.heap.len());
            let Some(least) = children.min_by_key(|&child| self.heap[child]) else { break };
            if entry < self.heap[least] {
                break;
            }
            self.put(place, self.heap[least]);
            place = least;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: Entry) {
        self.heap[place] = entry;
        self.places[entry.endpoint as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn exact_and_first_come_first_served() {
        let mut timers = Timers::default();
        (0..3).for_each(|_| timers.add());
        timers.arm(0, Time::from_secs(5));
        timers.arm(2, Time::from_millis(10));
        timers.arm(1, Time::from_millis(10));
        // A later time changes nothing, an earlier one does.
        timers.arm(2, Time::from_millis(11));
        timers.arm(0, Time::from_millis(12));
        assert_eq!((timers.next(), timers.pop(Time::from_nanos(9_999_999))), (Time::from_millis(10), None));
        assert_eq!(timers.pop(Time::from_millis(10)), Some(2));
        assert_eq!(timers.pop(Time::from_millis(10)), Some(1));
        assert_eq!((timers.pop(Time::from_millis(10)), timers.next()), (None, Time::from_millis(12)));
        assert_eq!((timers.pop(Time::MAX), timers.next()), (Some(0), Time::MAX));
    }

    proptest! {
        /// Against a map in the order of (due, turn).
        #[test]
        fn like_a_map(steps in prop::collection::vec((any::<bool>(), 0u32..40, 0u64..500), 1..800)) {
            let mut timers = Timers::default();
            (0..40).for_each(|_| timers.add());
            let mut model: BTreeMap<(u64, usize), u32> = BTreeMap::new();
            let mut now = 0;
            for (turn, (arm, i, delay)) in steps.into_iter().enumerate() {
                if arm {
                    timers.arm(i, Time::from_nanos(now + delay));
                    let armed = model.iter().find(|entry| *entry.1 == i).map(|entry| *entry.0);
                    if armed.is_none_or(|key| key.0 > now + delay) {
                        armed.map(|key| model.remove(&key));
                        model.insert((now + delay, turn), i);
                    }
                } else {
                    now += delay / 20;
                    while let Some(i) = timers.pop(Time::from_nanos(now)) {
                        let (key, expected) = model.pop_first().unwrap();
                        prop_assert!(key.0 <= now);
                        prop_assert_eq!(i, expected);
                    }
                }
                let first = model.first_key_value().map_or(u64::MAX, |first| first.0.0);
                prop_assert_eq!(timers.next().as_nanos(), first);
            }
        }
    }
}
