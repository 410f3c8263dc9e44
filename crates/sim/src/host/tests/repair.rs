//! Losses, marks and reordering of chosen segments.

use super::*;

/// Returns a link without a rate, on which frames that leave together arrive together.
fn bare(delay_ms: u64) -> link::Config {
    link::Config { delay: MS(delay_ms), ..link::Config::default() }
}

fn endless() -> Source {
    Source { bytes: None, until: Time::MAX, rate: None, bursts: None }
}

/// Returns a sender with windows of `n` segments from the start, which do not grow in slow start.
fn steady(recovery: Recovery, n: u32) -> TcpConfig {
    let ssthresh = Some(u64::from(n) * 960);
    TcpConfig { initial_window: n, initial_ssthresh: ssthresh, ..plain(recovery) }
}

#[test]
fn segments_of_one_nanosecond_are_acknowledged_one_by_one() {
    // RFC 5681 §4.2: an ACK for each segment, or for every second one. Twelve segments leave together.
    for (delayed_ack, acks) in [(1, 12), (2, 6), (3, 4)] {
        let mut rig = Rig::new(bare(10), bare(10));
        let config = TcpConfig { delayed_ack, initial_window: 12, ..plain(Recovery::Rack) };
        rig.flow(config, AT(0), endless());
        rig.world.run_until(AT(31));
        // The receiver has sent the SYN-ACK before.
        assert_eq!(rig.receiver(0).segments, 1 + acks, "{delayed_ack}");
    }
}

#[test]
fn the_second_of_a_pair_is_acknowledged_at_once() {
    // In Linux, five segments are two pairs, whose second ones have PSH, and one that waits for the timer.
    for (push_acks, acks) in [(true, 2), (false, 0)] {
        let mut rig = Rig::new(bare(10), bare(10));
        let config = TcpConfig { delayed_ack: 64, push_acks, initial_window: 5, ..plain(Recovery::Rack) };
        rig.flow(config, AT(0), endless());
        rig.world.run_until(AT(31));
        assert_eq!(rig.receiver(0).segments, 1 + acks, "{push_acks}");
    }
}

#[test]
fn slow_start_by_acks_doubles_whatever_the_clock_says() {
    let mut rig = Rig::new(bare(50), bare(50));
    let mut config = plain(Recovery::Rack);
    config.cc_options.abc = false;
    rig.flow(config, AT(0), endless());
    rig.world.run_until(AT(650));
    // The connection opens at 100 ms. Each round of 100 ms doubles the window (RFC 5681 §3.1).
    let s = rig.sender(0);
    let at = |ms: u64| s.trace.iter().rfind(|c| c.at < AT(ms)).unwrap().cwnd / 960;
    assert_eq!([190, 290, 390, 490, 590].map(at), [1, 2, 4, 8, 16]);
}

#[test]
fn without_sack_three_duplicates_are_counted_though_they_come_together() {
    // The frames are SYN, ACK, then data. The third segment is lost, and nine behind it make duplicates (RFC
    // 5681 §3.2).
    let sieve = Sieve::new([4], Fate::Lost);
    let mut rig = Rig::with_sieves(bare(10), bare(10), sieve, Sieve::default());
    rig.flow(steady(Recovery::NewReno, 12), AT(0), bytes(960 * 12));
    rig.world.run_until(Time::from_secs(5));
    let s = rig.sender(0);
    assert_eq!((s.rtos, s.retransmits, rig.receiver(0).received), (0, 1, 960 * 12));
}

#[test]
fn a_mark_reduces_once_in_a_window_of_data() {
    // RFC 3168 §6.1.2: one of twenty segments is marked. The echo continues until CWR arrives, and the ACK at
    // the recovery point still has it. Half of 20 is 10, and a round later it is 11.
    let sieve = Sieve::new([2 + 5], Fate::Marked);
    let mut rig = Rig::with_sieves(wire(1000, 50), wire(1000, 50), sieve, Sieve::default());
    rig.flow(TcpConfig { ecn: true, ..steady(Recovery::Rack, 20) }, AT(0), endless());
    rig.world.run_until(AT(480));
    let s = rig.sender(0);
    let at = |ms: u64| s.trace.iter().rfind(|c| c.at < AT(ms)).unwrap();
    // The connection opens at 100 ms, the marked ACK arrives at 200 ms, and the window is reduced by the end
    // of the round that begins there.
    assert_eq!(at(390).ssthresh / 960, 10);
    assert!((10..=11).contains(&(at(390).cwnd / 960)), "{}", at(390).cwnd / 960);
    assert_eq!(s.retransmits, 0);
}

#[test]
fn marks_make_newreno_retransmit_nothing() {
    let marking = link::Config { mark: Some(link::QueueLimit::Packets(20)), ..wire(20, 20) };
    for recovery in Recovery::ALL.map(|(_, r)| r) {
        let mut rig = Rig::new(marking, wire(20, 20));
        rig.flow(TcpConfig { ecn: true, recovery, ..tcp("reno") }, AT(0), endless());
        rig.world.run_until(Time::from_secs(20));
        let drops = rig.link(0).stats().drops.total();
        assert_eq!((rig.sender(0).retransmits, drops), (0, 0), "{recovery:?}");
    }
}

#[test]
fn a_rescue_is_not_for_what_was_just_sent_again() {
    // RFC 6675 §4: the last two of twenty are lost after another one. Three retransmissions repair it.
    let sieve = Sieve::new([2 + 3, 2 + 9, 2 + 15], Fate::Lost);
    let mut rig = Rig::with_sieves(wire(100, 20), wire(100, 20), sieve, Sieve::default());
    rig.flow(steady(Recovery::Sack, 20), AT(0), bytes(960 * 20));
    rig.world.run_until(Time::from_secs(10));
    let s = rig.sender(0);
    assert_eq!((s.retransmits, s.rtos, rig.receiver(0).received), (3, 0, 960 * 20));
}

#[test]
fn bursts_of_segmentation_offload_grow_their_window() {
    // The window limits the data that waits for room for a burst.
    for tso_segments in [1, 8, 44] {
        let config = TcpConfig { tso_segments, ..tcp("reno") };
        let path = link::Config { queue: link::QueueLimit::Packets(100), ..wire(50, 20) };
        let mut rig = Rig::new(path, wire(50, 20));
        rig.flow(config, AT(0), endless());
        rig.world.run_until(Time::from_secs(20));
        let goodput = rig.receiver(0).received * 8 / 20;
        assert!(goodput > 40_000_000, "{tso_segments}: {goodput}");
    }
}

#[test]
fn a_slow_link_is_not_filled_with_retransmissions() {
    // At 9.6 kbit/s a segment takes 1.25 s, so ten of them make a queue of 12 s. The backoff continues until
    // a segment that was sent once is acknowledged (RFC 6298 (5.7)), or timestamps tell (RFC 7323 §4.1).
    for timestamps in [true, false] {
        let slow = link::Config { rate: Rate::from_bps(9_600), ..link::Config::default() };
        let mut rig = Rig::new(slow, bare(10));
        rig.flow(TcpConfig { timestamps, ..tcp("reno") }, AT(0), endless());
        rig.world.run_until(Time::from_secs(600));
        let s = rig.sender(0);
        assert!(s.retransmits * 10 < s.segments, "{timestamps}: {} of {}", s.retransmits, s.segments);
    }
}

#[test]
fn a_long_tail_is_repaired_without_a_time_out() {
    // The last 25 of 45 segments are lost. The ACK of a tail loss probe SACKs the probe itself, from which
    // RACK infers the rest (RFC 8985 §7.1), with or without timestamps.
    for timestamps in [true, false] {
        let sieve = Sieve::new(2 + 20..2 + 45, Fate::Lost);
        let mut rig = Rig::with_sieves(wire(1000, 50), wire(1000, 50), sieve, Sieve::default());
        rig.flow(TcpConfig { timestamps, ..steady(Recovery::Rack, 45) }, AT(0), bytes(948 * 45));
        rig.world.run_until(Time::from_secs(10));
        assert_eq!((rig.sender(0).rtos, rig.receiver(0).received), (0, 948 * 45), "{timestamps}");
    }
}

#[test]
fn a_recovery_that_the_timer_starts_reduces_in_proportion() {
    // A late segment shows that the path reorders. So a loss is found by the reordering timer, which no ACK
    // follows immediately (RFC 8985 §6.2). With forty segments in flight and a halved window, a burst of half
    // the window would leave without PRR (RFC 6937).
    let late = Fate::Late(Duration::from_micros(900));
    let sieve = Sieve::new([2 + 60], late).and([2 + 140], Fate::Lost);
    let mut rig = Rig::with_sieves(wire(20, 50), wire(1000, 50), sieve, Sieve::default());
    rig.flow(steady(Recovery::Rack, 40), AT(0), endless());
    rig.world.run_until(Time::from_secs(1));
    let s = rig.sender(0);
    assert_eq!((s.retransmits, s.rtos), (1, 0));
    // After the first window, at most a few segments leave at once.
    let later: Vec<Time> = rig.departures(0).iter().copied().filter(|&t| t > AT(210)).collect();
    let burst = later.chunk_by(|a, b| a == b).map(<[Time]>::len).max().unwrap_or(0);
    assert!(burst <= 3, "{burst} at once");
}

#[test]
fn two_lost_syns_begin_with_one_segment() {
    // RFC 6928 §2: one lost SYN leaves the initial window unchanged; two reduce it.
    for (lost, window) in [(0, 10), (1, 10), (2, 1)] {
        let sieve = Sieve::new(0..lost, Fate::Lost);
        let mut rig = Rig::with_sieves(bare(10), bare(10), sieve, Sieve::default());
        rig.flow(TcpConfig { initial_window: 10, ..plain(Recovery::Rack) }, AT(0), endless());
        // SYNs leave at 0, 1 and 3 s, and data together with the ACK of the handshake.
        let opened = [20, 1_020, 3_020][lost as usize];
        rig.world.run_until(AT(opened + 5));
        assert_eq!(rig.departures(0).len() as u64, lost + 2 + window, "{lost}");
    }
}

#[test]
fn a_syn_ack_that_was_repeated_gives_no_round_trip_time() {
    // Karn's algorithm: the first SYN-ACK is lost, and the client's second SYN is answered at 1 s.
    let mut rig = Rig::with_sieves(bare(10), bare(10), Sieve::default(), Sieve::new([0], Fate::Lost));
    rig.flow(plain(Recovery::Rack), AT(0), endless());
    rig.world.run_until(AT(1_500));
    let server = rig.world.get::<Host>(rig.server).unwrap();
    assert_eq!(server.sample(rig.ends[0].1).unwrap().srtt, Duration::ZERO);
}

#[test]
fn a_window_that_the_application_leaves_unused_comes_down_to_what_is_used() {
    // 960 kB/s over 100 ms are 100 segments in flight, and the one that leaves. The data that waited during
    // the handshake and the first rounds makes slow start exceed that by far. Then each RTO (100 + 200 ms)
    // removes half of the excess, down to twice the used window, which slow start may have (Linux, after RFC
    // 2861).
    let mut rig = Rig::new(wire(1000, 50), wire(1000, 50));
    let config =
        TcpConfig { receive_window: 1 << 20, min_rto: MinRto::Variance(MS(200)), ..plain(Recovery::Rack) };
    rig.flow(config, AT(0), Source { rate: Rate::from_bps(960_000 * 8), ..endless() });
    rig.world.run_until(Time::from_secs(20));
    let s = rig.sender(0);
    let most = s.trace.iter().map(|c| c.cwnd / 960).max().unwrap();
    let last = s.trace.last().unwrap().cwnd / 960;
    assert!(most >= 500, "{most}");
    assert!((200..=2 * 101).contains(&last), "{last}");
}

#[test]
fn in_linux_the_timer_starts_anew_with_the_first_segment() {
    // The first of five segments is lost, and so is its retransmission. The other four are SACKed after 200
    // ms, of which the handshake took 100. The time-out is 100 + 200 ms. By RFC 6298 (5.1) and (5.3) it runs
    // from 100 ms on. In Linux (`tcp_xmit_retransmit_queue`) it runs from 200 ms on, the time of the
    // retransmission. The segment sent then arrives 50 ms later.
    for (recovery, done) in [(Recovery::Rack, 550), (Recovery::Sack, 450)] {
        let sieve = Sieve::new([2, 7], Fate::Lost);
        let mut rig = Rig::with_sieves(bare(50), bare(50), sieve, Sieve::default());
        let config = TcpConfig { min_rto: MinRto::Variance(MS(200)), ..steady(recovery, 5) };
        rig.flow(config, AT(0), bytes(948 * 5));
        rig.world.run_until(Time::from_secs(5));
        assert_eq!((rig.sender(0).retransmits, rig.sender(0).rtos), (2, 1));
        assert_eq!(rig.receiver(0).received_all, Some(AT(done)), "{recovery:?}");
    }
}

#[test]
fn a_mark_on_the_segment_with_cwr_is_echoed() {
    // RFC 3168 §6.1.3: CWR ends the echo of earlier marks, not of its own. The sixth of twenty segments is
    // marked. Five ACKs before its own release five more segments, so CWR is on the sixth of the second
    // window. If that one is marked too, half of 10 is 5.
    for (marked, ssthresh) in [(vec![2 + 5], 10), (vec![2 + 5, 2 + 25], 5)] {
        let sieve = Sieve::new(marked, Fate::Marked);
        let mut rig = Rig::with_sieves(wire(1000, 50), wire(1000, 50), sieve, Sieve::default());
        rig.flow(TcpConfig { ecn: true, ..steady(Recovery::Rack, 20) }, AT(0), endless());
        rig.world.run_until(AT(390));
        assert_eq!(rig.sender(0).trace.last().unwrap().ssthresh / 960, ssthresh);
    }
}

#[test]
fn a_retransmission_of_an_earlier_recovery_undoes_nothing() {
    // The third of twenty segments is lost. Its retransmission (frame 26) is lost as well, and so is a
    // segment sent during that recovery (27), which is retransmitted in it. The recovery ends with the ACK
    // that reveals the next loss (35). The timestamp echoed then is older than the second recovery, but it
    // belongs to a retransmission. RFC 3522 §3.2 requires an echo from before the first retransmission.
    let sieve = Sieve::new([2 + 2, 26, 27, 35], Fate::Lost);
    let mut rig = Rig::with_sieves(wire(20, 50), wire(20, 50), sieve, Sieve::default());
    rig.flow(TcpConfig { timestamps: true, ..steady(Recovery::Rack, 20) }, AT(0), endless());
    rig.world.run_until(AT(450));
    let s = rig.sender(0);
    let thresholds: Vec<u64> = s.trace.iter().map(|c| c.ssthresh / 960).collect();
    assert_eq!((s.retransmits, s.rtos), (4, 0));
    assert!(thresholds.contains(&10) && thresholds.last() == Some(&5), "{thresholds:?}");
}
