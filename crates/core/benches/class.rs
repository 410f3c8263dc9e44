//! Nanoseconds per frame through a link-sharing tree: out of its queue at its time, and in again.
//!
//! Every flow has one full frame waiting all the time, so each row has as many frames as flows. The classes
//! are alike, below a link of 10 Gb/s in groups of 100, and flows are dealt out to them in turn.
//! Classification is no part of it.

#![allow(clippy::disallowed_methods)] // a benchmark reads the clock
#![allow(missing_docs)] // of functions that criterion's macros make

#[path = "scenarios/class.rs"]
mod scenario;

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use scenario::Bench;
use weir_core::queue::{pfq, Kind};

fn trees(c: &mut Criterion) {
    let mut group = c.benchmark_group("class");
    group.throughput(Throughput::Elements(1));
    let pfq = |flows: u32| Kind::Pfq(pfq::Params { flows, ..pfq::Params::default() });
    let flows = [1, 1_000, 100_000, 1_000_000];
    let classes = [10, 1_000, 50_000];
    let rows = flows.iter().flat_map(|&n| [("fifo", Kind::Fifo, 1, n), ("pfq", pfq(2 * n as u32), 1, n)]);
    let rows =
        rows.chain(classes.iter().flat_map(|&n| [("fifo", Kind::Fifo, n, n), ("pfq", pfq(8), n, 2 * n)]));
    for (name, kind, classes, flows) in rows {
        let mut b = None;
        group.bench_function(format!("{name}/{classes} classes/{flows} flows"), |bench| {
            let b = b.get_or_insert_with(|| Bench::new(kind, classes, flows));
            bench.iter(|| b.turn());
        });
    }
}

criterion_group!(benches, trees);
criterion_main!(benches);
