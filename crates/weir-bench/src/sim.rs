//! Speed and memory of the simulator: packets of the usual dumbbell per second of processor time, and the
//! memory of idle flows and hosts. Each case runs in a process of its own, so that its memory can be
//! measured.

use super::figures::Spread;
use super::{write, Common};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::process::Command;
use weir::execute::sim::{build, Carrier, FlowEnd, Topology, WiredFlow};
use weir::experiment::plan::{FlowGroup, Path, Plan, Protocol, Value};
use weir_core::link;
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};
use weir_sim::host::{Host, HostConfig, WIRE};
use weir_sim::world::World;

/// Numbers of flows.
const FLOWS: [u32; 4] = [1, 10, 100, 1000];
const RATE: Rate = Rate::mbit(1000);
const RTT: Duration = Duration::from_millis(20);
const SECONDS: u64 = 10;
/// Number of flows without data to send, and the time in which they connect.
const IDLE_FLOWS: u32 = 10_000;
const IDLE: Duration = Duration::from_secs(2);
/// Number of hosts in the case without flows.
const HOSTS: u32 = 2_000;
/// Names of the cases that are not a number of flows.
const IDLE_CASE: &str = "idle";
const HOSTS_CASE: &str = "hosts";

/// Arguments of `weir-bench sim`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    common: Common,
    /// Measure this case in this process and print it as JSON: a number of flows, "idle" or "hosts"
    #[arg(long, hide = true)]
    case: Option<String>,
}

/// Results of one measurement.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Case {
    flows: u32,
    /// Number of packets that crossed the bottleneck: data one way, ACKs the other.
    packets: u64,
    /// Number of nodes served and frames handed to nodes.
    steps: u64,
    /// Processor time in seconds.
    cpu_s: f64,
    /// Payload bits received per second of virtual time.
    goodput_bps: f64,
    /// Peak memory of the process, and the world's part of it.
    peak_bytes: u64,
    world_bytes: u64,
}

#[derive(Debug, Default, Serialize)]
struct Figures {
    dumbbell: Vec<Vec<Case>>,
    idle: Vec<Case>,
    /// Memory of the world of hosts, in bytes.
    hosts: Vec<u64>,
}

pub(super) fn run(args: &Args) -> Result<(), String> {
    if let Some(case) = &args.case {
        return measure_here(case);
    }
    let mut figures = Figures { dumbbell: vec![Vec::new(); FLOWS.len()], ..Figures::default() };
    // Cases take turns, because machines are noisy and slow down when hot.
    for _ in 0..args.common.runs {
        for (cases, flows) in figures.dumbbell.iter_mut().zip(FLOWS) {
            cases.push(in_a_process_of_its_own(&flows.to_string())?);
        }
        figures.idle.push(in_a_process_of_its_own(IDLE_CASE)?);
        figures.hosts.push(in_a_process_of_its_own(HOSTS_CASE)?);
    }
    print(&figures, args.common.runs);
    write(&args.common, &figures)
}

fn print(figures: &Figures, runs: u32) {
    let rtt = RTT.as_nanos() / 1_000_000;
    println!("dumbbell: {RATE}/s both ways, {rtt} ms, queues of one BDP, reno with SACK and delayed ACKs, {SECONDS} s");
    println!("packets are data and ACKs at the bottleneck; medians of {runs} runs\n");
    let (flows, packets, ns, steps) = ("flows", "M packets/CPU s", "ns/packet", "M steps/CPU s");
    println!("{flows:>6}  {packets:>15}  {ns:>9}  {steps:>13}  {:>7}  {:>14}", "peak MB", "goodput Mbit/s");
    for cases in &figures.dumbbell {
        let middle = |of: fn(&Case) -> f64| Spread::of(cases.iter().map(of).collect()).median;
        println!(
            "{:>6}  {:>15.2}  {:>9.0}  {:>13.2}  {:>7.1}  {:>14.1}",
            cases.first().map_or(0, |c| c.flows),
            middle(|c| c.packets as f64 / c.cpu_s / 1e6),
            middle(|c| c.cpu_s * 1e9 / c.packets as f64),
            middle(|c| c.steps as f64 / c.cpu_s / 1e6),
            middle(|c| c.peak_bytes as f64 / 1e6),
            middle(|c| c.goodput_bps / 1e6),
        );
    }
    let bytes = Spread::of(figures.idle.iter().map(|c| c.world_bytes as f64).collect()).median;
    let each = bytes / f64::from(IDLE_FLOWS);
    println!("\n{IDLE_FLOWS} idle flows: {:.1} MB, {each:.0} bytes each with both ends", bytes / 1e6);
    let bytes = Spread::of(figures.hosts.iter().map(|&bytes| bytes as f64).collect()).median;
    println!(
        "{HOSTS} hosts without flows: {:.0} bytes each with its two access links",
        bytes / f64::from(HOSTS)
    );
}

/// Measures a case and prints it for the parent process.
fn measure_here(case: &str) -> Result<(), String> {
    let json = match case {
        HOSTS_CASE => serde_json::to_string(&memory_of_hosts()?),
        IDLE_CASE => serde_json::to_string(&measure(&idle())?),
        flows => {
            let flows = flows.parse().map_err(|_| format!("no case {flows:?}"))?;
            serde_json::to_string(&measure(&dumbbell(flows))?)
        }
    };
    println!("{}", json.map_err(|e| e.to_string())?);
    Ok(())
}

fn in_a_process_of_its_own<T: DeserializeOwned>(case: &str) -> Result<T, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut command = Command::new(program);
    command.args(["sim", "--case", case]).stderr(std::process::Stdio::inherit());
    let out = command.output().map_err(|e| e.to_string())?;
    if !out.status.success() {
        return Err(format!("the case {case} failed: {}", out.status));
    }
    serde_json::from_slice(&out.stdout).map_err(|e| e.to_string())
}

/// Returns the memory in bytes of idle hosts, each with a link in either direction.
fn memory_of_hosts() -> Result<u64, String> {
    let before = resident("VmRSS:")?;
    let mut world = World::new();
    let access = link::Config { rate: Some(RATE), delay: Duration::from_millis(1), ..link::Config::BARE };
    for seed in 0..u64::from(HOSTS) {
        let host = world.add(Host::new(HostConfig { mac: [2; 6], next_hop: [4; 6], seed }));
        let (up, down) = (world.add(link::Link::new(access)), world.add(link::Link::new(access)));
        world.wire((host, WIRE), (up, link::Link::IN));
        world.wire((down, link::Link::OUT), (host, WIRE));
    }
    world.run_until(Time::from_millis(1));
    Ok(resident("VmRSS:")?.saturating_sub(before))
}

fn measure(plan: &Plan) -> Result<Case, String> {
    let end = Time::ZERO + plan.duration;
    let before = resident("VmRSS:")?;
    let mut topology = build(plan)?;
    let begin = processor_time();
    topology.world.run_until(end);
    let cpu_s = processor_time() - begin;
    let peak = resident("VmHWM:")?;
    let received = |flow: &WiredFlow| match flow.ends.receiver.1 {
        FlowEnd::Tcp(_, id) => {
            topology.world.get::<Host>(flow.receiver).map_or(0, |host| host.report(id).received)
        }
        FlowEnd::Udp(_) => 0,
    };
    let received: u64 = topology.flows.iter().map(received).sum();
    Ok(Case {
        flows: plan.groups.iter().map(|g| g.count).sum(),
        packets: crossed(&mut topology),
        steps: topology.world.steps(),
        cpu_s,
        goodput_bps: received as f64 * 8.0 / plan.duration.as_secs_f64(),
        peak_bytes: peak,
        world_bytes: peak.saturating_sub(before),
    })
}

fn dumbbell(flows: u32) -> Plan {
    let bdp = link::QueueLimit::Bytes(RATE.bytes_in(RTT));
    let delay = Duration::from_nanos(RTT.as_nanos() / 2);
    let wan = link::Config { rate: Some(RATE), delay, queue: bdp, ..link::Config::BARE };
    let mut group = FlowGroup { count: flows, ..FlowGroup::new("flow") };
    group.tcp.cc = Some("reno".into());
    group.tcp.set("mss", Value::Number(1448));
    let path = Path { wan_out: wan, wan_back: wan, ..Path::default() };
    Plan { path, groups: vec![group], ..Plan::new("dumbbell", Duration::from_secs(SECONDS)) }
}

/// Returns a plan of flows that write one segment and then nothing until the end.
fn idle() -> Plan {
    let mut plan = dumbbell(IDLE_FLOWS);
    plan.duration = IDLE;
    plan.groups[0].protocol = Protocol::Tcp { app_rate: Some(Rate::kbit(1)) };
    plan
}

/// Returns the number of packets that the bottleneck carried in both directions.
fn crossed(topology: &mut Topology) -> u64 {
    let wan = |name: &str| name.starts_with("wan.");
    let links: Vec<_> = topology.links.iter().filter(|l| wan(&l.name)).collect();
    let mut packets = 0;
    for wire in links {
        let Carrier::Node(id) = wire.carrier else { continue };
        let carried = topology.world.with_cx(id, |link: &mut link::Link, cx| {
            link.advance(cx);
            link.stats().packets
        });
        packets += carried.unwrap_or(0);
    }
    packets
}

/// Returns the processor time of this thread in seconds.
pub(super) fn processor_time() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 / 1e9
}

/// Returns a line of `/proc/self/status` given in kB, in bytes.
pub(super) fn resident(line: &str) -> Result<u64, String> {
    let status =
        std::fs::read_to_string("/proc/self/status").map_err(|e| format!("/proc/self/status: {e}"))?;
    let found =
        status.lines().find_map(|l| l.strip_prefix(line)?.split_whitespace().next()?.parse::<u64>().ok());
    found.map(|kb| kb * 1024).ok_or_else(|| format!("/proc/self/status has no {line}"))
}
