//! Distributions of sizes and times.
//!
//! Draws invert the distribution function (Devroye, *Non-Uniform Random Variate Generation*, 1986, §II.2).
//! That needs logarithms and powers, which come from a pinned software library, so that a seed has the same
//! effect on any machine. The packet path has no draws.

use crate::base::rng::Rng;

/// A distribution of whole numbers: bytes, or nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// One value.
    Constant(u64),
    /// Each from `min` to `max`, both included, with the same probability. `min` is at most `max`.
    Uniform {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// Exponential. As the time between arrivals it makes a Poisson process.
    Exponential {
        /// Mean.
        mean: u64,
    },
    /// Pareto. Without limits its mean is `scale` × `shape` / (`shape` - 1) for a shape above 1, and infinite
    /// otherwise.
    Pareto {
        /// Smallest value without limits.
        scale: u64,
        /// Shape (alpha), above 0.
        shape: f64,
        /// Lower limit, to which smaller draws are raised. At least `scale`.
        min: u64,
        /// Upper limit, to which larger draws are lowered. At least `min`.
        max: Option<u64>,
    },
    /// Pareto restricted to two bounds. No draw is moved to a bound.
    BoundedPareto {
        /// The smallest.
        min: u64,
        /// Shape (alpha), above 0.
        shape: f64,
        /// The largest. At least `min`.
        max: u64,
    },
    /// Each of these with the same probability. Never empty.
    Empirical(Vec<u64>),
}

/// Upper limit of exponential and Pareto draws, 2^53: 9 PB, or 104 days in nanoseconds. Up to here every
/// whole number has its own `f64`.
pub const LARGEST: u64 = 1 << 53;

impl Distribution {
    /// Returns a draw, rounded to the nearest whole number.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Distribution::Constant(n) => *n,
            Distribution::Uniform { min, max } => min + rng.below((max - min).saturating_add(1)),
            Distribution::Exponential { mean } => rounded(-libm::log(uniform(rng)) * *mean as f64),
            Distribution::Pareto { scale, shape, min, max } => {
                let n = rounded(libm::pow(uniform(rng), -1.0 / shape) * *scale as f64);
                n.min(max.unwrap_or(LARGEST)).max(*min)
            }
            Distribution::BoundedPareto { min, shape, max } => {
                // The part of the unbounded distribution above `max` is never drawn.
                let beyond = libm::pow(*min as f64 / *max as f64, *shape);
                let share = beyond + uniform(rng) * (1.0 - beyond);
                rounded(libm::pow(share, -1.0 / shape) * *min as f64).clamp(*min, *max)
            }
            Distribution::Empirical(values) => values[rng.below(values.len() as u64) as usize],
        }
    }
}

/// Returns a multiple of 2^-53 above 0 and up to 1, each with the same probability.
fn uniform(rng: &mut Rng) -> f64 {
    ((rng.next_u64() >> 11) + 1) as f64 / LARGEST as f64
}

/// Returns the nearest whole number, at most [`LARGEST`].
fn rounded(x: f64) -> u64 {
    // The cast rounds down. Infinity becomes the largest number.
    ((x + 0.5) as u64).min(LARGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPONENTIAL: Distribution = Distribution::Exponential { mean: 30_000 };

    fn draws(d: &Distribution, seed: u64, n: usize) -> Vec<u64> {
        let mut rng = Rng::new(seed);
        (0..n).map(|_| d.draw(&mut rng)).collect()
    }

    /// Returns the share of draws above `x`.
    fn above(draws: &[u64], x: f64) -> f64 {
        draws.iter().filter(|&&n| n as f64 > x).count() as f64 / draws.len() as f64
    }

    /// Computed with Python's `decimal` at 60 digits from a generator of its own: -ln(u) × mean, and
    /// min × exp(-ln(u) / shape), rounded to the nearest.
    #[test]
    fn draws_of_a_seed_are_those_of_an_exact_computation() {
        let want = [6262, 8746, 69_032, 8782, 50_674, 15_805, 396, 19_421];
        assert_eq!(draws(&EXPONENTIAL, 1, 8), want);
        let gaps = Distribution::Exponential { mean: 10_000_000 };
        let want = [2_675_719, 6_214_542, 4_287_979, 12_250_938, 7_114_529, 2_590_495, 10_869_649, 2_995_319];
        assert_eq!(draws(&gaps, 2, 8), want);
        let pareto = Distribution::Pareto { scale: 10_000, shape: 1.2, min: 10_000, max: None };
        let want = [118_532, 14_357, 11_263, 11_509, 14_759, 62_363, 41_709, 14_804];
        assert_eq!(draws(&pareto, 3, 8), want);
        let clipped = Distribution::Pareto { scale: 10_000, shape: 1.2, min: 12_000, max: Some(50_000) };
        assert_eq!(draws(&clipped, 3, 8), want.map(|n| n.clamp(12_000, 50_000)));
    }

    #[test]
    fn exponential_mean_and_quantiles() {
        let n = 200_000;
        let got = draws(&EXPONENTIAL, 7, n);
        // The standard deviation of the mean is mean / √n = 67: four of them.
        let mean = got.iter().sum::<u64>() as f64 / n as f64;
        assert!((mean - 30_000.0).abs() < 4.0 * 67.1, "{mean}");
        // P(X > x) = exp(-x / mean): a half above the mean times ln 2, 1 % above the mean times ln 100.
        assert!((above(&got, 30_000.0 * core::f64::consts::LN_2) - 0.5).abs() < 0.005);
        assert!((above(&got, 30_000.0 * 4.605_170_186) - 0.01).abs() < 0.001);
    }

    #[test]
    fn pareto_tail() {
        let pareto = Distribution::Pareto { scale: 1000, shape: 1.5, min: 1000, max: Some(100_000) };
        let got = draws(&pareto, 8, 200_000);
        assert!(got.iter().all(|n| (1000..=100_000).contains(n)));
        // P(X > x) = (min / x)^shape: 2^-1.5, 10^-1.5. Draws beyond the largest, 100^-1.5, become the
        // largest.
        assert!((above(&got, 2000.0) - 0.353_553).abs() < 0.005);
        assert!((above(&got, 10_000.0) - 0.031_623).abs() < 0.002);
        let largest = got.iter().filter(|&&n| n == 100_000).count() as f64 / got.len() as f64;
        assert!((largest - 0.001).abs() < 0.0003, "{largest}");
    }

    /// In the bounded form P(X > x) = ((min / x)^a - (min / max)^a) / (1 - (min / max)^a). For a = 1/2 the
    /// mean is √min (√max - √min) / (1 - √(min / max)): 31.6228 × (2236.07 - 31.6228) / 0.985858 = 70,711 for
    /// 1 kB to 5 MB.
    #[test]
    fn a_bounded_tail_is_not_heaped_at_its_end() {
        let got = draws(&Distribution::BoundedPareto { min: 1000, shape: 0.5, max: 5_000_000 }, 8, 200_000);
        assert!(got.iter().all(|n| (1000..=5_000_000).contains(n)));
        // (10^-0.5 - 0.0141421) / 0.985858
        assert!((above(&got, 10_000.0) - 0.306_419).abs() < 0.005);
        // (1000^-0.5 - 0.0141421) / 0.985858
        assert!((above(&got, 1_000_000.0) - 0.017_731).abs() < 0.0015);
        assert!(got.iter().filter(|&&n| n == 5_000_000).count() < 5);
        let mean = got.iter().sum::<u64>() as f64 / got.len() as f64;
        // Its standard deviation is below √(70,711 × 5,000,000 / 3), about 340,000: five times that over
        // √200,000.
        assert!((mean - 70_711.0).abs() < 3_900.0, "{mean}");
    }

    #[test]
    fn nothing_is_drawn_beyond_the_bounds() {
        // A shape this small has most of its mass beyond any number.
        let wild = Distribution::Pareto { scale: 1, shape: 0.001, min: 1, max: None };
        assert!(draws(&wild, 1, 100).iter().all(|&n| (1..=LARGEST).contains(&n)));
        assert!(draws(&wild, 1, 100).contains(&LARGEST));
        let whole = Distribution::Uniform { min: 0, max: u64::MAX };
        assert_eq!(draws(&whole, 1, 10).len(), 10);
        let fixed = Distribution::Pareto { scale: 5, shape: 1.0, min: 5, max: Some(5) };
        assert_eq!(draws(&fixed, 1, 3), [5, 5, 5]);
        let fixed = Distribution::BoundedPareto { min: 5, shape: 1.0, max: 5 };
        assert_eq!(draws(&fixed, 1, 3), [5, 5, 5]);
        assert_eq!(draws(&Distribution::Exponential { mean: 0 }, 1, 2), [0, 0]);
    }

    #[test]
    fn uniform_and_empirical() {
        let got = draws(&Distribution::Uniform { min: 3, max: 5 }, 9, 3000);
        assert!([3, 4, 5].iter().all(|n| (900..1100).contains(&got.iter().filter(|m| *m == n).count())));
        assert!(got.iter().all(|n| (3..=5).contains(n)));
        let got = draws(&Distribution::Empirical(vec![1, 1, 7]), 9, 3000);
        assert!((900..1100).contains(&got.iter().filter(|n| **n == 7).count()));
        assert!(got.iter().all(|n| [1, 7].contains(n)));
        assert_eq!(draws(&Distribution::Constant(4), 1, 2), [4, 4]);
    }
}
