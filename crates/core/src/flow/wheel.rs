//! Release times of any number of flows, exact to the nanosecond, in constant time per operation.
//!
//! A hierarchical timing wheel (Varghese, Lauck 1987) of eleven levels of 64 slots, one level per six
//! bits of the due time: a timer is on the level of the highest digit in which its due time differs
//! from the wheel's own. Everything on a lower level is due before anything on a higher one. A timer
//! moves down at most once per level. Timers due at the same nanosecond fire in the order in which
//! they were armed. A timer is 16 bytes apart from its flow's record, so that moving it down does
//! not touch the record.

use super::NONE;
use crate::time::Time;

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 11;

#[derive(Clone, Copy)]
struct Timer {
    due: u64,
    prev: u32,
    next: u32,
}

#[derive(Clone, Copy)]
struct Slot {
    head: u32,
    tail: u32,
    /// No timer in the slot is due before this.
    earliest: u64,
}

const EMPTY: Slot = Slot { head: NONE, tail: NONE, earliest: u64::MAX };

/// The wheel: one timer for each number below its capacity.
pub struct Wheel {
    now: u64,
    occupied: [u64; LEVELS],
    slots: Box<[[Slot; SLOTS]; LEVELS]>,
    timers: Box<[Timer]>,
}

impl Wheel {
    /// Timers for flows `0..capacity`, none armed.
    pub fn new(capacity: u32) -> Wheel {
        let idle = Timer { due: 0, prev: NONE, next: NONE };
        Wheel {
            now: 0,
            occupied: [0; LEVELS],
            slots: Box::new([[EMPTY; SLOTS]; LEVELS]),
            timers: vec![idle; capacity as usize].into(),
        }
    }

    /// How many timers there are, armed or not.
    pub fn capacity(&self) -> u32 {
        self.timers.len() as u32
    }

    /// Makes room for timers `0..capacity`; those armed stay so.
    pub fn grow(&mut self, capacity: u32) {
        let idle = Timer { due: 0, prev: NONE, next: NONE };
        if self.timers.len() < capacity as usize {
            let mut timers = core::mem::take(&mut self.timers).into_vec();
            timers.resize(capacity as usize, idle);
            self.timers = timers.into();
        }
    }

    /// Arms timer `i`, which is not armed, for `due`. A time already past is as good as now.
    pub fn arm(&mut self, i: u32, due: Time) {
        self.timers[i as usize].due = due.as_nanos();
        self.append(i);
    }

    /// Disarms timer `i`, which is armed.
    pub fn disarm(&mut self, i: u32) {
        let (level, slot) = self.place(self.timers[i as usize].due);
        self.unlink(level, slot, i);
    }

    /// The next timer due at `now` or before, disarmed.
    pub fn pop(&mut self, now: Time) -> Option<u32> {
        loop {
            let (level, slot) = self.first()?;
            let Slot { head, tail, earliest } = self.slots[level][slot];
            if earliest > now.as_nanos() {
                return None;
            }
            if level > 0 && head != tail {
                self.descend(level, slot);
                continue;
            }
            // Alone in its slot, or on the lowest level, where a slot is one nanosecond.
            let due = self.timers[head as usize].due;
            if due > now.as_nanos() {
                self.slots[level][slot].earliest = due; // an earlier one was disarmed
                return None;
            }
            self.unlink(level, slot, head);
            self.now = self.now.max(due);
            return Some(head);
        }
    }

    /// No timer is due before this; exact unless timers were disarmed.
    pub fn next(&self) -> Option<Time> {
        let (level, slot) = self.first()?;
        Some(Time::from_nanos(self.slots[level][slot].earliest))
    }

    fn place(&self, due: u64) -> (usize, usize) {
        let due = due.max(self.now);
        let differing = due ^ self.now;
        let level = if differing == 0 { 0 } else { ((63 - differing.leading_zeros()) / BITS) as usize };
        (level, (due >> (level as u32 * BITS)) as usize & (SLOTS - 1))
    }

    fn first(&self) -> Option<(usize, usize)> {
        let level = self.occupied.iter().position(|&o| o != 0)?;
        Some((level, self.occupied[level].trailing_zeros() as usize))
    }

    /// Moves the wheel to the start of a slot and spreads its timers over the levels below.
    fn descend(&mut self, level: usize, slot: usize) {
        let shift = level as u32 * BITS;
        let upper = self.now.checked_shr(shift + BITS).unwrap_or(0).checked_shl(shift + BITS).unwrap_or(0);
        let start = upper | (slot as u64) << shift;
        debug_assert!(start >= self.now);
        let mut i = self.slots[level][slot].head;
        self.slots[level][slot] = EMPTY;
        self.occupied[level] &= !(1 << slot);
        self.now = start;
        while i != NONE {
            let next = self.timers[i as usize].next;
            self.append(i);
            i = next;
        }
    }

    fn append(&mut self, i: u32) {
        let due = self.timers[i as usize].due;
        let (level, slot) = self.place(due);
        self.occupied[level] |= 1 << slot;
        let s = &mut self.slots[level][slot];
        let tail = s.tail;
        s.tail = i;
        s.earliest = s.earliest.min(due);
        if tail == NONE {
            s.head = i;
        } else {
            self.timers[tail as usize].next = i;
        }
        let timer = &mut self.timers[i as usize];
        (timer.prev, timer.next) = (tail, NONE);
    }

    fn unlink(&mut self, level: usize, slot: usize, i: u32) {
        let Timer { prev, next, .. } = self.timers[i as usize];
        let s = &mut self.slots[level][slot];
        if prev == NONE {
            s.head = next;
        } else {
            self.timers[prev as usize].next = next;
        }
        if next == NONE {
            s.tail = prev;
        } else {
            self.timers[next as usize].prev = prev;
        }
        if s.head == NONE {
            *s = EMPTY;
            self.occupied[level] &= !(1 << slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn exact_and_first_come_first_served() {
        let mut w = Wheel::new(3);
        w.arm(0, Time::from_secs(5));
        w.arm(1, Time::from_millis(10));
        w.arm(2, Time::from_millis(10));
        assert_eq!(w.next(), Some(Time::from_millis(10)));
        assert_eq!(w.pop(Time::from_nanos(9_999_999)), None);
        assert_eq!(w.pop(Time::from_millis(10)), Some(1));
        assert_eq!(w.pop(Time::from_millis(10)), Some(2));
        assert_eq!(w.pop(Time::from_millis(10)), None);
        assert_eq!(w.next(), Some(Time::from_secs(5)));
        assert_eq!(w.pop(Time::MAX), Some(0));
        assert_eq!(w.next(), None);
    }

    proptest! {
        /// Against a sorted list of (due, sequence).
        #[test]
        fn like_a_sorted_list(ops in prop::collection::vec((0u8..3, 0u32..16, 0u64..1 << 40, 0u32..40), 1..400)) {
            let mut w = Wheel::new(16);
            let mut model: Vec<(u64, usize, u32)> = Vec::new();
            let mut now = 0u64;
            for (seq, (op, i, delay, shift)) in ops.into_iter().enumerate() {
                let delay = delay >> shift;
                let armed = model.iter().any(|m| m.2 == i);
                match op {
                    0 if !armed => {
                        w.arm(i, Time::from_nanos(now + delay));
                        model.push((now + delay, seq, i));
                        model.sort();
                    }
                    1 if armed => {
                        w.disarm(i);
                        model.retain(|m| m.2 != i);
                    }
                    2 => {
                        now += delay;
                        while let Some(got) = w.pop(Time::from_nanos(now)) {
                            prop_assert!(!model.is_empty() && model[0].0 <= now);
                            prop_assert_eq!(got, model.remove(0).2);
                        }
                        prop_assert!(model.first().is_none_or(|m| m.0 > now));
                    }
                    _ => {}
                }
                match w.next() {
                    Some(t) => prop_assert!(t.as_nanos() <= model[0].0),
                    None => prop_assert!(model.is_empty()),
                }
            }
        }
    }
}
