//! Translation of a plan to a wired world.
//!
//! ```text
//! clients ─ up ───┐                                             ┌─ down ─ servers
//!                 ├─ lan.out ── LAN  gateway  WAN ── wan.out ───┤
//! clients ─ down ─┴─ lan.back ─                   ── wan.back ──┴─ up ─── servers
//! ```
//!
//! A link with nothing to emulate is not a node; its frames are counted as they pass. If the plan has a graph
//! instead, `graph` wires it.

mod graph;

use super::flows::{self, FlowEnd, FlowEnds};
use super::hosts::{ExperimentHost, Site, TcpHost, UdpEnd};
use crate::experiment::plan::{derived, Plan};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use weir_core::combined::Combined;
use weir_core::flow::Key;
use weir_core::gateway::{ClassConfig, Config, Direction, Gateway, LAN, WAN};
use weir_core::link::{self, Link};
use weir_core::node::Port;
use weir_core::sharing::Sharing;
use weir_core::wire::{TCP, UDP};
use weir_sim::host::WIRE;
use weir_sim::steering::Steered;
use weir_sim::switch::Switch;
use weir_sim::world::{NodeId, Routes, World};

/// A port of a node.
pub type NodePort = (NodeId, Port);

/// Most ports that may lead directly to a bare link. More ports than this are first joined in a node that
/// emulates nothing.
const MOST_PORTS_OF_A_BARE_LINK: usize = 4;

/// World that is ready to run.
pub struct Topology {
    /// All nodes and wires.
    pub world: World,
    /// Gateways. A path has one, or none if it is a plain bridge.
    pub gateways: Vec<Gate>,
    /// Links in the order of results.
    pub links: Vec<LinkDirection>,
    /// Flows in the order of the plan.
    pub flows: Vec<WiredFlow>,
    /// Places where frames can be captured.
    pub capture_points: Vec<CapturePoint>,
}

impl Topology {
    /// Returns the gateways that control ACKs.
    pub fn gateways(&self) -> impl Iterator<Item = &Gateway> {
        self.gateways.iter().filter_map(|&Gate { node, .. }| {
            let both = self.world.get::<Combined<Steered>>(node).map(Combined::gateway);
            both.or_else(|| self.world.get::<Steered>(node).map(Steered::gateway))
        })
    }

    /// Returns the gateways that queue data.
    pub fn sharings(&self) -> impl Iterator<Item = &Sharing> {
        self.gateways.iter().filter_map(|&Gate { node, .. }| {
            let both = self.world.get::<Combined<Steered>>(node).map(Combined::sharing);
            both.or_else(|| self.world.get::<Sharing>(node))
        })
    }

    /// Returns the switches that paced ports are connected to.
    pub fn switches(&self) -> impl Iterator<Item = &Switch> {
        let nodes = self.gateways.iter().flat_map(|gate| gate.switches).flatten();
        nodes.filter_map(|node| self.world.get::<Switch>(node))
    }
}

/// Gateway node: one that controls ACKs ([`Steered`]), one that queues data ([`Sharing`]), or one that does
/// both ([`Combined`]), as inline.
#[derive(Clone, Copy, Debug)]
pub struct Gate {
    node: NodeId,
    /// Switches behind the ports towards the WAN and the LAN, if classes are paced there.
    switches: [Option<NodeId>; 2],
}

impl Gate {
    /// Returns the port at which frames enter on a side. They also leave there if no class is paced.
    fn port(self, side: Port) -> NodePort {
        (self.node, side)
    }

    /// Returns the port at which frames leave on a side.
    fn leaves(self, side: Port) -> NodePort {
        let [wan, lan] = self.switches;
        let switch = if side == WAN { wan } else { lan };
        switch.map_or(self.port(side), |switch| (switch, Switch::OUT))
    }
}

/// Flow in the world.
#[derive(Clone, Copy, Debug)]
pub struct WiredFlow {
    /// Ends of the flow: addresses, ports, hosts.
    pub ends: FlowEnds,
    /// Node that sends the data.
    pub sender: NodeId,
    /// Node that receives the data.
    pub receiver: NodeId,
}

impl WiredFlow {
    /// Returns the client's node, and the flow's end there.
    pub fn client(&self) -> (NodeId, FlowEnd) {
        let node = if self.ends.uploads { self.sender } else { self.receiver };
        (node, self.ends.client_end().1)
    }

    /// Returns the flow's key in the gateway.
    pub fn key(&self) -> Key {
        let FlowEnds { client, server, uploads, .. } = self.ends;
        let (src, dst) = if uploads { (client, server) } else { (server, client) };
        let protocol = if matches!(self.ends.sender.1, FlowEnd::Udp(_)) { UDP } else { TCP };
        Key::new(protocol, src.into(), dst.into())
    }
}

/// One direction of a link.
pub struct LinkDirection {
    /// See [`crate::result::LinkResult::name`].
    pub name: String,
    /// Carrier of its frames.
    pub carrier: Carrier,
}

/// Carrier of a link's frames.
pub enum Carrier {
    /// Node that emulates the link.
    Node(NodeId),
    /// Absence of a node: there is nothing to emulate, and frames are counted as they leave these ports.
    Bare(Vec<NodePort>),
}

/// Place at which frames can be captured.
#[derive(Debug)]
pub struct CapturePoint {
    /// Name of the place.
    pub name: String,
    /// Ports whose frames pass the place. If a port leads to other places too, only frames to these addresses
    /// pass.
    pub ports: BTreeMap<NodePort, BTreeSet<Ipv4Addr>>,
}

/// Frames with a destination of their own.
#[derive(Clone, Copy, Debug)]
enum Frames {
    /// Frames to an address, except datagrams with another destination.
    To(Ipv4Addr),
    /// Datagrams of a flow, by their source and destination.
    Of((SocketAddrV4, SocketAddrV4)),
}

/// Frames, and the port that they are delivered to.
type Destination = (Frames, NodePort);

/// Nodes of each host of the experiment; `None` for a node on which no flow ends.
type Nodes = Vec<Vec<Option<NodeId>>>;

/// Host of the experiment in the world.
struct WiredHost {
    site: Site,
    /// Addresses of the host and of its further simulated hosts.
    addresses: Vec<Ipv4Addr>,
    /// Simulated hosts with ends of TCP flows, and ends of UDP flows.
    nodes: Vec<NodeId>,
    /// Frames for these nodes.
    destinations: Vec<Destination>,
}

/// Builds the world of a plan. Errors name the key that cannot be simulated.
pub fn build(plan: &Plan) -> Result<Topology, String> {
    let (hosts, flows) = flows::make(plan)?;
    let mut builder = Builder {
        world: World::new(),
        seed: plan.seed,
        links: Vec::new(),
        capture_points: Vec::new(),
        capture_point_by_name: BTreeMap::new(),
    };
    let (tcp_nodes, udp_nodes, wired) = builder.add_hosts(hosts);
    let node = |(host, end): (usize, FlowEnd)| match end {
        FlowEnd::Tcp(n, _) => tcp_nodes[host][n],
        FlowEnd::Udp(n) => udp_nodes[host][n],
    };
    let wire = |ends: &FlowEnds| {
        Some(WiredFlow { ends: *ends, sender: node(ends.sender)?, receiver: node(ends.receiver)? })
    };
    let flows: Vec<WiredFlow> = flows.iter().filter_map(wire).collect();
    let gateways = match &plan.graph {
        None => builder.wire_path(plan, wired)?,
        Some(graph) => builder.wire_graph(graph, plan.gateway.as_ref(), &wired)?,
    };
    let Builder { world, links, capture_points, .. } = builder;
    Ok(Topology { world, gateways, links, flows, capture_points })
}

/// Adds a destination to a table.
fn add(routes: &mut Routes, &(frames, port): &Destination) {
    match frames {
        Frames::To(address) => routes.add(address, port),
        Frames::Of(flow) => routes.add_datagrams(flow, port),
    }
}

/// Links of the path.
const PATH: [&str; 4] = ["lan.out", "lan.back", "wan.out", "wan.back"];

/// World in construction.
struct Builder {
    world: World,
    seed: u64,
    links: Vec<LinkDirection>,
    capture_points: Vec<CapturePoint>,
    capture_point_by_name: BTreeMap<String, usize>,
}

impl Builder {
    /// Adds hosts and ends of UDP flows to the world. Returns the nodes of both by host of the experiment,
    /// and the wired hosts.
    fn add_hosts(&mut self, hosts: Vec<ExperimentHost>) -> (Nodes, Nodes, Vec<WiredHost>) {
        let (mut all_tcp, mut all_udp, mut wired) = (Vec::new(), Vec::new(), Vec::new());
        for ExperimentHost { site, tcp, udp } in hosts {
            let addresses = tcp.iter().map(|host| host.address).collect();
            let mut destinations = Vec::new();
            let mut tcp_nodes = Vec::new();
            for TcpHost { address, host, endpoints, .. } in tcp {
                let node = (endpoints > 0).then(|| self.world.add(host));
                destinations.extend(node.map(|node| (Frames::To(address), (node, WIRE))));
                tcp_nodes.push(node);
            }
            let mut udp_nodes = Vec::new();
            for end in udp {
                udp_nodes.push(Some(match end {
                    UdpEnd::Source(source) => self.world.add(*source),
                    UdpEnd::Sink(sink) => {
                        let flow = sink.flow();
                        let node = self.world.add(*sink);
                        destinations.push((Frames::Of(flow), (node, WIRE)));
                        node
                    }
                }));
            }
            let nodes: Vec<NodeId> = tcp_nodes.iter().chain(&udp_nodes).copied().flatten().collect();
            all_tcp.push(tcp_nodes);
            all_udp.push(udp_nodes);
            if !nodes.is_empty() {
                wired.push(WiredHost { site, addresses, nodes, destinations });
            }
        }
        (all_tcp, all_udp, wired)
    }

    /// Wires the dumbbell with its gateway, which is returned unless it is a plain bridge.
    fn wire_path(&mut self, plan: &Plan, hosts: Vec<WiredHost>) -> Result<Vec<Gate>, String> {
        let (servers, clients): (Vec<WiredHost>, Vec<WiredHost>) =
            hosts.into_iter().partition(|h| h.site.wan);
        let gateway = plan.gateway.as_ref().map(|config| self.add_gateway(config)).transpose()?;
        let path = &plan.path;
        let out = [("lan.out", &path.lan), ("wan.out", &path.wan_out)];
        self.wire_direction(&clients, out, gateway, [("gw-lan", LAN), ("gw-wan", WAN)], &servers);
        let back = [("wan.back", &path.wan_back), ("lan.back", &path.lan)];
        self.wire_direction(&servers, back, gateway, [("gw-wan", WAN), ("gw-lan", LAN)], &clients);
        // The path's own links come first, as in the lab.
        let rank =
            |link: &LinkDirection| PATH.iter().position(|name| *name == link.name).unwrap_or(PATH.len());
        self.links.sort_by_key(rank);
        Ok(gateway.into_iter().collect())
    }

    /// Adds the nodes of a gateway.
    fn add_gateway(&mut self, config: &Config) -> Result<Gate, String> {
        let acks = config.classes.iter().any(|c| c.ack.is_some());
        let shares = config.classes.iter().any(|c| c.share.is_some());
        if !shares {
            let node = self.world.add(Steered::new(config.clone()));
            return Ok(Gate { node, switches: [None; 2] });
        }
        let sharing = Sharing::new(self.seeded(config), link::Config::NETEM)
            .map_err(|refused| format!("class {}: {}", config.classes[refused.class].name, refused.why))?;
        let node = match acks {
            true => self.world.add(Combined::new(Steered::new(config.clone()), sharing)),
            false => self.world.add(sharing),
        };
        let switches = [(Direction::Out, WAN), (Direction::In, LAN)];
        let switches = switches.map(|(direction, side)| self.add_switch(config, direction, (node, side)));
        Ok(Gate { node, switches })
    }

    /// Adds the switch behind a port, if classes are paced there.
    fn add_switch(&mut self, config: &Config, direction: Direction, port: NodePort) -> Option<NodeId> {
        let paced =
            |c: &ClassConfig| c.direction == direction && c.share.is_some_and(|share| share.pace.is_some());
        let switch = config.classes.iter().any(paced).then(|| Switch::new(config.clone(), direction));
        let switch = self.world.add(switch?);
        self.world.wire(port, (switch, Switch::IN));
        Some(switch)
    }

    /// Returns the configuration with a seed derived from the run's, so that its queues' draws depend on it.
    fn seeded(&self, config: &Config) -> Config {
        let mut config = config.clone();
        config.port.runs = true;
        for class in &mut config.classes {
            if let Some(queue) = class.share.as_mut().and_then(|share| share.queue.as_mut()) {
                queue.kind = queue.kind.seeded(derived(self.seed, &class.name, "queue"));
            }
        }
        config
    }

    /// Wires one direction of the path: from all hosts of one side through two links, with the gateway
    /// between them, to all hosts of the other side. `enters` and `leaves` are the gateway's ports, with
    /// their capture points.
    fn wire_direction(
        &mut self,
        from: &[WiredHost],
        [first, second]: [(&str, &link::Config); 2],
        gateway: Option<Gate>,
        [enters, leaves]: [(&str, Port); 2],
        to: &[WiredHost],
    ) {
        let uplinks: Vec<NodePort> = from.iter().flat_map(|host| self.add_uplink(host)).collect();
        let mut ports = self.add_path_link(first.0, first.1, uplinks);
        self.capture_at(enters.0, &ports, &[]);
        if let Some(gate) = gateway {
            ports.iter().for_each(|&port| self.world.wire(port, gate.port(enters.1)));
            ports = vec![gate.leaves(leaves.1)];
        }
        self.capture_at(leaves.0, &ports, &[]);
        let ports = self.add_path_link(second.0, second.1, ports);
        let several = to.len() > 1;
        let all: Vec<Destination> =
            to.iter().flat_map(|host| self.add_downlink(host, &ports, several)).collect();
        self.deliver(&ports, &all);
    }

    /// Adds a link of the path behind the ports `from`. Returns the ports that frames leave it by.
    fn add_path_link(&mut self, name: &str, link: &link::Config, from: Vec<NodePort>) -> Vec<NodePort> {
        let (carrier, ports) = if link.is_bare() && from.len() <= MOST_PORTS_OF_A_BARE_LINK {
            (Carrier::Bare(from.clone()), from)
        } else {
            let node = self.add_link_node(name, link);
            from.iter().for_each(|&port| self.world.wire(port, (node, Link::IN)));
            (Carrier::Node(node), vec![(node, Link::OUT)])
        };
        self.links.push(LinkDirection { name: name.into(), carrier });
        self.capture_at(name, &ports, &[]);
        ports
    }

    /// Adds a host's access link into the network. Returns the ports that its frames leave by.
    fn add_uplink(&mut self, host: &WiredHost) -> Vec<NodePort> {
        let ports: Vec<NodePort> = host.nodes.iter().map(|&node| (node, WIRE)).collect();
        self.capture_at(&host.site.group, &ports, &[]);
        if host.site.up.is_bare() {
            return ports;
        }
        let node = self.add_link(format!("{}.up", host.site.name), &host.site.up);
        ports.iter().for_each(|&port| self.world.wire(port, (node, Link::IN)));
        vec![(node, Link::OUT)]
    }

    /// Adds a host's access link from the network. Returns the destinations of frames for the host's
    /// addresses. The frames come out of `ports`, which lead to `several` hosts or to this one only.
    fn add_downlink(&mut self, host: &WiredHost, ports: &[NodePort], several: bool) -> Vec<Destination> {
        if host.site.down.is_bare() {
            self.capture_at(&host.site.group, ports, if several { &host.addresses } else { &[] });
            return host.destinations.clone();
        }
        let link = self.add_link(format!("{}.down", host.site.name), &host.site.down);
        let out = [(link, Link::OUT)];
        self.capture_at(&host.site.group, &out, &[]);
        self.deliver(&out, &host.destinations);
        host.addresses.iter().map(|&address| (Frames::To(address), (link, Link::IN))).collect()
    }

    /// Sends frames that leave `ports` to their destinations.
    fn deliver(&mut self, ports: &[NodePort], to: &[Destination]) {
        if let [(_, only)] = to {
            return ports.iter().for_each(|&port| self.world.wire(port, *only));
        }
        let mut routes = Routes::new();
        to.iter().for_each(|destination| add(&mut routes, destination));
        let table = self.world.routes(routes);
        ports.iter().for_each(|&port| self.world.route_by(port, table));
    }

    fn add_link(&mut self, name: String, link: &link::Config) -> NodeId {
        let node = self.add_link_node(&name, link);
        self.links.push(LinkDirection { name, carrier: Carrier::Node(node) });
        node
    }

    fn add_link_node(&mut self, name: &str, link: &link::Config) -> NodeId {
        // Each direction of each link draws its losses from a seed of its own.
        self.world.add(Link::new(link::Config { seed: derived(self.seed, name, "loss"), ..*link }))
    }

    /// Captures frames that leave `ports` at the point called `name`. If `only` is not empty, only frames to
    /// these addresses are captured.
    fn capture_at(&mut self, name: &str, ports: &[NodePort], only: &[Ipv4Addr]) {
        let i = match self.capture_point_by_name.get(name) {
            Some(&i) => i,
            None => {
                self.capture_point_by_name.insert(name.to_string(), self.capture_points.len());
                self.capture_points.push(CapturePoint { name: name.to_string(), ports: BTreeMap::new() });
                self.capture_points.len() - 1
            }
        };
        for &port in ports {
            self.capture_points[i].ports.entry(port).or_default().extend(only);
        }
    }
}
