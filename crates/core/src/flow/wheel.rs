//! Release times of any number of flows, exact to the nanosecond, in constant time per operation.
//!
//! A hierarchical timing wheel (Varghese, Lauck 1987) of eleven levels of 64 slots, one level per six
//! bits of the due time: a timer is on the level of the highest digit in which its due time differs
//! from the wheel's own. Everything on a lower level is due before anything on a higher one. A timer
//! moves down at most once per level. Timers due at the same nanosecond fire in the order in which
//! they were armed.
//!
//! A slot is a vector, and a timer that is disarmed stays in it, marked by its turn, until the slot is reached or
//! swept. A slot that fills up is divided: its timers go to 64 slots of their own, and when its time comes these
//! become the level below as they are. So no call moves more than a slot's worth of timers, however many are due at
//! once; only timers that were disarmed are stepped over one by one. Vectors keep their memory, so that nothing is
//! allocated once there were as many timers as there ever are.

use super::NONE;
use crate::time::Time;

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 11;
/// Timers in a slot before it is divided.
const MOST: usize = 1024;

/// A timer in its slot, armed or disarmed since.
#[derive(Clone, Copy)]
struct Entry {
    due: u64,
    timer: u32,
    turn: u32,
}

#[derive(Clone, Copy)]
struct Timer {
    /// When it was armed for last.
    due: u64,
    /// Goes up when it is armed (odd) and when it is not any more (even).
    turn: u32,
}

const IDLE: Timer = Timer { due: 0, turn: 0 };

struct Slot {
    /// In the order in which they were armed.
    entries: Vec<Entry>,
    /// Entries at the front that have fired.
    taken: usize,
    /// Armed timers, those of `node` among them.
    live: u32,
    /// The node that the slot was divided into, or [`NONE`].
    node: u32,
    /// When the first of the armed timers is due.
    earliest: u64,
}

impl Slot {
    const EMPTY: Slot = Slot { entries: Vec::new(), taken: 0, live: 0, node: NONE, earliest: u64::MAX };

    fn clear(&mut self) {
        self.entries.clear();
        (self.taken, self.live, self.node, self.earliest) = (0, 0, NONE, u64::MAX);
    }
}

/// The slots of a level.
struct Node {
    /// Which slots have armed timers.
    occupied: u64,
    slots: [Slot; SLOTS],
}

/// The wheel: one timer for each number below its capacity.
pub struct Wheel {
    now: u64,
    /// The node of each level.
    levels: [u32; LEVELS],
    /// In boxes, so that one more does not move all.
    #[allow(clippy::vec_box)]
    nodes: Vec<Box<Node>>,
    /// Nodes without timers that no level has.
    spare: Vec<u32>,
    timers: Vec<Timer>,
    most: usize,
    #[cfg(test)]
    moved: usize,
}

impl Wheel {
    /// Timers for flows `0..capacity`, none armed.
    pub fn new(capacity: u32) -> Wheel {
        Wheel::with_slots_of(capacity, MOST)
    }

    /// Slots are divided when they have `most` timers.
    fn with_slots_of(capacity: u32, most: usize) -> Wheel {
        let mut wheel = Wheel {
            now: 0,
            levels: [NONE; LEVELS],
            nodes: Vec::new(),
            spare: Vec::new(),
            timers: vec![IDLE; capacity as usize],
            most,
            #[cfg(test)]
            moved: 0,
        };
        wheel.levels = core::array::from_fn(|_| wheel.new_node());
        wheel
    }

    /// How many timers there are, armed or not.
    pub fn capacity(&self) -> u32 {
        self.timers.len() as u32
    }

    /// Makes room for timers `0..capacity`; those armed stay so.
    pub fn grow(&mut self, capacity: u32) {
        if self.timers.len() < capacity as usize {
            self.timers.resize(capacity as usize, IDLE);
        }
    }

    /// Arms timer `i`, which is not armed, for `due`. A time already past is as good as now.
    pub fn arm(&mut self, i: u32, due: Time) {
        let due = due.as_nanos().max(self.now);
        let timer = &mut self.timers[i as usize];
        debug_assert!(timer.turn % 2 == 0, "timer {i} is armed");
        *timer = Timer { due, turn: timer.turn.wrapping_add(1) };
        let entry = Entry { due, timer: i, turn: timer.turn };
        self.place(entry);
    }

    /// Disarms timer `i`, which is armed.
    pub fn disarm(&mut self, i: u32) {
        let timer = &mut self.timers[i as usize];
        debug_assert!(timer.turn % 2 == 1, "timer {i} is not armed");
        timer.turn = timer.turn.wrapping_add(1);
        let due = timer.due;
        let level = self.level(due);
        self.leave(self.levels[level], level, due);
    }

    /// The next timer due at `now` or before, disarmed.
    pub fn pop(&mut self, now: Time) -> Option<u32> {
        loop {
            let (level, at) = self.first()?;
            let node = &mut self.nodes[self.levels[level] as usize];
            let slot = &mut node.slots[at];
            if slot.earliest > now.as_nanos() {
                return None;
            }
            // Alone in its slot, or on the lowest level, where a slot is one nanosecond.
            if level > 0 && (slot.live > 1 || slot.node != NONE) {
                self.descend(level, at);
                continue;
            }
            let armed = |e: &Entry| self.timers[e.timer as usize].turn == e.turn;
            slot.taken += slot.entries[slot.taken..].iter().position(armed)? + 1;
            let Entry { due, timer, .. } = slot.entries[slot.taken - 1];
            slot.live -= 1;
            if slot.live == 0 {
                slot.clear();
                node.occupied &= !(1 << at);
            }
            let turn = &mut self.timers[timer as usize].turn;
            *turn = turn.wrapping_add(1);
            self.now = self.now.max(due);
            return Some(timer);
        }
    }

    /// When the first timer is due.
    pub fn next(&self) -> Option<Time> {
        let (level, at) = self.first()?;
        Some(Time::from_nanos(self.nodes[self.levels[level] as usize].slots[at].earliest))
    }

    /// Shows the timers that are due at `until` or before, as far as they are among the first `most` or so in their
    /// slots: what is about to fire can be loaded in time.
    pub fn soon(&self, until: Time, most: usize, mut show: impl FnMut(u32)) {
        let mut left = most;
        for level in self.levels {
            self.look(level, until.as_nanos(), &mut left, &mut show);
        }
    }

    fn look(&self, node: u32, until: u64, left: &mut usize, show: &mut impl FnMut(u32)) {
        let node = &self.nodes[node as usize];
        let mut occupied = node.occupied;
        while occupied != 0 && *left > 0 {
            let slot = &node.slots[occupied.trailing_zeros() as usize];
            occupied &= occupied - 1;
            if slot.earliest > until {
                return;
            }
            if slot.node != NONE {
                self.look(slot.node, until, left, show);
                continue;
            }
            let entries = slot.entries[slot.taken..].iter().take(*left);
            *left -= entries.len();
            let due = entries.filter(|e| e.due <= until && self.is_armed(e));
            due.for_each(|e| show(e.timer));
        }
    }

    fn is_armed(&self, entry: &Entry) -> bool {
        self.timers[entry.timer as usize].turn == entry.turn
    }

    fn level(&self, due: u64) -> usize {
        let differing = due ^ self.now;
        if differing == 0 {
            0
        } else {
            ((63 - differing.leading_zeros()) / BITS) as usize
        }
    }

    fn first(&self) -> Option<(usize, usize)> {
        let occupied = |level: &u32| self.nodes[*level as usize].occupied;
        let level = self.levels.iter().position(|level| occupied(level) != 0)?;
        Some((level, occupied(&self.levels[level]).trailing_zeros() as usize))
    }

    /// Moves the wheel to the start of a slot and spreads its timers over the levels below, which are empty.
    fn descend(&mut self, level: usize, at: usize) {
        let shift = level as u32 * BITS;
        let upper = self.now.checked_shr(shift + BITS).unwrap_or(0).checked_shl(shift + BITS).unwrap_or(0);
        let start = upper | (at as u64) << shift;
        debug_assert!(start >= self.now);
        self.now = start;
        let node = self.levels[level];
        let slot = &mut self.nodes[node as usize].slots[at];
        let (mut entries, divided) = (core::mem::take(&mut slot.entries), slot.node);
        slot.clear();
        self.nodes[node as usize].occupied &= !(1 << at);
        if divided != NONE {
            let below = core::mem::replace(&mut self.levels[level - 1], divided);
            self.spare.push(below);
        }
        for entry in entries.drain(..) {
            if self.is_armed(&entry) {
                self.place(entry);
            }
        }
        self.nodes[node as usize].slots[at].entries = entries;
    }

    fn place(&mut self, entry: Entry) {
        let level = self.level(entry.due);
        self.put(self.levels[level], level, entry);
    }

    /// Puts an armed timer into its slot of `node`, or of the nodes that it was divided into.
    fn put(&mut self, mut node: u32, mut level: usize, entry: Entry) {
        #[cfg(test)]
        (self.moved += 1);
        loop {
            let at = digit(entry.due, level);
            let n = &mut self.nodes[node as usize];
            n.occupied |= 1 << at;
            let slot = &mut n.slots[at];
            slot.live += 1;
            slot.earliest = slot.earliest.min(entry.due);
            let full = slot.node == NONE && slot.entries.len() == slot.entries.capacity().max(self.most);
            if full {
                self.make_room(node, level, at);
            }
            let slot = &mut self.nodes[node as usize].slots[at];
            if slot.node == NONE {
                return slot.entries.push(entry);
            }
            (node, level) = (slot.node, level - 1);
        }
    }

    /// Sweeps a full slot, and divides it if that makes no room to speak of. A slot of one nanosecond grows instead.
    fn make_room(&mut self, node: u32, level: usize, at: usize) {
        let mut entries = core::mem::take(&mut self.nodes[node as usize].slots[at].entries);
        entries.retain(|entry| self.is_armed(entry));
        let mut child = NONE;
        if level > 0 && entries.len() > self.most / 2 {
            child = self.new_node();
            for entry in entries.drain(..) {
                self.put(child, level - 1, entry);
            }
        }
        let slot = &mut self.nodes[node as usize].slots[at];
        (slot.entries, slot.node, slot.taken) = (entries, child, 0);
    }

    /// A timer due at `due` was disarmed.
    fn leave(&mut self, node: u32, level: usize, due: u64) {
        let at = digit(due, level);
        let slot = &mut self.nodes[node as usize].slots[at];
        slot.live -= 1;
        let (live, child, first) = (slot.live, slot.node, slot.earliest == due);
        if child != NONE {
            self.leave(child, level - 1, due);
        }
        if live == 0 {
            if child != NONE {
                self.spare.push(child);
            }
            let node = &mut self.nodes[node as usize];
            node.slots[at].clear();
            node.occupied &= !(1 << at);
        } else if first {
            self.nodes[node as usize].slots[at].earliest = self.earliest(node, at);
        }
    }

    /// When the first timer of a slot is due.
    fn earliest(&self, node: u32, at: usize) -> u64 {
        let slot = &self.nodes[node as usize].slots[at];
        if slot.node != NONE {
            let node = &self.nodes[slot.node as usize];
            return node.slots[node.occupied.trailing_zeros() as usize % SLOTS].earliest;
        }
        let entries = slot.entries[slot.taken..].iter();
        entries.fold(u64::MAX, |first, e| if e.due < first && self.is_armed(e) { e.due } else { first })
    }

    fn new_node(&mut self) -> u32 {
        self.spare.pop().unwrap_or_else(|| {
            let slots = [const { Slot::EMPTY }; SLOTS];
            self.nodes.push(Box::new(Node { occupied: 0, slots }));
            self.nodes.len() as u32 - 1
        })
    }
}

/// Which slot of a level is that of `due`.
fn digit(due: u64, level: usize) -> usize {
    (due >> (level as u32 * BITS)) as usize & (SLOTS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

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

    #[test]
    fn what_is_due_soon_is_shown() {
        let mut w = Wheel::with_slots_of(40, 8);
        (0..40).for_each(|i| w.arm(i, Time::from_micros(i.into())));
        w.disarm(3);
        let mut shown = Vec::new();
        w.soon(Time::from_micros(5), 40, |i| shown.push(i));
        shown.sort_unstable();
        assert_eq!(shown, [0, 1, 2, 4, 5]);
    }

    /// A hundred thousand timers at once or a nanosecond apart: no call moves more than a slot's worth, down all levels.
    #[test]
    fn no_call_moves_many() {
        for apart in [0, 1, 1000] {
            let mut w = Wheel::new(100_000);
            let mut most = 0;
            let mut calls = 0;
            let start = 1 << 40;
            let mut call = |w: &mut Wheel| {
                most = most.max(core::mem::take(&mut w.moved));
                calls += 1;
            };
            for i in 0..100_000u64 {
                w.arm(i as u32, Time::from_nanos(start + i * apart));
                call(&mut w);
            }
            for i in 0..100_000u64 {
                assert_eq!(w.pop(Time::MAX), Some(i as u32));
                call(&mut w);
            }
            assert!(most <= LEVELS * MOST, "{most} moves in a call");
        }
    }

    #[test]
    fn memory_is_used_again() {
        let mut w = Wheel::new(4096);
        let mut sizes = Vec::new();
        for round in 1..20 {
            for i in 0..4096 {
                w.arm(i, Time::from_nanos((round << 36) + u64::from(i) * 100));
            }
            (0..2048).for_each(|i| w.disarm(2 * i));
            while w.pop(Time::from_nanos(round << 37)).is_some() {}
            let entries = |n: &Node| n.slots.iter().map(|s| s.entries.capacity()).sum::<usize>();
            sizes.push((w.nodes.len(), w.nodes.iter().map(|n| entries(n)).sum::<usize>()));
        }
        assert!(sizes[18].0 <= sizes[3].0 + 1 && sizes[18].1 < 200_000, "{sizes:?}");
    }

    proptest! {
        /// Against a map in the order of (due, sequence), with slots that are divided early and late.
        #[test]
        fn like_a_map(most in 1usize..9,
                      ops in prop::collection::vec((0u8..5, 0u32..48, 0u64..1 << 40, 0u32..42), 1..600)) {
            let mut w = Wheel::with_slots_of(48, most);
            let mut model: BTreeMap<(u64, usize), u32> = BTreeMap::new();
            let mut now = 0u64;
            for (seq, (op, i, delay, shift)) in ops.into_iter().enumerate() {
                let delay = delay >> shift;
                let armed = model.iter().find(|m| *m.1 == i).map(|m| *m.0);
                match (op, armed) {
                    (0..=2, None) => {
                        w.arm(i, Time::from_nanos(now + delay));
                        model.insert((now + delay, seq), i);
                    }
                    (0 | 1, Some(key)) => {
                        w.disarm(i);
                        model.remove(&key);
                    }
                    (3, _) => {
                        now += delay;
                        while let Some(got) = w.pop(Time::from_nanos(now)) {
                            let ((due, _), expected) = model.pop_first().unwrap();
                            prop_assert!(due <= now);
                            prop_assert_eq!(got, expected);
                        }
                    }
                    (4, _) => {
                        // One at a time, as a driver with little room does.
                        now += delay;
                        let due = model.first_key_value().filter(|(key, _)| key.0 <= now).map(|(key, _)| *key);
                        prop_assert_eq!(w.pop(Time::from_nanos(now)), due.and_then(|key| model.remove(&key)));
                    }
                    _ => {}
                }
                let first = model.first_key_value().map(|(key, _)| key.0);
                prop_assert_eq!(w.next().map(Time::as_nanos), first);
            }
        }
    }
}
