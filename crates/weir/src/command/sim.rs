//! `weir sim`: experiments in virtual time.

use super::present::{self, part, Common};
use crate::command::error::Failure;
use crate::execute::progress::Progress;
use crate::execute::sim::{self, Options};
use crate::execute::sweep::{self, Job};
use crate::experiment::config::{experiment, Source};
use crate::report::expect;
use crate::report::summary::summaries;
use crate::result::{Backend, RunResult, Runs, SCHEMA};
use std::path::Path;
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

A run gives the same result bit for bit on any machine, except for `wall_s`, the time that the run took. The runs of a \
[sweep] and of several seeds use all processors; their results are in the order of the file.")]
pub struct Args {
    /// Arguments shared with `weir lab`.
    #[command(flatten)]
    pub common: Common,
    /// Run with N consecutive seeds, and print means with 95 % confidence intervals
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub seeds: u32,
    /// Run at most N simulations at the same time; the default is one for each processor
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub jobs: Option<u32>,
}

/// Runs the experiment and checks it, then prints and writes its results.
pub fn run(args: &Args) -> Result<(), Failure> {
    let source = super::source(&args.common.experiment)?;
    let jobs = jobs(args, &source)?;
    let stop = stop_on_signals()?;
    args.common.to.begin()?;
    match jobs.as_slice() {
        [job] if job.settings.is_empty() => one(args, job, &stop),
        _ => several(args, &jobs, &stop),
    }
}

/// Runs one of this program's own experiments, without its checks.
pub fn simulate(text: &str) -> Result<RunResult, String> {
    let source = Source::new("experiment", text);
    let plan = experiment::parse(&source).and_then(|e| e.plan_for(Backend::Sim));
    let stop = AtomicBool::new(false);
    sim::run(&plan.map_err(|e| e.to_string())?, &Options { pcap: None, progress: None, stop: &stop })
}

/// Returns the runs that the file and the arguments request.
fn jobs(args: &Args, source: &Source) -> Result<Vec<Job>, Failure> {
    let mut jobs = Vec::new();
    let runs = experiment::runs_with(source, &args.common.changes.lines()?)?;
    runs.first().into_iter().for_each(|run| present::say_notes(&run.experiment));
    for run in runs {
        if args.common.seed.is_some() && run.settings.iter().any(|(key, _)| key == "seed") {
            return Err(Failure::Input("--seed: [sweep] varies `seed`; leave one of the two out".into()));
        }
        let plan = args.common.plan(run.experiment, Backend::Sim)?;
        jobs.push(Job { settings: run.settings, plan });
    }
    Ok(sweep::seeded(jobs, args.seeds))
}

/// Returns a flag that is set by SIGINT, SIGTERM and, where it exists, SIGHUP.
pub(super) fn stop_on_signals() -> Result<Arc<AtomicBool>, Failure> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    #[cfg(unix)]
    let signals = [SIGINT, SIGTERM, signal_hook::consts::SIGHUP];
    #[cfg(not(unix))]
    let signals = [SIGINT, SIGTERM];
    for signal in signals {
        signal_hook::flag::register(signal, stop.clone())
            .map_err(|e| Failure::Other(format!("signals: {e}")))?;
    }
    Ok(stop)
}

fn one(args: &Args, job: &Job, stop: &AtomicBool) -> Result<(), Failure> {
    let progress = Progress::new(&job.plan.name, job.plan.time(), true);
    let options = Options { pcap: args.common.pcap.as_deref(), progress: Some(&progress), stop };
    let made = sim::run(&job.plan, &options);
    drop(progress);
    let mut result =
        made.map_err(|e| Failure::Input(format!("{}: {e}", args.common.experiment.display())))?;
    for fault in &result.faults {
        crate::output::say(&format!("weir sim: {fault}"));
    }
    expect::conclude(&job.plan, &mut result);
    args.common.to.run(&job.plan, &result)?;
    present::verdict(&result)
}

fn several(args: &Args, jobs: &[Job], stop: &AtomicBool) -> Result<(), Failure> {
    let total = jobs.iter().fold(Duration::ZERO, |sum, job| sum.saturating_add(job.plan.time()));
    let name = jobs.first().map_or("", |job| job.plan.name.as_str());
    let progress = Progress::new(&format!("{name}, {} runs", jobs.len()), total, true);
    let at_once = args.jobs.map_or_else(sweep::processors, |n| n as usize);
    let runs = sweep::run(jobs, at_once, stop, |n, job| {
        let pcap = part(args.common.pcap.as_deref(), n + 1);
        let options = Options { pcap: pcap.as_deref(), progress: Some(&progress), stop };
        let result = sim::run(&job.plan, &options)?;
        finish(job, result, part(args.common.to.out.as_deref(), n + 1).as_deref())
    });
    drop(progress);
    let summary = if args.seeds > 1 { summaries(&runs) } else { Vec::new() };
    let runs = Runs { schema: SCHEMA, runs, summary };
    let names: Vec<String> =
        jobs.first().map_or(Vec::new(), |job| job.settings.iter().map(|(name, _)| name.clone()).collect());
    if let Some(first) = jobs.first() {
        args.common.to.runs(&runs, &names, &first.plan, jobs.len())?;
    }
    present::verdict_of(&runs.runs, jobs.len())
}

/// Checks a run among several and writes its files. The returned result has no received bytes.
fn finish(job: &Job, mut result: RunResult, out: Option<&Path>) -> Result<RunResult, String> {
    expect::conclude(&job.plan, &mut result);
    result.settings = job.settings();
    if let Some(directory) = out {
        present::write(directory, &job.plan, &result).map_err(|e| e.to_string())?;
    }
    present::without_received(&mut result);
    Ok(result)
}
