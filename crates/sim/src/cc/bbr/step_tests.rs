//! Single steps of BBR by hand: 1 MB/s and 100 ms, so a BDP of 100 segments.

use super::super::rig::{ack_of_a_segment, MSS};
use super::super::RateSample;
use super::*;

const RTT: Duration = Duration::from_millis(100);
const BW: u64 = 1_000_000;

fn window(segments: u64) -> Window {
    Window { cwnd: segments * MSS, ssthresh: u64::MAX, mss: MSS as u32 }
}

/// Creates a flow in [`Mode::ProbeBw`], cruising, that knows its path.
fn cruising() -> Bbr {
    let mut bbr = Bbr::new(&Options::default());
    bbr.on_established(&mut window(10), Time::ZERO, Some(RTT));
    bbr.max_bw.update(0, BW);
    bbr.full.reached = true;
    bbr.mode = Mode::ProbeBw { phase: 3, since: Time::ZERO };
    bbr.set_pacing(BW, UNIT);
    bbr
}

/// Builds the ACK of one segment at this time in milliseconds, with `in_flight` segments after it.
fn ack(ms: u64, in_flight: u64) -> Ack {
    Ack {
        growth_limit: u64::MAX,
        total_delivered: 1_000 * MSS,
        prior_in_flight: (in_flight + 1) * MSS,
        in_flight: in_flight * MSS,
        rtt: Some(RTT),
        srtt: RTT,
        min_rtt: RTT,
        ..ack_of_a_segment(Time::from_millis(ms))
    }
}

fn sample(bw: u64, prior_delivered: u64, app_limited: bool) -> Option<RateSample> {
    let delivered = bw / 10;
    Some(RateSample { delivered, interval: RTT, prior_delivered, app_limited, retransmitted: false })
}

#[test]
fn what_may_be_in_flight_is_the_bdp_in_even_segments_and_three_bursts() {
    // 990 kB/s are 966 bytes in 1/1024 s, less than a segment. Bursts are still two segments, since the rate
    // is above 1.2 Mb/s.
    let mut bbr = cruising();
    let w = window(100);
    assert_eq!(bbr.inflight(&w, UNIT), (100 + 3 * 2) * MSS);
    assert_eq!(bbr.inflight(&w, 2 * UNIT), (200 + 6) * MSS);
    // 1001 bytes are two segments, and the sum is made even.
    bbr.max_bw.update(0, BW + 10);
    assert_eq!(bbr.inflight(&w, UNIT), (101 + 6 + 1) * MSS);
    // Probing for bandwidth adds two more.
    bbr.mode = Mode::ProbeBw { phase: 0, since: Time::ZERO };
    assert_eq!(bbr.inflight(&w, UNIT), (101 + 6 + 1 + 2) * MSS);
    // 20 MB/s at 99 %: 19,335 bytes in a burst; 100 kB/s: single segments.
    bbr.max_bw.update(0, 20 * BW);
    bbr.mode = Mode::ProbeBw { phase: 3, since: Time::ZERO };
    bbr.set_pacing(20 * BW, UNIT);
    assert_eq!(bbr.inflight(&w, UNIT), (2_000 + 3 * 19 + 1) * MSS);
    let mut slow = cruising();
    slow.max_bw.update(20, BW / 10);
    slow.set_pacing(BW / 10, UNIT);
    assert_eq!(slow.inflight(&w, UNIT), (10 + 3 + 1) * MSS);
    // Without a delay estimate, the initial window applies.
    slow.min_rtt = None;
    assert_eq!(slow.inflight(&w, UNIT), (10 + 3 + 1) * MSS);
}

#[test]
fn the_pipe_is_full_after_three_rounds_below_a_quarter_more() {
    let mut bbr = Bbr::new(&Options::default());
    let mut round = |bw, app_limited| {
        let next = bbr.round.count + 1;
        bbr.round = Round { count: next, end: 0, started: true };
        bbr.max_bw.update(next, bw);
        bbr.check_full_pipe(app_limited);
        bbr.full.rounds
    };
    assert_eq!(round(1_000, false), 0);
    assert_eq!(round(1_250, false), 0);
    // A quarter more than 1250 is 1562.
    assert_eq!(round(1_561, false), 1);
    // Rounds limited by the application do not count.
    assert_eq!(round(1_561, true), 1);
    assert_eq!(round(1_562, false), 0);
    assert_eq!([1, 2, 3].map(|_| round(1_562, false)), [1, 2, 3]);
    assert!(bbr.full.reached);
}

#[test]
fn a_phase_of_the_cycle_ends_by_time_queue_or_loss() {
    let next = |phase, a: Ack| {
        let mut bbr = cruising();
        bbr.mode = Mode::ProbeBw { phase, since: Time::ZERO };
        bbr.update_cycle(&window(200), &a);
        bbr.mode != Mode::ProbeBw { phase, since: Time::ZERO }
    };
    // Cruising lasts longer than the delay.
    assert!(!next(3, ack(100, 90)) && next(3, ack(101, 90)));
    // Probing ends after that, with 125 + 6 + 1 + 2 segments in the network including the two that leave
    // next, or with a loss. The ACK took one.
    assert!(!next(0, ack(101, 130)) && next(0, ack(101, 131)) && !next(0, ack(100, 131)));
    assert!(next(0, Ack { lost: MSS, ..ack(101, 50) }));
    // Draining ends after that, or with no more than 106 segments.
    assert!(next(1, ack(101, 200)) && !next(1, ack(50, 106)) && next(1, ack(50, 105)));
    // If they leave in 5 ms, five fewer are in the network by then. A partial segment does not count.
    let later = |in_flight, us| Ack { gap: Duration::from_micros(us), ..ack(101, in_flight) };
    assert!(!next(0, later(135, 5_000)) && next(0, later(136, 5_000)) && next(0, later(135, 4_999)));
    let soon = |in_flight, us| Ack { now: Time::from_millis(50), ..later(in_flight, us) };
    assert!(!next(1, soon(111, 5_000)) && next(1, soon(110, 5_000)));
    // The first phase follows the last.
    let mut bbr = cruising();
    bbr.mode = Mode::ProbeBw { phase: 7, since: Time::ZERO };
    bbr.update_cycle(&window(200), &ack(101, 90));
    assert_eq!(bbr.mode, Mode::ProbeBw { phase: 0, since: Time::from_millis(101) });
}

#[test]
fn later_rounds_of_recovery_send_two_for_one_but_not_for_what_is_lost() {
    let mut bbr = cruising();
    let mut w = window(206);
    bbr.on_congestion(&mut w, Time::ZERO, 206 * MSS, Congestion::Loss);
    let recovery = |lost| Ack { phase: Phase::Recovery, lost: lost * MSS, ..ack(10, 100) };
    // The first ACK sets the data in flight and the data delivered.
    bbr.set_cwnd(&mut w, &recovery(5), Phase::Recovery);
    assert_eq!((w.cwnd, bbr.conservation), (101 * MSS, true));
    // A round later it grows by the data delivered, less the data lost.
    bbr.conservation = false;
    bbr.set_cwnd(&mut w, &recovery(3), Phase::Recovery);
    assert_eq!(w.cwnd, (101 - 3 + 1) * MSS);
    bbr.set_cwnd(&mut w, &recovery(0), Phase::Recovery);
    assert_eq!(w.cwnd, 100 * MSS);
    // The window is never below one segment after losses, nor below four otherwise.
    bbr.set_cwnd(&mut w, &recovery(500), Phase::Recovery);
    assert_eq!(w.cwnd, 4 * MSS);
    // A time-out in recovery keeps the good window, too.
    bbr.on_timeout(&mut w, Time::ZERO);
    bbr.set_cwnd(&mut w, &ack(300, 0), Phase::Open);
    assert_eq!(w.cwnd, 206 * MSS);
}

#[test]
fn marks_do_not_end_the_window() {
    let mut bbr = cruising();
    let mut w = window(206);
    bbr.on_congestion(&mut w, Time::ZERO, 206 * MSS, Congestion::Ecn);
    bbr.on_ack(&mut w, &Ack { phase: Phase::Reducing, ..ack(10, 100) });
    assert_eq!((w.cwnd, bbr.conservation), (206 * MSS, false));
    // A loss after it ends it.
    bbr.on_congestion(&mut w, Time::ZERO, 206 * MSS, Congestion::Loss);
    bbr.on_ack(&mut w, &Ack { phase: Phase::Recovery, ..ack(11, 100) });
    assert_eq!((w.cwnd, bbr.conservation), (101 * MSS, true));
}

#[test]
fn a_probe_of_the_delay_takes_200_ms_and_a_round_and_gives_the_window_back() {
    let mut bbr = cruising();
    let mut w = window(206);
    let mut at = |bbr: &mut Bbr, ms, in_flight, started| {
        bbr.round.started = started;
        let mut a = ack(ms, in_flight);
        a.rtt = Some(RTT);
        bbr.update_min_rtt(&mut w, &a);
        bbr.set_cwnd(&mut w, &a, Phase::Open);
        (w.cwnd / MSS, bbr.mode == Mode::ProbeRtt)
    };
    assert_eq!(at(&mut bbr, 10_000, 100, false), (206, false));
    assert_eq!(at(&mut bbr, 10_001, 100, false), (4, true));
    // The 200 ms begin here.
    assert_eq!(at(&mut bbr, 10_100, 4, false), (4, true));
    assert_eq!(at(&mut bbr, 10_301, 3, false), (4, true));
    // A round ends, and the probe with it: back to the earlier window.
    assert_eq!(at(&mut bbr, 10_302, 3, true), (206, false));
    assert!(matches!(bbr.mode, Mode::ProbeBw { .. }));
    // If the round had ended earlier, time would decide.
    let mut bbr = cruising();
    at(&mut bbr, 10_001, 4, false);
    assert!(at(&mut bbr, 10_150, 4, true).1);
    assert!(at(&mut bbr, 10_201, 4, false).1);
    assert!(!at(&mut bbr, 10_202, 4, false).1);
    // Before the pipe has been full, start-up continues.
    let mut bbr = cruising();
    bbr.full.reached = false;
    at(&mut bbr, 10_001, 4, false);
    at(&mut bbr, 10_202, 4, true);
    assert_eq!(bbr.mode, Mode::Startup);
}

#[test]
fn samples_taken_while_probing_the_delay_do_not_lower_the_bandwidth() {
    let mut bbr = cruising();
    let mut w = window(206);
    bbr.update_min_rtt(&mut w, &ack(10_001, 4));
    // 1000 segments were delivered then, with four in flight: segments sent from 1000 to 1004 are limited.
    for (prior, forgets) in [(999, true), (1_000, false), (1_004, false), (1_005, true)] {
        let mut bbr = bbr.clone();
        bbr.round = Round { count: 20, end: 0, started: false };
        bbr.update_bandwidth(&w, &Ack { sample: sample(BW / 2, prior * MSS, false), ..ack(10_300, 4) });
        assert_eq!(bbr.max_bw.max() < BW, forgets, "{prior}");
    }
}

#[test]
fn a_longer_delay_from_a_lone_short_segment_is_not_believed() {
    let late = |acked, prior| {
        let mut bbr = cruising();
        let longer = Some(Duration::from_millis(140));
        let mut a = Ack { acked, delivered: acked, rtt: longer, ..ack(10_001, 0) };
        a.sample = sample(BW, prior, false);
        bbr.update_min_rtt(&mut window(206), &a);
        bbr.min_rtt == longer
    };
    // The 500 bytes are all that was delivered in the round.
    assert!(!late(500, 1_000 * MSS - 500));
    assert!(late(500, 990 * MSS) && late(MSS, 999 * MSS));
}

#[test]
fn pacing_becomes_slower_only_once_the_pipe_has_been_full() {
    let mut bbr = Bbr::new(&Options::default());
    bbr.on_established(&mut window(10), Time::ZERO, Some(RTT));
    let first = bbr.pacing;
    bbr.set_pacing(1_000, HIGH_GAIN);
    assert_eq!(bbr.pacing, first);
    bbr.set_pacing(BW, UNIT);
    assert_eq!(bbr.pacing, Rate::from_bps(BW * 8 * 99 / 100));
    bbr.full.reached = true;
    bbr.set_pacing(1_000, UNIT);
    assert_eq!(bbr.pacing, Rate::from_bps(7_920));
    // Zero bandwidth is no rate.
    bbr.set_pacing(0, UNIT);
    assert_eq!(bbr.pacing, Rate::from_bps(7_920));
}

#[test]
fn a_spurious_reduction_gives_start_up_its_rounds_again() {
    let mut bbr = Bbr::new(&Options::default());
    bbr.full = Full { bw: BW, rounds: 2, reached: false };
    bbr.on_undo(&mut window(10), Time::ZERO);
    assert_eq!((bbr.full.bw, bbr.full.rounds), (0, 0));
}

#[test]
fn what_a_time_out_lost_counts_for_the_policer() {
    let mut bbr = cruising();
    bbr.on_lost(50 * MSS);
    bbr.on_timeout(&mut window(206), Time::ZERO);
    assert_eq!(bbr.lost, 50 * MSS);
    assert_eq!(bbr.full.bw, 0);
}

#[test]
fn idle_time_is_no_lump_of_acks() {
    let mut bbr = cruising();
    let mut w = window(206);
    bbr.delivered_at = Time::from_millis(1);
    bbr.aggregation.update(Time::from_millis(1), 40 * MSS, BW, true, w.cwnd, w.mss);
    bbr.on_restart(&mut w, Time::from_millis(20), Duration::from_millis(19), true);
    // Counting continues from 20 ms: at 21 ms ten segments are nine more than 1 MB/s explains.
    bbr.aggregation.update(Time::from_millis(21), 10 * MSS, BW, false, w.cwnd, w.mss);
    assert_eq!(bbr.aggregation.extra(BW), 40 * MSS);
    for ms in 22..40 {
        bbr.aggregation.update(Time::from_millis(ms), MSS, BW, true, w.cwnd, w.mss);
    }
    assert!(bbr.aggregation.extra(BW) <= 10 * MSS);
}

#[test]
fn a_flight_that_ran_out_is_idleness_only_if_the_application_is_the_reason() {
    let mut bbr = cruising();
    let mut w = window(206);
    bbr.mode = Mode::ProbeBw { phase: CYCLE_UP, since: Time::ZERO };
    bbr.set_pacing(BW, UNIT * 5 / 4);
    let probing = bbr.pacing;
    bbr.on_restart(&mut w, Time::from_millis(20), Duration::from_millis(19), false);
    assert_eq!((bbr.pacing, bbr.idle_restart), (probing, false));
    bbr.on_restart(&mut w, Time::from_millis(20), Duration::from_millis(19), true);
    assert!(bbr.pacing < probing && bbr.idle_restart);
}
