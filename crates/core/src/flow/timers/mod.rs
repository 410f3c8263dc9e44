//! One timer for each number below a capacity. Each timer is armed on one of several wheels, which are independent of each other:
//! timers that are due on a wheel that nobody looks at cost the others nothing.

mod slot;
mod wheel;

#[cfg(test)]
mod tests;

use super::NONE;
use crate::time::Time;
use wheel::Wheel;

/// What is kept of each timer.
#[derive(Clone, Copy)]
struct Timer {
    /// When it was armed for last.
    due: u64,
    /// Goes up when it is armed (odd) and when it is not any more (even).
    turn: u32,
}

const IDLE: Timer = Timer { due: 0, turn: 0 };

/// Timers on `WHEELS` wheels. Every operation takes constant time.
pub struct Timers<const WHEELS: usize> {
    timers: Vec<Timer>,
    wheels: [Wheel; WHEELS],
}

impl<const WHEELS: usize> Timers<WHEELS> {
    /// Timers `0..capacity`, none armed.
    pub fn new(capacity: u32) -> Self {
        Timers::with_slots_of(capacity, wheel::MOST)
    }

    fn with_slots_of(capacity: u32, most: usize) -> Self {
        Timers {
            timers: vec![IDLE; capacity as usize],
            wheels: core::array::from_fn(|_| Wheel::with_slots_of(most)),
        }
    }

    /// There are at least so many timers.
    pub fn grow(&mut self, capacity: u32) {
        if capacity as usize > self.timers.len() {
            self.timers.resize(capacity as usize, IDLE);
        }
    }

    /// For when timer `i` was armed last.
    pub fn due(&self, i: u32) -> Time {
        Time::from_nanos(self.timers[i as usize].due)
    }

    /// Is timer `i` armed?
    pub fn is_armed(&self, i: u32) -> bool {
        self.timers[i as usize].turn % 2 == 1
    }

    /// Arms timer `i`, which is not armed, for `due` on a wheel. A time before that of the wheel's last timer is as good as
    /// that. [`Time::MAX`], which is none, comes a nanosecond early.
    pub fn arm(&mut self, wheel: usize, i: u32, due: Time) {
        self.wheels[wheel].arm(&mut self.timers, i, due.as_nanos());
    }

    /// Disarms timer `i`, which is armed on this wheel.
    pub fn disarm(&mut self, wheel: usize, i: u32) {
        self.wheels[wheel].disarm(&mut self.timers, i);
    }

    /// The next timer of a wheel that is due at `now` or before, disarmed. Those due at the same nanosecond come in the order in
    /// which they were armed.
    pub fn pop(&mut self, wheel: usize, now: Time) -> Option<u32> {
        self.wheels[wheel].pop(&mut self.timers, now.as_nanos())
    }

    /// When the first timer of a wheel is due; [`Time::MAX`] without one.
    #[inline]
    pub fn next(&self, wheel: usize) -> Time {
        Time::from_nanos(self.wheels[wheel].next())
    }

    /// Shows the timers that are due at `until` or before, as far as they are among the first `most` or so in their
    /// slots: what is about to fire can be loaded in time.
    pub fn soon(&self, until: Time, most: usize, mut show: impl FnMut(u32)) {
        let mut left = most;
        for wheel in &self.wheels {
            wheel.soon(&self.timers, until.as_nanos(), &mut left, &mut show);
        }
    }
}
