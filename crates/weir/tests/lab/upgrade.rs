//! Another version takes over from a running gateway while two connections share a class.

use super::nets::Nets;
use super::{holds, installed, judged, root, turn};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};
use weir_io::supervise::LAYOUT;

/// Rate of the class in bits a second, and the most bytes of it in any second: 1.15 times its rate and 64 kB.
const RATE: f64 = 20e6;
const MOST: f64 = 1.15 * RATE / 8.0 + 64_000.0;
const FILE: &str = r#"
[ports]
dev = "wan"
[[gateway.class]]
name = "up"
direction = "out"
rate = "20Mbit"
"#;

impl Nets {
    fn with_gateway() -> Nets {
        let nets = Nets::new("upg");
        std::fs::write(nets.file(), FILE).unwrap();
        nets
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("gateway.toml")
    }

    /// A program that tests may execute, with these contents.
    fn program(&self, name: &str, contents: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, contents).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    }

    /// Starts the gateway and waits until it shapes.
    fn gateway(&self) -> Gateway {
        let mut command = self.inside("r", env!("CARGO_BIN_EXE_weir"));
        command.arg("run").arg(self.file()).stdout(Stdio::piped());
        let mut gateway = command.spawn().unwrap();
        let said = BufReader::new(gateway.stdout.as_mut().unwrap()).lines().next();
        assert_eq!(said.unwrap().unwrap(), "ready");
        Gateway(gateway)
    }

    fn upgrade(&self, program: &Path) -> Output {
        let mut command = self.inside("r", env!("CARGO_BIN_EXE_weir"));
        command.arg("upgrade").arg("--program").arg(program).output().unwrap()
    }

    /// Bytes that the class has counted.
    fn counted(&self) -> u64 {
        let shown = self.inside("r", env!("CARGO_BIN_EXE_weir")).args(["ctl", "--json", "show"]).output();
        let shown: serde_json::Value = serde_json::from_slice(&shown.unwrap().stdout).unwrap();
        shown["report"]["classes"][0]["bytes"].as_u64().unwrap()
    }

    /// Bytes that have come to the server.
    fn arrived(&self) -> f64 {
        let file = "/sys/class/net/near/statistics/rx_bytes";
        let out = self.inside("s", "cat").arg(file).output().unwrap();
        String::from_utf8(out.stdout).unwrap().trim().parse().unwrap()
    }

    /// Watches what comes to the server until `until`: the most bytes in any second.
    fn most_in_a_second(&self, until: Instant) -> f64 {
        let mut seen: Vec<(Instant, f64)> = Vec::new();
        let mut most: f64 = 0.0;
        while Instant::now() < until {
            let (now, bytes) = (Instant::now(), self.arrived());
            let within = seen.iter().filter(|(at, _)| now - *at <= Duration::from_secs(1));
            most = within.map(|(_, before)| bytes - before).fold(most, f64::max);
            seen.push((now, bytes));
            std::thread::sleep(Duration::from_millis(20));
        }
        most
    }
}

/// A gateway, which does not outlive its test.
struct Gateway(Child);

impl Gateway {
    fn executes(&self) -> PathBuf {
        std::fs::read_link(format!("/proc/{}/exe", self.0.id())).unwrap()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// A version with other maps: the same program with another number of their layout.
fn with_other_maps(weir: &[u8]) -> Vec<u8> {
    let (number, mut other) = (&LAYOUT.as_bytes()[..8], weir.to_vec());
    let places: Vec<usize> = (0..weir.len() - 8).filter(|&at| &weir[at..at + 8] == number).collect();
    assert!(!places.is_empty(), "the program has the number {LAYOUT}");
    places.into_iter().for_each(|at| other[at..at + 8].copy_from_slice(b"00000000"));
    other
}

#[test]
fn another_version_takes_over_under_traffic() {
    let _turn = turn();
    if root() && installed("iperf3") {
        judged("an upgrade under traffic", upgrades);
    }
}

fn upgrades() -> Result<(), String> {
    let nets = Nets::with_gateway();
    let weir = std::fs::read(env!("CARGO_BIN_EXE_weir")).unwrap();
    let same = nets.program("same", &weir);
    let other = nets.program("other", &with_other_maps(&weir));
    let broken = [
        nets.program("cut", &weir[..weir.len() / 3]),
        nets.program("mute", b"#!/bin/sh\nexit 0\n"),
        nets.program("angry", b"#!/bin/sh\necho not today >&2\nexit 1\n"),
        PathBuf::from("/nowhere/weir"),
        nets.file(),
    ];
    let mut gateway = nets.gateway();
    let mut server = nets.inside("s", "iperf3").args(["-s", "-1"]).stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let client = ["-c", "10.33.2.2", "-t", "15", "-P", "2", "-J", "--connect-timeout", "3000"];
    let client = nets.inside("c", "iperf3").args(client).stdout(Stdio::piped()).spawn().unwrap();
    // The first second, with slow start, is not about upgrades.
    std::thread::sleep(Duration::from_millis(1_500));
    let began = gateway.executes();
    let (most, counts) = std::thread::scope(|scope| {
        let watch = scope.spawn(|| nets.most_in_a_second(Instant::now() + Duration::from_secs(12)));
        for program in broken.iter().filter(|program| **program != nets.file()) {
            let refused = nets.upgrade(program);
            assert_eq!(
                refused.status.code(),
                Some(if program.exists() { 3 } else { 2 }),
                "{}",
                said(&refused)
            );
            assert!(
                !program.exists() || said(&refused).contains("nothing has changed"),
                "{}",
                said(&refused)
            );
        }
        assert!(said(&nets.upgrade(&broken[2])).contains("not today"));
        // A wrong file would stop the next start: it is told now.
        std::fs::write(nets.file(), format!("colour = \"red\"\n{FILE}")).unwrap();
        assert!(said(&nets.upgrade(&same)).contains("colour"));
        std::fs::write(nets.file(), FILE).unwrap();
        assert_eq!(gateway.executes(), began);
        let before = nets.counted();
        let done = said(&nets.upgrade(&same));
        assert!(done.contains("flows and counters go on"), "{done}");
        assert_eq!(gateway.executes(), same);
        let kept = nets.counted();
        std::thread::sleep(Duration::from_millis(1_000));
        let done = said(&nets.upgrade(&other));
        assert!(done.contains("begin anew"), "{done}");
        assert_eq!(gateway.executes(), other);
        let anew = nets.counted();
        (watch.join().unwrap(), [before, kept, anew])
    });
    let sent = client.wait_with_output().unwrap();
    assert!(sent.status.success(), "a connection failed: {}", said(&sent));
    server.wait().unwrap();
    // Counters of the same layout go on, and those of another begin at 0.
    assert!(counts[0] > 1_000_000 && counts[1] > counts[0] && counts[2] < counts[1], "{counts:?}");
    let report: serde_json::Value = serde_json::from_slice(&sent.stdout).unwrap();
    let rate = report["end"]["sum_received"]["bits_per_second"].as_f64().unwrap();
    println!("most in a second {most:.0} of {MOST:.0} bytes, {:.2} Mbit/s in all", rate / 1e6);
    let killed = killed_during_an_upgrade(&nets, &mut gateway, &same);
    holds(most <= MOST && (0.85..1.1).contains(&(rate / RATE)), (most, rate)).and(killed)
}

/// A supervisor that is killed after it has executed another version leaves the host as any other does.
fn killed_during_an_upgrade(nets: &Nets, gateway: &mut Gateway, program: &Path) -> Result<(), String> {
    let engines = super::life::children_of(gateway.0.id());
    assert_eq!(engines.len(), 1, "{engines:?}");
    let mut client = nets.inside("r", env!("CARGO_BIN_EXE_weir"));
    let client = client.arg("upgrade").arg("--program").arg(program).stderr(Stdio::piped()).spawn().unwrap();
    super::life::wait_until("it is executed", || gateway.executes() == program);
    gateway.0.kill().unwrap();
    gateway.0.wait().unwrap();
    let refused = client.wait_with_output().unwrap();
    assert_eq!(refused.status.code(), Some(3), "{}", said(&refused));
    super::life::wait_until("the engine ends", || !Path::new(&format!("/proc/{}", engines[0])).exists());
    // Another one finds its place free.
    let mut next = nets.gateway();
    let pid = rustix::process::Pid::from_child(&next.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    holds(next.0.wait().unwrap().success(), "the next gateway does not end well")
}
