//! The gateway's rules, packet by packet in virtual time. Every expected value is arithmetic on
//! the rate and the numbers injected.

mod support;

use support::*;
use weir_core::ack::{AckControl, Counts, Period, SlowStart, Window};
use weir_core::gateway::{PassReason, Verdict, LAN, WAN};
use weir_core::node::Port;
use weir_core::time::{Duration, Time};
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::Flags;

/// 10 Mb/s every 10 ms without detection: 12,500 bytes a step.
const STEP: u32 = 12_500;

#[test]
fn a_backlog_is_released_on_time_and_to_its_end() {
    let mut w = Net::established(basic());
    // 30,000 bytes acknowledged at once: a step of credit is there, the rest waits for its time.
    w.ack_at(ms(1_000), 30_000);
    let sent = w.run(ms(2_000));
    assert_eq!(numbers(&sent), [(ms(1_000), STEP), (ms(1_010), 2 * STEP), (ms(1_020), 30_000)]);
    assert!(sent.iter().all(|s| s.port == LAN));
    w.finish();
}

#[test]
fn late_waking_changes_no_time_stamp() {
    for quantum in [1, 7, 45] {
        let mut w = Net::established_waking(basic(), Duration::from_millis(quantum));
        w.ack_at(ms(1_000), 60_000);
        let expect: Vec<_> =
            (1..=5).map(|n| (ms(1_000 + 10 * (n - 1)), 60_000.min(n as u32 * STEP))).collect();
        assert_eq!(numbers(&w.run(ms(2_000))), expect, "quantum {quantum} ms");
        w.finish();
    }
}

#[test]
fn an_unbacklogged_flow_is_not_delayed() {
    let mut w = Net::established(basic());
    for n in 1..=20u32 {
        w.ack_at(ms(1_000 + 20 * u64::from(n)), n * 2_896);
    }
    let sent = w.run(ms(3_000));
    let expect: Vec<_> = (1..=20u32).map(|n| (ms(1_000 + 20 * u64::from(n)), n * 2_896)).collect();
    assert_eq!(numbers(&sent), expect);
    assert_eq!(w.class().acks_generated, 0, "they leave as they came");
    w.finish();
}

#[test]
fn three_duplicates_are_three_and_cost_debt() {
    let mut w = Net::established(basic());
    w.ack_at(ms(1_000), 100_000);
    for n in 0..3 {
        w.ack_at(ms(1_005 + n), 100_000);
    }
    let sent = w.run(ms(1_009));
    // The step at 1,000, then one ACK for all that was received, then the duplicates as they came.
    assert_eq!(
        numbers(&sent),
        [
            (ms(1_000), STEP),
            (ms(1_005), 100_000),
            (ms(1_005), 100_000),
            (ms(1_006), 100_000),
            (ms(1_007), 100_000)
        ]
    );
    assert_eq!(w.debt(), 100_000 - STEP);
    // New progress at 1,010 ms is repaid at half rate, never with silence.
    w.ack_at(ms(1_010), 400_000);
    let sent = w.run(ms(1_400));
    let gaps: Vec<u64> = sent.windows(2).map(|p| p[1].at.since(p[0].at).as_nanos()).collect();
    assert!(gaps.iter().all(|&g| g <= 100_000_000), "{gaps:?}");
    // 87,500 bytes of debt are repaid with 6,250 a step, less what 3 ms of idling earned: after
    // 14 steps the flow is at full steps again.
    let steps: Vec<u32> = numbers(&sent).windows(2).map(|p| p[1].1 - p[0].1).collect();
    assert!(steps[..12].iter().all(|&s| s == STEP / 2), "{steps:?}");
    assert!(steps[15..steps.len() - 1].iter().all(|&s| s == STEP), "{steps:?}");
}

#[test]
fn sack_blocks_leave_at_once_with_the_segment() {
    let mut w = Net::established(basic());
    w.ack_at(ms(1_000), 50_000);
    let blocks = [(52_000, 53_448)];
    let seg = w.ack_segment(50_000).sack(&blocks.map(|(a, b)| (w.abs(a), w.abs(b))));
    w.inject_at(ms(1_003), WAN, seg);
    let sent = w.run(ms(1_004));
    assert_eq!(numbers(&sent), [(ms(1_000), STEP), (ms(1_003), 50_000), (ms(1_003), 50_000)]);
    assert_eq!(w.options(&sent[2]).sack.count, 1);
    assert_eq!(w.options(&sent[1]).sack.count, 0);
}

#[test]
fn payload_keeps_its_data_and_leaks_no_progress() {
    let mut w = Net::established(basic());
    w.ack_at(ms(1_000), 50_000);
    let seg = w.ack_segment(60_000).payload(100);
    let before = seg.build();
    w.inject_at(ms(1_002), WAN, seg);
    let sent = w.run(ms(1_002));
    assert_eq!(numbers(&sent), [(ms(1_000), STEP), (ms(1_002), STEP)]);
    assert_eq!(sent[1].bytes[sent[1].bytes.len() - 100..], before[before.len() - 100..]);
    w.check_sums(&sent);
    // Its progress counts: everything up to 60,000 comes out in time.
    let rest = w.run(ms(1_100));
    assert_eq!(numbers(&rest).last(), Some(&(ms(1_040), 60_000)));
    // ACKs made after it carry the receiver's new SND.NXT.
    assert!(rest.iter().all(|s| w.tcp(s).seq == RECEIVER_ISN + 1 + 100));
}

#[test]
fn nothing_held_is_lost_by_a_fin_or_rst() {
    // A FIN tells of it itself. A RST comes after it.
    for (last, flushed) in [(Flags::FIN.0 | Flags::ACK.0, 0), (Flags::RST.0 | Flags::ACK.0, 1)] {
        let mut w = Net::established(basic());
        w.ack_at(ms(1_000), 50_000);
        let seg = w.ack_segment(50_000).flags(Flags(last));
        w.inject_at(ms(1_002), WAN, seg);
        let sent = w.run(ms(3_000));
        let expect = [(ms(1_000), STEP), (ms(1_002), 50_000), (ms(1_002), 50_000)];
        assert_eq!(numbers(&sent), expect[..2 + flushed]);
        assert_eq!(w.tcp(&sent[1 + flushed]).flags.0, last);
        w.finish();
    }
}

#[test]
fn nothing_is_said_for_a_connection_that_was_reset_by_its_sender() {
    let mut w = Net::established(basic());
    w.ack_at(ms(1_000), 50_000);
    let rst = w.data_segment(50_000).flags(Flags::RST);
    w.inject_at(ms(1_005), LAN, rst);
    let sent = w.run(ms(3_000));
    let acks: Vec<_> = sent.iter().filter(|s| s.port == LAN).collect();
    assert_eq!(acks.len(), 1, "only the step before the reset");
    w.finish();
}

#[test]
fn a_closed_window_and_its_opening_leave_at_once() {
    let mut w = Net::established(basic());
    w.ack_at(ms(1_000), 50_000);
    let closed = w.ack_segment(50_000).window(0);
    w.inject_at(ms(1_002), WAN, closed);
    let probe_answer = w.ack_segment(50_000).window(0);
    w.inject_at(ms(1_500), WAN, probe_answer);
    w.ack_at(ms(1_600), 50_000);
    let sent = w.run(ms(3_000));
    let seen: Vec<_> = sent.iter().map(|s| (s.at, w.rel(s), w.tcp(s).window)).collect();
    assert_eq!(
        seen,
        [
            (ms(1_000), STEP, WINDOW),
            (ms(1_002), 50_000, WINDOW),
            (ms(1_002), 50_000, 0),
            (ms(1_500), 50_000, 0),
            (ms(1_600), 50_000, WINDOW)
        ]
    );
}

#[test]
fn a_wider_window_is_told_at_once_without_progress() {
    let mut w = Net::established(basic());
    w.ack_at(ms(1_000), 50_000);
    let wider = w.ack_segment(50_000).window(WINDOW + 500);
    w.inject_at(ms(1_003), WAN, wider);
    let sent = w.run(ms(1_004));
    let seen: Vec<_> = sent.iter().map(|s| (s.at, w.rel(s), w.tcp(s).window)).collect();
    assert_eq!(seen, [(ms(1_000), STEP, WINDOW), (ms(1_003), STEP, WINDOW + 500)]);
}

#[test]
fn the_right_edge_never_moves_left() {
    let mut w = Net::established(basic());
    // The receiver's application stops reading: each ACK closes the window by what it acknowledges.
    for n in 1..=10u32 {
        let seg = w.ack_segment(n * 8_192).window(WINDOW - n as u16 * 64); // scale 7: 64 = 8,192 bytes
        w.inject_at(ms(1_000 + u64::from(n)), WAN, seg);
    }
    let sent = w.run(ms(2_000));
    let edges: Vec<u32> = sent.iter().map(|s| w.rel(s) + (u32::from(w.tcp(s).window) << 7)).collect();
    assert!(edges.windows(2).all(|e| e[0] <= e[1]), "{edges:?}");
    assert_eq!(numbers(&sent).last().unwrap().1, 81_920);
}

#[test]
fn acknowledgements_never_regress_nor_exceed_the_receivers() {
    let mut w = Net::established(basic());
    let mut top = 0;
    for (n, ack) in [9_000u32, 30_000, 20_000, 45_000, 45_000, 44_000, 70_000].into_iter().enumerate() {
        w.ack_at(ms(1_000 + 3 * n as u64), ack);
        let sent = w.run(ms(1_002 + 3 * n as u64));
        top = top.max(ack);
        assert!(sent.iter().all(|s| w.rel(s) <= top));
    }
    let mut all: Vec<u32> = w.all_numbers();
    all.extend(numbers(&w.run(ms(2_000))).iter().map(|n| n.1));
    assert!(all.windows(2).all(|p| p[0] <= p[1]), "{all:?}");
    assert_eq!(all.last(), Some(&70_000));
}

#[test]
fn no_duplicate_is_invented() {
    let mut w = Net::established(basic());
    for n in 0..200u32 {
        w.ack_at(Time::from_micros(1_000_000 + 777 * u64::from(n)), 1_448 * (n + 1));
    }
    let sent = w.run(ms(3_000));
    let n = numbers(&sent);
    assert!(n.windows(2).all(|p| p[0].1 < p[1].1), "each ACK acknowledges something new");
    assert_eq!(n.last().unwrap().1, 1_448 * 200);
    w.finish();
}

#[test]
fn timestamps_are_the_receivers_own() {
    let mut w = Net::established_with(basic(), true);
    // TSval 500 + n, TSecr 100 + n.
    for n in 1..=6u32 {
        let seg = w.ack_segment(n * 10_000).ts(500 + n, 100 + n);
        w.inject_at(ms(1_000), WAN, seg);
    }
    let sent = w.run(ms(1_100));
    let seen: Vec<_> = sent
        .iter()
        .map(|s| {
            let t = w.options(s).timestamps.unwrap();
            (w.rel(s), t.value, t.echo)
        })
        .collect();
    // The first leaves as it came; each further one has the TSecr of the first received ACK at or
    // above it (five entries met a ring of four: the older neighbour's) and the newest TSval.
    assert_eq!(seen[0], (10_000, 501, 101));
    let fresh: Vec<(u32, u32)> = (1..=6).map(|n| (n * 10_000, 100 + n)).collect();
    for &(ack, value, echo) in &seen[1..] {
        let right = fresh.iter().find(|f| f.0 >= ack).unwrap().1;
        assert_eq!(value, 506);
        assert!(echo <= right && echo + 1 >= right, "{ack}: {echo}, not {right}");
    }
}

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
    let told: Vec<(u32, u16)> = sent.iter().map(|s| (w.rel(s), w.tcp(s).window)).skip(10).collect();
    let (last, before) = told.split_last().unwrap();
    assert_eq!((*last, before.last().unwrap().0), ((310_000, WINDOW - 2), 297_500));
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
fn standing_delay_bounds_the_window() {
    let mut ack = basic();
    ack.window = Window::Size { standing_delay: Duration::from_millis(50) };
    let mut w = Net::established(ack);
    // The handshake took 20 ms beyond the gateway: 10 Mb/s × 70 ms = 87,500 bytes = 60 × 1460, in
    // units of 128 bytes rounded up: 685 (684.4). The SYN-ACK promised 64,000 bytes.
    w.ack_at(ms(1_000), 1_000);
    let sent = w.run(ms(1_000));
    assert_eq!(w.tcp(&sent[0]).window, (60 * 1_460u32).div_ceil(128) as u16);
    w.check_sums(&sent);
}

#[test]
fn what_a_rate_counts() {
    // 1,460 bytes of payload in 1,500 of IP, 1,518 of frame, 1,538 on the wire.
    for (counts, on_the_wire) in
        [(Counts::Payload, 1_460), (Counts::Ip, 1_500), (Counts::Frame, 1_518), (Counts::Wire, 1_538)]
    {
        let mut w = Net::established(basic_with(|r| r.counts = counts));
        for n in 0..=4 {
            // As far as the window allows each time: 65,535 × 128 bytes.
            let segment = w.ack_segment(n * 5_000_000).window(65_535);
            w.inject_at(ms(1_000), WAN, segment);
        }
        let sent = w.run(ms(11_000)).split_off(1);
        let (first, last) = (numbers(&sent)[0], *numbers(&sent).last().unwrap());
        let measured = u64::from(last.1 - first.1) * 8 * 1_000_000_000 / last.0.since(first.0).as_nanos();
        let expect = 10_000_000u64 * 1_460 / on_the_wire;
        assert!(measured.abs_diff(expect) <= 2, "{counts:?}: {measured}, not {expect}");
    }
}

#[test]
fn an_exhausted_pool_keeps_progress() {
    let mut w = Net::established_in(basic(), 4);
    w.ack_at(ms(1_000), 50_000);
    // Four frames of data wait for their port and take all chunks.
    w.rig.close(WAN, ms(1_001), ms(1_035));
    for _ in 0..4 {
        let data = w.data_segment(100_000).payload(100);
        w.inject_at(ms(1_002), LAN, data);
    }
    let sent = w.run(ms(1_200));
    let acks: Vec<_> = sent.iter().filter(|s| s.port == LAN).map(|s| (s.at, w.rel(s))).collect();
    // Two periods are made up for, as where the port is blocked.
    let steps = [(1_000, 1), (1_020, 2), (1_030, 3), (1_040, 4)].map(|(t, n)| (ms(t), n * STEP));
    assert_eq!(acks, steps, "nothing was lost");
    assert_eq!(w.rig.node().stats().pool_exhausted, 1);
    w.finish();
}

#[test]
fn a_blocked_port_blocks_only_itself() {
    let mut w = Net::established(basic());
    w.ack_at(ms(1_000), 50_000);
    w.rig.close(LAN, ms(1_001), ms(1_045));
    let data = w.data_segment(100_000).payload(100);
    w.inject_at(ms(1_002), LAN, data);
    let sent = w.run(ms(1_100));
    assert!(sent.iter().any(|s| s.port == WAN && s.at == ms(1_002)));
    let acks: Vec<_> = sent.iter().filter(|s| s.port == LAN).map(|s| (s.at, w.rel(s))).collect();
    // Two periods are made up for, no more: nothing is earned while the port is blocked.
    let steps = [(1_000, 1), (1_030, 2), (1_040, 3), (1_050, 4)].map(|(t, n)| (ms(t), n * STEP));
    assert_eq!(acks, steps);
}

#[test]
fn after_an_absence_the_flow_goes_on_from_what_its_sender_knows() {
    let mut w = Net::established(basic());
    w.ack_at(ms(1_000), 50_000);
    w.run(ms(1_001));
    w.rig.node_mut().resync();
    // Meanwhile the kernel passed ACKs up to 500,000; nothing of it is owed.
    w.kernel_passed(500_000);
    w.ack_at(ms(1_200), 560_000);
    let sent = w.run(ms(1_220));
    assert_eq!(numbers(&sent)[..2], [(ms(1_200), 500_000 + STEP), (ms(1_210), 500_000 + 2 * STEP)]);
    assert_eq!(w.debt(), 0);
}

#[test]
fn what_is_held_survives_a_hang() {
    let mut w = Net::established(basic());
    w.ack_at(ms(1_000), 50_000);
    w.run(ms(1_001));
    // The engine was away, and nothing passed: what is held goes on as before.
    w.rig.node_mut().resync();
    let sent = w.run(ms(2_000));
    assert_eq!(numbers(&sent), [(ms(1_010), 2 * STEP), (ms(1_020), 3 * STEP), (ms(1_030), 50_000)]);
    w.finish();
}

#[test]
fn a_new_engine_goes_on_where_a_dead_one_ended() {
    let mut dead = Net::established(basic());
    dead.ack_at(ms(1_000), 50_000);
    dead.ack_at(ms(1_001), 60_000);
    dead.run(ms(1_002));
    let (records, slots) = dead.shared();
    let mut w = Net::with_shared(config(basic()), records, slots);
    // It is held still, and released; ACKs that come now follow it.
    w.ack_at(ms(2_001), 260_000);
    let sent = w.run(ms(2_030));
    assert_eq!(numbers(&sent)[0].1, 2 * STEP);
    let sent = w.run(ms(3_000));
    assert_eq!(numbers(&sent).last().unwrap().1, 260_000);
    assert_eq!((w.class().held_acks, w.class().held_bytes), (0, 0));
    // The kernel is told of the flow again.
    let shapes = w.rig.node_mut().verdicts(9).filter(|v| matches!(v, Verdict::Shape { slot: 0, tag: 1, .. }));
    assert_eq!(shapes.count(), 1);
    w.finish();
}

#[test]
fn the_paper_s_detector_and_basic_form() {
    // Basic form (figs 1, 4): slow start is answered with the full rate.
    let mut w = Net::established(shaper(SlowStart::Ignore, Period::Fixed(Duration::from_millis(10))));
    w.ack_at(ms(1_000), 100_000);
    assert_eq!(numbers(&w.run(ms(1_010)))[1].1, 2 * STEP);
    // A flow seen from its SYN begins halved (our detector): half a step of credit, half steps.
    let mut w = Net::established(shaper(SlowStart::DETECT, Period::Fixed(Duration::from_millis(10))));
    w.ack_at(ms(1_000), 100_000);
    assert_eq!(numbers(&w.run(ms(1_010))), [(ms(1_000), STEP / 2), (ms(1_010), STEP)]);
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

#[test]
fn held_state_can_be_rescued() {
    let mut w = Net::established_with(basic(), true);
    let seg = w.ack_segment(50_000).ts(777, 333);
    w.inject_at(ms(1_000), WAN, seg);
    w.run(ms(1_001));
    let mut buf = [0; weir_core::gateway::MAX_ACK_LEN];
    let node = w.rig.node();
    let rescued: Vec<_> = node
        .records()
        .iter()
        .zip(node.slots())
        .filter_map(|(r, slot)| weir_core::gateway::rescue_ack(r, slot, &mut buf).map(|n| buf[..n].to_vec()))
        .collect();
    assert_eq!(rescued.len(), 1);
    let p = weir_core::wire::packet(&rescued[0], rescued[0].len()).unwrap();
    let t = weir_core::wire::tcp(&rescued[0], &p).unwrap();
    assert_eq!(t.ack, SENDER_ISN.wrapping_add(1 + 50_000));
    assert_eq!(
        weir_core::wire::checksum::verify(&rescued[0], rescued[0].len(), &p),
        weir_core::frame::Checksum::Valid
    );
    let _ = Port(0);
}

fn shaper(slow_start: SlowStart, period: Period) -> AckControl {
    basic_with(|r| (r.slow_start, r.period) = (slow_start, period))
}
