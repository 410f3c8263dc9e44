//! The slots of a wheel.

use super::{Timer, NONE};

/// Bits of a due time that one level of the wheel uses.
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
    /// Entries in the order in which they were armed.
    pub(super) entries: Vec<Entry>,
    /// Number of armed timers, with those of `node`.
    pub(super) live: u32,
    /// Node into which the slot was divided, or [`NONE`].
    pub(super) node: u32,
    /// Due time of the first armed timer.
    pub(super) earliest: u64,
}

impl Slot {
    pub(super) const EMPTY: Slot = Slot { entries: Vec::new(), live: 0, node: NONE, earliest: u64::MAX };

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        (self.live, self.node, self.earliest) = (0, NONE, u64::MAX);
    }

    /// Returns whether all of its own entries are armed. No timer then has to be looked up.
    #[inline]
    pub(super) fn all_armed(&self) -> bool {
        self.live as usize == self.entries.len()
    }

    /// Returns the due time of the first of its own armed timers.
    pub(super) fn first_armed(&self, timers: &[Timer]) -> u64 {
        let armed = self.entries.iter().filter(|e| is_armed(timers, e));
        armed.map(|e| e.due).min().unwrap_or(u64::MAX)
    }
}

/// The slots of a level.
pub(super) struct Node {
    /// Set of slots with armed timers.
    pub(super) occupied: u64,
    pub(super) slots: [Slot; SLOTS],
}

impl Node {
    /// Returns the slot for a timer due at `due`, and counts the timer in it.
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

/// Returns the index of the slot of `due` on a level.
pub(super) fn digit(due: u64, level: usize) -> usize {
    (due >> (level as u32 * BITS)) as usize & (SLOTS - 1)
}

pub(super) fn is_armed(timers: &[Timer], entry: &Entry) -> bool {
    let timer = &timers[entry.timer as usize];
    timer.turn == entry.turn && timer.due == entry.due
}
