//! Places in the table of flows where there are more flows than places: 1,024 of them.

use crate::support::*;
use weir_core::ack::AckControl;
use weir_core::gateway::{ClassConfig, Config, Direction, Gateway, Match, PassReason, Prefix, LAN, WAN};
use weir_core::rate::Rate;
use weir_core::rig::{Rig, TestFrame};
use weir_core::time::{Duration, Time};
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::Flags;

const PLACES: u32 = 1_024;
const SERVER: [u8; 4] = [203, 0, 113, 1];

/// Uploads of hosts on the LAN, by address and port.
struct Hosts {
    rig: Rig<Gateway>,
    at: Time,
}

impl Hosts {
    /// A class for each of these customers, who have 10.0.n.0/24, at 10 Mbit/s for each flow.
    fn of(customers: u8) -> Hosts {
        let class = |n: u8| ClassConfig {
            matches: vec![Match { src: Prefix::new([10, 0, n, 0].into(), 24), ..Match::default() }],
            ..ClassConfig::controlled(&*format!("c{n}"), Direction::Out, basic())
        };
        let classes = (0..customers).map(class).collect();
        let config = Config { classes, max_flows: PLACES, ..Config::default() };
        Hosts { rig: Rig::new(Gateway::new(config)), at: ms(1) }
    }

    fn send(&mut self, port: weir_core::node::Port, segment: SegmentBuilder) {
        self.rig.at(self.at).inject(port, TestFrame::bytes(&segment.build()));
    }

    fn up(host: [u8; 4], port: u16) -> SegmentBuilder {
        SegmentBuilder::v4(host, SERVER).ports(port, 80)
    }

    fn down(host: [u8; 4], port: u16) -> SegmentBuilder {
        SegmentBuilder::v4(SERVER, host).ports(80, port).window(4_000)
    }

    fn syn(&mut self, host: [u8; 4], port: u16) {
        self.send(LAN, Self::up(host, port).seq(5).flags(Flags::SYN).mss(1460).window_scale(7));
    }

    /// A whole handshake, and two acknowledgements.
    fn open(&mut self, host: [u8; 4], port: u16) {
        self.syn(host, port);
        let answer = Self::down(host, port).seq(7).ack(6).flags(Flags(Flags::SYN.0 | Flags::ACK.0));
        self.send(WAN, answer.mss(1460).window_scale(7));
        self.ack(host, port, 0);
        self.ack(host, port, 1);
    }

    fn ack(&mut self, host: [u8; 4], port: u16, bytes: u32) {
        self.send(WAN, Self::down(host, port).seq(8).ack(6 + bytes).flags(Flags::ACK));
    }

    fn pass_time(&mut self, time: Duration) {
        self.at += time;
        self.rig.run_until(self.at);
    }

    fn has(&self, host: [u8; 4], port: u16) -> bool {
        let is = |r: &weir_core::flow::Record| {
            r.has(weir_core::flow::flag::USED) && r.key == Self::key(host, port)
        };
        self.rig.node().flows.records().iter().any(is)
    }

    fn key(host: [u8; 4], port: u16) -> weir_core::flow::Key {
        let end = |host: [u8; 4], port| std::net::SocketAddr::from((host, port));
        weir_core::flow::Key::new(weir_core::wire::TCP, end(host, port), end(SERVER, 80))
    }
}

/// One host opens more connections than there are places and keeps them with an ACK each 50 s. Another host's
/// upload gets its rate all the same: 10 Mbit/s are 1,250,000 bytes in a second.
#[test]
fn a_host_that_fills_the_table_makes_room_for_another() {
    let second = |u: &mut Hosts, host| {
        u.open(host, 1);
        u.pass_time(Duration::from_millis(20));
        for n in 1..=1_000u32 {
            u.ack(host, 1, 1 + 4_000 * n);
            u.pass_time(Duration::from_millis(1));
        }
        u.rig.node().flows.flow(&Hosts::key(host, 1)).map(|f| f.acked_bytes)
    };
    let alone = second(&mut Hosts::of(1), [10, 0, 0, 2]).unwrap();
    assert!((1_240_000..=1_262_500).contains(&alone), "{alone}");
    // From one address, or from an address each.
    for addresses in [1, 250] {
        let mut u = Hosts::of(1);
        let host = |n: u16| [10, 0, 0, 3 + (n % addresses) as u8];
        (0..1_100).for_each(|n| {
            u.open(host(n), n);
            u.pass_time(Duration::from_micros(100));
        });
        for round in 0..3 {
            (0..1_100).for_each(|n| u.ack(host(n), n, 2 + round));
            u.pass_time(Duration::from_secs(if round < 2 { 50 } else { 1 }));
        }
        assert_eq!(u.rig.node().flows.stats().flows, u64::from(PLACES));
        assert_eq!(second(&mut u, [10, 0, 0, 2]), Some(alone), "{addresses} addresses");
    }
}

/// 16 customers have 64 active flows each. A 17th floods with SYNs, or with whole connections, from one port
/// or from many addresses.
#[test]
fn active_flows_of_others_outlive_a_flood() {
    type Flood = fn(&mut Hosts, u32);
    let floods: [(&str, Flood); 3] = [
        ("SYNs", |u, n| u.syn([10, 0, 16, 1], n as u16)),
        ("connections", |u, n| u.open([10, 0, 16, 1], n as u16)),
        ("addresses", |u, n| u.open([10, 0, 16, (n % 250) as u8], (n / 250) as u16)),
    ];
    for (name, flood) in floods {
        let mut u = Hosts::of(17);
        let all = || (0..16u8).flat_map(|c| (0..64u8).map(move |f| ([10, 0, c, f / 4], u16::from(f))));
        all().for_each(|(host, port)| {
            u.open(host, port);
            u.pass_time(Duration::from_micros(10));
        });
        for round in 0..12u32 {
            all().for_each(|(host, port)| u.ack(host, port, 10 + round));
            (0..500).for_each(|n| flood(&mut u, 500 * round + n));
            u.pass_time(Duration::from_millis(100));
        }
        let lost = all().filter(|&(host, port)| !u.has(host, port)).count();
        assert_eq!(lost, 0, "{name}");
    }
}

/// A customer who holds all places with active flows gives some up to the others, who begin later and keep
/// what they have.
#[test]
fn active_flows_give_way_where_a_customer_has_much_more_than_others() {
    let mut u = Hosts::of(4);
    let hoard = |n: u32| ([10, 0, 0, 1], n as u16);
    (0..PLACES).for_each(|n| u.open(hoard(n).0, hoard(n).1));
    for round in 0..40u32 {
        (0..PLACES).for_each(|n| u.ack(hoard(n).0, hoard(n).1, 10 + round));
        (1..4u8).for_each(|c| u.open([10, 0, c, 1], round as u16));
        u.pass_time(Duration::from_millis(100));
    }
    let kept = (1..4u8).flat_map(|c| (0..40u16).map(move |port| ([10, 0, c, 1], port)));
    assert!(kept.into_iter().all(|(host, port)| u.has(host, port)));
}

/// A full table takes the place of a silent flow of the customer who has most, however short a
/// time it has been silent. A customer with few flows loses none, and the new flow is controlled.
#[test]
fn whoever_has_most_flows_gives_up_a_silent_one() {
    let mut u = Hosts::of(3);
    let held = |customer: u8, flows: u16| (0..flows).map(move |port| ([10, 0, customer, 1], port));
    let (many, few) = (held(0, 1_000), held(1, 24));
    many.clone().chain(few.clone()).for_each(|(host, port)| u.open(host, port));
    u.pass_time(Duration::from_millis(600));
    for n in 1..=8u16 {
        u.open([10, 0, 2, 1], n);
        u.pass_time(Duration::from_millis(10));
        assert!(u.has([10, 0, 2, 1], n), "{n}");
        let lost =
            |flows: &mut dyn Iterator<Item = _>| flows.filter(|&(host, port)| !u.has(host, port)).count();
        assert_eq!((lost(&mut many.clone()), lost(&mut few.clone())), (n.into(), 0));
    }
    assert_eq!(u.rig.node().flows.stats().passed[PassReason::TableFull as usize], 0);
}

/// Flows without a place are not forgotten: their data is counted by their class's tally.
#[test]
fn data_of_flows_without_a_place_is_counted() {
    use weir_core::gateway::Verdict;
    let mut config = config(AckControl::ack_share(Rate::mbit(10)));
    config.max_flows = 2;
    let mut u = Hosts { rig: Rig::new(Gateway::hooked(config)), at: ms(1) };
    (0..2).for_each(|port| u.open([10, 0, 0, 1], port));
    u.pass_time(Duration::from_millis(10));
    (0..2).for_each(|port| u.ack([10, 0, 0, 1], port, 2));
    u.ack([10, 0, 0, 2], 7, 2);
    u.pass_time(Duration::from_millis(10));
    let key = Hosts::key([10, 0, 0, 2], 7);
    let told: Vec<Verdict> = u.rig.node_mut().flows.verdicts(usize::MAX).collect();
    assert!(told.contains(&Verdict::Count { key, tally: Some(0) }), "{told:?}");
    assert!(u.rig.node().flows.stats().passed[PassReason::TableFull as usize] > 0);
}
