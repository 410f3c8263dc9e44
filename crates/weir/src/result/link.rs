//! Results of a link.

use super::{Counts, QuantilesMax};
use serde::{Deserialize, Serialize};

/// Result of one direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkResult {
    /// Name of the direction: `lan.out`, `lan.back`, `wan.out` or `wan.back`. The access links of host
    /// `edge.0` are `edge.0.up` and `edge.0.down`.
    pub name: String,
    /// Frames sent.
    pub packets: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Used share of the rate, 0 to 1; 0 for a link without a rate.
    pub utilization: f64,
    /// Waiting time of frames in the queue.
    pub queue_us: QuantilesMax,
    /// Frames marked with Congestion Experienced.
    pub marks: u64,
    /// Frames duplicated.
    #[serde(default)]
    pub duplicated: u64,
    /// Frames corrupted by one flipped bit.
    #[serde(default)]
    pub corrupted: u64,
    /// ACKs erased by an ACK filter.
    #[serde(default)]
    pub filtered: u64,
    /// ACKs that came during the fallback to classical filtering, which is used when more flows are active
    /// than the filter measures.
    #[serde(default)]
    pub fallback: u64,
    /// Frames dropped, by reason.
    pub drops: Counts,
}
