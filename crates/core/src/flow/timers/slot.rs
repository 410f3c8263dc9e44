//! The slots of a wheel.

use super::{Timer, NONE};

/// Bits of a due time that a level of the wheel looks at.
pub(super) const BITS: u32 = 6;
/// Slots of a level.
pub(super) const SLOTS: usize = 1 << BITS;

/// A timer in its slot, armed or disarmed since.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) due: u64,
    pub(super) timer: u32,
    pub(super) turn: u32,
}

pub(super) struct Slot {
    /// In the order in which they were armed, or by time where it has been [sorted](Slot::first_and_next).
    pub(super) entries: Vec<Entry>,
    /// Entries at the front that have fired.
    pub(super) taken: u32,
    /// Armed timers, those of `node` among them.
    pub(super) live: u32,
    /// The node that the slot was divided into, or [`NONE`].
    pub(super) node: u32,
    /// When the first of the armed timers is due.
    pub(super) earliest: u64,
    /// Its entries have been sorted since the last of them came.
    sorted: bool,
}

impl Slot {
    pub(super) const EMPTY: Slot =
        Slot { entries: Vec::new(), taken: 0, live: 0, node: NONE, earliest: u64::MAX, sorted: false };

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        (self.taken, self.live, self.node, self.earliest) = (0, 0, NONE, u64::MAX);
    }

    /// An entry comes, behind the others.
    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        self.sorted = false;
        self.entries.push(entry);
    }

    /// Entries that have not fired.
    #[inline]
    pub(super) fn waiting(&self) -> &[Entry] {
        &self.entries[self.taken as usize..]
    }

    /// The place of its first timer, of those due when that is the one that was armed first.
    #[inline]
    pub(super) fn first(&self, timers: &[Timer]) -> Option<usize> {
        let is_first = |e: &Entry| e.due == self.earliest && is_armed(timers, e);
        Some(self.taken as usize + self.waiting().iter().position(is_first)?)
    }

    /// The same, and when the next timer is due, of a slot with two at least. Its few entries are sorted first: those due at
    /// the same time stay in the order in which they came.
    #[inline]
    pub(super) fn first_and_next(&mut self, timers: &[Timer]) -> Option<(usize, u64)> {
        if !self.sorted {
            self.entries[self.taken as usize..].sort_by_key(|e| e.due);
            self.sorted = true;
        }
        let places = self.taken as usize..;
        let mut armed = places.zip(self.waiting()).filter(|(_, e)| is_armed(timers, e));
        Some((armed.next()?.0, armed.next()?.1.due))
    }

    /// When the first of its own armed timers is due.
    pub(super) fn first_armed(&self, timers: &[Timer]) -> u64 {
        let armed = self.waiting().iter().filter(|e| is_armed(timers, e));
        armed.map(|e| e.due).min().unwrap_or(u64::MAX)
    }
}

/// The slots of a level.
pub(super) struct Node {
    /// Which slots have armed timers.
    pub(super) occupied: u64,
    pub(super) slots: [Slot; SLOTS],
}

impl Node {
    /// The slot of a timer due at `due`, which has one timer more from now on.
    #[inline]
    pub(super) fn enter(&mut self, due: u64, level: usize) -> &mut Slot {
        let at = digit(due, level);
        self.occupied |= 1 << at;
        let slot = &mut self.slots[at];
        slot.live += 1;
        slot.earliest = slot.earliest.min(due);
        slot
    }
}

/// Which slot of a level is that of `due`.
pub(super) fn digit(due: u64, level: usize) -> usize {
    (due >> (level as u32 * BITS)) as usize & (SLOTS - 1)
}

pub(super) fn is_armed(timers: &[Timer], entry: &Entry) -> bool {
    timers[entry.timer as usize].turn == entry.turn
}
