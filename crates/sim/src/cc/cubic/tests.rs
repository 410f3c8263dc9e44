//! CUBIC against the formulas and tables of RFC 9438, in floating point.

use super::super::rig::{ack_of_a_segment, Losses, Path, Rig, MSS};
use super::super::Phase;
use super::*;

const RTT: Duration = Duration::from_millis(100);

fn window(segments: u64) -> Window {
    Window { cwnd: segments * MSS, ssthresh: u64::MAX, mss: MSS as u32 }
}

/// Builds an ACK of one segment at this time.
fn ack(now: Time) -> Ack {
    Ack { rtt: Some(RTT), srtt: RTT, min_rtt: RTT, ..ack_of_a_segment(now) }
}

/// CUBIC flow whose ACKs are spaced evenly over the round.
struct Flow {
    cc: Cubic,
    w: Window,
    now: Time,
    rtt: Duration,
}

impl Flow {
    fn new(segments: u64, rtt: Duration, cubic: CubicRules) -> Flow {
        let cc = Cubic::new(&Options { cubic, ..Options::default() });
        Flow { cc, w: window(segments), now: Time::from_secs(1), rtt }
    }

    fn congestion(&mut self, congestion: Congestion) {
        let in_flight = self.w.cwnd;
        self.cc.on_congestion(&mut self.w, self.now, in_flight, congestion);
        self.w.cwnd = if congestion == Congestion::Timeout { MSS } else { self.w.ssthresh };
    }

    fn step(&mut self, change: impl Fn(&mut Ack)) {
        let mut a = Ack { rtt: Some(self.rtt), srtt: self.rtt, min_rtt: self.rtt, ..ack(self.now) };
        change(&mut a);
        self.cc.on_ack(&mut self.w, &a);
        self.now += Duration::from_nanos(self.rtt.as_nanos() * MSS / self.w.cwnd);
    }

    fn run(&mut self, time: Duration, change: impl Fn(&mut Ack), mut seen: impl FnMut(f64, f64)) {
        let start = self.now;
        while self.now.since(start) < time {
            let t = self.now.since(start).as_secs_f64();
            self.step(&change);
            seen(t, self.segments());
        }
    }

    fn segments(&self) -> f64 {
        self.w.cwnd as f64 / MSS as f64
    }
}

#[test]
fn the_window_follows_the_curve() {
    for (peak, rtt) in [(1000, 100), (1000, 50), (400, 50), (3000, 200)] {
        let mut f = Flow::new(peak, Duration::from_millis(rtt), CubicRules::Rfc9438);
        f.congestion(Congestion::Loss);
        let w_max = peak as f64;
        let k = (w_max * 0.3 / 0.4).cbrt();
        // The window may differ by the curvature of a round: half of W'' RTT^2.
        let round = rtt as f64 / 1e3;
        f.run(
            Duration::from_secs(20),
            |_| {},
            |t, got| {
                let want = 0.4 * (t - k).powi(3) + w_max;
                let tolerance = 1.0 + 1.2 * (t - k).abs() * round * round;
                assert!((got - want).abs() < tolerance, "{peak} {rtt}: {got} for {want} at {t}");
            },
        );
    }
}

#[test]
fn average_windows_are_those_of_the_table() {
    // RFC 9438 §5.1: deterministic losses, RTT 0.1 s (table 1) and 0.01 s (table 2), C = 0.4.
    let table = [
        (100, 100, 12.0),
        (100, 1_000, 38.0),
        (100, 10_000, 187.0),
        (100, 100_000, 1054.0),
        (10, 1_000, 38.0),
        (10, 10_000, 120.0),
    ];
    for (rtt, every, average) in table {
        let path = Path { losses: Losses::Every(every), ..Path::new(Duration::from_millis(rtt)) };
        let mut rig = Rig::new("cubic", &Options { fast_convergence: false, ..Options::default() }, path);
        // Start with a loss at the window of the formula. Its cycle goes from 0.7 of it along the concave
        // side of the curve, which has 1 - 0.3 / 4 of its height on average. Where the curve is level, other
        // cycles persist for long.
        rig.w.cwnd = (average / 0.925) as u64 * MSS;
        rig.cc.on_congestion(&mut rig.w, Time::ZERO, 0, Congestion::Loss);
        rig.w.cwnd = rig.w.ssthresh;
        let cycle = Duration::from_nanos((every as f64 / average * rtt as f64 * 1e6) as u64);
        let got = rig.average(Time::ZERO + cycle.saturating_mul(6));
        // One round in each cycle is recovery, at less than the average.
        let tolerance = 0.04 + 0.5 * average / every as f64;
        assert!((got / average - 1.0).abs() < tolerance, "{rtt} {every} {average} {got}");
    }
}

#[test]
fn in_the_reno_friendly_region_growth_is_9_17ths_and_then_1_per_round() {
    // At 10 ms the curve is level compared with a segment a round. K of a loss at 100 is 4.2 s, and W_est is
    // back at 100 after 30 / (9/17) = 56.7 rounds.
    let rtt = Duration::from_millis(10);
    let mut f = Flow::new(100, rtt, CubicRules::Rfc9438);
    f.congestion(Congestion::Loss);
    assert_eq!(f.segments(), 70.0);
    f.run(Duration::from_millis(500), |_| {}, |_, _| {});
    assert!((f.segments() - (70.0 + 50.0 * 9.0 / 17.0)).abs() < 0.5, "{}", f.segments());
    f.run(Duration::from_millis(567 + 300 - 500), |_| {}, |_, _| {});
    assert!((f.segments() - 130.0).abs() < 1.0, "{}", f.segments());
    // Linux continues at 8/15: one segment for each 15/8 of a window. It checks every 31 ms, three rounds
    // here, and follows within a round: up to three segments behind.
    let mut f = Flow::new(100, rtt, CubicRules::Linux);
    f.congestion(Congestion::Loss);
    f.run(Duration::from_millis(867), |_| {}, |_, _| {});
    assert!((f.segments() - (70.0 + 86.7 * 8.0 / 15.0 - 1.5)).abs() <= 1.5, "{}", f.segments());
}

#[test]
fn fast_convergence_lowers_the_plateau() {
    let mut f = Flow::new(100, RTT, CubicRules::Rfc9438);
    f.congestion(Congestion::Loss);
    assert_eq!((f.cc.memory.w_max, f.w.ssthresh), (100 * MSS, 70 * MSS));
    // Lost at 80, below 100: W_max = 80 * 1.7 / 2 = 68.
    f.w.cwnd = 80 * MSS;
    f.congestion(Congestion::Ecn);
    assert_eq!((f.cc.memory.w_max, f.w.ssthresh), (68 * MSS, 56 * MSS));
    // Above 68, W_max is the window.
    f.w.cwnd = 70 * MSS;
    f.congestion(Congestion::Loss);
    assert_eq!((f.cc.memory.w_max, f.w.ssthresh), (70 * MSS, 49 * MSS));
    f.w.cwnd = MSS;
    f.congestion(Congestion::Loss);
    assert_eq!(f.w.ssthresh, 2 * MSS);
}

#[test]
fn after_a_time_out_the_curve_is_level_where_slow_start_ended() {
    let mut f = Flow::new(100, RTT, CubicRules::Rfc9438);
    f.congestion(Congestion::Timeout);
    assert_eq!((f.w.cwnd, f.w.ssthresh), (MSS, 70 * MSS));
    while f.w.in_slow_start() {
        f.step(|a| a.phase = Phase::Loss);
    }
    // K = 0 and W_max = 70 (§4.8), so after t the window is 70 + 0.4 t^3, or W_est, whichever is higher.
    // Growth of 9/17 of a segment in each of 90 rounds makes 47.6, and 0.4 * 9^3 = 292.
    let start = f.now;
    f.run(Duration::from_secs(9), |_| {}, |_, _| {});
    let t = f.now.since(start).as_secs_f64();
    let want = 70.0 + 0.4 * t.powi(3);
    assert!((f.segments() - want).abs() < 2.5, "{} for {want}", f.segments());
}

#[test]
fn what_the_application_does_not_use_is_no_time() {
    // Two flows. One has little to send from 3 s to 6 s of its stage, and idles until 8 s.
    let run = |limited: bool| {
        let mut f = Flow::new(500, RTT, CubicRules::Rfc9438);
        f.congestion(Congestion::Loss);
        f.run(Duration::from_secs(3), |_| {}, |_, _| {});
        if limited {
            let before = f.w;
            f.run(Duration::from_secs(3), |a| a.cwnd_limited = false, |_, _| {});
            assert_eq!(f.w, before);
            f.now += Duration::from_secs(2);
            f.cc.on_restart(&mut f.w, f.now, Duration::from_secs(2), true);
            // Idleness does not count twice when the first ACK after it finds the window unused.
            f.step(|a| a.cwnd_limited = false);
        }
        f.run(Duration::from_secs(3), |_| {}, |_, _| {});
        f.segments()
    };
    let (all, interrupted) = (run(false), run(true));
    assert!((all - interrupted).abs() < 0.5, "{all} {interrupted}");
    // If this counted as time, the window would be that of 11 s: 500 + 0.4 * (11 - 7.2)^3 = 521.
    assert!(all < 500.0);
}

#[test]
fn a_spurious_loss_leaves_no_trace() {
    let mut f = Flow::new(500, RTT, CubicRules::Rfc9438);
    f.congestion(Congestion::Loss);
    f.run(Duration::from_secs(3), |_| {}, |_, _| {});
    let (cwnd, ssthresh, curve) = (f.w.cwnd, f.w.ssthresh, curve_of(&f));
    f.congestion(Congestion::Loss);
    assert!(f.cc.memory.stage.is_none());
    (f.w.cwnd, f.w.ssthresh) = (cwnd, ssthresh);
    f.cc.on_undo(&mut f.w, f.now);
    assert_eq!(f.cc.memory.w_max, 500 * MSS);
    assert_eq!(f.cc.memory.cwnd_prior, 500 * MSS);
    assert_eq!(curve_of(&f), curve);
    f.run(Duration::from_secs(4), |_| {}, |_, _| {});
    let want = 500.0 + 0.4 * (7.0f64 - (500.0f64 * 0.3 / 0.4).cbrt()).powi(3);
    assert!((f.segments() - want).abs() < 1.5, "{} for {want}", f.segments());
    // The undo works once only, and only while the window is at most cwnd_prior.
    let grown = f.cc.memory.w_max;
    f.cc.on_undo(&mut f.w, f.now);
    assert_eq!(f.cc.memory.w_max, grown);
    f.congestion(Congestion::Loss);
    f.w.cwnd = f.cc.memory.cwnd_prior + 1;
    f.cc.on_undo(&mut f.w, f.now);
    assert!(f.cc.memory.stage.is_none());
}

#[test]
fn linux_grows_by_a_twentieth_while_w_max_is_unknown() {
    // Slow start ended at 200 without a loss: 200 * 1.05^10 = 326 after ten rounds, if growth within a round
    // counts once. The RFC has max(200 + 0.4 t^3, 200 + 10).
    for (rules, low, high) in [(CubicRules::Linux, 318.0, 330.0), (CubicRules::Rfc9438, 209.5, 211.0)] {
        let mut f = Flow::new(200, RTT, rules);
        f.w.ssthresh = f.w.cwnd;
        f.run(Duration::from_secs(1), |_| {}, |_, _| {});
        assert!((low..high).contains(&f.segments()), "{rules:?} {}", f.segments());
    }
}

#[test]
fn the_target_is_a_smoothed_round_ahead_and_in_linux_a_round_without_queue() {
    let run = |rules, srtt| {
        let mut f = Flow::new(500, RTT, rules);
        f.congestion(Congestion::Loss);
        f.run(Duration::from_secs(3), |a| a.srtt = srtt, |_, _| {});
        f.segments()
    };
    let twice = RTT.saturating_mul(2);
    assert_eq!(run(CubicRules::Linux, RTT), run(CubicRules::Linux, twice));
    // One round more of the slope 3 C (3 - K)^2 = 21 segments a second, for K = 7.2 s.
    let ahead = run(CubicRules::Rfc9438, twice) - run(CubicRules::Rfc9438, RTT);
    assert!((ahead - 2.1).abs() < 0.3, "{ahead}");
    // Both target one round ahead if there is no queue. Linux does so by whole segments, and not in each
    // round.
    let apart = run(CubicRules::Linux, RTT) - run(CubicRules::Rfc9438, RTT);
    assert!(apart.abs() < 2.0, "{apart}");
}

#[test]
fn growth_is_below_that_of_slow_start() {
    // Far beyond the plateau the target is 1.5 windows (§4.2): half a segment for each one acknowledged.
    let late = |rules| {
        let mut f = Flow::new(10, RTT, rules);
        f.congestion(Congestion::Loss);
        f.step(|_| {});
        f.now += Duration::from_secs(60);
        f
    };
    let mut f = late(CubicRules::Rfc9438);
    for _ in 0..10 {
        let before = f.w.cwnd;
        f.step(|_| {});
        assert!((f.w.cwnd - before).abs_diff(MSS / 2) <= 1);
    }
    // Linux adds a whole segment for every two, and one at once for the segments saved at the slower pace.
    let mut f = late(CubicRules::Linux);
    let mut grown = Vec::new();
    for _ in 0..6 {
        let before = f.w.cwnd;
        f.step(|_| {});
        grown.push((f.w.cwnd - before) / MSS);
    }
    assert!(grown == [0, 1, 0, 1, 0, 1] || grown == [1, 0, 1, 0, 1, 0], "{grown:?}");
}

/// `tcp_cong_avoid_ai`: segments acknowledged while the curve was flat are not lost when it rises.
#[test]
fn a_stage_begins_when_the_window_has_been_reduced() {
    // Linux grows no window in CWR (`tcp_cong_control`). Its captures show the reductions of two marks in a
    // row, from 108 to 75 and 52 segments. From there to W_max = 64 (fast convergence) it takes K = cbrt(12 /
    // 0.4) = 3.1 s. Reno's estimate adds 0.53 a round.
    for cubic in [CubicRules::Linux, CubicRules::Rfc9438] {
        let mut f = Flow::new(108, RTT, cubic);
        f.w.ssthresh = 0;
        f.congestion(Congestion::Ecn);
        f.run(RTT, |a| a.phase = Phase::Reducing, |_, _| {});
        f.congestion(Congestion::Ecn);
        let reduced = f.w.cwnd;
        f.w.cwnd = 75 * MSS;
        f.run(RTT, |a| a.phase = Phase::Reducing, |_, segments| assert_eq!(segments, 75.0));
        f.w.cwnd = reduced;
        f.run(Duration::from_secs(1), |_| {}, |_, _| {});
        assert!((52.0..62.0).contains(&f.segments()), "{cubic:?}: {}", f.segments());
    }
}

#[test]
fn linux_applies_what_it_saved_at_once() {
    let mut f = Flow::new(100, RTT, CubicRules::Linux);
    f.congestion(Congestion::Loss);
    // The curve is level at the plateau: one segment for each 100 windows. 60 segments are saved there.
    f.w.cwnd = 100 * MSS;
    f.now += Duration::from_nanos(4_217_000_000);
    (0..60).for_each(|_| f.step(|_| {}));
    let before = f.w.cwnd;
    // 5 s later the target is 0.4 * 5^3 = 50 segments above: one segment for every two.
    f.now += Duration::from_secs(5);
    f.step(|_| {});
    assert_eq!(f.w.cwnd - before, MSS);
}

fn curve_of(f: &Flow) -> String {
    format!("{:?}", f.cc.memory.stage)
}

#[test]
fn a_run_is_the_same_again() {
    let run = |seed| {
        let path = Path { losses: Losses::Random(1_000), ..Path::new(RTT) };
        let mut rig = Rig::new("cubic", &Options { seed, ..Options::default() }, path);
        rig.run(Time::from_secs(60), |_| {});
        (rig.una, rig.w, rig.reductions)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
