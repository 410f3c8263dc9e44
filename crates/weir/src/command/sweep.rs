//! `weir sweep` and `weir merge`: a sweep in virtual time whose results are kept.

use super::present::{self, Changes, Presentation};
use crate::command::error::Failure;
use crate::execute::kept::{self, Counts, Shard};
use crate::execute::progress::Progress;
use crate::execute::sim::{self, Options};
use crate::execute::store::{self, Store};
use crate::execute::sweep::{self, Job};
use crate::experiment::config::experiment;
use crate::report::expect;
use crate::report::summary::summaries;
use crate::result::{Backend, Runs, SCHEMA};
use std::path::PathBuf;
use weir_core::time::Duration;

/// Arguments that decide which runs there are.
#[derive(clap::Args, Debug)]
pub struct Planned {
    /// The experiment; its [sweep] says what varies
    #[arg(value_name = "EXPERIMENT.toml")]
    pub experiment: PathBuf,
    /// Folder of the results, which is made if needed. Several machines may share it
    #[arg(long, value_name = "DIR")]
    pub store: PathBuf,
    /// Run with N consecutive seeds
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub seeds: u32,
    /// Changes to the experiment.
    #[command(flatten)]
    pub changes: Changes,
}

/// Arguments of `weir sweep`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  weir sweep experiment.toml --store results --seeds 10
  weir sweep experiment.toml --store results --seeds 10 --shard 3/100    # the third of a hundred parts
  weir merge experiment.toml --store results --seeds 10 --json sweep.json --out charts

Each run is kept in a file of its own, under a hash of its settings and of this program. So a sweep goes on where it \
stopped, values and seeds can be added, and no run is made twice, by several processes neither. A run that ends with an \
error stops no other, and the next call tries it again.")]
pub struct Args {
    /// Runs.
    #[command(flatten)]
    pub planned: Planned,
    /// Make only this part of the runs: NUMBER/COUNT, from 1
    #[arg(long, value_name = "NUMBER/COUNT", default_value = "1/1")]
    pub shard: Shard,
    /// Run at most N simulations at the same time; the default is one for each processor
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,
}

/// Arguments of `weir merge`.
#[derive(clap::Args, Debug)]
pub struct MergeArgs {
    /// Runs.
    #[command(flatten)]
    pub planned: Planned,
    /// Take what is there, if runs are missing
    #[arg(long)]
    pub partial: bool,
    /// Destinations of results.
    #[command(flatten)]
    pub to: Presentation,
}

impl Planned {
    fn jobs(&self) -> Result<Vec<Job>, Failure> {
        let source = super::source(&self.experiment)?;
        let runs = experiment::runs_with(&source, &self.changes.lines()?)?;
        runs.first().into_iter().for_each(|run| present::say_notes(&run.experiment));
        let mut jobs = Vec::new();
        for run in runs {
            jobs.push(Job { settings: run.settings, plan: run.experiment.plan_for(Backend::Sim)? });
        }
        Ok(sweep::seeded(jobs, self.seeds))
    }

    fn store(&self) -> Result<Store, Failure> {
        let version = store::version().map_err(Failure::Other)?;
        Store::open(&self.store, &version).map_err(Failure::Other)
    }
}

/// Makes the runs of a shard that are not there, and says how many.
pub fn run(args: &Args) -> Result<(), Failure> {
    let jobs = args.planned.jobs()?;
    let store = args.planned.store()?;
    let stop = super::sim::stop_on_signals()?;
    let total = jobs.iter().fold(Duration::ZERO, |sum, job| sum.saturating_add(job.plan.time()));
    let total = Duration::from_nanos(total.as_nanos() / args.shard.of as u64);
    let progress =
        Progress::new(&format!("{}, {} runs", args.planned.experiment.display(), jobs.len()), total, true);
    let at_once = args.jobs.map_or_else(sweep::processors, |n| n as usize);
    let one = |job: &Job| {
        let options = Options { pcap: None, progress: Some(&progress), stop: &stop };
        let mut result = sim::run(&job.plan, &options)?;
        expect::conclude(&job.plan, &mut result);
        result.settings = job.settings();
        present::without_received(&mut result);
        Ok(result)
    };
    let say = |n: usize, reason: &str| {
        let settings: Vec<String> =
            jobs[n].settings.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        let seed = jobs[n].plan.seed;
        crate::output::say(&format!(
            "weir sweep: the run with {} and seed {seed}: {reason}",
            settings.join(", ")
        ));
    };
    let counts = kept::make(&jobs, args.shard, &store, at_once, &stop, one, say).map_err(Failure::Other)?;
    drop(progress);
    super::print(&told(counts))?;
    match counts {
        Counts { left: 1.., .. } => Err(Failure::Interrupted),
        Counts { failed: n @ 1.., .. } => {
            Err(Failure::Other(format!("{n} runs could not be made, see above")))
        }
        _ => Ok(()),
    }
}

/// Describes the counts in a line.
fn told(counts: Counts) -> String {
    let Counts { made, found, elsewhere, .. } = counts;
    let elsewhere = match elsewhere {
        0 => String::new(),
        n => format!(", {n} are being made by another process"),
    };
    format!("{made} runs made, {found} were there{elsewhere}\n")
}

/// Presents the runs of a sweep that are in the store, as `weir sim` would.
pub fn merge(args: &MergeArgs) -> Result<(), Failure> {
    let jobs = args.planned.jobs()?;
    let store = args.planned.store()?;
    let found = kept::collect(&jobs, &store);
    let missing = found.iter().filter(|run| run.is_none()).count();
    if missing == jobs.len() || missing > 0 && !args.partial {
        return Err(Failure::Input(lacks(args, missing, jobs.len(), &store)?));
    }
    args.to.begin()?;
    let runs: Vec<_> = found.into_iter().flatten().collect();
    let summary = if args.planned.seeds > 1 { summaries(&runs) } else { Vec::new() };
    let runs = Runs { schema: SCHEMA, runs, summary };
    let Some(first) = jobs.first() else { return Ok(()) };
    let names: Vec<String> = first.settings.iter().map(|(name, _)| name.clone()).collect();
    args.to.create()?;
    args.to.runs(&runs, &names, &first.plan, jobs.len())?;
    present::verdict_of(&runs.runs, runs.runs.len())
}

/// Says how many runs are missing, and why that may be.
fn lacks(args: &MergeArgs, missing: usize, of: usize, store: &Store) -> Result<String, Failure> {
    let folder = args.planned.store.display();
    let others = store.other_versions().map_err(Failure::Other)?;
    let others = match others.is_empty() {
        true => String::new(),
        false => {
            let others: Vec<String> = others.into_iter().collect();
            format!("; it has results of other versions, which are not mixed in: {}", others.join(", "))
        }
    };
    let partial = if missing < of { ", or --partial to take the others" } else { "" };
    Ok(format!("{missing} of {of} runs are not in {folder}: make them by `weir sweep`{partial}{others}"))
}
