//! Nanoseconds per ACK through the gateway, with 1 to 1,000,000 flows.
//!
//! Every flow is seen from its handshake on, with timestamps and a window scale, and is backlogged: its peers
//! have a fixed number of bytes under way. An ACK that leaves lets the sender send as much as it
//! acknowledges, and a round trip later the receiver's ACK of that arrives. So one ACK in means one ACK out,
//! a million of each per second of virtual time, of flows in no particular order: parse, verify the checksum,
//! find the flow, absorb; fire the flow's timer, make the next ACK. The gateway is driven as `weir run` does:
//! what was due is taken before a frame is handed in. Only that is timed, not what the peers do. On a machine
//! that does other things beside, the median of batches says more than the mean.
//!
//! Memory is in large pages, as the engine's records are, where the kernel gives them to those that ask
//! (`large_pages`). With `GLIBC_TUNABLES` set to anything, as to nothing, pages are what they are without
//! being asked for.

#![allow(clippy::disallowed_methods)] // a benchmark reads the clock
#![allow(missing_docs)] // of functions that criterion's macros make

#[allow(dead_code)] // data segments: only their instructions are counted
#[path = "scenarios/gateway.rs"]
mod scenario;

use criterion::{criterion_group, BenchmarkId, Criterion, Throughput};
use scenario::{Bench, BATCH};

fn gateway(c: &mut Criterion) {
    let mut group = c.benchmark_group("gateway/ack");
    group.throughput(Throughput::Elements(1)).sample_size(20);
    for flows in [1u32, 1_000, 100_000, 1_000_000] {
        let mut bench: Option<Bench> = None;
        group.bench_with_input(BenchmarkId::from_parameter(flows), &flows, |b, &flows| {
            let bench = bench.get_or_insert_with(|| Bench::new(flows));
            b.iter_custom(|n| bench.run(n));
        });
        let Some(mut bench) = bench else { continue };
        bench.batches.sort_unstable();
        let median = bench.batches.get(bench.batches.len() / 2);
        let c = bench.gateway.flows.class_stats().next().unwrap();
        println!(
            "    {flows} flows: {} ACKs in, {} out; since their handshakes {} absorbed, {} made, {} passed on; \
             the median of batches of {BATCH} is {} ns per ACK",
            bench.acks_in,
            bench.acks_out,
            c.acks_absorbed,
            c.acks_generated,
            c.acks_forwarded + c.acks_rewritten,
            median.unwrap_or(&0)
        );
    }
    group.finish();
}

/// glibc asks for large pages for its heap if a tunable says so as the program starts (since 2.35): starts
/// this program again with it. A user's own tunables stay; under valgrind, which cannot start it
/// again, they have to be set.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn large_pages() {
    use std::os::unix::process::CommandExt;
    const VARIABLE: &str = "GLIBC_TUNABLES";
    if std::env::var_os(VARIABLE).is_none() {
        let mut again = std::process::Command::new("/proc/self/exe");
        let error = again.args(std::env::args_os().skip(1)).env(VARIABLE, "glibc.malloc.hugetlb=1").exec();
        println!("without large pages: {error}");
    }
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn large_pages() {}

criterion_group!(benches, gateway);

fn main() {
    large_pages();
    benches();
    Criterion::default().configure_from_args().final_summary();
}
