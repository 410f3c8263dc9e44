//! `weir run`: the gateway between two interfaces.

use crate::config::gateway::{self, GatewayFile};
use crate::config::units;
use crate::error::Failure;
use std::path::PathBuf;
use weir_core::time::Duration;

/// Arguments of `weir run`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  sudo weir run gateway.toml
  sudo weir run gateway.toml --duration 60s --json stats.json")]
pub struct Args {
    /// The configuration: [ports] and [gateway]
    #[arg(value_name = "GATEWAY.toml")]
    pub config: PathBuf,
    /// Stop after this long, e.g. 60s; without it, run until SIGINT or SIGTERM
    #[arg(long, value_name = "TIME", value_parser = units::positive_duration)]
    pub duration: Option<Duration>,
    /// Write the final statistics as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

impl Args {
    /// Reads and parses the configuration.
    pub fn load(&self) -> Result<GatewayFile, Failure> {
        Ok(gateway::parse(&super::source(&self.config)?)?)
    }
}
