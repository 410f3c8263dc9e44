//! Statistics of several turns.

use serde::Serialize;
use weir::result::{sample, GatewayResult};

/// Median and range of several values.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Spread {
    /// Median; the mean of the two middle values if their number is even.
    pub median: f64,
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
    /// All values in the order of the turns.
    pub values: Vec<f64>,
}

impl Spread {
    /// Computes the statistics of `values`.
    pub fn of(values: Vec<f64>) -> Spread {
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let or_none = |v: Option<f64>| v.unwrap_or(f64::NAN);
        let (min, max) = (sorted.first().copied(), sorted.last().copied());
        Spread { median: or_none(sample::median(&sorted)), min: or_none(min), max: or_none(max), values }
    }

    /// Computes the statistics of the ratios, turn by turn.
    pub fn ratio(of: &[f64], to: &[f64]) -> Spread {
        Spread::of(of.iter().zip(to).map(|(a, b)| a / b).collect())
    }
}

impl std::fmt::Display for Spread {
    /// Formats as `0.95 (0.90 to 1.02)`, with the requested precision.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let p = f.precision().unwrap_or(2);
        let text = format!("{:.p$} ({:.p$} to {:.p$})", self.median, self.min, self.max);
        write!(f, "{text:<0$}", f.width().unwrap_or(0))
    }
}

/// Returns the number of frames that a gateway dropped, or that its engine had no room to receive.
pub(super) fn lost_frames(gateway: &GatewayResult) -> u64 {
    let steering = gateway.steering.unwrap_or_default();
    gateway.frames.dropped.values().sum::<u64>() + steering.ring_full + steering.failed
}

/// Returns the table's word for a bound that is kept or broken.
pub(super) fn verdict(holds: bool) -> &'static str {
    match holds {
        true => "holds",
        false => "DOES NOT HOLD",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle() {
        let s = Spread::of(vec![3.0, 1.0, 2.0]);
        assert_eq!((s.median, s.min, s.max, format!("{s:.1}")), (2.0, 1.0, 3.0, "2.0 (1.0 to 3.0)".into()));
        assert_eq!(Spread::of(vec![1.0, 2.0]).median, 1.5);
        assert_eq!(Spread::ratio(&[2.0, 6.0, 1.0], &[1.0, 2.0, 1.0]).median, 2.0);
        assert!(Spread::of(vec![]).median.is_nan());
    }
}
