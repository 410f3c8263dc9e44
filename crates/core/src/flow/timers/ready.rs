//! The timers of a wheel that fire next, sorted.

use super::slot::{is_armed, Entry};
use super::Timer;

/// Timers by when they are due; those due at the same time in the order in which they were armed. The first is armed,
/// any other may have been disarmed.
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

    /// Those that have not fired.
    pub(super) fn waiting(&self) -> &[Entry] {
        &self.entries[self.fired..]
    }

    /// When the first is due.
    #[inline]
    pub(super) fn due(&self) -> Option<u64> {
        self.entries.get(self.fired).map(|entry| entry.due)
    }

    /// A timer comes. It is armed.
    #[inline]
    pub(super) fn insert(&mut self, entry: Entry) {
        let mut at = self.entries.len();
        while at > self.fired && self.entries[at - 1].due > entry.due {
            at -= 1;
        }
        self.entries.insert(at, entry);
    }

    /// There were none. Entries come as they are: all due at the same time, and `armed` of them armed.
    pub(super) fn fill(&mut self, entries: &mut Vec<Entry>, armed: usize, timers: &[Timer]) {
        debug_assert!(self.entries.is_empty());
        self.disarmed = entries.len() - armed;
        core::mem::swap(&mut self.entries, entries);
        self.settle(timers);
    }

    /// The first fires.
    #[inline]
    pub(super) fn pop(&mut self, timers: &[Timer]) -> Option<Entry> {
        let entry = *self.entries.get(self.fired)?;
        self.fired += 1;
        self.settle(timers);
        Some(entry)
    }

    /// One of them has been disarmed.
    pub(super) fn disarm(&mut self, timers: &[Timer]) {
        self.disarmed += 1;
        self.settle(timers);
    }

    /// Steps over those that were disarmed, up to the first.
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
