//! Rules of every discipline, and the limits of each against a model.

use super::*;
use crate::frame::{Charge, Waiting};
use crate::stats::DropReason;
use crate::time::{Duration, Time};
use proptest::prelude::*;
use std::collections::VecDeque;

/// A queue, its frame pool, and the frames that it was handed.
pub(super) struct Bench {
    queue: Queue,
    frames: Frames,
    pushed: u64,
}

impl Bench {
    pub(super) fn new(queue: Queue) -> Bench {
        Bench { queue, frames: Frames::growing(128), pushed: 0 }
    }

    /// Pushes a frame with a number. Returns the reason if it was dropped.
    pub(super) fn push(&mut self, now: Time, number: u32, charge: Charge) -> Option<DropReason> {
        let frame = self.frames.receive_copy(&number.to_be_bytes(), 60, now).unwrap();
        self.pushed += 1;
        let frame = self.frames.park(frame);
        let mut cx = Cx { now, frames: &mut self.frames };
        self.queue.push(&mut cx, Waiting { frame, charge, since: now })
    }

    /// Pops a frame. Returns its number, and the charge and time that the head reported.
    pub(super) fn pop(&mut self, now: Time) -> Option<(u32, Charge, Time)> {
        let head = self.queue.head(&self.frames).map(|w| (w.charge, w.since));
        let Waiting { frame, charge, since } = self.queue.pop(&mut Cx { now, frames: &mut self.frames })?;
        assert_eq!(head, Some((charge, since)));
        let frame = self.frames.unpark(frame);
        let number = u32::from_be_bytes(self.frames.bytes(&frame)[..4].try_into().unwrap());
        self.frames.transmitted(frame);
        Some((number, charge, since))
    }

    /// Checks that every frame handed in has left, waits, or was dropped with a reason that the queue
    /// counted.
    pub(super) fn check(&self, waiting: usize) {
        let ledger = self.frames.ledger();
        assert_eq!((ledger.received, ledger.held()), (self.pushed, waiting as u64));
        assert_eq!(ledger.drops, self.queue.stats().drops);
        assert_eq!(self.frames.chunks() - self.frames.free_chunks(), waiting);
    }
}

pub(super) fn one(bytes: u64) -> Charge {
    Charge { packets: 1, bytes }
}

#[test]
fn what_fits_behind_the_others_waits_and_the_rest_is_dropped() {
    let mut b = Bench::new(Queue::Fifo(Fifo::new(QueueLimit::Bytes(3000), None, Rate::mbit(10))));
    let at = Time::from_micros;
    assert_eq!(b.push(at(1), 1, one(1500)), None);
    assert_eq!(b.push(at(2), 2, Charge { packets: 2, bytes: 1000 }), None);
    assert_eq!(b.push(at(3), 3, one(501)), Some(DropReason::QueueFull));
    assert_eq!(b.push(at(4), 4, one(500)), None);
    assert_eq!((b.queue.packets(), b.queue.bytes()), (4, 3000));
    assert_eq!(b.pop(at(9)), Some((1, one(1500), at(1))));
    assert_eq!(b.pop(at(9)), Some((2, Charge { packets: 2, bytes: 1000 }, at(2))));
    assert_eq!((b.queue.packets(), b.queue.bytes()), (1, 500));
    let stats = *b.queue.stats();
    assert_eq!((stats.peak_packets, stats.peak_bytes), (4, 3000));
    assert_eq!((stats.drops.total(), stats.dropped_bytes), (1, 501));
    b.check(1);
}

#[test]
fn a_limit_in_round_trips_follows_the_rate() {
    // 10 Mb/s × 2.4 ms are 3,000 bytes; at 2 Mb/s 600.
    let bdp = QueueLimit::Bdp { rtt: Duration::from_micros(2400) };
    let mut b = Bench::new(Queue::Fifo(Fifo::new(bdp, None, Rate::mbit(10))));
    let pushed: Vec<_> = (0..4).map(|n| b.push(Time::ZERO, n, one(1000)).is_none()).collect();
    assert_eq!(pushed, [true, true, true, false]);
    b.queue.set_limit(bdp, Rate::mbit(2));
    // Waiting frames stay. A new frame finds no room until less than the limit waits.
    assert_eq!(b.push(Time::ZERO, 4, one(1)), Some(DropReason::QueueFull));
    assert_eq!((0..3).filter_map(|_| b.pop(Time::ZERO)).count(), 3);
    assert_eq!(b.push(Time::ZERO, 5, one(601)), Some(DropReason::QueueFull));
    assert_eq!(b.push(Time::ZERO, 6, one(600)), None);
    b.check(1);
}

proptest! {
    /// (push or pop, packets, bytes)
    #[test]
    fn a_fifo_is_a_ring_with_a_limit(
        steps in prop::collection::vec((prop::bool::weighted(0.6), 1u32..5, 0u64..2000), 0..400),
        packets in 0u32..40, bytes in 0u64..20_000, by_bytes: bool,
    ) {
        let (limit, packets, bytes) = match by_bytes {
            true => (QueueLimit::Bytes(bytes), u64::MAX, bytes),
            false => (QueueLimit::Packets(packets), packets.into(), u64::MAX),
        };
        let mut b = Bench::new(Queue::Fifo(Fifo::new(limit, None, Rate::mbit(1))));
        let mut model: VecDeque<(u32, Charge, Time)> = VecDeque::new();
        for (n, (push, p, len)) in (0u32..).zip(steps) {
            let now = Time::from_micros(n.into());
            if push {
                let charge = Charge { packets: p, bytes: len };
                let waits = |of: fn(&Charge) -> u64| model.iter().map(|m| of(&m.1)).sum::<u64>() + of(&charge);
                let fits = waits(|c| c.packets.into()) <= packets && waits(|c| c.bytes) <= bytes;
                prop_assert_eq!(b.push(now, n, charge).is_none(), fits);
                if fits {
                    model.push_back((n, charge, now));
                }
            } else {
                prop_assert_eq!(b.pop(now), model.pop_front());
            }
            prop_assert_eq!(b.queue.bytes(), model.iter().map(|m| m.1.bytes).sum::<u64>());
            prop_assert_eq!(b.queue.packets(), model.iter().map(|m| u64::from(m.1.packets)).sum::<u64>());
            b.check(model.len());
        }
    }
}
