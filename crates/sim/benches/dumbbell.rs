//! Packets per second of the whole simulator: a dumbbell of 1 Gb/s and 20 ms with one bandwidth-delay product
//! of FIFO, 1448-byte segments, SACK and delayed ACKs, N Reno flows, ten simulated seconds. A packet is a
//! data segment or an ACK that crosses the bottleneck. `weir-bench sim` measures the same from an experiment.

#![allow(missing_docs)] // criterion's macros make public functions

#[path = "scenarios/dumbbell.rs"]
mod scenario;

use criterion::{criterion_group, criterion_main, BenchmarkId, Criterion, Throughput};
use scenario::{crossed, dumbbell, Load};
use weir_core::time::Time;

/// Runs it for ten seconds; returns the packets that crossed.
fn run(flows: u32) -> u64 {
    let (mut world, links) = dumbbell(Load::of(flows));
    world.run_until(Time::from_secs(10));
    crossed(&world, links)
}

fn benchmark(c: &mut Criterion) {
    let mut group = c.benchmark_group("dumbbell");
    group.sample_size(10);
    for flows in [1, 10, 100, 1000] {
        group.throughput(Throughput::Elements(run(flows)));
        group.bench_with_input(BenchmarkId::from_parameter(flows), &flows, |b, &n| b.iter(|| run(n)));
    }
    group.finish();
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
