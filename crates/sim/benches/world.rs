//! Frames per second and hop of the event core: frames that go round a ring of links. Per hop a link is
//! handed a frame, polled twice, and the frame comes out when its deadline does.

#![allow(missing_docs)] // of what criterion's macros make

use criterion::{criterion_group, criterion_main, BenchmarkId, Criterion, Throughput};
use weir_core::link::{Config, Link};
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};
use weir_sim::world::World;

/// Time of a hop: 1,500 bytes at 1 Gb/s, and 1 ms. Frames that come one after the other never wait.
const HOP: Duration = Duration::from_micros(1012);
/// At most this many frames pass a link in that time.
const PER_LINK: usize = 50;

/// `frames` on their way round a ring of `links`.
fn ring(links: usize, frames: usize) -> World {
    assert!(frames <= PER_LINK * links);
    let config =
        Config { rate: Some(Rate::mbit(1000)), delay: Duration::from_millis(1), ..Config::default() };
    let mut world = World::new();
    let ids: Vec<_> = (0..links).map(|_| world.add(Link::new(config))).collect();
    for (i, &id) in ids.iter().enumerate() {
        world.wire((id, Link::OUT), (ids[(i + 1) % links], Link::IN));
    }
    for n in 0..frames {
        world.hand_in((ids[n * links / frames], Link::IN), &[0; 66], 1514);
    }
    world
}

fn rings(c: &mut Criterion) {
    let mut group = c.benchmark_group("ring");
    for (links, frames) in [(4, 4), (4, 200), (100, 100), (10_000, 10_000)] {
        let mut world = ring(links, frames);
        let mut end = Time::from_millis(10);
        world.run_until(end);
        let hops = 100_000 / frames as u64;
        group.throughput(Throughput::Elements(hops * frames as u64));
        group.bench_function(BenchmarkId::new(format!("{links} links, frames"), frames), |b| {
            b.iter(|| {
                end += HOP.saturating_mul(hops);
                world.run_until(end);
            });
        });
    }
}

criterion_group!(benches, rings);
criterion_main!(benches);
