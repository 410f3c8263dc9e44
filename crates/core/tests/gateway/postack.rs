//! PostACK, in its forms: ACKs are released as data leaves the queue of its class, with one queue in turns
//! that a flow skips which has sent more than its turns. A queue of 8 Mb/s, a byte a microsecond; packets
//! have 1,000 bytes and leave a millisecond apart.

use crate::support::*;
use weir_core::ack::{AckControl, CLASS_PRESETS};
use weir_core::class::Spec;
use weir_core::combined::{Combined, LAN_WHOLE};
use weir_core::flow::Record;
use weir_core::frame::Frames;
use weir_core::gateway::{ClassConfig, Config, Direction, Gateway, ScheduledOnly, LAN, WAN};
use weir_core::pace::{self, Backend};
use weir_core::queue::{self, pfq, Kind, QueueLimit};
use weir_core::rate::Rate;
use weir_core::rig::{Rig, Sent, TestFrame, Wake};
use weir_core::sharing::Sharing;
use weir_core::steer::Slot;
use weir_core::time::{Duration, Time};
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::Seq;
use weir_core::wire::{self, Flags};

const ISN: u32 = 0xffff_f000; // numbers wrap soon
const MSS: u32 = 1_460;

fn config(ack: AckControl, kind: Kind) -> Config {
    let queue = queue::Config { limit: QueueLimit::Packets(100), kind, tins: None };
    let up = ClassConfig {
        share: Some(Spec { queue: Some(queue), ..Spec::of(Some(1)) }),
        ..ClassConfig::controlled("up", Direction::Out, ack)
    };
    let link = Spec { rate: Some(Rate::mbit(8)), ..Spec::of(None) };
    let link = ClassConfig { name: "link".into(), ack: None, share: Some(link), ..up.clone() };
    Config { classes: vec![up, link], ..Config::default() }
}

const PFQ: Kind = Kind::Pfq(pfq::Params { flows: 64, quantum: 1_514, seed: 1 });

struct Uploads {
    rig: Rig<Combined>,
}

impl Uploads {
    /// This many flows, established by 100 ms.
    fn begun(config: Config, flows: u16, wake: Wake) -> Uploads {
        let sharing = Sharing::new(config.clone(), 0).expect("a sound tree");
        let mut u = Uploads { rig: Rig::new(Combined::new(Gateway::new(config), sharing)).wake(wake) };
        u.open(flows);
        u
    }

    fn open(&mut self, flows: u16) {
        let u = self;
        for f in 0..flows {
            let syn = sender(f).seq(ISN).ack(0).flags(Flags::SYN).mss(1_460).window_scale(7).sack_permitted();
            u.inject(Time::from_micros(f.into()), LAN, syn);
        }
        for f in 0..flows {
            let answer =
                receiver(f).seq(0).ack(ISN.wrapping_add(1)).flags(Flags(Flags::SYN.0 | Flags::ACK.0));
            let at = ms(20) + Duration::from_micros(f.into());
            u.inject(at, WAN, answer.mss(1_460).window_scale(7).sack_permitted());
        }
        for f in 0..flows {
            u.inject(
                ms(50) + Duration::from_micros(f.into()),
                WAN,
                receiver(f).ack(abs(0)).flags(Flags::ACK),
            );
        }
        u.rig.run_until(ms(100));
    }

    fn inject(&mut self, at: Time, port: weir_core::node::Port, segment: SegmentBuilder) {
        self.rig.at(at).inject(port, TestFrame::bytes(&segment.build()));
    }

    /// This many packets of 1,000 bytes of the flow's data come to the queue.
    fn data(&mut self, at: Time, f: u16, packets: u32) {
        for _ in 0..packets {
            let segment = sender(f).seq(abs(0)).ack(1).flags(Flags::ACK);
            self.rig.at(at).inject(LAN_WHOLE, TestFrame::bytes(&segment.build()).long(1_014));
        }
    }

    fn ack(&mut self, at: Time, f: u16, bytes: u32) {
        self.inject(at, WAN, receiver(f).ack(abs(bytes)).flags(Flags::ACK));
    }

    /// Returns the ACKs that reach the senders: when, whose, and up to where each acknowledges.
    fn run(&mut self, until: Time) -> Vec<(Time, u16, u32)> {
        let sent = self.rig.run_until(until);
        let lan = sent.iter().filter(|s| s.port == LAN);
        lan.map(|s| (s.at, tcp(s).dst_port - 1_000, tcp(s).ack.since(Seq(abs(0))))).collect()
    }

    fn scheduled_only(&self) -> ScheduledOnly {
        self.rig.node().gateway().flows.class_stats().next().unwrap().scheduled_only
    }

    fn finish(self) {
        assert_eq!(self.rig.node().ledger().held(), 0, "in + made = out + dropped + absorbed");
        self.rig.finish();
    }
}

fn sender(f: u16) -> SegmentBuilder {
    SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 1, 1]).ports(1_000 + f, 5_001)
}

fn receiver(f: u16) -> SegmentBuilder {
    SegmentBuilder::v4([10, 0, 1, 1], [10, 0, 0, 1]).ports(5_001, 1_000 + f).seq(1).window(4_000)
}

fn abs(n: u32) -> u32 {
    ISN.wrapping_add(1).wrapping_add(n)
}

fn tcp(s: &Sent) -> wire::Tcp {
    wire::tcp(&s.bytes, &wire::packet(&s.bytes, s.len).unwrap()).unwrap()
}

fn us(n: u64) -> Time {
    Time::from_micros(n)
}

fn pfq() -> Config {
    config(AckControl::postack_pfq(Rate::mbit(8)), PFQ)
}

/// The first of five packets at 1,000 ms leaves at once, the fourth at 1,003 ms: the fifth is the last then,
/// and is next.
#[test]
fn an_ack_leaves_when_the_last_packet_of_its_flow_is_next() {
    for wake in [Wake::Exact, Wake::Late(Duration::from_millis(3)), Wake::Lazy(Duration::from_millis(3))] {
        let mut u = Uploads::begun(pfq(), 1, wake);
        u.data(ms(1_000), 0, 5);
        u.ack(us(1_000_500), 0, MSS);
        u.ack(us(1_000_600), 0, 2 * MSS);
        // The fifth leaves at 1,004 ms, and nothing waits: the class could send the next packet at once.
        assert_eq!(u.run(ms(1_500)), [(ms(1_003), 0, MSS), (ms(1_004), 0, 2 * MSS)], "{wake:?}");
        let stats = u.rig.node().gateway().flows.class_stats().next().unwrap();
        assert!(stats.ack_queue_bytes_peak >= 2 * 54);
        // Four packets wait when the ACKs come.
        assert_eq!(stats.buffer_bytes_peak, (4_000 + stats.ack_queue_bytes_peak), "{wake:?}");
        u.finish();
    }
}

#[test]
fn an_ack_of_a_flow_without_data_in_the_queue_goes_at_once() {
    let mut u = Uploads::begun(pfq(), 2, Wake::Exact);
    u.data(ms(1_000), 0, 8);
    u.ack(us(1_000_500), 1, MSS);
    u.ack(us(1_000_700), 1, 3 * MSS);
    assert_eq!(u.run(ms(1_001)), [(us(1_000_500), 1, MSS), (us(1_000_700), 1, 3 * MSS)]);
    u.run(ms(1_100));
    u.finish();
}

/// A queue of data would have shown the sender its duplicates in their order, and later than what was
/// acknowledged before.
#[test]
fn duplicates_keep_their_place_and_are_as_many_as_came() {
    let mut u = Uploads::begun(pfq(), 1, Wake::Exact);
    u.data(ms(1_000), 0, 4);
    for (at, bytes) in [(100, MSS), (200, MSS), (300, MSS), (400, MSS)] {
        u.ack(us(1_000_000 + at), 0, bytes);
    }
    // At 1,002 ms the last is next; at 1,003 ms nothing is left, and from there on there is a turn each
    // eighth of 1.5 ms: 187 bytes.
    let expected = [1_002_000, 1_003_000, 1_003_187, 1_003_374].map(|at| (us(at), 0, MSS));
    assert_eq!(u.run(ms(1_500)), expected);
    u.finish();
}

/// Each flow's last packet is next in turn. A flow has its next ACK when as many packets have left as flows
/// had data.
#[test]
fn flows_take_turns() {
    let mut u = Uploads::begun(pfq(), 2, Wake::Exact);
    u.data(ms(1_000), 0, 2);
    u.data(ms(1_000), 1, 2);
    for n in 1..=2 {
        u.ack(us(1_000_100 + n), 0, n as u32 * MSS);
    }
    // The first of flow 0 leaves at 1,000 ms. Then wait: one of flow 0, two of flow 1. Flow 0's last leaves
    // at 1,001 ms, and was next before its ACKs came. So flow 0 has no data from 1,001 ms on, while one flow
    // has: a packet later it has its turn.
    assert_eq!(u.run(ms(1_500)), [(ms(1_002), 0, MSS), (ms(1_003), 0, 2 * MSS)]);
    u.finish();
}

#[test]
fn what_is_held_as_a_number_leaves_by_segments() {
    let number = config(AckControl::postack_number(Rate::mbit(8)), PFQ);
    let mut u = Uploads::begun(number, 1, Wake::Exact);
    u.data(ms(1_000), 0, 3);
    u.ack(us(1_000_500), 0, 10 * MSS);
    let sent = u.run(us(1_002_600));
    // An eighth of 1,500 bytes takes 187 us.
    let expected = [1_001_000, 1_002_000, 1_002_187, 1_002_374, 1_002_561];
    let expected: Vec<_> = expected.into_iter().zip(1..).map(|(at, n)| (us(at), 0, n * MSS)).collect();
    assert_eq!(sent, expected);
    assert_eq!(u.rig.node().gateway().flows.class_stats().next().unwrap().ack_queue_bytes_peak, 0);
    u.run(ms(2_000));
    u.finish();
}

/// RFC 9293 section 3.8.6: news of a closed window is not late. What was held goes before it.
#[test]
fn a_closed_window_does_not_wait() {
    let mut u = Uploads::begun(pfq(), 1, Wake::Exact);
    u.data(ms(1_000), 0, 9);
    u.ack(us(1_000_100), 0, MSS);
    u.ack(us(1_000_200), 0, 2 * MSS);
    let closed = receiver(0).ack(abs(3 * MSS)).window(0).flags(Flags::ACK);
    u.inject(us(1_000_300), WAN, closed);
    let at = us(1_000_300);
    assert_eq!(u.run(ms(1_001)), [(at, 0, MSS), (at, 0, 2 * MSS), (at, 0, 3 * MSS)]);
    u.run(ms(1_100));
    u.finish();
}

/// A segment that passes tells the sender of progress that waits: what waits for that is not sent, as it
/// would be a duplicate.
#[test]
fn progress_that_is_known_is_not_told_again() {
    let mut u = Uploads::begun(pfq(), 1, Wake::Exact);
    u.data(ms(1_000), 0, 3);
    u.ack(us(1_000_100), 0, MSS);
    u.ack(us(1_000_200), 0, 2 * MSS);
    let fin = receiver(0).ack(abs(2 * MSS)).flags(Flags(Flags::FIN.0 | Flags::ACK.0));
    u.inject(us(1_000_300), WAN, fin);
    assert_eq!(u.run(ms(1_500)), [(us(1_000_300), 0, 2 * MSS)]);
    u.finish();
}

/// The preset of this name with a queue of 8 Mbit/s.
fn preset(name: &str) -> AckControl {
    (CLASS_PRESETS.iter().find(|preset| preset.name == name).unwrap().policy)(Rate::mbit(8))
}

fn one_queue() -> Config {
    config(AckControl::postack(Rate::mbit(8)), Kind::Fifo)
}

/// Packets leave at 1,000 to 1,009 ms, a turn each. Six came of flow 0 beyond the one that its ACK is for: it
/// skips the turns at 1,001 to 1,005 ms, and is released at 1,006 ms.
#[test]
fn a_flow_that_has_sent_more_than_its_turns_skips_turns() {
    for wake in [Wake::Exact, Wake::Late(Duration::from_millis(3)), Wake::Lazy(Duration::from_millis(3))] {
        let mut u = Uploads::begun(one_queue(), 2, wake);
        u.data(ms(1_000), 1, 4);
        u.data(ms(1_000), 0, 6);
        u.ack(us(1_000_500), 0, MSS);
        assert_eq!(u.run(ms(1_500)), [(ms(1_006), 0, MSS)], "{wake:?}");
        u.finish();
    }
}

/// Three packets leave at 1,000 to 1,002 ms: then nothing is left that could be answered, and the class could
/// send the next one at once. From there on there is a turn each eighth of 1.5 ms.
#[test]
fn an_empty_queue_owes_nothing() {
    let mut u = Uploads::begun(one_queue(), 1, Wake::Exact);
    u.data(ms(1_000), 0, 3);
    for n in 1..=3 {
        u.ack(us(1_000_500 + n), 0, n as u32 * MSS);
    }
    assert_eq!(
        u.run(ms(1_500)),
        [(ms(1_002), 0, MSS), (us(1_002_187), 0, 2 * MSS), (us(1_002_374), 0, 3 * MSS)]
    );
    u.finish();
}

/// An ACK for two segments is worth two turns, and there is one for each packet that leaves, from 1,001 ms
/// on.
#[test]
fn a_delayed_ack_takes_as_many_turns_as_segments() {
    let mut u = Uploads::begun(one_queue(), 3, Wake::Exact);
    u.data(ms(1_000), 2, 10);
    for n in 1..=2 {
        u.ack(us(1_000_100 + u64::from(n)), 0, 2 * n * MSS);
        u.ack(us(1_000_102 + u64::from(n)), 1, n * MSS);
    }
    let turns: Vec<_> = u.run(ms(1_500)).into_iter().map(|(at, f, _)| (at, f)).collect();
    assert_eq!(turns, [(ms(1_001), 0), (ms(1_003), 1), (ms(1_004), 0), (ms(1_006), 1)]);
    u.finish();
}

fn timed() -> Config {
    config(preset("postack-timer"), Kind::Fifo)
}

/// The paper's section 3.2: seeing `k` packets of a flow after an ACK of it, the timer stops for the next
/// `k - 1` times. One flow of 8 Mbit/s has a turn every 1,500 bytes, 1.5 ms.
#[test]
fn a_timer_stops_for_packets_beyond_the_one_that_an_ack_is_for() {
    for wake in [Wake::Exact, Wake::Late(Duration::from_millis(3)), Wake::Lazy(Duration::from_millis(3))] {
        for k in 1..=4 {
            let mut u = Uploads::begun(timed(), 1, wake);
            for n in 1..=3 {
                u.ack(us(1_000_000), 0, n * MSS);
            }
            u.data(us(1_000_100), 0, k);
            let second = us(1_000_000 + 1_500 * u64::from(k));
            let third = second + Duration::from_micros(1_500);
            let expected = [(ms(1_000), 0, MSS), (second, 0, 2 * MSS), (third, 0, 3 * MSS)];
            assert_eq!(u.run(ms(1_500)), expected, "{k} packets, {wake:?}");
            u.finish();
        }
    }
}

/// Two flows have a turn each in 2 MSS / BW, 3 ms. One is in slow start, and sends two packets for an ACK: it
/// has an ACK in every other turn of its own, and as many packets as the other.
#[test]
fn a_flow_in_slow_start_has_no_more_than_its_share_of_a_timer() {
    let mut u = Uploads::begun(timed(), 2, Wake::Exact);
    for n in 1..=60 {
        u.ack(us(1_000_000), 0, n * MSS);
        u.ack(us(1_000_000), 1, n * MSS);
    }
    let (mut packets, mut from) = ([0, 0], 0);
    for step in 1..=1_200 {
        for (at, f, _) in u.run(us(1_000_000 + 100 * step)) {
            assert!(at >= us(1_000_000 + from));
            packets[usize::from(f)] += 2 - u32::from(f);
            u.data(us(1_000_000 + 100 * step), f, 2 - u32::from(f));
        }
        from = 100 * step;
    }
    // 120 ms are 40 turns each. A packet of the last turns has not had its own yet.
    assert!(packets.iter().all(|n| (40..=42).contains(n)), "{packets:?}");
    u.run(ms(3_000));
    u.finish();
}

/// Four datagrams wait before the flow's two packets. If their departures brought turns, each would bring a
/// packet more than leaves.
#[test]
fn what_no_flow_has_sent_brings_no_turn() {
    let mut u = Uploads::begun(one_queue(), 2, Wake::Exact);
    for _ in 0..4 {
        u.rig.at(ms(1_000)).inject(LAN_WHOLE, TestFrame::bytes(&udp()).long(1_014));
    }
    u.data(ms(1_000), 1, 2);
    u.ack(us(1_000_500), 0, MSS);
    assert_eq!(u.run(ms(1_500)), [(ms(1_004), 0, MSS)]);
    u.finish();
}

/// A class that is paced by deadlines or by bytes on the line sends 1,000 bytes a millisecond, as one that
/// shares a link does: ACKs leave with the same packets, and packets are as far apart as the rate says.
#[test]
fn what_leaves_a_paced_class_releases_acks() {
    for (backend, ack, kind, last) in [
        (Backend::Clock, AckControl::postack_pfq(Rate::mbit(8)), PFQ, [ms(1_003), ms(1_004)]),
        (Backend::Gap, AckControl::postack_pfq(Rate::mbit(8)), PFQ, [ms(1_003), ms(1_004)]),
        (Backend::Clock, AckControl::postack(Rate::mbit(8)), Kind::Fifo, [ms(1_004), us(1_004_187)]),
    ] {
        let target = pace::Target::Rate(Rate::mbit(8));
        let class = pace::Class { target, counts: pace::Counts::Ip, backend };
        let mut config = config(ack, kind);
        config.classes.truncate(1);
        let queue = config.classes[0].share.and_then(|share| share.queue);
        config.classes[0].share =
            Some(Spec { rate: Some(Rate::mbit(8)), pace: Some(class), queue, ..Spec::of(None) });
        config.port = pace::Port { line: Some(Rate::mbit(1000)), runs: true, ..config.port };
        let mut u = Uploads::begun(config, 1, Wake::Exact);
        u.data(ms(1_000), 0, 5);
        u.ack(us(1_000_500), 0, MSS);
        u.ack(us(1_000_600), 0, 2 * MSS);
        let sent = u.rig.run_until(ms(1_500));
        let on = |port| {
            let packets =
                sent.iter().filter(move |s| s.port == port && wire::packet(&s.bytes, s.len).is_ok());
            packets.map(|s| s.at).collect::<Vec<_>>()
        };
        assert_eq!(on(WAN), (0..5).map(|n| ms(1_000 + n)).collect::<Vec<_>>());
        assert_eq!(on(LAN), last, "{backend:?}");
        u.finish();
    }
}

/// The pool of the engine that died had the ACKs; the records have what they told.
#[test]
fn what_waits_is_not_lost_with_its_engine() {
    let mut u = Uploads::begun(pfq(), 1, Wake::Exact);
    u.data(ms(1_000), 0, 9);
    u.ack(us(1_000_100), 0, MSS);
    u.ack(us(1_000_200), 0, 2 * MSS);
    assert_eq!(u.run(us(1_000_900)), []);
    let gateway = u.rig.node().gateway();
    let records: Box<[Record]> = gateway.flows.records().to_vec().into();
    let slots: Box<[Slot]> = gateway.flows.slots().iter().map(copy).collect();
    let next = Gateway::with_shared(pfq(), Box::leak(records), Box::leak(slots));
    let sharing = Sharing::new(pfq(), 0).expect("a sound tree");
    let mut u = Uploads { rig: Rig::new(Combined::new(next, sharing)) };
    let told: Vec<u32> = u.run(ms(100)).iter().map(|ack| ack.2).collect();
    assert_eq!(told, [2 * MSS]);
    u.finish();
}

/// Six of 64 frames are data, and a flow keeps fewer than a quarter of those that are free: 12. Later ACKs
/// are held as numbers, and told with those that wait.
#[test]
fn a_pool_that_is_nearly_used_up_costs_no_progress() {
    let mut u = Uploads::begun(pfq(), 1, Wake::Exact);
    let sharing = Sharing::new(pfq(), 0).expect("a sound tree");
    u.rig = Rig::with_pool(Combined::new(Gateway::new(pfq()), sharing), Frames::new(64, 2_048, 4));
    u.open(1);
    u.data(ms(1_000), 0, 6);
    for n in 1..=80 {
        u.ack(us(1_000_500 + u64::from(n)), 0, n * MSS);
    }
    let told: Vec<u32> = u.run(ms(3_000)).iter().map(|ack| ack.2).collect();
    assert_eq!((told.first(), told.last()), (Some(&MSS), Some(&(80 * MSS))));
    assert!(told.windows(2).all(|w| w[0] < w[1]) && (12..30).contains(&told.len()), "{told:?}");
    u.finish();
}

/// The receiver of one flow sends ACKs until the pool has no room for them. Those of other flows find room
/// all the same, and are told one by one: what else they say is not lost.
#[test]
fn a_flow_with_many_acks_leaves_the_pool_to_others() {
    let mut u = Uploads::begun(pfq(), 1, Wake::Exact);
    let sharing = Sharing::new(pfq(), 0).expect("a sound tree");
    u.rig = Rig::with_pool(Combined::new(Gateway::new(pfq()), sharing), Frames::new(128, 2_048, 4));
    u.open(3);
    (0..3).for_each(|f| u.data(ms(1_000), f, 4));
    for n in 1..=300 {
        u.ack(us(1_000_500 + u64::from(n)), 0, n * 10);
    }
    for (f, n) in [(1, 1), (2, 1), (1, 2), (2, 2), (1, 3), (2, 3)] {
        u.ack(us(1_000_900 + u64::from(n)), f, n * MSS);
    }
    let told = u.run(ms(3_000));
    for f in 1..3 {
        let of: Vec<u32> = told.iter().filter(|ack| ack.1 == f).map(|ack| ack.2).collect();
        assert_eq!(of, [MSS, 2 * MSS, 3 * MSS], "flow {f}");
    }
    u.finish();
}

/// Packets that are never acknowledged wait and leave like all others.
#[test]
fn datagrams_are_queued_and_scheduled() {
    let mut u = Uploads::begun(pfq(), 1, Wake::Exact);
    for _ in 0..4 {
        let udp = TestFrame::bytes(&udp()).long(1_014);
        u.rig.at(ms(1_000)).inject(LAN_WHOLE, udp);
    }
    u.data(ms(1_000), 0, 2);
    u.ack(us(1_000_500), 0, MSS);
    let sent = u.rig.run_until(ms(1_500));
    let out: Vec<Time> = sent.iter().filter(|s| s.port == WAN).map(|s| s.at).collect();
    assert_eq!(out, (0..6).map(|n| ms(1_000 + n)).collect::<Vec<_>>());
    // These four, and the SYN of the flow.
    assert_eq!(u.scheduled_only(), ScheduledOnly { not_tcp: 4, untouched: 0, no_acks: 1 });
    u.finish();
}

/// A flow whose ACKs take another path, and one whose ACKs are signed: their data is queued and scheduled,
/// and it is said why nothing else is.
#[test]
fn flows_without_acks_to_control_are_scheduled() {
    let mut u = Uploads::begun(pfq(), 1, Wake::Exact);
    let before = u.scheduled_only();
    u.data(ms(1_000), 7, 3);
    // Four of eight are odd.
    for n in 1..=4 {
        u.inject(ms(1_010), WAN, receiver(0).ack(abs(n * MSS / 2)).flags(Flags::ACK).mptcp());
    }
    u.data(ms(1_020), 0, 2);
    u.rig.run_until(ms(1_500));
    let no_acks = before.no_acks + 3;
    assert_eq!(u.scheduled_only(), ScheduledOnly { not_tcp: 0, untouched: 2, no_acks });
    u.finish();
}

/// IPv4 and UDP headers of a datagram of 972 bytes, the rest left out.
fn udp() -> Vec<u8> {
    let mut bytes = SegmentBuilder::v4([10, 0, 0, 9], [10, 0, 1, 1]).ports(7_000, 7_001).build();
    bytes[23] = 17;
    let sum = u16::from_be_bytes([bytes[24], bytes[25]]) - (17 - 6);
    bytes[24..26].copy_from_slice(&sum.to_be_bytes());
    bytes
}
