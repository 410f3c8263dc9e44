//! Events in a hierarchical timing wheel.

use super::{Agenda, Entry};
use weir_core::time::Time;

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 11;
/// Most events of a slot that is sorted. Fuller slots are spread over the levels below.
const SORTED: usize = 64;
/// Most events in the sorted list. Above it, all but the first ones return to the slots.
const CROWDED: usize = 2 * SORTED;
/// Number of events below which no slots are needed.
const FEW: usize = 16;

/// Hierarchical timing wheel (Varghese, Lauck 1987) of eleven levels of 64 slots, one level per six bits of
/// the time. In front of it, the next few events are kept in a sorted list (the "bottom" of a ladder queue:
/// Tang, Goh, Thng 2005). An event moves down a level only from slots with many events. So a push or pop
/// takes constant time for any number of events, and a few events are only a sorted list.
#[derive(Debug)]
pub struct Wheel {
    /// Next events, with the first one at the end.
    next: Vec<Entry>,
    /// Boundary time: earlier events are in `next`, later ones in the slots. Among events at this time, the
    /// first ones are in `next`.
    last: Time,
    /// Time of the wheel, not after the event popped last. The level of an event is its highest digit that
    /// differs from this time. So every event on a lower level precedes every event on a higher one.
    now: u64,
    slots: Box<[[Slot; SLOTS]; LEVELS]>,
    /// Bit mask of the slots with events, for each level.
    occupied: [u64; LEVELS],
    /// Bit mask of the levels with events.
    levels: u32,
}

#[derive(Debug)]
struct Slot {
    events: Vec<Entry>,
    /// Time of the first of them.
    first: Time,
}

const EMPTY: Slot = Slot { events: Vec::new(), first: Time::MAX };

impl Default for Wheel {
    fn default() -> Wheel {
        Wheel::new()
    }
}

impl Wheel {
    /// Returns an agenda without events.
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

    /// Inserts an event into the sorted list.
    #[inline]
    fn insert(&mut self, entry: Entry) {
        self.next.push(entry);
        sort_in(&mut self.next, entry);
        if self.next.len() > CROWDED {
            self.spill();
        }
    }

    /// Returns whether an event precedes the last one of the sorted list.
    #[inline]
    fn is_near(&self, entry: Entry) -> bool {
        entry.at() < self.last
            || entry.at() == self.last && self.next.first().is_some_and(|last| entry < *last)
    }

    /// Adds an event behind the sorted list.
    #[inline(never)]
    fn put_behind(&mut self, entry: Entry) {
        if self.levels == 0 && self.next.len() < FEW {
            self.last = entry.at();
            self.insert(entry);
        } else {
            self.file(entry);
        }
    }

    /// Moves all but the first events of the sorted list into the slots. Events at the same time stay
    /// together.
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

    /// Returns the first slot with events.
    fn first(&self) -> Option<(usize, usize)> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        Some((level, self.occupied[level].trailing_zeros() as usize))
    }

    /// Takes the first event of the sorted list.
    #[inline]
    fn take(&mut self) -> Option<(Time, u32)> {
        let first = self.next.pop()?;
        Some(self.come(first))
    }

    /// Advances the wheel's time to the first event, and returns the event.
    #[inline]
    fn come(&mut self, first: Entry) -> (Time, u32) {
        if self.levels == 0 {
            self.now = first.at().as_nanos();
        }
        (first.at(), first.event())
    }

    /// Takes the first event from the slots if its time is `at` or earlier.
    #[inline(never)]
    fn refill_until(&mut self, at: Time) -> Option<(Time, u32)> {
        self.peek().filter(|&first| first <= at)?;
        self.pop()
    }

    /// Refills the empty sorted list from the slots.
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

/// Inserts an entry into the sorted list, overwriting the list's last place.
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

    /// Replaces the first event of the sorted list if the new one belongs into the list behind it.
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
