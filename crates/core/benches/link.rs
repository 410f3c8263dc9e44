//! Nanoseconds per frame through a link: in, and out again.
//!
//! Full frames arrive as fast as a 1 Gb/s link sends them, so each frame in is a frame out. Some wait in the
//! queue and 833 (10 ms) are under way, or a bare wire takes them. The frame that comes out goes in
//! again: neither pool nor headers are part of the time.

#![allow(clippy::disallowed_methods)] // a benchmark reads the clock
#![allow(missing_docs)] // of functions that criterion's macros make

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use std::hint::black_box;
use weir_core::frame::Frames;
use weir_core::link::{Config, Link, Loss, QueueLimit};
use weir_core::node::{Cx, Node, PortSet};
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};
use weir_core::wire::build::SegmentBuilder;

/// IP bytes of a full frame.
const FULL: u64 = 1500;

struct Bench {
    link: Link,
    frames: Frames,
    now: Time,
    gap: Duration,
}

impl Bench {
    /// A link with `waiting` frames in its queue, or a bare wire that holds one.
    fn new(config: Config, waiting: usize) -> Bench {
        let gap = Rate::mbit(1000).time_for(FULL);
        let flying = config.rate.map_or(0, |_| config.delay.as_nanos() / gap.as_nanos()) as usize;
        let chunks = waiting + flying + 16;
        let mut b =
            Bench { link: Link::new(config), frames: Frames::new(chunks, 128, 0), now: Time::ZERO, gap };
        let segment = SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).ports(1, 2).ts(1, 1).payload(1448);
        let (head, len) = segment.build_head();
        // The first is served, and one more is due at the end of each gap.
        for n in 0..=flying + waiting {
            let frame = b.frames.receive_copy(&head, len, b.now).unwrap();
            b.link.handle_frame(&mut Cx { now: b.now, frames: &mut b.frames }, Link::IN, frame);
            if n >= waiting {
                b.now += gap;
            }
        }
        b
    }

    /// One frame out and in again.
    fn turn(&mut self) {
        let mut cx = Cx { now: self.now, frames: &mut self.frames };
        let mut again = None;
        while let Some(sent) = self.link.poll_transmit(&mut cx, PortSet::ALL) {
            assert!(again.replace(sent.frame).is_none(), "one frame a turn");
        }
        let frame = again.expect("one frame a turn");
        self.link.handle_frame(&mut cx, Link::IN, frame);
        black_box(self.link.next_deadline(PortSet::ALL));
        self.now += self.gap;
    }
}

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
