//! The gateway's rules, packet by packet in virtual time. Every expected value is arithmetic on
//! the rate and the numbers injected.

use crate::support::*;
use weir_core::ack::{AckControl, Counts, Period, SlowStart, Window};
use weir_core::gateway::{LAN, WAN};
use weir_core::packet::{Cells, LinkLayer};
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};
use weir_core::wire::Flags;
use weir_core::wire::Seq;

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

/// A connection that its receiver has closed goes on in the other direction (RFC 9293 §3.6), losses included,
/// and its sender's FIN is answered as often as it comes.
#[test]
fn what_a_receiver_repeats_after_its_fin_is_told() {
    for ended in [false, true] {
        let mut w = Net::established(basic());
        w.ack_at(ms(1_000), 50_000);
        let fin = w.ack_segment(50_000).flags(Flags(Flags::FIN.0 | Flags::ACK.0));
        w.inject_at(ms(1_002), WAN, fin);
        if ended {
            let fin = w.data_segment(50_000).flags(Flags(Flags::FIN.0 | Flags::ACK.0));
            w.inject_at(ms(1_003), LAN, fin);
        }
        let block = (w.abs(60_000), w.abs(61_448));
        for n in 0..3 {
            let again = w.ack_segment(50_000).seq(RECEIVER_ISN + 2);
            let again = if n == 2 { again.sack(&[block]) } else { again };
            w.inject_at(ms(1_010 + n), WAN, again);
        }
        let sent: Vec<_> = w.run(ms(2_000)).into_iter().filter(|s| s.port == LAN).collect();
        let last: Vec<_> = sent[sent.len() - 3..].iter().map(|s| (s.at, w.rel(s), w.tcp(s).seq.0)).collect();
        assert_eq!(last, [0, 1, 2].map(|n| (ms(1_010 + n), 50_000, RECEIVER_ISN + 2)));
        assert_eq!(w.options(sent.last().unwrap()).sack.as_slice(), [(Seq(block.0), Seq(block.1))]);
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
    // 1,460 bytes of payload in 1,500 of IP, 1,518 of frame, 1,538 on the wire. PPPoE over ATM: 33 cells.
    let pppoe = Counts::Link(LinkLayer { overhead: 40, mpu: 0, cells: Cells::Atm });
    for (counts, on_the_wire) in [
        (Counts::Payload, 1_460),
        (Counts::Ip, 1_500),
        (Counts::Frame, 1_518),
        (Counts::Wire, 1_538),
        (pppoe, 1_749),
    ] {
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

fn shaper(slow_start: SlowStart, period: Period) -> AckControl {
    basic_with(|r| (r.slow_start, r.period) = (slow_start, period))
}

/// RFC 3449 §5.2.2, with two segments of 1,460 bytes for each ACK: they take 2,336 us at 10 Mb/s.
#[test]
fn a_stretch_ack_leaves_as_acks_of_two_segments() {
    let mut w = Net::established(AckControl::reconstruct(Rate::mbit(10)));
    w.ack_at(ms(1_000), 20 * 1_460);
    let sent = w.run(ms(2_000));
    let at = |n: u64| ms(1_000) + Duration::from_micros(n * 2_336);
    let expect: Vec<_> = (0..10).map(|n| (at(n), (n as u32 + 1) * 2_920)).collect();
    assert_eq!(numbers(&sent), expect);
    w.finish();
}
