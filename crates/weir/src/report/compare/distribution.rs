//! Distributions of the values of a group's flows, on both sides. A mean hides the slow flows.

use super::apart;
use crate::result::metric::{of_several, Found, Tables};
use crate::result::unit::Unit;
use crate::result::RunResult;
use serde::Serialize;
use weir_core::stats::quantile;

/// Fewest flows for quantiles; a list is more informative for fewer.
const FEWEST: usize = 5;

/// Quantiles over the flows of all runs of a side, as nearest ranks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// Number of known values; a flow counts once for each run.
    pub n: usize,
    /// Number of existing values. Those beyond `n` have a known lower bound, and are in the quantiles.
    pub of: usize,
    /// Quantiles that are lower bounds, because their flows had not ended: `p99`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at_least: Vec<&'static str>,
    /// Smallest value.
    pub min: f64,
    /// Value that 10 % do not exceed.
    pub p10: f64,
    /// Median.
    pub p50: f64,
    /// Value that 90 % do not exceed.
    pub p90: f64,
    /// Value that 99 % do not exceed.
    pub p99: f64,
    /// Largest value.
    pub max: f64,
}

/// Metric of the flows of a group, on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Distributed {
    /// The group.
    pub group: String,
    /// The metric: `fct_s`.
    pub metric: &'static str,
    /// Heading in tables.
    #[serde(skip)]
    pub heading: &'static str,
    /// Unit of the metric.
    #[serde(skip)]
    pub unit: Unit,
    /// Sides in the order of their names; `null` where no flow has a value.
    pub sides: [Option<Distribution>; 2],
}

impl Distribution {
    /// Returns the quantiles of some values; `None` if none is known.
    pub(super) fn of(found: &[Found]) -> Option<Distribution> {
        let n = found.iter().filter(|f| matches!(f, Found::Known(_))).count();
        let sorted = |of: fn(Found) -> f64| {
            let mut all: Vec<f64> = found.iter().map(|f| of(*f)).collect();
            all.sort_by(f64::total_cmp);
            all
        };
        let (low, high) = (sorted(Found::low), sorted(Found::high));
        let of = |values: &[f64]| {
            let [p10, p50, p90, p99] = [100_000, 500_000, 900_000, 990_000].map(|at| quantile(values, at));
            Some([*values.first()?, p10?, p50?, p90?, p99?, *values.last()?])
        };
        let (values, most) = (of(&low)?, of(&high)?);
        let bounds =
            Distribution::NAMES.iter().zip(values.iter().zip(most)).filter(|(_, (low, high))| **low < *high);
        let at_least = bounds.map(|(name, _)| *name).collect();
        let [min, p10, p50, p90, p99, max] = values;
        (n > 0).then_some(Distribution { n, of: found.len(), at_least, min, p10, p50, p90, p99, max })
    }

    const NAMES: [&str; 6] = ["min", "p10", "p50", "p90", "p99", "max"];

    /// Returns the quantiles in the order of tables, each with a flag for a lower bound.
    pub fn quantiles(&self) -> [(f64, bool); 6] {
        let values = [self.min, self.p10, self.p50, self.p90, self.p99, self.max];
        std::array::from_fn(|i| (values[i], self.at_least.contains(&Distribution::NAMES[i])))
    }
}

/// Returns the distributions of all metrics of large groups, in the order of the plan.
pub(super) fn distributions(groups: &[&str], sides: [&[&RunResult]; 2]) -> Vec<Distributed> {
    let mut out = Vec::new();
    for group in groups.iter().filter(|group| is_large(group, sides)) {
        for (m, heading) in of_several(Tables::Comparisons).filter_map(|m| Some((m, m.column?))) {
            let values = |runs: &[&RunResult]| {
                let flows = runs.iter().flat_map(|r| &r.flows).filter(|f| f.group() == *group);
                Distribution::of(&flows.filter_map(|f| m.found(f)).collect::<Vec<_>>())
            };
            let sides = sides.map(values);
            if sides.iter().flatten().next().is_some() {
                let (group, heading) = (group.to_string(), heading.text);
                out.push(Distributed { group, metric: m.name, heading, unit: m.unit, sides });
            }
        }
    }
    out
}

/// Returns whether a run has enough flows of a group for quantiles.
fn is_large(group: &str, sides: [&[&RunResult]; 2]) -> bool {
    sides.into_iter().flatten().any(|run| apart::of_group(run, group).count() >= FEWEST)
}
