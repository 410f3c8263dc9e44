//! Packets that cannot be read as a whole, and bytes beside a segment's data. They are bounded like all
//! others, behind hooks and without.

use super::tests::inject_frame;
use super::*;
use core::net::Ipv6Addr;
use weir_core::ack::AckControl;
use weir_core::gateway::{ClassConfig, Match, Nested, Prefix};
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

/// Echo of LCP in a session of PPPoE (RFC 1661 section 5.8, RFC 2516 section 4), padded to Ethernet's least.
fn echo() -> Vec<u8> {
    let mut frame = arp([10, 0, 0, 1], [10, 0, 0, 2]);
    let session = [0x88, 0x64, 0x11, 0, 0, 7, 0, 10, 0xc0, 0x21, 9, 1, 0, 8, 0, 0, 0, 1];
    frame[12..].fill(0);
    frame[12..30].copy_from_slice(&session);
    frame
}

/// Sends a frame with 1,000 bytes of the host each 250 us for three seconds, four times the rate, and an ARP
/// packet and an echo of LCP each second. Returns the bytes that passed, the most in a second, and how many
/// ARP packets and echoes passed.
fn flood<N: Node>(node: N, frame: &[u8]) -> (u64, u64, u32) {
    let mut rig = Rig::new(node);
    let (mut all, mut second, mut busiest, mut arps) = (0, Second::default(), 0, 0);
    for n in 0..12_000u64 {
        let at = Time::from_millis(1_000) + Duration::from_micros(250 * n);
        inject_frame(&mut rig, at, LAN, frame);
        if n % 4_000 == 3_999 {
            inject_frame(&mut rig, at, LAN, &arp([10, 0, 0, 1], [10, 0, 0, 2]));
            inject_frame(&mut rig, at, LAN, &echo());
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
        assert_eq!(arps, 6, "{said}, hooks {hooks}: ARP and LCP pass");
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

/// Verifies that a host that floods with frames without addresses leaves a part of the rate to others, which
/// are told apart by their Ethernet addresses. A sixteenth of 8 Mbit/s is a frame of 1,000 bytes each 16 ms.
#[test]
fn frames_without_addresses_of_one_host_leave_a_part_to_others() {
    for inward in [false, true] {
        let mut config = config();
        config.classes.iter_mut().for_each(|class| class.matches.clear());
        config.classes.truncate(1);
        config.seed = 0x9e37_79b9_7f4a_7c15;
        config.classes[0].direction = if inward { Direction::In } else { Direction::Out };
        let frame = |n: u8| {
            let (host, router) = ([2, 0, 0, 0, 7, n], [2, 0, 0, 0, 0, 99]);
            let macs = if inward { (router, host) } else { (host, router) };
            let whole = SegmentBuilder::v4([10, 0, 0, n], [10, 0, 1, 1]).macs(macs.0, macs.1).payload(960);
            let mut frame = whole.build();
            // A protocol for local experiments, and no version of IP behind it.
            frame[12..15].copy_from_slice(&[0x88, 0xb5, 0]);
            frame
        };
        let (mut rig, mut passed) = (Rig::new(Steered::new(config)), [0u64; 3]);
        let mut inject = |n: u8, at| {
            inject_frame(&mut rig, at, if inward { WAN } else { LAN }, &frame(n));
            for sent in rig.run_until(at) {
                passed[usize::from(sent.bytes[if inward { 5 } else { 11 }])] += 1;
            }
        };
        for n in 0..16_000u64 {
            let at = Time::from_millis(1_000) + Duration::from_micros(250 * n);
            inject(1, at);
            if n % 64 == 0 {
                inject(2, at);
            }
        }
        assert_eq!(passed[2], 250, "inward: {inward}");
        // 1.05 times the rate for four seconds and three quarters of the room, less the other's.
        let expected = 4 * 1_050 + (64_000 + 52_500) / 4 * 3 / 1_000 - 250;
        assert!(passed[1].abs_diff(expected) <= 20, "inward: {inward}, {passed:?}");
    }
}

/// Returns the bytes that pass in each of three seconds of a segment without data, of 100 bytes, each `gap`
/// microseconds. It is a RST: repeated ACKs of one connection would be taken as such.
fn bare<N: Node>(node: N, gap: u64) -> [u64; 3] {
    let rst = SegmentBuilder::v6(Ipv6Addr::from(HOST), Ipv6Addr::from([9; 16])).flags(Flags::RST);
    let frame = rst.raw_options(&[1; 40]).build();
    assert_eq!(frame.len(), 114);
    let (mut rig, mut passed) = (Rig::new(node), [0; 3]);
    for us in (0..3_000_000u64).step_by(gap as usize) {
        let at = Time::from_millis(1_000) + Duration::from_micros(us);
        inject_frame(&mut rig, at, LAN, &frame);
        passed[us as usize / 1_000_000] += 100 * rig.run_until(at).len() as u64;
    }
    passed
}

/// Verifies that segments without data pass as far as there may be data for their ACKs, and a flood of them
/// does not. Of the class of 8 Mbit/s, 40,000 a second are four times the rate. Without a class for the data
/// they have 20 Mbit/s, which are more than their own; with one of 16 Mbit/s, an eighth of 1.05 times that.
/// In the first second comes half of the room on top.
#[test]
fn segments_without_data_have_a_bound_of_their_own() {
    let downloads = ClassConfig::controlled("in", Direction::In, AckControl::ack_share(Rate::mbit(16)));
    let mut both = config();
    both.classes.push(downloads);
    for (said, config, second) in [("uploads", config(), 2_500_000), ("both", both, 262_500)] {
        let room = (64_000 + second / 20) / 2;
        let nodes = [bare(Steered::new(config.clone()), 25), bare(Gateway::new(config.clone()), 25)];
        for passed in nodes {
            let expected = [second + room, second, second];
            let right = |(&n, m): (&u64, u64)| n.abs_diff(m) <= 400;
            assert!(passed.iter().zip(expected).all(right), "{said}: {passed:?}");
        }
        // 2,000 a second are 1.6 Mbit/s.
        assert_eq!(bare(Steered::new(config), 500), [200_000; 3], "{said}");
    }
}

/// A site of this rate in Mbit/s for each direction, with two customers who may have all of it, one of whom
/// is the host above.
fn site(up: u64, down: u64) -> Config {
    let mut classes = Vec::new();
    for (direction, mbit) in [(Direction::Out, up), (Direction::In, down)] {
        let parent = classes.len();
        let class = |name: &str, matches, nested| {
            let class = ClassConfig::controlled(name, direction, AckControl::ack_share(Rate::mbit(mbit)));
            ClassConfig { matches, nested: Some(nested), ..class }
        };
        let top = Nested { parent: None, rate: Some(Rate::mbit(mbit)), ceil: None, weight: 1, lends: true };
        classes.push(class("site", vec![], top));
        for host in [HOST, [7; 16]] {
            let prefix = Prefix::new(host.into(), 128);
            let (src, dst) = if direction == Direction::Out { (prefix, None) } else { (None, prefix) };
            let below = Nested { parent: Some(parent), rate: None, lends: false, ..top };
            classes.push(class(&format!("{}", host[0]), vec![Match { src, dst, ..Match::default() }], below));
        }
    }
    let config = Config { classes, ..Config::default() };
    assert_eq!(config.check_nested(), Ok(()));
    config
}

/// Verifies that segments without data of a site's customers are bounded together. Each floods with 32
/// Mbit/s, of which 30 are an eighth of the rate of its data, and of the site's.
#[test]
fn segments_without_data_of_a_site_have_one_bound() {
    let frame = |host: [u8; 16]| {
        let rst = SegmentBuilder::v6(Ipv6Addr::from(host), Ipv6Addr::from([9; 16])).flags(Flags::RST);
        rst.raw_options(&[1; 40]).build()
    };
    let frames = [HOST, [7; 16]].map(frame);
    let passed = |rig: &mut Rig<Steered>| {
        let mut passed = [0u64; 3];
        for us in (0..3_000_000u64).step_by(25) {
            let at = Time::from_millis(1_000) + Duration::from_micros(us);
            frames.iter().for_each(|frame| inject_frame(rig, at, LAN, frame));
            passed[us as usize / 1_000_000] += 100 * rig.run_until(at).len() as u64;
        }
        passed
    };
    // 1.05 times 30 Mbit/s; where the uploads may have more than that, as much as those.
    for (up, second) in [(12, 3_937_500), (40, 5_250_000)] {
        let [_, bytes, again] = passed(&mut Rig::new(Steered::new(site(up, 240))));
        assert!(bytes.abs_diff(second) <= 1_000 && again.abs_diff(second) <= 1_000, "{up}: {bytes}, {again}");
    }
}
