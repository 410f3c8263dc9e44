//! Measures and expectations, evaluated over a result. Everything about rates over time is computed
//! from the bins of received bytes in `series`, so that any beginning, interval or window can be asked
//! for afterwards.

mod bins;
mod measure;

pub use measure::{measure, Sample};

use crate::experiment::describe;
use crate::experiment::plan::{Aggregate, Expect, Of, Op, Plan, Target, Tolerance};
use crate::result::{ExpectResult, RunResult, Status};
use weir_core::time::Duration;

/// Evaluates every expectation of a plan.
pub fn evaluate(plan: &Plan, result: &RunResult) -> Vec<ExpectResult> {
    plan.expects.iter().map(|e| check(e, plan.bin, result)).collect()
}

/// Evaluates the expectations into `result.expects`, unless the run was interrupted; one that does not
/// hold makes it a failed one.
pub fn conclude(plan: &Plan, result: &mut RunResult) {
    if result.status == Status::Interrupted {
        return;
    }
    result.expects = evaluate(plan, result);
    if result.expects.iter().any(|e| !e.ok) {
        result.status = Status::Failed;
    }
}

/// Evaluates one expectation: it holds if there is something to measure and every value is right.
pub fn check(e: &Expect, bin: Duration, result: &RunResult) -> ExpectResult {
    let what = describe::expectation(e);
    let Some(e) = &absolute(e, bin, result) else {
        let at = "nothing to compare with".to_string();
        return ExpectResult { what, found: None, bound: 0.0, ok: false, at };
    };
    let samples = aggregated(e.aggregate, measure(&e.measure, bin, result));
    let judged = samples.into_iter().map(|s| judge(e, s));
    let worst = judged.min_by(|a, b| a.margin.total_cmp(&b.margin));
    match worst {
        Some(j) => ExpectResult { what, found: Some(j.found), bound: j.bound, ok: j.margin >= 0.0, at: j.at },
        None => {
            let bound = match e.target {
                Target::Value(v) => v,
                Target::FlowRate => 0.0,
            };
            ExpectResult { what, found: None, bound, ok: false, at: "nothing to measure".to_string() }
        }
    }
}

/// The same expectation with a target that is no part of something else. `None` if there is nothing that it could be a part of.
fn absolute(e: &Expect, bin: Duration, result: &RunResult) -> Option<Expect> {
    let (Some(of), Target::Value(part)) = (&e.of, e.target) else { return Some(e.clone()) };
    let samples = match of {
        Of::Measure(of) => measure(of, bin, result),
        Of::Baseline(name) => {
            result.baselines.get(name).map_or(Vec::new(), |of| measure(&e.measure, bin, of))
        }
    };
    let samples = aggregated(e.aggregate, samples);
    let target = Target::Value(part * mean(&samples));
    (!samples.is_empty()).then(|| Expect { target, of: None, ..e.clone() })
}

fn aggregated(how: Option<Aggregate>, samples: Vec<Sample>) -> Vec<Sample> {
    let Some(how) = how else { return samples };
    if samples.is_empty() {
        return samples;
    }
    let values = samples.iter().map(|s| s.value);
    let n = samples.len() as f64;
    let value = match how {
        Aggregate::Sum => values.sum(),
        Aggregate::Mean => mean(&samples),
        Aggregate::Min => values.fold(f64::INFINITY, f64::min),
        Aggregate::Max => values.fold(f64::NEG_INFINITY, f64::max),
        Aggregate::Percentile(percent) => percentile(&samples, percent),
    };
    let name = describe::aggregate(how);
    vec![Sample::new(value, format!("{name} of {n}"))]
}

/// The smallest value that so many percent of the samples' weight do not exceed. There is one at least.
fn percentile(samples: &[Sample], percent: u8) -> f64 {
    let mut sorted: Vec<&Sample> = samples.iter().collect();
    sorted.sort_by(|a, b| a.value.total_cmp(&b.value));
    let all: f64 = sorted.iter().map(|s| s.weight).sum();
    // Of weights that are 1 the sums are exact; those of times are not, and a rank may be missed by a part in a billion.
    let rank = all * f64::from(percent) / 100.0 * (1.0 - 1e-9);
    let mut seen = 0.0;
    let reached = sorted.iter().find(|s| {
        seen += s.weight;
        seen >= rank
    });
    reached.or(sorted.last()).map_or(f64::NAN, |s| s.value)
}

fn mean(samples: &[Sample]) -> f64 {
    let weight: f64 = samples.iter().map(|s| s.weight).sum();
    samples.iter().map(|s| s.value * s.weight).sum::<f64>() / weight
}

/// A value against its bound.
struct Judged {
    found: f64,
    bound: f64,
    at: String,
    /// How far on the right side, as a fraction of the target where it has one; negative is wrong.
    margin: f64,
}

fn judge(e: &Expect, s: Sample) -> Judged {
    let target = match (e.target, s.flow_rate) {
        (Target::Value(v), _) => v,
        (Target::FlowRate, Some(bps)) => bps as f64,
        (Target::FlowRate, None) => {
            // A flow without a setting cannot keep to it.
            let at = format!("{}: the gateway sets no rate for it", s.at);
            return Judged { found: s.value, bound: 0.0, at, margin: f64::NEG_INFINITY };
        }
    };
    let slack = match e.tolerance {
        Tolerance::Absolute(a) => a,
        Tolerance::Relative(r) => r * target.abs(),
    };
    let (low, high) = (target - slack, target + slack);
    let (below, above) = (s.value - low, high - s.value);
    let (margin, bound) = match e.op {
        Op::AtMost => (above, high),
        Op::AtLeast => (below, low),
        Op::Within if below < above => (below, low),
        Op::Within => (above, high),
    };
    let scale = if target == 0.0 { 1.0 } else { target.abs() };
    let margin = if margin.is_nan() { f64::NEG_INFINITY } else { margin / scale };
    Judged { found: s.value, bound, at: s.at, margin }
}

#[cfg(test)]
mod tests;
