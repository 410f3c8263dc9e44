//! Evaluation of measures and expectations on a result. Rates over time are computed from the bins of
//! received bytes in `series`. So a check may ask for any beginning, interval or window.

mod aggregate;
mod bins;
mod measure;

pub use aggregate::aggregated;
pub use measure::{measure, Sample};

use crate::experiment::describe;
use crate::experiment::plan::{Expect, Of, Op, Plan, ReferenceRow, Target, Tolerance};
use crate::result::{ExpectResult, ReferenceResult, RunResult, Status};
use weir_core::time::Duration;

/// Evaluates every expectation of a plan.
pub fn evaluate(plan: &Plan, result: &RunResult) -> Vec<ExpectResult> {
    plan.expects.iter().map(|e| check(e, plan.bin, result)).collect()
}

/// Measures the counterparts of a paper's values.
pub fn reference(plan: &Plan, result: &RunResult) -> Vec<ReferenceResult> {
    let rows = plan.reference.iter().flat_map(|reference| &reference.rows);
    let row = |row: &ReferenceRow| {
        let samples = measure(&row.measure, plan.bin, result);
        let at_least = samples.iter().any(|s| !s.is_known());
        // A bound of 0 says nothing.
        let values = || samples.iter().filter(|s| s.is_known() || s.value > 0.0).map(|s| s.value);
        let (low, high) = (values().reduce(f64::min), values().reduce(f64::max));
        ReferenceResult { name: row.name.clone(), paper: row.paper.clone(), low, high, at_least }
    };
    rows.map(row).collect()
}

/// Evaluates the expectations into `result.expects`, and the counterparts of a paper's values, unless the run
/// was interrupted. A failed expectation makes the run a failed one.
pub fn conclude(plan: &Plan, result: &mut RunResult) {
    if result.status == Status::Interrupted {
        return;
    }
    result.reference = reference(plan, result);
    result.expects = evaluate(plan, result);
    if result.expects.iter().any(|e| !e.ok) {
        result.status = Status::Failed;
    }
}

/// Evaluates one expectation. It holds if there is something to measure and every value is known to be right.
pub fn check(e: &Expect, bin: Duration, result: &RunResult) -> ExpectResult {
    let what = describe::expectation(e);
    let failed = |bound, at: &str| ExpectResult {
        what: what.clone(),
        found: None,
        bound,
        ok: false,
        at_least: false,
        at: at.to_string(),
        basis: e.basis,
    };
    let e = &match absolute(e, bin, result) {
        Ok(e) => e,
        Err(why) => return failed(0.0, why),
    };
    let judged = aggregated(e.aggregate, &e.measure, bin, result).into_iter().map(|s| judge(e, s));
    let worst = judged.min_by(|a, b| a.margin.total_cmp(&b.margin));
    match worst {
        Some(j) => ExpectResult {
            what,
            found: Some(j.found),
            bound: j.bound,
            ok: j.margin >= 0.0,
            at_least: j.at_least,
            at: j.at,
            basis: e.basis,
        },
        None => {
            let bound = match e.target {
                Target::Value(v) => v,
                Target::FlowRate => 0.0,
            };
            failed(bound, "nothing to measure")
        }
    }
}

/// Replaces a relative target by its absolute value. Errors say why the target has no reference value.
fn absolute(e: &Expect, bin: Duration, result: &RunResult) -> Result<Expect, &'static str> {
    let (Some(of), Target::Value(part)) = (&e.of, e.target) else { return Ok(e.clone()) };
    let samples = match of {
        Of::Measure(of) => aggregated(e.aggregate, of, bin, result),
        Of::Baseline(name) => {
            result.baselines.get(name).map_or(Vec::new(), |of| aggregated(e.aggregate, &e.measure, bin, of))
        }
    };
    if samples.is_empty() {
        return Err("nothing to compare with");
    }
    // A value above a part of a lower bound may still be below the same part of the value.
    if e.op != Op::AtMost && samples.iter().any(|s| !s.is_known()) {
        return Err("what it is compared with is not known");
    }
    let target = part * aggregate::mean(&samples, |s| s.value);
    if e.op == Op::AtLeast && target == 0.0 {
        return Err("what it is compared with is 0, so that anything would do");
    }
    Ok(Expect { target: Target::Value(target), of: None, ..e.clone() })
}

/// Value judged against its bound.
struct Judged {
    found: f64,
    bound: f64,
    at: String,
    /// Flag: only a lower bound is known.
    at_least: bool,
    /// Distance inside the bound, as a fraction of the target where it has one; negative is wrong.
    margin: f64,
}

fn judge(e: &Expect, s: Sample) -> Judged {
    let target = match (e.target, s.flow_rate) {
        (Target::Value(v), _) => v,
        (Target::FlowRate, Some(bps)) => bps as f64,
        (Target::FlowRate, None) => {
            // A flow without a set rate cannot keep to it.
            let at = format!("{}: the gateway sets no rate for it", s.at);
            return Judged { found: s.value, bound: 0.0, at, at_least: false, margin: f64::NEG_INFINITY };
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
        Op::Within if below < above && s.is_known() => (below, low),
        Op::Within => (above, high),
    };
    let scale = if target == 0.0 { 1.0 } else { target.abs() };
    let at_least = !s.is_known();
    let margin = match margin {
        m if m.is_nan() => f64::NEG_INFINITY,
        // A lower bound below the limit leaves the outcome open. It ranks above a value that is known to be
        // wrong.
        m if at_least && m >= 0.0 && e.op != Op::AtLeast && s.high > high => -f64::MIN_POSITIVE,
        m => m / scale,
    };
    Judged { found: s.value, bound, at: s.at, at_least, margin }
}

#[cfg(test)]
mod tests;
