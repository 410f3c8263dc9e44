//! Nanoseconds per frame through a link-sharing tree: out of its queue at its time, and in again.
//!
//! Every flow has one full frame waiting all the time, so each row has as many frames as flows. The classes are alike, below a
//! link of 10 Gb/s in groups of 100, and flows are dealt out to them in turn. Classification is no part of it.

#![allow(clippy::disallowed_methods)] // a benchmark reads the clock
#![allow(missing_docs)] // of functions that criterion's macros make

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use std::hint::black_box;
use weir_core::class::{Spec, Tree};
use weir_core::frame::{Charge, Frames, Waiting};
use weir_core::node::Cx;
use weir_core::queue::{self, pfq, Kind, QueueLimit};
use weir_core::rate::Rate;
use weir_core::time::Time;
use weir_core::wire::build::SegmentBuilder;

const FULL: Charge = Charge { packets: 1, bytes: 1514 };
/// Classes of a group.
const GROUP: usize = 100;

struct Bench {
    tree: Tree,
    frames: Frames,
    now: Time,
}

/// A link, groups with half of it for themselves, and in these as many classes with half of that.
fn specs(kind: Kind, classes: usize) -> Vec<Spec> {
    let part = |n: usize| Rate::from_bps(5_000_000_000 / n as u64);
    let groups = classes.div_ceil(GROUP);
    let queue = Some(queue::Config { limit: QueueLimit::Unlimited, kind });
    let group = Spec { rate: part(groups), ..Spec::of(Some(0)) };
    let mut specs = vec![Spec { rate: Some(Rate::mbit(10_000)), ..Spec::of(None) }];
    specs.resize(1 + groups, group);
    specs.extend((0..classes).map(|i| Spec {
        rate: part(2 * classes),
        queue,
        ..Spec::of(Some(1 + i / GROUP))
    }));
    specs
}

impl Bench {
    fn new(kind: Kind, classes: usize, flows: usize) -> Bench {
        let specs = specs(kind, classes);
        let first = specs.len() - classes;
        let tree = Tree::new(&specs).expect("a sound tree");
        let mut b = Bench { tree, frames: Frames::new(flows + 16, 128, 0), now: Time::ZERO };
        for n in 0..flows {
            let [_, a, c, d] = (n as u32).to_be_bytes();
            let segment = SegmentBuilder::v4([10, a, c, d], [192, 0, 2, 1]).ports(1, 2).payload(1448);
            let (head, len) = segment.build_head();
            let frame = b.frames.receive_copy(&head, len, b.now).expect("room");
            let waiting = Waiting { frame: b.frames.park(frame), charge: FULL, since: b.now };
            let mut cx = Cx { now: b.now, frames: &mut b.frames };
            b.tree.push(&mut cx, first + n % classes, waiting);
        }
        b
    }

    /// One frame out and in again.
    fn turn(&mut self) {
        // A class that may borrow again need not be one that can send.
        let popped = loop {
            self.now = self.tree.due().expect("something waits");
            self.tree.advance(&self.frames, self.now);
            let mut cx = Cx { now: self.now, frames: &mut self.frames };
            if let Some(popped) = self.tree.pop(&mut cx) {
                break popped;
            }
        };
        let mut cx = Cx { now: self.now, frames: &mut self.frames };
        let again = Waiting { since: self.now, ..popped.waiting };
        black_box(self.tree.push(&mut cx, popped.class, again));
    }
}

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
