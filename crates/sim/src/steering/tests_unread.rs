//! Packets that cannot be read as a whole, and bytes beside a segment's data. They are bounded like all
//! others, behind hooks and without.

use super::tests::inject_frame;
use super::*;
use core::net::Ipv6Addr;
use weir_core::ack::AckControl;
use weir_core::gateway::{ClassConfig, Match, Prefix};
use weir_core::rate::Rate;
use weir_core::rig::second::{most, Second};
use weir_core::rig::Rig;
use weir_core::time::Duration;
use weir_core::wire::build::{arp, Disguise, SegmentBuilder};

/// A byte a microsecond.
const RATE: Rate = Rate::mbit(8);

/// The host's IPv6 address.
const HOST: [u8; 16] = [8; 16];

/// The class of one host, and a slower one of all others.
fn config() -> Config {
    let class = |name, matches, rate| {
        let class = ClassConfig::controlled(name, Direction::Out, AckControl::ack_share(rate));
        ClassConfig { matches, ..class }
    };
    let host = Match { src: Some(Prefix::new([10, 0, 0, 1].into(), 32).unwrap()), ..Match::default() };
    let six = Match { src: Some(Prefix::new(HOST.into(), 128).unwrap()), ..Match::default() };
    let classes = vec![class("host", vec![host, six], RATE), class("others", vec![], Rate::mbit(2))];
    Config { classes, ..Config::default() }
}

/// Sends a frame with 1,000 bytes of the host each 250 us for three seconds, four times the rate, and an ARP
/// packet each second. Returns the bytes that passed, the most in a second, and how many ARP packets passed.
fn flood<N: Node>(node: N, frame: &[u8]) -> (u64, u64, u32) {
    let mut rig = Rig::new(node);
    let (mut all, mut second, mut busiest, mut arps) = (0, Second::default(), 0, 0);
    for n in 0..12_000u64 {
        let at = Time::from_millis(1_000) + Duration::from_micros(250 * n);
        inject_frame(&mut rig, at, LAN, frame);
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

/// Verifies that frames, by what they are, are bounded behind hooks and without.
fn bounds(said: &str, frame: &[u8]) {
    let nodes = [flood(Steered::new(config()), frame), flood(Gateway::new(config()), frame)];
    for (hooks, (bytes, busiest, arps)) in [true, false].into_iter().zip(nodes) {
        assert_eq!(arps, 3, "{said}, hooks {hooks}: ARP passes");
        assert!(busiest <= most(RATE), "{said}, hooks {hooks}: {busiest}");
        assert!(bytes >= 3_000_000 * 9 / 10, "{said}, hooks {hooks}: {bytes}");
    }
}

#[test]
fn what_cannot_be_read_is_bounded() {
    for disguise in Disguise::ALL {
        let whole = SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 1, 1]).payload(960).build();
        bounds(&format!("{disguise:?}"), &disguise.put_on(whole));
    }
}

/// Verifies that bytes in front of a segment without data, and behind its packet, are bounded as data is.
#[test]
fn what_is_beside_the_data_is_bounded() {
    let (src, dst) = (Ipv6Addr::from(HOST), Ipv6Addr::from([9; 16]));
    // 40 bytes of IPv6, 944 of destination options, 20 of TCP without data.
    let with_options = SegmentBuilder::v6(src, dst).extension(60, &[0; 942]).build();
    let behind = SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 1, 1]).pad_to(1_014).build();
    let datagram = SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 1, 1]).udp().pad_to(1_014).build();
    for (said, frame) in
        [("extension header", with_options), ("trailer", behind), ("trailer of a datagram", datagram)]
    {
        assert!((1_014..=1_018).contains(&frame.len()), "{said}: {}", frame.len());
        bounds(said, &frame);
    }
}

/// Verifies that ACKs without data are not charged: 40,000 a second are four times the rate.
#[test]
fn acks_cost_nothing() {
    let ack = SegmentBuilder::v6(Ipv6Addr::from(HOST), Ipv6Addr::from([9; 16]));
    let frame = ack.raw_options(&[1; 40]).build();
    assert_eq!(frame.len(), 114);
    let mut rig = Rig::new(Steered::new(config()));
    let mut passed = 0;
    for n in 0..40_000u64 {
        let at = Time::from_millis(1_000) + Duration::from_micros(25 * n);
        inject_frame(&mut rig, at, LAN, &frame);
        passed += rig.run_until(at).len();
    }
    assert_eq!(passed, 40_000);
}
