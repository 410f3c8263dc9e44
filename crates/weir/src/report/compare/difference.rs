//! Other differences between runs: congestion control, kernel, settings of TCP. A comparison of runs that
//! differ in one of these measures that difference, whatever it was meant to measure.

use crate::result::{Backend, RunResult};
use std::collections::BTreeSet;

/// Run, with the name of its file.
pub(super) type Named<'a> = (&'a str, &'a RunResult);

/// Lists all differences between runs with the same settings of a sweep. Each run is compared with the first
/// one that has the value in question. Congestion control is compared between worlds too; kernel and settings
/// are compared within a world.
pub(super) fn differences(runs: &[Named]) -> Vec<String> {
    let mut out: Vec<String> = runs.split_first().map_or(Vec::new(), |(first, rest)| {
        rest.iter().flat_map(|run| congestion_controls(first, run)).collect()
    });
    for world in [Backend::Lab, Backend::Sim] {
        let same: Vec<Named> = runs.iter().filter(|(_, r)| r.world == world).copied().collect();
        let Some((first, rest)) = same.split_first() else { continue };
        rest.iter().for_each(|run| out.extend(kernel(first, run).into_iter().chain(settings(first, run))));
    }
    let mut seen = BTreeSet::new();
    out.retain(|said| seen.insert(said.clone()));
    out
}

/// Formats a difference: `what: THIS in FILE, THAT in FILE`.
fn says(what: &str, a: (&str, &str), b: (&str, &str)) -> String {
    let shown = |v: &str| if v.is_empty() { "not set".to_string() } else { v.to_string() };
    format!("{what}: {} in {}, {} in {}", shown(a.1), a.0, shown(b.1), b.0)
}

/// Returns the first flow of each group whose congestion control differs.
fn congestion_controls((a, of_a): &Named, (b, of_b): &Named) -> Vec<String> {
    let mut out = Vec::new();
    for (group, flows) in of_a.groups() {
        let pairs = flows.iter().filter_map(|f| Some((f, of_b.flows.iter().find(|g| g.id == f.id)?)));
        if let Some((f, g)) = pairs.into_iter().find(|(f, g)| f.cc != g.cc) {
            out.push(says(&format!("the congestion control of {group}"), (a, &f.cc), (b, &g.cc)));
        }
    }
    out
}

fn kernel((a, of_a): &Named, (b, of_b): &Named) -> Option<String> {
    let (ours, theirs) = (&of_a.made_by.kernel, &of_b.made_by.kernel);
    (ours != theirs).then(|| says("the kernel", (a, ours), (b, theirs)))
}

/// Returns the settings that both runs report with different values. A result without settings yields none.
fn settings((a, of_a): &Named, (b, of_b): &Named) -> Vec<String> {
    let (ours, theirs) = (&of_a.made_by.settings, &of_b.made_by.settings);
    if ours.is_empty() || theirs.is_empty() {
        return Vec::new();
    }
    let keys: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    let differs = |key: &String| {
        let [x, y] = [ours, theirs].map(|of| of.get(key).map_or("", String::as_str));
        (x != y).then(|| says(key, (a, x), (b, y)))
    };
    keys.into_iter().filter_map(differs).collect()
}
