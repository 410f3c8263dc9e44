//! Bandwidths in bytes per second, and their maximum filter over rounds.

use weir_core::time::Duration;

/// Age in rounds at which samples are forgotten: a cycle of gains and two rounds more.
const ROUNDS: u64 = 10;
const SECOND: u64 = 1_000_000_000;

/// Returns the rate of `bytes` in `interval` in bytes per second, rounded down. The interval is not zero.
pub(super) fn per_second(bytes: u64, interval: Duration) -> u64 {
    mul_div(bytes, SECOND, interval.as_nanos().max(1))
}

/// Returns the bytes in `d` at `bw` bytes per second, rounded down.
pub(super) fn bytes_in(bw: u64, d: Duration) -> u64 {
    mul_div(bw, d.as_nanos(), SECOND)
}

/// Computes `a * b / d`, saturating.
pub(super) fn mul_div(a: u64, b: u64, d: u64) -> u64 {
    match a.checked_mul(b) {
        Some(n) => n / d,
        None => u64::try_from(u128::from(a) * u128::from(b) / u128::from(d)).unwrap_or(u64::MAX),
    }
}

/// Bandwidth sample, and its round.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    round: u64,
    bw: u64,
}

/// Largest sample of the last rounds, as Linux estimates it (`lib/win_minmax.c`, after K. Nichols). Three
/// samples are kept. The first is the largest. The second is the largest of those at least a quarter of the
/// window later, and the third of those half a window later. When the first is too old, the second takes its
/// place. This may be less than the exact maximum. Time advances only with samples: a sender without data
/// keeps its estimate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxFilter {
    best: [Sample; 3],
}

impl MaxFilter {
    /// Returns the maximum in bytes per second; 0 before the first sample.
    pub(super) fn max(&self) -> u64 {
        self.best[0].bw
    }

    /// Adds a sample of this round. Rounds never go backwards.
    pub(super) fn update(&mut self, round: u64, bw: u64) {
        let new = Sample { round, bw };
        let [first, second, third] = &mut self.best;
        if bw >= first.bw || round - third.round > ROUNDS {
            self.best = [new; 3];
            return;
        }
        if bw >= second.bw {
            (*second, *third) = (new, new);
        } else if bw >= third.bw {
            *third = new;
        }
        let age = round - first.round;
        if age > ROUNDS {
            self.forget_first(new);
        } else if second.round == first.round && age > ROUNDS / 4 {
            (*second, *third) = (new, new);
        } else if third.round == second.round && age > ROUNDS / 2 {
            *third = new;
        }
    }

    /// Moves the other samples up in place of the first one, twice if the second is too old as well.
    fn forget_first(&mut self, new: Sample) {
        for _ in 0..2 {
            if new.round - self.best[0].round > ROUNDS {
                self.best = [self.best[1], self.best[2], new];
            }
        }
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
        // Rounds without a sample forget nothing. The next sample does.
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

    #[test]
    fn after_the_largest_comes_the_largest_of_those_a_quarter_of_the_window_younger() {
        // For 100 in round 0, the second sample is taken from round 3 on and the third from round 6 on.
        let mut f = MaxFilter::default();
        for (round, bw) in [(0, 100), (1, 90), (2, 80), (3, 50), (4, 60), (6, 30), (7, 40), (10, 20)] {
            f.update(round, bw);
            assert_eq!(f.max(), 100, "round {round}");
        }
        // 90 and 80 were never kept: 60 is next, and 40 after it.
        f.update(11, 10);
        assert_eq!(f.max(), 60);
        f.update(14, 10);
        assert_eq!(f.max(), 60);
        f.update(15, 10);
        assert_eq!(f.max(), 40);
    }

    proptest! {
        #[test]
        fn it_is_a_sample_of_the_window_and_no_less_than_the_newest(
            samples in prop::collection::vec((0u64..4, 1u64..1000), 1..200)
        ) {
            let mut f = MaxFilter::default();
            let (mut round, mut all) = (0, Vec::new());
            for (passed, bw) in samples {
                round += passed;
                all.push((round, bw));
                f.update(round, bw);
                let window: Vec<_> = all.iter().filter(|s| s.0 + ROUNDS >= round).map(|s| s.1).collect();
                prop_assert!(window.contains(&f.max()), "{} of {:?}", f.max(), window);
                prop_assert!(f.max() >= bw);
            }
        }
    }
}
