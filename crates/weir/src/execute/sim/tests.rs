use super::{run, Options};
use crate::execute::room::Room;
use crate::experiment::config::{experiment, Source};
use crate::experiment::plan::Plan;
use crate::result::{Backend, RunResult, Status};
use std::sync::atomic::AtomicBool;

pub(super) fn plan(text: &str) -> Plan {
    let parsed = experiment::parse(&Source::new("t.toml", text)).unwrap_or_else(|e| panic!("{e}"));
    parsed.plan_for(Backend::Sim).unwrap_or_else(|e| panic!("{e}"))
}

pub(super) fn simulate(text: &str) -> RunResult {
    let options = Options { pcap: None, progress: None, stop: &AtomicBool::new(false) };
    RunResult { wall_s: 0.0, ..run(&plan(text), &options).unwrap() }
}

pub(super) fn link<'a>(result: &'a RunResult, name: &str) -> &'a crate::result::LinkResult {
    result.links.iter().find(|l| l.name == name).unwrap_or_else(|| panic!("no {name}"))
}

/// Verifies a datagram of 1000 bytes every millisecond, through 10 Mbit/s and 10 ms. A packet of 1028 bytes
/// and 14 of overhead takes 833.6 us. The last datagram that arrives by 1 s left at 989 ms and is the 990th;
/// 1000 are sent.
#[test]
fn datagrams_by_hand() {
    let r = simulate(
        "name = 't'\nduration = '1s'\ninterval = '500ms'
        [path]
        wan = { rate = '10Mbit', delay = '10ms' }
        [[flow]]
        id = 'u'\nprotocol = 'udp'\nrate = '8Mbit'\ndatagram = 1000",
    );
    let f = &r.flows[0];
    assert_eq!((f.id.as_str(), f.cc.as_str(), f.class.as_str()), ("u.0", "udp", ""));
    assert_eq!((f.bytes, f.loss, f.fct_s), (990_000, Some(0.0), None));
    let delay = f.delay_us.unwrap();
    assert_eq!((delay.p99, delay.max), (10_833, 10_833));
    // By 500 ms, 490 have arrived: the one sent at 489 ms arrives at 499.8336 ms.
    assert_eq!(f.intervals.iter().map(|i| i.bytes).collect::<Vec<_>>(), [490_000, 500_000]);
    let names: Vec<&str> = r.links.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(names, ["lan.out", "lan.back", "wan.out", "wan.back"]);
    // A bare link counts frames where they enter it. A link with a rate counts them after serialization.
    let (lan, wan) = (link(&r, "lan.out"), link(&r, "wan.out"));
    assert_eq!((lan.packets, lan.bytes, lan.utilization), (1000, 1_042_000, 0.0));
    assert_eq!((wan.packets, wan.bytes), (1000, 1_042_000));
    assert!((wan.utilization - 0.8336).abs() < 1e-9, "{}", wan.utilization);
    assert_eq!((link(&r, "wan.back").packets, r.packets), (0, 2000));
    assert_eq!((r.world, r.status, r.duration_s), (Backend::Sim, Status::Ok, 1.0));
    assert_eq!(r.made_by.kernel, "");
}

/// Flows of QUIC are those of TCP that are opaque, to the last bit of the result.
#[test]
fn quic_is_opaque_tcp() {
    let result = |flow: &str| {
        let r = simulate(&format!(
            "name = 't'\nduration = '2s'
            [path]
            rtt = '20ms'
            wan = {{ rate = '10Mbit', queue = '50p' }}
            [[gateway.class]]
            name = 'site'\nrate = '8Mbit'\nunresponsive = 'fair'
            [[flow]]
            id = 'q'\nport = 443\n{flow}"
        ));
        let of_classes: Vec<u64> = r.classes.iter().filter_map(|class| Some(class.others?.bytes)).collect();
        (r.flows, of_classes)
    };
    let (flows, unresponsive) = result("protocol = 'quic'");
    assert_eq!((flows.clone(), unresponsive.clone()), result("opaque = true"));
    assert!(flows[0].goodput_bps > 5e6 && flows[0].class == "site", "{flows:?}");
    assert!(unresponsive[0] > 1_000_000, "{unresponsive:?}");
}

/// One way takes 200 ms. Of a flow that sends for its last 50 ms nothing is known, of one that sends for a
/// second into a link that loses all, everything is.
#[test]
fn datagrams_under_way_at_the_end_are_not_lost() {
    let text = |loss: &str, start: &str| {
        format!(
            "name = 't'\nduration = '1s'
            [path]
            wan.out = {{ rate = '10Mbit', delay = '200ms', {loss} }}
            [[flow]]
            id = 'u'\nprotocol = 'udp'\nrate = '1Mbit'\ndatagram = 1000\nstart = '{start}'
            [[expect]]
            what = 'flow.u.*.loss'\nop = 'at_most'\ntarget = 0\n"
        )
    };
    let holds = |text: &str| {
        let result = simulate(text);
        (result.flows[0].loss, crate::report::expect::evaluate(&plan(text), &result)[0].ok)
    };
    assert_eq!(holds(&text("", "0s")), (Some(0.0), true));
    assert_eq!(holds(&text("", "950ms")), (None, false));
    assert_eq!(holds(&text("loss = 1", "0s")), (Some(1.0), false));
}

/// A link loses all of 125 datagrams, the last of which leaves 2 s before the end. Megabytes that another
/// flow has under way at the end are none of them.
#[test]
fn frames_of_other_flows_hide_no_loss() {
    for beside in ["", "[[flow]]\nid = 'bulk'\nrwnd = '30MB'"] {
        let r = simulate(&format!(
            "name = 't'\nduration = '3s'
            [path]
            rtt = '200ms'
            wan = {{ rate = '100Mbit', queue = '4000p' }}
            [[host]]
            name = 'far'\nside = 'wan'\nloss = 1
            [[flow]]
            id = 'u'\nprotocol = 'udp'\nrate = '1Mbit'\ndatagram = 1000\nduration = '1s'\nserver = 'far'
            {beside}"
        ));
        assert_eq!(r.flows[0].loss, Some(1.0), "{beside}");
        assert!(r.flows.iter().skip(1).all(|bulk| bulk.bytes > 1_000_000), "{:?}", r.flows);
    }
}

/// A flow of 15 ms sends 1000 bytes each millisecond, which arrive 10.5 ms later: 5 of 15 in its time, which
/// ends within a bin. The first data of a flow of TCP comes after two round trips of 21 ms: the link carries
/// 11,250 bytes in the 9 ms from then to its end, and ten segments in all.
#[test]
fn bytes_after_a_flows_end_are_in_none_of_its_rates() {
    let r = simulate(
        "name = 't'\nduration = '1s'
        [path]
        wan.out = { delay = '10500us' }\nwan.back = { rate = '10Mbit', delay = '10500us', queue = '100p' }
        [[flow]]
        id = 'u'\nprotocol = 'udp'\nrate = '8Mbit'\ndatagram = 1000\nduration = '15ms'
        [[flow]]
        id = 't'\nstart = '501ms'\nduration = '51ms'\ndirection = 'in'",
    );
    let (u, t) = (&r.flows[0], &r.flows[1]);
    assert_eq!((u.bytes, u.goodput_bps), (15_000, 5_000.0 * 8.0 / 0.015));
    assert_eq!(u.intervals.iter().map(|i| i.bytes).collect::<Vec<_>>(), [5_000]);
    let in_time: u64 = t.intervals.iter().map(|i| i.bytes).sum();
    assert!((1..=11_250).contains(&in_time) && t.bytes >= 14_480, "{t:?}");
    assert_eq!(t.goodput_bps, in_time as f64 * 8.0 / 0.051);
}

/// Datagrams of 9 Mbit/s in a class without a queue are of this class, which sets them no rate.
#[test]
fn datagrams_are_of_their_class() {
    let text = "name = 't'\nduration = '2s'
        [path]
        wan = { rate = '100Mbit' }
        [[gateway.class]]
        name = 'site'\nrate = '10Mbit'\nunresponsive = 'bound'
        [[flow]]
        id = 'u'\nprotocol = 'udp'\nrate = '9Mbit'
        [[expect]]
        what = 'class.site.goodput_bps'\nop = 'at_most'\ntarget = '2Mbit'";
    let r = simulate(text);
    assert_eq!((r.flows[0].class.as_str(), r.flows[0].target_bps), ("site", None));
    assert!((r.classes[0].bps / 9e6 - 1.0).abs() < 0.01, "{}", r.classes[0].bps);
    let found = crate::report::expect::evaluate(&plan(text), &r)[0].found.unwrap();
    assert!((found / 9e6 - 1.0).abs() < 0.01, "{found}");
}

/// Returns the result of a flow of 12 Mbit/s through a link that follows a trace, for 10 s, and its plan.
/// Two customers behind one gateway. The second one, at 10.1.0.2, has 3 Mbit/s each way, less than its flows
/// send. Datagrams have 1472 bytes in packets of 1500.
#[test]
fn datagrams_of_a_customer_are_bounded_by_its_class() {
    let directory = std::env::temp_dir().join(format!("weir-sim-customers-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let list = "id,prefixes,down,up\n1,10.1.0.1,20Mbit,20Mbit\n2,10.1.0.2,3Mbit,3Mbit\n";
    std::fs::write(directory.join("list.csv"), list).unwrap();
    let text = "name = 't'\nduration = '10s'
        [path]
        rtt = '20ms'
        [gateway.customers]
        file = 'list.csv'
        [[host]]
        name = 'home'\nside = 'lan'\ncount = 2
        [[flow]]
        id = 'down'\nprotocol = 'udp'\nrate = '6Mbit'\ndirection = 'in'\ncount = 2\nclient = 'home'
        [[flow]]
        id = 'up'\nprotocol = 'udp'\nrate = '5Mbit'\ncount = 2\nclient = 'home'";
    let file = Source::new(directory.join("t.toml").display().to_string(), text);
    let plan = experiment::parse(&file).unwrap().plan_for(Backend::Sim).unwrap();
    let options = Options { pcap: None, progress: None, stop: &AtomicBool::new(false) };
    let r = run(&plan, &options).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    let classes: Vec<&str> = r.flows.iter().map(|f| f.class.as_str()).collect();
    assert_eq!(classes, ["1-down", "2-down", "1-up", "2-up"]);
    let bounded = 3e6 * 1472.0 / 1500.0;
    for (flow, expected) in r.flows.iter().zip([6e6, bounded, 5e6, bounded]) {
        let found = flow.goodput_bps / expected;
        assert!((0.98..1.02).contains(&found), "{}: {found}", flow.id);
    }
}

/// Two homes behind one queue whose hosts take turns: the first has three flows of datagrams and a download,
/// the second has one flow. Each has half of what the queue lets through.
#[test]
fn flows_of_datagrams_share_the_turns_of_their_host() {
    let r = simulate(
        "name = 't'\nduration = '10s'
        [path]
        rtt = '20ms'
        [[gateway.class]]
        name = 'down'\ndirection = 'in'\nrate = '8Mbit'\nqueue = '100kB'\nhosts = true\nack_filter = 'delayed-per-flow'
        [[host]]
        name = 'home'\nside = 'lan'\ncount = 2
        [[host]]
        name = 'crowd'\nside = 'lan'
        [[flow]]
        id = 'many'\nprotocol = 'udp'\nrate = '4Mbit'\ndirection = 'in'\ncount = 3\nclient = 'crowd'
        [[flow]]
        id = 'one'\nprotocol = 'udp'\nrate = '6Mbit'\ndirection = 'in'\nclient = 'home'",
    );
    let all: f64 = r.flows.iter().map(|f| f.goodput_bps).sum();
    let one = r.flows.last().unwrap().goodput_bps / all;
    assert!((0.49..0.51).contains(&one), "{one}: {:?}", r.flows);
}

/// Flows of each kind between two hosts with one address each, on bare wires and behind links: those of a
/// group share the server's port. Everything arrives at the right end, and the only losses are those of the
/// flow to the host whose link loses all.
#[test]
fn flows_of_all_kinds_share_the_addresses_of_their_hosts() {
    for link in ["", "delay = '1ms'"] {
        let r = simulate(&format!(
            "name = 't'\nduration = '2s'
            [path]
            rtt = '20ms'
            [[host]]
            name = 'a'\nside = 'lan'\n{link}
            [[host]]
            name = 's'\nside = 'wan'\n{link}
            [[host]]
            name = 'far'\nside = 'wan'\nloss = 1
            [[flow]]
            id = 'out'\nprotocol = 'udp'\nrate = '800kbit'\ndatagram = 1000\nbytes = 50000\ncount = 3\nclient = 'a'\nserver = 's'
            [[flow]]
            id = 'in'\nprotocol = 'udp'\nrate = '800kbit'\ndatagram = 1000\nbytes = 70000\ncount = 2\nclient = 'a'\nserver = 's'\ndirection = 'in'
            [[flow]]
            id = 'tcp'\nbytes = 100000\ncount = 2\nclient = 'a'\nserver = 's'
            [[flow]]
            id = 'quic'\nprotocol = 'quic'\nbytes = 110000\ncount = 2\nclient = 'a'\nserver = 's'\ndirection = 'in'
            [[flow]]
            id = 'lost'\nprotocol = 'udp'\nrate = '800kbit'\ndatagram = 1000\nbytes = 10000\nclient = 'a'\nserver = 'far'"
        ));
        let bytes: Vec<u64> = r.flows.iter().map(|f| f.bytes).collect();
        let expected = [50_000, 50_000, 50_000, 70_000, 70_000, 100_000, 100_000, 110_000, 110_000, 0];
        assert_eq!(bytes, expected, "{link}");
        let lost: Vec<Option<f64>> = r.flows.iter().map(|f| f.loss).collect();
        let none = Some(0.0);
        assert_eq!(lost, [none, none, none, none, none, None, None, None, None, Some(1.0)], "{link}");
    }
}

fn traced(name: &str, trace: &str, keys: &str) -> (RunResult, Plan) {
    let directory = std::env::temp_dir().join(format!("weir-sim-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("t.rates"), trace).unwrap();
    let text = format!(
        "name = 't'\nduration = '10s'\n{keys}
        [path]
        rtt = '100ms'
        wan.out = {{ rate_trace = 't.rates', queue = '1bdp' }}
        [[flow]]
        id = 'u'\nprotocol = 'udp'\nrate = '12Mbit'"
    );
    let source = Source::new(directory.join("t.toml").display().to_string(), text);
    let plan = experiment::parse(&source).unwrap_or_else(|e| panic!("{e}")).plan;
    std::fs::remove_dir_all(&directory).unwrap();
    let options = Options { pcap: None, progress: None, stop: &AtomicBool::new(false) };
    (run(&plan, &options).unwrap(), plan)
}

/// A link of 1 Mbit/s and then of 10, both less than the flow sends, is used all the time. So is one whose
/// last rate is lower, and one whose round the run does not end. A bucket is filled at the rate.
#[test]
fn utilization_is_of_the_bits_that_could_leave() {
    for (name, trace) in [
        ("rise", "0s 1Mbit\n1s 10Mbit\n"),
        ("fall", "0s 10Mbit\n1s 1Mbit\n"),
        ("long", "0s 10Mbit\n10s 1Mbit\n100s repeat\n"),
    ] {
        let used = link(&traced(name, trace, "").0, "wan.out").utilization;
        assert!(used > 0.99 && used <= 1.0, "{name}: {used}");
    }
    // 9 Mbit/s in datagrams of 1000 bytes are 9.378 of 10 Mbit/s with 42 bytes of headers.
    for bucket in ["", "burst = '100kB'", "burst = '100kB'\ntimer = '10ms'"] {
        let r = simulate(&format!(
            "name = 't'\nduration = '4s'
            [path.wan.out]
            rate = '10Mbit'\n{bucket}
            [[flow]]
            id = 'u'\nprotocol = 'udp'\nrate = '9Mbit'\ndatagram = 1000"
        ));
        let used = link(&r, "wan.out").utilization;
        assert!((used - 0.9378).abs() < 0.005, "{bucket}: {used}");
    }
}

/// A queue that is full at 10 Mbit/s holds as long as its bytes take at that rate, whatever the average.
#[test]
fn the_delay_of_a_queue_is_of_the_rates_to_come() {
    let (r, _) = traced("delay", "0s 1Mbit\n1s 10Mbit\n", "series = ['queue']");
    let (t_s, delays) = r.column("wan.out", "queue_delay_us").unwrap();
    let (_, bytes) = r.column("wan.out", "queue_bytes").unwrap();
    let late = t_s.partition_point(|&t| t < 2.0);
    assert!(bytes[late..].iter().all(|&bytes| bytes > 100_000.0));
    for (delay, bytes) in delays[late..].iter().zip(&bytes[late..]) {
        assert!((delay - bytes * 8.0 / 10.0).abs() < 1e-3, "{delay} {bytes}");
    }
}

/// 1 Mbit in the first second and 90 in the nine after it: 9.1 Mbit/s, and 113,750 bytes in 100 ms.
#[test]
fn a_queue_in_round_trips_is_of_the_rate_in_the_run() {
    let rise = traced("mean", "0s 1Mbit\n1s 10Mbit\n", "").1;
    assert_eq!(rise.path.wan_out.rate, weir_core::rate::Rate::from_bps(9_100_000));
}

/// A flow that is not done at the end of the run takes longer than from its start to then: 0.9 s of 1 s.
#[test]
fn the_completion_of_an_unfinished_flow_has_a_lower_bound() {
    let text = "name = 't'\nduration = '1s'
        [path]
        wan = { rate = '1Mbit', delay = '10ms', queue = '100p' }
        [[flow]]
        id = 'f'\nbytes = '10MB'\nstart = '100ms'
        [[expect]]
        what = 'flow.f.*.fct_s'\nop = 'at_most'\ntarget = '10s'\n";
    let result = simulate(text);
    let f = &result.flows[0];
    assert_eq!((f.fct_s, f.fct_at_least_s), (None, Some(0.9)));
    assert!(!crate::report::expect::evaluate(&plan(text), &result)[0].ok);
}

/// Each of three flows has two intervals, of which there is room for four. Draws of flows are named.
#[test]
fn a_result_tells_what_it_has_no_room_for_and_what_is_drawn() {
    let text = "name = 't'\nduration = '1s'\ninterval = '500ms'
        [path]
        wan = { rate = '1Mbit', delay = '10ms' }
        [[flow]]
        id = 'long'\ncount = 2
        [[flow]]
        id = 'web'\narrivals = { poisson = '9/s' }\nbytes = '1kB'\ncount = 1\n";
    let options = Options { pcap: None, progress: None, stop: &AtomicBool::new(false) };
    let result = super::drive::alone(&plan(text), &options, Room::new(1_000, 4)).unwrap();
    assert_eq!(result.flows.iter().map(|f| f.intervals.len()).collect::<Vec<_>>(), [2, 2, 0]);
    let said =
        "a result has at most 4 intervals in all: those of web.0 are left out; choose a longer `interval`";
    assert_eq!((result.status, result.faults.as_slice()), (Status::Failed, [said.to_string()].as_slice()));
    assert_eq!(result.drawn, ["web"]);
}

/// Verifies the start times of a source's flows. An upload takes 30 ms, and 10 ms later its client has the
/// server's FIN. A download takes 40 ms, since the server writes after the handshake. 20 ms later its client
/// has the ACK of its FIN. The next flow begins 5 ms after that.
#[test]
fn the_flows_of_a_source_follow_each_other() {
    for (direction, every, fct) in [("out", 45, 0.03), ("in", 65, 0.04)] {
        let text = format!(
            "name = 't'\nduration = '1s'
            [path]
            wan = {{ delay = '10ms' }}
            [[flow]]
            id = 'f'\ncc = 'reno'\nbytes = 1000\ndirection = '{direction}'
            sources = 2\ncount = 100\nstagger = '1ms'\nthink = '5ms'"
        );
        let flows = simulate(&text).flows;
        let starts: Vec<u64> = flows.iter().map(|f| (f.start_s * 1e3).round() as u64).collect();
        let expected: Vec<u64> =
            (0..).flat_map(|n| [n * every, n * every + 1]).take_while(|t| *t < 1000).collect();
        assert_eq!(starts, expected, "{direction}");
        let (last, done) = flows.split_last().unwrap();
        assert!(done.iter().rev().skip(1).all(|f| f.fct_s == Some(fct)), "{direction}");
        assert!(last.fct_s.is_none_or(|s| s == fct) && last.id == format!("f.{}", starts.len() - 1));
    }
}

/// Verifies the time for SYN, SYN-ACK and the data: three times 10 ms.
#[test]
fn a_completion_time_by_hand() {
    let text = "name = 't'\nduration = '1s'
        [path]
        wan = { delay = '10ms' }
        [[flow]]
        id = 'f'\ncc = 'reno'\nbytes = 1000\nstart = '5ms'\ndirection = 'DIRECTION'";
    let up = &simulate(&text.replace("DIRECTION", "out")).flows[0];
    assert_eq!((up.start_s, up.end_s, up.fct_s, up.bytes), (0.005, 0.035, Some(0.03), 1000));
    assert_eq!(up.goodput_bps, 8000.0 / 0.03);
    assert_eq!((up.rtt_us.p50, up.retransmits, up.rtos), (20_000, 0, 0));
    // The server sends once the third packet of the handshake has opened its connection.
    let down = &simulate(&text.replace("DIRECTION", "in")).flows[0];
    assert_eq!(down.fct_s, Some(0.04));
}

/// Verifies that an abandoned connection is a result. No packet of one of two flows arrives. It sends seven
/// SYNs, at 0, 1, 3, 7, 15, 31 and 63 s, and gives up at 127 s (RFC 6298 §5.5; Linux: `tcp_syn_retries` = 6).
#[test]
fn a_connection_that_is_given_up_is_a_result() {
    let text = "name = 't'\nduration = '130s'
        [[host]]
        name = 'deaf'\nside = 'wan'
        [host.down]
        delay = '5ms'\nloss = '100%'
        [[flow]]
        id = 'good'\ncc = 'reno'\nbytes = 1000
        [[flow]]
        id = 'lost'\ncc = 'reno'\nbytes = 1000\nserver = 'deaf'";
    let r = simulate(text);
    assert_eq!((r.status, r.faults.len()), (Status::Ok, 0));
    let of = |n: usize| (r.flows[n].gave_up, r.flows[n].rtos, r.flows[n].bytes, r.flows[n].fct_s.is_some());
    assert_eq!((of(0), of(1)), ((0, 0, 1000, true), (1, 6, 0, false)));
    // A run that ends earlier does not report it.
    let r = simulate(&text.replace("130s", "126s"));
    assert_eq!((r.flows[1].gave_up, r.flows[1].rtos), (0, 6));
}

/// Verifies access links of 5 ms for each host and direction: 3 × 15 ms.
#[test]
fn hosts_have_access_links() {
    let r = simulate(
        "name = 't'\nduration = '1s'
        [path]
        wan = { delay = '10ms' }
        [[host]]
        name = 'edge'\nside = 'lan'\ncount = 2\ndelay = '5ms'
        [[flow]]
        id = 'f'\ncc = 'reno'\nbytes = 1000\ncount = 2\nclient = 'edge'",
    );
    assert!(r.flows.iter().all(|f| f.fct_s == Some(0.045)), "{:?}", r.flows);
    let access: Vec<&str> = r.links[4..].iter().map(|l| l.name.as_str()).collect();
    assert_eq!(access, ["edge.0.up", "edge.1.up", "edge.0.down", "edge.1.down"]);
    assert_eq!(link(&r, "edge.0.up").packets, link(&r, "edge.1.up").packets);
}

/// Counts the frames in a capture file: after 24 bytes, records of 16 bytes and the length that they state.
fn frames(path: &std::path::Path) -> u64 {
    let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let (mut at, mut n) = (24, 0);
    while let Some(present) = bytes.get(at + 8..at + 12) {
        at += 16 + u32::from_le_bytes(present.try_into().unwrap()) as usize;
        n += 1;
    }
    assert_eq!(at, bytes.len());
    n
}

/// Verifies that every frame appears at its own host and nowhere else. There are more hosts than ports of a
/// bare link, and some have links of their own.
#[test]
fn frames_are_seen_at_their_hosts() {
    let text = "name = 't'\nduration = '1s'
        [path]
        wan = { delay = '10ms' }
        [[host]]
        name = 'bare'\nside = 'lan'\ncount = 6
        [[host]]
        name = 'far'\nside = 'wan'\ncount = 2\ndelay = '5ms'
        [[flow]]
        id = 'own'\ncc = 'reno'\nbytes = 20000
        [[flow]]
        id = 'spread'\ncc = 'reno'\nbytes = 20000\ncount = 6\nclient = 'bare'\nserver = 'far'
        [[flow]]
        id = 'udp'\nprotocol = 'udp'\nrate = '1Mbit'\nclient = 'bare'\nserver = 'far'\ndirection = 'in'\nduration = '500ms'";
    let directory = std::env::temp_dir().join(format!("weir-sim-views-{}", std::process::id()));
    let options = Options { pcap: Some(&directory), progress: None, stop: &AtomicBool::new(false) };
    let r = run(&plan(text), &options).unwrap();
    let seen = |name: &str| frames(&directory.join(format!("{name}.pcap")));
    let (out, back) = (link(&r, "lan.out").packets, link(&r, "lan.back").packets);
    assert_eq!((out, back), (link(&r, "wan.out").packets, link(&r, "wan.back").packets));
    let (own, spread) = (seen("clients"), seen("bare"));
    assert_eq!(own + spread, out + back);
    assert_eq!(own, seen("servers"));
    let sent: u64 = ["far.0.up", "far.1.up"].iter().map(|n| link(&r, n).packets).sum();
    let got: u64 = ["far.0.down", "far.1.down"].iter().map(|n| link(&r, n).packets).sum();
    // Each host captures the frames that it sends and those that come out of its link.
    assert_eq!(seen("far"), sent + got);
    assert_eq!((seen("gw-lan"), seen("gw-wan"), seen("lan.out")), (out + back, out + back, out));
    std::fs::remove_dir_all(&directory).unwrap();
}

const SHAPED: &str = "name = 't'\nduration = '4s'
    [path]
    rtt = '20ms'
    wan = { rate = '100Mbit' }
    [[gateway.class]]
    name = 'ten'\ndirection = 'out'\nack = { preset = 'ack-shaper', flow_rate = '10Mbit' }
    [[flow]]
    id = 'a'\ncount = 2\ncc = 'reno'";

#[test]
fn a_gateway_shapes_and_is_reported() {
    let r = simulate(SHAPED);
    let g = r.gateway.as_ref().unwrap();
    // As inline, data bypasses the gateway.
    assert_eq!((g.cpu_s, g.user_data_bytes), (0.0, 0));
    let f = &g.frames;
    assert_eq!(f.received + f.made, f.sent + f.held + f.absorbed + f.dropped.values().sum::<u64>());
    for flow in &r.flows {
        assert_eq!((flow.class.as_str(), flow.target_bps), ("ten", Some(10_000_000)));
        assert!(flow.intervals[1..].iter().all(|i| (i.bps / 10e6 - 1.0).abs() < 0.01), "{flow:?}");
    }
    let class = &r.classes[0];
    assert_eq!((class.name.as_str(), class.target_bps), ("ten", 20_000_000));
    assert!((class.bps - r.flows.iter().map(|f| f.goodput_bps).sum::<f64>()).abs() < 1.0);
    assert!(class.acks_absorbed > 0 && class.acks_generated > 0 && class.held_ack_peak_bytes > 0);
}

#[test]
fn looking_changes_nothing() {
    let blind = simulate(SHAPED);
    let all = "series = ['cwnd', 'acked', 'rtt', 'queue', 'held']\n";
    for sample in ["", "sample = '1ms'\n", "sample = '7777us'\n"] {
        let seen = simulate(&format!("{all}{sample}{SHAPED}"));
        assert_eq!(
            (&seen.flows, &seen.links, &seen.classes),
            (&blind.flows, &blind.links, &blind.classes),
            "{sample}"
        );
    }
}

#[test]
fn series_at_every_change() {
    let r = simulate(&format!("series = ['cwnd', 'acked', 'queue', 'held']\n{SHAPED}"));
    let names: Vec<&str> = r.series.keys().map(String::as_str).collect();
    let flow = ["a.0", "a.0.held", "a.0.received"];
    assert_eq!(names[..3], flow);
    assert_eq!(names[6..], ["wan.back", "wan.out"]);
    let (t, acked) = r.column("a.0", "acked_bytes").unwrap();
    assert!(t.len() > 500 && t.windows(2).all(|w| w[0] <= w[1]) && acked.windows(2).all(|w| w[0] <= w[1]));
    let (_, cwnd) = r.column("a.0", "cwnd_packets").unwrap();
    assert_eq!((cwnd[0], cwnd.len()), (10.0, t.len()));
    assert_eq!(r.column("a.0", "received_bytes").unwrap().1.iter().sum::<f64>(), r.flows[0].bytes as f64);
    // There are a thousand samples, and one at the end.
    assert_eq!(r.column("wan.out", "queue_bytes").unwrap().0.len(), 1001);
    assert!(r.column("a.1", "held_bytes").unwrap().1.iter().any(|&b| b > 0.0));
}

/// Connections that nobody answers have no bins, however long they wait.
#[test]
fn series_of_what_receives_nothing() {
    let r = simulate(
        "name = 't'\nduration = '20s'\npath.wan = { rate = '10Mbit' }\nhost = [{ name = 'c', side = 'lan', loss = 1 }]
        [[flow]]\nid = 'a'\nclient = 'c'\ncount = 3\nbytes = 1",
    );
    assert_eq!(r.flows.len(), 3);
    for flow in &r.flows {
        assert_eq!((flow.bytes, flow.end_s), (0, 20.0));
        assert!(r.column(&flow.id, "received_bytes").unwrap().1.is_empty());
    }
}

#[test]
fn series_at_a_period() {
    let r = simulate(&format!("series = ['cwnd', 'held']\nsample = '10ms'\n{SHAPED}"));
    let (t, cwnd) = r.column("a.0", "cwnd_packets").unwrap();
    // The series begins at the start: the flow opens at 0.
    assert_eq!((t[0], t[1], t.len(), cwnd.len()), (0.0, 0.01, 401, 401));
    assert_eq!(r.column("a.0", "held_bytes").unwrap().0, t);
    assert!(!r.series.contains_key("a.0.held"));
}

#[test]
fn a_run_that_is_stopped_tells_what_it_did() {
    let options = Options { pcap: None, progress: None, stop: &AtomicBool::new(true) };
    let r = run(&plan(SHAPED), &options).unwrap();
    assert_eq!((r.status, r.flows.len()), (Status::Interrupted, 2));
    assert!(r.duration_s > 0.0 && r.duration_s < 0.1, "{}", r.duration_s);
    assert_eq!(r.faults, [""; 0]);
}

#[test]
fn a_long_run_is_stopped_as_soon_as_a_short_one() {
    let options = Options { pcap: None, progress: None, stop: &AtomicBool::new(true) };
    let mut long = plan(SHAPED);
    long.duration = weir_core::time::Duration::from_secs(1_000_000);
    let r = run(&long, &options).unwrap();
    assert!(r.status == Status::Interrupted && r.duration_s < 0.1, "{}", r.duration_s);
}

#[test]
fn seeds_tell_runs_apart() {
    let lossy = SHAPED.replace("rate = '100Mbit'", "rate = '10Mbit', loss = '1%'");
    let with = |seed: &str| simulate(&format!("seed = {seed}\n{lossy}"));
    assert_eq!(with("1"), with("1"));
    assert_ne!(with("1").flows, with("2").flows);
}

/// A gateway in front of a line that carries PPPoE over ATM: 1500 bytes take 33 cells of 53. Where its rate
/// counts cells, nothing waits in the line, and full segments get 1448 of 1749 bytes. Where it counts frames
/// or payload, the line's queue stands.
#[test]
fn a_rate_that_counts_cells_leaves_the_queue_of_an_atm_line_empty() {
    let run = |direction: &str, class: &str, layer: &str| {
        let link = if direction == "out" { "wan.out" } else { "wan.back" };
        let result = simulate(&format!(
            "name = 't'\nduration = '20s'
            [path]\nrtt = '30ms'
            [path.{link}]
            rate = '10Mbit'\noverhead = 40\ncells = 'atm'\nqueue = '200p'
            [gateway]\nlink_layer = '{layer}'
            [[gateway.class]]\nname = 'a'\ndirection = '{direction}'\n{class}
            [[flow]]\nid = 'f'\ncount = 2\ndirection = '{direction}'"
        ));
        let goodput: f64 = result.flows.iter().map(|flow| flow.goodput_bps).sum();
        (self::link(&result, link).queue_us.p50, goodput)
    };
    for (direction, class, rate, waits) in
        [("out", "rate = '10Mbit'\nqueue = '50p'", 10e6, 1), ("in", "rate = '9.9Mbit'", 9.9e6, 2_000)]
    {
        let (p50, goodput) = run(direction, class, "pppoe-llcsnap");
        let expected = rate * 1448.0 / 1749.0;
        assert!((goodput / expected - 1.0).abs() < 0.005, "{class}: {goodput}, not {expected}");
        assert!(p50 <= waits, "{class}: half of the frames wait for {p50} us");
        let (p50, _) = run(direction, class, "raw");
        assert!(p50 > 20_000, "{class}: without cells half of the frames wait for {p50} us");
    }
}
