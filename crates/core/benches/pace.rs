//! Nanoseconds per frame that a pacer puts on a line of 10 Gb/s: a packet out of its queue at its time and in
//! again, or a filler.
//!
//! Every class has two full frames waiting all the time. Rates differ from class to class by up to two times,
//! and fill 95 % of the line together: so there are packets and, in between, fillers, which the second rows
//! count as frames too. 10 Gb/s are 812,744 full frames per second: 1,230 ns each.

#![allow(clippy::disallowed_methods)] // a benchmark reads the clock
#![allow(missing_docs)] // of functions that criterion's macros make

#[path = "scenarios/pace.rs"]
mod scenario;

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use scenario::Bench;
use std::hint::black_box;
use weir_core::pace::Backend;

fn pacers(c: &mut Criterion) {
    let mut group = c.benchmark_group("pace");
    group.throughput(Throughput::Elements(1));
    for classes in [1, 10, 100, 1_000, 10_000, 100_000] {
        let mut b = None;
        group.bench_function(format!("gap/{classes} classes/packets"), |bench| {
            let b = b.get_or_insert_with(|| Bench::new(Backend::Gap, classes));
            bench.iter(|| while !b.turn() {});
        });
        group.bench_function(format!("gap/{classes} classes/frames"), |bench| {
            let b = b.get_or_insert_with(|| Bench::new(Backend::Gap, classes));
            bench.iter(|| black_box(b.turn()));
        });
        let mut b = None;
        group.bench_function(format!("clock/{classes} classes/packets"), |bench| {
            let b = b.get_or_insert_with(|| Bench::new(Backend::Clock, classes));
            bench.iter(|| black_box(b.turn()));
        });
    }
}

criterion_group!(benches, pacers);
criterion_main!(benches);
