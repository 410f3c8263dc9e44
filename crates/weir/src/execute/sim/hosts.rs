//! The hosts of an experiment with their addresses, before they are added to a world.
//!
//! A host of the experiment is one simulated host for its TCP flows, or several if the ports of one do not
//! suffice. Each end of a UDP flow is a node of its own at the address of a simulated host.

use crate::execute::hosts::{group_hosts, nth, CLIENT, SERVER};
use crate::experiment::plan::{derived, Plan};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use weir_core::link;
use weir_sim::host::{Host, HostConfig};
use weir_sim::udp::{UdpSink, UdpSource};

/// Address of the first further simulated host, for clients that have used all their ports.
const FURTHER_HOSTS: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
/// Hardware addresses of the clients' and the servers' host, as in the lab.
const MACS: [[u8; 6]; 2] = [[0x02, 0, 0, 0, 1, 0], [0x02, 0, 0, 0, 5, 0]];

/// A host of an experiment.
pub struct ExperimentHost {
    /// Name, address and access link.
    pub site: Site,
    /// Simulated hosts: the first has the host's address, further ones are for client ports in use.
    pub tcp: Vec<TcpHost>,
    /// Ends of its UDP flows.
    pub udp: Vec<UdpEnd>,
}

/// Place of a host in the network.
#[derive(Clone, Debug)]
pub struct Site {
    /// Name: `clients`, `servers`, or `edge.3` of a group.
    pub name: String,
    /// Name of its group, or its own name.
    pub group: String,
    /// True if the host is beyond the WAN.
    pub wan: bool,
    /// Number of the graph's node that the host is at.
    pub node: Option<usize>,
    /// Address of the host.
    pub address: Ipv4Addr,
    /// Access link from the host into the network.
    pub up: link::Config,
    /// Access link from the network to the host.
    pub down: link::Config,
}

/// Simulated host: an address, and the ends of its TCP flows.
pub struct TcpHost {
    /// Address of the simulated host.
    pub address: Ipv4Addr,
    /// Hardware address of its interface.
    pub mac: [u8; 6],
    /// Node of the world.
    pub host: Host,
    /// Number of TCP flows that end on it.
    pub endpoints: usize,
}

/// End of a UDP flow.
pub enum UdpEnd {
    /// Sender.
    Source(Box<UdpSource>),
    /// Receiver.
    Sink(Box<UdpSink>),
}

/// Hosts of each group: the number of the first one, and their count.
pub type HostGroups<'a> = BTreeMap<&'a str, (usize, u32)>;

/// Returns all hosts of an experiment, without flows: the clients' and the servers', then those of the
/// groups.
pub fn all(plan: &Plan) -> (Vec<ExperimentHost>, HostGroups<'_>) {
    let bare = link::Config::BARE;
    let end_of_path = |i: usize, name: &str, address| {
        let (name, wan) = (name.to_string(), i == 1);
        let site = Site { group: name.clone(), name, wan, node: None, address, up: bare, down: bare };
        ExperimentHost::new(plan, MACS[i], site)
    };
    let mut all = vec![end_of_path(0, "clients", CLIENT), end_of_path(1, "servers", SERVER)];
    let mut groups = BTreeMap::new();
    for (group, first) in plan.hosts.iter().zip(group_hosts(plan)) {
        groups.insert(group.name.as_str(), (all.len(), group.count));
        for k in 0..group.count {
            let address = nth(first, k);
            let (name, group_name) = (format!("{}.{k}", group.name), group.name.clone());
            let (wan, node, up, down) = (group.wan, group.node, group.up, group.down);
            let site = Site { name, group: group_name, wan, node, address, up, down };
            all.push(ExperimentHost::new(plan, mac(1, address), site));
        }
    }
    (all, groups)
}

impl ExperimentHost {
    fn new(plan: &Plan, mac: [u8; 6], site: Site) -> ExperimentHost {
        let host = TcpHost::new(plan, mac, &site, &site.name, site.address);
        ExperimentHost { site, tcp: vec![host], udp: Vec::new() }
    }

    /// Returns the address of the `n`-th simulated host. Makes the next one if there are only `n`, and counts
    /// it in `further`.
    pub fn address(&mut self, plan: &Plan, n: usize, further: &mut u32) -> Ipv4Addr {
        if let Some(host) = self.tcp.get(n) {
            return host.address;
        }
        let address = nth(FURTHER_HOSTS, *further);
        *further += 1;
        let name = format!("{}, {n}", self.site.name);
        self.tcp.push(TcpHost::new(plan, mac(1, address), &self.site, &name, address));
        address
    }
}

impl TcpHost {
    /// Returns a host without endpoints. Its seed is derived from `name`.
    fn new(plan: &Plan, mac: [u8; 6], site: &Site, name: &str, address: Ipv4Addr) -> TcpHost {
        let seed = derived(plan.seed, name, "host");
        let host = Host::new(HostConfig { mac, next_hop: next_hop(site), seed });
        TcpHost { address, mac, host, endpoints: 0 }
    }
}

/// Returns a locally administered address that contains the IP address, for readers of captures.
pub fn mac(kind: u8, address: Ipv4Addr) -> [u8; 6] {
    let [a, b, c, d] = address.octets();
    [0x02, kind, a, b, c, d]
}

/// Returns the link-layer destination of a host's frames: the clients' or the servers' host on the other
/// side.
pub fn next_hop(site: &Site) -> [u8; 6] {
    MACS[usize::from(!site.wan)]
}
