//! Results of pacing.

use serde::{Deserialize, Serialize};

/// Pacing of a class, as set and as measured on the wire.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassPace {
    /// Source of the timing: `gap` or `clock`.
    pub by: String,
    /// Target rate.
    pub target_bps: u64,
    /// Rate sent, from the beginning of the first packet to that of the last, in the bytes that the target
    /// counts. Simulator only, like all fields below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bps: Option<f64>,
    /// Deviation of `bps` from the target, as a fraction of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_target: Option<f64>,
    /// Bandwidth over single packets: the bits of each packet over the time until the next begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over1: Option<Bandwidth>,
    /// Bandwidth over two packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over2: Option<Bandwidth>,
    /// Smallest token bucket at the class's rate that its packets conform to, in its largest packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_packets: Option<f64>,
    /// Most packets of the class sent back to back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<u64>,
}

/// Bandwidth over a number of packets, in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bandwidth {
    /// Lowest value.
    pub min_bps: u64,
    /// Arithmetic mean of all values. It exceeds the class's rate where packets are not equally spaced.
    pub mean_bps: u64,
    /// Highest value.
    pub max_bps: u64,
}

/// Fillers in the gaps of all paced ports together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortPace {
    /// Fillers sent.
    pub fillers: u64,
    /// Bytes of the fillers on the wire.
    pub filler_bytes: u64,
    /// Fillers discarded by the switches behind the ports; simulator only.
    #[serde(default)]
    pub discarded: u64,
    /// Byte times of delay to schedules, because the rates did not fit on the line.
    pub behind_bytes: u64,
}

impl PortPace {
    /// Returns the sums with another port's.
    pub fn with(self, other: PortPace) -> PortPace {
        PortPace {
            fillers: self.fillers + other.fillers,
            filler_bytes: self.filler_bytes + other.filler_bytes,
            discarded: self.discarded + other.discarded,
            behind_bytes: self.behind_bytes + other.behind_bytes,
        }
    }
}
