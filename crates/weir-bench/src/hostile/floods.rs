//! Floods and forged segments beside shaped flows. The gateway must not believe them, and the flows must keep
//! nearly all of their rate.

use super::super::figures::{verdict, Spread};
use super::super::{options, plan, shape, whole};
use super::flood::{Flood, Forged, Forgery, Live};
use super::Args;
use serde::Serialize;
use std::time::Duration;
use weir::execute::hosts::client_port;
use weir::execute::lab::Outcome;
use weir::execute::traffic::FlowReport;
use weir::experiment::plan::Path;
use weir_core::rate::Rate;

const SECONDS: u64 = 10;
const FLOWS: u32 = 16;
const FLOW_RATE: Rate = Rate::mbit(10);
/// Time before the end in which nothing is compared.
const NOT_JUDGED_NS: u64 = 500_000_000;
/// Time from which rates are measured.
const FROM_NS: u64 = 3_000_000_000;
/// Forged segments a second: in the eight seconds of five turns, ten million.
pub(super) const PPS: u32 = 250_000;
/// Delay of the flood after the lab is set up. The flows are under way by then.
const AFTER: Duration = Duration::from_millis(2_000);

#[derive(Debug, Serialize)]
pub(super) struct Row {
    what: &'static str,
    forged: u64,
    /// Bytes that were acknowledged to senders and never received.
    invented_bytes: u64,
    lost_connections: u64,
    /// Rate error of the flow furthest from its rate, in percent.
    rate_error: Spread,
    engine_share: Spread,
    rtos: u64,
}

const NOTHING: &str = "nothing";

/// Plays the requested floods and prints their results.
pub(super) fn run(args: &Args) -> Result<Vec<Row>, String> {
    let common = &args.common;
    let seconds = common.seconds.unwrap_or(SECONDS).max(5);
    let name = |forgery: Option<Forgery>| forgery.map_or(NOTHING, Forgery::name);
    let all = std::iter::once(None).chain(Forgery::ALL.map(Some));
    let wanted: Vec<_> = all.filter(|f| args.wants(name(*f))).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    println!(
        "{FLOWS} uploads of {FLOW_RATE} over a bridge, {seconds} s; from 2 s on {} forged segments a second, as far as \
         the machine goes, from beyond the WAN; {} turns\n\
         must hold: no byte acknowledged that no receiver had, no connection lost\n",
        args.pps, common.runs
    );
    println!(
        "{:<20} {:>10} {:>8}  {:>14}  {:>5}  {:>5}  {:<24}  {:>6}",
        "", "forged", "a second", "bytes invented", "lost", "RTOs", "worst rate error %", "share"
    );
    let mut rows = Vec::new();
    for forgery in wanted {
        let row = row(args, seconds, forgery)?;
        println!(
            "{:<20} {:>10} {:>8.0}  {:>14}  {:>5}  {:>5}  {:<24.2}  {:>5.0}%  {}",
            row.what,
            row.forged,
            row.forged as f64 / (f64::from(common.runs) * flooded(seconds)),
            row.invented_bytes,
            row.lost_connections,
            row.rtos,
            row.rate_error,
            row.engine_share.median * 100.0,
            verdict(row.invented_bytes == 0 && row.lost_connections == 0)
        );
        rows.push(row);
    }
    Ok(rows)
}

/// Returns the length of a flood in seconds.
fn flooded(seconds: u64) -> f64 {
    seconds as f64 - AFTER.as_secs_f64()
}

fn row(args: &Args, seconds: u64, forgery: Option<Forgery>) -> Result<Row, String> {
    let (mut errors, mut shares) = (vec![], vec![]);
    let mut row = Row {
        what: forgery.map_or(NOTHING, Forgery::name),
        forged: 0,
        invented_bytes: 0,
        lost_connections: 0,
        rate_error: Spread::default(),
        engine_share: Spread::default(),
        rtos: 0,
    };
    for turn in 0..args.common.runs {
        let (outcome, forged) = once(seconds, forgery, args.pps, turn, row.forged)?;
        row.forged += forged;
        let ends = || outcome.clients.flows.iter().zip(&outcome.servers.flows);
        row.invented_bytes += ends().map(|(client, server)| invented(client, server, seconds)).sum::<u64>();
        row.lost_connections += ends().filter(|(c, s)| c.error.is_some() || s.error.is_some()).count() as u64;
        row.rtos += outcome.result.flows.iter().map(|f| f.rtos).sum::<u64>();
        errors.push(worst(&outcome.servers.flows, seconds));
        shares.extend(outcome.result.gateway.as_ref().map(|g| g.cpu_s / outcome.result.duration_s));
    }
    (row.rate_error, row.engine_share) = (Spread::of(errors), Spread::of(shares));
    Ok(row)
}

/// Plays one turn and returns its outcome and the number of forged segments. Earlier turns forged `before`
/// segments.
fn once(
    seconds: u64,
    forgery: Option<Forgery>,
    pps: u32,
    turn: u32,
    before: u64,
) -> Result<(Outcome, u64), String> {
    let mut plan = plan("hostile", Path::default(), seconds, FLOWS);
    shape(&mut plan, Some(FLOW_RATE), Some(FLOW_RATE));
    let mut options = options()?;
    let id = format!("hostile-{}-{turn}", std::process::id());
    options.id = Some(id.clone());
    options.samples = true;
    let live = Live { first: client_port(0), count: FLOWS as u16, server: 5001 };
    let flood = forgery.map(|forgery| Flood::prepare(id, Forged { forgery, live, from: before }, pps, AFTER));
    // Lost connections are a result here, not a failure of the run.
    let outcome = whole(&plan, &options);
    let forged = flood.map_or(Ok(0), Flood::end);
    Ok((outcome?, forged?))
}

/// Returns the bytes that were acknowledged to a sender beyond those that its receiver has. Both ends stop at
/// the same moment, so the sender's last samples are ignored. The kernel counts the SYN as a byte.
fn invented(client: &FlowReport, server: &FlowReport, seconds: u64) -> u64 {
    let until = seconds * 1_000_000_000 - NOT_JUDGED_NS;
    let series = client.sent.as_ref().and_then(|s| s.series.as_ref());
    let samples = series.into_iter().flat_map(|s| s.t_ns.iter().zip(&s.acked_bytes));
    let acked = samples.take_while(|(at, _)| **at <= until).last().map_or(0, |(_, acked)| *acked);
    acked.saturating_sub(1).saturating_sub(server.received.as_ref().map_or(0, |r| r.bytes))
}

/// Returns the rate error of the flow furthest from its rate, measured at its receiver, in percent.
fn worst(flows: &[FlowReport], seconds: u64) -> f64 {
    let end = seconds * 1_000_000_000;
    let error = |f: &FlowReport| {
        let bytes = f.received.as_ref().map_or(0, |r| r.bins.between(FROM_NS, end));
        let bps = bytes as f64 * 8e9 / end.saturating_sub(FROM_NS).max(1) as f64;
        (bps / FLOW_RATE.bps() as f64 - 1.0) * 100.0
    };
    flows.iter().map(error).max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(f64::NAN)
}
