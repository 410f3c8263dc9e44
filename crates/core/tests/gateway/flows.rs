//! Which flows the gateway controls, and as what it takes them up.

use crate::support::*;
use weir_core::gateway::{PassReason, Verdict, LAN, WAN};
use weir_core::time::Time;
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::Flags;

/// 10 Mb/s every 10 ms without detection: 12,500 bytes a step.
const STEP: u32 = 12_500;

#[test]
fn flows_that_must_not_be_touched_say_why() {
    let options: [(&dyn Fn(SegmentBuilder) -> SegmentBuilder, PassReason); 5] = [
        (&|s| s.mptcp(), PassReason::Mptcp),
        (&|s| s.ao(), PassReason::TcpAo),
        (&|s| s.md5(), PassReason::TcpMd5),
        (&|s| s.option(200, &[0; 14]), PassReason::UnknownOption),
        (&|s| s.option(19, &[0; 3]), PassReason::Malformed),
    ];
    for (option, reason) in options {
        let mut w = Net::established(basic());
        w.ack_at(ms(1_000), 50_000);
        let seg = option(w.ack_segment(60_000));
        let before = seg.build();
        w.inject_at(ms(1_002), WAN, seg);
        w.ack_at(ms(1_003), 90_000);
        let sent = w.run(ms(2_000));
        // What was held goes first, then everything as it comes.
        assert_eq!(
            numbers(&sent),
            [(ms(1_000), STEP), (ms(1_002), 50_000), (ms(1_002), 60_000), (ms(1_003), 90_000)],
            "{reason:?}"
        );
        assert_eq!(sent[2].bytes, before);
        assert_eq!(w.rig.node().flows().next().unwrap().pass, Some(reason));
        assert!(w.rig.node_mut().verdicts(usize::MAX).any(|v| matches!(v, Verdict::Pass { .. })));
        w.finish();
    }
}

#[test]
fn a_flow_taken_up_in_midstream_is_shaped() {
    let mut w = Net::new(basic(), None);
    for n in 0..4u32 {
        w.ack_at(ms(997 + u64::from(n)), 7_000 + n * 1_000);
    }
    w.ack_at(ms(1_001), 60_000);
    let sent = w.run(ms(1_100));
    let n = numbers(&sent);
    assert_eq!(n[3], (ms(1_000), 10_000), "the first, and three that advance, pass as they came");
    assert_eq!(&n[4..6], [(ms(1_001), 10_000 + STEP), (ms(1_011), 10_000 + 2 * STEP)]);
    // Without the scale the right edge cannot be judged: a smaller field goes with its own number.
    let smaller = w.ack_segment(200_000).window(WINDOW - 1);
    w.inject_at(ms(1_200), WAN, smaller);
    w.ack_at(ms(1_201), 300_000);
    let smaller = w.ack_segment(310_000).window(WINDOW - 2);
    w.inject_at(ms(1_202), WAN, smaller);
    let sent = w.run(ms(1_500));
    let mut told: Vec<(u32, u16)> = sent.iter().map(|s| (w.rel(s), w.tcp(s).window)).collect();
    let first = told.remove(0);
    let (last, before) = told.split_last().unwrap();
    // Half steps behind the first, which was told early, up to the number of the last larger field.
    assert_eq!(first, (200_000, WINDOW - 1));
    assert_eq!((*last, before.last().unwrap().0), ((310_000, WINDOW - 2), 200_000 + 16 * STEP / 2));
    assert!(before.iter().all(|t| t.1 == WINDOW), "{told:?}");
}

#[test]
fn pseudo_header_sums_are_completed_and_wrong_ones_passed() {
    use weir_core::frame::Checksum;
    use weir_core::wire::build::Sum;
    let mut w = Net::established(basic());
    let seg = w.ack_segment(50_000).checksum(Sum::Partial);
    w.inject_at(ms(1_000), WAN, seg);
    let seg = w.ack_segment(50_000).payload(60).checksum(Sum::Partial);
    w.inject_at(ms(1_001), WAN, seg);
    let wrong = w.ack_segment(80_000).checksum(Sum::Wrong);
    let as_built = wrong.build();
    w.inject_at(ms(1_002), WAN, wrong);
    let sent = w.run(ms(1_002));
    assert_eq!(sent[0].checksum, Checksum::Valid, "made here, complete");
    assert_eq!(sent[1].checksum, Checksum::Partial, "the port completes it");
    assert_eq!(sent[2].bytes, as_built, "untouched");
    assert_eq!(w.rig.node().stats().passed[PassReason::BadChecksum as usize], 1);
    // What the bad one claimed is not believed.
    assert_eq!(numbers(&w.run(ms(2_000))).last().unwrap().1, 50_000);
}

#[test]
fn port_reuse_starts_anew() {
    let mut w = Net::established(basic());
    w.ack_at(ms(1_000), 50_000);
    w.run(ms(1_001));
    w.handshake_at(ms(1_002), 7_000_000, 900_000);
    let sent = w.run(ms(1_003));
    // Nothing is said in the old connection's name any more.
    assert_eq!(sent.iter().filter(|s| s.port == LAN).count(), 1);
    assert_eq!(w.raw_ack(&sent, 0), 7_000_001);
    let flow = w.rig.node().flows().next().unwrap();
    assert_eq!((flow.held_bytes, flow.debt_bytes), (0, 0));
}

#[test]
fn a_syn_flood_leaves_running_flows_alone() {
    let mut config = config(basic());
    config.max_flows = 64;
    let mut w = Net::with_config(config, None);
    w.handshake();
    w.ack_at(ms(1_000), 1_000);
    for n in 0..10_000u16 {
        let syn = weir_core::wire::build::SegmentBuilder::v4([10, 9, (n >> 8) as u8, n as u8], [10, 0, 1, 1])
            .ports(1_000 + n, 80)
            .seq(1)
            .flags(Flags::SYN);
        w.inject_at(Time::from_micros(1_000_100 + u64::from(n)), LAN, syn);
    }
    w.ack_at(ms(1_100), 50_000);
    let sent = w.run(ms(1_200));
    let acks: Vec<_> = sent.iter().filter(|s| s.port == LAN).map(|s| (s.at, w.rel(s))).collect();
    assert_eq!(
        acks[1..],
        [
            (ms(1_100), 1_000 + STEP),
            (ms(1_110), 1_000 + 2 * STEP),
            (ms(1_120), 1_000 + 3 * STEP),
            (ms(1_130), 50_000)
        ]
    );
    assert!(w.rig.node().stats().flows <= 64);
}

#[test]
fn ipv6_and_vlans() {
    for tags in 0..=2usize {
        let mut w = Net::v6(basic(), tags);
        w.ack_at(ms(1_000), 30_000);
        let sent = w.run(ms(1_100));
        assert_eq!(numbers(&sent), [(ms(1_000), STEP), (ms(1_010), 2 * STEP), (ms(1_020), 30_000)]);
        w.check_sums(&sent);
        assert_eq!(w.packet(&sent[0]).vlan.count as usize, tags);
        assert_eq!(w.packet(&sent[0]).version, 6);
    }
}
