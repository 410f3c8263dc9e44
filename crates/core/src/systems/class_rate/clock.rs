//! The byte clock of a class: when what its senders were permitted so far is sent at its rate.

use crate::base::VirtualClock;
use crate::rate::Rate;
use crate::time::{Duration, Time};

/// Longest debt. Anything beyond is written off: ACKs that wait longer meet their senders' time-outs.
pub(crate) const MOST_AHEAD: Duration = Duration::from_millis(100);

/// See the module documentation.
#[derive(Clone)]
pub(crate) struct Clock {
    clock: VirtualClock,
    /// Largest credit: what is earned while nothing is asked for.
    credit: Duration,
    /// Time that was earned beyond that, and forgotten.
    forgotten: Duration,
}

impl Clock {
    /// A clock that has never run.
    pub(crate) fn new(rate: Rate, credit: Duration) -> Clock {
        Clock { clock: VirtualClock::new(rate, Time::ZERO), credit, forgotten: Duration::ZERO }
    }

    /// Returns the time from which more may be permitted.
    pub(crate) fn due(&self) -> Time {
        self.clock.due()
    }

    /// Returns whether it has earned all that it can while nothing was asked of it. One that can earn nothing
    /// has not: it says nothing of whether the rate is used.
    pub(crate) fn is_idle(&self, now: Time) -> bool {
        self.credit > Duration::ZERO && now.since(self.due()) >= self.credit
    }

    /// Time for which it was charged nothing, and that it has forgotten.
    pub(crate) fn forgotten(&self) -> Duration {
        self.forgotten
    }

    /// Returns the rate.
    pub(crate) fn rate(&self) -> Rate {
        self.clock.rate()
    }

    /// Bytes that may be permitted by `within` after `now` without its being ahead then.
    pub(crate) fn earned_by(&self, now: Time, within: Duration) -> u64 {
        self.rate().bytes_in(now.since(self.due()).min(self.credit) + within)
    }

    /// Bytes that may be charged up to `now` without its being ahead then, where it earned since `since`.
    pub(crate) fn spare(&self, since: Time, now: Time) -> u64 {
        self.rate().bytes_in(now.since(self.due().max(since.saturating_sub(self.credit))))
    }

    /// `bytes` were permitted, or sent, from `since` to `now`: as much of it as the rate allowed meanwhile is
    /// not ahead. Returns those that are forgiven.
    pub(crate) fn charge_since(&mut self, bytes: u64, since: Time, now: Time) -> u64 {
        self.forgotten = self.forgotten + self.clock.forfeit(since.saturating_sub(self.credit));
        self.clock.charge(bytes);
        self.clock.write_off(now + MOST_AHEAD)
    }

    /// A turn that costs this many bytes is had `now`, when the clock is not ahead: so it is ahead of one
    /// turn at most, and nothing is forgiven.
    pub(crate) fn spend(&mut self, bytes: u64, now: Time) {
        self.forgotten = self.forgotten + self.clock.forfeit(now);
        self.clock.charge(bytes);
    }

    /// `bytes` that were permitted will not be sent.
    pub(crate) fn give_back(&mut self, bytes: u64) {
        self.clock.give_back(bytes);
    }

    /// The rate is another one for all that is permitted from now on.
    pub(crate) fn set_rate(&mut self, rate: Rate, credit: Duration) {
        self.clock.set_next_rate(rate);
        self.credit = credit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(n: u64) -> Time {
        Time::from_micros(n)
    }

    impl Clock {
        fn charge(&mut self, bytes: u64, now: Time) -> u64 {
            self.charge_since(bytes, now, now)
        }
    }

    fn clock() -> Clock {
        Clock::new(Rate::mbit(8), Duration::from_millis(2)) // a byte a microsecond
    }

    #[test]
    fn credit_is_earned_up_to_its_bound_and_nothing_is_lost_beyond() {
        let mut c = clock();
        assert_eq!(c.charge(500, us(10_000)), 0);
        assert_eq!(c.due(), us(8_500));
        c.charge(3_000, us(10_000));
        assert_eq!(c.due(), us(11_500));
        c.charge(100, us(10_001));
        assert_eq!(c.due(), us(11_600));
    }

    #[test]
    fn what_came_over_some_time_is_ahead_only_of_that_time() {
        let mut c = clock();
        // 500 ms of half of the rate: the clock has been two milliseconds behind all the time, and is further
        // now.
        assert_eq!(c.charge_since(250_000, us(10_000), us(510_000)), 0);
        assert_eq!(c.due(), us(258_000));
        c.charge(1_000, us(510_000));
        assert_eq!(c.due(), us(509_000));
        // More than the rate.
        c.charge_since(30_000, us(510_000), us(520_000));
        assert_eq!(c.due(), us(539_000));
    }

    #[test]
    fn what_is_too_far_ahead_is_forgiven() {
        let mut c = clock();
        assert_eq!(c.charge(150_000, us(10_000)), 48_000);
        assert_eq!(c.due(), us(110_000));
        c.give_back(20_000);
        assert_eq!(c.due(), us(90_000));
    }

    #[test]
    fn fractions_are_carried_also_across_a_change_of_rate() {
        // 3 b/s: a byte takes 2,666,666,666.67 ns.
        let mut c = Clock::new(Rate::from_bps(3).unwrap(), Duration::from_secs(1));
        c.charge(1, Time::from_secs(0));
        // Forgiven: 100 ms ahead at most.
        assert_eq!(c.due(), Time::from_millis(100));
        let mut c = Clock::new(Rate::mbit(3), Duration::from_secs(1));
        c.charge(1, us(0));
        assert_eq!(c.due(), Time::from_nanos(2_666)); // and 2/3
        c.set_rate(Rate::mbit(1), Duration::from_secs(1));
        // 2 Mbit × ns at 3 Mb/s are 2 ns at 1 Mb/s, which are what the 2/3 ns carried were worth of bits.
        assert_eq!(c.due(), Time::from_nanos(2_668));
        c.charge(1, us(0));
        assert_eq!(c.due(), Time::from_nanos(10_668));
    }
}
