//! A network for one attack: the LAN's host, a router with a rate limiter, and the host beyond the WAN.
//!
//! Each party has a prefix on the LAN. The host has the second address of each prefix, and forges from the
//! others.

use super::case::{Case, Limit, Party};
use rustix::process::{kill_process, Pid, Signal};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use weir::execute::lab::{switch_off, LabRecord, Namespace, OFFLOADS};
use weir_core::gateway::Direction;
use weir_core::rate::Rate;

/// Name of the router's interface to the LAN, and name of each host's interface.
const LAN: &str = "lan";
const HOST: &str = "eth0";
/// Hardware addresses: the LAN's host, the router there, the router towards the WAN, the host beyond it.
const MACS: [[u8; 6]; 4] =
    [[0x02, 0, 0, 0, 7, 1], [0x02, 0, 0, 0, 7, 2], [0x02, 0, 0, 0, 7, 3], [0x02, 0, 0, 0, 7, 4]];
/// Host beyond the WAN.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 72, 0, 2);
/// An address beyond the WAN that no host has. Frames to it leave the router and are then dropped.
pub const NOBODY: Ipv4Addr = Ipv4Addr::new(10, 72, 9, 9);
/// Smallest TTL that the host beyond the WAN accepts. It drops other packets, as if they had ended on the
/// way.
const FEWEST_HOPS: u8 = 5;
/// Longest time for interfaces to come up and for gateways to start or end.
const PATIENCE: Duration = Duration::from_secs(30);

/// Rate limiter of the router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limiter {
    /// Token buckets of the kernel, one for each limit.
    Plain,
    /// This build of Weir.
    Weir(PathBuf),
}

/// A network that is set up. It is removed on drop.
pub struct Site {
    /// Namespace of the LAN's host.
    pub clients: Namespace,
    router: Namespace,
    /// Namespace of the host beyond the WAN.
    pub servers: Namespace,
    wan: String,
    record: LabRecord,
    /// Processes of the gateway and of the emulator.
    children: Vec<Child>,
}

impl Site {
    /// Builds the network `name` for a case.
    pub fn build(name: &str, case: &Case, limiter: &Limiter) -> Result<Site, String> {
        let id = format!("hostile-{}-{name}", std::process::id());
        let mut record = LabRecord::open(&id)?;
        let mut make = |suffix: &str| {
            let name = format!("weir-{id}-{suffix}");
            record.namespace(&name)?;
            Namespace::create(&name)
        };
        let (clients, router, servers) = (make("cl")?, make("gw")?, make("sv")?);
        // Gateways in several namespaces of one host are identified by the names of their interfaces.
        let wan = format!("wan-{name}");
        let mut site = Site { clients, router, servers, wan, record, children: Vec::new() };
        site.lay()?;
        if let Some(delay) = case.delay {
            site.delay(delay)?;
        }
        match limiter {
            Limiter::Plain => site.limit(case)?,
            Limiter::Weir(program) => site.start(program, case)?,
        }
        Ok(site)
    }

    /// Returns the name of each host's interface.
    pub const fn port() -> &'static str {
        HOST
    }
    /// Returns source and destination of frames from the LAN's host.
    pub const fn macs_of_clients() -> ([u8; 6], [u8; 6]) {
        (MACS[0], MACS[1])
    }
    /// Returns source and destination of frames from the host beyond the WAN.
    pub const fn macs_of_servers() -> ([u8; 6], [u8; 6]) {
        (MACS[3], MACS[2])
    }

    fn lay(&mut self) -> Result<(), String> {
        let mac = |n: usize| MACS[n].map(|b| format!("{b:02x}")).join(":");
        let (clients, router, servers) = (&self.clients, &self.router, &self.servers);
        for key in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            router.sysctl(key, "1")?;
        }
        for namespace in [clients, router, servers] {
            for key in
                ["ipv6/conf/default/accept_dad", "ipv4/conf/default/rp_filter", "ipv4/conf/all/rp_filter"]
            {
                namespace.sysctl(key, "0")?;
            }
        }
        clients.ip(&[format!(
            "link add {HOST} address {} type veth peer name {LAN} address {} netns {}",
            mac(0),
            mac(1),
            router.name()
        )])?;
        let wan = &self.wan;
        router.ip(&[format!(
            "link add {wan} address {} type veth peer name {HOST} address {} netns {}",
            mac(2),
            mac(3),
            servers.name()
        )])?;
        for (namespace, port) in [(clients, HOST), (router, LAN), (router, wan), (servers, HOST)] {
            switch_off(namespace, port, &OFFLOADS)?;
        }
        let own = Party::ALL.map(|p| format!("addr add {}/16 dev {HOST}", p.host()));
        let own6 = Party::ALL.map(|p| format!("addr add fd71:0:0:{}::2/48 dev {HOST} nodad", p as u8));
        let mut lines = vec![format!("link set {HOST} up"), "link set lo up".into()];
        lines.extend(own.into_iter().chain(own6));
        lines.push("route add default via 10.71.255.1".into());
        lines.push("route add ::/0 via fd71::ff:1".into());
        clients.ip(&lines)?;
        router.ip(&[
            "link set lo up".into(),
            format!("link set {LAN} up"),
            format!("link set {wan} up"),
            format!("addr add 10.71.255.1/16 dev {LAN}"),
            format!("addr add fd71::ff:1/48 dev {LAN} nodad"),
            format!("addr add 10.72.255.1/16 dev {wan}"),
            format!("addr add fd72::ff:1/48 dev {wan} nodad"),
            format!("neigh add {NOBODY} lladdr {} dev {wan}", mac(3)),
        ])?;
        servers.ip(&[
            "link set lo up".into(),
            format!("link set {HOST} up"),
            format!("addr add {SERVER}/16 dev {HOST}"),
            format!("addr add fd72::2/48 dev {HOST} nodad"),
            "route add default via 10.72.255.1".into(),
            "route add ::/0 via fd72::ff:1".into(),
        ])?;
        servers.nft(&format!(
            "table ip far {{ chain in {{ type filter hook prerouting priority -300; ip ttl < {FEWEST_HOPS} drop; }}; }}\n"
        ))?;
        self.until("an interface does not come up", |s| {
            Ok(s.clients.is_up()? && s.router.is_up()? && s.servers.is_up()?)
        })
    }

    fn until(
        &mut self,
        else_say: &str,
        mut holds: impl FnMut(&mut Site) -> Result<bool, String>,
    ) -> Result<(), String> {
        let start = Instant::now();
        while !holds(self)? {
            if start.elapsed() > PATIENCE {
                return Err(format!("{}: {else_say}", self.router.name()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Returns the router's interface by which data of a direction leaves.
    fn towards(&self, direction: Direction) -> &str {
        match direction {
            Direction::Out => &self.wan,
            Direction::In => LAN,
        }
    }

    /// Gives each limit a token bucket.
    fn limit(&self, case: &Case) -> Result<(), String> {
        for direction in [Direction::Out, Direction::In] {
            let limits: Vec<&Limit> = case.limits.iter().filter(|l| l.direction == direction).collect();
            if limits.is_empty() {
                continue;
            }
            let dev = self.towards(direction);
            let mut lines = vec![format!("qdisc add dev {dev} root handle 1: htb default fff")];
            lines.push(bucket(dev, 0xfff, Rate::mbit(10_000)));
            for (limit, number) in limits.into_iter().zip(1..) {
                lines.push(bucket(dev, number, limit.rate));
                lines.push(format!("qdisc add dev {dev} parent 1:{number:x} bfifo limit 64k"));
                lines.extend(limit.parties.iter().flat_map(|party| filters(dev, direction, *party, number)));
            }
            self.router.tc(&lines)?;
        }
        Ok(())
    }

    /// Starts a gateway and waits until it is in control.
    fn start(&mut self, program: &Path, case: &Case) -> Result<(), String> {
        let directory = self.record.directory()?;
        let (file, report) = (directory.join("gateway.toml"), directory.join("report.json"));
        let text = (case.gateway)(&self.wan);
        std::fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
        let log = std::fs::File::create(directory.join("log"))
            .map_err(|e| format!("{}: {e}", directory.display()))?;
        let mut command = Command::new(program);
        command
            .arg("run")
            .arg(&file)
            .arg("--json")
            .arg(&report)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        self.router.start_inside(&mut command).map_err(|e| format!("the gateway: {e}"))?;
        let child = command.spawn().map_err(|e| format!("{}: {e}", program.display()))?;
        self.record.child(child.id())?;
        self.children.push(child);
        let said = || std::fs::read_to_string(directory.join("log")).unwrap_or_default();
        let started = self.until("the gateway does not start", |site| {
            match site.children.last_mut().map(Child::try_wait) {
                Some(Ok(None)) => Ok(report.exists()),
                _ => Err("the gateway ended".into()),
            }
        });
        started.map_err(|e| format!("{e}\n{}", said()))
    }

    /// Delays frames beyond the WAN, each way.
    fn delay(&mut self, delay: Duration) -> Result<(), String> {
        let fault = |e: std::io::Error| format!("the emulator: {e}");
        let mut command = Command::new(std::env::current_exe().map_err(fault)?);
        let delay = format!("{}us", delay.as_micros());
        command
            .args(["wan", "--dev", HOST, "--delay", &delay])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.servers.start_inside(&mut command).map_err(fault)?;
        let child = command.spawn().map_err(fault)?;
        self.record.child(child.id())?;
        self.children.push(child);
        Ok(())
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        for child in &mut self.children {
            if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                // The process may have ended already.
                let _ = kill_process(pid, Signal::TERM);
            }
            let start = Instant::now();
            while matches!(child.try_wait(), Ok(None)) {
                if start.elapsed() > PATIENCE {
                    let _ = child.kill();
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}

/// Returns the `tc` line of a class that is a token bucket.
fn bucket(dev: &str, number: u32, rate: Rate) -> String {
    let bps = rate.bps();
    format!("class add dev {dev} parent 1: classid 1:{number:x} htb rate {bps}bit ceil {bps}bit burst 4k cburst 4k quantum 2000")
}

/// Returns the `tc` lines that assign the packets of a party to a class.
fn filters(dev: &str, direction: Direction, party: Party, number: u32) -> [String; 2] {
    let end = match direction {
        Direction::Out => "src",
        Direction::In => "dst",
    };
    let line = |protocol: &str, priority: u32, what: String| {
        format!("filter add dev {dev} parent 1: protocol {protocol} prio {priority} u32 match {what} flowid 1:{number:x}")
    };
    [
        line("ip", 1, format!("ip {end} {}", party.prefix())),
        line("ipv6", 2, format!("ip6 {end} {}", party.prefix6())),
    ]
}
