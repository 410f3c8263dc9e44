//! Rates that traces change, and mahimahi's delivery opportunities: timelines by hand, and definitions.

use super::model::inputs;
use super::*;
use crate::link::trace::Rates;
use proptest::prelude::*;

const fn at(ms: u64, rate: Option<Rate>) -> (Duration, Option<Rate>) {
    (Duration::from_millis(ms), rate)
}

fn traced(trace: RateTrace) -> Config {
    Config { rate: Some(trace.mean(None)), trace: Some(trace), ..Config::default() }
}

/// 10 Mb/s, an outage from 3 ms on, 20 Mb/s from 8 ms on. Repeats every 20 ms.
const OUTAGE: RateTrace = RateTrace::Rates(Rates {
    name: "outage",
    steps: &[at(0, Some(Rate::mbit(10))), at(3, None), at(8, Some(Rate::mbit(20)))],
    period: Some(Duration::from_millis(20)),
});

#[test]
fn a_rate_that_changes_and_stops_while_a_frame_is_sent() {
    let mut r = rig(traced(OUTAGE));
    for tag in 1..=3 {
        r.inject(Link::IN, packet(tag, 1500));
    }
    // The third has sent 6,000 of its 12,000 bits when the outage begins. The fourth arrives in the outage.
    r.at(us(5000)).inject(Link::IN, packet(4, 1500));
    // From 22 ms on at 10 Mb/s: 10,000 bits until the outage at 23 ms, 2,000 after it at 28 ms.
    r.at(us(22_000)).inject(Link::IN, packet(5, 1500));
    // In an outage of round 5,000, which the link was not called in, and in the round after it.
    r.at(us(100_004_000)).inject(Link::IN, packet(6, 1500));
    r.at(us(100_021_000)).inject(Link::IN, packet(7, 1500));
    let want = [1200, 2400, 8300, 8900, 28_100, 100_008_600, 100_022_200].map(us);
    assert_eq!(
        stamps(&r.run_until(Time::from_secs(200))),
        (1..).zip(want).map(|(n, at)| (at, n)).collect::<Vec<_>>()
    );
    r.finish();
}

/// No rate for (8 ms - 3 ms) of 20 ms: (3 × 10 + 12 × 20) / 20 Mb/s.
#[test]
fn the_rate_on_average() {
    assert_eq!(OUTAGE.mean(None), Rate::kbit(13_500));
    let once = |steps| RateTrace::Rates(Rates { name: "once", steps, period: None });
    const TWO: &[(Duration, Option<Rate>)] = &[at(0, Some(Rate::mbit(8))), at(10, Some(Rate::mbit(99)))];
    assert_eq!(once(TWO).mean(None), Rate::mbit(8));
    const ONE: &[(Duration, Option<Rate>)] = &[at(0, Some(Rate::mbit(99)))];
    assert_eq!(once(ONE).mean(None), Rate::mbit(99));
    // 10 ms at 8 Mb/s and 30 ms at 99.
    assert_eq!(once(TWO).mean(Some(Duration::from_millis(40))), Rate::kbit(76_250));
    // Three opportunities of 1,504 bytes in 5 ms.
    assert_eq!(TWO_TWO_FIVE.mean(None), Rate::kbit(7219).max(Rate::from_bps(7_219_200).unwrap()));
}

/// In rounds of 20 ms: 3 ms of 10 Mb/s, an outage of 5 ms and 12 ms of 20 Mb/s. The last rate of a trace that
/// does not repeat stays.
#[test]
fn bits_that_a_trace_offers() {
    let bits = |trace: RateTrace, ms| trace.offered(Duration::from_millis(ms)) / 1_000_000_000;
    assert_eq!([3, 8, 20, 43, 50].map(|ms| bits(OUTAGE, ms)), [30_000, 30_000, 270_000, 570_000, 610_000]);
    const STEPS: &[(Duration, Option<Rate>)] = &[at(0, Some(Rate::mbit(1))), at(1000, Some(Rate::mbit(10)))];
    let rise = RateTrace::Rates(Rates { name: "rise", steps: STEPS, period: None });
    assert_eq!([500, 10_000].map(|ms| bits(rise, ms)), [500_000, 91_000_000]);
    assert_eq!([1, 2, 5, 7].map(|ms| bits(TWO_TWO_FIVE, ms)), [0, 2, 3, 5].map(|n| n * 1504 * 8));
}

/// As above: 1,250 bytes are a millisecond at 10 Mb/s and half of one at 20.
#[test]
fn times_that_a_trace_takes() {
    let took = |trace: RateTrace, bytes, ms| trace.time_for(bytes, Duration::from_millis(ms));
    let us = |us| Some(Duration::from_micros(us));
    assert_eq!([0, 1, 2, 3].map(|ms| took(OUTAGE, 1_250, ms)), [us(1000), us(1000), us(1000), us(5500)]);
    // A round has 33,750 bytes, 3,750 of them at first.
    assert_eq!(took(OUTAGE, 33_750 + 5_000, 40), us(20_000 + 8_500));
    assert_eq!((took(OUTAGE, 0, 4), took(OUTAGE, 33_750, 8)), (us(0), us(15_000)));
    const STEPS: &[(Duration, Option<Rate>)] = &[at(0, Some(Rate::mbit(1))), at(1000, None)];
    let end = RateTrace::Rates(Rates { name: "end", steps: STEPS, period: None });
    assert_eq!((took(end, 125, 999), took(end, 126, 999), took(end, 1, 5000)), (us(1000), None, None));
    // Opportunities of 1,504 bytes at 2, 2, 5, 7, 7 and 10 ms.
    let two = |bytes, ms| took(TWO_TWO_FIVE, bytes, ms);
    assert_eq!(
        [two(1504, 0), two(3008, 0), two(3009, 0), two(1505, 4)],
        [us(2000), us(2000), us(5000), us(3000)]
    );
}

#[test]
fn an_outage_for_ever_keeps_what_waits() {
    const STEPS: &[(Duration, Option<Rate>)] = &[at(0, Some(Rate::mbit(10))), at(2, None)];
    let trace = RateTrace::Rates(Rates { name: "end", steps: STEPS, period: None });
    let mut r = rig(Config { queue: QueueLimit::Packets(1), ..traced(trace) });
    for tag in 1..=3 {
        r.inject(Link::IN, packet(tag, 1500));
    }
    assert_eq!(stamps(&r.run_until(Time::from_secs(9))), [(us(1200), 1)]);
    assert_eq!(r.node().next_deadline(PortSet::ALL), None);
    assert_eq!((r.node().stats().drops.total(), r.held()), (1, 1));
    // A rate ends the trace: 4,000 bits are left of the second.
    r.with_cx(|link, cx| link.set_rate(cx, Rate::mbit(1)));
    assert_eq!(stamps(&r.run_until(Time::from_secs(20))), [(us(9_004_000), 2)]);
    r.finish();
}

/// Mahimahi's semantics, computed by hand from `rationalize()` of its `link_queue.cc`. An opportunity carries
/// 1,504 bytes, of several packets or a part of one. Unused bytes are lost. A packet that arrives in its very
/// millisecond is too late for it. The trace repeats from its last time.
const TWO_TWO_FIVE: RateTrace = RateTrace::Opportunities(Opportunities { name: "mm", at_ms: &[2, 2, 5] });

#[test]
fn opportunities_of_mahimahi() {
    let mut r = rig(Config { overhead: Opportunities::OVERHEAD, ..traced(TWO_TWO_FIVE) });
    // One each with the two opportunities at 2 ms. The one that arrives then waits for 5 ms.
    r.inject(Link::IN, packet(1, 1500)).inject(Link::IN, packet(2, 1500));
    r.at(us(2000)).inject(Link::IN, packet(3, 1500));
    // Later opportunities are at 7, 7, 10, 12, 12, 15, 17, 17 and 20 ms. Those up to 15 ms find the queue
    // empty. Three packets count 748 bytes each. Two of them leave with the first at 17 ms, and 8 bytes of
    // the third. Its other 740 leave with the second, and 764 of the fourth packet, whose other 740 are left
    // to 20 ms.
    r.at(us(16_500));
    for tag in 4..=6 {
        r.inject(Link::IN, packet(tag, 744));
    }
    r.inject(Link::IN, packet(7, 1500));
    let sent = stamps(&r.run_until(Time::from_secs(1)));
    let want = [2, 2, 5, 17, 17, 17, 20].map(Time::from_millis);
    assert_eq!(sent, want.into_iter().zip(1..).collect::<Vec<_>>());
    let s = r.node().stats();
    assert_eq!((s.packets, s.bytes, s.queue_peak_packets), (7, 4 * 1504 + 3 * 748, 4));
    // The first waited 2 ms, the third until 5 ms, the fourth 0.5 ms.
    assert_eq!((s.queue_delay.count(), s.queue_delay.min(), s.queue_delay.max()), (7, 500_000, 3_000_000));
    r.finish();
}

#[test]
fn what_has_been_sent_in_part_does_not_count_in_the_queue() {
    let trace = RateTrace::Opportunities(Opportunities { name: "slow", at_ms: &[10] });
    let mut r =
        rig(Config { queue: QueueLimit::Packets(1), delay: Duration::from_millis(5), ..traced(trace) });
    // 3,000 bytes need two opportunities. Until the first one the packet waits, and there is no room for
    // another.
    r.inject(Link::IN, packet(1, 3000)).inject(Link::IN, packet(2, 100));
    r.at(us(10_000)).inject(Link::IN, packet(3, 1500)).inject(Link::IN, packet(4, 1500));
    // The third has 8 bytes of the second opportunity, and 1,492 of the third one.
    let want = [(us(25_000), 1), (us(35_000), 3)];
    assert_eq!(stamps(&r.run_until(Time::from_secs(1))), want);
    assert_eq!(r.node().stats().drops.get(DropReason::QueueFull), 2);
    r.finish();
}

#[test]
fn a_rate_ends_a_trace_of_opportunities() {
    let mut r = rig(traced(TWO_TWO_FIVE));
    for tag in 1..=4 {
        r.inject(Link::IN, packet(tag, 1500));
    }
    let mut sent = stamps(&r.run_until(us(3000)));
    r.with_cx(|link, cx| link.set_rate(cx, Rate::mbit(10)));
    sent.extend(stamps(&r.run_until(Time::from_secs(1))));
    // 8 bytes of the third had left: it is sent again from its beginning.
    assert_eq!(sent, [(us(2000), 1), (us(2000), 2), (us(4200), 3), (us(5400), 4)]);
    r.finish();
}

/// Returns when each of these leaves, by mahimahi's definition, step by step.
fn delivered(inputs: &[Input], at_ms: &[u64]) -> Vec<(Time, u8)> {
    let (mut waiting, mut left, mut out) = (std::collections::VecDeque::new(), 0, Vec::new());
    let mut inputs = inputs.iter().peekable();
    for round in 0.. {
        for ms in at_ms {
            let now = (round * at_ms[at_ms.len() - 1] + ms) * 1_000_000;
            while let Some(&&(_, tag, ip)) = inputs.peek().filter(|(at, ..)| *at < now) {
                waiting.push_back((tag, ip as u64));
                inputs.next();
            }
            let mut room = 1504;
            while room > 0 && !waiting.is_empty() {
                let (tag, ip) = waiting[0];
                left = if left == 0 { ip } else { left };
                let sent = room.min(left);
                (room, left) = (room - sent, left - sent);
                if left == 0 {
                    out.push((ns(now), tag));
                    waiting.pop_front();
                }
            }
        }
        if inputs.peek().is_none() && waiting.is_empty() {
            break;
        }
    }
    out
}

proptest! {
    #[test]
    fn opportunities_are_used_as_defined_however_late_the_driver_wakes(
        inputs in inputs(), mut gaps in prop::collection::vec(0u64..6, 1..20), last in 1u64..9, late in 1u64..10_000_000,
    ) {
        let mut now = 0;
        gaps.push(last);
        let at_ms: Vec<u64> = gaps.into_iter().map(|gap| (now += gap, now).1).collect();
        let expected = delivered(&inputs, &at_ms);
        let trace = RateTrace::Opportunities(Opportunities { name: "any", at_ms: Vec::leak(at_ms) });
        let late = Duration::from_nanos(late);
        for wake in [Wake::Exact, Wake::Late(late), Wake::Lazy(late)] {
            let mut r = rig(Config { queue: QueueLimit::Unlimited, ..traced(trace) }).wake(wake);
            for &(at, tag, ip) in &inputs {
                r.at(ns(at)).inject(Link::IN, packet(tag, ip));
            }
            prop_assert_eq!(stamps(&r.run_until(Time::from_secs(60))), expected.clone(), "{:?}", wake);
            r.finish();
        }
    }

    /// A trace of rates equals [`Link::set_rate`] at the same times.
    #[test]
    fn a_trace_of_rates_changes_the_rate_at_its_times(
        inputs in inputs(), changes in prop::collection::vec((1u64..5_000_000, 1_000_000u64..40_000_000), 0..8),
        burst in prop_oneof![Just(0u64), 0u64..9000], late in 1u64..10_000_000,
    ) {
        let mut now = 0;
        let later = changes.into_iter().map(|(gap, bps)| ((now += gap, now).1, bps));
        let rates: Vec<(u64, u64)> = [(0, 10_000_000)].into_iter().chain(later).collect();
        let config = Config { queue: QueueLimit::Unlimited, burst, ..ten_mbit() };
        let mut expected = Vec::new();
        let mut r = rig(config);
        for &(at, tag, ip) in &inputs {
            r.at(ns(at)).inject(Link::IN, packet(tag, ip));
        }
        for &(at, bps) in &rates[1..] {
            // A frame that arrives at the time of a change comes after it.
            expected.extend(stamps(&r.run_until(ns(at - 1))));
            r.at(ns(at));
            r.with_cx(|link, cx| link.set_rate(cx, Rate::from_bps(bps).unwrap()));
        }
        expected.extend(stamps(&r.run_until(Time::from_secs(60))));
        let steps = rates.iter().map(|&(at, bps)| (Duration::from_nanos(at), Rate::from_bps(bps))).collect();
        let trace = RateTrace::Rates(Rates { name: "any", steps: Vec::leak(steps), period: None });
        let late = Duration::from_nanos(late);
        for wake in [Wake::Exact, Wake::Late(late), Wake::Lazy(late)] {
            let mut r = rig(Config { trace: Some(trace), ..config }).wake(wake);
            for &(at, tag, ip) in &inputs {
                r.at(ns(at)).inject(Link::IN, packet(tag, ip));
            }
            prop_assert_eq!(stamps(&r.run_until(Time::from_secs(60))), expected.clone(), "{:?}", wake);
            r.finish();
        }
    }
}
