//! The window that the sender sees, packet by packet in virtual time. Expected values are arithmetic on rate,
//! round trip and segment size; rules from RFC 7323 and RFC 9293.

use crate::support::*;
use core::sync::atomic::Ordering::Relaxed;
use weir_core::ack::{AckControl, Period, RateRelease, Release, Window};
use weir_core::gateway::{Direction, Gateway, LAN, LAN_TAP, WAN, WAN_TAP};
use weir_core::rate::Rate;
use weir_core::rig::{Rig, Sent};
use weir_core::steer::{self, Action, Seen};
use weir_core::time::{Duration, Time};
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::{Flags, Seq};

const SYN_ACK: Flags = Flags(Flags::SYN.0 | Flags::ACK.0);

/// 10 Mb/s every 10 ms without detection, with a window of 10 Mb/s × (round trip + `standing`).
fn sized(standing_ms: u64) -> AckControl {
    let mut ack = basic();
    ack.window = Window::Size { standing_delay: Duration::from_millis(standing_ms) };
    ack
}

/// A connection whose receiver, over 20 ms, scales its window by `shift` and begins with `window` bytes.
fn open(ack: AckControl, shift: u8, window: u16) -> (Net, Sent) {
    let mut w = Net::new(ack, None);
    let syn = w.data_segment(0).seq(w.abs(0).wrapping_sub(1)).flags(Flags::SYN).mss(1460).window_scale(7);
    w.inject_at(ms(0), LAN, syn);
    let answer =
        w.ack_segment(0).seq(RECEIVER_ISN).flags(SYN_ACK).window(window).mss(1460).window_scale(shift);
    w.inject_at(ms(20), WAN, answer);
    let sent = w.run(ms(20)).pop().unwrap();
    (w, sent)
}

/// Returns what the sender is told: time, number, window field.
fn told(w: &Net, sent: &[Sent]) -> Vec<(Time, u32, u16)> {
    sent.iter().filter(|s| s.port == LAN).map(|s| (s.at, w.rel(s), w.tcp(s).window)).collect()
}

#[test]
fn the_syn_ack_s_window_is_sized() {
    // (kb/s, round trip to the receiver, window): rate × (round trip + larger of 20 ms and two periods), in
    // segments of 1,460 bytes. Periods: 1 Mb/s 11.68 ms (a segment), 64 kb/s 182.5 ms, 10 Mb/s 2.336 ms, and
    // 500 us at 100 Mb/s. 1 Mb/s: 43.36 ms, 5,420 bytes; 64 kb/s: 385 ms, 3,080 bytes; 10 Mb/s: 40 ms, 50,000
    // bytes. The field is not scaled.
    for (kbit, segments) in [(1_000, 4u16), (64, 3), (10_000, 35)] {
        let (w, sent) = open(AckControl::ack_shaper(Rate::kbit(kbit)), 7, 64_000);
        assert_eq!(w.tcp(&sent).window, 1_460 * segments, "{kbit} kb/s");
        w.check_sums(&[sent]);
    }
    // More than there is: it stays.
    let (w, sent) = open(AckControl::ack_shaper(Rate::mbit(100)), 7, 64_000);
    assert_eq!(w.tcp(&sent).window, 64_000);
    let (w, sent) = open(AckControl::published(Rate::mbit(1)), 7, 64_000);
    assert_eq!(w.tcp(&sent).window, 64_000, "kept");
}

#[test]
fn a_repeated_syn_ack_is_sized_like_the_first() {
    let (mut w, _) = open(AckControl::ack_shaper(Rate::mbit(1)), 7, 64_000);
    let again = w.ack_segment(0).seq(RECEIVER_ISN).flags(SYN_ACK).window(64_000).mss(1460).window_scale(7);
    w.inject_at(ms(1_020), WAN, again);
    let sent = w.run(ms(1_020));
    assert_eq!(told(&w, &sent), [(ms(1_020), 0, 5_840)]);
}

#[test]
fn where_the_client_receives_its_first_ack_is_sized() {
    let mut config = config(AckControl::ack_shaper(Rate::mbit(1)));
    config.classes[0].direction = Direction::In;
    let mut w = Net::with_config(config, None);
    // The client, at 10.0.0.1, receives; the server beyond the WAN answers its SYN after 20 ms.
    let client = || SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 1, 1]).ports(40_000, 5_001).window(64_000);
    let server = || SegmentBuilder::v4([10, 0, 1, 1], [10, 0, 0, 1]).ports(5_001, 40_000).window(64_000);
    w.inject_at(ms(0), LAN, client().seq(900).flags(Flags::SYN).mss(1460).window_scale(7));
    w.inject_at(ms(20), WAN, server().seq(70).ack(901).flags(SYN_ACK).mss(1460).window_scale(7));
    w.inject_at(ms(20), LAN, client().seq(901).ack(71).flags(Flags::ACK).window(500));
    let sent = w.run(ms(20));
    let windows: Vec<u16> = sent.iter().map(|s| w.tcp(s).window).collect();
    // 5,840 bytes as above, in units of 128: 45.6.
    assert_eq!(windows, [64_000, 64_000, 46]);
}

/// At shift 14 a unit is 16 KB: ten times the step that is acknowledged.
#[test]
fn a_sized_edge_never_passes_the_receivers_own() {
    for standing in [0, 100, 1_000] {
        let (mut w, _) = open(sized(standing), 14, 64_000);
        // It never reads: its edge stays, at 40 units.
        let edge = 40 << 14;
        let mut sent = Vec::new();
        for n in 1..=200u32 {
            let ack = 3_000 * n;
            let segment = w.ack_segment(ack).window(((edge - ack) >> 14).max(1) as u16);
            w.inject_at(ms(1_000 + 3 * u64::from(n)), WAN, segment);
            sent.extend(w.run(ms(1_000 + 3 * u64::from(n))));
        }
        sent.extend(w.run(ms(3_000)));
        let mut right = 0;
        for (at, number, field) in told(&w, &sent) {
            right = right.max(number + (u32::from(field) << 14));
            assert!(right <= edge.max(600_000 + (1 << 14)), "{standing} ms, at {at:?}: {right}");
        }
        assert_eq!(w.rel(sent.last().unwrap()), 600_000);
    }
}

#[test]
fn window_updates_while_progress_is_held_are_no_duplicates() {
    // 10 Mb/s × (20 + 40) ms = 75,000 bytes, 52 segments = 75,920: 593.1 units.
    let (mut w, _) = open(sized(40), 7, 64_000);
    w.ack_at(ms(1_000), 50_000);
    for n in 1..=3 {
        let update = w.ack_segment(50_000).window(WINDOW + 100 * n);
        w.inject_at(ms(1_000 + u64::from(n)), WAN, update);
    }
    let sent = w.run(ms(1_009));
    assert_eq!(told(&w, &sent), [(ms(1_000), 12_500, 594)]);
    // Nor when nothing is held: the sized window says nothing new.
    w.run(ms(1_100));
    for n in 1..=3 {
        let update = w.ack_segment(50_000).window(WINDOW - 100 * n);
        w.inject_at(ms(1_200 + u64::from(n)), WAN, update);
    }
    assert_eq!(
        {
            let sent = w.run(ms(1_300));
            told(&w, &sent)
        },
        []
    );
    // Duplicates are duplicates.
    let same = w.ack_segment(50_000).window(WINDOW - 300);
    w.inject_at(ms(1_400), WAN, same);
    assert_eq!(
        {
            let sent = w.run(ms(1_400));
            told(&w, &sent)
        },
        [(ms(1_400), 50_000, 594)]
    );
}

#[test]
fn an_update_that_reaches_the_sender_is_passed_on() {
    // The receiver's own window is the smaller one. Its edge: 40,000, which the sender knows, so 27,500 bytes
    // or 214.8 units from 12,500 on; then 42,800; then 30,000 + 51,200.
    let (mut w, _) = open(sized(40), 7, 40_000);
    let full = w.ack_segment(30_000).window(100);
    w.inject_at(ms(1_000), WAN, full);
    let update = w.ack_segment(30_000).window(400);
    w.inject_at(ms(1_002), WAN, update);
    let sent = w.run(ms(1_002));
    assert_eq!(told(&w, &sent), [(ms(1_000), 12_500, 215), (ms(1_002), 12_500, 400)]);
}

#[test]
fn a_kept_window_is_not_touched_when_nothing_is_held() {
    let (mut w, _) = open(basic(), 7, 64_000);
    // 100 bytes each, windows up and down by a unit, as they come.
    for n in 1..=50u32 {
        let segment = w.ack_segment(100 * n).window(WINDOW - (n % 2) as u16 * 2);
        w.inject_at(ms(1_000 + 10 * u64::from(n)), WAN, segment);
    }
    let sent = w.run(ms(2_000));
    let expect: Vec<_> =
        (1..=50u32).map(|n| (ms(1_000 + 10 * u64::from(n)), 100 * n, WINDOW - (n % 2) as u16 * 2)).collect();
    assert_eq!(told(&w, &sent), expect);
    assert_eq!((w.class().acks_rewritten, w.class().acks_generated), (0, 0));
}

/// In slow start too: a window of rate × (round trip + 20 ms) is all that a sender can be ahead.
#[test]
fn a_flow_whose_window_is_sized_begins_with_full_steps() {
    let (mut w, _) = open(AckControl::ack_shaper(Rate::mbit(10)), 7, 64_000);
    // The first window, at once: 14,600 bytes are less than 10 Mb/s carry in the round trip of 20 ms. A step
    // is 2,920 bytes every 2.336 ms.
    w.ack_at(ms(40), 14_600);
    let sent = w.run(ms(200));
    let expect: Vec<_> =
        (0..5).map(|n| (Time::from_micros(40_000 + 2_336 * n), 2_920 * (n as u32 + 1))).collect();
    assert_eq!(numbers(&sent), expect);
    // Kept, it begins with half of that.
    let kept = AckControl { window: Window::Keep, ..AckControl::ack_shaper(Rate::mbit(10)) };
    let (mut w, _) = open(kept, 7, 64_000);
    w.ack_at(ms(40), 14_600);
    let sent = w.run(ms(41));
    assert_eq!(numbers(&sent).last(), Some(&(ms(40), 1_460)));
}

/// 10 Mb/s every 10 ms, with a window of 10 Mb/s x (20 + 100) ms = 150,000 bytes, 103 segments = 150,380.
fn sized_far() -> AckControl {
    let period = Period::Fixed(Duration::from_millis(10));
    AckControl {
        release: Release::Rate(RateRelease { period, ..RateRelease::new(Rate::mbit(10)) }),
        window: Window::Size { standing_delay: Duration::from_millis(100) },
        ..AckControl::ack_shaper(Rate::mbit(10))
    }
}

/// A flow that holds nothing, and whose right edge lags behind.
fn lagging() -> Net {
    let (mut w, _) = open(sized_far(), 7, 64_000);
    w.ack_at(ms(1_000), 60_000);
    let lost = w.ack_segment(60_000).sack(&[(w.abs(61_460), w.abs(62_920))]);
    w.inject_at(ms(1_005), WAN, lost);
    w.run(ms(1_005));
    assert!(w.rig.node().flows.flows().all(|f| f.held_bytes == 0));
    w
}

/// The sender has used up its window and will hear nothing more of the receiver: what remains to be told, the
/// next engine tells.
#[test]
fn an_edge_that_lags_goes_on_behind_a_new_engine() {
    let dead = lagging();
    let (records, slots) = dead.shared();
    let mut w = Net::with_shared(config(sized_far()), records, slots);
    let sent = w.run(ms(1_100));
    let told = told(&w, &sent);
    assert!(told.iter().all(|t| t.1 == 60_000), "{told:?}");
    let last = told.last().unwrap();
    assert!((60_000 + 128 * u32::from(last.2)).abs_diff(60_000 + 150_380) <= 128, "{told:?}");
}

/// The widest window that is told of, in bytes.
fn widest(told: &[(Time, u32, u16)]) -> u32 {
    told.iter().map(|t| 128 * u32::from(t.2)).max().unwrap()
}

/// Segments that passed while no engine ran have overtaken those that wait in the ring. The next engine does
/// not take one for the receiver's last word, however much of it there is.
#[test]
fn what_was_overtaken_while_no_engine_ran_leaves_the_window_sized() {
    let (mut dead, _) = open(sized_far(), 7, 64_000);
    dead.ack_at(ms(1_000), 12_500);
    dead.run(ms(1_001));
    let (records, slots) = dead.shared();
    slots[0].width.store(dead.slot().width.load(Relaxed), Relaxed);
    let passes = Seen {
        flags: steer::ACK,
        seq: Seq(RECEIVER_ISN + 1),
        ack: Seq(dead.abs(100_000)),
        window: WINDOW,
        ..Seen::default()
    };
    assert!(matches!(slots[0].bypass(&passes), Action::SetBack { .. }), "with a sized window");
    let mut w = Net::with_shared(config(sized_far()), records, slots);
    for n in 1..=30 {
        w.ack_at(ms(1_300), 12_500 + 2_000 * n);
    }
    for n in 1..=20u32 {
        w.ack_at(ms(1_300 + 10 * u64::from(n)), 100_000 + 12_500 * n);
    }
    let sent = w.run(ms(1_700));
    let told = told(&w, &sent);
    assert_eq!((told.last().unwrap().1, w.rig.node().flows.stats().renewed), (350_000, 0));
    assert!(widest(&told) <= 150_380 + 128, "{told:?}");
}

/// A receiver that acknowledges less than its sender is thought to know is the one whose handshake was seen.
#[test]
fn a_window_stays_sized_when_a_receiver_goes_back() {
    let (mut w, _) = open(sized_far(), 7, 64_000);
    w.ack_at(ms(1_000), 50_000);
    w.run(ms(1_040));
    for n in 0..200u32 {
        w.ack_at(ms(1_041 + u64::from(n)), 1_000 + 100 * n);
    }
    let sent = w.run(ms(1_300));
    let told = told(&w, &sent);
    assert_eq!((told.last().unwrap().1, w.rig.node().flows.stats().renewed), (20_900, 1));
    assert!(widest(&told) <= 150_380 + 128, "{told:?}");
}

#[test]
fn a_gateway_that_ends_gives_back_the_window() {
    let mut w = lagging();
    while !w.rig.with_cx(|gateway, cx| gateway.stop(cx)) {}
    let sent = w.run(ms(1_005));
    // The receiver's own: 4,000 units.
    assert_eq!(told(&w, &sent), [(ms(1_005), 60_000, 4_000)]);
    assert_eq!(w.slot().width.load(Relaxed), 0, "segments that pass are not bounded either");
    // Nothing is left to be told.
    w.rig.with_cx(|gateway, cx| gateway.stop(cx));
    let sent = w.run(ms(1_300));
    assert_eq!(told(&w, &sent), []);
}

/// The sender is told of the receiver's own window, once, if no engine follows.
#[test]
fn a_window_that_nobody_sizes_any_more_is_told_of() {
    let w = lagging();
    let (records, slots) = w.shared();
    let mut buf = [0; weir_core::gateway::MAX_ACK_LEN];
    slots[0].width.store(5_000, Relaxed);
    assert_eq!(weir_core::gateway::rescue_ack(&records[0], &slots[0], &mut buf), None);
    slots[0].width.store(0, Relaxed);
    let len = weir_core::gateway::rescue_ack(&records[0], &slots[0], &mut buf).unwrap();
    let packet = weir_core::wire::packet(&buf[..len], len).unwrap();
    let tcp = weir_core::wire::tcp(&buf[..len], &packet).unwrap();
    assert_eq!((tcp.ack.0, tcp.window), (w.abs(60_000), 4_000));
    slots[0].stamp(tcp.ack, tcp.window); // as the hook does when it leaves
    assert_eq!(weir_core::gateway::rescue_ack(&records[0], &slots[0], &mut buf), None);
}

/// Losses are not hidden: what is held goes at once. But the right edge goes on at the rate, so that a sender
/// without a congestion window of its own sends no more than without the loss.
#[test]
fn what_a_loss_makes_known_at_once_opens_no_window() {
    let (mut w, _) = open(sized_far(), 7, 64_000);
    w.ack_at(ms(1_000), 60_000);
    let lost = w.ack_segment(60_000).sack(&[(w.abs(61_460), w.abs(62_920))]);
    w.inject_at(ms(1_005), WAN, lost);
    let sent = w.run(ms(1_100));
    let told = told(&w, &sent);
    assert_eq!(
        told[..2].iter().map(|t| (t.0, t.1)).collect::<Vec<_>>(),
        [(ms(1_000), 12_500), (ms(1_005), 60_000)]
    );
    let edge = |t: &(Time, u32, u16)| t.1 + 128 * u32::from(t.2);
    // In 20 ms of round trip and two periods 50,000 bytes may have come together, 60,000 were told 5 ms
    // later: the edge stands until that is made up for.
    let (first, flushed) = (edge(&told[0]), edge(&told[1]));
    assert!(flushed - first <= 50_000 + 6_250 - 12_500 + 128, "{told:?}");
    // Then it moves by a step each 10 ms, in ACKs that say nothing else.
    let moves: Vec<u32> = told[2..].windows(2).map(|p| edge(&p[1]) - edge(&p[0])).collect();
    assert!(moves.iter().all(|&m| m <= 12_500 + 128), "{told:?}");
    let last = edge(told.last().unwrap());
    assert!(last.abs_diff(60_000 + 150_380) <= 128, "in the end the whole window: {told:?}");
    assert!(told.windows(2).all(|p| (p[0].1, p[0].2) != (p[1].1, p[1].2) || p[1].0 == ms(1_005)), "{told:?}");
}

/// The hooks showed a SYN-ACK that they could not let be sized: its 64,000 bytes are more than 10 Mb/s × 40
/// ms, 51,100 in segments. Once they are used up, the window bounds the sender as if it had been sized from
/// the beginning.
#[test]
fn a_loss_opens_no_window_that_was_not_sized_at_first() {
    let near =
        AckControl { window: Window::Size { standing_delay: Duration::from_millis(20) }, ..sized_far() };
    let mut w = Net::new(near, None);
    w.rig = Rig::new(Gateway::hooked(config(near)));
    let syn = w.data_segment(0).seq(w.abs(0).wrapping_sub(1)).flags(Flags::SYN).mss(1460).window_scale(7);
    w.inject_at(ms(0), LAN_TAP, syn);
    let answer = w.ack_segment(0).seq(RECEIVER_ISN).flags(SYN_ACK).window(64_000).mss(1460).window_scale(7);
    w.inject_at(ms(20), WAN_TAP, answer);
    w.run(ms(50));
    let mut before = Vec::new();
    for (at, n) in [(100, 0), (1_000, 60_000), (1_030, 90_000)] {
        let (seq, ack) = (RECEIVER_ISN + 1, w.abs(n));
        let seen =
            Seen { flags: steer::ACK, seq: Seq(seq), ack: Seq(ack), window: WINDOW, ..Seen::default() };
        assert_eq!(w.slot().segment(&seen), Action::Take);
        w.ack_at(ms(at), n);
        before.extend(w.run(ms(at)));
    }
    before.extend(w.run(ms(1_045)));
    let lost = w.ack_segment(90_000).sack(&[(w.abs(91_460), w.abs(92_920))]);
    w.inject_at(ms(1_046), WAN, lost);
    let after = w.run(ms(1_046));
    let edge = |s: &Sent| w.rel(s) + 128 * u32::from(w.tcp(s).window);
    let (last, flushed) = (before.last().unwrap(), &after[0]);
    assert!(w.rel(last) < 70_000 && edge(last) > 64_000, "it is used up, and much is held: {}", w.rel(last));
    assert_eq!(w.rel(flushed), 90_000);
    assert!(edge(flushed) - edge(last) <= 12_500 + 128, "{} after {}", edge(flushed), edge(last));
}

/// The scale is unknown, so a smaller field goes with the number that the receiver sent it with: with a
/// number before that, the right edge would be left of what the sender knows.
#[test]
fn a_smaller_field_of_an_unknown_scale_goes_with_no_number_before_its_own() {
    let mut w = Net::new(basic(), None);
    for n in 1..=8 {
        w.ack_at(ms(1_000 + 100 * u64::from(n)), 1_000 * n);
    }
    w.run(ms(1_999));
    // Nothing is held, and a step is 12,500 bytes.
    let unread = w.ack_segment(48_000).window(WINDOW - 312);
    w.inject_at(ms(2_000), WAN, unread);
    let sent = w.run(ms(3_000));
    let told = told(&w, &sent);
    assert_eq!(told, [(ms(2_000), 48_000, WINDOW - 312)]);
    // It is owed: 35,500 bytes of it.
    assert!(w.debt() > 20_000, "{}", w.debt());
}
