//! Making of the runs that are not in the store, on several processors.

use super::asks::{Experiment, Given};
use crate::execute::progress::Progress;
use crate::execute::store::Store;
use crate::execute::sweep;
use crate::result::RunResult;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Results of the runs of each experiment; `None` for those that were not made.
pub type Made = Vec<Vec<Option<Given>>>;

/// Run to make.
struct Task {
    experiment: usize,
    run: usize,
    key: String,
    seconds: f64,
}

/// Takes results from the store, and makes those that are missing: `run` makes one, the longest first, at
/// most `at_once` at the same time. Each result is stored as soon as it is there. After `stop` no run begins.
pub fn make(
    experiments: &[Experiment],
    store: &Store,
    at_once: usize,
    stop: &AtomicBool,
    run: impl Fn(&Experiment, usize, &Progress) -> Result<RunResult, String> + Sync,
) -> Result<Made, String> {
    let mut made: Made = Vec::new();
    let mut tasks: Vec<Task> = Vec::new();
    for (e, experiment) in experiments.iter().enumerate() {
        let mut given = Vec::new();
        for n in 0..experiment.runs.len() {
            let key = experiment.key(n, store.version());
            given.push(store.get(&key));
            if given[n].is_none() {
                tasks.push(Task { experiment: e, run: n, key, seconds: experiment.seconds() });
            }
        }
        made.push(given);
    }
    tasks.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let total: f64 = tasks.iter().map(|t| t.seconds).sum();
    let progress = Progress::by_the_clock("weir repro", total / at_once.max(1) as f64);
    let clock = Clock::new(&tasks, total);
    let fault: Mutex<Option<String>> = Mutex::new(None);
    let results = sweep::each(tasks.len(), at_once, stop, |i| {
        let task = &tasks[i];
        let experiment = &experiments[task.experiment];
        let part =
            progress.part(experiment.runs[task.run].plan().time(), task.seconds / at_once.max(1) as f64);
        let plan = experiment.runs[task.run].plan();
        let outcome = sweep::guarded(plan, || run(experiment, task.run, &part));
        let given = given(experiment, task.run, outcome);
        let whole = given.faults.is_empty() && !given.starved;
        if let Err(e) = if whole { store.put(&task.key, &given) } else { Ok(()) } {
            stop.store(true, Ordering::Relaxed);
            fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
        }
        progress.aside(|| clock.done(task, experiment));
        given
    });
    drop(progress);
    if let Some(fault) = fault.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(fault);
    }
    for (task, given) in tasks.iter().zip(results) {
        made[task.experiment][task.run] = given;
    }
    Ok(made)
}

/// Returns what rows use of a run, or the reason why it could not be made.
fn given(experiment: &Experiment, n: usize, outcome: Result<RunResult, String>) -> Given {
    let job = &experiment.runs[n].job;
    let result = outcome.unwrap_or_else(|error| sweep::failed(&job.plan, experiment.world, error));
    experiment.given(n, result)
}

/// Lines about experiments that are done, with the time left.
struct Clock {
    began: Instant,
    total: f64,
    /// Seconds by the rows, in milliseconds, of all that is done.
    done_ms: AtomicUsize,
    /// Runs left of each experiment.
    left: Vec<AtomicUsize>,
    experiments: AtomicUsize,
    of: usize,
}

impl Clock {
    fn new(tasks: &[Task], total: f64) -> Clock {
        let most = tasks.iter().map(|t| t.experiment + 1).max().unwrap_or(0);
        let count = |e| tasks.iter().filter(|t| t.experiment == e).count();
        let left: Vec<usize> = (0..most).map(count).collect();
        let of = left.iter().filter(|n| **n > 0).count();
        let left = left.into_iter().map(AtomicUsize::new).collect();
        let began = Instant::now();
        Clock { began, total, done_ms: AtomicUsize::new(0), left, experiments: AtomicUsize::new(0), of }
    }

    /// Notes a run, and says so if it was the last one of its experiment.
    fn done(&self, task: &Task, experiment: &Experiment) {
        let ms = (task.seconds * 1e3) as usize;
        let done = (self.done_ms.fetch_add(ms, Ordering::Relaxed) + ms) as f64 / 1e3;
        if self.left[task.experiment].fetch_sub(1, Ordering::Relaxed) > 1 {
            return;
        }
        let n = self.experiments.fetch_add(1, Ordering::Relaxed) + 1;
        let left = self.began.elapsed().as_secs_f64() * (self.total / done.max(1e-3) - 1.0).max(0.0);
        let path = experiment.path.display();
        crate::output::say(&format!("{n} of {} experiments, {} left: {path}", self.of, minutes(left)));
    }
}

/// Formats a time roughly.
pub fn minutes(seconds: f64) -> String {
    match seconds {
        s if s < 99.5 => format!("{s:.0} s"),
        s => format!("{:.0} min", s / 60.0),
    }
}
