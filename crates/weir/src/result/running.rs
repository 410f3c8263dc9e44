//! Reports of a running gateway or emulator, as JSON. The lab reads them.

use super::{ClassResult, Counts, GatewayResult, LinkResult, QuantilesMax};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// What `weir run --json` writes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GatewayReport {
    /// See [`crate::result::SCHEMA`].
    pub schema: u32,
    /// Time since the gateway was set up, in seconds.
    pub wall_s: f64,
    /// Totals.
    pub gateway: GatewayResult,
    /// Why it does not work as it should, if it does not: its interface is gone or down.
    pub degraded: Option<String>,
    /// Classes in the order of the configuration.
    pub classes: Vec<GatewayClass>,
    /// Flows that were active in the last 10 s, the latest first; at most 1,000.
    pub flows: Vec<GatewayFlow>,
    /// Frames that passed untouched, by reason.
    pub passed: Counts,
    /// How often it happened that a flow was evicted to make room, renewed (its numbers were taken from segments that had
    /// not been believed), or reset by one of its ends, and that a release had to wait because the pool was exhausted.
    pub events: Counts,
    /// How frames came and went.
    pub steering: SteeringReport,
    /// Rows of lists of customers and sites that are left out or count otherwise than they say.
    #[serde(skip_serializing_if = "Notes::is_empty")]
    pub notes: Notes,
    /// Each engine's share, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub engines: Vec<EngineReport>,
}

/// Notes about files, and the first of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Notes {
    /// How many there are.
    pub count: usize,
    /// The first 20.
    pub first: Vec<Note>,
}

/// A note about a place in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Note {
    /// The file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Which row or key it is about, with the reason.
    pub message: String,
    /// What follows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl Notes {
    fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// What one of several engines has of a gateway.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineReport {
    /// Its processor time, user and system.
    pub cpu_s: f64,
    /// Its flows that are active now and controlled.
    pub active_flows: u64,
    /// Bytes that they hold now.
    pub held_bytes: u64,
}

/// A class as the gateway sees it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GatewayClass {
    /// What results of experiments have of it too; the goodput is that of now, and the target that of its active flows.
    #[serde(flatten)]
    pub class: ClassResult,
    /// The identifier of its customer as the list has it, where the name of the class has another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customer: Option<String>,
    /// Its place in the configuration, which its place in the list shows.
    #[serde(skip)]
    pub place: usize,
    /// Flows that are active now and controlled.
    pub active_flows: u64,
    /// Bytes acknowledged towards the senders so far.
    pub bytes: u64,
    /// Flows that it took so far.
    pub flows: u64,
    /// Of those, flows left alone.
    pub flows_passed: u64,
    /// Bytes held now.
    pub held_bytes: u64,
    /// ACKs forwarded as they came.
    pub acks_forwarded: u64,
    /// Transitions into slow start that the detector saw.
    pub slow_starts: u64,
    /// Release times forfeited because the engine woke too late.
    pub missed_releases: u64,
}

/// A flow as the gateway sees it, in the direction of its data.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GatewayFlow {
    /// Who sends the data.
    pub src: SocketAddr,
    /// Who receives it.
    pub dst: SocketAddr,
    /// Its class.
    pub class: String,
    /// Bytes acknowledged towards the sender so far.
    pub bytes: u64,
    /// The same per second, now.
    pub bps: f64,
    /// What it is set to; absent if it is left alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_bps: Option<u64>,
    /// Why it is left alone, if it is.
    pub pass_reason: Option<String>,
    /// Bytes acknowledged by the receiver and held.
    pub held_bytes: u32,
    /// How long the held bytes take at the flow's rate, in microseconds.
    pub held_us: u64,
    /// Bytes acknowledged ahead of the rate.
    pub debt_bytes: u32,
    /// Is its step halved because its sender is in slow start?
    pub slow_start: bool,
    /// Round-trip time beyond the gateway in microseconds, 0 when unknown.
    pub rtt_us: u64,
    /// Window field last forwarded.
    pub window: u16,
    /// Time between releases in microseconds.
    pub period_us: u64,
}

/// What `weir wan --json` writes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EmulatorReport {
    /// See [`crate::result::SCHEMA`].
    pub schema: u32,
    /// Time since it started, in seconds.
    pub wall_s: f64,
    /// Both directions.
    pub links: Vec<LinkResult>,
    /// Why it does not work as it should, if it does not: its interface is gone or down.
    pub degraded: Option<String>,
    /// How frames came and went.
    pub steering: SteeringReport,
}

/// How frames came to the engine and left it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SteeringReport {
    /// Engines that ran before this one.
    pub restarts: u32,
    /// Times the engine had been away so long that frames went past it.
    pub resyncs: u64,
    /// What the programs in the kernel did with segments or frames, by name.
    pub hooks: Counts,
    /// Bytes sent and received that the hooks did not see, although the interface counts them.
    pub unseen_bytes: Vec<u64>,
    /// Frames received from LAN and WAN, where all frames are taken.
    pub received: Vec<u64>,
    /// Frames that were lost before they were read, likewise.
    pub lost: Vec<u64>,
    /// Frames sent to LAN and WAN.
    pub sent: Vec<u64>,
    /// Frames that the kernel refused to send, likewise.
    pub refused: Vec<u64>,
    /// From when frames were due until they were handed to the device.
    pub lateness_us: QuantilesMax,
}
