//! Nanoseconds per ACK through an ACK filter, with this many flows and this many ACKs waiting.
//!
//! *turn*: an ACK leaves and another one of its flow comes; nothing is erased. *erase*: an ACK comes and
//! takes the place of the one that waited longest in its flow's row of redundant ones; its number and
//! checksum are written as part of the time. Both with turns of flows and in the order of arrival.

#![allow(clippy::disallowed_methods)] // a benchmark reads the clock
#![allow(missing_docs)] // of functions that criterion's macros make

#[path = "scenarios/ack_filter.rs"]
mod scenario;

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use scenario::Bench;
use weir_core::queue::ack_filter::{Policy, Service};

fn filters(c: &mut Criterion) {
    let mut group = c.benchmark_group("ack filter");
    group.throughput(Throughput::Elements(1));
    let sizes = [(1, 1), (1, 100), (1, 10_000), (1_000, 10_000), (100_000, 100_000), (1_000_000, 1_000_000)];
    for (flows, waiting) in sizes {
        for (name, service) in [("fifo", Service::Fifo), ("rr", Service::RoundRobin)] {
            let mut b = None;
            group.bench_function(format!("turn/{name}/{flows} flows/{waiting} waiting"), |bench| {
                let b = b.get_or_insert_with(|| Bench::new(Policy::DelayedPerFlow, service, flows, waiting));
                bench.iter(|| b.turn());
            });
        }
        let mut b = None;
        group.bench_function(format!("erase/{flows} flows/{waiting} waiting"), |bench| {
            let b = b.get_or_insert_with(|| Bench::new(Policy::Classical, Service::Fifo, flows, waiting));
            bench.iter(|| b.come(1000));
        });
    }
}

criterion_group!(benches, filters);
criterion_main!(benches);
