//! Values that rows ask of experiments, and the runs that give them.
//!
//! A measure of a row is read as one more `[[expect]]` of its experiment. So its words, its times and its
//! sums follow the same rules, received bytes are counted in bins that fit it, and a fault of it is shown in
//! the file of the rows.

use super::rows::{Measured, Paper, Row};
use crate::command::error::Failure;
use crate::execute::sweep::{self, Job};
use crate::experiment::config::diag::{Diagnostic, Errors, Fault};
use crate::experiment::config::{experiment, units, Source};
use crate::experiment::plan::{Expect, Plan};
use crate::report::expect;
use crate::result::unit::Unit;
use crate::result::{Backend, ExpectResult, RunResult, Status};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Experiment that rows take values or checks from.
#[derive(Debug)]
pub struct Experiment {
    /// File of the experiment.
    pub path: PathBuf,
    /// Minutes of the rows that need it, divided among their experiments.
    pub minutes: f64,
    /// World that it runs in.
    pub world: Backend,
    asks: Vec<Ask>,
    /// Runs of the experiment.
    pub runs: Vec<Run>,
}

/// Run of an experiment.
#[derive(Debug)]
pub struct Run {
    /// Settings, seed and plan.
    pub job: Job,
    /// Measures that rows ask for, in the order of the asks.
    asked: Vec<Expect>,
}

/// Value that rows ask of each run of an experiment.
#[derive(Debug)]
struct Ask {
    key: String,
    measured: Measured,
    rows: Source,
    span: Range<usize>,
}

/// Value of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// Value in the unit of its metric.
    pub value: f64,
    /// Flag: the value is only a lower bound.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

/// All that rows use of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Given {
    /// Seed.
    pub seed: u64,
    /// Settings of the sweep, as written.
    pub settings: Vec<(String, String)>,
    /// Time taken by the clock.
    pub wall_s: f64,
    /// Faults of the run, and the reason why it could not be made.
    pub faults: Vec<String>,
    /// Checks of the experiment.
    pub checks: Vec<ExpectResult>,
    /// Values by the key of what was asked.
    pub values: BTreeMap<String, Vec<Value>>,
    /// Flag: a run in real time that the machine had no time for.
    #[serde(default)]
    pub starved: bool,
}

/// Returns the key of a measure among the values of a run. Settings choose runs and are no part of it.
pub fn key(measured: &Measured) -> String {
    let of_run = Measured {
        set: BTreeMap::new(),
        sweep: None,
        file: String::new(),
        x: Vec::new(),
        ..measured.clone()
    };
    serde_json::to_string(&of_run).unwrap_or_default()
}

/// Returns the experiments that rows need in a world, those of all papers together. A file that several rows
/// use runs once, with the most seeds that one of them wants. `papers` are the chosen rows; `all` has the
/// others too, so that a run gives the same values whichever rows were chosen.
pub fn experiments(papers: &[Paper], all: &[Paper], world: Backend) -> Result<Vec<Experiment>, Failure> {
    let mut wanted: BTreeMap<PathBuf, (f64, u32)> = BTreeMap::new();
    for (paper, row) in rows(papers) {
        let files = files(row, world);
        let share = row.minutes / files.len().max(1) as f64;
        for file in files {
            let (minutes, _) = wanted.entry(paper.folder.join(file)).or_default();
            *minutes = minutes.max(share);
        }
    }
    for (paper, row) in rows(all) {
        for file in files(row, world) {
            if let Some((_, seeds)) = wanted.get_mut(&paper.folder.join(file)) {
                *seeds = (*seeds).max(row.seeds);
            }
        }
    }
    let one = |(path, (minutes, seeds)): (PathBuf, (f64, u32))| {
        let (asks, runs) = runs(&path, asks(all, &path, world), seeds, world)?;
        Ok(Experiment { path, minutes, world, asks, runs })
    };
    wanted.into_iter().map(one).collect()
}

fn files(row: &Row, world: Backend) -> BTreeSet<&str> {
    match world {
        Backend::Sim => row.files(),
        Backend::Lab => row.lab.iter().map(|f| f.get_ref().as_str()).collect(),
    }
}

fn rows(papers: &[Paper]) -> impl Iterator<Item = (&Paper, &Row)> {
    papers.iter().flat_map(|p| p.rows.iter().map(move |r| (p, r)))
}

/// Returns what the rows ask of a file in a world, each value once. In the lab only those rows ask that run
/// the file there.
fn asks(papers: &[Paper], path: &Path, world: Backend) -> Vec<Ask> {
    let mut asks: Vec<Ask> = Vec::new();
    let runs_it =
        |(paper, row): &(&Paper, &Row)| files(row, world).iter().any(|f| paper.folder.join(f) == path);
    for (paper, row) in rows(papers).filter(runs_it) {
        for measured in row.series.iter().flat_map(|s| s.as_published.iter().chain(&s.weir)) {
            let key = key(measured.get_ref());
            let here = paper.folder.join(&measured.get_ref().file) == path;
            if here && !asks.iter().any(|a| a.key == key) {
                let (measured, span) = (measured.get_ref().clone(), measured.span());
                asks.push(Ask { key, measured, rows: paper.source.clone(), span });
            }
        }
    }
    asks
}

/// Reads an experiment with what is asked of it.
fn runs(path: &Path, asks: Vec<Ask>, seeds: u32, world: Backend) -> Result<(Vec<Ask>, Vec<Run>), Failure> {
    let source = Source::read(path).map_err(Failure::Input)?;
    // Faults of the file itself are shown as its own.
    experiment::runs(&source)?;
    let mut text = format!("{}\n", source.text);
    let mut places = Vec::new();
    for ask in &asks {
        let from = text.len();
        text.push_str(&check(&ask.measured));
        places.push(from..text.len());
    }
    let with = Source::new(source.name.clone(), text);
    let made = experiment::runs(&with).map_err(|errors| elsewhere(errors, &asks, &places))?;
    let mut jobs = Vec::new();
    for run in made {
        jobs.push(Job { settings: run.settings, plan: run.experiment.plan_for(world)? });
    }
    let split = |mut job: Job| {
        let own = job.plan.expects.len() - asks.len();
        let asked = job.plan.expects.split_off(own);
        Run { job, asked }
    };
    let runs: Vec<Run> = sweep::seeded(jobs, seeds).into_iter().map(split).collect();
    for ask in &asks {
        ask.choosable(&runs).map_err(|fault| Errors::at(&ask.rows, ask.span.clone(), fault))?;
    }
    Ok((asks, runs))
}

/// Writes a measure as a check that always holds.
fn check(m: &Measured) -> String {
    let mut out = format!("\n[[expect]]\nwhat = {}\nop = \"at_least\"\ntarget = 0\n", quoted(&m.what));
    let keys = [
        ("from", &m.from),
        ("until", &m.until),
        ("every", &m.every),
        ("window", &m.window),
        ("at", &m.at),
        ("aggregate", &m.aggregate),
    ];
    for (name, value) in keys {
        if let Some(value) = value {
            let _ = writeln!(out, "{name} = {}", quoted(value));
        }
    }
    if let Some([low, high]) = &m.sizes {
        let _ = writeln!(out, "sizes = [{}, {}]", quoted(low), quoted(high));
    }
    out
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.into()).to_string()
}

/// Shows faults of what was asked in the file of the rows.
fn elsewhere(errors: Errors, asks: &[Ask], places: &[Range<usize>]) -> Errors {
    let of = |d: &Diagnostic| places.iter().position(|p| p.contains(&d.span.start));
    let list = errors.diagnostics();
    let found = list.iter().find_map(|d| Some((d, &asks[of(d)?])));
    match found {
        Some((d, ask)) => {
            let fault = Fault { message: d.message.clone(), help: d.help.clone() };
            Errors::at(&ask.rows, ask.span.clone(), fault)
        }
        None => errors,
    }
}

impl Ask {
    /// Returns a fault if the measure names a baseline that the experiment lacks.
    fn choosable(&self, runs: &[Run]) -> Result<(), Fault> {
        let Some((run, name)) = runs.first().zip(self.measured.baseline.as_ref()) else { return Ok(()) };
        let names = || run.job.plan.baselines.iter().map(|b| b.name.as_str());
        match names().any(|n| n == name) {
            true => Ok(()),
            false => Err(super::rows::unknown("baseline", name, names())),
        }
    }
}

impl Experiment {
    /// Returns the unit of a measure.
    pub fn unit(&self, measured: &Measured) -> Option<Unit> {
        let n = self.asks.iter().position(|a| a.key == key(measured))?;
        Some(self.runs.first()?.asked.get(n)?.measure.quantity.unit())
    }

    /// Returns the numbers of the runs that each value of a measure comes from: one list without `sweep`,
    /// else one for each value of that setting.
    pub fn chosen(&self, measured: &Measured) -> Result<Vec<Vec<usize>>, Fault> {
        let mut groups: Vec<(Option<&str>, Vec<usize>)> = Vec::new();
        for path in measured.set.keys() {
            self.knows(path)?;
        }
        for (n, run) in self.runs.iter().enumerate().filter(|(_, run)| run.has(&measured.set)) {
            let value = match &measured.sweep {
                None => None,
                Some(path) => {
                    self.knows(path)?;
                    run.setting(path)
                }
            };
            match groups.iter_mut().find(|(v, _)| *v == value) {
                Some((_, runs)) => runs.push(n),
                None => groups.push((value, vec![n])),
            }
        }
        match groups.is_empty() {
            true => Err(Fault::bare("no run of the experiment has these settings")),
            false => Ok(groups.into_iter().map(|(_, runs)| runs).collect()),
        }
    }

    fn knows(&self, path: &str) -> Result<(), Fault> {
        let names = || self.runs.iter().flat_map(|r| &r.job.settings).map(|(name, _)| name.as_str());
        match names().any(|n| n == path) {
            true => Ok(()),
            false => {
                let names: BTreeSet<&str> = names().collect();
                Err(super::rows::unknown("setting of the sweep", path, names.iter().copied()))
            }
        }
    }

    /// Returns what rows use of the result of run `n`, whose checks are made here.
    pub fn given(&self, n: usize, mut result: RunResult) -> Given {
        let run = &self.runs[n];
        let plan = &run.job.plan;
        expect::conclude(plan, &mut result);
        let values = self.asks.iter().zip(&run.asked).map(|(ask, asked)| {
            let of = match &ask.measured.baseline {
                Some(name) => result.baselines.get(name),
                None => Some(&result),
            };
            let samples =
                of.map_or(Vec::new(), |r| expect::aggregated(asked.aggregate, &asked.measure, plan.bin, r));
            let value = |s: expect::Sample| Value { value: s.value, at_least: !s.is_known() };
            let known = samples.into_iter().filter(|s| s.value.is_finite());
            (ask.key.clone(), known.map(value).collect())
        });
        let values = values.collect();
        let interrupted = result.status == Status::Interrupted;
        let faults = result.error.iter().chain(&result.faults).cloned();
        Given {
            seed: result.seed,
            settings: run.job.settings.clone(),
            wall_s: result.wall_s,
            faults: faults.chain(interrupted.then(|| "interrupted".to_string())).collect(),
            checks: result.expects,
            values,
            starved: result.machine.is_some_and(|m| !m.had_time()),
        }
    }

    /// Returns the key of run `n` among stored results: a hash of all that decides its values, and of the
    /// program.
    pub fn key(&self, n: usize, version: &str) -> String {
        let run = &self.runs[n];
        let asks: Vec<&str> = self.asks.iter().map(|a| a.key.as_str()).collect();
        let all = format!("{version}\n{}\n{:?}\n{asks:?}\n{:?}", self.world.name(), run.job, run.asked);
        Sha256::digest(all.as_bytes()).iter().map(|b| format!("{b:02x}")).collect()
    }

    /// Returns the expected seconds of each run.
    pub fn seconds(&self) -> f64 {
        self.minutes * 60.0 / self.runs.len().max(1) as f64
    }
}

impl Run {
    fn setting(&self, path: &str) -> Option<&str> {
        self.job.settings.iter().find(|(name, _)| name == path).map(|(_, value)| value.as_str())
    }

    /// Returns whether the run has these settings of the sweep, whatever their notation.
    fn has(&self, set: &BTreeMap<String, toml::Value>) -> bool {
        set.iter().all(|(path, value)| {
            let written = value.as_str().map_or_else(|| value.to_string(), str::to_string);
            self.setting(path).is_some_and(|text| units::setting(text) == units::setting(&written))
        })
    }

    /// Returns the run's plan.
    pub fn plan(&self) -> &Plan {
        &self.job.plan
    }
}

#[cfg(test)]
mod tests;
