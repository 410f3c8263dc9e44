//! `weir lab`: an experiment in network namespaces, with the real Linux TCP.

use crate::config::experiment;
use crate::error::Failure;
use crate::plan::Plan;
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
    /// Write the frames of every port into this directory, one pcap file for each
    #[arg(long, value_name = "DIR")]
    pub pcap: Option<PathBuf>,
    /// Use this seed instead of the file's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

impl Args {
    /// Reads and parses the experiment into a plan that the lab can do, with the seed of the command
    /// line if there is one.
    pub fn load(&self) -> Result<Plan, Failure> {
        let mut plan = experiment::parse(&super::source(&self.experiment)?)?.plan_for(World::Lab)?;
        if let Some(seed) = self.seed {
            plan.reseed(seed);
        }
        Ok(plan)
    }
}
