//! `weir lab`: an experiment in network namespaces, with the real Linux TCP.

use super::present::Presentation;
use crate::config::experiment;
use crate::error::Failure;
use crate::expect;
use crate::lab::{self, Options};
use crate::result::World;
use std::path::PathBuf;

/// Arguments of `weir lab`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  sudo weir lab experiments/examples/annotated.toml
  sudo weir lab experiments/papers/ack-shaper/fig12.toml --json fig12.json --out out/fig12
  sudo weir lab experiments/papers/ack-shaper/fig12-short.toml --json - | jq '.flows[].goodput_bps'")]
pub struct Args {
    /// The experiment
    #[arg(value_name = "EXPERIMENT.toml")]
    pub experiment: PathBuf,
    /// Write the result as JSON; `-` is standard output, and the table then goes to standard error
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write charts (SVG) and series (CSV) into this directory, which is made if needed
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Write the frames at the hosts and at the gateway's ports into this directory, a pcap file for each
    #[arg(long, value_name = "DIR")]
    pub pcap: Option<PathBuf>,
    /// Name of the namespaces (`weir-ID-cl` and so on), for looking into a running lab
    #[arg(long)]
    pub id: Option<String>,
    /// Use this seed instead of the file's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
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
    let outcome = lab::run(&plan, &source.text, &options).map_err(Failure::Input)?;
    for fault in &outcome.faults {
        eprintln!("weir lab: {fault}");
    }
    let mut result = outcome.result;
    expect::conclude(&plan, &mut result);
    let to = Presentation { json: args.json.as_deref(), out: args.out.as_deref() };
    to.run(&plan, &result)?;
    super::present::verdict(&result)
}
