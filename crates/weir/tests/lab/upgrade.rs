//! Another version takes over from a running gateway while connections share a class each way.

use super::nets::Nets;
use super::{holds, installed, judged, root, turn};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::Duration;
use weir_io::supervise::LAYOUT;

/// Rate of a class in bytes a second.
const RATE: f64 = 20e6 / 8.0;
/// Bytes of a frame for each byte that a class counts, at most: 1,448 of payload in 1,514.
const FRAME: f64 = 1_514.0 / 1_448.0;

/// Most bytes of a class in any second (1.15 times its rate and 64 kB), and in any tenth of it: a bound has
/// room for 64 kB and 50 ms of its rate.
const WINDOWS: [(f64, f64); 2] = [(1.0, 1.15 * RATE + 64e3), (0.1, FRAME * (0.15 * RATE + 64e3))];

/// Uploads and downloads by their ACKs, or uploads through a `queue`.
fn classes(queue: bool) -> String {
    let up = if queue { "discipline = \"pfq\"" } else { "" };
    format!(
        r#"
[ports]
dev = "wan"
[[gateway.class]]
name = "up"
rate = "20Mbit"
{up}
[[gateway.class]]
name = "down"
direction = "in"
rate = "20Mbit"
"#
    )
}

impl Nets {
    fn with_gateway(file: &str) -> Nets {
        let nets = Nets::new("upg");
        std::fs::write(nets.file(), file).unwrap();
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
        let mut said = String::new();
        // An engine that has just begun may not answer yet.
        for _ in 0..50 {
            let mut ask = self.inside("r", env!("CARGO_BIN_EXE_weir"));
            said = String::from_utf8(ask.args(["ctl", "--json", "show"]).output().unwrap().stdout).unwrap();
            let shown: serde_json::Value = serde_json::from_str(&said).unwrap_or_default();
            if let Some(bytes) = shown["report"]["classes"][0]["bytes"].as_u64() {
                return bytes;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("no class is shown: {said}");
    }

    /// Notes what comes to a host in a file: microseconds before, bytes, microseconds after. It ends with the
    /// host's interface.
    fn watch(&self, place: &str) -> (Child, PathBuf) {
        let script = "while from=$EPOCHREALTIME; read -r bytes </sys/class/net/near/statistics/rx_bytes
                      do echo ${from/./} $bytes ${EPOCHREALTIME/./}; read -rt 0.005 -u 3; done 3<> <(:)";
        let file = self.folder.path().join(place);
        let out = std::fs::File::create(&file).unwrap();
        (self.inside(place, "bash").args(["-c", script]).stdout(out).spawn().unwrap(), file)
    }
}

/// One look at the bytes of an interface: seconds before and after, and the bytes.
#[derive(Clone, Copy)]
struct Look {
    from: f64,
    bytes: f64,
    to: f64,
}

/// Ends a watcher and returns its looks.
fn looks((mut watcher, file): (Child, PathBuf)) -> Vec<Look> {
    watcher.kill().unwrap();
    watcher.wait().unwrap();
    let said = std::fs::read_to_string(file).unwrap();
    let look = |line: &str| {
        let numbers: Vec<f64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
        Look { from: numbers[0] / 1e6, bytes: numbers[1], to: numbers[2] / 1e6 }
    };
    // The last line may lack its end.
    said.rsplit_once('\n').map_or(Vec::new(), |(lines, _)| lines.lines().map(look).collect())
}

/// Most bytes in any window of at most this many seconds.
fn most_in(seconds: f64, looks: &[Look]) -> f64 {
    let mut begin = 0;
    let most = looks.iter().map(|end| {
        while end.to - looks[begin].from > seconds {
            begin += 1;
        }
        end.bytes - looks[begin].bytes
    });
    most.fold(0.0, f64::max)
}

/// Holds what came to a host to the bounds of its class.
fn is_bounded(way: &str, looks: &[Look]) -> Result<(), String> {
    for (seconds, bound) in WINDOWS {
        let most = most_in(seconds, looks);
        println!("{way}: most in {seconds} s: {most:.0} of {bound:.0} bytes");
        holds(most <= bound, format!("{way}: {most:.0} bytes in {seconds} s of {bound:.0}"))?;
    }
    Ok(())
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
        judged("an upgrade under traffic", || upgrades(&classes(false)));
        judged("an upgrade with queues under traffic", || upgrades(&classes(true)));
    }
}

/// Starts two connections each way for this many seconds.
fn connections(nets: &Nets, seconds: u64) -> (Child, Child) {
    let server = nets.inside("s", "iperf3").args(["-s", "-1"]).stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let seconds = seconds.to_string();
    let client = ["-c", "10.33.2.2", "-t", &seconds, "-P", "2", "--bidir", "-J", "--connect-timeout", "3000"];
    (server, nets.inside("c", "iperf3").args(client).stdout(Stdio::piped()).spawn().unwrap())
}

/// Programs that cannot take over change nothing. Two that can take over.
fn upgrades(file: &str) -> Result<(), String> {
    let nets = Nets::with_gateway(file);
    let weir = std::fs::read(env!("CARGO_BIN_EXE_weir")).unwrap();
    let same = nets.program("same", &weir);
    let other = nets.program("other", &with_other_maps(&weir));
    let broken = [
        nets.program("cut", &weir[..weir.len() / 3]),
        nets.program("mute", b"#!/bin/sh\nexit 0\n"),
        nets.program("angry", b"#!/bin/sh\necho not today >&2\nexit 1\n"),
        PathBuf::from("/nowhere/weir"),
    ];
    let mut gateway = nets.gateway();
    let (mut server, client) = connections(&nets, 25);
    // The first second, with slow start, is not about upgrades.
    std::thread::sleep(Duration::from_millis(1_500));
    let watchers = ["s", "c"].map(|place| nets.watch(place));
    let began = gateway.executes();
    for program in &broken {
        let refused = nets.upgrade(program);
        let code = if program.exists() { 3 } else { 2 };
        assert_eq!(refused.status.code(), Some(code), "{}", said(&refused));
        let said = said(&refused);
        assert!(!program.exists() || said.contains("nothing has changed"), "{said}");
    }
    assert!(said(&nets.upgrade(&broken[2])).contains("not today"));
    // A wrong file would stop the next start: it is told now.
    std::fs::write(nets.file(), format!("colour = \"red\"\n{file}")).unwrap();
    assert!(said(&nets.upgrade(&same)).contains("colour"));
    std::fs::write(nets.file(), file).unwrap();
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
    let sent = client.wait_with_output().unwrap();
    assert!(sent.status.success(), "a connection failed: {}", said(&sent));
    server.wait().unwrap();
    // Counters of the same layout go on, and those of another begin at 0.
    assert!(before > 1_000_000 && kept > before && anew < kept, "{before}, {kept}, {anew}");
    let [up, down] = watchers.map(looks);
    let bounded = [is_bounded("uploads", &up), is_bounded("downloads", &down)];
    let report: serde_json::Value = serde_json::from_slice(&sent.stdout).unwrap();
    let rates = ["sum_received", "sum_received_bidir_reverse"]
        .map(|sum| report["end"][sum]["bits_per_second"].as_f64().unwrap() / 8.0 / RATE);
    println!("{:.2} and {:.2} of the rates in all", rates[0], rates[1]);
    let killed = killed_during_an_upgrade(&nets, &mut gateway, &same);
    let carried = holds(rates.iter().all(|rate| (0.85..1.1).contains(rate)), rates);
    bounded.into_iter().chain([carried, killed]).collect()
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
