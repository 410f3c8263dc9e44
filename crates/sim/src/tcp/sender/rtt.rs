//! Round-trip time and retransmission time-out (RFC 6298).
//!
//! SRTT is kept in eighths and RTTVAR in quarters of a nanosecond, so the RFC's gains of 1/8 and 1/4 lose
//! less than a nanosecond.

use crate::tcp::config::MinRto;
use weir_core::time::Duration;

/// Time-out before the first sample (RFC 6298 (2.1)).
const INITIAL_RTO: Duration = Duration::from_secs(1);
/// G of RFC 6298, unless a coarser clock is set: this clock is exact.
const CLOCK: Duration = Duration::from_nanos(1);
/// Time-out before the first sample if the SYN was retransmitted (RFC 6298 (5.7)).
const FALLBACK_RTO: Duration = Duration::from_secs(3);

/// RTT estimation and the retransmission time-out of one sender.
#[derive(Clone, Copy, Debug)]
pub struct RttEstimator {
    /// Smallest time-out, or smallest variance in it.
    min: Duration,
    /// SRTT in 1/8 ns.
    srtt8: u64,
    /// RTTVAR in 1/4 ns.
    rttvar4: u64,
    /// Smallest sample; [`Duration::MAX`] before the first one.
    min_rtt: Duration,
    /// Number of times that the time-out was doubled.
    doublings: u32,
    /// True if the SYN or its ACK was retransmitted.
    fell_back: bool,
    /// True if the minimum applies to the variance, not to the whole.
    min_variance: bool,
    /// Granularity of the clock, G of RFC 6298, above zero.
    clock: Duration,
}

impl RttEstimator {
    /// Largest time-out of Linux (TCP_RTO_MAX); RFC 6298 (2.5) asks for 60 s at least.
    pub const MAX_RTO: Duration = Duration::from_secs(120);

    /// Creates an estimator without a sample. Its clock is exact to a nanosecond.
    pub const fn new(min_rto: MinRto) -> RttEstimator {
        let (min, min_variance) = match min_rto {
            MinRto::Total(min) => (min, false),
            MinRto::Variance(min) => (min, true),
        };
        let (srtt8, rttvar4, min_rtt, doublings) = (0, 0, Duration::MAX, 0);
        let (fell_back, clock) = (false, CLOCK);
        RttEstimator { min, srtt8, rttvar4, min_rtt, doublings, fell_back, min_variance, clock }
    }

    /// Replaces the exact clock by one that counts whole ticks, as that of BSD counted 500 ms: samples and
    /// time-outs are rounded up to it.
    pub const fn with_clock(mut self, clock: Duration) -> RttEstimator {
        self.clock = clock;
        self
    }

    /// Rounds a time up to ticks of the clock. The exact clock, which most have, needs no division.
    fn ticks(&self, time: Duration) -> Duration {
        if self.clock <= CLOCK {
            return time;
        }
        self.clock.saturating_mul(time.as_nanos().div_ceil(self.clock.as_nanos()))
    }

    /// Takes a sample of a segment that was sent only once (RFC 6298 §3). Ends the backoff (§5).
    pub fn sample(&mut self, rtt: Duration) {
        let r = self.ticks(rtt).as_nanos().min(u64::MAX >> 4);
        if self.has_sample() {
            let delta = (self.srtt8 / 8).abs_diff(r);
            self.rttvar4 = self.rttvar4 - self.rttvar4 / 4 + delta;
            self.srtt8 = self.srtt8 - self.srtt8 / 8 + r;
        } else {
            self.srtt8 = r * 8;
            self.rttvar4 = r * 2;
        }
        self.min_rtt = self.min_rtt.min(rtt);
        self.doublings = 0;
    }

    /// Returns whether there has been a sample.
    pub fn has_sample(&self) -> bool {
        self.min_rtt != Duration::MAX
    }

    /// Returns the smoothed round-trip time; zero before the first sample.
    pub const fn srtt(&self) -> Duration {
        Duration::from_nanos(self.srtt8 / 8)
    }

    /// Returns the smallest round-trip time ever sampled; zero before the first sample.
    pub fn min_rtt(&self) -> Duration {
        if self.has_sample() {
            self.min_rtt
        } else {
            Duration::ZERO
        }
    }

    /// Returns the retransmission time-out, backed off.
    pub fn rto(&self) -> Duration {
        if self.doublings == 0 {
            return self.base_rto().min(RttEstimator::MAX_RTO);
        }
        let factor = 1u64.checked_shl(self.doublings).unwrap_or(u64::MAX);
        self.base_rto().saturating_mul(factor).min(RttEstimator::MAX_RTO)
    }

    /// Doubles the time-out, up to the largest (RFC 6298 (5.5)).
    pub fn backoff(&mut self) {
        if self.rto() < RttEstimator::MAX_RTO {
            self.doublings += 1;
        }
    }

    /// Resets the backoff when the peer's window has opened. Otherwise only a sample does (RFC 6298 (5.7)).
    pub fn reset_backoff(&mut self) {
        self.doublings = 0;
    }

    /// Records that the SYN or its ACK was retransmitted. Without a sample, data then starts with 3 s (RFC
    /// 6298 (5.7)).
    pub fn fall_back(&mut self) {
        self.fell_back = true;
        self.doublings = 0;
    }

    /// Computes the time-out without backoff (RFC 6298 (2.2) to (2.5)).
    fn base_rto(&self) -> Duration {
        if !self.has_sample() {
            return if self.fell_back { FALLBACK_RTO } else { INITIAL_RTO };
        }
        let variance = Duration::from_nanos(self.rttvar4).max(self.clock);
        self.ticks(if self.min_variance {
            self.srtt() + variance.max(self.min)
        } else {
            (self.srtt() + variance).max(self.min)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    impl RttEstimator {
        /// Returns the variation of the round-trip time; zero before the first sample.
        fn rttvar(&self) -> Duration {
            Duration::from_nanos(self.rttvar4 / 4)
        }
    }

    fn plain() -> RttEstimator {
        RttEstimator::new(MinRto::Total(Duration::ZERO))
    }

    #[test]
    fn one_second_before_the_first_sample() {
        // RFC 6298 (2.1), and (5.7) if the SYN was lost.
        let mut rtt = plain();
        assert_eq!(
            (rtt.rto(), rtt.srtt(), rtt.min_rtt()),
            (Duration::from_secs(1), Duration::ZERO, Duration::ZERO)
        );
        rtt.backoff();
        assert_eq!(rtt.rto(), Duration::from_secs(2));
        rtt.fall_back();
        assert_eq!(rtt.rto(), Duration::from_secs(3));
        rtt.sample(Duration::from_millis(10));
        assert_eq!(rtt.rto(), Duration::from_millis(30));
    }

    #[test]
    fn the_rfcs_gains() {
        // RFC 6298 (2.2): SRTT = R, RTTVAR = R / 2, RTO = R + 4 × R / 2.
        let mut rtt = plain();
        rtt.sample(Duration::from_millis(100));
        assert_eq!(rtt.srtt(), Duration::from_millis(100));
        assert_eq!(rtt.rttvar(), Duration::from_millis(50));
        assert_eq!(rtt.rto(), Duration::from_millis(300));
        // (2.3): RTTVAR = 3/4 × 50 + 1/4 × |100 - 200| = 62.5, by the old SRTT. SRTT = 7/8 × 100 + 1/8 × 200
        // = 112.5.
        rtt.sample(Duration::from_millis(200));
        assert_eq!(rtt.rttvar(), Duration::from_micros(62_500));
        assert_eq!(rtt.srtt(), Duration::from_micros(112_500));
        assert_eq!(rtt.rto(), Duration::from_micros(362_500));
        assert_eq!(rtt.min_rtt(), Duration::from_millis(100));
    }

    #[test]
    fn the_minimum_of_the_rfc_and_of_linux() {
        // SRTT 20 ms, 4 × RTTVAR 40 ms.
        for (min_rto, rto) in [
            (MinRto::Total(Duration::from_secs(1)), 1000),
            (MinRto::Total(Duration::from_millis(60)), 60),
            (MinRto::Total(Duration::from_millis(50)), 60),
            (MinRto::Variance(Duration::from_millis(200)), 220),
            (MinRto::Variance(Duration::from_millis(30)), 60),
        ] {
            let mut rtt = RttEstimator::new(min_rto);
            rtt.sample(Duration::from_millis(20));
            assert_eq!(rtt.rto(), Duration::from_millis(rto), "{min_rto:?}");
        }
    }

    #[test]
    fn backoff_doubles_up_to_the_largest() {
        let mut rtt = plain();
        rtt.sample(Duration::from_millis(100));
        let mut seen = Vec::new();
        for _ in 0..12 {
            rtt.backoff();
            seen.push(rtt.rto().as_nanos() / MS);
        }
        assert_eq!(
            seen,
            [600, 1200, 2400, 4800, 9600, 19_200, 38_400, 76_800, 120_000, 120_000, 120_000, 120_000]
        );
        rtt.reset_backoff();
        assert_eq!(rtt.rto(), Duration::from_millis(300));
        rtt.backoff();
        rtt.sample(Duration::from_millis(100)); // RTTVAR = 3/4 × 50
        assert_eq!(rtt.rto(), Duration::from_millis(250));
    }

    proptest! {
        /// The estimates differ by less than a few nanoseconds from the RFC's recursion in exact fractions.
        #[test]
        fn close_to_exact_arithmetic(samples in proptest::collection::vec(1u64..10_000_000_000, 1..60)) {
            let mut rtt = plain();
            let (mut srtt, mut var) = (0f64, 0f64);
            for (n, &r) in samples.iter().enumerate() {
                rtt.sample(Duration::from_nanos(r));
                let r = r as f64;
                if n == 0 {
                    (srtt, var) = (r, r / 2.0);
                } else {
                    var = 0.75 * var + 0.25 * (srtt - r).abs();
                    srtt = 0.875 * srtt + 0.125 * r;
                }
                prop_assert!((rtt.srtt().as_nanos() as f64 - srtt).abs() < 10.0);
                prop_assert!((rtt.rttvar().as_nanos() as f64 - var).abs() < 10.0);
            }
        }
    }

    /// 20 ms are a tick of 500 ms, and a time-out has two: SRTT and, for the variance, G (RFC 6298 (2.2)).
    /// BSD's smallest time-out was as many.
    #[test]
    fn a_coarse_clock_counts_whole_ticks() {
        let coarse = RttEstimator::new(MinRto::Total(Duration::from_millis(200)));
        let mut rtt = coarse.with_clock(Duration::from_millis(500));
        for _ in 0..100 {
            rtt.sample(Duration::from_millis(20));
        }
        assert_eq!((rtt.srtt(), rtt.rto()), (Duration::from_millis(500), Duration::from_secs(1)));
        rtt.sample(Duration::from_millis(501));
        assert_eq!(rtt.rto().as_nanos() % (500 * MS), 0);
        assert_eq!(rtt.min_rtt(), Duration::from_millis(20));
    }
}
