//! The clock of a line: bytes put on it, and the time at which the next one can begin.

use crate::rate::{ByteClock, Earned, Rate};
use crate::time::Time;

/// See the [module documentation](self). Exact: fractions of nanoseconds and bytes are carried.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    clock: ByteClock,
    idle: Earned,
    at: Time,
    position: u64,
    /// The line was idle just before it is free.
    idled: bool,
}

impl Line {
    pub(super) fn new(rate: Rate) -> Line {
        Line { clock: ByteClock::new(rate), idle: Earned::new(), at: Time::ZERO, position: 0, idled: true }
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
        self.at
    }

    /// Returns whether the line was idle just before it is free.
    pub(super) fn idled(&self) -> bool {
        self.idled
    }

    /// Puts `bytes` on the line.
    pub(super) fn put(&mut self, bytes: u64) {
        self.position += bytes;
        self.at += self.clock.advance(bytes);
        self.idled = false;
    }

    /// Returns the time at which the line would be free after `bytes` more.
    pub(super) fn after(&self, bytes: u64) -> Time {
        let mut clock = self.clock;
        self.at + clock.advance(bytes)
    }

    /// Returns the whole byte times that have passed since the line became free.
    pub(super) fn passed(&self, now: Time) -> u64 {
        let mut idle = self.idle;
        idle.earn(self.rate(), now.since(self.at))
    }

    /// Lets the line be idle until `now`.
    pub(super) fn rest(&mut self, now: Time) {
        if now > self.at {
            self.position += self.idle.earn(self.rate(), now.since(self.at));
            self.stop(now);
        }
    }

    /// Stops the line until `now`: no byte times pass.
    pub(super) fn stop(&mut self, now: Time) {
        if now > self.at {
            self.clock.idle();
            (self.at, self.idled) = (now, true);
        }
    }

    /// Sets the line back by `bytes` byte times.
    pub(super) fn hold_back(&mut self, bytes: u64) {
        self.position -= bytes;
    }
}
