//! From a plan to a wired world.
//!
//! ```text
//! clients ─ up ───┐                                             ┌─ down ─ servers
//!                 ├─ lan.out ── LAN  gateway  WAN ── wan.out ───┤
//! clients ─ down ─┴─ lan.back ─                   ── wan.back ──┴─ up ─── servers
//! ```
//!
//! A link with nothing to emulate is no node: its frames are counted as they pass.

use super::ends::{self, Between, Building, End, Place, Site, Udp};
use crate::plan::{self, derived, Plan};
use crate::run::link_config;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use weir_core::flow::Key;
use weir_core::gateway::{Gateway, LAN, WAN};
use weir_core::link::Link;
use weir_core::node::Port;
use weir_sim::host::WIRE;
use weir_sim::steering::Steered;
use weir_sim::world::{NodeId, Routes, World};

/// An out-port of a node.
pub type Point = (NodeId, Port);

/// More ports than this that lead to the same place meet in a node first.
const FEW: usize = 4;

/// A world to be run.
pub struct Topology {
    /// Everything in it.
    pub world: World,
    /// The gateway, unless it is a plain bridge.
    pub gateway: Option<NodeId>,
    /// In the order of results.
    pub links: Vec<Wire>,
    /// In the order of the plan.
    pub flows: Vec<Ends>,
    /// Where frames can be seen.
    pub views: Vec<View>,
}

impl Topology {
    /// The gateway itself.
    pub fn gateway(&self) -> Option<&Gateway> {
        self.gateway.and_then(|id| self.world.get::<Steered>(id)).map(Steered::gateway)
    }
}

/// Both ends of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// Addresses and ports.
    pub between: Between,
    /// Who sends the data.
    pub sender: NodeId,
    /// Who receives it.
    pub receiver: NodeId,
}

impl Ends {
    /// The flow as the gateway knows it.
    pub fn key(&self) -> Key {
        let Between { client, server, uploads, .. } = self.between;
        let (src, dst) = if uploads { (client, server) } else { (server, client) };
        let ip = |a: SocketAddrV4| a.ip().to_ipv6_mapped().octets();
        Key { src: ip(src), dst: ip(dst), src_port: src.port(), dst_port: dst.port(), ..Key::default() }
    }
}

/// One direction of a link.
pub struct Wire {
    /// See [`crate::result::LinkResult::name`].
    pub name: String,
    /// What carries it.
    pub by: By,
}

/// What carries the frames of a link.
pub enum By {
    /// A node.
    Link(NodeId),
    /// Nothing; they are counted.
    Bare(Arc<Counter>),
}

/// Frames that passed.
#[derive(Debug, Default)]
pub struct Counter {
    packets: AtomicU64,
    bytes: AtomicU64,
}

impl Counter {
    /// One more. A world runs in one thread: nobody else counts at the same time.
    fn count(&self, len: usize) {
        self.packets.store(self.packets() + 1, Ordering::Relaxed);
        self.bytes.store(self.bytes() + len as u64, Ordering::Relaxed);
    }
    /// How many.
    pub fn packets(&self) -> u64 {
        self.packets.load(Ordering::Relaxed)
    }
    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// A place at which frames can be seen.
#[derive(Debug)]
pub struct View {
    /// Its name.
    pub name: String,
    /// Ports whose frames pass it; of a port that leads to other places too, those to these addresses.
    pub ports: BTreeMap<Point, BTreeSet<Ipv4Addr>>,
}

/// An address, and where frames for it go.
type Destination = (Ipv4Addr, Point);

/// By place, the nodes there; `None` for a host that nothing ends on.
type Nodes = Vec<Vec<Option<NodeId>>>;

/// A place in the world.
struct Placed {
    site: Site,
    /// The hosts on which something ends, and the ends of UDP flows, by address.
    nodes: Vec<(Ipv4Addr, NodeId)>,
}

/// Builds the world of a plan. Errors name the key that cannot be simulated.
pub fn build(plan: &Plan) -> Result<Topology, String> {
    let (places, flows) = ends::make(plan)?;
    let mut build = Build {
        world: World::new(),
        seed: plan.seed,
        links: Vec::new(),
        views: Vec::new(),
        view_by_name: BTreeMap::new(),
    };
    let (hosts, udp, placed) = build.populate(places);
    let node = |(place, end): (usize, End)| match end {
        End::Tcp(host, _) => hosts[place][host],
        End::Udp(n) => udp[place][n],
    };
    let ends = |between: &Between| {
        Some(Ends { between: *between, sender: node(between.sender)?, receiver: node(between.receiver)? })
    };
    let flows: Vec<Ends> = flows.iter().filter_map(ends).collect();
    let (servers, clients): (Vec<Placed>, Vec<Placed>) = placed.into_iter().partition(|p| p.site.wan);
    let gateway = plan.gateway.as_ref().map(|config| build.world.add(Steered::new(config.clone())));
    let path = &plan.path;
    let out = [("lan.out", &path.lan), ("wan.out", &path.wan_out)];
    build.way(&clients, out, gateway, [("gw-lan", LAN), ("gw-wan", WAN)], &servers);
    let back = [("wan.back", &path.wan_back), ("lan.back", &path.lan)];
    build.way(&servers, back, gateway, [("gw-wan", WAN), ("gw-lan", LAN)], &clients);
    // The path's own links come first, as in the lab.
    let rank = |w: &Wire| PATH.iter().position(|name| *name == w.name).unwrap_or(PATH.len());
    build.links.sort_by_key(rank);
    Ok(Topology { world: build.world, gateway, links: build.links, flows, views: build.views })
}

/// Links of the path.
const PATH: [&str; 4] = ["lan.out", "lan.back", "wan.out", "wan.back"];

/// A world while it is being wired.
struct Build {
    world: World,
    seed: u64,
    links: Vec<Wire>,
    views: Vec<View>,
    view_by_name: BTreeMap<String, usize>,
}

impl Build {
    /// Puts what is at the places into the world: by place, its hosts and its ends of UDP flows; and the places
    /// where there is something.
    fn populate(&mut self, places: Vec<Place>) -> (Nodes, Nodes, Vec<Placed>) {
        let (mut all_hosts, mut all_udp, mut placed) = (Vec::new(), Vec::new(), Vec::new());
        for Place { site, hosts, udp } in places {
            let mut nodes = Vec::new();
            let mut of_hosts = Vec::new();
            for Building { address, host, endpoints, .. } in hosts {
                let node = (endpoints > 0).then(|| self.world.add(host));
                nodes.extend(node.map(|node| (address, node)));
                of_hosts.push(node);
            }
            let mut of_udp = Vec::new();
            for (address, end) in udp {
                let node = match end {
                    Udp::Source(source) => self.world.add(source),
                    Udp::Sink(sink) => self.world.add(sink),
                };
                nodes.push((address, node));
                of_udp.push(Some(node));
            }
            all_hosts.push(of_hosts);
            all_udp.push(of_udp);
            if !nodes.is_empty() {
                placed.push(Placed { site, nodes });
            }
        }
        (all_hosts, all_udp, placed)
    }

    /// Wires everything from some places through two links, with a gateway between them, to other places. The
    /// gateway's sides are those that frames enter and leave by.
    fn way(
        &mut self,
        from: &[Placed],
        [first, second]: [(&str, &plan::Link); 2],
        gateway: Option<NodeId>,
        [enters, leaves]: [(&str, Port); 2],
        to: &[Placed],
    ) {
        let ups: Vec<Point> = from.iter().flat_map(|p| self.up(p)).collect();
        let mut ports = self.leg(first.0, first.1, ups);
        self.see(enters.0, &ports, &[]);
        if let Some(node) = gateway {
            ports.iter().for_each(|&port| self.world.wire(port, (node, enters.1)));
            ports = vec![(node, leaves.1)];
        }
        self.see(leaves.0, &ports, &[]);
        let ports = self.leg(second.0, second.1, ports);
        let all: Vec<Destination> = to.iter().flat_map(|p| self.down(p, &ports, to.len() > 1)).collect();
        self.deliver(&ports, &all);
    }

    /// One link for all that comes from `from`; returns where it comes out.
    fn leg(&mut self, name: &str, link: &plan::Link, from: Vec<Point>) -> Vec<Point> {
        let (by, ports) = if link.is_bare() && from.len() <= FEW {
            let counter = Arc::new(Counter::default());
            for &port in &from {
                let counter = counter.clone();
                self.world.capture(port, Box::new(move |_, _, len| counter.count(len)));
            }
            (By::Bare(counter), from)
        } else {
            let node = self.link(name, link);
            from.iter().for_each(|&port| self.world.wire(port, (node, Link::IN)));
            (By::Link(node), vec![(node, Link::OUT)])
        };
        self.links.push(Wire { name: name.into(), by });
        self.see(name, &ports, &[]);
        ports
    }

    /// Where the frames of a place come out of its access link.
    fn up(&mut self, p: &Placed) -> Vec<Point> {
        let ports: Vec<Point> = p.nodes.iter().map(|&(_, node)| (node, WIRE)).collect();
        self.see(&p.site.group, &ports, &[]);
        if p.site.up.is_bare() {
            return ports;
        }
        let node = self.access(format!("{}.up", p.site.name), &p.site.up);
        ports.iter().for_each(|&port| self.world.wire(port, (node, Link::IN)));
        vec![(node, Link::OUT)]
    }

    /// Where the frames for a place are to go that come out of `ports`, which lead to others too or not.
    fn down(&mut self, p: &Placed, ports: &[Point], others: bool) -> Vec<Destination> {
        let nodes: Vec<Destination> =
            p.nodes.iter().map(|&(address, node)| (address, (node, WIRE))).collect();
        if p.site.down.is_bare() {
            let addresses: Vec<Ipv4Addr> = p.nodes.iter().map(|(address, _)| *address).collect();
            self.see(&p.site.group, ports, if others { &addresses } else { &[] });
            return nodes;
        }
        let link = self.access(format!("{}.down", p.site.name), &p.site.down);
        let out = [(link, Link::OUT)];
        self.see(&p.site.group, &out, &[]);
        self.deliver(&out, &nodes);
        nodes.into_iter().map(|(address, _)| (address, (link, Link::IN))).collect()
    }

    /// What comes out of `ports` goes where it is addressed to.
    fn deliver(&mut self, ports: &[Point], to: &[Destination]) {
        if let [(_, only)] = to {
            return ports.iter().for_each(|&port| self.world.wire(port, *only));
        }
        let mut routes = Routes::new();
        to.iter().for_each(|&(address, at)| routes.add(address, at));
        let table = self.world.routes(routes);
        ports.iter().for_each(|&port| self.world.route_by(port, table));
    }

    /// A link that belongs to a host.
    fn access(&mut self, name: String, link: &plan::Link) -> NodeId {
        let node = self.link(&name, link);
        self.links.push(Wire { name, by: By::Link(node) });
        node
    }

    fn link(&mut self, name: &str, link: &plan::Link) -> NodeId {
        // Each direction of each link draws its own losses.
        self.world.add(Link::new(link_config(link, derived(self.seed, name, "loss"))))
    }

    /// Frames that leave these ports are seen at the place called `name`; if `only` has any, those to these addresses.
    fn see(&mut self, name: &str, ports: &[Point], only: &[Ipv4Addr]) {
        let i = match self.view_by_name.get(name) {
            Some(&i) => i,
            None => {
                self.view_by_name.insert(name.to_string(), self.views.len());
                self.views.push(View { name: name.to_string(), ports: BTreeMap::new() });
                self.views.len() - 1
            }
        };
        for &port in ports {
            self.views[i].ports.entry(port).or_default().extend(only);
        }
    }
}
