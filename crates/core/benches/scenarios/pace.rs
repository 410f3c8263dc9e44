//! A pacer on a line of 10 Gb/s with two full frames of each class waiting.

use std::hint::black_box;
use weir_core::frame::{Charge, Frames, Waiting};
use weir_core::node::Cx;
use weir_core::pace::{Backend, Class, Counts, Pacer, Port, Slot, Target};
use weir_core::queue::{self, Kind, QueueLimit};
use weir_core::rate::Rate;
use weir_core::time::Time;

const FULL: Charge = Charge { packets: 1, bytes: 1514 };
const LINE: u64 = 10_000_000_000;

pub struct Bench {
    pacer: Pacer,
    frames: Frames,
    now: Time,
}

impl Bench {
    pub fn new(backend: Backend, classes: u64) -> Bench {
        // From one part to two parts, three halves on average.
        let rate = |i: u64| LINE / 100 * 95 * 2 / 3 / classes * (classes + i) / classes;
        let class = |i: u64| Class {
            target: Target::Rate(Rate::from_bps(rate(i)).expect("above zero")),
            counts: Counts::Wire,
            backend,
        };
        let fifo = queue::Config { limit: QueueLimit::Unlimited, kind: Kind::Fifo, tins: None };
        let all: Vec<_> = (0..classes).map(|i| (class(i), fifo)).collect();
        let port = Port { line: Rate::from_bps(LINE), ..Port::default() };
        let pacer = Pacer::new(port, &all, 14).expect("a sound port");
        let frames = Frames::new(2 * classes as usize + 16, 128, 0);
        let mut b = Bench { pacer, frames, now: Time::ZERO };
        for n in 0..2 * classes {
            let frame = b.frames.receive_copy(&[0; 64], 1514, b.now).expect("room");
            let waiting = Waiting { frame: b.frames.park(frame), charge: FULL, since: b.now };
            let mut cx = Cx { now: b.now, frames: &mut b.frames };
            b.pacer.push(&mut cx, Some((n % classes) as usize), waiting);
        }
        b
    }

    /// One thing put on the line; a packet comes again. Was it a packet?
    pub fn turn(&mut self) -> bool {
        loop {
            self.now = self.now.max(self.pacer.due().expect("something waits"));
            let mut cx = Cx { now: self.now, frames: &mut self.frames };
            match self.pacer.pop(&mut cx) {
                Some(Slot::Packet { class, waiting, at }) => {
                    let again = Waiting { since: at, ..waiting };
                    black_box(self.pacer.push(&mut cx, class, again));
                    return true;
                }
                Some(Slot::Fillers { .. }) => return false,
                None => {}
            }
        }
    }
}
