//! Packets that cannot be read as a whole. They are bounded like all others, behind hooks and without.

use super::tests::inject_frame;
use super::*;
use weir_core::ack::AckControl;
use weir_core::gateway::{ClassConfig, Match, Prefix};
use weir_core::rate::Rate;
use weir_core::rig::second::{most, Second};
use weir_core::rig::Rig;
use weir_core::wire::build::{arp, Disguise, SegmentBuilder};

/// A byte a microsecond.
const RATE: Rate = Rate::mbit(8);

/// The class of one host, and a slower one of all others.
fn config() -> Config {
    let class = |name, matches, rate| {
        let class = ClassConfig::controlled(name, Direction::Out, AckControl::ack_share(rate));
        ClassConfig { matches, ..class }
    };
    let host = Match { src: Some(Prefix::new([10, 0, 0, 1].into(), 32).unwrap()), ..Match::default() };
    let classes = vec![class("host", vec![host], RATE), class("others", vec![], Rate::mbit(2))];
    Config { classes, ..Config::default() }
}

/// Sends 1,000 bytes of the host each 250 us for three seconds, four times the rate, and an ARP packet each
/// second. Returns the bytes that passed, the most in a second, and how many ARP packets passed.
fn flood<N: Node>(node: N, disguise: Disguise) -> (u64, u64, u32) {
    let mut rig = Rig::new(node);
    let (mut all, mut second, mut busiest, mut arps) = (0, Second::default(), 0, 0);
    let frame = disguise.put_on(SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 1, 1]).payload(960).build());
    for n in 0..12_000u64 {
        let at = Time::from_millis(1_000) + weir_core::time::Duration::from_micros(250 * n);
        inject_frame(&mut rig, at, LAN, &frame);
        if n % 4_000 == 3_999 {
            inject_frame(&mut rig, at, LAN, &arp([10, 0, 0, 1], [10, 0, 0, 2]));
        }
        for sent in rig.run_until(at) {
            if sent.len == frame.len() {
                all += 1_000;
                busiest = busiest.max(second.add(sent.at, 1_000));
            } else {
                arps += 1;
            }
        }
    }
    (all, busiest, arps)
}

#[test]
fn what_cannot_be_read_is_bounded() {
    for disguise in Disguise::ALL {
        let nodes = [flood(Steered::new(config()), disguise), flood(Gateway::new(config()), disguise)];
        for (hooks, (bytes, busiest, arps)) in [true, false].into_iter().zip(nodes) {
            assert_eq!(arps, 3, "{disguise:?}, hooks {hooks}: ARP passes");
            assert!(busiest <= most(RATE), "{disguise:?}, hooks {hooks}: {busiest}");
            assert!(bytes >= 3_000_000 * 9 / 10, "{disguise:?}, hooks {hooks}: {bytes}");
        }
    }
}
