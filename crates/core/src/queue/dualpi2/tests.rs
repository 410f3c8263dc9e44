//! The controller's steps, probabilities and turns by arithmetic.

use super::*;
use crate::node::Cx;
use crate::queue::Queue;
use crate::wire::build::SegmentBuilder;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// p' as a fraction.
fn p(pi: &Pi) -> f64 {
    pi.probability() as f64 / ONE as f64
}

/// Fig. 6 by hand, with waits of 20, 30 and 10 ms. Changes: 0.16 × 5 ms + 3.2 × 20 ms = 0.0648; 0.16 × 15 ms
/// + 3.2 × 10 ms = 0.0344; 0.16 × -5 ms + 3.2 × -20 ms = -0.0648.
#[test]
fn the_base_probability_follows_the_wait() {
    let mut pi = Pi::new(MS(15), MS(16));
    let mut at = Time::ZERO;
    pi.catch_up(at, |_| panic!("the first update is an interval later"));
    for (waits, want) in [(20, 0.0648), (30, 0.0992), (10, 0.0344), (0, 0.0)] {
        at += MS(16);
        pi.catch_up(at, |now| {
            assert_eq!(now, at);
            MS(waits)
        });
        assert!((p(&pi) - want).abs() < 1e-9, "{waits}: {}", p(&pi));
    }
    assert_eq!(pi.probability(), 0);
    // p' is at most 1, and 1 squared is 1.
    pi.catch_up(at + MS(16), |_| Duration::from_secs(1000));
    assert_eq!((pi.probability(), pi.squared()), (ONE, ONE));
}

#[test]
fn updates_that_were_missed_are_made_each_at_its_time() {
    let (mut once, mut often) = (Pi::new(MS(15), MS(16)), Pi::new(MS(15), MS(16)));
    let waited = |at: Time| at.since(Time::from_millis(100));
    for ms in 0..400 {
        often.catch_up(Time::from_millis(ms), waited);
    }
    // A packet that arrives is reported at once.
    once.catch_up(Time::ZERO, waited);
    once.catch_up(Time::from_millis(100), waited);
    once.catch_up(Time::from_millis(399), waited);
    assert_eq!(once, often);
    assert_eq!(once.next(), Some(Time::from_millis(400)));
}

/// A queue that is fed packets of 1,000 bytes.
struct Bench {
    queue: Queue,
    frames: Frames,
    now: Time,
}

impl Bench {
    fn new(params: Params) -> Bench {
        let queue = DualPi2::new(params, QueueLimit::Packets(100), Rate::mbit(8));
        Bench { queue: Queue::DualPi2(Box::new(queue)), frames: Frames::growing(128), now: Time::ZERO }
    }

    fn inner(&mut self) -> &mut DualPi2 {
        match &mut self.queue {
            Queue::DualPi2(queue) => queue,
            _ => unreachable!(),
        }
    }

    /// Pushes a packet with this ECN field. `number` is its source port.
    fn push(&mut self, ecn: u8, number: u16) {
        let segment =
            SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).tos(ecn).ports(number, 80).payload(960);
        let (head, len) = segment.build_head();
        let frame = self.frames.receive_copy(&head, len, self.now).unwrap();
        let charge = crate::frame::Charge { packets: 1, bytes: 1000 };
        let waiting = Waiting { frame: self.frames.park(frame), charge, since: self.now };
        self.queue.push(&mut Cx { now: self.now, frames: &mut self.frames }, waiting);
    }

    /// Pops a packet. Returns its number and its ECN field.
    fn pop(&mut self) -> Option<(u16, u8)> {
        let waiting = self.queue.pop(&mut Cx { now: self.now, frames: &mut self.frames })?;
        let frame = self.frames.unpark(waiting.frame);
        let bytes = self.frames.bytes(&frame);
        let found = (u16::from_be_bytes([bytes[34], bytes[35]]), bytes[15] & 3);
        self.frames.transmitted(frame);
        Some(found)
    }
}

/// The coupled probability outlasts the queue: RFC 9332 figs 2 to 5 judge packets that find it empty as well.
#[test]
fn what_finds_the_server_idle_is_judged() {
    let mut b = Bench::new(Params::default());
    b.push(0b00, 1);
    b.now = Time::from_secs(1000);
    // After this wait p' is 1. It drops the packet that waited, and also the next, which finds nothing
    // waiting before it.
    assert_eq!((b.pop(), b.queue.stats().drops.get(DropReason::Aqm)), (None, 1));
    let pass = |b: &mut Bench| {
        let (head, len) = SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).payload(960).build_head();
        let frame = b.frames.receive_copy(&head, len, b.now).unwrap();
        let charge = crate::frame::Charge { packets: 1, bytes: 1000 };
        let waiting = Waiting { frame: b.frames.park(frame), charge, since: b.now };
        let passed = b.queue.pass(&mut Cx { now: b.now, frames: &mut b.frames }, waiting);
        passed
            .map(|waiting| b.frames.unpark(waiting.frame))
            .map(|frame| b.frames.transmitted(frame))
            .is_some()
    };
    assert!(!pass(&mut b));
    assert_eq!(b.queue.stats().drops.get(DropReason::Aqm), 2);
    // With an empty queue p' falls by 0.16 × 15 ms in each of 62.5 updates a second: from 1 to 0 in 7 s.
    b.now += Duration::from_secs(8);
    assert!(pass(&mut b));
}

/// One Classic packet, then nine L4S packets before the next: the first L4S packet turns the credit to
/// +1,000.
#[test]
fn the_queues_take_turns_by_bytes() {
    let mut b = Bench::new(Params::default());
    for n in 0..3 {
        b.push(0b10, n);
    }
    for n in 100..120 {
        b.push(0b01, n);
    }
    let order: Vec<bool> = core::iter::from_fn(|| b.pop()).map(|(n, _)| n >= 100).collect();
    let (l, c) = (true, false);
    let expected = [&[l, c][..], &[l; 9], &[c], &[l; 9], &[c], &[l]].concat();
    assert_eq!(order, expected);
    assert_eq!(b.inner().credit, 0);
}

/// The ramp from 0.8 to 1.2 ms marks a quarter of the L4S packets that wait 0.9 ms, but not the last one of
/// the queue.
#[test]
fn the_ramp_marks_l4s_packets_alone() {
    let mut b = Bench::new(Params::default());
    for n in 0..9 {
        b.push(0b01, n);
        b.push(0b00, 100 + n);
    }
    b.now = Time::from_micros(900);
    let sent: Vec<(u16, u8)> = core::iter::from_fn(|| b.pop()).collect();
    // Accumulated shares: after five packets 1.25, above 1; after the next three 1, and then 1.25 again.
    let marked: Vec<u16> = sent.iter().filter(|(_, ecn)| *ecn == 3).map(|(n, _)| *n).collect();
    assert_eq!(marked, [4]);
    assert_eq!(sent.len(), 18);
    assert_eq!(b.queue.stats().marks, 1);
    // A step marks from its wait on.
    let mut b = Bench::new(Params { step: MS(1), range: Duration::ZERO, ..Params::default() });
    for n in 0..4 {
        b.push(0b01, n);
    }
    b.now = Time::from_nanos(999_999);
    assert_eq!(b.pop(), Some((0, 1)));
    b.now = Time::from_millis(1);
    assert_eq!([b.pop(), b.pop(), b.pop()], [Some((1, 3)), Some((2, 3)), Some((3, 1))]);
}

/// p' = 1/4: Classic packets are signalled with 1/16, L4S packets with 1/2.
#[test]
fn both_queues_are_coupled() {
    let mut b = Bench::new(Params::default());
    b.inner().pi = quarter(1);
    let (mut marked, mut dropped) = (0, 0);
    for n in 0..320 {
        b.push(if n % 2 == 0 { 0b00 } else { 0b10 }, n);
        match b.pop() {
            None => dropped += 1,
            Some((_, 3)) => marked += 1,
            Some(_) => (),
        }
    }
    // Every 16th packet, once the shares exceed one: packets 17, 33, … These have even numbers, which are not
    // ECN-capable.
    assert_eq!((dropped, marked), (19, 0));
    let mut marked = 0;
    for n in 0..100 {
        b.push(0b01, n);
        marked += usize::from(b.pop() == Some((n, 3)));
    }
    assert_eq!(marked, 49);
    assert_eq!(b.queue.stats().drops.get(DropReason::Aqm), 19);
}

/// Controller with p' = n/4 and no further updates.
fn quarter(n: u64) -> Pi {
    let mut pi = Pi::new(MS(15), Duration::from_secs(1 << 30));
    pi.force(n * ONE / 4);
    pi
}

/// From p' = 1/2 on, with k = 2, every kind of packet is dropped with p'²: here 1/4.
#[test]
fn under_overload_what_is_ecn_capable_is_dropped_too() {
    for ecn in [0b00, 0b01, 0b10, 0b11] {
        let mut b = Bench::new(Params::default());
        b.inner().pi = quarter(2);
        let sent: Vec<bool> = (0..81)
            .map(|n| {
                b.push(ecn, n);
                b.pop().is_some()
            })
            .collect();
        let dropped: Vec<usize> = (0..81).filter(|i| !sent[*i]).collect();
        // Shares of a quarter: more than one after five packets, and then after every four.
        assert_eq!(dropped, (4..81).step_by(4).collect::<Vec<_>>(), "{ecn:02b}");
    }
}
