//! Flows that the gateway controls, and the state in which it takes them up.

use crate::support::*;
use weir_core::gateway::{PassReason, LAN, WAN};
use weir_core::time::Time;
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::Flags;

/// 10 Mb/s every 10 ms without detection: 12,500 bytes a step.
const STEP: u32 = 12_500;

type Change<'a> = &'a dyn Fn(SegmentBuilder) -> SegmentBuilder;

/// Segments in whose place no ACK can be made, and why.
const ODD: [(Change, PassReason); 7] = [
    (&|s| s.mptcp(), PassReason::Mptcp),
    (&|s| s.ao(), PassReason::TcpAo),
    (&|s| s.md5(), PassReason::TcpMd5),
    (&|s| s.option(200, &[0; 14]), PassReason::UnknownOption),
    (&|s| s.option(19, &[0; 3]), PassReason::Malformed),
    (&|s| s.raw_options(&[8, 40, 1, 1]), PassReason::Malformed),
    (&|s| s.ip_options(&[1; 4]), PassReason::IpOptions),
];

fn pass(w: &Net) -> Option<PassReason> {
    w.rig.node().flows.flows().next().unwrap().pass
}

#[test]
fn an_odd_segment_passes_and_its_flow_stays_controlled() {
    for (odd, reason) in ODD {
        let mut w = Net::established(basic());
        w.ack_at(ms(1_000), 50_000);
        let segment = odd(w.ack_segment(60_000));
        let before = segment.build();
        w.inject_at(ms(1_002), WAN, segment);
        w.ack_at(ms(1_003), 90_000);
        let sent = w.run(ms(1_030));
        // It passes as it came, and so nothing is held for a moment. The 47,500 bytes that it told early are
        // repaid, less what two milliseconds have earned: half steps.
        let at = |n: u64| Time::from_micros(1_002_500 + 10_000 * n);
        let steps = [1, 2].map(|n| (at(n), 60_000 + n as u32 * STEP / 2));
        assert_eq!(
            numbers(&sent),
            [(ms(1_000), STEP), (ms(1_002), 60_000), steps[0], steps[1]],
            "{reason:?}"
        );
        assert_eq!(sent[1].bytes, before);
        assert_eq!((pass(&w), w.rig.node().flows.stats().passed[reason as usize]), (None, 1));
        w.run(ms(5_000));
        w.finish();
    }
}

#[test]
fn a_flow_with_many_odd_segments_passes_until_it_is_clean() {
    for (odd, reason) in ODD {
        let mut w = Net::established(basic());
        w.ack_at(ms(1_000), 50_000);
        for n in 0..4 {
            let segment = odd(w.ack_segment(50_000));
            w.inject_at(ms(1_001 + n), WAN, segment);
        }
        w.run(ms(1_005));
        assert_eq!(pass(&w), Some(reason));
        // The fourth was the last; seven that are not odd pass, and with the eighth the flow is controlled.
        for n in 1..=10u32 {
            w.ack_at(ms(1_010 + u64::from(n)), 50_000 + n * 50_000);
        }
        let sent = numbers(&w.run(ms(1_019)));
        let passed = (1..=7).map(|n| (ms(1_010 + n), 50_000 + n as u32 * 50_000)).collect::<Vec<_>>();
        assert!(passed.iter().all(|ack| sent.contains(ack)), "{reason:?}: {sent:?}");
        assert_eq!((pass(&w), sent.last()), (None, passed.last()));
        w.run(ms(100_000));
        assert_eq!(w.all_numbers().last(), Some(&550_000));
        w.finish();
    }
}

/// Odd segments seldom enough that the flow does not pass for them may not carry it ahead of its rate for
/// long either.
#[test]
fn what_odd_segments_tell_early_is_bounded() {
    let mut w = Net::established(basic());
    // 32 Mbit/s at 10, and one of five is odd: within a second or two that is 2 s of the rate ahead.
    let mut passes = None;
    for n in 1..=4_000u32 {
        let ack = w.ack_segment(4_000 * n);
        let ack = if n % 5 == 0 { ack.option(253, &[0, 1]) } else { ack };
        w.inject_at(ms(1_000 + u64::from(n)), WAN, ack);
        w.run(ms(1_000 + u64::from(n)));
        if pass(&w).is_some() {
            passes.get_or_insert(n);
        }
    }
    // 4,000 bytes a millisecond of which 1,250 are repaid at most: 2,500,000 bytes in 625 to 910 ms.
    assert!(passes.is_some_and(|n| (620..=920).contains(&n)), "{passes:?}");
}

#[test]
fn an_extension_is_the_connection_s_if_both_syns_have_it() {
    const SYN_ACK: Flags = Flags(Flags::SYN.0 | Flags::ACK.0);
    for (odd, reason) in &ODD[..3] {
        for (asks, answers) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut w = Net::new(basic(), None);
            let change = |s: SegmentBuilder, on: bool| if on { odd(s) } else { s };
            let syn = w.data_segment(0).seq(SENDER_ISN).ack(0).flags(Flags::SYN).mss(1460).window_scale(7);
            w.inject_at(ms(0), LAN, change(syn.clone(), asks));
            // It is sent again without, as a sender that wants the flow to pass would do.
            w.inject_at(ms(1), LAN, syn);
            let answer = w.ack_segment(0).seq(RECEIVER_ISN).flags(SYN_ACK).mss(1460).window_scale(7);
            w.inject_at(ms(20), WAN, change(answer, answers));
            w.run(ms(20));
            assert_eq!(pass(&w), (asks && answers).then_some(*reason));
        }
    }
}

#[test]
fn an_extension_that_all_segments_in_midstream_have_is_the_connection_s() {
    for (odd, reason) in &ODD[..3] {
        let mut w = Net::new(basic(), None);
        for n in 1..=4u32 {
            let segment = odd(w.ack_segment(1_000 * n));
            w.inject_at(ms(u64::from(n)), WAN, segment);
            w.run(ms(u64::from(n)));
            assert_eq!(pass(&w), (n == 4).then_some(*reason));
        }
        // The same of a flow that was taken up before, after eight; but not where a handshake said something
        // else.
        for (mut w, for_good) in [(Net::new(basic(), None), true), (Net::established(basic()), false)] {
            (1..=5).for_each(|n| w.ack_at(ms(1_000 + n), 1_000 * n as u32));
            for n in 6..=13u32 {
                let segment = odd(w.ack_segment(1_000 * n));
                w.inject_at(ms(1_000 + u64::from(n)), WAN, segment);
            }
            w.run(ms(1_013));
            assert_eq!(pass(&w), Some(*reason));
            (14..=40).for_each(|n| w.ack_at(ms(1_000 + n), 1_000 * n as u32));
            w.run(ms(1_050));
            assert_eq!(pass(&w), for_good.then_some(*reason));
        }
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
    assert_eq!(w.rig.node().flows.stats().passed[PassReason::BadChecksum as usize], 1);
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
    let flow = w.rig.node().flows.flows().next().unwrap();
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
    assert!(w.rig.node().flows.stats().flows <= 64);
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

/// ACKs in a session of PPPoE are held and made as without, in the receiver's session. Its number may fill
/// all of its 16 bits.
#[test]
fn sessions_of_pppoe() {
    for (v6, tags, session) in [(false, 0, 1), (false, 0, 0xf000), (true, 1, 0x0fff), (true, 2, 0xffff)] {
        let mut w = Net::established_on(basic(), (v6, tags, session));
        w.ack_at(ms(1_000), 30_000);
        let sent = w.run(ms(1_100));
        assert_eq!(numbers(&sent), [(ms(1_000), STEP), (ms(1_010), 2 * STEP), (ms(1_020), 30_000)]);
        w.check_sums(&sent);
        for ack in &sent {
            let packet = w.packet(ack);
            assert_eq!((packet.vlan.count as usize, packet.version == 6), (tags, v6));
            assert_eq!((packet.session(&ack.bytes), packet.flow_label), (session, 0));
        }
    }
}
