//! Timers that are armed in the order in which they are due.

use super::slot::{is_armed, Entry};
use super::Timer;
use std::collections::VecDeque;

/// Most disarmed timers of a lane that takes new ones, unless others are as many. They would only be removed
/// at their due time.
const DISARMED: usize = 1024;

/// A queue of timers, each due no earlier than the one before. The first is armed, the others may have been
/// disarmed.
pub(super) struct Lane {
    entries: VecDeque<Entry>,
    disarmed: usize,
    /// Due time of the first. `u64::MAX` without one.
    pub(super) due: u64,
    /// Earliest due time of a new timer.
    pub(super) from: u64,
}

impl Lane {
    pub(super) const fn new() -> Lane {
        Lane { entries: VecDeque::new(), disarmed: 0, due: u64::MAX, from: 0 }
    }

    /// Returns the turn in which the first was armed.
    pub(super) fn turn(&self) -> Option<u32> {
        self.entries.front().map(|entry| entry.turn)
    }

    /// Adds an armed timer.
    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        self.due = self.due.min(entry.due);
        self.from = entry.due;
        self.entries.push_back(entry);
    }

    /// Removes the first, which fires.
    #[inline]
    pub(super) fn pop(&mut self, timers: &[Timer]) -> Option<Entry> {
        let entry = self.entries.pop_front();
        self.settle(timers);
        entry
    }

    /// Notes that a timer with this due time has been disarmed.
    pub(super) fn disarm(&mut self, timers: &[Timer], due: u64) {
        self.disarmed += 1;
        if due == self.due {
            self.settle(timers);
        }
        if self.disarmed > DISARMED.max(self.entries.len() / 2) {
            self.from = u64::MAX;
        }
    }

    /// Drops disarmed timers from the front.
    #[inline]
    fn settle(&mut self, timers: &[Timer]) {
        while self.disarmed > 0 && self.entries.front().is_some_and(|entry| !is_armed(timers, entry)) {
            self.entries.pop_front();
            self.disarmed -= 1;
        }
        match self.entries.front() {
            Some(entry) => self.due = entry.due,
            None => (self.due, self.from) = (u64::MAX, 0),
        }
    }

    /// Returns the timers that are due at `until` or before.
    pub(super) fn until(&self, until: u64) -> impl Iterator<Item = &Entry> {
        self.entries.iter().take_while(move |entry| entry.due <= until)
    }
}
