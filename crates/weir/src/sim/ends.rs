//! The hosts of a plan, and the two ends of each of its flows on them.

use super::series::of_sender;
use super::tcp;
use crate::hosts::{client_port, round_of, CLIENT, SERVER};
use crate::plan::{self, derived, Flow, Plan, Protocol};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use weir_core::gateway::Direction;
use weir_core::time::Time;
use weir_sim::host::{Endpoint, EndpointId, Host, HostConfig, Source};
use weir_sim::tcp::TcpConfig;
use weir_sim::udp::{UdpConfig, UdpSink, UdpSource};

/// Addresses of the first further host on the LAN and beyond the WAN.
const FURTHER: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 128, 0, 1)];
/// Likewise, of the ends of UDP flows, which have addresses of their own.
const UDP: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 64, 0, 1), Ipv4Addr::new(10, 192, 0, 1)];
/// Likewise, of hosts for further rounds of client ports.
const ROUNDS: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
/// Interfaces of the path's own two hosts, as in the lab.
const MACS: [[u8; 6]; 2] = [[0x02, 0, 0, 0, 1, 0], [0x02, 0, 0, 0, 5, 0]];

/// A place of the network, with what is there.
pub struct Place {
    /// Where it is.
    pub site: Site,
    /// The host, and one more for each time that client ports have been used up.
    pub hosts: Vec<Building>,
    /// Ends of UDP flows, with their addresses.
    pub udp: Vec<(Ipv4Addr, Udp)>,
}

/// A host that is not part of a world yet.
pub struct Building {
    /// Its address.
    pub address: Ipv4Addr,
    /// The host with its ends of TCP flows.
    pub host: Host,
    /// How many these are.
    pub endpoints: usize,
    /// Which round of client ports it is for.
    round: usize,
}

/// Where a host is.
#[derive(Clone, Debug)]
pub struct Site {
    /// Its name: `clients`, `servers`, or `edge.3` of a group.
    pub name: String,
    /// The name of its group, or its own.
    pub group: String,
    /// Beyond the WAN?
    pub wan: bool,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its access link: from it into the network.
    pub up: plan::Link,
    /// From the network to it.
    pub down: plan::Link,
}

/// An end of a UDP flow.
pub enum Udp {
    /// Sends.
    Source(UdpSource),
    /// Receives.
    Sink(UdpSink),
}

/// A flow between two places, which are told by their number.
#[derive(Clone, Copy, Debug)]
pub struct Between {
    /// The client's address and port.
    pub client: SocketAddrV4,
    /// The server's.
    pub server: SocketAddrV4,
    /// Is the client the sender?
    pub uploads: bool,
    /// Payload bytes of a full segment or datagram.
    pub payload: u16,
    /// Who sends the data.
    pub sender: (usize, End),
    /// Who receives it.
    pub receiver: (usize, End),
}

/// An end of a flow at its place.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// An endpoint of a host, by the number of the host there.
    Tcp(usize, EndpointId),
    /// By its number there.
    Udp(usize),
}

/// Makes the places of a plan and the ends of all flows, in its order. Errors name the key that cannot be simulated.
pub fn make(plan: &Plan) -> Result<(Vec<Place>, Vec<Between>), String> {
    let (all, groups) = places(plan);
    let mut places = Places { plan, all, further: 0 };
    let mut flows = Vec::new();
    let mut settings: Option<(&str, Option<TcpConfig>)> = None;
    for (n, flow) in plan.flows().enumerate() {
        let group = flow.group;
        if settings.as_ref().is_none_or(|(id, _)| *id != group.id) {
            let udp = matches!(group.protocol, Protocol::Udp { .. });
            settings = Some((&group.id, (!udp).then(|| tcp::config(plan, group)).transpose()?));
        }
        let at = |side: &Option<String>, own: usize| {
            let hosts = side.as_ref().and_then(|name| groups.get(name.as_str()));
            hosts.map_or(own, |&(first, count)| first + flow.index as usize % count)
        };
        let sides = (at(&group.client, 0), at(&group.server, 1));
        flows.push(match settings.as_ref().and_then(|(_, tcp)| tcp.as_ref()) {
            Some(tcp) => places.tcp_flow(&flow, n, tcp, sides),
            None => places.udp_flow(&flow, n, sides),
        });
    }
    Ok((places.all, flows))
}

/// All places: the path's own two, then those of the groups. By group: its first, and how many.
fn places(plan: &Plan) -> (Vec<Place>, BTreeMap<&str, (usize, usize)>) {
    let bare = plan::Link::default();
    let own = |i: usize, name: &str, address| {
        let (name, wan) = (name.to_string(), i == 1);
        place(plan, MACS[i], Site { group: name.clone(), name, wan, address, up: bare, down: bare })
    };
    let mut all = vec![own(0, "clients", CLIENT), own(1, "servers", SERVER)];
    let mut next = [0, 0];
    let mut groups = BTreeMap::new();
    for group in &plan.hosts {
        groups.insert(group.name.as_str(), (all.len(), group.count as usize));
        for k in 0..group.count {
            let side = usize::from(group.wan);
            let address = nth(FURTHER[side], next[side]);
            next[side] += 1;
            let (name, group_name) = (format!("{}.{k}", group.name), group.name.clone());
            let (wan, up, down) = (group.wan, group.up, group.down);
            all.push(place(plan, mac(1, address), Site { name, group: group_name, wan, address, up, down }));
        }
    }
    (all, groups)
}

fn nth(first: Ipv4Addr, n: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(first.to_bits() + n)
}

/// A locally administered address, which says the IP address for people who read captures.
fn mac(kind: u8, address: Ipv4Addr) -> [u8; 6] {
    let [a, b, c, d] = address.octets();
    [0x02, kind, a, b, c, d]
}

/// A place where nothing ends yet.
fn place(plan: &Plan, mac: [u8; 6], site: Site) -> Place {
    let host = building(plan, mac, &site, &site.name, site.address, 0);
    Place { site, hosts: vec![host], udp: Vec::new() }
}

/// A host without endpoints; its next hop is the path's own host on the other side.
fn building(plan: &Plan, mac: [u8; 6], site: &Site, name: &str, address: Ipv4Addr, round: usize) -> Building {
    let seed = derived(plan.seed, name, "host");
    let host = Host::new(HostConfig { mac, next_hop: next_hop(site), seed });
    Building { address, host, endpoints: 0, round }
}

impl Place {
    /// The number of the host here for a round of client ports, made if there is none yet; `made` counts those.
    fn of_round(&mut self, plan: &Plan, round: usize, made: &mut u32) -> usize {
        if let Some(i) = self.hosts.iter().position(|h| h.round == round) {
            return i;
        }
        let address = nth(ROUNDS, *made);
        *made += 1;
        let name = format!("{}, {round}", self.site.name);
        self.hosts.push(building(plan, mac(1, address), &self.site, &name, address, round));
        self.hosts.len() - 1
    }
}

fn next_hop(site: &Site) -> [u8; 6] {
    MACS[usize::from(!site.wan)]
}

/// Places under way.
struct Places<'a> {
    plan: &'a Plan,
    all: Vec<Place>,
    /// Hosts made for further rounds of client ports.
    further: u32,
}

impl Places<'_> {
    fn tcp_flow(
        &mut self,
        flow: &Flow,
        n: usize,
        tcp: &TcpConfig,
        (client, server): (usize, usize),
    ) -> Between {
        let plan = self.plan;
        let host = self.all[client].of_round(plan, round_of(n), &mut self.further);
        let addresses = [
            SocketAddrV4::new(self.all[client].hosts[host].address, client_port(n)),
            SocketAddrV4::new(self.all[server].site.address, flow.server_port),
        ];
        let uploads = flow.direction() == Direction::Out;
        let mut end = |place: usize, host: usize, opens: bool| {
            let own = usize::from(!opens);
            let source = (uploads == opens).then(|| source(plan, flow));
            let endpoint = Endpoint {
                opens,
                local: addresses[own],
                remote: addresses[1 - own],
                start: Time::ZERO + flow.start,
                tcp: tcp.clone(),
                source,
                bin: plan.bin,
                trace: source.is_some() && traces(plan),
            };
            let at = &mut self.all[place].hosts[host];
            at.endpoints += 1;
            (place, End::Tcp(host, at.host.add(endpoint)))
        };
        let (client, server) = (end(client, host, true), end(server, 0, false));
        let (sender, receiver) = if uploads { (client, server) } else { (server, client) };
        Between { client: addresses[0], server: addresses[1], uploads, payload: tcp.mss, sender, receiver }
    }

    fn udp_flow(&mut self, flow: &Flow, n: usize, sides: (usize, usize)) -> Between {
        let Protocol::Udp { rate, datagram, on_off } = &flow.group.protocol else {
            unreachable!("the caller has looked");
        };
        let own = [0, 1].map(|side| nth(UDP[side], n as u32));
        let client = SocketAddrV4::new(own[0], client_port(n));
        let server = SocketAddrV4::new(own[1], flow.server_port);
        let uploads = flow.direction() == Direction::Out;
        let ((from, local), (to, remote)) = match uploads {
            true => ((sides.0, client), (sides.1, server)),
            false => ((sides.1, server), (sides.0, client)),
        };
        let source = UdpSource::new(UdpConfig {
            mac: mac(2, *local.ip()),
            next_hop: next_hop(&self.all[from].site),
            local,
            remote,
            rate: *rate,
            datagram: *datagram,
            start: Time::ZERO + flow.start,
            until: Time::ZERO + flow.end(self.plan.duration),
            bytes: flow.bytes,
            on_off: on_off.clone(),
            seed: derived(self.plan.seed, &flow.id, "udp"),
        });
        let sink = UdpSink::new(remote, local, self.plan.bin);
        let mut end = |place: usize, address: &SocketAddrV4, udp: Udp| {
            let here = &mut self.all[place].udp;
            here.push((*address.ip(), udp));
            (place, End::Udp(here.len() - 1))
        };
        let sender = end(from, &local, Udp::Source(source));
        let receiver = end(to, &remote, Udp::Sink(sink));
        Between { client, server, uploads, payload: *datagram, sender, receiver }
    }
}

/// Is every change of the senders recorded?
fn traces(plan: &Plan) -> bool {
    plan.sample.is_none() && plan.series.iter().any(|&kind| of_sender(kind))
}

/// What the application of the sender writes.
fn source(plan: &Plan, flow: &Flow) -> Source {
    let rate = match flow.group.protocol {
        Protocol::Tcp { app_rate } => app_rate,
        Protocol::Udp { .. } => None,
    };
    Source { bytes: flow.bytes, until: until(plan, flow), rate }
}

/// When a flow stops sending. What ends with the experiment is not closed: nobody would see what comes of it.
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
    use crate::plan::{FlowGroup, HostGroup};
    use std::collections::BTreeSet;
    use weir_core::rate::Rate;
    use weir_core::time::Duration;

    fn plan() -> Plan {
        let hosts = |name: &str, wan, count| HostGroup {
            name: name.into(),
            wan,
            count,
            up: plan::Link::default(),
            down: plan::Link::default(),
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
        let (places, flows) = make(&plan()).unwrap();
        let names: Vec<&str> = places.iter().map(|p| p.site.name.as_str()).collect();
        assert_eq!(names, ["clients", "servers", "edge.0", "edge.1", "farm.0", "farm.1"]);
        let at: Vec<(usize, usize)> = flows.iter().map(|f| (f.sender.0, f.receiver.0)).collect();
        assert_eq!(at, [(0, 1), (0, 1), (0, 1), (2, 4), (3, 5), (2, 4), (0, 4)]);
        let endpoints: Vec<usize> = places.iter().map(|p| p.hosts[0].endpoints).collect();
        assert_eq!(endpoints, [3, 3, 2, 1, 2, 1]);
        let addresses: Vec<String> = flows.iter().map(|f| format!("{} {}", f.client, f.server)).collect();
        assert_eq!(addresses[1], "10.0.0.1:10001 10.0.0.2:5001");
        assert_eq!(addresses[4], "10.1.0.2:10004 10.128.0.2:5001");
        assert_eq!(addresses[6], "10.64.0.7:10006 10.192.0.7:5001");
        assert_eq!((places[0].udp.len(), places[4].udp.len()), (1, 1));
    }

    #[test]
    fn client_ports_never_run_out() {
        let mut plan = plan();
        plan.groups.truncate(1);
        plan.groups[0].count = 120_000;
        let (places, flows) = make(&plan).unwrap();
        let pairs: BTreeSet<(SocketAddrV4, SocketAddrV4)> =
            flows.iter().map(|f| (f.client, f.server)).collect();
        assert_eq!(pairs.len(), 120_000);
        let addresses: Vec<String> = places[0].hosts.iter().map(|h| h.address.to_string()).collect();
        assert_eq!(addresses, ["10.0.0.1", "10.0.1.1", "10.0.1.2"]);
        assert_eq!((places[1].hosts.len(), places[1].hosts[0].endpoints), (1, 120_000));
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
