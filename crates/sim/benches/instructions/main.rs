//! Scenarios whose instructions are counted: `scripts/instructions` runs each under callgrind.
//!
//! Machines differ by two in time within hours, and by nothing in instructions. `instructions --list` prints
//! one line a scenario: its name and the function that callgrind counts in. `instructions NAME` prepares the
//! scenario, then runs it and prints how many packets that were. What `forget` is called after is not
//! counted.

#![allow(clippy::disallowed_methods)] // the gateway's scenario reads the clock for its own benchmark
#![allow(dead_code)] // scenarios have more than is counted here

#[path = "../../../core/benches/scenarios/ack_filter.rs"]
mod ack_filter;
#[path = "../../../core/benches/scenarios/class.rs"]
mod class;
#[path = "../scenarios/dumbbell.rs"]
mod dumbbell;
#[path = "../../../core/benches/scenarios/gateway.rs"]
mod gateway;
#[path = "../../../core/benches/scenarios/pace.rs"]
mod pace;
mod start;

use dumbbell::Load;
use std::process::ExitCode;
use weir_core::link::QueueLimit;
use weir_core::pace::Backend;
use weir_core::queue::ack_filter::{Policy, Service};
use weir_core::queue::{pfq, Kind};
use weir_core::time::{Duration, Time};

/// Packets that are counted, at least.
const PACKETS: u64 = 20_000;

struct Scenario {
    name: &'static str,
    /// Pattern of the function that callgrind counts in.
    within: &'static str,
    /// Returns the packets that were handled after `forget`.
    run: fn() -> u64,
}

const MEASURED: &str = "*measured*";
const GATEWAY: &str = "*gateway::Bench::process";

const SCENARIOS: [Scenario; 12] = [
    Scenario { name: "ack/1", within: GATEWAY, run: || ack(1) },
    Scenario { name: "ack/1000", within: GATEWAY, run: || ack(1_000) },
    Scenario { name: "ack/100000", within: GATEWAY, run: || ack(100_000) },
    Scenario { name: "payload/1000", within: GATEWAY, run: payload },
    Scenario { name: "queue/1000", within: MEASURED, run: queue },
    Scenario { name: "classes/1000", within: MEASURED, run: classes },
    Scenario { name: "filter/1000", within: MEASURED, run: filter },
    Scenario { name: "pace/100", within: MEASURED, run: pace },
    Scenario { name: "chirp/1", within: MEASURED, run: chirp },
    Scenario { name: "simulated/1", within: MEASURED, run: || simulated(Load::of(1)) },
    Scenario { name: "simulated/1000", within: MEASURED, run: || simulated(Load::of(1_000)) },
    Scenario { name: "simulated/100000", within: MEASURED, run: crowded },
];

/// Preparations end here: callgrind is told to forget them.
#[inline(never)]
fn forget() {
    std::hint::black_box(());
}

#[inline(never)]
fn measured<T>(run: impl FnOnce() -> T) -> T {
    forget();
    run()
}

/// An ACK of a backlogged flow in, a made one out.
fn ack(flows: u32) -> u64 {
    let mut bench = gateway::Bench::new(flows);
    forget();
    bench.run(PACKETS);
    PACKETS
}

/// A data segment of a flow whose ACKs the gateway holds.
fn payload() -> u64 {
    let mut bench = gateway::Bench::opened(1_000);
    bench.payload(PACKETS);
    forget();
    bench.payload(PACKETS);
    PACKETS
}

fn turns(mut bench: class::Bench) -> u64 {
    (0..PACKETS).for_each(|_| bench.turn());
    measured(|| (0..PACKETS).for_each(|_| bench.turn()));
    PACKETS
}

/// A frame out of a queue per flow and in again.
fn queue() -> u64 {
    turns(class::Bench::new(Kind::Pfq(pfq::Params { flows: 2_000, ..pfq::Params::default() }), 1, 1_000))
}

/// A frame out of one of a thousand classes and in again.
fn classes() -> u64 {
    turns(class::Bench::new(Kind::Fifo, 1_000, 1_000))
}

/// An ACK that takes the place of the oldest redundant one of its flow.
fn filter() -> u64 {
    let mut bench = ack_filter::Bench::new(Policy::Classical, Service::Fifo, 1_000, 10_000);
    (0..PACKETS).for_each(|_| bench.come(1_000));
    measured(|| (0..PACKETS).for_each(|_| bench.come(1_000)));
    PACKETS
}

/// A packet of one of a hundred classes, and the gap packets before it.
fn pace() -> u64 {
    let mut bench = pace::Bench::new(Backend::Gap, 100);
    let mut run = || (0..PACKETS).for_each(|_| while !bench.turn() {});
    run();
    measured(run);
    PACKETS
}

/// A packet of a chirp: gap, departure and ACK.
fn chirp() -> u64 {
    let mut path = start::Path::new();
    measured(|| path.run(PACKETS))
}

/// A data segment or an ACK across a simulated bottleneck, with both hosts.
fn simulated(load: Load) -> u64 {
    let (mut world, links) = dumbbell::dumbbell(load);
    let begun = Time::ZERO + load.apart.saturating_mul(u64::from(load.flows));
    let mut until = begun + Duration::from_millis(500);
    world.run_until(until);
    let before = dumbbell::crossed(&world, links);
    measured(|| {
        while dumbbell::crossed(&world, links) - before < PACKETS {
            until += Duration::from_millis(10);
            world.run_until(until);
        }
    });
    dumbbell::crossed(&world, links) - before
}

/// A segment among 100,000 flows. Two segments of each fill the link for seconds, and wait in its queue.
fn crowded() -> u64 {
    let apart = Duration::from_micros(1);
    simulated(Load { flows: 100_000, apart, window: 2 * 1_448, queue: QueueLimit::Unlimited })
}

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let [name] = names.as_slice() else {
        eprintln!("usage: instructions --list | NAME");
        return ExitCode::from(2);
    };
    if name == "--list" {
        SCENARIOS.iter().for_each(|s| println!("{} {}", s.name, s.within));
        return ExitCode::SUCCESS;
    }
    let Some(scenario) = SCENARIOS.iter().find(|s| s.name == name) else {
        eprintln!("instructions: no scenario {name}: `instructions --list` names them");
        return ExitCode::from(2);
    };
    println!("{}", (scenario.run)());
    ExitCode::SUCCESS
}
