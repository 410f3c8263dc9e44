//! BBR over a path with known rate and delay.

use super::super::rig::{Losses, Path, Rig, MSS};
use super::*;

const RTT: Duration = Duration::from_millis(40);
/// 50 Mb/s in bytes per second, and the segments that fill 40 ms of it.
const BW: u64 = 6_250_000;
const BDP: u64 = 250;

fn path() -> Path {
    Path { rate: Some(Rate::mbit(50)), queue: 10_000 * MSS, ..Path::new(RTT) }
}

fn rig(path: Path, seed: u64) -> Rig {
    Rig::new("bbr", &Options { seed, ..Options::default() }, path)
}

/// Returns the pacing rate as a share of the bottleneck's rate.
fn pace(r: &mut Rig) -> f64 {
    r.pacing().expect("BBR paces") / 8.0 / BW as f64
}

fn near(got: f64, want: f64, part: f64) -> bool {
    (got / want - 1.0).abs() <= part
}

#[test]
fn the_first_rate_is_a_multiple_of_the_initial_window_per_round() {
    // 2.885 * 10 segments in 40 ms, and 1 % less; 1 ms without an RTT.
    let mut r = rig(path(), 0);
    assert!(near(pace(&mut r) * BW as f64, 2.885 * 0.99 * 10_000.0 / 0.040, 0.001));
    let mut bbr = Bbr::new(&Options::default());
    let mut w = Window { cwnd: 10 * MSS, ssthresh: u64::MAX, mss: MSS as u32 };
    bbr.on_established(&mut w, Time::ZERO, None);
    let bps = bbr.pacing.expect("a rate").bps() as f64;
    assert!(near(bps, 8.0 * 2.885 * 0.99 * 10_000.0 / 0.001, 0.001));
}

#[test]
fn startup_doubles_until_the_pipe_is_full_and_drains_what_it_queued() {
    let mut r = rig(path(), 0);
    // Delivery doubles each round. 250 segments a round are 10 * 2^4.6, so the pipe is full after six rounds
    // at the latest. Three more rounds show that it stays so, in a window of 2.885 BDP, and another one
    // drains.
    let (mut highest, mut drained) = (0, None);
    r.run(Time::from_secs(2), |r| {
        highest = highest.max(r.in_flight / MSS);
        if drained.is_none() && pace(r) < 1.0 && highest > BDP && r.backlog() == 0 {
            drained = Some(r.now);
        }
    });
    assert!(highest >= 2 * BDP && highest as f64 <= 2.885 * BDP as f64 * 1.1, "{highest}");
    // Rounds of 40 ms, growing to 115 ms.
    assert!(drained.expect("drained") < Time::from_millis(6 * 40 + 5 * 116 + 40));
    assert_eq!(r.lost, 0);
}

#[test]
fn bandwidth_and_delay_are_found_and_little_more_is_in_flight() {
    for seed in 0..8 {
        let mut r = rig(path(), seed);
        r.run(Time::from_secs(1), |_| {});
        let before = r.una;
        let (mut low, mut high, mut sum, mut n) = (u64::MAX, 0, 0, 0);
        r.run(Time::from_secs(9), |r| {
            // The pace is 99 % of the bandwidth times a gain of the cycle.
            assert!([1.25, 0.75, 1.0].iter().any(|g| near(pace(r), 0.99 * g, 0.01)), "{}", pace(r));
            let flying = r.in_flight / MSS;
            (low, high, sum, n) = (low.min(flying), high.max(flying), sum + flying, n + 1);
        });
        assert!(near((r.una - before) as f64, 8.0 * BW as f64, 0.01), "{}", r.una - before);
        // Probing adds a quarter of the BDP and the host's bursts.
        assert!(low as f64 > 0.9 * BDP as f64 && (high as f64) < 1.4 * BDP as f64, "{low} {high}");
        assert!(near(sum as f64 / n as f64, 1.08 * BDP as f64, 0.08), "{}", sum / n);
    }
}

#[test]
fn phases_of_the_cycle_last_for_the_delay() {
    let mut r = rig(path(), 3);
    r.run(Time::from_secs(1), |_| {});
    let (mut last, mut since, mut lengths) = (pace(&mut r), r.now, Vec::new());
    r.run(Time::from_secs(4), |r| {
        if !near(pace(r), last, 0.05) {
            lengths.push(((last * 4.0 / 0.99).round() as u64, r.now.since(since).as_nanos() / 1_000_000));
            (last, since) = (pace(r), r.now);
        }
    });
    // The 5/4 phase lasts until the queue shows it: a round to send, a round to see. The 3/4 phase lasts for
    // one delay or until the queue is gone. Six phases of 1 follow, each ended by the first ACK after 40 ms.
    for (gain, ms) in &lengths[1..] {
        match gain {
            5 => assert!((40..=60).contains(ms), "{lengths:?}"),
            3 => assert!((30..=41).contains(ms), "{lengths:?}"),
            _ => assert!((240..=242).contains(ms), "{lengths:?}"),
        }
    }
    assert!(lengths.windows(2).all(|l| matches!((l[0].0, l[1].0), (5, 3) | (3, 4) | (4, 5))), "{lengths:?}");
    assert!(lengths.len() > 20);
}

#[test]
fn the_cycle_begins_anywhere_but_where_it_drains() {
    let mut begun = [0; 8];
    for seed in 0..700 {
        let mut bbr = Bbr::new(&Options { seed, ..Options::default() });
        bbr.enter_probe_bw(Time::ZERO);
        let Mode::ProbeBw { phase, .. } = bbr.mode else { panic!("{:?}", bbr.mode) };
        begun[phase] += 1;
    }
    assert_eq!(begun[1], 0);
    assert!((0..8).filter(|&i| i != 1).all(|i| begun[i] > 60), "{begun:?}");
}

#[test]
fn the_delay_is_probed_for_every_ten_seconds() {
    let mut r = rig(path(), 0);
    let (mut probes, mut probing) = (Vec::new(), false);
    r.run(Time::from_secs(35), |r| {
        let small = r.w.cwnd == 4 * MSS;
        if small && !probing {
            probes.push((r.now, r.now));
        }
        if probing {
            probes.last_mut().expect("a probe").1 = r.now;
        }
        probing = small;
    });
    // The handshake saw the smallest delay, at 0. Each probe lasts until only four segments are in flight,
    // then 200 ms and the rest of a round. The next is due 10 s after its end.
    assert_eq!(probes.len(), 3, "{probes:?}");
    let mut due = Time::from_secs(10);
    for (from, to) in probes {
        assert!(from.since(due) <= Duration::from_millis(1), "{from:?} {due:?}");
        let long = to.since(from);
        assert!((200..=330).contains(&(long.as_nanos() / 1_000_000)), "{long:?}");
        due = to + Duration::from_secs(10);
    }
    // The window returns to its earlier value, and the estimate was kept.
    assert!(r.w.cwnd > 2 * BDP * MSS && r.w.cwnd < 23 * BDP * MSS / 10, "{}", r.w.cwnd);
}

#[test]
fn a_longer_delay_is_believed_after_a_probe() {
    let mut r = rig(path(), 0);
    r.run(Time::from_secs(5), |_| {});
    r.path.rtt = Duration::from_millis(60);
    r.run(Time::from_secs(9), |_| {});
    // The window is still 2 * 40 ms of the bandwidth.
    assert!(near(r.segments(), 2.1 * BDP as f64, 0.05), "{}", r.segments());
    r.run(Time::from_secs(12), |_| {});
    assert!(near(r.segments(), 2.0 * 1.5 * BDP as f64 + 20.0, 0.05), "{}", r.segments());
}

#[test]
fn a_faster_bottleneck_is_found_by_probing_and_a_slower_one_in_ten_rounds() {
    let mut r = rig(path(), 0);
    r.run(Time::from_secs(3), |_| {});
    r.path.rate = Some(Rate::mbit(100));
    // 1.25^4 > 2: four cycles of eight delays and a little, 340 ms each.
    r.run(Time::from_secs(3) + Duration::from_millis(4 * 360), |_| {});
    assert!(pace(&mut r) >= 0.74 * 2.0, "{}", pace(&mut r));
    r.run(Time::from_secs(6), |_| {});
    r.path.rate = Some(Rate::mbit(25));
    // The queue lengthens the rounds: a window of 4 BDP over a quarter of the rate makes 330 ms each.
    r.run(Time::from_millis(6_000 + 12 * 340), |_| {});
    assert!(pace(&mut r) < 0.5 * 1.26, "{}", pace(&mut r));
    // This period lies between two probes of the delay.
    r.run(Time::from_secs(12), |_| {});
    let before = r.una;
    r.run(Time::from_secs(18), |_| {});
    assert!(near((r.una - before) as f64, 3.125e6 * 6.0, 0.01), "{}", r.una - before);
}

#[test]
fn random_losses_do_not_matter() {
    // With 1 % loss, Reno gets 1.22 / sqrt(0.01) = 12 segments of 250. BBR carries everything that is not
    // lost.
    let lossy = Path { losses: Losses::Random(10_000), ..path() };
    let mut r = rig(lossy, 1);
    r.run(Time::from_secs(1), |_| {});
    let before = r.delivered;
    r.run(Time::from_secs(9), |_| {});
    let carried = (r.delivered - before) as f64 / (8.0 * BW as f64);
    assert!(carried > 0.93, "{carried}");
    let mut reno = Rig::new("reno", &Options::default(), lossy);
    reno.run(Time::from_secs(9), |_| {});
    assert!((reno.delivered as f64) < 0.2 * 9.0 * BW as f64, "{}", reno.delivered);
}

#[test]
fn recovery_conserves_and_restores_the_window() {
    let mut r = rig(path(), 0);
    r.run(Time::from_secs(2), |_| {});
    let before = r.w.cwnd;
    r.path.losses = Losses::Every(500);
    let (mut entered, mut worst) = (None, 0);
    let mut flying = 0;
    r.run(Time::from_millis(2_250), |r| {
        let ack = r.last.expect("an ACK");
        if r.phase == Phase::Recovery && entered.is_none() {
            entered = Some(r.now);
            flying = ack.in_flight;
            // The window is the data in flight and the data just delivered.
            assert_eq!(r.w.cwnd, ack.in_flight + ack.delivered);
        }
        if entered.is_some_and(|at| r.now.since(at) < Duration::from_millis(35)) {
            worst = worst.max(r.in_flight + MSS);
        }
    });
    assert!(entered.is_some() && worst <= flying + 2 * MSS, "{worst} {flying}");
    r.path.losses = Losses::None;
    r.run(Time::from_millis(2_600), |_| {});
    assert_eq!(r.phase, Phase::Open);
    assert!(r.w.cwnd + 20 * MSS >= before, "{} {before}", r.w.cwnd);
}

#[test]
fn a_mark_is_no_recovery() {
    let marking = Path { mark: 10 * MSS, ..path() };
    let mut r = rig(marking, 0);
    r.run(Time::from_secs(3), |_| {});
    assert!(r.reductions > 0);
    let before = r.una;
    r.run(Time::from_secs(9), |_| {});
    assert!(near((r.una - before) as f64, 6.0 * BW as f64, 0.01), "{}", r.una - before);
}

#[test]
fn a_time_out_keeps_the_model() {
    let mut r = rig(path(), 0);
    r.run(Time::from_secs(2), |_| {});
    let (pacing, cwnd) = (r.pacing(), r.w.cwnd);
    r.cc.on_congestion(&mut r.w, r.now, r.in_flight, Congestion::Timeout);
    r.cc.on_timeout(&mut r.w, r.now);
    assert_eq!(r.pacing(), pacing);
    // The sender sets this window.
    r.w.cwnd = MSS;
    // After the repair, the earlier window returns.
    let ack = Ack { now: r.now, phase: Phase::Open, lost: 0, ..r.last.expect("an ACK") };
    r.cc.on_ack(&mut r.w, &ack);
    assert!(r.w.cwnd >= cwnd, "{} {cwnd}", r.w.cwnd);
}

#[test]
fn after_idleness_it_paces_at_the_bandwidth_and_does_not_probe_the_delay() {
    let mut r = rig(path(), 0);
    r.run(Time::from_secs(3), |_| {});
    let ack = r.last.expect("an ACK");
    let now = Time::from_secs(20);
    r.cc.on_restart(&mut r.w, now, Duration::from_secs(17), true);
    assert!(near(pace(&mut r), 0.99, 0.005), "{}", pace(&mut r));
    // The delay was seen 20 s ago, but the queue was empty meanwhile.
    r.cc.on_ack(&mut r.w, &Ack { now, ..ack });
    assert!(r.w.cwnd > 100 * MSS, "{}", r.w.cwnd);
}

#[test]
fn samples_limited_by_the_application_do_not_lower_the_bandwidth() {
    let mut r = rig(path(), 0);
    r.run(Time::from_secs(3), |_| {});
    let mut ack = r.last.expect("an ACK");
    // 40 rounds at a tenth of the rate.
    let trickle = |ack: &mut Ack, app_limited| {
        ack.now += Duration::from_millis(40);
        ack.total_delivered += 25 * MSS;
        ack.sample = Some(super::super::RateSample {
            delivered: 25 * MSS,
            interval: RTT + Duration::from_millis(1),
            prior_delivered: ack.total_delivered - 25 * MSS,
            app_limited,
            retransmitted: false,
        });
    };
    for _ in 0..40 {
        trickle(&mut ack, true);
        r.cc.on_ack(&mut r.w, &ack);
    }
    assert!(pace(&mut r) > 0.7, "{}", pace(&mut r));
    for _ in 0..12 {
        trickle(&mut ack, false);
        r.cc.on_ack(&mut r.w, &ack);
    }
    assert!(pace(&mut r) < 0.13, "{}", pace(&mut r));
}

#[test]
fn a_run_is_the_same_again() {
    let run = |seed| {
        let mut r = rig(Path { losses: Losses::Random(1_000), ..path() }, seed);
        r.run(Time::from_secs(5), |_| {});
        (r.una, r.w, r.pacing())
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}
