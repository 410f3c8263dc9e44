//! Nanoseconds per ACK through the gateway, with 1 to 1,000,000 flows.
//!
//! ACKs of randomly chosen backlogged flows arrive at a million a second of virtual time; each
//! acknowledges two segments and the flow's rate releases as much, so one ACK in means one ACK out:
//! parse, verify the checksum, find the flow, absorb, fire the flow's timer, make the next ACK. Only
//! that is timed, not the making of the input.

#![allow(clippy::disallowed_methods)] // a benchmark reads the clock
#![allow(missing_docs)] // of functions that criterion's macros make

use criterion::{criterion_group, criterion_main, BenchmarkId, Criterion, Throughput};
use std::hint::black_box;
use std::time::{Duration as Wall, Instant};
use weir_core::ack::{AckControl, Period, RateRelease, Release};
use weir_core::frame::{Frame, Frames};
use weir_core::gateway::{ClassConfig, Config, Direction, Gateway, WAN};
use weir_core::node::{Cx, Node, PortSet};
use weir_core::rate::Rate;
use weir_core::rng::Rng;
use weir_core::time::{Duration, Time};
use weir_core::wire::build::Segment;
use weir_core::wire::{self, Flags};

const TWO_SEGMENTS: u32 = 2 * 1448;
const ACKS_PER_SECOND: u64 = 1_000_000;
/// Announced together, as by a driver that a second of ACKs reaches in rounds.
const BATCH: usize = 64;

struct Bench {
    gateway: Gateway,
    frames: Frames,
    now: Time,
    acked: Vec<u32>,
    rng: Rng,
    template: Vec<u8>,
}

impl Bench {
    fn new(flows: u32) -> Bench {
        let bps = u64::from(TWO_SEGMENTS) * 8 * ACKS_PER_SECOND / u64::from(flows);
        // Two segments a release at any rate, so that one ACK in is one ACK out.
        let rate = Rate::from_bps(bps).unwrap();
        let period = Period::Auto { min: Duration::from_nanos(1), max: Duration::from_secs(4) };
        let release = Release::Rate(RateRelease { period, ..RateRelease::new(rate) });
        let ack = AckControl { release, ..AckControl::ack_shaper(rate) };
        let class =
            ClassConfig { name: "all".into(), direction: Direction::Out, matches: vec![], ack: Some(ack) };
        let config = Config { classes: vec![class], max_flows: flows, ..Config::default() };
        let template = Segment::v4([10, 1, 0, 0], [10, 0, 0, 1]).ports(5001, 40000).seq(1).ack(0);
        let mut bench = Bench {
            gateway: Gateway::new(config),
            frames: Frames::new(4096, 2048, 1024),
            now: Time::from_secs(1),
            acked: vec![0; flows as usize],
            rng: Rng::new(7),
            template: template.flags(Flags::ACK).window(5000).ts(1, 1).build(),
        };
        // Every flow is taken up in mid-stream, which takes some ACKs, and given a backlog.
        for _ in 0..8 {
            for flow in 0..flows {
                let frame = bench.ack(flow);
                bench.process(vec![frame]);
            }
        }
        bench
    }

    fn ack(&mut self, flow: u32) -> Frame {
        let acked = &mut self.acked[flow as usize];
        *acked += TWO_SEGMENTS;
        let ack = *acked;
        self.template[28..30].copy_from_slice(&(flow as u16).to_be_bytes());
        self.template[27] = (flow >> 16) as u8;
        let p = wire::packet(&self.template, self.template.len());
        // The address changed under the header checksum: sum it anew before parsing.
        self.template[24..26].fill(0);
        let sum =
            self.template[14..34].chunks(2).map(|c| u32::from(c[0]) << 8 | u32::from(c[1])).sum::<u32>();
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        self.template[24..26].copy_from_slice(&sum.to_be_bytes());
        let p = p.or_else(|_| wire::packet(&self.template, self.template.len())).unwrap();
        wire::set_ack(&mut self.template, &p, ack, weir_core::frame::Checksum::Partial);
        wire::checksum::fill(&mut self.template, &p);
        self.frames.receive_copy(&self.template, self.template.len(), self.now).unwrap()
    }

    fn process(&mut self, batch: Vec<Frame>) -> Wall {
        let apart = Duration::from_nanos(1_000_000_000 / ACKS_PER_SECOND);
        let mut arrivals = Vec::with_capacity(batch.len());
        for frame in batch {
            self.now += apart;
            arrivals.push((self.now, WAN, frame));
        }
        let start = Instant::now();
        self.gateway.announce(&self.frames, &arrivals);
        for (now, port, frame) in arrivals {
            let mut cx = Cx { now, frames: &mut self.frames };
            self.gateway.handle_frame(&mut cx, port, frame);
            while let Some(t) = self.gateway.poll_transmit(&mut cx, PortSet::ALL) {
                black_box(t.at);
                cx.frames.transmitted(t.frame);
            }
        }
        start.elapsed()
    }

    fn run(&mut self, acks: u64) -> Wall {
        let mut spent = Wall::ZERO;
        let mut left = acks;
        while left > 0 {
            let n = left.min(BATCH as u64);
            let flows = self.acked.len() as u64;
            let batch: Vec<Frame> = (0..n)
                .map(|_| {
                    let flow = self.rng.below(flows) as u32;
                    self.ack(flow)
                })
                .collect();
            spent += self.process(batch);
            left -= n;
        }
        spent
    }
}

fn gateway(c: &mut Criterion) {
    let mut group = c.benchmark_group("gateway/ack");
    group.throughput(Throughput::Elements(1)).sample_size(20);
    for flows in [1u32, 1_000, 100_000, 1_000_000] {
        let mut bench = Bench::new(flows);
        group.bench_with_input(BenchmarkId::from_parameter(flows), &flows, |b, _| {
            b.iter_custom(|n| bench.run(n));
        });
        let c = bench.gateway.class_stats().next().unwrap();
        println!("    {flows} flows: {} ACKs absorbed, {} made", c.acks_absorbed, c.acks_generated);
    }
    group.finish();
}

criterion_group!(benches, gateway);
criterion_main!(benches);
