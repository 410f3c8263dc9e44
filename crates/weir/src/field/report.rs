//! Reports on the counters of the engine and of the hooks.

use crate::result::running::SteeringReport;
use crate::result::{observe, Counts, GatewayResult, QuantilesMax};
use weir_core::gateway::GatewayStats;
use weir_io::bpf::{AcksCounters, AllCounters};
use weir_io::driver::{HookCounters, Report};

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

fn acks(c: AcksCounters) -> [(&'static str, u64); 24] {
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
        ("pppoe", c.pppoe),
        ("mpls", c.mpls),
        ("tunnels", c.tunnels),
        ("hairpins", c.hairpins),
    ]
}

fn frames(c: AllCounters) -> [(&'static str, u64); 7] {
    [
        ("taken", c.taken),
        ("passed_stale", c.passed_stale),
        ("own", c.own),
        ("dropped", c.dropped),
        ("failed", c.failed),
        ("bytes_out", c.bytes_out),
        ("bytes_in", c.bytes_in),
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
