//! Reports on the counters of the engine and of the hooks.

use crate::result::running::SteeringReport;
use crate::result::traffic::Load;
use crate::result::{observe, Counts, Frames, GatewayResult, QuantilesMax};
use weir_core::gateway::GatewayStats;
use weir_core::time::{Duration, Time};
use weir_io::bpf::{AcksCounters, AllCounters};
use weir_io::driver::{HookCounters, Report};
use weir_io::port::ExitStats;

/// Bytes and packets, out and in.
pub(super) type Ways = [(u64, u64); 2];

/// Returns what left by the interface and came in by it, in bytes with all headers.
pub(super) fn link(report: &Report<'_>) -> Ways {
    match report.hooks {
        None => Ways::default(),
        Some(HookCounters::Acks(a)) => [(a.bytes_out, a.packets_out), (a.bytes_in, a.packets_in)],
        // Frames leave by the second pair of hooks and come in by the first.
        Some(HookCounters::Both(a, all)) => [(all.bytes_out, all.packets_out), (a.bytes_in, a.packets_in)],
        Some(HookCounters::All(all)) => [(all.bytes_out, all.packets_out), (all.bytes_in, all.packets_in)],
    }
}

/// Returns what no class takes, in bytes from IP headers on. Hooks without bounds do not count it.
pub(super) fn unlisted(report: &Report<'_>) -> Ways {
    match report.hooks {
        Some(HookCounters::Acks(acks) | HookCounters::Both(acks, _)) => {
            [0, 1].map(|way| (acks.unlisted_bytes[way], acks.unlisted_packets[way]))
        }
        _ => Ways::default(),
    }
}

/// Minimum age of the earlier look that rates are computed from.
pub(super) const LEAST: Duration = Duration::from_millis(500);
/// Maximum age, beyond which a rate would be an average of long ago.
pub(super) const LATEST: Duration = Duration::from_secs(2);

/// Returns whether the rates since any of these looks are those of now.
pub(super) fn are_known(looks: impl IntoIterator<Item = Time>, now: Time) -> bool {
    looks.into_iter().any(|at| (LEAST..=LATEST).contains(&now.since(at)))
}

/// The last two looks at counters of both directions.
#[derive(Default)]
pub(super) struct WaysMeter {
    older: Option<(Time, Ways)>,
    newer: Option<(Time, Ways)>,
}

impl WaysMeter {
    /// Returns whether rates are known: an earlier look is neither too old nor too recent.
    pub fn knows(&self, now: Time) -> bool {
        are_known([self.older, self.newer].into_iter().flatten().map(|(at, _)| at), now)
    }

    /// Returns the counters and rates, out and in.
    pub fn look(&mut self, ways: Ways, now: Time) -> [Load; 2] {
        let recent = self.newer.is_some_and(|(at, _)| now.since(at) < LEAST);
        let since = if recent { self.older } else { self.newer };
        if !recent {
            self.older = self.newer.replace((now, ways));
        }
        [0, 1].map(|way| {
            let (bytes, packets) = ways[way];
            let bps = since.filter(|(at, _)| now > *at).map_or(0.0, |(at, then)| {
                bytes.saturating_sub(then[way].0) as f64 * 8.0 / now.since(at).as_secs_f64()
            });
            Load { bps, bytes, packets, ..Load::default() }
        })
    }
}

/// Counts what was lost on its way out of the node as dropped, and not as sent.
pub(super) fn lose_at_exits(frames: &mut Frames, exits: &[ExitStats]) {
    for (reason, lost) in exits.iter().flat_map(|exit| exit.drops.iter()) {
        frames.sent = frames.sent.saturating_sub(lost);
        *frames.dropped.entry(reason.name().to_string()).or_default() += lost;
    }
}

/// Adds this process's memory, the engine's, to a gateway's totals.
pub(super) fn in_this_process(totals: GatewayResult) -> GatewayResult {
    GatewayResult { memory_bytes: weir_io::sys::process::resident_memory().ok(), ..totals }
}

/// Returns the counters of received and sent frames. `restarts` engines ran before this one.
pub(super) fn steering(report: &Report<'_>, restarts: u32) -> SteeringReport {
    SteeringReport {
        restarts,
        resyncs: report.resyncs,
        received: report.inputs.iter().map(|input| input.received).collect(),
        sent: report.exits.iter().map(|exit| exit.sent).collect(),
        lost: report.inputs.iter().map(|input| input.lost).collect(),
        hooks: report.hooks.map(hooks).unwrap_or_default(),
        unseen_bytes: report.unseen.to_vec(),
        refused: report.exits.iter().map(|exit| exit.refused).collect(),
        lateness_us: QuantilesMax {
            p50: report.lateness.quantile(500_000).as_micros(),
            p99: report.lateness.quantile(990_000).as_micros(),
            max: report.lateness.max().as_micros(),
        },
    }
}

/// Returns the counters of the programs in the kernel, with their names.
fn hooks(counters: HookCounters) -> Counts {
    let named: Vec<(&str, u64)> = match counters {
        HookCounters::Acks(c) => acks(c).to_vec(),
        HookCounters::All(c) => frames(c).to_vec(),
        HookCounters::Both(a, c) => {
            let whole = frames(c).map(|(name, n)| (format!("whole_{name}"), n));
            return acks(a).map(|(name, n)| (name.to_string(), n)).into_iter().chain(whole).collect();
        }
    };
    named.into_iter().map(|(name, n)| (name.to_string(), n)).collect()
}

fn acks(c: AcksCounters) -> [(&'static str, u64); 29] {
    [
        ("taken", c.taken),
        ("copied", c.copied),
        ("set_back", c.set_back),
        ("passed_flow", c.passed_flow),
        ("passed_known", c.passed_known),
        ("passed_unknown", c.passed_unknown),
        ("passed_other", c.passed_other),
        ("passed_stale", c.passed_stale),
        ("doubted", c.doubted),
        ("ring_full", c.ring_full),
        ("over_budget", c.over_budget),
        ("own", c.own),
        ("stamped", c.stamped),
        ("discarded", c.discarded),
        ("failed", c.failed),
        ("granted", c.granted),
        ("policed", c.policed),
        ("broken", c.broken),
        ("bytes_out", c.bytes_out),
        ("bytes_in", c.bytes_in),
        ("mpls", c.mpls),
        ("tunnels", c.tunnels),
        ("hairpins", c.hairpins),
        ("packets_out", c.packets_out),
        ("packets_in", c.packets_in),
        ("unlisted_bytes_out", c.unlisted_bytes[0]),
        ("unlisted_bytes_in", c.unlisted_bytes[1]),
        ("unlisted_packets_out", c.unlisted_packets[0]),
        ("unlisted_packets_in", c.unlisted_packets[1]),
    ]
}

fn frames(c: AllCounters) -> [(&'static str, u64); 9] {
    [
        ("taken", c.taken),
        ("passed_stale", c.passed_stale),
        ("own", c.own),
        ("dropped", c.dropped),
        ("failed", c.failed),
        ("bytes_out", c.bytes_out),
        ("bytes_in", c.bytes_in),
        ("packets_out", c.packets_out),
        ("packets_in", c.packets_in),
    ]
}

pub(super) fn events(stats: &GatewayStats) -> Counts {
    let named = [
        ("evicted", stats.evicted),
        ("renewed", stats.renewed),
        ("reset", stats.reset),
        ("pool_exhausted", stats.pool_exhausted),
    ];
    named.into_iter().filter(|&(_, n)| n > 0).map(|(name, n)| (name.to_string(), n)).collect()
}

pub(super) fn passed(stats: &GatewayStats) -> Counts {
    observe::by_reason(&stats.passed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::stats::DropReason;

    /// The law of conservation holds as before: 100 in, 90 out, 8 held, 2 dropped.
    #[test]
    fn a_frame_that_an_exit_loses_has_not_been_sent() {
        let mut frames = Frames { received: 100, sent: 92, held: 8, ..Frames::default() };
        let mut exits = [ExitStats::default(); 2];
        exits.iter_mut().for_each(|exit| exit.drops.count(DropReason::TooLong));
        lose_at_exits(&mut frames, &exits);
        assert_eq!((frames.sent, frames.dropped.get("too_long"), frames.dropped.len()), (90, Some(&2), 1));
    }

    /// A rate over 17 s says nothing about now, nor does one since the start or over some milliseconds.
    #[test]
    fn a_rate_of_now_needs_a_look_of_a_second_ago() {
        let mut meter = WaysMeter::default();
        let at = |millis: u64| Time::ZERO + Duration::from_millis(millis);
        let mut look = |millis, bytes| {
            let known = meter.knows(at(millis));
            (known, meter.look([(bytes, 1), (0, 0)], at(millis))[0].bps)
        };
        assert_eq!(look(100, 1_000), (false, 0.0));
        assert!(!look(300, 2_000).0);
        assert_eq!(look(1_100, 126_000), (true, 1e6));
        assert!(!look(18_100, 126_000).0);
        assert_eq!(look(18_650, 126_000), (true, 0.0));
    }
}
