//! The flows of an experiment, with their endpoints on its hosts.

use super::hosts::{self, next_hop, ExperimentHost, UdpEnd};
use super::tcp;
use crate::execute::hosts::{client_port, udp_seed};
use crate::experiment::plan::{Flow, Plan, Protocol};
use std::collections::HashSet;
use std::net::SocketAddrV4;
use std::sync::Arc;
use weir_core::gateway::Direction;
use weir_core::time::{Duration, Time};
use weir_sim::host::{Endpoint, EndpointId, Source};
use weir_sim::tcp::TcpConfig;
use weir_sim::udp::{UdpConfig, UdpSink, UdpSource};

/// The two ends of a flow. Hosts are identified by their number in the experiment.
#[derive(Clone, Copy, Debug)]
pub struct FlowEnds {
    /// Address and port of the client.
    pub client: SocketAddrV4,
    /// Address and port of the server.
    pub server: SocketAddrV4,
    /// True if the client is the sender.
    pub uploads: bool,
    /// Payload bytes of a full segment or datagram.
    pub payload: u16,
    /// Host that sends the data, and the flow's end there.
    pub sender: (usize, FlowEnd),
    /// Host that receives the data, and the flow's end there.
    pub receiver: (usize, FlowEnd),
}

impl FlowEnds {
    /// Returns the end that opens the flow.
    pub fn client_end(&self) -> (usize, FlowEnd) {
        if self.uploads {
            self.sender
        } else {
            self.receiver
        }
    }
}

/// One end of a flow on its host.
#[derive(Clone, Copy, Debug)]
pub enum FlowEnd {
    /// Endpoint of a simulated host, by its number among the TCP endpoints of the host.
    Tcp(usize, EndpointId),
    /// Number among the UDP endpoints of the host.
    Udp(usize),
}

/// Makes the hosts of a plan and the ends of all its flows, in the plan's order. Errors name the key that
/// cannot be simulated.
pub fn make(plan: &Plan) -> Result<(Vec<ExperimentHost>, Vec<FlowEnds>), String> {
    let (all, groups) = hosts::all(plan);
    let mut ends = FlowEndMaker { plan, hosts: all, further: 0, used: HashSet::new() };
    let mut flows: Vec<FlowEnds> = Vec::new();
    let mut settings: Option<(&str, Option<Arc<TcpConfig>>)> = None;
    for (n, flow) in plan.flows().enumerate() {
        let group = flow.group;
        if settings.as_ref().is_none_or(|(id, _)| *id != group.id) {
            let reliable = group.protocol.is_reliable();
            let tcp = reliable.then(|| tcp::config(plan, group).map(Arc::new)).transpose()?;
            settings = Some((&group.id, tcp));
        }
        let host_of = |side: &Option<String>, end_of_path: usize| {
            let hosts = side.as_ref().and_then(|name| groups.get(name.as_str()));
            hosts.map_or(end_of_path, |&(first, count)| first + flow.host_of(count) as usize)
        };
        let sides = (host_of(&group.client, 0), host_of(&group.server, 1));
        flows.push(match settings.as_ref().and_then(|(_, tcp)| tcp.as_ref()) {
            Some(tcp) => {
                let before =
                    flow.before.map(|before| flows[n - (flow.index - before.index) as usize].client_end());
                ends.tcp_flow(&flow, n, tcp, sides, before)?
            }
            None => ends.udp_flow(&flow, n, sides),
        });
    }
    Ok((ends.hosts, flows))
}

/// Builder of the flows' ends.
struct FlowEndMaker<'a> {
    plan: &'a Plan,
    hosts: Vec<ExperimentHost>,
    /// Number of simulated hosts made for further uses of a client port.
    further: u32,
    /// Ends of all flows, the lower one of a flow first.
    used: HashSet<[SocketAddrV4; 2]>,
}

impl FlowEndMaker<'_> {
    /// Returns the number of the client's simulated host for a flow, and the addresses and ports of client
    /// and server. No other flow is between the same two.
    fn addresses(
        &mut self,
        flow: &Flow,
        n: usize,
        (client, server): (usize, usize),
    ) -> (usize, [SocketAddrV4; 2]) {
        let server = SocketAddrV4::new(self.hosts[server].site.address, flow.server_port);
        let mut host = 0;
        loop {
            let address = self.hosts[client].address(self.plan, host, &mut self.further);
            let client = SocketAddrV4::new(address, client_port(n));
            if self.used.insert([client.min(server), client.max(server)]) {
                return (host, [client, server]);
            }
            host += 1;
        }
    }

    fn tcp_flow(
        &mut self,
        flow: &Flow,
        n: usize,
        tcp: &Arc<TcpConfig>,
        (client, server): (usize, usize),
        before: Option<(usize, FlowEnd)>,
    ) -> Result<FlowEnds, String> {
        let plan = self.plan;
        let (host, addresses) = self.addresses(flow, n, (client, server));
        let uploads = flow.direction() == Direction::Out;
        let mut end = |at: usize, host: usize, opens: bool| {
            let own = usize::from(!opens);
            let source = (uploads == opens).then(|| source(plan, flow));
            let endpoint = Endpoint {
                opens,
                local: addresses[own],
                remote: addresses[1 - own],
                start: if flow.before.is_some() { Time::MAX } else { Time::ZERO + flow.start },
                tcp: tcp.clone(),
                source,
                bin: plan.bin,
                until: until(plan, flow),
                trace: source.is_some() && traces(plan),
            };
            let simulated = &mut self.hosts[at].tcp[host];
            simulated.endpoints += 1;
            (at, FlowEnd::Tcp(host, simulated.host.add(endpoint)))
        };
        let (client, server) = (end(client, host, true), end(server, 0, false));
        if let Some((before, flow_before)) = before.zip(flow.before) {
            self.follow(client, before, flow_before.think).ok_or_else(|| {
                format!("flow \"{}\": there are too many flows for it to wait for another one", flow.id)
            })?;
        }
        let (sender, receiver) = if uploads { (client, server) } else { (server, client) };
        Ok(FlowEnds {
            client: addresses[0],
            server: addresses[1],
            uploads,
            payload: tcp.mss,
            sender,
            receiver,
        })
    }

    /// Makes an end of a flow open `think` after another one has ended. Returns `None` if they are not on the
    /// same simulated host.
    fn follow(&mut self, end: (usize, FlowEnd), other: (usize, FlowEnd), think: Duration) -> Option<()> {
        let ((at, FlowEnd::Tcp(host, id)), (there, FlowEnd::Tcp(its_host, its_id))) = (end, other) else {
            return None;
        };
        (at == there && host == its_host).then(|| self.hosts[at].tcp[host].host.follow(id, its_id, think))
    }

    fn udp_flow(&mut self, flow: &Flow, n: usize, sides: (usize, usize)) -> FlowEnds {
        let Protocol::Udp { rate, datagram, on_off } = &flow.group.protocol else {
            unreachable!("the caller has looked");
        };
        let (host, [client, server]) = self.addresses(flow, n, sides);
        let uploads = flow.direction() == Direction::Out;
        let ((from, host, local), (to, remote)) = match uploads {
            true => ((sides.0, host, client), (sides.1, server)),
            false => ((sides.1, 0, server), (sides.0, client)),
        };
        let source = UdpSource::new(UdpConfig {
            mac: self.hosts[from].tcp[host].mac,
            next_hop: next_hop(&self.hosts[from].site),
            local,
            remote,
            rate: *rate,
            datagram: *datagram,
            start: Time::ZERO + flow.start,
            until: Time::ZERO + flow.end(self.plan.duration),
            bytes: flow.bytes,
            on_off: on_off.clone(),
            dscp: flow.group.dscp,
            seed: udp_seed(self.plan, flow),
        });
        let sink = UdpSink::new(remote, local, self.plan.bin, until(self.plan, flow));
        let mut end = |at: usize, end: UdpEnd| {
            let ends = &mut self.hosts[at].udp;
            ends.push(end);
            (at, FlowEnd::Udp(ends.len() - 1))
        };
        let sender = end(from, UdpEnd::Source(Box::new(source)));
        let receiver = end(to, UdpEnd::Sink(Box::new(sink)));
        FlowEnds { client, server, uploads, payload: *datagram, sender, receiver }
    }
}

/// Returns whether every change of the senders is recorded.
fn traces(plan: &Plan) -> bool {
    plan.sample.is_none() && plan.series.iter().any(|kind| kind.is_of_sender())
}

/// Returns the application's writes at the sender.
fn source(plan: &Plan, flow: &Flow) -> Source {
    let rate = flow.group.protocol.app_rate();
    Source { bytes: flow.bytes, until: until(plan, flow), rate, bursts: flow.group.bursts }
}

/// Returns the end of a flow's time, when it stops sending. A flow that lasts until the end of the experiment
/// is not closed, because its close would have no effect.
fn until(plan: &Plan, flow: &Flow) -> Time {
    let end = flow.end(plan.duration);
    if end < plan.duration {
        Time::ZERO + end
    } else {
        Time::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::hosts::{nth, Ends};
    use crate::experiment::plan::{FlowGroup, HostGroup, Ports};
    use std::collections::BTreeSet;
    use std::net::{Ipv4Addr, SocketAddr};
    use weir_core::link;
    use weir_core::rate::Rate;
    use weir_core::time::Duration;

    fn plan() -> Plan {
        let hosts = |name: &str, wan, count| HostGroup {
            name: name.into(),
            wan,
            node: None,
            count,
            up: link::Config::BARE,
            down: link::Config::BARE,
        };
        let reno = |id: &str| {
            let mut group = FlowGroup { count: 3, ..FlowGroup::new(id) };
            group.tcp.cc = Some("reno".into());
            group
        };
        let spread = FlowGroup { client: Some("edge".into()), server: Some("farm".into()), ..reno("spread") };
        let protocol = Protocol::Udp { rate: Rate::mbit(1), datagram: 100, on_off: None };
        let udp = FlowGroup { protocol, count: 1, server: Some("farm".into()), ..FlowGroup::new("udp") };
        Plan {
            hosts: vec![hosts("edge", false, 2), hosts("farm", true, 2)],
            groups: vec![reno("own"), spread, udp],
            ..Plan::new("t", Duration::from_secs(1))
        }
    }

    #[test]
    fn flows_take_turns_on_the_hosts_of_their_groups() {
        let (hosts, flows) = make(&plan()).unwrap();
        let names: Vec<&str> = hosts.iter().map(|h| h.site.name.as_str()).collect();
        assert_eq!(names, ["clients", "servers", "edge.0", "edge.1", "farm.0", "farm.1"]);
        let at: Vec<(usize, usize)> = flows.iter().map(|f| (f.sender.0, f.receiver.0)).collect();
        assert_eq!(at, [(0, 1), (0, 1), (0, 1), (2, 4), (3, 5), (2, 4), (0, 4)]);
        let endpoints: Vec<usize> = hosts.iter().map(|h| h.tcp[0].endpoints).collect();
        assert_eq!(endpoints, [3, 3, 2, 1, 2, 1]);
        let addresses: Vec<String> = flows.iter().map(|f| format!("{} {}", f.client, f.server)).collect();
        assert_eq!(addresses[1], "10.0.0.1:10001 10.0.0.2:5001");
        assert_eq!(addresses[4], "10.1.0.2:10004 10.128.0.2:5001");
        assert_eq!(addresses[6], "10.0.0.1:10006 10.128.0.1:5001");
        assert_eq!((hosts[0].udp.len(), hosts[4].udp.len()), (1, 1));
    }

    /// One file means the same in both worlds: 70,000 flows of three groups, whose ports start over.
    #[test]
    fn flows_have_the_addresses_of_the_lab() {
        let mut plan = plan();
        plan.hosts[0].count = 7;
        for (group, port) in plan.groups.iter_mut().zip(5001..) {
            group.ports = Ports::Shared(port);
            group.count = 10_000;
        }
        plan.groups[1].count = 50_000;
        let (_, flows) = make(&plan).unwrap();
        let lab = Ends::of(&plan);
        for (n, (flow, made)) in plan.flows().zip(&flows).enumerate() {
            let ends = lab.of_flow(&flow, n);
            assert_eq!(
                (SocketAddr::V4(made.client), SocketAddr::V4(made.server)),
                (ends.client, ends.server)
            );
        }
        assert_eq!(flows.len(), 70_000);
    }

    #[test]
    fn client_ports_never_run_out() {
        for udp in [false, true] {
            let mut plan = plan();
            plan.groups = vec![plan.groups.remove(if udp { 2 } else { 0 })];
            plan.groups[0].server = None;
            plan.groups[0].count = 120_000;
            let (hosts, flows) = make(&plan).unwrap();
            let pairs: BTreeSet<(SocketAddrV4, SocketAddrV4)> =
                flows.iter().map(|f| (f.client, f.server)).collect();
            assert_eq!(pairs.len(), 120_000);
            let addresses: Vec<String> = hosts[0].tcp.iter().map(|h| h.address.to_string()).collect();
            assert_eq!(addresses, ["10.0.0.1", "10.0.1.1", "10.0.1.2"]);
            let ends = (hosts[1].tcp[0].endpoints, hosts[1].udp.len());
            assert_eq!((hosts[1].tcp.len(), ends), (1, if udp { (0, 120_000) } else { (120_000, 0) }));
        }
    }

    /// A client's port is the other flow's server port, on the same two hosts.
    #[test]
    fn no_two_flows_are_between_the_same_ends() {
        let mut plan = plan();
        let hosts = |client: &str, server: &str| (Some(client.to_string()), Some(server.to_string()));
        for (group, (n, ends)) in
            plan.groups[..2].iter_mut().zip([(1, hosts("edge", "farm")), (0, hosts("farm", "edge"))])
        {
            (group.client, group.server) = ends;
            (group.count, group.ports) = (1, Ports::Shared(client_port(n)));
        }
        plan.groups.truncate(2);
        let (_, flows) = make(&plan).unwrap();
        let ends: Vec<String> = flows.iter().map(|f| format!("{} {}", f.client, f.server)).collect();
        assert_eq!(ends, ["10.1.0.1:10000 10.128.0.1:10001", "10.0.1.1:10001 10.1.0.1:10000"]);
    }

    /// Verifies that flows are at the addresses of their group's hosts after the ports start over. That
    /// happens after 55,535 flows; hosts of a group with few flows keep their addresses.
    #[test]
    fn many_flows_of_many_hosts_are_at_the_addresses_of_these() {
        let mut plan = plan();
        plan.hosts[0].count = 1_000;
        plan.groups.remove(0);
        plan.groups.truncate(1);
        plan.groups[0].count = 60_000;
        let (hosts, flows) = make(&plan).unwrap();
        let last = nth(Ipv4Addr::new(10, 1, 0, 1), 999);
        assert!(flows.iter().all(|f| (Ipv4Addr::new(10, 1, 0, 1)..=last).contains(f.client.ip())));
        assert!(hosts.iter().all(|h| h.tcp.len() == 1));
        let pairs: BTreeSet<(SocketAddrV4, SocketAddrV4)> =
            flows.iter().map(|f| (f.client, f.server)).collect();
        assert_eq!(pairs.len(), 60_000);
    }

    #[test]
    fn a_download_is_sent_by_the_server() {
        let mut plan = plan();
        plan.groups.truncate(1);
        plan.groups[0].direction = Direction::In;
        let (_, flows) = make(&plan).unwrap();
        assert_eq!((flows[0].sender.0, flows[0].receiver.0, flows[0].uploads), (1, 0, false));
    }
}
