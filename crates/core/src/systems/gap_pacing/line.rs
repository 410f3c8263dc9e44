//! The clock of a line: bytes put on it, and the time at which the next one can begin.

use crate::base::VirtualClock;
use crate::rate::{Earned, Rate};
use crate::time::Time;

/// See the [module documentation](self). Exact: fractions of nanoseconds and bytes are carried.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    clock: VirtualClock,
    idle: Earned,
    position: u64,
    /// The line was idle just before it is free.
    idled: bool,
}

impl Line {
    pub(super) fn new(rate: Rate) -> Line {
        Line { clock: VirtualClock::new(rate, Time::ZERO), idle: Earned::new(), position: 0, idled: true }
    }

    pub(super) fn rate(&self) -> Rate {
        self.clock.rate()
    }

    /// Returns the byte times since the beginning, idle ones included, up to where the line is free.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Returns the time at which the line is free.
    pub(super) fn at(&self) -> Time {
        self.clock.due()
    }

    /// Returns whether the line was idle just before it is free.
    pub(super) fn idled(&self) -> bool {
        self.idled
    }

    /// Puts `bytes` on the line.
    pub(super) fn put(&mut self, bytes: u64) {
        self.position += bytes;
        self.clock.charge(bytes);
        self.idled = false;
    }

    /// Returns the time at which the line would be free after `bytes` more.
    pub(super) fn after(&self, bytes: u64) -> Time {
        self.clock.after(bytes)
    }

    /// Returns the whole byte times that have passed since the line became free.
    pub(super) fn passed(&self, now: Time) -> u64 {
        let mut idle = self.idle;
        idle.earn(self.rate(), now.since(self.at()))
    }

    /// Lets the line be idle until `now`.
    pub(super) fn rest(&mut self, now: Time) {
        if now > self.at() {
            self.position += self.idle.earn(self.rate(), now.since(self.at()));
            self.stop(now);
        }
    }

    /// Stops the line until `now`: no byte times pass.
    pub(super) fn stop(&mut self, now: Time) {
        if now > self.at() {
            self.clock.forfeit(now);
            self.idled = true;
        }
    }

    /// Sets the line back by `bytes` byte times.
    pub(super) fn hold_back(&mut self, bytes: u64) {
        self.position -= bytes;
    }
}
