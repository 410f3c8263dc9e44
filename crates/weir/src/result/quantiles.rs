//! Quantiles of results, computed by [`weir_core::stats::nearest_rank`].

use serde::{Deserialize, Serialize};

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
