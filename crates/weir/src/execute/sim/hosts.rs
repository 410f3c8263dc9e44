//! The hosts of an experiment, with their addresses, before they are part of a world.
//!
//! A host of the experiment is one simulated host for its TCP flows, or several where the ports of one do not
//! suffice, and one node for each end of a UDP flow.

use crate::execute::hosts::{group_hosts, nth, CLIENT, SERVER};
use crate::experiment::plan::{derived, Plan};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use weir_core::link;
use weir_sim::host::{Host, HostConfig};
use weir_sim::udp::{UdpSink, UdpSource};

/// Address of the first further simulated host, for clients that have used up their ports.
const FURTHER_HOSTS: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
/// Interfaces of the clients' and the servers' host, as in the lab.
const MACS: [[u8; 6]; 2] = [[0x02, 0, 0, 0, 1, 0], [0x02, 0, 0, 0, 5, 0]];

/// A host of an experiment.
pub struct ExperimentHost {
    /// Its name, address and access link.
    pub site: Site,
    /// Where its TCP flows end: one simulated host for each round of client ports.
    pub tcp: Vec<TcpHost>,
    /// Where its UDP flows end, each at an address of its own.
    pub udp: Vec<(Ipv4Addr, UdpEnd)>,
}

/// Where a host is in the network.
#[derive(Clone, Debug)]
pub struct Site {
    /// Its name: `clients`, `servers`, or `edge.3` of a group.
    pub name: String,
    /// The name of its group, or its own.
    pub group: String,
    /// Beyond the WAN?
    pub wan: bool,
    /// The node of a graph that it is at, by its number.
    pub node: Option<usize>,
    /// Its address.
    pub address: Ipv4Addr,
    /// Its access link: from it into the network.
    pub up: link::Config,
    /// From the network to it.
    pub down: link::Config,
}

/// A simulated host with ends of TCP flows.
pub struct TcpHost {
    /// Its address.
    pub address: Ipv4Addr,
    /// The node.
    pub host: Host,
    /// How many flows end on it.
    pub endpoints: usize,
    /// The round of client ports that it is for.
    round: u32,
}

/// An end of a UDP flow.
pub enum UdpEnd {
    /// Sends.
    Source(Box<UdpSource>),
    /// Receives.
    Sink(UdpSink),
}

/// The hosts of each group: the number of the first, and how many there are.
pub type HostGroups<'a> = BTreeMap<&'a str, (usize, usize)>;

/// All hosts of an experiment, without flows: the clients' and the servers', then those of the groups.
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
        groups.insert(group.name.as_str(), (all.len(), group.count as usize));
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
        let host = TcpHost::new(plan, mac, &site, &site.name, site.address, 0);
        ExperimentHost { site, tcp: vec![host], udp: Vec::new() }
    }

    /// The number of its simulated host for a round of client ports. If there is none yet, it is made and counted in
    /// `further`.
    pub fn host_for_round(&mut self, plan: &Plan, round: u32, further: &mut u32) -> usize {
        if let Some(i) = self.tcp.iter().position(|h| h.round == round) {
            return i;
        }
        let address = nth(FURTHER_HOSTS, *further);
        *further += 1;
        let name = format!("{}, {round}", self.site.name);
        self.tcp.push(TcpHost::new(plan, mac(1, address), &self.site, &name, address, round));
        self.tcp.len() - 1
    }
}

impl TcpHost {
    /// A host without endpoints. `name` is what its seed is derived from.
    fn new(plan: &Plan, mac: [u8; 6], site: &Site, name: &str, address: Ipv4Addr, round: u32) -> TcpHost {
        let seed = derived(plan.seed, name, "host");
        let host = Host::new(HostConfig { mac, next_hop: next_hop(site), seed });
        TcpHost { address, host, endpoints: 0, round }
    }
}

/// A locally administered address, which says the IP address for people who read captures.
pub fn mac(kind: u8, address: Ipv4Addr) -> [u8; 6] {
    let [a, b, c, d] = address.octets();
    [0x02, kind, a, b, c, d]
}

/// The link-layer address that a host sends to: the clients' or the servers' host on the other side.
pub fn next_hop(site: &Site) -> [u8; 6] {
    MACS[usize::from(!site.wan)]
}
