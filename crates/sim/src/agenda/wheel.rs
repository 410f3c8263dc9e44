//! Events in a hierarchical timing wheel.

use super::{Agenda, Entry};
use weir_core::time::Time;

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 11;
/// Slots with at most this many events are sorted, fuller ones are spread over the levels below.
const SORTED: usize = 64;
/// With more events than this that come next, all but the first go back into the slots.
const CROWDED: usize = 2 * SORTED;
/// So few events need no slots.
const FEW: usize = 16;

/// A hierarchical timing wheel (Varghese, Lauck 1987) of eleven levels of 64 slots, one level per six bits of the
/// time, in front of which the next few events are kept in order (the "bottom" of a ladder queue: Tang, Goh,
/// Thng 2005). An event goes down a level only from slots with many events, so a push or pop takes constant time
/// however many events there are, and few events are but a sorted list.
#[derive(Debug)]
pub struct Wheel {
    /// The next events, the first of them at the end.
    next: Vec<Entry>,
    /// Events before this time are in `next`, and later ones in the slots; of those at this time the first ones.
    last: Time,
    /// Time of the wheel, not after the event popped last: an event is on the level of the highest digit in
    /// which it differs from this. So everything on a lower level comes before anything on a higher one.
    now: u64,
    slots: Box<[[Slot; SLOTS]; LEVELS]>,
    /// By level, a bit for each slot that has events.
    occupied: [u64; LEVELS],
    /// A bit for each level that has.
    levels: u32,
}

#[derive(Debug)]
struct Slot {
    events: Vec<Entry>,
    /// When the first of them comes.
    first: Time,
}

const EMPTY: Slot = Slot { events: Vec::new(), first: Time::MAX };

impl Default for Wheel {
    fn default() -> Wheel {
        Wheel::new()
    }
}

impl Wheel {
    /// No events.
    pub fn new() -> Wheel {
        Wheel {
            next: Vec::new(),
            last: Time::ZERO,
            now: 0,
            slots: Box::new([const { [EMPTY; SLOTS] }; LEVELS]),
            occupied: [0; LEVELS],
            levels: 0,
        }
    }

    /// Puts an event into its slot.
    fn file(&mut self, entry: Entry) {
        let at = entry.at().as_nanos();
        debug_assert!(at >= self.now, "an event in the past");
        let level = ((63 - (at ^ self.now | 1).leading_zeros()) / BITS) as usize;
        let slot = (at >> (level as u32 * BITS)) as usize % SLOTS;
        let Slot { events, first } = &mut self.slots[level][slot];
        events.push(entry);
        *first = entry.at().min(*first);
        self.occupied[level] |= 1 << slot;
        self.levels |= 1 << level;
    }

    /// Puts an event where it belongs among the next.
    #[inline]
    fn insert(&mut self, entry: Entry) {
        self.next.push(entry);
        sort_in(&mut self.next, entry);
        if self.next.len() > CROWDED {
            self.spill();
        }
    }

    /// Does an event come before one of the next?
    #[inline]
    fn is_near(&self, entry: Entry) -> bool {
        entry.at() < self.last
            || entry.at() == self.last && self.next.first().is_some_and(|last| entry < *last)
    }

    /// Puts an event behind the next ones.
    #[inline(never)]
    fn put_behind(&mut self, entry: Entry) {
        if self.levels == 0 && self.next.len() < FEW {
            self.last = entry.at();
            self.insert(entry);
        } else {
            self.file(entry);
        }
    }

    /// All but the first of the next events go into the slots, those of one time kept together.
    #[cold]
    #[inline(never)]
    fn spill(&mut self) {
        let kept = self.next[self.next.len() - SORTED].at();
        let later = self.next.partition_point(|e| e.at() > kept);
        self.last = kept;
        let first = self.next.split_off(later);
        for entry in std::mem::replace(&mut self.next, first) {
            self.file(entry);
        }
    }

    /// The first slot that has events.
    fn first(&self) -> Option<(usize, usize)> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        Some((level, self.occupied[level].trailing_zeros() as usize))
    }

    /// Takes the first of the next events.
    #[inline]
    fn take(&mut self) -> Option<(Time, u32)> {
        let first = self.next.pop()?;
        Some(self.come(first))
    }

    /// The first event is taken.
    #[inline]
    fn come(&mut self, first: Entry) -> (Time, u32) {
        if self.levels == 0 {
            self.now = first.at().as_nanos();
        }
        (first.at(), first.event())
    }

    /// Takes the first event if it comes at `at` or before, and is in the slots.
    #[inline(never)]
    fn refill_until(&mut self, at: Time) -> Option<(Time, u32)> {
        self.peek().filter(|&first| first <= at)?;
        self.pop()
    }

    /// Takes the next events, of which there are none, from the slots.
    fn refill(&mut self) {
        while let Some((level, slot)) = self.first() {
            self.occupied[level] &= !(1 << slot);
            self.levels &= !(u32::from(self.occupied[level] == 0) << level);
            let Slot { events, first } = &mut self.slots[level][slot];
            let start = first.as_nanos() >> (level as u32 * BITS) << (level as u32 * BITS);
            *first = Time::MAX;
            if events.len() <= SORTED || level == 0 {
                self.next.append(events);
                self.next.sort_unstable_by(|a, b| b.cmp(a));
                self.last = self.next[0].at();
                return;
            }
            self.now = start;
            for entry in std::mem::take(events) {
                self.file(entry);
            }
        }
    }
}

/// Puts an entry where it belongs among sorted ones, of which the last, whatever it is, makes room.
#[inline(always)]
fn sort_in(next: &mut [Entry], entry: Entry) {
    let mut i = next.len() - 1;
    while i > 0 && next[i - 1] < entry {
        next[i] = next[i - 1];
        i -= 1;
    }
    next[i] = entry;
}

impl Agenda for Wheel {
    #[inline]
    fn push(&mut self, at: Time, seq: u64, event: u32) {
        let entry = Entry::new(at, seq, event);
        if self.is_near(entry) {
            self.insert(entry);
        } else {
            self.put_behind(entry);
        }
    }

    /// Of one that belongs among the next but is not the first, the place of the first is taken.
    #[inline]
    fn exchange(&mut self, at: Time, seq: u64, event: u32, until: Time) -> Option<(Time, u32)> {
        let entry = Entry::new(at, seq, event);
        match self.next.last() {
            Some(&first) if first < entry && first.at() <= until && self.is_near(entry) => {
                sort_in(&mut self.next, entry);
                Some(self.come(first))
            }
            _ => {
                self.push(at, seq, event);
                self.pop_until(until)
            }
        }
    }

    fn pop(&mut self) -> Option<(Time, u32)> {
        if self.next.is_empty() {
            self.refill();
        }
        self.take()
    }

    #[inline]
    fn pop_until(&mut self, at: Time) -> Option<(Time, u32)> {
        match self.next.last() {
            Some(first) if first.at() > at => None,
            Some(_) => self.take(),
            None => self.refill_until(at),
        }
    }

    #[inline]
    fn peek(&self) -> Option<Time> {
        match self.next.last() {
            Some(entry) => Some(entry.at()),
            None => self.first().map(|(level, slot)| self.slots[level][slot].first),
        }
    }
}
