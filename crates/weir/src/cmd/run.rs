//! `weir run`: the gateway between two interfaces.

use crate::config::gateway::{self, GatewayFile, Ports, XdpMode};
use crate::error::Failure;
use crate::run;
use std::path::PathBuf;
use weir_core::time::Duration;

/// Arguments of `weir run`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  sudo weir run gateway.toml
  sudo weir run gateway.toml --json /run/weir/stats.json

Both interfaces are, or become, ports of one kernel bridge: whatever Weir does not take, and everything
if it dies, flows through the kernel.")]
pub struct Args {
    /// The configuration: [ports] and [gateway]
    #[arg(value_name = "GATEWAY.toml")]
    pub config: PathBuf,
    /// Write totals, classes and flows as JSON to this file, every second and at the end
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

impl Args {
    /// Reads and parses the configuration.
    pub fn load(&self) -> Result<GatewayFile, Failure> {
        Ok(gateway::parse(&super::source(&self.config)?)?)
    }
}

/// Runs until SIGINT or SIGTERM.
pub fn run(args: &Args) -> Result<(), Failure> {
    let file = args.load()?;
    super::log();
    // A gateway's releases are milliseconds apart: it need not spin for the last tens of microseconds.
    let mut config = file.gateway;
    config.seed = random_seed().map_err(Failure::Other)?;
    run::gateway(&ports(&file.ports, Duration::ZERO, 40), &config, args.json.clone()).map_err(Failure::Input)
}

/// A seed that nobody outside knows, for the flow table's hash.
fn random_seed() -> Result<u64, String> {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|e| format!("random numbers: {e}"))?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Ports as the file says them, for the driver; with `spin` and `priority` unless it says others.
pub fn ports(p: &Ports, spin: Duration, priority: u8) -> run::Ports {
    let mut ports = run::Ports::new(&p.lan, &p.wan);
    ports.xdp = match p.mode {
        XdpMode::Auto => None,
        XdpMode::Native => Some(weir_io::bpf::XdpMode::Native),
        XdpMode::Skb => Some(weir_io::bpf::XdpMode::Skb),
    };
    ports.zero_copy = p.zero_copy;
    ports.driver.priority = Some(p.priority.unwrap_or(priority)).filter(|&p| p > 0);
    ports.driver.cpu = p.cpu.map(|c| c as usize);
    ports.driver.spin = p.spin.unwrap_or(spin);
    ports
}
