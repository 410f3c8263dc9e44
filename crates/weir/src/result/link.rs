//! Results of a link.

use super::{Counts, QuantilesMax};
use serde::{Deserialize, Serialize};

/// One direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkResult {
    /// `lan.out`, `lan.back`, `wan.out` or `wan.back`; the access links of host `edge.0` are `edge.0.up` and
    /// `edge.0.down`.
    pub name: String,
    /// Frames that left it.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Share of its rate that was used, 0 to 1; 0 for a link without a rate.
    pub utilization: f64,
    /// Time that frames waited in its queue.
    pub queue_us: QuantilesMax,
    /// Frames marked with Congestion Experienced.
    pub marks: u64,
    /// Frames that came out twice.
    #[serde(default)]
    pub duplicated: u64,
    /// Frames that came out with a bit flipped.
    #[serde(default)]
    pub corrupted: u64,
    /// ACKs that an ACK filter erased.
    #[serde(default)]
    pub filtered: u64,
    /// ACKs that came while it fell back to classical filtering, since more flows were active than it measures.
    #[serde(default)]
    pub fallback: u64,
    /// Frames dropped, by reason.
    pub drops: Counts,
}
