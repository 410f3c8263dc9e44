//! A sweep whose results are kept, each in a file of its own.
//!
//! The runs of a sweep may be made by several processes, on several machines with a common folder, and at
//! several times. A run that is there is not made again, and two processes never make the same one at once.

use super::store::{hash, Store};
use super::sweep::{each, guarded, Job};
use crate::experiment::plan::Plan;
use crate::result::{RunResult, Status};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Part of a sweep: `3/100` is the third of a hundred. Neighbouring runs are in different parts, because they
/// often take equally long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Number of the part, from 1.
    pub number: usize,
    /// Number of parts.
    pub of: usize,
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let parts = text.split_once('/').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        match parts {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Shard { number, of }),
            _ => Err("a shard is a number and their count: 1/4 to 4/4".into()),
        }
    }
}

impl Shard {
    /// Whole sweep.
    pub const WHOLE: Shard = Shard { number: 1, of: 1 };

    fn has(self, run: usize) -> bool {
        run % self.of == self.number - 1
    }
}

/// Counts of the runs of a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Runs made now and kept.
    pub made: usize,
    /// Runs that were there.
    pub found: usize,
    /// Runs that another process makes at the moment.
    pub elsewhere: usize,
    /// Runs that could not be made. They are not kept, so the next call tries them again.
    pub failed: usize,
    /// Runs that had not begun, or not ended, at an interruption.
    pub left: usize,
}

/// Outcome of one run.
enum Outcome {
    Made,
    Found,
    Elsewhere,
    Failed(String),
    Left,
}

/// Makes those runs of a shard that are not in the store, at most `at_once` at the same time. `say` gets the
/// reasons of runs that could not be made. After `stop` no run begins.
///
/// # Errors
/// Fails if the store cannot be read or written. No run begins after that; those that were kept stay. Fails
/// before any run if a congestion control or queue discipline that the program has added has no version.
pub fn make(
    jobs: &[Job],
    shard: Shard,
    store: &Store,
    at_once: usize,
    stop: &AtomicBool,
    run: impl Fn(&Job) -> Result<RunResult, String> + Sync,
    say: impl Fn(usize, &str),
) -> Result<Counts, String> {
    let chosen: Vec<usize> = (0..jobs.len()).filter(|n| shard.has(*n)).collect();
    for &n in &chosen {
        key(&jobs[n], store.version())?;
    }
    let outcomes = each(chosen.len(), at_once, stop, |i| {
        let outcome = one(&jobs[chosen[i]], store, &run);
        if outcome.is_err() {
            stop.store(true, Relaxed);
        }
        outcome
    });
    let mut counts = Counts::default();
    for (n, outcome) in chosen.into_iter().zip(outcomes) {
        match outcome.unwrap_or(Ok(Outcome::Left))? {
            Outcome::Made => counts.made += 1,
            Outcome::Found => counts.found += 1,
            Outcome::Elsewhere => counts.elsewhere += 1,
            Outcome::Left => counts.left += 1,
            Outcome::Failed(reason) => {
                counts.failed += 1;
                say(n, &reason);
            }
        }
    }
    Ok(counts)
}

fn one(job: &Job, store: &Store, run: impl Fn(&Job) -> Result<RunResult, String>) -> Result<Outcome, String> {
    let key = key(job, store.version())?;
    if store.get::<RunResult>(&key).is_some() {
        return Ok(Outcome::Found);
    }
    let Some(_claim) = store.claim(&key)? else { return Ok(Outcome::Elsewhere) };
    // Another process may have made it between the look and the claim.
    if store.get::<RunResult>(&key).is_some() {
        return Ok(Outcome::Found);
    }
    let made = guarded(&job.plan, || run(job));
    match made {
        Ok(result) if result.status == Status::Interrupted => Ok(Outcome::Left),
        Ok(result) => store.put(&key, &result).map(|()| Outcome::Made),
        Err(reason) => Ok(Outcome::Failed(reason)),
    }
}

/// Returns the runs that are in the store, in the order of the sweep, with `None` for those that are not.
pub fn collect(jobs: &[Job], store: &Store) -> Vec<Option<RunResult>> {
    let run = |job: &Job| {
        let mut run: RunResult = store.get(&key(job, store.version()).ok()?)?;
        // A sweep that has grown may write the same value in another way.
        run.settings = job.settings();
        Some(run)
    };
    jobs.iter().map(run).collect()
}

/// Returns the key of a run: a hash of all that decides its result, the program included. What else is in the
/// file, and the notation of values, decide nothing: so a sweep can grow.
///
/// # Errors
/// Fails if a congestion control or queue discipline that the program has added has no version.
pub fn key(job: &Job, version: &str) -> Result<String, String> {
    let mut plan = job.plan.clone();
    forget_file(&mut plan);
    // Values only; in words a setting is as it was written.
    let settings = serde_json::to_vec(&job.settings()).unwrap_or_default();
    let mut parts = vec![version.as_bytes().to_vec(), settings, format!("{plan:?}").into_bytes()];
    for (name, version) in plan.added() {
        let Some(version) = version else {
            return Err(format!(
                "`{name}` has no version, by which results of its states are told apart: add it with one, \
                 and change that whenever the code changes"
            ));
        };
        parts.extend([name.into_bytes(), version.into_bytes()]);
    }
    Ok(hash(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>()))
}

fn forget_file(plan: &mut Plan) {
    plan.config_sha256.clear();
    plan.baselines.iter_mut().for_each(|baseline| forget_file(&mut baseline.plan));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::config::{experiment, Source};
    use std::sync::atomic::AtomicUsize;
    use std::sync::Barrier;

    fn jobs(values: &str) -> Vec<Job> {
        let text = format!(
            "name = \"t\"\nduration = \"1s\"\nflow = [{{ id = \"a\" }}]\npath.wan.rate = \"1Mbit\"\n\
             [sweep]\n\"path.wan.rate\" = [{values}]\n"
        );
        let runs = experiment::runs(&Source::new("t.toml", text)).unwrap();
        runs.into_iter().map(|run| Job { settings: run.settings, plan: run.experiment.plan }).collect()
    }

    fn told(job: &Job) -> Result<RunResult, String> {
        Ok(RunResult { packets: job.plan.seed, settings: job.settings(), ..RunResult::default() })
    }

    fn silent(_: usize, reason: &str) {
        panic!("{reason}");
    }

    #[test]
    fn shards_are_a_sweep() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), "1").unwrap();
        let (all, stop) =
            (jobs("\"1Mbit\", \"2Mbit\", \"3Mbit\", \"4Mbit\", \"5Mbit\""), AtomicBool::new(false));
        let part = |number| make(&all, Shard { number, of: 2 }, &store, 2, &stop, told, silent).unwrap();
        assert_eq!(part(1), Counts { made: 3, ..Counts::default() });
        let missing = collect(&all, &store).iter().filter(|run| run.is_none()).count();
        assert_eq!(missing, 2);
        assert_eq!(part(2), Counts { made: 2, ..Counts::default() });
        assert_eq!(part(1), Counts { found: 3, ..Counts::default() });
        let rates = |run: &Option<RunResult>| serde_json::to_value(&run.as_ref().unwrap().settings).unwrap();
        let found: Vec<_> = collect(&all, &store).iter().map(rates).collect();
        let want: Vec<_> = (1..=5).map(|n| serde_json::json!({ "path.wan.rate": n * 1_000_000 })).collect();
        assert_eq!(found, want);
    }

    #[test]
    fn an_added_algorithm_is_told_apart_by_its_version() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), "1").unwrap();
        let stop = AtomicBool::new(false);
        let mut one = jobs("\"1Mbit\"");
        one.iter_mut().for_each(|job| job.plan.groups[0].tcp.cc = Some("kept-test".into()));
        let reno = weir_sim::cc::by_name("reno").unwrap();
        let register = |version| {
            weir_sim::cc::register("kept-test", version, move |options| reno.with(options)).unwrap();
            make(&one, Shard::WHOLE, &store, 1, &stop, told, silent)
        };
        assert_eq!(register(Some("1")).unwrap().made, 1);
        assert_eq!(register(Some("1")).unwrap().found, 1);
        assert_eq!(register(Some("2")).unwrap().made, 1);
        assert!(register(None).unwrap_err().contains("`kept-test` has no version"));
    }

    #[test]
    fn a_sweep_grows() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), "1").unwrap();
        let stop = AtomicBool::new(false);
        let made = |jobs: &[Job]| make(jobs, Shard::WHOLE, &store, 1, &stop, told, silent).unwrap();
        assert_eq!(made(&jobs("\"1Mbit\", \"3Mbit\"")).made, 2);
        assert_eq!(
            made(&jobs("\"1Mbit\", \"2Mbit\", \"3000kbit\"")),
            Counts { made: 1, found: 2, ..Counts::default() }
        );
        // Another program makes all of them again.
        let other = Store::open(folder.path(), "2").unwrap();
        let again = make(&jobs("\"1Mbit\""), Shard::WHOLE, &other, 1, &stop, told, silent).unwrap();
        assert_eq!(again.made, 1);
    }

    #[test]
    fn racing_processes_make_a_run_once() {
        let folder = tempfile::tempdir().unwrap();
        let (all, stop) = (jobs("\"1Mbit\", \"2Mbit\", \"3Mbit\", \"4Mbit\""), AtomicBool::new(false));
        let (calls, ready) = (AtomicUsize::new(0), Barrier::new(4));
        let run = |job: &Job| {
            calls.fetch_add(1, Relaxed);
            std::thread::sleep(std::time::Duration::from_millis(20));
            told(job)
        };
        let counts: Vec<Counts> = std::thread::scope(|scope| {
            let racer = || {
                let store = Store::open(folder.path(), "1").unwrap();
                ready.wait();
                make(&all, Shard::WHOLE, &store, 2, &stop, run, silent).unwrap()
            };
            let racers: Vec<_> = (0..4).map(|_| scope.spawn(racer)).collect();
            racers.into_iter().map(|racer| racer.join().unwrap()).collect()
        });
        assert_eq!(calls.load(Relaxed), 4, "{counts:?}");
        assert_eq!(counts.iter().map(|c| c.made).sum::<usize>(), 4);
        assert!(counts.iter().all(|c| c.made + c.found + c.elsewhere == 4), "{counts:?}");
    }

    #[test]
    fn what_could_not_be_made_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), "1").unwrap();
        let (all, stop) = (jobs("\"1Mbit\", \"2Mbit\", \"3Mbit\""), AtomicBool::new(false));
        let broken = |job: &Job| match job.settings[0].1.as_str() {
            "1Mbit" => Err("no".to_string()),
            "2Mbit" => panic!("a control fails"),
            _ => Ok(RunResult { status: Status::Interrupted, ..RunResult::default() }),
        };
        let said = std::cell::RefCell::new(Vec::new());
        let say = |n, reason: &str| said.borrow_mut().push((n, reason.to_string()));
        let counts = make(&all, Shard::WHOLE, &store, 1, &stop, broken, say).unwrap();
        assert_eq!(counts, Counts { failed: 2, left: 1, ..Counts::default() });
        assert_eq!(said.borrow()[0], (0, "no".to_string()));
        assert!(said.borrow()[1].1.contains("a control fails"), "{said:?}");
        assert_eq!(collect(&all, &store), [None, None, None]);
        assert_eq!(make(&all, Shard::WHOLE, &store, 1, &stop, told, silent).unwrap().made, 3);
    }

    #[test]
    fn a_shard_has_a_number_and_a_count() {
        assert_eq!("3/100".parse(), Ok(Shard { number: 3, of: 100 }));
        for wrong in ["", "3", "0/4", "5/4", "a/4", "1/0", "-1/4", "1/4/2"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
