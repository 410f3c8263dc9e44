//! Timelines computed by hand, exact to the nanosecond, and a model.

mod late;
mod pipe;
mod traced;
mod twice;

use super::*;
use crate::rig::{Rig, Sent, TestFrame, Wake};
use crate::wire::build::SegmentBuilder;
use proptest::prelude::*;

fn us(n: u64) -> Time {
    Time::from_micros(n)
}

fn ns(n: u64) -> Time {
    Time::from_nanos(n)
}

/// A frame of `ip` bytes of IP, told apart by its first byte.
fn packet(tag: u8, ip: usize) -> TestFrame {
    TestFrame::bytes(&[&[tag][..], &[0; 59]].concat()).long(ip + 14)
}

fn rig(config: Config) -> Rig<Link> {
    Rig::new(Link::new(config))
}

fn stamps(sent: &[Sent]) -> Vec<(Time, u8)> {
    sent.iter().map(|s| (s.at, s.bytes[0])).collect()
}

/// 1,500 bytes of IP take 1.2 ms here.
fn ten_mbit() -> Config {
    Config { rate: Some(Rate::mbit(10)), ..Config::default() }
}

#[test]
fn only_a_link_that_reads_no_headers_takes_drafts() {
    let takes = |config| Link::new(config).takes_drafts();
    let delay = Duration::from_millis(5);
    let config = Config { delay, loss: Loss::permille(5), overhead: 38, burst: 3000, ..ten_mbit() };
    assert!(takes(Config::default()) && takes(config));
    assert!(!takes(Config { mark: Some(QueueLimit::Packets(5)), ..config }));
}

#[test]
fn a_bare_wire_adds_nothing() {
    let mut r = rig(Config::default());
    r.at(us(3)).inject(Link::IN, packet(1, 1500)).inject(Link::IN, packet(2, 46));
    assert_eq!(stamps(&r.run_until(us(3))), [(us(3), 1), (us(3), 2)]);
    assert_eq!((r.node().stats().packets, r.node().stats().bytes), (2, 1546));
    r.finish();
}

#[test]
fn three_packets_at_ten_megabit() {
    let mut r = rig(Config { delay: Duration::from_millis(5), ..ten_mbit() });
    for tag in 1..=3 {
        r.inject(Link::IN, packet(tag, 1500));
    }
    let sent = r.run_until(Time::from_secs(1));
    assert_eq!(stamps(&sent), [(us(6200), 1), (us(7400), 2), (us(8600), 3)]);
    let s = r.node().stats();
    assert_eq!((s.packets, s.bytes, s.busy), (3, 4500, Duration::from_micros(3600)));
    assert_eq!((s.queue_peak_packets, s.queue_peak_bytes), (2, 3000));
    assert_eq!((s.queue_delay.count(), s.queue_delay.min(), s.queue_delay.max()), (3, 0, 2_400_000));
    assert_eq!(r.node().ledger().held(), 0);
    r.finish();
}

#[test]
fn a_token_bucket_sends_its_depth_at_once() {
    // 8 Mbit/s are a byte per microsecond; the bucket holds 2,500 bytes and is full at the start. Of six packets of
    // 1,000 bytes two leave at once and half of the third is there already; then one each millisecond.
    let rate = Some(Rate::mbit(8));
    let mut r = rig(Config { rate, burst: 2_500, ..Config::default() });
    for tag in 1..=6 {
        r.at(us(10_000)).inject(Link::IN, packet(tag, 1000));
    }
    // 1.2 ms after the last one left, 1,200 bytes have come together: one packet, and a fifth of the next.
    for tag in 7..=8 {
        r.at(us(14_700)).inject(Link::IN, packet(tag, 1000));
    }
    let sent = stamps(&r.run_until(Time::from_secs(1)));
    let want = [10_000, 10_000, 10_500, 11_500, 12_500, 13_500, 14_700, 15_500].map(us);
    assert_eq!(sent.iter().map(|s| s.0).collect::<Vec<_>>(), want);
    r.finish();
}

#[test]
fn remainders_are_carried_through_a_busy_period() {
    // 12,000 bits at 7 Mb/s take 1,714,285 5/7 ns.
    let rate = Rate::mbit(7);
    let mut r = rig(Config { rate: Some(rate), ..Config::default() });
    r.at(us(1000));
    for _ in 0..700 {
        r.inject(Link::IN, packet(0, 1500));
    }
    let sent = r.run_until(Time::from_secs(2));
    assert_eq!(sent.len(), 700);
    for (n, s) in (1..).zip(&sent) {
        assert_eq!(s.at, ns(1_000_000 + n * 12_000 * 1_000_000_000 / 7_000_000));
    }
    // 700 packets took 1.2 s exactly. A new busy period begins with nothing carried.
    assert_eq!(sent[699].at, us(1_201_000));
    r.at(Time::from_secs(3)).inject(Link::IN, packet(0, 1500));
    r.at(Time::from_secs(4)).inject(Link::IN, packet(0, 1500));
    let again: Vec<u64> = r.run_until(Time::from_secs(5)).iter().map(|s| s.at.as_nanos()).collect();
    assert_eq!(again, [3_001_714_285, 4_001_714_285]);
    r.finish();
}

#[test]
fn a_packet_limit_counts_those_that_wait() {
    let mut r = rig(Config { queue: QueueLimit::Packets(2), ..ten_mbit() });
    // One in service, two waiting, one refused; at 1.2 ms the first is gone and one more fits.
    for tag in 1..=4 {
        r.inject(Link::IN, packet(tag, 1500));
    }
    r.at(ns(1_199_999)).inject(Link::IN, packet(5, 1500)).at(us(1200)).inject(Link::IN, packet(6, 1500));
    let sent = r.run_until(Time::from_secs(1));
    assert_eq!(stamps(&sent), [(us(1200), 1), (us(2400), 2), (us(3600), 3), (us(4800), 6)]);
    assert_eq!(r.node().stats().drops.get(DropReason::QueueFull), 2);
    assert_eq!(r.frames().drops(), &r.node().stats().drops);
    r.finish();
}

#[test]
fn byte_limits_take_what_fits() {
    // 10 Mb/s × 2.4 ms = 3,000 bytes.
    let bdp = QueueLimit::Bdp { rtt: Duration::from_micros(2400) };
    for queue in [QueueLimit::Bytes(3000), bdp] {
        let mut r = rig(Config { queue, ..ten_mbit() });
        for (tag, ip) in [(1, 1500), (2, 1500), (3, 1000), (4, 501), (5, 500), (6, 46)] {
            r.inject(Link::IN, packet(tag, ip));
        }
        let got: Vec<u8> = r.run_until(Time::from_secs(1)).iter().map(|s| s.bytes[0]).collect();
        assert_eq!(got, [1, 2, 3, 5], "{queue:?}");
        assert_eq!(r.node().stats().queue_peak_bytes, 3000);
    }
}

#[test]
fn a_limit_of_nothing_lets_an_idle_link_send() {
    let mut r = rig(Config { queue: QueueLimit::Packets(0), ..ten_mbit() });
    r.inject(Link::IN, packet(1, 1500)).inject(Link::IN, packet(2, 1500));
    r.at(us(1200)).inject(Link::IN, packet(3, 1500));
    assert_eq!(stamps(&r.run_until(us(9999))), [(us(1200), 1), (us(2400), 3)]);
}

#[test]
fn the_queue_does_not_count_frames_in_flight() {
    // 60 % load: a packet of 1.2 ms every 2 ms; 500 of them in flight over 1 s, and none ever waits.
    let mut r = rig(Config { delay: Duration::from_secs(1), queue: QueueLimit::Packets(1), ..ten_mbit() });
    for n in 0..5000 {
        r.at(us(2000 * n)).inject(Link::IN, packet(0, 1500));
    }
    let sent = r.run_until(Time::from_secs(20));
    assert_eq!(sent.len(), 5000);
    for (n, s) in (0..).zip(&sent) {
        assert_eq!(s.at, us(2000 * n + 1200 + 1_000_000));
    }
    assert_eq!(r.node().stats().queue_peak_packets, 0);
    assert_eq!(r.node().stats().busy, Duration::from_secs(6));
    r.finish();
}

#[test]
fn a_lost_frame_takes_no_time_on_the_link() {
    let mut r = rig(Config { loss: Loss::every(2).unwrap(), ..ten_mbit() });
    for tag in 1..=5 {
        r.inject(Link::IN, packet(tag, 1500));
    }
    assert_eq!(stamps(&r.run_until(us(9999))), [(us(1200), 1), (us(2400), 3), (us(3600), 5)]);
    assert_eq!(r.node().stats().drops.get(DropReason::PeriodicLoss), 2);
    r.finish();
}

#[test]
fn what_the_rate_counts() {
    for (overhead, due) in [(0, 1_200_000), (Config::FRAME, 1_214_400), (Config::WIRE, 1_230_400)] {
        let mut r = rig(Config { overhead, ..ten_mbit() });
        r.inject(Link::IN, packet(0, 1500));
        assert_eq!(r.run_until(us(9999))[0].at, ns(due));
    }
}

#[test]
fn a_giant_takes_as_long_as_its_segments() {
    let mut head = vec![0; 66];
    (head[12], head[14], head[23], head[46]) = (8, 0x45, 6, 8 << 4);
    let mut r = rig(Config { queue: QueueLimit::Packets(3), ..ten_mbit() });
    // Three segments of 1,500 bytes each, three times: the third giant finds three packets waiting.
    for _ in 0..3 {
        r.inject(Link::IN, TestFrame::bytes(&head).long(66 + 3 * 1448).gso(1448));
    }
    let sent = r.run_until(Time::from_secs(1));
    assert_eq!(sent.iter().map(|s| s.at).collect::<Vec<_>>(), [us(3600), us(7200)]);
    assert_eq!((r.node().stats().packets, r.node().stats().queue_peak_packets), (6, 3));
    assert_eq!(r.node().stats().drops.total(), 1);
    r.finish();
}

/// 1,500 bytes of IPv4 with this ECN field.
fn ecn(field: u8) -> TestFrame {
    let (head, len) = SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).tos(field).payload(1460).build_head();
    TestFrame::bytes(&head).long(len)
}

fn marked(sent: &[Sent]) -> Vec<bool> {
    sent.iter().map(|s| s.bytes[15] & 3 == 3).collect()
}

/// DCTCP, §3.1: marked is what finds more than K in the queue.
#[test]
fn packets_that_find_more_than_the_threshold_waiting_are_marked() {
    // 3,000 bytes either way, 10 Mb/s × 2.4 ms.
    let bdp = QueueLimit::Bdp { rtt: Duration::from_micros(2400) };
    for mark in [QueueLimit::Packets(2), QueueLimit::Bytes(3000), bdp] {
        let mut r = rig(Config { mark: Some(mark), queue: QueueLimit::Packets(5), ..ten_mbit() });
        // One is served; the next find 0, 1, 2, 3 and 4 waiting; the last is dropped, not marked.
        for _ in 0..7 {
            r.inject(Link::IN, ecn(0b10));
        }
        // At 1.2 ms one has left the queue and 4 wait; until 4.8 ms 3 do; from 6 ms on 2, that one included.
        r.at(us(1200)).inject(Link::IN, ecn(0b01));
        r.at(ns(4_799_999)).inject(Link::IN, ecn(0b10)).at(us(6000)).inject(Link::IN, ecn(0b10));
        let sent = r.run_until(Time::from_secs(1));
        let expected = [false, false, false, false, true, true, true, true, false];
        assert_eq!(marked(&sent), expected, "{mark:?}");
        assert_eq!(r.node().stats().marks, 4);
        r.finish();
    }
}

#[test]
fn only_ecn_capable_packets_are_marked() {
    let mut r = rig(Config { mark: Some(QueueLimit::Packets(0)), ..ten_mbit() });
    // The second finds one being served and none waiting.
    for field in [0b10, 0b10, 0b00, 0b01, 0b11, 0b10] {
        r.inject(Link::IN, ecn(field));
    }
    let fields: Vec<u8> = r.run_until(Time::from_secs(1)).iter().map(|s| s.bytes[15] & 3).collect();
    assert_eq!(fields, [0b10, 0b10, 0b00, 0b11, 0b11, 0b11]);
    assert_eq!(r.node().stats().marks, 2);
}

#[test]
fn a_frame_on_a_port_that_is_none_is_dropped() {
    let mut r = rig(Config::default());
    r.inject(Link::OUT, packet(0, 46)).run_until(us(1));
    assert_eq!(r.frames().drops().get(DropReason::NotWired), 1);
    r.finish();
}

#[test]
fn a_closed_port_does_not_hold_up_the_other_direction() {
    let back = Config { delay: Duration::from_millis(1), ..ten_mbit() };
    let mut r = Rig::new(Path::new(ten_mbit(), back));
    r.close(Path::WAN, ns(0), us(10_000));
    for tag in 1..=2 {
        r.inject(Path::LAN, packet(tag, 1500)).inject(Path::WAN, packet(tag + 10, 1500));
    }
    let sent = r.run_until(us(9999));
    assert_eq!(stamps(&sent), [(us(2200), 11), (us(3400), 12)]);
    assert!(sent.iter().all(|s| s.port == Path::LAN));
    let sent = r.run_until(us(10_000));
    assert_eq!(stamps(&sent), [(us(1200), 1), (us(2400), 2)]);
    assert!(sent.iter().all(|s| s.port == Path::WAN));
    r.finish();
}

#[test]
fn a_frame_that_waits_for_its_port_hides_no_deadline() {
    let mut frames = crate::frame::Frames::new(4, 128, 0);
    let mut path = Path::new(ten_mbit(), Config { delay: Duration::from_millis(9), ..ten_mbit() });
    for port in [Path::LAN, Path::WAN] {
        let f = frames.receive_copy(&[0; 60], 1514, ns(0)).unwrap();
        path.handle_frame(&mut Cx { now: ns(0), frames: &mut frames }, port, f);
    }
    let open = PortSet::ALL.without(Path::WAN);
    assert_eq!(path.next_deadline(PortSet::ALL), Some(us(1200)));
    assert_eq!(path.poll_transmit(&mut Cx { now: us(1200), frames: &mut frames }, open), None);
    assert_eq!(path.next_deadline(PortSet::ALL), Some(us(1200)));
    assert_eq!(path.next_deadline(open), Some(us(10_200)));
}

#[test]
fn what_is_left_of_a_frame_is_sent_at_the_new_rate() {
    let mut r = rig(ten_mbit());
    r.inject(Link::IN, packet(1, 1500)).inject(Link::IN, packet(2, 1500)).inject(Link::IN, packet(3, 1500));
    assert_eq!(r.run_until(us(600)).len(), 0);
    // Half of the first, 6,000 bits, is left: 6 ms at 1 Mb/s. The second takes 12 ms.
    r.with_cx(|link, cx| link.set_rate(cx, Rate::mbit(1)));
    assert_eq!(stamps(&r.run_until(us(12_600))), [(us(6600), 1)]);
    // Half of the second is left again, 60 us at 100 Mb/s; then 120 us.
    r.with_cx(|link, cx| link.set_rate(cx, Rate::mbit(100)));
    assert_eq!(stamps(&r.run_until(us(99_999))), [(us(12_660), 2), (us(12_780), 3)]);
    assert_eq!(r.node().stats().busy, us(12_780).since(Time::ZERO));
    assert_eq!(r.node().config().rate, Some(Rate::mbit(100)));
    r.finish();
}

#[test]
fn fractions_of_a_nanosecond_outlive_a_change_of_rate() {
    let mut r = rig(Config { rate: Some(Rate::mbit(7)), ..Config::default() });
    for tag in 1..=3 {
        r.inject(Link::IN, packet(tag, 1500));
    }
    r.run_until(us(1000));
    // Of 12,000 bits 7,000 are gone; 5,000 at 3 Mb/s take 1,666,666 2/3 ns, and each of the others 4 ms.
    r.with_cx(|link, cx| link.set_rate(cx, Rate::mbit(3)));
    assert_eq!(stamps(&r.run_until(us(7000))), [(ns(2_666_666), 1), (ns(6_666_666), 2)]);
    // 333,333 1/3 ns at 3 Mb/s are 1,000 bits of the third. 11,000 at 9 Mb/s take 1,222,222 2/9 ns.
    r.with_cx(|link, cx| link.set_rate(cx, Rate::mbit(9)));
    assert_eq!(stamps(&r.run_until(us(9999))), [(ns(8_222_222), 3)]);
    r.finish();
}

#[test]
fn tokens_that_have_come_together_outlive_a_change_of_rate() {
    // A byte per microsecond. 1,000 of 1,500 bytes have come together 1 ms after the bucket was emptied.
    let rate = Some(Rate::mbit(8));
    let mut r = rig(Config { rate, burst: 1500, ..Config::default() });
    r.at(us(10_000)).inject(Link::IN, packet(1, 1500));
    assert_eq!(stamps(&r.run_until(us(11_000))), [(us(10_000), 1)]);
    // 250 more come each millisecond from there on, until it is full after 2 ms.
    r.with_cx(|link, cx| link.set_rate(cx, Rate::mbit(2)));
    r.at(us(12_000)).inject(Link::IN, packet(2, 1250)).inject(Link::IN, packet(3, 50));
    r.at(us(30_000)).inject(Link::IN, packet(4, 1500)).inject(Link::IN, packet(5, 50));
    let sent = stamps(&r.run_until(us(40_000)));
    assert_eq!(sent, [(us(12_000), 2), (us(12_200), 3), (us(30_000), 4), (us(30_200), 5)]);
    // A full bucket is full at any rate.
    r.with_cx(|link, cx| link.set_rate(cx, Rate::mbit(16)));
    r.inject(Link::IN, packet(6, 1500)).inject(Link::IN, packet(7, 1000));
    assert_eq!(stamps(&r.run_until(us(50_000))), [(us(40_000), 6), (us(40_500), 7)]);
    r.finish();
}

#[test]
fn a_wire_becomes_a_link_with_a_rate() {
    let mut r = rig(Config { delay: Duration::from_millis(5), ..Config::default() });
    r.inject(Link::IN, packet(1, 1500));
    r.run_until(us(1000));
    r.with_cx(|link, cx| link.set_rate(cx, Rate::mbit(10)));
    r.inject(Link::IN, packet(2, 1500)).inject(Link::IN, packet(3, 1500));
    assert_eq!(stamps(&r.run_until(us(9999))), [(us(5000), 1), (us(7200), 2), (us(8400), 3)]);
    r.finish();
}

/// Rates from the start on: at which time each begins, in nanoseconds, and bits per second.
type Rates = [(u64, u64)];

/// When the last bit of the first `bytes` has left a link that is never idle from 0 on: the time at which all that
/// the rates could send is that much, in whole nanoseconds.
fn departure(rates: &Rates, bytes: u64) -> u64 {
    let mut left = u128::from(bytes) * 8_000_000_000;
    for (i, &(from, bps)) in rates.iter().enumerate() {
        let until = rates.get(i + 1).map_or(u64::MAX, |next| next.0);
        let done = from + (left / u128::from(bps)) as u64;
        if done <= until {
            return done;
        }
        left -= u128::from(until - from) * u128::from(bps);
    }
    unreachable!("the last rate has no end")
}

/// What came in: when, a tag, IP bytes.
type Input = (u64, u8, usize);

/// A link from its definition: departures `start of busy period + floor(bits sent in it / rate)`, a frame waits
/// while another is served, and only those that wait are limited. Returns (at, tag).
fn model(inputs: &[Input], bps: u64, delay: u64, max_packets: usize, max_bytes: usize) -> Vec<(Time, u8)> {
    let (mut busy_since, mut bytes, mut done) = (0, 0, 0);
    let mut starts: Vec<(u64, usize)> = Vec::new();
    let mut out = Vec::new();
    for &(at, tag, ip) in inputs {
        let waiting: Vec<_> = starts.iter().filter(|s| s.0 > at).collect();
        let idle = done <= at;
        let full =
            waiting.len() + 1 > max_packets || waiting.iter().map(|s| s.1).sum::<usize>() + ip > max_bytes;
        if !idle && full {
            continue;
        }
        if done < at {
            (busy_since, bytes, done) = (at, 0, at);
        }
        starts.push((done, ip));
        bytes += ip as u128;
        done = busy_since + (bytes * 8_000_000_000 / u128::from(bps)) as u64;
        out.push((ns(done + delay), tag));
    }
    out
}

fn inputs() -> impl Strategy<Value = Vec<Input>> {
    // Gaps around the time of a packet, often none at all.
    let gap = prop_oneof![Just(0), 0u64..3_000_000, Just(1_200_000)];
    prop::collection::vec((gap, any::<u8>(), 46usize..=1500), 1..80).prop_map(|v| {
        let mut now = 0;
        v.into_iter().map(|(gap, tag, ip)| ((now += gap, now).1, tag, ip)).collect()
    })
}

proptest! {
    #[test]
    fn a_link_does_what_its_definition_says(
        inputs in inputs(), bps in 1_000_000u64..50_000_000, delay in 0u64..20_000_000,
        packets in 0u32..6, bytes in 0u64..6000, by_bytes: bool, late in 1u64..10_000_000,
    ) {
        let (queue, max_packets, max_bytes) = match by_bytes {
            true => (QueueLimit::Bytes(bytes), usize::MAX, bytes as usize),
            false => (QueueLimit::Packets(packets), packets as usize, usize::MAX),
        };
        let expected = model(&inputs, bps, delay, max_packets, max_bytes);
        let config = Config { rate: Rate::from_bps(bps), delay: Duration::from_nanos(delay), queue, ..Config::default() };
        let late = Duration::from_nanos(late);
        for wake in [Wake::Exact, Wake::Late(late), Wake::Lazy(late)] {
            let mut r = rig(config).wake(wake);
            for &(at, tag, ip) in &inputs {
                r.at(ns(at)).inject(Link::IN, packet(tag, ip));
            }
            let sent = r.run_until(Time::from_secs(60));
            prop_assert_eq!(stamps(&sent), expected.clone(), "{:?}", wake);
            let ledger = r.node().ledger();
            prop_assert_eq!(ledger.received, inputs.len() as u64);
            prop_assert_eq!(ledger.sent, expected.len() as u64);
            prop_assert_eq!(ledger.held(), 0);
            r.finish();
        }
    }

    #[test]
    fn departures_are_exact_however_often_the_rate_changes(
        sizes in prop::collection::vec(46usize..=1500, 1..40),
        changes in prop::collection::vec((1u64..5_000_000, 1_000_000u64..40_000_000), 0..12),
    ) {
        let mut now = 0;
        let later = changes.into_iter().map(|(gap, bps)| ((now += gap, now).1, bps));
        let rates: Vec<(u64, u64)> = [(0, 10_000_000)].into_iter().chain(later).collect();
        let mut r = rig(Config { queue: QueueLimit::Unlimited, ..ten_mbit() });
        sizes.iter().for_each(|&ip| { r.inject(Link::IN, packet(0, ip)); });
        let mut sent = Vec::new();
        for &(at, bps) in &rates {
            sent.extend(r.run_until(ns(at)));
            r.with_cx(|link, cx| link.set_rate(cx, Rate::from_bps(bps).unwrap()));
        }
        sent.extend(r.run_until(Time::from_secs(60)));
        let mut bytes = 0;
        for (&ip, sent) in sizes.iter().zip(&sent) {
            bytes += ip as u64;
            prop_assert_eq!(sent.at, ns(departure(&rates, bytes)));
        }
        prop_assert_eq!(sent.len(), sizes.len());
        r.finish();
    }

    #[test]
    fn a_path_loses_nothing_unaccounted_whatever_its_ports_do(
        inputs in inputs(), late in 1u64..5_000_000, trillionths in 0u64..500_000_000_000,
        shut in prop::collection::vec((0u8..2, 0u64..50_000_000, 0u64..20_000_000), 0..4),
    ) {
        let loss = Loss::Random { trillionths };
        let out = Config { loss, queue: QueueLimit::Packets(3), seed: 1, ..ten_mbit() };
        let back = Config { loss, seed: 2, delay: Duration::from_micros(700), ..ten_mbit() };
        let late = Duration::from_nanos(late);
        let mut runs = Vec::new();
        for wake in [Wake::Exact, Wake::Late(late), Wake::Lazy(late)] {
            let mut r = Rig::new(Path::new(out, back)).wake(wake);
            for &(at, tag, ip) in &inputs {
                r.at(ns(at)).inject(Port(tag % 2), packet(tag, ip));
            }
            for &(port, from, len) in &shut {
                r.close(Port(port), ns(from), ns(from + len));
            }
            let mut sent = r.run_until(Time::from_secs(60));
            prop_assert_eq!(r.node().out().ledger().received + r.node().back().ledger().received, inputs.len() as u64);
            r.finish();
            // Which port is served first when both open late differs; each port's timeline does not.
            sent.sort_by_key(|s| s.port);
            runs.push(sent);
        }
        prop_assert_eq!(&runs[0], &runs[1]);
        prop_assert_eq!(&runs[0], &runs[2]);
    }
}
