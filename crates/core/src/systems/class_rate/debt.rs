//! Unresponsive traffic that a class has not paid for.

use super::clock::{Clock, MOST_AHEAD};
use crate::rate::{Earned, Rate};
use crate::time::{Duration, Time};

/// Turns pay for so much time at once, at most: they are looked at more often while they are taken. Bytes of
/// a longer time are paid over as long a time.
pub(crate) const LUMP: Duration = Duration::from_millis(10);

/// Bytes of unresponsive traffic that a clock is not charged yet.
#[derive(Clone, Default)]
pub(crate) struct Debt {
    pub(crate) bytes: u64,
    /// The most that is paid, if they came over a long time: TCP would stand still while they are paid.
    spread: Option<Rate>,
    /// Time at which some of it was paid last.
    at: Time,
    earned: Earned,
    /// Time that its clock had forgotten, less what no bytes have been found for.
    forgotten: Duration,
}

impl Debt {
    /// `more` bytes have passed from `since` to `now`.
    pub(crate) fn owe(&mut self, more: u64, since: Time, now: Time) {
        if more > 0 {
            self.bytes = self.bytes.saturating_add(more);
            self.note_spread(now.since(since));
        }
    }

    /// The bytes came over such a time.
    fn note_spread(&mut self, time: Duration) {
        let bps = u128::from(self.bytes) * 8_000_000_000 / u128::from(time.as_nanos().max(1));
        self.spread = Rate::from_bps(bps as u64).filter(|_| time > LUMP);
    }

    /// Returns the bytes to charge now: those for which there is `spare` time, and no fewer than `pace`
    /// allows since the last call, or in `within` if that is less.
    pub(crate) fn pay(&mut self, pace: Rate, spare: u64, within: Duration, now: Time) -> u64 {
        let pace = self.spread.map_or(pace, |spread| spread.min(pace));
        let allowed = self.earned.earn(pace, now.since(self.at).min(within));
        self.at = self.at.max(now);
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
        // Time that the clock has forgotten is time that nothing but such bytes took: these, or those of
        // classes that are looked at later.
        let unused = (clock.forgotten() - self.forgotten).min(now.since(since));
        self.bytes = self.bytes.saturating_add(bytes);
        let free = self.bytes.min(clock.rate().bytes_in(unused));
        self.bytes -= free;
        let taken = clock.rate().time_for(free).min(unused);
        let left = unused - taken;
        if bytes > 0 {
            self.note_spread(now.since(since));
        }
        let since = if self.bytes > 0 { since.min(self.at) } else { since };
        let within = now.since(self.at).saturating_sub(taken);
        let paid = self.pay(pace, clock.spare(since, now), within, now);
        let beyond = if paid > 0 { clock.charge_since(paid, since, now) } else { 0 };
        self.forgotten = clock.forgotten() - left;
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

    /// Datagrams come at the rate for a second without a look, and then TCP is permitted 4 ms: of these it
    /// waits for a thousandth at once, since the rest is paid within a second.
    #[test]
    fn time_that_nobody_looked_at_is_not_charged_later() {
        let mut clock = Clock::new(Rate::mbit(8), Duration::from_millis(1));
        let mut debt = Debt::default();
        clock.charge_since(4_000, us(1_000_000), us(1_000_000));
        debt.charge(&mut clock, Rate::mbit(6), 1_000_000, (us(0), us(1_000_000)));
        assert_eq!((clock.due(), debt.bytes), (us(1_003_001), 999));
    }

    /// TCP keeps the clock ahead, and two classes with half of the rate together are looked at in turns, each
    /// once in 100 ms: what they sent is charged over as long a time.
    #[test]
    fn bytes_of_a_long_time_are_paid_over_as_long_a_time() {
        let mut clock = Clock::new(Rate::mbit(8), Duration::from_millis(1));
        let mut debt = Debt::default();
        let mut charged = Vec::new();
        for t in 100..1_000 {
            let before = clock.due();
            let bytes = if t % 50 == 0 { 25_000 } else { 0 };
            debt.charge(&mut clock, Rate::mbit(6), bytes, (us(1_000 * (t - 100)), us(1_000 * t)));
            charged.push(clock.due().since(before).as_micros());
            // The rest of the millisecond is TCP's.
            let rest = us(1_000 * t + 2_000).since(clock.due()).as_micros();
            clock.charge_since(rest, us(1_000 * t), us(1_000 * t));
        }
        // 500 bytes in each millisecond, once both have been looked at some times.
        let later = &charged[600..];
        assert!(later.iter().all(|us| (450..=550).contains(us)), "{later:?}");
        assert!((148_000..=152_000).contains(&later.iter().sum::<u64>()), "{later:?}");
    }

    /// A class is looked at while others have not been: what none of them used is still there for these.
    #[test]
    fn time_that_nobody_used_is_there_for_classes_that_are_looked_at_later() {
        let mut clock = Clock::new(Rate::mbit(8), Duration::from_millis(1));
        let mut debt = Debt::default();
        // TCP uses a quarter for 100 ms.
        for t in 0..100 {
            clock.charge_since(250, us(1_000 * t), us(1_000 * t));
            debt.charge(&mut clock, Rate::mbit(6), 0, (us(0), us(1_000 * t)));
        }
        let due = clock.due();
        for _ in 0..3 {
            debt.charge(&mut clock, Rate::mbit(6), 24_000, (us(0), us(99_000)));
        }
        assert_eq!((clock.due(), debt.bytes), (due, 0));
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
