//! The engine's beat: when it was away for so long that frames went past it, and how often that is told.

use weir_core::time::{Duration, Time};

/// After so long without a beat, the engine acts as if frames had gone past it. The limit of the programs in the
/// kernel is 50 ms.
const AWAY: Duration = Duration::from_millis(40);
/// A machine without time would fill the log otherwise.
const BETWEEN_LINES: Duration = Duration::from_secs(60);

/// Standstills that a line in the log is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standstills {
    /// How many.
    pub times: u32,
    /// The longest.
    pub longest: Duration,
}

/// What is known of an engine's beats.
#[derive(Clone, Copy, Debug)]
pub struct Beat {
    last: Time,
    /// How often it had been away.
    times: u64,
    told: Option<Time>,
    untold: Standstills,
}

impl Beat {
    /// Before the first.
    pub const fn new() -> Beat {
        let untold = Standstills { times: 0, longest: Duration::ZERO };
        Beat { last: Time::ZERO, times: 0, told: None, untold }
    }

    /// A beat. True if the engine had been away.
    pub fn at(&mut self, now: Time) -> bool {
        let last = std::mem::replace(&mut self.last, now);
        let away = now.since(last);
        if last == Time::ZERO || away <= AWAY {
            return false;
        }
        self.times += 1;
        self.untold.times += 1;
        self.untold.longest = self.untold.longest.max(away);
        true
    }

    /// What there is to tell: of the first standstill at once, of others once a minute.
    pub fn news(&mut self, now: Time) -> Option<Standstills> {
        let too_soon = self.told.is_some_and(|told| now.since(told) < BETWEEN_LINES);
        if self.untold.times == 0 || too_soon {
            return None;
        }
        self.told = Some(now);
        Some(std::mem::replace(&mut self.untold, Beat::new().untold))
    }

    /// How often it had been away since the start.
    pub fn times_away(&self) -> u64 {
        self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time::from_millis(n)
    }

    #[test]
    fn an_engine_is_away_when_the_hooks_are_about_to_do_without_it() {
        let mut beat = Beat::new();
        // The first beat follows nothing.
        assert_eq!([1_000, 1_040, 1_081, 1_082].map(|at| beat.at(ms(at))), [false, false, true, false]);
        assert_eq!(beat.times_away(), 1);
    }

    #[test]
    fn the_log_has_a_line_a_minute_at_most_and_nothing_is_left_out() {
        let mut beat = Beat::new();
        let told = |times, longest| Some(Standstills { times, longest: Duration::from_millis(longest) });
        assert!(!beat.at(ms(1_000)) && beat.news(ms(1_000)).is_none());
        assert!(beat.at(ms(1_100)));
        assert_eq!(beat.news(ms(1_100)), told(1, 100));
        for at in [1_300, 1_350, 1_351] {
            beat.at(ms(at));
            assert_eq!(beat.news(ms(at)), None);
        }
        // Nothing new is needed for what waits to be told.
        assert_eq!(beat.news(ms(61_100)), told(2, 200));
        assert_eq!(beat.news(ms(200_000)), None);
        assert_eq!(beat.times_away(), 3);
    }
}
