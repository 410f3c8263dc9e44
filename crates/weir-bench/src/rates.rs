//! Errors of high rates, without an emulator and only as far as two processors can carry them.

use super::figures::{verdict, Spread};
use super::{goodput, measure, options, plan, shape, write, Common};
use serde::Serialize;
use weir::execute::lab::Outcome;
use weir::experiment::plan::Path;
use weir_core::gateway::Direction;
use weir_core::rate::Rate;

const SECONDS: u64 = 6;
/// Start of the averages.
const FROM_S: f64 = 1.0;
const FLOW_RATE: Rate = Rate::mbit(500);
const CASES: [u32; 2] = [4, 16];
/// Bound on the error of a flow's average rate, in percent.
const BOUND: f64 = 1.0;

#[derive(Debug, Serialize)]
struct Row {
    flows: u32,
    unshaped_bps: Spread,
    shaped_bps: Spread,
    /// Error of the mean over all flows, in percent.
    mean_error: Spread,
    /// Error of the flow that is furthest from its rate, in percent.
    worst_error: Spread,
    engine_share: Spread,
}

pub(super) fn run(common: &Common) -> Result<(), String> {
    let seconds = common.seconds.unwrap_or(SECONDS);
    println!(
        "uploads of {FLOW_RATE} each over a bridge, {seconds} s, averages from {FROM_S} s on; {} turns\n\
         must hold: every average within {BOUND} % where the same hosts carry more than that unshaped\n",
        common.runs
    );
    println!(
        "{:>5}  {:>13}  {:>11}  {:<24}  {:<24}  {:>6}",
        "flows", "unshaped Gb/s", "shaped Gb/s", "mean error %", "worst flow %", "share"
    );
    let mut rows = Vec::new();
    for flows in CASES {
        let row = row(common, seconds, flows)?;
        let carried = row.unshaped_bps.median > f64::from(flows) * FLOW_RATE.bps() as f64;
        let holds = row.worst_error.values.iter().all(|e| e.abs() <= BOUND);
        println!(
            "{flows:>5}  {:>13.2}  {:>11.2}  {:<24.2}  {:<24.2}  {:>5.0}%  {}",
            row.unshaped_bps.median / 1e9,
            row.shaped_bps.median / 1e9,
            row.mean_error,
            row.worst_error,
            row.engine_share.median * 100.0,
            if carried { verdict(holds) } else { "more than the hosts carry" }
        );
        rows.push(row);
    }
    write(common, &rows)
}

fn row(common: &Common, seconds: u64, flows: u32) -> Result<Row, String> {
    let [mut unshaped, mut shaped, mut mean, mut worst, mut share] = [const { Vec::new() }; 5];
    for _ in 0..common.runs {
        let (plain, bps) = once(seconds, flows, None)?;
        drop(plain);
        unshaped.push(bps);
        let (outcome, bps) = once(seconds, flows, Some(FLOW_RATE))?;
        shaped.push(bps);
        let errors = errors(&outcome);
        mean.push(errors.iter().sum::<f64>() / errors.len().max(1) as f64);
        worst.push(errors.into_iter().max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(f64::NAN));
        share.extend(outcome.result.gateway.as_ref().map(|g| g.cpu_s / outcome.result.duration_s));
    }
    Ok(Row {
        flows,
        unshaped_bps: Spread::of(unshaped),
        shaped_bps: Spread::of(shaped),
        mean_error: Spread::of(mean),
        worst_error: Spread::of(worst),
        engine_share: Spread::of(share),
    })
}

fn once(seconds: u64, flows: u32, rate: Option<Rate>) -> Result<(Outcome, f64), String> {
    let mut plan = plan("rates", Path::default(), seconds, flows);
    shape(&mut plan, rate, None);
    let outcome = measure(&plan, &options()?)?;
    let bps = goodput(&outcome, &plan, Direction::Out);
    Ok((outcome, bps))
}

/// Returns the error of each flow's average rate in percent, from [`FROM_S`] on.
fn errors(outcome: &Outcome) -> Vec<f64> {
    let of = |f: &weir::result::FlowResult| {
        let whole = f.intervals.iter().filter(|i| i.t_s >= FROM_S);
        let (bytes, seconds) = whole.fold((0, 0.0), |(b, s), i| (b + i.bytes, s + i.len_s));
        (bytes as f64 * 8.0 / f64::max(seconds, f64::MIN_POSITIVE) / FLOW_RATE.bps() as f64 - 1.0) * 100.0
    };
    outcome.result.flows.iter().map(of).collect()
}
