//! A part of a way between two counts of frames, of which the second follows the first.
//!
//! Frames under way arrive in time, so the least difference of the counts in a window of time is what was
//! lost before it. The frames that were sent in a window are compared with those lost from it to the next.

use weir_core::time::{Duration, Time};

/// Longest time that frames may be under way.
pub(super) const PATIENCE: Duration = Duration::from_millis(20);
/// Least frames, and least number of looks, of a window.
const ENOUGH: u64 = 16;
const LOOKS: u32 = 8;
/// Divisor of the frames sent: this many lost ones are a fault.
const PART: u64 = 4;

/// Result of a look at the counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Look {
    /// Frames that have arrived since the last look.
    pub arrived: u32,
    /// No frame arrives.
    pub broken: bool,
    /// A part of the frames does not arrive.
    pub lossy: bool,
}

/// Frames of a window.
#[derive(Clone, Copy, Debug)]
struct Window {
    since: Time,
    /// The first count at its begin.
    begin: u64,
    looks: u32,
    /// Least difference of the counts.
    least: i64,
    /// Difference in the window before, and the frames sent in it.
    before: Option<(i64, u64)>,
}

impl Window {
    fn new(now: Time, [from, to]: [u64; 2]) -> Window {
        Window { since: now, begin: from, looks: 0, least: difference([from, to]), before: None }
    }

    /// Takes the current counts. True if the window ends, and a part of the frames of the one before is lost.
    fn look(&mut self, now: Time, counts: [u64; 2]) -> bool {
        self.least = self.least.min(difference(counts));
        self.looks += 1;
        let sent = counts[0].wrapping_sub(self.begin);
        if sent < ENOUGH || self.looks < LOOKS || now.since(self.since) < PATIENCE {
            return false;
        }
        let lossy = self.before.is_some_and(|(least, sent)| {
            let lost = self.least.wrapping_sub(least).max(0) as u64;
            lost.saturating_mul(PART) >= sent
        });
        let before = Some((self.least, sent));
        *self = Window { before, ..Window::new(now, counts) };
        lossy
    }
}

fn difference([from, to]: [u64; 2]) -> i64 {
    from.wrapping_sub(to) as i64
}

/// Two counts; see the [module documentation](self).
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    counts: [u64; 2],
    /// Time since which only the first count has moved.
    since: Option<Time>,
    /// The first count at the second one's last move.
    from: u64,
    window: Window,
}

impl Leg {
    /// A leg whose counts are these at `now`.
    pub fn new(now: Time, counts: [u64; 2]) -> Leg {
        Leg { counts, since: None, from: counts[0], window: Window::new(now, counts) }
    }

    /// Forgets what was missing.
    pub fn restart(&mut self, now: Time) {
        *self = Leg::new(now, self.counts);
    }

    /// Takes the current counts.
    pub fn look(&mut self, now: Time, counts: [u64; 2]) -> Look {
        let arrived = counts[1].wrapping_sub(self.counts[1]).min(u32::MAX.into()) as u32;
        self.counts = counts;
        if arrived > 0 {
            (self.since, self.from) = (None, counts[0]);
        } else if counts[0] != self.from {
            self.since.get_or_insert(now);
        }
        let broken = self.since.is_some_and(|since| now.since(since) >= PATIENCE);
        Look { arrived, broken, lossy: self.window.look(now, counts) }
    }

    /// Frames wait where they are counted, so that nothing is known of the rest.
    pub fn waits(&mut self) -> Look {
        self.since = None;
        Look::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks every millisecond for a second at counts of frames: those sent, and those seen, from time 0 on.
    /// Returns the time of the first finding of a lost part.
    fn found(mut counts: impl FnMut(u64) -> [u64; 2]) -> Option<u64> {
        let mut leg = Leg::new(Time::ZERO, counts(0));
        (1..1000).find(|ms| leg.look(Time::from_millis(*ms), counts(*ms)).lossy)
    }

    #[test]
    fn a_part_that_stays_away_is_found_within_two_windows() {
        // 4,000 frames a second, of which half, a quarter or a fifth is lost.
        assert_eq!(found(|ms| [4 * ms, 2 * ms]), Some(40));
        assert_eq!(found(|ms| [4 * ms, 3 * ms]), Some(40));
        assert_eq!(found(|ms| [5 * ms, 4 * ms]), None);
        // 100 a second: a window has 16 of them.
        assert_eq!(found(|ms| [ms / 10, ms / 20]), Some(320));
    }

    #[test]
    fn frames_under_way_are_not_lost() {
        assert_eq!(found(|ms| [4 * ms, 4 * ms]), None);
        // Always 10 ms under way.
        assert_eq!(found(|ms| [4000 + 4 * ms, 3960 + 4 * ms]), None);
        // A burst of 100 each 50 ms, seen 19 ms later.
        assert_eq!(found(|ms| [ms / 50 * 100, (ms + 31) / 50 * 100]), None);
        // A full queue behind the hook counts more there.
        assert_eq!(found(|ms| [4 * ms, 5 * ms]), None);
    }

    #[test]
    fn rare_looks_find_nothing() {
        // One look in 100 ms, each just after a burst, which the looks after it find arrived.
        let mut leg = Leg::new(Time::ZERO, [0; 2]);
        for round in 1..100 {
            let seen = if round % 8 == 0 { 100 * round } else { 100 * (round - 1) };
            assert!(!leg.look(Time::from_millis(100 * round), [100 * round, seen]).lossy, "{round}");
        }
    }
}
