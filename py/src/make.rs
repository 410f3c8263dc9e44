//! Runs in virtual time.

use crate::fault::{wrong, ExperimentError, RunError};
use crate::run::Run;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::time::Duration;
use weir::execute::kept::{self, Shard};
use weir::execute::sim::{self, Options};
use weir::execute::store::{version_of, Store};
use weir::execute::sweep::{self, Job};
use weir::experiment::config::experiment::{parse_with, runs_with};
use weir::experiment::config::{Errors, Source};
use weir::report::expect;
use weir::result::{Backend, RunResult};

/// Interval between looks for signals, such as that of Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// Most runs of a sweep with its seeds. A planned run takes about 2.5 kB.
const MOST_RUNS: usize = 1_000_000;

/// Makes the runs of an experiment: one, or those of its sweep, each with so many seeds.
///
/// `name` is that of the file, for messages and for the lists that the file names. `changes` are lines of
/// TOML, `"PATH" = VALUE` each. At most `jobs` runs are made at the same time: by default one for each
/// processor. An interruption ends all runs.
#[pyfunction]
#[pyo3(signature = (name, text, changes, seeds=1, jobs=None))]
pub fn simulate(
    py: Python<'_>,
    name: &str,
    text: &str,
    changes: &str,
    seeds: u32,
    jobs: Option<usize>,
) -> PyResult<Vec<Run>> {
    let planned = plan(py, name, text, changes, seeds)?;
    let (stop, at_once) = (AtomicBool::new(false), jobs.unwrap_or_else(sweep::processors));
    let made = py.detach(|| {
        beside_signals(&stop, || sweep::run(&planned, at_once, &stop, |_, job| one(job, &stop)))
    })?;
    Ok(made.into_iter().map(|result| Run { result }).collect())
}

/// Makes those runs of [`simulate`] that are not in the folder `store`, and returns all. `library` is the
/// file of this extension: results of another one are not mixed in. Runs that another process makes at the
/// moment are waited for.
#[pyfunction]
#[pyo3(signature = (name, text, changes, store, library, seeds=1, jobs=None))]
#[allow(clippy::too_many_arguments)]
pub fn simulate_kept(
    py: Python<'_>,
    name: &str,
    text: &str,
    changes: &str,
    store: PathBuf,
    library: PathBuf,
    seeds: u32,
    jobs: Option<usize>,
) -> PyResult<Vec<Run>> {
    let planned = plan(py, name, text, changes, seeds)?;
    let store =
        version_of(&library).and_then(|version| Store::open(&store, &version)).map_err(RunError::new_err)?;
    let (stop, at_once) = (AtomicBool::new(false), jobs.unwrap_or_else(sweep::processors));
    let made = py.detach(|| beside_signals(&stop, || kept(&planned, &store, at_once, &stop)))?;
    Ok(made.map_err(RunError::new_err)?.into_iter().map(|result| Run { result }).collect())
}

/// Makes the missing runs, until all are there or have failed.
fn kept(jobs: &[Job], store: &Store, at_once: usize, stop: &AtomicBool) -> Result<Vec<RunResult>, String> {
    let reasons = RefCell::new(BTreeMap::new());
    loop {
        let say = |n: usize, reason: &str| drop(reasons.borrow_mut().insert(n, reason.to_owned()));
        let counts = kept::make(jobs, Shard::WHOLE, store, at_once, stop, |job| one(job, stop), say)?;
        if counts.elsewhere == 0 || stop.load(Relaxed) {
            break;
        }
        std::thread::sleep(LOOK);
    }
    let reasons = reasons.into_inner();
    let runs = kept::collect(jobs, store).into_iter().enumerate().map(|(n, run)| {
        run.unwrap_or_else(|| {
            let reason = reasons.get(&n).map_or("interrupted", String::as_str);
            let failed = sweep::failed(&jobs[n].plan, Backend::Sim, reason.to_owned());
            RunResult { settings: jobs[n].settings(), ..failed }
        })
    });
    Ok(runs.collect())
}

/// Planned runs of a sweep, which are made one by one: by threads, or by workers on other machines.
#[pyclass(frozen, module = "weir")]
pub struct Sweep {
    jobs: Vec<Job>,
    stop: AtomicBool,
}

#[pymethods]
impl Sweep {
    /// Plans the runs of an experiment. The arguments are those of [`simulate`].
    #[new]
    fn new(py: Python<'_>, name: &str, text: &str, changes: &str, seeds: u32) -> PyResult<Sweep> {
        let jobs = plan(py, name, text, changes, seeds)?;
        Ok(Sweep { jobs, stop: AtomicBool::new(false) })
    }

    fn __len__(&self) -> usize {
        self.jobs.len()
    }

    /// Makes a run. One that cannot be made has an error.
    fn make(&self, py: Python<'_>, number: usize) -> PyResult<Run> {
        let job = self.job(number)?;
        let made =
            py.detach(|| sweep::run(std::slice::from_ref(job), 1, &self.stop, |_, job| one(job, &self.stop)));
        Ok(Run { result: made.into_iter().next().unwrap_or_else(|| interrupted(job)) })
    }

    /// Makes a run if it is not in the folder `store`, and returns it. The arguments are those of
    /// [`simulate_kept`].
    fn make_kept(&self, py: Python<'_>, number: usize, store: PathBuf, library: PathBuf) -> PyResult<Run> {
        let job = self.job(number)?;
        let store = version_of(&library).and_then(|version| Store::open(&store, &version));
        let store = store.map_err(RunError::new_err)?;
        let made = py.detach(|| kept(std::slice::from_ref(job), &store, 1, &self.stop));
        let made = made.map_err(RunError::new_err)?.into_iter().next();
        Ok(Run { result: made.unwrap_or_else(|| interrupted(job)) })
    }

    /// Returns the key of a run: a hash of all that decides its result, and of `version`.
    fn key(&self, number: usize, version: &str) -> PyResult<String> {
        kept::key(self.job(number)?, version).map_err(RunError::new_err)
    }

    /// Returns the result of a run that could not be made, for this reason.
    fn failed(&self, number: usize, reason: String) -> PyResult<Run> {
        let job = self.job(number)?;
        let failed = sweep::failed(&job.plan, Backend::Sim, reason);
        Ok(Run { result: RunResult { settings: job.settings(), ..failed } })
    }

    /// Ends all runs that are being made.
    fn stop(&self) {
        self.stop.store(true, Relaxed);
    }
}

impl Sweep {
    fn job(&self, number: usize) -> PyResult<&Job> {
        let count = self.jobs.len();
        self.jobs.get(number).ok_or_else(|| PyIndexError::new_err(format!("run {number} of {count}")))
    }
}

fn interrupted(job: &Job) -> RunResult {
    let failed = sweep::failed(&job.plan, Backend::Sim, "interrupted".into());
    RunResult { settings: job.settings(), ..failed }
}

/// Returns the number of processors that this process may use.
#[pyfunction]
pub fn processors() -> usize {
    sweep::processors()
}

/// Returns the version of this extension, whose file is `library`: its number, and a hash of the file.
#[pyfunction]
pub fn version(library: PathBuf) -> PyResult<String> {
    version_of(&library).map_err(RunError::new_err)
}

/// Checks an experiment for the lab. Errors are those of [`simulate`].
#[pyfunction]
pub fn check_for_lab(py: Python<'_>, name: &str, text: &str, changes: &str) -> PyResult<()> {
    let source = Source::new(name, text);
    let plan = parse_with(&source, changes).and_then(|experiment| experiment.plan_for(Backend::Lab));
    plan.map(drop).map_err(|errors| wrong(py, &errors))
}

/// Plans the runs of an experiment, without the interpreter's lock.
fn plan(py: Python<'_>, name: &str, text: &str, changes: &str, seeds: u32) -> PyResult<Vec<Job>> {
    let source = Source::new(name, text);
    let planned = py.detach(|| {
        let jobs = runs_with(&source, changes)?.into_iter().map(|run| {
            let plan = run.experiment.plan_for(Backend::Sim)?;
            Ok(Job { settings: run.settings, plan })
        });
        jobs.collect::<Result<Vec<_>, Errors>>()
    });
    let jobs = planned.map_err(|errors| wrong(py, &errors))?;
    let refused = |why: String| Err(ExperimentError::new_err(format!("{name}: {why}")));
    match jobs.len().saturating_mul(seeds as usize) {
        0 => refused("no runs: `seeds` is 0".into()),
        runs if runs > MOST_RUNS => refused(format!(
            "{runs} runs, more than {MOST_RUNS}: {} combinations with {seeds} seeds each",
            jobs.len()
        )),
        _ => Ok(py.detach(|| sweep::seeded(jobs, seeds))),
    }
}

fn one(job: &Job, stop: &AtomicBool) -> Result<RunResult, String> {
    let mut result = sim::run(&job.plan, &Options { pcap: None, progress: None, stop })?;
    expect::conclude(&job.plan, &mut result);
    Ok(result)
}

/// Calls `work` in another thread, and looks for signals meanwhile. A signal sets `stop`, and its exception
/// is raised when the work has ended.
fn beside_signals<T: Send>(stop: &AtomicBool, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    std::thread::scope(|scope| {
        let (done, is_done) = channel();
        let worker = scope.spawn(move || {
            let made = work();
            // The receiver waits until the end of this thread.
            let _ = done.send(());
            made
        });
        let mut signalled = Ok(());
        while let Err(RecvTimeoutError::Timeout) = is_done.recv_timeout(LOOK) {
            if signalled.is_ok() {
                signalled = Python::attach(|py| py.check_signals());
                stop.fetch_or(signalled.is_err(), Relaxed);
            }
        }
        let made = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        signalled.map(|()| made)
    })
}
