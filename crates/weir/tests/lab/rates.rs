//! Flows behind a gateway are at what they are set to.

use super::{group, id, installed, left_behind, options, plan, root, turn, twice};
use weir::execute::lab::{self, Options, Outcome};
use weir::execute::traffic::FlowReport;
use weir::experiment::config::gateway;
use weir::experiment::plan::{BoxKind, Ip, Kind, Lab, Length, Plan};
use weir::result::FlowResult;
use weir_core::gateway::Direction;
use weir_core::rate::Rate;
use weir_core::time::Duration as Nanos;

/// The gateway of the short form.
fn shape(plan: &mut Plan, out: u64, inward: u64) {
    let rate = |mbit| Some(Rate::mbit(mbit));
    plan.gateway = Some(gateway::one_rate(rate(out), rate(inward)));
}

fn run_shaped(plan: &Plan, options: &Options) -> Outcome {
    let outcome = lab::run(plan, options).unwrap();
    assert!(!left_behind(options.id.as_ref().unwrap()), "the lab left something behind");
    assert_eq!(outcome.faults, Vec::<String>::new());
    assert_eq!(outcome.result.gateway.as_ref().unwrap().user_data_bytes, 0, "data came to user space");
    outcome
}

/// Goodput from 1.5 s on until `end_ms`, of what a receiver got, in bits per second.
fn steady(end: &FlowReport, end_ms: u64) -> f64 {
    let bins = &end.received.as_ref().unwrap().bins;
    bins.between(1_500_000_000, end_ms * 1_000_000) as f64 * 8.0 / ((end_ms - 1_500) as f64 / 1e3)
}

/// Runs `plan` until no flow is off its rate by `bound` or more, at most three times. What is too slow may be hosts that got
/// no processor. What is too fast is wrong at once, unless the hooks counted segments that passed because the engine got
/// none: after 50 ms without a heartbeat everything passes, which is a multiple of these rates. A machine that never gives the engine
/// enough time for that shows nothing of rates.
fn at_their_rates(plan: &Plan, id: &str, bound: f64, off: impl Fn(&Outcome) -> Vec<f64>) -> Outcome {
    const ATTEMPTS: u32 = 3;
    let mut attempt = 1;
    loop {
        let outcome = run_shaped(plan, &options(id));
        let off = off(&outcome);
        if off.iter().all(|off| off.abs() < bound) {
            return outcome;
        }
        let gateway = outcome.result.gateway.as_ref().unwrap();
        let stale = gateway.steering.unwrap().passed_stale;
        eprintln!("{id}, attempt {attempt}: off by {off:.3?}\n{:#?}", outcome.gateway);
        let fast = off.iter().any(|off| *off >= bound);
        assert!(!fast || stale > 0, "{id}: off by {off:.3?}, and the engine was never away");
        if attempt == ATTEMPTS && stale > 0 {
            eprintln!("{id}: NOT JUDGED: the engine was away in attempt {attempt} too: {stale} segments passed without it");
            return outcome;
        }
        assert!(attempt < ATTEMPTS, "{id}: off by {off:.3?} in attempt {attempt}");
        attempt += 1;
    }
}

/// What a lossless path may show of this counter on a machine that stood still for a while: one in a thousand segments.
fn rare(outcome: &Outcome, counter: &str) -> Result<(), String> {
    let sum = |name| outcome.nstat.iter().map(|n| n.get(name)).sum::<u64>();
    let (n, segments) = (sum(counter), sum("TcpInSegs"));
    match segments > 0 && n * 1_000 <= segments {
        true => Ok(()),
        false => Err(format!("{counter}: {n} of {segments} segments")),
    }
}

/// Uploads and downloads at once, each flow at its setting, whatever the box, the protocol and the sender.
#[test]
fn flows_are_at_their_settings_on_every_box() {
    let _turn = turn();
    if !root() || !installed("nft") {
        return;
    }
    for (name, kind) in BoxKind::ALL {
        for (ip, cc) in [(Ip::V4, "cubic"), (Ip::V6, "bbr")] {
            if !has_congestion_control(cc) {
                eprintln!("skipped: {cc} is missing");
                continue;
            }
            let mut groups = vec![
                group("up", 5000, Direction::Out, Length::UntilEnd),
                group("down", 5001, Direction::In, Length::UntilEnd),
            ];
            for g in &mut groups {
                (g.count, g.tcp.cc) = (2, Some(cc.into()));
            }
            let mut plan = plan(4_000, groups);
            plan.lab = Lab { kind, ip };
            shape(&mut plan, 20, 40);
            // BBR does not make up for what it was kept from sending: where the machine stood still it lost up to 21 % of a
            // second and 15 % of 2.5 s (15 busy processes on 2 processors); otherwise it is within 2 %.
            let bound = if cc == "bbr" { 0.15 } else { 0.1 };
            let outcome = at_their_rates(&plan, &id(name), bound, |outcome| {
                let (servers, clients) = (&outcome.servers.flows, &outcome.clients.flows);
                let ends =
                    [(&servers[0], 20.0), (&servers[1], 20.0), (&clients[2], 40.0), (&clients[3], 40.0)];
                ends.map(|(end, mbit)| steady(end, 4_000) / (mbit * 1e6) - 1.0).to_vec()
            });
            let classes: Vec<&str> = outcome.result.flows.iter().map(|f| f.class.as_str()).collect();
            assert_eq!(classes, ["out", "out", "in", "in"]);
        }
    }
}

/// Both directions of each connection have a setting of their own, which neither leaks past.
#[test]
fn both_ways_in_one_connection_are_at_their_settings() {
    let _turn = turn();
    if !root() || !installed("nft") {
        return;
    }
    for kind in [BoxKind::Bridge, BoxKind::Nat] {
        let mut both = group("both", 5000, Direction::Out, Length::Duration(Nanos::from_millis(3_400)));
        (both.kind, both.count) = (Kind::TwoWay, 2);
        let mut plan = plan(4_000, vec![both]);
        plan.lab.kind = kind;
        shape(&mut plan, 20, 40);
        let outcome = at_their_rates(&plan, &id("both"), 0.1, |outcome| {
            let (servers, clients) = (&outcome.servers.flows, &outcome.clients.flows);
            let ends = servers.iter().map(|f| (f, 20.0)).chain(clients.iter().map(|f| (f, 40.0)));
            ends.map(|(end, mbit)| steady(end, 3_500) / (mbit * 1e6) - 1.0).collect()
        });
        rare(&outcome, "TcpExtPAWSEstab").unwrap();
        let back = outcome.result.flows[0].back.as_ref().unwrap();
        assert_eq!((back.class.as_str(), back.target_bps), ("in", Some(40_000_000)));
    }
}

/// Where rates do not bind, requests and responses are not held up.
#[test]
fn requests_pass_swiftly() {
    let _turn = turn();
    if !root() {
        return;
    }
    for response in [1_000, 60_000] {
        let mut ask = group("ask", 5000, Direction::In, Length::Duration(Nanos::from_millis(1_500)));
        (ask.kind, ask.count) = (Kind::Request { request: 200, response }, 4);
        let mut plan = plan(2_000, vec![ask]);
        shape(&mut plan, 10_000, 10_000);
        twice("requests", || {
            let outcome = run_shaped(&plan, &options(&id("ask")));
            for counter in ["TcpExtPAWSEstab", "TcpOutRsts", "TcpExtTCPTimeouts"] {
                rare(&outcome, counter)?;
            }
            let slow = |f: &&FlowResult| {
                let seen = f.exchanges.as_ref().unwrap();
                seen.count <= 100 || seen.latency_us.p90 >= 20_000
            };
            match outcome.result.flows.iter().find(slow) {
                Some(f) => Err(format!("{response}: {f:?}")),
                None => Ok(()),
            }
        });
    }
}

fn has_congestion_control(name: &str) -> bool {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_tcp_congestion(name.as_bytes()).is_ok()
}
