//! Rates in bits per second with exact integer conversion. Fractions of nanoseconds or bytes are carried to
//! the next conversion, so nothing is lost over any time.

use crate::base::time::Duration;
use core::fmt;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Bits in a byte times nanoseconds in a second: one byte at one bit per second takes this long.
const BYTE_NS: u64 = 8_000_000_000;

/// A rate in bits per second, never zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Rate(u64);

impl Rate {
    /// Returns a rate of `bps` bits per second. `None` for zero, which would mean "never".
    pub const fn from_bps(bps: u64) -> Option<Rate> {
        if bps == 0 {
            None
        } else {
            Some(Rate(bps))
        }
    }
    /// `n` megabits (10^6) per second. Panics if `n` is zero: for constants and tests.
    pub const fn mbit(n: u64) -> Rate {
        match Rate::from_bps(n * 1_000_000) {
            Some(r) => r,
            None => panic!("a rate of zero"),
        }
    }
    /// `n` kilobits (10^3) per second. Panics if `n` is zero: for constants and tests.
    pub const fn kbit(n: u64) -> Rate {
        match Rate::from_bps(n * 1_000) {
            Some(r) => r,
            None => panic!("a rate of zero"),
        }
    }
    /// Returns the nanoseconds that a byte takes, if they are a whole number.
    pub(crate) const fn whole_ns_per_byte(self) -> Option<u64> {
        if BYTE_NS % self.0 == 0 {
            Some(BYTE_NS / self.0)
        } else {
            None
        }
    }
    /// Returns the bits per second.
    pub const fn bps(self) -> u64 {
        self.0
    }
    /// Returns the time to send `bytes`, rounded down. For deadlines that must not drift use [`ByteClock`].
    pub fn time_for(self, bytes: u64) -> Duration {
        let (t, _) = mul_div(bytes, BYTE_NS, 0, self.0);
        Duration::from_nanos(t)
    }
    /// Returns the bytes sent in `d`, rounded down. For credit that must not drift use [`Earned`].
    pub fn bytes_in(self, d: Duration) -> u64 {
        mul_div(d.as_nanos(), self.0, 0, BYTE_NS).0
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Rate {
    /// Writes the value exactly, in the largest unit that takes at most three decimals: `10Mbit`, `2.5Mbit`,
    /// `7bit`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1_000_000_000, "Gbit"), (1_000_000, "Mbit"), (1_000, "kbit")];
        let fits = units.into_iter().find(|(unit, _)| self.0 >= *unit && self.0 % (unit / 1_000) == 0);
        let Some((unit, name)) = fits else { return write!(f, "{}bit", self.0) };
        let decimals = format_args!("{:03}", self.0 % unit / (unit / 1_000)).to_string();
        let decimals = decimals.trim_end_matches('0');
        let point = if decimals.is_empty() { "" } else { "." };
        write!(f, "{}{point}{decimals}{name}", self.0 / unit)
    }
}

/// Returns `(a * b + rem) / d` and the remainder, saturating. `d` is not 0. The common case stays in 64 bits,
/// where a division costs a few nanoseconds instead of a call.
#[inline]
pub(crate) fn mul_div(a: u64, b: u64, rem: u64, d: u64) -> (u64, u64) {
    if let Some(n) = a.checked_mul(b).and_then(|n| n.checked_add(rem)) {
        return (n / d, n % d);
    }
    mul_div_wide(a, b, rem, d)
}

#[cold]
#[inline(never)]
fn mul_div_wide(a: u64, b: u64, rem: u64, d: u64) -> (u64, u64) {
    let n = a as u128 * b as u128 + rem as u128;
    let d = d as u128;
    (u64::try_from(n / d).unwrap_or(u64::MAX), (n % d) as u64)
}

/// Bytes earned by elapsed time at a rate. The remaining fraction of a byte is carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub struct Earned {
    /// Carried fraction in bits × nanoseconds, below one byte's worth.
    rem: u64,
}

impl Earned {
    /// Returns a value with nothing carried.
    pub const fn new() -> Earned {
        Earned { rem: 0 }
    }
    /// Returns the whole bytes earned in `d` at `rate`, the fraction of earlier calls included.
    pub fn earn(&mut self, rate: Rate, d: Duration) -> u64 {
        let (bytes, rem) = mul_div(d.as_nanos(), rate.bps(), self.rem, BYTE_NS);
        self.rem = rem;
        bytes
    }
}

/// Time taken by bytes at a rate. The remaining fraction of a nanosecond is carried, so a backlogged link's
/// departures stay on rate for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteClock {
    rate: Rate,
    /// Carried fraction: bits × nanoseconds by which the exact end is later than the returned one.
    rem: u64,
}

impl ByteClock {
    /// Returns a clock at `rate` with nothing carried.
    pub const fn new(rate: Rate) -> ByteClock {
        ByteClock { rate, rem: 0 }
    }
    /// Returns the rate of this clock.
    pub const fn rate(&self) -> Rate {
        self.rate
    }
    /// Returns the time that `bytes` more take, the fraction of earlier calls included.
    #[inline]
    pub fn advance(&mut self, bytes: u64) -> Duration {
        let (t, rem) = mul_div(bytes, BYTE_NS, self.rem, self.rate.bps());
        self.rem = rem;
        Duration::from_nanos(t)
    }
    /// Changes the rate from now on. Returns the time at the new rate for the bits that take `left` more at
    /// the old one. The fraction is carried, and nothing is rounded on the way.
    pub fn set_rate(&mut self, rate: Rate, left: Duration) -> Duration {
        let (t, rem) = mul_div(left.as_nanos(), self.rate.bps(), self.rem, rate.bps());
        *self = ByteClock { rate, rem };
        Duration::from_nanos(t)
    }
    /// Changes the rate of a clock whose work ended `ago`, at least a nanosecond before. Returns how long ago
    /// it would have ended if the unused bits since then had been at the new rate, see
    /// [`ByteClock::set_rate`].
    pub fn set_rate_idle(&mut self, rate: Rate, ago: Duration) -> Duration {
        let unused = u128::from(ago.as_nanos()) * u128::from(self.rate.bps()) - u128::from(self.rem);
        let t = unused.div_ceil(rate.bps().into());
        let rem = t * u128::from(rate.bps()) - unused;
        *self = ByteClock { rate, rem: rem as u64 };
        Duration::from_nanos(u64::try_from(t).unwrap_or(u64::MAX))
    }
    /// Returns the carried fraction: bits × nanoseconds by which the exact end is later than the returned
    /// one. Below the rate.
    pub const fn carried(&self) -> u64 {
        self.rem
    }
    /// Restores a fraction that [`ByteClock::carried`] returned at the same rate.
    pub fn carry(&mut self, carried: u64) {
        self.rem = carried;
    }
    /// Forgets the carried fraction, when the link goes idle.
    pub fn idle(&mut self) {
        self.rem = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_full_frame_at_gigabit() {
        // 1500 bytes = 12,000 bits at 1e9 b/s = 12 us.
        assert_eq!(Rate::mbit(1000).time_for(1500), Duration::from_micros(12));
        assert_eq!(Rate::mbit(1000).bytes_in(Duration::from_micros(12)), 1500);
    }

    #[test]
    fn three_bits_per_second_lose_nothing() {
        // One byte at 3 b/s takes 2,666,666,666.67 ns; three bytes exactly 8 s.
        let mut c = ByteClock::new(Rate::from_bps(3).unwrap());
        let t: u64 = (0..3).map(|_| c.advance(1).as_nanos()).sum();
        assert_eq!(t, 8_000_000_000);
    }

    proptest! {
        #[test]
        fn earning_in_pieces_is_earning_at_once(bps in 8_000u64..100_000_000_000,
                                                pieces in prop::collection::vec(0u64..200_000_000, 1..50)) {
            let rate = Rate::from_bps(bps).unwrap();
            let mut e = Earned::new();
            let sum: u64 = pieces.iter().map(|&p| e.earn(rate, Duration::from_nanos(p))).sum();
            let total: u128 = pieces.iter().map(|&p| p as u128).sum();
            prop_assert_eq!(sum as u128, total * bps as u128 / 8_000_000_000);
        }

        #[test]
        fn sending_in_pieces_takes_as_long(bps in 8_000u64..100_000_000_000,
                                           pieces in prop::collection::vec(0u64..70_000, 1..50)) {
            let mut c = ByteClock::new(Rate::from_bps(bps).unwrap());
            let sum: u128 = pieces.iter().map(|&p| c.advance(p).as_nanos() as u128).sum();
            let total: u128 = pieces.iter().map(|&p| p as u128).sum();
            prop_assert_eq!(sum, total * 8_000_000_000 / bps as u128);
        }
    }
}
