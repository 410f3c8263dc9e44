//! The hosts of a plan, and the two ends of each of its flows on them.

use super::series::of_sender;
use super::tcp;
use crate::hosts::{client_port, CLIENT, SERVER};
use crate::plan::{self, derived, Flow, FlowGroup, Plan, Protocol};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use weir_core::gateway::Direction;
use weir_core::time::Time;
use weir_sim::host::{Endpoint, EndpointId, Host, HostConfig, Source};
use weir_sim::tcp::TcpConfig;

/// Addresses of the first further host on the LAN and beyond the WAN.
const FURTHER: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 128, 0, 1)];
/// Interfaces of the path's own two hosts, as in the lab.
const MACS: [[u8; 6]; 2] = [[0x02, 0, 0, 0, 1, 0], [0x02, 0, 0, 0, 5, 0]];

/// A host that is not part of a world yet.
pub struct Place {
    /// Where it is.
    pub site: Site,
    /// The host itself.
    pub host: Host,
    /// Endpoints on it.
    pub endpoints: usize,
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

/// One end of a flow: a host, by its place in the list of all, and the endpoint on it.
pub type End = (usize, EndpointId);

/// A flow between two hosts.
#[derive(Clone, Copy, Debug)]
pub struct Between {
    /// The client's address and port.
    pub client: SocketAddrV4,
    /// The server's.
    pub server: SocketAddrV4,
    /// Who sends the data.
    pub sender: End,
    /// Who receives it.
    pub receiver: End,
    /// Is the client the sender?
    pub uploads: bool,
    /// Payload bytes of a full segment.
    pub mss: u16,
}

/// Makes the hosts and the ends of all flows, in the order of the plan. Errors name the key that cannot be simulated.
pub fn make(plan: &Plan) -> Result<(Vec<Place>, Vec<Between>), String> {
    let (mut places, groups) = places(plan);
    let mut flows = Vec::new();
    let mut settings: Option<(&str, TcpConfig)> = None;
    for (n, flow) in plan.flows().enumerate() {
        let group = flow.group;
        let tcp = match &settings {
            Some((id, tcp)) if *id == group.id => tcp.clone(),
            _ => tcp::config(plan, group)?,
        };
        settings = Some((&group.id, tcp.clone()));
        let at = |side: &Option<String>, own: usize| match side {
            None => own,
            Some(name) => {
                groups.get(name.as_str()).map_or(own, |&(first, count)| first + flow.index as usize % count)
            }
        };
        let (client, server) = (at(&group.client, 0), at(&group.server, 1));
        flows.push(between(plan, &flow, n, tcp, &mut places, (client, server)));
    }
    Ok((places, flows))
}

/// All hosts: the path's own two, then those of the groups. By group: its first host, and how many.
fn places(plan: &Plan) -> (Vec<Place>, BTreeMap<&str, (usize, usize)>) {
    let bare = plan::Link::default();
    let own = |i: usize, name: &str, address| {
        let (name, wan) = (name.to_string(), i == 1);
        place(plan, MACS[i], Site { group: name.clone(), name, wan, address, up: bare, down: bare })
    };
    let mut all = vec![own(0, "clients", CLIENT), own(1, "servers", SERVER)];
    let mut next = FURTHER.map(Ipv4Addr::to_bits);
    let mut groups = BTreeMap::new();
    for group in &plan.hosts {
        groups.insert(group.name.as_str(), (all.len(), group.count as usize));
        for k in 0..group.count {
            let bits = &mut next[usize::from(group.wan)];
            let address = Ipv4Addr::from_bits(*bits);
            *bits += 1;
            let [a, b, c, d] = address.octets();
            let (name, group_name) = (format!("{}.{k}", group.name), group.name.clone());
            let (wan, up, down) = (group.wan, group.up, group.down);
            all.push(place(
                plan,
                [0x02, 1, a, b, c, d],
                Site { name, group: group_name, wan, address, up, down },
            ));
        }
    }
    (all, groups)
}

/// A host without endpoints; its next hop is the path's own host on the other side.
fn place(plan: &Plan, mac: [u8; 6], site: Site) -> Place {
    let next_hop = MACS[usize::from(!site.wan)];
    let seed = derived(plan.seed, &site.name, "host");
    Place { site, host: Host::new(HostConfig { mac, next_hop, seed }), endpoints: 0 }
}

fn between(
    plan: &Plan,
    flow: &Flow,
    n: usize,
    tcp: TcpConfig,
    places: &mut [Place],
    (client, server): (usize, usize),
) -> Between {
    let addresses = [
        SocketAddrV4::new(places[client].site.address, client_port(n)),
        SocketAddrV4::new(places[server].site.address, flow.server_port),
    ];
    let sends = source(plan, flow);
    let (uploads, mss) = (flow.direction() == Direction::Out, tcp.mss);
    let mut end = |place: usize, opens: bool| {
        let own = usize::from(!opens);
        let source = (uploads == opens).then_some(sends);
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
        places[place].endpoints += 1;
        (place, places[place].host.add(endpoint))
    };
    let (client, server) = (end(client, true), end(server, false));
    let (sender, receiver) = if uploads { (client, server) } else { (server, client) };
    Between { client: addresses[0], server: addresses[1], sender, receiver, uploads, mss }
}

/// Is every change of the senders recorded?
fn traces(plan: &Plan) -> bool {
    plan.sample.is_none() && plan.series.iter().any(|&kind| of_sender(kind))
}

/// What the application of the sender writes.
fn source(plan: &Plan, flow: &Flow) -> Source {
    // What ends with the experiment is not closed: nobody sees what comes of it.
    let end = flow.end(plan.duration);
    let until = if end < plan.duration { Time::ZERO + end } else { Time::MAX };
    Source { bytes: flow.bytes, until, rate: app_rate(flow.group) }
}

fn app_rate(group: &FlowGroup) -> Option<weir_core::rate::Rate> {
    match group.protocol {
        Protocol::Tcp { app_rate } => app_rate,
        Protocol::Udp { .. } => None,
    }
}
