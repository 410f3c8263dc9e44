use super::slot::Node;
use super::track::LANES;
use super::wheel::{LEVELS, MOST};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[test]
fn exact_and_first_come_first_served() {
    let mut w = Timers::<1>::new(3);
    w.arm(0, 0, Time::from_secs(5));
    w.arm(0, 1, Time::from_millis(10));
    w.arm(0, 2, Time::from_millis(10));
    assert_eq!(w.next(0), Time::from_millis(10));
    assert_eq!(w.pop(0, Time::from_nanos(9_999_999)), None);
    assert_eq!(w.pop(0, Time::from_millis(10)), Some(1));
    assert_eq!(w.pop(0, Time::from_millis(10)), Some(2));
    assert_eq!(w.pop(0, Time::from_millis(10)), None);
    assert_eq!(w.next(0), Time::from_secs(5));
    assert_eq!(w.pop(0, Time::MAX), Some(0));
    assert_eq!(w.next(0), Time::MAX);
}

#[test]
fn what_is_due_soon_is_shown() {
    let mut w = Timers::<1>::with_slots_of(40, 8);
    (0..40).for_each(|i| w.arm(0, i, Time::from_micros(i.into())));
    w.disarm(0, 3);
    let mut shown = Vec::new();
    w.soon(Time::from_micros(5), 40, |i| shown.push(i));
    shown.sort_unstable();
    assert_eq!(shown, [0, 1, 2, 4, 5]);
}

#[test]
fn timers_armed_in_their_order_need_no_wheel() {
    let mut w = Timers::<1>::new(300);
    // Periods of 1 and 7 µs: each flow is armed again as it fires.
    let period = |i: u32| [1_000, 7_000][i as usize % 2];
    (0..300).for_each(|i| w.arm_again(0, i, Time::from_nanos(period(i) + u64::from(i))));
    let mut last = 0;
    for _ in 0..10_000 {
        let due = w.next(0);
        let i = w.pop(0, due).unwrap();
        assert!(due.as_nanos() >= last);
        last = due.as_nanos();
        assert_eq!((last - u64::from(i)) % period(i), 0);
        w.arm_again(0, i, Time::from_nanos(last + period(i)));
    }
    assert_eq!(w.tracks[0].wheel.moved, 0);
}

#[test]
fn a_lane_of_disarmed_timers_gets_no_more() {
    const LAST: u32 = LANES as u32;
    let mut w = Timers::<1>::new(LAST + 1);
    (0..LAST).for_each(|i| w.arm_again(0, i, Time::from_nanos(5_000_000_000 - u64::from(i))));
    for n in 0..100_000 {
        w.arm_again(0, LAST, Time::from_nanos(10_000_000_000 + n));
        w.disarm(0, LAST);
    }
    assert!(w.tracks[0].wheel.moved > 90_000);
    for i in (0..LAST).rev() {
        assert_eq!(w.pop(0, Time::MAX), Some(i));
    }
    assert_eq!(w.next(0), Time::MAX);
}

/// A hundred thousand timers at once or a nanosecond apart. No call moves more than a slot's worth, down all
/// levels.
#[test]
fn no_call_moves_many() {
    for apart in [0, 1, 1000] {
        let mut w = Timers::<1>::new(100_000);
        let mut most = 0;
        let mut calls = 0;
        let start = 1 << 40;
        let mut call = |w: &mut Timers<1>| {
            most = most.max(core::mem::take(&mut w.tracks[0].wheel.moved));
            calls += 1;
        };
        for i in 0..100_000u64 {
            w.arm(0, i as u32, Time::from_nanos(start + i * apart));
            call(&mut w);
        }
        for i in 0..100_000u64 {
            assert_eq!(w.pop(0, Time::MAX), Some(i as u32));
            call(&mut w);
        }
        assert!(most <= LEVELS * MOST, "{most} moves in a call");
    }
}

#[test]
fn memory_is_used_again() {
    let mut w = Timers::<1>::new(4096);
    let mut sizes = Vec::new();
    for round in 1..20 {
        for i in 0..4096 {
            w.arm(0, i, Time::from_nanos((round << 36) + u64::from(i) * 100));
        }
        (0..2048).for_each(|i| w.disarm(0, 2 * i));
        while w.pop(0, Time::from_nanos(round << 37)).is_some() {}
        let entries = |n: &Node| n.slots.iter().map(|s| s.entries.capacity()).sum::<usize>();
        let wheel = &w.tracks[0].wheel;
        sizes.push((wheel.nodes.len(), wheel.nodes.iter().map(|n| entries(n)).sum::<usize>()));
    }
    assert!(sizes[18].0 <= sizes[3].0 + 1 && sizes[18].1 < 200_000, "{sizes:?}");
}

proptest! {
    /// Compares with a map for each wheel in the order of (due, sequence). Slots are divided early and late,
    /// and some timers are in lanes.
    #[test]
    fn like_maps(most in 1usize..9,
                 ops in prop::collection::vec((0u8..5, 0u32..48, 0u64..1 << 40, 0u32..42), 1..600)) {
        let mut w = Timers::<2>::with_slots_of(48, most);
        let mut models: [BTreeMap<(u64, usize), u32>; 2] = [BTreeMap::new(), BTreeMap::new()];
        let mut now = 0u64;
        for (seq, (op, i, delay, shift)) in ops.into_iter().enumerate() {
            let delay = delay >> shift;
            // A third of the timers are on the second wheel.
            let on = usize::from(i % 3 == 0);
            let model = &mut models[on];
            let armed = model.iter().find(|m| *m.1 == i).map(|m| *m.0);
            match (op, armed) {
                (0..=2, None) => {
                    let arm = if op == 0 { Timers::arm } else { Timers::arm_again };
                    arm(&mut w, on, i, Time::from_nanos(now + delay));
                    model.insert((now + delay, seq), i);
                }
                (0 | 1, Some(key)) => {
                    w.disarm(on, i);
                    model.remove(&key);
                }
                (3, _) => {
                    now += delay;
                    while let Some(got) = w.pop(on, Time::from_nanos(now)) {
                        let ((due, _), expected) = model.pop_first().unwrap();
                        prop_assert!(due <= now);
                        prop_assert_eq!(got, expected);
                    }
                }
                (4, _) => {
                    // One at a time, as a driver with little room does.
                    now += delay;
                    let due = model.first_key_value().filter(|(key, _)| key.0 <= now).map(|(key, _)| *key);
                    prop_assert_eq!(w.pop(on, Time::from_nanos(now)), due.and_then(|key| model.remove(&key)));
                }
                _ => {}
            }
            for (on, model) in models.iter().enumerate() {
                let next = model.first_key_value().map_or(u64::MAX, |(key, _)| key.0);
                prop_assert_eq!(w.next(on).as_nanos(), next);
            }
        }
    }
}
