//! A link with frames that go round: in, and out again.

use std::hint::black_box;
use weir_core::frame::Frames;
use weir_core::link::{Config, Link};
use weir_core::node::{Cx, Node, PortSet};
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};
use weir_core::wire::build::SegmentBuilder;

/// IP bytes of a full frame.
pub const FULL: u64 = 1500;

pub struct Bench {
    link: Link,
    frames: Frames,
    now: Time,
    gap: Duration,
}

impl Bench {
    /// A link with `waiting` frames in its queue, or a bare wire that holds one.
    pub fn new(config: Config, waiting: usize) -> Bench {
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
    pub fn turn(&mut self) {
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
