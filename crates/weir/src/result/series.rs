//! Values over time.

use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use weir_core::time::Duration;

/// Values over time: equally long columns, the first of them time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Time of each row.
    #[serde(serialize_with = "numbers")]
    pub t_s: Vec<f64>,
    /// The other columns by name. `received_bytes` of a flow: payload received from `t_s` until the
    /// next row, at the bin length of the plan; the simulator leaves bins outside the flow's life out.
    #[serde(flatten)]
    pub columns: BTreeMap<String, Column>,
}

/// A column of a series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Column(#[serde(serialize_with = "numbers")] pub Vec<f64>);

/// Name of the column that expectations about goodput are computed from.
pub const RECEIVED: &str = "received_bytes";

impl Series {
    /// The series of bytes received in bins of length `bin`, beginning with bin 0 at the start of the run.
    pub fn received(bin: Duration, bytes: &[u64]) -> Series {
        Series::received_from(bin, 0, bytes)
    }

    /// As [`Series::received`], beginning with bin `first`.
    pub fn received_from(bin: Duration, first: usize, bytes: &[u64]) -> Series {
        let t = |i: usize| bin.saturating_mul(i as u64).as_secs_f64();
        Series {
            t_s: (first..first + bytes.len()).map(t).collect(),
            columns: BTreeMap::from([(
                RECEIVED.to_string(),
                Column(bytes.iter().map(|&b| b as f64).collect()),
            )]),
        }
    }
}

/// Whole numbers are written as such: `12`, not `12.0`. Readers take both.
fn numbers<S: Serializer>(values: &[f64], s: S) -> Result<S::Ok, S::Error> {
    // 2^53: up to here every whole number has its own f64.
    let whole = |v: f64| v.fract() == 0.0 && v.abs() <= 9_007_199_254_740_992.0;
    if values.iter().all(|&v| whole(v)) {
        s.collect_seq(values.iter().map(|&v| v as i64))
    } else {
        s.collect_seq(values)
    }
}
