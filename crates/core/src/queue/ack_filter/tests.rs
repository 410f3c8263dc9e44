//! Policies by timelines computed by hand, and invariants under random input.

use super::*;
use crate::frame::Charge;
use crate::time::Duration;
use crate::wire::build::SegmentBuilder;
use crate::wire::{self, Flags};

mod accecn;
mod bounds;
mod growth;
mod model;
mod turns;

/// An ACK in the paper: 40 bytes, 3.2 ms at 100 kb/s.
const ACK: Charge = Charge { packets: 1, bytes: 40 };
const DATA: Charge = Charge { packets: 1, bytes: 1500 };
const RATE: Rate = Rate::kbit(100);
/// Nanoseconds that a byte takes at that rate.
const BYTE: u64 = 80_000;

/// A filter and a server behind it.
struct Bench {
    filter: AckFilter,
    frames: Frames,
    now: Time,
    /// End of the server's current work.
    done: Time,
    /// Port and number of each departure.
    out: Vec<(u16, u32)>,
    pushed: u64,
}

fn params(policy: Policy, service: Service) -> Params {
    Params { policy, service, window: Some(Duration::from_millis(200)), ..Params::default() }
}

impl Bench {
    fn new(params: Params, limit: QueueLimit) -> Bench {
        let filter = AckFilter::new(params, limit, RATE);
        let (now, done) = (Time::ZERO, Time::ZERO);
        Bench { filter, frames: Frames::growing(256), now, done, out: Vec::new(), pushed: 0 }
    }

    fn fifo(policy: Policy) -> Bench {
        Bench::new(params(policy, Service::Fifo), QueueLimit::Unlimited)
    }

    fn push(&mut self, segment: &SegmentBuilder, charge: Charge) -> Option<DropReason> {
        let bytes = segment.build();
        let frame = self.frames.receive_copy(&bytes, bytes.len(), self.now).unwrap();
        self.pushed += 1;
        let frame = self.frames.park(frame);
        let mut cx = Cx { now: self.now, frames: &mut self.frames };
        self.filter.push(&mut cx, Waiting { frame, charge, since: self.now })
    }

    /// An ACK of flow `port`, of `n` segments.
    fn ack(&mut self, port: u16, n: u32) -> Option<DropReason> {
        self.push(&ack(port, n), ACK)
    }

    fn data(&mut self, port: u16, n: u32) -> Option<DropReason> {
        self.push(&ack(port, 0).seq(n).payload(1), DATA)
    }

    fn pop(&mut self) -> Option<(u16, u32)> {
        let head = self.filter.head(&self.frames);
        let mut cx = Cx { now: self.now, frames: &mut self.frames };
        let Waiting { frame, charge, since } = self.filter.pop(&mut cx)?;
        assert_eq!(head, Some(Head { charge, since }));
        self.done = self.now + Duration::from_nanos(charge.bytes * BYTE);
        let frame = self.frames.unpark(frame);
        let bytes = self.frames.bytes(&frame);
        let p = wire::packet(bytes, bytes.len()).unwrap();
        let tcp = wire::tcp(bytes, &p).unwrap();
        let number = if tcp.payload_len > 0 { tcp.seq.0 } else { tcp.ack.0 / 1000 };
        self.frames.transmitted(frame);
        self.out.push((tcp.src_port, number));
        Some((tcp.src_port, number))
    }

    /// Returns everything that leaves from now on.
    fn rest(&mut self) -> Vec<(u16, u32)> {
        std::iter::from_fn(|| self.pop()).collect()
    }

    /// Lets the server work until `to`.
    fn serve(&mut self, to: Time) {
        while self.done <= to {
            self.now = self.now.max(self.done);
            if self.pop().is_none() {
                break;
            }
        }
        self.now = to;
    }

    fn check(&self) {
        let ledger = self.frames.ledger();
        let stats = self.filter.backlog.stats;
        assert_eq!((ledger.received, ledger.held()), (self.pushed, self.filter.backlog.packets()));
        assert_eq!((ledger.drops, ledger.absorbed), (stats.drops, stats.filtered));
    }
}

fn ack(port: u16, n: u32) -> SegmentBuilder {
    SegmentBuilder::v4([10, 0, 0, 2], [10, 0, 0, 1])
        .ports(port, 80)
        .seq(1)
        .ack(n * 1000)
        .flags(Flags::ACK)
        .window(60_000)
}

#[test]
fn classical_filtering_keeps_the_first_place_and_the_last_number() {
    let mut b = Bench::fifo(Policy::Classical);
    // The first ACK of a flow is kept: its news is unknown.
    for (port, n) in [(1, 1), (2, 1), (1, 2), (3, 1), (1, 3), (2, 2), (1, 4)] {
        b.ack(port, n);
    }
    assert_eq!(b.rest(), [(1, 1), (2, 1), (1, 4), (3, 1), (2, 2)]);
    assert_eq!((b.filter.backlog.stats.filtered, b.filter.backlog.packets()), (2, 0));
    b.check();
}

#[test]
fn static_filtering_lets_so_many_wait_and_erases_the_last() {
    let mut b = Bench::fifo(Policy::Static(Threshold::Acks(3)));
    (1..=6).for_each(|n| assert_eq!(b.ack(1, n), None));
    b.ack(2, 1);
    assert_eq!(b.rest(), [(1, 1), (1, 2), (1, 6), (2, 1)]);
    b.check();
}

/// §2.2: 100 kb/s × 200 ms / 40 bytes / 3 are 20.8.
#[test]
fn the_threshold_of_the_channel_is_equation_1() {
    let mut b = Bench::fifo(Policy::Static(Threshold::Auto));
    (1..=40).for_each(|n| assert_eq!(b.ack(1, n), None));
    assert_eq!(b.filter.backlog.packets(), 20);
    b.check();
}

#[test]
fn nothing_is_erased_without_a_filter_and_data_never() {
    let mut b = Bench::fifo(Policy::None);
    (1..=5).for_each(|n| assert_eq!(b.ack(1, n), None));
    assert_eq!(b.rest().len(), 5);
    let mut b = Bench::fifo(Policy::Classical);
    b.ack(1, 1);
    b.ack(1, 2);
    b.data(1, 7);
    b.ack(1, 3);
    b.ack(1, 4);
    assert_eq!(b.rest(), [(1, 1), (1, 2), (1, 7), (1, 4)], "and nothing is erased across it");
}

/// §3.1: at 312.5 ACKs a second from nothing the measured rate is 1 - exp(-t / 200 ms) of the channel. It is
/// above 90 % after 461 ms, and the filter erases from then on. For one flow 62.5 ACKs may wait, as many as
/// the channel carries in a round trip. Arrivals are twice the departures, so that many wait after 200 ms.
#[test]
fn delayed_filtering_begins_when_the_channel_is_used() {
    for (policy, service, from) in [
        (Policy::Delayed, Service::Fifo, 461),
        (Policy::DelayedPerFlow, Service::Fifo, 200),
        (Policy::DelayedPerFlow, Service::RoundRobin, 200),
    ] {
        let mut b = Bench::new(params(policy, service), QueueLimit::Unlimited);
        let mut begun = None;
        // Two ACKs arrive in the time of one.
        for n in 1..=1000u32 {
            b.serve(Time::from_micros(1600 * u64::from(n)));
            b.ack(1, n);
            if b.filter.backlog.stats.filtered > 0 && begun.is_none() {
                begun = Some((b.now.as_nanos() / 1_000_000, b.filter.backlog.packets()));
            }
        }
        let (at, _) = begun.unwrap();
        assert!((from - 6..from + 14).contains(&at), "{policy:?}: {at} ms");
        // 64 at a time. Then one is left for each departure.
        assert!(b.filter.backlog.packets() <= 1, "{policy:?}: {}", b.filter.backlog.packets());
        // 1.6 s are 500 ACKs: the channel was busy all the time.
        assert!((498..=501).contains(&b.out.len()), "{}", b.out.len());
        b.check();
    }
}

#[test]
fn filtering_ends_when_the_channel_is_not_used() {
    let mut b = Bench::fifo(Policy::Delayed);
    let mut n = 0;
    let mut phase = |b: &mut Bench, every: u64, count: u32| {
        let before = b.filter.backlog.stats.filtered;
        for _ in 0..count {
            n += 1;
            b.serve(b.now + Duration::from_micros(every));
            b.ack(1, n);
        }
        b.filter.backlog.stats.filtered - before
    };
    assert!(phase(&mut b, 1600, 1000) > 300);
    // Half of the channel. The old rate is forgotten after a few windows.
    phase(&mut b, 6400, 200);
    assert_eq!(phase(&mut b, 6400, 200), 0);
}

/// §4.1: a flow that uses less than its share is not filtered because of others.
#[test]
fn a_flow_below_its_share_is_protected_from_others() {
    for (policy, harmed) in [(Policy::Delayed, true), (Policy::DelayedPerFlow, false)] {
        let mut b = Bench::fifo(policy);
        for n in 1..=3000u32 {
            b.serve(Time::from_micros(1600 * u64::from(n)));
            b.ack(1, n);
            // Bursts of three, 240 ms apart: 4 kb/s, of 100.
            if n > 1500 && n % 150 < 3 {
                b.ack(2, n);
            }
        }
        b.serve(b.now + Duration::from_secs(1));
        let of_two = b.out.iter().filter(|(port, _)| *port == 2).count();
        assert_eq!(of_two < 30, harmed, "{policy:?}: {of_two}");
        b.check();
    }
}

/// By bytes, a bulk upload and ACKs have half of the channel each. The upload also gets what ACKs leave.
#[test]
fn uploads_and_acks_take_turns() {
    let mut b = Bench::new(params(Policy::DelayedPerFlow, Service::RoundRobin), QueueLimit::Packets(100));
    let mut sent = 0;
    for n in 1..=20_000u32 {
        b.serve(Time::from_micros(1200 * u64::from(n)));
        b.ack(1, n);
        while b.filter.flows.table.iter().all(|f| f.packets == f.acks) || sent < 10 {
            sent += 1;
            b.data(2, sent);
        }
    }
    let last = b.out.len() - 1;
    let acks = b.out.iter().filter(|(port, _)| *port == 1).count() as f64 / 24.0;
    let data = b.out.iter().filter(|(port, _)| *port == 2).count() as f64 / 24.0;
    // 100 kb/s: half of it is 156 ACKs a second. Filtering begins at 0.9 of that and ends at 0.8.
    assert!((60.0..157.0).contains(&acks), "{acks} ACKs/s");
    assert!(acks * 320.0 + data * 12_000.0 > 99_000.0, "{acks} and {data}: the channel is busy");
    // No ACK waits for more than one packet and its own turn: its number is at most that old.
    let newest = b.out[..last].iter().rev().find(|(port, _)| *port == 1).unwrap().1;
    assert!(20_000 - newest < 300, "{newest}");
    b.check();
}

/// A quantum of 1514 bytes is one packet of 1500 and, the first time, one more.
#[test]
fn who_begins_is_next_once_in_a_round() {
    let mut b = Bench::new(params(Policy::DelayedPerFlow, Service::RoundRobin), QueueLimit::Unlimited);
    for n in 1..=4 {
        b.data(2, n);
    }
    assert_eq!([b.pop(), b.pop()], [Some((2, 1)), Some((2, 2))]);
    b.ack(1, 1);
    assert_eq!(b.pop(), Some((1, 1)), "before the packet that waits already");
    b.ack(1, 2);
    assert_eq!(b.rest(), [(2, 3), (1, 2), (2, 4)], "it has had its turn in this round");
    b.check();
}

#[test]
fn what_does_not_wait_is_measured() {
    let mut b = Bench::fifo(Policy::Delayed);
    for n in 1..=1000u32 {
        b.now = Time::from_micros(3200 * u64::from(n));
        let bytes = ack(1, n).build();
        let frame = b.frames.receive_copy(&bytes, bytes.len(), b.now).unwrap();
        let frame = b.frames.park(frame);
        let waiting = Waiting { frame, charge: ACK, since: b.now };
        let waiting = b.filter.pass(&mut Cx { now: b.now, frames: &mut b.frames }, waiting).unwrap();
        let frame = b.frames.unpark(waiting.frame);
        b.frames.transmitted(frame);
        b.pushed += 1;
    }
    b.ack(1, 1001);
    b.ack(1, 1002);
    assert_eq!(b.filter.backlog.stats.filtered, 1, "the channel has been used all the time");
    b.check();
}

/// With an unknown rate, waiting ACKs show that the channel is used.
#[test]
fn presence_is_use() {
    for (policy, service) in [(Policy::Delayed, Service::Fifo), (Policy::DelayedPerFlow, Service::RoundRobin)]
    {
        let filtered = |every: u64| {
            let params = Params { measure: Measure::Presence, ..params(policy, service) };
            let mut b = Bench::new(params, QueueLimit::Unlimited);
            // The filter is given another rate than the real one.
            b.filter.set_limit(QueueLimit::Unlimited, Rate::mbit(1000));
            for n in 1..=1000u32 {
                b.serve(Time::from_micros(every * u64::from(n)));
                b.ack(1, n);
            }
            b.filter.backlog.stats.filtered
        };
        assert!(filtered(800) > 400, "{policy:?}: four come in the time of one");
        assert_eq!(filtered(3300), 0, "{policy:?}: none waits");
    }
}
