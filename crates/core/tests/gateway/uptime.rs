//! Counters of time that wrap after a long uptime.

use crate::support::*;
use weir_core::ack::{preset, AckControl};
use weir_core::gateway::WAN;
use weir_core::rate::Rate;
use weir_core::time::Time;

/// Nanoseconds at which a time wraps that is counted in 32 bits: of ns, us, ms (49.7 days; the half, where it
/// changes its sign), of 2^20 ns in 16 bits, and of ns in 63 bits. At last a machine that has run for three
/// years.
const WRAPS: [u64; 7] = [
    1 << 32,
    (1 << 32) * 1_000,
    (1 << 32) * 1_000_000,
    (1 << 31) * 1_000_000,
    1 << 36,
    1 << 63,
    3 * 365 * 86_400 * 1_000_000_000,
];
/// Time from the beginning of the connection to the wrap, in nanoseconds.
const BEFORE: [u64; 3] = [0, 1_000_000_000, 20_000_000_000];
const ACKS: u32 = 240;
/// ACKs between pauses, and how long these are, in microseconds.
const BETWEEN: u32 = 80;
const PAUSE: u64 = 10_000_000;

/// Time since `base` in nanoseconds, and number, of all ACKs that leave.
fn acks(policy: AckControl, base: u64) -> Vec<(u64, u32)> {
    let mut w = Net::new(policy, None);
    let at = |us: u64| Time::from_nanos(base + us * 1_000);
    w.handshake_at(at(0), SENDER_ISN, RECEIVER_ISN);
    let mut random = Random(5);
    let (mut us, mut bytes, mut left) = (20_000, 0, Vec::new());
    for k in 1..=ACKS {
        us += if k % BETWEEN == 0 { PAUSE } else { random.next() % 3_000 };
        bytes += (random.next() % 6_000) as u32;
        let ack = w.ack_segment(bytes).ts(1 + (us / 1_000) as u32, 1);
        w.inject_at(at(us), WAN, ack);
        left.extend(w.run(at(us)));
    }
    left.extend(w.run(at(us + 10_000_000)));
    left.iter().map(|sent| (sent.at.as_nanos() - base, w.rel(sent))).collect()
}

#[test]
fn long_uptimes_change_nothing() {
    let presets = ["ack-shaper", "ack-shaper-published", "ack-policer", "ack-reconstruct"];
    let presets = presets.map(|name| (name, (preset(name).unwrap().policy)(Rate::mbit(10))));
    for (name, policy) in presets.into_iter().chain([("share", AckControl::ack_share(Rate::mbit(10)))]) {
        let first = acks(policy, 1_000_000_000_000);
        assert!(first.len() > 50, "{name}: {}", first.len());
        for wrap in WRAPS {
            for before in BEFORE.into_iter().filter(|before| before + 1_000_000 < wrap) {
                let again = acks(policy, wrap - before);
                assert!(again == first, "{name}: begun {before} ns before {wrap} ns");
            }
        }
    }
}
