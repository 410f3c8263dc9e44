//! Nanoseconds per data packet of a gateway that schedules data, or paces ACKs, with its ACK: in and out of
//! the node each
//! ([`weir_core::rig::Busy`]). `pfq` has no ACKs, and `tcr` no data, which stays in the kernel.

#![allow(clippy::disallowed_methods)] // a benchmark reads the clock
#![allow(missing_docs)] // of functions that criterion's macros make

use criterion::{criterion_group, criterion_main, BenchmarkId, Criterion, Throughput};
use std::time::{Duration, Instant};
use weir_core::ack::{Leaf, CLASS_PRESETS};
use weir_core::rig::busy::{Busy, RATE};

fn presets(c: &mut Criterion) {
    let mut group = c.benchmark_group("presets");
    group.throughput(Throughput::Elements(1)).sample_size(10);
    let rows = CLASS_PRESETS.iter().map(|p| (p.name, Some((p.policy)(RATE)), p.leaf));
    for (name, ack, leaf) in [("pfq", None, Leaf::Pfq)].into_iter().chain(rows) {
        for flows in [1_000, 10_000, 100_000, 1_000_000] {
            group.bench_function(BenchmarkId::new(name, flows), |b| {
                let (mut l, begin) = (Busy::new(ack, leaf, flows), Instant::now());
                let clock = || begin.elapsed().as_nanos() as u64;
                b.iter_custom(|packets| Duration::from_nanos(l.measure(packets, clock)));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, presets);
criterion_main!(benches);
