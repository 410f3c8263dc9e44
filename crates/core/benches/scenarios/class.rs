//! A link-sharing tree whose flows have a frame waiting all the time.

use std::hint::black_box;
use weir_core::class::{Spec, Tree};
use weir_core::frame::{Charge, Frames, Waiting};
use weir_core::node::Cx;
use weir_core::queue::{self, Kind, QueueLimit};
use weir_core::rate::Rate;
use weir_core::time::Time;
use weir_core::wire::build::SegmentBuilder;

const FULL: Charge = Charge { packets: 1, bytes: 1514 };
/// Classes of a group.
const GROUP: usize = 100;

pub struct Bench {
    tree: Tree,
    frames: Frames,
    now: Time,
}

/// A link, groups with half of it for themselves, and in these as many classes with half of that.
fn specs(kind: Kind, classes: usize) -> Vec<Spec> {
    let part = |n: usize| Rate::from_bps(5_000_000_000 / n as u64);
    let groups = classes.div_ceil(GROUP);
    let queue = Some(queue::Config { limit: QueueLimit::Unlimited, kind, tins: None });
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
    pub fn new(kind: Kind, classes: usize, flows: usize) -> Bench {
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
    pub fn turn(&mut self) {
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
