//! Nanoseconds per frame through a link: in, and out again.
//!
//! Full frames arrive as fast as a 1 Gb/s link sends them, so each frame in is a frame out. Some wait in the
//! queue and 833 (10 ms) are under way, or a bare wire takes them. The frame that comes out goes in
//! again: neither pool nor headers are part of the time.

#![allow(clippy::disallowed_methods)] // a benchmark reads the clock
#![allow(missing_docs)] // of functions that criterion's macros make

#[path = "scenarios/link.rs"]
mod scenario;

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use scenario::{Bench, FULL};
use weir_core::link::{Config, Loss, QueueLimit};
use weir_core::rate::Rate;

fn links(c: &mut Criterion) {
    let mut group = c.benchmark_group("link");
    group.throughput(Throughput::Elements(1));
    let full = Config {
        rate: Some(Rate::mbit(1000)),
        delay: Rate::mbit(1000).time_for(FULL).saturating_mul(833),
        queue: QueueLimit::Packets(2000),
        ..Config::default()
    };
    let never = Loss::Random { trillionths: 0 };
    for (name, config, waiting) in [
        ("bare", Config::default(), 0),
        ("rate", full, 0),
        ("rate+queue", full, 1000),
        ("rate+queue+loss+mark", Config { loss: never, mark: Some(QueueLimit::Packets(65)), ..full }, 1000),
    ] {
        let mut b = Bench::new(config, waiting);
        group.bench_function(name, |bench| bench.iter(|| b.turn()));
    }
}

criterion_group!(benches, links);
criterion_main!(benches);
