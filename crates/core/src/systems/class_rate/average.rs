//! A quantity smoothed over time: it follows what goes up faster than what goes down.

use crate::base::smooth;
use crate::time::{Duration, Time};

/// Time constant of what goes up.
const UP: Duration = Duration::from_millis(50);
/// Fraction bits.
const FRACTION: u32 = 16;
/// One.
pub(crate) const ONE: u64 = 1 << FRACTION;

/// See the module documentation.
#[derive(Clone, Copy, Default)]
pub(crate) struct Average {
    /// In units of 1/65536.
    value: u64,
    /// Time of the last step.
    until: Time,
}

impl Average {
    /// The average in units of 1 / [`ONE`].
    pub(crate) fn value(&self) -> u64 {
        self.value
    }

    /// The quantity has been `x` since the last call; the average goes down with the time constant `down`.
    pub(crate) fn note(&mut self, x: u64, now: Time, down: Duration) {
        let elapsed = now.since(self.until).as_nanos();
        self.until = self.until.max(now);
        let x = x << FRACTION;
        let time = if x > self.value { UP } else { down };
        self.value = smooth::lag(self.value, x, elapsed, time.as_nanos());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_way_up_takes_50_ms_and_half_way_down_200() {
        let mut a = Average::default();
        const DOWN: Duration = Duration::from_millis(200);
        a.note(10, Time::from_millis(50), DOWN);
        assert_eq!(a.value(), 5 * ONE);
        a.note(0, Time::from_millis(250), DOWN);
        assert_eq!(a.value(), 5 * ONE / 2);
        a.note(7, Time::from_millis(250), DOWN);
        assert_eq!(a.value(), 5 * ONE / 2, "no time has passed");
    }
}
