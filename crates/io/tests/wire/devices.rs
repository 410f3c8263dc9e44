//! Interfaces of other kinds, and what may be changed about one while Weir runs on it.

use crate::lab::{eventually, Kind, Lab, Process, SERVER, SERVER6};
use crate::tests::ends_well;
use std::process::Command;
use std::time::Duration;

pub const ALL: &[(&str, fn())] = &[
    ("queues_of_an_interface_change", queues_of_an_interface_change),
    (
        "internal_interfaces_that_are_removed_are_made_again",
        internal_interfaces_that_are_removed_are_made_again,
    ),
    ("ipip_without_ethernet_headers", || without_ethernet_headers(&IPIP)),
    ("sit_without_ethernet_headers", || without_ethernet_headers(&SIT)),
    ("wireguard_without_ethernet_headers", || without_ethernet_headers(&WIREGUARD)),
    ("ppp_without_ethernet_headers", || without_ethernet_headers(&PPP)),
    ("tunnels_without_an_end_are_refused", tunnels_without_an_end_are_refused),
    ("segments_longer_than_64_kib", segments_longer_than_64_kib),
    ("checksums_that_a_device_has_summed_up", checksums_that_a_device_has_summed_up),
];

/// The number of queues changes while data is transferred.
fn queues_of_an_interface_change() {
    for steered in ["all", "acks"] {
        let lab = Lab::new(Kind::Router);
        let mut weir = lab.running(steered);
        let _server = lab.serve();
        let rates = std::thread::scope(|scope| {
            let up = scope.spawn(|| lab.send("c", SERVER, 2000));
            let down = scope.spawn(|| lab.receive("c", SERVER, 2000));
            for queues in ["1", "2"].into_iter().cycle().take(12) {
                lab.run("g", "ethtool", &["-L", "wan0", "rx", queues, "tx", queues]);
                std::thread::sleep(Duration::from_millis(150));
            }
            [up.join().unwrap(), down.join().unwrap()]
        });
        println!("  {steered}: {:.2?} Gb/s", rates.map(|rate| rate / 1e9));
        assert!(rates.iter().all(|rate| *rate > 5e7), "{rates:?}");
        let before = lab.stat("hook_taken");
        assert_eq!(lab.ask("c", SERVER, 50), 50);
        eventually("frames are still taken", || lab.stat("hook_taken") > before);
        assert_eq!(lab.degraded(), "no");
        ends_well(&lab, &mut weir);
        assert_eq!((lab.stat("refused0"), lab.stat("refused1")), (0, 0), "{:?}", lab.stats());
    }
}

/// Frames are redirected to an interface that somebody removes.
fn internal_interfaces_that_are_removed_are_made_again() {
    let lab = Lab::new(Kind::Router);
    let mut weir = lab.running("all");
    let _server = lab.serve();
    let first = lab.engine(0);
    let links = lab.ip("g", &["-o", "link"]);
    let name = links.split_whitespace().find(|word| word.starts_with("weir-")).unwrap();
    lab.ip("g", &["link", "del", name.split('@').next().unwrap()]);
    lab.engine(first);
    eventually("traffic flows", || lab.ping(20, 2) == 20);
    let before = lab.stat("from_lan");
    eventually("the engine carries it", || {
        lab.ping(5, 2);
        lab.stat("from_lan") > before
    });
    ends_well(&lab, &mut weir);
}

/// A kind of tunnel between box and server.
struct Tunnel {
    kind: &'static str,
    /// Names on the box and on the server.
    links: [&'static str; 2],
    six: bool,
    /// Least rate that goes through it unshaped, in bits per second.
    least: f64,
    /// The rate of a flow, in kbit/s: less than that.
    shape_kbit: u32,
    /// Makes both ends, without addresses; an error says what is missing.
    make: fn(&Lab) -> Result<Option<Process>, String>,
}

const LINKS: [&str; 2] = ["tn0", "tn1"];
const IPIP: Tunnel = Tunnel {
    kind: "IPIP",
    links: LINKS,
    six: false,
    least: 1e7,
    shape_kbit: 20_000,
    make: |lab| {
        make_links(lab, "ipip", " local 10.9.2.254 remote 10.9.2.1", " local 10.9.2.1 remote 10.9.2.254")
    },
};
const SIT: Tunnel = Tunnel {
    kind: "SIT",
    six: true,
    make: |lab| {
        make_links(lab, "sit", " local 10.9.2.254 remote 10.9.2.1", " local 10.9.2.1 remote 10.9.2.254")
    },
    ..IPIP
};
const WIREGUARD: Tunnel = Tunnel { kind: "WireGuard", make: make_wireguard, ..IPIP };
/// Every byte goes through two terminals.
const PPP: Tunnel =
    Tunnel { kind: "PPP", links: ["ppp0"; 2], least: 3e5, shape_kbit: 200, make: make_ppp, ..IPIP };

fn make_links(lab: &Lab, kind: &str, near: &str, far: &str) -> Result<Option<Process>, String> {
    let make = |host, link, ends: &str| {
        let words = format!("type {kind}{ends}");
        lab.can(host, link, &[], &words.split(' ').collect::<Vec<_>>())
    };
    if !make("g", LINKS[0], near) {
        return Err(format!("this kernel has no {kind}"));
    }
    assert!(make("s", LINKS[1], far));
    Ok(None)
}

fn make_wireguard(lab: &Lab) -> Result<Option<Process>, String> {
    make_links(lab, "wireguard", "", "")?;
    if Command::new("wg").arg("--version").output().is_err() {
        return Err("there is no `wg` command (wireguard-tools)".to_owned());
    }
    exchange_keys(lab);
    Ok(None)
}

/// Two `pppd`, each the other's terminal.
fn make_ppp(lab: &Lab) -> Result<Option<Process>, String> {
    if !std::path::Path::new("/dev/ppp").exists() {
        return Err("this kernel has no PPP, or it is not loaded".to_owned());
    }
    if Command::new("pppd").arg("--version").output().is_err() {
        return Err("there is no `pppd` command (ppp)".to_owned());
    }
    const PLAIN: [&str; 8] =
        ["nodetach", "noauth", "local", "noccp", "novj", "nodefaultroute", "noproxyarp", "noipv6"];
    let there = lab.namespace("s");
    let far = format!("ip netns exec {there} pppd notty {} 10.9.6.1:10.9.6.254", PLAIN.join(" "));
    let near = [&["pty", far.as_str()], PLAIN.as_slice(), &["10.9.6.254:10.9.6.1"]].concat();
    let daemon = lab.spawn("g", "pppd", &near);
    let is_up = |host| lab.ip(host, &["-o", "addr"]).contains("ppp0    inet");
    eventually("PPP is up", || is_up("g") && is_up("s"));
    Ok(Some(daemon))
}

impl Tunnel {
    /// Addresses and routes.
    fn address(&self, lab: &Lab) {
        let [near, far] = self.links;
        for (host, link, last) in [("g", near, "254"), ("s", far, "1")] {
            if near != far {
                lab.ip(host, &["addr", "add", &format!("10.9.6.{last}/32"), "dev", link]);
                lab.ip(host, &["-6", "addr", "add", &format!("fd09:6::{last}/128"), "dev", link]);
            }
            lab.ip(host, &["link", "set", link, "up"]);
        }
        let (there, client) =
            if self.six { ("fd09:6::1/128", "fd09:1::/64") } else { ("10.9.6.1/32", "10.9.1.0/24") };
        lab.ip("g", &["route", "replace", there, "dev", near]);
        lab.ip("s", &["route", "replace", client, "dev", far]);
    }

    fn far_address(&self) -> &'static str {
        if self.six {
            "fd09:6::1"
        } else {
            "10.9.6.1"
        }
    }
}

fn exchange_keys(lab: &Lab) {
    let key = |host: &str| {
        let secret = lab.directory.join(host);
        std::fs::write(&secret, lab.run(host, "wg", &["genkey"])).unwrap();
        let public = format!("wg pubkey < {}", secret.display());
        (secret, lab.run(host, "sh", &["-c", &public]).trim().to_owned())
    };
    let (near, far) = (key("g"), key("s"));
    let ends = [("g", "tn0", &near, &far, "10.9.2.1"), ("s", "tn1", &far, &near, "10.9.2.254")];
    for (host, link, own, other, address) in ends {
        let (secret, endpoint) = (own.0.to_str().unwrap(), format!("{address}:51820"));
        let peer = ["peer", &other.1, "allowed-ips", "0.0.0.0/0", "endpoint", &endpoint];
        let own = ["set", link, "listen-port", "51820", "private-key", secret];
        lab.run(host, "wg", &[own.as_slice(), &peer].concat());
    }
}

fn without_ethernet_headers(tunnel: &Tunnel) {
    for steered in ["all", "acks", "gateway"] {
        let mut lab = Lab::new(Kind::Router);
        let _daemon = match (tunnel.make)(&lab) {
            Ok(daemon) => daemon,
            Err(missing) => return println!("  skipped: {missing}"),
        };
        tunnel.address(&lab);
        lab.attach = tunnel.links[0].into();
        let mut weir = lab.running_with(steered, &[("SHAPE_KBIT", &tunnel.shape_kbit.to_string())]);
        let _server = lab.serve_on("s");
        let to = tunnel.far_address();
        eventually("the server answers", || lab.pings("c", to, 1, 0).0 == 1);
        let (up, down) = (lab.send("c", to, 1000), lab.receive("c", to, 1000));
        println!("  {steered} on {}: {:.3} and {:.3} Mb/s", tunnel.kind, up / 1e6, down / 1e6);
        if steered == "gateway" {
            let rate = f64::from(tunnel.shape_kbit) * 1e3;
            assert!([up, down].iter().all(|got| (0.5 * rate..2.0 * rate).contains(got)), "{up} {down}");
        } else {
            assert!(up > tunnel.least && down > tunnel.least, "{up} {down}");
        }
        assert_eq!(lab.ask("c", to, 50), 50);
        ends_well(&lab, &mut weir);
        assert!(lab.stat("hook_taken") > 20, "{:?}", lab.stats());
        assert_eq!((lab.stat("refused0"), lab.stat("refused1")), (0, 0), "{:?}", lab.stats());
    }
}

/// A packet's way is noted beside it, not in it: one that leaves by a packet socket would not find the way,
/// and ACKs made for downloads would be lost.
fn tunnels_without_an_end_are_refused() {
    let mut lab = Lab::new(Kind::Router);
    for (name, kind) in [("md0", "type vxlan external dstport 4790"), ("md1", "type ipip external")] {
        if !lab.can("g", name, &[], &kind.split(' ').collect::<Vec<_>>()) {
            println!("  skipped: this kernel has no {kind}");
            continue;
        }
        lab.attach = name.into();
        assert_eq!(lab.start("acks").wait(), Some(2));
        let found = format!("{name} is a tunnel whose packets each come with where they go");
        assert!(lab.log().contains(&found), "{}", lab.log());
    }
}

/// BIG TCP: what may come by an interface of the box is refused before anything is lost, what others send is
/// told of.
fn segments_longer_than_64_kib() {
    let lab = Lab::new(Kind::Nothing);
    let long = ["gso_max_size", "180000", "gro_max_size", "180000"];
    lab.ip("g", &[&["link", "set", "lan0"], long.as_slice()].concat());
    assert_eq!(lab.start("all").wait(), Some(2));
    assert!(lab.log().contains("segments of lan0 may be 180000 bytes long (BIG TCP)"), "{}", lab.log());
    lab.ip("g", &["link", "set", "lan0", "gso_max_size", "65536", "gro_max_size", "65536"]);
    let mut weir = lab.running("all");
    let _server = lab.serve();
    assert!(lab.send("c", SERVER6, 300) > 1e7);
    lab.ip("c", &[&["link", "set", "c0"], long.as_slice()].concat());
    // However little comes through.
    let _sender =
        lab.spawn("c", std::env::current_exe().unwrap().to_str().unwrap(), &["host", "send", SERVER6, "300"]);
    eventually("it is told", || lab.log().contains("segments of more than 64 KiB come in and are lost"));
    assert_eq!(lab.log().matches("64 KiB").count(), 1);
    ends_well(&lab, &mut weir);
}

/// The sum over all bytes that a device notes beside a frame (CHECKSUM_COMPLETE) stays right where ACK fields
/// are set back: the host would say otherwise, and compute it itself. No virtual device of its own sums up
/// so; the UDP socket of a VXLAN does, where the frames around it came with a checksum of their own
/// (`skb_checksum_try_convert()`).
fn checksums_that_a_device_has_summed_up() {
    let mut lab = Lab::new(Kind::Router);
    lab.run("s", "ethtool", &["-K", "s0", "tx", "off"]);
    lab.run("g", "ethtool", &["-K", "wan0", "gro", "off"]);
    for (host, link, local, remote, address) in [
        ("g", "vx0", "10.9.2.254", "10.9.2.1", "10.9.7.254"),
        ("s", "vx1", "10.9.2.1", "10.9.2.254", "10.9.7.1"),
    ] {
        let kind =
            ["type", "vxlan", "id", "7", "dstport", "4789", "local", local, "remote", remote, "udpcsum"];
        assert!(lab.can(host, link, &[], &kind), "this kernel has no VXLAN");
        lab.ip(host, &["addr", "add", &format!("{address}/24"), "dev", link]);
        lab.ip(host, &["link", "set", link, "up"]);
    }
    lab.attach = "vx0".into();
    let complaints = || crate::lab::run("dmesg", &[]).matches("hw csum failure").count();
    let before = complaints();
    let mut weir = lab.running("gateway");
    let _server = lab.serve_on("s");
    eventually("the server answers", || lab.pings("g", "10.9.7.1", 1, 0).0 == 1);
    // Both directions of one connection at once, so that ACK fields of segments with payload are set back.
    assert_eq!(lab.host("g", &["both", "10.9.7.1", "2000"]).trim(), "right");
    ends_well(&lab, &mut weir);
    println!("  {:?}", lab.stats());
    assert!(lab.stat("hook_set_back") > 100, "{:?}", lab.stats());
    assert_eq!(complaints(), before);
    let counters = lab.run("g", "nstat", &["-asz", "TcpInCsumErrors"]);
    assert!(counters.contains("TcpInCsumErrors                 0"), "{counters}");
}
