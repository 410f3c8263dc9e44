//! Laws that every run obeys, whatever its file says: frames and bytes are conserved, nothing is faster than
//! its link, and a run is the same whenever it is made.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use weir::execute::sim::{self, Options};
use weir::experiment::config::{experiment, File, Source};
use weir::experiment::describe;
use weir::experiment::plan::{Flow, Plan, Protocol};
use weir::report::{expect, table};
use weir::result::{Backend, Document, FlowResult, LinkResult, RunResult};
use weir_core::gateway::Direction;
use weir_core::link::Config;
use weir_core::rate::Rate;

/// Tolerance of times in seconds.
const ROUNDING: f64 = 1e-9;
/// Packets of a run that a test waits for.
pub const MOST_PACKETS: u64 = 100_000;
/// The largest frame.
const GIANT: u64 = 65_535;

/// Outcome of an experiment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The file is wrong, for this reason.
    Refused(String),
    /// It would take too long for a test.
    Skipped,
    /// It ran.
    Ran,
}

/// Runs the experiment twice. Errors name the law that does not hold.
pub fn hold(text: &str) -> Result<Outcome, String> {
    let source = Source::new("random.toml", text);
    let experiment = match experiment::parse(&source) {
        Ok(experiment) => experiment,
        Err(errors) => return Ok(Outcome::Refused(errors.to_string())),
    };
    let lines = describe::lines(&File::Experiment(Box::new(experiment.clone())));
    law(!lines.is_empty(), "a description", &lines)?;
    let plan = match experiment.plan_for(Backend::Sim) {
        Ok(plan) => plan,
        Err(errors) => return Ok(Outcome::Refused(errors.to_string())),
    };
    if packets(&plan) > MOST_PACKETS {
        return Ok(Outcome::Skipped);
    }
    let result = run(&plan)?;
    law(run(&plan)? == result, "determinism", &"")?;
    let json = serde_json::to_string(&result).map_err(|e| e.to_string())?;
    law(Document::parse(&json)? == Document::Run(Box::new(result.clone())), "JSON that is read back", &"")?;
    law(!table::render(&result, &plan, false).is_empty(), "a table", &"")?;
    law(result.faults.is_empty(), "no faults", &result.faults)?;
    frames(&result)?;
    links(&plan, &result)?;
    let planned: HashMap<String, Flow> = plan.flows().map(|f| (f.id.clone(), f)).collect();
    result.flows.iter().try_for_each(|f| flow(&plan, &planned[&f.id], &result, f))?;
    rates(&plan, &planned, &result)?;
    Ok(Outcome::Ran)
}

fn law(holds: bool, name: &str, found: &dyn std::fmt::Debug) -> Result<(), String> {
    holds.then_some(()).ok_or_else(|| format!("{name}: {found:?}"))
}

fn run(plan: &Plan) -> Result<RunResult, String> {
    let options = Options { pcap: None, progress: None, stop: &AtomicBool::new(false) };
    let mut result = sim::run(plan, &options)?;
    expect::conclude(plan, &mut result);
    Ok(RunResult { wall_s: 0.0, ..result })
}

/// Estimates the most packets of a run.
pub fn packets(plan: &Plan) -> u64 {
    let both = [&plan.path.wan_out, &plan.path.wan_back];
    let seconds = plan.duration.as_secs_f64();
    let window = 6_000_000 / plan.path.rtt().as_micros().max(1);
    let of = |f: &Flow| {
        let (data, acks) = match f.direction() {
            Direction::Out => (both[0], both[1]),
            Direction::In => (both[1], both[0]),
        };
        let in_all = |rate: Rate| rate.bps() as f64 / 8.0 * seconds;
        let (most, segment) = match (&f.group.protocol, data.rate, acks.rate) {
            (Protocol::Udp { rate, datagram, .. }, ..) => (in_all(*rate), u64::from(*datagram)),
            (Protocol::Tcp { app_rate: Some(rate) }, ..) => (in_all(*rate), 500),
            (_, Some(rate), _) => (in_all(rate), 500),
            // An ACK of 66 bytes lets two segments leave.
            (_, None, Some(rate)) => (in_all(rate) * 44.0, 500),
            _ => (window as f64 * 1e6 * seconds, 500),
        };
        let smallest = f.group.tcp.number("mss").map_or(segment, |mss| mss.min(segment));
        f.bytes.unwrap_or(u64::MAX).min(most as u64) / smallest
    };
    plan.flows().map(|f| of(&f)).fold(0, u64::saturating_add)
}

/// Frames that enter a gateway, or are made there, leave it or are known to be somewhere.
fn frames(result: &RunResult) -> Result<(), String> {
    let Some(frames) = result.gateway.as_ref().map(|g| &g.frames) else { return Ok(()) };
    let ended = frames.sent + frames.held + frames.absorbed + frames.dropped.values().sum::<u64>();
    law(frames.received + frames.made == ended, "frames of the gateway", frames)
}

fn direction(plan: &Plan, name: &str) -> Config {
    match name {
        "wan.out" => plan.path.wan_out,
        "wan.back" => plan.path.wan_back,
        _ => plan.path.lan,
    }
}

/// A link gives out no more frames than came to it.
fn links(plan: &Plan, result: &RunResult) -> Result<(), String> {
    let link = |name: &str| result.links.iter().find(|l| l.name == name).ok_or(format!("no link {name}"));
    let accounted = |l: &LinkResult| l.packets + l.drops.values().sum::<u64>();
    let made = result.gateway.as_ref().map_or(0, |g| g.frames.made);
    for (first, then) in [("lan.out", "wan.out"), ("wan.back", "lan.back")] {
        let (before, after) = (link(first)?, link(then)?);
        law(
            accounted(after) <= before.packets + before.duplicated + made,
            "frames of links",
            &(before, after),
        )?;
    }
    for name in ["lan.out", "lan.back", "wan.out", "wan.back"] {
        let l = link(name)?;
        law(l.utilization <= 1.0 + ROUNDING, "use of a link", l)?;
        let config = direction(plan, name);
        let most = config.rate.map(|rate| (rate.bps() as f64 * result.duration_s / 8.0) as u64);
        // Each frame has 14 bytes that a rate may leave out.
        let counted = l.bytes.saturating_sub(14 * l.packets);
        law(
            most.is_none_or(|most| counted <= config.burst.saturating_add(most + GIANT)),
            "rate of a link",
            l,
        )?;
    }
    Ok(())
}

fn flow(plan: &Plan, planned: &Flow, result: &RunResult, f: &FlowResult) -> Result<(), String> {
    let lasted = f.end_s - f.start_s;
    let shown: &dyn std::fmt::Debug = &f;
    law(f.start_s <= f.end_s && f.end_s <= result.duration_s + ROUNDING, "life of a flow", shown)?;
    law(f.goodput_bps * lasted / 8.0 <= f.bytes as f64 + 1e-3, "goodput of a flow", shown)?;
    law(f.loss.is_none_or(|loss| (0.0..=1.0).contains(&loss)), "loss of a flow", shown)?;
    let column = result.column(&f.id, "received_bytes");
    let received: f64 = column.map_or(0.0, |(_, bytes)| bytes.iter().sum());
    law(received == f.bytes as f64, "received bytes of a flow", &(received, f))?;
    if let Some(size) = planned.bytes {
        law(f.bytes <= size, "size of a flow", shown)?;
        law(f.fct_s.is_none() || f.bytes == size, "completion of a flow", shown)?;
        law(f.fct_s.is_none_or(|fct| fct <= lasted + ROUNDING), "completion time of a flow", shown)?;
    }
    if let Protocol::Udp { rate, datagram, .. } = planned.group.protocol {
        let most = rate.bps() as f64 * result.duration_s / 8.0 + f64::from(datagram);
        return law(f.bytes as f64 <= most, "bytes of datagrams", shown);
    }
    let host = |name: &Option<String>| plan.hosts.iter().find(|h| Some(&h.name) == name.as_ref());
    let ends = [host(&planned.group.client), host(&planned.group.server)];
    let mut ways: Vec<Config> = ends.into_iter().flatten().flat_map(|h| [h.up, h.down]).collect();
    ways.extend([plan.path.lan, plan.path.lan, plan.path.wan_out, plan.path.wan_back]);
    let delay: u64 = ways.iter().map(|link| link.delay.as_micros()).sum();
    // Normal and Pareto jitter are on both sides of the delay.
    let steady = ways.iter().all(|link| link.jitter.by.as_nanos() == 0);
    // Without Fast Open the first byte leaves after the handshake.
    let opens_first = planned.group.tcp.get("fast_open").is_none();
    let is_sooner = |fct: f64| fct + ROUNDING < delay as f64 / 1e6;
    law(!(steady && opens_first && f.fct_s.is_some_and(is_sooner)), "completion in a round trip", shown)?;
    // Segments sent again are measured by timestamps, in whole milliseconds.
    let resolution = if f.retransmits > 0 { 1000 } else { 4 };
    law(
        f.rtt_us.p50 == 0 || !steady || f.rtt_us.p50 + resolution >= delay,
        "round-trip time of a flow",
        shown,
    )
}

/// All that flows receive in a direction came over the links there.
fn rates(plan: &Plan, planned: &HashMap<String, Flow>, result: &RunResult) -> Result<(), String> {
    for (way, names) in [(Direction::Out, ["lan.out", "wan.out"]), (Direction::In, ["wan.back", "lan.back"])]
    {
        let flows = result.flows.iter().filter(|f| planned[&f.id].direction() == way);
        let bytes: u64 = flows.map(|f| f.bytes).sum();
        for name in names {
            let Config { rate, burst, .. } = direction(plan, name);
            let Some(rate) = rate else { continue };
            let most = (rate.bps() as f64 * result.duration_s / 8.0) as u64;
            let most = burst.saturating_add(most + GIANT);
            law(bytes <= most, "bytes of all flows over a link", &(name, bytes, most))?;
        }
    }
    Ok(())
}
