//! The timers of a wheel that fire next, sorted.

use super::slot::{is_armed, Entry};
use super::Timer;

/// Timers by due time. Those due at the same time are in the order in which they were armed. The first is
/// armed, the others may have been disarmed.
pub(super) struct Ready {
    entries: Vec<Entry>,
    /// Entries at the front that have fired.
    fired: usize,
    /// Entries that were disarmed.
    disarmed: usize,
}

impl Ready {
    pub(super) const fn new() -> Ready {
        Ready { entries: Vec::new(), fired: 0, disarmed: 0 }
    }

    /// Returns the entries that have not fired.
    pub(super) fn waiting(&self) -> &[Entry] {
        &self.entries[self.fired..]
    }

    /// Returns the due time of the first.
    #[inline]
    pub(super) fn due(&self) -> Option<u64> {
        self.entries.get(self.fired).map(|entry| entry.due)
    }

    /// Adds an armed timer.
    #[inline]
    pub(super) fn insert(&mut self, entry: Entry) {
        let mut at = self.entries.len();
        while at > self.fired && self.entries[at - 1].due > entry.due {
            at -= 1;
        }
        self.entries.insert(at, entry);
    }

    /// Fills the empty list. The entries are all due at the same time, and `armed` of them are armed.
    pub(super) fn fill(&mut self, entries: &mut Vec<Entry>, armed: usize, timers: &[Timer]) {
        debug_assert!(self.entries.is_empty());
        self.disarmed = entries.len() - armed;
        core::mem::swap(&mut self.entries, entries);
        self.settle(timers);
    }

    /// Removes the first, which fires.
    #[inline]
    pub(super) fn pop(&mut self, timers: &[Timer]) -> Option<Entry> {
        let entry = *self.entries.get(self.fired)?;
        self.fired += 1;
        self.settle(timers);
        Some(entry)
    }

    /// Notes that one of them has been disarmed.
    pub(super) fn disarm(&mut self, timers: &[Timer]) {
        self.disarmed += 1;
        self.settle(timers);
    }

    /// Drops disarmed timers from the front.
    #[inline]
    fn settle(&mut self, timers: &[Timer]) {
        while self.disarmed > 0 && self.waiting().first().is_some_and(|entry| !is_armed(timers, entry)) {
            self.fired += 1;
            self.disarmed -= 1;
        }
        if self.fired == self.entries.len() {
            self.entries.clear();
            self.fired = 0;
        }
    }
}
