//! Quantiles of results, computed by [`weir_core::stats::nearest_rank`].

use serde::{Deserialize, Serialize};
use weir_core::stats::Histogram;

/// Two quantiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quantiles {
    /// The median.
    pub p50: u64,
    /// The 99th percentile.
    pub p99: u64,
}

/// Two quantiles and the maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuantilesMax {
    /// The median.
    pub p50: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// Largest value.
    pub max: u64,
}

impl QuantilesMax {
    /// Returns those of times in nanoseconds, in microseconds. `None` without times.
    pub fn of_nanos(times: &Histogram) -> Option<QuantilesMax> {
        let us = |ns: u64| ns / 1000;
        (times.count() > 0).then(|| QuantilesMax {
            p50: us(times.p50()),
            p99: us(times.p99()),
            max: us(times.max()),
        })
    }
}

/// Upper bounds of three quantiles; `None` where a value that is not known yet leaves none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Most {
    /// The median's.
    pub p50: Option<u64>,
    /// The 90th percentile's.
    pub p90: Option<u64>,
    /// The 99th percentile's.
    pub p99: Option<u64>,
}

/// Three quantiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// The median.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 99th percentile.
    pub p99: u64,
}
