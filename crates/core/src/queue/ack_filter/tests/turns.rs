//! Turns of hosts, and CoDel of each flow.

use super::*;
use crate::queue::{Codel, Queue};
use crate::wire::build::SegmentBuilder;

/// Data of a flow of 10.0.0.HOST.
fn of_host(host: u8, port: u16, n: u32) -> SegmentBuilder {
    SegmentBuilder::v4([10, 0, 0, host], [192, 0, 2, 1]).ports(port, 443).seq(n).payload(1)
}

fn hosts() -> Params {
    Params { hosts: Some(Host::Source), seed: 3, ..params(Policy::DelayedPerFlow, Service::RoundRobin) }
}

/// Ports of a host: 100 times its number, and more.
fn departures_of(out: &[(u16, u32)], host: u16) -> usize {
    out.iter().filter(|(port, _)| port / 100 == host).count()
}

/// Hosts with 1, 3 and 40 flows have a third each.
#[test]
fn hosts_have_equal_shares_whatever_their_flows() {
    let shares = |params| {
        let mut b = Bench::new(params, QueueLimit::Unlimited);
        for n in 1..=200 {
            b.push(&of_host(1, 100, n), DATA);
            (0..3).for_each(|flow| _ = b.push(&of_host(2, 200 + flow, n), DATA));
            (0..40).for_each(|flow| _ = b.push(&of_host(3, 300 + flow, n), DATA));
        }
        (0..300).for_each(|_| _ = b.pop());
        [1, 2, 3].map(|host| departures_of(&b.out, host))
    };
    let found = shares(hosts());
    assert!(found.iter().all(|n| (98..=102).contains(n)), "{found:?}");
    // Without hosts each flow has a 44th.
    let found = shares(Params { hosts: None, ..hosts() });
    assert!(found[0] <= 8 && found[2] >= 270, "{found:?}");
}

/// A new port for each packet, four for each that leaves, is still one host: it has half beside another one.
#[test]
fn a_flood_of_new_flows_takes_turns_of_its_own_host() {
    let shares = |params| {
        let mut b = Bench::new(params, QueueLimit::Unlimited);
        (0..300).for_each(|n| _ = b.push(&of_host(1, 100, n), DATA));
        for n in 0..1200 {
            b.push(&of_host(2, 0, n.into()).ports(200 + n % 100, 1000 + n), DATA);
            if n % 4 == 3 {
                b.pop();
            }
        }
        [1, 2].map(|host| departures_of(&b.out, host))
    };
    let found = shares(hosts());
    assert!(found.iter().all(|n| (145..=155).contains(n)), "{found:?}");
    // Without hosts a round has one packet of the first, and one of each new flow.
    let found = shares(Params { hosts: None, ..hosts() });
    assert!(found[0] <= 30, "{found:?}");
}

/// A host that begins to send waits for the frame on its way alone.
#[test]
fn a_quiet_host_is_next() {
    let mut b = Bench::new(hosts(), QueueLimit::Unlimited);
    for n in 1..=50 {
        (0..10).for_each(|flow| _ = b.push(&of_host(1, 100 + flow, n), DATA));
        (0..10).for_each(|flow| _ = b.push(&of_host(2, 200 + flow, n), DATA));
    }
    (0..7).for_each(|_| _ = b.pop());
    b.push(&of_host(3, 300, 1), Charge { packets: 1, bytes: 200 });
    assert_eq!(b.pop(), Some((300, 1)));
}

/// Dropping all of a host's packets ends its turn.
#[test]
fn a_host_that_loses_its_packets_has_no_turn() {
    let mut b = Bench::new(hosts(), QueueLimit::Packets(4));
    (1..=4).for_each(|n| _ = b.push(&of_host(1, 100, n), DATA));
    b.push(&of_host(2, 200, 1), ACK);
    (1..=3).for_each(|n| _ = b.push(&of_host(3, 300, n), DATA));
    let mut left = b.rest();
    left.sort_unstable();
    assert_eq!(left.len(), 4);
    assert_eq!(b.pop(), None);
    b.check();
}

/// A flow by itself is judged as by the queue of RFC 8289, to the packet and the time.
#[test]
fn one_flow_is_judged_as_by_codel() {
    for ecn in [false, true] {
        let codel = codel::Params { ecn, ..codel::Params::default() };
        let filter = Params { codel: Some(codel), ..params(Policy::DelayedPerFlow, Service::RoundRobin) };
        let queues = [
            Queue::AckFilter(Box::new(AckFilter::new(filter, QueueLimit::Unlimited, RATE))),
            Queue::Codel(Codel::new(codel, QueueLimit::Unlimited, RATE)),
        ];
        let [found, expected] = queues.map(|mut queue| {
            let mut frames = Frames::growing(128);
            let mut seen = Vec::new();
            // 11 packets in 10 ms, served one a millisecond; then the sender pauses, and comes back.
            for step in 0..6_000u64 {
                let now = Time::from_micros(step * 1000);
                let arrivals = if (2_500..2_900).contains(&step) { 0 } else { 1 + u64::from(step % 10 == 0) };
                for _ in 0..arrivals {
                    let (head, len) = of_host(1, 100, step as u32).tos(2).build_head();
                    let frame = frames.receive_copy(&head, len, now).unwrap();
                    let waiting = Waiting { frame: frames.park(frame), charge: DATA, since: now };
                    queue.push(&mut Cx { now, frames: &mut frames }, waiting);
                }
                if let Some(waiting) = queue.pop(&mut Cx { now, frames: &mut frames }) {
                    let frame = frames.unpark(waiting.frame);
                    frames.transmitted(frame);
                }
                seen.push((queue.stats().drops.total(), queue.stats().marks));
            }
            seen
        });
        assert_eq!(found, expected);
        let (drops, marks) = expected[expected.len() - 1];
        assert!(if ecn { marks } else { drops } > 20, "the queue has signalled");
    }
}

/// ACKs are erased by newer ones, and no signal drops them.
#[test]
fn codel_leaves_acks_alone() {
    let codel = Some(codel::Params::default());
    let mut b =
        Bench::new(Params { codel, ..params(Policy::None, Service::RoundRobin) }, QueueLimit::Unlimited);
    for n in 1..=200 {
        b.ack(1, n);
        b.ack(1, 1000 + n);
        b.now += Duration::from_millis(10);
        b.pop();
    }
    assert_eq!(b.filter.backlog.stats.drops.total(), 0);
}
