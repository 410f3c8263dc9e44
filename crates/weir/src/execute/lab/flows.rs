//! Translation of a plan's flows to the work of the two traffic processes.

use super::controls::linux_name;
use super::Options;
use crate::execute::hosts::{buffers, udp_seed, Ends, FlowEnds, DEFAULT_BUFFER};
use crate::execute::traffic::{Amount, DatagramSpec, FlowSpec, OnOff, Play, QuicSpec, Role, Spec};
use crate::experiment::plan::{Flow, Kind, Plan, Protocol};
use weir_core::gateway::Direction;

/// Bytes of the timestamps option in a segment: 10, padded to 12. The kernel subtracts them from TCP_MAXSEG.
/// A plan's `mss` excludes them.
const TIMESTAMPS: u32 = 12;

/// Returns the flows of clients and of servers. TCP, QUIC and datagrams are kept apart, each in the plan's
/// order.
pub fn specs(plan: &Plan, options: &Options) -> (Spec, Spec) {
    let flows: Vec<Flow> = plan.flows().collect();
    let side = || Spec {
        epoch_ns: None,
        stop_ns: plan.duration.as_nanos(),
        bin_ns: plan.bin.as_nanos(),
        sample_ns: 20_000_000,
        linger_ns: 1_000_000_000,
        flows: Vec::new(),
        datagrams: Vec::new(),
        quic: Vec::new(),
        probes: Vec::new(),
    };
    let (mut clients, mut servers) = (side(), side());
    let all_ends = Ends::of(plan);
    for (n, flow) in flows.iter().enumerate() {
        let ends = all_ends.of_flow(flow, n);
        match &flow.group.protocol {
            Protocol::Tcp { .. } => {
                let client = client_end(plan, flow, ends, options);
                servers.flows.push(server_end(&client, flow, ends));
                clients.flows.push(client);
            }
            Protocol::Quic { streams, .. } => {
                let client = quic_client(plan, flow, ends, *streams, options);
                let (local, remote, sends) = (ends.server, ends.client_on_wan, !client.sends);
                servers.quic.push(QuicSpec { role: Role::Listen, local, remote, sends, ..client.clone() });
                clients.quic.push(client);
            }
            Protocol::Udp { .. } => {
                let client = datagrams(plan, flow, ends);
                let (local, remote, sends) = (ends.server, ends.client_on_wan, !client.sends);
                servers.datagrams.push(DatagramSpec { local, remote, sends, ..client.clone() });
                clients.datagrams.push(client);
            }
        }
    }
    (clients, servers)
}

fn amount(plan: &Plan, flow: &Flow) -> Amount {
    match flow.bytes {
        Some(n) => Amount::Bytes(n),
        None => Amount::UntilNs(flow.end(plan.duration).as_nanos()),
    }
}

/// The client's end of a flow of datagrams.
fn datagrams(plan: &Plan, flow: &Flow, ends: FlowEnds) -> DatagramSpec {
    let Protocol::Udp { rate, datagram, on_off } = &flow.group.protocol else {
        unreachable!("the caller has looked");
    };
    let on_off = on_off.clone().map(|(on, off)| OnOff { on, off, seed: udp_seed(plan, flow) });
    DatagramSpec {
        id: flow.id.clone(),
        local: ends.client,
        remote: ends.server,
        sends: flow.direction() == Direction::Out,
        rate_bps: rate.bps(),
        size: *datagram,
        dscp: flow.group.dscp,
        start_ns: flow.start.as_nanos(),
        amount: amount(plan, flow),
        on_off,
    }
}

/// Returns the client's end of a QUIC flow. Its window is the one of a simulated connection: half of the
/// buffer, as Linux advertises of TCP's.
fn quic_client(plan: &Plan, flow: &Flow, ends: FlowEnds, streams: u32, options: &Options) -> QuicSpec {
    let window = flow.group.tcp.number("rwnd").unwrap_or(buffers(plan).unwrap_or(DEFAULT_BUFFER) / 2);
    QuicSpec {
        id: flow.id.clone(),
        role: Role::Connect,
        local: ends.client,
        remote: ends.server,
        sends: flow.direction() == Direction::Out,
        start_ns: flow.start.as_nanos(),
        amount: amount(plan, flow),
        cc: flow.group.tcp.cc().to_string(),
        streams,
        window: u32::try_from(window).unwrap_or(u32::MAX),
        ecn: flow.group.tcp.switch("ecn").unwrap_or(false),
        gap_after_ns: options.gap_after.as_nanos(),
    }
}

fn client_end(plan: &Plan, flow: &Flow, ends: FlowEnds, options: &Options) -> FlowSpec {
    let sends = flow.direction() == Direction::Out;
    FlowSpec {
        id: flow.id.clone(),
        role: Role::Connect,
        local: ends.client,
        remote: ends.server,
        sends,
        play: play(&flow.group.kind),
        dscp: flow.group.dscp,
        start_ns: flow.start.as_nanos(),
        amount: amount(plan, flow),
        cc: Some(linux_name(flow.group.tcp.cc()).unwrap_or(flow.group.tcp.cc()).to_string()),
        mss: flow.group.tcp.number("mss").map(|mss| mss as u32 + TIMESTAMPS),
        rwnd: receive_window(flow, sends),
        sndbuf: None,
        nagle: flow.group.tcp.switch("nagle").unwrap_or(false),
        fast_open: flow.group.tcp.opens_fast(),
        gap_after_ns: options.gap_after.as_nanos(),
        series: options.samples,
    }
}

fn server_end(client: &FlowSpec, flow: &Flow, ends: FlowEnds) -> FlowSpec {
    FlowSpec {
        role: Role::Listen,
        local: ends.server,
        remote: ends.client_on_wan,
        sends: !client.sends,
        rwnd: receive_window(flow, !client.sends),
        ..client.clone()
    }
}

fn play(kind: &Kind) -> Play {
    match *kind {
        Kind::Bulk => Play::OneWay,
        Kind::TwoWay => Play::BothWays,
        Kind::Request { request, response } => Play::Exchange { request, response },
    }
}

/// Returns the receive window of an end. A plan's `rwnd` belongs to the receiver; the sender's window is
/// irrelevant.
fn receive_window(flow: &Flow, sends: bool) -> Option<u32> {
    let bytes = flow.group.tcp.number("rwnd").filter(|_| !sends || flow.group.kind != Kind::Bulk)?;
    Some(u32::try_from(bytes).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::super::tests::plan;
    use super::*;
    use crate::experiment::plan::{Arrivals, FlowGroup, Length, Ports, Value};
    use weir_core::dist::Distribution;
    use weir_core::rate::Rate;
    use weir_core::time::Duration;

    #[test]
    fn both_ends_of_a_flow_agree() {
        let mut p = plan();
        p.groups[0].count = 3;
        p.groups[0].ports = Ports::Each { first: 7000 };
        p.groups[0].arrivals = Arrivals::Every(Duration::from_millis(10));
        p.groups[0].tcp.set("mss", Value::Number(1000));
        p.groups[0].tcp.set("rwnd", Value::Number(50_000));
        let (clients, servers) = specs(&p, &Options::new().unwrap());
        clients.check().unwrap();
        servers.check().unwrap();
        let (c, s) = (&clients.flows[2], &servers.flows[2]);
        assert_eq!((c.local, c.remote), (s.remote, s.local));
        assert_eq!(c.remote.to_string(), "10.0.0.2:7002");
        assert_eq!((c.sends, s.sends), (true, false));
        assert_eq!((c.rwnd, s.rwnd), (None, Some(50_000)));
        assert_eq!((c.mss, s.mss), (Some(1012), Some(1012)));
        assert_eq!(c.cc.as_deref(), Some("cubic"), "whatever the host's default is");
        assert_eq!((c.start_ns, c.amount), (20_000_000, Amount::UntilNs(1_000_000_000)));
    }

    #[test]
    fn what_is_drawn_is_played() {
        let mut p = plan();
        p.groups[0].count = 1000;
        // The source starts 100 flows a second of 20 kB on average, for a second.
        p.groups[0].arrivals = Arrivals::Drawn(Distribution::Exponential { mean: 10_000_000 });
        p.groups[0].length = Length::Drawn(Distribution::Exponential { mean: 20_000 });
        let (clients, servers) = specs(&p, &Options::new().unwrap());
        clients.check().unwrap();
        let drawn: Vec<(u64, Option<u64>)> = p.flows().map(|f| (f.start.as_nanos(), f.bytes)).collect();
        // A Poisson distribution of mean 100 has a standard deviation of 10.
        assert!((50..150).contains(&drawn.len()), "{}", drawn.len());
        let played = |spec: &Spec| -> Vec<(u64, Option<u64>)> {
            let bytes = |a| match a {
                Amount::Bytes(n) => Some(n),
                Amount::UntilNs(_) => None,
            };
            spec.flows.iter().map(|f| (f.start_ns, bytes(f.amount))).collect()
        };
        assert_eq!(played(&clients), drawn);
        assert_eq!(played(&servers), drawn);
    }

    /// Verifies that the ends of a datagram flow agree too and are apart from those of TCP.
    #[test]
    fn datagrams_are_played_beside_tcp() {
        let mut p = plan();
        let protocol = Protocol::Udp { rate: Rate::kbit(24), datagram: 160, on_off: None };
        let ports = Ports::Shared(5060);
        p.groups.insert(0, FlowGroup { protocol, ports, direction: Direction::In, ..FlowGroup::new("call") });
        let (clients, servers) = specs(&p, &Options::new().unwrap());
        clients.check().unwrap();
        servers.check().unwrap();
        assert_eq!((clients.flows.len(), clients.flows[0].id.as_str()), (1, "up.0"));
        let (c, s) = (&clients.datagrams[0], &servers.datagrams[0]);
        assert_eq!((c.local, c.remote, c.sends), (s.remote, s.local, false));
        assert_eq!((s.rate_bps, s.size, s.amount), (24_000, 160, Amount::UntilNs(1_000_000_000)));
    }

    /// Verifies that the ends of a QUIC flow agree, and that its window is the simulator's unless it is set.
    #[test]
    fn quic_is_played_beside_tcp() {
        let mut p = plan();
        let protocol = Protocol::Quic { app_rate: None, streams: 3 };
        let ports = Ports::Shared(443);
        let group = FlowGroup { protocol, ports, direction: Direction::In, ..FlowGroup::new("web") };
        p.groups.insert(0, group);
        let (clients, servers) = specs(&p, &Options::new().unwrap());
        clients.check().unwrap();
        servers.check().unwrap();
        assert_eq!((clients.flows.len(), clients.flows[0].id.as_str()), (1, "up.0"));
        let (c, s) = (&clients.quic[0], &servers.quic[0]);
        assert_eq!((c.local, c.remote, c.sends, s.sends), (s.remote, s.local, false, true));
        assert_eq!((c.role, s.role, s.cc.as_str(), s.streams), (Role::Connect, Role::Listen, "cubic", 3));
        assert_eq!((c.window, s.ecn), (3 << 20, false));
        p.groups[0].tcp.set("rwnd", Value::Number(50_000));
        assert_eq!(specs(&p, &Options::new().unwrap()).0.quic[0].window, 50_000);
    }

    #[test]
    fn many_flows_to_one_port_have_ports_of_their_own() {
        let mut p = plan();
        p.groups[0].count = 10_000;
        specs(&p, &Options::new().unwrap()).0.check().unwrap();
    }
}
