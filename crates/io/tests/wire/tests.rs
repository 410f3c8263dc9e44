//! The engine as the hosts on its two sides see it.

use crate::lab::{eventually, Kind, Lab, Process, BOX, SERVER, SERVER6};

pub const KILL: i32 = 9;
pub const TERM: i32 = 15;
pub const CONT: i32 = 18;
pub const STOP: i32 = 19;
pub const HUP: i32 = 1;

pub const ALL: &[(&str, fn())] = &[
    ("all_of_a_pair", all_of_a_pair),
    ("all_of_one_interface_of_a_router", all_of_one_interface_of_a_router),
    ("only_acks_come_to_user_space", only_acks_come_to_user_space),
    ("frames_leave_when_they_are_due", frames_leave_when_they_are_due),
    ("second_instance_is_refused", second_instance_is_refused),
    ("wrong_hosts_are_refused_unchanged", wrong_hosts_are_refused_unchanged),
    ("interfaces_are_followed", interfaces_are_followed),
    ("acks_are_taken_on_an_interface_that_is_back", acks_are_taken_on_an_interface_that_is_back),
    ("interfaces_may_come_late", interfaces_may_come_late),
    ("everybody_around_the_box_is_reached", everybody_around_the_box_is_reached),
    ("nothing_is_sent_twice_when_devices_are_full", nothing_is_sent_twice_when_devices_are_full),
    ("tags_that_hardware_takes_out", tags_that_hardware_takes_out),
    ("interfaces_without_ethernet_headers", interfaces_without_ethernet_headers),
    ("privileges_are_given_up", privileges_are_given_up),
];

/// Interfaces of the box that Weir made.
pub fn internal(lab: &Lab) -> usize {
    lab.ip("g", &["-o", "link"]).lines().filter(|line| line.contains(": weir-")).count()
}

pub fn ends_well(lab: &Lab, engine: &mut Process) {
    engine.signal(TERM);
    assert_eq!(engine.wait(), Some(0), "{}", lab.log());
    assert_eq!(internal(lab), 0);
    assert_eq!(std::fs::read_dir(lab.directory.join("state")).unwrap().count(), 0);
}

/// An upload goes through the engine, giant segments whole and nothing refused; then the engine ends.
fn frames_cross(lab: &Lab, bump: &mut Process) {
    let rate = lab.send("c", SERVER, 2000);
    println!("  {:.2} Gb/s", rate / 1e9);
    assert!(rate > 1e8, "{rate}");
    ends_well(lab, bump);
    let stats = lab.stats();
    println!("  {stats:?}");
    assert!(stats["from_lan"] > 1000 && stats["from_wan"] > 100 && stats["giant"] > 100, "{stats:?}");
    assert_eq!((stats["stops"], stats["refused0"], stats["refused1"]), (1, 0, 0), "{stats:?}");
}

/// Frames cross both ways through the engine, giant segments whole; offloads stay as they are.
fn all_of_a_pair() {
    let lab = Lab::new(Kind::Nothing);
    let before = lab.run("g", "ethtool", &["-k", "lan0"]);
    let mut bump = lab.running("all");
    assert_eq!(lab.run("g", "ethtool", &["-k", "lan0"]), before);
    let _server = lab.serve();
    assert_eq!(lab.ping(20, 10), 20);
    frames_cross(&lab, &mut bump);
}

fn all_of_one_interface_of_a_router() {
    let lab = Lab::new(Kind::Router);
    let mut bump = lab.running("all");
    assert_eq!(internal(&lab), 2);
    let _server = lab.serve();
    assert_eq!(lab.ping(20, 10), 20);
    frames_cross(&lab, &mut bump);
    // Without it everything passes.
    assert_eq!(lab.ping(20, 10), 20);
}

fn only_acks_come_to_user_space() {
    for kind in [Kind::Router, Kind::Bridge, Kind::Masquerade] {
        let lab = Lab::new(kind);
        let mut bump = lab.running("acks-out");
        let _server = lab.serve();
        let rate = lab.send("c", SERVER, 2000);
        eventually("the end is observed", || lab.stat("observed") >= 2);
        println!("  {kind:?} {:.2} Gb/s, {:?}", rate / 1e9, lab.stats());
        assert_eq!(lab.stat("from_lan"), 0);
        assert!(lab.stat("from_wan") > 100);
        // A packet of data for each ACK at the least: far less than all came by.
        let packets = rate / 8.0 * 2.0 / 1448.0;
        assert!((lab.stat("from_wan") as f64) < packets);
        ends_well(&lab, &mut bump);
    }
}

fn frames_leave_when_they_are_due() {
    let lab = Lab::new(Kind::Nothing);
    let mut bump = lab.running_with("all", &[("BUMP_DELAY_US", "5000")]);
    let _server = lab.serve();
    assert_eq!(lab.ping(500, 1), 500);
    ends_well(&lab, &mut bump);
    let stats = lab.stats();
    println!(
        "  late by {} µs at the median, {} at p99; margin {} µs",
        stats["late_p50_us"], stats["late_p99_us"], stats["margin_us"]
    );
    // An idle machine shows 1 and 20; a busy one, with others on its CPUs, far more.
    assert!(stats["late_p50_us"] < 1_000, "{stats:?}");
}

fn second_instance_is_refused() {
    let lab = Lab::new(Kind::Router);
    let mut bump = lab.running("all");
    let mut second = lab.start("all");
    assert_eq!(second.wait(), Some(2));
    assert!(lab.log().contains("wan0 is in use by another Weir"), "{}", lab.log());
    assert_eq!(internal(&lab), 2);
    assert!(lab.down().contains("wan0 is in use by another Weir"));
    ends_well(&lab, &mut bump);
}

fn wrong_hosts_are_refused_unchanged() {
    let mut lab = Lab::new(Kind::Nothing);
    lab.attach = "nowhere".into();
    assert_eq!(lab.start("all").wait(), Some(2));
    assert!(
        lab.log().contains("there is no interface nowhere here; interfaces: lan0, wan0"),
        "{}",
        lab.log()
    );
    lab.attach = "lan0,lan0".into();
    assert_eq!(lab.start("all").wait(), Some(2));
    assert!(lab.log().contains("LAN and WAN are both lan0"), "{}", lab.log());
    lab.attach = "lo".into();
    assert_eq!(lab.start("acks").wait(), Some(2));
    assert!(lab.log().contains("lo is the loopback interface"), "{}", lab.log());
    lab.attach = "lan0,wan0".into();
    assert_eq!(lab.start("acks").wait(), Some(2));
    assert!(lab.log().contains("ACKs are taken on one interface"), "{}", lab.log());
    assert!(!lab.directory.join("state").exists());
}

/// Down and up, another MTU, another name, gone and back: with one line each, and traffic flows afterwards.
fn interfaces_are_followed() {
    let lab = Lab::new(Kind::Bridge);
    let mut bump = lab.running("all");
    let _server = lab.serve();
    let says = |what: &str| eventually(what, || lab.log().contains(what));
    let works = || {
        eventually("traffic flows", || lab.ping(5, 2) == 5);
        let before = lab.stat("from_lan");
        eventually("the engine carries it", || {
            lab.ping(5, 2);
            lab.stat("from_lan") > before
        });
    };
    works();
    lab.ip("g", &["link", "set", "wan0", "down"]);
    says("interface wan0 is down");
    eventually("it is told", || lab.degraded() == "wan0 is down");
    assert_eq!(lab.ping(20, 2), 0);
    lab.ip("g", &["link", "set", "wan0", "up"]);
    says("interface wan0 is up");
    works();
    eventually("it is told", || lab.degraded() == "no");
    for host in [("g", "wan0"), ("s", "s0"), ("g", "lan0"), ("c", "c0")] {
        lab.ip(host.0, &["link", "set", host.1, "mtu", "3000"]);
    }
    says("the MTU of wan0 is 3000 now, was 1500");
    works();
    // Older kernels rename only what is down.
    lab.ip("g", &["link", "set", "wan0", "down"]);
    lab.ip("g", &["link", "set", "wan0", "name", "wan9"]);
    lab.ip("g", &["link", "set", "wan9", "up"]);
    says("interface wan0 is called wan9 now");
    works();
    lab.ip("s", &["link", "del", "s0"]);
    says("interface wan9 is gone: waiting for wan0");
    eventually("it is told", || lab.degraded() == "wan0 is gone");
    lab.cable(("s", "s0"), ("g", "wan0"));
    lab.ip("s", &["addr", "add", "10.9.2.1/16", "dev", "s0"]);
    lab.ip("g", &["link", "set", "wan0", "master", "br0"]);
    says("interface wan0 is back");
    lab.ip("c", &["neigh", "flush", "all"]);
    works();
    assert_eq!(internal(&lab), 2);
    ends_well(&lab, &mut bump);
}

/// An interface that is made again has its ACKs taken again.
fn acks_are_taken_on_an_interface_that_is_back() {
    let lab = Lab::new(Kind::Bridge);
    let mut bump = lab.running("acks");
    lab.ip("s", &["link", "del", "s0"]);
    eventually("it is told", || lab.degraded() == "wan0 is gone");
    lab.cable(("s", "s0"), ("g", "wan0"));
    lab.ip("s", &["addr", "add", "10.9.2.1/16", "dev", "s0"]);
    lab.ip("g", &["link", "set", "wan0", "master", "br0"]);
    eventually("it is told", || lab.degraded() == "no");
    let _server = lab.serve();
    let before = lab.stat("sent0");
    // An engine that began before the interface was up tries its way again within a second.
    eventually("ACKs go through the engine", || {
        lab.send("c", SERVER, 500) > 1e7 && lab.stat("sent0") > before + 20
    });
    ends_well(&lab, &mut bump);
}

fn interfaces_may_come_late() {
    let mut lab = Lab::new(Kind::Bridge);
    lab.attach = "late0".into();
    std::env::set_var("BUMP_WAIT_S", "30");
    let mut bump = lab.start("all");
    std::env::remove_var("BUMP_WAIT_S");
    eventually("it waits", || lab.log().contains("waiting for late0"));
    lab.ip("g", &["link", "add", "late0", "type", "bridge"]);
    eventually("the engine runs", || lab.directory.join("stats").exists());
    assert!(lab.log().contains("interface late0 is down"), "{}", lab.log());
    ends_well(&lab, &mut bump);
}

/// The engine keeps nothing, the supervisor what starting another engine needs.
fn privileges_are_given_up() {
    let lab = Lab::new(Kind::Router);
    let mut bump = lab.running("acks");
    let status = |pid: u32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let of = |name: &str| text.lines().find_map(|l| l.strip_prefix(name)).unwrap().trim().to_owned();
        let set = |name: &str| u64::from_str_radix(&of(name), 16).unwrap();
        (set("CapPrm:"), set("CapEff:"), set("CapBnd:"), set("CapInh:") | set("CapAmb:"), of("NoNewPrivs:"))
    };
    assert_eq!(status(lab.engine(0)), (0, 0, 0, 0, "1".into()));
    let (permitted, effective, bounding, rest, locked) = status(bump.0.id());
    // KILL, SETGID and SETUID for engines, which have a user of their own; SETPCAP, NET_ADMIN, NET_RAW,
    // IPC_LOCK, SYS_NICE, PERFMON, BPF.
    let kept = [5, 6, 7, 8, 12, 13, 14, 23, 38, 39].iter().fold(0, |set, bit| set | 1u64 << bit);
    assert_eq!((permitted, effective, bounding, rest, locked), (kept, kept, kept, 0, "1".into()));
    ends_well(&lab, &mut bump);
}

/// TCP and datagrams between the box itself, a third port of its bridge, and both sides; IPv6 too.
fn everybody_around_the_box_is_reached() {
    for steered in ["all", "acks"] {
        let lab = Lab::new(Kind::Bridge);
        lab.cable(("t", "t0"), ("g", "tee0"));
        lab.ip("t", &["addr", "add", "10.9.4.1/16", "dev", "t0"]);
        lab.ip("g", &["link", "set", "tee0", "master", "br0"]);
        let mut bump = lab.running(steered);
        let servers = [("s", SERVER), ("g", BOX), ("t", "10.9.4.1")];
        let _serving: Vec<Process> = servers.iter().map(|(host, _)| lab.serve_on(host)).collect();
        for from in ["c", "g", "t", "s"] {
            for (host, to) in servers {
                if host == from {
                    continue;
                }
                eventually("the server answers", || lab.pings(from, to, 1, 0).0 == 1);
                let (up, down) = (lab.send(from, to, 200), lab.receive(from, to, 200));
                assert!(up > 1e7 && down > 1e7, "{from} to {host}: {up} {down}");
                assert_eq!(lab.ask(from, to, 50), 50, "{from} to {host}");
            }
        }
        let (up, down) = (lab.send("c", SERVER6, 200), lab.receive("c", SERVER6, 200));
        assert!(up > 1e7 && down > 1e7, "{up} {down}");
        ends_well(&lab, &mut bump);
    }
}

/// A queue on the way out that is full most of the time, and goes down and up.
fn nothing_is_sent_twice_when_devices_are_full() {
    let lab = Lab::new(Kind::Router);
    lab.run(
        "g",
        "tc",
        &["qdisc", "add", "dev", "wan0", "root", "tbf", "rate", "1mbit", "burst", "2000", "limit", "3000"],
    );
    let mut bump = lab.running("all");
    let _server = lab.serve();
    let (back, _, twice) = std::thread::scope(|scope| {
        let pings = scope.spawn(|| lab.pings("c", SERVER, 3000, 0));
        std::thread::sleep(std::time::Duration::from_millis(300));
        lab.ip("g", &["link", "set", "wan0", "down"]);
        std::thread::sleep(std::time::Duration::from_millis(100));
        lab.ip("g", &["link", "set", "wan0", "up"]);
        // A route goes with its interface, but for the neighbours of it.
        pings.join().unwrap()
    });
    println!("  {back} of 3000 came back, {:?}", lab.stats());
    assert_eq!(twice, 0);
    assert!(lab.stat("full1") > 0);
    ends_well(&lab, &mut bump);
}

/// A VLAN above the interface: its tag is beside the frame, not in it.
fn tags_that_hardware_takes_out() {
    if !Lab::new(Kind::Nothing).can("g", "vlan0", &["link", "lan0"], &["type", "vlan", "id", "5"]) {
        return println!("  skipped: this kernel has no VLAN interfaces");
    }
    for (steered, attach) in [("all", "wan0"), ("acks", "wan0"), ("all", "wan0.5"), ("acks", "wan0.5")] {
        let mut lab = Lab::new(Kind::Router);
        for (host, link, address) in [("g", "wan0", "10.9.5.254"), ("s", "s0", "10.9.5.1")] {
            let name = format!("{link}.5");
            lab.ip(host, &["link", "add", "link", link, "name", &name, "type", "vlan", "id", "5"]);
            lab.ip(host, &["addr", "add", &format!("{address}/24"), "dev", &name]);
            lab.ip(host, &["link", "set", &name, "up"]);
        }
        lab.attach = attach.into();
        let mut bump = lab.running(steered);
        let _server = lab.serve_on("s");
        lab.ip("s", &["route", "replace", "default", "via", "10.9.5.254"]);
        eventually("the server answers", || lab.pings("c", "10.9.5.1", 1, 0).0 == 1);
        let (up, down) = (lab.send("c", "10.9.5.1", 500), lab.receive("c", "10.9.5.1", 500));
        println!("  {steered} on {attach}: {:.2} and {:.2} Gb/s", up / 1e9, down / 1e9);
        assert!(up > 1e8 && down > 1e8, "{up} {down}");
        assert_eq!(lab.ask("c", "10.9.5.1", 50), 50);
        ends_well(&lab, &mut bump);
        assert!(lab.stat("from_lan") > 100 && lab.stat("from_wan") > 100, "{:?}", lab.stats());
        assert_eq!((lab.stat("refused0"), lab.stat("refused1")), (0, 0), "{:?}", lab.stats());
    }
}

fn interfaces_without_ethernet_headers() {
    for steered in ["all", "acks"] {
        let mut lab = Lab::new(Kind::Router);
        let _wire = lab.tunnel("tun0", "tun1");
        for (host, link, address) in [("g", "tun0", "10.9.6.254"), ("s", "tun1", "10.9.6.1")] {
            lab.ip(host, &["addr", "add", &format!("{address}/24"), "dev", link]);
            lab.ip(host, &["link", "set", link, "up"]);
        }
        lab.attach = "tun0".into();
        let mut bump = lab.running(steered);
        let _server = lab.serve_on("s");
        lab.ip("s", &["route", "replace", "default", "via", "10.9.6.254"]);
        eventually("the server answers", || lab.pings("c", "10.9.6.1", 1, 0).0 == 1);
        let (up, down) = (lab.send("c", "10.9.6.1", 500), lab.receive("c", "10.9.6.1", 500));
        println!("  {steered}: {:.2} and {:.2} Gb/s", up / 1e9, down / 1e9);
        assert!(up > 1e7 && down > 1e7, "{up} {down}");
        assert_eq!(lab.ask("c", "10.9.6.1", 50), 50);
        ends_well(&lab, &mut bump);
        assert!(lab.stat("from_lan") > 100 && lab.stat("from_wan") > 100, "{:?}", lab.stats());
    }
}
