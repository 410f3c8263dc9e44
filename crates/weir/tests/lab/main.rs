//! Labs in real namespaces. They need root; without it each test says so and passes.

mod between;
mod both;
mod carries;
mod counters;
mod emulated;
mod engines;
mod filter;
mod home;
mod iperf;
mod life;
mod measures;
mod nets;
mod pacing;
#[cfg(feature = "quic")]
mod quic;
mod rates;
mod rig;
mod upgrade;

use rig::{holds, id, judged, left_behind, root, turn};
use std::process::{Command, Stdio};
use weir::execute::lab::{self, Options, Outcome};
use weir::experiment::plan::{FlowGroup, Length, Plan, Ports};
use weir_core::gateway::Direction;
use weir_core::time::Duration as Nanos;

fn options(id: &str) -> Options {
    rig::options(id, env!("CARGO_BIN_EXE_weir"))
}

fn group(id: &str, port: u16, direction: Direction, length: Length) -> FlowGroup {
    let mut group = FlowGroup::new(id);
    group.tcp.cc = Some("reno".into());
    FlowGroup { start: Nanos::from_millis(100), length, direction, ports: Ports::Shared(port), ..group }
}

fn plan(ms: u64, groups: Vec<FlowGroup>) -> Plan {
    let interval = Nanos::from_millis(200);
    Plan { interval, groups, ..Plan::new("lab-test", Nanos::from_millis(ms)) }
}

fn run(plan: &Plan, options: &Options) -> Outcome {
    let outcome = lab::run(plan, options).unwrap();
    assert!(!left_behind(options.id.as_ref().unwrap()), "the lab left something behind");
    outcome
}

fn installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_err() {
        eprintln!("skipped: {program} is missing");
    }
    found.is_ok()
}

/// Nothing went wrong at the flows' ends.
fn without_faults(outcome: &Outcome) -> Result<(), String> {
    holds(outcome.faults.is_empty(), &outcome.faults)
}
