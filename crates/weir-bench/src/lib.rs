//! The figures of `docs/measurements.md`, measured in the lab and in the simulator. Machines are noisy and
//! slow down when hot, so the cases of a comparison take turns.

mod all;
mod chirp;
mod customers;
mod datagrams;
mod figures;
mod hostile;
mod inline;
mod outage;
mod pace;
mod postack;
mod processes;
mod rates;
pub mod reload;
mod share;
mod sim;
pub mod soak;
mod two_way;
mod wan;

use clap::{Args, Subcommand};
use serde::Serialize;
use std::path::{self, PathBuf};
use weir::execute::lab::{self, Options, Outcome};
use weir::experiment::config::gateway;
use weir::experiment::plan::{BoxKind, FlowGroup, Path, Plan, Ports};
use weir::result::Status;
use weir_core::gateway::Direction;
use weir_core::rate::Rate;
use weir_core::time::Duration;

/// Benchmark to run.
#[derive(Clone, Debug, Subcommand)]
pub enum Bench {
    /// Throughput through a bridge, a router and a masquerading router, with Weir and without
    Inline(inline::Args),
    /// Throughput when every frame of one direction goes through user space
    All(Common),
    /// Throughput of classes with queues beside the kernel's HTB
    Share(Common),
    /// Thousands of customers of a list: accuracy of each one's rate, processor time and memory
    Customers(customers::Args),
    /// Small datagrams through a bridge: packets a second with Weir and without
    Datagrams(Common),
    /// Data both ways in one connection; requests and responses
    TwoWay(Common),
    /// Accuracy of high rates, without an emulator
    Rates(Common),
    /// Pauses of frames and TCP when the engine is killed or hangs, and the accuracy of the rate afterwards
    Outage(Common),
    /// Cost of a reload under load
    Reload(Common),
    /// An hour of mixed traffic through a gateway under reloads and failures
    Soak(Common),
    /// Effect of attacks, floods and forged segments on shaped flows
    Hostile(hostile::Args),
    /// Accuracy of the gaps of paced chirping in this kernel, and its cost compared with CUBIC
    Chirp(Common),
    /// Speed and memory of the simulator
    Sim(sim::Args),
    /// Accuracy of the WAN emulator's delays, spinning and sleeping
    Wan(wan::Args),
    /// Tables 1 and 2 of PostACK as measured: buffer, goodput under loss, fairness, senders; time for a
    /// packet, memory of a flow
    Postack(postack::Args),
    /// Pacing: a hundred thousand classes on one line in virtual time, and deadlines beside the kernel's TBF
    Pace(pace::Args),
}

/// Arguments of every benchmark.
#[derive(Clone, Debug, Args)]
pub struct Common {
    /// Write the figures as JSON to this file; `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Number of measurements of each case; the median is printed
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: u32,
    /// Seconds of traffic in each run, instead of the benchmark's own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=86_400))]
    pub seconds: Option<u64>,
}

/// Runs the benchmark and prints its results.
pub fn run(bench: &Bench) -> Result<(), String> {
    match bench {
        Bench::Inline(args) => inline::run(args),
        Bench::All(common) => all::run(common),
        Bench::Share(common) => share::run(common),
        Bench::Customers(args) => customers::run(args),
        Bench::Datagrams(common) => datagrams::run(common),
        Bench::TwoWay(common) => two_way::run(common),
        Bench::Rates(common) => rates::run(common),
        Bench::Outage(common) => outage::run(common),
        Bench::Reload(common) => reload::run(common),
        Bench::Soak(common) => soak::run(common),
        Bench::Hostile(args) => hostile::run(args),
        Bench::Chirp(common) => chirp::run(common),
        Bench::Sim(args) => sim::run(args),
        Bench::Wan(args) => wan::run(args),
        Bench::Postack(args) => postack::run(args),
        Bench::Pace(args) => pace::run(args),
    }
}

/// Writes the figures to the requested file.
fn write(common: &Common, figures: &impl Serialize) -> Result<(), String> {
    let Some(path) = &common.json else { return Ok(()) };
    weir::command::write_json(path, figures).map_err(|e| e.to_string())
}

/// Returns a plan of `flows` uploads over `path`.
fn plan(name: &str, path: Path, seconds: u64, flows: u32) -> Plan {
    let bin = Duration::from_millis(1);
    let groups = vec![group("flow", Direction::Out, flows, 5001)];
    Plan { bin, path, groups, ..Plan::new(name, Duration::from_secs(seconds)) }
}

/// Returns a group of `flows` flows to one port.
fn group(id: &str, direction: Direction, flows: u32, port: u16) -> FlowGroup {
    let mut group = FlowGroup { count: flows, direction, ports: Ports::Shared(port), ..FlowGroup::new(id) };
    group.tcp.cc = Some("cubic".into());
    group
}

/// Applies the ACK shaper with its defaults to all flows of the directions with a rate.
fn shape(plan: &mut Plan, out: Option<Rate>, inward: Option<Rate>) {
    plan.gateway = out.or(inward).map(|_| gateway::one_rate(out, inward));
}

/// Runs a plan to its end. Fails if SIGINT ended the run early, which ends the benchmark.
fn whole(plan: &Plan, options: &Options) -> Result<Outcome, String> {
    let outcome = lab::run(plan, options)?;
    match outcome.result.status {
        Status::Interrupted => Err("interrupted".into()),
        Status::Ok | Status::Failed => Ok(outcome),
    }
}

/// Runs a plan to its end. Fails also if flows failed.
fn measure(plan: &Plan, options: &Options) -> Result<Outcome, String> {
    let outcome = whole(plan, options)?;
    match outcome.faults.first() {
        Some(fault) => Err(fault.clone()),
        None => Ok(outcome),
    }
}

/// Returns options of a lab without a progress bar; SIGINT ends it.
fn options() -> Result<Options, String> {
    let mut options = Options::with_signals().map_err(|e| format!("signals: {e}"))?;
    options.progress = false;
    options.program = beside(&options.program)?;
    Ok(options)
}

/// Returns the program `weir` beside another one: the one that is measured.
pub fn beside(program: &path::Path) -> Result<PathBuf, String> {
    let weir = program.with_file_name("weir");
    match weir.exists() {
        true => Ok(weir),
        false => Err(format!("there is no {}: build it with `cargo build --release`", weir.display())),
    }
}

/// Returns the total goodput of a direction's flows.
fn goodput(outcome: &Outcome, plan: &Plan, direction: Direction) -> f64 {
    let flows = plan.flows().zip(&outcome.result.flows);
    flows.filter(|(p, _)| p.direction() == direction).map(|(_, f)| f.goodput_bps).sum()
}

/// Boxes between two networks.
const BOXES: [BoxKind; 3] = [BoxKind::Bridge, BoxKind::Router, BoxKind::Nat];
