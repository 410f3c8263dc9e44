//! `weir run`: the gateway on an interface of this host.

use crate::config::gateway::{self, GatewayFile};
use crate::config::units;
use crate::error::Failure;
use crate::output::Target;
use crate::run;
use std::path::PathBuf;
use weir_core::rate::Rate;

/// Arguments of `weir run`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  sudo weir run --dev eth1 --out-flow-rate 20Mbit --in-flow-rate 50Mbit
  sudo weir run gateway.toml --json /run/weir/stats.json

The interface is the one towards the WAN, of a router, a masquerading router, a bridge or the end host
itself. Data stays in the kernel; if Weir dies, everything passes.")]
pub struct Args {
    #[command(flatten)]
    source: Origin,
    /// Write totals, classes and active flows as JSON to this file, every second and at the end
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Where a gateway's configuration comes from: a file, or flags for the short form.
#[derive(clap::Args, Debug)]
pub struct Origin {
    /// The configuration: [ports] and [gateway]
    #[arg(value_name = "GATEWAY.toml", conflicts_with_all = ["dev", "out_flow_rate", "in_flow_rate"])]
    config: Option<PathBuf>,
    #[command(flatten)]
    short: Short,
}

/// A gateway without a file: every flow of a direction at a rate of its own.
#[derive(clap::Args, Debug)]
pub struct Short {
    /// Interface towards the WAN, instead of a file
    #[arg(long, value_name = "INTERFACE", value_parser = units::interface)]
    dev: Option<String>,
    /// Rate of each flow whose data leaves by the interface (uploads), e.g. 20Mbit
    #[arg(long, value_name = "RATE", value_parser = gateway::flow_rate, requires = "dev")]
    out_flow_rate: Option<Rate>,
    /// Rate of each flow whose data comes in by it (downloads)
    #[arg(long, value_name = "RATE", value_parser = gateway::flow_rate, requires = "dev")]
    in_flow_rate: Option<Rate>,
}

impl Origin {
    /// Reads and parses the configuration.
    pub fn load(&self) -> Result<GatewayFile, Failure> {
        match &self.config {
            Some(path) => Ok(gateway::parse(&super::source(path)?)?),
            None => self.short.load(),
        }
    }
}

impl Short {
    /// The configuration that it stands for.
    pub fn load(&self) -> Result<GatewayFile, Failure> {
        let Some(dev) = &self.dev else {
            let text = "nothing to run: give a file, or an interface and a rate, for example \
                        --dev eth1 --out-flow-rate 20Mbit";
            return Err(Failure::Input(text.into()));
        };
        if self.out_flow_rate.is_none() && self.in_flow_rate.is_none() {
            let text = format!(
                "--dev {dev} without a rate: give --out-flow-rate, --in-flow-rate or both, for example \
                 --out-flow-rate 20Mbit"
            );
            return Err(Failure::Input(text));
        }
        Ok(gateway::short(dev, self.out_flow_rate, self.in_flow_rate)?)
    }
}

/// Runs until SIGINT or SIGTERM.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut file = args.source.load()?;
    let json = args.json.as_deref().map(Target::of_a_daemon).transpose().map_err(Failure::Input)?;
    super::log();
    file.gateway.seed = random_seed().map_err(Failure::Other)?;
    run::gateway(&file, json).map_err(Failure::Other)
}

/// A seed that nobody outside knows, for the flow table's hash.
fn random_seed() -> Result<u64, String> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|e| format!("random numbers: {e}"))?;
    Ok(u64::from_ne_bytes(bytes))
}
