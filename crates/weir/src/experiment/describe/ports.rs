//! Interfaces and steering in words.

use super::{counted, few};
use crate::experiment::config::engines;
use crate::experiment::config::gateway::GatewayFile;
use crate::experiment::config::ports::{self, Attach};
use crate::experiment::config::wan::WanFile;
use weir_core::ack::Window;
use weir_core::gateway::{ClassConfig, Direction};

/// Describes where a gateway attaches, and which traffic it takes there per direction, and why.
pub(super) fn gateway(file: &GatewayFile) -> Vec<String> {
    let dev = &file.dev;
    let head = format!("interface: {dev}, towards the WAN{}", ports::words(&file.driving));
    let queues = queues(file);
    let controls = file.gateway.classes.iter().any(|c| c.ack.is_some());
    let direction = |name: &str, d: Direction, ack_hook: &str| {
        let classes =
            file.gateway.classes.iter().filter(|c| c.direction == d && c.ack.is_some() && c.takes_flows());
        let spills = if file.gateway.spills(d) {
            "; what exceeds a fair share, too, of traffic that ACKs cannot slow, since it waits for its turn"
        } else {
            ""
        };
        format!("  {name}: {}{spills}", taken(&classes.collect::<Vec<_>>(), dev, ack_hook))
    };
    let directions = || {
        vec![direction("uploads", Direction::Out, "come in"), direction("downloads", Direction::In, "leave")]
    };
    let acks = match [Direction::Out, Direction::In].into_iter().any(|d| file.gateway.spills(d)) {
        true => "steering: acks, and what exceeds a fair share; all other data stays in the kernel",
        false => "steering: acks, since every policy works on ACKs alone; data stays in the kernel",
    };
    let said = match (queues, controls) {
        (None, _) => [vec![acks.to_string()], directions()].concat(),
        (Some(queues), false) => queues,
        (Some(queues), true) => {
            [queues, vec!["and acks, of what the classes control:".to_string()], directions()].concat()
        }
    };
    [vec![head], said, engines(file)].concat()
}

/// Describes the share of each of several engines.
fn engines(file: &GatewayFile) -> Vec<String> {
    if file.driving.engines() == 1 {
        return Vec::new();
    }
    let split = file.split();
    let head = format!("{} engines, each a thread with classes of its own", split.parts.len());
    let line = |(number, part): (usize, &engines::Part)| {
        let classes = counted(part.places.len() as u64, "class", "classes");
        let prefixes = split.homes.iter().filter(|(_, engine)| *engine == number).count() as u64;
        match number {
            0 => format!("  engine 0: {classes}, and all addresses that no other engine has"),
            _ => format!("  engine {number}: {classes}, of {}", counted(prefixes, "prefix", "prefixes")),
        }
    };
    [vec![head], split.parts.iter().enumerate().map(line).collect()].concat()
}

/// Describes which traffic is taken for queues, and why.
fn queues(file: &GatewayFile) -> Option<Vec<String>> {
    let queued = |d: Direction| {
        let of = move |c: &&ClassConfig| c.direction == d && c.share.is_some_and(|s| s.queue.is_some());
        file.gateway.classes.iter().filter(of).map(|c| c.name.as_str()).collect::<Vec<_>>()
    };
    let (out, inward) = (queued(Direction::Out), queued(Direction::In));
    let line = |name: &str, how: &str, classes: Vec<&str>| match classes.is_empty() {
        true => format!("  {name}: pass in the kernel, since no class has a queue for them"),
        false => format!(
            "  {name}: all frames that {how} by {} are taken, since they wait in {}",
            file.dev,
            few(classes.into_iter())
        ),
    };
    let any = !(out.is_empty() && inward.is_empty());
    let head = "steering: all, since data waits in queues".to_string();
    any.then(|| vec![head, line("uploads", "leave", out), line("downloads", "come in", inward)])
}

/// Describes which flows of one direction are taken, for the classes that control them.
fn taken(classes: &[&ClassConfig], dev: &str, how: &str) -> String {
    let names = |classes: &[&ClassConfig]| few(classes.iter().map(|c| c.name.as_str()));
    let releases = |classes: &[&ClassConfig], one, many| if classes.len() == 1 { one } else { many };
    if classes.is_empty() {
        return "nothing is taken, since no class controls their ACKs".to_string();
    }
    let sized = |c: &&&ClassConfig| c.ack.is_some_and(|a| matches!(a.window, Window::Size { .. }));
    let sizing: Vec<&ClassConfig> = classes.iter().filter(sized).copied().collect();
    let acks = format!(
        "their ACKs are taken as they {how} by {dev}, since {} {} them at a rate",
        names(classes),
        releases(classes, "releases", "release")
    );
    match sizing.is_empty() {
        true => acks,
        false => {
            let size = releases(&sizing, "sizes", "size");
            format!("{acks}; SYN-ACKs too, since {} {size} windows", names(&sizing))
        }
    }
}

/// Describes where an emulator attaches, and which traffic it takes.
pub(super) fn emulator(file: &WanFile) -> Vec<String> {
    let driving = ports::words(&file.driving);
    let (place, taken) = match &file.attach {
        Attach::Dev(dev) => {
            let taken = match file.taken() {
                (true, false) => {
                    format!("all frames that leave by {dev} (out); what comes in passes in the kernel")
                }
                (false, true) => {
                    format!("all frames that come in by {dev} (back); what leaves passes in the kernel")
                }
                _ => format!("all frames that leave by {dev} (out) and come in by it (back)"),
            };
            (format!("interface: {dev}{driving}"), taken)
        }
        Attach::Pair { lan, wan } => (
            format!("interfaces: {lan} towards the LAN, {wan} towards the WAN{driving}"),
            "all frames of both interfaces; nothing else joins them".to_string(),
        ),
    };
    vec![place, format!("steering: all, since an emulator delays, queues and loses what passes: {taken}")]
}
