//! Releases tick by tick, against arithmetic and fluid senders.

use super::*;
use crate::ack::Period;
use proptest::prelude::*;

fn policy(period: Period, slow_start: SlowStart) -> RateRelease {
    RateRelease { meter: Meter::Acked, period, slow_start, ..RateRelease::new(Rate::mbit(10)) }
}

#[test]
fn automatic_period_is_two_segments_within_its_bounds() {
    let auto = Period::Auto { min: Duration::from_micros(50), max: Duration::from_millis(10) };
    // 2 × 1448 bytes at 10 Mb/s: 2.3168 ms.
    assert_eq!(auto.at(Rate::mbit(10), 1448), Duration::from_nanos(2_316_800));
    // At 10 Gb/s two segments take 2.3 us: the shortest period.
    assert_eq!(auto.at(Rate::mbit(10_000), 1448), Duration::from_micros(50));
    // At 100 kb/s 10 ms would be 125 bytes: one segment, 115.84 ms.
    assert_eq!(auto.at(Rate::kbit(100), 1448), Duration::from_micros(115_840));
}

#[test]
fn the_papers_timer() {
    // fig. 12: 10 Mb/s, 10 ms: 12,500 bytes every 10 ms.
    let p = policy(Period::Fixed(Duration::from_millis(10)), SlowStart::Ignore);
    let mut pace = Pace::new(&p, Rate::mbit(10), 1448, true, Time::ZERO);
    assert_eq!(pace.arrive(Time::ZERO, 100_000, 0), Arrival::Schedule);
    assert_eq!(pace.due, 0); // the step of credit was there from the start
    for n in 1..=5u64 {
        assert_eq!(pace.tick(&p, Duration::ZERO, 1448, 100_000).release, 12_500);
        assert_eq!(pace.due, n * 10_000_000);
    }
    // The last bytes go at the first release time.
    assert_eq!(pace.tick(&p, Duration::ZERO, 1448, 300).release, 300);
}

#[test]
fn steps_below_a_segment() {
    // fig. 6: 5 Gb/s with a timer of 2 us: 1,250 bytes, less than a packet.
    let p = policy(Period::Fixed(Duration::from_micros(2)), SlowStart::Ignore);
    let mut pace = Pace::new(&p, Rate::mbit(5000), 1448, false, Time::ZERO);
    pace.arrive(Time::ZERO, 10_000, 0);
    assert_eq!(pace.tick(&p, Duration::ZERO, 1448, 10_000).release, 1_250);
}

#[test]
fn an_idle_flow_earns_one_step() {
    let p = policy(Period::Fixed(Duration::from_millis(10)), SlowStart::Ignore);
    let mut pace = Pace::new(&p, Rate::mbit(10), 1448, false, Time::ZERO);
    let hour = Time::from_secs(3600);
    assert_eq!(pace.arrive(hour, 12_501, 0), Arrival::Schedule);
    let mut again = Pace::new(&p, Rate::mbit(10), 1448, false, Time::ZERO);
    assert_eq!(again.arrive(hour, 12_500, 0), Arrival::Release);
    // 5 ms later half a step is there: 6,250 bytes, the rest 5 ms later still.
    assert_eq!(again.arrive(Time::from_nanos(hour.as_nanos() + 5_000_000), 6_251, 0), Arrival::Schedule);
    assert_eq!(again.due, hour.as_nanos() + 10_000_000);
}

#[test]
fn debt_halves_the_steps_and_ends() {
    let p = policy(Period::Fixed(Duration::from_millis(10)), SlowStart::Ignore);
    let mut pace = Pace::new(&p, Rate::mbit(10), 1448, false, Time::ZERO);
    pace.acknowledge_early(12_500 + 20_000, None, Duration::ZERO, 0); // one step was covered
    assert_eq!(pace.debt(), 20_000);
    pace.arrive(Time::ZERO, 1_000_000, 0);
    let steps: Vec<u32> = (0..5).map(|_| pace.tick(&p, Duration::ZERO, 1448, 1_000_000).release).collect();
    // 6,250 a step pays 20,000 in 3 steps and 1,250 of the fourth.
    assert_eq!(steps, [6_250, 6_250, 6_250, 11_250, 12_500]);
}

#[test]
fn an_hour_asleep_costs_all_but_the_catch_up() {
    let p = policy(Period::Fixed(Duration::from_millis(10)), SlowStart::Ignore);
    let mut pace = Pace::new(&p, Rate::mbit(10), 1448, false, Time::ZERO);
    pace.arrive(Time::ZERO, 1_000_000, 0);
    let missed = pace.skip_missed(Time::from_secs(1), Duration::from_millis(100));
    assert_eq!((missed, pace.due), (90, 900_000_000));
}

/// Drives a fluid sender in slow start: `factor` bytes per acknowledged byte, arriving one round trip later.
fn drive(mut pace: Pace, p: &RateRelease, rtt_periods: usize, factor: impl Fn(usize) -> u32) -> Vec<bool> {
    let rtt = pace.period().saturating_mul(rtt_periods as u64);
    let mut pipe = std::collections::VecDeque::from(vec![0u32; rtt_periods]);
    pipe[0] = 10_000;
    let (mut held, mut halved) = (10_000u32, Vec::new());
    pace.arrive(Time::ZERO, held, 0);
    for n in 0..400 {
        let tick = pace.tick(p, rtt, 1448, held);
        held -= tick.release;
        pipe.push_back(tick.release * factor(n));
        let arrived = pipe.pop_front().unwrap_or(0);
        pace.progressed(arrived);
        held += arrived;
        halved.push(pace.in_slow_start());
    }
    halved
}

#[test]
fn slow_start_ends_once_and_late_enough() {
    let p = policy(Period::Fixed(Duration::from_millis(10)), SlowStart::DETECT);
    let pace = Pace::new(&p, Rate::mbit(10), 1448, true, Time::ZERO);
    let halved = drive(pace, &p, 20, |n| if n < 150 { 2 } else { 1 });
    let changes = halved.windows(2).filter(|w| w[0] != w[1]).count();
    assert_eq!(changes, 1, "one transition");
    let exit = halved.iter().position(|h| !h).unwrap();
    // Not before the sender left slow start, and at most one RTT + 3 periods after its
    // single-rate ACKs came back (20 periods of path).
    assert!((150 + 20..=150 + 20 + 23).contains(&exit), "{exit}");
}

#[test]
fn slow_start_of_a_flow_taken_up_in_midstream_is_found() {
    let p = policy(Period::Fixed(Duration::from_millis(10)), SlowStart::DETECT);
    let pace = Pace::new(&p, Rate::mbit(10), 1448, false, Time::ZERO);
    let halved = drive(pace, &p, 4, |_| 2);
    assert!(!halved[0] && halved[399]);
}

#[test]
fn what_came_below_the_rate_is_no_slow_start() {
    let p = policy(Period::Fixed(Duration::from_millis(10)), SlowStart::DETECT);
    let mut pace = Pace::new(&p, Rate::mbit(10), 1448, false, Time::ZERO);
    // Half the rate for a second, all of it let through; then more than a step.
    for n in 1..=100 {
        pace.progressed(6_250);
        assert_eq!(pace.arrive(Time::from_millis(10 * n), 6_250, 0), Arrival::Release);
    }
    pace.progressed(20_000);
    assert_eq!(pace.arrive(Time::from_millis(1_001), 20_000, 0), Arrival::Schedule);
    let tick = pace.tick(&p, Duration::ZERO, 1448, 20_000);
    assert!(!tick.entered_slow_start && !pace.in_slow_start());
}

/// 1 us at 5 Gb/s: 625 bytes. A segment every 2.3 periods is the rate. A silent period between two of them is
/// not the end of slow start; 64 KiB of silence is.
#[test]
fn release_times_without_progress_wait_for_it() {
    let p = policy(Period::Fixed(Duration::from_micros(1)), SlowStart::DETECT);
    let mut pace = Pace::new(&p, Rate::mbit(5_000), 1448, true, Time::ZERO);
    pace.arrive(Time::ZERO, 1 << 20, 0);
    let mut silent = 0;
    for n in 1u32..=10_000 {
        if n * 625 / 1448 > (n - 1) * 625 / 1448 {
            pace.progressed(1448);
        }
        pace.tick(&p, Duration::from_micros(100), 1448, 1 << 20);
        assert!(pace.in_slow_start(), "after {n} us");
    }
    while pace.in_slow_start() {
        pace.tick(&p, Duration::from_micros(100), 1448, 1 << 20);
        silent += 1;
    }
    // 65,536 / 625 = 104.9: one step of the detector after 105 periods brings 1.0 to 0.7.
    assert!((104..=106).contains(&silent), "{silent}");
}

fn received() -> RateRelease {
    RateRelease {
        meter: Meter::Received,
        ..policy(Period::Fixed(Duration::from_millis(10)), SlowStart::DETECT)
    }
}

/// Returns the bytes that arrive in each period from a backlogged sender whose window grows by `growth` bytes
/// in the n-th. The round trip is `path` periods, and the gateway knows of `told`. 10 Mb/s: a step is 12,500
/// bytes.
fn arrivals(p: &RateRelease, path: usize, told: u64, growth: impl Fn(usize) -> u32) -> Vec<u32> {
    let mut pace = Pace::new(p, Rate::mbit(10), 1448, false, Time::ZERO);
    let mut pipe = std::collections::VecDeque::from(vec![12_500u32; path]);
    let mut held = 500_000;
    pace.arrive(Time::ZERO, held, 0);
    (0..1000)
        .map(|n| {
            let tick = pace.tick(p, pace.period().saturating_mul(told), 1448, held);
            assert!(tick.release >= 12_500 / 2 || tick.release == held, "starved: {tick:?}");
            pipe.push_back(tick.release + growth(n));
            let arrived = pipe.pop_front().unwrap_or(0);
            pace.progressed(arrived);
            held = held - tick.release + arrived;
            arrived
        })
        .collect()
}

fn mean(bytes: &[u32]) -> u64 {
    bytes.iter().map(|&b| u64::from(b)).sum::<u64>() / bytes.len() as u64
}

#[test]
fn a_growing_window_does_not_raise_what_arrives() {
    // A window that grows by a fifth of the rate, as CUBIC's may.
    let acked = arrivals(&RateRelease { meter: Meter::Acked, ..received() }, 4, 4, |_| 2_500);
    assert_eq!(mean(&acked[500..]), 15_000);
    for path in [1, 4, 40] {
        let got = arrivals(&received(), path, path as u64, |_| 2_500);
        let late = mean(&got[500..]);
        assert!(late.abs_diff(12_500) <= 2, "{path}: {late}");
        // Settled: no oscillation is left.
        assert!(got[600..].iter().all(|&b| b.abs_diff(12_500) <= 125), "{path}");
    }
}

#[test]
fn it_settles_though_the_path_is_longer_than_told() {
    // Time constant 3 × (10 + 2) periods: a delay of 36 × π/2 = 56 would be the limit.
    let got = arrivals(&received(), 30, 10, |_| 2_500);
    assert!(got[800..].iter().all(|&b| b.abs_diff(12_500) <= 125), "{:?}", &got[800..]);
}

#[test]
fn when_growth_ends_the_average_is_the_rate() {
    let got = arrivals(&received(), 4, 4, |n| if n < 400 { 2_500 } else { 0 });
    // 12,500 × 1000, up to the slack of two bursts.
    let total: u64 = got.iter().map(|&b| u64::from(b)).sum();
    assert!(total.abs_diff(12_500_000) <= 25_000, "{total}");
}

#[test]
fn a_window_that_does_not_grow_gets_all() {
    let got = arrivals(&received(), 10, 10, |_| 0);
    assert!(got.iter().all(|&b| b == 12_500));
}

#[test]
fn what_an_early_acknowledgement_brings_is_repaid() {
    let p = received();
    let rtt = Duration::from_millis(20);
    let mut pace = Pace::new(&p, Rate::mbit(10), 1448, false, Time::ZERO);
    pace.arrive(Time::ZERO, 200_000, 0);
    let mut now = Time::ZERO;
    let mut released = 0;
    // A duplicate: all goes, and the sender's answer arrives two periods later.
    pace.acknowledge_early(200_000, None, Duration::ZERO, 0);
    pace.stop(now);
    now += Duration::from_millis(20);
    pace.progressed(200_000);
    assert_eq!(pace.arrive(now, 200_000, 0), Arrival::Schedule);
    let mut pipe = std::collections::VecDeque::from([0, 0]);
    let (mut held, mut arrived) = (200_000, 200_000u64);
    for _ in 0..200 {
        let tick = pace.tick(&p, rtt, 1448, held);
        assert!(tick.release >= 6_250, "never silent");
        released += u64::from(tick.release);
        pipe.push_back(tick.release);
        let back = pipe.pop_front().unwrap_or(0);
        pace.progressed(back);
        (held, arrived) = (held - tick.release + back, arrived + u64::from(back));
    }
    // 202 periods since the duplicate, less the slack and the bytes on their way.
    assert!(arrived.abs_diff(202 * 12_500) <= 50_000, "{arrived} arrived, {released} released");
}

proptest! {
    /// For any growth of the window, arrivals stay near the rate in the long run, and no release is below
    /// half of a step.
    #[test]
    fn arrivals_stay_at_the_rate(path in 1usize..40, growth in 0u32..6_000, until in 100usize..900) {
        let got = arrivals(&received(), path, path as u64, |n| if n < until { growth } else { 0 });
        let total: u64 = got.iter().map(|&b| u64::from(b)).sum();
        // Most bytes that may be ahead: growth over the time constant, and a burst.
        let ahead = u64::from(growth) * 3 * (path as u64 + 2) + 25_000;
        prop_assert!(total <= 12_500_000 + ahead && total + 25_000 >= 12_500_000, "{total}");
    }

    /// Acknowledged bytes of a backlogged flow differ from rate × time by less than a step.
    #[test]
    fn exact_over_any_time(bps in 8_000u64..100_000_000_000, period_us in 10u64..100_000, ticks in 1usize..300) {
        let rate = Rate::from_bps(bps).unwrap();
        let p = policy(Period::Fixed(Duration::from_micros(period_us)), SlowStart::Ignore);
        let mut pace = Pace::new(&p, rate, 1448, false, Time::ZERO);
        prop_assert!(pace.arrive(Time::ZERO, u32::MAX, 0) == Arrival::Schedule);
        let start = pace.due;
        let mut sum = 0u128;
        for _ in 0..ticks {
            sum += u128::from(pace.tick(&p, Duration::ZERO, 1448, u32::MAX).release);
            let fluid = u128::from(pace.due - start) * u128::from(bps) / 8_000_000_000;
            prop_assert!(sum.abs_diff(fluid) <= u128::from(pace.step()));
        }
    }
}

/// 64 kb/s in segments of 1,448 bytes are released every 181 ms, which is longer than the catch-up limit. A
/// release 150 ms late is still the one that was due: the next must not come early.
#[test]
fn a_release_that_is_late_by_less_than_a_period_is_not_given_up() {
    let p = RateRelease::new(Rate::kbit(64));
    let mut pace = Pace::new(&p, p.rate, 1448, false, Time::ZERO);
    assert_eq!(pace.period(), Duration::from_millis(181));
    let due = pace.due;
    assert_eq!(pace.skip_missed(Time::from_nanos(due) + Duration::from_millis(150), p.catch_up), 0);
    assert_eq!(pace.due, due);
    assert_eq!(pace.skip_missed(Time::from_nanos(due) + Duration::from_millis(300), p.catch_up), 1);
    assert_eq!(pace.due, due + 181_000_000);
}

/// 200 kb/s in segments of 1,448 bytes: one every 57.92 ms. Seven arrived at once. The excess is paid back as
/// if within 3 × (50 + 2 × 115.84) = 845.04 ms.
#[test]
fn where_a_step_is_a_segment_the_next_is_later_instead_of_smaller() {
    let (p, rtt) = (RateRelease::new(Rate::kbit(200)), Duration::from_millis(50));
    let mut pace = Pace::new(&p, p.rate, 1448, false, Time::ZERO);
    pace.bounded();
    pace.arrive(Time::ZERO, 100_000, 0);
    pace.progressed(10_136);
    // The first step pays 8,688 × 57.92 / 845.04 = 595 bytes, so the next comes 595 / 853 of a period later.
    assert_eq!(pace.tick(&p, rtt, 1448, 100_000).release, 1448);
    assert_eq!(pace.due, 57_920_000 + 595 * 57_920_000 / 853);
    for _ in 1..400 {
        let before = pace.due;
        pace.progressed(1448);
        assert_eq!(pace.tick(&p, rtt, 1448, 100_000).release, 1448);
        assert!((57_920_000..=100_000_000).contains(&(pace.due - before)));
    }
    // Each of the 8,688 bytes takes 40 us. Up to a byte of each step is rounded.
    let later = pace.due - 400 * 57_920_000;
    assert!(later.abs_diff(8_688 * 40_000) <= 5_000_000, "{later}");
}

#[test]
fn steps_are_smaller_where_a_later_one_would_be_too_late_or_need_not_be_whole() {
    let paid = |kbit, bounded: bool, held| {
        let p = RateRelease::new(Rate::kbit(kbit));
        let mut pace = Pace::new(&p, p.rate, 1448, false, Time::ZERO);
        if bounded {
            pace.bounded();
        }
        pace.arrive(Time::ZERO, 100_000, 0);
        pace.progressed(8_000);
        let release = pace.tick(&p, Duration::from_millis(50), 1448, held).release;
        (release < 1448, pace.due > pace.period().as_nanos())
    };
    assert_eq!(paid(200, true, 100_000), (false, true));
    // A segment takes 115.84 ms, more than the 100 ms allowed at first.
    assert_eq!(paid(100, true, 100_000), (true, false));
    // The window is the receiver's own, so the right edge does not matter.
    assert_eq!(paid(200, false, 100_000), (true, false));
    // The flow continues with nothing held.
    assert_eq!(paid(200, true, 1_000), (true, false));
}

/// 100 kb/s: a segment every 115.84 ms. The sender's first time-out is little more than 200 ms. After three
/// periods it is more than five of them.
#[test]
fn a_sender_that_is_used_to_waiting_waits_for_longer() {
    let p = RateRelease::new(Rate::kbit(100));
    let mut pace = Pace::new(&p, p.rate, 1448, false, Time::from_secs(1));
    pace.bounded();
    pace.arrive(Time::from_secs(1), 100_000, 0);
    pace.progressed(8_000);
    let steps = [(); 6].map(|()| {
        let before = pace.due;
        let release = pace.tick(&p, Duration::from_millis(50), 1448, 100_000).release;
        pace.progressed(1448);
        (release == 1448, pace.due - before > 115_840_000)
    });
    assert_eq!(steps[..3], [(false, false); 3]);
    assert_eq!(steps[3..], [(true, true); 3]);
}

/// 20 Mbit/s for 50 ms are 125,000 bytes: the right edge waits no longer for what went past the engine.
#[test]
fn what_passed_without_the_engine_keeps_a_right_edge_back_for_50_ms_at_most() {
    let p = policy(Period::Fixed(Duration::from_millis(1)), SlowStart::Ignore);
    let lag_after = |early: u32| {
        let mut pace = Pace::new(&p, Rate::mbit(20), 1448, false, Time::ZERO);
        pace.bounded();
        pace.acknowledge_early(early, None, Duration::ZERO, 0);
        pace.forgive();
        pace.lag()
    };
    assert_eq!([lag_after(1_000_000_000), lag_after(100_000)], [125_000, 100_000]);
}
