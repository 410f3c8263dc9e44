//! N Reno flows through a bottleneck of 1 Gb/s and 20 ms.

use std::net::SocketAddrV4;
use std::sync::Arc;
use weir_core::link::{self, Link, QueueLimit};
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};
use weir_sim::cc;
use weir_sim::host::{Endpoint, Host, HostConfig, Source, WIRE};
use weir_sim::tcp::TcpConfig;
use weir_sim::world::{NodeId, World};

const ROUND_TRIP: Duration = Duration::from_millis(20);
/// Connections to one port of the server.
const PER_SERVICE: u32 = 50_000;

/// Connections that share the bottleneck.
#[derive(Clone, Copy)]
pub struct Load {
    pub flows: u32,
    /// Time between the starts of two of them: a little, so that they do not march in step.
    pub apart: Duration,
    /// Receive window of each, bytes.
    pub window: u64,
    /// Limit of the queue.
    pub queue: QueueLimit,
}

impl Load {
    /// `flows` flows that only a queue of one bandwidth-delay product limits.
    pub fn of(flows: u32) -> Load {
        let queue = QueueLimit::Bdp { rtt: ROUND_TRIP };
        Load { flows, apart: Duration::from_micros(97), window: 1 << 30, queue }
    }
}

/// Returns the world, and the links that data and ACKs cross.
pub fn dumbbell(load: Load) -> (World, [NodeId; 2]) {
    let mut world = World::new();
    let out = link::Config {
        rate: Some(Rate::mbit(1000)),
        delay: Duration::from_millis(10),
        queue: load.queue,
        overhead: link::Config::NETEM,
        ..link::Config::default()
    };
    let back = link::Config { queue: QueueLimit::Unlimited, ..out };
    let mut client = Host::new(HostConfig { mac: [2; 6], next_hop: [4; 6], seed: 1 });
    let mut server = Host::new(HostConfig { mac: [4; 6], next_hop: [2; 6], seed: 2 });
    for n in 0..load.flows {
        let at = |a: [u8; 4], port| SocketAddrV4::new(a.into(), port);
        let (service, port) = ((n / PER_SERVICE) as u16, (n % PER_SERVICE) as u16);
        let (local, remote) = (at([10, 0, 0, 1], 10_000 + port), at([10, 0, 0, 2], 5001 + service));
        let tcp = TcpConfig { receive_window: load.window, ..TcpConfig::new(cc::by_name("reno").unwrap()) };
        let tcp = Arc::new(tcp);
        let start = Time::ZERO + load.apart.saturating_mul(u64::from(n));
        let end = |opens, local, remote, source| Endpoint {
            opens,
            local,
            remote,
            start,
            tcp: tcp.clone(),
            source,
            bin: Duration::from_millis(10),
            until: Time::MAX,
            trace: false,
        };
        client.add(end(
            true,
            local,
            remote,
            Some(Source { bytes: None, until: Time::MAX, rate: None, bursts: None }),
        ));
        server.add(end(false, remote, local, None));
    }
    let (client, server) = (world.add(client), world.add(server));
    let links = [out, back].map(|config| world.add(Link::new(config)));
    world.wire((client, WIRE), (links[0], Link::IN));
    world.wire((links[0], Link::OUT), (server, WIRE));
    world.wire((server, WIRE), (links[1], Link::IN));
    world.wire((links[1], Link::OUT), (client, WIRE));
    (world, links)
}

/// Returns the packets that have crossed the links.
pub fn crossed(world: &World, links: [NodeId; 2]) -> u64 {
    links.iter().filter_map(|&l| world.get::<Link>(l)).map(|l| l.stats().packets).sum()
}
