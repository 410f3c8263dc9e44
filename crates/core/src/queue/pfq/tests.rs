//! Turns and drops computed by hand, and invariants of any sequence.

use super::*;
use crate::frame::Charge;
use crate::time::Time;
use crate::wire::build::SegmentBuilder;
use proptest::prelude::*;
use std::collections::{HashMap, VecDeque};

struct Bench {
    pfq: Pfq,
    frames: Frames,
    /// Frames pushed so far.
    pushed: u32,
}

impl Bench {
    fn new(params: Params, limit: QueueLimit) -> Bench {
        Bench { pfq: Pfq::new(params, limit, Rate::mbit(1)), frames: Frames::growing(256), pushed: 0 }
    }

    /// Pushes a frame of a flow. Returns false if it was dropped at once.
    fn push(&mut self, flow: u16, charge: Charge) -> bool {
        let now = Time::from_nanos(self.pushed.into());
        self.pushed += 1;
        let (head, len) =
            SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).ports(flow, 80).payload(1000).build_head();
        let frame = self.frames.receive_copy(&head, len, now).unwrap();
        let frame = self.frames.park(frame);
        let mut cx = Cx { now, frames: &mut self.frames };
        self.pfq.push(&mut cx, Waiting { frame, charge, since: now }).is_none()
    }

    /// Pops a frame. Returns its flow, its time of arrival, and its bytes.
    fn pop(&mut self) -> Option<(u16, u64, u64)> {
        let head = self.pfq.head(&self.frames);
        let now = Time::from_nanos(self.pushed.into());
        let w = self.pfq.pop(&mut Cx { now, frames: &mut self.frames });
        assert_eq!(head.map(|h| (h.since, h.charge)), w.as_ref().map(|w| (w.since, w.charge)));
        let w = w?;
        let frame = self.frames.unpark(w.frame);
        let port = self.frames.bytes(&frame)[34..36].try_into().map(u16::from_be_bytes).unwrap();
        self.frames.transmitted(frame);
        Some((port, w.since.as_nanos(), w.charge.bytes))
    }

    fn flows(&mut self) -> Vec<u16> {
        std::iter::from_fn(|| self.pop()).map(|(flow, ..)| flow).collect()
    }
}

fn one(bytes: u64) -> Charge {
    Charge { packets: 1, bytes }
}

fn bench(limit: QueueLimit) -> Bench {
    Bench::new(Params::default(), limit)
}

#[test]
fn full_frames_take_turns() {
    let mut b = bench(QueueLimit::Unlimited);
    for flow in [1, 1, 1, 1, 2, 2, 3] {
        b.push(flow, one(1514));
    }
    assert_eq!(b.flows(), [1, 2, 3, 1, 2, 1, 1]);
}

#[test]
fn a_flow_that_begins_waits_for_those_that_have_been_served() {
    let mut b = bench(QueueLimit::Unlimited);
    for flow in [1, 1, 1, 2, 2] {
        b.push(flow, one(1514));
    }
    assert_eq!(b.pop().map(|p| p.0), Some(1));
    b.push(3, one(1514));
    // Flow 1 came back to its queue first.
    assert_eq!(b.flows(), [2, 1, 3, 2, 1]);
}

#[test]
fn bytes_are_shared_whatever_the_frames() {
    let mut b = Bench::new(Params { quantum: 1000, ..Params::default() }, QueueLimit::Unlimited);
    (0..20).for_each(|_| assert!(b.push(1, one(1000))));
    (0..100).for_each(|_| assert!(b.push(2, one(200))));
    (0..13).for_each(|_| assert!(b.push(3, one(1500))));
    // Three thousand bytes of each flow. The third flow sends in two rounds of three.
    let mut sent = HashMap::new();
    let order: Vec<_> = (0..3 + 15 + 2).map(|_| b.pop().unwrap()).collect();
    order.iter().for_each(|&(flow, _, bytes)| *sent.entry(flow).or_insert(0) += bytes);
    assert_eq!((sent[&1], sent[&2], sent[&3]), (3000, 3000, 3000));
    assert_eq!(order.iter().take(7).map(|o| o.0).collect::<Vec<_>>(), [1, 2, 2, 2, 2, 2, 3]);
}

#[test]
fn a_giant_pays_with_the_rounds_of_its_packets() {
    let mut b = bench(QueueLimit::Unlimited);
    let giant = Charge { packets: 10, bytes: 15_140 };
    b.push(1, giant);
    b.push(1, giant);
    (0..12).for_each(|_| assert!(b.push(2, one(1514))));
    let turns = b.flows();
    assert_eq!(turns.iter().position(|&f| f == 1), Some(0));
    // Nine full frames of the other flow; in the tenth round the giant's flow is first again.
    assert_eq!(turns.iter().rposition(|&f| f == 1), Some(10));
}

/// 65,535 bytes are 219 quanta of 300 bytes: as many frames of the others come before the next giant.
#[test]
fn a_giant_pays_for_all_of_its_bytes_whatever_the_quantum() {
    let mut b = Bench::new(Params { quantum: 300, ..Params::default() }, QueueLimit::Unlimited);
    let giant = Charge { packets: 45, bytes: 65_535 };
    (0..2).for_each(|_| assert!(b.push(1, giant)));
    (0..300).for_each(|_| assert!(b.push(2, one(300))));
    let turns = b.flows();
    assert_eq!(turns.iter().position(|&f| f == 1), Some(0));
    let second = turns.iter().rposition(|&f| f == 1).unwrap();
    assert!((218..=220).contains(&second), "{second}");
    // Alone it waits for no other flow.
    (0..2).for_each(|_| assert!(b.push(1, giant)));
    assert_eq!(b.flows(), [1, 1]);
}

/// Bytes that a flow gets that always sends the next frame only when the one before has left, beside a flow
/// that always has some waiting, as thousandths of those of that one.
fn share_of_one_at_a_time(quantum: u32, one_at_a_time: u64, beside: u64) -> u64 {
    let mut b = Bench::new(Params { quantum, ..Params::default() }, QueueLimit::Unlimited);
    let mut sent = [0, 0];
    b.push(2, one(beside));
    b.push(1, one(one_at_a_time));
    while sent[1] < 3_000_000 {
        b.push(2, one(beside));
        let (flow, _, bytes) = b.pop().unwrap();
        sent[usize::from(flow) - 1] += bytes;
        if flow == 1 {
            b.push(1, one(one_at_a_time));
        }
    }
    sent[0] * 1000 / sent[1]
}

/// Half of the link, whatever comes at once (Shreedhar and Varghese, theorem 3): several frames in a round,
/// or one in several.
#[test]
fn a_flow_that_falls_empty_keeps_its_debt() {
    for (quantum, frame, beside) in [
        (1514, 65_535, 1514),
        (1514, 15_140, 1514),
        (300, 1514, 300),
        (300, 65_535, 1514),
        (1514, 65_535, 65_535),
        (1514, 757, 1514),
        (1514, 66, 1514),
        (300, 66, 1514),
    ] {
        let share = share_of_one_at_a_time(quantum, frame, beside);
        assert!((950..=1_050).contains(&share), "{frame} of {quantum}: {share}");
    }
}

/// Flows that left in debt take no room from those that are there.
#[test]
fn a_debtor_gives_its_way_up() {
    let mut b = Bench::new(Params { flows: 8, ..Params::default() }, QueueLimit::Unlimited);
    (0..8).for_each(|flow| assert!(b.push(flow, one(15_140))));
    b.push(0, one(1514));
    (0..8).for_each(|_| assert!(b.pop().is_some()));
    // Seven have left in debt; as many others have a queue each.
    (100..107).for_each(|flow| assert!(b.push(flow, one(1514))));
    assert_eq!(b.pfq.waiting_flows(), 8);
    let mut others = b.flows();
    others.sort_unstable();
    assert_eq!(others, [0, 100, 101, 102, 103, 104, 105, 106]);
}

#[test]
fn the_longest_flow_gives_way() {
    let mut b = bench(QueueLimit::Packets(8));
    (0..8).for_each(|_| assert!(b.push(1, one(1514))));
    // Each frame of another flow takes the place of the first waiting frame.
    assert!(b.push(2, one(100)) && b.push(3, one(100)));
    assert_eq!(b.pfq.backlog.stats.drops.get(DropReason::QueueFull), 2);
    let left: Vec<_> = std::iter::from_fn(|| b.pop()).map(|(flow, since, _)| (flow, since)).collect();
    assert_eq!(left, [(1, 2), (2, 8), (3, 9), (1, 3), (1, 4), (1, 5), (1, 6), (1, 7)]);
    assert_eq!(b.pfq.backlog.stats.peak_packets, 8);
    // A frame that does not fit into an empty queue is not kept.
    let mut b = bench(QueueLimit::Bytes(1000));
    assert!(b.push(1, one(900)));
    assert!(!b.push(2, one(1001)));
    assert_eq!((b.flows(), b.frames.ledger().held()), (vec![1], 0));
}

#[test]
fn more_flows_than_ways_share() {
    let mut b = Bench::new(Params { flows: 8, ..Params::default() }, QueueLimit::Unlimited);
    (0..100).for_each(|flow| assert!(b.push(flow, one(1514))));
    assert_eq!((b.pfq.flows.len(), b.pfq.waiting_flows()), (8, 8));
    let mut all = b.flows();
    all.sort_unstable();
    assert_eq!(all, (0..100).collect::<Vec<_>>());
    assert_eq!(b.pfq.waiting_flows(), 0);
}

#[test]
fn frames_that_are_not_ip_are_one_flow() {
    let mut b = bench(QueueLimit::Unlimited);
    for n in 0..3 {
        let frame = b.frames.receive_copy(&[n; 60], 60, Time::ZERO).unwrap();
        let frame = b.frames.park(frame);
        let mut cx = Cx { now: Time::ZERO, frames: &mut b.frames };
        b.pfq.push(&mut cx, Waiting { frame, charge: one(60), since: Time::ZERO });
    }
    assert_eq!(b.pfq.waiting_flows(), 1);
}

proptest! {
    /// Frames of a flow leave in order, every loss is counted, and the limit holds. Flows that are always
    /// backlogged get equal shares to within two quanta and a frame of each (Shreedhar and Varghese, theorem
    /// 3, for debts instead of deficits).
    #[test]
    fn whatever_happens(
        steps in prop::collection::vec((prop::bool::weighted(0.6), 0u16..6, 1u64..3000), 0..600),
        limit in 2_000u64..40_000,
    ) {
        let mut b = Bench::new(Params { flows: 64, ..Params::default() }, QueueLimit::Bytes(limit));
        let mut model: HashMap<u16, VecDeque<u64>> = HashMap::new();
        // Bytes sent since each flow became backlogged.
        let mut sent: HashMap<u16, u64> = HashMap::new();
        for (n, (push, flow, bytes)) in (0u64..).zip(steps) {
            let drops = b.pfq.backlog.stats.drops.total();
            if push {
                b.push(flow, one(bytes));
                model.entry(flow).or_default().push_back(b.pushed as u64 - 1);
                if b.pfq.backlog.stats.drops.total() > drops || model[&flow].len() == 1 {
                    sent.clear();
                }
            } else if let Some((flow, since, bytes)) = b.pop() {
                let queue = model.get_mut(&flow).unwrap();
                while queue.front().is_some_and(|&at| at < since) {
                    queue.pop_front(); // it was dropped
                }
                prop_assert_eq!(queue.pop_front(), Some(since));
                *sent.entry(flow).or_default() += bytes;
                let all_wait = b.pfq.waiting_flows();
                if queue.is_empty() {
                    sent.clear();
                } else if sent.len() == all_wait {
                    let (least, most) = (sent.values().min().unwrap(), sent.values().max().unwrap());
                    prop_assert!(most - least <= 2 * 1514 + 2 * 3000, "step {n}: {sent:?}");
                }
            }
            prop_assert!(b.pfq.backlog.bytes() <= limit);
            let ledger = b.frames.ledger();
            prop_assert_eq!(ledger.drops, b.pfq.backlog.stats.drops);
            prop_assert_eq!(ledger.held(), b.pfq.flows.iter().map(|f| f.list.len() as u64).sum::<u64>());
            prop_assert_eq!(b.pfq.backlog.bytes(), b.pfq.flows.iter().map(|f| f.bytes).sum::<u64>());
        }
        while b.pop().is_some() {}
        prop_assert_eq!((b.frames.ledger().held(), b.pfq.rounds.next(), b.pfq.sizes.most()), (0, None, None));
    }
}
