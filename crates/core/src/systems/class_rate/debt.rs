//! Unresponsive traffic that a class has not paid for.

use super::clock::{Clock, MOST_AHEAD};
use crate::rate::{Earned, Rate};
use crate::time::{Duration, Time};

/// Bytes of unresponsive traffic that a clock is not charged yet.
#[derive(Clone, Default)]
pub(crate) struct Debt {
    pub(crate) bytes: u64,
    /// Time at which some of it was paid last.
    at: Time,
    earned: Earned,
    /// Time that its clock had forgotten then.
    forgotten: Duration,
}

impl Debt {
    /// `more` bytes have passed up to `now`. Returns the bytes to charge now: those for which there is
    /// `spare` time, and no fewer than `pace` allows since the last call, or in `within` if that is less.
    pub(crate) fn pay(&mut self, more: u64, pace: Rate, spare: u64, within: Duration, now: Time) -> u64 {
        let allowed = self.earned.earn(pace, now.since(self.at).min(within));
        self.at = self.at.max(now);
        self.bytes = self.bytes.saturating_add(more);
        let paid = self.bytes.min(allowed.max(spare));
        self.bytes -= paid;
        paid
    }

    /// Writes off the debt beyond 100 ms of `rate`, and returns it.
    pub(crate) fn write_off(&mut self, rate: Rate) -> u64 {
        let beyond = self.bytes.saturating_sub(rate.bytes_in(MOST_AHEAD));
        self.bytes -= beyond;
        beyond
    }

    /// Charges `clock`, at most at `pace` where TCP competes, `bytes` that passed from `since` to `now`.
    /// Returns those written off.
    pub(crate) fn charge(
        &mut self,
        clock: &mut Clock,
        pace: Rate,
        bytes: u64,
        (since, now): (Time, Time),
    ) -> u64 {
        let since = if self.bytes > 0 { since.min(self.at) } else { since };
        // Time that the clock has forgotten is time that nothing but these bytes took.
        let elapsed = now.since(self.at);
        let unused = (clock.forgotten() - self.forgotten).min(elapsed);
        self.bytes = (self.bytes + bytes).saturating_sub(clock.rate().bytes_in(unused));
        let paid = self.pay(0, pace, clock.spare(since, now), elapsed - unused, now);
        let beyond = if paid > 0 { clock.charge_since(paid, since, now) } else { 0 };
        self.forgotten = clock.forgotten();
        beyond + self.write_off(clock.rate())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(n: u64) -> Time {
        Time::from_micros(n)
    }

    /// 8 Mbit/s are a byte a microsecond. TCP keeps the clock 1 ms ahead, and twice the rate passes beside
    /// it.
    #[test]
    fn unresponsive_bytes_are_charged_at_the_rate_less_the_floor() {
        let mut clock = Clock::new(Rate::mbit(8), Duration::from_millis(1));
        let mut debt = Debt::default();
        clock.charge_since(2_000, us(1_000), us(1_000));
        debt.charge(&mut clock, Rate::mbit(6), 0, (us(1_000), us(1_000)));
        let due = clock.due();
        debt.charge(&mut clock, Rate::mbit(6), 2_000, (us(1_000), us(2_000)));
        // 750 of 1,000 bytes; 1,250 are a debt.
        assert_eq!((clock.due(), debt.bytes), (due + Duration::from_micros(750), 1_250));
        // It is paid once nothing comes.
        debt.charge(&mut clock, Rate::mbit(6), 0, (us(2_000), us(3_000)));
        debt.charge(&mut clock, Rate::mbit(6), 0, (us(3_000), us(4_000)));
        assert_eq!((clock.due(), debt.bytes), (due + Duration::from_micros(2_000), 0));
    }

    /// Datagrams come at the rate for a second without a look, and then TCP is permitted 4 ms: it
    /// waits for these.
    #[test]
    fn time_that_nobody_looked_at_is_not_charged_later() {
        let mut clock = Clock::new(Rate::mbit(8), Duration::from_millis(1));
        let mut debt = Debt::default();
        clock.charge_since(4_000, us(1_000_000), us(1_000_000));
        debt.charge(&mut clock, Rate::mbit(6), 1_000_000, (us(0), us(1_000_000)));
        assert_eq!(clock.due(), us(1_003_000) + Duration::from_micros(750));
        assert!(debt.bytes <= 1_000, "{}", debt.bytes);
    }

    #[test]
    fn unresponsive_bytes_take_what_tcp_leaves() {
        let mut clock = Clock::new(Rate::mbit(8), Duration::from_millis(1));
        let mut debt = Debt::default();
        // All of the rate for 100 ms: the clock is at its time, and no debt is left.
        let written_off = (10..110)
            .map(|t| debt.charge(&mut clock, Rate::mbit(6), 1_000, (us(1_000 * t), us(1_000 * (t + 1)))));
        assert_eq!(written_off.sum::<u64>(), 0);
        assert_eq!((clock.due(), debt.bytes), (us(109_000), 0));
        // Twice the rate for a second: what exceeds it is written off, but for 100 ms and the credit.
        let written_off = (110..1_110)
            .map(|t| debt.charge(&mut clock, Rate::mbit(6), 2_000, (us(1_000 * t), us(1_000 * (t + 1)))));
        assert_eq!((written_off.sum::<u64>(), debt.bytes), (1_000_000 - 100_000 - 1_000, 100_000));
        assert_eq!(clock.due(), us(1_110_000));
    }
}
