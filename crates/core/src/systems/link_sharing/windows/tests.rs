//! Rates that follow windows, to the microsecond.

use super::*;
use crate::classify::spec::Spec;
use crate::classify::{ClassConfig, Config, Direction};
use crate::node::{LAN, WAN};
use crate::queue::{self, Kind, QueueLimit};
use crate::rig::{Rig, TestFrame};
use crate::systems::gap_pacing::{Backend, Class, FASTEST};
use crate::systems::link_sharing::Sharing;
use crate::wire::build::SegmentBuilder;

const FIFO: queue::Config = queue::Config { limit: QueueLimit::Packets(100), kind: Kind::Fifo, tins: None };
const SENDER: [u8; 4] = [10, 0, 0, 1];
const RECEIVER: [u8; 4] = [10, 0, 0, 2];

/// All outgoing traffic, paced by deadlines.
fn config() -> Config {
    let pace = Class { target: Target::Window, counts: Counts::Ip, backend: Backend::Clock };
    let class = ClassConfig {
        name: "all".into(),
        direction: Direction::Out,
        matches: Vec::new(),
        ack: None,
        share: Some(Spec { queue: Some(FIFO), pace: Some(pace), ..Spec::of(None) }),
        nested: None,
    };
    Config { classes: vec![class], ..Config::default() }
}

/// A segment of the flow, with 40 bytes of headers and `payload` bytes of payload.
fn data(seq: u32, flags: Flags, payload: usize) -> TestFrame {
    let segment = SegmentBuilder::v4(SENDER, RECEIVER).ports(7, 80).seq(seq).flags(flags);
    TestFrame::bytes(&segment.payload(payload).build())
}

fn ack(to: u32, flags: Flags) -> TestFrame {
    TestFrame::bytes(&SegmentBuilder::v4(RECEIVER, SENDER).ports(80, 7).ack(to).flags(flags).build())
}

fn ms(n: u64) -> Time {
    Time::from_millis(n)
}

/// A connection after its handshake, which took 100 ms.
fn opened() -> Rig<Sharing> {
    opened_with(config())
}

fn opened_with(config: Config) -> Rig<Sharing> {
    let mut rig = Rig::new(Sharing::new(config, 0).expect("a sound configuration"));
    rig.inject(LAN, data(999, Flags::SYN, 0));
    rig.at(ms(100)).inject(WAN, ack(1000, Flags::SYN.with(Flags::ACK)));
    let passed = rig.run_until(ms(100));
    assert_eq!(passed.iter().map(|sent| sent.at).collect::<Vec<_>>(), [ms(0), ms(100)]);
    rig
}

/// Returns the times in microseconds at which outgoing packets left until then.
fn left(rig: &mut Rig<Sharing>, until: Time) -> Vec<u64> {
    let sent = rig.run_until(until);
    sent.iter().filter(|sent| sent.port == WAN).map(|sent| sent.at.as_nanos() / 1000).collect()
}

#[test]
fn a_window_is_spread_across_a_round_trip() {
    let mut rig = opened();
    for n in 0..20 {
        rig.inject(LAN, data(1000 + n * 1000, Flags::ACK, 1000));
    }
    // The first leaves at once, charged for an initial window of ten: a tenth of the 100 ms. The other
    // nineteen are known by then.
    let expected: Vec<u64> = core::iter::once(100_000).chain((0..19).map(|n| 110_000 + n * 5_000)).collect();
    assert_eq!(left(&mut rig, ms(400)), expected);
    // All are acknowledged late, after 250 ms. That does not lengthen the path. Forty segments follow, each a
    // fortieth.
    rig.at(ms(450)).inject(WAN, ack(21_000, Flags::ACK));
    for n in 20..60 {
        rig.inject(LAN, data(1000 + n * 1000, Flags::ACK, 1000));
    }
    let again = left(&mut rig, ms(700));
    // The first counts the twenty of the round before. The others count the segments that have arrived.
    let expected: Vec<u64> = core::iter::once(450_000).chain((0..39).map(|n| 455_000 + n * 2_500)).collect();
    assert_eq!(again, expected);
    rig.finish();
}

#[test]
fn what_was_sent_twice_tells_no_time() {
    let mut rig = opened();
    // 40 ms after its first arrival, but 10 ms after its second. A path of either would be shorter than the
    // known 100 ms.
    rig.inject(LAN, data(1000, Flags::ACK, 1000));
    rig.at(ms(130)).inject(LAN, data(1000, Flags::ACK, 1000));
    rig.at(ms(140)).inject(WAN, ack(2000, Flags::ACK));
    assert_eq!(left(&mut rig, ms(200)), [100_000, 130_000]);
    for n in 1..4 {
        rig.at(ms(300)).inject(LAN, data(1000 + n * 1000, Flags::ACK, 1000));
    }
    assert_eq!(left(&mut rig, ms(400)), [300_000, 310_000, 320_000]);
    // All of it is acknowledged 100 ms after the first, and 50 ms after this one: a shorter path.
    rig.at(ms(400)).inject(WAN, ack(5000, Flags::ACK));
    rig.at(ms(400)).inject(LAN, data(5000, Flags::ACK, 1000));
    rig.at(ms(450)).inject(WAN, ack(6000, Flags::ACK));
    for n in 5..8 {
        rig.at(ms(500)).inject(LAN, data(1000 + n * 1000, Flags::ACK, 1000));
    }
    assert_eq!(left(&mut rig, ms(600)), [400_000, 500_000, 505_000, 510_000]);
    rig.finish();
}

#[test]
fn a_flow_that_ends_leaves_nothing_behind() {
    for end in [Flags::RST.with(Flags::ACK), Flags::FIN.with(Flags::ACK)] {
        let mut rig = opened();
        rig.inject(LAN, data(1000, Flags::ACK, 1000));
        left(&mut rig, ms(199));
        let rate = |rig: &Rig<Sharing>| rig.node().paced(0).map(|(pacer, class)| pacer.rate(class));
        // Ten packets of 1040 bytes in 100 ms.
        assert_eq!(rate(&rig), Some(Rate::kbit(832)));
        rig.at(ms(200)).inject(LAN, data(2000, end, 0));
        left(&mut rig, ms(250));
        rig.at(ms(300)).inject(WAN, ack(2001, Flags::ACK));
        left(&mut rig, ms(350));
        assert_eq!(rate(&rig), Some(FASTEST));
        rig.finish();
    }
}

/// Five round trips of twenty packets, with impossible segments in between. Returns the gaps between packets
/// and the class's rate in each round, and the number of segments that were not believed.
fn rounds(
    before: impl Fn(&mut Rig<Sharing>),
    during: impl Fn(&mut Rig<Sharing>, u64),
) -> (Vec<Vec<u64>>, Vec<Rate>, u64) {
    let mut rig = opened();
    rig.at(ms(100)).inject(LAN, data(1000, Flags::ACK, 960));
    left(&mut rig, ms(150));
    before(&mut rig);
    left(&mut rig, ms(199));
    let (mut seq, mut all, mut rates) = (1000 + 960, Vec::new(), Vec::new());
    for round in 2..7u64 {
        rig.at(ms(100 * round)).inject(WAN, ack(seq, Flags::ACK));
        for _ in 0..20 {
            rig.inject(LAN, data(seq, Flags::ACK, 960));
            seq += 960;
        }
        during(&mut rig, 100 * round);
        let left = left(&mut rig, ms(100 * round + 99));
        all.push(left.windows(2).map(|w| w[1] - w[0]).collect());
        rates.extend(rig.node().paced(0).map(|(pacer, class)| pacer.rate(class)));
    }
    (all, rates, rig.node().disbelieved())
}

#[test]
fn a_forged_number_changes_nothing() {
    let far = 1000 + (1 << 30);
    let (gaps, rates, none) = rounds(|_| {}, |_, _| {});
    assert_eq!((rates[4], none), (Rate::kbit(1_600), 0), "20 packets of 1,000 bytes in 100 ms");
    assert!(gaps[4].iter().all(|&gap| gap == 5_000));
    let acked = rounds(|rig| _ = rig.inject(WAN, ack(far, Flags::ACK)), |_, _| {});
    assert_eq!(acked, (gaps.clone(), rates.clone(), 1));
    // The forged segment leaves like one of the class's, 10 ms behind the first.
    let sent = rounds(|rig| _ = rig.inject(LAN, data(far, Flags::ACK, 960)), |_, _| {});
    assert_eq!((&sent.0[1..], &sent.1, sent.2), (&gaps[1..], &rates, 1));
    // Both in each round, and a reset.
    let (_, often, count) = rounds(
        |_| {},
        |rig, at| {
            for n in 1..7 {
                rig.at(ms(at + n)).inject(WAN, ack(far + n as u32, Flags::ACK));
                rig.inject(LAN, data(far + n as u32, Flags::RST.with(Flags::ACK), 0));
            }
        },
    );
    assert_eq!((often, count), (rates, 60));
}

/// A host sends segments of connections that there never were, many more than there are entries, between two
/// of the flow's packets. They are packets of the class, but its rate stays that of the flow.
#[test]
fn connections_that_never_were_displace_none_that_is_confirmed() {
    let known = |rig: &Rig<Sharing>| rig.node().paced(0).map(|(pacer, class)| pacer.rate(class));
    let mut config = config();
    config.max_flows = 16;
    let mut rig = opened_with(config);
    rig.inject(LAN, data(1000, Flags::ACK, 1000));
    left(&mut rig, ms(150));
    // Ten packets of 1040 bytes in 100 ms.
    assert_eq!(known(&rig), Some(Rate::kbit(832)));
    for n in 0..200u16 {
        let forged = SegmentBuilder::v4([10, 0, 0, 9], RECEIVER).ports(1_000 + n, 80).seq(7).payload(10);
        rig.at(ms(151 + 10 * u64::from(n) / 4)).inject(LAN, TestFrame::bytes(&forged.build()));
    }
    left(&mut rig, ms(700));
    assert_eq!(known(&rig), Some(Rate::kbit(832)));
}

/// A flow that was silent for a second gives its entry up.
#[test]
fn silent_flows_give_way() {
    let mut windows = {
        let paced = [(config().classes[0].share.and_then(|share| share.pace).expect("paced"), FIFO)];
        Windows::of(&paced, 2, 1).expect("a class that follows windows")
    };
    let key = |n: u16| Key { src_port: n, ..Key::default() };
    for n in 0..2 {
        let [a, b] = windows.places(&key(n));
        let at = if windows.known[a].class == FREE { a } else { b };
        windows.known[at] = Known { rate: 1, ..Known::new(key(n), 0, Stream::default(), ms(n.into())) };
    }
    assert_eq!(windows.room(&key(2), ms(999)), None);
    let first = windows.find(&key(0));
    assert_eq!((first.is_some(), windows.room(&key(2), ms(1_000))), (true, first));
}

#[test]
fn another_configuration_goes_on_with_what_is_known() {
    let paced = [(config().classes[0].share.and_then(|share| share.pace).expect("paced"), FIFO)];
    let windows = |seed| Windows::of(&paced, 16, seed).expect("a class that follows windows");
    let (mut old, mut new, mut gone) = (windows(1), windows(2), windows(3));
    let key = Key::default();
    let [at, _] = old.places(&key);
    let rtt = [Duration::from_millis(100), NEVER];
    old.known[at] =
        Known { rtt, payload: 1000, counted: 1040, ..Known::new(key, 0, Stream::default(), ms(0)) };
    old.add_up(at);
    assert_eq!(old.rate(0), Some(Rate::kbit(832)));
    new.follow(&mut old, Some);
    assert_eq!(new.rate(0), Some(Rate::kbit(832)));
    // The class is no longer paced.
    gone.follow(&mut new, |_| None);
    assert_eq!(gone.rate(0), None);
}
