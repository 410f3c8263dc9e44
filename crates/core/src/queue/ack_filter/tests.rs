//! Policies by timelines computed by hand, and what holds whatever comes.

use super::*;
use crate::time::Duration;
use crate::wire::build::SegmentBuilder;
use proptest::prelude::*;

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
    /// When the server is done with what it has.
    done: Time,
    /// Port and number of what has left.
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
        let number = if tcp.payload_len > 0 { tcp.seq } else { tcp.ack / 1000 };
        self.frames.transmitted(frame);
        self.out.push((tcp.src_port, number));
        Some((tcp.src_port, number))
    }

    /// Everything that leaves from now on.
    fn rest(&mut self) -> Vec<(u16, u32)> {
        std::iter::from_fn(|| self.pop()).collect()
    }

    /// The server works until `to`.
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
    // The first ACK of a flow is kept: nobody knows what it told.
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

/// §3.1: at 312.5 ACKs a second from nothing the measured rate is 1 - exp(-t / 200 ms) of the channel. It is above 90 % after 461 ms; the
/// filter erases from then on. Of one flow 62.5 ACKs may wait, what the channel carries in a round trip: twice as many as leave come, so that many wait
/// after 200 ms.
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
        // 64 at a time; then one is there for each that leaves.
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
    // Half of the channel; the old rate is forgotten after a few windows.
    phase(&mut b, 6400, 200);
    assert_eq!(phase(&mut b, 6400, 200), 0);
}

/// §4.1: a flow that uses less than its share is not filtered by what others use.
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

/// By bytes, a bulk upload and ACKs have half of the channel each; what ACKs leave is the upload's.
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
    // 100 kb/s: half of it is 156 ACKs a second; filtering begins at 0.9 of that and ends at 0.8.
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
    // Flow 2 has sent ACKs, flow 1 has not: the oldest of the fastest.
    let mut b = Bench::new(params(Policy::DelayedPerFlow, Service::Fifo), QueueLimit::Packets(4));
    for n in 1..=20 {
        b.ack(2, n);
        b.serve(b.now + Duration::from_micros(3200));
    }
    for (port, n) in [(1, 1), (1, 2), (2, 21), (1, 3)] {
        b.ack(port, n);
    }
    assert_eq!((b.ack(3, 1), b.rest()), (None, vec![(1, 1), (1, 2), (1, 3), (3, 1)]));
    // A queue that data fills: the longest, whatever ACKs do.
    let mut b = Bench::new(params(Policy::DelayedPerFlow, Service::RoundRobin), QueueLimit::Packets(4));
    (1..=4).for_each(|n| {
        b.data(9, n);
    });
    assert_eq!((b.ack(1, 1), b.ack(1, 2)), (None, None));
    // A quantum of 1514 leaves 14 bytes for a second packet.
    assert_eq!(b.rest(), [(9, 3), (9, 4), (1, 1), (1, 2)]);
    b.check();
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

#[test]
fn an_accecn_ack_stands_for_three_at_most() {
    let mut b = Bench::fifo(Policy::Classical);
    let counted = |n: u32| ack(1, n).flags(Flags::ACK | Flags::of_ace(5));
    (0..=9).for_each(|n| {
        b.push(&counted(n), ACK);
    });
    assert_eq!(b.rest(), [(1, 0), (1, 3), (1, 6), (1, 9)]);
}

/// More flows than are measured: classical for all of them, and counted. More than twice as many: they are not told apart.
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
    // Flow 4 has the last place; 5 and 6 share another.
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

/// A flow that was silent for so long that it is not active any more is the same connection: what its window allows is known still, so
/// that an acknowledgement beyond it erases nothing (RFC 5961 §5).
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

#[test]
fn what_does_not_wait_is_measured() {
    let mut b = Bench::fifo(Policy::Delayed);
    for n in 1..=1000u32 {
        b.now = Time::from_micros(3200 * u64::from(n));
        let bytes = ack(1, n).build();
        let frame = b.frames.receive_copy(&bytes, bytes.len(), b.now).unwrap();
        let frame = b.frames.park(frame);
        let waiting = Waiting { frame, charge: ACK, since: b.now };
        b.filter.pass(&mut Cx { now: b.now, frames: &mut b.frames }, &waiting);
        let frame = b.frames.unpark(waiting.frame);
        b.frames.transmitted(frame);
        b.pushed += 1;
    }
    b.ack(1, 1001);
    b.ack(1, 1002);
    assert_eq!(b.filter.backlog.stats.filtered, 1, "the channel has been used all the time");
    b.check();
}

/// Where the rate is not known, that ACKs wait says that the channel is used.
#[test]
fn presence_is_use() {
    for (policy, service) in [(Policy::Delayed, Service::Fifo), (Policy::DelayedPerFlow, Service::RoundRobin)]
    {
        let filtered = |every: u64| {
            let params = Params { measure: Measure::Presence, ..params(policy, service) };
            let mut b = Bench::new(params, QueueLimit::Unlimited);
            // The filter is told another rate than there is.
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

#[derive(Clone, Debug)]
enum Step {
    Ack { port: u16, forward: u32, window: u16, sack: Option<u32>, ece: bool },
    Data { port: u16 },
    Pop,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let ack = (
        1u16..5,
        0u32..3,
        prop::sample::select(vec![0u16, 400, 400, 400, 500]),
        prop::option::weighted(0.3, 1u32..6),
        prop::bool::weighted(0.1),
    );
    prop_oneof![
        6 => ack.prop_map(|(port, forward, window, sack, ece)| Step::Ack { port, forward, window, sack, ece }),
        1 => (1u16..5).prop_map(|port| Step::Data { port }),
        3 => Just(Step::Pop),
        1 => (0u64..400).prop_map(Step::Wait),
    ]
}

fn policy() -> impl Strategy<Value = (Policy, Service)> {
    prop::sample::select(vec![
        (Policy::None, Service::Fifo),
        (Policy::Static(Threshold::Acks(2)), Service::Fifo),
        (Policy::Static(Threshold::Auto), Service::Fifo),
        (Policy::Classical, Service::Fifo),
        (Policy::Delayed, Service::Fifo),
        (Policy::DelayedPerFlow, Service::Fifo),
        (Policy::DelayedPerFlow, Service::RoundRobin),
    ])
}

/// What is told apart of a packet.
type Told = (u32, u32, u16, Vec<(u32, u32)>);

proptest! {
    /// Whatever comes: frames are conserved, those of a flow keep their order, data and what is not redundant leaves, ACK numbers never go
    /// back, and in the end each sender knows the last number.
    #[test]
    fn whatever_comes(
        (policy, service) in policy(), steps in prop::collection::vec(step(), 1..300),
        limit in prop::option::of(1u32..20), flows in 1u32..4, presence: bool,
    ) {
        let measure = if presence { Measure::Presence } else { Measure::Rate };
        let params = Params { flows, measure, ..params(policy, service) };
        let limited = limit.is_some();
        let mut b = Bench::new(params, limit.map_or(QueueLimit::Unlimited, QueueLimit::Packets));
        let (mut numbers, mut data) = ([1u32; 5], 0);
        let (mut pushed, mut out) = (Vec::<(u16, Told)>::new(), Vec::<(u16, Told)>::new());
        let mut pop = |b: &mut Bench| {
            let mut cx = Cx { now: b.now, frames: &mut b.frames };
            let Some(waiting) = b.filter.pop(&mut cx) else { return false };
            let frame = b.frames.unpark(waiting.frame);
            let bytes = b.frames.bytes(&frame);
            let p = wire::packet(bytes, bytes.len()).unwrap();
            let tcp = wire::tcp(bytes, &p).unwrap();
            let sack = wire::tcp_options(bytes, &p, &tcp).unwrap().sack.as_slice().to_vec();
            out.push((tcp.src_port, (tcp.seq, tcp.ack, tcp.window, sack)));
            b.frames.transmitted(frame);
            true
        };
        for step in steps {
            match step {
                Step::Ack { port, forward, window, sack, ece } => {
                    let number = &mut numbers[usize::from(port)];
                    *number += forward;
                    let n = *number * 1000;
                    let blocks: Vec<_> = sack.map(|k| (n + 2000, n + 2000 + k * 1000)).into_iter().collect();
                    let flags = if ece { Flags::ACK | Flags::ECE } else { Flags::ACK };
                    let mut segment = ack(port, *number).window(window).flags(flags);
                    if !blocks.is_empty() {
                        segment = segment.sack(&blocks);
                    }
                    b.push(&segment, ACK);
                    pushed.push((port, (1, n, window, blocks)));
                }
                Step::Data { port } => {
                    data += 1;
                    b.data(port, 100 + data);
                    pushed.push((port, (100 + data, 0, 60_000, Vec::new())));
                }
                Step::Pop => {
                    pop(&mut b);
                }
                Step::Wait(ms) => b.now += Duration::from_millis(ms),
            }
            b.check();
        }
        while pop(&mut b) {}
        b.check();
        for port in 1..5 {
            let of = |all: &[(u16, Told)]| all.iter().filter(|(p, _)| *p == port).map(|(_, told)| told.clone()).collect::<Vec<_>>();
            let (before, after) = (of(&pushed), of(&out));
            // A subsequence: nothing is made, nothing changes places.
            let mut rest = before.iter();
            prop_assert!(after.iter().all(|told| rest.any(|t| t == told)));
            let acks = |all: &[Told]| all.iter().filter(|t| t.0 == 1).map(|t| t.1).collect::<Vec<_>>();
            prop_assert!(acks(&after).windows(2).all(|two| two[0] <= two[1]));
            if !limited {
                prop_assert_eq!(acks(&after).last().copied(), acks(&before).last().copied());
                prop_assert_eq!(after.iter().filter(|t| t.0 > 1).count(), before.iter().filter(|t| t.0 > 1).count());
                // Closed windows are all there.
                let closed = |all: &[Told]| all.iter().filter(|t| t.2 == 0).count();
                prop_assert_eq!(closed(&after), closed(&before));
            }
        }
        prop_assert_eq!((b.filter.next(), b.filter.lengths.most(), b.filter.speeds.most()), (None, None, None));
    }
}
