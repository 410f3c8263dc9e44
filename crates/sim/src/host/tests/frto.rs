//! Spurious time-outs by RFC 5682, without timestamps, so that only F-RTO finds them.
//!
//! Windows of ten segments leave from 100 ms on, with a round every 100 ms. The first frames of the client
//! are the SYN and the ACK of the handshake.

use super::*;

fn windows_of_10(recovery: Recovery) -> TcpConfig {
    TcpConfig {
        initial_window: 10,
        initial_ssthresh: Some(10 * 960),
        min_rto: MinRto::Variance(MS(200)),
        ..plain(recovery)
    }
}

/// Runs an upload with these fates of the client's frames.
fn run(recovery: Recovery, sieve: Sieve, source: Source) -> (Rig, EndpointReport) {
    let mut rig = Rig::with_sieves(wire(1000, 50), wire(1000, 50), sieve, Sieve::default());
    rig.flow(windows_of_10(recovery), AT(0), source);
    rig.world.run_until(Time::from_secs(3));
    let report = rig.sender(0);
    (rig, report)
}

fn endless() -> Source {
    Source { bytes: None, until: Time::MAX, rate: None, bursts: None }
}

/// Returns a path that stands still from the second window on, until 850 ms. With RACK a probe (frame 23)
/// leaves before the time-out.
fn standstill(recovery: Recovery) -> Sieve {
    let window = Sieve::new(12..23, Fate::Late(MS(600)));
    match recovery {
        Recovery::Rack => window.and([23], Fate::Late(MS(410))).and([24], Fate::Late(MS(110))),
        _ => window.and([23], Fate::Late(MS(310))),
    }
}

#[test]
fn a_standstill_of_the_path_is_no_loss() {
    // RFC 5682 §2.1 and §3.1: the first segment leaves again. The ACK of its original lets two new ones leave
    // (2b), and that of the second original says that the time-out was spurious (3b). The window is what it
    // was. NewReno sends all of the window again and halves it.
    for recovery in [Recovery::Linux, Recovery::Rack] {
        let (rig, s) = run(recovery, standstill(recovery), endless());
        assert_eq!((s.rtos, s.retransmits), (1, 1), "{recovery:?}");
        assert!(s.trace.last().unwrap().ssthresh >= 10 * 960, "{recovery:?}");
        rig.check_conservation();
    }
    let (_, s) = run(Recovery::NewReno, standstill(Recovery::NewReno), endless());
    assert!(s.rtos == 1 && s.retransmits >= 10, "{} again", s.retransmits);
    assert_eq!(s.trace.last().unwrap().ssthresh, 5 * 960);
}

#[test]
fn two_new_segments_leave_before_the_answer_to_a_time_out_is_known() {
    // RFC 5682 §2.1 step 2b. The whole second window is lost: the ACK of the retransmission lets two new
    // segments leave, and their duplicate ACKs the rest of the window (3a).
    let (rig, s) = run(Recovery::Linux, Sieve::new(12..23, Fate::Lost), endless());
    assert_eq!((s.rtos, s.retransmits), (1, 11));
    assert_eq!(s.trace.iter().map(|c| c.ssthresh).min(), Some(5 * 960));
    // The second window leaves by 200 ms and the time-out is after 300 ms more. A round trip later two
    // leave, and two round trips later what their ACKs allow.
    let at = |from, to| rig.departures(0).iter().filter(|&&t| AT(from) <= t && t < AT(to)).count();
    assert_eq!([at(210, 590), at(590, 650)], [1, 2]);
}

#[test]
fn without_new_data_a_time_out_is_a_loss() {
    // RFC 5682 §2.1 step 2b: "If there is no new data to send, or the advertised window limits", conventional
    // recovery goes on. All is repaired, and nothing waits for a second time-out.
    let (rig, s) = run(Recovery::Linux, Sieve::new(15..22, Fate::Lost), bytes(960 * 20));
    assert_eq!((s.rtos, s.retransmits), (1, 7));
    assert_eq!(rig.receiver(0).received, 960 * 20);
}
