//! Invariants under random input.

use super::*;
use proptest::prelude::*;

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

/// Fields that identify a packet.
type Told = (u32, u32, u16, Vec<(u32, u32)>);

proptest! {
    /// For any input: frames are conserved, those of a flow keep their order, data and non-redundant ACKs
    /// leave, ACK numbers never go back, and in the end each sender knows the last number.
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
            let sack = wire::tcp_options(bytes, &p, &tcp).unwrap().sack;
            let sack = sack.as_slice().iter().map(|(left, right)| (left.0, right.0)).collect();
            out.push((tcp.src_port, (tcp.seq.0, tcp.ack.0, tcp.window, sack)));
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
            // A subsequence: no packet is made, and none changes places.
            let mut rest = before.iter();
            prop_assert!(after.iter().all(|told| rest.any(|t| t == told)));
            let acks = |all: &[Told]| all.iter().filter(|t| t.0 == 1).map(|t| t.1).collect::<Vec<_>>();
            prop_assert!(acks(&after).windows(2).all(|two| two[0] <= two[1]));
            if !limited {
                prop_assert_eq!(acks(&after).last().copied(), acks(&before).last().copied());
                prop_assert_eq!(after.iter().filter(|t| t.0 > 1).count(), before.iter().filter(|t| t.0 > 1).count());
                // All closed windows are kept.
                let closed = |all: &[Told]| all.iter().filter(|t| t.2 == 0).count();
                prop_assert_eq!(closed(&after), closed(&before));
            }
        }
        prop_assert_eq!((b.filter.next(), b.filter.lengths.most(), b.filter.speeds.most()), (None, None, None));
    }
}
