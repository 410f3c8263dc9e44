//! A congestion control that chooses gaps and requests records of segments, over links of known rate and
//! delay.
//!
//! Segments are 1000 bytes of IP, 1 ms at 8 Mbit/s. Pure ACKs are 40 bytes, 40 us. The first frames of the
//! client are the SYN, the ACK of the handshake, and segment 0. The train begins with segment 1.

use super::*;
use crate::cc::{Ack, Congestion, CongestionControl, Delivered, Departure, Make, Options, Window};
use std::cell::RefCell;

/// Payload bytes of a segment.
const MSS: u64 = 960;
/// The frame of the client that carries segment 0.
const FIRST: u64 = 2;

/// A delivered segment, with the time of its ACK and whether the ACK echoed a mark.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seen {
    segment: Delivered,
    acked: Time,
    ece: bool,
}

/// Instructions for the sender's algorithm, and its observations. Each test is a thread with a script of its
/// own.
#[derive(Default)]
struct Script {
    /// Gaps in microseconds after segments 0, 1, …, in the order of departure; then no gaps.
    gaps: Vec<u64>,
    most_at_once: u32,
    begun: bool,
    left: Vec<Departure>,
    seen: Vec<Seen>,
}

thread_local! {
    static SCRIPT: RefCell<Script> = RefCell::default();
}

/// Congestion control that sends trains of segments at the gaps of the test, in a sufficient window. The end
/// that opens the connection is established first and follows the script.
#[derive(Debug)]
struct Train {
    scripted: bool,
}

impl Train {
    fn make(_: &Options) -> Box<dyn CongestionControl> {
        Box::new(Train { scripted: false })
    }
}

impl CongestionControl for Train {
    fn on_established(&mut self, w: &mut Window, _: Time, _: Option<Duration>) {
        w.cwnd = 100 * MSS;
        self.scripted = SCRIPT.with_borrow_mut(|script| !core::mem::replace(&mut script.begun, true));
    }
    fn on_send(&mut self, _: &mut Window, segment: &Departure) -> Option<Duration> {
        if !self.scripted {
            return None;
        }
        SCRIPT.with_borrow_mut(|script| {
            script.left.push(*segment);
            script.gaps.get(script.left.len() - 1).map(|&us| Duration::from_micros(us))
        })
    }
    fn most_at_once(&self) -> u32 {
        SCRIPT.with_borrow(|script| script.most_at_once)
    }
    fn wants_records(&self) -> bool {
        true
    }
    fn on_delivered(&mut self, _: &mut Window, ack: &Ack, segments: &[Delivered]) {
        let seen = segments.iter().map(|&segment| Seen { segment, acked: ack.now, ece: ack.ece });
        if self.scripted {
            SCRIPT.with_borrow_mut(|script| script.seen.extend(seen));
        }
    }
    fn on_ack(&mut self, _: &mut Window, _: &Ack) {}
    fn on_congestion(&mut self, _: &mut Window, _: Time, _: u64, _: Congestion) {}
    fn owns_recovery(&self) -> bool {
        true
    }
    /// Makes each ACK echo the marks of its own segments.
    fn wants_dctcp_ecn(&self) -> bool {
        true
    }
}

fn train() -> TcpConfig {
    TcpConfig { cc: Make::new(&Train::make), ..plain(Recovery::Rack) }
}

/// Sends `n` segments through `sieve` over 8 Mbit/s and 10 ms each way.
fn send(config: TcpConfig, n: u64, gaps: &[u64], sieve: Sieve) -> Script {
    SCRIPT.set(Script { gaps: gaps.to_vec(), most_at_once: 1, ..Script::default() });
    run(config, n, wire(8, 10), sieve)
}

/// Runs the script over this link.
fn run(config: TcpConfig, n: u64, link: link::Config, sieve: Sieve) -> Script {
    let mut rig = Rig::with_sieves(link, link, sieve, Sieve::default());
    rig.flow(config, AT(0), bytes(n * MSS));
    rig.world.run_until(Time::from_secs(20));
    assert_eq!((rig.receiver(0).received, rig.sender(0).failure), (n * MSS, None));
    rig.check_conservation();
    SCRIPT.take()
}

/// Returns the distances between consecutive times in microseconds.
fn distances(times: impl IntoIterator<Item = Time>) -> Vec<u64> {
    let times: Vec<Time> = times.into_iter().collect();
    times.windows(2).map(|w| w[1].since(w[0]).as_micros()).collect()
}

/// Returns the numbers of the segments.
fn numbers(seen: &[Seen]) -> Vec<u64> {
    seen.iter().map(|s| s.segment.start / MSS).collect()
}

/// Returns the paper's chirp: gaps `a - k s` with `a = γ ĝ` and `s = ⌈2 (γ - 1) ĝ / (N - 1)⌉` for γ = 2.
fn chirp(gap: u64, n: u64) -> Vec<u64> {
    let step = (2 * gap).div_ceil(n - 1);
    (0..n - 1).map(|k| 2 * gap - k * step).collect()
}

#[test]
fn a_chirp_comes_back_as_the_link_s_rate_makes_it() {
    // With ĝ = 800 us and N = 5. The link takes 1 ms for each segment, so one that arrives sooner waits.
    assert_eq!(chirp(800, 5), [1600, 1200, 800, 400]);
    let gaps = [&[20_000][..], &chirp(800, 5), &[50_000], &chirp(1500, 5), &[50_000]].concat();
    let got = send(train(), 11, &gaps, Sieve::default());
    let left = distances(got.left.iter().map(|s| s.now));
    assert_eq!(left, [20_000, 1600, 1200, 800, 400, 50_000, 3000, 2250, 1500, 750]);
    // Transmissions begin at 0, 1.6, 2.8, 3.8 and 4.8 ms; the last two had to wait. The next are 3.0, 2.25
    // and 1.5 ms apart, then 1 ms.
    let acks = distances(got.seen.iter().map(|s| s.acked));
    assert_eq!(acks[1..5], [1600, 1200, 1000, 1000]);
    assert_eq!(acks[6..], [3000, 2250, 1500, 1000]);
    // The algorithm is told the gaps that it requested, because nothing else delayed the segments.
    let told: Vec<u64> = got.seen.iter().filter_map(|s| s.segment.gap).map(|gap| gap.as_micros()).collect();
    assert_eq!(told, left);
    assert_eq!((got.seen[0].segment.gap, numbers(&got.seen)), (None, (0..11).collect()));
    // An ACK takes 40 us and 10 ms, a segment 1 ms and 10 ms. The first one waited for the ACK of the
    // handshake on the link.
    let rtts: Vec<u64> = got.seen.iter().map(|s| s.acked.since(s.segment.left).as_micros()).collect();
    assert_eq!(
        rtts,
        [21_080, 21_040, 21_040, 21_040, 21_240, 21_840, 21_040, 21_040, 21_040, 21_040, 21_290]
    );
    assert!(got.seen.iter().all(|s| !(s.segment.again || s.segment.sacked || s.ece)));
}

#[test]
fn gaps_are_kept_below_a_microsecond_and_bursts_are_gaps_of_zero() {
    // At 10 Gbit/s a segment takes 800 ns. There are two bursts of five, and a train with gaps below a
    // segment's time.
    let config = link::Config { rate: Some(Rate::mbit(10_000)), delay: MS(10), ..link::Config::default() };
    SCRIPT.set(Script { gaps: vec![0, 0, 0, 0, 3, 0, 0, 0, 0, 1], ..Script::default() });
    let got = run(train(), 12, config, Sieve::default());
    let left = distances(got.left.iter().map(|s| s.now));
    assert_eq!(left, [0, 0, 0, 0, 3, 0, 0, 0, 0, 1, 0]);
    let at = got.seen[0].acked;
    let acks: Vec<u64> = got.seen.iter().map(|s| s.acked.since(at).as_nanos()).collect();
    // The first one waits 32 ns for the ACK of the handshake, so four follow at 800 ns. The fifth is complete
    // 4,032 ns after the burst began, and the sixth begins there. Its burst ends at 8,032 ns.
    assert_eq!(acks, [0, 800, 1600, 2400, 3200, 4000, 4800, 5600, 6400, 7200, 8000, 8800]);
}

#[test]
fn segments_of_one_delayed_ack_have_a_record_each() {
    // Every second segment is acknowledged. The last one, with the FIN, is acknowledged at once.
    let gaps = [20_000, 1600, 1200, 800];
    let config = TcpConfig { delayed_ack: 2, ..train() };
    let got = send(config, 6, &[&gaps[..], &[5000]].concat(), Sieve::default());
    assert_eq!(numbers(&got.seen), [0, 1, 2, 3, 4, 5]);
    // Segment 1 causes the ACK of 0 and 1, at 20 ms + 21.04 ms after segment 0 left, and segment 3 that of 2
    // and 3.
    let rtts: Vec<u64> = got.seen.iter().map(|s| s.acked.since(s.segment.left).as_micros()).collect();
    assert_eq!(rtts, [41_040, 21_040, 22_240, 21_040, 26_040, 21_040]);
    let told: Vec<u64> = got.seen.iter().filter_map(|s| s.segment.gap).map(|gap| gap.as_micros()).collect();
    assert_eq!(told, [20_000, 1600, 1200, 800, 5000]);
}

#[test]
fn what_is_sacked_is_told_once_and_a_retransmission_has_its_own_gap() {
    // Segment 2 of 0 to 9 is lost. The segments are 2 ms apart.
    let got = send(train(), 10, &[2000; 9], Sieve::new([FIRST + 2], Fate::Lost));
    assert_eq!(numbers(&got.seen), [0, 1, 3, 4, 5, 6, 7, 8, 9, 2]);
    let sacked: Vec<bool> = got.seen.iter().map(|s| s.segment.sacked).collect();
    assert_eq!(sacked, [false, false, true, true, true, true, true, true, true, false]);
    let first = got.left[0].now;
    // RACK (RFC 8985 §6.2): segment 2 left at 4 ms. The RTT of the SACKed segments is 21.052 ms, with a block
    // of 12 bytes. The reordering window is a quarter of the smallest RTT, that of the handshake, 2 × 10.052
    // ms.
    let again = got.left.iter().find(|s| s.again).unwrap();
    let found = 4000 + 21_052 + 20_104 / 4;
    assert_eq!((again.start, again.now.since(first).as_micros()), (2 * MSS, found));
    // The last segment before it was 9, at 18 ms.
    let record = got.seen[9].segment;
    assert_eq!((record.left, record.again), (again.now, true));
    assert_eq!(record.gap, Some(Duration::from_micros(found - 18_000)));
    assert_eq!(got.seen[9].acked.since(again.now).as_micros(), 21_040);
    // The other segments have the gap that they left with.
    let told: Vec<Option<u64>> = got.seen[..9].iter().map(|s| s.segment.gap.map(|g| g.as_micros())).collect();
    assert_eq!(told[1..], [Some(2000); 8]);
    assert!(got.seen[..9].iter().all(|s| !s.segment.again));
}

#[test]
fn a_gap_that_the_application_makes_is_told_as_it_was() {
    // The application writes 960 bytes every 4 ms, which is slower than the requested gaps.
    SCRIPT.set(Script { gaps: vec![1000; 20], most_at_once: 1, ..Script::default() });
    let mut rig = Rig::new(wire(8, 10), wire(8, 10));
    let rate = Rate::from_bps(MSS * 8 * 250);
    rig.flow(train(), AT(0), Source { bytes: Some(6 * MSS), until: Time::MAX, rate, bursts: None });
    rig.world.run_until(Time::from_secs(5));
    let got = SCRIPT.take();
    let told: Vec<u64> = got.seen.iter().filter_map(|s| s.segment.gap).map(|gap| gap.as_micros()).collect();
    assert_eq!(told, distances(got.left.iter().map(|s| s.now)));
    assert_eq!(told, [4000; 5]);
}

#[test]
fn a_mark_is_told_with_its_own_segments() {
    // Segment 3 is marked. The receiver acknowledges two segments at a time, and immediately where the marks
    // change (RFC 8257 §3.2). It acknowledges 0 and 1; then 2, and 3 behind it, when 3 arrives; 4 when it
    // arrives; then 5 and 6. An ACK of 40 bytes takes 40 us on the way back.
    let config = TcpConfig { ecn: true, delayed_ack: 2, ..train() };
    let got = send(config, 8, &[2000; 7], Sieve::new([FIRST + 3], Fate::Marked));
    let marks: Vec<(u64, bool)> =
        numbers(&got.seen).into_iter().zip(got.seen.iter().map(|s| s.ece)).collect();
    let want =
        [(0, false), (1, false), (2, false), (3, true), (4, false), (5, false), (6, false), (7, false)];
    assert_eq!(marks, want);
    let acked = distances(got.seen.iter().map(|s| s.acked));
    assert_eq!(acked[..6], [0, 4000, 40, 1960, 4000, 0]);
}

#[test]
fn segmentation_offload_waits_no_longer_than_the_algorithm_lets_it() {
    // With an interface that sends 8 at a time, the sender waits for room for 8, unless limited otherwise. A
    // window of 12 leaves bursts of 4 (a third of the window), or single segments as their ACKs arrive.
    let mut bursts = Vec::new();
    for most_at_once in [u32::MAX, 2, 1] {
        SCRIPT.set(Script { most_at_once, ..Script::default() });
        let config = TcpConfig { tso_segments: 8, receive_window: 12 * MSS, ..train() };
        let got = run(config, 120, wire(8, 10), Sieve::default());
        // After the first window, an ACK arrives each millisecond.
        let left: Vec<Time> = got.left.iter().skip(24).take(48).map(|s| s.now).collect();
        bursts.push(left.chunk_by(|a, b| a == b).map(<[Time]>::len).max());
    }
    assert_eq!(bursts, [Some(4), Some(2), Some(1)]);
}
