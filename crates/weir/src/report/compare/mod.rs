//! Comparison of results of one experiment: side by side, and against the distance that it allows.
//!
//! There are two sides. If there are runs of both worlds, the simulator's are compared with the lab's. With
//! runs of one world only, the first file is one side, and all further files are the other. A side with
//! several runs has their median, and their range is shown. Groups of flows are judged by the mean of their
//! flows. The runs of sweeps are compared setting by setting. Flows that are drawn have a counterpart in runs
//! of the same seed only: of other runs their groups are compared.

mod apart;
#[cfg(test)]
mod damaged_tests;
mod difference;
mod distribution;
mod side;
#[cfg(test)]
mod tests;

pub use apart::Apart;
pub use distribution::{Distributed, Distribution};
pub use side::{Row, Side, Spread};

use crate::result::metric::Measured;
use crate::result::{describe, group_names, Backend, Parity, RunResult, Settings};
use difference::Named;
use serde::Serialize;
use std::collections::BTreeMap;

/// Tolerance for rounding: a value exactly at its bound is inside.
const ROUNDING: f64 = 1e-9;

/// Most differences named in an error.
const MOST_DIFFERENCES: usize = 6;

/// Runs of a file, under its name.
#[derive(Clone, Debug)]
pub struct ResultFile {
    /// Name of the file.
    pub name: String,
    /// Runs in the file.
    pub runs: Vec<RunResult>,
}

/// Results side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// See [`crate::result::SCHEMA`].
    pub schema: u32,
    /// Name of the experiment.
    pub experiment: String,
    /// Names of the sides: `lab` and `sim`, or `A` and `B`. The second is compared with the first.
    pub names: [String; 2],
    /// Flag: the versions of the experiment file differ.
    pub edited: bool,
    /// Runs that are not compared, with the reason: they were interrupted, or could not be made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Other differences: congestion control, kernel, settings of TCP. Empty unless these were allowed.
    pub differences: Vec<String>,
    /// Bounds of the judgement.
    pub bounds: Bounds,
    /// Comparisons, one for each setting of a sweep.
    pub settings: Vec<Compared>,
    /// Values that are further apart than parity allows.
    pub outside: Vec<Outside>,
}

/// Allowed distances between the sides, as fractions; `null` is not judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Bounds {
    /// Bound of the goodput of each group, as the mean of its flows.
    pub goodput: Option<f64>,
    /// Bound of the completion times, as the mean of each group.
    pub fct: Option<f64>,
}

impl Bounds {
    /// Returns the bound with this name.
    pub fn of(&self, judged: &str) -> Option<f64> {
        match judged {
            "goodput" => self.goodput,
            "fct" => self.fct,
            _ => None,
        }
    }
}

/// Comparison of runs with the same settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Settings made by the sweep.
    pub settings: Settings,
    /// Both sides, flow by flow, without the groups in `apart`.
    pub flows: Vec<[Row; 2]>,
    /// Groups whose flows are not the same in all runs. They are compared as groups only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub apart: Vec<Apart>,
    /// Groups of flows: means, and sums of counts.
    pub groups: Vec<[Row; 2]>,
    /// Classes of the gateway: goodput together.
    pub classes: Vec<[Row; 2]>,
    /// Distributions of the values of flows, for groups of five flows and more.
    pub distributions: Vec<Distributed>,
    /// Runs on each side.
    pub runs: [usize; 2],
}

/// Value that is further apart than parity allows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outside {
    /// Settings made by the sweep.
    pub settings: Settings,
    /// The group of flows.
    pub group: String,
    /// `goodput` or `fct`.
    pub what: &'static str,
    /// Difference as a fraction of the first side. `null` if only one side has a value, if the first is zero,
    /// or if the known share of the flows differs.
    pub off: Option<f64>,
    /// Numbers of flows with a known value on each side, if these make the sides incomparable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<[Measured; 2]>,
    /// Allowed difference.
    pub bound: f64,
}

/// Compares results. `bounds` replaces the bounds that the experiment declares. Runs that differ in
/// congestion control, kernel or settings of TCP are refused unless `differing` allows them. Errors say which
/// files do not go together, and why.
pub fn compare(given: &[ResultFile], bounds: Bounds, differing: bool) -> Result<Comparison, String> {
    let (given, left_out) = finished(given);
    let all: Vec<(&str, &RunResult)> =
        given.iter().flat_map(|g| g.runs.iter().map(move |r| (g.name.as_str(), r))).collect();
    if let (true, Some(first)) = (all.is_empty(), left_out.first()) {
        return Err(format!("{first}, there is nothing to compare"));
    }
    let Some(&(_, first)) = all.first() else { return Err("no runs to compare".to_string()) };
    all.iter().try_for_each(|&(name, run)| fits(name, run, &all[0]))?;
    let (names, sides) = sides(&given);
    let declared: Option<Parity> = all.iter().find_map(|(_, r)| r.parity);
    let bounds = Bounds {
        goodput: bounds.goodput.or(declared.map(|p| p.goodput)),
        fct: bounds.fct.or(declared.map(|p| p.fct)),
    };
    let mut out = Comparison {
        schema: crate::result::SCHEMA,
        experiment: first.experiment.clone(),
        names,
        edited: all.iter().any(|(_, r)| r.made_by.config_sha256 != first.made_by.config_sha256),
        differences: differences(&all),
        left_out,
        bounds,
        settings: Vec::new(),
        outside: Vec::new(),
    };
    if !differing && !out.differences.is_empty() {
        return Err(refused(&out.differences));
    }
    for (settings, [a, b]) in by_settings(&sides) {
        if a.is_empty() || b.is_empty() {
            let why = alone(&out.names, &settings, a.is_empty());
            // A run left out on one side has no counterpart on the other.
            if out.left_out.is_empty() {
                return Err(why);
            }
            out.left_out.push(why);
            continue;
        }
        let compared = Compared::of(settings, &a, &b)?;
        out.outside.extend(compared.outside(&bounds));
        out.settings.push(compared);
    }
    match out.settings.is_empty() {
        true => Err(format!("there is nothing to compare: {}", out.left_out.join("; "))),
        false => Ok(out),
    }
}

/// Returns the files with their completed runs, and descriptions of the other runs.
fn finished(given: &[ResultFile]) -> (Vec<ResultFile>, Vec<String>) {
    let mut left_out = Vec::new();
    let mut whole = |name: &str, n: usize, run: &RunResult| {
        let why = match (&run.error, run.status) {
            (Some(error), _) => format!("could not be made: {error}"),
            (None, crate::result::Status::Interrupted) => "was interrupted".to_string(),
            _ => return true,
        };
        left_out.push(format!("{name}: run {}, seed {}, {why}", n + 1, run.seed));
        false
    };
    let file = |file: &ResultFile| {
        let runs = file.runs.iter().enumerate().filter(|(n, run)| whole(&file.name, *n, run));
        ResultFile { name: file.name.clone(), runs: runs.map(|(_, run)| run.clone()).collect() }
    };
    (given.iter().map(file).collect(), left_out)
}

/// Lists the differences of the runs of each setting of a sweep besides that setting.
fn differences(all: &[Named]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut seen: Vec<&Settings> = Vec::new();
    for (_, run) in all {
        if seen.contains(&&run.settings) {
            continue;
        }
        seen.push(&run.settings);
        let same: Vec<Named> = all.iter().filter(|(_, r)| r.settings == run.settings).copied().collect();
        let found = difference::differences(&same);
        out.extend(found.into_iter().filter(|said| !out.contains(said)).collect::<Vec<_>>());
    }
    out
}

fn refused(differences: &[String]) -> String {
    let more = differences.len().saturating_sub(MOST_DIFFERENCES);
    let mut lines: Vec<String> = vec!["the runs were not made under the same conditions".into()];
    lines.extend(differences.iter().take(MOST_DIFFERENCES).map(|said| format!("  {said}")));
    lines.extend((more > 0).then(|| format!("  and {more} more")));
    lines.push("--allow-differences compares them all the same".into());
    lines.join("\n")
}

/// Checks that `run` can be compared with the first one.
fn fits(name: &str, run: &RunResult, (first, of): &(&str, &RunResult)) -> Result<(), String> {
    if run.experiment != of.experiment {
        let (a, b) = (&of.experiment, &run.experiment);
        return Err(format!("{name} is of another experiment, \"{b}\", than {first}, \"{a}\""));
    }
    Ok(())
}

/// Returns the two sides and their names; the second side is compared with the first.
fn sides(given: &[ResultFile]) -> ([String; 2], [Vec<&RunResult>; 2]) {
    let of = |world| given.iter().flat_map(|g| &g.runs).filter(|r| r.world == world).collect::<Vec<_>>();
    let (lab, sim) = (of(Backend::Lab), of(Backend::Sim));
    if !lab.is_empty() && !sim.is_empty() {
        return (["lab", "sim"].map(String::from), [lab, sim]);
    }
    let first = given.first().map_or(Vec::new(), |g| g.runs.iter().collect());
    let rest = given.iter().skip(1).flat_map(|g| &g.runs).collect();
    (["A", "B"].map(String::from), [first, rest])
}

/// Returns the settings with the runs of both sides that have them, in the order of the files.
fn by_settings<'a>(sides: &[Vec<&'a RunResult>; 2]) -> Vec<(Settings, [Vec<&'a RunResult>; 2])> {
    let mut out: Vec<(Settings, [Vec<&RunResult>; 2])> = Vec::new();
    for (i, runs) in sides.iter().enumerate() {
        for run in runs {
            match out.iter_mut().find(|(s, _)| *s == run.settings) {
                Some((_, sides)) => sides[i].push(run),
                None => {
                    let mut sides = [Vec::new(), Vec::new()];
                    sides[i].push(*run);
                    out.push((run.settings.clone(), sides));
                }
            }
        }
    }
    out
}

fn alone(names: &[String; 2], settings: &Settings, first_is_empty: bool) -> String {
    let missing = &names[usize::from(!first_is_empty)];
    if settings.is_empty() {
        return match missing.as_str() {
            "A" | "B" => "one file alone: there is nothing to compare it with".to_string(),
            world => format!("there is no run without settings in the {world} to compare with"),
        };
    }
    format!("{missing} has no run with {}", describe(settings))
}

impl Compared {
    fn of(settings: Settings, a: &[&RunResult], b: &[&RunResult]) -> Result<Compared, String> {
        let groups = group_names(a.iter().chain(b).copied());
        let apart = apart::groups(&groups, [a, b]);
        let distributions = distribution::distributions(&groups, [a, b]);
        let side = |runs| Side::of(runs, &groups, &apart);
        let (a, b) = (side(a)?, side(b)?);
        if let Some(missing) = a.flows.iter().find(|f| !b.flows.iter().any(|g| g.id == f.id)) {
            return Err(format!("the flows are not the same: only one side has `{}`", missing.id));
        }
        if let Some(missing) = b.flows.iter().find(|f| !a.flows.iter().any(|g| g.id == f.id)) {
            return Err(format!("the flows are not the same: only one side has `{}`", missing.id));
        }
        Ok(Compared {
            settings,
            flows: paired(&a.flows, &b.flows),
            apart,
            groups: paired(&a.groups, &b.groups),
            classes: paired(&a.classes, &b.classes),
            distributions,
            runs: [a.runs, b.runs],
        })
    }

    /// Returns the groups that are outside. Only the mean of a group is reproducible: its flows are alike,
    /// and random losses or a shared queue make single flows differ between runs. A group of one is its flow.
    fn outside(&self, bounds: &Bounds) -> Vec<Outside> {
        let mut out = Vec::new();
        for [a, b] in &self.groups {
            for ((metric, a_has), (_, b_has)) in a.values.iter().zip(b.values.iter()) {
                let Some((what, bound)) = metric.judged.and_then(|what| Some((what, bounds.of(what)?)))
                else {
                    continue;
                };
                let measured = incomparable(a_has, b_has, bound);
                let off = off(a_has, b_has).filter(|_| measured.is_none());
                let near = match off {
                    _ if measured.is_some() => false,
                    Some(off) => off.abs() <= bound + ROUNDING,
                    // Without a last byte on either side, completion times cannot be compared.
                    None => a_has.is_none() && b_has.is_none(),
                };
                if !near {
                    let (settings, group) = (self.settings.clone(), a.id.clone());
                    out.push(Outside { settings, group, what, off, measured, bound });
                }
            }
        }
        out
    }
}

/// Returns the distance of the median of `b` from that of `a`, as a fraction of `a`; `None` if the fraction
/// does not exist.
pub fn off(a: Option<Spread>, b: Option<Spread>) -> Option<f64> {
    let (a, b) = (a?.median, b?.median);
    if a == b {
        return Some(0.0);
    }
    (a != 0.0).then(|| (b - a) / a)
}

/// Returns the numbers of flows on each side if their known shares differ too much for means to be compared.
/// Flows that do not end improve a mean completion time.
pub fn incomparable(a: Option<Spread>, b: Option<Spread>, bound: f64) -> Option<[Measured; 2]> {
    let (a, b) = (a?, b?);
    let apart = (a.share() - b.share()).abs() > bound + ROUNDING;
    // With all values known, the number of flows does not matter.
    let of = |side: Spread| side.measured.unwrap_or(Measured { n: 1, of: 1 });
    apart.then(|| [of(a), of(b)])
}

/// Pairs the rows of the same name.
fn paired(a: &[Row], b: &[Row]) -> Vec<[Row; 2]> {
    let by_id: BTreeMap<&str, &Row> = b.iter().map(|r| (r.id.as_str(), r)).collect();
    a.iter().filter_map(|row| Some([row.clone(), (*by_id.get(row.id.as_str())?).clone()])).collect()
}
