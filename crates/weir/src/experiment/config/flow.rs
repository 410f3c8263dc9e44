//! `[[flow]]`: groups of flows that are alike.

use super::addresses::server_ports;
use super::diag::{listed, nearest, Fault};
use super::reader::{Positive, Section, Size};
use super::{distribution, names, tcp};
use crate::experiment::plan::{
    Arrivals, BoxKind, FlowGroup, HostGroup, Kind, Lab, Length, Plan, Ports, Protocol, Tcp,
};
use crate::result::Backend;
use core::ops::RangeInclusive;
use weir_core::dist::Distribution;
use weir_core::gateway::Direction;
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

fn flow(s: &Section, number: usize, defaults: &Tcp, duration: Option<Duration>) -> Option<FlowGroup> {
    s.need("id", "\"bulk\"");
    let id = s.parsed("id", names::name);
    let udp = s.choice("protocol", &[("tcp", false), ("udp", true)], &[]);
    let (protocol, tcp) = match udp {
        Some(true) => (self::udp(s), Tcp::default()),
        _ => (Some(self::tcp(s, udp)), tcp::of_flow(s, defaults)),
    };
    let start = s.get::<Duration>("start").unwrap_or_default();
    let (count, arrivals) = arrivals(s);
    let direction = s.choice("direction", &names::DIRECTIONS, &[]).unwrap_or_default();
    let ports = s.parsed("port", |range: RangeInclusive<u16>| server_ports(range, count));
    let length = length(s);
    let ports = ports.unwrap_or(Ports::Shared(FIRST_PORT.saturating_add(number as u16)));
    let kind = kind(s);
    let (id, protocol) = (id?, protocol?);
    let group = FlowGroup { count, protocol, tcp, start, arrivals, length, ..FlowGroup::new(&id) };
    let group = FlowGroup { kind, direction, ports, ..group };
    starts_in_time(s, &group, duration?);
    Some(group)
}

/// The keys of a TCP flow's application; those of UDP are refused, unless it is the protocol that is faulty.
fn tcp(s: &Section, udp: Option<bool>) -> Protocol {
    s.note_only(Backend::Sim, "app_rate");
    let app_rate = s.get("app_rate");
    for key in UDP {
        if s.has(key) && udp.is_some() == s.has("protocol") {
            let help = match key {
                "rate" => "`app_rate` limits the application of a TCP flow",
                _ => "it is a key of UDP flows",
            };
            s.key_fault(key, Fault::new(format!("`{key}` needs protocol = \"udp\""), help));
        }
    }
    Protocol::Tcp { app_rate }
}

/// Who sends when: `kind`, `request` and `response`.
fn kind(s: &Section) -> Kind {
    let kinds = [("bulk", 0), ("two-way", 1), ("request", 2)];
    let kind = s.choice("kind", &kinds, &[]).unwrap_or(0);
    let sizes = ["request", "response"].map(|key| {
        if kind != 2 && s.has(key) {
            let help = "it is for kind = \"request\"";
            let other = kinds[kind].0;
            s.key_fault(key, Fault::new(format!("`{key}` cannot be combined with kind = \"{other}\""), help));
        }
        s.parsed(key, |Size(n): Size| match n {
            0 => Err(Fault::bare("nothing at all")),
            n => Ok(n),
        })
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

/// Least payload of a datagram in the lab, where each begins with its number.
const NUMBERED: u16 = 8;

/// Keys that UDP flows have and TCP flows have not.
const UDP: [&str; 4] = ["rate", "datagram", "on", "off"];

/// The keys of a UDP flow; those of TCP are refused.
fn udp(s: &Section) -> Option<Protocol> {
    for key in ["on", "off"] {
        s.note_only(Backend::Sim, key);
    }
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

/// How many flows, and how their starts follow each other.
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

/// Drawn arrivals are refused where they would be cut short for want of a `count`, and in the lab where they
/// are too many for it.
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

/// Datagrams that come in are refused behind a masquerading box of the lab, which lets in only what somebody inside has asked for.
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

fn too_many_for_lab(n: u64) -> Fault {
    Fault::bare(format!("{n} flows are more than the {MOST_IN_LAB} of a group in the lab world"))
}

/// The group of hosts that flows have their clients or servers on.
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

#[cfg(test)]
mod tests {
    use crate::experiment::config::{experiment, Source};
    use crate::experiment::plan::{Arrivals, Length, Plan, Protocol};
    use weir_core::dist::Distribution;
    use weir_core::link::{Loss, QueueLimit};
    use weir_core::rate::Rate;
    use weir_core::time::Duration;

    fn plan(flow: &str) -> Plan {
        let text = format!("name = 'x'\nduration = '10s'\nseed = 3\n[[flow]]\nid = 'a'\n{flow}\n");
        experiment::parse(&Source::new("t.toml", text)).unwrap_or_else(|e| panic!("{e}")).plan
    }

    #[test]
    fn distributions() {
        let length = |text: &str| plan(&format!("bytes = {text}")).groups[0].length.clone();
        assert_eq!(length("'5kB'"), Length::Bytes(5000));
        for (text, want) in [
            ("{ uniform = [1000, '1KiB'] }", Distribution::Uniform { min: 1000, max: 1024 }),
            ("{ exponential = '30kB' }", Distribution::Exponential { mean: 30_000 }),
            ("{ pareto = '1kB', shape = 1.5 }", Distribution::Pareto { min: 1000, shape: 1.5, max: None }),
            (
                "{ pareto = '1kB', shape = 2, max = '2kB' }",
                Distribution::Pareto { min: 1000, shape: 2.0, max: Some(2000) },
            ),
            ("{ list = [7, '1kB', 7] }", Distribution::Empirical(vec![7, 1000, 7])),
        ] {
            assert_eq!(length(text), Length::Drawn(want), "{text}");
        }
    }

    /// 20 flows per second for 10 s are 200 ± 4 × √200; none begins after the end.
    #[test]
    fn a_poisson_process_goes_on_until_the_end() {
        let plan = plan("arrivals = { poisson = '20/s' }\nbytes = { exponential = '1kB' }");
        assert_eq!(plan.groups[0].arrivals, Arrivals::Drawn(Distribution::Exponential { mean: 50_000_000 }));
        let flows: Vec<_> = plan.flows().collect();
        assert!((144..=256).contains(&flows.len()), "{}", flows.len());
        assert!(flows.windows(2).all(|w| w[0].start <= w[1].start));
        assert!(flows.iter().all(|f| f.start < plan.duration && f.bytes.is_some_and(|n| n > 0)));
        assert_eq!((flows[0].start, flows[7].id.as_str()), (Duration::ZERO, "a.7"));
        let again: Vec<_> = plan.flows().map(|f| (f.start, f.bytes)).collect();
        assert_eq!(again, flows.iter().map(|f| (f.start, f.bytes)).collect::<Vec<_>>());
        let mut other = plan.clone();
        other.reseed(4);
        assert_ne!(other.flows().nth(1).map(|f| f.start), Some(flows[1].start));
    }

    #[test]
    fn count_limits_drawn_arrivals() {
        assert_eq!(plan("arrivals = '1s'").flows().count(), 10);
        assert_eq!(plan("arrivals = '1s'\ncount = 3").flows().count(), 3);
    }

    #[test]
    fn udp() {
        let text = "protocol = 'udp'\nrate = '5Mbit'\non = '1s'\noff = { exponential = '2s' }";
        let on_off =
            Some((Distribution::Constant(1_000_000_000), Distribution::Exponential { mean: 2_000_000_000 }));
        let want = Protocol::Udp { rate: Rate::mbit(5), datagram: 1472, on_off };
        assert_eq!(plan(text).groups[0].protocol, want);
    }

    #[test]
    fn hosts() {
        let text = "client = 'c'\n[path]\nrtt = '40ms'\n[[host]]\nname = 'c'\nside = 'lan'\nrate = '10Mbit'\nqueue = '1bdp'\ndelay = '1ms'\ndown = { loss_every = 9 }";
        let plan = plan(text);
        let host = &plan.hosts[0];
        assert_eq!(plan.groups[0].client.as_deref(), Some("c"));
        // 10 Mbit/s × (40 + 2 × 1) ms
        assert_eq!((host.wan, host.up.queue), (false, QueueLimit::Bytes(52_500)));
        assert_eq!((host.up.delay, host.down.delay), (Duration::from_millis(1), Duration::from_millis(1)));
        assert_eq!((host.up.loss, host.down.loss), (Loss::None, Loss::every(9).unwrap()));
        assert_eq!(plan.links()[4..], ["c.0.up".to_string(), "c.0.down".to_string()]);
    }
}
