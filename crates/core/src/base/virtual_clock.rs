//! The time up to which a rate is used up.
//!
//! Three others are not this one. The hooks' clocks are words of shared memory in fixed point, which the
//! programs in C have too (`tcp::steer`). A paced class is due at a byte of its line, which may stop
//! (`systems::gap_pacing`). The ACK shaper counts bytes earned by a period instead of time owed for bytes
//! ([`Earned`](super::rate::Earned)).

use super::rate::{ByteClock, Rate};
use super::time::{Duration, Time};

/// A rate, and the time at which all that was charged is paid for (Zhang, "VirtualClock", SIGCOMM 1990). A
/// time before now is credit, a later one debt. Fractions of a nanosecond are carried, so it is exact for
/// ever.
#[derive(Clone, Copy, Debug)]
pub struct VirtualClock {
    due: Time,
    bytes: ByteClock,
}

impl VirtualClock {
    /// Returns a clock that owes nothing from `due` on.
    pub const fn new(rate: Rate, due: Time) -> VirtualClock {
        VirtualClock { due, bytes: ByteClock::new(rate) }
    }

    /// Returns the clock of which these were [`VirtualClock::due`] and [`VirtualClock::carried`].
    #[inline]
    pub fn restored(rate: Rate, due: Time, carried: u64) -> VirtualClock {
        let mut clock = VirtualClock::new(rate, due);
        clock.bytes.carry(carried);
        clock
    }

    /// Returns the rate.
    pub const fn rate(&self) -> Rate {
        self.bytes.rate()
    }

    /// Returns the time at which all that was charged is paid for.
    #[inline]
    pub const fn due(&self) -> Time {
        self.due
    }

    /// Returns the fraction of a nanosecond beyond that, see [`ByteClock::carried`].
    #[inline]
    pub const fn carried(&self) -> u64 {
        self.bytes.carried()
    }

    /// Charges bytes.
    #[inline(always)]
    pub fn charge(&mut self, bytes: u64) {
        self.due += self.bytes.advance(bytes);
    }

    /// Returns the time at which this many more bytes would be paid for.
    pub fn after(mut self, bytes: u64) -> Time {
        self.charge(bytes);
        self.due
    }

    /// Sets the clock back by bytes that were charged and not sent.
    pub fn give_back(&mut self, bytes: u64) {
        self.due = self.due.saturating_sub(self.rate().time_for(bytes));
    }

    /// Lets so much time pass without any pay.
    #[inline(always)]
    pub fn postpone(&mut self, by: Duration) {
        self.due += by;
    }

    /// Forfeits the credit from before `earliest`. Returns the time that is lost.
    #[inline(always)]
    pub fn forfeit(&mut self, earliest: Time) -> Duration {
        if self.due >= earliest {
            return Duration::ZERO;
        }
        let lost = earliest.since(self.due);
        self.due = earliest;
        self.bytes.idle();
        lost
    }

    /// Writes off the debt beyond `latest`. Returns its bytes.
    pub fn write_off(&mut self, latest: Time) -> u64 {
        if self.due <= latest {
            return 0;
        }
        let beyond = self.due.since(latest);
        self.due = latest;
        self.bytes.idle();
        self.rate().bytes_in(beyond)
    }

    /// Changes the rate from `now` on. Debt is paid at the new rate, to the bit. Credit keeps its number of
    /// bits.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.due = match self.due >= now {
            true => now + self.bytes.set_rate(rate, self.due.since(now)),
            false => now.saturating_sub(self.bytes.set_rate_idle(rate, now.since(self.due))),
        };
    }

    /// Changes the rate of what is charged from now on. Debt and credit keep their times.
    pub fn set_next_rate(&mut self, rate: Rate) {
        self.due += self.bytes.set_rate(rate, Duration::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time::from_millis(n)
    }

    #[test]
    fn nothing_is_rounded_away() {
        // 1,000 bytes at 7 Mb/s take 1,142,857 1/7 ns.
        let mut clock = VirtualClock::new(Rate::mbit(7), Time::ZERO);
        (0..7).for_each(|_| clock.charge(1000));
        assert_eq!(clock.due(), ms(8));
        // 3,500 bytes are owed, which take 5 ms at 5.6 Mb/s.
        (0..7).for_each(|_| clock.charge(500));
        clock.set_rate(ms(8), Rate::kbit(5600));
        assert_eq!(clock.due(), ms(13));
        // 8 ms unused at this rate are 5,600 bytes, or 5.6 ms at a byte a microsecond.
        clock.set_rate(ms(21), Rate::mbit(8));
        assert_eq!(clock.due(), Time::from_micros(15_400));
    }

    #[test]
    fn credit_is_forfeited_and_debt_is_written_off() {
        // A byte a microsecond.
        let mut clock = VirtualClock::new(Rate::mbit(8), ms(1));
        assert_eq!(clock.forfeit(ms(4)), Duration::from_millis(3));
        assert_eq!((clock.forfeit(ms(2)), clock.after(500)), (Duration::ZERO, Time::from_micros(4_500)));
        clock.charge(3_000);
        assert_eq!((clock.write_off(ms(7)), clock.write_off(ms(5)), clock.due()), (0, 2_000, ms(5)));
        clock.give_back(1_000);
        clock.postpone(Duration::from_millis(2));
        assert_eq!(clock.due(), ms(6));
    }
}
