//! Flows that were not held for a second, and how they are held again.

use super::tests_with_hosts::{within, Rig, MS};
use core::sync::atomic::Ordering::Relaxed;
use weir_core::ack::AckControl;
use weir_core::link::Loss;
use weir_core::rate::Rate;

/// Rate in Mb/s.
const RATE: u64 = 10;
const MBIT: Rate = Rate::mbit(RATE);
/// Times in milliseconds at which the engine goes and comes back.
const GOES: u64 = 4_000;
/// Time at which windows are the receivers' own again, as where a way is shut for long.
const OPENS: u64 = 4_500;
const COMES: u64 = 5_000;

/// Outcome of a flow.
#[derive(Debug)]
struct Outcome {
    /// Longest time without data at the receiver after the engine is back, in milliseconds.
    longest_ms: u64,
    /// Retransmission timers that expired after that.
    rtos: u64,
    /// Frames dropped.
    drops: u64,
    /// Rates in each second from two seconds after that, in kb/s.
    rates: Vec<u64>,
}

fn absence(cc: &str, rtt_ms: u64, policy: AckControl, out: bool, opens: bool) -> Outcome {
    let policies = if out { [Some(policy), None] } else { [None, Some(policy)] };
    let mut rig = Rig::over(cc, MS(rtt_ms), policies, Loss::None);
    let sender = usize::from(!out);
    rig.run(GOES);
    rig.gateway().hang();
    rig.run(OPENS);
    if opens {
        rig.gateway().gateway().flows.slots().iter().for_each(|slot| slot.width.store(0, Relaxed));
    }
    rig.run(COMES);
    let before = rig.report(sender).rtos;
    rig.gateway().come_back();
    let (mut got, mut since, mut longest_ms) = (rig.run(COMES)[sender], COMES, 0);
    for ms in COMES..COMES + 2_000 {
        let now = rig.run(ms)[sender];
        if now != got {
            (got, since) = (now, ms);
        }
        longest_ms = longest_ms.max(ms - since);
    }
    let from = COMES + 2_000;
    let rates = (0..3).map(|n| rig.rates(from + 1_000 * n, from + 1_000 * (n + 1))[sender]).collect();
    let drops = rig.gateway().ledger().drops.iter().map(|(_, count)| count).sum();
    Outcome { longest_ms, rtos: rig.report(sender).rtos - before, drops, rates }
}

/// Outcomes of a law with all controls and round trips, with what they are of.
fn outcomes(name: &str, policy: AckControl, opens: bool) -> Vec<(String, Outcome)> {
    let mut all = Vec::new();
    for cc in ["cubic", "reno", "bbr"] {
        for (rtt, out) in [(4, true), (20, false), (100, true)] {
            all.push((format!("{name}, {cc}, {rtt} ms"), absence(cc, rtt, policy, out, opens)));
        }
    }
    all
}

/// Verifies that no time is paid back where windows stay bounded: data stands still for Linux's least
/// retransmission timer of 200 ms at most, and the rate holds.
#[test]
fn nothing_is_paid_back_after_a_short_absence() {
    let shaper = outcomes("shaper", AckControl::ack_shaper(MBIT), false);
    for (of, outcome) in shaper.into_iter().chain(outcomes("share", AckControl::ack_share(MBIT), false)) {
        assert!(outcome.longest_ms <= 200 && outcome.rtos == 0 && outcome.drops == 0, "{of}: {outcome:?}");
        assert!(outcome.rates.iter().all(|rate| within(*rate, RATE, 20)), "{of}: {outcome:?}");
    }
}

/// Verifies that nothing is dropped of what was under way, and of what is sent next, where windows were the
/// receivers' own: their right edges are far ahead then, and only ACKs bound what senders send.
#[test]
fn nothing_is_dropped_after_a_long_absence() {
    let shaper = outcomes("shaper", AckControl::ack_shaper(MBIT), true);
    for (of, outcome) in shaper.into_iter().chain(outcomes("share", AckControl::ack_share(MBIT), true)) {
        assert!(outcome.rtos == 0 && outcome.drops == 0, "{of}: {outcome:?}");
    }
}
