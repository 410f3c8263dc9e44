//! `[[flow]]`: groups of flows that are alike.

use super::diag::{listed, nearest};
use super::reader::{Positive, Section};
use super::units::{server_ports, Fault};
use super::{distribution, gateway, tcp};
use crate::plan::{Arrivals, FlowGroup, HostGroup, Length, Plan, Ports, Protocol, Tcp};
use crate::result::World;
use core::ops::RangeInclusive;
use weir_core::dist::Distribution;
use weir_core::time::Duration;

/// Most flows of a group.
pub(super) const MOST: u64 = 100_000;
/// Most flows of a group in the lab, where each is two sockets.
const MOST_IN_LAB: u64 = 10_000;

/// Reads every `[[flow]]`; a faulty one is missing.
pub(super) fn groups(
    s: &Section,
    defaults: &Tcp,
    hosts: &[HostGroup],
    duration: Option<Duration>,
) -> Vec<FlowGroup> {
    let mut groups: Vec<FlowGroup> = Vec::new();
    for (i, section) in s.sections("flow").into_iter().enumerate() {
        let client = host(&section, "client", hosts);
        let server = host(&section, "server", hosts);
        if let Some(group) = flow(&section, i, defaults, duration) {
            check_against(&section, &group, &groups);
            groups.push(FlowGroup { client, server, ..group });
        }
        section.finish();
    }
    groups
}

fn flow(s: &Section, number: usize, defaults: &Tcp, duration: Option<Duration>) -> Option<FlowGroup> {
    s.need("id", "\"bulk\"");
    let id = s.parsed("id", gateway::name);
    let udp = s.choice("protocol", &[("tcp", false), ("udp", true)], &[]);
    let (protocol, tcp) = match udp {
        Some(true) => (self::udp(s), Tcp::default()),
        _ => (Some(self::tcp(s, udp)), tcp::over(s, tcp::read(s), defaults)),
    };
    let start = s.get::<Duration>("start").unwrap_or_default();
    let (count, arrivals) = arrivals(s);
    let direction = s.choice("direction", &gateway::DIRECTIONS, &[]).unwrap_or_default();
    let ports = s.parsed("port", |range: RangeInclusive<u16>| server_ports(range, count));
    let length = length(s);
    let ports = ports.unwrap_or(Ports::Shared(FIRST_PORT.saturating_add(number as u16)));
    let (id, protocol) = (id?, protocol?);
    let group =
        FlowGroup { count, protocol, tcp, start, arrivals, length, direction, ports, ..FlowGroup::new(&id) };
    starts_in_time(s, &group, duration?);
    Some(group)
}

/// The keys of a TCP flow's application; those of UDP are refused, unless it is the protocol that is faulty.
fn tcp(s: &Section, udp: Option<bool>) -> Protocol {
    s.note_only(World::Sim, "app_rate");
    let app_rate = s.get("app_rate");
    for key in UDP {
        if s.has(key) && udp.is_some() == s.has("protocol") {
            let help = match key {
                "rate" => "`app_rate` limits the application of a TCP flow",
                _ => "it is a key of UDP flows",
            };
            s.key_fault(key, Fault::new(format!("`{key}` without protocol = \"udp\""), help));
        }
    }
    Protocol::Tcp { app_rate }
}

/// Keys that UDP flows have and TCP flows have not.
const UDP: [&str; 4] = ["rate", "datagram", "on", "off"];

/// The keys of a UDP flow; those of TCP are refused.
fn udp(s: &Section) -> Option<Protocol> {
    let fault = Fault::new("UDP flows do not exist in the lab world", "they exist in the sim world only");
    s.note_value(World::Sim, "protocol", fault);
    for key in tcp::keys().chain(["app_rate"]) {
        if s.has(key) {
            let help = match key {
                "app_rate" => "`rate` is the rate of UDP",
                _ => "it is a key of TCP flows",
            };
            s.key_fault(key, Fault::new(format!("`{key}` together with protocol = \"udp\""), help));
        }
    }
    s.need("rate", "\"5Mbit\"");
    let rate = s.get("rate");
    let datagram = s.int("datagram", 1..=1472).map_or(1472, |n| n as u16);
    if s.has("on") || s.has("off") {
        s.need("on", "\"500ms\"");
        s.need("off", "\"500ms\"");
    }
    let on_off = distribution::times(s, "on").zip(distribution::times(s, "off"));
    Some(Protocol::Udp { rate: rate?, datagram, on_off })
}

/// How many flows, and how their starts follow each other.
fn arrivals(s: &Section) -> (u32, Arrivals) {
    s.at_most_one(&["stagger", "arrivals"], "starts follow at a fixed distance or are drawn, not both");
    let drawn = distribution::gaps(s, "arrivals").map(Arrivals::Drawn);
    let stagger = s.get::<Duration>("stagger").unwrap_or_default();
    let count = s.int("count", 1..=MOST);
    if let Some(n) = count.filter(|n| *n > MOST_IN_LAB) {
        let fault =
            Fault::bare(format!("{n} flows are more than the {MOST_IN_LAB} of a group in the lab world"));
        s.note_value(World::Sim, "count", fault);
    }
    // Drawn arrivals go on until the end.
    let default = if drawn.is_some() { MOST } else { 1 };
    (count.unwrap_or(default) as u32, drawn.unwrap_or(Arrivals::Every(stagger)))
}

/// When a flow is done.
fn length(s: &Section) -> Length {
    s.at_most_one(&["bytes", "duration"], "a flow ends after so many bytes or after so long, not both");
    let bytes = distribution::sizes(s, "bytes").map(|d| match d {
        Distribution::Constant(n) => Length::Bytes(n),
        drawn => Length::Drawn(drawn),
    });
    let lasts = s.get::<Positive>("duration").map(|Positive(d)| Length::Duration(d));
    bytes.or(lasts).unwrap_or(Length::UntilEnd)
}

/// Flows at fixed distances all start before the end; of drawn ones, the first.
fn starts_in_time(s: &Section, group: &FlowGroup, end: Duration) {
    let (index, last, key) = match &group.arrivals {
        Arrivals::Every(gap) if s.has("stagger") => {
            let index = group.count - 1;
            (index, group.start + gap.saturating_mul(u64::from(index)), "stagger")
        }
        _ => (0, group.start, "start"),
    };
    if last >= end {
        let message = format!("flow {index} of the group would start at {last}, not before the end, {end}");
        s.fault(key, Fault::bare(message));
    }
}

/// Drawn arrivals without a `count` are refused where they would be cut short.
pub(super) fn not_too_many(s: &Section, plan: &Plan) {
    for (group, section) in plan.groups.iter().zip(s.sections("flow")) {
        let cut = || group.flows(plan.seed).last().is_some_and(|f| f.start < plan.duration);
        if section.has("arrivals") && !section.has("count") && cut() {
            let help = "let them arrive less often, or say with `count` how many do";
            let message = format!("more than {MOST} flows would start before the end, {}", plan.duration);
            section.fault("arrivals", Fault::new(message, help));
        }
    }
}

/// The group of hosts that flows have their clients or servers on.
fn host(s: &Section, key: &'static str, hosts: &[HostGroup]) -> Option<String> {
    s.note_only(World::Sim, key);
    let wan = key == "server";
    s.parsed(key, |name: String| {
        let side = |wan| if wan { "wan" } else { "lan" };
        let right = || hosts.iter().filter(|h| h.wan == wan).map(|h| h.name.as_str());
        if right().any(|n| n == name) {
            return Ok(name);
        }
        let help = match (nearest(&name, right()), right().next()) {
            (Some(n), _) => format!("did you mean `{n}`?"),
            (None, Some(_)) => format!("there is {}", listed(right())),
            (None, None) => format!("write [[host]] with name = \"{name}\" and side = \"{}\"", side(wan)),
        };
        let message = match hosts.iter().any(|h| h.name == name) {
            true => format!("the hosts `{name}` are on the {} side, a {key} is not", side(!wan)),
            false => format!("no hosts are named `{name}`"),
        };
        Err(Fault::new(message, help))
    })
}

/// Server port of the first group that names none; further groups take the following ports.
const FIRST_PORT: u16 = 5001;

/// Groups share neither names nor ports: results and rules must tell them apart.
fn check_against(s: &Section, group: &FlowGroup, earlier: &[FlowGroup]) {
    if earlier.iter().any(|g| g.id == group.id) {
        s.fault("id", Fault::bare(format!("a second group of flows named \"{}\"", group.id)));
    }
    let (first, last) = group.port_range();
    let clash = earlier.iter().find(|g| g.port_range().0 <= last && first <= g.port_range().1);
    if let Some(other) = clash {
        let which = if first == last { format!("{first}") } else { format!("{first}-{last}") };
        let message = format!("port {which} of \"{}\" is taken by \"{}\"", group.id, other.id);
        let help = "give each group its own `port`; without one, group n takes 5000 + n";
        s.fault("port", Fault::new(message, help));
    }
}
