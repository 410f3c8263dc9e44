//! From a plan to a wired world.
//!
//! ```text
//! clients ─ up ───┐                                             ┌─ down ─ servers
//!                 ├─ lan.out ── LAN  gateway  WAN ── wan.out ───┤
//! clients ─ down ─┴─ lan.back ─                   ── wan.back ──┴─ up ─── servers
//! ```
//!
//! A link with nothing to emulate is no node: its frames are counted as they pass.

use super::ends::{self, Between, Site};
use crate::plan::{self, derived, Plan};
use crate::run::link_config;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use weir_core::flow::Key;
use weir_core::gateway::{Gateway, LAN, WAN};
use weir_core::link::Link;
use weir_core::node::Port;
use weir_sim::host::{EndpointId, EndpointReport, Host, WIRE};
use weir_sim::world::{NodeId, Routes, World};

/// An out-port of a node.
pub type Point = (NodeId, Port);
/// An endpoint of a host.
pub type At = (NodeId, EndpointId);

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
    /// What became of an endpoint so far.
    pub fn report(&self, (host, endpoint): At) -> EndpointReport {
        self.world.get::<Host>(host).map_or_else(EndpointReport::default, |h| h.report(endpoint))
    }
}

/// Both ends of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// Addresses and ports.
    pub between: Between,
    /// Who sends the data.
    pub sender: At,
    /// Who receives it.
    pub receiver: At,
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
    /// Ports whose frames pass it; of a port that several hosts are behind, those to one of them.
    pub ports: Vec<(Point, Option<Ipv4Addr>)>,
}

/// A host of the world.
struct Placed {
    site: Site,
    node: NodeId,
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
    // Hosts without flows are not there.
    let placed: Vec<Option<Placed>> = places
        .into_iter()
        .map(|p| (p.endpoints > 0).then(|| Placed { site: p.site, node: build.world.add(p.host) }))
        .collect();
    let at = |(host, endpoint): ends::End| placed[host].as_ref().map(|p| (p.node, endpoint));
    let ends = |between: &Between| {
        Some(Ends { between: *between, sender: at(between.sender)?, receiver: at(between.receiver)? })
    };
    let flows: Vec<Ends> = flows.iter().filter_map(ends).collect();
    let (servers, clients): (Vec<Placed>, Vec<Placed>) =
        placed.into_iter().flatten().partition(|p| p.site.wan);
    let gateway = plan.gateway.as_ref().map(|config| build.world.add(Gateway::new(config.clone())));
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
    /// Wires everything from some hosts through two links, with a gateway between them, to other hosts. The
    /// gateway's sides are those that frames enter and leave by.
    fn way(
        &mut self,
        from: &[Placed],
        [first, second]: [(&str, &plan::Link); 2],
        gateway: Option<NodeId>,
        [enters, leaves]: [(&str, Port); 2],
        to: &[Placed],
    ) {
        let ups: Vec<Point> = from.iter().map(|p| self.up(p)).collect();
        let mut ports = self.leg(first.0, first.1, ups);
        self.see(enters.0, &ports, None);
        if let Some(node) = gateway {
            ports.iter().for_each(|&port| self.world.wire(port, (node, enters.1)));
            ports = vec![(node, leaves.1)];
        }
        self.see(leaves.0, &ports, None);
        let ports = self.leg(second.0, second.1, ports);
        self.deliver(&ports, to);
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
        self.see(name, &ports, None);
        ports
    }

    /// Where the frames of a host come out of its access link.
    fn up(&mut self, p: &Placed) -> Point {
        let port = (p.node, WIRE);
        self.see(&p.site.group, &[port], None);
        if p.site.up.is_bare() {
            return port;
        }
        let node = self.access(format!("{}.up", p.site.name), &p.site.up);
        self.world.wire(port, (node, Link::IN));
        (node, Link::OUT)
    }

    /// What comes out of `ports` goes to the host that it is for.
    fn deliver(&mut self, ports: &[Point], to: &[Placed]) {
        let mut routes = Routes::new();
        for p in to {
            let enters = if p.site.down.is_bare() {
                let only = (to.len() > 1).then_some(p.site.address);
                self.see(&p.site.group, ports, only);
                (p.node, WIRE)
            } else {
                let node = self.access(format!("{}.down", p.site.name), &p.site.down);
                self.world.wire((node, Link::OUT), (p.node, WIRE));
                self.see(&p.site.group, &[(node, Link::OUT)], None);
                (node, Link::IN)
            };
            routes.add(p.site.address, enters);
            if to.len() == 1 {
                ports.iter().for_each(|&port| self.world.wire(port, enters));
            }
        }
        if to.len() > 1 {
            let table = self.world.routes(routes);
            ports.iter().for_each(|&port| self.world.route_by(port, table));
        }
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

    /// Frames that leave these ports are seen at the place called `name`.
    fn see(&mut self, name: &str, ports: &[Point], only: Option<Ipv4Addr>) {
        let seen = ports.iter().map(|&port| (port, only));
        match self.view_by_name.get(name) {
            Some(&i) => self.views[i].ports.extend(seen),
            None => {
                self.view_by_name.insert(name.to_string(), self.views.len());
                self.views.push(View { name: name.to_string(), ports: seen.collect() });
            }
        }
    }
}
