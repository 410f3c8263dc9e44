//! Random receivers and hostile frames against the rules that must always hold.

use crate::support::*;
use proptest::prelude::*;
use weir_core::ack::{AckControl, Hold, Meter, Period, RateRelease, Release, SlowStart, When, Window};
use weir_core::gateway::{LAN, WAN};
use weir_core::rate::Rate;
use weir_core::rig::TestFrame;
use weir_core::time::{Duration, Time};
use weir_core::wire::Flags;
use weir_core::wire::Seq;

/// Next step of a receiver.
#[derive(Clone, Debug)]
enum Op {
    /// Acknowledge this many more bytes, the application having read some.
    Progress { bytes: u32, read: u32 },
    /// Repeat the last ACK.
    Duplicate,
    /// Repeat it with a SACK block.
    Sack { above: u32, len: u32 },
    /// Repeat it with what arrived twice (RFC 2883).
    Twice { below: u32, len: u32 },
    /// Send payload.
    Data { len: usize, bytes: u32 },
    /// The application reads, and the window update is sent.
    Update { read: u32 },
    /// An old ACK arrives late.
    Old { back: u32 },
    /// Toggle ECE.
    Ece,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (1u32..30_000, 0u32..40_000).prop_map(|(bytes, read)| Op::Progress { bytes, read }),
        2 => Just(Op::Duplicate),
        1 => (1u32..5_000, 1u32..3_000).prop_map(|(above, len)| Op::Sack { above, len }),
        1 => (0u32..30_000, 1u32..1_500).prop_map(|(below, len)| Op::Twice { below, len }),
        1 => (1usize..200, 0u32..5_000).prop_map(|(len, bytes)| Op::Data { len, bytes }),
        1 => (1u32..200_000).prop_map(|read| Op::Update { read }),
        1 => (1u32..20_000).prop_map(|back| Op::Old { back }),
        1 => Just(Op::Ece),
    ]
}

fn policy() -> impl Strategy<Value = AckControl> {
    (8_000u64..1_000_000_000, 1u64..50_000, any::<[bool; 3]>(), 0u64..100).prop_map(
        |(bps, period_us, [fixed, detect, received], standing)| {
            let mut r = RateRelease::new(Rate::from_bps(bps).unwrap());
            if fixed {
                r.period = Period::Fixed(Duration::from_micros(period_us));
            }
            if !detect {
                r.slow_start = SlowStart::Ignore;
            }
            if !received {
                r.meter = Meter::Acked;
            }
            let sized = Window::Size { standing_delay: Duration::from_millis(standing) };
            let window = if standing > 50 { sized } else { Window::SIZE };
            AckControl { hold: Hold::Number, release: Release::Rate(r), window, when: When::Always }
        },
    )
}

/// A flow whose handshake was not seen, how far its sender knows it to be, and how far it is.
fn in_midstream(ack: AckControl) -> (Net, u32, u32) {
    let mut w = Net::new(ack, None);
    for n in 1..=4u32 {
        let segment = w.ack_segment(n * 1_000).ts(n, n);
        w.inject_at(ms(u64::from(n)), WAN, segment);
    }
    let told = w.run(ms(5)).last().map_or(0, |s| w.rel(s));
    (w, told, 4_000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_rules_hold_whatever_the_receiver_does(ack in policy(), missed in any::<bool>(),
                                                 ops in prop::collection::vec((op(), 0u64..30_000), 1..80)) {
        let (mut w, told, mut top) = if missed { in_midstream(ack) } else { (Net::established_with(ack, true), 0, 0) };
        let (mut seq, mut edge, mut ts, mut ece) = (5_001u32, top + 512_000, 100u32, false);
        let mut blocks = Vec::new();
        let mut now = 1_000_000;
        let mut duplicates = 0usize;
        let mut sent = Vec::new();
        let mut edges = vec![(Time::ZERO, edge)];
        for (op, wait_us) in ops {
            now += wait_us;
            ts += (wait_us / 1000) as u32;
            let mut old = None;
            let (mut payload, mut sack) = (0, None);
            match op {
                Op::Progress { bytes, read } => {
                    let room = edge.wrapping_sub(top);
                    top += bytes.min(room);
                    edge = edge.max(top + (read & !127));
                }
                Op::Duplicate => duplicates += 1,
                Op::Sack { above, len } => sack = Some((top + above, top + above + len)),
                Op::Twice { below, len } => {
                    let right = top.saturating_sub(below);
                    sack = Some((right - len.min(right), right)).filter(|b| b.0 < b.1);
                }
                // Without a scale a flow in two directions passes.
                Op::Data { .. } if missed => {}
                Op::Data { len, bytes } => {
                    top += bytes.min(edge.wrapping_sub(top));
                    payload = len;
                }
                Op::Update { read } => edge = edge.max(top + (read & !127)),
                Op::Old { back } => old = Some(top.saturating_sub(back)),
                Op::Ece => ece = !ece,
            }
            // A receiver rounds the window it has promised up, never down.
            let window = (edge - top).div_ceil(128).min(65_535) as u16;
            edge = edge.max(top + u32::from(window) * 128);
            edges.push((Time::from_micros(now), edge));
            let flags = if ece { Flags(Flags::ACK.0 | Flags::ECE.0) } else { Flags::ACK };
            let segment = w.ack_segment(old.unwrap_or(top)).seq(seq).flags(flags).window(window).ts(ts, ts - 50).payload(payload);
            seq += payload as u32;
            blocks.extend(sack.map(|block| (block, top)));
            let segment = match sack {
                Some((a, b)) => segment.sack(&[(w.abs(a), w.abs(b))]),
                None => segment,
            };
            w.inject_at(Time::from_micros(now), WAN, segment);
            sent.extend(w.run(Time::from_micros(now)));
        }
        // Everything comes out in the end: at 8 kb/s the worst backlog takes an hour.
        sent.extend(w.run(Time::from_secs(100_000)));
        let acks: Vec<u32> = sent.iter().map(|s| w.rel(s)).collect();
        let (mut last, mut right, mut value) = (told, 0u32, 0u32);
        for (s, &ack) in sent.iter().zip(&acks) {
            let t = w.tcp(s);
            prop_assert!(ack >= last, "the acknowledgement regressed: {} after {}", ack, last);
            prop_assert!(ack <= top, "acknowledged what the receiver has not");
            let e = ack + u32::from(t.window) * 128;
            // Less than a unit to the left, where less than a unit was acknowledged (RFC 7323 section 2.4).
            let left = t.window != 0 && e < right && !(ack - last < 128 && right - e < 128);
            prop_assert!(missed || !left, "right edge moved left: {} after {}", e, right);
            let own = edges.iter().rev().find(|(at, _)| *at <= s.at).unwrap().1;
            prop_assert!(e <= own, "right edge {} beyond the receiver's own {}", e, own);
            right = right.max(e);
            // A block that tells of a hole goes with the number that it came with, and one of data that
            // arrived twice with none below it, or else it would tell of a hole, too.
            for &(a, b) in w.options(s).sack.as_slice() {
                let block = (a.since(Seq(w.abs(0))), b.since(Seq(w.abs(0))));
                let came = blocks.iter().any(|&(came, at)| came == block && (at == ack || block.1 <= ack));
                prop_assert!(came, "an ACK of {} with {:?}", ack, block);
            }
            let ts = w.options(s).timestamps.unwrap();
            prop_assert!(ts.value >= value, "TSval went back");
            value = ts.value;
            last = ack;
        }
        prop_assert_eq!(last, top, "the tail is stranded");
        // The first may repeat the SYN-ACK, which is not in the list.
        let repeats = acks.windows(2).filter(|p| p[0] == p[1]).count();
        prop_assert!(missed || repeats + 1 >= duplicates, "{} of {} duplicates", repeats, duplicates);
        w.check_sums(&sent);
        w.finish();
    }

    /// Arbitrary bytes on any port: no panic, nothing lost.
    #[test]
    fn hostile_bytes(frames in prop::collection::vec((0u8..4, prop::collection::vec(any::<u8>(), 1..200)), 1..60)) {
        let mut w = Net::established(AckControl::ack_shaper(Rate::mbit(1)));
        for (n, (port, bytes)) in frames.into_iter().enumerate() {
            w.rig.at(Time::from_micros(1_000_000 + n as u64)).inject(weir_core::node::Port(port), TestFrame::bytes(&bytes));
        }
        w.run(Time::from_secs(1_000));
        w.finish();
    }

    /// Valid ACKs with bytes changed anywhere behind the Ethernet header.
    #[test]
    fn mutated_acks(changes in prop::collection::vec((14usize..90, any::<u8>(), 0u32..100_000), 1..60)) {
        let mut w = Net::established_with(AckControl::ack_shaper(Rate::mbit(1)), true);
        for (n, (at, byte, ack)) in changes.into_iter().enumerate() {
            let mut bytes = w.ack_segment(ack).ts(n as u32, n as u32).sack(&[(1, 2)]).build();
            let at = at.min(bytes.len() - 1);
            bytes[at] = byte;
            let port = if byte & 1 == 0 { WAN } else { LAN };
            w.rig.at(Time::from_micros(1_000_000 + 500 * n as u64)).inject(port, TestFrame::bytes(&bytes));
        }
        w.run(Time::from_secs(1_000));
        w.finish();
    }
}
