//! One side of a comparison: runs that are equivalent.

use crate::result::metric::{Measured, Metric, Values};
use crate::result::sample;
use crate::result::{Ancestry, FlowResult, RunResult};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Values that several runs found of one metric.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Spread {
    /// Median: the middle value, or the mean of the middle two.
    pub median: f64,
    /// Smallest value.
    pub low: f64,
    /// Largest value.
    pub high: f64,
    /// Number of flows with a known value, over all runs, if some flows lack it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
}

impl Spread {
    /// Returns the share of the flows with such a value for which it is known.
    pub fn share(&self) -> f64 {
        self.measured.map_or(1.0, Measured::share)
    }

    /// Summarises some values; `None` without values.
    pub fn of(values: impl Iterator<Item = f64>) -> Option<Spread> {
        let mut sorted: Vec<f64> = values.collect();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (*sorted.first()?, *sorted.last()?);
        Some(Spread { median: sample::median(&sorted)?, low, high, measured: None })
    }
}

/// Flow, group of flows or class on one side.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Name.
    pub id: String,
    /// Values over the runs: totals of the flows for a group, joint values of the flows for a class.
    pub values: Values<Spread>,
}

/// Writes an object with `id` and each metric, `null` if no run has it. The part of a metric's name after the
/// dot comes before the unit there: `rtt_us.p50` is `rtt_p50_us`.
impl Serialize for Row {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        for (metric, value) in self.values.iter() {
            map.serialize_entry(&flat(metric.name), &value)?;
        }
        map.end()
    }
}

fn flat(name: &str) -> String {
    let Some((object, part)) = name.split_once('.') else { return name.to_string() };
    match object.rsplit_once('_') {
        Some((what, unit)) => format!("{what}_{part}_{unit}"),
        None => format!("{object}_{part}"),
    }
}

/// Side of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// Flows in the order of the plan.
    pub flows: Vec<Row>,
    /// Groups in the order of the plan.
    pub groups: Vec<Row>,
    /// Classes in the gateway's order.
    pub classes: Vec<Row>,
    /// Number of runs.
    pub runs: usize,
}

impl Side {
    /// Builds a side from one or more runs, which must have the same flows.
    pub fn of(runs: &[&RunResult]) -> Result<Side, String> {
        let ids = |r: &RunResult| r.flows.iter().map(|f| f.id.clone()).collect::<Vec<_>>();
        let first = runs.first().ok_or("no run")?;
        if let Some(other) = runs.iter().find(|r| ids(r) != ids(first)) {
            let odd = other.flows.iter().find(|f| !first.flows.iter().any(|g| g.id == f.id));
            let named = odd.map_or(String::new(), |f| format!(": only one has `{}`", f.id));
            return Err(format!("runs of the same world do not have the same flows{named}"));
        }
        let flow = |i: usize| {
            row(
                &first.flows[i].id,
                runs,
                |r| r.flows.get(i..=i).unwrap_or(&[]).iter().collect(),
                Metric::total_of,
            )
        };
        let of_group = |name: &str| {
            row(name, runs, |r| r.flows.iter().filter(|f| f.group() == name).collect(), Metric::total_of)
        };
        let of_class = |name: &str| row(name, runs, |r| flows_below(r, name), Metric::together);
        Ok(Side {
            flows: (0..first.flows.len()).map(flow).collect(),
            groups: first.groups().iter().map(|(name, _)| of_group(name)).collect(),
            classes: first.classes.iter().map(|c| of_class(&c.name)).collect(),
            runs: runs.len(),
        })
    }
}

type Flows<'a> = Vec<&'a FlowResult>;

/// Returns the flows of a class and of the classes below it.
fn flows_below<'a>(run: &'a RunResult, name: &str) -> Flows<'a> {
    let ancestry = Ancestry::of(&run.classes);
    run.flows.iter().filter(|f| ancestry.from(&f.class).any(|class| class == name)).collect()
}

/// Builds a row from the values of some flows of each run, spread over the runs; `total` combines the values
/// of several flows.
fn row<'a>(
    id: &str,
    runs: &[&'a RunResult],
    of: impl Fn(&'a RunResult) -> Flows<'a>,
    total: fn(&Metric<FlowResult>, &[&FlowResult]) -> Option<f64>,
) -> Row {
    let runs: Vec<Flows> = runs.iter().map(|&r| of(r)).collect();
    let spread = |m: &Metric<FlowResult>| {
        let found = Spread::of(runs.iter().filter_map(|flows: &Flows| total(m, flows)))?;
        let measured = runs.iter().map(|flows| m.measured(flows)).fold(Measured::default(), Measured::and);
        Some(Spread { measured: Some(measured).filter(|all| !all.is_all()), ..found })
    };
    Row { id: id.to_string(), values: Values::of(spread) }
}
