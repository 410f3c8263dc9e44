//! Results of pacing.

use serde::{Deserialize, Serialize};

/// How a class was paced, and what was seen of it on the wire.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassPace {
    /// What kept the time: `gap` or `clock`.
    pub by: String,
    /// What it was to send.
    pub target_bps: u64,
    /// What it sent, from the beginning of its first packet to that of the last, in the bytes that its rate counts; simulator only, like all
    /// below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bps: Option<f64>,
    /// How far off the target that is, as a fraction of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_target: Option<f64>,
    /// Bandwidth over single packets: the bits of each over the time until the next begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over1: Option<Bandwidth>,
    /// The same over two packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over2: Option<Bandwidth>,
    /// The smallest token bucket at the class's rate that all of it fits through, in its largest packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_packets: Option<f64>,
    /// Most packets of the class with nothing between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<u64>,
}

/// Bandwidth over so many packets, in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bandwidth {
    /// The lowest.
    pub min_bps: u64,
    /// The arithmetic mean of all, which is above the class's rate where packets are not equally far apart.
    pub mean_bps: u64,
    /// The highest.
    pub max_bps: u64,
}

/// What filled the holes of paced ports, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortPace {
    /// Fillers put on the lines.
    pub fillers: u64,
    /// Bytes that they took on the wire.
    pub filler_bytes: u64,
    /// Fillers that the switches behind them discarded; simulator only.
    #[serde(default)]
    pub discarded: u64,
    /// Byte times by which schedules were held back, since the rates did not fit on the line.
    pub behind_bytes: u64,
}

impl PortPace {
    /// These and others.
    pub fn with(self, other: PortPace) -> PortPace {
        PortPace {
            fillers: self.fillers + other.fillers,
            filler_bytes: self.filler_bytes + other.filler_bytes,
            discarded: self.discarded + other.discarded,
            behind_bytes: self.behind_bytes + other.behind_bytes,
        }
    }
}
