//! Fillers on real interfaces: they are sent, and what is behind the next switch or the next interface sees none of them.

use super::{root, turn};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use weir::result::running::GatewayReport;

const DATAGRAMS: u64 = 300;
const PAYLOAD: usize = 1400;
/// Frames of the kernel's own that may come too: ARP, IGMP.
const NOISE: u64 = 20;

/// Namespaces of one test, which are gone afterwards.
struct Nets(String);

impl Nets {
    fn new() -> Nets {
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

    fn name(&self, name: &str) -> String {
        format!("{}{name}", self.0)
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

    fn end(mut self) -> GatewayReport {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("kill");
        assert!(self.child.wait().expect("its end").success());
        serde_json::from_str(&fs::read_to_string(&self.report).expect("a report")).expect("a report")
    }
}

/// Sends datagrams from `a` to this address, and says how many came.
fn send(nets: &Nets, to: &UdpSocket, address: &str) -> u64 {
    let from = nets.socket("a", "10.77.0.1:0");
    from.connect(address).expect("connect");
    to.set_read_timeout(Some(Duration::from_secs(3))).expect("a timeout");
    for _ in 0..DATAGRAMS {
        from.send(&[0; PAYLOAD]).expect("send");
    }
    let mut buffer = [0; 2048];
    (0..DATAGRAMS).take_while(|_| to.recv(&mut buffer).is_ok()).count() as u64
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
        // Four fifths of the line are gaps.
        let pacing =
            Pacing::start(&nets, &format!("--rate 20Mbit --line 100Mbit --counts wire --filler {filler}"));
        assert_eq!(send(&nets, &to, "10.77.0.3:7000"), DATAGRAMS, "{filler}");
        let report = pacing.end();
        let after = counters();
        let [switch, host] = [after[0] - before[0], after[1] - before[1]];
        let class = report.classes[0].class.pace.clone().expect("a paced class");
        let fillers = report.gateway.pace.expect("a paced port").fillers;
        assert_eq!((class.by.as_str(), class.target_bps), ("gap", 20_000_000));
        // A hole of 5768 byte times has four fillers.
        assert!(fillers >= 4 * (DATAGRAMS - 1), "{fillers} fillers");
        assert!(
            switch >= DATAGRAMS + fillers,
            "{filler}: {switch} frames came to the bridge, {fillers} of them fillers"
        );
        assert!(host <= DATAGRAMS + NOISE, "{filler}: {host} frames came behind the bridge");
    }
}

#[test]
fn fillers_reach_no_socket() {
    let _turn = turn();
    if !root() {
        return;
    }
    let nets = Nets::new();
    nets.run("b", "ip address add 10.77.0.2/24 dev b0");
    let to = nets.socket("b", "10.77.0.2:7000");
    let counters = || {
        [nets.counter("b", "b0", "rx_packets"), nets.counter("b", "b0", "rx_dropped"), nets.ip_received("b")]
    };
    let before = counters();
    let pacing = Pacing::start(&nets, "--rate 20Mbit --line 100Mbit --counts wire");
    assert_eq!(send(&nets, &to, "10.77.0.2:7000"), DATAGRAMS);
    let report = pacing.end();
    let after = counters();
    let fillers = report.gateway.pace.expect("a paced port").fillers;
    let [frames, dropped, ip] = [0, 1, 2].map(|i| after[i] - before[i]);
    assert!(
        fillers >= 4 * (DATAGRAMS - 1) && frames >= DATAGRAMS + fillers,
        "{fillers} fillers, {frames} frames"
    );
    // The kernel has nobody for them: neither IP nor a socket saw any.
    assert!(dropped >= fillers, "{dropped} of {fillers} fillers dropped");
    assert!(ip <= DATAGRAMS + NOISE, "{ip} IP packets");
}

#[test]
fn without_a_line_there_are_deadlines_and_the_report_says_so() {
    let _turn = turn();
    if !root() {
        return;
    }
    let nets = Nets::new();
    nets.run("b", "ip address add 10.77.0.2/24 dev b0");
    let to = nets.socket("b", "10.77.0.2:7000");
    let pacing = Pacing::start(&nets, "--rate 20Mbit");
    assert_eq!(send(&nets, &to, "10.77.0.2:7000"), DATAGRAMS);
    let report = pacing.end();
    assert_eq!(report.classes[0].class.pace.as_ref().map(|pace| pace.by.as_str()), Some("clock"));
    assert_eq!(report.gateway.pace.map(|pace| pace.fillers), Some(0));
}
