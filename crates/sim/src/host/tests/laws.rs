//! Closed forms that concern single frames: the times of retransmissions, and the time at which a connection
//! is given up.

use super::*;

/// Returns the departures of the client's frames from number `from` on, in milliseconds after it.
fn gaps(rig: &Rig, from: usize) -> Vec<u64> {
    let left = &rig.departures(0)[from..];
    left.windows(2).map(|w| w[1].since(w[0]).as_nanos() / 1_000_000).collect()
}

fn bare(delay_ms: u64) -> link::Config {
    link::Config { delay: MS(delay_ms), ..link::Config::default() }
}

#[test]
fn syns_are_sent_again_after_1_2_4_seconds() {
    // RFC 6298 §2.1 and §5.5: the time-out is 1 s, and doubles each time. There are six repetitions (Linux:
    // `tcp_syn_retries`), and another 64 s after the last: 1 + 2 + 4 + … + 64 = 127 s.
    let mut rig = Rig::with_sieves(bare(5), bare(5), Sieve::new(0..10, Fate::Lost), Sieve::default());
    rig.flow(tcp("reno"), AT(0), bytes(1));
    rig.world.run_until(Time::from_secs(1000));
    assert_eq!(gaps(&rig, 0), [1, 2, 4, 8, 16, 32].map(|s| s * 1000));
    let s = rig.sender(0);
    assert_eq!((s.failure, s.closed), (Some(Failure::NeverOpened), Some(Time::from_secs(127))));
}

#[test]
fn data_is_backed_off_to_two_minutes_and_given_up() {
    // RFC 6298 §5.5 and (2.5): the time-out doubles each time, here up to 120 s (Linux: TCP_RTO_MAX; the RFC
    // requires at least 60 s). From a time-out of 200 ms, fifteen repetitions follow after 0.2, 0.4, …,
    // 102.4, 120, 120, … s. The connection is given up when the sixteenth would be due: 0.2 (2¹⁰ - 1) + 6 ×
    // 120 = 924.6 s, the figure in Linux's manual for `tcp_retries2` = 15. Without SACK there is no probe
    // before the first.
    let config = TcpConfig { min_rto: MinRto::Total(MS(200)), ..plain(Recovery::NewReno) };
    // SYN and ACK arrive, but the only data segment never does.
    let mut rig = Rig::with_sieves(bare(5), bare(5), Sieve::new(2..100, Fate::Lost), Sieve::default());
    rig.flow(config, AT(0), bytes(1));
    rig.world.run_until(Time::from_secs(1000));
    let doubled = (0..10).map(|n| 200 << n).chain([120_000; 5]);
    assert_eq!(gaps(&rig, 2), doubled.collect::<Vec<_>>());
    let s = rig.sender(0);
    assert_eq!((s.failure, s.rtos, s.retransmits), (Some(Failure::TimedOut), 15, 15));
    assert_eq!(s.closed, Some(AT(10 + 924_600)));
    // The other end receives nothing and has nothing to send.
    assert_eq!((rig.receiver(0).failure, rig.receiver(0).received), (None, 0));
}

#[test]
fn a_time_out_is_the_smoothed_time_and_four_times_its_variation() {
    // RFC 6298 (2.2) and (2.3) on a path with a constant R = 100 ms: SRTT = R, and RTTVAR = R/2 at first and
    // three quarters of it after each further sample. The handshake is the first sample, and n single
    // segments are n more. Then RTO = R + 4 (R/2) (3/4)^n: 300, 250, 212.5, 184.375 ms.
    for (n, rto) in [(0u64, 300_000u64), (1, 250_000), (2, 212_500), (3, 184_375)] {
        let config =
            TcpConfig { min_rto: MinRto::Total(MS(1)), receive_window: 960, ..plain(Recovery::NewReno) };
        let mut rig = Rig::with_sieves(bare(50), bare(50), Sieve::new([2 + n], Fate::Lost), Sieve::default());
        rig.flow(config, AT(0), bytes(960 * (n + 1)));
        rig.world.run_until(Time::from_secs(10));
        let left = rig.departures(0);
        let (first, again) = (left[2 + n as usize], left[3 + n as usize]);
        assert_eq!(again.since(first), Duration::from_micros(rto), "{n}");
        assert_eq!((rig.sender(0).rtos, rig.receiver(0).received), (1, 960 * (n + 1)));
    }
}
