//! An ACK filter with ACKs of many flows waiting.

use std::hint::black_box;
use weir_core::frame::{Charge, Frames, Waiting};
use weir_core::node::Cx;
use weir_core::queue::ack_filter::{Params, Policy, Service};
use weir_core::queue::{AckFilter, Queue, QueueLimit};
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::{self, checksum};

const ACK: Charge = Charge { packets: 1, bytes: 52 };

pub struct Bench {
    queue: Queue,
    frames: Frames,
    now: Time,
    /// One ACK of each flow.
    acks: Vec<Vec<u8>>,
    next: usize,
    number: u32,
}

impl Bench {
    pub fn new(policy: Policy, service: Service, flows: usize, waiting: usize) -> Bench {
        let params = Params { policy, service, flows: flows as u32, ..Params::default() };
        let filter = AckFilter::new(params, QueueLimit::Unlimited, Rate::mbit(10));
        let ack = |n: usize| {
            let [_, a, b, c] = (n as u32).to_be_bytes();
            SegmentBuilder::v4([10, a, b, c], [192, 0, 2, 1]).ports(1, 2).ts(1, 1).build()
        };
        let mut b = Bench {
            queue: Queue::AckFilter(Box::new(filter)),
            frames: Frames::new(waiting + flows + 16, 128, 0),
            now: Time::ZERO,
            acks: (0..flows).map(ack).collect(),
            next: 0,
            number: 0,
        };
        // Duplicates without SACK: they are kept.
        (0..waiting).for_each(|_| b.come(0));
        b
    }

    /// An ACK of the next flow comes, that acknowledges `more` than the one before it.
    pub fn come(&mut self, more: u32) {
        let flow = self.next;
        self.next = (flow + 1) % self.acks.len();
        if flow == 0 {
            self.number = self.number.wrapping_add(more);
        }
        let bytes = &mut self.acks[flow];
        if more > 0 {
            let p = wire::packet(bytes, bytes.len()).expect("an ACK");
            bytes[42..46].copy_from_slice(&self.number.to_be_bytes());
            checksum::fill(bytes, &p);
        }
        let frame = self.frames.receive_copy(bytes, bytes.len(), self.now).expect("room");
        let waiting = Waiting { frame: self.frames.park(frame), charge: ACK, since: self.now };
        let mut cx = Cx { now: self.now, frames: &mut self.frames };
        black_box(self.queue.push(&mut cx, waiting));
        self.now += Duration::from_nanos(1000);
    }

    pub fn turn(&mut self) {
        let mut cx = Cx { now: self.now, frames: &mut self.frames };
        let left = self.queue.pop(&mut cx).expect("something waits");
        let again = Waiting { since: self.now, ..left };
        black_box(self.queue.push(&mut cx, again));
        self.now += Duration::from_nanos(1000);
    }
}
