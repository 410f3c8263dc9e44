//! `weir run`: a gateway between two interfaces.

use super::{log, Failure};
use crate::config::{gateway as config, Source};
use crate::run;
use clap::Args;
use std::path::PathBuf;
use weir_core::time::Duration;

/// Arguments of `weir run`.
#[derive(Debug, Args)]
#[command(after_help = "Both interfaces are, or become, ports of one kernel bridge: whatever Weir does not take, \
                        and everything if it dies, flows through the kernel.\n\nExample: weir run gateway.toml \
                        --json /run/weir/stats.json")]
pub struct Arguments {
    /// Configuration: `[ports]` and `[gateway]`, see examples/gateway.toml.
    #[arg(value_name = "GATEWAY.TOML")]
    pub file: PathBuf,
    /// Write totals, classes and flows as JSON to this file, every second and at the end.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Runs until SIGINT or SIGTERM.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let source = Source::read(&arguments.file)?;
    let file = config::parse(&source).map_err(|e| e.to_string())?;
    log();
    let mut gateway = file.gateway;
    gateway.seed = random_seed()?;
    run::gateway(&ports(&file.ports)?, &gateway, arguments.json.clone())?;
    Ok(())
}

/// A seed that nobody outside knows, for the flow table's hash.
fn random_seed() -> Result<u64, String> {
    let mut bytes = [0; 8];
    let n = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    n.map_err(|e| format!("random numbers: {e}"))?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Ports as the file says them, for the driver.
pub fn ports(p: &config::Ports) -> Result<run::Ports, String> {
    let mut ports = run::Ports::new(&p.lan, &p.wan);
    ports.xdp = match p.mode {
        config::XdpMode::Auto => None,
        config::XdpMode::Native => Some(weir_io::bpf::XdpMode::Native),
        config::XdpMode::Skb => Some(weir_io::bpf::XdpMode::Skb),
    };
    ports.zero_copy = p.zero_copy.unwrap_or(true);
    ports.driver.priority = p.priority;
    ports.driver.cpu = p.cpu.map(|c| c as usize);
    ports.driver.spin = Duration::from_nanos(p.spin.as_nanos());
    Ok(ports)
}
