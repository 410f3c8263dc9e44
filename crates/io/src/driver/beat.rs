//! Engine beats: the gaps long enough that frames bypassed the engine, and how often they are reported.

use weir_core::time::{Duration, Time};

/// Longest gap between beats for which the engine assumes that no frames bypassed it. The limit of the
/// programs in the kernel is 50 ms.
const AWAY: Duration = Duration::from_millis(40);
/// Window in which the share of time without the engine is measured.
const WINDOW: Duration = Duration::from_secs(5);
/// Least share in percent that is reported.
const MUCH: u64 = 10;
/// Least time between two lines of the log: an overloaded machine would fill it otherwise.
const BETWEEN_LINES: Duration = Duration::from_secs(60);

/// Standstills that one line of the log reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standstills {
    /// Number of standstills.
    pub times: u32,
    /// The longest one.
    pub longest: Duration,
}

/// History of an engine's beats.
#[derive(Clone, Copy, Debug)]
pub struct Beat {
    last: Time,
    /// Number of standstills since the start.
    times: u64,
    told: Option<Time>,
    untold: Standstills,
    /// Begin of the window, the time without the engine in it, and its share in percent of the previous
    /// window.
    since: Time,
    without: Duration,
    share: u64,
}

impl Beat {
    /// A history without beats.
    pub const fn new() -> Beat {
        let untold = Standstills { times: 0, longest: Duration::ZERO };
        let (since, without, share) = (Time::ZERO, Duration::ZERO, 0);
        Beat { last: Time::ZERO, times: 0, told: None, untold, since, without, share }
    }

    /// Returns the share of the last seconds in percent in which frames bypassed the engine, if it is
    /// reported.
    pub fn starved(&self, now: Time) -> Option<u64> {
        let so_far = now.since(self.since);
        let share = self.without.as_nanos() * 100 / so_far.max(WINDOW).as_nanos();
        Some(self.share.max(share)).filter(|share| *share >= MUCH)
    }

    fn measure(&mut self, now: Time, away: Duration) {
        self.without = self.without + away.saturating_sub(AWAY);
        let so_far = now.since(self.since);
        if self.since == Time::ZERO || so_far >= WINDOW {
            self.share = (self.without.as_nanos() * 100).checked_div(so_far.as_nanos()).unwrap_or(0);
            (self.since, self.without) = (now, Duration::ZERO);
        }
    }

    /// Records a beat. True if frames bypassed the engine since the last one.
    pub fn at(&mut self, now: Time) -> bool {
        let last = std::mem::replace(&mut self.last, now);
        let away = now.since(last);
        self.measure(now, if last == Time::ZERO { Duration::ZERO } else { away });
        if last == Time::ZERO || away <= AWAY {
            return false;
        }
        self.times += 1;
        self.untold.times += 1;
        self.untold.longest = self.untold.longest.max(away);
        true
    }

    /// Takes the standstills to report: the first at once, later ones once a minute.
    pub fn news(&mut self, now: Time) -> Option<Standstills> {
        let too_soon = self.told.is_some_and(|told| now.since(told) < BETWEEN_LINES);
        if self.untold.times == 0 || too_soon {
            return None;
        }
        self.told = Some(now);
        Some(std::mem::replace(&mut self.untold, Beat::new().untold))
    }

    /// Number of standstills since the start.
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
        // The first beat ends no gap.
        assert_eq!([1_000, 1_040, 1_081, 1_082].map(|at| beat.at(ms(at))), [false, false, true, false]);
        assert_eq!(beat.times_away(), 1);
    }

    /// 2 ms of processor time in 100 ms: frames bypass the engine after 40 ms, which is 58 % of the time.
    #[test]
    fn an_engine_without_a_processor_is_starved() {
        let mut beat = Beat::new();
        let mut now = 1_000;
        let mut run = |beat: &mut Beat, periods: usize, gaps: &[u64]| {
            for gap in gaps.iter().cycle().take(periods * gaps.len()) {
                now += gap;
                beat.at(ms(now));
            }
            beat.starved(ms(now))
        };
        let (well, starved) = ([10; 10], [98, 2]);
        assert_eq!(run(&mut beat, 100, &well), None);
        assert_eq!(run(&mut beat, 20, &starved), Some(22));
        assert_eq!(run(&mut beat, 100, &starved), Some(58));
        assert_eq!(run(&mut beat, 120, &well), None);
        // A single standstill does not starve it.
        assert_eq!(run(&mut beat, 1, &starved), None);
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
        // Unreported standstills are reported without a new one.
        assert_eq!(beat.news(ms(61_100)), told(2, 200));
        assert_eq!(beat.news(ms(200_000)), None);
        assert_eq!(beat.times_away(), 3);
    }
}
