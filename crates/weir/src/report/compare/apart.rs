//! Groups whose flows have no counterparts: their flows are drawn, and the runs have other seeds, or other
//! flows of them.

use crate::result::{FlowResult, RunResult};
use serde::Serialize;

/// Group of flows that is compared as a group only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Apart {
    /// Name of the group.
    pub group: String,
    /// Fewest and most flows of a run, on each side.
    pub flows: [[usize; 2]; 2],
    /// Flag: the runs have different seeds. Otherwise how many flows began depends on the run.
    pub seeds: bool,
}

/// Returns the flows of a run that belong to a group.
pub(super) fn of_group<'a>(run: &'a RunResult, group: &'a str) -> impl Iterator<Item = &'a FlowResult> {
    run.flows.iter().filter(move |flow| flow.group() == group)
}

/// Returns the groups of drawn flows that are not the same in all runs of both sides.
pub(super) fn groups(names: &[&str], sides: [&[&RunResult]; 2]) -> Vec<Apart> {
    let runs = || sides.into_iter().flatten().copied();
    let Some(first) = runs().next() else { return Vec::new() };
    let seeds = runs().any(|run| run.seed != first.seed);
    let apart = |&name: &&str| {
        let drawn = runs().any(|run| run.drawn.iter().any(|group| group == name));
        let ids = |run| of_group(run, name).map(|flow| flow.id.as_str());
        drawn && (seeds || runs().any(|run| !ids(run).eq(ids(first))))
    };
    let counted = |&name: &&str| {
        let counts = |runs: &[&RunResult]| -> Vec<usize> {
            runs.iter().map(|run| of_group(run, name).count()).collect()
        };
        let flows = sides.map(|runs| {
            let all = counts(runs);
            [all.iter().min(), all.iter().max()].map(|n| n.copied().unwrap_or_default())
        });
        Apart { group: name.to_string(), flows, seeds }
    };
    names.iter().filter(|name| apart(name)).map(counted).collect()
}
