//! What the gateway has to do, seen from the hosts on its two sides.

use crate::lab::{alive, eventually, kill, Lab, CLIENT, SERVER};
use std::time::Duration;

const KILL: i32 = 9;
const TERM: i32 = 15;
const STOP: i32 = 19;

pub const ALL: &[(&str, fn())] = &[
    ("full_native", full_native),
    ("full_skb", full_skb),
    ("only_acks_come_to_user_space", only_acks_come_to_user_space),
    ("verdicts_keep_flows_in_the_kernel", verdicts_keep_flows_in_the_kernel),
    ("acks_of_both_directions_come", acks_of_both_directions_come),
    ("every_queue_is_read", every_queue_is_read),
    ("frames_leave_when_they_are_due", frames_leave_when_they_are_due),
    ("traffic_survives_a_killed_engine", traffic_survives_a_killed_engine),
    ("traffic_survives_a_hung_engine", traffic_survives_a_hung_engine),
    ("engine_cleans_up_after_its_supervisor", engine_cleans_up_after_its_supervisor),
    ("next_start_restores_after_everything_was_killed", next_start_restores_after_everything_was_killed),
    ("second_instance_is_refused", second_instance_is_refused),
    ("wrong_hosts_are_refused_unchanged", wrong_hosts_are_refused_unchanged),
    ("links_may_go_down_and_up", links_may_go_down_and_up),
    ("removed_interface_ends_the_run", removed_interface_ends_the_run),
    ("tagged_openings_are_observed_as_on_the_wire", tagged_openings_are_observed_as_on_the_wire),
];

/// Frames cross both ways through the engine, stamped by the program, and the host is restored.
fn full(xdp: &str) {
    let lab = Lab::new();
    let before = lab.run("g", "ethtool", &["-k", "lan0"]);
    let mut bump = lab.running("full", "none", xdp, &[]);
    assert_ne!(lab.run("g", "ethtool", &["-k", "lan0"]), before);
    let _server = lab.serve();
    assert_eq!(lab.ping(20, 10), 20);
    // From here on the hosts leave TCP checksums to the device, and so to the engine; their giant
    // segments would reach the gateway whole in skb mode.
    for (host, link) in [("c", "c0"), ("s", "s0")] {
        lab.offload(host, link, "tx", "on");
        lab.offload(host, link, "tso", "off");
        lab.offload(host, link, "gso", "off");
    }
    let rate = lab.send(5000, 2000);
    println!("  {xdp}: {:.2} Gb/s", rate / 1e9);
    assert!(rate > 1e8, "{rate}");
    bump.signal(TERM);
    assert_eq!(bump.wait(), Some(0), "{}", lab.log());
    let stats = lab.stats();
    println!("  {stats:?}");
    assert!(stats["from_lan"] > 1000 && stats["from_wan"] > 100, "{stats:?}");
    assert_eq!((stats["unstamped0"], stats["unstamped1"], stats["stops"]), (0, 0, 1), "{stats:?}");
    assert_eq!(lab.run("g", "ethtool", &["-k", "lan0"]), before);
}

fn full_native() {
    full("native");
}

fn full_skb() {
    full("skb");
}

fn only_acks_come_to_user_space() {
    let lab = Lab::new();
    let mut bump = lab.running("acks", "bridge", "auto", &[]);
    let bridges = || lab.run("g", "ip", &["-o", "link", "show", "type", "bridge"]);
    assert!(bridges().contains("weir-"), "{}", bridges());
    let _server = lab.serve();
    // As hosts are by default: with segmentation offload, and checksums left to devices.
    lab.offload("c", "c0", "tx", "on");
    lab.offload("s", "s0", "tx", "on");
    lab.offload("c", "c0", "tso", "on");
    let rate = lab.send(5000, 2000);
    eventually("the end is observed", || lab.stat("observed") >= 2);
    println!("  {:.2} Gb/s, {:?}", rate / 1e9, lab.stats());
    assert_eq!(lab.stat("from_lan"), 0);
    assert!(lab.stat("from_wan") > 100);
    // A packet of data for each ACK at the least: far less than all came by.
    let packets = rate / 8.0 * 2.0 / 1448.0;
    assert!((lab.stat("from_wan") as f64) < packets);
    assert_eq!(lab.stat("taken1"), lab.stat("from_wan"));
    assert!(lab.stat("other1") > 0 && lab.stat("verdict1") == 0, "{:?}", lab.stats());
    bump.signal(TERM);
    assert_eq!(bump.wait(), Some(0), "{}", lab.log());
    assert_eq!(bridges(), "");
}

fn verdicts_keep_flows_in_the_kernel() {
    let lab = Lab::new();
    let flow = format!("{SERVER}:7001>{CLIENT}:5000");
    let mut bump = lab.running("acks", "bridge", "auto", &[&flow]);
    let _server = lab.serve();
    lab.send(5000, 500);
    // Only the answer to the opening is shown to the engine, in case the flow is a new one, and the end.
    eventually("the end is observed", || lab.stat("observed") >= 2);
    eventually("the receiver's end is seen", || lab.stat("from_wan") == 2);
    lab.send(5001, 500);
    assert!(lab.stat("from_wan") > 50, "{:?}", lab.stats());
    bump.signal(TERM);
    assert_eq!(bump.wait(), Some(0));
}

/// With ACKs shaped both ways, TCP of both ports is taken and the rest is not.
fn acks_of_both_directions_come() {
    let lab = Lab::new();
    let mut bump = lab.running("acks-both", "bridge", "auto", &[]);
    let _server = lab.serve();
    lab.send(5000, 300);
    bump.signal(TERM);
    assert_eq!(bump.wait(), Some(0), "{}", lab.log());
    let stats = lab.stats();
    assert!(stats["from_lan"] > 100 && stats["from_wan"] > 10 && stats["observed"] == 0, "{stats:?}");
    assert!(stats["other0"] > 0 && stats["other1"] > 0, "{stats:?}");
}

/// Flows are spread over two queues of the device, and each queue has its socket.
fn every_queue_is_read() {
    let lab = Lab::new();
    for (host, link) in [("g", "lan0"), ("c", "c0")] {
        lab.run(host, "ethtool", &["-L", link, "rx", "2", "tx", "2"]);
    }
    let mut bump = lab.running("full", "none", "native", &[]);
    let _server = lab.serve();
    for port in 5000..5016 {
        assert!(lab.send(port, 50) > 0.0);
    }
    assert_eq!(lab.ping(50, 1), 50);
    bump.signal(TERM);
    assert_eq!(bump.wait(), Some(0), "{}", lab.log());
    let stats = lab.stats();
    assert_eq!((stats["taken0"], stats["lost0"]), (stats["from_lan"], 0), "{stats:?}");
}

fn frames_leave_when_they_are_due() {
    let lab = Lab::new();
    let mut bump = lab.delaying(5_000);
    let _server = lab.serve();
    assert_eq!(lab.ping(500, 1), 500);
    bump.signal(TERM);
    assert_eq!(bump.wait(), Some(0), "{}", lab.log());
    let stats = lab.stats();
    println!("  late by {} µs at the median, {} at p99", stats["late_p50_us"], stats["late_p99_us"]);
    // An idle machine shows 1 and 20; a busy one, with others on its CPUs, far more.
    assert!(stats["late_p50_us"] < 1_000, "{stats:?}");
}

/// Pings every 2 ms while the engine is hit: the longest time without an answer, in milliseconds.
fn outage(signal: i32) -> u32 {
    let lab = Lab::new();
    let mut bump = lab.running("full", "bridge", "auto", &[]);
    let _server = lab.serve();
    assert_eq!(lab.ping(50, 2), 50);
    // The kernel looks once a second at interfaces that came up.
    eventually("the bridge forwards", || {
        lab.ip("g", &["-d", "link"]).matches("bridge_slave state forwarding").count() == 2
    });
    let first = lab.engine(0);
    let (back, longest) = std::thread::scope(|scope| {
        let pings = scope.spawn(|| lab.pings(500, 2));
        std::thread::sleep(Duration::from_millis(300));
        kill(first, signal);
        pings.join().unwrap()
    });
    let second = lab.engine(first);
    assert!(!alive(first));
    assert_eq!(std::fs::read_to_string(lab.directory.join("flushes")).unwrap(), "1");
    println!("  longest outage {} ms, {} of 500 pings lost", longest * 2, 500 - back);
    // The new engine carries traffic.
    let before = lab.stat("from_lan");
    assert_eq!(lab.ping(50, 2), 50);
    eventually("the new engine carries it", || lab.stat("from_lan") >= before + 50);
    bump.signal(TERM);
    assert_eq!(bump.wait(), Some(0), "{}", lab.log());
    assert!(!alive(second));
    longest * 2
}

// On an idle machine 15 and 50 ms; the limits leave room for a busy one.

fn traffic_survives_a_killed_engine() {
    assert!(outage(KILL) <= 100);
}

fn traffic_survives_a_hung_engine() {
    assert!(outage(STOP) <= 150);
}

fn features(lab: &Lab) -> String {
    lab.run("g", "ethtool", &["-k", "lan0"]) + &lab.run("g", "ethtool", &["-k", "wan0"])
}

/// Interfaces of the gateway, with their MTU, program and bridge; not the carrier, which the kernel
/// looks at once a second.
fn links(lab: &Lab) -> Vec<String> {
    let text = lab.run("g", "ip", &["-o", "link"]);
    let part = |line: &str| line.split(" qdisc ").map(String::from).collect::<Vec<_>>();
    let master = |rest: &str| {
        let mut words = rest.split(' ').skip_while(|word| *word != "master");
        words.nth(1).unwrap_or("none").to_owned()
    };
    let link = |line: &str| {
        let parts = part(line);
        let (name, more) = (parts[0].split(" <").next().unwrap(), parts[0].rsplit("> ").next().unwrap());
        format!("{name} {more} master {}", master(&parts[1]))
    };
    text.lines().map(link).collect()
}

fn engine_cleans_up_after_its_supervisor() {
    let lab = Lab::new();
    let before = (features(&lab), links(&lab));
    let mut bump = lab.running("full", "bridge", "auto", &[]);
    assert_ne!((features(&lab), links(&lab)), before);
    let engine = lab.engine(0);
    bump.signal(KILL);
    assert_eq!(bump.wait(), None);
    eventually("the engine ends", || !alive(engine));
    eventually("XDP is off", || links(&lab) == before.1);
    assert_eq!(features(&lab), before.0);
    assert_eq!(lab.stat("stops"), 1);
    assert!(!lab.directory.join("lan0-wan0.json").exists());
}

fn next_start_restores_after_everything_was_killed() {
    let lab = Lab::new();
    let before = (features(&lab), links(&lab));
    let mut bump = lab.running("full", "bridge", "auto", &[]);
    let engine = lab.engine(0);
    // The engine first would be started again.
    bump.signal(STOP);
    kill(engine, KILL);
    bump.signal(KILL);
    assert_eq!(bump.wait(), None);
    assert_ne!((features(&lab), links(&lab)), before);
    std::fs::remove_file(lab.directory.join("stats")).unwrap();
    let mut bump = lab.running("full", "bridge", "auto", &[]);
    bump.signal(TERM);
    assert_eq!(bump.wait(), Some(0), "{}", lab.log());
    eventually("XDP is off", || links(&lab) == before.1);
    assert_eq!(features(&lab), before.0);
}

fn second_instance_is_refused() {
    let lab = Lab::new();
    let mut bump = lab.running("full", "bridge", "auto", &[]);
    let state = (features(&lab), links(&lab));
    let mut second = lab.bump("full", "bridge", "auto", &[]);
    assert_eq!(second.wait(), Some(2));
    assert!(lab.log().contains("lan0 is in use by another Weir"), "{}", lab.log());
    assert_eq!((features(&lab), links(&lab)), state);
    bump.signal(TERM);
    assert_eq!(bump.wait(), Some(0));
}

fn wrong_hosts_are_refused_unchanged() {
    let lab = Lab::new();
    let refused = |reasons: &[&str]| {
        let state = (features(&lab), links(&lab));
        assert_eq!(lab.bump("full", "bridge", "auto", &[]).wait(), Some(2), "{reasons:?}");
        for reason in reasons {
            assert!(lab.log().contains(reason), "{reason}: {}", lab.log());
        }
        assert_eq!((features(&lab), links(&lab)), state);
        assert!(!lab.directory.join("lan0-wan0.json").exists());
    };
    lab.ip("g", &["addr", "add", "10.8.0.1/24", "dev", "lan0"]);
    lab.ip("g", &["link", "set", "wan0", "down"]);
    refused(&["lan0 has an IP address", "wan0 is down", "several things"]);
    lab.ip("g", &["addr", "flush", "dev", "lan0"]);
    lab.ip("g", &["link", "set", "wan0", "up"]);
    lab.ip("g", &["link", "add", "br9", "type", "bridge"]);
    lab.ip("g", &["link", "set", "wan0", "master", "br9"]);
    refused(&["wan0 belongs to br9"]);
    // A bridge of both is used, and left.
    lab.ip("g", &["link", "set", "lan0", "master", "br9"]);
    let before = links(&lab);
    let mut bump = lab.running("full", "bridge", "auto", &[]);
    assert!(!links(&lab).concat().contains("weir-"));
    bump.signal(TERM);
    assert_eq!(bump.wait(), Some(0));
    eventually("XDP is off", || links(&lab) == before);
    lab.ip("g", &["link", "set", "lan0", "mtu", "9000"]);
    refused(&["the MTU of lan0 is 9000: at most 3818 is supported"]);
    lab.ip("g", &["link", "set", "lan0", "name", "lan1"]);
    assert_eq!(lab.bump("full", "bridge", "auto", &[]).wait(), Some(2));
    assert!(lab.log().contains("there is no interface lan0 here; Ethernet interfaces:"), "{}", lab.log());
}

fn links_may_go_down_and_up() {
    let lab = Lab::new();
    let mut bump = lab.running("full", "none", "auto", &[]);
    let _server = lab.serve();
    for (host, link) in [("g", "wan0"), ("s", "s0"), ("g", "lan0")] {
        lab.ip(host, &["link", "set", link, "down"]);
        assert_eq!(lab.ping(20, 2), 0);
        lab.ip(host, &["link", "set", link, "up"]);
        eventually("traffic flows again", || lab.ping(5, 2) == 5);
    }
    assert_eq!(lab.stat("resyncs"), 0);
    assert!(lab.stat("drops") > 0, "{:?}", lab.stats());
    bump.signal(TERM);
    assert_eq!(bump.wait(), Some(0), "{}", lab.log());
}

fn removed_interface_ends_the_run() {
    let lab = Lab::new();
    let before = features(&lab);
    let mut bump = lab.running("full", "bridge", "auto", &[]);
    lab.ip("s", &["link", "del", "s0"]);
    assert_eq!(bump.wait(), Some(1));
    assert!(lab.log().contains("interface wan0 has been removed"), "{}", lab.log());
    assert_eq!(lab.run("g", "ethtool", &["-k", "lan0"]), before[..before.find("Features for wan0").unwrap()]);
    assert!(!links(&lab).concat().contains("weir-"));
}

/// A tag that the kernel took out of the frame before the observer saw it is put back in the copy.
fn tagged_openings_are_observed_as_on_the_wire() {
    let lab = Lab::new();
    let mut bump = lab.running("acks", "bridge", "auto", &[]);
    lab.send_tagged_opening();
    eventually("both are observed", || lab.stat("observed") == 2);
    assert_eq!((lab.stat("observed_8100"), lab.stat("observed_88a8")), (5, 6 << 16 | 7), "{:?}", lab.stats());
    bump.signal(TERM);
    assert_eq!(bump.wait(), Some(0), "{}", lab.log());
}
