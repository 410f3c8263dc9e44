//! Counters of the core's nodes as rows of a result, for experiments in either world and for gateways in the
//! field.

use crate::result::{
    Bandwidth, ClassAdmission, ClassAlone, ClassBound, ClassOthers, ClassPace, ClassQueue, ClassResult,
    Counts, Frames, GatewayResult, LinkResult, PortPace, QuantilesMax,
};
use weir_core::class::LeafStats;
use weir_core::combined::Combined;
use weir_core::gateway::{
    ClassConfig, ClassStats, Direction, Gateway, GatewayStats, PassReason, ScheduledOnly,
};
use weir_core::link::{Link, LinkStats};
use weir_core::pace::{Probe, Span};
use weir_core::queue::Queue;
use weir_core::sharing::{AdmissionStats, Sharing};
use weir_core::stats::{Drops, Ledger};
use weir_core::steer::Passed;
use weir_core::time::{Duration, Time};

/// Returns the totals of a gateway whose engine took `cpu`.
pub fn gateway(stats: &GatewayStats, cpu: Duration) -> GatewayResult {
    let l = &stats.ledger;
    GatewayResult {
        cpu_s: cpu.as_secs_f64(),
        memory_bytes: None,
        user_data_bytes: stats.user_data_bytes,
        steering: None,
        frames: frames(l),
        pace: None,
    }
}

/// Converts the account of the frames.
fn frames(l: &Ledger) -> Frames {
    Frames {
        received: l.received,
        made: l.made,
        sent: l.sent,
        held: l.held(),
        absorbed: l.absorbed,
        dropped: drops(&l.drops),
    }
}

/// Returns the totals of a node with data queues, whose engine took `cpu`.
pub fn sharing(sharing: &Sharing, cpu: Duration) -> GatewayResult {
    GatewayResult {
        cpu_s: cpu.as_secs_f64(),
        frames: frames(&sharing.ledger()),
        pace: port(sharing),
        ..GatewayResult::default()
    }
}

/// Returns the totals of a gateway that also has queues, whose engine took `cpu`.
pub fn combined(node: &Combined, cpu: Duration) -> GatewayResult {
    let pace = port(node.sharing());
    GatewayResult { frames: frames(&node.ledger()), pace, ..gateway(node.gateway().flows.stats(), cpu) }
}

/// Returns the fillers in the gaps of the ports with paced classes, if there are any.
fn port(sharing: &Sharing) -> Option<PortPace> {
    let pacers = [Direction::Out, Direction::In].into_iter().filter_map(|way| sharing.pacer(way));
    let of = pacers.map(|pacer| {
        let s = pacer.stats();
        PortPace { fillers: s.fillers, filler_bytes: s.filler_bytes, discarded: 0, behind_bytes: s.behind }
    });
    of.reduce(PortPace::with)
}

/// Returns the pacing of the class with this index, if it is paced.
fn pace(sharing: &Sharing, class: usize) -> Option<ClassPace> {
    let (pacer, paced) = sharing.paced(class)?;
    let (by, target_bps) = (pacer.backend().name().to_string(), pacer.rate(paced).bps());
    Some(ClassPace { by, target_bps, ..ClassPace::default() })
}

/// Adds the probe's measurements on the wire to a paced class.
pub fn seen(class: ClassPace, probe: &Probe) -> ClassPace {
    let bandwidth =
        |span: Span| Some(Bandwidth { min_bps: span.min, mean_bps: span.mean()?, max_bps: span.max });
    let bps = probe.millibits().map(|bits| bits as f64 / 1000.0);
    let target = class.target_bps as f64;
    // A rate that follows windows is no fixed target.
    let fixed = probe.target().bps() == class.target_bps;
    ClassPace {
        bps,
        off_target: bps.filter(|_| fixed).map(|bps| (bps - target) / target),
        over1: probe.over(1).and_then(bandwidth),
        over2: probe.over(2).and_then(bandwidth),
        burst_packets: (fixed && probe.packets() > 0).then(|| probe.burst_millipackets() as f64 / 1000.0),
        together: Some(probe.most_together()).filter(|n| *n > 0),
        ..class
    }
}

/// Returns the classes of a node with data queues, in the order of its configuration.
pub fn queues(sharing: &Sharing) -> Vec<ClassResult> {
    let queue = |(queue, left): (&Queue, &LeafStats)| {
        let s = queue.stats();
        ClassQueue {
            packets: left.packets,
            bytes: left.bytes,
            borrowed_bytes: left.borrowed,
            peak_packets: s.peak_packets,
            peak_bytes: s.peak_bytes,
            delay_us: QuantilesMax::of_nanos(&left.delay).unwrap_or_default(),
            marks: s.marks,
            filtered: s.filtered,
            fallback: s.fallback,
            drops: drops(&s.drops),
            dropped_bytes: s.dropped_bytes,
        }
    };
    let class = |(i, c): (usize, &ClassConfig)| ClassResult {
        name: c.name.clone(),
        queue: sharing.leaf(i).map(queue),
        pace: pace(sharing, i),
        admission: sharing.admission(i).map(|AdmissionStats { flows, refused }| ClassAdmission {
            guaranteed: flows.into(),
            refused,
            ..ClassAdmission::default()
        }),
        ..ClassResult::default()
    };
    sharing.config().classes.iter().enumerate().map(class).collect()
}

/// Returns the rate that a class sets for each flow.
pub fn flow_rate(class: &ClassConfig) -> Option<u64> {
    Some(class.ack.as_ref()?.release.flow_rate()?.bps())
}

/// Returns the target of a class with `flows` flows: its own rate, or the sum of its flows' rates.
pub fn class_rate(class: &ClassConfig, flows: u64) -> u64 {
    let law = class.ack.as_ref().map(|ack| &ack.release);
    law.map_or(0, |law| law.flow_rate().map_or(law.rate().bps(), |rate| rate.bps().saturating_mul(flows)))
}

/// Returns the classes of a gateway, in its order, as [`class`] builds them.
pub fn classes(gateway: &Gateway, now: Time) -> Vec<ClassResult> {
    let each = gateway.flows.class_stats().zip(&gateway.flows.config().classes).enumerate();
    let class = |(i, (s, c)): (usize, (&ClassStats, &ClassConfig))| ClassResult {
        others: others(gateway, i, now),
        bound: bound(gateway, i),
        ..class(s, c)
    };
    each.map(class).collect()
}

/// Returns the name of a direction.
pub fn direction(direction: Direction) -> String {
    match direction {
        Direction::Out => "out".into(),
        Direction::In => "in".into(),
    }
}

/// Returns the counts of what passed by reason, without those that are 0.
pub fn by_reason(counts: &[u64; PassReason::ALL.len()]) -> Counts {
    let named = PassReason::ALL.iter().zip(counts).filter(|(_, n)| **n > 0);
    named.map(|(reason, n)| (reason.name().to_string(), *n)).collect()
}

/// Returns the traffic at the bound of the class with this index, if it has a bound and any traffic came.
pub fn bound(gateway: &Gateway, class: usize) -> Option<ClassBound> {
    let Passed { held, free, dropped, dropped_bytes, .. } = gateway.flows.bound_of(class).passed();
    let bound = ClassBound { held_bytes: held, free_bytes: free, dropped, dropped_bytes };
    (bound != ClassBound::default()).then_some(bound)
}

/// Returns the unresponsive traffic of the class with this index, if there was any.
pub fn others(gateway: &Gateway, class: usize, now: Time) -> Option<ClassOthers> {
    let passed = gateway.flows.others_of(class);
    let (packets, bytes, dropped) = (passed.packets, passed.bytes, passed.dropped);
    let exceeded_bytes = gateway.flows.exceeded(class, now);
    let (spilled, spilled_bytes) = gateway.flows.spilled_of(class);
    let marked = gateway.flows.marked_of(class);
    let others = ClassOthers { packets, bytes, spilled, spilled_bytes, marked, dropped, exceeded_bytes };
    (packets + dropped > 0).then_some(others)
}

fn alone(ScheduledOnly { not_tcp, untouched, no_acks }: ScheduledOnly) -> ClassAlone {
    ClassAlone { not_tcp, untouched, no_acks }
}

/// Builds a class without the goodput and the targets of its flows, which only the flows know.
pub fn class(s: &ClassStats, c: &ClassConfig) -> ClassResult {
    ClassResult {
        name: c.name.clone(),
        target_bps: class_rate(c, 0),
        held_ack_peak_packets: s.held_acks_peak,
        held_ack_peak_bytes: s.held_bytes_peak,
        ack_queue_peak_bytes: s.ack_queue_bytes_peak,
        buffer_peak_bytes: s.buffer_bytes_peak,
        scheduled_only: alone(s.scheduled_only),
        acks_absorbed: s.acks_absorbed,
        acks_generated: s.acks_generated,
        acks_rewritten: s.acks_rewritten,
        admission: c.ack.and_then(|ack| ack.release.share()?.flow_min).map(|_| ClassAdmission {
            guaranteed: s.guaranteed,
            best_effort: s.best_effort,
            ..ClassAdmission::default()
        }),
        ..ClassResult::default()
    }
}

/// Returns the result of a link that has worked for `wall`.
pub fn link(name: &str, link: &Link, wall: Duration) -> LinkResult {
    let s = link.stats();
    LinkResult {
        name: name.into(),
        packets: s.packets,
        bytes: s.bytes,
        utilization: utilization(link, &s, wall),
        queue_us: QuantilesMax::of_nanos(&s.queue_delay).unwrap_or_default(),
        marks: s.marks,
        filtered: s.filtered,
        fallback: s.fallback,
        duplicated: s.duplicated,
        corrupted: s.corrupted,
        drops: drops(&s.drops),
    }
}

/// Returns the share of its rate that a link has used in `wall`.
fn utilization(link: &Link, s: &LinkStats, wall: Duration) -> f64 {
    match (link.config().rate, link.config().trace) {
        (None, _) => 0.0,
        (Some(_), None) => s.busy.as_nanos() as f64 / wall.as_nanos().max(1) as f64,
        (Some(_), Some(trace)) => s.bytes as f64 * 8e9 / trace.offered(wall).max(1) as f64,
    }
}

fn drops(drops: &Drops) -> Counts {
    drops.iter().map(|(reason, n)| (reason.name().to_string(), n)).collect()
}
