//! Three network namespaces in a row, and what runs in them. Everything is gone when it is dropped.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub const CLIENT: &str = "10.9.1.1";
pub const SERVER: &str = "10.9.2.1";
pub const SERVER6: &str = "fd09:2::1";
/// The box itself, on a bridge.
pub const BOX: &str = "10.9.3.254";
/// Client, box, server, and a third one.
const HOSTS: [&str; 4] = ["c", "g", "s", "t"];
/// For anything that only has to happen some time.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Reason why the tests cannot run here.
pub fn unable() -> Option<&'static str> {
    let name = format!("wio-try-{}", std::process::id());
    let made = Command::new("ip").args(["netns", "add", &name]).stderr(Stdio::null()).status();
    match made {
        Ok(status) if status.success() => {
            run("ip", &["netns", "del", &name]);
            None
        }
        Ok(_) => Some("network namespaces need root"),
        Err(_) => Some("there is no `ip` command (iproute2)"),
    }
}

pub fn run(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {text}{error}");
    text
}

/// Waits until `what` holds.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A process in a namespace, killed when dropped.
pub struct Process(pub Child);

impl Process {
    pub fn signal(&self, signal: i32) {
        kill(self.0.id(), signal);
    }
    /// Waits for its end. Returns its exit code.
    pub fn wait(&mut self) -> Option<i32> {
        let mut code = None;
        eventually("the process ends", || {
            code = self.0.try_wait().unwrap();
            code.is_some()
        });
        code.unwrap().code()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn kill(pid: u32, signal: i32) {
    run("kill", &[&format!("-{signal}"), &pid.to_string()]);
}

pub fn alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|s| !s.contains(") Z "))
}

/// client (c0) – (lan0) box (wan0) – (s0) server
pub struct Lab {
    id: String,
    pub directory: PathBuf,
    /// Interfaces that the box works on.
    pub attach: String,
}

/// Kind of the box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It forwards packets between two networks.
    Router,
    /// A router by which the server sees the router's address instead of the client's.
    Masquerade,
    /// It joins the two with a bridge.
    Bridge,
    /// It joins the two with nothing: only what is under test does.
    Nothing,
}

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Removes the namespaces and directories of labs whose process was killed, and ends what runs there.
fn clean_up_after_the_dead() {
    let entries =
        ["/run/netns", "/dev/shm"].map(|directory| std::fs::read_dir(directory).into_iter().flatten());
    for path in entries.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let owner = name.strip_prefix("wio-").and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if owner.is_none_or(|owner| PathBuf::from(format!("/proc/{owner}")).exists()) {
            continue;
        }
        if path.starts_with("/dev/shm") {
            let _ = std::fs::remove_dir_all(&path);
            continue;
        }
        for pid in run("ip", &["netns", "pids", name]).split_whitespace() {
            // It may have ended since.
            let _ = Command::new("kill").args(["-9", pid]).output();
        }
        run("ip", &["netns", "del", name]);
    }
}

impl Lab {
    pub fn new(kind: Kind) -> Lab {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        if number == 0 {
            clean_up_after_the_dead();
        }
        let id = format!("wio-{}-{number}", std::process::id());
        // In memory: an engine that waits for a disk is not on time.
        let memory = PathBuf::from("/dev/shm");
        let directory = if memory.is_dir() { memory } else { std::env::temp_dir() }.join(&id);
        std::fs::create_dir(&directory).unwrap();
        let attach = if kind == Kind::Nothing { "lan0,wan0" } else { "wan0" }.to_owned();
        let lab = Lab { id, directory, attach };
        for host in HOSTS {
            run("ip", &["netns", "add", &lab.namespace(host)]);
            lab.ip(host, &["link", "set", "lo", "up"]);
        }
        lab.cable(("c", "c0"), ("g", "lan0"));
        lab.cable(("s", "s0"), ("g", "wan0"));
        let routed = matches!(kind, Kind::Router | Kind::Masquerade);
        let length = if routed { "24" } else { "16" };
        for (host, link, address, six) in [("c", "c0", CLIENT, "fd09:1::1"), ("s", "s0", SERVER, "fd09:2::1")]
        {
            lab.ip(host, &["addr", "add", &format!("{address}/{length}"), "dev", link]);
            let six = format!("{six}/{}", if routed { "64" } else { "16" });
            lab.ip(host, &["-6", "addr", "add", &six, "dev", link, "nodad"]);
        }
        if routed {
            lab.route(kind == Kind::Masquerade);
        }
        if kind == Kind::Bridge {
            lab.bridge();
        }
        lab
    }

    fn route(&self, masquerade: bool) {
        for (link, net) in [("lan0", "1"), ("wan0", "2")] {
            self.ip("g", &["addr", "add", &format!("10.9.{net}.254/24"), "dev", link]);
            self.ip("g", &["-6", "addr", "add", &format!("fd09:{net}::fe/64"), "dev", link, "nodad"]);
        }
        for (host, net) in [("c", "1"), ("s", "2")] {
            if host == "c" || !masquerade {
                self.ip(host, &["route", "add", "default", "via", &format!("10.9.{net}.254")]);
                self.ip(host, &["-6", "route", "add", "default", "via", &format!("fd09:{net}::fe")]);
            }
        }
        self.run("g", "sysctl", &["-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"]);
        if masquerade {
            let rules = "table ip weir {\nchain post {\ntype nat hook postrouting priority 100\noifname wan0 masquerade\n}\n\
                         chain forward {\ntype filter hook forward priority 0\nct state invalid drop\n}\n}";
            self.run("g", "nft", &[rules]);
        }
    }

    fn bridge(&self) {
        self.ip("g", &["link", "add", "br0", "type", "bridge", "forward_delay", "0"]);
        for link in ["lan0", "wan0"] {
            self.ip("g", &["link", "set", link, "master", "br0"]);
        }
        self.ip("g", &["addr", "add", "10.9.3.254/16", "dev", "br0"]);
        self.ip("g", &["link", "set", "br0", "up"]);
    }

    pub fn cable(&self, a: (&str, &str), b: (&str, &str)) {
        let (an, bn) = (self.namespace(a.0), self.namespace(b.0));
        run("ip", &["link", "add", a.1, "netns", &an, "type", "veth", "peer", "name", b.1, "netns", &bn]);
        for (host, link) in [a, b] {
            self.ip(host, &["link", "set", link, "up"]);
        }
    }

    pub fn namespace(&self, host: &str) -> String {
        format!("{}-{host}", self.id)
    }

    pub fn run(&self, host: &str, program: &str, args: &[&str]) -> String {
        let namespace = self.namespace(host);
        run("ip", &[&["netns", "exec", &namespace, program], args].concat())
    }

    pub fn ip(&self, host: &str, args: &[&str]) -> String {
        run("ip", &[&["-n", &self.namespace(host)], args].concat())
    }

    /// Returns whether an interface can be made that is specified so.
    pub fn can(&self, host: &str, name: &str, before: &[&str], after: &[&str]) -> bool {
        let mut command = Command::new("ip");
        command
            .args(["-n", &self.namespace(host), "link", "add"])
            .args(before)
            .args(["name", name])
            .args(after);
        command.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }

    pub fn spawn(&self, host: &str, program: &str, args: &[&str]) -> Process {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(host), program]).args(args);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        Process(command.spawn().unwrap())
    }

    /// Starts the engine under test; `ip netns exec` becomes it, so its number is the supervisor's.
    pub fn start(&self, steered: &str) -> Process {
        let log = File::options().create(true).append(true).open(self.directory.join("log")).unwrap();
        let program = if steered == "gateway" { "gateway" } else { "bump" };
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &self.namespace("g")])
            .arg(std::env::current_exe().unwrap())
            .args([program, steered, &self.attach])
            .arg(&self.directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .process_group(0);
        Process(command.spawn().unwrap())
    }

    /// As [`Lab::running`], with variables set for it.
    pub fn running_with(&self, steered: &str, variables: &[(&str, &str)]) -> Process {
        // Read by the child before anything else happens here: there is one thread.
        variables.iter().for_each(|(name, value)| std::env::set_var(name, value));
        let started = self.running(steered);
        variables.iter().for_each(|(name, _)| std::env::remove_var(name));
        started
    }

    /// Starts the engine under test and waits until it runs.
    pub fn running(&self, steered: &str) -> Process {
        let mut started = self.start(steered);
        eventually("the engine runs", || {
            assert!(started.0.try_wait().unwrap().is_none(), "{}", self.log());
            self.directory.join("stats").exists()
        });
        started
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// Returns what is said to be wrong with the interfaces.
    pub fn degraded(&self) -> String {
        let text = std::fs::read_to_string(self.directory.join("stats")).unwrap_or_default();
        text.lines().find_map(|line| line.strip_prefix("degraded=")).unwrap_or_default().to_owned()
    }

    /// Returns what the engine said last.
    pub fn stats(&self) -> HashMap<String, u64> {
        let text = std::fs::read_to_string(self.directory.join("stats")).unwrap_or_default();
        let pair = |line: &str| {
            let (name, value) = line.split_once('=')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        text.lines().filter_map(pair).collect()
    }

    pub fn stat(&self, name: &str) -> u64 {
        self.stats().get(name).copied().unwrap_or(0)
    }

    /// Process number of the engine that runs now, not the one numbered `old`.
    pub fn engine(&self, old: u32) -> u32 {
        let mut pid = 0;
        eventually("another engine runs", || {
            pid = self.stat("pid") as u32;
            pid != 0 && pid != old && alive(pid)
        });
        pid
    }

    /// Removes what was left behind, and says what.
    pub fn down(&self) -> String {
        let own = std::env::current_exe().unwrap();
        let state = self.directory.join("state");
        self.run("g", own.to_str().unwrap(), &["down", state.to_str().unwrap()])
    }

    /// Runs this program on a host, as [`crate::hosts::main`] says, and returns what it prints.
    pub fn host(&self, host: &str, args: &[&str]) -> String {
        let own = std::env::current_exe().unwrap();
        self.run(host, own.to_str().unwrap(), &[&["host"], args].concat())
    }

    /// Starts the server, which echoes datagrams and takes what connections send.
    pub fn serve(&self) -> Process {
        let server = self.serve_on("s");
        eventually("the server answers", || self.ping(1, 0) == 1);
        server
    }

    /// Starts a server on another host.
    pub fn serve_on(&self, host: &str) -> Process {
        let own = std::env::current_exe().unwrap();
        self.spawn(host, own.to_str().unwrap(), &["host", "serve"])
    }

    /// A wire between an interface without Ethernet headers of the box and one of the server.
    pub fn tunnel(&self, near: &str, far: &str) -> Process {
        let own = std::env::current_exe().unwrap();
        let args = ["host", "tunnel", near, &self.namespace("s"), far];
        let wire = self.spawn("g", own.to_str().unwrap(), &args);
        let there = |host, name: &str| self.ip(host, &["-o", "link"]).contains(&format!("{name}:"));
        eventually("the interfaces are there", || there("g", near) && there("s", far));
        wire
    }

    /// Sends `count` datagrams `interval` milliseconds apart. Returns how many came back.
    pub fn ping(&self, count: u32, interval: u32) -> u32 {
        self.pings("c", SERVER, count, interval).0
    }

    /// Also the longest run of datagrams that did not come back, and how many came twice.
    pub fn pings(&self, from: &str, to: &str, count: u32, interval: u32) -> (u32, u32, u32) {
        let text = self.host(from, &["ping", to, &count.to_string(), &interval.to_string()]);
        let numbers: Vec<u32> = text.split_whitespace().map(|n| n.parse().unwrap()).collect();
        (numbers[0], numbers[1], numbers[2])
    }

    /// Sends for this many milliseconds; bits per second.
    pub fn send(&self, from: &str, to: &str, time: u32) -> f64 {
        self.rate(from, &["send", to, &time.to_string()])
    }

    /// Receives for this many milliseconds; bits per second.
    pub fn receive(&self, from: &str, to: &str, time: u32) -> f64 {
        self.rate(from, &["receive", to, &time.to_string()])
    }

    /// Requests that were answered.
    pub fn ask(&self, from: &str, to: &str, count: u32) -> u32 {
        self.host(from, &["ask", to, &count.to_string()]).trim().parse().unwrap()
    }

    /// As [`Lab::receive`]: the longest time without anything in milliseconds, and the rate in each whole
    /// second.
    pub fn gap(&self, from: &str, to: &str, time: u32) -> (u32, Vec<f64>) {
        let text = self.host(from, &["receive", to, &time.to_string()]);
        let numbers: Vec<f64> = text.split_whitespace().map(|n| n.parse().unwrap()).collect();
        let seconds = numbers[2..].iter().take(time as usize / 1000).map(|bytes| bytes * 8.0);
        (numbers[1] as u32, seconds.collect())
    }

    fn rate(&self, host: &str, args: &[&str]) -> f64 {
        let text = self.host(host, args);
        text.split_whitespace().next().unwrap().parse::<f64>().unwrap() * 8.0
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}\n{:?}", self.log(), self.stats());
        }
        for host in HOSTS {
            let namespace = self.namespace(host);
            // Engines whose supervisor was killed end by themselves, but a failed test may leave one.
            if let Ok(output) = Command::new("ip").args(["netns", "pids", &namespace]).output() {
                for pid in String::from_utf8_lossy(&output.stdout).split_whitespace() {
                    let _ = Command::new("kill").args(["-9", pid]).status();
                }
            }
            let _ = Command::new("ip").args(["netns", "del", &namespace]).status();
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
