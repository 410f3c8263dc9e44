//! The short way and the long one beside each other.

use super::super::{ClassConfig, Config, Direction, LAN, WAN};
use super::*;
use crate::ack::{AckControl, Window};
use crate::flow::{flag, FlowId};
use crate::frame::Frames;
use crate::node::{Node, Port, PortSet, Transmit};
use crate::rate::Rate;
use crate::steer::{self, Action, Seen};
use crate::time::{Duration, Time};
use crate::wire::build::{SegmentBuilder, Sum};
use crate::wire::Flags;
use proptest::prelude::*;

const SENDER: [u8; 4] = [10, 0, 0, 1];
const RECEIVER: [u8; 4] = [10, 0, 0, 2];
/// The receiver's SND.NXT after the handshake.
const NXT: u32 = 5_001;
/// Numbers wrap soon.
const UNA: u32 = 0xffff_c001;

/// A gateway, its pool and what has left it.
struct Side {
    gateway: Gateway,
    frames: Frames,
    now: Time,
    left: Vec<(Time, Port, Vec<u8>)>,
}

impl Side {
    fn new(config: Config, hooked: bool, always_long: bool) -> Side {
        let mut gateway = if hooked { Gateway::hooked(config) } else { Gateway::new(config) };
        gateway.always_long = always_long;
        Side { gateway, frames: Frames::growing(2048), now: Time::ZERO, left: Vec::new() }
    }

    fn drain(&mut self) {
        let mut cx = Cx { now: self.now, frames: &mut self.frames };
        while let Some(Transmit { port, at, frame }) = self.gateway.poll_transmit(&mut cx, PortSet::ALL) {
            if self.gateway.flows.hooked && frame.restamp {
                let bytes = cx.frames.bytes(&frame);
                let packet = wire::packet(bytes, bytes.len()).unwrap();
                let tcp = wire::tcp(bytes, &packet).unwrap();
                let stamp = self.gateway.flows.slots[FlowId(0)].stamp(tcp.ack, tcp.window);
                steer::restamp(cx.frames, &frame, &packet, &tcp, stamp);
            }
            self.left.push((at, port, cx.frames.bytes(&frame).to_vec()));
            cx.frames.transmitted(frame);
        }
    }

    /// Steps every deadline up to `until`.
    fn run(&mut self, until: Time) {
        while let Some(due) = self.gateway.next_deadline(PortSet::ALL).filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.drain();
        }
        self.now = until;
    }

    fn inject(&mut self, at: Time, port: Port, bytes: &[u8], checksum: Checksum) {
        self.run(at);
        let counted = self.gateway.flows.hooked && port == WAN && self.is_counted(bytes);
        if self.gateway.flows.hooked && port == WAN && !counted && !self.is_unknown(bytes) {
            return;
        }
        let mut frame = self.frames.receive_copy(bytes, bytes.len(), at).unwrap();
        frame.restamp = counted;
        frame.checksum = checksum;
        self.gateway.handle_frame(&mut Cx { now: at, frames: &mut self.frames }, port, frame);
        self.drain();
    }

    /// Returns whether the gateway gets a segment because the hook knows nothing of its flow.
    fn is_unknown(&self, bytes: &[u8]) -> bool {
        let Ok(packet) = wire::packet(bytes, bytes.len()) else { return true };
        let Ok(tcp) = wire::tcp(bytes, &packet) else { return true };
        let unknown =
            !self.gateway.flows.slots[FlowId(0)].is_open() || tcp.flags.intersects(Flags::SYN | Flags::RST);
        unknown || wire::tcp_options(bytes, &packet, &tcp).is_err()
    }

    /// Returns whether a hook takes a segment of the flow.
    fn is_counted(&self, bytes: &[u8]) -> bool {
        let slot = &self.gateway.flows.slots[FlowId(0)];
        if self.is_unknown(bytes) {
            return false;
        }
        let packet = wire::packet(bytes, bytes.len()).unwrap();
        let tcp = wire::tcp(bytes, &packet).unwrap();
        let options = wire::tcp_options(bytes, &packet, &tcp).unwrap();
        let took = slot.segment(&Seen::of(&tcp, &options, self.now)) == Action::Take;
        if took {
            slot.take();
        }
        took
    }

    /// All that is known of the flow, and all that was counted.
    fn state(&self) -> String {
        let (g, f) = (&self.gateway, &self.frames);
        let classes: Vec<_> = g.flows.class_stats().collect();
        format!(
            "{:?} {:?} {:?} {:?} {:?}",
            g.flows.stats,
            classes,
            g.flows.records(),
            g.flows.slots(),
            f.ledger()
        )
    }
}

fn config(ack: AckControl) -> Config {
    let class = ClassConfig::controlled("all", Direction::Out, ack);
    Config { classes: vec![class], max_flows: 4, ..Config::default() }
}

fn ends(v6: bool) -> (SegmentBuilder, SegmentBuilder) {
    let six = |n| [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, n];
    let (to, back) = if v6 {
        (SegmentBuilder::v6(six(1), six(2)), SegmentBuilder::v6(six(2), six(1)))
    } else {
        (SegmentBuilder::v4(SENDER, RECEIVER), SegmentBuilder::v4(RECEIVER, SENDER))
    };
    (to.ports(40_000, 5001), back.ports(5001, 40_000).window(4_000))
}

/// A flow with timestamps or without whose handshake was seen and of which two ACKs have come, the second of
/// which waits.
fn backlogged(config: &Config, hooked: bool, always_long: bool, v6: bool, ts: bool) -> Side {
    let mut side = Side::new(config.clone(), hooked, always_long);
    let (to, back) = ends(v6);
    let stamped = |s: SegmentBuilder| if ts { s.ts(1, 1) } else { s };
    let syn = stamped(to.seq(UNA - 1).flags(Flags::SYN).mss(1460).window_scale(7));
    let answer = back.clone().seq(NXT - 1).ack(UNA).flags(Flags::SYN | Flags::ACK).mss(1460).window_scale(7);
    let first = [1_000u32, 200_000].map(|n| back.clone().seq(NXT).ack(UNA.wrapping_add(n)));
    let mut at = Time::from_millis(1_000);
    for (port, segment) in [(LAN, syn), (WAN, stamped(answer))] {
        side.inject(at, port, &segment.build(), Checksum::Unknown);
    }
    for segment in first {
        at += Duration::from_micros(50);
        side.inject(at, WAN, &stamped(segment).build(), Checksum::Unknown);
    }
    assert!(side.gateway.flows.table[FlowId(0)].has(flag::ARMED));
    side
}

fn shaper() -> AckControl {
    AckControl::ack_shaper(Rate::mbit(1))
}

impl Side {
    /// Returns whether the short way deals with a frame that comes now.
    fn takes(&mut self, from_lan: bool, bytes: &[u8], checksum: Checksum) -> bool {
        let mut frame = self.frames.receive_copy(bytes, bytes.len(), self.now).unwrap();
        frame.checksum = checksum;
        let took =
            self.gateway.takes_plain(&Cx { now: self.now, frames: &mut self.frames }, from_lan, &frame);
        self.frames.consumed(frame);
        took
    }
}

#[test]
fn plain_acks_take_the_short_way_and_nothing_else_does() {
    for (v6, ts) in [(false, false), (false, true), (true, false), (true, true)] {
        let ack = ends(v6).1.seq(NXT).ack(UNA.wrapping_add(210_000));
        let stamped = |s: &SegmentBuilder| if ts { s.clone().ts(2, 2) } else { s.clone() };
        let usual = stamped(&ack);
        let takes = |segment: &SegmentBuilder, from_lan: bool, checksum| {
            let mut side = backlogged(&config(shaper()), false, false, v6, ts);
            side.takes(from_lan, &segment.build(), checksum)
        };
        let unknown = Checksum::Unknown;
        assert!(takes(&usual, false, unknown), "{v6} {ts}");
        assert!(takes(&usual.clone().checksum(Sum::Partial), false, Checksum::Partial));
        assert!(takes(&usual.clone().pad_to(80), false, unknown));
        let others = [
            stamped(&ack.clone().flags(Flags::ACK | Flags::ECE)),
            stamped(&ack.clone().flags(Flags::ACK | Flags::FIN)),
            stamped(&ack.clone().seq(NXT + 1)),
            stamped(&ack.clone().ack(UNA.wrapping_add(200_000))),
            stamped(&ack.clone().ack(UNA.wrapping_add(1_000_000))),
            stamped(&ack.clone().window(0)),
            stamped(&ack.clone().ports(5001, 40_001)),
            stamped(&ack.clone().vlan(9)),
            stamped(&ack.clone().payload(1)),
            stamped(&ack.clone()).checksum(Sum::Wrong),
            if ts { ack.clone() } else { ack.clone().ts(2, 2) },
            stamped(&ack.clone()).raw_options(&[1, 1, 1, 1]),
        ];
        for (n, other) in others.iter().enumerate() {
            assert!(!takes(other, false, unknown), "{n}, IPv6 {v6}, timestamps {ts}");
        }
        assert!(!takes(&usual, true, unknown), "from the other side");
        assert!(!takes(&usual, false, Checksum::Invalid));
    }
}

/// Next step of the receiver: how long after the last one, and how much is acknowledged.
#[derive(Clone, Debug)]
struct Step {
    wait_us: u64,
    bytes: u32,
    what: u8,
    x: u32,
}

/// The segment of a step, and what is known of its checksum. `top` is what was acknowledged so far.
fn segment(step: &Step, top: u32, clock: u32, v6: bool, ts: bool) -> (SegmentBuilder, Checksum) {
    let ack = |bytes: u32| ends(v6).1.seq(NXT).ack(UNA.wrapping_add(bytes));
    let stamped = |s: SegmentBuilder| if ts { s.ts(clock, clock / 3) } else { s };
    let usual = stamped(ack(top));
    let x = step.x;
    let changed = match step.what {
        0 => stamped(ack(top).window(x as u16)),
        1 => stamped(ack(top.wrapping_sub(x % 5_000))),
        2 => stamped(ack(top).flags(Flags(0x010 | x as u16 & 0x1e1))),
        3 => stamped(ack(top).payload(x as usize % 3)),
        4 => stamped(ack(top).seq(NXT.wrapping_add(x % 5).wrapping_sub(2))),
        5 => {
            usual.sack(&[(UNA.wrapping_add(top).wrapping_add(x), UNA.wrapping_add(top).wrapping_add(x + 9))])
        }
        6 => stamped(ack(top).ttl(x as u8).tos((x >> 8) as u8).flow_label(x & 0xf_ffff)),
        7 => stamped(ack(top).macs([x as u8; 6], [4; 6])),
        8 => usual.checksum(Sum::Wrong),
        9 => return (usual.checksum(Sum::Partial), Checksum::Partial),
        10 if !v6 => stamped(ack(top)).ip_options(&[1; 4]),
        11 if ts => ack(top).ts(clock.wrapping_sub(x % 50), x),
        12 => ack(top),
        13 => stamped(ack(top.wrapping_add(x))),
        14 => return (usual, Checksum::Valid),
        15 => {
            let right = UNA.wrapping_add(top).wrapping_sub(x % 9_000);
            usual.sack(&[(right.wrapping_sub(9), right)])
        }
        _ => usual,
    };
    (changed, Checksum::Unknown)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Whatever the receiver sends, both ways know the same of the flow, count the same, and send the same at
    /// the same times.
    #[test]
    fn both_ways_do_the_same(
        v6: bool, ts: bool, hooked: bool, sizes: bool, kbit in 200u64..50_000,
        steps in prop::collection::vec((0u64..6_000, 1u32..6_000, 0u8..40, any::<u32>()), 1..60),
    ) {
        let mut ack = AckControl::ack_shaper(Rate::kbit(kbit));
        if !sizes {
            ack.window = Window::Keep;
        }
        let mut config = config(ack);
        let mut sides = [false, true].map(|long| backlogged(&config, hooked, long, v6, ts));
        let (mut at, mut top) = (sides[0].now, 200_000u32);
        for (n, (wait_us, bytes, what, x)) in steps.into_iter().enumerate() {
            let step = Step { wait_us, bytes, what, x };
            at += Duration::from_micros(step.wait_us);
            top += step.bytes;
            let clock = (at.as_nanos() / 1_000_000) as u32;
            let (segment, checksum) = segment(&step, top, clock, v6, ts);
            if step.what == 20 {
                config.assumed_rtt = Duration::from_millis(1 + u64::from(x % 100));
            }
            for side in &mut sides {
                match step.what {
                    20 => side.gateway.flows.reconfigure(config.clone()).map(drop).unwrap(),
                    21 => side.gateway.flows.resync(),
                    _ => {}
                }
                side.inject(at, WAN, &segment.build(), checksum);
            }
            let [short, long] = &sides;
            prop_assert_eq!(short.state(), long.state(), "after step {}: {:?}", n, step);
        }
        sides.iter_mut().for_each(|side| side.run(at + Duration::from_secs(100)));
        let [short, long] = &sides;
        prop_assert_eq!(&short.left, &long.left);
        prop_assert_eq!(short.state(), long.state());
    }
}
