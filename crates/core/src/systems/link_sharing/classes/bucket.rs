//! A rate of a class, as the time at which its sent bytes are paid for.

use crate::rate::{ByteClock, Rate};
use crate::time::{Duration, Time};

/// Longest delay of a backlogged class that costs it nothing, besides the time of a full frame at its rate.
/// It covers the service of other classes, and limits the burst after a time in which nothing could leave.
const LAG: Duration = Duration::from_millis(10);
/// Bytes of a full Ethernet frame: a class may have to wait for one of another class on the same link.
const FULL_FRAME: u64 = 1514;

/// A rate, and the time since or until which it is used up. Exact to the byte: fractions of a nanosecond are
/// carried.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    clock: ByteClock,
    paid: Time,
}

impl Bucket {
    pub(super) fn new(rate: Rate) -> Bucket {
        Bucket { clock: ByteClock::new(rate), paid: Time::ZERO }
    }

    pub(super) fn rate(&self) -> Rate {
        self.clock.rate()
    }

    /// Returns the time at which all sent bytes are paid for.
    pub(super) fn paid(&self) -> Time {
        self.paid
    }

    /// Charges `bytes` sent at `now`, by a class backlogged since `since`. No credit is saved from before
    /// `since`. Unused credit since then lapses too if the class must keep `strict`ly to its rate. Otherwise
    /// [`LAG`] and the time of a frame are kept.
    pub(super) fn charge(&mut self, now: Time, since: Time, bytes: u64, strict: bool) {
        let late = if strict { Duration::ZERO } else { LAG + self.rate().time_for(bytes.max(FULL_FRAME)) };
        let earliest = since.max(now.saturating_sub(late));
        if self.paid < earliest {
            self.clock.idle();
            self.paid = earliest;
        }
        self.paid += self.clock.advance(bytes);
    }

    /// Changes the rate from `now` on. Debt is paid at the new rate, to the bit. Unused credit keeps its
    /// number of bits.
    pub(super) fn set_rate(&mut self, now: Time, rate: Rate) {
        self.paid = match self.paid >= now {
            true => now + self.clock.set_rate(rate, self.paid.since(now)),
            false => now.saturating_sub(self.clock.set_rate_idle(rate, now.since(self.paid))),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time::from_millis(n)
    }

    #[test]
    fn a_class_that_waits_loses_nothing_and_one_that_rested_saved_nothing() {
        // A byte a microsecond: 1,000 bytes take a millisecond.
        let mut b = Bucket::new(Rate::mbit(8));
        b.charge(ms(5), ms(5), 1000, false);
        assert_eq!(b.paid(), ms(6));
        // Served 3 ms late, since others were served. The next is due as if it had not been late.
        b.charge(ms(9), ms(5), 1000, false);
        assert_eq!(b.paid(), ms(7));
        // It was idle until 20 ms.
        b.charge(ms(20), ms(20), 1000, false);
        assert_eq!(b.paid(), ms(21));
        // Delayed for 80 ms. 10 ms and the time of a full frame count.
        b.charge(ms(101), ms(20), 1000, false);
        assert_eq!(b.paid(), Time::from_micros(90_486));
        b.charge(ms(200), ms(20), 1000, true);
        assert_eq!(b.paid(), ms(201));
    }

    #[test]
    fn nothing_is_rounded_away() {
        // 1,000 bytes at 7 Mb/s take 1,142,857 1/7 ns.
        let mut b = Bucket::new(Rate::mbit(7));
        (0..7).for_each(|_| b.charge(b.paid(), Time::ZERO, 1000, false));
        assert_eq!(b.paid(), ms(8));
        // 3,500 bytes are owed, which take 5 ms at 5.6 Mb/s.
        (0..7).for_each(|_| b.charge(ms(8), Time::ZERO, 500, false));
        b.set_rate(ms(8), Rate::kbit(5600));
        assert_eq!(b.paid(), ms(13));
        // 8 ms unused at this rate are 5,600 bytes, or 5.6 ms at a byte a microsecond.
        b.set_rate(ms(21), Rate::mbit(8));
        assert_eq!(b.paid(), Time::from_micros(15_400));
    }
}
