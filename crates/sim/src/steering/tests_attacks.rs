//! Ways around a rate that a sender can choose: ports, and floods that use up what the hooks may look at.

use super::tests::inject_frame;
use super::tests_with_hosts::{within, Rig as Hosts, MS};
use super::*;
use weir_core::ack::{AckControl, Release, Unresponsive};
use weir_core::gateway::{ClassConfig, Match, Prefix};
use weir_core::link::Loss;
use weir_core::rate::Rate;
use weir_core::rig::Rig;
use weir_core::time::Duration;
use weir_core::wire::build::SegmentBuilder;

/// A policed class of a network's uploads at 2 Mbit/s, where another class makes rules look at ports.
fn policed() -> Config {
    let class = |name, rule| {
        let mut ack = AckControl::ack_share(Rate::mbit(2));
        if let Release::Share(law) = &mut ack.release {
            law.unresponsive = Unresponsive::Police;
        }
        let class = ClassConfig::controlled(name, Direction::Out, ack);
        ClassConfig { matches: vec![rule], ..class }
    };
    let dns = Match { dst_port: Some(53..=53), ..Match::default() };
    let capped = Match { src: Prefix::new([10, 0, 0, 0].into(), 24), ..Match::default() };
    Config { classes: vec![class("dns", dns), class("capped", capped)], ..Config::default() }
}

/// Verifies that a port for each datagram has no more than one port for all. 20.4 Mbit/s of datagrams of
/// 1,428 bytes come for 5 s, of which 2 Mbit/s are 1,250,000 bytes with all headers. The bucket holds 20 ms.
#[test]
fn a_port_for_each_datagram_is_no_way_around() {
    for many in [false, true] {
        let (mut rig, mut passed) = (Rig::new(Steered::new(policed())), 0);
        for n in 0..8_929u64 {
            let port = if many { 1_024 + n as u16 } else { 20_000 };
            let datagram = SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 1, 1]).ports(7, port).udp();
            let at = Time::from_secs(1) + Duration::from_micros(560 * n);
            inject_frame(&mut rig, at, LAN, &datagram.payload(1_400).build());
            passed += 1_428 * rig.run_until(at).len() as u64;
        }
        let most = 1_250_000 + 5_000 + 2 * 1_428;
        assert!((most * 96 / 100..=most).contains(&passed), "a port each: {many}, {passed} bytes");
    }
}

/// Verifies that a flood of SYNs, from another host or from the client's own address, frees no connection
/// that begins meanwhile: with data both ways it needs what its SYNs say. The downloads have 5 Mbit/s.
#[test]
fn a_flood_of_syns_frees_no_connection() {
    let policies = [20, 5].map(|mbit| Some(AckControl::ack_shaper(Rate::mbit(mbit))));
    for source in [[10, 0, 0, 99], [10, 0, 0, 1]] {
        let mut hosts = Hosts::over("cubic", MS(20), policies, Loss::None);
        let flood = |hosts: &mut Hosts, from: u32, syns: u32| {
            for n in from..from + syns {
                let syn = SegmentBuilder::v4(source, [10, 1, (n >> 16) as u8, 77]).ports(n as u16, 81);
                let frame = syn.seq(n).flags(Flags::SYN).build();
                hosts.world.hand_in((hosts.gateway, LAN), &frame, frame.len());
            }
        };
        // All that may come at once, and then 100,000 a second.
        flood(&mut hosts, 0, 8_000);
        for ms in 1..=500 {
            flood(&mut hosts, 8_000 + 100 * ms, 100);
            hosts.run(ms.into());
        }
        assert!(hosts.gateway().stats().over_budget > 10_000);
        let [up, down] = hosts.rates(2_000, 6_000);
        assert!(within(down, 5, 20) && within(up, 20, 20), "{source:?}: {up} up, {down} down");
    }
}

/// Verifies that ACKs of connections that do not exist take little of a class from an upload. A strange host
/// sends so many a second, of a new connection each second: twelve for a segment each, and one for 60 MB
/// more.
#[test]
fn acks_without_data_take_no_turns() {
    for connections in [1, 10] {
        let policies = [Some(AckControl::ack_share(Rate::mbit(20))), None];
        let mut hosts = Hosts::over("cubic", MS(20), policies, Loss::None);
        let mut before = hosts.run(2_000)[0];
        for second in 2..8u16 {
            for n in 0..13 {
                for connection in 0..connections {
                    let port = 1_000 + 100 * second + connection;
                    let ack = SegmentBuilder::v4([10, 0, 9, 9], [10, 0, 0, 1]).ports(80, port).seq(1);
                    let acked = if n == 12 { 60_000_000 } else { 1_448 * n };
                    let frame = ack.ack(1 + acked).build();
                    hosts.world.hand_in((hosts.gateway, WAN), &frame, frame.len());
                }
                hosts.run(1_000 * u64::from(second) + 10 * u64::from(n));
            }
            let after = hosts.run(1_000 * u64::from(second + 1))[0];
            let rate = (after - before) * 8 / 1_000;
            // Until the last of their ACKs they have nine segments each: 1 Mb/s of ten connections, and a
            // window of the upload that recovers. Held, ten would have ten elevenths of each second.
            assert!(rate >= 17_000, "{connections} connections, second {second}: {rate} kb/s");
            before = after;
        }
    }
}
