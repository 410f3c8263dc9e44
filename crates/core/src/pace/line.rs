//! The clock of a line: bytes put on it, and the time at which the next one can begin.

use crate::rate::{ByteClock, Earned, Rate};
use crate::time::Time;

/// See the [module documentation](self). Exact: what whole nanoseconds and bytes cannot express is carried.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    clock: ByteClock,
    idle: Earned,
    at: Time,
    position: u64,
    /// Nothing ends where it is free: it has been idle.
    idled: bool,
}

impl Line {
    pub(super) fn new(rate: Rate) -> Line {
        Line { clock: ByteClock::new(rate), idle: Earned::new(), at: Time::ZERO, position: 0, idled: true }
    }

    pub(super) fn rate(&self) -> Rate {
        self.clock.rate()
    }

    /// Byte times since the beginning, idle ones included, up to where the line is free.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// When the line is free.
    pub(super) fn at(&self) -> Time {
        self.at
    }

    /// Has nothing been put on it directly before it is free?
    pub(super) fn idled(&self) -> bool {
        self.idled
    }

    /// So many bytes are put on it.
    pub(super) fn put(&mut self, bytes: u64) {
        self.position += bytes;
        self.at += self.clock.advance(bytes);
        self.idled = false;
    }

    /// When it would be free after so many bytes.
    pub(super) fn after(&self, bytes: u64) -> Time {
        let mut clock = self.clock;
        self.at + clock.advance(bytes)
    }

    /// Whole byte times that have passed since the line became free.
    pub(super) fn passed(&self, now: Time) -> u64 {
        let mut idle = self.idle;
        idle.earn(self.rate(), now.since(self.at))
    }

    /// Nothing has been put on it until `now`.
    pub(super) fn rest(&mut self, now: Time) {
        if now > self.at {
            self.position += self.idle.earn(self.rate(), now.since(self.at));
            self.stop(now);
        }
    }

    /// Nothing could be put on it until `now`, and no byte times have passed.
    pub(super) fn stop(&mut self, now: Time) {
        if now > self.at {
            self.clock.idle();
            (self.at, self.idled) = (now, true);
        }
    }

    /// It is behind by so many byte times.
    pub(super) fn hold_back(&mut self, bytes: u64) {
        self.position -= bytes;
    }
}
