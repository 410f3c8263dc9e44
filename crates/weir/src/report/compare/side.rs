//! One side of a comparison: runs that are equivalent.

use super::apart::{self, Apart};
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
    /// Flows in the order of the plan, without the groups that are compared as groups only.
    pub flows: Vec<Row>,
    /// Groups in the order of the plan.
    pub groups: Vec<Row>,
    /// Classes in the gateway's order.
    pub classes: Vec<Row>,
    /// Number of runs.
    pub runs: usize,
}

impl Side {
    /// Builds a side from one or more runs with these `groups`. The runs must have the same flows in all
    /// groups but those that are compared `apart`.
    pub fn of(runs: &[&RunResult], groups: &[&str], apart: &[Apart]) -> Result<Side, String> {
        let paired = |f: &&FlowResult| apart.iter().all(|a| a.group != f.group());
        let flows: Vec<Vec<&FlowResult>> =
            runs.iter().map(|r| r.flows.iter().filter(paired).collect()).collect();
        let first = flows.first().ok_or("no run")?;
        let same = |a: &[&FlowResult], b: &[&FlowResult]| a.iter().map(|f| &f.id).eq(b.iter().map(|f| &f.id));
        if let Some(other) = flows.iter().find(|flows| !same(flows, first)) {
            let without = |a: &[&FlowResult], b: &[&FlowResult]| {
                a.iter().find(|f| !b.iter().any(|g| g.id == f.id)).map(|f| f.id.clone())
            };
            let odd = without(other, first).or_else(|| without(first, other));
            let named = odd.map_or(String::new(), |id| format!(": only one has `{id}`"));
            return Err(format!("runs of the same world do not have the same flows{named}"));
        }
        let flow = |i: usize| {
            let of: Vec<Flows> = flows.iter().map(|flows| vec![flows[i]]).collect();
            row(&first[i].id, &of, Metric::total_of)
        };
        let of_group = |&name: &&str| {
            let of: Vec<Flows> = runs.iter().map(|r| apart::of_group(r, name).collect()).collect();
            row(name, &of, Metric::total_of)
        };
        let of_class = |name: &str| {
            let of: Vec<Flows> = runs.iter().map(|r| flows_below(r, name)).collect();
            row(name, &of, Metric::together)
        };
        let classes = runs.first().map_or(&[][..], |r| &r.classes);
        Ok(Side {
            flows: (0..first.len()).map(flow).collect(),
            groups: groups.iter().map(of_group).collect(),
            classes: classes.iter().map(|c| of_class(&c.name)).collect(),
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
fn row(id: &str, runs: &[Flows], total: fn(&Metric<FlowResult>, &[&FlowResult]) -> Option<f64>) -> Row {
    let spread = |m: &Metric<FlowResult>| {
        let found = Spread::of(runs.iter().filter_map(|flows: &Flows| total(m, flows)))?;
        let measured = runs.iter().map(|flows| m.measured(flows)).fold(Measured::default(), Measured::and);
        Some(Spread { measured: Some(measured).filter(|all| !all.is_all()), ..found })
    };
    Row { id: id.to_string(), values: Values::of(spread) }
}
