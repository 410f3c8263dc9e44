//! `weir lab`: an experiment in network namespaces, with the real Linux TCP.

use super::present::{self, part, Common};
use crate::command::error::Failure;
use crate::execute::baselines;
use crate::execute::lab::{self, Options};
use crate::execute::sweep;
use crate::experiment::config::experiment;
use crate::experiment::plan::Plan;
use crate::report::expect;
use crate::report::summary::summaries;
use crate::result::{Backend, RunResult, Runs, Status, SCHEMA};

/// Arguments of `weir lab`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  sudo weir lab experiments/examples/annotated.toml
  sudo weir lab experiments/papers/ack-shaper/fig12.toml --json fig12.json --out out/fig12
  sudo weir lab experiments/papers/ack-shaper/fig12-short.toml --json - | jq '.flows[].goodput_bps'
  sudo weir lab experiments/linux/start-cubic.toml --runs 5 --json lab.json  # for `weir compare`

No two runs of a lab are the same; --runs shows how much they vary.")]
pub struct Args {
    /// Arguments shared with `weir sim`.
    #[command(flatten)]
    pub common: Common,
    /// Name of the namespaces (`weir-ID-cl` and so on), for looking into a running lab
    #[arg(long)]
    pub id: Option<String>,
    /// Run the experiment N times, one after the other, and print means with 95 % confidence intervals
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub runs: u32,
}

/// Runs the experiment and checks it, then prints and writes its result.
pub fn run(args: &Args) -> Result<(), Failure> {
    let source = super::source(&args.common.experiment)?;
    let experiment = experiment::parse_with(&source, &args.common.changes.lines()?)?;
    present::say_notes(&experiment);
    let plan = args.common.plan(experiment, Backend::Lab)?;
    let options = Options::with_signals().map_err(|e| Failure::Other(format!("signals: {e}")))?;
    let options = Options { id: args.id.clone(), pcap: args.common.pcap.clone(), ..options };
    args.common.to.begin()?;
    if args.runs > 1 {
        return several(args, &plan, &options);
    }
    let result = once(&plan, &options).map_err(Failure::Other)?;
    args.common.to.run(&plan, &result)?;
    present::verdict(&result)
}

/// Makes one run, checks it, and reports its faults.
pub(super) fn once(plan: &Plan, options: &Options) -> Result<RunResult, String> {
    let outcome = lab::run(plan, options)?;
    for fault in &outcome.faults {
        crate::output::say(&format!("weir lab: {fault}"));
    }
    let mut result = outcome.result;
    let beside = Options { pcap: None, ..options.clone() };
    baselines::run(plan, &mut result, |variant| {
        let outcome = lab::run(variant, &beside)?;
        outcome.faults.iter().for_each(|fault| crate::output::say(&format!("weir lab: {fault}")));
        Ok(outcome.result)
    })?;
    expect::conclude(plan, &mut result);
    Ok(result)
}

/// Runs the experiment several times. A failure to make the first run would affect all, so it ends the
/// command. A later failure is noted, and the remaining runs are made.
fn several(args: &Args, plan: &Plan, options: &Options) -> Result<(), Failure> {
    let mut runs: Vec<RunResult> = Vec::new();
    for n in 1..=args.runs as usize {
        let options = Options { pcap: part(args.common.pcap.as_deref(), n), ..options.clone() };
        let mut result = match once(plan, &options) {
            Err(error) if n == 1 => return Err(Failure::Other(error)),
            made => made.unwrap_or_else(|error| sweep::failed(plan, Backend::Lab, error)),
        };
        if let Some(directory) = part(args.common.to.out.as_deref(), n) {
            present::write(&directory, plan, &result)?;
        }
        present::without_received(&mut result);
        let interrupted = result.status == Status::Interrupted;
        runs.push(result);
        if interrupted {
            break;
        }
    }
    let summary = summaries(&runs);
    let runs = Runs { schema: SCHEMA, runs, summary };
    args.common.to.runs(&runs, &[], plan, args.runs as usize)?;
    present::verdict_of(&runs.runs, args.runs as usize)
}
