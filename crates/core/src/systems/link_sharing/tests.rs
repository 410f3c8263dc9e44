//! Timelines to the nanosecond of frames that wait for each other, whatever drives the node.

mod admission;

use super::*;
use crate::classify::spec::{Spec, Unsound};
use crate::classify::{ClassConfig, Match};
use crate::packet::{Cells, LinkLayer};
use crate::queue::{self, codel, dualpi2, red, Kind, QueueLimit};
use crate::rate::Rate;
use crate::rig::{Rig, Sent, TestFrame, Wake};
use crate::systems::gap_pacing::{Backend, Class, Counts, Target};
use crate::time::Duration;
use crate::wire::build::{Disguise, SegmentBuilder};
use crate::wire::{TCP, UDP};
use proptest::prelude::*;

const FIFO: queue::Config = queue::Config { limit: QueueLimit::Packets(100), kind: Kind::Fifo, tins: None };

fn class(name: &str, protocol: Option<u8>, share: Spec) -> ClassConfig {
    let matches = protocol.map(|p| Match { protocol: Some(p), ..Match::default() }).into_iter().collect();
    ClassConfig {
        name: name.into(),
        direction: Direction::Out,
        matches,
        ack: None,
        share: Some(share),
        nested: None,
    }
}

/// 8 Mb/s, a byte a microsecond, for UDP and TCP. UDP has half of it and borrows first.
fn config() -> Config {
    let leaf = Spec { queue: Some(FIFO), rate: Some(Rate::mbit(4)), ..Spec::of(Some(2)) };
    let link = Spec { rate: Some(Rate::mbit(8)), ..Spec::of(None) };
    let tcp = class("tcp", Some(TCP), Spec { priority: 1, ..leaf });
    Config {
        classes: vec![class("udp", Some(UDP), leaf), tcp, class("link", None, link)],
        ..Config::default()
    }
}

/// A rig without overhead: a packet of `ip` bytes takes as many microseconds.
fn rig(config: Config) -> Rig<Sharing> {
    Rig::new(Sharing::new(config, 0).expect("a sound tree"))
}

/// A packet of `ip` bytes, told apart by its source port.
fn packet(udp: bool, port: u16, ip: usize) -> TestFrame {
    let segment = SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).ports(port, 80).tos(2);
    let bytes = if udp { segment.udp().build() } else { segment.build() };
    TestFrame::bytes(&bytes).long(ip + 14)
}

fn ms(n: u64) -> Time {
    Time::from_millis(n)
}

/// Returns the time in microseconds at which each frame left, with its source port.
fn stamps(sent: &[Sent]) -> Vec<(u64, u16)> {
    sent.iter().map(|s| (s.at.as_nanos() / 1000, u16::from_be_bytes([s.bytes[34], s.bytes[35]]))).collect()
}

#[test]
fn classes_wait_and_all_else_passes() {
    let mut r = rig(config());
    r.at(ms(1)).inject(LAN, packet(false, 1, 1000)).inject(LAN, packet(false, 2, 1000));
    r.inject(LAN, packet(true, 3, 500)).inject(LAN, TestFrame::zeros(60)).inject(WAN, packet(false, 4, 1000));
    let sent = r.run_until(ms(100));
    let way = |port| stamps(&sent.iter().filter(|s| s.port == port).cloned().collect::<Vec<_>>());
    // The first frame leaves at once, together with the frame that is no IP packet. UDP follows, then the
    // second.
    assert_eq!(way(WAN), [(1000, 1), (1000, 0), (2000, 3), (2500, 2)]);
    assert_eq!(way(LAN), [(1000, 4)]);
    let (queue, stats) = r.node().leaf(1).expect("tcp has a queue");
    assert_eq!((stats.packets, stats.bytes, queue.stats().peak_packets), (2, 2000, 1));
    assert!(r.node().leaf(2).is_none() && r.node().ledger().held() == 0);
    r.finish();
}

/// A neighbour is asked for its address (RFC 4861 section 4.3) in front of all that waits, if one of the
/// addresses is the link's own. A router behind a bridge may forward others.
#[test]
fn packets_of_the_link_wait_in_no_class() {
    let mut config = config();
    config.classes[0].matches.clear();
    let mut r = rig(config);
    let from = |first: [u8; 2]| {
        let src = [first[0], first[1], 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        // The first byte behind the header of IPv6 is the type, 135.
        SegmentBuilder::v6(src, [0x20; 16]).ports(135 << 8, 0).protocol(58).ttl(255).build()
    };
    r.at(ms(1)).inject(LAN, packet(false, 1, 1000)).inject(LAN, packet(false, 2, 1000));
    for first in [[0xfe, 0x80], [0x20, 1]] {
        r.inject(LAN, TestFrame::bytes(&from(first)));
    }
    let first = |s: &Sent| (s.bytes[12] == 0x86).then(|| (s.at.as_nanos() / 1000, s.bytes[22]));
    let sent: Vec<(u64, u8)> = r.run_until(ms(100)).iter().filter_map(first).collect();
    assert_eq!(sent.iter().map(|s| s.1).collect::<Vec<_>>(), [0xfe, 0x20]);
    assert!(sent[0].0 == 1000 && sent[1].0 > 1000, "{sent:?}");
    r.finish();
}

/// No header that a sender writes is a way around its class: what cannot be read as a whole waits as well.
#[test]
fn what_shows_its_addresses_waits_in_their_class() {
    let mut config = config();
    config.classes[0].matches.clear();
    let v6 = || SegmentBuilder::v6([1; 16], [2; 16]).udp();
    let chain = (0..7).fold(v6(), |s, _| s.extension(60, &[0; 6])).payload(900).build();
    let whole = SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).payload(960).build();
    let shown = Disguise::ALL.into_iter().filter(|disguise| disguise.shows_addresses());
    let frames: Vec<Vec<u8>> = shown.map(|disguise| disguise.put_on(whole.clone())).chain([chain]).collect();
    assert!(frames.len() > 3);
    for frame in frames {
        let mut r = rig(config.clone());
        r.at(ms(1)).inject(LAN, TestFrame::bytes(&frame)).inject(LAN, TestFrame::bytes(&frame));
        let sent = r.run_until(ms(100));
        assert!(sent.len() == 2 && sent[1].at >= ms(1) + Duration::from_micros(900), "{frame:02x?}");
        r.finish();
    }
}

/// A tree beside a paced class has no credit for the time in which nothing waited.
#[test]
fn a_tree_beside_a_paced_class_saves_nothing_while_idle() {
    let pace = Class { target: Target::Rate(Rate::mbit(1)), counts: Counts::Ip, backend: Backend::Clock };
    let paced = Spec { queue: Some(FIFO), pace: Some(pace), ..Spec::of(None) };
    let mut config = config();
    config.classes.push(class("paced", Some(1), paced));
    let mut r = rig(config);
    for at in [1, 100] {
        r.at(ms(at)).inject(LAN, packet(false, 1, 1000)).inject(LAN, packet(false, 2, 1000));
    }
    let sent = r.run_until(ms(1000));
    assert_eq!(stamps(&sent), [(1000, 1), (2000, 2), (100_000, 1), (101_000, 2)]);
    r.finish();
}

#[test]
fn a_giant_is_charged_as_its_packets() {
    let mut r = rig(config());
    // 3 × 1,000 bytes behind 40 of headers each.
    r.at(ms(1)).inject(LAN, packet(false, 1, 3040).gso(1000)).inject(LAN, packet(false, 2, 100));
    assert_eq!(stamps(&r.run_until(ms(100))), [(1000, 1), (4120, 2)]);
    r.finish();
}

/// PPPoE over ATM: 1500 bytes are 33 cells, 40 are 2, 1 + 40 behind a giant's headers 2. DOCSIS: 1518, 64.
#[test]
fn a_packet_waits_for_the_bytes_that_the_link_takes_for_it() {
    let pppoe = LinkLayer { overhead: 40, mpu: 0, cells: Cells::Atm };
    let docsis = LinkLayer { overhead: 18, mpu: 64, cells: Cells::None };
    for (layer, full, ack, giant) in [(pppoe, 1749, 106, 1749 + 106), (docsis, 1518, 64, 1518 + 64)] {
        let mut r = rig(Config { link_layer: Some(layer), ..config() });
        r.at(ms(1)).inject(LAN, packet(false, 1, 1500)).inject(LAN, packet(false, 2, 40));
        r.inject(LAN, packet(false, 3, 1501).gso(1460)).inject(LAN, packet(false, 4, 40));
        let times = [0, full, full + ack, full + ack + giant].map(|after| 1000 + after);
        assert_eq!(
            stamps(&r.run_until(ms(100))),
            (1..).zip(times).map(|(n, at)| (at, n)).collect::<Vec<_>>()
        );
        let (_, stats) = r.node().leaf(1).expect("tcp has a queue");
        assert_eq!((stats.packets, stats.bytes), (5, full + 2 * ack + giant));
        r.finish();
    }
}

/// Frames that wait keep their charges, those that come have the new ones.
#[test]
fn a_link_layer_changes_while_frames_wait() {
    let mut r = rig(config());
    r.at(ms(1)).inject(LAN, packet(false, 1, 1500)).inject(LAN, packet(false, 2, 1500));
    r.run_until(ms(2));
    let pppoe = LinkLayer { overhead: 40, mpu: 0, cells: Cells::Atm };
    replace(&mut r, Config { link_layer: Some(pppoe), ..config() });
    r.at(ms(2)).inject(LAN, packet(false, 3, 1500)).inject(LAN, packet(false, 4, 1500));
    assert_eq!(stamps(&r.run_until(ms(100))), [(2_500, 2), (4_000, 3), (5_749, 4)]);
    r.finish();
}

#[test]
fn a_shut_port_keeps_what_waits_and_owes_nothing_for_it() {
    let mut r = rig(config());
    r.close(WAN, ms(2), ms(50));
    for n in 1..=5 {
        r.at(ms(n))
            .inject(LAN, packet(false, n as u16, 2000))
            .inject(WAN, packet(false, 100 + n as u16, 100));
    }
    let sent = r.run_until(ms(200));
    let (out, back): (Vec<_>, Vec<_>) = sent.into_iter().partition(|s| s.port == WAN);
    // The first left before. The others leave from 50 ms on, 2 ms each. The blocked time is not made up for.
    assert_eq!(stamps(&out), [(1000, 1), (50_000, 2), (52_000, 3), (54_000, 4), (56_000, 5)]);
    assert_eq!(stamps(&back), [(1000, 101), (2000, 102), (3000, 103), (4000, 104), (5000, 105)]);
    r.finish();
}

/// Replaces the configuration. The remains of the old node hold no frame.
fn replace(r: &mut Rig<Sharing>, config: Config) {
    let next = Sharing::new(config, 0).expect("a sound tree");
    let old = r.with_cx(|node, cx| node.replace(cx, next));
    assert!((0..old.places.len()).filter_map(|i| old.leaf(i)).all(|(queue, _)| queue.packets() == 0));
}

fn share(class: &mut ClassConfig, change: impl FnOnce(&mut Spec)) {
    change(class.share.as_mut().expect("a class with a place in the tree"));
}

#[test]
fn rates_change_to_the_bit() {
    let mut r = rig(config());
    for n in 1..=4 {
        r.at(ms(1)).inject(LAN, packet(false, n, 1000));
    }
    assert_eq!(stamps(&r.run_until(Time::from_micros(2_500))), [(1000, 1), (2000, 2)]);
    let mut slower = config();
    share(&mut slower.classes[2], |s| s.rate = Some(Rate::mbit(4)));
    slower.classes[..2].iter_mut().for_each(|class| share(class, |s| s.rate = Some(Rate::mbit(2))));
    slower.classes.swap(0, 1);
    replace(&mut r, slower);
    // The debt is 500 bytes: 1 ms at half the rate.
    assert_eq!(stamps(&r.run_until(ms(100))), [(3500, 3), (5500, 4)]);
    let (queue, stats) = r.node().leaf(0).expect("tcp has a queue");
    assert_eq!((stats.packets, queue.stats().peak_packets), (4, 3));
    r.finish();
}

#[test]
fn what_waits_in_a_class_that_is_gone_goes_on() {
    let mut r = rig(config());
    for n in 1..=3 {
        r.at(ms(1)).inject(LAN, packet(false, n, 1000)).inject(LAN, packet(true, 10 + n, 1000));
    }
    assert_eq!(stamps(&r.run_until(ms(1))), [(1000, 1)]);
    // The new configuration has no class for TCP. Another class takes UDP, with less room than needed.
    let mut other = config();
    other.classes.remove(1);
    other.classes[0].name = "datagrams".into();
    share(&mut other.classes[0], |s| {
        s.parent = Some(1);
        s.queue = Some(queue::Config { limit: QueueLimit::Packets(1), kind: Kind::Fifo, tins: None });
    });
    r.at(Time::from_micros(1500));
    assert_eq!(r.run_until(Time::from_micros(1500)), []);
    replace(&mut r, other);
    r.inject(LAN, packet(true, 14, 1000));
    let sent = r.run_until(ms(100));
    // TCP leaves at once. UDP leaves when the link is free, and later packets found no room.
    assert_eq!(stamps(&sent), [(1500, 2), (1500, 3), (2000, 11), (3000, 12), (4000, 13)]);
    assert_eq!((r.node().ledger().drops.total(), r.node().ledger().held()), (1, 0));
    r.finish();
}

#[test]
fn a_queue_of_another_kind_takes_what_waits() {
    let mut r = rig(config());
    for n in [1, 1, 1, 2] {
        r.at(ms(1)).inject(LAN, packet(false, n, 1000));
    }
    assert_eq!(stamps(&r.run_until(ms(1))), [(1000, 1)]);
    let mut fair = config();
    let pfq = Kind::Pfq(queue::pfq::Params { quantum: 1000, ..Default::default() });
    share(&mut fair.classes[1], |s| {
        s.queue = Some(queue::Config { limit: QueueLimit::Packets(9), kind: pfq, tins: None })
    });
    replace(&mut r, fair);
    assert_eq!(stamps(&r.run_until(ms(100))), [(2000, 1), (3000, 2), (4000, 1)]);
    r.finish();
}

#[test]
fn codel_marks_what_waited_too_long() {
    let mut marking = config();
    let params = codel::Params { ecn: true, ..codel::Params::default() };
    let queue = queue::Config { limit: QueueLimit::Packets(1000), kind: Kind::Codel(params), tins: None };
    marking.classes[1].share = marking.classes[1].share.map(|s| Spec { queue: Some(queue), ..s });
    let mut r = rig(marking);
    for n in 0..200 {
        r.at(ms(0)).inject(LAN, packet(false, n, 1000));
    }
    let sent = r.run_until(ms(1000));
    let marked: Vec<u64> =
        sent.iter().filter(|s| s.bytes[15] & 3 == 3).map(|s| s.at.as_nanos() / 1_000_000).collect();
    // The frame of 5 ms is the first that waited for 5 ms. The control law continues from 105 ms: 205.
    assert_eq!((marked, sent.len()), (vec![105], 200));
    r.finish();
}

fn tcp_waits_in(kind: Kind) -> Rig<Sharing> {
    let mut config = config();
    share(&mut config.classes[1], |s| {
        s.queue = Some(queue::Config { limit: QueueLimit::Packets(1000), kind, tins: None })
    });
    rig(config)
}

#[test]
fn red_drops_by_what_waits() {
    // Without an average (a weight of 1): no drop up to 2,000 bytes, and only drops beyond.
    let params = red::Params { min: 2000, max: 2001, max_p: 1_000_000_000_000, weight: 0, ecn: false };
    let mut r = tcp_waits_in(Kind::Red { params, seed: 1 });
    for n in 1..=10 {
        r.at(ms(1)).inject(LAN, packet(false, n, 1000));
    }
    // The first leaves at once. The next three find 0, 1,000 and 2,000 bytes.
    assert_eq!(stamps(&r.run_until(ms(100))), [(1000, 1), (2000, 2), (3000, 3), (4000, 4)]);
    let (queue, _) = r.node().leaf(1).expect("tcp has a queue");
    assert_eq!((queue.stats().drops.get(DropReason::Aqm), queue.stats().drops.total()), (6, 6));
    r.finish();
}

#[test]
fn dualpi2_marks_l4s_packets_that_others_wait_behind() {
    let params =
        dualpi2::Params { step: Duration::from_micros(1), range: Duration::ZERO, ..Default::default() };
    let mut r = tcp_waits_in(Kind::DualPi2(params));
    let packet = |ect: u8, port| {
        let segment = SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).ports(port, 80).tos(ect);
        TestFrame::bytes(&segment.build()).long(1014)
    };
    for (ect, port) in [(2, 1), (2, 2), (1, 11), (1, 12), (1, 13)] {
        r.at(ms(1)).inject(LAN, packet(ect, port));
    }
    let sent = r.run_until(ms(100));
    // The first leaves at once. Then L4S comes first. The other queue is owed a ninth of its bytes, and is a
    // packet ahead of that.
    assert_eq!(stamps(&sent), [(1000, 1), (2000, 11), (3000, 2), (4000, 12), (5000, 13)]);
    let marked: Vec<u16> = stamps(&sent.into_iter().filter(|s| s.bytes[15] & 3 == 3).collect::<Vec<_>>())
        .iter()
        .map(|s| s.1)
        .collect();
    // The last has no packet behind it, so its own queue does not mark it.
    assert_eq!(marked, [11, 12]);
    r.finish();
}

/// A change of the discipline does not drop packets that RED would have dropped on arrival.
#[test]
fn red_takes_what_waits() {
    let params = red::Params { min: 1, max: 2, max_p: 1_000_000_000_000, weight: 0, ecn: false };
    let mut r = rig(config());
    for n in 1..=4 {
        r.at(ms(1)).inject(LAN, packet(false, n, 1000));
    }
    assert_eq!(stamps(&r.run_until(ms(1))), [(1000, 1)]);
    let mut other = config();
    share(&mut other.classes[1], |s| {
        s.queue = Some(queue::Config {
            limit: QueueLimit::Packets(9),
            kind: Kind::Red { params, seed: 1 },
            tins: None,
        })
    });
    replace(&mut r, other);
    r.at(ms(1)).inject(LAN, packet(false, 5, 1000));
    assert_eq!(stamps(&r.run_until(ms(100))), [(2000, 2), (3000, 3), (4000, 4)]);
    r.finish();
}

#[test]
fn what_is_wrong_is_said_of_the_class() {
    let mut over = config();
    over.classes[2].share = over.classes[2].share.map(|s| Spec { rate: Some(Rate::mbit(7)), ..s });
    let why = Unsound::Overcommitted(2, 8_000_000, 7_000_000);
    assert_eq!(Sharing::new(over.clone(), 0).map(drop), Err(Refused { class: 2, why: Why::Tree(why) }));
    over.classes.iter_mut().for_each(|c| c.direction = Direction::In);
    over.classes[0].direction = Direction::Out;
    // Its parent is a class of the other direction.
    assert_eq!(
        Sharing::new(over, 0).map(drop),
        Err(Refused { class: 0, why: Why::Tree(Unsound::NoParent(0)) })
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whenever the driver wakes, frames leave at the same times. Each leaves or is dropped with a reason.
    #[test]
    fn stamps_do_not_depend_on_the_driver(
        frames in prop::collection::vec((0u64..3000, prop::bool::ANY, 60usize..1500, prop::bool::ANY), 1..150),
        coarse in 1u64..5000,
    ) {
        let run = |wake| {
            let mut r = rig(config()).wake(wake);
            let mut at = Time::ZERO;
            for (n, &(gap, udp, ip, back)) in (0..).zip(&frames) {
                at += Duration::from_nanos(gap * 331);
                r.at(at).inject(if back { WAN } else { LAN }, packet(udp, n, ip));
            }
            let sent = r.run_until(ms(10_000));
            let ledger = r.node().ledger();
            assert_eq!((ledger.held(), &ledger.drops), (0, r.frames().drops()));
            r.finish();
            let mut stamps: Vec<_> = sent.iter().map(|s| (s.port.0, s.at, s.bytes[34..36].to_vec())).collect();
            stamps.sort_by_key(|s| s.0);
            stamps
        };
        let exact = run(Wake::Exact);
        let coarse = Duration::from_nanos(coarse * 1000);
        prop_assert_eq!(&run(Wake::Late(coarse)), &exact);
        prop_assert_eq!(&run(Wake::Lazy(coarse)), &exact);
    }

    /// For any sequence of configurations, each frame leaves or is dropped with a reason, and those of a flow
    /// keep their order. As long as there is room none is dropped.
    #[test]
    fn changes_lose_nothing(
        steps in prop::collection::vec((0u64..2000, 0u16..6, prop::bool::ANY, 0u8..12), 1..200), wide: bool,
    ) {
        let limit = QueueLimit::Packets(if wide { 1000 } else { 3 });
        let of = |which: u8| {
            let kinds = [
                Kind::Fifo,
                Kind::Pfq(Default::default()),
                Kind::Codel(codel::Params::default()),
                Kind::Red { params: red::Params::default(), seed: 1 },
                Kind::DualPi2(dualpi2::Params::default()),
            ];
            let kind = kinds[which as usize % kinds.len()];
            let mut config = config();
            for class in &mut config.classes[..2] {
                share(class, |s| s.queue = Some(queue::Config { limit, kind, tins: None }));
            }
            match which {
                0..3 => {}
                3..6 => drop(config.classes.remove(1)),
                6..9 => drop(config.classes.remove(0)),
                _ => config.classes.swap(0, 1),
            }
            let link = config.classes.iter().position(|class| class.name == "link");
            let leaves = config.classes.iter_mut().filter(|class| class.name != "link");
            leaves.for_each(|class| share(class, |s| s.parent = link));
            config
        };
        let mut r = rig(of(0));
        let (mut at, mut sent) = (Time::ZERO, Vec::new());
        for (&(gap, flow, udp, which), n) in steps.iter().zip(0u64..) {
            at += Duration::from_micros(gap);
            sent.extend(r.run_until(at));
            if which < 12 && n % 5 == 4 {
                replace(&mut r, of(which));
            }
            let mut frame = packet(udp, flow, 1000);
            frame.head[18..20].copy_from_slice(&(n as u16).to_be_bytes());
            r.at(at).inject(LAN, frame);
        }
        sent.extend(r.run_until(ms(10_000)));
        let ledger = r.node().ledger();
        prop_assert_eq!((ledger.held(), &ledger.drops), (0, r.frames().drops()));
        let aqm = ledger.drops.get(DropReason::Aqm);
        prop_assert!(!wide || ledger.drops.total() == aqm);
        r.finish();
        let mut last = std::collections::BTreeMap::new();
        for frame in &sent {
            let number = u16::from_be_bytes([frame.bytes[18], frame.bytes[19]]);
            let flow = (frame.bytes[23], frame.bytes[34..36].to_vec());
            prop_assert!(last.insert(flow, number).is_none_or(|before| before < number));
        }
    }
}
