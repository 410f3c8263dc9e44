//! `weir wan`: an emulator between two interfaces.

use super::{gateway, log, Failure};
use crate::config::path::parse_wan;
use crate::config::Source;
use crate::run;
use clap::Args;
use std::path::PathBuf;

/// Arguments of `weir wan`: a file, or the same said in options.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  weir wan wan.toml\n  weir wan --lan eth0 --wan eth1 --rate 10Mbit --rtt 40ms \
                        --queue 1bdp --loss 0.01%")]
pub struct Arguments {
    /// Configuration: `[ports]` and `[path]`.
    #[arg(value_name = "WAN.TOML", required_unless_present_all = ["lan", "wan"], conflicts_with_all = ["lan", "wan"])]
    pub file: Option<PathBuf>,
    /// Interface towards the LAN.
    #[arg(long, value_name = "INTERFACE", requires = "wan")]
    pub lan: Option<String>,
    /// Interface towards the WAN.
    #[arg(long, value_name = "INTERFACE", requires = "lan")]
    pub wan: Option<String>,
    /// Rate of each direction: `10Mbit`.
    #[arg(long, requires = "lan")]
    pub rate: Option<String>,
    /// Round-trip time, half of it in each direction: `40ms`.
    #[arg(long, requires = "lan")]
    pub rtt: Option<String>,
    /// Limit of each queue: `100p`, `64KiB` or `1bdp`.
    #[arg(long, requires = "lan")]
    pub queue: Option<String>,
    /// Random loss in each direction: `0.01%`.
    #[arg(long, requires = "lan")]
    pub loss: Option<String>,
    /// Seed of random loss.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write what the links did as JSON to this file, every second and at the end.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Runs until SIGINT or SIGTERM.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let source = match &arguments.file {
        Some(file) => Source::read(file)?,
        None => Source::new("command line", as_file(arguments)),
    };
    let file = parse_wan(&source).map_err(|e| e.to_string())?;
    log();
    let emulator = run::Emulator {
        name: "wan".into(),
        seed: arguments.seed,
        out: file.path.wan_out,
        back: file.path.wan_back,
    };
    run::emulator(&gateway::ports(&file.ports)?, &emulator, arguments.json.clone())?;
    Ok(())
}

/// The options as the file that says the same.
fn as_file(a: &Arguments) -> String {
    let text = |s: &str| toml::Value::String(s.into()).to_string();
    let line = |key: &str, value: &Option<String>| {
        value.as_ref().map_or(String::new(), |v| format!("{key} = {}\n", text(v)))
    };
    let ports = line("lan", &a.lan) + &line("wan", &a.wan);
    let both = line("rate", &a.rate) + &line("queue", &a.queue) + &line("loss", &a.loss);
    let rtt = line("rtt", &a.rtt);
    format!("[ports]\n{ports}\n[path]\n{rtt}\n[path.wan]\n{both}")
}
