//! Hosts in both worlds: addresses, ports, and default buffers.

use crate::experiment::plan::{derived, BoxKind, Flow, HostGroup, Ip, Plan};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use weir_core::gateway::Direction;
use weir_core::link;
use weir_core::time::Duration;

/// Address of the clients' host.
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// Address of the servers' host.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// Addresses of the hosts and the box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Address of the clients' host.
    pub client: IpAddr,
    /// Address of the servers' host.
    pub server: IpAddr,
    /// Address of a router between them, towards the servers.
    pub box_on_wan: IpAddr,
    /// Address of this router towards the clients.
    pub box_on_lan: IpAddr,
}

impl Addresses {
    /// Returns the addresses in the protocol `ip`.
    pub fn of(ip: Ip) -> Addresses {
        let [client, server, box_on_wan, box_on_lan] = [1, 2, 3, 4].map(|n| match ip {
            Ip::V4 => Ipv4Addr::new(10, 0, 0, n).into(),
            Ip::V6 => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n.into()).into(),
        });
        Addresses { client, server, box_on_wan, box_on_lan }
    }

    /// Returns the clients' address beyond a box of this kind, as gateway and servers see it.
    pub fn client_on_wan(&self, kind: BoxKind) -> IpAddr {
        match kind {
            BoxKind::Nat => self.box_on_wan,
            BoxKind::Bridge | BoxKind::Router | BoxKind::Host => self.client,
        }
    }
}

/// Address of the first group host on the LAN, and of the first one beyond the WAN.
const GROUP_HOSTS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 128, 0, 1)];
/// Prefix length of one route.
const PREFIX: u32 = 16;

/// Returns the `n`-th address after `first`.
pub fn nth(first: Ipv4Addr, n: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(first.to_bits() + n)
}

/// Returns the address of the first host of each group of a plan. The group's other hosts follow it.
pub fn group_hosts(plan: &Plan) -> Vec<Ipv4Addr> {
    let mut next = [0, 0];
    let first = |group: &HostGroup| {
        let side = usize::from(group.wan);
        let first = nth(GROUP_HOSTS[side], next[side]);
        next[side] += group.count;
        first
    };
    plan.hosts.iter().map(first).collect()
}

/// Returns the networks of the groups' hosts, on the LAN or beyond the WAN, as prefixes.
pub fn group_networks(plan: &Plan, wan: bool) -> Vec<String> {
    let count: u32 = plan.hosts.iter().filter(|group| group.wan == wan).map(|group| group.count).sum();
    let Some(last) = count.checked_sub(1) else { return Vec::new() };
    let first = GROUP_HOSTS[usize::from(wan)].to_bits() >> (32 - PREFIX);
    let end = nth(GROUP_HOSTS[usize::from(wan)], last).to_bits() >> (32 - PREFIX);
    (first..=end).map(|n| format!("{}/{PREFIX}", Ipv4Addr::from_bits(n << (32 - PREFIX)))).collect()
}

/// Addresses of the ends of a lab's flows.
pub struct Ends<'a> {
    own: Addresses,
    kind: BoxKind,
    /// First host of each group, and the number of its hosts.
    groups: BTreeMap<&'a str, (Ipv4Addr, u32)>,
}

/// Addresses of a flow's two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowEnds {
    /// The client.
    pub client: SocketAddr,
    /// The client as gateway and servers see it.
    pub client_on_wan: SocketAddr,
    /// The server.
    pub server: SocketAddr,
}

impl FlowEnds {
    /// Returns sender and receiver of data in this direction, as the gateway sees them.
    pub fn towards(&self, direction: Direction) -> (SocketAddr, SocketAddr) {
        match direction {
            Direction::Out => (self.client_on_wan, self.server),
            Direction::In => (self.server, self.client_on_wan),
        }
    }
}

impl<'a> Ends<'a> {
    /// Returns the addresses for a plan.
    pub fn of(plan: &'a Plan) -> Ends<'a> {
        let groups = plan.hosts.iter().zip(group_hosts(plan));
        Ends {
            own: Addresses::of(plan.lab.ip),
            kind: plan.lab.kind,
            groups: groups.map(|(group, first)| (group.name.as_str(), (first, group.count))).collect(),
        }
    }

    /// Returns the addresses of the plan's `n`-th flow.
    pub fn of_flow(&self, flow: &Flow, n: usize) -> FlowEnds {
        let host = |group: &Option<String>, own: IpAddr| {
            let group = group.as_ref().and_then(|name| self.groups.get(name.as_str()));
            group.map_or(own, |&(first, count)| nth(first, flow.host_of(count)).into())
        };
        let client = host(&flow.group.client, self.own.client);
        let on_wan = match self.kind {
            BoxKind::Nat => self.own.box_on_wan,
            BoxKind::Bridge | BoxKind::Router | BoxKind::Host => client,
        };
        let server = host(&flow.group.server, self.own.server);
        FlowEnds {
            client: SocketAddr::new(client, client_port(n)),
            client_on_wan: SocketAddr::new(on_wan, client_port(n)),
            server: SocketAddr::new(server, flow.server_port),
        }
    }
}

/// First client port; ports are assigned in the order of the plan.
const FIRST_PORT: u16 = 10_000;
/// Number of client ports.
const PORTS: usize = (u16::MAX - FIRST_PORT) as usize;
/// Largest receive buffer that Linux allows by default for one connection.
pub const DEFAULT_BUFFER: u64 = 6 << 20;

/// Returns the client's port of the plan's `n`-th flow. The ports start over after 55,535 flows. Flows with
/// the same port must differ in the server's port or in the client's address.
pub fn client_port(n: usize) -> u16 {
    FIRST_PORT + (n % PORTS) as u16
}

/// Returns the seed for the random draws of a datagram flow, equal in both worlds.
pub fn udp_seed(plan: &Plan, flow: &Flow) -> u64 {
    derived(plan.seed, &format!("{}.{}", flow.group.drawn_as(), flow.index), "udp")
}

/// Returns the buffer that a connection needs to fill the path: four times the bytes in flight and queued.
/// The factor covers that the kernel's buffers hold about half of their size in payload and grow in steps. A
/// gateway also holds acknowledgements beside the data in flight. Without a rate on the path,
/// the gateway's fastest flow determines it. Returns `None` if the default suffices.
pub fn buffers(plan: &Plan) -> Option<u64> {
    let (links, rtt) = match &plan.graph {
        None => (vec![plan.path.lan, plan.path.wan_out, plan.path.wan_back], plan.path.rtt()),
        // The sum over all links is an upper bound of any flow's path.
        Some(graph) => {
            let links: Vec<link::Config> = graph.directions().map(|(_, link)| *link).collect();
            let rtt = links.iter().fold(Duration::ZERO, |sum, link| sum + link.delay);
            (links, rtt)
        }
    };
    let policies = plan.gateway.iter().flat_map(|g| &g.classes).filter_map(|c| c.ack.as_ref());
    let shaped = policies.map(|a| a.release.rate());
    let rate = links.iter().filter_map(|l| l.rate).min().or(shaped.max())?;
    let queued = |l: &link::Config| l.rate.map_or(0, |rate| l.queue.most_bytes(rate, 1514));
    let needed = links.iter().map(queued).fold(rate.bytes_in(rtt), u64::saturating_add);
    // The kernel stores sizes in an `int`.
    Some(needed.saturating_mul(4).min(1 << 30)).filter(|&bytes| bytes > DEFAULT_BUFFER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::plan::{FlowGroup, Ports};
    use std::collections::BTreeSet;
    use weir_core::rate::Rate;

    #[test]
    fn no_two_connections_are_between_the_same_ports() {
        let mut plan = Plan::new("t", Duration::from_secs(1));
        let group = |i: u16| FlowGroup {
            count: 10_000,
            ports: Ports::Shared(5001 + i),
            ..FlowGroup::new(&format!("g{i}"))
        };
        plan.groups = (0..7).map(group).collect();
        let pairs: BTreeSet<(u16, u16)> =
            plan.flows().enumerate().map(|(n, f)| (client_port(n), f.server_port)).collect();
        assert_eq!(pairs.len(), 70_000);
    }

    fn hosts(name: &str, wan: bool, count: u32) -> HostGroup {
        let bare = link::Config::BARE;
        HostGroup { name: name.into(), wan, node: None, count, up: bare, down: bare }
    }

    #[test]
    fn groups_of_hosts_have_addresses_one_after_the_other() {
        let mut plan = Plan::new("t", Duration::from_secs(1));
        assert_eq!(group_networks(&plan, false), [""; 0]);
        plan.hosts =
            vec![hosts("a", false, 3), hosts("s", true, 2), hosts("b", false, 70_000), hosts("t", true, 1)];
        let first: Vec<String> = group_hosts(&plan).iter().map(ToString::to_string).collect();
        assert_eq!(first, ["10.1.0.1", "10.128.0.1", "10.1.0.4", "10.128.0.3"]);
        // There are 70,003 hosts from 10.1.0.1 on, and the last is 10.2.17.115.
        assert_eq!(group_networks(&plan, false), ["10.1.0.0/16", "10.2.0.0/16"]);
        assert_eq!(group_networks(&plan, true), ["10.128.0.0/16"]);
        let group =
            FlowGroup { client: Some("b".into()), server: Some("t".into()), count: 2, ..FlowGroup::new("f") };
        plan.groups = vec![group];
        let ends = |plan: &Plan, n| Ends::of(plan).of_flow(&plan.flows().nth(n).unwrap(), n);
        let found = ends(&plan, 1);
        assert_eq!(
            (found.client.to_string(), found.server.to_string()),
            ("10.1.0.5:10001".into(), "10.128.0.3:5001".into())
        );
        assert_eq!(found.towards(Direction::In), (found.server, found.client));
        plan.lab.kind = BoxKind::Nat;
        assert_eq!(ends(&plan, 1).client_on_wan.to_string(), "10.0.0.3:10001");
    }

    #[test]
    fn long_fat_paths_get_larger_buffers() {
        let mut p = Plan::new("t", Duration::from_secs(1));
        p.path.wan_out.rate = Some(Rate::mbit(1000));
        p.path.wan_out.delay = Duration::from_millis(100);
        p.path.wan_out.queue = link::QueueLimit::Bytes(500_000);
        assert_eq!(buffers(&p), Some(4 * 13_000_000));
        p.path.wan_out.rate = Some(Rate::mbit(10));
        assert_eq!(buffers(&p), None);
    }
}
