use super::*;
use crate::world::World;
use proptest::prelude::*;
use std::net::SocketAddrV4;
use weir_core::dist::Distribution;
use weir_core::frame::{Checksum, Frames};
use weir_core::link::{Config, Link, Loss};
use weir_core::node::{Node, PortSet};
use weir_core::rate::Rate;
use weir_core::rig::{Rig, Sent, TestFrame, Wake};
use weir_core::stats::DropReason;
use weir_core::time::{Duration, Time};
use weir_core::wire::build::SegmentBuilder;

fn at(host: u8, port: u16) -> SocketAddrV4 {
    SocketAddrV4::new([10, 0, 0, host].into(), port)
}

fn ms(n: u64) -> Time {
    Time::from_millis(n)
}

/// Returns a source of 1,250 bytes every millisecond, without end.
fn config() -> UdpConfig {
    UdpConfig {
        mac: [2, 0, 0, 0, 0, 1],
        next_hop: [2, 0, 0, 0, 0, 2],
        local: at(1, 7000),
        remote: at(2, 7001),
        rate: Rate::mbit(10),
        datagram: 1250,
        start: Time::ZERO,
        until: Time::MAX,
        bytes: None,
        on_off: None,
        dscp: 0,
        seed: 1,
    }
}

fn sink() -> UdpSink {
    UdpSink::new(at(2, 7001), at(1, 7000), Duration::from_millis(10), Time::MAX)
}

fn times(sent: &[Sent]) -> Vec<Time> {
    sent.iter().map(|s| s.at).collect()
}

#[test]
fn datagrams_are_on_rate_and_their_headers_right() {
    let mut rig = Rig::new(UdpSource::new(UdpConfig { start: ms(3), until: ms(6), ..config() }));
    let sent = rig.run_until(ms(10));
    assert_eq!(times(&sent), [ms(3), ms(4), ms(5)]);
    for (n, s) in (0u64..).zip(&sent) {
        // The frame equals, byte for byte, that of the tests' builder with a payload of zeros.
        let mut payload = [0; 1250];
        payload[..8].copy_from_slice(&n.to_be_bytes());
        payload[8..16].copy_from_slice(&((3 + n) * 1_000_000).to_be_bytes());
        let whole =
            SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).ports(7000, 7001).udp().data(&payload).build();
        assert_eq!((&s.bytes[..], s.len), (&whole[..58], 14 + 20 + 8 + 1250));
        assert_eq!(s.checksum, Checksum::Valid);
    }
    assert_eq!((rig.node().datagrams(), rig.node().bytes()), (3, 3750));
    rig.finish();
}

#[test]
fn the_last_datagram_has_the_rest() {
    let mut rig = Rig::new(UdpSource::new(UdpConfig { bytes: Some(2505), ..config() }));
    let sent = rig.run_until(ms(100));
    let lens: Vec<_> = sent.iter().map(|s| (s.at, s.len - 42)).collect();
    assert_eq!(lens, [(ms(0), 1250), (ms(1), 1250), (ms(2), 5)]);
    assert_eq!(sent[2].bytes[18..20], [0, 2], "the IP identification numbers short datagrams");
    let nothing = UdpSource::new(UdpConfig { bytes: Some(0), ..config() });
    assert_eq!(nothing.next_deadline(PortSet::ALL), None);
}

#[test]
fn time_off_does_not_count() {
    // The source is on for 2.5 ms and off for 7. Datagrams leave at 0, 1 and 2 ms, and the next one half a
    // millisecond into the next on time, at 9.5 ms. One would be due at the end of it, 12 ms, and is the
    // first of the on time at 19 ms.
    let on_off = Some((Distribution::Constant(2_500_000), Distribution::Constant(7_000_000)));
    let mut rig = Rig::new(UdpSource::new(UdpConfig { on_off, ..config() }));
    let us: Vec<_> = times(&rig.run_until(ms(29))).iter().map(|t| t.as_nanos() / 1000).collect();
    assert_eq!(us, [0, 1000, 2000, 10_000, 11_000, 19_000, 20_000, 21_000, 29_000]);
}

#[test]
fn what_is_drawn_is_the_seeds() {
    let run = |seed| {
        let drawn = || Distribution::Uniform { min: 1, max: 5_000_000 };
        let config = UdpConfig { on_off: Some((drawn(), drawn())), seed, until: ms(500), ..config() };
        times(&Rig::new(UdpSource::new(config)).run_until(ms(500)))
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    // The source is on half of the time on average, so it sends 250 of 500 datagrams. The bounds are ten
    // standard deviations of the on time.
    assert!((150..350).contains(&run(1).len()), "{}", run(1).len());
}

#[test]
fn a_source_takes_no_frames() {
    let mut rig = Rig::new(UdpSource::new(UdpConfig { bytes: Some(0), ..config() }));
    rig.inject(WIRE, &[0; 60]).run_until(ms(1));
    assert_eq!(rig.frames().drops().get(DropReason::NotWired), 1);
    rig.finish();
}

#[test]
fn over_a_lossy_link_the_sink_counts_what_is_missing() {
    let mut world = World::new();
    let source = world.add(UdpSource::new(UdpConfig { until: ms(100), ..config() }));
    let lossy =
        Config { loss: Loss::every(10).unwrap(), delay: Duration::from_millis(5), ..Config::default() };
    let (link, sink) = (world.add(Link::new(lossy)), world.add(sink()));
    world.wire((source, WIRE), (link, Link::IN));
    world.wire((link, Link::OUT), (sink, WIRE));
    world.run_until(ms(1000));
    let report = world.get::<UdpSink>(sink).unwrap().report().clone();
    // There are 100 datagrams, and every tenth is lost. The last loss is above the highest number received.
    assert_eq!((report.datagrams, report.received), (90, 90 * 1250));
    assert_eq!((report.lost, report.reordered, report.last_received), (9, 0, Some(ms(103))));
    // They arrived from 5 ms on, one a millisecond, without those sent at 9, 19, 29 ms and so on.
    let bins: Vec<_> = report.bins.iter().map(|b| b / 1250).collect();
    assert_eq!(bins, [5, 9, 9, 9, 9, 9, 9, 9, 9, 9, 4]);
    assert_eq!(world.finish().held(), 0);
}

/// Returns a rig with a small pool, for tests that make many.
fn small<N: Node>(node: N) -> Rig<N> {
    Rig::with_pool(node, Frames::new(64, 128, 0))
}

/// Returns the source's datagram number `n`, with this payload length.
fn datagram(n: u16, payload: u16) -> TestFrame {
    let mut source = UdpSource::new(UdpConfig { datagram: payload, ..config() });
    source.skip_to(u64::from(n));
    let mut rig = small(source);
    let sent = rig.run_until(ms(0)).remove(0);
    TestFrame::bytes(&sent.bytes).long(sent.len)
}

#[test]
fn late_datagrams_are_reordered_not_lost() {
    for payload in [7, 8] {
        let mut rig = Rig::new(sink());
        for n in [0, 2, 1, 5, 3] {
            rig.inject(WIRE, datagram(n, payload));
        }
        rig.run_until(ms(0));
        let report = rig.node().report();
        assert_eq!((report.datagrams, report.lost, report.reordered), (5, 1, 2), "{payload} bytes");
        rig.finish();
    }
}

#[test]
fn copies_are_neither_received_nor_reordered() {
    let mut rig = Rig::new(sink());
    // 0 and 3 twice, 1 late and again, 2 never.
    for n in [0, 0, 3, 1, 1, 3] {
        rig.inject(WIRE, datagram(n, 8));
    }
    rig.run_until(ms(0));
    let r = rig.node().report();
    assert_eq!((r.datagrams, r.copies, r.lost, r.reordered, r.received), (3, 3, 1, 1, 24));
    rig.finish();
}

#[test]
fn short_datagrams_are_numbered_beyond_16_bits() {
    let mut rig = Rig::new(sink());
    for n in [0u16, 30_000, 60_000, 65_535, 1, 0] {
        rig.inject(WIRE, datagram(n, 4));
    }
    rig.run_until(ms(0));
    // The numbers are 0, 30,000, 60,000, 65,535, 65,537 and 65,536. Six of 65,538 arrived, one of them late.
    assert_eq!((rig.node().report().lost, rig.node().report().reordered), (65_538 - 6, 1));
}

#[test]
fn strangers_are_dropped() {
    let mut rig = Rig::new(sink());
    let other = |s: SegmentBuilder| s.udp().payload(20).build();
    rig.inject(WIRE, other(SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).ports(7000, 7002)));
    rig.inject(WIRE, other(SegmentBuilder::v4([10, 0, 0, 3], [10, 0, 0, 2]).ports(7000, 7001)));
    rig.inject(WIRE, SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).ports(7000, 7001).build());
    rig.inject(WIRE, [1, 2, 3].to_vec());
    rig.run_until(ms(0));
    assert_eq!(*rig.node().report(), UdpReport::default());
    assert_eq!(rig.frames().drops().get(DropReason::NotWired), 4);
    rig.finish();
}

proptest! {
    /// Verifies that datagram n leaves at start + n × payload / rate, rounded down to the nanosecond, for any
    /// times of waking.
    #[test]
    fn the_rate_is_exact(bps in 1_000_000u64..10_000_000_000, datagram in 8u16..1472, start in 0u64..1_000_000,
                         late in 1u64..5_000_000) {
        let rate = Rate::from_bps(bps).unwrap();
        let config = UdpConfig {
            rate, datagram, start: Time::from_nanos(start), bytes: Some(u64::from(datagram) * 300), ..config()
        };
        let due = |n: u64| start + (u128::from(n) * u128::from(datagram) * 8_000_000_000 / u128::from(bps)) as u64;
        let expected: Vec<_> = (0..300).map(due).collect();
        for wake in [Wake::Exact, Wake::Late(Duration::from_nanos(late)), Wake::Lazy(Duration::from_nanos(late))] {
            let mut rig = small(UdpSource::new(config.clone())).wake(wake);
            let sent = rig.run_until(Time::from_secs(1000));
            let got: Vec<_> = sent.iter().map(|s| s.at.as_nanos()).collect();
            prop_assert_eq!(&got, &expected);
            rig.finish();
        }
    }

    /// Verifies that a sink counts or drops any input.
    #[test]
    fn garbage_is_counted_or_dropped(frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..60), 1..20),
                                     flips in prop::collection::vec((0usize..50, any::<u8>()), 1..20)) {
        let mut rig = small(sink());
        frames.into_iter().for_each(|f| { rig.inject(WIRE, f); });
        for (i, byte) in flips {
            let mut given = datagram(1, 100);
            given.head[i] = byte;
            rig.inject(WIRE, given);
        }
        rig.run_until(ms(0));
        rig.finish();
    }
}
