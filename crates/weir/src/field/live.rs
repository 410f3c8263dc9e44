//! Activity of a gateway, with rates, in one form for running gateways and for their final report.

use super::report::{are_known, LEAST};
use crate::result::observe::{self, flow_rate};
use crate::result::quality::{Latency, OfFlow, Scores};
use crate::result::running::{GatewayClass, GatewayFlow};
use crate::result::traffic::{Counted, Kind, Load, Shown};
use crate::result::ClassResult;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use weir_core::flow::Key;
use weir_core::gateway::{ClassConfig, ClassStats, FlowStats, Gateway};
use weir_core::steer::Passed;
use weir_core::time::{Duration, Time};

/// Silence after which a flow is no longer active.
const ACTIVE: Duration = Duration::from_secs(10);
/// Number of classes above which a report lists only active ones; the final report then lists those that had
/// flows.
pub(super) const MOST_CLASSES: usize = 100;
/// Most flows in a report. The most recently active ones are listed.
const MOST_FLOWS: usize = 1_000;
/// Bytes up to one moment: of flows those acknowledged to senders, of classes all that passed.
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

/// Time over which loss is counted, at least.
const LOSS: Duration = Duration::from_secs(300);

/// Packets of each class, and those that were sent again, up to one moment.
type Sent = Vec<(u64, u64)>;

/// Base of the loss of the last five to ten minutes.
#[derive(Default)]
struct Losses {
    older: Sent,
    newer: Sent,
    at: Option<Time>,
}

impl Losses {
    /// Returns the packets that the class has sent since the base, and those sent again.
    fn since(&self, class: usize, load: &Load) -> (u64, u64) {
        let (packets, lost) = self.older.get(class).copied().unwrap_or_default();
        (load.packets.saturating_sub(packets), load.retransmitted_packets.saturating_sub(lost))
    }

    /// Adds the quality of a class to its counters.
    fn judged(&self, gateway: &Gateway, class: usize, load: Load, now: Time) -> Load {
        let Some(quality) = gateway.flows.quality_of_class(class) else { return load };
        let direction = gateway.flows.config().classes[class].direction;
        let (wan, lan) = Latency::of_sides(&quality.at(now), direction);
        let (packets, lost) = self.since(class, &load);
        Load { rtt_wan_us: wan, rtt_lan_us: lan, score: Scores::of(&wan, &lan, lost, packets), ..load }
    }

    fn look(&mut self, loads: &[Load], now: Time) {
        if self.at.is_some_and(|at| now.since(at) < LOSS) {
            return;
        }
        self.at = Some(now);
        let sent = loads.iter().map(|load| (load.packets, load.retransmitted_packets)).collect();
        self.older = std::mem::replace(&mut self.newer, sent);
    }
}

/// The last two looks. Two are kept because the last one may be too recent.
#[derive(Default)]
pub(super) struct Meters {
    older: Look,
    newer: Look,
    losses: Losses,
}

impl Meters {
    /// Returns whether rates are known: an earlier look is neither too old nor too recent.
    pub fn knows(&self, now: Time) -> bool {
        let whole = [&self.older, &self.newer].into_iter().filter(|look| !look.classes.is_empty());
        are_known(whole.filter_map(|look| look.at), now)
    }

    /// Forgets the counts of classes, after these have changed.
    pub fn forget_classes(&mut self) {
        self.older.classes.clear();
        self.newer.classes.clear();
        self.losses = Losses::default();
    }

    /// Looks at a gateway, or at a part of its traffic. Returns its classes in the configuration's order, its
    /// active flows, and the counters of all classes.
    pub fn look(&mut self, gateway: &Gateway, now: Time, part: &Part<'_>, last: bool) -> Seen {
        let recent = self.newer.at.is_some_and(|at| now.since(at) < LEAST);
        let since = if recent { &self.older } else { &self.newer };
        let active: Vec<FlowStats> = gateway.flows.active(now, ACTIVE).collect();
        let configured = &gateway.flows.config().classes;
        let shown: Vec<&FlowStats> = active.iter().filter(|f| part.has(f)).take(MOST_FLOWS).collect();
        let flows = shown.iter().map(|f| flow(gateway, f, &configured[f.class], since, now)).collect();
        let few = configured.len() <= MOST_CLASSES;
        let mut shaped = vec![0; configured.len()];
        active.iter().filter(|f| f.pass.is_none()).for_each(|f| shaped[f.class] += 1);
        let loads: Vec<Load> = gateway
            .flows
            .class_stats()
            .enumerate()
            .map(|(i, stats)| {
                let load = Load { active_flows: shaped[i], ..load(gateway, i, stats) };
                let then = since.classes.get(i).copied().unwrap_or(load.bytes);
                let load = Load { bps: since.rate(now, then, load.bytes), ..load };
                let idle = part.shown == &Shown::Busiest && !load.is_active() && !few;
                if idle {
                    load
                } else {
                    self.losses.judged(gateway, i, load, now)
                }
            })
            .collect();
        self.losses.look(&loads, now);
        let listed = |i: usize, s: &ClassStats| match part.shown {
            Shown::Busiest | Shown::All if part.address.is_none() => {
                few || shaped[i] > 0 || s.held_bytes > 0 || loads[i].is_active() || last && loads[i].bytes > 0
            }
            Shown::These(places) if places.binary_search(&part.places[i]).is_ok() => true,
            _ => shown.iter().any(|f| f.class == i),
        };
        let stats =
            gateway.flows.class_stats().zip(configured).enumerate().filter(|(i, (s, _))| listed(*i, s));
        let classes = stats.map(|(i, (s, c))| {
            let mut class = class(s, c, &loads[i]);
            class.class.others = observe::others(gateway, i, now);
            class.class.bound = observe::bound(gateway, i);
            class.place = i;
            class
        });
        let classes = classes.collect();
        if !recent {
            let look = Look {
                at: Some(now),
                classes: loads.iter().map(|load| load.bytes).collect(),
                flows: active.iter().map(|f| (f.key, f.acked_bytes)).collect(),
            };
            self.older = std::mem::replace(&mut self.newer, look);
        }
        let target = |(place, (load, class)): (usize, (Load, &ClassConfig))| {
            let target_bps = observe::class_rate(class, load.active_flows);
            Counted { place, load: Load { target_bps, ..load } }
        };
        Seen { classes, flows, counted: loads.into_iter().zip(configured).enumerate().map(target).collect() }
    }
}

/// Part of a gateway's traffic.
pub(super) struct Part<'a> {
    /// Address that flows are limited to.
    pub address: Option<IpAddr>,
    /// Classes, in the order of their indices.
    pub shown: &'a Shown,
    /// Index in the whole configuration of each class of this gateway.
    pub places: &'a [usize],
}

impl Part<'_> {
    fn has(&self, flow: &FlowStats) -> bool {
        match (self.address, self.shown) {
            (Some(address), _) => address == flow.key.src_ip() || address == flow.key.dst_ip(),
            (None, Shown::These(places)) => places.binary_search(&self.places[flow.class]).is_ok(),
            (None, _) => true,
        }
    }
}

/// Traffic that a look found.
pub(super) struct Seen {
    /// Classes that a report lists.
    pub classes: Vec<GatewayClass>,
    /// Flows that a report lists.
    pub flows: Vec<GatewayFlow>,
    /// Counters of all classes, by their index in this gateway.
    pub counted: Vec<Counted>,
}

/// Returns the counters of all classes, without rates and flows.
pub(super) fn counted(gateway: &Gateway) -> Vec<Counted> {
    let of = |(place, stats)| Counted { place, load: load(gateway, place, stats) };
    gateway.flows.class_stats().enumerate().map(of).collect()
}

/// Returns the counters of the class with this index, without rate and flows. Hooks count all of its bytes if
/// it has a bound. Otherwise those of TCP are known by their acknowledgement. Data that passed before its
/// flow was known is acknowledged later: it is in both parts, and in the whole once.
fn load(gateway: &Gateway, class: usize, stats: &ClassStats) -> Load {
    let others = gateway.flows.others_of(class);
    let bound = gateway.flows.bound_of(class);
    let Passed { held, free, packets, dropped, dropped_bytes, repeated, reordered, quic, .. } =
        bound.passed();
    let tcp_controlled_bytes = held.max(stats.acked_bytes);
    // What would be dropped has passed all the same.
    let observes = gateway.flows.config().observe;
    let also = |dropped: u64| if observes { dropped } else { 0 };
    let counted = others.bytes + also(others.dropped_bytes);
    let unresponsive_bytes = bound.unresponsive(counted);
    Load {
        bytes: (held + free).max(stats.acked_bytes) + counted,
        packets: packets + others.packets + also(dropped + others.dropped),
        tcp_controlled_bytes,
        tcp_passed_bytes: free + (counted - unresponsive_bytes.min(counted)),
        unresponsive_bytes,
        quic_bytes: quic.min(unresponsive_bytes),
        dropped_packets: dropped + others.dropped,
        dropped_bytes: dropped_bytes + others.dropped_bytes,
        marked_packets: gateway.flows.marked_of(class),
        held_bytes: stats.held_bytes,
        retransmitted_packets: repeated,
        reordered_packets: reordered,
        ..Load::default()
    }
}

fn flow(gateway: &Gateway, f: &FlowStats, class: &ClassConfig, since: &Look, now: Time) -> GatewayFlow {
    let quality = gateway.flows.quality_of(&f.key);
    let quality = quality.map(|(flow, sight)| OfFlow::new(&flow, sight, class.direction));
    // All bytes of a new flow were acknowledged since then.
    let then = since.flows.get(&f.key).copied().unwrap_or(0);
    let (src, dst) = ((f.key.src_ip(), f.key.src_port), (f.key.dst_ip(), f.key.dst_port));
    let (src, dst): (SocketAddr, SocketAddr) = (src.into(), dst.into());
    GatewayFlow {
        kind: "flow".into(),
        name: format!("{src} > {dst}"),
        src,
        dst,
        class: class.name.clone(),
        direction: observe::direction(class.direction),
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
        quality: quality.unwrap_or_default(),
    }
}

fn class(s: &ClassStats, c: &ClassConfig, load: &Load) -> GatewayClass {
    let target_bps = observe::class_rate(c, load.active_flows);
    GatewayClass {
        class: ClassResult { bps: load.bps, target_bps, ..observe::class(s, c) },
        kind: Kind::Class,
        active_flows: load.active_flows,
        customer: None,
        place: 0,
        bytes: load.bytes,
        packets: load.packets,
        acked_bytes: s.acked_bytes,
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
