//! Timelines computed by hand, exact to the nanosecond, and a model.

mod changes;
mod late;
mod marks;
mod model;
mod pipe;
mod traced;
mod twice;

use super::*;
use crate::rig::{Rig, Sent, TestFrame, Wake};
use crate::wire::build::SegmentBuilder;

/// An input: time, tag, IP bytes.
type Input = (u64, u8, usize);

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

/// 1540 bytes are 33 cells of 48, 100 are 3. They are 24.06 and 1.56 codewords of PTM.
#[test]
fn the_rate_counts_cells() {
    for (cells, full, small) in [(Cells::None, 1540, 100), (Cells::Atm, 1749, 159), (Cells::Ptm, 1565, 102)] {
        let config = Config { rate: Rate::from_bps(53_000_000), overhead: 40, cells, ..Config::default() };
        let mut r = rig(config);
        r.at(us(0)).inject(Link::IN, packet(1, 1500)).inject(Link::IN, packet(2, 60));
        let after = |bytes| Time::ZERO + Rate::from_bps(53_000_000).unwrap().time_for(bytes);
        assert_eq!(stamps(&r.run_until(us(1000))), [(after(full), 1), (after(full + small), 2)], "{cells:?}");
        assert_eq!((config.bytes(1500), config.bytes(60)), (full, small));
        r.finish();
    }
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
    // 8 Mbit/s are a byte per microsecond. The bucket holds 2,500 bytes and is full at the start. Two of six
    // packets of 1,000 bytes leave at once, and half of the third is covered. Then one leaves each
    // millisecond.
    let rate = Some(Rate::mbit(8));
    let mut r = rig(Config { rate, burst: 2_500, ..Config::default() });
    for tag in 1..=6 {
        r.at(us(10_000)).inject(Link::IN, packet(tag, 1000));
    }
    // 1.2 ms after the last one left, 1,200 bytes are collected: one packet, and a fifth of the next.
    for tag in 7..=8 {
        r.at(us(14_700)).inject(Link::IN, packet(tag, 1000));
    }
    let sent = stamps(&r.run_until(Time::from_secs(1)));
    let want = [10_000, 10_000, 10_500, 11_500, 12_500, 13_500, 14_700, 15_500].map(us);
    assert_eq!(sent.iter().map(|s| s.0).collect::<Vec<_>>(), want);
    r.finish();
}

#[test]
fn a_timer_lets_what_has_its_tokens_leave_together() {
    // As above, with a timer of 4 ms: the third packet has its tokens at 10.5 ms and leaves at 12 ms, with
    // the fourth, which had them at 11.5 ms. The fifth has them at 12.5 ms, and waits for the next tick with
    // the sixth. From 13.5 ms until 17 ms the bucket fills with all it holds, so two leave when they come;
    // the third of them lacks 500 bytes at 17 ms.
    let (rate, timer) = (Some(Rate::mbit(8)), Duration::from_millis(4));
    let mut r = rig(Config { rate, burst: 2_500, timer, ..Config::default() });
    for tag in 1..=6 {
        r.at(us(10_000)).inject(Link::IN, packet(tag, 1000));
    }
    for tag in 7..=9 {
        r.at(us(17_000)).inject(Link::IN, packet(tag, 1000));
    }
    let sent = stamps(&r.run_until(Time::from_secs(1)));
    let want = [10_000, 10_000, 12_000, 12_000, 16_000, 16_000, 17_000, 17_000, 20_000].map(us);
    assert_eq!(sent.iter().map(|s| s.0).collect::<Vec<_>>(), want);
    // 9,000 bytes at a byte a microsecond, whatever the bucket and the timer.
    assert_eq!(r.node().stats().busy, Duration::from_millis(9));
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
    // One in service, two waiting, one refused. At 1.2 ms the first is gone and one more fits.
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
    // 60 % load: a packet of 1.2 ms every 2 ms. 500 of them are in flight over 1 s, and none ever waits.
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
