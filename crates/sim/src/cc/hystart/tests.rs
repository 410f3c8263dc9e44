//! Timelines of RFC 9406 by hand, and slow start into a bottleneck.

use super::super::rig::{ack_of_a_segment, Path, Rig, MSS};
use super::super::{Congestion, CubicRules, Hystart, Options};
use super::threshold::rtt_thresh;
use super::*;
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Sends rounds of ten segments, each acknowledged.
struct Rounds {
    end: SlowStartEnd,
    w: Window,
    una: u64,
    nxt: u64,
}

impl Rounds {
    fn new(paced: bool) -> Rounds {
        let w = Window { cwnd: 10 * MSS, ssthresh: u64::MAX, mss: MSS as u32 };
        Rounds { end: SlowStartEnd::new(Hystart::PlusPlus, paced), w, una: 0, nxt: 10 * MSS }
    }

    /// Feeds one ACK with this delay in microseconds, answered with one segment.
    fn ack(&mut self, us: u64) {
        self.una += MSS;
        let ack = Ack {
            growth_limit: u64::MAX,
            total_delivered: self.una,
            prior_in_flight: 10 * MSS,
            in_flight: 9 * MSS,
            una: self.una,
            nxt: self.nxt,
            rtt: Some(Duration::from_micros(us)),
            srtt: Duration::from_micros(us),
            min_rtt: Duration::from_micros(us),
            ..ack_of_a_segment(Time::ZERO)
        };
        self.end.on_ack(&mut self.w, &ack);
        self.nxt += MSS;
    }

    fn acks(&mut self, n: u32, us: u64) {
        (0..n).for_each(|_| self.ack(us));
    }

    fn conservative(&self) -> bool {
        self.end.brake().divisor == 4
    }

    fn ended(&self) -> bool {
        self.w.ssthresh == self.w.cwnd
    }
}

#[test]
fn the_threshold_is_an_eighth_between_4_and_16_ms() {
    for (rtt, thresh) in [(1, 4), (32, 4), (64, 8), (128, 16), (400, 16)] {
        assert_eq!(rtt_thresh(ms(rtt)), ms(thresh), "{rtt} ms");
    }
}

#[test]
fn the_eighth_sample_of_a_round_decides() {
    // The delay is 40 ms in the first round, so the second may be below 45 ms. SND.NXT is 10 when the first
    // ACK arrives and 19 when the tenth does, so the second round has nine ACKs.
    let mut r = Rounds::new(true);
    r.acks(10, 40_000);
    r.acks(7, 45_000);
    assert!(!r.conservative());
    r.ack(45_000);
    assert!(r.conservative() && !r.ended());
    let mut r = Rounds::new(true);
    r.acks(10, 40_000);
    r.acks(9, 44_999);
    assert!(!r.conservative());
    // One low sample keeps the minimum low.
    let mut r = Rounds::new(true);
    r.acks(10, 40_000);
    r.ack(44_000);
    r.acks(8, 60_000);
    assert!(!r.conservative());
}

#[test]
fn conservative_slow_start_ends_after_five_rounds() {
    let mut r = Rounds::new(true);
    r.acks(10, 40_000);
    // CSS begins in the middle of the second round, which counts.
    r.acks(8, 50_000);
    assert!(r.conservative());
    r.ack(50_000);
    // Rounds have nine or ten ACKs from here on: SND.NXT is nine or so ahead at each end.
    let mut acks = 0;
    while !r.ended() {
        assert!(r.conservative());
        r.ack(50_000);
        acks += 1;
        assert!(acks < 100);
    }
    // Four rounds more. Each ends with the ACK of the earlier SND.NXT, nine segments ahead.
    assert_eq!(acks, 4 * 9);
    assert_eq!(r.end.brake(), Brake::NONE);
}

#[test]
fn a_delay_that_falls_leads_back() {
    let mut r = Rounds::new(true);
    r.acks(10, 40_000);
    r.acks(9, 50_000);
    assert!(r.conservative());
    // The next round's minimum must be below that of the round that led here, with eight samples.
    r.acks(7, 49_000);
    assert!(r.conservative());
    r.ack(49_000);
    assert!(!r.conservative() && !r.ended());
    // The delay grows again from there, and CSS begins again.
    r.ack(49_000);
    r.acks(9, 60_000);
    assert!(r.conservative());
}

#[test]
fn only_the_first_slow_start_is_watched() {
    let mut r = Rounds::new(true);
    r.acks(10, 40_000);
    r.end.on_congestion(Congestion::Loss);
    r.acks(30, 80_000);
    assert!(!r.conservative() && !r.ended());
}

#[test]
fn bursts_are_limited_to_eight_segments_without_pacing() {
    assert_eq!(Rounds::new(false).end.brake(), Brake { limit: 8, divisor: 1 });
    assert_eq!(Rounds::new(true).end.brake(), Brake::NONE);
    // An ACK of 20 segments.
    for (paced, cwnd) in [(false, 18), (true, 30)] {
        let options = Options { paced, ..Options::default() };
        let mut rig = Rig::new("cubic", &options, Path { delayed_ack: 20, ..Path::new(ms(100)) });
        rig.w.cwnd = 20 * MSS;
        rig.run(Time::from_millis(150), |_| {});
        assert_eq!(rig.segments() as u64, cwnd + 10);
    }
}

/// Runs HyStart of 2011 over a path of 40 ms: one ACK each `spacing`, SND.NXT far ahead, until slow start
/// ends or for 100 ACKs. Returns the number of ACKs.
fn classic(paced: bool, segments: u64, spacing: Duration, rtt: Duration) -> Option<u64> {
    let mut w = Window { cwnd: segments * MSS, ssthresh: u64::MAX, mss: MSS as u32 };
    let mut end = SlowStartEnd::new(Hystart::Classic, paced);
    (1..=100).find(|&i| {
        let ack = Ack {
            growth_limit: u64::MAX,
            total_delivered: i * MSS,
            una: i * MSS,
            nxt: 1000 * MSS,
            rtt: Some(rtt),
            min_rtt: ms(40),
            ..ack_of_a_segment(Time::ZERO + spacing.saturating_mul(i))
        };
        end.on_ack(&mut w, &ack);
        w.ssthresh == w.cwnd
    })
}

#[test]
fn a_train_of_acks_as_long_as_half_the_delay_ends_slow_start_of_2011() {
    // The first ACK begins the round. At 1 ms the train exceeds 20 ms with the 22nd ACK, and 40 ms with the
    // 42nd.
    assert_eq!(classic(false, 100, ms(1), ms(40)), Some(22));
    assert_eq!(classic(true, 100, ms(1), ms(40)), Some(42));
    // The detector is off below 16 segments, and for gaps above 2 ms.
    assert_eq!(classic(false, 15, ms(1), ms(40)), None);
    assert_eq!(classic(false, 16, ms(1), ms(40)), Some(22));
    assert_eq!(classic(false, 100, Duration::from_micros(2_001), ms(40)), None);
}

#[test]
fn a_delay_grown_by_an_eighth_ends_slow_start_of_2011() {
    // The delay is above 40 + 5 ms, with the ninth sample.
    assert_eq!(classic(false, 100, ms(3), ms(45)), None);
    assert_eq!(classic(false, 100, ms(3), Duration::from_micros(45_001)), Some(9));
}

#[test]
fn a_burst_makes_a_train_longer_by_a_millisecond() {
    // 100 segments of 1000 bytes in 40 ms, twice that in slow start, are 5 MB/s. Four giant frames would take
    // 52 ms, so the burst is 1 ms. The 22nd ACK of a train at 1 ms exceeds half of 41 ms, too.
    let w = Window { cwnd: 100 * MSS, ssthresh: u64::MAX, mss: MSS as u32 };
    assert_eq!(super::classic::burst(&w, ms(40)), ms(1));
    // 10^6 segments are 50 GB/s, so 262,144 bytes take 5.2 us.
    let w = Window { cwnd: 1_000_000 * MSS, ssthresh: u64::MAX, mss: MSS as u32 };
    assert_eq!(super::classic::burst(&w, ms(40)), Duration::from_nanos(5_242));
}

/// Runs slow start into 100 Mb/s with 40 ms and a queue of 15 times that. Returns the window at its end in
/// units of the BDP (500 segments), and the bytes lost.
fn start(name: &str, hystart: Option<Hystart>, delayed_ack: u32) -> (f64, u64) {
    let path = Path { rate: Some(Rate::mbit(100)), queue: 7_500 * MSS, delayed_ack, ..Path::new(ms(40)) };
    let mut rig = Rig::new(name, &Options { hystart, ..Options::default() }, path);
    let mut end = None;
    rig.run(Time::from_secs(4), |r| {
        if end.is_none() && r.w.ssthresh != u64::MAX {
            end = Some(r.segments() / 500.0);
        }
    });
    (end.expect("an end of slow start"), rig.lost)
}

#[test]
fn slow_start_into_a_deep_queue_ends_without_losses() {
    for delayed_ack in [1, 2] {
        for (name, hystart) in [("cubic", None), ("reno", Some(Hystart::PlusPlus))] {
            // The delay has grown by 5 ms of 40 with the ACKs of a window above 1.125 BDP, a round after it
            // was sent. So this is seen before the window is 4 times that. Then it grows by a quarter in each
            // of five rounds: 13.7 BDP at most.
            let (end, lost) = start(name, hystart, delayed_ack);
            assert_eq!(lost, 0, "{name}");
            assert!((1.0..13.7).contains(&end), "{name} {end}");
        }
        // Half of the delay in one train means the ACKs of half a BDP.
        let (end, lost) = start("cubic", Some(Hystart::Classic), delayed_ack);
        assert_eq!(lost, 0);
        assert!((0.5..1.5).contains(&end), "{end}");
        // Without a detector, slow start fills the queue: 16 BDP, and one round later more than is seen.
        let (end, lost) = start("cubic", Some(Hystart::Off), delayed_ack);
        assert!(lost > 1_000 * MSS && end > 16.0 * 0.7, "{lost} {end}");
    }
}

#[test]
fn linux_leaves_slow_start_where_it_was_measured_to() {
    // docs/linux-tcp.md, Linux 6.18, 100 Mbit/s, which are 8.26 segments per millisecond. Slow start ends at
    // 40 ms at 485 segments if nothing disturbs (492 found), and at 10 ms at 118 to 128.
    for (rtt, found) in [(40, 488.0), (10, 123.0)] {
        let rate = Some(Rate::kbit(8_260 * 8));
        let path = Path { rate, queue: 1_000 * MSS, delayed_ack: 2, ..Path::new(ms(rtt)) };
        let mut rig = Rig::new("cubic", &Options { cubic: CubicRules::Linux, ..Options::default() }, path);
        let mut end = None;
        rig.run(Time::from_secs(1), |r| {
            if end.is_none() && r.w.ssthresh != u64::MAX {
                end = Some(r.w.ssthresh as f64 / MSS as f64);
            }
        });
        let end = end.expect("an end of slow start");
        assert!((end / found - 1.0).abs() < 0.05, "{rtt} ms: {end}");
    }
}
