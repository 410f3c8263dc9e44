//! Release times of any number of flows, exact to the nanosecond, in constant time per operation.
//!
//! A hierarchical timing wheel (Varghese, Lauck 1987) of eleven levels of 64 slots, one level per six
//! bits of the due time: a record is on the level of the highest digit in which its due time differs
//! from the wheel's own. Everything on a lower level is due before anything on a higher one. A record
//! moves down at most once per level. Records due at the same nanosecond leave in the order in
//! which they came.

use super::{flag, Record, NONE};
use crate::time::Time;

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 11;
const PREV: usize = 0;
const NEXT: usize = 1;

#[derive(Clone, Copy)]
struct Slot {
    head: u32,
    tail: u32,
    /// No record in the slot is due before this.
    earliest: u64,
}

const EMPTY: Slot = Slot { head: NONE, tail: NONE, earliest: u64::MAX };

/// The wheel. Records are linked through their own fields; their due time is `pace.due`.
pub struct Wheel {
    now: u64,
    occupied: [u64; LEVELS],
    slots: Box<[[Slot; SLOTS]; LEVELS]>,
}

impl Default for Wheel {
    fn default() -> Wheel {
        Wheel { now: 0, occupied: [0; LEVELS], slots: Box::new([[EMPTY; SLOTS]; LEVELS]) }
    }
}

impl Wheel {
    /// Schedules record `i`, which is not armed, for its `pace.due`. A time already past is as good
    /// as now.
    pub fn arm(&mut self, records: &mut [Record], i: u32) {
        let due = records[i as usize].pace.due;
        let (level, slot) = self.place(due);
        records[i as usize].set(flag::ARMED, true);
        self.append(records, level, slot, i, due);
    }

    /// Takes record `i`, which is armed, out.
    pub fn disarm(&mut self, records: &mut [Record], i: u32) {
        let due = records[i as usize].pace.due;
        let (level, slot) = self.place(due);
        self.unlink(records, level, slot, i);
        records[i as usize].set(flag::ARMED, false);
    }

    /// The next record due at `now` or before, disarmed.
    pub fn pop(&mut self, records: &mut [Record], now: Time) -> Option<u32> {
        loop {
            let (level, slot) = self.first()?;
            if self.slots[level][slot].earliest > now.as_nanos() {
                return None;
            }
            if level > 0 {
                self.descend(records, level, slot);
                continue;
            }
            let i = self.slots[0][slot].head;
            let due = records[i as usize].pace.due;
            self.now = self.now.max(due);
            self.unlink(records, 0, slot, i);
            records[i as usize].set(flag::ARMED, false);
            return Some(i);
        }
    }

    /// No record is due before this; exact unless records were disarmed.
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

    /// Moves the wheel to the start of a slot and spreads its records over the levels below.
    fn descend(&mut self, records: &mut [Record], level: usize, slot: usize) {
        let shift = level as u32 * BITS;
        let upper = self.now.checked_shr(shift + BITS).unwrap_or(0).checked_shl(shift + BITS).unwrap_or(0);
        let start = upper | (slot as u64) << shift;
        debug_assert!(start >= self.now);
        let mut i = self.slots[level][slot].head;
        self.slots[level][slot] = EMPTY;
        self.occupied[level] &= !(1 << slot);
        self.now = start;
        while i != NONE {
            let next = records[i as usize].timer[NEXT];
            let due = records[i as usize].pace.due;
            let (level, slot) = self.place(due);
            self.append(records, level, slot, i, due);
            i = next;
        }
    }

    fn append(&mut self, records: &mut [Record], level: usize, slot: usize, i: u32, due: u64) {
        self.occupied[level] |= 1 << slot;
        let s = &mut self.slots[level][slot];
        let tail = s.tail;
        s.tail = i;
        s.earliest = s.earliest.min(due);
        if tail == NONE {
            s.head = i;
        } else {
            records[tail as usize].timer[NEXT] = i;
        }
        records[i as usize].timer = [tail, NONE];
    }

    fn unlink(&mut self, records: &mut [Record], level: usize, slot: usize, i: u32) {
        let [prev, next] = records[i as usize].timer;
        let s = &mut self.slots[level][slot];
        if prev == NONE {
            s.head = next;
        } else {
            records[prev as usize].timer[NEXT] = next;
        }
        if next == NONE {
            s.tail = prev;
        } else {
            records[next as usize].timer[PREV] = prev;
        }
        if self.slots[level][slot].head == NONE {
            self.slots[level][slot] = EMPTY;
            self.occupied[level] &= !(1 << slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn records(n: usize) -> Vec<Record> {
        vec![Record::default(); n]
    }

    #[test]
    fn exact_and_first_come_first_served() {
        let mut r = records(3);
        let mut w = Wheel::default();
        for (i, due) in [(0, 5_000_000_000), (1, 10_000_000), (2, 10_000_000)] {
            r[i as usize].pace.due = due;
            w.arm(&mut r, i);
        }
        assert_eq!(w.next(), Some(Time::from_millis(10)));
        assert_eq!(w.pop(&mut r, Time::from_nanos(9_999_999)), None);
        assert_eq!(w.pop(&mut r, Time::from_millis(10)), Some(1));
        assert_eq!(w.pop(&mut r, Time::from_millis(10)), Some(2));
        assert_eq!(w.pop(&mut r, Time::from_millis(10)), None);
        assert_eq!(w.next(), Some(Time::from_secs(5)));
        assert_eq!(w.pop(&mut r, Time::MAX), Some(0));
        assert_eq!(w.next(), None);
    }

    proptest! {
        /// Against a sorted list of (due, sequence).
        #[test]
        fn like_a_sorted_list(ops in prop::collection::vec((0u8..3, 0usize..16, 0u64..1 << 40, 0u32..40), 1..400)) {
            let mut r = records(16);
            let mut w = Wheel::default();
            let mut model: Vec<(u64, usize, u32)> = Vec::new();
            let mut now = 0u64;
            for (seq, (op, i, delay, shift)) in ops.into_iter().enumerate() {
                let delay = delay >> shift;
                let armed = r[i].has(flag::ARMED);
                match op {
                    0 if !armed => {
                        r[i].pace.due = now + delay;
                        w.arm(&mut r, i as u32);
                        model.push((now + delay, seq, i as u32));
                        model.sort();
                    }
                    1 if armed => {
                        w.disarm(&mut r, i as u32);
                        model.retain(|m| m.2 != i as u32);
                    }
                    2 => {
                        now += delay;
                        while let Some(got) = w.pop(&mut r, Time::from_nanos(now)) {
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
