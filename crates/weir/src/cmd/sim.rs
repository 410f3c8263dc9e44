//! `weir sim`: experiments in virtual time.

use super::present::{self, Presentation};
use crate::config::{experiment, Source};
use crate::error::Failure;
use crate::expect;
use crate::progress::Progress;
use crate::result::{RunResult, Runs, World, RECEIVED, SCHEMA};
use crate::sim::{self, Options};
use crate::sweep::{self, Job};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use weir_core::time::Duration;

/// Arguments of `weir sim`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  weir sim experiments/examples/annotated.toml
  weir sim experiments/papers/ack-shaper/fig12.toml --json fig12.json --out out/fig12
  weir sim experiments/papers/ack-shaper/fig12.toml --seeds 10 --json - | jq '.summary'

A run is the same bit for bit on any machine, except for `wall_s`, which is how long it took. The runs of a
[sweep] and of several seeds go to all processors; their results are in the order of the file.")]
pub struct Args {
    /// The experiment
    #[arg(value_name = "EXPERIMENT.toml")]
    pub experiment: PathBuf,
    /// Write the result as JSON; `-` is standard output, and the table then goes to standard error
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write charts (SVG) and series (CSV) into this directory, which is made if needed; those of several
    /// runs into 001, 002, …
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write the frames at hosts, at the gateway's ports and behind links into this directory, a pcap file for
    /// each; those of several runs into 001, 002, …
    #[arg(long, value_name = "DIR")]
    pub pcap: Option<PathBuf>,
    /// Use this seed instead of the file's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Run with so many seeds, one after the other, and print means with 95 % confidence intervals
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub seeds: u32,
    /// Make at most so many runs at the same time; by default as many as there are processors
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,
}

/// Runs the experiment, checks it, prints and writes its results.
pub fn run(args: &Args) -> Result<(), Failure> {
    let source = super::source(&args.experiment)?;
    let jobs = jobs(args, &source)?;
    let stop = stop_on_signals()?;
    let to = Presentation { json: args.json.as_deref(), out: args.out.as_deref() };
    match jobs.as_slice() {
        [job] if job.settings.is_empty() => one(args, job, &stop, to),
        _ => several(args, &jobs, &stop, to),
    }
}

/// The runs that the file and the arguments ask for.
fn jobs(args: &Args, source: &Source) -> Result<Vec<Job>, Failure> {
    let mut jobs = Vec::new();
    for run in experiment::runs(source)? {
        let mut plan = run.experiment.plan_for(World::Sim)?;
        if let Some(seed) = args.seed {
            plan.reseed(seed);
        }
        jobs.push(Job { settings: run.settings, plan });
    }
    Ok(sweep::seeded(jobs, args.seeds))
}

/// Set by SIGINT, SIGTERM and SIGHUP.
fn stop_on_signals() -> Result<Arc<AtomicBool>, Failure> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, stop.clone())
            .map_err(|e| Failure::Other(format!("signals: {e}")))?;
    }
    Ok(stop)
}

fn one(args: &Args, job: &Job, stop: &AtomicBool, to: Presentation) -> Result<(), Failure> {
    let progress = Progress::new(&job.plan.name, job.plan.duration, true);
    let options = Options { pcap: args.pcap.as_deref(), progress: Some(&progress), stop };
    let made = sim::run(&job.plan, &options);
    drop(progress);
    let mut result = made.map_err(|e| Failure::Input(format!("{}: {e}", args.experiment.display())))?;
    for fault in &result.faults {
        eprintln!("weir sim: {fault}");
    }
    expect::conclude(&job.plan, &mut result);
    to.run(&job.plan, &result)?;
    present::verdict(&result)
}

fn several(args: &Args, jobs: &[Job], stop: &AtomicBool, to: Presentation) -> Result<(), Failure> {
    let total = jobs.iter().fold(Duration::ZERO, |sum, job| sum.saturating_add(job.plan.duration));
    let name = jobs.first().map_or("", |job| job.plan.name.as_str());
    let progress = Progress::new(&format!("{name}, {} runs", jobs.len()), total, true);
    let at_once = args.jobs.map_or_else(sweep::processors, |n| n as usize);
    let runs = sweep::run(jobs, at_once, stop, |n, job| {
        let part = |directory: &Option<PathBuf>| directory.as_ref().map(|d| d.join(format!("{:03}", n + 1)));
        let pcap = part(&args.pcap);
        let options = Options { pcap: pcap.as_deref(), progress: Some(&progress), stop };
        let result = sim::run(&job.plan, &options)?;
        finish(job, result, part(&args.out).as_deref())
    });
    drop(progress);
    let summary = if args.seeds > 1 { sweep::summaries(&runs) } else { Vec::new() };
    let runs = Runs { schema: SCHEMA, runs, summary };
    let names: Vec<String> =
        jobs.first().map_or(Vec::new(), |job| job.settings.iter().map(|(name, _)| name.clone()).collect());
    to.runs(&runs, &names, jobs.len())?;
    present::verdict_of(&runs.runs, jobs.len())
}

/// Checks a run among several and writes its files; what is kept of it goes without received bytes.
fn finish(job: &Job, mut result: RunResult, out: Option<&Path>) -> Result<RunResult, String> {
    expect::conclude(&job.plan, &mut result);
    result.settings = job.settings();
    if let Some(directory) = out {
        present::write(directory, &job.plan, &result).map_err(|e| e.to_string())?;
    }
    result.series.retain(|_, s| !s.columns.contains_key(RECEIVED));
    Ok(result)
}
