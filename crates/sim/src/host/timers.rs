//! The timers of a host's endpoints, one for each.

use weir_core::time::Time;

/// Children of a node of the heap: four fit into a cache line.
const CHILDREN: usize = 4;
/// Place of an endpoint that is not in the heap.
const NONE: u32 = u32::MAX;
const ENDPOINT_BITS: u32 = 24;

/// Scheduled check of an endpoint's timer: time, insertion number and endpoint from the highest bit down.
/// Checks at the same time are in the order of insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

impl Entry {
    fn new(at: Time, turn: u64, endpoint: u32) -> Entry {
        debug_assert!(turn >> (64 - ENDPOINT_BITS) == 0 && endpoint >> ENDPOINT_BITS == 0);
        Entry(u128::from(at.as_nanos()) << 64 | u128::from(turn << ENDPOINT_BITS | u64::from(endpoint)))
    }
    fn at(self) -> Time {
        Time::from_nanos((self.0 >> 64) as u64)
    }
    fn endpoint(self) -> u32 {
        self.0 as u32 & ((1 << ENDPOINT_BITS) - 1)
    }
}

/// The timer of an endpoint.
#[derive(Clone, Copy, Debug)]
struct Timer {
    /// Expiry time; [`Time::MAX`] for never.
    due: Time,
    /// Time of the check in the heap, never later than `due`; [`Time::MAX`] for never.
    looked_at: Time,
}

/// Expiry times of endpoints. Most timers are repeatedly postponed before they expire. A postponed timer
/// keeps its place in the heap, and moves to its right place when its check is due, without access to the
/// endpoint. A host without endpoints takes no memory for them.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: Vec<Entry>,
    /// Timers by endpoint, and their places in the heap.
    timers: Vec<Timer>,
    places: Vec<u32>,
    turn: u64,
    /// Time of the last check. A timer set to an earlier time is due then.
    last: Time,
}

impl Timers {
    /// Adds an endpoint whose timer is stopped. Panics at 2^24 endpoints.
    pub(super) fn add(&mut self) {
        assert!(self.places.len() >> ENDPOINT_BITS == 0, "too many endpoints");
        self.timers.push(Timer { due: Time::MAX, looked_at: Time::MAX });
        self.places.push(NONE);
    }

    /// Sets an endpoint's timer to `due`, in place of its earlier setting; [`Time::MAX`] for never.
    #[inline(always)]
    pub(super) fn set(&mut self, endpoint: u32, due: Time) {
        let timer = &mut self.timers[endpoint as usize];
        timer.due = due;
        if due < timer.looked_at {
            self.put_earlier(endpoint, due);
        }
    }

    /// Sets a timer like [`Timers::set`], unless it would fire earlier anyway.
    pub(super) fn set_or_earlier(&mut self, endpoint: u32, due: Time) {
        self.set(endpoint, due);
        let timer = &mut self.timers[endpoint as usize];
        timer.due = timer.looked_at;
    }

    #[inline(never)]
    fn put_earlier(&mut self, endpoint: u32, due: Time) {
        let entry = self.entry(endpoint, due.max(self.last));
        let mut place = self.places[endpoint as usize];
        if place == NONE {
            place = self.heap.len() as u32;
            self.heap.push(entry);
        }
        self.rise(place as usize, entry);
    }

    /// Schedules a check of the endpoint's timer.
    fn entry(&mut self, endpoint: u32, at: Time) -> Entry {
        self.turn += 1;
        self.timers[endpoint as usize].looked_at = at;
        Entry::new(at, self.turn, endpoint)
    }

    /// Returns the endpoint whose timer expires first, at `now` or earlier, and stops the timer.
    pub(super) fn pop(&mut self, now: Time) -> Option<u32> {
        while self.next() <= now {
            let fired = self.look(now);
            if fired.is_some() {
                return fired;
            }
        }
        None
    }

    /// Checks the first timer of the heap. It fires, or moves to its right place.
    fn look(&mut self, now: Time) -> Option<u32> {
        let first = *self.heap.first()?;
        let endpoint = first.endpoint();
        self.last = first.at();
        let due = self.timers[endpoint as usize].due;
        if due > now && due < Time::MAX {
            let entry = self.entry(endpoint, due);
            self.sink(entry);
            return None;
        }
        self.timers[endpoint as usize] = Timer { due: Time::MAX, looked_at: Time::MAX };
        self.places[endpoint as usize] = NONE;
        let moved = self.heap.pop()?;
        if !self.heap.is_empty() {
            self.sink(moved);
        }
        (due <= now).then_some(endpoint)
    }

    /// Returns the time of the next check, for [`Timers::pop`]; [`Time::MAX`] for never.
    #[inline]
    pub(super) fn next(&self) -> Time {
        self.heap.first().map_or(Time::MAX, |first| first.at())
    }

    /// Moves an entry from a place towards the top, to its right place.
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

    /// Moves an entry from the top downwards, to its right place.
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
        self.places[entry.endpoint() as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn exact_and_first_come_first_served() {
        let mut timers = Timers::default();
        (0..3).for_each(|_| timers.add());
        timers.set(0, Time::from_secs(5));
        timers.set(2, Time::from_millis(10));
        timers.set(1, Time::from_millis(10));
        timers.set(0, Time::from_millis(12));
        assert_eq!((timers.next(), timers.pop(Time::from_nanos(9_999_999))), (Time::from_millis(10), None));
        assert_eq!(timers.pop(Time::from_millis(10)), Some(2));
        assert_eq!(timers.pop(Time::from_millis(10)), Some(1));
        assert_eq!((timers.pop(Time::from_millis(10)), timers.next()), (None, Time::from_millis(12)));
        assert_eq!((timers.pop(Time::MAX), timers.next()), (Some(0), Time::MAX));
    }

    #[test]
    fn what_was_moved_away_fires_then_or_never() {
        let mut timers = Timers::default();
        (0..2).for_each(|_| timers.add());
        timers.set(0, Time::from_millis(10));
        timers.set(1, Time::from_millis(10));
        timers.set(0, Time::from_millis(30));
        timers.set(1, Time::MAX);
        assert_eq!((timers.pop(Time::from_millis(20)), timers.next()), (None, Time::from_millis(30)));
        assert_eq!((timers.pop(Time::from_millis(30)), timers.next()), (Some(0), Time::MAX));
        timers.set(0, Time::from_millis(40));
        timers.set_or_earlier(0, Time::MAX);
        assert_eq!((timers.pop(Time::from_millis(40)), timers.next()), (Some(0), Time::MAX));
    }

    proptest! {
        /// Compares with a list that is searched. The list holds each endpoint's check time, insertion
        /// number, and expiry time.
        #[test]
        fn like_a_list(steps in prop::collection::vec((any::<bool>(), 0u32..40, 0u64..500), 1..800)) {
            const NEVER: u64 = u64::MAX;
            let mut timers = Timers::default();
            (0..40).for_each(|_| timers.add());
            let mut model = [(NEVER, 0, NEVER); 40];
            let (mut now, mut turn) = (0, 0);
            for (set, i, delay) in steps {
                if set {
                    let due = if delay == 499 { NEVER } else { now + delay };
                    timers.set(i, Time::from_nanos(due));
                    model[i as usize].2 = due;
                    if due < model[i as usize].0 {
                        turn += 1;
                        model[i as usize] = (due, turn, due);
                    }
                } else {
                    now += delay / 20;
                    while let Some(i) = (0..40).min_by_key(|&i| model[i]).filter(|&i| model[i].0 <= now) {
                        let due = model[i].2;
                        if due <= now {
                            model[i] = (NEVER, 0, NEVER);
                            prop_assert_eq!(timers.pop(Time::from_nanos(now)), Some(i as u32));
                        } else {
                            turn += 1;
                            model[i] = (due, if due < NEVER { turn } else { 0 }, due);
                        }
                    }
                    prop_assert_eq!(timers.pop(Time::from_nanos(now)), None);
                }
                let first = model.iter().map(|timer| timer.0).min();
                prop_assert_eq!(Some(timers.next().as_nanos()), first);
            }
        }
    }
}
