//! `weir bench`: the figures of the README, measured in the lab and in the simulator.

mod inline;
mod outage;
mod sim;
mod wan;

use crate::config::{gateway, Source};
use crate::lab::Options;
use crate::plan::{FlowGroup, Path, Plan};
use clap::{Args, Subcommand};
use serde::Serialize;
use std::path::PathBuf;
use weir_core::rate::Rate;
use weir_core::time::Duration;

/// What to measure.
#[derive(Clone, Debug, Subcommand)]
pub enum Bench {
    /// Throughput through the gateway against that of a plain kernel bridge, in turns.
    Inline(Common),
    /// How long frames and TCP stand still when the engine is killed or hangs.
    Outage(Common),
    /// How fast the simulator is, and how much memory it takes.
    Sim(sim::Args),
    /// How exactly the WAN emulator delays, idle and loaded.
    Wan(Common),
}

/// What every benchmark takes.
#[derive(Clone, Debug, Args)]
pub struct Common {
    /// Write the figures as JSON to this file (`-`: standard output).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// How often each case is measured; the median is printed.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: u32,
}

/// Measures and prints.
pub fn run(bench: &Bench) -> Result<(), String> {
    match bench {
        Bench::Inline(common) => inline::run(common),
        Bench::Outage(common) => outage::run(common),
        Bench::Sim(args) => sim::run(args),
        Bench::Wan(common) => wan::run(common),
    }
}

/// Writes what was measured where it was asked for.
fn write(common: &Common, figures: &impl Serialize) -> Result<(), String> {
    let Some(path) = &common.json else { return Ok(()) };
    super::write_json(path, figures).map_err(|e| e.to_string())
}

/// A plan of uploads over `path`.
fn plan(name: &str, path: Path, seconds: u64, flows: u32) -> Plan {
    let mut group = FlowGroup::new("flow");
    group.count = flows;
    group.tcp.cc = Some("cubic".into());
    let bin = Duration::from_millis(1);
    Plan { bin, path, groups: vec![group], ..Plan::new(name, Duration::from_secs(seconds)) }
}

/// How much every flow may have acknowledged and held.
const STANDING_DELAY: Duration = Duration::from_millis(50);

/// Puts every flow of `plan` under the ACK shaper at `rate`; returns the text that says so, which the
/// plan's gateway is parsed from too, so that the two cannot differ.
fn shape(plan: &mut Plan, rate: Rate) -> Result<String, String> {
    let text = format!(
        "[[gateway.class]]\nname = \"all\"\nack = {{ preset = \"ack-shaper\", flow_rate = \"{rate}\", \
         standing_delay = \"{STANDING_DELAY}\" }}\n"
    );
    let ports = "[ports]\ndev = \"wan\"\n";
    let file = gateway::parse(&Source::new("bench", format!("{ports}{text}"))).map_err(|e| e.to_string())?;
    plan.gateway = Some(file.gateway);
    Ok(text)
}

/// A lab without a progress bar that SIGINT ends.
fn options() -> Result<Options, String> {
    let mut options = Options::with_signals().map_err(|e| format!("signals: {e}"))?;
    options.progress = false;
    Ok(options)
}

/// The middle value; the upper of two.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
