use super::*;
use proptest::prelude::*;
use weir_core::ack::{AckControl, Hold, Meter, Period, RateRelease, Release, SlowStart, When, Window};
use weir_core::frame::Frames;
use weir_core::gateway::{ClassConfig, Direction, Match};
use weir_core::rate::Rate;
use weir_core::rig::{Rig, Sent, TestFrame, Wake};
use weir_core::time::Duration;
use weir_core::wire::build::{arp, SegmentBuilder};
use weir_core::wire::Seq;

/// Bytes of a step: 10 Mb/s every 10 ms.
pub(super) const STEP: u32 = 12_500;
pub(super) const DATA_ISN: u32 = 0xffff_f000;

pub(super) fn ms(n: u64) -> Time {
    Time::from_millis(n)
}

/// Returns a class with the ACK shaper at 10 Mb/s for flows to these ports.
fn class(direction: Direction, ports: core::ops::RangeInclusive<u16>) -> ClassConfig {
    let release = RateRelease {
        meter: Meter::Acked,
        slow_start: SlowStart::Ignore,
        period: Period::Fixed(Duration::from_millis(10)),
        ..RateRelease::new(Rate::mbit(10))
    };
    let ack = AckControl {
        hold: Hold::Number,
        release: Release::Rate(release),
        window: Window::Keep,
        when: When::Always,
    };
    let matches = vec![Match { dst_port: Some(ports), ..Match::default() }];
    ClassConfig { name: "shaped".into(), direction, matches, ack: Some(ack), share: None, nested: None }
}

pub(super) fn outward(ports: core::ops::RangeInclusive<u16>) -> Config {
    Config { classes: vec![class(Direction::Out, ports)], ..Config::default() }
}

/// Returns a segment from the LAN host to port `port` of the WAN host.
fn there(port: u16) -> SegmentBuilder {
    SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 1, 1]).ports(40_000, port)
}

fn back(port: u16) -> SegmentBuilder {
    SegmentBuilder::v4([10, 0, 1, 1], [10, 0, 0, 1]).ports(port, 40_000)
}

/// Returns an ACK of the WAN host for `n` bytes of data.
pub(super) fn ack(port: u16, n: u32) -> SegmentBuilder {
    back(port).seq(5001).ack(DATA_ISN.wrapping_add(1 + n))
}

pub(super) fn inject<N: Node>(rig: &mut Rig<N>, at: Time, port: Port, segment: &SegmentBuilder) {
    inject_frame(rig, at, port, &segment.build());
}

pub(super) fn inject_frame<N: Node>(rig: &mut Rig<N>, at: Time, port: Port, frame: &[u8]) {
    rig.at(at).inject(port, TestFrame::bytes(frame));
}

pub(super) fn handshake<N: Node>(rig: &mut Rig<N>, port: u16) {
    let syn = there(port).seq(DATA_ISN).flags(Flags::SYN).mss(1460).window_scale(7);
    let answer = back(port).seq(5000).ack(DATA_ISN.wrapping_add(1)).flags(Flags::SYN | Flags::ACK);
    inject(rig, ms(10), LAN, &syn);
    inject(rig, ms(30), WAN, &answer.mss(1460).window_scale(7));
}

pub(super) fn numbers(sent: &[Sent]) -> Vec<(Time, u32)> {
    let acks = sent.iter().filter(|s| s.port == LAN);
    acks.map(|s| {
        let packet = wire::packet(&s.bytes, s.len).unwrap();
        let tcp = wire::tcp(&s.bytes, &packet).unwrap();
        (s.at, tcp.ack.since(Seq(DATA_ISN.wrapping_add(1))))
    })
    .collect()
}

pub(super) fn finish(rig: &Rig<Steered>) {
    assert_eq!(rig.node().ledger().held(), 0);
    rig.finish();
}

#[test]
fn acks_are_shaped_and_data_is_not_looked_at() {
    let mut rig = Rig::new(Steered::new(outward(5001..=5001)));
    handshake(&mut rig, 5001);
    rig.run_until(ms(500));
    for n in 0..20u32 {
        let data = there(5001).seq(DATA_ISN.wrapping_add(1 + 1460 * n)).ack(5001).payload(1460);
        inject(&mut rig, ms(900), LAN, &data);
    }
    inject(&mut rig, ms(1000), WAN, &ack(5001, 29_200));
    let sent = rig.run_until(ms(2000));
    assert!(sent[..20].iter().all(|s| (s.at, s.port, s.len) == (ms(900), WAN, 54 + 1460)));
    assert_eq!(numbers(&sent), [(ms(1000), STEP), (ms(1010), 2 * STEP), (ms(1020), 29_200)]);
    let gateway = rig.node().gateway();
    assert_eq!((gateway.flows.stats().user_data_bytes, gateway.flows.stats().observed), (0, 1));
    // The SYN was seen at 10 ms and answered at 30 ms, so the gateway gets copies.
    assert_eq!(gateway.flows.flows().next().unwrap().rtt, Duration::from_millis(20));
    let stats = SteerStats { taken: 2, passed: 21, copied: 1, ..SteerStats::default() };
    assert_eq!(*rig.node().stats(), stats);
    // One ACK was absorbed and three were made, and a copy was made and absorbed.
    let Ledger { received, made, sent, absorbed, .. } = rig.node().ledger();
    assert_eq!((received, made, sent, absorbed), (23, 4, 25, 2));
    finish(&rig);
}

#[test]
fn downloads_are_steered_the_other_way_round() {
    let config = Config { classes: vec![class(Direction::In, 40_000..=40_000)], ..Config::default() };
    let mut rig = Rig::new(Steered::new(config));
    let from_wan = |n: u32| back(5001).seq(DATA_ISN.wrapping_add(n)).ack(5001);
    inject(&mut rig, ms(0), LAN, &there(5001).seq(5000).flags(Flags::SYN).mss(1460));
    inject(&mut rig, ms(1), WAN, &from_wan(0).flags(Flags::SYN | Flags::ACK).mss(1460));
    inject(&mut rig, ms(2), LAN, &there(5001).seq(5001).ack(DATA_ISN.wrapping_add(1)));
    inject(&mut rig, ms(3), WAN, &from_wan(1).payload(100));
    inject(&mut rig, ms(4), LAN, &there(5001).seq(5001).ack(DATA_ISN.wrapping_add(101)));
    inject(&mut rig, ms(5), WAN, &from_wan(101).flags(Flags::RST | Flags::ACK));
    rig.run_until(ms(100));
    let stats = SteerStats { taken: 2, passed: 4, copied: 3, ..SteerStats::default() };
    assert_eq!(*rig.node().stats(), stats);
    assert!(rig.node().gateway().flows.flows().next().unwrap().closed);
    assert_eq!(rig.node().gateway().flows.stats().user_data_bytes, 0);
    finish(&rig);
}

/// Verifies the order of a reset and held ACKs. By RFC 9293 §3.5.3 the receiver reads nothing after a reset.
#[test]
fn a_reset_of_the_receiver_goes_behind_what_is_held() {
    let mut rig = Rig::new(Steered::new(outward(5001..=5001)));
    handshake(&mut rig, 5001);
    inject(&mut rig, ms(1000), WAN, &ack(5001, 29_200));
    let reset = ack(5001, 29_200).flags(Flags::RST | Flags::ACK);
    // A reset that its receiver refuses does not end the flow (RFC 5961 §3.2).
    inject(&mut rig, ms(1004), WAN, &reset.clone().seq(6000));
    inject(&mut rig, ms(1005), WAN, &reset);
    let sent = rig.run_until(ms(2000));
    let told = [(ms(1000), STEP), (ms(1004), 29_200), (ms(1005), 29_200), (ms(1005), 29_200)];
    assert_eq!(numbers(&sent)[1..], told);
    let kinds: Vec<bool> = sent.iter().filter(|s| s.at == ms(1005)).map(|s| s.bytes[47] == 0x14).collect();
    assert_eq!(kinds, [false, true]);
    assert_eq!(rig.node().gateway().flows.stats().reset, 1);
    finish(&rig);
}

/// Verifies the window of a client's request that reaches the sender before its first ACK, or instead of it.
/// The request carries the first window that the sender learns.
#[test]
fn a_request_that_is_the_first_to_arrive_carries_a_sized_window() {
    for ack_first in [false, true] {
        let ack = AckControl::ack_shaper(Rate::kbit(200));
        let classes = vec![ClassConfig { ack: Some(ack), ..class(Direction::Out, 5001..=5001) }];
        let mut rig = Rig::new(Steered::new(Config { classes, ..Config::default() }));
        // The data's receiver is on the WAN, its sender on the LAN.
        let client = || SegmentBuilder::v4([10, 0, 1, 1], [10, 0, 0, 1]).ports(5001, 40_000).window(502);
        let server = || SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 1, 1]).ports(40_000, 5001);
        let syn = client().seq(4_999).flags(Flags::SYN).mss(1460).window_scale(7).window(64_000);
        let answer =
            server().seq(DATA_ISN).ack(5_000).flags(Flags::SYN | Flags::ACK).mss(1460).window_scale(7);
        inject(&mut rig, ms(10), WAN, &syn);
        inject(&mut rig, ms(12), LAN, &answer);
        let first = client().seq(5_000).ack(DATA_ISN.wrapping_add(1));
        inject(&mut rig, ms(32), WAN, &first.clone().payload(100));
        if ack_first {
            inject(&mut rig, ms(32), WAN, &first);
        }
        let after = client().seq(5_100).ack(DATA_ISN.wrapping_add(1));
        inject(&mut rig, ms(33), WAN, &after);
        let sent = rig.run_until(ms(40));
        let parsed = |s: &Sent| wire::tcp(&s.bytes, &wire::packet(&s.bytes, s.len).unwrap()).unwrap();
        let got: Vec<_> = sent.iter().filter(|s| s.port == LAN && s.at > ms(10)).map(parsed).collect();
        // The window is 25,000 bytes a second over the known 2 ms of the path and two periods of 58.4 ms:
        // three segments, in units of 128 bytes. When 20 ms more are known, it is still three.
        assert_eq!((got[0].payload_len, got[0].window), (100, 35), "{got:?}");
        assert!(got[1..].iter().all(|t| t.window == 35), "{got:?}");
        assert_eq!(rig.node().stats().set_back, 1);
        finish(&rig);
    }
}

#[test]
fn flows_without_a_class_pass_after_one_look_until_their_next_syn() {
    let mut rig = Rig::new(Steered::new(outward(5001..=5001)));
    for n in 0..4 {
        inject(&mut rig, ms(n), WAN, &back(80).seq(1).payload(1000));
    }
    inject(&mut rig, ms(4), WAN, &back(80).seq(9).flags(Flags::SYN));
    inject(&mut rig, ms(5), WAN, &back(81).seq(1).payload(1000));
    let sent = rig.run_until(ms(100));
    assert_eq!(sent.iter().map(|s| s.at).collect::<Vec<_>>(), (0..6).map(ms).collect::<Vec<_>>());
    let stats = SteerStats { passed: 6, copied: 3, ..SteerStats::default() };
    assert_eq!(*rig.node().stats(), stats);
    assert_eq!(rig.node().gateway().flows.stats().user_data_bytes, 0);
    finish(&rig);
}

#[test]
fn verdicts_are_bounded() {
    let bounds = Bounds { passing: 1_024, ..Bounds::default() };
    let mut rig = Rig::new(Steered::within(outward(5001..=5001), &bounds));
    // The number of flows exceeds the map by one. The first is then forgotten, and the last is not.
    let flows = 10_000..=11_024;
    for flow in flows.clone().chain([10_000, *flows.end()]) {
        inject(&mut rig, ms(0), WAN, &back(flow));
    }
    rig.run_until(ms(1));
    assert_eq!((rig.node().stats().taken, rig.node().stats().passed), (1_024 + 2, 1));
    finish(&rig);
}

/// Verifies budgets: three segments are taken at once, and headers have a budget of their own. Traffic beyond
/// it passes, also unknown flows' ACKs.
#[test]
fn the_unknown_has_budgets() {
    let mut rig = Rig::new(Steered::within(outward(5001..=5001), &Bounds::of(3)));
    for flow in 10_000..10_040 {
        inject(&mut rig, ms(1_000), WAN, &back(flow));
    }
    let sent = rig.run_until(ms(1_001));
    assert_eq!(sent.len(), 40);
    let stats = *rig.node().stats();
    assert_eq!((stats.taken, stats.copied, stats.passed, stats.over_budget), (3, 3, 37, 37 + 34));
    finish(&rig);
}

#[test]
fn what_is_not_tcp_passes_both_ways() {
    let mut rig = Rig::new(Steered::new(outward(5001..=5001)));
    let frames = [
        there(5001).udp().payload(100).build(),
        arp([10, 0, 0, 1], [10, 0, 1, 1]),
        there(5001).fragment(0, true).payload(100).build(),
        vec![1, 2, 3],
    ];
    for port in [LAN, WAN] {
        for frame in &frames {
            rig.inject(port, frame);
        }
    }
    let sent = rig.run_until(ms(1));
    for port in [LAN, WAN] {
        let out: Vec<_> = sent.iter().filter(|s| s.port == port).map(|s| s.bytes.clone()).collect();
        assert_eq!(out, frames);
    }
    let stats = SteerStats { passed: 8, ..SteerStats::default() };
    assert_eq!(*rig.node().stats(), stats);
    assert_eq!(rig.node().gateway().flows.stats().ledger.received, 0);
    finish(&rig);
}

#[test]
fn other_ports_lead_nowhere() {
    let mut rig = Rig::new(Steered::new(outward(5001..=5001)));
    rig.inject(LAN_TAP, there(80).build()).inject(Port(200), there(80).build());
    assert_eq!(rig.run_until(ms(1)), []);
    assert_eq!(rig.node().ledger().drops.get(DropReason::NotWired), 2);
    finish(&rig);
}

#[test]
fn a_closed_port_holds_up_only_its_own_frames() {
    let mut rig = Rig::new(Steered::new(outward(5001..=5001)));
    rig.close(WAN, ms(0), ms(50)).inject(LAN, there(80).build()).inject(WAN, back(80).build());
    let ports = |sent: Vec<Sent>| sent.iter().map(|s| (s.at, s.port)).collect::<Vec<_>>();
    assert_eq!(ports(rig.run_until(ms(49))), [(ms(0), LAN)]);
    assert_eq!(ports(rig.run_until(ms(50))), [(ms(0), WAN)]);
    finish(&rig);
}

/// Segment sent by a host: time in units of 100 us, whether from the LAN, flow, kind, number.
type Op = (u64, bool, u16, u8, u32);
/// Frame that left: port, time, bytes.
type Left = (Port, Time, Vec<u8>);

fn segment_of(&(_, lan, flow, kind, n): &Op) -> SegmentBuilder {
    let s = if lan { there(5000 + flow) } else { back(5000 + flow) };
    let s = if lan {
        s.seq(DATA_ISN.wrapping_add(n)).ack(5001)
    } else {
        s.seq(5001).ack(DATA_ISN.wrapping_add(n))
    };
    match kind {
        0 => s.payload(n as usize % 1000),
        1 if lan => s.flags(Flags::SYN),
        1 => s.seq(5000).flags(Flags::SYN | Flags::ACK).mss(1460),
        2 if n % 3 == 0 => s.flags(Flags::FIN | Flags::ACK),
        3 if n % 9 == 0 => s.flags(Flags::RST),
        4 if n % 5 == 0 => s.mptcp(),
        5 => s.payload(9).sack(&[(DATA_ISN.wrapping_add(n + 100), DATA_ISN.wrapping_add(n + 200))]),
        6 => s.window(n as u16 % 5 * 100),
        _ => s,
    }
}

/// Frames that left one node alone, as lines.
fn differences(steered: &[Left], alone: &[Left]) -> String {
    let tell = |who: &str, (port, at, bytes): &Left| {
        let t = wire::tcp(bytes, &wire::packet(bytes, bytes.len()).unwrap()).unwrap();
        let (seq, ack) = (t.seq, t.ack.since(Seq(DATA_ISN)));
        let (flags, window, payload) = (t.flags, t.window, t.payload_len);
        format!("{who} {port:?} {at:?} {flags:?} seq {seq} ack {ack} window {window} payload {payload}\n")
    };
    let only = |a: &[Left], b: &[Left], who| {
        a.iter().filter(|f| !b.contains(f)).map(|f| tell(who, f)).collect::<String>()
    };
    only(steered, alone, "steered") + &only(alone, steered, "alone")
}

proptest! {
    /// Verifies that steering passes exactly what the gateway would pass, so it does not change the output.
    #[test]
    fn as_a_gateway_that_sees_everything(
        mut ops in prop::collection::vec((0u64..3000, any::<bool>(), 0u16..3, 0u8..12, 0u32..60_000), 1..120),
        late in 0u64..15_000_000, shut in (0u64..300, 0u64..100), sized in any::<bool>(),
    ) {
        ops.sort_by_key(|op| op.0);
        // The hook discards what closed sockets would answer with a reset: after an end's FIN, only its
        // segments that are not older than the FIN come back from the gateway. A gateway that sees everything
        // lets an untouched flow continue.
        let ends = |ops: &[Op], op: &Op| ops.iter().any(|o| (o.1, o.2, o.3) == (op.1, op.2, 2) && o.4 % 3 == 0);
        let all = ops.clone();
        ops.retain(|op| op.3 != 4 || !ends(&all, op));
        let config = || Config {
            classes: vec![class(Direction::Out, 5000..=5000), class(Direction::In, 40_000..=40_000)],
            max_flows: 64,
            ..outward(5000..=5000)
        };
        fn run<N: Node>(mut rig: Rig<N>, ops: &[Op], shut: (u64, u64)) -> (Rig<N>, Vec<Left>) {
            rig.close(LAN, ms(shut.0), ms(shut.0 + shut.1));
            // Frames are never simultaneous, because the order of output at one time is not compared.
            // Segments arrive at even nanoseconds, and lateness is odd.
            for (i, op) in (0..).zip(ops) {
                let at = Time::from_nanos(op.0 * 100_000 + 2 * i);
                inject(&mut rig, at, if op.1 { LAN } else { WAN }, &segment_of(op));
            }
            let sent = rig.run_until(Time::from_secs(2));
            let mut sent: Vec<_> = sent.into_iter().map(|s| (s.port, s.at, s.bytes)).collect();
            sent.sort();
            (rig, sent)
        }
        for only_out in [true, false] {
            let mut config = config();
            if sized {
                let standing_delay = Duration::from_millis(5);
                config.classes[0].ack.as_mut().unwrap().window = Window::Size { standing_delay };
            }
            config.classes.truncate(if only_out { 1 } else { 2 });
            for wake in [Wake::Exact, Wake::Late(Duration::from_nanos(2 * late + 1))] {
                let pool = || Frames::new(1024, 2048, 64);
                let rig = Rig::with_pool(Gateway::new(config.clone()), pool()).wake(wake);
                let (_, expected) = run(rig, &ops, (0, 0));
                let rig = Rig::with_pool(Steered::new(config.clone()), pool()).wake(wake);
                let (rig, sent) = run(rig, &ops, (0, 0));
                prop_assert!(sent == expected, "{}", differences(&sent, &expected));
                finish(&rig);
                // Frames that wait for their port are stamped when they leave, so their output differs.
                let rig = Rig::with_pool(Steered::new(config.clone()), pool()).wake(wake);
                finish(&run(rig, &ops, shut).0);
            }
        }
    }
}
