//! Presentation of results by a command: tables, charts, files, exit codes.

use crate::command::error::Failure;
use crate::experiment::config::changes;
use crate::experiment::config::experiment::Experiment;
use crate::experiment::plan::Plan;
use crate::report::{self, chart, table};
use crate::result::{Backend, RunResult, Runs, Status, RECEIVED};
use std::path::{Path, PathBuf};

/// Arguments of every command that runs an experiment.
#[derive(clap::Args, Debug)]
pub struct Common {
    /// The experiment
    #[arg(value_name = "EXPERIMENT.toml")]
    pub experiment: PathBuf,
    /// Use this seed instead of the file's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Changes to the experiment.
    #[command(flatten)]
    pub changes: Changes,
    /// Destinations of results.
    #[command(flatten)]
    pub to: Presentation,
    /// Write captures (pcap) into this directory: one for each host, one for each port of the gateway and, in
    /// virtual time, one for each link; several runs go into 001, 002, …
    #[arg(long, value_name = "DIR")]
    pub pcap: Option<PathBuf>,
}

/// Changes to an experiment.
#[derive(clap::Args, Debug)]
pub struct Changes {
    /// Use another value for a key, by its path: path.wan.rate=20Mbit; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

impl Changes {
    /// Returns the changes as [`changes`] takes them.
    pub fn lines(&self) -> Result<String, Failure> {
        let line = |set: &String| {
            changes::line(set).ok_or_else(|| Failure::Input(format!("--set {set}: write KEY=VALUE")))
        };
        self.set.iter().map(line).collect()
    }
}

/// Destinations of results.
#[derive(clap::Args, Debug)]
pub struct Presentation {
    /// Write the result as JSON; `-` is standard output, and the table then goes to standard error
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write charts (SVG), flows and series (CSV) into this directory, which is created if needed, in place
    /// of what an earlier command wrote there; several runs go into 001, 002, …, which index.csv lists, and
    /// each metric is drawn over each swept value
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

impl Common {
    /// Returns the experiment's plan in a world, with the requested seed.
    pub fn plan(&self, experiment: Experiment, world: Backend) -> Result<Plan, Failure> {
        let mut plan = experiment.plan_for(world)?;
        if let Some(seed) = self.seed {
            plan.reseed(seed);
        }
        Ok(plan)
    }
}

/// Reports the notes on the lists that an experiment names.
pub fn say_notes(experiment: &Experiment) {
    let (most, notes) = (20, &experiment.notes);
    notes.iter().take(most).for_each(|note| crate::output::say(&format!("weir: {note}")));
    if notes.len() > most {
        crate::output::say(&format!("weir: and {} more: `weir check` has them all", notes.len() - most));
    }
}

/// Returns the subdirectory of run `n` of several, counted from 1.
pub fn part(directory: Option<&Path>, n: usize) -> Option<PathBuf> {
    directory.map(|d| d.join(format!("{n:03}")))
}

/// Removes the received bytes from a result among several, because they would dominate a file of many runs.
pub fn without_received(result: &mut RunResult) {
    result.series.retain(|_, s| !s.columns.contains_key(RECEIVED));
    result.baselines.values_mut().for_each(without_received);
}

impl Presentation {
    /// Empties the directory of results of what an earlier command wrote there.
    pub fn begin(&self) -> Result<(), Failure> {
        let Some(directory) = &self.out else { return Ok(()) };
        clear(directory).map_err(|e| Failure::Other(format!("{}: {e}", directory.display())))
    }

    /// Makes the directory of results, if one is asked for.
    pub fn create(&self) -> Result<(), Failure> {
        let Some(directory) = &self.out else { return Ok(()) };
        std::fs::create_dir_all(directory)
            .map_err(|e| Failure::Other(format!("{}: {e}", directory.display())))
    }

    /// Presents one run.
    pub fn run(&self, plan: &Plan, result: &RunResult) -> Result<(), Failure> {
        if let Some(path) = &self.json {
            super::write_json(path, result)?;
        }
        if let Some(directory) = &self.out {
            let files = write(directory, plan, result)?;
            crate::output::say(&format!("{files} files written to {}", directory.display()));
        }
        self.print(|terminal| table::render(result, plan, terminal))
    }

    /// Presents several runs, of which `planned` were requested. `names` are the keys that a sweep sets, and
    /// `plan` is that of the first run. The files of each run have been written before.
    pub fn runs(&self, runs: &Runs, names: &[String], plan: &Plan, planned: usize) -> Result<(), Failure> {
        if let Some(path) = &self.json {
            super::write_json(path, runs)?;
        }
        if let Some(directory) = &self.out {
            super::write_json(&directory.join("result.json"), runs)?;
            let put = |name: &str, text: &str| {
                let path = directory.join(name);
                std::fs::write(&path, text).map_err(|e| Failure::Other(format!("{}: {e}", path.display())))
            };
            put("index.csv", &report::index::index(runs, names))?;
            let charts = chart::swept(runs, names);
            for (name, chart) in &charts {
                put(name, chart.as_ref().map_err(|e| Failure::Other(format!("{name}: {e}")))?)?;
            }
            let written = charts.iter().map(|(name, _)| name.as_str());
            listed(directory, written.chain(["result.json", "index.csv"]))
                .map_err(|e| Failure::Other(format!("{}: {e}", directory.display())))?;
        }
        self.print(|terminal| table::runs(runs, names, plan, planned, terminal))
    }

    fn print(&self, table: impl Fn(bool) -> String) -> Result<(), Failure> {
        if self.json.as_deref() == Some("-".as_ref()) {
            crate::output::say(table(false).trim_end());
            return Ok(());
        }
        super::print(&table(super::takes_colours()))
    }
}

/// Writes the result, its charts and its series into `directory`, which is made if needed. Returns the number
/// of files.
pub fn write(directory: &Path, plan: &Plan, result: &RunResult) -> Result<usize, Failure> {
    let fault = |e: std::io::Error| Failure::Other(format!("{}: {e}", directory.display()));
    std::fs::create_dir_all(directory).map_err(fault)?;
    super::write_json(&directory.join("result.json"), result)?;
    let written = chart::write(directory, plan, result).map_err(fault)?;
    let names = written.iter().filter_map(|path| path.file_name()?.to_str());
    listed(directory, names.chain(["result.json"])).map_err(fault)?;
    Ok(written.len() + 1)
}

/// Name of the list of the files that a command has written into a directory.
const LISTED: &str = ".weir-files";

fn listed<'a>(directory: &Path, names: impl Iterator<Item = &'a str>) -> std::io::Result<()> {
    let text: String = names.map(|name| format!("{name}\n")).collect();
    std::fs::write(directory.join(LISTED), text)
}

/// Removes what an earlier command wrote into `directory`, so that results of two experiments never mix.
/// Files of others stay.
pub fn clear(directory: &Path) -> std::io::Result<()> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.len() >= 3 && name.bytes().all(|b| b.is_ascii_digit()) && path.join(LISTED).is_file() {
            clear(&path)?;
            // With files of others it stays.
            let _ = std::fs::remove_dir(&path);
        }
    }
    let list = directory.join(LISTED);
    let Ok(text) = std::fs::read_to_string(&list) else { return Ok(()) };
    // A name is of a file in this very directory.
    for name in text.lines().filter(|name| Path::new(name).components().count() == 1 && *name != "..") {
        match std::fs::remove_file(directory.join(name)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    std::fs::remove_file(list)
}

/// Returns the command's result after one run.
pub fn verdict(result: &RunResult) -> Result<(), Failure> {
    match (result.status, failed(result)) {
        (Status::Ok, _) => Ok(()),
        (Status::Failed, 0) => Err(of(result, Failure::Other("the run went wrong, see above".into()))),
        (Status::Failed, n) => Err(of(result, Failure::Expect(n))),
        (Status::Interrupted, _) => Err(Failure::Interrupted),
    }
}

/// Returns the failure of this run, or [`Failure::Starved`] if the machine was overloaded.
fn of(result: &RunResult, failure: Failure) -> Failure {
    match had_time(result) {
        true => failure,
        false => Failure::Starved(Box::new(failure)),
    }
}

fn had_time(result: &RunResult) -> bool {
    result.machine.is_none_or(|machine| machine.had_time())
}

/// Returns the command's result after several runs.
pub fn verdict_of(runs: &[RunResult], planned: usize) -> Result<(), Failure> {
    if runs.len() < planned || runs.iter().any(|r| r.status == Status::Interrupted) {
        return Err(Failure::Interrupted);
    }
    let wrong = |r: &&RunResult| r.status == Status::Failed && failed(r) == 0;
    let failure = match (runs.iter().filter(wrong).count(), runs.iter().map(failed).sum()) {
        (0, 0) => return Ok(()),
        (0, n) => Failure::Expect(n),
        (n, _) => Failure::Other(format!("{n} of {planned} runs went wrong, see above")),
    };
    match runs.iter().any(|r| r.status == Status::Failed && had_time(r)) {
        true => Err(failure),
        false => Err(Failure::Starved(Box::new(failure))),
    }
}

/// Returns the number of expectations that do not hold.
fn failed(result: &RunResult) -> usize {
    result.expects.iter().filter(|e| !e.ok).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{ExpectResult, Machine};

    fn failing(stolen_percent: f64, longest_stall_ms: f64) -> RunResult {
        let check = ExpectResult { what: "ten".into(), bound: 1.0, ..ExpectResult::default() };
        RunResult {
            status: Status::Failed,
            machine: Some(Machine { stolen_percent, longest_stall_ms, skipped_programs: 0 }),
            expects: vec![check],
            ..RunResult::default()
        }
    }

    fn code(end: Result<(), Failure>) -> u8 {
        end.map_or_else(|failure| failure.code(), |()| 0)
    }

    #[test]
    fn results_of_two_experiments_do_not_mix() {
        let directory = std::env::temp_dir().join(format!("weir-out-{}", std::process::id()));
        let part = directory.join("001");
        std::fs::create_dir_all(&part).unwrap();
        for place in [&directory, &part] {
            std::fs::write(place.join("old.csv"), "").unwrap();
            listed(place, ["old.csv", "../mine.txt"].into_iter()).unwrap();
        }
        std::fs::write(directory.join("mine.txt"), "").unwrap();
        clear(&directory).unwrap();
        let left: Vec<_> = std::fs::read_dir(&directory).unwrap().map(|e| e.unwrap().file_name()).collect();
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(left, ["mine.txt"]);
    }

    #[test]
    fn what_fails_on_a_machine_without_time_says_nothing() {
        for (run, wanted) in [
            (failing(0.0, 3.0), 1),
            (failing(4.9, 49.0), 1),
            (failing(67.0, 3.0), 4),
            (failing(0.0, 50.0), 4),
            (RunResult { expects: vec![], ..failing(0.0, 3.0) }, 3),
            (RunResult { expects: vec![], ..failing(67.0, 3.0) }, 4),
            // Expectations that hold on an overloaded machine still hold.
            (RunResult { status: Status::Ok, ..failing(67.0, 300.0) }, 0),
            (RunResult { machine: None, ..failing(0.0, 0.0) }, 1),
        ] {
            assert_eq!(code(verdict(&run)), wanted, "{run:?}");
        }
    }

    #[test]
    fn one_failure_of_its_own_among_several_runs_counts() {
        let (own, starved) = (failing(0.0, 3.0), failing(67.0, 200.0));
        let well = RunResult { status: Status::Ok, expects: vec![], ..failing(67.0, 200.0) };
        assert_eq!(code(verdict_of(&[well.clone(), starved.clone()], 2)), 4);
        assert_eq!(code(verdict_of(&[own, starved, well], 3)), 1);
    }
}
