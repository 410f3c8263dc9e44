//! Merging of several gateways for results: counts are summed, and peaks are maxima.

use crate::result::{
    ClassAdmission, ClassAlone, ClassBound, ClassOthers, ClassQueue, ClassResult, Counts, Frames,
    GatewayResult, PortPace, QuantilesMax,
};

/// A function that adds two values of a type, field by field.
macro_rules! sums {
    ($Of:ident: $($field:ident),+) => {
        |a: $Of, b: $Of| $Of { $($field: a.$field + b.$field),+ }
    };
}

/// Merges the totals of two gateways.
pub(super) fn gateways(a: GatewayResult, b: GatewayResult) -> GatewayResult {
    let (x, y) = (a.frames, b.frames);
    GatewayResult {
        cpu_s: a.cpu_s + b.cpu_s,
        memory_bytes: None,
        user_data_bytes: a.user_data_bytes + b.user_data_bytes,
        steering: None,
        frames: Frames {
            received: x.received + y.received,
            made: x.made + y.made,
            sent: x.sent + y.sent,
            held: x.held + y.held,
            absorbed: x.absorbed + y.absorbed,
            dropped: add(x.dropped, y.dropped),
        },
        pace: a.pace.into_iter().chain(b.pace).reduce(PortPace::with),
    }
}

/// Merges the classes of two gateways with equal configurations.
pub(super) fn classes(a: Vec<ClassResult>, b: Vec<ClassResult>) -> Vec<ClassResult> {
    let both = |(a, b): (ClassResult, ClassResult)| ClassResult {
        held_ack_peak_packets: a.held_ack_peak_packets.max(b.held_ack_peak_packets),
        held_ack_peak_bytes: a.held_ack_peak_bytes.max(b.held_ack_peak_bytes),
        ack_queue_peak_bytes: a.ack_queue_peak_bytes.max(b.ack_queue_peak_bytes),
        buffer_peak_bytes: a.buffer_peak_bytes.max(b.buffer_peak_bytes),
        scheduled_only: sums!(ClassAlone: not_tcp, untouched, no_acks)(a.scheduled_only, b.scheduled_only),
        acks_absorbed: a.acks_absorbed + b.acks_absorbed,
        acks_generated: a.acks_generated + b.acks_generated,
        acks_rewritten: a.acks_rewritten + b.acks_rewritten,
        others: a.others.into_iter().chain(b.others).reduce(
            sums!(ClassOthers: packets, bytes, spilled, spilled_bytes, marked, dropped, exceeded_bytes),
        ),
        bound: a
            .bound
            .into_iter()
            .chain(b.bound)
            .reduce(sums!(ClassBound: held_bytes, free_bytes, dropped, dropped_bytes)),
        admission: a
            .admission
            .into_iter()
            .chain(b.admission)
            .reduce(sums!(ClassAdmission: guaranteed, refused, best_effort)),
        queue: a.queue.into_iter().chain(b.queue).reduce(queues),
        pace: a.pace.or(b.pace),
        ..a
    };
    a.into_iter().zip(b).map(both).collect()
}

/// Merges the queues of a class in two gateways. Takes the longer delays, because the delays of all frames
/// are not known.
fn queues(a: ClassQueue, b: ClassQueue) -> ClassQueue {
    let (x, y) = (a.delay_us, b.delay_us);
    ClassQueue {
        packets: a.packets + b.packets,
        bytes: a.bytes + b.bytes,
        borrowed_bytes: a.borrowed_bytes + b.borrowed_bytes,
        peak_packets: a.peak_packets.max(b.peak_packets),
        peak_bytes: a.peak_bytes.max(b.peak_bytes),
        delay_us: QuantilesMax { p50: x.p50.max(y.p50), p99: x.p99.max(y.p99), max: x.max.max(y.max) },
        marks: a.marks + b.marks,
        filtered: a.filtered + b.filtered,
        fallback: a.fallback + b.fallback,
        drops: add(a.drops, b.drops),
        dropped_bytes: a.dropped_bytes + b.dropped_bytes,
    }
}

fn add(mut a: Counts, b: Counts) -> Counts {
    for (reason, n) in b {
        *a.entry(reason).or_default() += n;
    }
    a
}
