//! A rate by time sliding window (Clark and Fang, "Explicit Allocation of Best Effort Packet Delivery
//! Service", IEEE/ACM ToN 1998, in the form of §3.1 of the paper), in integers.
//!
//! `rate = (rate × window + size) / (window + gap)` at each departure of `size` that comes `gap` after the
//! one before. When it is read, a rate also decays with the time since the last departure.

use crate::rate::{mul_div, Rate};
use crate::time::{Duration, Time};

/// Additional binary digits of rates in bytes per second.
const DIGITS: u32 = 10;
/// A share of time of one, in [`Meter`].
pub(crate) const ALL: u64 = 1 << 20;
/// Unit of shares: parts per million.
pub(crate) const MILLION: u64 = 1_000_000;

/// A rate per second of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Meter {
    rate: u64,
    /// Time of the last departure.
    last: Time,
}

impl Meter {
    /// Returns a meter without departures before now.
    pub(crate) fn new(now: Time) -> Meter {
        Meter { rate: 0, last: now }
    }

    /// Counts departing bytes.
    pub(crate) fn bytes(&mut self, now: Time, bytes: u64, window: Duration) {
        self.add(now, (bytes << DIGITS).saturating_mul(1_000_000_000), window);
    }

    /// Counts the departure of an item that was present since `since`, as a share of the time since the last
    /// departure.
    pub(crate) fn present(&mut self, now: Time, since: Time, window: Duration) {
        let there = now.since(since.max(self.last));
        self.add(now, there.as_nanos().saturating_mul(ALL), window);
    }

    /// Returns the time since the last departure.
    pub(crate) fn silent(&self, now: Time) -> Duration {
        now.since(self.last)
    }

    fn add(&mut self, now: Time, amount: u64, window: Duration) {
        let over = window.as_nanos().saturating_add(now.since(self.last).as_nanos());
        self.rate = mul_div(self.rate, window.as_nanos(), amount, over.max(1)).0;
        self.last = now;
    }

    /// Returns the current rate, in the unit of [`channel`], or as a share of time in units of [`ALL`].
    pub(crate) fn at(&self, now: Time, window: Duration) -> u64 {
        let over = window.as_nanos().saturating_add(now.since(self.last).as_nanos());
        mul_div(self.rate, window.as_nanos(), 0, over.max(1)).0
    }
}

/// Returns a rate in the unit of byte meters.
pub(crate) fn channel(rate: Rate) -> u64 {
    mul_div(rate.bps(), 1 << DIGITS, 0, 8).0
}

/// Returns `millionths` of `of`.
pub(crate) fn part(of: u64, millionths: u32) -> u64 {
    mul_div(of, u64::from(millionths), 0, MILLION).0
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_millis(200);

    fn ms(n: u64) -> Time {
        Time::from_millis(n)
    }

    /// §3.1, with a window of 200 ms: 40 bytes after 200 ms, (0 + 40) / 0.4 s. 60 more after 100 ms, (100 ×
    /// 0.2 + 60) / 0.3 s. 200 ms later the rate has halved.
    #[test]
    fn the_paper_s_formula() {
        let mut meter = Meter::new(ms(0));
        let of = |bytes: u64| bytes << DIGITS;
        meter.bytes(ms(200), 40, WINDOW);
        assert_eq!(meter.at(ms(200), WINDOW), of(100));
        meter.bytes(ms(300), 60, WINDOW);
        assert_eq!(meter.at(ms(300), WINDOW), of(800) / 3);
        assert_eq!(meter.at(ms(500), WINDOW), of(800) / 6);
    }

    /// A channel that is always busy has one rate, however long it takes: 40 bytes each 3.2 ms are 100 kb/s.
    #[test]
    fn a_busy_channel_is_its_rate() {
        let mut meter = Meter::new(Time::ZERO);
        for n in 1..2000u64 {
            meter.bytes(Time::from_micros(3200 * n), 40, WINDOW);
        }
        let rate = channel(Rate::kbit(100));
        assert!(meter.at(Time::from_micros(3200 * 1999), WINDOW).abs_diff(rate) < rate / 1000);
        assert_eq!(rate, 12_500 << DIGITS);
        assert_eq!(part(rate, 900_000), 11_250 << DIGITS);
    }

    /// An item present for all of every second interval is present half of the time.
    #[test]
    fn presence_is_a_share_of_time() {
        let (mut half, mut never) = (Meter::new(Time::ZERO), Meter::new(Time::ZERO));
        for n in 1..2000 {
            half.present(ms(10 * n), ms(10 * n - 5), WINDOW);
            never.present(ms(10 * n), ms(10 * n), WINDOW);
        }
        assert!(half.at(ms(19_990), WINDOW).abs_diff(ALL / 2) < ALL / 1000);
        assert_eq!(never.at(ms(19_990), WINDOW), 0);
    }

    #[test]
    fn rates_of_any_size_do_no_harm() {
        let mut meter = Meter::new(Time::ZERO);
        meter.bytes(Time::MAX, u64::MAX >> 20, Duration::from_secs(1000));
        meter.bytes(Time::MAX, u64::MAX >> 20, Duration::ZERO);
        meter.at(Time::MAX, Duration::ZERO);
        channel(Rate::from_bps(u64::MAX).unwrap());
    }
}
