//! Results of the gateway and its classes.

use super::{joint_rate, joint_target, ClassPace, Counts, FlowResult, PortPace, QuantilesMax};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The gateway's totals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GatewayResult {
    /// Processor time of the engine, user and system.
    pub cpu_s: f64,
    /// Resident memory of the engine's process in bytes; absent in the simulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// TCP payload that passed through user space; 0 when only ACKs are steered there.
    pub user_data_bytes: u64,
    /// When shaping was off; absent in the simulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steering: Option<Steering>,
    /// The conservation law's account: `in + made = out + held + absorbed + Σ dropped`.
    pub frames: Frames,
    /// What filled the holes of its lines, if any class is paced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<PortPace>,
}

/// What tells that the gateway did not shape for a moment, or not all that it should. Of a healthy run all are small, and
/// what was passed because the engine was away is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Steering {
    /// Engines that ran before the last one.
    pub restarts: u64,
    /// Times that the engine found it had been away, and took its flows up again.
    pub resyncs: u64,
    /// Segments that passed as they came because the engine's heartbeat was stale.
    pub passed_stale: u64,
    /// Segments that passed as they came because their flow was not classified yet.
    pub passed_unknown: u64,
    /// Segments that were not taken or shown because the ring to the engine was full.
    pub ring_full: u64,
    /// Segments that were not taken or shown because there were too many of their kind.
    pub over_budget: u64,
    /// Segments of controlled flows that passed as they came because they cannot be true.
    pub doubted: u64,
    /// Segments that the kernel refused to rewrite.
    pub failed: u64,
}

/// An account of frames.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frames {
    /// Handed in.
    #[serde(rename = "in")]
    pub received: u64,
    /// Made by the gateway.
    pub made: u64,
    /// Given out.
    #[serde(rename = "out")]
    pub sent: u64,
    /// Still inside.
    pub held: u64,
    /// Ended with their information kept.
    pub absorbed: u64,
    /// Dropped, by reason.
    pub dropped: Counts,
}

/// One class of the gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassResult {
    /// Its name.
    pub name: String,
    /// Rate of the class, or the most that its flows are set to together at any time; 0 for none.
    pub target_bps: u64,
    /// Goodput of its flows, all together: their bytes over the time from the first start to the last end, or
    /// the last byte.
    pub bps: f64,
    /// The most ACKs whose progress was held at any time, as packets a queue would have held.
    pub held_ack_peak_packets: u64,
    /// The most bytes acknowledged by receivers and not yet passed on, at any time.
    pub held_ack_peak_bytes: u64,
    /// The most bytes of ACKs that waited themselves, as frames, at any time.
    #[serde(default)]
    pub ack_queue_peak_bytes: u64,
    /// Packets of its queue of which no ACKs are controlled, in a class whose ACKs follow its data.
    #[serde(default)]
    pub scheduled_only: ClassAlone,
    /// The most bytes of data in its queue and of ACKs that waited themselves, together at any time; 0 without a queue.
    #[serde(default)]
    pub buffer_peak_bytes: u64,
    /// Pure ACKs whose number was held instead of the packet.
    pub acks_absorbed: u64,
    /// ACKs made by the gateway.
    pub acks_generated: u64,
    /// Segments whose ACK number or window was rewritten.
    pub acks_rewritten: u64,
    /// What passed of it that ACKs cannot slow, if it shares a rate and there was any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<ClassOthers>,
    /// Traffic at its bound, if it has one and anything came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<ClassBound>,
    /// Flows and the least rate that it guarantees each, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<ClassAdmission>,
    /// Its queue, if its data waits in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<ClassQueue>,
    /// How it is paced, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<ClassPace>,
}

/// What passed of a class that ACKs cannot slow: datagrams, whatever else is not TCP, and TCP that is left alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassOthers {
    /// Packets that passed.
    pub packets: u64,
    /// Their bytes from the IP header on.
    pub bytes: u64,
    /// Packets that were dropped, since the class is policed.
    pub dropped: u64,
    /// Bytes that exceeded the rate of the class and could not be held back.
    pub exceeded_bytes: u64,
}

/// Traffic that the bound of a class passed and dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassBound {
    /// Bytes of TCP whose ACKs are controlled, as the rate counts them.
    pub held_bytes: u64,
    /// Bytes of TCP whose ACKs are not controlled, from the IP header on.
    pub free_bytes: u64,
    /// Packets of any kind that found no room.
    pub dropped: u64,
    /// Their bytes.
    pub dropped_bytes: u64,
}

/// Packets of which no ACKs are controlled, in a class whose ACKs follow its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassAlone {
    /// They are not TCP, or fragments.
    pub not_tcp: u64,
    /// Their flow passes untouched.
    pub untouched: u64,
    /// No ACK of their flow has come this way, or its connection is over.
    pub no_acks: u64,
}

/// Flows of a class that guarantees each a least rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassAdmission {
    /// Flows that have the guarantee now.
    pub guaranteed: u64,
    /// SYNs that were refused; one that was dropped may have come again.
    pub refused: u64,
    /// Flows that began without the guarantee, since there was too little.
    pub best_effort: u64,
}

/// The queue of a class that shares a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassQueue {
    /// Packets (segments of giant frames) that left it.
    pub packets: u64,
    /// Their bytes, as the class is charged.
    pub bytes: u64,
    /// Those that it borrowed.
    pub borrowed_bytes: u64,
    /// The most packets that waited at once.
    pub peak_packets: u64,
    /// The most bytes that waited at once.
    pub peak_bytes: u64,
    /// Time that frames waited.
    pub delay_us: QuantilesMax,
    /// Packets marked with Congestion Experienced.
    pub marks: u64,
    /// ACKs that an ACK filter erased.
    #[serde(default)]
    pub filtered: u64,
    /// ACKs that came while it fell back to classical filtering, since more flows were active than it measures.
    #[serde(default)]
    pub fallback: u64,
    /// Frames dropped, by reason.
    pub drops: Counts,
}

/// Part of a class: a flow in one of its directions.
struct Part {
    bytes: u64,
    start_s: f64,
    end_s: f64,
    /// Time at which all of the bytes had come.
    until_s: f64,
    target_bps: u64,
}

/// Classes with what their flows tell: what they are set to, and their goodput.
pub fn with_flows(classes: Vec<ClassResult>, flows: &[FlowResult]) -> Vec<ClassResult> {
    let mut parts: HashMap<&str, Vec<Part>> = HashMap::new();
    for f in flows {
        let mut add = |class, bytes, until_s, target: Option<u64>| {
            let part =
                Part { bytes, start_s: f.start_s, end_s: f.end_s, until_s, target_bps: target.unwrap_or(0) };
            parts.entry(class).or_default().push(part);
        };
        add(&f.class, f.bytes, f.until_s(), f.target_bps);
        if let Some(back) = &f.back {
            add(
                &back.class,
                back.bytes,
                back.last_s.map_or(f.end_s, |last| last.max(f.end_s)),
                back.target_bps,
            );
        }
    }
    let with = |class: ClassResult| {
        let own = parts.get(class.name.as_str()).map_or(&[][..], Vec::as_slice);
        let bps = joint_rate(own.iter().map(|p| (p.bytes, p.start_s, p.until_s)));
        let target = joint_target(own.iter().map(|p| (p.target_bps, p.start_s, p.end_s)));
        let target_bps = class.target_bps.max(target.unwrap_or(0));
        // A class whose ACKs do not follow its data has no ACKs that wait beside it.
        let buffer = class.queue.as_ref().map_or(0, |queue| queue.peak_bytes.max(class.buffer_peak_bytes));
        ClassResult { target_bps, bps: bps.unwrap_or(0.0), buffer_peak_bytes: buffer, ..class }
    };
    classes.into_iter().map(with).collect()
}
