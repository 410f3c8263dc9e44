//! Frames and their times do not depend on how often a gateway is asked: a driver that polls at every
//! deadline and one that hands in several frames before it polls get the same frames with the same times.

use crate::support::{basic_with, ms};
use proptest::prelude::*;
use weir_core::ack::{AckControl, Meter, Period, SlowStart};
use weir_core::frame::Frames;
use weir_core::gateway::{ClassConfig, Config, Direction, Gateway, LAN, WAN};
use weir_core::node::{Cx, Node, Port, PortSet};
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::Flags;

/// Half of them send data to the WAN, half to the LAN.
const FLOWS: u8 = 6;
/// Acknowledgements arrive on this port, and leave by the other.
fn port_of(flow: u8) -> Port {
    if flow % 2 == 0 {
        WAN
    } else {
        LAN
    }
}

/// An arrival: its time, its flow, and the frame.
type Arrival = (Time, u8, Vec<u8>);
/// Frames that left, with the times at which they were due.
type Left = [Vec<(Time, Vec<u8>)>; 2];

struct Driver {
    gateway: Gateway,
    frames: Frames,
    left: Left,
}

impl Driver {
    fn new(ack: AckControl) -> Driver {
        let class = |name: &str, direction| ClassConfig::controlled(name, direction, ack);
        let classes = vec![class("out", Direction::Out), class("in", Direction::In)];
        let gateway = Gateway::new(Config { classes, ..Config::default() });
        Driver { gateway, frames: Frames::new(1024, 256, 512), left: [vec![], vec![]] }
    }

    fn hand_in(&mut self, (now, flow, bytes): &Arrival) {
        let frame = self.frames.receive_copy(bytes, bytes.len(), *now).unwrap();
        self.gateway.handle_frame(&mut Cx { now: *now, frames: &mut self.frames }, port_of(*flow), frame);
    }

    fn poll(&mut self, now: Time) {
        let mut cx = Cx { now, frames: &mut self.frames };
        while let Some(sent) = self.gateway.poll_transmit(&mut cx, PortSet::ALL) {
            let bytes = cx.frames.bytes(&sent.frame).to_vec();
            self.left[usize::from(sent.port == WAN)].push((sent.at, bytes));
            cx.frames.transmitted(sent.frame);
        }
    }

    /// Polls at every deadline before `end`.
    fn step_until(&mut self, end: Time) {
        while let Some(due) = self.gateway.next_deadline(PortSet::ALL).filter(|due| *due < end) {
            self.poll(due);
        }
    }

    /// Hands in this many frames between polls; one by one, every deadline is stepped before.
    fn drive(ack: AckControl, arrivals: &[Arrival], together: usize) -> Left {
        let mut driver = Driver::new(ack);
        for round in arrivals.chunks(together) {
            if together == 1 {
                driver.step_until(round[0].0);
            }
            round.iter().for_each(|arrival| driver.hand_in(arrival));
            driver.poll(round[round.len() - 1].0);
        }
        driver.step_until(ms(1_000_000));
        assert_eq!(driver.gateway.flows.stats().ledger.held(), 0);
        driver.left
    }
}

/// Bytes of progress, and what else an ACK may be.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Progress(u32),
    Duplicate,
    Data(u32),
}

/// The receiver of flow `n` to its sender.
fn receiver(flow: u8) -> SegmentBuilder {
    SegmentBuilder::v4([10, 0, 1, flow], [10, 0, 0, flow]).ports(5_001, 40_000).window(60_000)
}

fn arrivals(ops: &[(u64, u8, Kind)]) -> Vec<Arrival> {
    let mut all = Vec::new();
    for flow in 0..FLOWS {
        let syn = SegmentBuilder::v4([10, 0, 0, flow], [10, 0, 1, flow])
            .ports(40_000, 5_001)
            .seq(0)
            .flags(Flags::SYN);
        let answer = receiver(flow).seq(0).ack(1).flags(Flags(Flags::SYN.0 | Flags::ACK.0));
        for (at, from, segment) in [(1, flow + 1, syn), (5, flow, answer)] {
            all.push((ms(at), from, segment.mss(1460).window_scale(7).ts(at as u32, 0).build()));
        }
    }
    all.sort_by_key(|arrival| arrival.0);
    let (mut now, mut acked, mut seq) =
        (Time::from_millis(10), [1u32; FLOWS as usize], [1u32; FLOWS as usize]);
    for &(gap, flow, kind) in ops {
        now += Duration::from_nanos(gap);
        let (acked, seq) = (&mut acked[usize::from(flow)], &mut seq[usize::from(flow)]);
        let payload = matches!(kind, Kind::Data(_)) as u32 * 100;
        if let Kind::Progress(bytes) | Kind::Data(bytes) = kind {
            *acked += bytes;
        }
        let millis = (now.as_nanos() / 1_000_000) as u32;
        let segment = receiver(flow).seq(*seq).ack(*acked).flags(Flags::ACK).payload(payload as usize);
        *seq += payload;
        all.push((now, flow, segment.ts(millis, millis).build()));
    }
    all
}

fn op() -> impl Strategy<Value = (u64, u8, Kind)> {
    let kind = prop_oneof![
        6 => (1u32..20_000).prop_map(Kind::Progress),
        1 => Just(Kind::Duplicate),
        1 => (1u32..5_000).prop_map(Kind::Data),
    ];
    // Whole tenths of a millisecond, too: frames arrive just as releases are due.
    let gap = prop_oneof![1u64..2_000_000, (1u64..20).prop_map(|n| n * 100_000)];
    (gap, 0..FLOWS, kind)
}

fn policy() -> impl Strategy<Value = AckControl> {
    (1_000_000u64..100_000_000, 1u64..10, any::<[bool; 3]>()).prop_map(
        |(bps, period, [auto, detect, acked])| {
            basic_with(|r| {
                r.rate = Rate::from_bps(bps).unwrap();
                r.period = if auto { Period::AUTO } else { Period::Fixed(Duration::from_millis(period)) };
                r.slow_start = if detect { SlowStart::DETECT } else { SlowStart::Ignore };
                r.meter = if acked { Meter::Acked } else { Meter::Received };
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, max_shrink_iters: 500, ..ProptestConfig::default() })]

    #[test]
    fn a_lazy_driver_gets_the_same(ack in policy(), ops in prop::collection::vec(op(), 1..80), together in 2usize..5) {
        let arrivals = arrivals(&ops);
        let early = Driver::drive(ack, &arrivals, 1);
        let lazy = Driver::drive(ack, &arrivals, together);
        prop_assert_eq!(&early[0], &lazy[0], "to the LAN");
        prop_assert_eq!(&early[1], &lazy[1], "to the WAN");
    }
}
