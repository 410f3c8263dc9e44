//! The report of a traffic process.

use super::{Bins, Quantiles};
use serde::{Deserialize, Serialize};

/// The ends of flows and probes of one process. All times count from the epoch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// One for each flow of the specification, in its order.
    pub flows: Vec<FlowReport>,
    /// One for each flow of datagrams of the specification, in its order.
    #[serde(default)]
    pub datagrams: Vec<DatagramReport>,
    /// One for each probe of the specification, in its order.
    pub probes: Vec<ProbeReport>,
    /// When the process was done.
    pub end_ns: u64,
    /// Told to stop before the flows were done.
    pub interrupted: bool,
    /// Connections that belong to no flow; they were closed.
    pub strangers: u64,
    /// CPU time of the whole process.
    pub cpu_s: f64,
}

/// One end of a flow.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FlowReport {
    /// Its name.
    pub id: String,
    /// What went wrong, if something did.
    pub error: Option<String>,
    /// The kernel gave the connection up after time-outs without an answer (ETIMEDOUT). That is no error.
    #[serde(default)]
    pub gave_up: bool,
    /// When this end called `connect`.
    pub opened_ns: Option<u64>,
    /// When `connect` or `accept` succeeded.
    pub established_ns: Option<u64>,
    /// The receiving end.
    pub received: Option<Received>,
    /// The sending end.
    pub sent: Option<Sent>,
    /// Of the end that asks, if it is a conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchanges: Option<Exchanges>,
}

/// One end of a flow of datagrams.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DatagramReport {
    /// Its name.
    pub id: String,
    /// What went wrong, if something did.
    pub error: Option<String>,
    /// Datagrams handed to the kernel, of the end that sends.
    pub sent: u64,
    /// Datagrams received.
    pub arrived: u64,
    /// Numbers missing below the highest that was received. Those that came late leave it.
    pub missing: u64,
    /// What the receiving end saw.
    pub received: Option<Received>,
}

/// Requests that were answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchanges {
    /// How many.
    pub count: u64,
    /// From the first byte of the request written to the last of the response read.
    pub latency_ns: Option<Quantiles>,
}

/// What the receiving end saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// All bytes.
    pub bytes: u64,
    /// Bytes that came in before the flow's time was up; all of them if it had none.
    pub bytes_in_time: u64,
    /// When the first bytes were read.
    pub first_ns: Option<u64>,
    /// When the last bytes were read.
    pub last_ns: Option<u64>,
    /// When the number of bytes that the flow was to carry was complete.
    pub complete_ns: Option<u64>,
    /// When the sender's end of data was read.
    pub eof_ns: Option<u64>,
    /// The longest time without delivery, from the first byte on.
    pub longest_gap: Option<Gap>,
    /// Bytes over time.
    pub bins: Bins,
}

/// A time without delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The last delivery before it.
    pub from_ns: u64,
    /// How long it lasted.
    pub len_ns: u64,
}

/// What the sending end saw, from the kernel's TCP_INFO.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Bytes handed to the kernel.
    pub written: u64,
    /// Bytes acknowledged.
    pub acked: u64,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Retransmission time-outs, that of the SYN included.
    pub rtos: u64,
    /// Whether the kernel counted the time-outs (Linux 6.7 and later). If not they are inferred from
    /// samples of the back-off and are a lower bound.
    pub rtos_counted: bool,
    /// The kernel's smoothed round-trip time in microseconds, one value per sample in which new data
    /// had been acknowledged.
    pub rtt_us: Option<Quantiles>,
    /// The least round-trip time that the kernel measured, in microseconds.
    pub min_rtt_us: Option<u32>,
    /// Payload per segment, options not counted.
    pub mss: u32,
    /// Congestion control in use.
    pub cc: String,
    /// Samples over time, if asked for.
    pub series: Option<Series>,
}

/// Columns of equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// When the sample was taken.
    pub t_ns: Vec<u64>,
    /// Congestion window in packets.
    pub cwnd_packets: Vec<u32>,
    /// Smoothed round-trip time in microseconds.
    pub srtt_us: Vec<u32>,
    /// Bytes acknowledged so far.
    pub acked_bytes: Vec<u64>,
    /// Segments in flight.
    pub unacked_packets: Vec<u32>,
    /// The window that the peer last advertised, in bytes (zero before Linux 6.2).
    pub window_bytes: Vec<u32>,
    /// Segments retransmitted so far.
    pub retransmits: Vec<u32>,
    /// The rate the kernel paces at or would pace at, in bits per second.
    pub pacing_bps: Vec<u64>,
}

/// One end of a probe. A sender fills `sent`, a sink the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// Its name.
    pub id: String,
    /// What went wrong, if something did.
    pub error: Option<String>,
    /// Packets sent.
    pub sent: u64,
    /// Packets that could not be sent in time because the sender did not get to it.
    pub skipped: u64,
    /// How late the sender was, in nanoseconds after each packet's time. No part of the delays.
    pub lateness_ns: Option<Quantiles>,
    /// Packets received.
    pub received: u64,
    /// Packets that came in after one with a higher number.
    pub reordered: u64,
    /// From just before the system call that sends to the kernel's receive stamp, in nanoseconds:
    /// the sender's system call, the path, and whatever emulates it.
    pub delay_ns: Option<Quantiles>,
    /// From just before the system call that sends to just after the one that receives: `delay_ns`
    /// and the sink's waking up.
    pub delay_app_ns: Option<Quantiles>,
    /// How far off the time between two packets' receive stamps was that they were to be apart, if they were to be paced.
    #[serde(default)]
    pub gap_error_ns: Option<Quantiles>,
    /// Time between two of those stamps.
    #[serde(default)]
    pub gaps_ns: Option<Quantiles>,
    /// Nanoseconds from the first of those packets to the last.
    #[serde(default)]
    pub gaps_took_ns: u64,
}
