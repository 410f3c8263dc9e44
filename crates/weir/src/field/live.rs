//! Activity of a gateway, with rates, in one form for running gateways and for their final report.

use crate::result::observe::{self, flow_rate};
use crate::result::running::{GatewayClass, GatewayFlow};
use crate::result::ClassResult;
use std::collections::HashMap;
use std::net::IpAddr;
use weir_core::flow::Key;
use weir_core::gateway::{ClassConfig, ClassStats, FlowStats, Gateway};
use weir_core::time::{Duration, Time};

/// Silence after which a flow is no longer active.
const ACTIVE: Duration = Duration::from_secs(10);
/// Number of classes above which a report lists only active ones; the final report then lists those that had
/// flows.
const MOST_CLASSES: usize = 100;
/// Most flows in a report. The most recently active ones are listed.
const MOST_FLOWS: usize = 1_000;
/// Minimum age of the earlier look that rates are computed from.
const LEAST: Duration = Duration::from_millis(500);

/// Bytes acknowledged to senders up to one moment.
#[derive(Default)]
struct Look {
    at: Option<Time>,
    classes: Vec<u64>,
    flows: HashMap<Key, u64>,
}

impl Look {
    /// Returns the rate in bits per second since this look, from `then` to `bytes` bytes.
    fn rate(&self, now: Time, then: u64, bytes: u64) -> f64 {
        let Some(at) = self.at.filter(|&at| now > at) else { return 0.0 };
        bytes.saturating_sub(then) as f64 * 8.0 / now.since(at).as_secs_f64()
    }
}

/// The last two looks. Two are kept because the last one may be too recent.
#[derive(Default)]
pub(super) struct Meters {
    older: Look,
    newer: Look,
}

impl Meters {
    /// Returns whether rates are known: an earlier look is neither too old nor too recent.
    pub fn knows(&self, now: Time) -> bool {
        let whole = [&self.older, &self.newer].into_iter().filter(|look| !look.classes.is_empty());
        whole.filter_map(|look| look.at).any(|at| {
            let ago = now.since(at);
            ago >= LEAST && ago <= ACTIVE
        })
    }

    /// Forgets the counts of classes, after these have changed.
    pub fn forget_classes(&mut self) {
        self.older.classes.clear();
        self.newer.classes.clear();
    }

    /// Looks at a gateway, or at the traffic of one address. Returns its classes in the configuration's
    /// order, and its active flows.
    pub fn look(
        &mut self,
        gateway: &Gateway,
        now: Time,
        address: Option<IpAddr>,
        last: bool,
    ) -> (Vec<GatewayClass>, Vec<GatewayFlow>) {
        let recent = self.newer.at.is_some_and(|at| now.since(at) < LEAST);
        let since = if recent { &self.older } else { &self.newer };
        let active: Vec<FlowStats> = gateway.active(now, ACTIVE).collect();
        let configured = &gateway.config().classes;
        let shown = |f: &&FlowStats| address.is_none_or(|a| a == f.key.src_ip() || a == f.key.dst_ip());
        let shown: Vec<&FlowStats> = active.iter().filter(shown).take(MOST_FLOWS).collect();
        let flows = shown.iter().map(|f| flow(f, &configured[f.class], since, now)).collect();
        let mut shaped = vec![0; configured.len()];
        active.iter().filter(|f| f.pass.is_none()).for_each(|f| shaped[f.class] += 1);
        let few = configured.len() <= MOST_CLASSES;
        let listed = |i: usize, s: &ClassStats| match address {
            Some(_) => shown.iter().any(|f| f.class == i),
            None => few || shaped[i] > 0 || s.held_bytes > 0 || last && s.flows > 0,
        };
        let stats = gateway.class_stats().zip(configured).enumerate().filter(|(i, (s, _))| listed(*i, s));
        let classes = stats.map(|(i, (s, c))| {
            let then = since.classes.get(i).copied().unwrap_or(s.acked_bytes);
            let mut class = class(s, c, shaped[i], since.rate(now, then, s.acked_bytes));
            class.class.others = observe::others(gateway, i, now);
            class.class.bound = observe::bound(gateway, i);
            class.place = i;
            class
        });
        let classes = classes.collect();
        if !recent {
            let look = Look {
                at: Some(now),
                classes: gateway.class_stats().map(|s| s.acked_bytes).collect(),
                flows: active.iter().map(|f| (f.key, f.acked_bytes)).collect(),
            };
            self.older = std::mem::replace(&mut self.newer, look);
        }
        (classes, flows)
    }
}

fn flow(f: &FlowStats, class: &ClassConfig, since: &Look, now: Time) -> GatewayFlow {
    // All bytes of a new flow were acknowledged since then.
    let then = since.flows.get(&f.key).copied().unwrap_or(0);
    GatewayFlow {
        src: (f.key.src_ip(), f.key.src_port).into(),
        dst: (f.key.dst_ip(), f.key.dst_port).into(),
        class: class.name.clone(),
        bytes: f.acked_bytes,
        bps: since.rate(now, then, f.acked_bytes),
        target_bps: flow_rate(class).filter(|_| f.pass.is_none()),
        pass_reason: f.pass.map(|p| p.name().to_string()),
        held_bytes: f.held_bytes,
        held_us: f.held_delay.as_micros(),
        debt_bytes: f.debt_bytes,
        slow_start: f.slow_start,
        rtt_us: f.rtt.as_micros(),
        window: f.window,
        period_us: f.period.as_micros(),
    }
}

fn class(s: &ClassStats, c: &ClassConfig, active: u64, bps: f64) -> GatewayClass {
    let target_bps = observe::class_rate(c, active);
    GatewayClass {
        class: ClassResult { bps, target_bps, ..observe::class(s, c) },
        active_flows: active,
        customer: None,
        place: 0,
        bytes: s.acked_bytes,
        flows: s.flows,
        direction: observe::direction(c.direction),
        flows_passed: s.flows_passed.iter().sum(),
        passed_flows: observe::by_reason(&s.flows_passed),
        passed_acks: observe::by_reason(&s.passed),
        held_bytes: s.held_bytes,
        acks_forwarded: s.acks_forwarded,
        slow_starts: s.slow_starts,
        missed_releases: s.missed_releases,
    }
}
