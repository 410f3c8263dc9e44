//! The policer: a token bucket of 10 Mb/s, 1.25 bytes a microsecond, 50,000 bytes deep. Every expected value
//! is arithmetic on these.

use crate::support::*;
use weir_core::ack::{AckControl, Action};
use weir_core::rig::Sent;
use weir_core::time::{Duration, Time};

/// A release of a backlogged flow, every 10 ms.
const STEP: u32 = 12_500;
const BURST: u32 = 50_000;

fn policer() -> AckControl {
    basic_with(|law| law.action = Action::Police { burst: BURST })
}

fn micros(n: u64) -> Time {
    Time::from_micros(n)
}

#[test]
fn what_the_bucket_covers_passes_as_it_came() {
    let mut w = Net::established(policer());
    // 2,500 bytes every 100 us, in which 125 are earned: the 21st empties the bucket of 50,000 exactly.
    for n in 0..30 {
        w.ack_at(micros(1_000_000 + 100 * n), 2_500 * (n as u32 + 1));
    }
    let sent = w.run(ms(2_000));
    let passed = (0..21).map(|n| (micros(1_000_000 + 100 * n), 2_500 * (n as u32 + 1)));
    // The 22nd finds 125 bytes. A step of 12,500 is there 9.9 ms later, at 1,012 ms.
    let released = [(ms(1_012), 52_500 + STEP), (ms(1_022), 75_000)];
    assert_eq!(numbers(&sent), passed.chain(released).collect::<Vec<_>>());
    assert_eq!(w.class().acks_generated, 2, "the others leave as they came");
    w.finish();
}

#[test]
fn an_ack_for_more_than_the_bucket_empties_it_and_the_rest_waits() {
    let mut w = Net::established(policer());
    w.ack_at(ms(1_000), 70_000);
    let sent = w.run(ms(2_000));
    assert_eq!(numbers(&sent), [(ms(1_000), BURST), (ms(1_010), BURST + STEP), (ms(1_020), 70_000)]);
    // After 40 ms it is full again, and no fuller.
    w.ack_at(ms(2_000), 70_000 + BURST + 1);
    assert_eq!(numbers(&w.run(ms(3_000))), [(ms(2_000), 70_000 + BURST), (ms(2_010), 70_000 + BURST + 1)]);
    w.finish();
}

#[test]
fn a_shaper_lets_a_step_pass() {
    let mut w = Net::established(basic());
    w.ack_at(ms(1_000), BURST);
    let steps: Vec<(Time, u32)> = (1..=4).map(|n| (ms(990 + 10 * n), n as u32 * STEP)).collect();
    assert_eq!(numbers(&w.run(ms(2_000))), steps);
    w.finish();
}

/// Checks that from any ACK to any other no more is acknowledged than the rate carries, the bucket and a
/// step.
fn conforms(sent: &[Sent]) {
    let acks = numbers(sent);
    for (i, &(from, _)) in acks.iter().enumerate() {
        let before = if i == 0 { 0 } else { acks[i - 1].1 };
        for &(to, number) in &acks[i..] {
            let most = u64::from(BURST + STEP) + to.since(from).as_nanos() / 800;
            assert!(u64::from(number - before) <= most, "{} bytes from {from:?} to {to:?}", number - before);
        }
    }
}

#[test]
fn no_more_than_the_bucket_ahead_of_the_rate_whatever_comes() {
    for seed in 0..20 {
        let (mut w, mut random) = (Net::established(policer()), Random(seed));
        let (mut at, mut number) = (ms(1_000), 0u32);
        while number < 400_000 {
            number += (random.next() % 30_000) as u32;
            at += Duration::from_micros(random.next() % if random.next() % 8 == 0 { 60_000 } else { 4_000 });
            w.ack_at(at, number);
        }
        let sent = w.run(ms(5_000));
        conforms(&sent);
        assert_eq!(numbers(&sent).last().map(|last| last.1), Some(number));
        w.finish();
    }
}
