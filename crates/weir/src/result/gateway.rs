//! What the gateway and its classes did.

use super::{joint_rate, Counts, FlowResult, QuantilesMax};
use serde::{Deserialize, Serialize};

/// The gateway's totals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GatewayResult {
    /// Processor time of the engine, user and system.
    pub cpu_s: f64,
    /// TCP payload that passed through user space; 0 when only ACKs are steered there.
    pub user_data_bytes: u64,
    /// When shaping was off; absent in the simulator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steering: Option<Steering>,
    /// The conservation law's account: `in + made = out + held + absorbed + Σ dropped`.
    pub frames: Frames,
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
    /// Its rate, or the rates that its flows are set to, all together; 0 for none.
    pub target_bps: u64,
    /// Goodput of its flows, all together: their bytes over the time from the first start to the last end.
    pub bps: f64,
    /// The most ACKs whose progress was held at any time, as packets a queue would have held.
    pub held_ack_peak_packets: u64,
    /// The most bytes acknowledged by receivers and not yet passed on, at any time.
    pub held_ack_peak_bytes: u64,
    /// Pure ACKs whose number was held instead of the packet.
    pub acks_absorbed: u64,
    /// ACKs made by the gateway.
    pub acks_generated: u64,
    /// Segments whose ACK number or window was rewritten.
    pub acks_rewritten: u64,
    /// What passed of it that ACKs cannot slow, if it shares a rate and there was any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<ClassOthers>,
    /// Its queue, if its data waits in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<ClassQueue>,
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
    /// Frames dropped, by reason.
    pub drops: Counts,
}

impl ClassResult {
    /// With what its flows tell: what they are set to, and their goodput.
    #[must_use]
    pub fn with(self, flows: &[FlowResult]) -> ClassResult {
        let there = flows.iter().map(|f| (f, f.class.as_str(), f.target_bps, f.bytes));
        let back = flows
            .iter()
            .filter_map(|f| f.back.as_ref().map(|b| (f, b.class.as_str(), b.target_bps, b.bytes)));
        let own = || there.clone().chain(back.clone()).filter(|(_, class, ..)| *class == self.name);
        let bps = joint_rate(own().map(|(f, _, _, bytes)| (bytes, f.start_s, f.end_s))).unwrap_or(0.0);
        let of_flows: u64 = own().filter_map(|(_, _, target, _)| target).sum();
        ClassResult { target_bps: self.target_bps.max(of_flows), bps, ..self }
    }
}
