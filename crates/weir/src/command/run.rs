//! `weir run`: the gateway on an interface of this host.

use super::short::Short;
use crate::command::error::Failure;
use crate::field::{self, Version};
use crate::output::Target;
use std::path::PathBuf;

/// Arguments of `weir run`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  sudo weir run --dev eth1 --out-flow-rate 20Mbit --in-flow-rate 50Mbit
  sudo weir run --dev eth0 --uplink 1Mbit --ack-filter
  sudo weir run gateway.toml --json /run/weir/stats.json

The interface is the one towards the WAN, whether this host is a router, a masquerading router, a bridge or the end \
host itself. Data stays in the kernel. If Weir dies, all traffic passes.")]
pub struct Args {
    #[command(flatten)]
    source: Origin,
    /// Write totals, classes and active flows to this file as JSON, every second and at the end
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    log: super::log::Logging,
}

/// Source of a gateway's configuration: a file, or flags for the short form.
#[derive(clap::Args, Debug)]
pub struct Origin {
    /// Configuration file
    #[arg(help = "The configuration: [ports] and [gateway]", value_name = "GATEWAY.toml", conflicts_with_all = ["dev", "out_flow_rate", "in_flow_rate", "uplink", "ack_filter", "link_layer"])]
    config: Option<PathBuf>,
    #[command(flatten)]
    short: Short,
}

impl Origin {
    /// Reads and parses the configuration.
    fn version(&self) -> Result<Version, Failure> {
        match &self.config {
            Some(path) => Ok(Version::read(super::source(path)?)?),
            None => Ok(Version::read(self.short.load()?)?),
        }
    }
}

/// Runs until SIGINT or SIGTERM.
pub fn run(args: &Args) -> Result<(), Failure> {
    let version = args.source.version()?;
    let json = args.json.as_deref().map(Target::of_a_daemon).transpose().map_err(Failure::Input)?;
    args.log.begin()?;
    let seed = super::random_seed().map_err(Failure::Other)?;
    field::gateway(version, args.source.config.clone(), seed, json).map_err(|why| {
        weir_io::supervise::status(&why);
        Failure::Other(why)
    })
}
