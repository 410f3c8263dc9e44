//! Grants: segments of a flow below its rate that the hooks let pass. The numbers follow from the rate: 10
//! Mb/s are 1,250 bytes a millisecond, 12,500 a step, and 5,000 in the 4 ms to the next check.

use super::tests::*;
use super::*;
use weir_core::rig::Rig;
use weir_core::time::Duration;
use weir_core::wire::Seq;

const FLOW: u16 = 5001;
const PERIOD: Duration = Duration::from_millis(10);

fn us(n: u64) -> Time {
    Time::from_micros(n)
}

/// Returns a rig with a flow established over a round trip of 20 ms, below its rate for a long time.
fn established() -> Rig<Steered> {
    let mut rig = Rig::new(Steered::new(outward(FLOW..=FLOW)));
    handshake(&mut rig, FLOW);
    rig.run_until(ms(900));
    rig
}

fn acks(rig: &mut Rig<Steered>, acks: &[(Time, u32)]) {
    for &(at, n) in acks {
        inject(rig, at, WAN, &ack(FLOW, n));
    }
}

/// Returns how far beyond the data's first byte segments may pass.
fn granted(rig: &Rig<Steered>) -> Option<u32> {
    let to = rig.node().gateway().flows.slots()[0].granted()?;
    Some(to.since(Seq(DATA_ISN.wrapping_add(1))))
}

#[test]
fn what_the_credit_covers_passes_without_the_gateway() {
    let mut rig = established();
    acks(&mut rig, &[(ms(1000), 1_000)]);
    rig.run_until(ms(1000));
    assert_eq!(granted(&rig), None, "the last ACK was long ago");
    acks(&mut rig, &[(ms(1001), 2_000)]);
    rig.run_until(ms(1001));
    // A step, refilled after a millisecond, less 1,000 bytes, plus the bytes of 4 ms.
    assert_eq!(granted(&rig), Some(18_500));
    let before = rig.node().stats().taken;
    acks(&mut rig, &[(ms(1002), 9_000), (us(1_002_010), 18_500)]);
    let passed = rig.run_until(us(1_002_010));
    assert_eq!(numbers(&passed), [(ms(1002), 9_000), (us(1_002_010), 18_500)]);
    assert_eq!(rig.node().stats().taken, before);
    // 16,500 bytes have passed. The rest of the step and two milliseconds cover 14,000. The gap after the
    // last check is 200 us.
    acks(&mut rig, &[(ms(1003), 20_000), (us(1_003_100), 23_000)]);
    let sent = rig.run_until(ms(1100));
    assert_eq!(rig.node().stats().taken, before + 2);
    let all = 23_000 - 18_500;
    assert!(all > 250, "more than is earned until then, so it waits for a full step");
    assert_eq!(numbers(&sent).last().map(|last| last.1), Some(23_000));
    assert_eq!(rig.node().gateway().flows.flows().next().unwrap().debt_bytes, 0);
    finish(&rig);
}

#[test]
fn a_flow_that_falls_silent_has_neither_grant_nor_timer() {
    let mut rig = established();
    acks(&mut rig, &[(ms(1000), 1_000), (ms(1001), 2_000), (ms(1002), 3_000)]);
    rig.run_until(ms(1003));
    assert!(granted(&rig).is_some());
    rig.run_until(ms(1020));
    assert_eq!((granted(&rig), rig.node().gateway().next_deadline(PortSet::ALL)), (None, None));
    assert_eq!(rig.node().gateway().flows.flows().next().unwrap().acked_bytes, 3_000);
    finish(&rig);
}

#[test]
fn a_flow_that_was_backlogged_lately_has_no_grant() {
    let mut rig = established();
    // Two steps arrive at once, so the first release is a full step.
    acks(&mut rig, &[(ms(1000), 25_000)]);
    let mut at = 1100;
    rig.run_until(ms(at));
    // The flow is below its rate from 1,010 ms on, which is 16 round trips at 1,330 ms.
    let mut n = 25_000;
    while granted(&rig).is_none() {
        at += 2;
        n += 1_000;
        assert!(at < 1400);
        acks(&mut rig, &[(ms(at), n)]);
        rig.run_until(ms(at));
    }
    assert_eq!(at, 1330);
    finish(&rig);
}

#[test]
fn what_is_taken_ends_the_grant_and_goes_first() {
    let mut rig = established();
    acks(&mut rig, &[(ms(1000), 1_000), (ms(1001), 2_000)]);
    rig.run_until(ms(1001));
    let before = rig.node().stats().taken;
    // A repeated ACK is a duplicate, which indicates a loss.
    acks(&mut rig, &[(us(1_001_500), 2_000)]);
    let sent = rig.run_until(us(1_001_500));
    assert_eq!((numbers(&sent), granted(&rig)), (vec![(us(1_001_500), 2_000)], Some(18_500)));
    let marked = ack(FLOW, 3_000).flags(Flags(Flags::ACK.0 | Flags::ECE.0));
    inject(&mut rig, us(1_001_600), WAN, &marked);
    inject(&mut rig, us(1_001_700), WAN, &ack(FLOW, 4_000));
    let sent = rig.run_until(ms(1010));
    // The taken ACK passes on a mark, and the next one passes in the kernel again.
    assert_eq!(rig.node().stats().taken, before + 2);
    assert_eq!(numbers(&sent), [(us(1_001_600), 3_000), (us(1_001_700), 4_000)]);
    finish(&rig);
}

/// Verifies bursts and average of grants. A bucket of two steps plus the rate's bytes up to the next check
/// leaks at the rate and never overflows. ACK numbers never decrease.
#[test]
fn a_bounded_burst_passes_at_once_and_the_average_is_exact() {
    let mut through = 0;
    for seed in 1..16u64 {
        let mut rig = established();
        let before = *rig.node().stats();
        let (mut x, mut at, mut n) = (seed, 1_000_000, 0);
        for _ in 0..1_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            at += 50 + (x >> 33) % 3_000;
            // The flow sends from a fifth of the rate to twice the rate, with occasional bursts.
            n += 1 + (x >> 45) as u32 % (seed as u32 * 250) + if x >> 58 == 0 { 9_000 } else { 0 };
            acks(&mut rig, &[(us(at), n)]);
        }
        let sent = numbers(&rig.run_until(us(at + 20_000_000)));
        assert_eq!(sent.last().unwrap().1, n, "nothing is left behind");
        let (mut level, mut last, mut told) = (0, us(1_000_000), 0);
        for (at, to) in sent {
            assert!(to >= told, "seed {seed}: {to} after {told}");
            let leaked = at.since(last).as_nanos() / 800; // 10 Mb/s: a byte in 800 ns
            level = u64::saturating_sub(level, leaked) + u64::from(to - told);
            assert!(level <= 2 * u64::from(STEP) + 5_000 + 1, "seed {seed}: {level} at {at:?}");
            (last, told) = (at, to);
        }
        assert_eq!(rig.node().gateway().flows.flows().next().unwrap().acked_bytes, u64::from(n));
        let stats = rig.node().stats();
        through += 1_000 - (stats.taken - before.taken);
        finish(&rig);
    }
    assert!(through > 500, "{through} passed by a grant");
}

/// Verifies that early passage by a grant, at most 5,000 bytes, is repaid. From then on each release is a
/// step, as without hooks.
#[test]
fn a_rate_that_binds_is_as_without_hooks() {
    let input: Vec<(Time, u32)> = (0..500).map(|k| (ms(1000 + u64::from(k)), 5_000 * (k + 1))).collect();
    let mut rig = established();
    acks(&mut rig, &input);
    let hooked = numbers(&rig.run_until(ms(4000)));
    let mut alone = Rig::new(Gateway::new(outward(FLOW..=FLOW)));
    handshake(&mut alone, FLOW);
    alone.run_until(ms(900));
    for (at, n) in input {
        inject(&mut alone, at, WAN, &ack(FLOW, n));
    }
    let alone = numbers(&alone.run_until(ms(4000)));
    for (at, to) in &hooked {
        let (_, other) = alone.iter().rev().find(|(then, _)| then <= at).unwrap();
        let sooner = i64::from(*to) - i64::from(*other);
        assert!((-i64::from(STEP)..=5_000).contains(&sooner), "{sooner} at {at:?}");
    }
    for all in [hooked, alone] {
        let steady = all.windows(2).filter(|pair| pair[0].0 >= ms(1020) && pair[1].1 < 2_500_000);
        let steps: Vec<_> = steady.map(|pair| (pair[1].0.since(pair[0].0), pair[1].1 - pair[0].1)).collect();
        assert!(steps.len() > 150 && steps.iter().all(|step| *step == (PERIOD, STEP)), "{steps:?}");
    }
}

#[test]
fn payload_keeps_its_acknowledgement_as_far_as_it_is_granted() {
    let mut rig = established();
    acks(&mut rig, &[(ms(1000), 1_000), (ms(1001), 2_000)]);
    rig.run_until(ms(1001));
    let payload = |seq, n| ack(FLOW, n).seq(seq).payload(100);
    inject(&mut rig, ms(1002), WAN, &payload(5001, 18_500));
    assert_eq!(numbers(&rig.run_until(ms(1002))), [(ms(1002), 18_500)]);
    assert_eq!(rig.node().stats().set_back, 0);
    inject(&mut rig, ms(1003), WAN, &payload(5101, 18_600));
    assert_eq!(numbers(&rig.run_until(ms(1003))), [(ms(1003), 18_500)]);
    assert_eq!(numbers(&rig.run_until(ms(1010))), [(us(1_003_200), 18_600)]);
    finish(&rig);
}
