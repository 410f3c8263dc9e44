//! Full queues, many flows, and merged duplicates.

use super::*;

/// §4.2, with room for four.
#[test]
fn who_loses_when_the_queue_is_full() {
    let full = |policy: Policy| {
        let mut b = Bench::new(params(policy, Service::Fifo), QueueLimit::Packets(4));
        for (port, n) in [(1, 1), (1, 2), (1, 3), (2, 1)] {
            assert_eq!(b.ack(port, n), None);
        }
        b
    };
    for policy in [Policy::None, Policy::Static(Threshold::Acks(9))] {
        let mut b = full(policy);
        assert_eq!(b.ack(3, 1), Some(DropReason::QueueFull), "{policy:?}: what comes");
        assert_eq!(b.rest(), [(1, 1), (1, 2), (1, 3), (2, 1)]);
    }
    let mut b = full(Policy::Delayed);
    assert_eq!(b.ack(3, 1), None);
    assert_eq!(b.rest(), [(1, 2), (1, 3), (2, 1), (3, 1)], "the oldest of the longest");
    b.check();
    // Flow 2 has sent ACKs, flow 1 has not: the fastest flow loses its oldest.
    let mut b = Bench::new(params(Policy::DelayedPerFlow, Service::Fifo), QueueLimit::Packets(4));
    for n in 1..=20 {
        b.ack(2, n);
        b.serve(b.now + Duration::from_micros(3200));
    }
    for (port, n) in [(1, 1), (1, 2), (2, 21), (1, 3)] {
        b.ack(port, n);
    }
    assert_eq!((b.ack(3, 1), b.rest()), (None, vec![(1, 1), (1, 2), (1, 3), (3, 1)]));
    // A queue full of data: the longest flow loses its oldest, whatever the ACKs do.
    let mut b = Bench::new(params(Policy::DelayedPerFlow, Service::RoundRobin), QueueLimit::Packets(4));
    (1..=4).for_each(|n| {
        b.data(9, n);
    });
    assert_eq!((b.ack(1, 1), b.ack(1, 2)), (None, None));
    // Who begins to wait is next, with a quantum of 1514.
    assert_eq!(b.rest(), [(1, 1), (1, 2), (9, 3), (9, 4)]);
    b.check();
}

/// §4.2, as published: the oldest ACK of the fastest flow, though the next one makes another's redundant.
/// A chosen rule goes before that of the policy.
#[test]
fn what_a_full_queue_drops_can_be_chosen() {
    let full = |params: Params| {
        let mut b = Bench::new(params, QueueLimit::Packets(4));
        for n in 1..=20 {
            b.ack(2, n);
            b.serve(b.now + Duration::from_micros(3200));
        }
        b.out.clear();
        for (port, n) in [(1, 1), (1, 2), (2, 21), (1, 3)] {
            b.ack(port, n);
        }
        b
    };
    let fast = Params { rule: Rule::Published, ..params(Policy::DelayedPerFlow, Service::Fifo) };
    let mut b = full(fast);
    assert_eq!((b.ack(3, 1), b.rest()), (None, vec![(1, 1), (1, 2), (1, 3), (3, 1)]));
    let with = |drop| Params { drop: Some(drop), ..params(Policy::None, Service::Fifo) };
    let left = [
        (Drop::Tail, Some(DropReason::QueueFull), [(1, 1), (1, 2), (2, 21), (1, 3)]),
        (Drop::Longest, None, [(1, 2), (2, 21), (1, 3), (3, 1)]),
        (Drop::Fastest, None, [(1, 1), (1, 2), (1, 3), (3, 1)]),
    ];
    for (drop, lost, rest) in left {
        let mut b = full(with(drop));
        assert_eq!((b.ack(3, 1), b.rest()), (lost, rest.to_vec()), "{drop:?}");
        b.check();
    }
}

#[test]
fn duplicates_with_sack_are_merged_once_three_have_left() {
    let mut b = Bench::fifo(Policy::Classical);
    let duplicate = |right: u32| ack(1, 5).sack(&[(8000, right)]);
    b.ack(1, 4);
    b.ack(1, 5);
    (9..=14).for_each(|n| {
        b.push(&duplicate(n * 1000), ACK);
    });
    // The first ACK, progress, and six duplicates.
    assert_eq!(b.filter.backlog.packets(), 8);
    (0..5).for_each(|_| {
        b.pop();
    });
    (15..=20).for_each(|n| {
        b.push(&duplicate(n * 1000), ACK);
    });
    assert_eq!((b.filter.backlog.packets(), b.filter.backlog.stats.filtered), (1, 8));
    b.check();
}

/// RFC 2018 §3: without timestamps an option has four blocks, the newest first. If each ACK reports one more
/// hole, every fourth one covers all of them. The last to leave has reported block 3. The ones kept are 7, 11
/// and so on.
#[test]
fn of_duplicates_with_a_new_block_each_every_fourth_stays() {
    let mut b = Bench::fifo(Policy::Classical);
    let block = |k: u32| (8000 + 2000 * k, 9000 + 2000 * k);
    let duplicate = |k: u32| {
        let blocks: Vec<_> = (k.saturating_sub(3)..=k).rev().map(block).collect();
        ack(1, 5).sack(&blocks)
    };
    b.ack(1, 4);
    b.ack(1, 5);
    (0..=3).for_each(|k| {
        b.push(&duplicate(k), ACK);
    });
    assert_eq!(b.rest().len(), 6);
    (4..=43).for_each(|k| {
        b.push(&duplicate(k), ACK);
    });
    assert_eq!(b.filter.backlog.packets(), 10);
    b.check();
}

/// Redundant ACKs of the longest flow are erased before anything is dropped, and only as many as needed.
#[test]
fn a_full_queue_erases_before_it_drops() {
    let mut b = Bench::new(params(Policy::DelayedPerFlow, Service::Fifo), QueueLimit::Packets(4));
    b.ack(1, 1);
    b.pop();
    for (port, n) in [(1, 2), (1, 3), (2, 1), (1, 4), (1, 5)] {
        assert_eq!(b.ack(port, n), None);
    }
    assert_eq!((b.filter.backlog.packets(), b.filter.backlog.stats.filtered), (4, 1));
    assert_eq!(b.rest(), [(1, 3), (2, 1), (1, 4), (1, 5)]);
    for (port, n) in [(1, 6), (1, 7), (1, 8), (2, 2), (3, 1)] {
        assert_eq!(b.ack(port, n), None);
    }
    assert_eq!(b.filter.backlog.stats.filtered, 2, "the oldest of flow 1");
    assert_eq!(b.filter.backlog.stats.drops.total(), 0);
    assert_eq!(b.rest(), [(1, 7), (1, 8), (2, 2), (3, 1)]);
    b.check();
}

/// In an Accurate ECN flow an ACK stands for three at most, whether others were erased for an arrival or for
/// lack of room.
#[test]
fn a_full_queue_hides_no_counter() {
    let mut b = Bench::new(params(Policy::DelayedPerFlow, Service::Fifo), QueueLimit::Packets(2));
    let counted = |n: u32| ack(1, n).flags(Flags::ACK | Flags::of_ace(5));
    b.push(&counted(0), ACK);
    b.pop();
    (1..=6).for_each(|n| {
        b.push(&counted(n), ACK);
    });
    // 3 stands for 1 and 2. Then 3 exceeds the limit and is dropped, and 5 stands for 4.
    assert_eq!((b.filter.backlog.stats.filtered, b.filter.backlog.stats.drops.total()), (3, 1));
    assert_eq!(b.rest(), [(1, 5), (1, 6)]);
    b.check();
}

/// First ACKs of new flows come before other turns with 1514 bytes in a round: 37 of them. Then a backlogged
/// flow has its turn.
#[test]
fn a_flood_of_new_flows_keeps_nobody_from_its_turns() {
    let mut b = Bench::new(params(Policy::DelayedPerFlow, Service::RoundRobin), QueueLimit::Unlimited);
    (1..=20).for_each(|n| {
        b.data(9, n);
    });
    for port in 1000..1400 {
        b.ack(port, 1);
        b.pop();
    }
    let data = b.out.iter().filter(|(port, _)| *port == 9).count();
    assert!(data >= 8, "{data}");
    b.check();
}

/// The round-trip time begins with the departure of the SYN, however long it has waited.
#[test]
fn a_round_trip_begins_when_the_syn_leaves() {
    let params = Params { window: None, ..params(Policy::DelayedPerFlow, Service::Fifo) };
    let mut b = Bench::new(params, QueueLimit::Unlimited);
    (1..=10).for_each(|n| {
        b.data(9, n);
    });
    b.push(&ack(1, 0).flags(Flags::SYN).mss(1460), ACK);
    // Ten packets of 1500 bytes at 100 kb/s are 1.2 s. The SYN follows.
    b.serve(Time::from_millis(1210));
    b.now = Time::from_millis(1250);
    b.ack(1, 1);
    assert_eq!(b.filter.gauge.window(), Duration::from_millis(50));
    b.check();
}

#[test]
fn an_accecn_ack_stands_for_three_at_most() {
    let mut b = Bench::fifo(Policy::Classical);
    let counted = |n: u32| ack(1, n).flags(Flags::ACK | Flags::of_ace(5));
    (0..=9).for_each(|n| {
        b.push(&counted(n), ACK);
    });
    assert_eq!(b.rest(), [(1, 0), (1, 3), (1, 6), (1, 9)]);
}

/// Duplicates, of a packet each: the first three leave, then one in seven.
#[test]
fn a_duplicate_of_an_accecn_flow_stands_for_seven_at_most() {
    let mut b = Bench::fifo(Policy::Classical);
    let told = |n: u32| ack(1, 1).flags(Flags::ACK | Flags::of_ace(5)).sack(&[(3_000, 3_000 + n * 1_000)]);
    b.push(&ack(1, 1).flags(Flags::ACK | Flags::of_ace(5)), ACK);
    for n in 1..=3 {
        b.push(&told(n), ACK);
    }
    while b.pop().is_some() {}
    for n in 4..=24 {
        b.push(&told(n), ACK);
    }
    assert_eq!(b.rest().len(), 3);
}

/// With more flows than are measured, all are filtered classically, and counted. Beyond twice as many, they
/// share one entry.
#[test]
fn beyond_its_flows_it_is_classical() {
    let params = Params { flows: 2, ..params(Policy::DelayedPerFlow, Service::RoundRobin) };
    let mut b = Bench::new(params, QueueLimit::Unlimited);
    let three_each = |b: &mut Bench, port| {
        for n in 1..=3 {
            b.ack(port, n);
        }
    };
    (1..=2).for_each(|port| three_each(&mut b, port));
    assert_eq!((b.filter.backlog.packets(), b.filter.backlog.stats.fallback), (6, 0));
    three_each(&mut b, 3);
    assert_eq!((b.filter.backlog.packets(), b.filter.backlog.stats.fallback), (8, 3));
    (4..=6).for_each(|port| three_each(&mut b, port));
    // Flow 4 has the last entry. 5 and 6 share another.
    assert_eq!((b.filter.backlog.packets(), b.filter.active_flows()), (16, 4));
    assert_eq!(b.rest().len(), 16);
    b.check();
    // When they are over, there is room again.
    b.now += Duration::from_secs(60);
    (0..4).for_each(|n| {
        b.ack(7, n);
    });
    assert_eq!(b.filter.active_flows(), 1);
}

/// A flow that became inactive in a long silence is the same connection. Its window is still known, so an
/// acknowledgement beyond it erases nothing (RFC 5961 §5).
#[test]
fn a_silent_flow_keeps_what_its_syn_said() {
    let mut b = Bench::fifo(Policy::Classical);
    b.push(&ack(1, 0).seq(0).flags(Flags::SYN.with(Flags::ACK)).mss(1000).window_scale(0), ACK);
    b.ack(1, 1);
    assert_eq!(b.rest().len(), 2);
    b.now += Duration::from_secs(60);
    b.ack(2, 1);
    assert_eq!(b.filter.active_flows(), 1);
    for n in [2, 3, 90] {
        b.ack(1, n); // the window is 60,000 bytes
    }
    assert_eq!((b.rest(), b.filter.active_flows()), (vec![(2, 1), (1, 3), (1, 90)], 2));
    b.check();
}
