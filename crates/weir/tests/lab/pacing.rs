//! Fillers on real interfaces: they are sent, and what is behind the next switch or the next interface sees
//! none of them.

use super::nets::remove_left;
use super::{root, turn};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use weir::result::running::GatewayReport;

/// Datagrams that are sent at once.
const DATAGRAMS: u64 = 100;
/// Enough of what is waited for.
const ENOUGH: u64 = 300;
const PAYLOAD: usize = 1400;
/// Frames of the kernel's own that may come too: ARP, IGMP.
const NOISE: u64 = 20;

/// Namespaces of one test, which are gone afterwards.
struct Nets(String);

impl Nets {
    fn new() -> Nets {
        remove_left("gap");
        let nets = Nets(format!("gap-{}", std::process::id()));
        for name in ["a", "b", "c"] {
            nets.host(&format!("netns add {}", nets.name(name)));
            nets.run(
                name,
                "sysctl -qw net.ipv6.conf.default.disable_ipv6=1 net.ipv6.conf.all.disable_ipv6=1",
            );
        }
        let [a, b, c] = ["a", "b", "c"].map(|name| nets.name(name));
        nets.host(&format!("link add a0 netns {a} type veth peer name b0 netns {b}"));
        nets.host(&format!("link add b1 netns {b} type veth peer name c0 netns {c}"));
        for (name, dev, address) in [("a", "a0", "10.77.0.1/24"), ("c", "c0", "10.77.0.3/24")] {
            nets.run(name, &format!("ip address add {address} dev {dev}"));
        }
        for (name, dev) in [("a", "a0"), ("b", "b0"), ("b", "b1"), ("c", "c0")] {
            nets.run(name, &format!("ip link set {dev} up"));
        }
        nets
    }

    /// With a socket on the host at the other end of the cable.
    fn with_neighbour() -> (Nets, UdpSocket) {
        let nets = Nets::new();
        nets.run("b", "ip address add 10.77.0.2/24 dev b0");
        let to = nets.socket("b", "10.77.0.2:7000");
        (nets, to)
    }

    fn name(&self, name: &str) -> String {
        format!("{}-{name}", self.0)
    }

    fn host(&self, line: &str) {
        let done = Command::new("ip").args(line.split_whitespace()).status().expect("ip");
        assert!(done.success(), "ip {line}");
    }

    fn command(&self, name: &str, line: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(name)]).args(line.split_whitespace());
        command
    }

    fn run(&self, name: &str, line: &str) {
        assert!(self.command(name, line).status().expect("ip").success(), "{line}");
    }

    fn read(&self, name: &str, file: &str) -> String {
        let out = self.command(name, &format!("cat {file}")).output().expect("cat");
        String::from_utf8(out.stdout).expect("text")
    }

    fn counter(&self, name: &str, dev: &str, counter: &str) -> u64 {
        let text = self.read(name, &format!("/sys/class/net/{dev}/statistics/{counter}"));
        text.trim().parse().unwrap_or_else(|_| panic!("{dev} {counter}: {text}"))
    }

    /// IP packets that the namespace's hosts have received (RFC 4293 ipSystemStatsInReceives).
    fn ip_received(&self, name: &str) -> u64 {
        let text = self.read(name, "/proc/net/snmp");
        let row = text.lines().filter(|line| line.starts_with("Ip:")).nth(1).expect("a row of numbers");
        row.split_whitespace().nth(3).and_then(|n| n.parse().ok()).expect("InReceives")
    }

    /// A socket in a namespace.
    fn socket(&self, name: &str, address: &str) -> UdpSocket {
        let (net, address) = (format!("/run/netns/{}", self.name(name)), address.to_string());
        let open = move || {
            let fd = fs::File::open(net).expect("a namespace");
            let kind = rustix::thread::LinkNameSpaceType::Network;
            rustix::thread::move_into_link_name_space(std::os::fd::AsFd::as_fd(&fd), Some(kind))
                .expect("setns");
            UdpSocket::bind(address).expect("bind")
        };
        std::thread::spawn(open).join().expect("a socket")
    }
}

impl Drop for Nets {
    fn drop(&mut self) {
        for name in ["a", "b", "c"] {
            let _ = Command::new("ip").args(["netns", "delete", &self.name(name)]).status();
        }
    }
}

/// `weir pace` at work.
struct Pacing {
    child: Child,
    report: tempfile::TempPath,
}

impl Pacing {
    fn start(nets: &Nets, options: &str) -> Pacing {
        let report = tempfile::NamedTempFile::new().expect("a file").into_temp_path();
        let line = format!("{} pace a0 {options} --json {}", env!("CARGO_BIN_EXE_weir"), report.display());
        let mut child = nets.command("a", &line).stdout(Stdio::piped()).spawn().expect("weir");
        let mut first = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut first).expect("a line");
        assert!(!first.is_empty(), "weir pace did not start");
        Pacing { child, report }
    }

    /// Returns its last report, if there is one.
    fn report(&self) -> Option<GatewayReport> {
        serde_json::from_str(&fs::read_to_string(&self.report).ok()?).ok()
    }

    fn end(mut self) -> GatewayReport {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("kill");
        assert!(self.child.wait().expect("its end").success());
        self.report().expect("a report")
    }
}

fn fillers(report: &GatewayReport) -> u64 {
    report.gateway.pace.map_or(0, |pace| pace.fillers)
}

/// Waits until something is so, on a machine whose processors may be busy with others.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !is_so() {
        assert!(Instant::now() < end, "it has not come to this: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Sends datagrams from `a` to this address until the report says that enough of them were paced, and takes
/// what comes. An engine that the machine keeps from running is replaced, and what waited in it is lost. Says
/// how many were sent.
fn send(nets: &Nets, pacing: &Pacing, to: &UdpSocket, enough: impl Fn(&GatewayReport) -> bool) -> u64 {
    let from = nets.socket("a", "10.77.0.1:0");
    from.connect(to.local_addr().expect("an address")).expect("connect");
    to.set_nonblocking(true).expect("a socket");
    let (mut sent, mut came, mut buffer) = (0, 0, [0; 2048]);
    until("enough datagrams are paced", || {
        // No more than the class's queue holds.
        if sent < came + 5 * DATAGRAMS || pacing.report().is_some_and(|report| !enough(&report)) {
            (0..DATAGRAMS).for_each(|_| drop(from.send(&[0; PAYLOAD])));
            sent += DATAGRAMS;
        }
        came += core::iter::from_fn(|| to.recv(&mut buffer).ok()).count() as u64;
        came > 0 && pacing.report().is_some_and(|report| enough(&report))
    });
    sent
}

#[test]
fn fillers_are_sent_and_no_bridge_forwards_them() {
    let _turn = turn();
    if !root() {
        return;
    }
    let nets = Nets::new();
    nets.run("b", "ip link add br0 type bridge");
    for dev in ["b0", "b1"] {
        nets.run("b", &format!("ip link set {dev} master br0"));
    }
    nets.run("b", "ip link set br0 up");
    for filler in ["pause", "01:80:c2:00:00:0f"] {
        let to = nets.socket("c", "10.77.0.3:7000");
        let counters = || [nets.counter("b", "b0", "rx_packets"), nets.counter("c", "c0", "rx_packets")];
        let before = counters();
        // Four fifths of the line are gaps: four fillers for each datagram.
        let pacing =
            Pacing::start(&nets, &format!("--rate 4Mbit --line 20Mbit --counts wire --filler {filler}"));
        let sent = send(&nets, &pacing, &to, |report| fillers(report) >= ENOUGH);
        let report = pacing.end();
        let class = report.classes[0].class.pace.clone().expect("a paced class");
        assert_eq!((class.by.as_str(), class.target_bps), ("gap", 4_000_000));
        let made = fillers(&report);
        until("the bridge has got the fillers", || counters()[0] - before[0] > made);
        let host = counters()[1] - before[1];
        assert!(
            made >= ENOUGH && host <= sent + NOISE,
            "{filler}: {made} fillers, {sent} datagrams, {host} frames behind the bridge"
        );
    }
}

#[test]
fn fillers_reach_no_socket() {
    let _turn = turn();
    if !root() {
        return;
    }
    let (nets, to) = Nets::with_neighbour();
    let counters = || {
        let [frames, dropped] = ["rx_packets", "rx_dropped"].map(|counter| nets.counter("b", "b0", counter));
        [frames, dropped, nets.ip_received("b")]
    };
    let before = counters();
    let pacing = Pacing::start(&nets, "--rate 4Mbit --line 20Mbit --counts wire");
    let sent = send(&nets, &pacing, &to, |report| fillers(report) >= ENOUGH);
    let made = fillers(&pacing.end());
    // The kernel has no receiver for them: neither IP nor a socket saw any.
    until("the host has got the fillers and dropped them", || {
        let after = counters();
        after[0] - before[0] > made && after[1] - before[1] >= made
    });
    let ip = counters()[2] - before[2];
    assert!(made >= ENOUGH && ip <= sent + NOISE, "{made} fillers, {sent} datagrams, {ip} IP packets");
}

#[test]
fn without_a_line_there_are_deadlines_and_the_report_says_so() {
    let _turn = turn();
    if !root() {
        return;
    }
    let (nets, to) = Nets::with_neighbour();
    let pacing = Pacing::start(&nets, "--rate 20Mbit");
    let paced = |report: &GatewayReport| report.classes[0].class.queue.as_ref().map_or(0, |q| q.packets);
    send(&nets, &pacing, &to, |report| paced(report) >= ENOUGH);
    let report = pacing.end();
    assert_eq!(report.classes[0].class.pace.as_ref().map(|pace| pace.by.as_str()), Some("clock"));
    assert_eq!(fillers(&report), 0);
}
