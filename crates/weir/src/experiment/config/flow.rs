//! Tables `[[flow]]`: groups of equal flows.

#[cfg(test)]
mod tests;

use super::addresses::server_ports;
use super::diag::{listed, nearest, Fault};
use super::reader::{Positive, Section, Size};
use super::value::above_zero;
use super::{distribution, names, tcp};
use crate::experiment::plan::{
    Arrivals, BoxKind, FlowGroup, HostGroup, Ip, Kind, Lab, Length, Plan, Ports, Protocol, Sources, Tcp,
};
use crate::result::Backend;
use core::ops::RangeInclusive;
use weir_core::dist::Distribution;
use weir_core::gateway::{ClassConfig, Direction, Match};
use weir_core::link::{Config, Damage};
use weir_core::time::Duration;
use weir_sim::host::Bursts;

/// Most flows of a group.
pub(super) const MOST: u64 = 100_000;
/// Most flows of a group in the lab, where each flow is two sockets.
const MOST_IN_LAB: u64 = 10_000;

/// Reads all `[[flow]]` tables; a faulty one is missing.
pub(super) fn groups(
    s: &Section,
    defaults: &Tcp,
    hosts: &[HostGroup],
    graph: bool,
    duration: Option<Duration>,
) -> Vec<FlowGroup> {
    let mut groups: Vec<FlowGroup> = Vec::new();
    for (i, section) in s.sections("flow").into_iter().enumerate() {
        let group = flow(&section, i, defaults, duration);
        if graph {
            section.need("client", "\"clients\"");
            section.need("server", "\"servers\"");
        }
        let client = host(&section, "client", hosts, graph);
        let server = host(&section, "server", hosts, graph);
        if let Some(group) = group {
            check_against(&section, &group, &groups);
            groups.push(FlowGroup { client, server, ..group });
        }
        section.finish();
    }
    groups
}

/// Transport of a flow, as `protocol` names it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Transport {
    Tcp,
    Quic,
    Udp,
}

/// Names of the transports.
const TRANSPORTS: [(&str, Transport); 3] =
    [("tcp", Transport::Tcp), ("quic", Transport::Quic), ("udp", Transport::Udp)];

/// Codepoints by name: classes (RFC 2474), assured and expedited forwarding (RFC 2597, RFC 3246), admitted
/// voice (RFC 5865), and lower effort (RFC 8622).
const CODEPOINTS: [(&str, u8); 23] = [
    ("cs0", 0),
    ("le", 1),
    ("cs1", 8),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("cs2", 16),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("cs3", 24),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("cs4", 32),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("cs5", 40),
    ("va", 44),
    ("ef", 46),
    ("cs6", 48),
    ("cs7", 56),
];

/// Server port of QUIC.
const QUIC_PORT: u16 = 443;
/// Most streams of a QUIC flow.
const MOST_STREAMS: u64 = 1000;

fn flow(s: &Section, number: usize, defaults: &Tcp, duration: Option<Duration>) -> Option<FlowGroup> {
    s.need("id", "\"bulk\"");
    let id = s.parsed("id", names::name);
    let transport = s.choice("protocol", &TRANSPORTS, &[]);
    let quic = transport == Some(Transport::Quic);
    let (protocol, tcp) = match transport {
        Some(Transport::Udp) => (udp(s), Tcp::default()),
        Some(Transport::Quic) => (Some(reliable(s, transport)), tcp::of_quic(s, defaults)),
        Some(Transport::Tcp) | None => (Some(reliable(s, transport)), tcp::of_flow(s, defaults)),
    };
    let dscp = s.choice("dscp", &CODEPOINTS, &[]).unwrap_or(0);
    if quic && s.has("dscp") {
        let help = "there the library sets the whole field of its sockets";
        s.note_value(
            Backend::Sim,
            "dscp",
            Fault::new("`dscp` cannot be combined with protocol = \"quic\"", help),
        );
    }
    let start = s.get::<Duration>("start").unwrap_or_default();
    let (count, arrivals) = arrivals(s);
    let direction = s.choice("direction", &names::DIRECTIONS, &[]).unwrap_or_default();
    let ports = s.parsed("port", |range: RangeInclusive<u16>| server_ports(range, count));
    let length = length(s);
    let default = if quic { QUIC_PORT } else { FIRST_PORT.saturating_add(number as u16) };
    let ports = ports.unwrap_or(Ports::Shared(default));
    let kind = kind(s);
    let sources = sources(s, count, transport);
    let bursts = bursts(s, transport);
    let drawn_as = s.parsed("drawn_as", names::name);
    let (id, protocol) = (id?, protocol?);
    let group = FlowGroup { count, protocol, tcp, start, arrivals, length, ..FlowGroup::new(&id) };
    let group = FlowGroup { kind, dscp, direction, ports, bursts, sources, drawn_as, ..group };
    if group.drawn_as.is_some() && !group.draws() {
        let help = "it is the name that drawn `arrivals`, `bytes`, `think`, `on` and `off` depend on";
        s.key_fault("drawn_as", Fault::new("nothing of this group is drawn", help));
    }
    opens_fast_with_data(s, &group);
    starts_in_time(s, &group, duration?);
    Some(group)
}

/// Refuses Fast Open for clients that send no data: their SYN has no use for it (RFC 7413).
fn opens_fast_with_data(s: &Section, group: &FlowGroup) {
    let other = match (group.direction, group.kind) {
        (Direction::In, _) => "direction = \"in\"",
        (_, Kind::TwoWay) => "kind = \"two-way\"",
        (_, Kind::Request { .. }) => "kind = \"request\"",
        _ => return,
    };
    if group.tcp.opens_fast() {
        let key = ["fast_open", "kind", "direction"].into_iter().find(|key| s.has(key));
        let help = "only a client that sends, and nothing else, has data for its SYN: leave it out, or say fast_open = false";
        let message = format!("`fast_open` cannot be combined with {other}");
        s.key_fault(key.unwrap_or("id"), Fault::new(message, help));
    }
}

/// Reads the keys of the application of a TCP or QUIC flow. Keys of other protocols are refused, unless the
/// protocol itself is faulty.
fn reliable(s: &Section, transport: Option<Transport>) -> Protocol {
    s.note_only(Backend::Sim, "app_rate");
    let app_rate = s.get("app_rate");
    for key in UDP {
        if s.has(key) && transport.is_some() == s.has("protocol") {
            let help = match key {
                "rate" => "`app_rate` limits the application of a TCP flow",
                _ => "it is a key of UDP flows",
            };
            s.key_fault(key, Fault::new(format!("`{key}` needs protocol = \"udp\""), help));
        }
    }
    let streams = streams(s, transport);
    match transport {
        Some(Transport::Quic) => Protocol::Quic { app_rate, streams },
        _ => Protocol::Tcp { app_rate },
    }
}

/// Reads the number of streams of a QUIC flow. Other protocols have none, unless the protocol is faulty.
fn streams(s: &Section, transport: Option<Transport>) -> u32 {
    let streams = s.int("streams", 1..=MOST_STREAMS);
    let faulty = transport.is_none() && s.has("protocol");
    if s.has("streams") && transport != Some(Transport::Quic) && !faulty {
        let help = "only QUIC has several in one connection";
        s.key_fault("streams", Fault::new("`streams` needs protocol = \"quic\"", help));
    }
    streams.map_or(1, |n| n as u32)
}

/// Reads the direction and order of data: `kind`, `request` and `response`.
fn kind(s: &Section) -> Kind {
    let kinds = [("bulk", 0), ("two-way", 1), ("request", 2)];
    let kind = s.choice("kind", &kinds, &[]).unwrap_or(0);
    let sizes = ["request", "response"].map(|key| {
        if kind != 2 && s.has(key) {
            let help = "it is for kind = \"request\"";
            let other = kinds[kind].0;
            s.key_fault(key, Fault::new(format!("`{key}` cannot be combined with kind = \"{other}\""), help));
        }
        s.parsed(key, |Size(n): Size| above_zero(n))
    });
    if kind > 0 {
        s.note_value(
            Backend::Lab,
            "kind",
            Fault::bare("the sim world has only flows in which one end sends: \"bulk\""),
        );
        if s.has("protocol") {
            s.at_most_one(&["protocol", "kind"], "flows that go both ways are TCP");
        }
    }
    if kind == 2 {
        s.at_most_one(&["kind", "bytes"], "requests follow each other for a `duration`, or until the end");
    }
    match (kind, sizes) {
        (1, _) => Kind::TwoWay,
        (2, [request, response]) => {
            s.need("request", "\"200B\"");
            s.need("response", "\"60kB\"");
            Kind::Request { request: request.unwrap_or(1), response: response.unwrap_or(1) }
        }
        _ => Kind::Bulk,
    }
}

/// Smallest payload of a datagram in the lab, where each begins with its number.
const NUMBERED: u16 = 8;

/// Keys of UDP flows that TCP flows lack.
const UDP: [&str; 4] = ["rate", "datagram", "on", "off"];

/// Reads the keys of a UDP flow; those of TCP are refused.
fn udp(s: &Section) -> Option<Protocol> {
    streams(s, Some(Transport::Udp));
    for key in tcp::names().chain(["app_rate"]) {
        if s.has(key) {
            let help = match key {
                "app_rate" => "`rate` is the rate of UDP",
                _ => "it is a key of TCP flows",
            };
            s.key_fault(key, Fault::new(format!("`{key}` cannot be combined with protocol = \"udp\""), help));
        }
    }
    s.need("rate", "\"5Mbit\"");
    let rate = s.get("rate");
    let datagram = s.int("datagram", 1..=1472).map_or(1472, |n| n as u16);
    if datagram < NUMBERED {
        let message = format!("{datagram} bytes have no room for a datagram's number in the lab world");
        s.note_value(Backend::Sim, "datagram", Fault::new(message, "8 bytes is the least there"));
    }
    if s.has("on") || s.has("off") {
        s.need("on", "\"500ms\"");
        s.need("off", "\"500ms\"");
    }
    let on_off = distribution::times(s, "on").zip(distribution::times(s, "off"));
    Some(Protocol::Udp { rate: rate?, datagram, on_off })
}

/// Reads the number of flows, and the spacing of their starts.
fn arrivals(s: &Section) -> (u32, Arrivals) {
    s.at_most_one(&["stagger", "arrivals"], "starts follow at a fixed distance or are drawn, not both");
    let drawn = distribution::gaps(s, "arrivals").map(Arrivals::Drawn);
    let stagger = s.get::<Duration>("stagger").unwrap_or_default();
    let count = s.int("count", 1..=MOST);
    if let Some(n) = count.filter(|n| *n > MOST_IN_LAB) {
        let fault =
            Fault::bare(format!("{n} flows are more than the {MOST_IN_LAB} of a group in the lab world"));
        s.note_value(Backend::Sim, "count", fault);
    }
    // Drawn arrivals go on until the end.
    let default = if drawn.is_some() { MOST } else { 1 };
    (count.unwrap_or(default) as u32, drawn.unwrap_or(Arrivals::Every(stagger)))
}

/// Reads sources that send one flow after the other: `sources` and `think`.
fn sources(s: &Section, count: u32, transport: Option<Transport>) -> Option<Sources> {
    for key in ["sources", "think"] {
        s.note_only(Backend::Sim, key);
    }
    let sources = s.int("sources", 1..=MOST_IN_LAB);
    let think = distribution::times(s, "think");
    if !s.has("sources") {
        if s.has("think") {
            let help = "`think` is the time between two flows of a source: sources = 20";
            s.key_fault("think", Fault::new("`think` needs `sources`", help));
        }
        return None;
    }
    s.at_most_one(&["arrivals", "sources"], "a source's flows follow each other");
    s.need("count", "1000");
    s.need("bytes", "{ uniform = [\"10kB\", \"10MB\"] }");
    let sources = sources? as u32;
    if transport == Some(Transport::Udp) {
        let fault = Fault::new(
            "`sources` cannot be combined with protocol = \"udp\"",
            "they wait for the end of a connection",
        );
        s.key_fault("sources", fault);
    } else if s.has("count") && count > MOST_IN_LAB as u32 {
        s.fault("count", Fault::bare(format!("sources have at most {MOST_IN_LAB} flows")));
    } else if s.has("count") && count < sources {
        s.fault("sources", Fault::bare(format!("{sources} sources of {count} flows in all")));
    }
    let think = think.unwrap_or(Distribution::Constant(0));
    Some(Sources { count: sources, think })
}

/// Reads an application that pauses: `burst` and `pause`.
fn bursts(s: &Section, transport: Option<Transport>) -> Option<Bursts> {
    for key in ["burst", "pause"] {
        s.note_only(Backend::Sim, key);
    }
    let size = s.parsed("burst", |Size(n): Size| above_zero(n));
    let pause = s.get::<Positive>("pause").map(|Positive(pause)| pause);
    if !s.has("burst") && !s.has("pause") {
        return None;
    }
    s.need("burst", "\"1MB\"");
    s.need("pause", "\"1s\"");
    s.at_most_one(&["burst", "app_rate"], "it writes in bursts, or at a rate");
    if transport == Some(Transport::Udp) {
        let key = if s.has("burst") { "burst" } else { "pause" };
        let help = "datagrams have `on` and `off`";
        s.key_fault(key, Fault::new(format!("`{key}` cannot be combined with protocol = \"udp\""), help));
    }
    Some(Bursts { size: size?, pause: pause? })
}

/// Reads the end of a flow.
fn length(s: &Section) -> Length {
    s.at_most_one(&["bytes", "duration"], "a flow ends after so many bytes or after so long, not both");
    let bytes = distribution::sizes(s, "bytes").map(|d| match d {
        Distribution::Constant(n) => Length::Bytes(n),
        drawn => Length::Drawn(drawn),
    });
    let lasts = s.get::<Positive>("duration").map(|Positive(d)| Length::Duration(d));
    bytes.or(lasts).unwrap_or(Length::UntilEnd)
}

/// Checks that flows start before the end: all flows at fixed distances, the first of drawn ones.
fn starts_in_time(s: &Section, group: &FlowGroup, end: Duration) {
    let (index, last, key) = match &group.arrivals {
        Arrivals::Every(gap) if s.has("stagger") => {
            let index = group.sources.as_ref().map_or(group.count, |sources| sources.count) - 1;
            (index, group.start + gap.saturating_mul(u64::from(index)), "stagger")
        }
        _ => (0, group.start, "start"),
    };
    if last >= end {
        let message = format!("flow {index} of the group would start at {last}, not before the end, {end}");
        s.fault(key, Fault::bare(message));
    }
}

/// Refuses drawn arrivals that would be cut short for lack of a `count`, or that are too many for the lab.
pub(super) fn not_too_many(s: &Section, plan: &Plan) {
    for (group, section) in plan.groups.iter().zip(s.sections("flow")) {
        if !section.has("arrivals") {
            continue;
        }
        let n = group.flows(plan.seed).take_while(|f| f.start < plan.duration).count() as u64;
        if n == MOST && !section.has("count") {
            let help = "let them arrive less often, or say with `count` how many do";
            let message = format!("{MOST} flows or more would start before the end, {}", plan.duration);
            section.fault("arrivals", Fault::new(message, help));
        } else if n > MOST_IN_LAB && !section.has("count") {
            section.note_value(Backend::Sim, "arrivals", too_many_for_lab(n));
        }
    }
}

/// Most flows and most hosts of an experiment: a simulated host has room for 16 times as many ends.
pub(super) const MOST_IN_ALL: u64 = 1_000_000;

/// Refuses groups that make more flows than can be simulated.
pub(super) fn not_too_many_in_all(s: &Section, plan: &Plan) {
    let mut all = 0;
    for (group, section) in plan.groups.iter().zip(s.sections("flow")) {
        all += match &group.arrivals {
            Arrivals::Every(_) => u64::from(group.count),
            Arrivals::Drawn(_) => {
                group.flows(plan.seed).take_while(|f| f.start < plan.duration).count() as u64
            }
        };
        if all > MOST_IN_ALL {
            let message = format!("the flows up to this group are more than {MOST_IN_ALL}");
            return section.fault(if section.has("count") { "count" } else { "id" }, Fault::bare(message));
        }
    }
}

/// Reason to refuse a flow that has no limit to its speed.
pub(super) const ENDLESS_AT_ONCE: &str = "a flow without an end on a path that takes no time";

/// Refuses flows that the simulator never gets past: endless data from the start on, over a path without any
/// delay. In the lab, frames take the machine's time.
pub(super) fn takes_time(s: &Section, plan: &Plan) {
    for (group, section) in plan.groups.iter().zip(s.sections("flow")) {
        if !sends_at_once(group, plan) || takes_time_on_its_way(group, plan) {
            continue;
        }
        let help = match plan.graph {
            None => "give `path.rtt` or a rate, or end the flow after so many `bytes`",
            Some(_) => {
                "give a link between its hosts a `delay` or a rate, or end the flow after so many `bytes`"
            }
        };
        let key = if section.has("bytes") { "bytes" } else { "id" };
        section.note_value(Backend::Lab, key, Fault::new(ENDLESS_AT_ONCE, help));
    }
}

/// Returns whether a group sends without an end unless its path slows it down. More bytes than this at one
/// instant count as endless: no experiment waits for them.
fn sends_at_once(group: &FlowGroup, plan: &Plan) -> bool {
    const MOST_AT_ONCE: u64 = 10_000_000_000;
    let limited =
        group.bursts.is_some() || group.protocol.app_rate().is_some() || !group.protocol.is_reliable();
    let bytes = || group.flows(plan.seed).try_fold(0, |sum: u64, f| sum.checked_add(f.bytes?));
    !limited && group.kind == Kind::Bulk && bytes().is_none_or(|all| all > MOST_AT_ONCE)
}

/// Returns whether any element between the hosts of a group takes time.
fn takes_time_on_its_way(group: &FlowGroup, plan: &Plan) -> bool {
    let host = |name: &Option<String>| plan.hosts.iter().find(|h| Some(&h.name) == name.as_ref());
    let access = [host(&group.client), host(&group.server)].into_iter().flatten();
    let mut links: Vec<&Config> = access.flat_map(|h| [&h.up, &h.down]).collect();
    match &plan.graph {
        None => links.extend([&plan.path.lan, &plan.path.wan_out, &plan.path.wan_back]),
        Some(graph) => links.extend(graph.directions().map(|(_, link)| link)),
    }
    let mut classes = plan.gateway.iter().flat_map(|g| &g.classes);
    classes.any(|class| may_slow(class, group))
        || links.into_iter().any(|link| !Config { damage: Damage::NONE, ..*link }.is_bare())
}

/// Returns whether a class may take flows of a group and slow them down: by their ACKs, or by a queue. Rules
/// about addresses may take any flow here.
fn may_slow(class: &ClassConfig, group: &FlowGroup) -> bool {
    let (first, last) = group.port_range();
    let meets = |ports: &Option<RangeInclusive<u16>>| {
        ports.as_ref().is_none_or(|ports| *ports.start() <= last && first <= *ports.end())
    };
    let takes = |rule: &Match| {
        let server = match group.direction {
            Direction::Out => &rule.dst_port,
            Direction::In => &rule.src_port,
        };
        meets(server) && rule.protocol.is_none_or(|protocol| protocol == group.protocol.number())
    };
    class.direction == group.direction
        && class.takes_flows()
        && (class.ack.is_some() || class.share.is_some())
        && (class.matches.is_empty() || class.matches.iter().any(takes))
}

/// Refuses incoming datagrams behind a masquerading box of the lab, which admits only answers to requests
/// from inside.
pub(super) fn not_behind_nat(s: &Section, groups: &[FlowGroup], lab: &Lab) {
    let coming_in =
        |g: &FlowGroup| g.direction == Direction::In && matches!(g.protocol, Protocol::Udp { .. });
    if let Some(group) = groups.iter().find(|g| coming_in(g)).filter(|_| lab.kind == BoxKind::Nat) {
        let message = format!(
            "datagrams of \"{}\" would not come in through the masquerading box of the lab world",
            group.id
        );
        let help = "let them go out, or choose another `box`";
        if let Some(lab) = s.section("lab") {
            lab.note_value(Backend::Sim, "box", Fault::new(message, help));
        }
    }
}

/// Most payload bytes of a datagram in one packet of IPv6: 1500 less 40 and 8 (RFC 8200, RFC 768).
const MOST_OVER_IPV6: u16 = 1452;

/// Notes datagrams that the lab's IPv6 would cut in two.
pub(super) fn fit_ipv6(s: &Section, groups: &[FlowGroup], lab: &Lab) {
    let too_long = |g: &FlowGroup| match g.protocol {
        Protocol::Udp { datagram, .. } if datagram > MOST_OVER_IPV6 => Some((g.id.clone(), datagram)),
        _ => None,
    };
    let Some((id, bytes)) = groups.iter().find_map(too_long).filter(|_| lab.ip == Ip::V6) else { return };
    let message = format!("datagrams of \"{id}\" have {bytes} bytes, too many for one packet of IPv6");
    if let Some(lab) = s.section("lab") {
        let help = format!("write datagram = {MOST_OVER_IPV6} in its [[flow]]");
        lab.note_value(Backend::Sim, "ip", Fault::new(message, help));
    }
}

fn too_many_for_lab(n: u64) -> Fault {
    Fault::bare(format!("{n} flows are more than the {MOST_IN_LAB} of a group in the lab world"))
}

/// Reads the group of hosts that the clients or servers of flows are on.
fn host(s: &Section, key: &'static str, hosts: &[HostGroup], graph: bool) -> Option<String> {
    let wan = key == "server";
    s.parsed(key, |name: String| {
        let side = |wan| if wan { "wan" } else { "lan" };
        let right = || hosts.iter().filter(|h| graph || h.wan == wan).map(|h| h.name.as_str());
        if right().any(|n| n == name) {
            return Ok(name);
        }
        let help = match (nearest(&name, right()), right().next()) {
            (Some(n), _) => format!("did you mean `{n}`?"),
            (None, Some(_)) => format!("there is {}", listed(right())),
            (None, None) if graph => {
                format!("write [[host]] with name = \"{name}\" and the node that they are at")
            }
            (None, None) => format!("write [[host]] with name = \"{name}\" and side = \"{}\"", side(wan)),
        };
        let message = match hosts.iter().any(|h| h.name == name) {
            true => format!("the hosts `{name}` are on the {} side, a {key} is not", side(!wan)),
            false => format!("no hosts are named `{name}`"),
        };
        Err(Fault::new(message, help))
    })
}

/// Server port of the first group that names none; further groups have the following ports.
const FIRST_PORT: u16 = 5001;

/// Checks that groups share neither names nor ports: results and rules must tell them apart.
fn check_against(s: &Section, group: &FlowGroup, earlier: &[FlowGroup]) {
    if earlier.iter().any(|g| g.id == group.id) {
        s.fault("id", Fault::bare(format!("a second group of flows named \"{}\"", group.id)));
    }
    let (first, last) = group.port_range();
    let clash = earlier.iter().find(|g| g.port_range().0 <= last && first <= g.port_range().1);
    if let Some(other) = clash {
        let which = if first == last { format!("{first}") } else { format!("{first}-{last}") };
        let message = format!("port {which} of \"{}\" is taken by \"{}\"", group.id, other.id);
        let help = "give each group its own `port`; without one, group n takes 5000 + n, and QUIC 443";
        s.fault("port", Fault::new(message, help));
    }
}
