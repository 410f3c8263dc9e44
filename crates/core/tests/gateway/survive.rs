//! Held progress, which survives whatever fills up, blocks or ends. And how flows end.

use crate::support::*;
use core::sync::atomic::Ordering::Relaxed;
use weir_core::ack::{Meter, Window};
use weir_core::frame::Frames;
use weir_core::gateway::{Gateway, PassReason, Verdict, LAN, LAN_TAP, WAN, WAN_SET_BACK, WAN_TAP};
use weir_core::rig::{Rig, TestFrame};
use weir_core::steer::{self, Action, Seen};
use weir_core::time::{Duration, Time};
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::{Flags, Seq};

/// 10 Mb/s every 10 ms: 12,500 bytes a step.
const STEP: u32 = 12_500;
const FIN: Flags = Flags(Flags::FIN.0 | Flags::ACK.0);

#[test]
fn a_flow_whose_fins_are_acknowledged_is_forgotten_soon() {
    let mut w = Net::hooked(basic());
    w.ack_at(ms(1_000), 5_000);
    let fin = w.data_segment(5_000).flags(FIN);
    w.inject_at(ms(1_001), LAN, fin);
    let fin = w.ack_segment(5_001).flags(FIN);
    w.inject_at(ms(1_002), WAN, fin);
    w.run(ms(1_100));
    assert!(w.rig.node().flows.flows().next().unwrap().closed);
    w.run(ms(4_000));
    assert_eq!((w.rig.node().flows.flows().count(), w.rig.node().flows.stats().flows), (0, 0));
    assert_eq!(w.slot().tag.load(Relaxed), 0, "the kernel knows it no more");
    let flows = |v: &Verdict| !matches!(v, Verdict::Pass { .. });
    let told: Vec<_> = w.rig.node_mut().flows.verdicts(9).filter(flows).collect();
    assert!(matches!(told[..], [Verdict::Shape { tag: 1, .. }, Verdict::Forget { tag: 1, .. }]), "{told:?}");
    w.finish();
}

#[test]
fn one_fin_does_not_end_a_flow() {
    let mut w = Net::established(basic());
    // The receiver has sent all it has; data still flows, and is shaped.
    let fin = w.ack_segment(1_000).flags(FIN);
    w.inject_at(ms(1_000), WAN, fin);
    let seq = RECEIVER_ISN + 2;
    let segment = w.ack_segment(50_000).seq(seq);
    w.inject_at(ms(1_100), WAN, segment);
    let sent = w.run(ms(2_000));
    assert_eq!(numbers(&sent)[1..3], [(ms(1_100), 1_000 + STEP), (ms(1_110), 1_000 + 2 * STEP)]);
    assert!(sent[1..].iter().all(|s| w.tcp(s).seq == seq));
    assert!(!w.rig.node().flows.flows().next().unwrap().closed);
}

#[test]
fn nothing_is_earned_while_the_port_is_blocked() {
    let mut w = Net::established(basic());
    for n in 0..100u32 {
        let segment = w.ack_segment(n * 100_000).window(65_535);
        w.inject_at(Time::from_micros(999_000 + u64::from(n)), WAN, segment);
    }
    w.rig.close(LAN, ms(1_005), ms(6_005));
    let sent = w.run(ms(6_020));
    // Two periods are made up for, and one release is due after that.
    let late = numbers(&sent).into_iter().filter(|s| s.0 > ms(1_005)).count();
    assert!(late <= 4, "{late} steps in one burst");
    let sent = w.run(ms(7_020));
    let rate = (numbers(&sent).last().unwrap().1 - numbers(&sent)[0].1) / (sent.len() as u32 - 1);
    assert_eq!((rate, sent.len()), (STEP, 100));
}

#[test]
fn progress_survives_a_full_queue() {
    let mut w = Net::established(basic());
    w.rig.close(LAN, ms(1_000), ms(1_900));
    // More duplicates than a queue holds; the last tells of progress too.
    for n in 0..5_000u64 {
        w.ack_at(Time::from_micros(1_000_000 + 100 * n), if n < 4_999 { 10_000 } else { 60_000 });
    }
    let sent = w.run(ms(3_000));
    assert_eq!(numbers(&sent).last().unwrap().1, 60_000);
    assert_eq!(w.rig.node().flows.stats().ledger.drops.total(), 0);
    w.finish();
}

#[test]
fn progress_survives_an_exhausted_pool_with_duplicates() {
    let mut w = Net::established_in(basic(), 3);
    w.ack_at(ms(1_000), 50_000);
    w.run(ms(1_001));
    // Two frames wait for their port; the third chunk is the segment's own.
    w.rig.close(WAN, ms(1_001), ms(1_035));
    for _ in 0..2 {
        let data = w.data_segment(100_000).payload(100);
        w.inject_at(ms(1_002), LAN, data);
    }
    // An old ACK with news, while 50,000 are held.
    let old = w.ack_segment(20_000).sack(&[(w.abs(30_000), w.abs(31_000))]);
    w.inject_at(ms(1_004), WAN, old);
    let sent = w.run(ms(1_200));
    let acks: Vec<_> = sent.iter().filter(|s| s.port == LAN).map(|s| w.rel(s)).collect();
    assert_eq!(acks.last(), Some(&50_000), "{acks:?}");
    w.finish();
}

/// Flow `n` as its ACKs show it.
fn receiver(n: u32) -> SegmentBuilder {
    SegmentBuilder::v4([10, 0, 1, 1], [10, 1, (n >> 8) as u8, n as u8]).ports(5_001, 40_000).seq(9)
}

#[test]
fn a_shutdown_flushes_any_number_of_flows() {
    const FLOWS: u32 = 6_000;
    let mut rig = Rig::with_pool(Gateway::new(config(basic())), Frames::new(8_192, 256, 512));
    for n in 0..FLOWS {
        for ack in [1_000, 2_000, 3_000, 4_000, 90_000u32] {
            rig.at(Time::from_micros(1_000 + u64::from(n)))
                .inject(WAN, TestFrame::bytes(&receiver(n).ack(ack).build()));
        }
    }
    rig.run_until(ms(8));
    assert_eq!(rig.node().flows.flows().filter(|f| f.held_bytes > 0).count(), FLOWS as usize);
    let (mut flushed, mut calls) = (0, 0);
    loop {
        let done = rig.with_cx(|gateway, cx| gateway.flush_all(cx));
        calls += 1;
        let sent = rig.run_until(Time::from_micros(8_000 + calls));
        flushed += sent.iter().filter(|s| s.bytes.len() >= 54 && s.port == LAN).count();
        if done {
            break;
        }
        assert!(calls < 20, "resumed for ever");
    }
    assert!(calls > 1, "bounded");
    assert_eq!(flushed, FLOWS as usize);
    assert_eq!(rig.node().flows.flows().filter(|f| f.held_bytes > 0).count(), 0);
    rig.finish();
}

#[test]
fn a_full_queue_of_verdicts_loses_nothing() {
    const FLOWS: u32 = 6_000;
    let mut rig = Rig::with_pool(Gateway::hooked(config(basic())), Frames::new(8_192, 256, 512));
    for n in 0..FLOWS {
        for ack in 1..=5u32 {
            let segment = receiver(n).ack(1_000 * ack);
            rig.at(Time::from_micros(1_000 + u64::from(n))).inject(WAN, TestFrame::bytes(&segment.build()));
        }
    }
    rig.run_until(ms(50));
    let shapes = |rig: &mut Rig<Gateway>| {
        rig.node_mut().flows.verdicts(usize::MAX).filter(|v| matches!(v, Verdict::Shape { .. })).count()
    };
    assert_eq!(shapes(&mut rig), 4_096);
    // The others are told of when there is room.
    for n in 0..FLOWS {
        let segment = receiver(n).ack(6_000);
        rig.at(ms(60)).inject(WAN, TestFrame::bytes(&segment.build()));
    }
    rig.run_until(ms(100));
    assert_eq!(shapes(&mut rig), FLOWS as usize - 4_096);
}

#[test]
fn few_acks_are_made_where_nothing_is_held() {
    let mut w = Net::established(basic());
    w.ack_at(ms(999), 1);
    w.run(ms(1_000));
    // 100 bytes every 10 us are 80 Mb/s for 1 ms, within the credit of a step; then a duplicate.
    for n in 1..=100u32 {
        w.ack_at(Time::from_micros(1_000_000 + 10 * u64::from(n)), 1 + 100 * n);
    }
    w.ack_at(Time::from_micros(1_001_001), 10_001);
    let sent = w.run(ms(1_002));
    let us = |n: u64| Time::from_micros(1_000_000 + n);
    // The first at once, then one every 200 us; the duplicate is preceded by what is held and not delayed.
    let n: Vec<_> = numbers(&sent);
    let expect =
        [(10, 101), (210, 2_001), (410, 4_001), (610, 6_001), (810, 8_001), (1_001, 10_001), (1_001, 10_001)];
    assert_eq!(n, expect.map(|(t, n)| (us(t), n)));
}

#[test]
fn merging_costs_no_rate() {
    let mut w = Net::established(basic());
    // 1,000 bytes every 800 us are 10 Mb/s: the rate.
    for n in 1..=5_000u32 {
        let segment = w.ack_segment(1_000 * n).window(65_535);
        w.inject_at(Time::from_micros(1_000_000 + 800 * u64::from(n)), WAN, segment);
    }
    let sent = w.run(ms(5_010));
    assert_eq!(numbers(&sent).last().unwrap().1, 5_000_000);
}

#[test]
fn what_passed_is_known_to_the_sender_and_owed() {
    let mut w = Net::hooked(basic());
    w.ack_at(ms(1_000), 50_000);
    w.run(ms(1_001));
    // The hook had no room to take it.
    w.kernel_passed(80_000);
    let copy = w.ack_segment(80_000);
    w.inject_at(ms(1_002), WAN_TAP, copy);
    assert!(w.run(ms(1_002)).is_empty(), "nothing is held any more, and copies end here");
    assert_eq!(w.debt(), 80_000 - STEP);
    w.ack_at(ms(1_003), 200_000);
    let sent = w.run(ms(1_060));
    let steps: Vec<u32> = numbers(&sent).windows(2).map(|p| p[1].1 - p[0].1).collect();
    assert!(steps[1..].iter().all(|&s| s == STEP / 2), "{steps:?}");
}

#[test]
fn progress_on_payload_that_was_set_back_is_held_and_released() {
    let mut w = Net::hooked(basic());
    let copy = w.ack_segment(50_000).payload(100);
    w.inject_at(ms(1_000), WAN_SET_BACK, copy);
    let sent = w.run(ms(2_000));
    let steps = [1, 2, 3, 4].map(|n| (ms(990 + 10 * n), n as u32 * STEP));
    assert_eq!(numbers(&sent), steps);
    assert!(sent.iter().all(|s| s.port == LAN));
    w.finish();
}

#[test]
fn payload_of_a_flow_without_a_scale_passes_and_the_flow_stays_controlled() {
    let mut w = Net::new(basic(), None);
    for n in 1..=5u32 {
        w.ack_at(ms(1_000 + u64::from(n)), 1_000 * n);
    }
    let segment = w.ack_segment(60_000).payload(100);
    let bytes = segment.build();
    w.inject_at(ms(1_010), WAN, segment);
    w.ack_at(ms(1_011), 90_000);
    let sent = w.run(ms(1_011));
    assert_eq!(sent.last().unwrap().bytes, bytes, "set back, its right edge would move left");
    assert_eq!(w.rig.node().flows.flows().next().unwrap().pass, None);
    // What it told early is repaid: half steps.
    let steps = numbers(&w.run(ms(1_040)));
    assert!(!steps.is_empty() && steps.windows(2).all(|p| p[1].1 - p[0].1 == STEP / 2), "{steps:?}");
    // Where half of the last eight segments are such, the flow passes until eight in a row are not.
    for n in 0..3u32 {
        let segment = w.ack_segment(100_000 + 1_000 * n).seq(RECEIVER_ISN + 101 + 100 * n).payload(100);
        w.inject_at(ms(1_041 + u64::from(n)), WAN, segment);
    }
    w.run(ms(1_050));
    assert_eq!(w.rig.node().flows.flows().next().unwrap().pass, Some(PassReason::UnknownScale));
    for n in 0..8u32 {
        let ack = w.ack_segment(110_000 + 1_000 * n).seq(RECEIVER_ISN + 401);
        w.inject_at(ms(1_051 + u64::from(n)), WAN, ack);
    }
    let sent = numbers(&w.run(ms(1_058)));
    assert_eq!(sent, (0..7).map(|n| (ms(1_051 + n), 110_000 + 1_000 * n as u32)).collect::<Vec<_>>());
    assert_eq!(w.rig.node().flows.flows().next().unwrap().pass, None);
}

#[test]
fn an_evicted_flow_leaves_nothing_behind() {
    let slow = basic_with(|r| r.rate = weir_core::rate::Rate::from_bps(8_000).unwrap());
    let mut config = config(slow);
    config.max_flows = 1;
    let mut w = Net::with_config(config, None);
    w.handshake();
    // 40,000 bytes take 40 s at 8 kb/s, and 60 s of silence make room for another flow.
    w.ack_at(ms(1_000), 60_000);
    w.run(ms(50_000));
    let other = receiver(7).ack(1);
    w.inject_at(ms(55_000), WAN, other);
    let sent = w.run(ms(55_001));
    assert_eq!(sent.iter().filter(|s| w.tcp(s).ack == 1).count(), 1, "it passes: all are active");
    assert_eq!(w.rig.node().flows.stats().evicted, 0);
    let other = receiver(7).ack(1);
    w.inject_at(ms(61_500), WAN, other);
    let sent = w.run(ms(61_500));
    assert_eq!(w.rig.node().flows.stats().evicted, 1);
    let last = w.rel(&sent[sent.len() - 2]);
    assert_eq!(last, 60_000, "what it held was passed on first");
    let _ = (LAN_TAP, Duration::ZERO);
}

#[test]
fn what_is_rescued_keeps_the_windows_bound() {
    let mut ack = basic();
    ack.window = Window::Size { standing_delay: Duration::from_millis(50) };
    let mut w = Net::established(ack);
    w.ack_at(ms(1_000), 30_000);
    w.ack_at(ms(1_001), 60_000);
    w.run(ms(1_002));
    let node = w.rig.node();
    let mut buf = [0; weir_core::gateway::MAX_ACK_LEN];
    let len = weir_core::gateway::rescue_ack(&node.flows.records()[0], w.slot(), &mut buf).unwrap();
    let p = weir_core::wire::packet(&buf[..len], len).unwrap();
    let t = weir_core::wire::tcp(&buf[..len], &p).unwrap();
    // 10 Mb/s for 20 + 50 ms are 60 segments of 1,460 bytes, in units of 128; the receiver offers 512,000.
    assert_eq!((t.ack.0, t.window), (w.abs(60_000), (60 * 1_460u32).div_ceil(128) as u16));
}

#[test]
fn what_was_taken_and_not_looked_at_is_rescued() {
    let mut w = Net::hooked(basic());
    w.ack_at(ms(1_000), 30_000);
    w.run(ms(1_002));
    // The hook takes one more, and the engine is dead.
    let ack = w.abs(50_000);
    let seen = Seen {
        flags: steer::ACK,
        seq: Seq(RECEIVER_ISN + 1),
        ack: Seq(ack),
        window: WINDOW,
        ..Seen::default()
    };
    assert_eq!(w.slot().segment(&seen), Action::Take);
    let mut buf = [0; weir_core::gateway::MAX_ACK_LEN];
    let len = weir_core::gateway::rescue_ack(&w.rig.node().flows.records()[0], w.slot(), &mut buf).unwrap();
    let p = weir_core::wire::packet(&buf[..len], len).unwrap();
    assert_eq!(weir_core::wire::tcp(&buf[..len], &p).unwrap().ack, ack);
}

#[test]
fn acks_that_come_late_and_together_cost_no_rate() {
    let mut w = Net::established(basic_with(|r| r.meter = Meter::Received));
    // A flow at its rate, 200,000 bytes of which are held; its host is busy 40 ms at a time.
    for n in 0..=100u32 {
        let segment = w.ack_segment(200_000 + 50_000 * n).window(65_535);
        w.inject_at(ms(1_000 + 40 * u64::from(n)), WAN, segment);
    }
    let sent = w.run(ms(5_000));
    let released = numbers(&sent).last().unwrap().1;
    // 4 s at 10 Mb/s are 5,000,000 bytes.
    assert!(released >= 4_980_000, "{released}");
}

/// A two-way connection opens while no engine runs, and has carried 100 MB when one does: of its handshake
/// copies were kept, of what followed one segment in sixteen is shown. The scale of its window is that of the
/// handshake, so it can be shaped.
#[test]
fn a_connection_that_went_on_unseen_is_shaped() {
    let mut w = Net::hooked(basic());
    let before = w.rig.node().flows.stats().renewed;
    // Its handshake is all that is known of it (the ACK at 400 ms of the support is taken): another
    // connection.
    w.handshake_at(ms(1_000), 77_000, 9_000_000);
    w.run(ms(1_000));
    for n in 0..8u32 {
        let segment = w.ack_segment(100_000_000 + n * 1_000_000).seq(9_000_001 + 50_000_000 + n * 1_448);
        w.inject_at(ms(1_100 + u64::from(n)), WAN_TAP, segment.payload(1_448));
    }
    w.run(ms(1_200));
    let flow = w.rig.node().flows.flows().next().unwrap();
    assert_eq!((flow.pass, w.rig.node().flows.stats().renewed - before), (None, 1));
    assert!(w.slot().has(weir_core::steer::slot_flag::SCALED));
    // A segment of it that is set back is no reason to let it pass.
    let segment = w.ack_segment(107_100_000).seq(9_000_001 + 50_000_000 + 8 * 1_448).payload(1_448);
    w.inject_at(ms(1_201), WAN_SET_BACK, segment);
    w.run(ms(1_202));
    assert_eq!(w.rig.node().flows.flows().next().unwrap().pass, None);
    // One of which more than the handshake was seen is another one by now, whose scale is not known.
    for n in 0..8u32 {
        let segment = w.ack_segment(900_000_000 + n * 1_000).seq(9_000_001 + 500_000_000);
        w.inject_at(ms(1_300 + u64::from(n)), WAN_TAP, segment);
    }
    w.run(ms(1_400));
    assert!(!w.slot().has(weir_core::steer::slot_flag::SCALED));
}
