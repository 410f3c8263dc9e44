//! One side of a comparison: runs that stand for the same thing.

use crate::result::{FlowResult, RunResult};
use serde::Serialize;

/// What several runs found of the same value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The middle one; of an even number the mean of the middle two.
    pub median: f64,
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
}

impl Spread {
    /// Of some values; `None` of none.
    pub fn of(values: impl Iterator<Item = f64>) -> Option<Spread> {
        let mut sorted: Vec<f64> = values.collect();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (*sorted.first()?, *sorted.last()?);
        let n = sorted.len();
        Some(Spread { median: (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0, low, high })
    }
}

/// A flow, a group of flows or a class on one side. What no run has is `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// Its name.
    pub id: String,
    /// Goodput: of a group the mean of its flows, of a class the sum.
    pub goodput_bps: Option<Spread>,
    /// Completion time: of a group the mean of those that its flows have.
    pub fct_s: Option<Spread>,
    /// Segments sent again: of a group or class the sum.
    pub retransmits: Option<Spread>,
    /// Retransmission time-outs, likewise.
    pub rtos: Option<Spread>,
    /// Median round-trip time in microseconds: of a group the mean of its flows'.
    pub rtt_p50_us: Option<Spread>,
    /// 99th percentile, likewise.
    pub rtt_p99_us: Option<Spread>,
}

/// One side.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// In the order of the plan.
    pub flows: Vec<Row>,
    /// Likewise.
    pub groups: Vec<Row>,
    /// In the gateway's order.
    pub classes: Vec<Row>,
    /// Runs in it.
    pub runs: usize,
}

impl Side {
    /// Of runs, of which there is one at least. They must have the same flows.
    pub fn of(runs: &[&RunResult]) -> Result<Side, String> {
        let ids = |r: &RunResult| r.flows.iter().map(|f| f.id.clone()).collect::<Vec<_>>();
        let first = runs.first().ok_or("no run")?;
        if let Some(other) = runs.iter().find(|r| ids(r) != ids(first)) {
            let odd = other.flows.iter().find(|f| !first.flows.iter().any(|g| g.id == f.id));
            let named = odd.map_or(String::new(), |f| format!(": only one has `{}`", f.id));
            return Err(format!("runs of the same world do not have the same flows{named}"));
        }
        let flow = |i: usize| {
            row(&first.flows[i].id, runs, |r| r.flows.get(i..=i).unwrap_or(&[]).iter().collect(), mean)
        };
        let of_group =
            |name: &str| row(name, runs, |r| r.flows.iter().filter(|f| f.group() == name).collect(), mean);
        let of_class =
            |name: &str| row(name, runs, |r| r.flows.iter().filter(|f| f.class == name).collect(), sum);
        Ok(Side {
            flows: (0..first.flows.len()).map(flow).collect(),
            groups: first.groups().iter().map(|(name, _)| of_group(name)).collect(),
            classes: first.classes.iter().map(|c| of_class(&c.name)).collect(),
            runs: runs.len(),
        })
    }
}

type Flows<'a> = Vec<&'a FlowResult>;

/// The values of some flows of each run, spread over the runs; `goodput` says how those of several flows are one.
fn row<'a>(
    id: &str,
    runs: &[&'a RunResult],
    of: impl Fn(&'a RunResult) -> Flows<'a>,
    goodput: fn(&[f64]) -> Option<f64>,
) -> Row {
    let runs: Vec<Flows> = runs.iter().map(|&r| of(r)).collect();
    let spread = |how: fn(&[f64]) -> Option<f64>, value: fn(&FlowResult) -> Option<f64>| {
        Spread::of(
            runs.iter().filter_map(|flows| how(&flows.iter().filter_map(|f| value(f)).collect::<Vec<_>>())),
        )
    };
    Row {
        id: id.to_string(),
        goodput_bps: spread(goodput, |f| Some(f.goodput_bps)),
        fct_s: spread(mean, |f| f.fct_s),
        retransmits: spread(sum, |f| Some(f.retransmits as f64)),
        rtos: spread(sum, |f| Some(f.rtos as f64)),
        // 0 says that nothing was measured.
        rtt_p50_us: spread(mean, |f| Some(f.rtt_us.p50 as f64).filter(|&us| us > 0.0)),
        rtt_p99_us: spread(mean, |f| Some(f.rtt_us.p99 as f64).filter(|&us| us > 0.0)),
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn sum(values: &[f64]) -> Option<f64> {
    Some(values.iter().sum())
}
