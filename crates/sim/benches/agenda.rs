#![allow(missing_docs)] // of what the macros make
//! The hold model (Vaucher, Duval 1975): with this many events pending, take the first and put it back later.

use criterion::{criterion_group, criterion_main, BenchmarkId, Criterion, Throughput};
use std::hint::black_box;
use std::time::Duration;
use weir_core::rng::Rng;
use weir_core::time::{self, Time};
use weir_sim::agenda::{Agenda, Heap, Wheel};

/// Events of one measurement.
const HOLDS: u64 = 100_000;

/// Returns the times by which later events are put back, in turn.
fn increments(kind: &str) -> Vec<u64> {
    let mut rng = Rng::new(1);
    let ms = 1_000_000.0;
    match kind {
        // Mean 1 ms.
        "exponential" => (0..4096)
            .map(|_| (-ms * ((rng.below(1 << 40) + 1) as f64 / (1u64 << 40) as f64).ln()) as u64)
            .collect(),
        // What a dumbbell of 1 Gbit/s has: a full frame's and an ACK's time on the link and the delays of
        // access and path.
        "dumbbell" => vec![12_304, 12_304, 12_304, 10_000_000, 608, 10_000_000, 500_000],
        // Everything at the same times.
        "synchronous" => vec![1_000_000],
        _ => unreachable!(),
    }
}

fn hold(agenda: &mut impl Agenda, increments: &[u64], seq: &mut u64) {
    for _ in 0..HOLDS {
        let Some((at, event)) = agenda.pop() else { return };
        let later = increments[*seq as usize % increments.len()];
        agenda.push(at + time::Duration::from_nanos(later), *seq, black_box(event));
        *seq += 1;
    }
}

fn filled<A: Agenda>(mut agenda: A, pending: u32, increments: &[u64]) -> (A, u64) {
    for event in 0..pending {
        let at = increments[event as usize % increments.len()];
        agenda.push(Time::from_nanos(at), u64::from(event), event);
    }
    let mut seq = u64::from(pending);
    for _ in 0..10 {
        hold(&mut agenda, increments, &mut seq);
    }
    (agenda, seq)
}

fn agendas(c: &mut Criterion) {
    for kind in ["exponential", "dumbbell", "synchronous"] {
        let increments = increments(kind);
        let mut group = c.benchmark_group(kind);
        group.throughput(Throughput::Elements(HOLDS)).sample_size(20);
        group.measurement_time(Duration::from_secs(1)).warm_up_time(Duration::from_millis(300));
        for pending in [8, 100, 1_000, 10_000, 100_000] {
            let (mut heap, mut seq) = filled(Heap::new(), pending, &increments);
            group.bench_function(BenchmarkId::new("heap", pending), |b| {
                b.iter(|| hold(&mut heap, &increments, &mut seq));
            });
            let (mut wheel, mut seq) = filled(Wheel::new(), pending, &increments);
            group.bench_function(BenchmarkId::new("wheel", pending), |b| {
                b.iter(|| hold(&mut wheel, &increments, &mut seq));
            });
        }
    }
}

criterion_group!(benches, agendas);
criterion_main!(benches);
