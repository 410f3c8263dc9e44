//! The loop's sleep, spin and rest.
//!
//! The loop sleeps until shortly before the next deadline, because a timer wakes late. It runs round after
//! round for the remaining time, which is the margin. The lateness of a timer depends on the machine and its
//! load. It is some ten microseconds on a busy processor. On an idle virtual processor, which its host has to
//! schedule first, it is two or three milliseconds at the 99th percentile.
//!
//! [`Spin::Adaptive`] measures this lateness and keeps its tail. A wake-up later than the margin after the
//! time that was set raises the margin to that lateness at once, to 4 ms at most. The reason of the wake-up
//! does not matter. Every 100 ms the margin gives up a 64th of its excess over the latest wake-up of these
//! 100 ms, or over zero if the loop did not sleep. A late wake-up therefore counts for some ten seconds,
//! however many others follow, and a loop that always spins finds out when it no longer needs to.
//!
//! Segments that come by the ring do not wake the loop while segments have come lately. The loop naps for
//! [`batch_delay`](super::DriverConfig::batch_delay), at most until the next deadline, and then looks.
//! Without a margin before deadlines a nap takes at least half of that, so that the releases of many flows
//! share one wake-up; they still count as due at their own times. After three naps without a segment the next
//! segment wakes the loop again: segments that come one at a time cost fewer wake-ups so. The loop does not
//! nap while whole frames come, because data waits for them: each wakes it.
//!
//! A thread under SCHED_FIFO that never sleeps starves everything else on its CPU, including the kernel's own
//! packet processing, until the kernel stops it for 50 ms (RT throttling). Therefore the loop rests for a
//! moment after two milliseconds without real sleep, even if frames wait.

use weir_core::time::{Duration, Time};

/// Longest sleep; the heartbeat's limit is 50 ms. Each wake-up costs the current owner of the processor some
/// 100 µs where timers are those of a virtual machine.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);
/// Least time before a full port is tried again.
const LEAST_PAUSE: Duration = Duration::from_micros(20);
const LONGEST_BUSY: Duration = Duration::from_millis(2);
const REST: Duration = Duration::from_micros(100);
/// Shortest pause that lets other threads run.
const REAL_SLEEP: Duration = Duration::from_micros(20);
/// Naps without a segment after which segments wake the loop again.
const NAPS: u64 = 3;
/// Time after a whole frame in which the loop does not nap.
const LATELY: Duration = Duration::from_millis(2);
/// First margin of [`Spin::Adaptive`]; the longest one follows.
const FIRST_MARGIN: Duration = Duration::from_millis(2);
const LONGEST_MARGIN: Duration = Duration::from_millis(4);
/// Interval at which an adaptive margin is shortened. The next constant is the divisor of its excess.
const SHORTEN: Duration = Duration::from_millis(100);
const FORGET: u64 = 64;

/// Time before a deadline at which the loop stops sleeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spin {
    /// No time: frames leave as late as timers wake.
    None,
    /// A fixed time.
    Fixed(Duration),
    /// The measured lateness of this machine's timers; see the module documentation.
    Adaptive,
}

/// The margin before a deadline.
#[derive(Debug)]
struct Margin {
    now: Duration,
    adapts: bool,
    /// Time at which the margin was last shortened.
    at: Time,
    /// Greatest lateness of a wake-up since then.
    latest: Duration,
}

impl Margin {
    fn new(spin: Spin, now: Time) -> Margin {
        let (first, adapts) = match spin {
            Spin::None => (Duration::ZERO, false),
            Spin::Fixed(margin) => (margin, false),
            Spin::Adaptive => (FIRST_MARGIN, true),
        };
        Margin { now: first, adapts, at: now, latest: Duration::ZERO }
    }

    /// Records that the loop woke `late` after the time that it had set.
    fn woke(&mut self, late: Duration) {
        if self.adapts {
            self.latest = self.latest.max(late.min(LONGEST_MARGIN));
            self.now = self.now.max(self.latest);
        }
    }

    /// Shortens the margin if it is time.
    fn pass(&mut self, now: Time) {
        if self.adapts && now.since(self.at) >= SHORTEN {
            self.at = now;
            let above = self.now - std::mem::replace(&mut self.latest, Duration::ZERO);
            self.now = self.now - Duration::from_nanos(above.as_nanos() / FORGET);
        }
    }
}

/// Next action of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Sleep until this time, or until a frame comes.
    Sleep(Time),
    /// Sleep until this time, even if frames come.
    Nap(Time),
    /// Run the next round at once.
    Run,
}

#[derive(Debug)]
pub(super) struct Pace {
    margin: Margin,
    batch_delay: Duration,
    rests: bool,
    /// Time of the last real sleep.
    awake_since: Time,
    /// Time at which segments came last; `None` if none come by the ring.
    came: Option<Time>,
    /// Time at which whole frames came last.
    whole: Option<Time>,
}

impl Pace {
    /// Creates the state at `now`. `ring` says that segments come by the ring and wake no thread. `rests`
    /// says that the thread would starve others.
    pub fn new(spin: Spin, batch_delay: Duration, ring: bool, rests: bool, now: Time) -> Pace {
        let came = ring.then_some(Time::ZERO);
        Pace { margin: Margin::new(spin, now), batch_delay, rests, awake_since: now, came, whole: None }
    }

    /// The current margin.
    pub fn margin(&self) -> Duration {
        self.margin.now
    }

    /// Records that segments have come by the ring.
    pub fn came(&mut self, now: Time) {
        self.came = Some(now);
    }

    /// Records that whole frames have come.
    pub fn whole(&mut self, now: Time) {
        self.whole = Some(now);
    }

    /// Records that the loop went to sleep at `from`, until `due`, and is awake at `now`.
    pub fn awake(&mut self, from: Time, due: Time, now: Time) {
        if now.since(from) >= REAL_SLEEP {
            self.awake_since = now;
        }
        // A frame that wakes the loop early measures no timer. A frame that comes after `due` finds the timer
        // late.
        if due > from && now >= due {
            self.margin.woke(now.since(due));
        }
    }

    /// Returns the next action at `now`. The node's next deadline is `deadline`; a frame that waits for a
    /// full port is tried at `again`.
    pub fn next(&mut self, now: Time, deadline: Option<Time>, again: Option<Time>) -> Next {
        // Spinning without yielding to others must not last.
        if self.rests && now.since(self.awake_since) > LONGEST_BUSY {
            return Next::Nap(now + REST);
        }
        self.margin.pass(now);
        let longest = now + LONGEST_SLEEP;
        let until = match deadline {
            Some(due) if due.since(now) <= self.margin.now => now,
            None => longest,
            Some(due) => due.saturating_sub(self.margin.now).min(longest),
        };
        let until = again.map_or(until, |again| until.min(again.max(now + LEAST_PAUSE)));
        let lately = |at: Option<Time>, time| at.is_some_and(|at| now.since(at) <= time);
        let naps = lately(self.came, Duration::from_nanos(self.batch_delay.as_nanos() * NAPS))
            && !lately(self.whole, LATELY);
        if naps && self.margin.now == Duration::ZERO {
            let half = Duration::from_nanos(self.batch_delay.as_nanos() / 2);
            Next::Nap(until.clamp(now + half, now + self.batch_delay))
        } else if until <= now {
            Next::Run
        } else if naps {
            Next::Nap(until.min(now + self.batch_delay))
        } else {
            Next::Sleep(until)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;
    const FIXED: Spin = Spin::Fixed(Duration::from_micros(40));

    fn pace(spin: Spin, ring: bool, rests: bool) -> Pace {
        Pace::new(spin, Duration::from_micros(200), ring, rests, Time::ZERO)
    }

    fn at(ns: u64) -> Time {
        Time::from_nanos(ns)
    }

    fn next(pace: &mut Pace, now: u64, deadline: u64) -> Next {
        pace.next(at(now), Some(at(deadline)), None)
    }

    #[test]
    fn sleeps_until_the_margin_and_spins_the_rest() {
        let pace = &mut pace(FIXED, false, false);
        let sleep = |ns| Next::Sleep(at(ns));
        assert_eq!(pace.next(Time::ZERO, None, None), sleep(10_000 * US));
        assert_eq!(pace.next(Time::ZERO, None, Some(at(50 * US))), sleep(50 * US));
        assert_eq!(next(pace, 0, 100 * US), sleep(60 * US));
        assert_eq!(next(pace, 60 * US, 100 * US), Next::Run);
        assert_eq!(next(pace, 0, 1_000_000 * US), sleep(10_000 * US));
        // A frame came while the round was running.
        assert_eq!(next(pace, 100 * US, 100 * US - 1), Next::Run);
        // A frame waits for a port; another one has to leave before the port is tried again.
        let again = Some(at(50 * US));
        assert_eq!(pace.next(Time::ZERO, Some(at(1_000 * US)), again), sleep(50 * US));
        assert_eq!(pace.next(Time::ZERO, Some(at(30 * US)), again), Next::Run);
    }

    #[test]
    fn whole_frames_wake_it_while_segments_come_by_the_ring() {
        let pace = &mut pace(FIXED, true, false);
        pace.came(at(9_000 * US));
        pace.whole(at(8_999 * US));
        assert_eq!(next(pace, 9_000 * US, 90_000 * US), Next::Sleep(at(19_000 * US)));
        // Two milliseconds after the last whole frame.
        pace.came(at(11_000 * US));
        assert_eq!(next(pace, 11_000 * US, 90_000 * US), Next::Nap(at(11_200 * US)));
    }

    #[test]
    fn naps_while_segments_come_by_the_ring() {
        let pace = &mut pace(Spin::None, true, false);
        assert_eq!(next(pace, 9_000 * US, 90_000 * US), Next::Sleep(at(19_000 * US)));
        pace.came(at(9_000 * US));
        assert_eq!(next(pace, 9_000 * US, 90_000 * US), Next::Nap(at(9_200 * US)));
        assert_eq!(next(pace, 9_000 * US, 9_150 * US), Next::Nap(at(9_150 * US)));
        // Releases within half of that are one wake-up.
        assert_eq!(next(pace, 9_000 * US, 9_010 * US), Next::Nap(at(9_100 * US)));
        assert_eq!(next(pace, 9_000 * US, 8_990 * US), Next::Nap(at(9_100 * US)));
        assert_eq!(next(pace, 9_600 * US, 90_000 * US), Next::Nap(at(9_800 * US)));
        assert_eq!(next(pace, 9_601 * US, 90_000 * US), Next::Sleep(at(19_601 * US)));
    }

    #[test]
    fn spins_for_a_deadline_while_segments_come_by_the_ring() {
        let pace = &mut pace(FIXED, true, false);
        pace.came(at(9_000 * US));
        assert_eq!(next(pace, 9_000 * US, 9_030 * US), Next::Run);
        assert_eq!(next(pace, 9_000 * US, 9_100 * US), Next::Nap(at(9_060 * US)));
    }

    #[test]
    fn the_margin_follows_the_lateness_of_timers() {
        let pace = &mut pace(Spin::Adaptive, false, false);
        assert_eq!(pace.margin(), Duration::from_millis(2));
        pace.awake(at(0), at(1_000 * US), at(3_500 * US));
        assert_eq!(pace.margin(), Duration::from_micros(2_500));
        // A frame that wakes the loop early measures no timer.
        pace.awake(at(0), at(5_000 * US), at(100 * US));
        assert_eq!(pace.margin(), Duration::from_micros(2_500));
        pace.awake(at(0), at(1_000 * US), at(91_000 * US));
        assert_eq!(pace.margin(), LONGEST_MARGIN);
    }

    /// A rare late wake-up counts by time, not by the number of other wake-ups. At 2,000 a second, one of 2.5
    /// ms each second leaves nine shortenings between two of them, down to 10 us + 2.49 ms × (63/64)^9.
    #[test]
    fn the_margin_keeps_the_tail() {
        let pace = &mut pace(Spin::Adaptive, false, false);
        let mut least = Duration::MAX;
        for i in 1..=20_000u64 {
            let due = i * 500 * US;
            let late = if i % 2_000 == 1 { 2_500 } else { 10 };
            pace.awake(at(due - 1), at(due), at(due + late * US));
            next(pace, due + late * US, due + 10_000 * US);
            least = least.min(pace.margin());
        }
        assert_eq!(least.as_nanos() / US, 2_170);
    }

    #[test]
    fn the_margin_comes_down_again() {
        let pace = &mut pace(Spin::Adaptive, false, false);
        // The loop sleeps: the margin falls to the measured lateness.
        for i in 1..=1_000u64 {
            pace.awake(at(i * 100_000 * US), at(i * 100_000 * US + 1), at(i * 100_000 * US + 10_001));
            next(pace, (i * 100_000 + 10) * US, (i + 1) * 100_000 * US);
        }
        assert!((10_000..10_100).contains(&pace.margin().as_nanos()), "{:?}", pace.margin());
    }

    #[test]
    fn the_margin_is_forgotten_while_it_spins() {
        let pace = &mut pace(Spin::Adaptive, false, false);
        for ms in [50, 99, 100, 199, 200, 250] {
            next(pace, ms * 1_000 * US, 0);
        }
        // Twice a 64th of 2 ms and of what is left.
        assert_eq!(pace.margin().as_nanos(), 2_000_000 - 31_250 - 30_761);
    }

    #[test]
    fn rests_when_it_would_starve_others() {
        let pace = &mut pace(FIXED, false, true);
        assert_eq!(next(pace, 2_000 * US, 2_010 * US), Next::Run);
        assert_eq!(next(pace, 2_001 * US, 2_010 * US), Next::Nap(at(2_101 * US)));
        // A frame woke it at once: that was no rest.
        pace.awake(at(2_001 * US), at(2_101 * US), at(2_002 * US));
        assert_eq!(next(pace, 2_002 * US, 2_010 * US), Next::Nap(at(2_102 * US)));
        pace.awake(at(2_001 * US), at(2_101 * US), at(2_101 * US));
        assert_eq!(next(pace, 2_102 * US, 2_110 * US), Next::Run);
    }
}
