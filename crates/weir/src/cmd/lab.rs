//! `weir lab`: an experiment in network namespaces, with the real Linux TCP.

use super::present::{self, Presentation};
use crate::config::{experiment, Source};
use crate::error::Failure;
use crate::expect;
use crate::lab::{self, Options};
use crate::plan::Plan;
use crate::result::{RunResult, Runs, Status, World, RECEIVED, SCHEMA};
use crate::sweep;
use std::path::PathBuf;

/// Arguments of `weir lab`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  sudo weir lab experiments/examples/annotated.toml
  sudo weir lab experiments/papers/ack-shaper/fig12.toml --json fig12.json --out out/fig12
  sudo weir lab experiments/papers/ack-shaper/fig12-short.toml --json - | jq '.flows[].goodput_bps'
  sudo weir lab experiments/linux/start-cubic.toml --runs 5 --json lab.json  # for `weir compare`

No two runs of a lab are the same: --runs says how far apart they are.")]
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
    /// Write the frames at the hosts and at the gateway's ports into this directory, a pcap file for each;
    /// those of several runs into 001, 002, …
    #[arg(long, value_name = "DIR")]
    pub pcap: Option<PathBuf>,
    /// Name of the namespaces (`weir-ID-cl` and so on), for looking into a running lab
    #[arg(long)]
    pub id: Option<String>,
    /// Use this seed instead of the file's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Run it so many times, one after the other, and print means with 95 % confidence intervals
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: u32,
}

/// Runs the experiment, checks it, prints and writes its result.
pub fn run(args: &Args) -> Result<(), Failure> {
    let source = super::source(&args.experiment)?;
    let mut plan = experiment::parse(&source)?.plan_for(World::Lab)?;
    if let Some(seed) = args.seed {
        plan.reseed(seed);
    }
    let options = Options::with_signals().map_err(|e| Failure::Other(format!("signals: {e}")))?;
    let options = Options { id: args.id.clone(), pcap: args.pcap.clone(), ..options };
    let to = Presentation { json: args.json.as_deref(), out: args.out.as_deref() };
    if args.runs > 1 {
        return several(args, &plan, &source, &options, to);
    }
    let result = once(&plan, &source, &options).map_err(Failure::Other)?;
    to.run(&plan, &result)?;
    present::verdict(&result)
}

/// One run, checked; what went wrong in it has been said.
fn once(plan: &Plan, source: &Source, options: &Options) -> Result<RunResult, String> {
    let outcome = lab::run(plan, &source.text, options)?;
    for fault in &outcome.faults {
        eprintln!("weir lab: {fault}");
    }
    let mut result = outcome.result;
    expect::conclude(plan, &mut result);
    Ok(result)
}

/// Runs the experiment again and again. What keeps the first run from being made would keep all; a later one is
/// noted, and the others are made.
fn several(
    args: &Args,
    plan: &Plan,
    source: &Source,
    options: &Options,
    to: Presentation,
) -> Result<(), Failure> {
    let mut runs: Vec<RunResult> = Vec::new();
    for n in 1..=args.runs {
        let part = |directory: &Option<PathBuf>| directory.as_ref().map(|d| d.join(format!("{n:03}")));
        let options = Options { pcap: part(&args.pcap), ..options.clone() };
        let mut result = match once(plan, source, &options) {
            Err(error) if n == 1 => return Err(Failure::Other(error)),
            made => made.unwrap_or_else(|error| sweep::failed(plan, World::Lab, error)),
        };
        if let Some(directory) = part(&args.out) {
            present::write(&directory, plan, &result)?;
        }
        // A file of many runs would consist of little else.
        result.series.retain(|_, s| !s.columns.contains_key(RECEIVED));
        let interrupted = result.status == Status::Interrupted;
        runs.push(result);
        if interrupted {
            break;
        }
    }
    let summary = sweep::summaries(&runs);
    let runs = Runs { schema: SCHEMA, runs, summary };
    to.runs(&runs, &[], args.runs as usize)?;
    present::verdict_of(&runs.runs, args.runs as usize)
}
