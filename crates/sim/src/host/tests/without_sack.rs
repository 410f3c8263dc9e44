//! Recoveries without SACK by their papers and RFCs, and their effect on the window.
//!
//! Segments leave in windows of 34 from 100 ms on, with a round every 100 ms. The first frames of the client
//! are the SYN and the ACK of the handshake.

use super::*;

/// Returns the frame with a segment of the first window.
fn segment(n: u64) -> u64 {
    2 + n
}

/// Runs a sender with windows of 34 segments, with the loss of these frames.
fn run(recovery: Recovery, lost: impl IntoIterator<Item = u64>, ms: u64) -> EndpointReport {
    run_with(TcpConfig { recovery, ..windows_of_34() }, lost, ms)
}

fn run_with(config: TcpConfig, lost: impl IntoIterator<Item = u64>, ms: u64) -> EndpointReport {
    let mut rig =
        Rig::with_sieves(wire(100, 50), wire(100, 50), Sieve::new(lost, Fate::Lost), Sieve::default());
    rig.flow(config, AT(0), Source { bytes: None, until: Time::MAX, rate: None, bursts: None });
    rig.world.run_until(AT(ms));
    rig.sender(0)
}

fn windows_of_34() -> TcpConfig {
    TcpConfig { initial_window: 34, initial_ssthresh: Some(34 * 960), ..plain(Recovery::NewReno) }
}

/// Returns the windows in segments, from the first decrease on.
fn windows(s: &EndpointReport) -> Vec<u64> {
    let mut all: Vec<u64> = s.trace.iter().map(|c| c.cwnd / 960).collect();
    all.dedup();
    let fall = all.windows(2).position(|w| w[1] < w[0]).map_or(all.len(), |i| i + 1);
    all[fall..].to_vec()
}

/// Returns the thresholds in segments, in order.
fn thresholds(s: &EndpointReport) -> Vec<u64> {
    let mut all: Vec<u64> = s.trace.iter().map(|c| c.ssthresh / 960).collect();
    all.dedup();
    all
}

#[test]
fn recovery_ends_with_half_of_the_window() {
    // RFC 6582 section 3.2 step 3, RFC 5681 section 3.2 step 6: cwnd is ssthresh, 34 / 2, and grows by a
    // segment in each following round.
    use Recovery::{Linux, NewReno, Ns2Reno, Rack, Reno, Sack};
    for recovery in [NewReno, Reno, Ns2Reno, Sack] {
        let s = run(recovery, [segment(3)], 650);
        assert_eq!((s.retransmits, s.rtos), (1, 0));
        assert_eq!(windows(&s)[..2], [17, 18], "{recovery:?}");
    }
    // PRR controls the window on the way there: one segment leaves for two that are delivered (RFC 6937
    // §3.1), so the window comes down step by step.
    for recovery in [Rack, Linux] {
        let windows = windows(&run(recovery, [segment(3)], 650));
        let end = windows.iter().position(|&w| w == 17).expect("17 segments");
        assert!(
            end >= 8 && windows[..end].is_sorted_by(|a, b| a > b) && windows[end + 1] == 18,
            "{recovery:?}: {windows:?}"
        );
    }
}

#[test]
fn lost_duplicate_acks_do_not_make_the_end_of_a_recovery_grow_the_window() {
    // Only the first ten of the 30 duplicate ACKs arrive, so the last ACK covers 20 unreported segments.
    let lost_acks = Sieve::new(14..34, Fate::Lost);
    let mut rig =
        Rig::with_sieves(wire(100, 50), wire(100, 50), Sieve::new([segment(3)], Fate::Lost), lost_acks);
    rig.flow(windows_of_34(), AT(0), Source { bytes: None, until: Time::MAX, rate: None, bursts: None });
    // The recovery ends after 300 ms. Segments sent then are acknowledged after 400.
    rig.world.run_until(AT(390));
    assert_eq!((windows(&rig.sender(0)), rig.sender(0).rtos), (vec![17], 0));
}

#[test]
fn tahoe_begins_again_with_slow_start() {
    // Jacobson 1988; RFC 3465 section 2.3: each ACK adds one segment, though the first covers the whole
    // window. The window doubles in each round, up to the threshold of 17, and grows by one in the round
    // after that.
    for recovery in [Recovery::Tahoe, Recovery::Ns2Tahoe] {
        let s = run(recovery, [segment(3)], 1000);
        assert_eq!((s.retransmits, s.rtos), (1, 0), "{recovery:?}");
        assert_eq!(windows(&s)[..18], (1..=18).collect::<Vec<_>>(), "{recovery:?}");
        let at = |ms: u64| s.trace.iter().rfind(|c| c.at < AT(ms)).unwrap().cwnd / 960;
        assert_eq!([290, 390, 490, 590, 690, 790].map(at), [1, 2, 4, 8, 16, 17], "{recovery:?}");
    }
}

#[test]
fn of_two_losses_reno_finds_the_second_as_another() {
    // Fall and Floyd 1996, two drops in a window: Reno retransmits fast twice and halves twice (RFC 2001
    // keeps no recovery point). NewReno halves once. Tahoe goes back and retransmits the second hole on the
    // way. ns-2's Reno waits for a time-out.
    let two = || [segment(3), segment(13)];
    let reno = run(Recovery::Reno, two(), 1500);
    assert_eq!((thresholds(&reno), reno.retransmits, reno.rtos), (vec![34, 17, 8], 2, 0));
    let newreno = run(Recovery::NewReno, two(), 1500);
    assert_eq!((thresholds(&newreno), newreno.retransmits, newreno.rtos), (vec![34, 17], 2, 0));
    let ns2 = run(Recovery::Ns2Reno, two(), 1500);
    assert_eq!((thresholds(&ns2), ns2.rtos), (vec![34, 17, 8], 1));
    for recovery in [Recovery::Tahoe, Recovery::Ns2Tahoe] {
        let tahoe = run(recovery, two(), 1500);
        assert_eq!((thresholds(&tahoe), tahoe.rtos), (vec![34, 17], 0), "{recovery:?}");
    }
}

#[test]
fn a_loss_right_above_the_recovery_point_waits_for_the_timer() {
    // One of 34 segments is lost, and so is the first one behind the recovery point. RFC 6582 section 3.2
    // step 2 requires an ACK that covers more than `recover`, and Linux keeps its state until there is one.
    // RFC 2001 has no such rule.
    for (recovery, rtos) in
        [(Recovery::NewReno, 1), (Recovery::Linux, 1), (Recovery::Ns2Reno, 1), (Recovery::Reno, 0)]
    {
        // Three ACKs and two duplicate ones release one segment each. The third duplicate releases the
        // retransmission, and the next one that segment.
        let s = run(recovery, [segment(3), segment(34 + 3 + 2 + 1)], 1500);
        assert_eq!(s.rtos, rtos, "{recovery:?}");
    }
}

#[test]
fn linux_grows_nothing_before_something_above_the_recovery_point_is_acknowledged() {
    // The ACK of all earlier data ends NewReno's recovery and counts in it. Linux's recovery ends with the
    // next ACK.
    let grown = |recovery| {
        let s = run(recovery, [segment(3)], 1000);
        s.trace.iter().filter(|c| c.at > AT(300) && c.cwnd == 18 * 960).map(|c| c.at).min()
    };
    assert!(grown(Recovery::NewReno).unwrap() < grown(Recovery::Linux).unwrap());
}
