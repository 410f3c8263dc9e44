//! Results of one experiment side by side, and whether they are as near to each other as it declares.
//!
//! There are two sides. Where there are runs of both worlds, the simulator's are compared with the lab's. With runs of one world
//! only, those of all further files are compared with those of the first. Where a side has several runs, their median counts, and their
//! range is shown. Groups of flows are judged, by the mean of their flows. The runs of sweeps are compared setting by setting.

mod difference;
mod distribution;
mod side;
#[cfg(test)]
mod tests;

pub use distribution::{Distributed, Distribution};
pub use side::{Row, Side, Spread};

use crate::result::metric::Measured;
use crate::result::{describe, Backend, Parity, RunResult, Settings};
use difference::Named;
use serde::Serialize;
use std::collections::BTreeMap;

/// What is exactly at its bound is inside, whatever the division rounds to.
const ROUNDING: f64 = 1e-9;

/// Of more differences only so many are named in an error.
const MOST_DIFFERENCES: usize = 6;

/// The runs of a file, under its name.
#[derive(Clone, Debug)]
pub struct ResultFile {
    /// The file's name.
    pub name: String,
    /// The runs in it.
    pub runs: Vec<RunResult>,
}

/// Results side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// See [`crate::result::SCHEMA`].
    pub schema: u32,
    /// Name of the experiment.
    pub experiment: String,
    /// What each side is called: `lab` and `sim`, or `A` and `B`. The first is what the second is compared with.
    pub names: [String; 2],
    /// Versions of the experiment file differ.
    pub edited: bool,
    /// Runs that are not compared, and why: interrupted ones, and ones that could not be made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// What else differs: congestion control, kernel, settings of TCP. Empty unless that was allowed.
    pub differences: Vec<String>,
    /// What is judged by.
    pub bounds: Bounds,
    /// One for each setting of a sweep.
    pub settings: Vec<Compared>,
    /// What is further apart than parity allows, and by how much.
    pub outside: Vec<Outside>,
}

/// How far apart the sides may be, as fractions; `null` is not judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Bounds {
    /// Goodput of each group of flows, their mean.
    pub goodput: Option<f64>,
    /// Completion times, likewise.
    pub fct: Option<f64>,
}

impl Bounds {
    /// By the name of what is judged.
    pub fn of(&self, judged: &str) -> Option<f64> {
        match judged {
            "goodput" => self.goodput,
            "fct" => self.fct,
            _ => None,
        }
    }
}

/// Runs with the same settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// What the sweep set.
    pub settings: Settings,
    /// Both sides, flow by flow.
    pub flows: Vec<[Row; 2]>,
    /// Groups of flows: means, and sums of counts.
    pub groups: Vec<[Row; 2]>,
    /// Classes of the gateway: goodput together.
    pub classes: Vec<[Row; 2]>,
    /// Of groups of five flows and more: how the values of their flows are distributed.
    pub distributions: Vec<Distributed>,
    /// Runs on each side.
    pub runs: [usize; 2],
}

/// Something that is further apart than parity allows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outside {
    /// What the sweep set.
    pub settings: Settings,
    /// The group of flows.
    pub group: String,
    /// `goodput` or `fct`.
    pub what: &'static str,
    /// Difference as a fraction of the first side; `null` if only one side has a value, or the first is
    /// zero, or if the value is known of another share of the flows.
    pub off: Option<f64>,
    /// Numbers of flows of which it is known on each side, if that is why the sides cannot be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<[Measured; 2]>,
    /// How far it may be.
    pub bound: f64,
}

/// Compares. What `bounds` has replaces what the experiment declares. Runs that differ in congestion control, kernel or
/// settings of TCP are refused unless `differing` allows them. Errors say which files do not go together, and why.
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
            // What was cut from one side has nothing beside it on the other.
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

/// The files with the runs that came to their end, and of the others which they are.
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

/// In what the runs of each setting of a sweep differ besides it.
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

/// Can `run` be compared with the first one?
fn fits(name: &str, run: &RunResult, (first, of): &(&str, &RunResult)) -> Result<(), String> {
    if run.experiment != of.experiment {
        let (a, b) = (&of.experiment, &run.experiment);
        return Err(format!("{name} is of another experiment, \"{b}\", than {first}, \"{a}\""));
    }
    Ok(())
}

/// The two sides and their names, the one to compare with first.
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

/// Settings with the runs of both sides that have them, in the order of the files.
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
        let distributions = distribution::distributions([a, b]);
        let (a, b) = (Side::of(a)?, Side::of(b)?);
        if let Some(missing) = a.flows.iter().find(|f| !b.flows.iter().any(|g| g.id == f.id)) {
            return Err(format!("the flows are not the same: only one side has `{}`", missing.id));
        }
        if let Some(missing) = b.flows.iter().find(|f| !a.flows.iter().any(|g| g.id == f.id)) {
            return Err(format!("the flows are not the same: only one side has `{}`", missing.id));
        }
        Ok(Compared {
            settings,
            flows: paired(&a.flows, &b.flows),
            groups: paired(&a.groups, &b.groups),
            classes: paired(&a.classes, &b.classes),
            distributions,
            runs: [a.runs, b.runs],
        })
    }

    /// The groups that are outside. Flows of a group are alike, and where losses are random or flows share a
    /// queue only their mean is the same in two runs; a group of one is its flow.
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
                    // Without a last byte on either side there is no completion time to compare.
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

/// How far the median of `b` is from that of `a`, as a fraction of it; `None` if there is no such fraction.
pub fn off(a: Option<Spread>, b: Option<Spread>) -> Option<f64> {
    let (a, b) = (a?.median, b?.median);
    if a == b {
        return Some(0.0);
    }
    (a != 0.0).then(|| (b - a) / a)
}

/// Returns the numbers of flows on each side, if these are parts of all so different that the means say
/// nothing of each other: flows that do not end make a mean completion time better.
pub fn incomparable(a: Option<Spread>, b: Option<Spread>, bound: f64) -> Option<[Measured; 2]> {
    let (a, b) = (a?, b?);
    let apart = (a.share() - b.share()).abs() > bound + ROUNDING;
    // What is known of all is so of one flow as of a hundred.
    let of = |side: Spread| side.measured.unwrap_or(Measured { n: 1, of: 1 });
    apart.then(|| [of(a), of(b)])
}

/// Rows of the same name.
fn paired(a: &[Row], b: &[Row]) -> Vec<[Row; 2]> {
    let by_id: BTreeMap<&str, &Row> = b.iter().map(|r| (r.id.as_str(), r)).collect();
    a.iter().filter_map(|row| Some([row.clone(), (*by_id.get(row.id.as_str())?).clone()])).collect()
}
