//! Number of visits per segment, which must not grow with the window.

use super::*;

const LEN: u32 = 1448;
const SEGMENT: u64 = LEN as u64;

/// Maximum average of visits per segment over its life: linked, SACKed or acknowledged, unlinked, marked,
/// retransmitted. Each takes a few visits to it and its two neighbours in time. One visit per segment of the
/// window and ACK would be thousands.
const MOST: u64 = 40;

fn window(n: u64) -> Scoreboard {
    let mut b = Scoreboard::new();
    b.send(n, LEN, 0);
    b
}

fn retransmit_all(b: &mut Scoreboard, at: u64) {
    while let Some(p) = b.next_lost() {
        b.retransmitted(p.start, sent(at));
    }
}

#[test]
fn one_hole_and_a_block_that_grows() {
    for n in [1_000, 10_000] {
        let mut b = window(n);
        for k in 2..=n {
            let p = b.on_ack(0, &[(SEGMENT, k * SEGMENT)], ms(100));
            b.rack_update(&p, ms(100), Duration::from_millis(100), None);
            b.rack_detect(ms(100), Duration::from_millis(25));
            b.mark_lost_by_sack(3);
            retransmit_all(&mut b, 100);
        }
        b.on_ack(n * SEGMENT, &[], ms(200));
        assert!(b.is_empty());
        assert!(b.touched() <= MOST * n, "{} of {n}", b.touched() / n);
    }
}

/// Every tenth segment is lost, and every third retransmission. The receiver reports the three newest ranges.
fn many_holes(n: u64, rack: bool) -> u64 {
    let mut b = window(n);
    let lost = |k: u64| k % 10 == 0;
    for k in (0..n).filter(|&k| !lost(k)) {
        let range = |i: u64| (i * 10 * SEGMENT + SEGMENT, ((i * 10 + 10).min(k + 1)) * SEGMENT);
        let newest = k / 10;
        let blocks: Vec<_> = (newest.saturating_sub(2)..=newest).rev().map(range).collect();
        let p = b.on_ack(0, &blocks, ms(100));
        detect(&mut b, &p, rack, 100);
        retransmit_all(&mut b, 100);
    }
    for (round, every) in [(2, 3), (3, 1)] {
        let now = round * 100;
        for k in (0..n).filter(|&k| lost(k) && (k / 10 % every != 0 || every == 1)) {
            let block = (k * SEGMENT, (k + 10).min(n) * SEGMENT);
            let p = b.on_ack(0, &[block], ms(now));
            detect(&mut b, &p, rack, now);
            retransmit_all(&mut b, now);
        }
    }
    assert_eq!(b.sacked(), n * SEGMENT);
    b.on_ack(n * SEGMENT, &[], ms(400));
    assert!(b.is_empty());
    b.touched()
}

fn detect(b: &mut Scoreboard, p: &Progress, rack: bool, now: u64) {
    if rack {
        b.rack_update(p, ms(now), Duration::from_millis(100), None);
        b.rack_detect(ms(now), Duration::ZERO);
    } else {
        b.mark_lost_by_sack(3);
    }
}

#[test]
fn many_holes_found_by_sack_and_by_time() {
    for n in [1_000, 10_000] {
        for rack in [false, true] {
            let touched = many_holes(n, rack);
            assert!(touched <= MOST * n, "{} of {n}, rack {rack}", touched / n);
        }
    }
}

#[test]
fn a_reordering_window_that_keeps_everything_waiting() {
    // Everything arrives 1 ms late behind an early segment: every ACK searches, and nothing is lost.
    let n = 10_000;
    let mut b = window(n);
    let p = b.on_ack(0, &[((n - 1) * SEGMENT, n * SEGMENT)], ms(100));
    b.rack_update(&p, ms(100), Duration::from_millis(100), None);
    for k in 1..n {
        let p = b.on_ack(k * SEGMENT, &[], ms(101));
        b.rack_update(&p, ms(101), Duration::from_millis(100), None);
        let (lost, wait) = b.rack_detect(ms(101), Duration::from_millis(25));
        assert_eq!((lost, wait.is_some()), (0, k < n - 1));
    }
    assert!(b.touched() <= MOST * n, "{}", b.touched() / n);
}

#[test]
fn a_flight_that_arrives_in_reverse() {
    // The last segment that may be late arrives next, every time.
    let n = 10_000;
    let mut b = window(n);
    for k in (1..n).rev() {
        let p = b.on_ack(0, &[(k * SEGMENT, n * SEGMENT)], ms(100));
        b.rack_update(&p, ms(100), Duration::from_millis(100), None);
        assert!(b.rack_detect(ms(100), Duration::from_millis(25)).1.is_some());
    }
    assert!(b.touched() <= MOST * n, "{}", b.touched() / n);
}

#[test]
fn repeating_the_window_after_a_time_out() {
    let n = 10_000;
    let mut b = window(n);
    assert_eq!(b.mark_all_lost(false), n * SEGMENT);
    for k in 0..n {
        let p = b.next_lost().expect("as many as were marked");
        b.retransmitted(p.start, sent(1000 + k));
        b.on_ack((k + 1) * SEGMENT, &[], ms(1000 + k));
    }
    assert!(b.touched() <= MOST * n, "{}", b.touched() / n);
}

#[test]
fn two_losses_far_apart() {
    // The first segment is lost again and again, and the second must wait. All between is SACKed.
    let n = 10_000;
    let mut b = window(n);
    b.on_ack(0, &[(SEGMENT, (n - 2) * SEGMENT), ((n - 1) * SEGMENT, n * SEGMENT)], ms(100));
    assert_eq!(b.mark_all_lost(false), 2 * SEGMENT);
    for k in 0..n {
        b.retransmitted(0, sent(200 + k));
        assert_eq!(b.next_lost().map(|p| p.start), Some((n - 2) * SEGMENT));
        b.rack_mark_on_timeout(ms(200 + k), Duration::ZERO);
        assert_eq!(b.next_lost().map(|p| p.start), Some(0));
    }
    assert!(b.touched() <= MOST * n, "{}", b.touched() / n);
}

#[test]
fn taking_back_a_time_out() {
    let n = 10_000;
    let mut b = window(n);
    b.mark_all_lost(false);
    (0..n / 2).for_each(|k| b.retransmitted(k * SEGMENT, sent(1000 + k)));
    b.undo_lost();
    assert!(b.touched() <= MOST * n, "{}", b.touched() / n);
}
