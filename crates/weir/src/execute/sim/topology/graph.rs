//! Wiring of a graph's nodes and links.
//!
//! A node is a table of addresses that its ports share; a router is not a node of the world. A gateway is
//! between its neighbour on the WAN side and everything else there. Traffic that stays on its LAN side
//! bypasses it.
//!
//! ```text
//! hosts, links ── table ──▶ LAN  gateway  WAN ──▶ link to the neighbour
//!              ◀─ table ───                  ◀─── link from it
//! ```

use super::{add, Builder, Destination, Gate, NodePort, WiredHost};
use crate::experiment::plan::{Graph, Hop};
use std::net::Ipv4Addr;
use weir_core::gateway::{Config, LAN, WAN};
use weir_core::link::Link;
use weir_sim::world::{NodeId, Routes};

/// Contents of a node of the graph.
#[derive(Default)]
struct Place {
    /// Ports that lead to the node, except the one from a gateway's WAN side.
    from: Vec<NodePort>,
    /// Addresses of the hosts at the node.
    addresses: Vec<Ipv4Addr>,
    /// Gateway at the node, if there is one.
    gateway: Option<Gate>,
}

/// Graph in construction.
struct Wiring<'a> {
    graph: &'a Graph,
    /// Nodes of both directions of each link.
    links: Vec<NodeId>,
    places: Vec<Place>,
    /// First hop from each node, by the destination's node.
    routes: Vec<Vec<Option<Hop>>>,
}

impl Wiring<'_> {
    fn link(&self, hop: Hop) -> NodeId {
        self.links[2 * hop.link + usize::from(hop.back)]
    }

    /// Returns the hop from a gateway to its WAN side, and the hop back.
    fn wan(&self, node: usize) -> Option<(Hop, Hop)> {
        let wan = self.graph.nodes[node].wan?;
        let (hop, _) = self.graph.neighbours(node).find(|&(_, other)| other == wan)?;
        Some((hop, Hop { back: !hop.back, ..hop }))
    }

    /// Returns addresses at other nodes, with the first hop towards them.
    fn far(&self, node: usize) -> impl Iterator<Item = (Ipv4Addr, Hop)> + '_ {
        let others = self.places.iter().zip(&self.routes);
        others
            .filter_map(move |(place, routes)| Some((place, routes[node]?)))
            .flat_map(|(place, hop)| place.addresses.iter().map(move |&address| (address, hop)))
    }
}

impl Builder {
    /// Wires a graph, with the hosts at its nodes and its gateways. Returns the gateways.
    pub(super) fn wire_graph(
        &mut self,
        graph: &Graph,
        gateway: Option<&Config>,
        hosts: &[WiredHost],
    ) -> Result<Vec<Gate>, String> {
        let links = graph.directions().map(|(name, link)| {
            let node = self.add_link(name.clone(), link);
            self.capture_at(&name, &[(node, Link::OUT)], &[]);
            node
        });
        let links: Vec<NodeId> = links.collect();
        let routes = (0..graph.nodes.len()).map(|to| graph.routes_to(to)).collect();
        let places = graph.nodes.iter().map(|_| Place::default()).collect();
        let mut wiring = Wiring { graph, links, places, routes };
        for (i, node) in graph.nodes.iter().enumerate() {
            let config = gateway.filter(|_| node.wan.is_some());
            wiring.places[i].gateway = config.map(|c| self.add_gateway(c)).transpose()?;
        }
        self.add_ports(&mut wiring, hosts);
        for i in 0..graph.nodes.len() {
            let near = self.add_downlinks(&wiring, i, hosts);
            self.wire_node(&wiring, i, &near);
        }
        Ok(wiring.places.iter().filter_map(|place| place.gateway).collect())
    }

    /// Collects the ports that lead to each node: of hosts, links and gateways.
    fn add_ports(&mut self, wiring: &mut Wiring, hosts: &[WiredHost]) {
        for host in hosts {
            let Some(node) = host.site.node else { continue };
            let ports = self.add_uplink(host);
            let place = &mut wiring.places[node];
            place.from.extend(ports);
            place.addresses.extend(&host.addresses);
        }
        for i in 0..wiring.graph.nodes.len() {
            for (hop, to) in wiring.graph.neighbours(i) {
                let from_wan = wiring.wan(to).is_some_and(|(_, back)| back == hop);
                if !(from_wan && wiring.places[to].gateway.is_some()) {
                    let port = (wiring.link(hop), Link::OUT);
                    wiring.places[to].from.push(port);
                }
            }
        }
    }

    /// Adds the links to the hosts at a node. Returns the destinations of frames for them.
    fn add_downlinks(&mut self, wiring: &Wiring, i: usize, hosts: &[WiredHost]) -> Vec<Destination> {
        let place = &wiring.places[i];
        let gateway = place.gateway.map(|gateway| gateway.leaves(LAN));
        let ports: Vec<NodePort> = place.from.iter().copied().chain(gateway).collect();
        let here = hosts.iter().filter(|host| host.site.node == Some(i));
        here.flat_map(|host| self.add_downlink(host, &ports, true)).collect()
    }

    fn wire_node(&mut self, wiring: &Wiring, i: usize, near: &[Destination]) {
        let place = &wiring.places[i];
        let (mut table, mut local, mut beyond) = (Routes::new(), Routes::new(), Vec::new());
        let wan = wiring.wan(i).zip(place.gateway);
        for destination in near {
            add(&mut table, destination);
            add(&mut local, destination);
        }
        for (address, hop) in wiring.far(i) {
            match wan {
                Some(((to_wan, _), gateway)) if hop == to_wan => {
                    table.add(address, gateway.port(LAN));
                    beyond.push(address);
                }
                _ => {
                    table.add(address, (wiring.link(hop), Link::IN));
                    local.add(address, (wiring.link(hop), Link::IN));
                }
            }
        }
        let table = self.world.routes(table);
        place.from.iter().for_each(|&port| self.world.route_by(port, table));
        let Some(((to_wan, from_wan), gateway)) = wan else { return };
        let from_wan = (wiring.link(from_wan), Link::OUT);
        let (lan_port, wan_port) = (gateway.leaves(LAN), gateway.leaves(WAN));
        self.world.wire(from_wan, gateway.port(WAN));
        self.world.wire(wan_port, (wiring.link(to_wan), Link::IN));
        self.world.route(lan_port, local);
        let name = &wiring.graph.nodes[i].name;
        self.capture_at(&format!("{name}-wan"), &[from_wan, wan_port], &[]);
        self.capture_at(&format!("{name}-lan"), &[lan_port], &[]);
        if !beyond.is_empty() {
            self.capture_at(&format!("{name}-lan"), &place.from, &beyond);
        }
    }
}
