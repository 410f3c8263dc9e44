//! Links against their definition, for random frames, rates and limits.

use super::*;
use proptest::prelude::*;

/// Rates from the start on: the time in nanoseconds at which each begins, and its bits per second.
type Rates = [(u64, u64)];

/// Returns the time at which the last bit of the first `bytes` has left a link that is never idle from 0 on,
/// in whole nanoseconds. By then the rates could have sent exactly that much.
fn departure(rates: &Rates, bytes: u64) -> u64 {
    let mut left = u128::from(bytes) * 8_000_000_000;
    for (i, &(from, bps)) in rates.iter().enumerate() {
        let until = rates.get(i + 1).map_or(u64::MAX, |next| next.0);
        let done = from + (left / u128::from(bps)) as u64;
        if done <= until {
            return done;
        }
        left -= u128::from(until - from) * u128::from(bps);
    }
    unreachable!("the last rate has no end")
}

/// A link from its definition: departures are `start of busy period + floor(bits sent in it / rate)`. A frame
/// waits while another is served, and only waiting frames are limited. Returns (at, tag).
fn model(inputs: &[Input], bps: u64, delay: u64, max_packets: usize, max_bytes: usize) -> Vec<(Time, u8)> {
    let (mut busy_since, mut bytes, mut done) = (0, 0, 0);
    let mut starts: Vec<(u64, usize)> = Vec::new();
    let mut out = Vec::new();
    for &(at, tag, ip) in inputs {
        let waiting: Vec<_> = starts.iter().filter(|s| s.0 > at).collect();
        let idle = done <= at;
        let full =
            waiting.len() + 1 > max_packets || waiting.iter().map(|s| s.1).sum::<usize>() + ip > max_bytes;
        if !idle && full {
            continue;
        }
        if done < at {
            (busy_since, bytes, done) = (at, 0, at);
        }
        starts.push((done, ip));
        bytes += ip as u128;
        done = busy_since + (bytes * 8_000_000_000 / u128::from(bps)) as u64;
        out.push((ns(done + delay), tag));
    }
    out
}

pub(super) fn inputs() -> impl Strategy<Value = Vec<Input>> {
    // Gaps around the time of a packet, and often zero.
    let gap = prop_oneof![Just(0), 0u64..3_000_000, Just(1_200_000)];
    prop::collection::vec((gap, any::<u8>(), 46usize..=1500), 1..80).prop_map(|v| {
        let mut now = 0;
        v.into_iter().map(|(gap, tag, ip)| ((now += gap, now).1, tag, ip)).collect()
    })
}

proptest! {
    #[test]
    fn a_link_does_what_its_definition_says(
        inputs in inputs(), bps in 1_000_000u64..50_000_000, delay in 0u64..20_000_000,
        packets in 0u32..6, bytes in 0u64..6000, by_bytes: bool, late in 1u64..10_000_000,
    ) {
        let (queue, max_packets, max_bytes) = match by_bytes {
            true => (QueueLimit::Bytes(bytes), usize::MAX, bytes as usize),
            false => (QueueLimit::Packets(packets), packets as usize, usize::MAX),
        };
        let expected = model(&inputs, bps, delay, max_packets, max_bytes);
        let config = Config { rate: Rate::from_bps(bps), delay: Duration::from_nanos(delay), queue, ..Config::default() };
        let late = Duration::from_nanos(late);
        for wake in [Wake::Exact, Wake::Late(late), Wake::Lazy(late)] {
            let mut r = rig(config).wake(wake);
            for &(at, tag, ip) in &inputs {
                r.at(ns(at)).inject(Link::IN, packet(tag, ip));
            }
            let sent = r.run_until(Time::from_secs(60));
            prop_assert_eq!(stamps(&sent), expected.clone(), "{:?}", wake);
            let ledger = r.node().ledger();
            prop_assert_eq!(ledger.received, inputs.len() as u64);
            prop_assert_eq!(ledger.sent, expected.len() as u64);
            prop_assert_eq!(ledger.held(), 0);
            r.finish();
        }
    }

    #[test]
    fn departures_are_exact_however_often_the_rate_changes(
        sizes in prop::collection::vec(46usize..=1500, 1..40),
        changes in prop::collection::vec((1u64..5_000_000, 1_000_000u64..40_000_000), 0..12),
    ) {
        let mut now = 0;
        let later = changes.into_iter().map(|(gap, bps)| ((now += gap, now).1, bps));
        let rates: Vec<(u64, u64)> = [(0, 10_000_000)].into_iter().chain(later).collect();
        let mut r = rig(Config { queue: QueueLimit::Unlimited, ..ten_mbit() });
        sizes.iter().for_each(|&ip| { r.inject(Link::IN, packet(0, ip)); });
        let mut sent = Vec::new();
        for &(at, bps) in &rates {
            sent.extend(r.run_until(ns(at)));
            r.with_cx(|link, cx| link.set_rate(cx, Rate::from_bps(bps).unwrap()));
        }
        sent.extend(r.run_until(Time::from_secs(60)));
        let mut bytes = 0;
        for (&ip, sent) in sizes.iter().zip(&sent) {
            bytes += ip as u64;
            prop_assert_eq!(sent.at, ns(departure(&rates, bytes)));
        }
        prop_assert_eq!(sent.len(), sizes.len());
        r.finish();
    }

    #[test]
    fn a_path_loses_nothing_unaccounted_whatever_its_ports_do(
        inputs in inputs(), late in 1u64..5_000_000, trillionths in 0u64..500_000_000_000,
        shut in prop::collection::vec((0u8..2, 0u64..50_000_000, 0u64..20_000_000), 0..4),
    ) {
        let loss = Loss::Random { trillionths };
        let out = Config { loss, queue: QueueLimit::Packets(3), seed: 1, ..ten_mbit() };
        let back = Config { loss, seed: 2, delay: Duration::from_micros(700), ..ten_mbit() };
        let late = Duration::from_nanos(late);
        let mut runs = Vec::new();
        for wake in [Wake::Exact, Wake::Late(late), Wake::Lazy(late)] {
            let mut r = Rig::new(Path::new(out, back)).wake(wake);
            for &(at, tag, ip) in &inputs {
                r.at(ns(at)).inject(Port(tag % 2), packet(tag, ip));
            }
            for &(port, from, len) in &shut {
                r.close(Port(port), ns(from), ns(from + len));
            }
            let mut sent = r.run_until(Time::from_secs(60));
            prop_assert_eq!(r.node().out().ledger().received + r.node().back().ledger().received, inputs.len() as u64);
            r.finish();
            // The port served first may differ when both open late. Each port's timeline does not.
            sent.sort_by_key(|s| s.port);
            runs.push(sent);
        }
        prop_assert_eq!(&runs[0], &runs[1]);
        prop_assert_eq!(&runs[0], &runs[2]);
    }
}
