//! Turns, drops and signals by hand.

use super::*;
use crate::queue::Queue;
use crate::time::{Duration, Time};
use crate::wire::build::SegmentBuilder;

struct Bench {
    queue: Queue,
    frames: Frames,
    now: Time,
}

impl Bench {
    fn new(params: Params, limit: QueueLimit) -> Bench {
        let queue = FqCodel::new(params, limit, Rate::mbit(8), 7);
        Bench { queue: Queue::FqCodel(Box::new(queue)), frames: Frames::growing(128), now: Time::ZERO }
    }

    /// Pushes a packet of the flow with this port, with `number` in its sequence number.
    fn push(&mut self, flow: u16, number: u32, bytes: u64) -> Option<DropReason> {
        let segment =
            SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).tos(2).ports(flow, 80).seq(number).payload(900);
        let (head, len) = segment.build_head();
        let frame = self.frames.receive_copy(&head, len, self.now).unwrap();
        let charge = crate::frame::Charge { packets: 1, bytes };
        let waiting = Waiting { frame: self.frames.park(frame), charge, since: self.now };
        self.queue.push(&mut Cx { now: self.now, frames: &mut self.frames }, waiting)
    }

    /// Pops a packet. Returns its flow, its number, and whether it is marked. Checks it against the head
    /// reported before.
    fn pop(&mut self) -> Option<(u16, u32, bool)> {
        let waiting = self.queue.pop(&mut Cx { now: self.now, frames: &mut self.frames })?;
        let frame = self.frames.unpark(waiting.frame);
        let b = self.frames.bytes(&frame);
        let number = u32::from_be_bytes([b[38], b[39], b[40], b[41]]);
        let found = (u16::from_be_bytes([b[34], b[35]]), number, b[15] & 3 == 3);
        self.frames.transmitted(frame);
        Some(found)
    }

    fn flows(&mut self) -> Vec<(u16, u32)> {
        core::iter::from_fn(|| self.pop()).map(|(flow, number, _)| (flow, number)).collect()
    }

    fn check(&self) {
        let ledger = self.frames.ledger();
        assert_eq!((ledger.held(), ledger.drops), (self.queue.packets(), self.queue.stats().drops));
    }
}

/// Three packets of 1,000 bytes of flow 1, then three of 500 of flow 2; a quantum of 1,500.
#[test]
fn queues_take_turns_and_new_ones_go_first() {
    let mut b = Bench::new(Params { quantum: 1500, ..Params::default() }, QueueLimit::Packets(100));
    (1..=3).for_each(|n| assert_eq!(b.push(1, n, 1000), None));
    // The deficit is 500, and -500 after the next packet. This queue is served to the end of its turn first.
    assert_eq!(b.pop(), Some((1, 1, false)));
    (1..=4).for_each(|n| assert_eq!(b.push(2, n, 500), None));
    assert_eq!(b.pop(), Some((1, 2, false)));
    // The first queue is old now. The second sends its quantum of three packets, and then is behind the
    // first.
    let head = b.queue.head(&b.frames).unwrap();
    assert_eq!(head.charge.bytes, 500);
    assert_eq!(b.flows(), [(2, 1), (2, 2), (2, 3), (1, 3), (2, 4)]);
    b.check();
}

/// A flow that sends one packet at a time is new once: while others wait, it becomes old before it leaves.
#[test]
fn a_flow_that_sends_little_is_not_new_again_before_the_others_had_their_turn() {
    let mut b = Bench::new(Params { quantum: 1000, ..Params::default() }, QueueLimit::Packets(100));
    (1..=4).for_each(|n| assert_eq!(b.push(1, n, 1000), None));
    // One quantum: flow 1 is old.
    assert_eq!(b.pop(), Some((1, 1, false)));
    b.push(2, 1, 100);
    assert_eq!(b.pop(), Some((2, 1, false)));
    // Its queue is empty, but still the first of the new ones. The next packets have 900 bytes of its turn
    // left.
    b.push(2, 2, 900);
    b.push(2, 3, 100);
    assert_eq!([b.pop(), b.pop()], [Some((2, 2, false)), Some((1, 2, false))]);
    assert_eq!(b.flows(), [(2, 3), (1, 3), (1, 4)]);
    b.check();
}

/// Beyond the limit, the longest queue loses half from its head.
#[test]
fn the_longest_queue_loses_half_from_its_head() {
    let mut b = Bench::new(Params::default(), QueueLimit::Packets(10));
    (1..=8).for_each(|n| assert_eq!(b.push(1, n, 1000), None));
    (1..=2).for_each(|n| assert_eq!(b.push(2, n, 100), None));
    assert_eq!(b.push(2, 3, 100), None);
    assert_eq!((b.queue.packets(), b.queue.stats().drops.get(DropReason::QueueFull)), (7, 4));
    assert_eq!(b.queue.stats().peak_packets, 10);
    let mut rest = b.flows();
    rest.sort();
    assert_eq!(rest, [(1, 5), (1, 6), (1, 7), (1, 8), (2, 1), (2, 2), (2, 3)]);
    b.check();
    // Up to 64 at once.
    let mut b = Bench::new(Params::default(), QueueLimit::Packets(200));
    (0..=200).for_each(|n| assert_eq!(b.push(1, n, 1000), None));
    assert_eq!(b.queue.packets(), 201 - 64);
    b.check();
    // A frame that makes its own queue the longest may be lost itself.
    let mut b = Bench::new(Params::default(), QueueLimit::Bytes(1000));
    assert_eq!(b.push(1, 1, 400), None);
    assert_eq!(b.push(2, 1, 800), Some(DropReason::QueueFull));
    assert_eq!(b.flows(), [(1, 1)]);
}

/// A flow that keeps its queue too long is marked; one that does not is not.
#[test]
fn each_queue_has_its_own_delay() {
    let mut b = Bench::new(Params::default(), QueueLimit::Packets(1000));
    let mut marked = [0; 2];
    // 8 Mb/s: one packet of 1,000 bytes leaves each millisecond. Flow 1 keeps 40 waiting, flow 2 sends one in
    // ten.
    (0..40).for_each(|n| assert_eq!(b.push(1, n, 1000), None));
    for n in 0..1000 {
        b.now += Duration::from_millis(1);
        b.push(if n % 10 == 0 { 2 } else { 1 }, n, 1000);
        let (flow, _, ce) = b.pop().unwrap();
        marked[usize::from(flow) - 1] += u32::from(ce);
    }
    assert!(marked[0] > 5 && marked[1] == 0, "{marked:?}");
    assert_eq!(b.queue.stats().drops.total(), 0);
    b.check();
}

/// RFC 8289 §5.5: nothing is signalled while at most one packet waits, however large. Packets leave every 10
/// ms; with two behind each that leaves, the first mark is due an interval after the first wait too long.
#[test]
fn a_full_frame_is_as_large_as_what_comes() {
    for (behind, marks) in [(1, vec![]), (2, vec![110])] {
        let mut b = Bench::new(Params { quantum: 9014, ..Params::default() }, QueueLimit::Packets(100));
        (0..behind).for_each(|n| assert_eq!(b.push(1, n, 9014), None));
        let mut marked = Vec::new();
        for at in (10..=120).step_by(10) {
            assert_eq!(b.push(1, at, 9014), None);
            b.now += Duration::from_millis(10);
            marked.extend(b.pop().is_some_and(|(_, _, ce)| ce).then_some(at));
        }
        assert_eq!(marked, marks, "{behind}");
    }
}
