//! Several gateways as one, for results: counts together, and of peaks the highest.

use crate::result::{ClassResult, Frames, GatewayResult};

/// The totals of two gateways.
pub(super) fn gateways(a: GatewayResult, b: GatewayResult) -> GatewayResult {
    let (x, y) = (a.frames, b.frames);
    let mut dropped = x.dropped;
    for (reason, n) in y.dropped {
        *dropped.entry(reason).or_default() += n;
    }
    GatewayResult {
        cpu_s: a.cpu_s + b.cpu_s,
        user_data_bytes: a.user_data_bytes + b.user_data_bytes,
        steering: None,
        frames: Frames {
            received: x.received + y.received,
            made: x.made + y.made,
            sent: x.sent + y.sent,
            held: x.held + y.held,
            absorbed: x.absorbed + y.absorbed,
            dropped,
        },
    }
}

/// The classes of two gateways that are configured alike.
pub(super) fn classes(a: Vec<ClassResult>, b: Vec<ClassResult>) -> Vec<ClassResult> {
    let both = |(a, b): (ClassResult, ClassResult)| ClassResult {
        held_ack_peak_packets: a.held_ack_peak_packets.max(b.held_ack_peak_packets),
        held_ack_peak_bytes: a.held_ack_peak_bytes.max(b.held_ack_peak_bytes),
        acks_absorbed: a.acks_absorbed + b.acks_absorbed,
        acks_generated: a.acks_generated + b.acks_generated,
        acks_rewritten: a.acks_rewritten + b.acks_rewritten,
        ..a
    };
    a.into_iter().zip(b).map(both).collect()
}
