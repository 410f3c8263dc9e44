//! News beyond progress that keep their place behind held ACKs: holes in flows whose
//! handshake was not seen, and data that arrived twice. Packet by packet in virtual time; rules from RFC
//! 2018, RFC 2883, RFC 5681 and RFC 8985.

use crate::support::*;
use weir_core::ack::{AckControl, Window};
use weir_core::gateway::{rescue_ack, LAN, MAX_ACK_LEN, WAN};
use weir_core::rate::Rate;
use weir_core::rig::Sent;
use weir_core::time::{Duration, Time};
use weir_core::wire;
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::Seq;

/// 10 Mb/s every 10 ms.
const STEP: u32 = 12_500;

/// An ACK that reached the sender: when, what it acknowledges, and its SACK block.
type Told = (Time, u32, Option<(u32, u32)>);

fn told(w: &Net, sent: &[Sent]) -> Vec<Told> {
    w.check_sums(sent);
    let block = |s: &Sent| {
        let blocks = w.options(s).sack;
        assert!(blocks.count <= 1);
        blocks.as_slice().first().map(|b| (b.0.since(Seq(w.abs(0))), b.1.since(Seq(w.abs(0)))))
    };
    sent.iter().filter(|s| s.port == LAN).map(|s| (s.at, w.rel(s), block(s))).collect()
}

/// An ACK for `n` with a SACK block.
fn sack(w: &Net, n: u32, (left, right): (u32, u32)) -> SegmentBuilder {
    w.ack_segment(n).sack(&[(w.abs(left), w.abs(right))])
}

/// 10 Mb/s every 10 ms, with a window of 10 Mb/s × (20 + 20 ms) where it can be sized: 50,000 bytes in
/// segments of 1,460, 51,100.
fn sized() -> AckControl {
    AckControl { window: Window::Size { standing_delay: Duration::from_millis(20) }, ..basic() }
}

/// A flow of which the first that is seen are acknowledgements, up to 10,000 at 1,000 ms. The next ones are
/// held.
fn missed(ack: AckControl) -> Net {
    let mut config = config(ack);
    config.assumed_rtt = Duration::from_millis(20);
    let mut w = Net::with_config(config, None);
    for n in 0..4u32 {
        w.ack_at(ms(997 + u64::from(n)), 7_000 + n * 1_000);
    }
    w.run(ms(1_000));
    w
}

/// Releases of [`STEP`] from 22,500 at 1,001 ms on, up to `last`, which is the last.
fn steps(last: u32) -> Vec<Told> {
    let step = |n: u32| (ms(1_001 + 10 * u64::from(n)), (22_500 + n * STEP).min(last), None);
    (0..=(last - 22_500).div_ceil(STEP)).map(step).collect()
}

#[test]
fn a_hole_behind_more_than_the_window_would_be_is_told_in_its_place() {
    let mut w = missed(sized());
    w.ack_at(ms(1_001), 300_000);
    // Four segments behind the hole, one after the other.
    for n in 1..=4 {
        let segment = sack(&w, 300_000, (301_448, 301_448 + 1_448 * n));
        w.inject_at(ms(1_004 + u64::from(n)), WAN, segment);
    }
    let sent = w.run(ms(1_300));
    let mut expected = steps(300_000);
    // 277,500 bytes are 22.2 steps. The newest block goes with the number that it came with, and with none
    // before.
    assert_eq!(expected.last().unwrap().0, ms(1_231));
    expected.last_mut().unwrap().2 = Some((301_448, 307_240));
    assert_eq!(told(&w, &sent), expected);
    // From there on nothing is held, and everything goes at once.
    let segment = sack(&w, 300_000, (301_448, 308_688));
    w.inject_at(ms(1_301), WAN, segment);
    let sent = w.run(ms(1_301));
    assert_eq!(told(&w, &sent), [(ms(1_301), 300_000, Some((301_448, 308_688)))]);
    w.finish();
}

#[test]
fn a_hole_behind_less_is_told_at_once_until_as_much_is_owed() {
    let mut w = missed(sized());
    w.ack_at(ms(1_001), 60_000);
    // 37,500 bytes ahead of their time; a window would be 51,100.
    let segment = sack(&w, 60_000, (61_448, 62_896));
    w.inject_at(ms(1_005), WAN, segment);
    let sent = w.run(ms(1_009));
    let first =
        [(ms(1_001), 22_500, None), (ms(1_005), 60_000, None), (ms(1_005), 60_000, Some((61_448, 62_896)))];
    assert_eq!(told(&w, &sent), first);
    // What is owed and another 20,000 bytes are more.
    assert!(w.debt() > 51_100 - 20_000);
    w.ack_at(ms(1_010), 80_000);
    let segment = sack(&w, 80_000, (81_448, 82_896));
    w.inject_at(ms(1_011), WAN, segment);
    let sent = w.run(ms(1_200));
    let told = told(&w, &sent);
    assert!(told.iter().take_while(|t| t.1 < 80_000).count() >= 2, "{told:?}");
    assert!(told.iter().all(|t| t.2.is_some() == (t.1 == 80_000)), "{told:?}");
    assert_eq!(told.last().unwrap().2, Some((81_448, 82_896)));
}

#[test]
fn a_hole_that_is_filled_before_it_was_told_is_none() {
    let mut w = missed(sized());
    w.ack_at(ms(1_001), 300_000);
    let segment = sack(&w, 300_000, (301_448, 302_896));
    w.inject_at(ms(1_005), WAN, segment);
    w.ack_at(ms(1_006), 302_896);
    let sent = w.run(ms(1_300));
    assert_eq!(told(&w, &sent), steps(302_896));
}

#[test]
fn progress_with_a_hole_behind_it_is_held_and_its_block_goes_with_it() {
    let mut w = missed(sized());
    let segment = sack(&w, 300_000, (301_448, 302_896));
    w.inject_at(ms(1_001), WAN, segment);
    // A newer one at a higher number, and an older one that it has overtaken.
    let segment = sack(&w, 302_896, (304_344, 305_792));
    w.inject_at(ms(1_002), WAN, segment);
    let segment = sack(&w, 300_000, (301_448, 302_000));
    w.inject_at(ms(1_003), WAN, segment);
    let sent = w.run(ms(1_300));
    let mut expected = steps(302_896);
    expected.last_mut().unwrap().2 = Some((304_344, 305_792));
    assert_eq!(told(&w, &sent), expected);
}

#[test]
fn without_sack_three_duplicates_are_three_in_their_place() {
    // RFC 5681 §3.2: the third makes the sender retransmit. One alone stays one.
    for (came, go) in [(1, 1), (3, 3), (50, 3)] {
        let mut w = missed(sized());
        w.ack_at(ms(1_001), 300_000);
        for n in 0..came {
            w.ack_at(ms(1_005 + n), 300_000);
        }
        let sent = w.run(ms(1_300));
        let mut expected = steps(300_000);
        expected.extend(vec![(ms(1_231), 300_000, None); go]);
        assert_eq!(told(&w, &sent), expected, "{came}");
        assert!(sent.iter().all(|s| w.tcp(s).window == WINDOW), "or else they are no duplicates");
        w.finish();
    }
}

#[test]
fn a_window_that_is_kept_lets_losses_be_told_at_once() {
    let mut w = missed(basic());
    w.ack_at(ms(1_001), 300_000);
    let segment = sack(&w, 300_000, (301_448, 302_896));
    w.inject_at(ms(1_005), WAN, segment);
    let sent = w.run(ms(1_009));
    let all = [
        (ms(1_001), 22_500, None),
        (ms(1_005), 300_000, None),
        (ms(1_005), 300_000, Some((301_448, 302_896))),
    ];
    assert_eq!(told(&w, &sent), all);
}

#[test]
fn flows_that_share_a_rate_hear_of_a_hole_in_their_turn() {
    let mut w = missed(AckControl::ack_share(Rate::mbit(8))); // a byte takes a microsecond
    w.ack_at(ms(1_001), 100_000);
    let segment = sack(&w, 100_000, (101_448, 102_896));
    w.inject_at(ms(1_005), WAN, segment);
    let sent = w.run(ms(1_400));
    let told = told(&w, &sent);
    // From 10,000 to 100,000 in turns of two segments of 1,448 bytes, 2,896 us apart: 90 ms, and the 84 ms
    // that 90,000 bytes that came unpermitted are ahead of the clock, which is 100 ms at most.
    let [.., last] = told[..] else { panic!("{told:?}") };
    assert!(last.0 >= ms(1_090) && last.1 == 100_000, "{told:?}");
    assert_eq!(told.iter().filter(|t| t.2.is_some()).collect::<Vec<_>>(), [&last]);
    assert!(told.windows(2).all(|p| p[1].1 - p[0].1 <= 2 * 1_460), "{told:?}");
}

/// Without a scale it is unknown how far a smaller window takes the right edge left. Each field goes with a
/// number that it came with, or with a lower one, and what lies between a larger field's number and a smaller
/// one's goes whole.
#[test]
fn windows_without_a_scale_go_with_their_numbers() {
    let mut w = missed(sized());
    let rows =
        [(1_001, 60_000, 4_000), (1_002, 80_000, 3_990), (1_003, 90_000, 3_995), (1_004, 100_000, 3_980)];
    for (at, n, window) in rows {
        let segment = w.ack_segment(n).window(window);
        w.inject_at(ms(at), WAN, segment);
    }
    let sent = w.run(ms(1_100));
    let seen: Vec<(u32, u16)> = sent.iter().map(|s| (w.rel(s), w.tcp(s).window)).collect();
    assert_eq!(seen, [(22_500, 4_000), (35_000, 4_000), (47_500, 4_000), (60_000, 4_000), (100_000, 3_980)]);
    // One that is as large as the largest puts an end to that.
    let rows = [(1_201, 200_000, 4_000), (1_202, 210_000, 3_990), (1_203, 250_000, 4_000)];
    for (at, n, window) in rows {
        let segment = w.ack_segment(n).window(window);
        w.inject_at(ms(at), WAN, segment);
    }
    let sent = w.run(ms(1_500));
    assert!(sent.len() >= 12 && sent.iter().all(|s| w.tcp(s).window == 4_000), "{:?}", numbers(&sent));
    assert_eq!(numbers(&sent).last().unwrap().1, 250_000);
    w.finish();
}

/// RFC 8985 §7.4.2: the sender takes it for a loss if an ACK goes beyond its probe without a duplicate SACK
/// of it.
#[test]
fn what_answers_a_probe_lets_nothing_go_early() {
    for v6 in [false, true] {
        let mut w = if v6 { Net::v6(sized(), 1) } else { Net::established(sized()) };
        w.ack_at(ms(1_000), 50_000);
        // The last segment again.
        let segment = sack(&w, 50_000, (48_540, 50_000));
        w.inject_at(ms(1_003), WAN, segment);
        let sent = w.run(ms(1_100));
        let block = Some((48_540, 50_000));
        let expected = [
            (ms(1_000), STEP, None),
            (ms(1_010), 2 * STEP, None),
            (ms(1_020), 3 * STEP, None),
            (ms(1_030), 50_000, block),
        ];
        assert_eq!(told(&w, &sent), expected);
        assert_eq!(w.debt(), 0);
        w.finish();
    }
}

#[test]
fn a_duplicate_sack_goes_with_the_first_ack_that_reaches_it() {
    let mut w = Net::established(sized());
    w.ack_at(ms(1_000), 50_000);
    let segment = sack(&w, 50_000, (28_540, 30_000));
    w.inject_at(ms(1_003), WAN, segment);
    w.ack_at(ms(1_004), 60_000);
    let sent = w.run(ms(1_100));
    let expected = [
        (ms(1_000), STEP, None),
        (ms(1_010), 2 * STEP, None),
        (ms(1_020), 3 * STEP, Some((28_540, 30_000))),
        (ms(1_030), 4 * STEP, None),
        (ms(1_040), 60_000, None),
    ];
    assert_eq!(told(&w, &sent), expected);
}

#[test]
fn a_duplicate_sack_of_what_the_sender_knows_goes_at_once_alone() {
    let mut w = Net::established(sized());
    w.ack_at(ms(1_000), 50_000);
    let segment = sack(&w, 50_000, (5_000, 6_460));
    w.inject_at(ms(1_003), WAN, segment);
    let sent = w.run(ms(1_010));
    let expected =
        [(ms(1_000), STEP, None), (ms(1_003), STEP, Some((5_000, 6_460))), (ms(1_010), 2 * STEP, None)];
    assert_eq!(told(&w, &sent), expected);
    let edge = |s: &Sent| w.rel(s) + 128 * u32::from(w.tcp(s).window);
    assert!(sent.windows(2).all(|p| edge(&p[1]) + 128 > edge(&p[0])), "no edge moves left");
}

#[test]
fn a_sender_whose_timer_has_run_out_hears_of_everything_at_once() {
    let mut w = Net::established(sized());
    w.ack_at(ms(1_000), 50_000);
    // RFC 6298 §5.4: the earliest segment that it has not heard of.
    let segment = sack(&w, 50_000, (STEP, STEP + 1_460));
    w.inject_at(ms(1_003), WAN, segment);
    let sent = w.run(ms(1_009));
    let block = Some((STEP, STEP + 1_460));
    assert_eq!(
        told(&w, &sent),
        [(ms(1_000), STEP, None), (ms(1_003), 50_000, None), (ms(1_003), 50_000, block)]
    );
}

#[test]
fn what_answers_a_probe_may_leave_as_it_came() {
    let mut w = Net::established(sized());
    let segment = sack(&w, 10_000, (8_540, 10_000));
    let came = segment.build();
    w.inject_at(ms(1_000), WAN, segment);
    let sent = w.run(ms(1_100));
    assert_eq!(told(&w, &sent), [(ms(1_000), 10_000, Some((8_540, 10_000)))]);
    assert_eq!(came.len(), sent[0].len);
}

#[test]
fn a_probe_s_answer_survives_the_engine() {
    let mut w = Net::hooked(sized());
    w.ack_at(ms(1_000), 50_000);
    let segment = sack(&w, 50_000, (48_540, 50_000));
    w.inject_at(ms(1_003), WAN, segment);
    w.run(ms(1_004));
    let (records, slots) = w.shared();
    let mut buf = [0; MAX_ACK_LEN];
    let len = rescue_ack(&records[0], &slots[0], &mut buf).unwrap();
    let packet = wire::packet(&buf[..len], len).unwrap();
    let tcp = wire::tcp(&buf[..len], &packet).unwrap();
    let options = wire::tcp_options(&buf[..len], &packet, &tcp).unwrap();
    assert_eq!(
        (tcp.ack.0, options.sack.as_slice()),
        (w.abs(50_000), &[(Seq(w.abs(48_540)), Seq(w.abs(50_000)))][..])
    );
}

#[test]
fn a_hole_that_waits_is_told_by_the_next_engine() {
    let mut dead = missed(sized());
    dead.ack_at(ms(1_001), 300_000);
    let segment = sack(&dead, 300_000, (301_448, 302_896));
    dead.inject_at(ms(1_005), WAN, segment);
    dead.run(ms(1_050));
    let (records, slots) = dead.shared();
    let mut w = Net::with_shared(config(sized()), records, slots);
    let sent = w.run(ms(500));
    let told = told(&w, &sent);
    // From 72,500 on: 227,500 bytes at 10 Mb/s are 182 ms.
    let [first, .., last] = told[..] else { panic!("{told:?}") };
    assert_eq!((last.1, last.2), (300_000, Some((301_448, 302_896))));
    assert!(last.0.since(first.0) >= Duration::from_millis(160), "{told:?}");
    assert_eq!(told.iter().filter(|t| t.2.is_some()).count(), 1);
}
