//! Traffic that a lab carries, and what it reports of it.

use super::{
    group, holds, id, installed, judged, left_behind, options, plan, root, run, turn, without_faults,
};
use weir::execute::lab::{self, OnBox, Options, Probe};
use weir::experiment::config::{experiment, Source};
use weir::experiment::plan::{Arrivals, BoxKind, FlowGroup, Ip, Lab, Length, Value};
use weir::result::{Backend, FlowResult, RunResult, Status};
use weir_core::dist::Distribution;
use weir_core::gateway::Direction;
use weir_core::time::Duration as Nanos;

#[test]
fn a_lab_with_a_bridge_measures_its_flows() {
    let _turn = turn();
    if !root() {
        return;
    }
    let mut finite = group("finite", 5001, Direction::In, Length::Bytes(300_000));
    finite.count = 10;
    finite.arrivals = Arrivals::Every(Nanos::from_millis(10));
    let plan = plan(2_000, vec![group("up", 5000, Direction::Out, Length::UntilEnd), finite]);
    let outcome = run(&plan, &options(&id("bridge")));
    let r = &outcome.result;
    assert_eq!((outcome.faults, r.status), (vec![], Status::Ok));
    assert_eq!((r.flows.len(), r.duration_s), (11, 2.0));
    // What the lab itself sets is in force.
    assert_eq!(r.made_by.settings["net.ipv4.tcp_no_metrics_save"], "1");
    assert!(r.made_by.settings.contains_key("net.ipv4.tcp_rmem") && !r.made_by.kernel.is_empty());
    let up = &r.flows[0];
    assert!(up.goodput_bps > 1e8, "{}", up.goodput_bps);
    assert_eq!((up.id.as_str(), up.cc.as_str(), up.start_s, up.end_s), ("up.0", "reno", 0.1, 2.0));
    let sum: u64 = up.intervals.iter().map(|i| i.bytes).sum();
    assert!(sum.abs_diff(up.bytes) * 100 <= up.bytes, "{sum} and {}", up.bytes);
    assert_eq!(up.intervals.len(), 10);
    assert!(up.rtt_us.p50 > 0);
    for f in &r.flows[1..] {
        assert_eq!(f.bytes, 300_000);
        assert!(f.fct_s.unwrap() > 0.0 && f.end_s < 2.0, "{f:?}");
    }
    let names: Vec<&str> = r.links.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(names, ["lan.out", "lan.back", "wan.out", "wan.back"]);
    assert!(r.links.iter().all(|l| l.packets > 100));
}

/// Every kind of box forwards, and what the servers see of the clients is known.
#[test]
fn every_box_carries_both_directions_and_both_protocols() {
    let _turn = turn();
    if !root() || !installed("nft") {
        return;
    }
    for (name, kind) in BoxKind::ALL {
        for ip in [Ip::V4, Ip::V6] {
            let up = group("up", 5000, Direction::Out, Length::Bytes(2_000_000));
            let down = group("down", 5001, Direction::In, Length::Bytes(2_000_000));
            let mut plan = plan(10_000, vec![up, down]);
            plan.lab = Lab { kind, ip };
            let outcome = run(&plan, &options(&id(name)));
            assert_eq!(outcome.faults, Vec::<String>::new(), "{name} {ip:?}");
            assert!(outcome.result.flows.iter().all(|f| f.bytes == 2_000_000), "{name} {ip:?}");
            let wan = outcome.result.links.iter().find(|l| l.name == "wan.out").unwrap();
            assert!(wan.bytes > 2_000_000, "{name} {ip:?}: {wan:?}");
        }
    }
}

/// Customers of a list are hosts with addresses of their own, whatever box their gateway runs on.
#[test]
fn customers_are_hosts_with_addresses_of_their_own() {
    let _turn = turn();
    if !root() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let rows: Vec<String> = (1..=40).map(|n| format!("c{n},10.1.0.{n},20Mbit,20Mbit\n")).collect();
    std::fs::write(directory.path().join("list.csv"), format!("id,prefixes,down,up\n{}", rows.concat()))
        .unwrap();
    for kind in ["bridge", "router", "host"] {
        let text = format!(
            "name = 't'\nduration = '60s'\n[lab]\nbox = '{kind}'\n[gateway.customers]\nfile = 'list.csv'\n\
             [[host]]\nname = 'homes'\nside = 'lan'\ncount = 40\n[[host]]\nname = 'farm'\nside = 'wan'\ncount = 3\n\
             [[flow]]\nid = 'down'\ndirection = 'in'\nclient = 'homes'\nserver = 'farm'\ncount = 80\nbytes = '20kB'\n\
             [[flow]]\nid = 'up'\nclient = 'homes'\ncount = 40\nbytes = '20kB'\n"
        );
        let name = directory.path().join("t.toml").display().to_string();
        let experiment = experiment::parse(&Source::new(name, text)).unwrap_or_else(|e| panic!("{e}"));
        let plan = experiment.plan_for(Backend::Lab).unwrap_or_else(|e| panic!("{e}"));
        judged(kind, || {
            let outcome = run(&plan, &options(&id("customers")));
            without_faults(&outcome)?;
            customers_are_seen(&outcome.result)
        });
    }
}

/// Forty with two downloads and an upload each.
fn customers_are_seen(r: &RunResult) -> Result<(), String> {
    let wanted = (0..80).map(|n| format!("c{}-down", n % 40 + 1)).chain((1..=40).map(|n| format!("c{n}-up")));
    let found: Vec<(u64, &str)> = r.flows.iter().map(|f| (f.bytes, f.class.as_str())).collect();
    let wanted: Vec<String> = wanted.collect();
    let classes: Vec<&str> = found.iter().map(|(_, class)| *class).collect();
    assert_eq!(classes, wanted);
    holds(found.iter().all(|(bytes, _)| *bytes == 20_000), found)?;
    // The gateway saw the flows as its classes' own.
    let seen: Vec<&str> =
        r.classes.iter().filter(|c| c.acks_generated > 0).map(|c| c.name.as_str()).collect();
    let memory = r.gateway.as_ref().and_then(|g| g.memory_bytes);
    assert!(memory.is_some_and(|bytes| bytes > 1 << 20), "{memory:?}");
    holds(seen.len() == 80, seen)
}

/// Every frame of a direction goes through user space and back, none is lost.
#[test]
fn an_emulator_on_one_interface_passes_everything() {
    let _turn = turn();
    if !root() || !installed("nft") {
        return;
    }
    for (name, kind) in BoxKind::ALL {
        let up = group("up", 5000, Direction::Out, Length::Bytes(20_000_000));
        let down = group("down", 5001, Direction::In, Length::Bytes(20_000_000));
        let mut plan = plan(20_000, vec![up, down]);
        plan.lab.kind = kind;
        let outcome = run(&plan, &Options { on_box: OnBox::Emulator, ..options(&id("box")) });
        assert_eq!(outcome.faults, Vec::<String>::new(), "{name}");
        assert!(outcome.result.flows.iter().all(|f| f.bytes == 20_000_000), "{name}");
    }
}

/// 50 ms one way: a SYN with data has brought them after that time, a handshake before them takes 100 ms
/// longer. The first connection has no cookie. What does not fit into the SYN follows; chirps begin behind
/// it.
#[test]
fn a_syn_carries_data_from_the_second_connection_on() {
    let _turn = turn();
    if !root() {
        return;
    }
    let fast = |id: &str, port, cc: &str, start, bytes| {
        let mut group = group(id, port, Direction::Out, Length::Bytes(bytes));
        group.tcp.cc = Some(cc.into());
        group.tcp.set("fast_open", Value::Switch(true));
        FlowGroup {
            count: 3,
            start: Nanos::from_millis(start),
            arrivals: Arrivals::Every(Nanos::from_millis(500)),
            ..group
        }
    };
    let groups = vec![fast("one", 5000, "reno", 100, 1000), fast("more", 5001, "chirp", 2000, 1_000_000)];
    let mut plan = plan(6_000, groups);
    plan.path.wan_out.delay = Nanos::from_millis(50);
    plan.path.wan_back.delay = Nanos::from_millis(50);
    judged("fast open", || {
        let outcome = run(&plan, &options(&id("fast-open")));
        without_faults(&outcome)?;
        let r = &outcome.result;
        let whole = |f: &FlowResult| f.bytes == if f.group() == "one" { 1000 } else { 1_000_000 };
        holds(r.flows.iter().all(whole), &r.flows)?;
        assert_eq!(r.made_by.settings["net.ipv4.tcp_fastopen"], "3");
        let fct: Vec<f64> = r.flows.iter().map(|f| f.fct_s.unwrap_or(99.0)).collect();
        let early = fct[1..3].iter().all(|s| (0.05..0.1).contains(s));
        holds(fct[0] >= 0.15 && early, fct)
    });
}

/// Short transfers that arrive by chance, of drawn sizes: each is played as the plan drew it.
#[test]
fn drawn_arrivals_and_sizes_are_played() {
    let _turn = turn();
    if !root() {
        return;
    }
    let mut web = group("web", 80, Direction::In, Length::Drawn(Distribution::Exponential { mean: 20_000 }));
    web.count = 200;
    web.arrivals = Arrivals::Drawn(Distribution::Exponential { mean: 10_000_000 });
    let plan = plan(6_000, vec![web]);
    let outcome = run(&plan, &options(&id("drawn")));
    assert_eq!(outcome.faults, Vec::<String>::new());
    let planned: Vec<_> = plan.flows().collect();
    assert!(planned.len() > 50 && outcome.result.flows.len() == planned.len());
    // The last ones may not be done when the run ends.
    let early = planned.iter().zip(&outcome.result.flows).filter(|(p, _)| p.start < Nanos::from_secs(1));
    for (p, f) in early {
        assert_eq!(
            (f.id.as_str(), Some(f.bytes), f.start_s),
            (p.id.as_str(), p.bytes, p.start.as_secs_f64())
        );
        assert!(f.fct_s.is_some_and(|s| s > 0.0 && s < 4.0), "{}: {:?}", f.id, f.fct_s);
    }
}

#[test]
fn ports_are_captured_on_demand() {
    let _turn = turn();
    if !root() || !installed("tcpdump") {
        return;
    }
    let directory = std::env::temp_dir().join(id("pcap"));
    let mut options = options(&id("pcap"));
    options.pcap = Some(directory.clone());
    let plan = plan(5_000, vec![group("f", 5000, Direction::Out, Length::Bytes(50_000))]);
    assert_eq!(run(&plan, &options).faults, Vec::<String>::new());
    for point in ["clients", "gw-lan", "gw-wan", "servers"] {
        let file = directory.join(format!("{point}.pcap"));
        assert!(std::fs::metadata(&file).unwrap().len() > 500, "{}", file.display());
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn two_labs_run_side_by_side() {
    let _turn = turn();
    if !root() {
        return;
    }
    let labs = ["left", "right"].map(|side| {
        std::thread::spawn(move || {
            let groups = vec![group(side, 5000, Direction::Out, Length::Bytes(2_000_000))];
            run(&plan(10_000, groups), &options(&id(side)))
        })
    });
    for (lab, side) in labs.into_iter().zip(["left.0", "right.0"]) {
        let outcome = lab.join().unwrap();
        assert_eq!(outcome.faults, Vec::<String>::new());
        assert_eq!((outcome.result.flows[0].id.as_str(), outcome.result.flows[0].bytes), (side, 2_000_000));
    }
}

/// Stands for `weir device`: reads what it is, says ready, and reports when it is ended. The emulator is a
/// bridge.
const STAND_IN: &str = r#"#!/bin/sh
report() {
    case $1 in
    *Gateway*) echo '{"gateway": {"cpu_s": 0.5, "user_data_bytes": 0, "frames": {"in": 7, "made": 0, "out": 7,
        "held": 0, "absorbed": 0, "dropped": {}}}, "flows": [{"src": "10.0.0.1:10000",
        "dst": "10.0.0.2:5000", "class": "all", "bytes": 0, "bps": 0, "pass_reason": "mptcp", "held_bytes": 0, "held_us": 0,
        "debt_bytes": 0, "slow_start": false, "rtt_us": 0, "window": 0, "period_us": 0}]}' ;;
    *Emulator*) echo '{"links": [{"name": "wan.out", "packets": 42, "bytes": 4200, "utilization": 0.5,
        "queue_us": {"p50": 1, "p99": 2, "max": 3}, "marks": 0, "drops": {"random_loss": 1}}]}' ;;
    esac
}
case $1 in
traffic) exec "$REAL_WEIR" traffic ;;
esac
read -r device
case $device in
*Emulator*)
    ip link add br0 type bridge forward_delay 0 && ip link set lan master br0 || exit 1
    ip link set wan master br0 && ip link set br0 up || exit 1 ;;
esac
trap 'report "$device" > "$3"; exit 0' TERM
echo ready
while :; do sleep 0.05; done
"#;

#[test]
fn gateway_and_emulator_are_started_and_their_reports_taken() {
    use std::os::unix::fs::PermissionsExt;
    let _turn = turn();
    if !root() {
        return;
    }
    let script = std::env::temp_dir().join(id("stand-in"));
    let text = STAND_IN.replace("$REAL_WEIR", env!("CARGO_BIN_EXE_weir"));
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut plan = plan(800, vec![group("up", 5000, Direction::Out, Length::UntilEnd)]);
    plan.gateway = Some(weir_core::gateway::Config::default());
    plan.path.wan_out.delay = Nanos::from_millis(1);
    let options = Options { program: script.clone(), ..options(&id("devices")) };
    let outcome = lab::run(&plan, &options).unwrap();
    std::fs::remove_file(script).unwrap();
    assert!(!left_behind(&id("devices")));
    assert_eq!(outcome.faults, Vec::<String>::new());
    let r = outcome.result;
    assert_eq!(r.gateway.unwrap().frames.received, 7);
    assert_eq!((r.flows[0].class.as_str(), r.flows[0].pass_reason.as_deref()), ("all", Some("mptcp")));
    assert!(r.flows[0].goodput_bps > 1e7);
    let out = r.links.iter().find(|l| l.name == "wan.out").unwrap();
    assert_eq!((out.packets, out.drops["random_loss"]), (42, 1));
    // Without segmentation offload a packet is a frame of the wire.
    let lan = &r.links[0];
    assert!(lan.bytes / lan.packets <= 1514, "{lan:?}");
}

#[test]
fn a_probe_over_bare_cables_shows_its_own_error() {
    let _turn = turn();
    if !root() {
        return;
    }
    let mut options = options(&id("probe"));
    options.probe = Some(Probe { pps: 5_000, size: 200, direction: Direction::Out, burst: 1, gap: None });
    let outcome = run(&plan(600, vec![]), &options);
    let probe = outcome.probe.unwrap();
    assert_eq!((probe.configured_ns, probe.sink.received), (0, probe.source.sent));
    // What was due while the machine had no time for it is skipped.
    assert!(probe.sink.received > 200, "{probe:?}");
    let (p50, p99, _) = probe.error_ns().unwrap();
    assert!(p50 > 0 && p50 <= p99 && p50 < 50_000_000, "{probe:?}");
}
