//! What a configuration will do, in words.

use crate::config::experiment::{Experiment, Run};
use crate::config::gateway::{Ports, XdpMode};
use crate::config::File;
use crate::expect::{describe, describe_measure};
use crate::plan::{self, Arrivals, FlowGroup, Length, Link, Loss, Path, Plan};
use crate::result::World;
use core::ops::RangeInclusive;
use weir_core::ack::{AckControl, Counts, Hold, Period, Release, SlowStart, Window};
use weir_core::gateway::{ClassConfig, Config, Direction, Match};

/// What kind of file it is.
pub fn kind(file: &File) -> &'static str {
    match file {
        File::Experiment(_) | File::Sweep(_) => "experiment",
        File::Gateway(_) => "gateway",
        File::Wan(_) => "wan",
    }
}

/// What it will do, line by line; lines that belong to the one above are indented.
pub fn lines(file: &File) -> Vec<String> {
    match file {
        File::Experiment(e) => [experiment(&e.plan), worlds(e)].concat(),
        File::Sweep(runs) => sweep(runs),
        File::Gateway(g) => [vec![ports(&g.ports)], gateway(&g.gateway)].concat(),
        File::Wan(w) => [vec![ports(&w.ports)], path(&w.path)].concat(),
    }
}

/// Which worlds cannot run it.
fn worlds(e: &Experiment) -> Vec<String> {
    let can = e.worlds();
    let why = |world: World, what: &str| {
        let line = format!("cannot run in the {} world: it uses what only {what} has", world.name());
        (!can.contains(&world)).then_some(line)
    };
    [why(World::Lab, "the simulator"), why(World::Sim, "Linux")].into_iter().flatten().collect()
}

/// What is varied, and the first run.
fn sweep(runs: &[Run]) -> Vec<String> {
    let mut out = vec![format!("sweep of {}, in the sim world", counted(runs.len() as u64, "run", "runs"))];
    let Some(first) = runs.first() else { return out };
    for (i, (key, _)) in first.settings.iter().enumerate() {
        let mut values: Vec<&str> = runs.iter().map(|r| r.settings[i].1.as_str()).collect();
        let mut seen = std::collections::BTreeSet::new();
        values.retain(|v| seen.insert(*v));
        out.push(format!("  {key} = {}", values.join(", ")));
    }
    let settings: Vec<String> = first.settings.iter().map(|(k, v)| format!("{k} = {v}")).collect();
    out.push(format!("the first run, {}:", settings.join(", ")));
    let lines = experiment(&first.experiment.plan).into_iter().chain(worlds(&first.experiment));
    out.extend(lines.map(|line| format!("  {line}")));
    out
}

fn ports(p: &Ports) -> String {
    let mode = match p.mode {
        XdpMode::Auto => "auto",
        XdpMode::Native => "native",
        XdpMode::Skb => "skb",
    };
    let zero_copy = match p.zero_copy {
        None => "",
        Some(true) => ", zero copy required",
        Some(false) => ", always copying",
    };
    let priority = p.priority.map_or(String::new(), |n| format!(", real-time priority {n}"));
    let cpu = p.cpu.map_or(String::new(), |n| format!(", on CPU {n}"));
    let spin = p.spin.map_or(String::new(), |d| format!(", spins {d}"));
    format!("ports: lan {}, wan {}; XDP {mode}{zero_copy}{priority}{cpu}{spin}", p.lan, p.wan)
}

fn experiment(p: &Plan) -> Vec<String> {
    let mut out = vec![if p.title.is_empty() { p.name.clone() } else { format!("{}: {}", p.name, p.title) }];
    out.push(format!(
        "runs {}, reported every {}, recorded in bins of {}, seed {}",
        p.duration, p.interval, p.bin, p.seed
    ));
    out.extend(path(&p.path));
    match &p.gateway {
        None => out.push("gateway: none, a plain bridge".to_string()),
        Some(g) => out.extend(gateway(g)),
    }
    out.push(format!("flows: {}", p.flows().count()));
    out.extend(p.groups.iter().map(|g| format!("  {}", group(g))));
    if !p.expects.is_empty() {
        out.push(format!("expectations: {}", p.expects.len()));
        out.extend(p.expects.iter().map(|e| format!("  {}", describe(e))));
    }
    if let Some(r) = &p.reference {
        out.push(format!("compared with: {}", r.source));
        out.extend(
            r.rows
                .iter()
                .map(|row| format!("  {}: {} ({})", row.name, row.paper, describe_measure(&row.measure))),
        );
    }
    out
}

fn path(p: &Path) -> Vec<String> {
    let links = [("lan", &p.lan), ("wan.out", &p.wan_out), ("wan.back", &p.wan_back)];
    let mut out = vec![format!("path: round trip {}", p.rtt())];
    out.extend(links.map(|(name, l)| format!("  {name:<9} {}", link(l))));
    out
}

fn link(l: &Link) -> String {
    let mut parts = Vec::new();
    if let Some(rate) = l.rate {
        parts.push(format!("{rate}, queue of {}", l.queue));
    }
    if l.delay != Default::default() {
        parts.push(format!("delay {}", l.delay));
    }
    match l.loss {
        Loss::None => (),
        Loss::Random(p) => parts.push(format!("loss {}%", p.trillionths() as f64 / 1e10)),
        Loss::Every(n) => parts.push(format!("1 frame in {n} lost")),
    }
    if parts.is_empty() {
        "bare".to_string()
    } else {
        parts.join(", ")
    }
}

fn gateway(g: &Config) -> Vec<String> {
    let mut out = vec![format!(
        "gateway: {}, at most {} flows, idle ones forgotten after {}, RTT assumed where unseen {}",
        counted(g.classes.len() as u64, "class", "classes"),
        g.max_flows,
        g.idle_timeout,
        g.assumed_rtt
    )];
    for c in &g.classes {
        out.push(format!("  {}: {}", c.name, takes(c)));
        out.push(format!("    {}", c.ack.as_ref().map_or("passed untouched".to_string(), ack)));
    }
    out.push("  everything else passes untouched".to_string());
    out
}

fn direction(d: Direction) -> &'static str {
    match d {
        Direction::Out => "uploads (LAN to WAN)",
        Direction::In => "downloads (WAN to LAN)",
    }
}

fn takes(c: &ClassConfig) -> String {
    let all = direction(c.direction);
    if c.matches.is_empty() {
        return format!("all {all}");
    }
    let rules: Vec<String> = c.matches.iter().map(rule).collect();
    format!("{all} with {}", rules.join("; or "))
}

fn rule(m: &Match) -> String {
    let ports = |name: &str, r: &RangeInclusive<u16>| match (r.start(), r.end()) {
        (a, b) if a == b => format!("{name} {a}"),
        (a, b) => format!("{name} {a}-{b}"),
    };
    let parts = [
        m.src.map(|p| format!("src {p}")),
        m.dst.map(|p| format!("dst {p}")),
        m.src_port.as_ref().map(|r| ports("src_port", r)),
        m.dst_port.as_ref().map(|r| ports("dst_port", r)),
        m.vlan.map(|v| format!("vlan {v}")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

fn ack(a: &AckControl) -> String {
    let Hold::Number = a.hold;
    let Release::Rate(r) = &a.release;
    let counts = match r.counts {
        Counts::Payload => "TCP payload",
        Counts::Ip => "IP bytes",
        Counts::Frame => "Ethernet frames with FCS",
        Counts::Wire => "Ethernet frames with preamble and gap",
    };
    let period = match r.period {
        Period::Fixed(d) => format!("every {d}"),
        Period::Auto { min, max } => format!("every {min} to {max}"),
    };
    let slow_start = match r.slow_start {
        SlowStart::Ignore => "slow start ignored".to_string(),
        SlowStart::Detect { enter_milli, exit_milli, gated } => format!(
            "slow start between {} and {}{}",
            f64::from(enter_milli) / 1e3,
            f64::from(exit_milli) / 1e3,
            if gated { "" } else { ", ungated" }
        ),
    };
    let window = match a.window {
        Window::Keep => "window kept".to_string(),
        Window::Size { standing_delay } => format!("window sized for {standing_delay} of standing delay"),
    };
    format!(
        "each flow {} of {counts}, ACKs released {period}, {slow_start}, catch-up {}, {window}",
        r.rate, r.catch_up
    )
}

fn group(g: &FlowGroup) -> String {
    let ids = match g.count {
        1 => format!("{}.0", g.id),
        n => format!("{0}.0 to {0}.{1}", g.id, n - 1),
    };
    let port = match g.ports {
        plan::Ports::Shared(p) => format!("port {p}"),
        plan::Ports::Each { first } => format!("ports {first}-{}", g.port_range().1),
    };
    let length = match &g.length {
        Length::UntilEnd => "until the end".to_string(),
        Length::Bytes(n) => format!("{n} bytes"),
        Length::Drawn(_) => "of drawn lengths".to_string(),
        Length::Duration(d) => format!("for {d}"),
    };
    let cc = g.tcp.cc.as_deref().map_or(String::new(), |c| format!(", {c}"));
    let stagger = match &g.arrivals {
        Arrivals::Every(gap) if *gap == Default::default() => String::new(),
        Arrivals::Every(gap) => format!(", each {gap} later"),
        Arrivals::Drawn(_) => ", the others at drawn times".to_string(),
    };
    let mss = g.tcp.mss.map_or(String::new(), |m| format!(", MSS {m}"));
    let rwnd = g.tcp.rwnd.map_or(String::new(), |w| format!(", receive window {w}"));
    format!("{ids}: {}, {port}{cc}, from {}{stagger} {length}{mss}{rwnd}", direction(g.direction), g.start)
}

fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}
