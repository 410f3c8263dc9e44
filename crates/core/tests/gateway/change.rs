//! Another configuration while flows live, in virtual time: 10 Mb/s every 10 ms are 12,500 bytes a release.

use crate::support::*;
use std::net::Ipv4Addr;
use weir_core::ack::{AckControl, Period, Release, ShareRelease, Unresponsive, Window};
use weir_core::flow::flag;
use weir_core::gateway::{
    ClassConfig, Compiled, Config, Direction, Gateway, Match, PassReason, Prefix, Unchangeable, Verdict, LAN,
    WAN,
};
use weir_core::rate::Rate;
use weir_core::rig::Rig;
use weir_core::steer::Fields;
use weir_core::time::Duration;
use weir_core::wire::Flags;

fn mbit(n: u64) -> AckControl {
    basic_with(|r| r.rate = Rate::mbit(n))
}

fn class(name: &str, ports: Option<u16>, ack: Option<AckControl>) -> ClassConfig {
    let matches = ports.map(|port| Match { dst_port: Some(port..=port), ..Match::default() });
    ClassConfig {
        name: name.into(),
        direction: Direction::Out,
        matches: matches.into_iter().collect(),
        ack,
        share: None,
        nested: None,
    }
}

fn classes(classes: Vec<ClassConfig>) -> Config {
    Config { classes, ..Config::default() }
}

/// A flow of class "all" at 10 Mb/s that holds what is left of 200,000 bytes, released from 1,000 ms on, at
/// 1,055 ms: six releases have left.
fn backlogged() -> Net {
    let mut w = Net::established(mbit(10));
    w.ack_at(ms(1_000), 200_000);
    assert_eq!(numbers(&w.run(ms(1_055))).last(), Some(&(ms(1_050), 75_000)));
    w
}

fn change(w: &mut Net, config: Config) {
    w.rig.node_mut().flows.reconfigure(config).unwrap();
}

fn held(w: &Net) -> Vec<(u64, u64)> {
    w.rig.node().flows.class_stats().map(|c| (c.held_bytes, c.acked_bytes)).collect()
}

#[test]
fn a_rate_changed_in_mid_flow_is_the_rate_of_the_next_release() {
    let mut w = backlogged();
    change(&mut w, classes(vec![class("all", None, Some(mbit(20)))]));
    let sent = w.run(ms(2_000));
    // 25,000 bytes every 10 ms, and nothing is lost.
    let expect: Vec<_> = (0..5).map(|n| (ms(1_060 + 10 * n), 100_000 + 25_000 * n as u32)).collect();
    assert_eq!(numbers(&sent), expect);
    assert_eq!((w.class().flows, w.class().acks_absorbed, w.class().acks_generated), (1, 1, 11));
    assert_eq!(held(&w), [(0, 200_000)]);
    w.finish();
}

#[test]
fn a_shorter_period_begins_at_the_release_that_was_due() {
    let mut w = backlogged();
    let faster = basic_with(|r| r.period = Period::Fixed(Duration::from_millis(2)));
    change(&mut w, classes(vec![class("all", None, Some(faster))]));
    let sent = numbers(&w.run(ms(1_070)));
    let expect: Vec<_> = (0..6).map(|n| (ms(1_060 + 2 * n), 77_500 + 2_500 * n as u32)).collect();
    assert_eq!(sent, expect);
}

#[test]
fn what_a_flow_holds_goes_on_when_no_class_controls_it_any_more() {
    // The class went, or it controls nothing.
    for config in [vec![], vec![class("all", None, None)]] {
        let mut w = backlogged();
        change(&mut w, classes(config));
        assert_eq!(w.rig.node().flows.flows().count(), 0);
        // Its timer touches it.
        assert_eq!(numbers(&w.run(ms(1_100))), [(ms(1_060), 200_000)]);
        assert_eq!(w.rig.node().flows.stats().flows, 0);
        // It passes from then on.
        w.ack_at(ms(1_200), 210_000);
        assert_eq!(numbers(&w.run(ms(1_200))), [(ms(1_200), 210_000)]);
        assert_eq!(w.rig.node().flows.stats().passed[PassReason::NoClass as usize], 1);
        w.finish();
    }
}

#[test]
fn a_flow_moves_to_another_class_with_all_it_has() {
    let mut w = backlogged();
    // A class before the old one takes it; that one has another place, and keeps what it counted.
    change(
        &mut w,
        classes(vec![class("port", Some(5_001), Some(mbit(5))), class("all", None, Some(mbit(10)))]),
    );
    // Not touched yet: what it holds is counted where it was.
    assert_eq!(held(&w), [(0, 0), (125_000, 75_000)]);
    assert_eq!(w.rig.node().flows.flows().map(|f| f.class).collect::<Vec<_>>(), [0]);
    let sent = numbers(&w.run(ms(1_080)));
    assert_eq!(sent, [(ms(1_060), 81_250), (ms(1_070), 87_500), (ms(1_080), 93_750)]);
    assert_eq!(held(&w), [(106_250, 18_750), (0, 75_000)]);
    let flows: Vec<u64> = w.rig.node().flows.class_stats().map(|c| c.flows).collect();
    assert_eq!(flows, [1, 1]);
    // The handshake is known still: 4,000 units of 128 bytes are its window's scale.
    let known = |r: &weir_core::flow::Record| r.has(flag::SCALE_KNOWN | flag::SYNCED);
    assert!(known(&w.rig.node().flows.records()[0]));
    w.run(ms(3_000));
    assert_eq!(held(&w), [(0, 125_000), (0, 75_000)]);
    w.finish();
}

#[test]
fn the_order_of_classes_may_change() {
    let mut w = backlogged();
    let (all, other) = (class("all", None, Some(mbit(10))), class("other", Some(80), Some(mbit(1))));
    change(&mut w, classes(vec![other.clone(), all.clone()]));
    change(&mut w, classes(vec![all, other]));
    assert_eq!(numbers(&w.run(ms(1_070))), [(ms(1_060), 87_500), (ms(1_070), 100_000)]);
    assert_eq!(held(&w), [(100_000, 100_000), (0, 0)]);
}

/// A flow at 10 Mb/s whose sender was told 512,000 bytes before its window is sized.
fn sized_late() -> Net {
    let sized = AckControl { window: Window::SIZE, ..mbit(10) };
    let mut w = Net::established(mbit(10));
    change(&mut w, classes(vec![class("all", None, Some(sized))]));
    w
}

#[test]
fn a_window_is_sized_from_the_change_on_and_kept_again() {
    let mut w = sized_late();
    // 512,000 bytes were allowed at first, and an edge never moves back; 10 Mb/s x (20 + 20) ms is 50,000, or
    // 35 segments.
    w.ack_at(ms(1_000), 100_000);
    w.ack_at(ms(2_000), 500_000);
    let last = w.run(ms(3_000)).pop().unwrap();
    assert_eq!(w.rel(&last), 500_000);
    assert_eq!(u32::from(w.tcp(&last).window), (51_100u32).div_ceil(128));
    change(&mut w, classes(vec![class("all", None, Some(mbit(10)))]));
    w.ack_at(ms(4_000), 501_000);
    let last = w.run(ms(4_000)).pop().unwrap();
    assert_eq!(w.tcp(&last).window, WINDOW);
}

/// The sender has sent all that it was told. The acknowledgements take 0.4 s at 10 Mb/s, and it need not be
/// silent meanwhile.
#[test]
fn a_sender_goes_on_while_a_window_shrinks() {
    let mut w = sized_late();
    w.ack_at(ms(1_000), 512_000);
    // Whatever the sender may send arrives, and is acknowledged, 20 ms later.
    let (mut edge, mut window, mut arrivals) = (512_000, 0, vec![(ms(1_000), 512_000)]);
    for at in (1_010..3_000).step_by(10) {
        for sent in w.run(ms(at)).iter().filter(|s| s.port == LAN) {
            window = u32::from(w.tcp(sent).window) << 7;
            let told = w.rel(sent) + window;
            if told > edge {
                w.ack_at(ms(at + 20), told);
                arrivals.push((ms(at + 20), told));
                edge = told;
            }
        }
    }
    // Half its rate, and then all of it.
    for from in (1_100..2_900).step_by(100).map(ms) {
        let there = |until| arrivals.iter().rev().find(|arrival| arrival.0 <= until).unwrap().1;
        let bytes = there(from + Duration::from_millis(100)) - there(from);
        assert!(bytes > 50_000, "{bytes} in 100 ms from {from:?}");
    }
    // At most its rate at any time, within a window: 1,250 bytes a millisecond.
    for &(at, bytes) in &arrivals[1..] {
        let most = 512_000 + at.since(ms(1_000)).as_nanos() * 1_250 / 1_000_000;
        assert!(u64::from(bytes) <= most, "{bytes} at {at:?}");
    }
    // 35 segments, as above, are less than 400 units.
    assert_eq!(window, 400 * 128);
}

#[test]
fn a_flow_that_is_taken_only_now_is_taken_in_midstream() {
    let mut w = Net::with_config(classes(vec![class("all", None, None)]), None);
    w.handshake();
    change(&mut w, classes(vec![class("all", None, Some(mbit(10)))]));
    for n in 1..=40u32 {
        w.ack_at(ms(1_000 + u64::from(n)), 10_000 * n);
    }
    let sent = w.run(ms(1_040));
    assert!(w.rel(sent.last().unwrap()) < 200_000, "4 ACKs that advance take it up; then 10 Mb/s");
}

#[test]
fn a_handshake_under_way_follows() {
    let mut w = Net::new(mbit(10), None);
    let syn = w.data_segment(0).seq(w.abs(0).wrapping_sub(1)).flags(Flags::SYN).mss(1460).window_scale(7);
    w.inject_at(ms(0), LAN, syn);
    w.run(ms(10));
    change(&mut w, classes(vec![class("all", None, Some(mbit(20)))]));
    let answer = w.ack_segment(0).seq(RECEIVER_ISN).flags(Flags(Flags::SYN.0 | Flags::ACK.0));
    w.inject_at(ms(20), WAN, answer.mss(1460).window_scale(7).window(64_000));
    w.ack_at(ms(100), 60_000);
    let sent = w.run(ms(110));
    assert_eq!(numbers(&sent)[1..], [(ms(100), 25_000), (ms(110), 50_000)]);
}

#[test]
fn what_cannot_change_is_refused_and_changes_nothing() {
    let config = classes(vec![class("all", None, Some(mbit(10)))]);
    let mut g = Gateway::hooked(config.clone());
    let more = Config { max_flows: config.max_flows + 1, ..config.clone() };
    assert_eq!(g.flows.reconfigure(more).err(), Some(Unchangeable::MaxFlows));
    let mut inward = config.clone();
    inward.classes[0].direction = Direction::In;
    assert_eq!(g.flows.reconfigure(inward.clone()).err(), Some(Unchangeable::Ports));
    assert_eq!(g.flows.config(), &config);
    // On its own it sees all ports.
    assert!(Gateway::new(config).flows.reconfigure(inward).is_ok());
}

/// Returns the verdicts that the kernel is told.
fn told(w: &mut Net) -> Vec<Verdict> {
    w.rig.node_mut().flows.verdicts(100).collect()
}

#[test]
fn a_flow_that_passed_and_is_taken_now_is_not_told_to_pass() {
    let mut w = Net::with_config(classes(vec![]), None);
    w.rig = Rig::new(Gateway::hooked(classes(vec![])));
    let pass = |verdicts: &[Verdict]| verdicts.iter().any(|v| matches!(v, Verdict::Pass { .. }));
    w.ack_at(ms(1), 10_000);
    w.run(ms(1));
    assert!(pass(&told(&mut w)), "no class controls it");
    w.ack_at(ms(2), 20_000);
    w.run(ms(2));
    // The verdict has not been fetched when the configuration changes.
    let changed =
        w.rig.node_mut().flows.reconfigure(classes(vec![class("other", Some(80), None)])).ok().unwrap();
    assert!(changed.reclassified && changed.old.config().classes.is_empty());
    assert!(!pass(&told(&mut w)));
}

#[test]
fn only_what_may_take_other_flows_has_the_kernel_forget() {
    let reclassifies = |from: &Config, to: Config| {
        Gateway::new(from.clone()).flows.reconfigure(to).ok().unwrap().reclassified
    };
    let of = |ports, ack| classes(vec![class("a", ports, ack)]);
    let from = of(Some(80), Some(mbit(10)));
    assert!(!reclassifies(&from, of(Some(80), Some(mbit(20)))));
    assert!(reclassifies(&from, of(Some(81), Some(mbit(10)))));
    assert!(reclassifies(&from, of(Some(80), None)));
    assert!(reclassifies(&from, classes(vec![])));
}

/// Hooks are told by then what to look at of datagrams.
#[test]
fn a_change_that_gives_datagrams_queues_is_told_to_the_hooks() {
    let reclassifies = |from: AckControl, to: AckControl| {
        let of = |ack| classes(vec![class("a", None, Some(ack))]);
        let (changed, to) =
            (Gateway::new(of(from)).flows.reconfigure(of(to)).ok().unwrap(), Compiled::from(of(to)));
        assert!(to.fields(Direction::Out).has(Fields::COUNTED) || !changed.reclassified);
        changed.reclassified
    };
    let with = |mut ack: AckControl, unresponsive| {
        ack.release.set_unresponsive(unresponsive);
        ack
    };
    let (each, shared) = (mbit(10), AckControl::ack_share(Rate::mbit(10)));
    let law = ShareRelease { flow_max: Some(Rate::mbit(1)), ..*shared.release.share().unwrap() };
    let most = AckControl { release: Release::Share(law), ..shared };
    assert!(reclassifies(with(each, Unresponsive::Count), each));
    assert!(reclassifies(shared, most));
    assert!(reclassifies(shared, with(shared, Unresponsive::FAIR)));
    assert!(!reclassifies(each, mbit(20)));
}

/// A customer of this number, with its rate; the sender of the tests is customer 5's.
fn customer(n: u32, rate: u64) -> ClassConfig {
    let sender = Ipv4Addr::new(10, 0, 0, 1);
    let address = if n == 5 { sender } else { Ipv4Addr::from_bits(0x0b00_0000 + n) };
    let rule = Match { src: Some(Prefix::host(address.into())), ..Match::default() };
    ClassConfig {
        name: format!("{n}-up"),
        direction: Direction::Out,
        matches: vec![rule],
        ack: Some(mbit(rate)),
        share: None,
        nested: None,
    }
}

#[test]
fn customers_come_go_and_change_beside_a_flow_that_goes_on() {
    // Their classes are found again before the gateway takes them.
    let change = |w: &mut Net, config: Config| {
        let node = w.rig.node_mut();
        let compiled = Compiled::after(config, node.flows.config());
        node.flows.reconfigure(compiled).map(drop).unwrap();
    };
    let list = |numbers: std::ops::Range<u32>| numbers.map(|n| customer(n, 10)).collect::<Vec<_>>();
    let mut w = Net::with_config(classes(list(0..1_000)), None);
    w.handshake();
    w.ack_at(ms(1_000), 200_000);
    assert_eq!(numbers(&w.run(ms(1_055))).last(), Some(&(ms(1_050), 75_000)));
    // One of a thousand has another rate: the flow of another one does not notice.
    let mut next = list(0..1_000);
    next[7] = customer(7, 50);
    change(&mut w, classes(next.clone()));
    assert_eq!(numbers(&w.run(ms(1_065))), [(ms(1_060), 87_500)]);
    // The first ones go, others come: each class is at another place in the order.
    change(&mut w, classes([list(2_000..2_050), next[5..].to_vec()].concat()));
    assert_eq!(numbers(&w.run(ms(1_075))), [(ms(1_070), 100_000)]);
    let of = |w: &Net, name: &str| {
        let node = w.rig.node();
        let at = node.flows.config().classes.iter().position(|c| c.name == name).unwrap();
        node.flows.class_stats().nth(at).map(|c| (c.flows, c.held_bytes, c.acked_bytes)).unwrap()
    };
    assert_eq!(of(&w, "5-up"), (1, 100_000, 100_000));
    // Its own rate changes.
    let mut last = w.rig.node().flows.config().classes.clone();
    last[50] = customer(5, 20);
    change(&mut w, classes(last));
    assert_eq!(numbers(&w.run(ms(1_085))), [(ms(1_080), 125_000)]);
    // It is no customer any more: what it holds goes on, and it passes.
    change(&mut w, classes(list(6..1_000)));
    assert_eq!(numbers(&w.run(ms(1_100))), [(ms(1_090), 200_000)]);
    assert_eq!(w.rig.node().flows.stats().flows, 0);
    w.finish();
}
