//! The average and the probabilities by arithmetic. An independent draw selects the frames.

use super::*;
use crate::queue::tests::{one, Bench};
use crate::queue::Queue;

const MS: Duration = Duration::from_millis(1);

fn law(params: Params) -> Law {
    Law::new(params, 1)
}

/// Each sample moves the average by a quarter of the difference, from 0: 4 × 0.25, then 1 + (8 - 1) / 4 and
/// so on.
#[test]
fn the_average_follows_what_waits() {
    let mut l = law(Params { weight: 2, ..Params::default() });
    let mut averages = Vec::new();
    for bytes in [4000, 8000, 0, 16_000] {
        l.follow(Time::ZERO, bytes, MS);
        averages.push(l.average);
    }
    // In quarters of a byte: 4000, 4000 - 1000 + 8000, 11,000 - 2750, 8250 - 2062 + 16,000.
    assert_eq!(averages, [4000, 11_000, 8250, 22_188]);
}

/// After m small packets' time without a frame, (1 - 1/4)^m of the average is left.
#[test]
fn the_average_falls_while_nothing_is_sent() {
    for (m, left) in [(0, 16_000), (1, 12_000), (2, 9_000), (3, 6_750), (1_000_000, 0)] {
        let mut l = law(Params { weight: 2, ..Params::default() });
        (l.average, l.idle) = (16_000 << 2, Some(Time::from_millis(5)));
        l.follow(Time::from_millis(5 + m), 0, MS);
        // The next arrival finds nothing and takes off a quarter of the rest.
        assert!((l.average >> 2).abs_diff(left * 3 / 4) <= 1, "{m}: {}", l.average >> 2);
    }
    // (511/512)^512 = 0.36752 (Python).
    assert_eq!((power(9, 512) * 100_000) >> 32, 36_751);
    assert_eq!((power(9, 0), power(0, 1), power(9, u64::MAX)), (1 << 32, 0, 0));
}

#[test]
fn probabilities_between_the_thresholds_and_up_to_twice_the_upper_one() {
    let params = Params { min: 1000, max: 3000, max_p: ONE / 10, weight: 0, ecn: false };
    for (average, p) in
        [(0, 0), (999, 0), (1000, 0), (2000, ONE / 20), (3000, ONE / 10), (4500, ONE * 55 / 100), (6000, ONE)]
    {
        let mut l = law(params);
        l.average = average;
        assert_eq!(l.probability(), p, "{average}");
    }
}

/// With p = 1/4 the distance between signals is uniform from 1 to 4 (§7): each one a quarter.
#[test]
fn distances_between_signals_are_uniform() {
    let params = Params { min: 0, max: 4000, max_p: ONE, weight: 0, ecn: false };
    let mut l = law(params);
    l.idle = None;
    let (mut distance, mut counts) = (0, [0; 5]);
    for n in 0..40_000 {
        distance += 1;
        if l.arrives(Time::ZERO, 1000, MS) == Fate::Signal {
            counts[distance.min(4)] += usize::from(n > 0);
            assert!(distance <= 4);
            distance = 0;
        }
    }
    // 16,000 distances of 2.5 on average: 4,000 of each, standard deviation 55.
    assert!(counts[1..].iter().all(|n| (3700..=4300).contains(n)), "{counts:?}");
}

/// Each arrival is a sample (Floyd and Jacobson 1993, fig. 2). A frame that finds the server idle may be
/// dropped.
#[test]
fn what_finds_the_server_idle_is_judged() {
    let params = Params { min: 1, max: 2, max_p: ONE, weight: 4, ecn: false };
    let mut frames = Frames::growing(128);
    let mut red = Red::new(params, QueueLimit::Packets(9), Rate::mbit(8), 1);
    let mut arrive = |now: Time, red: &mut Red, push: bool| {
        let frame = frames.receive_copy(&[0; 64], 1000, now).unwrap();
        let waiting = Waiting { frame: frames.park(frame), charge: one(1000), since: now };
        let mut cx = Cx { now, frames: &mut frames };
        let left = match push {
            true => red.push(&mut cx, waiting).is_none().then(|| red.pop(&mut cx)).flatten(),
            false => red.pass(&mut cx, waiting),
        };
        left.map(|waiting| frames.unpark(waiting.frame)).map(|frame| frames.transmitted(frame)).is_some()
    };
    red.law.average = 1000 << 4;
    // The average is 1,000 bytes: 1000 × 15/16 with the next frame and 1000 × (15/16)^2 with the one after
    // it, dropped or not.
    assert!(!arrive(Time::ZERO, &mut red, true));
    assert_eq!(red.average(), 937);
    assert!(!arrive(Time::ZERO, &mut red, false));
    assert_eq!((red.average(), red.backlog.stats.drops.get(DropReason::Aqm)), (878, 2));
    // After n ms, the time of n small packets, (15/16)^n of it is left: less than a byte after 200.
    assert!(arrive(Time::from_millis(200), &mut red, false));
    // The frame is being sent until 201 ms.
    assert_eq!(red.law.idle, Some(Time::from_millis(201)));
}

/// A weight of one and no randomness: the probability is 0 up to the lower threshold and 1 from twice the
/// upper one on.
#[test]
fn a_queue_drops_what_makes_its_average_too_long() {
    let params = Params { min: 3000, max: 3001, max_p: ONE, weight: 0, ecn: true };
    let mut b = Bench::new(Queue::Red(Box::new(Red::new(params, QueueLimit::Packets(9), Rate::mbit(12), 1))));
    let fates: Vec<_> = (0..7).map(|n| b.push(Time::ZERO, n, one(1000))).collect();
    // The arrivals find 0, 1000, 2000 and 3000 bytes; from 4,000 on the probability is 1.
    assert_eq!(fates[..4], [None; 4]);
    assert_eq!(fates[4..], [Some(DropReason::Aqm); 3]);
    for n in 0..4 {
        assert_eq!(b.pop(MS_AFTER).map(|(number, ..)| number), Some(n));
    }
    assert_eq!(b.push(MS_AFTER, 7, one(1000)), None);
    b.check(1);
}

const MS_AFTER: Time = Time::from_millis(1);
