//! A timing wheel: due times of any number of timers, exact to the nanosecond, in constant time per
//! operation.
//!
//! It is hierarchical (Varghese, Lauck 1987), with eleven levels of 64 slots, one level per six bits of the
//! due time. A timer is on the level of the highest digit in which its due time differs from the wheel's own.
//! All timers of a lower level are due before any timer of a higher one. A timer moves down at most once per
//! level. Timers due at the same nanosecond fire in the order in which they were armed.
//!
//! A slot is a vector. A disarmed timer stays in it, marked by its turn, until the slot is reached or swept.
//! A slot that fills up is divided: its timers go to 64 slots of their own, which become the level below when
//! its time comes.
//!
//! A short slot of a few timers moves down no further. It is sorted, and its timers fire one after the other
//! ([`Ready`]). A timer that is armed for that time meanwhile is inserted among them. No call therefore moves
//! more than a slot's worth of timers, however many are due at once. Only disarmed timers are stepped over
//! one by one. Vectors keep their memory, so nothing is allocated once the number of timers has reached its
//! maximum.

use super::ready::Ready;
use super::slot::{digit, is_armed, Entry, Node, Slot, BITS, SLOTS};
use super::{Timer, NONE};

pub(super) const LEVELS: usize = 11;
/// Most timers in a slot before it is divided.
pub(super) const MOST: usize = 1024;
/// Most entries of a slot that are sorted instead of moved down. Moving so few costs more.
const FEW: usize = 16;
/// Lowest level whose slots are not sorted. Slots below it last 4.1 µs at most, in which few more timers are
/// armed.
const SHORT: usize = 3;
/// A wheel. The table of timers keeps which timers are armed, and in which turn.
pub(super) struct Wheel {
    /// Time from which levels are counted. No timer in a slot is due before it.
    now: u64,
    /// Timers that are due before `near`.
    ready: Ready,
    near: u64,
    /// Due time of the first timer. `u64::MAX` without one.
    first: u64,
    /// Set of levels with armed timers.
    used: u32,
    /// Node of each level.
    levels: [u32; LEVELS],
    /// Boxed, so that adding a node does not move all of them.
    #[allow(clippy::vec_box)]
    pub(super) nodes: Vec<Box<Node>>,
    /// Unused nodes without timers.
    spare: Vec<u32>,
    most: usize,
    #[cfg(test)]
    pub(super) moved: usize,
}

impl Wheel {
    /// Returns a wheel whose slots are divided when they have `most` timers.
    pub(super) fn with_slots_of(most: usize) -> Wheel {
        let mut wheel = Wheel {
            now: 0,
            ready: Ready::new(),
            near: 0,
            first: u64::MAX,
            used: 0,
            levels: [NONE; LEVELS],
            nodes: Vec::new(),
            spare: Vec::new(),
            most,
            #[cfg(test)]
            moved: 0,
        };
        wheel.levels = core::array::from_fn(|_| wheel.new_node());
        wheel
    }

    /// Arms a timer. Returns its due time, which is not before the start of the slot that was moved down
    /// last.
    pub(super) fn arm(&mut self, timers: &[Timer], mut entry: Entry) -> u64 {
        if entry.due < self.near {
            self.ready.insert(entry);
        } else {
            entry.due = entry.due.max(self.now);
            self.place(timers, entry);
        }
        self.first = self.first.min(entry.due);
        entry.due
    }

    /// Notes that a timer armed here for `due` has been disarmed.
    pub(super) fn disarm(&mut self, timers: &[Timer], due: u64) {
        if due < self.near {
            self.ready.disarm(timers);
        } else {
            let level = self.level(due);
            self.leave(timers, self.levels[level], level, due);
            self.note_used(level);
        }
        if due == self.first {
            self.look();
        }
    }

    /// Removes the first timer, which is due and fires.
    pub(super) fn pop(&mut self, timers: &[Timer]) -> Option<Entry> {
        self.make_ready(timers);
        let entry = self.ready.pop(timers);
        self.look();
        entry
    }

    /// Returns the turn in which the first timer, which is due, was armed.
    pub(super) fn turn(&mut self, timers: &[Timer]) -> Option<u32> {
        self.make_ready(timers);
        self.ready.waiting().first().map(|entry| entry.turn)
    }

    /// Makes the first timer ready.
    fn make_ready(&mut self, timers: &[Timer]) {
        while self.ready.due().is_none() && self.used != 0 {
            self.advance(timers);
        }
    }

    /// Makes the first slot ready, or moves it down. No timer is ready, and some timer is armed.
    #[inline(never)]
    fn advance(&mut self, timers: &[Timer]) {
        let (level, at) = self.front();
        let slot = &self.nodes[self.levels[level] as usize].slots[at];
        // On the lowest level a slot is one nanosecond.
        if level > 0 && (slot.node != NONE || slot.entries.len() > FEW || level >= SHORT) {
            return self.descend(timers, level, at);
        }
        self.now = self.start(level, at) | ((1 << (level as u32 * BITS)) - 1);
        self.near = self.now.saturating_add(1);
        let node = &mut self.nodes[self.levels[level] as usize];
        let slot = &mut node.slots[at];
        if slot.entries.len() > FEW {
            self.ready.fill(&mut slot.entries, slot.live as usize, timers);
        } else {
            let all = slot.all_armed();
            let armed = slot.entries.iter().filter(|entry| all || is_armed(timers, entry));
            armed.for_each(|entry| self.ready.insert(*entry));
        }
        slot.clear();
        node.occupied &= !(1 << at);
        self.note_used(level);
    }

    /// Returns the start of a slot of the wheel.
    fn start(&self, level: usize, at: usize) -> u64 {
        let shift = level as u32 * BITS;
        let upper = self.now.checked_shr(shift + BITS).unwrap_or(0).checked_shl(shift + BITS).unwrap_or(0);
        upper | (at as u64) << shift
    }

    /// Returns the due time of the first timer. `u64::MAX` without one.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.first
    }

    /// Shows the timers that are due at `until` or before. About `left` are examined, from the front of their
    /// slots.
    pub(super) fn soon(&self, timers: &[Timer], until: u64, left: &mut usize, show: &mut impl FnMut(u32)) {
        if self.first > until {
            return;
        }
        self.soon_of(timers, self.ready.waiting(), until, left, show);
        for level in self.levels {
            self.soon_in(timers, level, until, left, show);
        }
    }

    fn soon_in(&self, timers: &[Timer], node: u32, until: u64, left: &mut usize, show: &mut impl FnMut(u32)) {
        let node = &self.nodes[node as usize];
        let mut occupied = node.occupied;
        while occupied != 0 && *left > 0 {
            let slot = &node.slots[occupied.trailing_zeros() as usize];
            occupied &= occupied - 1;
            if slot.earliest > until {
                return;
            }
            if slot.node != NONE {
                self.soon_in(timers, slot.node, until, left, show);
                continue;
            }
            self.soon_of(timers, &slot.entries, until, left, show);
        }
    }

    fn soon_of(
        &self,
        timers: &[Timer],
        entries: &[Entry],
        until: u64,
        left: &mut usize,
        show: &mut impl FnMut(u32),
    ) {
        let due = entries.iter().filter(|e| e.due <= until && is_armed(timers, e)).take(*left);
        *left -= due.map(|e| show(e.timer)).count();
    }

    fn level(&self, due: u64) -> usize {
        let differing = (due ^ self.now) | 1; // the lowest bit makes no difference
        ((63 - differing.leading_zeros()) / BITS) as usize
    }

    /// Returns the level and the slot of the first timer. There must be one.
    fn front(&self) -> (usize, usize) {
        let level = self.used.trailing_zeros() as usize;
        (level, self.nodes[self.levels[level] as usize].occupied.trailing_zeros() as usize)
    }

    /// Updates the due time of the first timer.
    #[inline]
    fn look(&mut self) {
        self.first = match self.ready.due() {
            Some(due) => due,
            None if self.used == 0 => u64::MAX,
            None => {
                let (level, at) = self.front();
                self.nodes[self.levels[level] as usize].slots[at].earliest
            }
        };
    }

    /// Updates the set of levels with timers.
    fn note_used(&mut self, level: usize) {
        let occupied = self.nodes[self.levels[level] as usize].occupied != 0;
        self.used = self.used & !(1 << level) | u32::from(occupied) << level;
    }

    /// Moves the wheel to the start of a slot and spreads its timers over the levels below, which are empty.
    fn descend(&mut self, timers: &[Timer], level: usize, at: usize) {
        let start = self.start(level, at);
        debug_assert!(start >= self.now);
        self.now = start;
        let node = self.levels[level];
        let slot = &mut self.nodes[node as usize].slots[at];
        let all = slot.all_armed();
        let (mut entries, divided) = (core::mem::take(&mut slot.entries), slot.node);
        slot.clear();
        self.nodes[node as usize].occupied &= !(1 << at);
        if divided != NONE {
            let below = core::mem::replace(&mut self.levels[level - 1], divided);
            self.spare.push(below);
            self.note_used(level - 1);
        }
        self.note_used(level);
        let below = level - 1;
        let spread = self.levels[below];
        for entry in entries.drain(..).filter(|entry| all || is_armed(timers, entry)) {
            self.put(timers, spread, below, entry);
        }
        self.nodes[node as usize].slots[at].entries = entries;
        if divided == NONE {
            self.note_used(below);
            // Timers of the wheel's own slot there belong further down.
            if below > 0 && self.nodes[self.levels[below] as usize].occupied & 1 != 0 {
                self.descend(timers, below, 0);
            }
        }
    }

    fn place(&mut self, timers: &[Timer], entry: Entry) {
        let level = self.level(entry.due);
        self.used |= 1 << level;
        self.put(timers, self.levels[level], level, entry);
    }

    /// Puts an armed timer into its slot of `node`, or of the nodes into which that was divided.
    #[inline]
    fn put(&mut self, timers: &[Timer], node: u32, level: usize, entry: Entry) {
        #[cfg(test)]
        (self.moved += 1);
        let slot = self.nodes[node as usize].enter(entry.due, level);
        if slot.node == NONE && slot.entries.len() < slot.entries.capacity() {
            return slot.entries.push(entry);
        }
        self.put_deep(timers, node, level, entry);
    }

    /// Continues [`Wheel::put`] for an entered slot that is divided or has no memory left.
    #[inline(never)]
    fn put_deep(&mut self, timers: &[Timer], mut node: u32, mut level: usize, entry: Entry) {
        loop {
            let at = digit(entry.due, level);
            let slot = &mut self.nodes[node as usize].slots[at];
            if slot.node == NONE && slot.entries.len() == slot.entries.capacity().max(self.most) {
                self.make_room(timers, node, level, at);
            }
            let slot = &mut self.nodes[node as usize].slots[at];
            if slot.node == NONE {
                return slot.entries.push(entry);
            }
            (node, level) = (slot.node, level - 1);
            self.nodes[node as usize].enter(entry.due, level);
        }
    }

    /// Sweeps a full slot, and divides it if that frees too little. A slot of one nanosecond grows instead.
    #[cold]
    fn make_room(&mut self, timers: &[Timer], node: u32, level: usize, at: usize) {
        let mut entries = core::mem::take(&mut self.nodes[node as usize].slots[at].entries);
        entries.retain(|entry| is_armed(timers, entry));
        let mut child = NONE;
        if level > 0 && entries.len() > self.most / 2 {
            child = self.new_node();
            for entry in entries.drain(..) {
                self.put(timers, child, level - 1, entry);
            }
        }
        let slot = &mut self.nodes[node as usize].slots[at];
        (slot.entries, slot.node) = (entries, child);
    }

    /// Removes a disarmed timer due at `due` from the counts.
    fn leave(&mut self, timers: &[Timer], node: u32, level: usize, due: u64) {
        let at = digit(due, level);
        let slot = &mut self.nodes[node as usize].slots[at];
        slot.live -= 1;
        let (live, child, first) = (slot.live, slot.node, slot.earliest == due);
        if child != NONE {
            self.leave(timers, child, level - 1, due);
        }
        if live == 0 {
            if child != NONE {
                self.spare.push(child);
            }
            let node = &mut self.nodes[node as usize];
            node.slots[at].clear();
            node.occupied &= !(1 << at);
        } else if first {
            self.nodes[node as usize].slots[at].earliest = self.earliest(timers, node, at);
        }
    }

    /// Returns the due time of the first timer of a slot.
    fn earliest(&self, timers: &[Timer], node: u32, at: usize) -> u64 {
        let slot = &self.nodes[node as usize].slots[at];
        if slot.node != NONE {
            let node = &self.nodes[slot.node as usize];
            return node.slots[node.occupied.trailing_zeros() as usize % SLOTS].earliest;
        }
        slot.first_armed(timers)
    }

    fn new_node(&mut self) -> u32 {
        self.spare.pop().unwrap_or_else(|| {
            let slots = [const { Slot::EMPTY }; SLOTS];
            self.nodes.push(Box::new(Node { occupied: 0, slots }));
            self.nodes.len() as u32 - 1
        })
    }
}
