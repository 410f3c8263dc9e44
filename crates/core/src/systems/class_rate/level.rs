//! Level up to which children of a class borrow for what no turn holds back.
//!
//! TCP waits for its turns, and all that holds datagrams is a bucket in the hooks. At the rate of its class
//! it would let one child take what its parent has, and leave the floor to those that wait. So each parent
//! has a level: what a child may borrow for each unit of its weight. It follows what a child has that waits,
//! since turns give as much to each of them, and it rises while none waits. At rest all that want more have
//! the same, and those that want less have it: the level of progressive filling (Bertsekas and Gallager, Data
//! Networks, §6.5.2).

use crate::base::smooth;
use crate::time::{Duration, Time};

/// A child that has waited for its turns for so long would use more than it has.
pub(crate) const WAITS: Duration = Duration::from_millis(20);
/// Time constant with which a level follows.
const FOLLOWS: Duration = Duration::from_millis(100);
/// Least time between two steps, and most time that a step counts.
const STEP: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(10);
/// A level falls by no more than one of so many parts in that time: a child with a low ceiling has little,
/// however high the level is.
const PART: u64 = 2;
/// A level rises once no child has waited for so long.
const RISES: Duration = Duration::from_millis(100);
/// Time in which one that rises grows by e: that it is too high is seen later, and is lost to a class at its
/// ceiling.
const GROWS: Duration = Duration::from_millis(400);
/// A level that rises begins with one of so many parts of the rate.
const LEAST: u64 = 64;

/// Returns whether a rate is as high as `most`, or a 32nd below.
pub(crate) fn is_near(bps: u64, most: u64) -> bool {
    bps >= most - most / 32
}

/// A level in bits per second for each unit of weight.
#[derive(Clone, Copy)]
pub(crate) struct Level {
    /// `u64::MAX`: none.
    bps: u64,
    /// Time of the last step.
    stepped: Time,
    /// Time at which a child waited.
    waited: Time,
}

impl Level {
    /// The level where nothing waits.
    pub(crate) const NONE: Level = Level { bps: u64::MAX, stepped: Time::ZERO, waited: Time::ZERO };

    /// Returns whether there is one.
    pub(crate) fn is_set(&self) -> bool {
        self.bps != u64::MAX
    }

    /// Returns what a child with such a rate of its own and such a weight may have, in bits per second.
    pub(crate) fn of(&self, own_bps: u64, weight: u64) -> u64 {
        own_bps.saturating_add(self.bps.saturating_mul(weight))
    }

    /// A child waits that borrows `bps` for each unit of its weight, of at most `most`.
    pub(crate) fn follow(&mut self, bps: u64, most: u64, now: Time) {
        self.waited = now;
        let least = self.bps.min(most) / PART * (PART - 1);
        self.step(bps.max(least), most, now);
    }

    fn step(&mut self, to: u64, most: u64, now: Time) {
        let elapsed = now.since(self.stepped).min(LONGEST);
        if elapsed >= STEP {
            self.bps = smooth::lag(self.bps.min(most), to, elapsed.as_nanos(), FOLLOWS.as_nanos());
            self.stepped = now;
        }
    }

    /// The level does not rise now.
    pub(crate) fn hold(&mut self, now: Time) {
        self.waited = now;
    }

    /// The children use so much together, and `part` is what they may: the level falls if that is less, and
    /// otherwise rises while none waits.
    pub(crate) fn share(&mut self, part: u64, used: u64, most: u64, now: Time) {
        if used <= part && now.since(self.waited) < RISES {
            return;
        }
        let used = used.max(part / 4).max(1);
        let each = u128::from(self.bps.min(most)) * u128::from(part) / u128::from(used);
        self.step((each as u64).min(most), most, now);
    }

    /// The level rises up to `most` if nothing waits.
    pub(crate) fn rise(&mut self, most: u64, now: Time) {
        let elapsed = now.since(self.stepped).min(LONGEST);
        if !self.is_set() || now.since(self.waited) < RISES || elapsed < STEP {
            return;
        }
        let more = u128::from(self.bps + most / LEAST) * u128::from(elapsed.as_nanos());
        self.bps += (more / u128::from(GROWS.as_nanos())) as u64;
        self.stepped = now;
        if self.bps >= most {
            self.bps = u64::MAX;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time::from_millis(n)
    }

    #[test]
    fn a_level_follows_what_waits_and_rises_when_nothing_does() {
        let mut level = Level::NONE;
        level.rise(20, ms(1));
        assert_eq!((level.is_set(), level.of(1, 1)), (false, u64::MAX));
        // By a half in a time constant, 185 ms to 8,000 kbit/s, and then by e^-3.15 of what is left.
        (1_000..1_500).for_each(|t| level.follow(4_000_000, 20_000_000, ms(t)));
        assert!((4_100_000..4_250_000).contains(&level.of(0, 1)), "{}", level.of(0, 1));
        assert_eq!(level.of(500, 2), 500 + 2 * level.of(0, 1));
        let before = level.of(0, 1);
        (1_500..1_599).for_each(|t| level.rise(20_000_000, ms(t)));
        assert_eq!(level.of(0, 1), before);
        // From 4,170 to 20,000 kbit/s, where 312 are added to it: 400 ms times ln(20,312 / 4,482), 604 ms.
        (1_599..2_180).for_each(|t| level.rise(20_000_000, ms(t)));
        assert!(level.is_set());
        (2_180..2_240).for_each(|t| level.rise(20_000_000, ms(t)));
        assert!(!level.is_set());
    }
}
