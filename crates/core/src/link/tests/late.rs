//! Jitter and reordering: timelines by hand, and a model.

use super::*;
use crate::link::jitter::Lateness;
use proptest::prelude::*;

const ALL_LATE: Reorder = Reorder { trillionths: TRILLION, by: Duration::from_millis(3) };

/// Returns when each of `inputs` comes out by the definitions of loss-free links: after the time at the rate,
/// the delay, and the drawn lateness. Frames due at once come out in order of entry.
fn expected(config: Config, inputs: &[(u64, u8)]) -> Vec<(Time, u8)> {
    let mut lateness = Lateness::new(config.jitter, config.reorder, config.seed);
    let mut done = 0;
    let mut out: Vec<(Time, u8)> = Vec::new();
    for &(at, tag) in inputs {
        done = at.max(done) + config.rate.map_or(0, |rate| rate.time_for(1500).as_nanos());
        let due = match &mut lateness {
            None => ns(done) + config.delay,
            Some(late) => late.due(ns(done), config.delay),
        };
        out.push((due, tag));
    }
    out.sort_by_key(|&(due, _)| due);
    out
}

#[test]
fn what_is_late_is_overtaken() {
    // One packet each millisecond over 5 ms. Of twelve, those that draw it come 3 ms later: two pass them,
    // and the third, due at the same time, entered later.
    let reorder = Reorder { trillionths: TRILLION / 3, by: Duration::from_millis(3) };
    let config = Config { delay: Duration::from_millis(5), reorder, seed: 9, ..Config::default() };
    let mut rng = crate::rng::Rng::new(9 ^ 0x0072_656f_7264_6572);
    let late: Vec<bool> = (0..12).map(|_| rng.below(TRILLION) < TRILLION / 3).collect();
    let mut r = rig(config);
    let mut due: Vec<(Time, u8)> = Vec::new();
    for (n, late) in (0..12).zip(&late) {
        r.at(us(1000 * n)).inject(Link::IN, packet(n as u8, 1500));
        due.push((us(1000 * n + 5000 + if *late { 3000 } else { 0 }), n as u8));
    }
    due.sort_by_key(|&(at, _)| at);
    assert_ne!(due.iter().map(|d| d.1).collect::<Vec<_>>(), (0..12).collect::<Vec<_>>());
    assert_eq!(stamps(&r.run_until(Time::from_secs(1))), due);
    assert_eq!(r.node().ledger().held(), 0);
    r.finish();
}

#[test]
fn all_late_are_in_order_and_behind_the_rate() {
    let config = Config { delay: Duration::from_millis(5), reorder: ALL_LATE, ..ten_mbit() };
    let mut r = rig(config);
    for tag in 1..=3 {
        r.inject(Link::IN, packet(tag, 1500));
    }
    assert_eq!(stamps(&r.run_until(us(99_999))), [(us(9200), 1), (us(10_400), 2), (us(11_600), 3)]);
    // The rate did not wait for late frames.
    assert_eq!(r.node().stats().busy, Duration::from_micros(3600));
    r.finish();
}

#[test]
fn frames_due_at_once_come_out_as_they_came() {
    // Jitter of a nanosecond over two instants: frames due at the same time keep their order.
    let jitter = Jitter { by: Duration::from_nanos(1), law: Law::Uniform, reorders: true };
    let config = Config { jitter, seed: 3, ..Config::default() };
    let inputs: Vec<(u64, u8)> = (0..40).map(|n| (1000 + u64::from(n / 20), n)).collect();
    let mut r = rig(config);
    for &(at, tag) in &inputs {
        r.at(ns(at)).inject(Link::IN, packet(tag, 1500));
    }
    let sent = stamps(&r.run_until(us(1000)));
    let tags = |at: u64| sent.iter().filter(|s| s.0 == ns(at)).map(|s| s.1).collect::<Vec<u8>>();
    for at in 1000..=1002 {
        assert!(tags(at).len() > 4 && tags(at).is_sorted(), "{at}: {:?}", tags(at));
    }
    assert_eq!(sent, expected(config, &inputs));
    r.finish();
}

#[test]
fn jitter_that_keeps_the_order_delays_what_follows() {
    let jitter = |reorders| Jitter { by: Duration::from_millis(4), law: Law::Uniform, reorders };
    let of = |reorders| {
        let mut r = rig(Config { jitter: jitter(reorders), seed: 1, ..Config::default() });
        for tag in 0..50 {
            r.at(us(1000 * u64::from(tag))).inject(Link::IN, packet(tag, 1500));
        }
        stamps(&r.run_until(Time::from_secs(1)))
    };
    let (kept, mut free) = (of(false), of(true));
    assert!(!free.is_sorted_by_key(|s| s.1));
    // For the same draws in order, each comes out when all before it are out.
    free.sort_by_key(|s| s.1);
    let mut last = ns(0);
    for (kept, free) in kept.iter().zip(&free) {
        last = last.max(free.0);
        assert_eq!(*kept, (last, free.1));
    }
}

proptest! {
    #[test]
    fn frames_come_out_when_they_are_due_however_late_the_driver_wakes(
        gaps in prop::collection::vec(prop_oneof![Just(0), 0u64..3_000_000], 1..60),
        by in 0u64..4_000_000, late_by in 0u64..4_000_000, trillionths in 0..=TRILLION, reorders: bool, law in 0usize..4,
        rate: bool, seed: u64, wake in 1u64..10_000_000,
    ) {
        let law = Law::ALL[law].1;
        let config = Config {
            rate: rate.then_some(Rate::mbit(10)),
            delay: Duration::from_micros(700),
            jitter: Jitter { by: Duration::from_nanos(by), law, reorders },
            reorder: Reorder { trillionths, by: Duration::from_nanos(late_by) },
            seed,
            ..Config::default()
        };
        let mut now = 0;
        let inputs: Vec<(u64, u8)> = (0..).zip(gaps).map(|(tag, gap)| ((now += gap, now).1, tag)).collect();
        let late = Duration::from_nanos(wake);
        for wake in [Wake::Exact, Wake::Late(late), Wake::Lazy(late)] {
            let mut r = rig(config).wake(wake);
            for &(at, tag) in &inputs {
                r.at(ns(at)).inject(Link::IN, packet(tag, 1500));
            }
            prop_assert_eq!(stamps(&r.run_until(Time::from_secs(60))), expected(config, &inputs), "{:?}", wake);
            prop_assert_eq!((r.node().ledger().sent, r.node().ledger().held()), (inputs.len() as u64, 0));
            r.finish();
        }
    }
}
