//! Bandwidths are bytes per second; their filter is a maximum over rounds.

use weir_core::time::Duration;

/// Samples older than this many rounds are forgotten: a cycle of gains and two rounds more.
const ROUNDS: usize = 10;
/// One slot for each round that may still count, the present one included.
const SLOTS: usize = ROUNDS + 1;
const SECOND: u64 = 1_000_000_000;

/// Bytes per second of `bytes` in `interval`, rounded down; the interval is not zero.
pub(super) fn per_second(bytes: u64, interval: Duration) -> u64 {
    mul_div(bytes, SECOND, interval.as_nanos().max(1))
}

/// Bytes in `d` at `bw` bytes per second, rounded down.
pub(super) fn bytes_in(bw: u64, d: Duration) -> u64 {
    mul_div(bw, d.as_nanos(), SECOND)
}

/// `a * b / d`, saturating.
pub(super) fn mul_div(a: u64, b: u64, d: u64) -> u64 {
    match a.checked_mul(b) {
        Some(n) => n / d,
        None => u64::try_from(u128::from(a) * u128::from(b) / u128::from(d)).unwrap_or(u64::MAX),
    }
}

/// The largest sample of the last rounds. Time goes on only with samples: a sender without data keeps
/// what it knew.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxFilter {
    /// Largest sample of each round, by round modulo the number of slots.
    slots: [u64; SLOTS],
    newest: u64,
    max: u64,
}

impl MaxFilter {
    /// Bytes per second; 0 before the first sample.
    pub(super) fn max(&self) -> u64 {
        self.max
    }

    /// A sample of this round, which is never before an earlier one.
    pub(super) fn update(&mut self, round: u64, bw: u64) {
        let passed = (round - self.newest).min(SLOTS as u64);
        for r in round + 1 - passed..=round {
            self.slots[(r % SLOTS as u64) as usize] = 0;
        }
        self.newest = round;
        let slot = &mut self.slots[(round % SLOTS as u64) as usize];
        *slot = bw.max(*slot);
        self.max = if passed == 0 { self.max.max(bw) } else { self.slots.iter().copied().max().unwrap_or(0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_maximum_is_remembered_for_ten_rounds() {
        let mut f = MaxFilter::default();
        f.update(3, 100);
        for round in 4..=13 {
            f.update(round, 50);
            assert_eq!(f.max(), 100, "round {round}");
        }
        f.update(14, 50);
        assert_eq!(f.max(), 50);
        // Rounds without a sample do not make it forget, the next sample does.
        f.update(100, 7);
        assert_eq!(f.max(), 7);
    }

    #[test]
    fn conversions() {
        // 1448 bytes in 11,584 ns are 125 MB/s, and back.
        assert_eq!(per_second(1448, Duration::from_nanos(11_584)), 125_000_000);
        assert_eq!(bytes_in(125_000_000, Duration::from_millis(20)), 2_500_000);
        assert_eq!(bytes_in(u64::MAX, Duration::from_secs(1)), u64::MAX);
        assert_eq!(bytes_in(u64::MAX, Duration::MAX), u64::MAX);
    }

    proptest! {
        #[test]
        fn it_is_the_maximum_of_what_counts(samples in prop::collection::vec((0u64..4, 1u64..1000), 1..200)) {
            let mut f = MaxFilter::default();
            let (mut round, mut all) = (0, Vec::new());
            for (passed, bw) in samples {
                round += passed;
                all.push((round, bw));
                f.update(round, bw);
                let want = all.iter().filter(|s| s.0 + 10 >= round).map(|s| s.1).max();
                prop_assert_eq!(Some(f.max()), want);
            }
        }
    }
}
