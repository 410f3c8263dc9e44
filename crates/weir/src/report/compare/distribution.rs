//! Distributions of the values of a group's flows, on both sides. A mean hides which flows wait.

use crate::result::metric::{of_several, Tables};
use crate::result::unit::Unit;
use crate::result::RunResult;
use serde::Serialize;
use weir_core::stats::quantile;

/// Of fewer flows a list says more than quantiles.
const FEWEST: usize = 5;

/// Quantiles over the flows of all runs of a side, as nearest ranks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// Flows, of each run anew, that have a value.
    pub n: usize,
    /// The smallest value.
    pub min: f64,
    /// The value that 10 % do not exceed.
    pub p10: f64,
    /// The median.
    pub p50: f64,
    /// The value that 90 % do not exceed.
    pub p90: f64,
    /// The value that 99 % do not exceed.
    pub p99: f64,
    /// The largest value.
    pub max: f64,
}

/// A metric of the flows of a group, on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Distributed {
    /// The group.
    pub group: String,
    /// The metric: `fct_s`.
    pub metric: &'static str,
    /// What tables call it.
    #[serde(skip)]
    pub heading: &'static str,
    /// Its unit.
    #[serde(skip)]
    pub unit: Unit,
    /// The sides in the order of their names; `null` where no flow has a value.
    pub sides: [Option<Distribution>; 2],
}

impl Distribution {
    /// Of some values; `None` of none.
    fn of(mut values: Vec<f64>) -> Option<Distribution> {
        values.sort_by(f64::total_cmp);
        let at = |millionths| quantile(&values, millionths);
        Some(Distribution {
            n: values.len(),
            min: *values.first()?,
            p10: at(100_000)?,
            p50: at(500_000)?,
            p90: at(900_000)?,
            p99: at(990_000)?,
            max: *values.last()?,
        })
    }
}

/// Every metric of the groups that have flows enough, in the order of the plan.
pub(super) fn distributions(sides: [&[&RunResult]; 2]) -> Vec<Distributed> {
    let mut out = Vec::new();
    for group in large(sides[0]) {
        for (m, heading) in of_several(Tables::Comparisons).filter_map(|m| Some((m, m.column?))) {
            let values = |runs: &[&RunResult]| {
                let flows = runs.iter().flat_map(|r| &r.flows).filter(|f| f.group() == group.as_str());
                Distribution::of(flows.filter_map(|f| m.of(f)).collect())
            };
            let sides = sides.map(values);
            if sides.iter().flatten().next().is_some() {
                let (group, heading) = (group.clone(), heading.text);
                out.push(Distributed { group, metric: m.name, heading, unit: m.unit, sides });
            }
        }
    }
    out
}

/// The groups with flows enough for quantiles; both sides have the same.
fn large(runs: &[&RunResult]) -> Vec<String> {
    let groups = runs.first().map_or(Vec::new(), |r| r.groups());
    groups.into_iter().filter(|(_, f)| f.len() >= FEWEST).map(|(name, _)| name.to_string()).collect()
}
