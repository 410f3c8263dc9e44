//! Reports of a running gateway or emulator, as JSON. The lab reads them.

use super::quality::OfFlow;
use super::traffic::{Kind, Snapshot, Traffic};
use super::{ClassResult, Counts, GatewayResult, LinkResult, QuantilesMax};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Version of reports of running gateways.
pub const SCHEMA: u32 = 2;

/// Output of `weir run --json`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GatewayReport {
    /// See [`SCHEMA`].
    pub schema: u32,
    /// Time since the gateway was set up, in seconds.
    pub wall_s: f64,
    /// Totals.
    pub gateway: GatewayResult,
    /// Fault of the interface, if it is gone or down.
    pub degraded: Option<String>,
    /// True if every frame passes as it came; drops are those that there would be.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub observes: bool,
    /// Rows of the link, of sites, customers and classes, with the same keys for all.
    pub traffic: Vec<Traffic>,
    /// Classes in the order of the configuration, with all that ACK control counts of them.
    pub classes: Vec<GatewayClass>,
    /// Flows active in the last 10 s, the latest first; at most 1,000.
    pub flows: Vec<GatewayFlow>,
    /// Frames that passed untouched, by reason.
    pub passed: Counts,
    /// Number of events by name: a flow evicted to make room, a flow renewed, a flow reset by one of its
    /// ends, a release delayed because the pool was exhausted. A renewed flow takes its numbers from segments
    /// that had been doubted.
    pub events: Counts,
    /// Frames received and sent.
    pub steering: SteeringReport,
    /// Rows of lists of customers and sites that are left out, or that have another effect than written.
    #[serde(skip_serializing_if = "Notes::is_empty")]
    pub notes: Notes,
    /// Report of each engine, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub engines: Vec<EngineReport>,
    /// Counters that `traffic` is made of.
    #[serde(skip)]
    pub snapshot: Snapshot,
}

/// Notes about files: their number, and the first of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Notes {
    /// Number of notes.
    pub count: usize,
    /// First 20 notes.
    pub first: Vec<Located>,
}

/// An error in a file, or a note about it, with its place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Located {
    /// The file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Text of the error or note.
    pub message: String,
    /// Consequence, or the accepted values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl Notes {
    fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Report of one of several engines of a gateway.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineReport {
    /// Processor time, user and system.
    pub cpu_s: f64,
    /// Controlled flows that are active now.
    pub active_flows: u64,
    /// Bytes held now.
    pub held_bytes: u64,
}

/// A class as the gateway sees it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GatewayClass {
    /// Fields shared with results of experiments. The goodput is the present one, and the target that of the
    /// active flows.
    #[serde(flatten)]
    pub class: ClassResult,
    /// `class`.
    pub kind: Kind,
    /// Identifier of its customer in the list, where the name of the class has another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customer: Option<String>,
    /// Position in the configuration. The position in the list shows it.
    #[serde(skip)]
    pub place: usize,
    /// Controlled flows that are active now.
    pub active_flows: u64,
    /// Bytes that passed so far, of all kinds, as the rate counts them.
    pub bytes: u64,
    /// Packets that passed so far, where they are counted: of TCP those with payload.
    pub packets: u64,
    /// Bytes acknowledged towards the senders so far.
    pub acked_bytes: u64,
    /// Flows taken so far.
    pub flows: u64,
    /// Direction of its data: `out` or `in`.
    pub direction: String,
    /// Times that one of its flows came to be left alone.
    pub flows_passed: u64,
    /// Flows that passed, by reason.
    #[serde(skip_serializing_if = "Counts::is_empty")]
    pub passed_flows: Counts,
    /// ACKs of its flows that passed as they came, by reason.
    #[serde(skip_serializing_if = "Counts::is_empty")]
    pub passed_acks: Counts,
    /// Bytes held now.
    pub held_bytes: u64,
    /// ACKs forwarded unchanged.
    pub acks_forwarded: u64,
    /// Transitions into slow start that the detector saw.
    pub slow_starts: u64,
    /// Release times forfeited because the engine woke too late.
    pub missed_releases: u64,
}

/// A flow as the gateway sees it, in the direction of its data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GatewayFlow {
    /// `flow`.
    #[serde(default)]
    pub kind: String,
    /// Sender and receiver of the data: `10.1.2.3:443 > 10.9.0.1:5000`.
    #[serde(default)]
    pub name: String,
    /// Sender of the data.
    pub src: SocketAddr,
    /// Receiver of the data.
    pub dst: SocketAddr,
    /// Class of the flow.
    pub class: String,
    /// Direction of its data: `out` or `in`.
    #[serde(default)]
    pub direction: String,
    /// Bytes acknowledged towards the sender so far.
    pub bytes: u64,
    /// Present rate in bits per second.
    pub bps: f64,
    /// Target rate; absent if the flow is left alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_bps: Option<u64>,
    /// Reason why it is left alone, if it is.
    pub pass_reason: Option<String>,
    /// Bytes acknowledged by the receiver and held back.
    pub held_bytes: u32,
    /// Time that the held bytes take at the flow's rate, in microseconds.
    pub held_us: u64,
    /// Bytes acknowledged ahead of the rate.
    pub debt_bytes: u32,
    /// Flag: the step is halved because the sender is in slow start.
    pub slow_start: bool,
    /// Round-trip time beyond the gateway in microseconds, 0 when unknown.
    pub rtt_us: u64,
    /// Window field last forwarded.
    pub window: u16,
    /// Time between releases in microseconds.
    pub period_us: u64,
    /// Round-trip times and counters of its data.
    #[serde(flatten)]
    pub quality: OfFlow,
}

#[cfg(test)]
impl GatewayFlow {
    /// Returns a flow of the class `a` between these ends, of which nothing was counted.
    pub fn between(src: SocketAddr, dst: SocketAddr) -> GatewayFlow {
        GatewayFlow {
            kind: "flow".into(),
            name: String::new(),
            src,
            dst,
            class: "a".into(),
            direction: String::new(),
            bytes: 0,
            bps: 0.0,
            target_bps: None,
            pass_reason: None,
            held_bytes: 0,
            held_us: 0,
            debt_bytes: 0,
            slow_start: false,
            rtt_us: 0,
            window: 0,
            period_us: 0,
            quality: OfFlow::default(),
        }
    }
}

/// A direction of a running emulator as it is now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkNow {
    /// `emulator`.
    pub kind: String,
    /// Name of the direction: `wan.out` or `wan.back`.
    pub name: String,
    /// Keys in words.
    pub does: String,
    /// Present rate in bits per second, as the rate counts bytes.
    pub bps: f64,
    /// Rate that it is set to; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_bps: Option<u64>,
    /// Packets that wait for the rate.
    pub queue_packets: u64,
    /// Their bytes.
    pub queue_bytes: u64,
}

/// Output of `weir wan --json`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EmulatorReport {
    /// See [`crate::result::SCHEMA`].
    pub schema: u32,
    /// Time since the start, in seconds.
    pub wall_s: f64,
    /// Both directions.
    pub links: Vec<LinkResult>,
    /// Both directions as they are now.
    pub now: Vec<LinkNow>,
    /// Fault of the interface, if it is gone or down.
    pub degraded: Option<String>,
    /// Frames received and sent.
    pub steering: SteeringReport,
}

/// Frames received and sent by the engine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SteeringReport {
    /// Engines that ran before this one.
    pub restarts: u32,
    /// Times that the engine stalled and frames bypassed it.
    pub resyncs: u64,
    /// Actions of the kernel's programs on segments or frames, by name.
    pub hooks: Counts,
    /// Bytes sent and received that the interface counted and the hooks did not see.
    pub unseen_bytes: Vec<u64>,
    /// Frames received from LAN and WAN, where all frames are taken.
    pub received: Vec<u64>,
    /// Frames lost before they were read, from LAN and WAN.
    pub lost: Vec<u64>,
    /// Frames sent to LAN and WAN.
    pub sent: Vec<u64>,
    /// Frames to LAN and WAN that the kernel refused to send.
    pub refused: Vec<u64>,
    /// Delay from the due time of frames until they were handed to the device.
    pub lateness_us: QuantilesMax,
}
