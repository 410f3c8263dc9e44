//! Data in both directions of one connection at several settings, and requests and responses at rates that do
//! not bind, compared with the plain box.

use super::figures::{verdict, Spread};
use super::{group, measure, options, plan, shape, write, Common};
use serde::Serialize;
use weir::execute::lab::{Nstat, Outcome};
use weir::execute::traffic::Received;
use weir::experiment::plan::{FlowGroup, Kind, Length, Path, Plan};
use weir_core::gateway::Direction;
use weir_core::rate::Rate;
use weir_core::time::Duration;

const SECONDS: u64 = 8;
/// Time before the end of the run at which connections are closed, in milliseconds.
const END_MS: u64 = 700;
/// Start of the averages in nanoseconds.
const FROM_NS: u64 = 2_000_000_000;
const FLOWS: u32 = 4;
const OUT: Rate = Rate::mbit(20);
const IN: Rate = Rate::mbit(50);
/// Bound on the error of a direction's rate, in percent.
const BOUND: f64 = 1.0;
/// Rate for requests and responses, which no connection reaches.
const UNBOUND: Rate = Rate::mbit(20_000);
const REQUEST: u64 = 200;
const RESPONSES: [u64; 2] = [1_000, 60_000];
/// Counters of both hosts that must not increase by shaping, because it would be the cause.
const COUNTERS: [&str; 5] =
    ["TcpExtPAWSEstab", "TcpExtPAWSOldAck", "TcpOutRsts", "TcpExtTCPTimeouts", "TcpExtTCPAbortOnData"];

#[derive(Debug, Serialize)]
struct Figures {
    bulk: Vec<Bulk>,
    requests: Vec<Requests>,
}

/// Results of bulk data in both directions.
#[derive(Debug, Serialize)]
struct Bulk {
    rtt_ms: u64,
    /// Largest errors of each direction's rate, in percent.
    out_error: Spread,
    in_error: Spread,
    counters: Vec<(&'static str, u64)>,
}

/// Results of requests and responses.
#[derive(Debug, Serialize)]
struct Requests {
    response_bytes: u64,
    plain_p50_us: Spread,
    shaped_p50_us: Spread,
    plain_p90_us: Spread,
    shaped_p90_us: Spread,
    plain_counters: Vec<(&'static str, u64)>,
    shaped_counters: Vec<(&'static str, u64)>,
}

pub(super) fn run(common: &Common) -> Result<(), String> {
    let seconds = common.seconds.unwrap_or(SECONDS).max(4);
    println!(
        "{FLOWS} connections, {seconds} s; {} turns\n\
         must hold: each direction within {BOUND} % of its setting from 2 s on; no counter above the plain box's\n",
        common.runs
    );
    println!("bulk both ways in each connection, {OUT} out and {IN} in, over a bridge");
    println!("{:>6}  {:<24}  {:<24}", "RTT ms", "out, worst error %", "in, worst error %");
    let mut figures = Figures { bulk: vec![], requests: vec![] };
    for rtt_ms in [0, 20] {
        let row = bulk(common, seconds, rtt_ms)?;
        let holds = [&row.out_error, &row.in_error].iter().all(|e| e.median.abs() <= BOUND);
        println!(
            "{rtt_ms:>6}  {:<24.2}  {:<24.2}  {}  {}",
            row.out_error,
            row.in_error,
            verdict(holds),
            shown(&row.counters)
        );
        figures.bulk.push(row);
    }
    println!("\nrequests of {REQUEST} bytes over connections that stay open, in microseconds");
    println!("{:>8}  {:<26}  {:<26}", "response", "plain p50 / p90", "shaped p50 / p90");
    for response_bytes in RESPONSES {
        let row = requests(common, seconds.min(4), response_bytes)?;
        let pairs = row.shaped_counters.iter().zip(&row.plain_counters);
        let holds = pairs.clone().all(|((_, shaped), (_, plain))| shaped <= plain);
        println!(
            "{response_bytes:>8}  {:<26}  {:<26}  {}  {}",
            format!("{:.0} / {:.0}", row.plain_p50_us.median, row.plain_p90_us.median),
            format!("{:.0} / {:.0}", row.shaped_p50_us.median, row.shaped_p90_us.median),
            verdict(holds),
            shown(&row.shaped_counters)
        );
        figures.requests.push(row);
    }
    write(common, &figures)
}

fn shown(counters: &[(&'static str, u64)]) -> String {
    let parts: Vec<String> = counters.iter().map(|(name, n)| format!("{name} {n}")).collect();
    parts.join(", ")
}

/// Adds the counters of both hosts.
fn count(total: &mut Vec<(&'static str, u64)>, nstat: &[Nstat; 2]) {
    if total.is_empty() {
        total.extend(COUNTERS.map(|name| (name, 0)));
    }
    for (name, sum) in total {
        *sum += nstat.iter().map(|n| n.get(name)).sum::<u64>();
    }
}

fn bulk(common: &Common, seconds: u64, rtt_ms: u64) -> Result<Bulk, String> {
    let (mut out, mut inward, mut counters) = (vec![], vec![], vec![]);
    for _ in 0..common.runs {
        let mut path = Path::default();
        path.wan_out.delay = Duration::from_micros(rtt_ms * 500);
        path.wan_back.delay = Duration::from_micros(rtt_ms * 500);
        let mut plan = conversation(path, seconds, Kind::TwoWay);
        shape(&mut plan, Some(OUT), Some(IN));
        let outcome = measure(&plan, &options()?)?;
        out.push(worst(&outcome.servers.flows, seconds, OUT));
        inward.push(worst(&outcome.clients.flows, seconds, IN));
        count(&mut counters, &outcome.nstat);
    }
    Ok(Bulk { rtt_ms, out_error: Spread::of(out), in_error: Spread::of(inward), counters })
}

fn conversation(path: Path, seconds: u64, kind: Kind) -> Plan {
    let mut plan = plan("two-way", path, seconds, FLOWS);
    // The flow ends before the lab does, which would reset it.
    let length = Length::Duration(Duration::from_millis(seconds * 1000 - END_MS));
    plan.groups = vec![FlowGroup { kind, length, ..group("both", Direction::Out, FLOWS, 5001) }];
    plan
}

/// Returns the error in percent of the flow furthest from `rate`, at its receiver.
fn worst(flows: &[weir::execute::traffic::FlowReport], seconds: u64, rate: Rate) -> f64 {
    let end = seconds * 1_000_000_000 - END_MS * 1_000_000;
    let error = |r: &Received| {
        let bps = r.bins.between(FROM_NS, end) as f64 * 8e9 / end.saturating_sub(FROM_NS).max(1) as f64;
        (bps / rate.bps() as f64 - 1.0) * 100.0
    };
    let errors = flows.iter().map(|f| f.received.as_ref().map_or(-100.0, error));
    errors.max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(f64::NAN)
}

fn requests(common: &Common, seconds: u64, response: u64) -> Result<Requests, String> {
    let [mut plain50, mut plain90, mut shaped50, mut shaped90] = [const { Vec::new() }; 4];
    let (mut plain_counters, mut shaped_counters) = (vec![], vec![]);
    for _ in 0..common.runs {
        let once = |rate: Option<Rate>| {
            let mut plan =
                conversation(Path::default(), seconds, Kind::Request { request: REQUEST, response });
            shape(&mut plan, rate, rate);
            measure(&plan, &options()?)
        };
        let plain = once(None)?;
        let shaped = once(Some(UNBOUND))?;
        plain50.push(latency(&plain, |l| l.p50));
        plain90.push(latency(&plain, |l| l.p90));
        shaped50.push(latency(&shaped, |l| l.p50));
        shaped90.push(latency(&shaped, |l| l.p90));
        count(&mut plain_counters, &plain.nstat);
        count(&mut shaped_counters, &shaped.nstat);
    }
    Ok(Requests {
        response_bytes: response,
        plain_p50_us: Spread::of(plain50),
        shaped_p50_us: Spread::of(shaped50),
        plain_p90_us: Spread::of(plain90),
        shaped_p90_us: Spread::of(shaped90),
        plain_counters,
        shaped_counters,
    })
}

/// Returns the mean of a quantile over the connections.
fn latency(outcome: &Outcome, of: fn(&weir::result::Latency) -> u64) -> f64 {
    let seen: Vec<u64> =
        outcome.result.flows.iter().filter_map(|f| Some(of(&f.exchanges.as_ref()?.latency_us))).collect();
    seen.iter().sum::<u64>() as f64 / seen.len().max(1) as f64
}
