//! Datagrams where flows have a rate of their own: 1 Mbit/s are 125 packets of 1,000 bytes a second.

use crate::support::*;
use std::net::{Ipv4Addr, Ipv6Addr};
use weir_core::ack::{AckControl, Release, ShareRelease, Unresponsive};
use weir_core::gateway::{ClassConfig, Config, Direction, Gateway, Match, LAN};
use weir_core::rate::Rate;
use weir_core::rig::{Rig, TestFrame};
use weir_core::steer::{admits, Judgement, Kind, Load, Records};
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::{Flags, TCP, UDP};

fn gateway(ack: AckControl) -> Gateway {
    Gateway::hooked(config(ack))
}

fn config(ack: AckControl) -> Config {
    Config { classes: vec![ClassConfig::controlled("all", Direction::Out, ack)], ..Config::default() }
}

fn each(rate: Rate) -> AckControl {
    basic_with(|r| r.rate = rate)
}

/// A packet of a flow: 1,000 bytes from the IP header on.
fn datagram(flow: u16) -> SegmentBuilder {
    SegmentBuilder::v4(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 9, 0, 1))
        .udp()
        .ports(4_000 + flow, 9)
        .payload(972)
}

/// A packet of a flow over IPv6: as many bytes, where it has a fragment header.
fn datagram_v6(flow: u16) -> SegmentBuilder {
    let address = |last| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last);
    SegmentBuilder::v6(address(1), address(2)).udp().ports(4_000 + flow, 9).payload(944)
}

/// Packets that pass in ten seconds from the first on, of each of these that come once a millisecond.
fn passed(gateway: &Gateway, packets: &[SegmentBuilder]) -> Vec<usize> {
    let frames: Vec<Vec<u8>> = packets.iter().map(|packet| packet.clone().build()).collect();
    let passes = |frame: &Vec<u8>, at: u64| {
        let judged = gateway.flows.judge_frame(Direction::Out, frame, frame.len(), false, ms(at));
        judged != Judgement::Dropped
    };
    let mut passed = vec![0; frames.len()];
    for at in 1_000..11_000 {
        passed.iter_mut().zip(&frames).for_each(|(count, frame)| *count += usize::from(passes(frame, at)));
    }
    passed
}

/// Bursts of half of 100 ms come on top, and the packets of the first second until the flow has a queue.
#[track_caller]
fn assert_each(passed: &[usize], of_second: usize) {
    let all = 10 * of_second;
    assert!(passed.iter().all(|count| (all..=all + all / 50 + 4).contains(count)), "{passed:?}");
}

#[test]
fn each_flow_has_its_rate() {
    let gateway = gateway(each(Rate::mbit(1)));
    assert_each(&passed(&gateway, &[datagram(1), datagram(2), datagram(3)]), 125);
}

/// Fragments are a flow by their addresses and protocol: what is inside of them is no segment.
#[test]
fn fragments_of_tcp_have_a_queue() {
    let gateway = gateway(each(Rate::mbit(1)));
    let of = |protocol| datagram(1).protocol(protocol).fragment(8, true);
    let packets = [of(TCP).payload(960), of(UDP).payload(972)];
    assert_each(&passed(&gateway, &packets), 125);
}

/// The next header in a later fragment of IPv6 says nothing (RFC 8200 §4.5), so it tells no flows apart. Nor
/// does the first one in front of more extension headers than are followed.
#[test]
fn fragments_of_any_next_header_are_one_flow() {
    let gateway = gateway(each(Rate::mbit(1)));
    let fragment = |n: u8| datagram_v6(1).protocol(150 + n).fragment(u16::from(n), n < 5);
    let deep = |kind| (0..6).fold(datagram_v6(1).extension(kind, &[0; 6]), |s, _| s.extension(60, &[0; 6]));
    let mut packets: Vec<SegmentBuilder> = (1..=5).map(fragment).collect();
    packets.extend([0, 43, 60].map(|kind| deep(kind).payload(896)));
    let passed = passed(&gateway, &packets);
    assert_each(&[passed.iter().sum()], 125);
}

/// An atomic fragment is a whole packet (RFC 6946 §4), so a rule that names ports finds it.
#[test]
fn atomic_fragments_are_of_the_class_of_their_ports() {
    let named = config(AckControl::ack_share(Rate::mbit(1)));
    let ports = Match { src_port: Some(4_001..=4_001), ..Match::default() };
    let class = ClassConfig { matches: vec![ports], ..named.classes[0].clone() };
    let gateway = Gateway::hooked(Config { classes: vec![class], ..named });
    let of = |flow| datagram_v6(flow).fragment(0, false);
    let passed = passed(&gateway, &[of(1), of(2)]);
    assert_each(&passed[..1], 125);
    assert_eq!(passed[1], 10_000, "another port");
}

/// 1,000 solicitations of neighbours a second, of 60 bytes, pass beside a flood that takes all of their
/// class: no IPv6 passes without (RFC 4861 section 7.2). A flood of 500 bytes each on the link has a class's
/// rate and three quarters of the room, 64 kB and 50 ms, beside what is its host's own.
#[test]
fn neighbour_discovery_is_no_class_s() {
    let of_type = |kind: u16| datagram_v6(1).ports(kind << 8, 0).protocol(58).payload(0);
    let mut ack = AckControl::ack_share(Rate::mbit(1));
    ack.release.set_unresponsive(Unresponsive::Bound);
    let asks = of_type(135).ttl(255);
    let counts = passed(&gateway(ack), &[datagram_v6(2), asks.clone(), asks.ttl(254)]);
    assert_eq!(counts[1], 10_000, "{counts:?}");
    assert!(counts[0] < 1_350 && counts[2] < 5_000, "{counts:?}");
    let [src, dst] = ["fe80::1", "fe80::2"].map(|address| address.parse::<Ipv6Addr>().unwrap());
    let long = SegmentBuilder::v6(src, dst).udp().payload(452);
    let passed = passed(&gateway(ack), &[long, datagram_v6(2)]);
    let most = (10 * 131_250 + 64_000 + 6_562) / 500;
    assert!(passed[0] <= most && passed[0] >= 10 * 131_250 / 500, "{passed:?} of {most}");
    assert!(passed[1] >= 1_250, "{passed:?}");
}

/// In a fair class no flow of a host is held by what its others send.
#[test]
fn a_fair_class_holds_each_flow_to_its_most() {
    let shared = AckControl::ack_share(Rate::mbit(100));
    let law = ShareRelease { flow_max: Some(Rate::mbit(1)), ..*shared.release.share().unwrap() };
    let mut ack = AckControl { release: Release::Share(law), ..shared };
    for unresponsive in [Unresponsive::FAIR, Unresponsive::Bound] {
        ack.release.set_unresponsive(unresponsive);
        let flows: Vec<SegmentBuilder> = (0..5).map(datagram).collect();
        assert_each(&passed(&gateway(ack), &flows), 125);
    }
}

/// The bucket of the rate that the class had is gone with it.
#[test]
fn a_class_may_change_its_rate_to_one_of_each_flow() {
    let mut gateway = gateway(AckControl::ack_share(Rate::mbit(1)));
    assert!(passed(&gateway, &[datagram(1)])[0] < 1_350);
    gateway.flows.reconfigure(config(each(Rate::mbit(2)))).ok().unwrap();
    let flows = passed(&gateway, &[datagram(2), datagram(3)]);
    assert!(flows.iter().all(|count| (2_490..2_560).contains(count)), "{flows:?}");
}

/// Hooks drop nothing of a class that has lost its rate.
#[test]
fn a_class_without_a_rate_has_no_bucket() {
    for unresponsive in [Unresponsive::FAIR, Unresponsive::Bound, Unresponsive::Police] {
        let mut ack = AckControl::ack_share(Rate::mbit(1));
        ack.release.set_unresponsive(unresponsive);
        let mut gateway = gateway(ack);
        let passes = |gateway: &Gateway, at: u64, kind| {
            let load = Load { packets: 1, bytes: 1_000, payload: 972, ecn: 0, kind };
            let (bounds, tallies) = (gateway.flows.bounds(), gateway.flows.tallies());
            admits(bounds, tallies, 0, Records::default(), &load, ms(at))
        };
        for kind in [Kind::Counted, Kind::Held] {
            assert!((1_000..2_000).any(|at| !passes(&gateway, at, kind)), "8 Mbit/s exceed {unresponsive:?}");
        }
        let free = ClassConfig { ack: None, ..config(ack).classes.remove(0) };
        gateway.flows.reconfigure(Config { classes: vec![free], ..Config::default() }).ok().unwrap();
        for kind in [Kind::Counted, Kind::Held] {
            assert!((3_000..4_000).all(|at| passes(&gateway, at, kind)), "{unresponsive:?}");
        }
    }
}

/// Hooks have judged what they take, and charged its class with it. 3,000 segments without data, of 80
/// bytes each, are more than a class has room for at once: 64 kB, and 50 ms at 20 Mbit/s.
#[test]
fn what_hooks_took_is_not_judged_again() {
    let config = config(AckControl::ack_share(Rate::mbit(1)));
    let passed = |gateway| {
        let mut rig = Rig::new(gateway);
        for port in 0..3_000 {
            let reset = SegmentBuilder::v4(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 9, 0, 1))
                .ports(1_000 + port, 9)
                .flags(Flags::RST)
                .raw_options(&[1; 40]);
            rig.at(ms(1)).inject(LAN, TestFrame::bytes(&reset.build()));
        }
        rig.run_until(ms(2)).len()
    };
    assert_eq!(passed(Gateway::hooked(config.clone())), 3_000);
    assert!(passed(Gateway::new(config)) <= (64_000 + 125_000) / 80);
}
