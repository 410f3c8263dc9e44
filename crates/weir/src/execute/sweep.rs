//! Several runs of one experiment: a product of settings, several seeds, or both.
//!
//! Runs share nothing, and each is independent of the runs beside it. So they use all cores, and results are
//! in the order of the file for any number of cores.

use crate::experiment::config::units;
use crate::experiment::plan::Plan;
use crate::result::{Backend, MadeBy, RunResult, Settings, Status};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use weir_core::registry::Fault;

/// One run to make.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Settings of the sweep for the run, in the order of the file; empty without a sweep.
    pub settings: Vec<(String, String)>,
    /// Plan of the run.
    pub plan: Plan,
}

impl Job {
    /// Returns the settings in base units, as results hold them.
    pub fn settings(&self) -> Settings {
        self.settings.iter().map(|(key, text)| (key.clone(), units::setting(text))).collect()
    }
}

/// Repeats each of `jobs` with `seeds` seeds, beginning with its own. The seeds of a job stay together.
///
/// Jobs with the same seed in the file get the same further seeds, so that settings are compared under the
/// same draws. Jobs with different seeds share none: a run in two rows would count twice.
pub fn seeded(jobs: Vec<Job>, seeds: u32) -> Vec<Job> {
    let own: BTreeSet<u64> = jobs.iter().map(|job| job.plan.seed).collect();
    let mut used = own.clone();
    let mut further: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for &first in &own {
        let mut next = first;
        let free = std::iter::repeat_with(|| {
            next = next.wrapping_add(1);
            next
        });
        let free = free.filter(|&seed| used.insert(seed)).take(seeds.saturating_sub(1) as usize);
        further.insert(first, std::iter::once(first).chain(free).collect());
    }
    let each = |job: Job| {
        let seeds = further.get(&job.plan.seed).cloned().unwrap_or_default();
        seeds.into_iter().map(move |seed| {
            let mut job = job.clone();
            job.plan.reseed(seed);
            job
        })
    };
    jobs.into_iter().flat_map(each).collect()
}

/// Returns the number of processors that this process may use.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Makes the runs with `run`, which gets their numbers, at most `at_once` at the same time. Results are in
/// the order of `jobs`. A run that fails or panics has [`RunResult::error`] and affects no other. After
/// `stop` no run is started; those not started are left out.
pub fn run(
    jobs: &[Job],
    at_once: usize,
    stop: &AtomicBool,
    run: impl Fn(usize, &Job) -> Result<RunResult, String> + Sync,
) -> Vec<RunResult> {
    let work = |i: usize| {
        let job = &jobs[i];
        let mut result =
            guarded(&job.plan, || run(i, job)).unwrap_or_else(|error| failed(&job.plan, Backend::Sim, error));
        result.settings = job.settings();
        result
    };
    each(jobs.len(), at_once, stop, work).into_iter().flatten().collect()
}

/// Calls `work` with each number below `count`, at most `at_once` at the same time, and begins with the
/// lowest. Results are in order. After `stop` nothing is started, and the results of that are `None`.
pub fn each<T: Send>(
    count: usize,
    at_once: usize,
    stop: &AtomicBool,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<Option<T>> {
    let next = AtomicUsize::new(0);
    let made: Vec<Mutex<Option<T>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let Some(i) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&i| i < count) else {
                return;
            };
            let result = work(i);
            *made[i].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..at_once.clamp(1, count.max(1)) {
            scope.spawn(work);
        }
    });
    made.into_iter().map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// Makes a run of a plan, of which a panic is a fault.
pub fn guarded(plan: &Plan, run: impl FnOnce() -> Result<RunResult, String>) -> Result<RunResult, String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|p| Err(panicked(plan, &*p)))
}

/// Returns the result of a run that could not be made.
pub fn failed(plan: &Plan, world: Backend, error: String) -> RunResult {
    RunResult {
        experiment: plan.name.clone(),
        world,
        status: Status::Failed,
        error: Some(error),
        seed: plan.seed,
        made_by: MadeBy::new(&plan.config_sha256, ""),
        ..RunResult::default()
    }
}

/// Returns the message of a panic. An algorithm that the program has added may have one of its own.
fn panicked(plan: &Plan, payload: &(dyn std::any::Any + Send)) -> String {
    if let Some(Fault(message)) = payload.downcast_ref() {
        return message.clone();
    }
    let said = payload.downcast_ref::<&str>().copied();
    let said = said.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let added: String = plan.added().iter().map(|(name, _)| format!(" or of `{name}`")).collect();
    format!("the run panicked, which is an error of weir{added}: {}", said.unwrap_or("it says nothing"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::time::Duration;

    fn job(n: u64) -> Job {
        let mut plan = Plan::new("t", Duration::from_secs(1));
        plan.reseed(10 * n);
        Job { settings: vec![("n".to_string(), n.to_string())], plan }
    }

    /// Returns a result that identifies its run by its number of packets.
    fn told(job: &Job) -> RunResult {
        RunResult { packets: job.plan.seed, ..RunResult::default() }
    }

    #[test]
    fn results_are_in_order_however_many_run_at_once() {
        let jobs: Vec<Job> = (0..20).map(job).collect();
        let one = run(&jobs, 1, &AtomicBool::new(false), |_, j| Ok(told(j)));
        // The first run waits until the second has ended.
        let seen = AtomicUsize::new(0);
        let racing = |_: usize, j: &Job| {
            while j.plan.seed == 0 && seen.load(Ordering::Relaxed) == 0 {
                std::thread::yield_now();
            }
            seen.fetch_add(1, Ordering::Relaxed);
            Ok(told(j))
        };
        let several = run(&jobs, 7, &AtomicBool::new(false), racing);
        assert_eq!(one, several);
        assert_eq!(
            one.iter().map(|r| r.packets).collect::<Vec<_>>(),
            (0..20).map(|n| 10 * n).collect::<Vec<_>>()
        );
        assert_eq!(one[3].settings["n"].to_string(), "3");
    }

    #[test]
    fn a_run_that_fails_disturbs_no_other() {
        let jobs: Vec<Job> = (0..4).map(job).collect();
        let made = run(&jobs, 2, &AtomicBool::new(false), |_, j| match j.plan.seed {
            10 => Err("no such thing".to_string()),
            20 => panic!("a {}", "bug"),
            _ => Ok(told(j)),
        });
        let errors: Vec<Option<&str>> = made.iter().map(|r| r.error.as_deref()).collect();
        let bug = "the run panicked, which is an error of weir: a bug";
        assert_eq!(errors, [None, Some("no such thing"), Some(bug), None]);
        assert_eq!(
            (made[1].status, made[1].seed, made[1].settings["n"].to_string()),
            (Status::Failed, 10, "1".into())
        );
    }

    #[test]
    fn nothing_begins_after_stop() {
        let jobs: Vec<Job> = (0..4).map(job).collect();
        let stop = AtomicBool::new(false);
        let made = run(&jobs, 1, &stop, |_, j| {
            stop.store(j.plan.seed == 10, Ordering::Relaxed);
            Ok(told(j))
        });
        assert_eq!(made.len(), 2);
    }

    #[test]
    fn seeds_of_a_job_stay_together() {
        let jobs = seeded(vec![job(1), job(5)], 3);
        assert_eq!(jobs.iter().map(|j| j.plan.seed).collect::<Vec<_>>(), [10, 11, 12, 50, 51, 52]);
        assert_eq!(jobs[2].settings, jobs[0].settings);
        // Settings with the same seed share the others; swept seeds do not.
        let of = |jobs| seeded(jobs, 3).iter().map(|j| j.plan.seed).collect::<Vec<_>>();
        assert_eq!(of(vec![job(1), job(1)]), [10, 11, 12, 10, 11, 12]);
        let swept = |seed| {
            let mut job = job(1);
            job.plan.reseed(seed);
            job
        };
        assert_eq!(of((1..=3).map(swept).collect()), [1, 4, 5, 2, 6, 7, 3, 8, 9]);
    }
}
