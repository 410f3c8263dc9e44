//! Counters of the packets of a class that ACKs cannot slow: datagrams, other packets that are not TCP, and
//! TCP that cannot be controlled. The hooks count them, the gateway charges them to the class's rate, and a
//! hook drops those beyond the rate if the class is policed.

use super::due::{charge, served, FRACTION};
use crate::base::rate::Rate;
use crate::base::time::{Duration, Time};
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// TCP has one of this many parts of a class's rate, whatever else comes.
pub(crate) const PART: u64 = 10;

/// Counts of a class since its hooks began, and the rate at which packets may pass. Counts only go up. It is
/// one line of memory that hooks and gateway share.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Tally {
    /// Packets that passed; of a giant one, its segments.
    packets: AtomicU64,
    /// Bytes of these packets from their IP headers on.
    bytes: AtomicU64,
    /// Packets that were dropped.
    dropped: AtomicU64,
    /// Their bytes.
    dropped_bytes: AtomicU64,
    /// Time until which the rate is used up by what has passed, in nanoseconds of the hooks' clock.
    due: AtomicU64,
    /// Nanoseconds per byte in units of 2^-20; 0: nothing is dropped.
    per_byte: AtomicU64,
    /// Largest distance of `due` ahead of now at which a packet passes, in nanoseconds.
    burst: AtomicU64,
    /// Bytes that each packet costs beside its own: may be negative.
    overhead: AtomicI64,
}

/// A [`Tally`] as it was at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// See [`Tally`].
    pub packets: u64,
    /// See [`Tally`].
    pub bytes: u64,
    /// See [`Tally`].
    pub dropped: u64,
    /// See [`Tally`].
    pub dropped_bytes: u64,
}

impl Tally {
    /// Counts `packets` that passed, of `bytes` together, without a charge.
    pub fn count(&self, packets: u64, bytes: u64) {
        self.packets.fetch_add(packets, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// Returns whether packets of this many bytes in all, which come at once, may pass at `now`. They do
    /// while what has passed is not ahead of the rate by more than the burst, however long they are
    /// themselves. Where TCP has a part (`PART`) of the rate, the others have the rest.
    pub fn passes(&self, packets: u64, bytes: u64, now: Time, beside_tcp: bool) -> bool {
        if !self.admits(packets, bytes, now, beside_tcp) {
            self.count_dropped(packets, bytes);
            return false;
        }
        self.count(packets, bytes);
        true
    }

    /// Counts `packets` that were dropped, of `bytes` together.
    pub(super) fn count_dropped(&self, packets: u64, bytes: u64) {
        self.dropped.fetch_add(packets, Relaxed);
        self.dropped_bytes.fetch_add(bytes, Relaxed);
    }

    /// As [`Tally::passes`], of packets that are counted elsewhere.
    pub(super) fn admits(&self, packets: u64, bytes: u64, now: Time, beside_tcp: bool) -> bool {
        let per_byte = self.per_byte.load(Relaxed);
        // A part less of the rate makes each byte take as much longer.
        let per_byte = if beside_tcp { per_byte + per_byte / (PART - 1) } else { per_byte };
        per_byte == 0 || self.is_within(packets, bytes, per_byte, now.as_nanos())
    }

    fn is_within(&self, packets: u64, bytes: u64, per_byte: u64, now: u64) -> bool {
        let overhead = self.overhead.load(Relaxed).wrapping_mul(packets as i64);
        let cost = (bytes as i64).wrapping_add(overhead).max(0) as u64;
        if self.due.load(Relaxed).saturating_sub(now) > self.burst.load(Relaxed) {
            return false;
        }
        charge(&self.due, served(cost, per_byte), now);
        true
    }

    /// From now on what exceeds `rate` by more than what it takes `burst` for is dropped, in bytes with so
    /// many more per packet; `None`: nothing is.
    pub fn police(&self, rate: Option<Rate>, burst: Duration, overhead: i64) {
        let per_byte = rate.map_or(0, |rate| {
            let exact = (8_000_000_000u128 << FRACTION) / u128::from(rate.bps());
            exact.clamp(1, 1 << 47) as u64 // 65,535 bytes of it fit 64 bits
        });
        self.overhead.store(overhead, Relaxed);
        self.burst.store(burst.as_nanos(), Relaxed);
        self.per_byte.store(per_byte, Relaxed);
    }

    /// Returns what has passed, and what was dropped.
    pub fn counted(&self) -> Counted {
        Counted {
            packets: self.packets.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            dropped: self.dropped.load(Relaxed),
            dropped_bytes: self.dropped_bytes.load(Relaxed),
        }
    }
}

impl Counted {
    /// Returns the difference to an earlier count.
    pub fn since(self, earlier: Counted) -> Counted {
        Counted {
            packets: self.packets.wrapping_sub(earlier.packets),
            bytes: self.bytes.wrapping_sub(earlier.bytes),
            dropped: self.dropped.wrapping_sub(earlier.dropped),
            dropped_bytes: self.dropped_bytes.wrapping_sub(earlier.dropped_bytes),
        }
    }
}

const _: () = assert!(core::mem::size_of::<Tally>() == 64);

#[cfg(test)]
mod tests {
    use super::*;

    const BURST: Duration = Duration::from_millis(20);

    #[test]
    fn a_bucket_holds_20_ms_of_its_rate_and_fills_at_it() {
        let tally = Tally::default();
        tally.police(Some(Rate::mbit(8)), BURST, 0); // a byte a microsecond
        let at = |us: u64| Time::from_micros(1_000_000 + us);
        // 20 ms are 20,000 bytes: a packet passes until what has passed is beyond that.
        let passed = (0..30).filter(|_| tally.passes(1, 1_000, at(0), false)).count();
        assert_eq!(passed, 21);
        // A millisecond later there is room for the next, and not for two.
        assert!(tally.passes(1, 1_000, at(1_000), false) && !tally.passes(1, 1_000, at(1_999), false));
        let all = Counted { packets: 22, bytes: 22_000, dropped: 10, dropped_bytes: 10_000 };
        assert_eq!(tally.counted(), all);
        // Whatever was saved up in a second, it is a bucket.
        let passed = (0..100).filter(|_| tally.passes(1, 1_000, at(1_002_000), false)).count();
        assert_eq!(passed, 21);
    }

    #[test]
    fn what_a_packet_costs_is_more_or_less_than_its_bytes() {
        for (overhead, most) in [(-28, 29), (38, 27)] {
            let tally = Tally::default();
            tally.police(Some(Rate::mbit(8)), BURST, overhead);
            // 20,000 / (728 - 28) = 28.6, 20,000 / (728 + 38) = 26.1.
            let passed = (0..100).filter(|_| tally.passes(1, 728, Time::from_secs(1), false)).count();
            assert_eq!(passed, most);
        }
    }

    #[test]
    fn without_a_rate_everything_passes() {
        let tally = Tally::default();
        tally.police(Some(Rate::kbit(8)), BURST, 0);
        tally.police(None, BURST, 0);
        assert!((0..1000).all(|_| tally.passes(2, 3_000, Time::ZERO, false)));
        assert_eq!((tally.counted().packets, tally.counted().bytes), (2_000, 3_000_000));
    }

    #[test]
    fn the_slowest_and_the_fastest_rate_count_right() {
        for (rate, bytes, nanos) in
            [(Rate::kbit(8), 65_535, 65_535_000_000), (Rate::mbit(100_000), 1_250, 100)]
        {
            let tally = Tally::default();
            tally.police(Some(rate), BURST, 0);
            assert!(tally.passes(1, bytes, Time::from_secs(1), false));
            let due = tally.due.load(Relaxed) - 1_000_000_000;
            assert!(due.abs_diff(nanos) <= nanos / 1_000_000 + 1, "{due}");
        }
    }
}
