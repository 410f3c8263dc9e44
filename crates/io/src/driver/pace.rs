//! When the loop sleeps, spins and rests.
//!
//! It sleeps until shortly before the next deadline, because a timer wakes some tens of
//! microseconds late, and runs round after round for the rest. Under SCHED_FIFO a thread that never
//! sleeps starves everything else on its CPU, the kernel's own packet processing included, until the
//! kernel stops it for 50 ms (RT throttling): after two milliseconds without real sleep it rests for a
//! moment, whatever arrives.

use weir_core::time::{Duration, Time};

/// The heartbeat's limit is 50 ms, and 10 ms are promised.
const LONGEST_SLEEP: Duration = Duration::from_millis(5);
/// A frame waits for a port: look again soon.
const RETRY: Duration = Duration::from_micros(50);
const LONGEST_BUSY: Duration = Duration::from_millis(2);
const REST: Duration = Duration::from_micros(100);
/// A shorter pause than this was none: the others did not get to run.
const REAL_SLEEP: Duration = Duration::from_micros(20);

/// What the loop does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Sleep until then, or until a frame comes.
    Sleep(Time),
    /// Sleep until then, whatever comes.
    Rest(Time),
    /// Run the next round at once.
    Run,
}

#[derive(Debug)]
pub(super) struct Pace {
    spin: Duration,
    rests: bool,
    /// Since when it has not slept.
    awake_since: Time,
}

impl Pace {
    /// `rests` says that the thread would starve others.
    pub fn new(spin: Duration, rests: bool, now: Time) -> Pace {
        Pace { spin, rests, awake_since: now }
    }

    /// The loop went to sleep at `from` and is awake again.
    pub fn awake(&mut self, from: Time, now: Time) {
        if now.since(from) >= REAL_SLEEP {
            self.awake_since = now;
        }
    }

    /// What to do at `now`, when the node has this deadline next. `waits` says that a device was full, or
    /// that a frame waits for a port.
    pub fn next(&self, now: Time, deadline: Option<Time>, waits: bool) -> Next {
        // Spinning with nobody to yield to is what must not last.
        if self.rests && now.since(self.awake_since) > LONGEST_BUSY {
            return Next::Rest(now + REST);
        }
        let longest = now + LONGEST_SLEEP;
        match deadline {
            Some(due) if due.since(now) <= self.spin => Next::Run,
            _ if waits => Next::Sleep(now + RETRY),
            None => Next::Sleep(longest),
            Some(due) => Next::Sleep(due.saturating_sub(self.spin).min(longest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;

    fn next(pace: &Pace, now: u64, deadline: u64) -> Next {
        pace.next(Time::from_nanos(now), Some(Time::from_nanos(deadline)), false)
    }

    #[test]
    fn sleeps_until_the_margin_and_spins_the_rest() {
        let pace = Pace::new(Duration::from_micros(40), false, Time::ZERO);
        let sleep = |ns| Next::Sleep(Time::from_nanos(ns));
        assert_eq!(pace.next(Time::ZERO, None, false), sleep(5_000 * US));
        assert_eq!(pace.next(Time::ZERO, None, true), sleep(50 * US));
        assert_eq!(next(&pace, 0, 100 * US), sleep(60 * US));
        assert_eq!(next(&pace, 60 * US, 100 * US), Next::Run);
        assert_eq!(next(&pace, 0, 1_000_000 * US), sleep(5_000 * US));
        // Came while the round was running.
        assert_eq!(next(&pace, 100 * US, 100 * US - 1), Next::Run);
        // A port is awaited, and something else is due.
        assert_eq!(pace.next(Time::ZERO, Some(Time::from_nanos(100 * US)), true), sleep(50 * US));
        assert_eq!(pace.next(Time::ZERO, Some(Time::from_nanos(30 * US)), true), Next::Run);
    }

    #[test]
    fn rests_when_it_would_starve_others() {
        let mut pace = Pace::new(Duration::from_micros(40), true, Time::ZERO);
        assert_eq!(next(&pace, 2_000 * US, 2_010 * US), Next::Run);
        assert_eq!(next(&pace, 2_001 * US, 2_010 * US), Next::Rest(Time::from_nanos(2_101 * US)));
        // Woken at once by a frame: that was no rest.
        pace.awake(Time::from_nanos(2_001 * US), Time::from_nanos(2_002 * US));
        assert_eq!(next(&pace, 2_002 * US, 2_010 * US), Next::Rest(Time::from_nanos(2_102 * US)));
        pace.awake(Time::from_nanos(2_001 * US), Time::from_nanos(2_101 * US));
        assert_eq!(next(&pace, 2_102 * US, 2_110 * US), Next::Run);
    }
}
