//! Aggregation of several values into one. If some are lower bounds, the result may be one too, or unknown.

use super::measure::{joint, measure, Sample};
use crate::experiment::describe;
use crate::experiment::plan::{Aggregate, Measure};
use crate::result::RunResult;
use weir_core::time::Duration;

/// Measures, and aggregates the samples if the measure asks for it.
pub fn aggregated(how: Option<Aggregate>, m: &Measure, bin: Duration, result: &RunResult) -> Vec<Sample> {
    let samples = measure(m, bin, result);
    let Some(how) = how else { return samples };
    match joint(m, bin, result).filter(|_| how == Aggregate::Sum) {
        Some((sum, n)) => vec![Sample::new(sum, format!("{} of {n}", describe::aggregate(how)))],
        None if samples.is_empty() => samples,
        None => vec![one(how, &samples)],
    }
}

/// Aggregates one or more samples into one.
pub(super) fn one(how: Aggregate, samples: &[Sample]) -> Sample {
    let of = |bound: fn(&Sample) -> f64| {
        let values = samples.iter().map(bound);
        match how {
            Aggregate::Sum => values.sum(),
            Aggregate::Mean => mean(samples, bound),
            Aggregate::Min => values.fold(f64::INFINITY, f64::min),
            Aggregate::Max => values.fold(f64::NEG_INFINITY, f64::max),
            Aggregate::Deviation => deviation(samples),
            Aggregate::Percentile(percent) => percentile(samples, percent, bound),
        }
    };
    let (n, known) = (samples.len(), samples.iter().filter(|s| s.is_known()).count());
    let some = if known < n { format!(", {known} of them known") } else { String::new() };
    let at = format!("{} of {n}{some}", describe::aggregate(how));
    let (value, high) = match how {
        // It may shrink as a value grows, so bounds of the values are none of it.
        Aggregate::Deviation if known < n => (0.0, f64::INFINITY),
        _ => (of(|s| s.value), of(|s| s.high)),
    };
    Sample { high, ..Sample::new(value, at) }
}

/// Returns the smallest value that `percent` percent of the samples' weight do not exceed. At least one
/// sample is needed.
pub(super) fn percentile(samples: &[Sample], percent: u8, of: fn(&Sample) -> f64) -> f64 {
    let mut sorted: Vec<&Sample> = samples.iter().collect();
    sorted.sort_by(|a, b| of(a).total_cmp(&of(b)));
    let all: f64 = sorted.iter().map(|s| s.weight).sum();
    // Sums of weights that are 1 are exact. Sums of times are not, so the rank is lowered by a part in a
    // billion.
    let rank = all * f64::from(percent) / 100.0 * (1.0 - 1e-9);
    let mut seen = 0.0;
    let reached = sorted.iter().find(|s| {
        seen += s.weight;
        seen >= rank
    });
    reached.or(sorted.last()).map_or(f64::NAN, |s| of(s))
}

/// Returns the standard deviation of one or more samples, each as heavy as its weight.
fn deviation(samples: &[Sample]) -> f64 {
    let of = |s: &Sample| s.value;
    let mean = mean(samples, of);
    let weight: f64 = samples.iter().map(|s| s.weight).sum();
    let squares = samples.iter().map(|s| (of(s) - mean).powi(2) * s.weight).sum::<f64>();
    (squares / weight).sqrt()
}

pub(super) fn mean(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> f64 {
    let weight: f64 = samples.iter().map(|s| s.weight).sum();
    samples.iter().map(|s| of(s) * s.weight).sum::<f64>() / weight
}
