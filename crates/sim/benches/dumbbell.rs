//! Packets per second of the whole simulator: a dumbbell of 1 Gb/s and 20 ms with one bandwidth-delay product of
//! FIFO, 1448-byte segments, SACK and delayed ACKs, N Reno flows, ten simulated seconds. A packet is a data
//! segment or an ACK that crosses the bottleneck. `weir bench sim` measures the same from an experiment.

#![allow(missing_docs)] // criterion's macros make public functions

use criterion::{criterion_group, criterion_main, BenchmarkId, Criterion, Throughput};
use std::net::SocketAddrV4;
use std::sync::Arc;
use weir_core::link::{self, Link, QueueLimit};
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};
use weir_sim::cc;
use weir_sim::host::{Endpoint, Host, HostConfig, Source, WIRE};
use weir_sim::tcp::TcpConfig;
use weir_sim::world::World;

/// Runs it; returns the packets that crossed.
fn dumbbell(flows: u16) -> u64 {
    let mut world = World::new();
    let rtt = Duration::from_millis(20);
    let out = link::Config {
        rate: Some(Rate::mbit(1000)),
        delay: Duration::from_millis(10),
        queue: QueueLimit::Bdp { rtt },
        overhead: link::Config::NETEM,
        ..link::Config::default()
    };
    let back = link::Config { queue: QueueLimit::Unlimited, ..out };
    let mut client = Host::new(HostConfig { mac: [2; 6], next_hop: [4; 6], seed: 1 });
    let mut server = Host::new(HostConfig { mac: [4; 6], next_hop: [2; 6], seed: 2 });
    for n in 0..flows {
        let at = |a: [u8; 4], port| SocketAddrV4::new(a.into(), port);
        let (local, remote) = (at([10, 0, 0, 1], 10_000 + n), at([10, 0, 0, 2], 5001));
        let tcp = TcpConfig { receive_window: 1 << 30, ..TcpConfig::new(cc::by_name("reno").unwrap()) };
        let tcp = Arc::new(tcp);
        // A little apart, so that they do not march in step.
        let start = Time::from_micros(u64::from(n) * 97);
        let end = |opens, local, remote, source| Endpoint {
            opens,
            local,
            remote,
            start,
            tcp: tcp.clone(),
            source,
            bin: Duration::from_millis(10),
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
    world.run_until(Time::from_secs(10));
    links.iter().filter_map(|&l| world.get::<Link>(l)).map(|l| l.stats().packets).sum()
}

fn benchmark(c: &mut Criterion) {
    let mut group = c.benchmark_group("dumbbell");
    group.sample_size(10);
    for flows in [1, 10, 100, 1000] {
        group.throughput(Throughput::Elements(dumbbell(flows)));
        group.bench_with_input(BenchmarkId::from_parameter(flows), &flows, |b, &n| b.iter(|| dumbbell(n)));
    }
    group.finish();
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
