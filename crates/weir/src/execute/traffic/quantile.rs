//! Exact quantiles of samples.

use serde::{Deserialize, Serialize};
use weir_core::stats::quantile;

/// Nearest-rank quantiles of a set of samples, in the samples' unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Number of samples.
    pub samples: u64,
    /// Minimum.
    pub min: u64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Maximum.
    pub max: u64,
}

impl Quantiles {
    /// Computes the quantiles of `samples`, which are sorted in place. Returns `None` without samples.
    pub fn of<T: Copy + Ord + Into<u64>>(samples: &mut [T]) -> Option<Quantiles> {
        samples.sort_unstable();
        let of = |ppm| quantile(samples, ppm).map(Into::into);
        Some(Quantiles {
            samples: samples.len() as u64,
            min: of(0)?,
            p50: of(500_000)?,
            p90: of(900_000)?,
            p99: of(990_000)?,
            max: of(1_000_000)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_rank() {
        let mut s: Vec<u32> = (1..=200).rev().collect();
        let q = Quantiles::of(&mut s).unwrap();
        assert_eq!((q.min, q.p50, q.p90, q.p99, q.max, q.samples), (1, 100, 180, 198, 200, 200));
        assert_eq!(Quantiles::of(&mut [7u32]).unwrap().p99, 7);
        assert_eq!(Quantiles::of::<u32>(&mut []), None);
    }
}
