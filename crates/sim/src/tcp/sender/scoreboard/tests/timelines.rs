//! Examples of RFCs, step by step.

use super::*;

const MIN_RTT: Duration = Duration::from_millis(100);

/// Handles an ACK. Returns RACK's result.
fn rack(
    b: &mut Scoreboard,
    una: u64,
    blocks: &[(u64, u64)],
    at: u64,
    window: u64,
) -> (u64, Option<Duration>) {
    let p = b.on_ack(una, blocks, ms(at));
    b.rack_update(&p, ms(at), MIN_RTT, None);
    b.rack_detect(ms(at), Duration::from_millis(window))
}

fn piece(start: u64) -> Option<Piece> {
    Some(Piece { start, len: 1000 })
}

#[test]
fn rfc_8985_fast_recovery_after_a_tail_loss_probe() {
    // RFC 8985 §3.3, first example: P1, P2 and P3 of four are lost; RTT 100 ms.
    let mut b = Scoreboard::new();
    b.send(4, 1000, 0);
    let p = b.on_ack(1000, &[], ms(100));
    assert_eq!((p.acked, p.rtt), (1000, Some(MIN_RTT)));
    // Two RTTs later the probe repeats the last segment. This counts twice, and the segment must not be lost.
    assert_eq!(b.last(), piece(3000));
    b.retransmitted(3000, sent(300));
    assert_eq!(b.in_flight(), 4000);
    // SACK for P3: P1 and P2 were sent 400 ms ago, which is longer than RTT + RTT / 4.
    assert_eq!(rack(&mut b, 1000, &[(3000, 4000)], 400, 25), (2000, None));
    assert_eq!((b.in_flight(), b.lost(), b.sacked()), (0, 2000, 1000));
    for start in [1000, 2000] {
        assert_eq!(b.next_lost(), piece(start));
        b.retransmitted(start, sent(400));
    }
    assert_eq!((b.next_lost(), b.in_flight()), (None, 2000));
    // The retransmission of P1 is lost too. That of P2 was sent at the same time, but is higher in the
    // stream.
    assert_eq!(rack(&mut b, 1000, &[(2000, 4000)], 500, 0), (1000, None));
    assert_eq!(b.next_lost(), piece(1000));
    b.retransmitted(1000, sent(500));
    let p = b.on_ack(4000, &[], ms(600));
    assert_eq!((p.acked, p.delivered, p.rtt, p.retransmitted), (3000, 1000, None, true));
    assert!(b.is_empty() && b.in_flight() == 0 && !b.lost_pending() && b.first().is_none());
}

#[test]
fn rack_goes_by_the_order_in_which_segments_left() {
    // The first of four is lost. In the instant of detection a new segment leaves, then the first again, then
    // another new one. RTT 100 ms, no reordering. The order of departure decides what the new ones say about
    // the retransmission.
    let mut b = Scoreboard::new();
    b.send(4, 1000, 0);
    assert_eq!(rack(&mut b, 0, &[(1000, 4000)], 100, 0), (1000, None));
    b.send(1, 1000, 100);
    b.retransmitted(0, sent(100));
    b.send(1, 1000, 100);
    assert_eq!(rack(&mut b, 0, &[(1000, 5000)], 200, 0), (0, None));
    assert_eq!(rack(&mut b, 0, &[(1000, 6000)], 200, 0), (1000, None));
}

#[test]
fn rack_waits_for_the_last_that_may_be_late() {
    // Segments sent 1 ms apart. The fifth is delivered first, RTT 100 ms, window 25 ms.
    let mut b = Scoreboard::new();
    (0..6).for_each(|n| b.send(1, 1000, n));
    assert_eq!(rack(&mut b, 0, &[(4000, 5000)], 104, 25), (0, Some(Duration::from_millis(24))));
    // The timer was for the fourth: sent at 3 ms, lost at 3 + 100 + 25. The others were due before.
    assert_eq!(b.rack_detect(ms(127), Duration::from_millis(25)), (3000, Some(Duration::from_millis(1))));
    assert_eq!(b.rack_detect(ms(128), Duration::from_millis(25)), (1000, None));
    // The last was sent after the delivered one: nothing is known about it.
    assert_eq!((b.in_flight(), b.lost(), b.sacked()), (1000, 4000, 1000));
}

#[test]
fn rack_ignores_what_may_be_the_original() {
    // RFC 8985 §6.2 step 2. Sent at 0, retransmitted at 300 ms.
    let again = || {
        let mut b = Scoreboard::new();
        b.send(3, 1000, 0);
        b.mark_all_lost(false);
        b.retransmitted(2000, sent(300));
        b.retransmitted(1000, sent(301));
        b.undo_lost(); // the first is in flight as before
        b
    };
    // 50 ms after the retransmission: less than any round trip.
    let mut b = again();
    assert_eq!(rack(&mut b, 0, &[(2000, 3000)], 350, 0), (0, None));
    // 99 ms after, but its ACK echoes a timestamp from before; then one from after.
    for (echoed, lost) in [(300, 0), (301, 1000)] {
        let mut b = again();
        let p = b.on_ack(2000, &[], ms(400));
        b.rack_update(&p, ms(400), Duration::from_millis(99), Some(ms(echoed)));
        assert_eq!(b.rack_detect(ms(400), Duration::ZERO), (lost, None), "{echoed}");
    }
    // The echo does not belong to SACKed segments (RFC 7323 §4.3): it is of the SYN here.
    let mut b = again();
    let p = b.on_ack(0, &[(2000, 3000)], ms(400));
    b.rack_update(&p, ms(400), MIN_RTT, Some(ms(0)));
    assert_eq!(b.rack_detect(ms(400), Duration::ZERO), (1000, None));
    // A segment never retransmitted is beyond doubt. It does not replace a newer one.
    let mut b = again();
    assert_eq!(rack(&mut b, 0, &[(2000, 3000)], 400, 0), (1000, None));
    assert_eq!(rack(&mut b, 1000, &[], 410, 0), (0, None));
    assert_eq!(b.in_flight(), 1000);
}

#[test]
fn rack_after_a_time_out_spares_what_was_sent_lately() {
    // RFC 8985 §6.3: RTT 100 ms, window 25 ms, the timer expires 300 ms after the first.
    let mut b = Scoreboard::new();
    b.send(1, 1000, 0);
    assert_eq!(rack(&mut b, 1000, &[], 100, 25), (0, None));
    for at in [100, 275, 276] {
        b.send(1, 1000, at);
    }
    b.retransmitted(1000, sent(390)); // a probe; the first is lost whenever it was sent
    assert_eq!(b.rack_mark_on_timeout(ms(400), Duration::from_millis(25)), 2000);
    assert_eq!((b.lost(), b.in_flight(), b.next_lost()), (2000, 1000, piece(1000)));
}

#[test]
fn reordering_window() {
    // RFC 8985 §6.2 step 4.
    let (rtt, srtt) = (Duration::from_millis(100), Duration::from_millis(110));
    let mut r = Rack::new();
    let window =
        |r: &Rack, seen, recovery, sacked| r.reorder_window(seen, rtt, srtt, recovery, sacked).as_micros();
    assert_eq!(window(&r, false, false, 2), 25_000);
    assert_eq!(window(&r, false, false, 3), 0);
    assert_eq!(window(&r, false, true, 0), 0);
    assert_eq!(window(&r, true, true, 3), 25_000);
    // The window grows once per round: until 5000 is acknowledged.
    r.on_dsack(1000, 5000);
    r.on_dsack(4999, 6000);
    assert_eq!(window(&r, true, false, 0), 50_000);
    r.on_dsack(5000, 9000);
    assert_eq!(window(&r, true, false, 0), 75_000);
    // The window never exceeds SRTT.
    (0..3).for_each(|n| r.on_dsack(9000 + n * 1000, 10_000 + n * 1000));
    assert_eq!(window(&r, true, false, 0), 110_000);
    // Sixteen recoveries without a DSACK, counted from the last.
    (0..10).for_each(|_| r.on_recovery_exit());
    r.on_dsack(20_000, 30_000);
    (0..15).for_each(|_| r.on_recovery_exit());
    assert_eq!(window(&r, true, false, 0), 110_000);
    r.on_recovery_exit();
    assert_eq!(window(&r, true, false, 0), 25_000);
}

#[test]
fn reordering_is_seen_below_what_was_delivered_only() {
    let mut b = Scoreboard::new();
    b.send(5, 1000, 0);
    // Segments of one ACK are taken in stream order, whatever the order of the blocks.
    assert!(!b.on_ack(0, &[(4000, 5000), (2000, 3000)], ms(100)).reordered);
    b.retransmitted(0, sent(101));
    // The first was retransmitted, so it says nothing. The second was not.
    assert!(!b.on_ack(1000, &[], ms(201)).reordered);
    assert!(!b.seen_reordering());
    assert!(b.on_ack(2000, &[], ms(202)).reordered);
    assert!(b.seen_reordering());
    assert!(!b.on_ack(5000, &[], ms(203)).reordered || b.seen_reordering());
}

#[test]
fn is_lost_of_rfc_6675() {
    // DupThresh discontiguous ranges, or more than (DupThresh - 1) × SMSS bytes, above.
    let lost_by = |blocks: &[(u64, u64)]| {
        let mut b = Scoreboard::new();
        b.send(10, 1000, 0);
        b.send(4, 500, 0); // 10,000 to 12,000
        b.on_ack(0, blocks, ms(100));
        b.mark_lost_by_sack(3)
    };
    assert_eq!(lost_by(&[(1000, 3000)]), 0); // 2 × SMSS is not more
    assert_eq!(lost_by(&[(1000, 4000)]), 1000);
    assert_eq!(lost_by(&[(8000, 10_500)]), 8000); // 2,500 bytes
    assert_eq!(lost_by(&[(10_000, 10_500), (11_000, 11_500)]), 0);
    assert_eq!(lost_by(&[(9000, 9500), (10_000, 10_500), (11_000, 11_500)]), 0); // the first covers no piece
    assert_eq!(lost_by(&[(8000, 9000), (10_000, 10_500), (11_000, 11_500)]), 8000);
    // three ranges, 2,000 bytes
}

#[test]
fn next_seg_of_rfc_6675() {
    let mut b = Scoreboard::new();
    b.send(8, 1000, 0);
    // 0 lost, 1 to 3 SACKed, 4 missing, 5 SACKed, 6 and 7 unknown.
    b.on_ack(0, &[(5000, 6000), (1000, 4000)], ms(100));
    assert_eq!(b.mark_lost_by_sack(3), 1000);
    // 4, 6 and 7 are in flight.
    assert_eq!((b.in_flight(), b.high_sacked()), (3000, 6000));
    assert_eq!(b.next_lost(), piece(0)); // rule 1
    b.retransmitted(0, sent(100));
    assert_eq!((b.next_lost(), b.in_flight()), (None, 4000));
    assert_eq!(b.next_unsacked(), piece(4000)); // rule 3
    b.retransmitted(4000, sent(100));
    assert_eq!((b.next_unsacked(), b.in_flight()), (None, 5000)); // 4 may be there twice
    assert_eq!(b.last_unsacked(), piece(7000)); // rule 4
    b.on_ack(0, &[(7000, 8000)], ms(150));
    assert_eq!(b.last_unsacked(), piece(6000));
    // Segment 4 is lost as well now: its original, while the retransmission is in flight.
    assert_eq!(b.mark_lost_by_sack(2), 1000);
    assert_eq!((b.next_lost(), b.in_flight()), (None, 3000));
}

#[test]
fn newreno_counts_duplicate_acks_as_departures() {
    // RFC 6582: 10 segments, the first and the fifth are lost; 8 duplicate ACKs.
    let mut b = Scoreboard::new();
    b.send(10, 1000, 0);
    b.set_duplicates(3);
    assert_eq!(b.mark_first_lost(), 1000);
    assert_eq!(b.in_flight(), 6000); // 9 minus 3
    assert_eq!(b.next_lost(), piece(0));
    b.retransmitted(0, sent(100));
    b.set_duplicates(8);
    assert_eq!(b.in_flight(), 2000); // the fifth, and the first again
    assert_eq!(b.mark_first_lost(), 0);
    // The partial ACK covers four: the retransmission and three that had been duplicates.
    let p = b.on_ack(4000, &[], ms(200));
    assert_eq!((p.acked, p.delivered, p.retransmitted), (4000, 4000, true));
    assert_eq!((b.duplicates(), b.in_flight()), (5, 1000));
    assert_eq!(b.mark_first_lost(), 1000);
    assert_eq!(b.in_flight(), 0);
    b.retransmitted(4000, sent(200));
    assert_eq!(b.in_flight(), 1000);
    // More duplicates than segments prove nothing.
    b.set_duplicates(100);
    assert_eq!(b.in_flight(), 1000);
    // The retransmission is lost as well: only a time-out finds that. It ends the count.
    assert_eq!(b.mark_all_lost(true), 6000);
    assert_eq!((b.duplicates(), b.in_flight(), b.lost()), (0, 0, 6000));
}

#[test]
fn a_cumulative_ack_may_end_within_a_piece() {
    let mut b = Scoreboard::new();
    b.send(3, 1000, 0);
    let p = b.on_ack(1500, &[], ms(100));
    // Only whole segments are timed.
    assert_eq!((p.acked, p.delivered, p.rtt), (1500, 1500, Some(MIN_RTT)));
    assert_eq!((b.first(), b.in_flight()), (Some(Piece { start: 1500, len: 500 }), 1500));
    assert_eq!((b.mark_first_lost(), b.lost()), (500, 500));
    let p = b.on_ack(1600, &[], ms(110));
    assert_eq!((p.acked, p.rtt, p.newest), (100, None, None));
    assert_eq!((b.next_lost(), b.lost()), (Some(Piece { start: 1600, len: 400 }), 400));
    b.retransmitted(1600, sent(120));
    assert_eq!((b.in_flight(), b.next_lost()), (1400, None));
    assert_eq!(b.on_ack(1700, &[], ms(130)).acked, 100);
    assert_eq!(b.in_flight(), 1300);
    b.on_ack(1700, &[(1800, 3000)], ms(140));
    assert_eq!((b.sacked(), b.in_flight()), (1000, 300));
}

#[test]
fn a_block_that_cuts_a_piece_counts_for_whole_pieces() {
    let mut b = Scoreboard::new();
    b.send(4, 1000, 0);
    assert_eq!(b.on_ack(0, &[(1500, 3500)], ms(1)).delivered, 1000);
    assert_eq!((b.sacked(), b.high_sacked(), b.sacked_segments()), (1000, 3000, 1));
    // The block grows on both sides.
    assert_eq!(b.on_ack(0, &[(1000, 4000)], ms(2)).delivered, 2000);
    b.check();
}

#[test]
fn round_trip_times() {
    let sends = |b: &mut Scoreboard| (0..6).for_each(|n| b.send(1, 1000, n * 10));
    let rtts = |p: Progress| (p.rtt.map(Duration::as_micros), p.rtt_newest.map(Duration::as_micros));
    let mut b = Scoreboard::new();
    sends(&mut b);
    // One ACK for two: the delay of the ACK is part of the time (RFC 6298 §3 with RFC 7323 §4.3).
    assert_eq!(rtts(b.on_ack(2000, &[], ms(110))), (Some(110_000), Some(100_000)));
    // SACKed segments are used if nothing is acknowledged.
    assert_eq!(rtts(b.on_ack(2000, &[(4000, 6000), (3000, 4000)], ms(160))), (Some(130_000), Some(110_000)));
    // Segments SACKed before give no sample now. Retransmitted ones never do.
    b.retransmitted(2000, sent(160));
    assert_eq!(rtts(b.on_ack(6000, &[], ms(300))), (None, None));

    // Without SACK the third waits at the receiver until the second has been retransmitted.
    let mut b = Scoreboard::new();
    sends(&mut b);
    b.on_ack(1000, &[], ms(100));
    b.retransmitted(1000, sent(200));
    let p = b.on_ack(6000, &[], ms(300));
    assert_eq!((rtts(p), p.retransmitted), ((None, None), true));
    assert_eq!(p.newest, Some((sent(200), true)));
}

#[test]
fn a_spurious_time_out_is_taken_back() {
    // RFC 5682: the first is retransmitted. The next ACK is also for the second, which was not.
    let mut b = Scoreboard::new();
    b.send(5, 1000, 0);
    assert_eq!(b.mark_all_lost(false), 5000);
    b.retransmitted(0, sent(1000));
    assert_eq!(b.in_flight(), 1000);
    b.on_ack(2000, &[], ms(1010));
    assert_eq!(b.undo_lost(), 3000);
    assert_eq!((b.in_flight(), b.lost(), b.next_lost()), (3000, 0, None));
    b.check();
}

#[test]
fn a_receiver_that_reneges() {
    // RFC 2018 §8: after a time-out SACKed data is sent again.
    let mut b = Scoreboard::new();
    b.send(4, 1000, 0);
    b.on_ack(0, &[(1000, 3000)], ms(100));
    assert_eq!(b.mark_all_lost(false), 2000);
    assert_eq!((b.sacked(), b.in_flight()), (2000, 0));
    assert_eq!(b.mark_all_lost(true), 2000);
    assert_eq!((b.sacked(), b.lost(), b.high_sacked(), b.sacked_segments()), (0, 4000, 0, 0));
    for start in [0, 1000, 2000, 3000] {
        assert_eq!(b.next_lost(), piece(start));
        b.retransmitted(start, sent(500));
    }
    b.check();
}

#[test]
fn idle_connections_cost_next_to_nothing() {
    let b = Scoreboard::new();
    assert!(b.is_empty() && b.ring_capacity() == 0);
    assert!(size_of::<Scoreboard>() <= 384, "{}", size_of::<Scoreboard>());
}

#[test]
fn places_are_given_up_that_a_window_does_not_need_any_more() {
    let mut b = Scoreboard::new();
    let round = |b: &mut Scoreboard, segments: u64| {
        b.send(segments, 1000, 0);
        b.on_ack(b.nxt(), &[], ms(100));
        b.ring_capacity()
    };
    assert_eq!(round(&mut b, 32), 32);
    // A quarter of 16 places would do for 3 segments, but no quarter of 8.
    (0..30).for_each(|_| assert!(round(&mut b, 3) >= 8));
    assert_eq!(round(&mut b, 3), 8);
    assert_eq!(round(&mut b, 32), 32);
    b.check();
}

impl Scoreboard {
    fn ring_capacity(&self) -> usize {
        self.ring.capacity() + self.ranges.capacity()
    }
}
