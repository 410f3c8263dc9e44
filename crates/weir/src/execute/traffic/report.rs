//! The report of a traffic process.

use super::{Bins, Quantiles};
use crate::result::QuantilesMax;
use serde::{Deserialize, Serialize};

/// Reports of the ends of a process's flows and probes. All times count from the epoch.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// Reports of the specification's flows, in its order.
    pub flows: Vec<FlowReport>,
    /// Reports of the specification's datagram flows, in its order.
    #[serde(default)]
    pub datagrams: Vec<DatagramReport>,
    /// Reports of the specification's QUIC flows, in its order.
    #[serde(default)]
    pub quic: Vec<FlowReport>,
    /// Reports of the specification's probes, in its order.
    pub probes: Vec<ProbeReport>,
    /// Time at which the process was done.
    pub end_ns: u64,
    /// True if the process was stopped before the flows were done.
    pub interrupted: bool,
    /// Number of connections that belonged to no flow; they were closed.
    pub strangers: u64,
    /// CPU time of the whole process.
    pub cpu_s: f64,
}

/// Report of one end of a flow.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FlowReport {
    /// Name of the flow.
    pub id: String,
    /// Error, if the flow failed.
    pub error: Option<String>,
    /// True if the kernel gave the connection up after time-outs without an answer (ETIMEDOUT). That is not
    /// an error.
    #[serde(default)]
    pub gave_up: bool,
    /// Time at which this end called `connect`.
    pub opened_ns: Option<u64>,
    /// Time at which `connect` or `accept` succeeded.
    pub established_ns: Option<u64>,
    /// Account of the receiving end.
    pub received: Option<Received>,
    /// Account of the sending end.
    pub sent: Option<Sent>,
    /// Exchanges of a conversation, at the end that sends requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchanges: Option<Exchanges>,
}

/// Report of one end of a datagram flow.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DatagramReport {
    /// Name of the flow.
    pub id: String,
    /// Error, if the flow failed.
    pub error: Option<String>,
    /// Number of datagrams handed to the kernel, at the sending end.
    pub sent: u64,
    /// Number of datagrams received.
    pub arrived: u64,
    /// Count of missing numbers below the highest received one. A late arrival reduces it.
    pub missing: u64,
    /// One-way delays of the datagrams that arrived, at the receiving end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_us: Option<QuantilesMax>,
    /// Account of the receiving end.
    pub received: Option<Received>,
}

/// Answered requests of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchanges {
    /// Number of answered requests.
    pub count: u64,
    /// Time from the first written byte of the request to the last read byte of the response. An unanswered
    /// request counts with the time that it has waited.
    pub latency_ns: Option<Quantiles>,
    /// Time that the last request has waited, if it was not answered.
    #[serde(default)]
    pub under_way_ns: Option<u64>,
    /// Quantiles if that request is never answered, with [`u64::MAX`] for never.
    #[serde(default)]
    pub most_ns: Option<Quantiles>,
}

/// Account of a receiving end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// Number of all bytes.
    pub bytes: u64,
    /// Number of bytes that arrived in the flow's time; all bytes if it had no limit.
    pub bytes_in_time: u64,
    /// Time of the first read.
    pub first_ns: Option<u64>,
    /// Time of the last read.
    pub last_ns: Option<u64>,
    /// Time at which all of the flow's bytes had arrived.
    pub complete_ns: Option<u64>,
    /// Time at which the sender's end of data was read.
    pub eof_ns: Option<u64>,
    /// Longest time without delivery, from the first byte on.
    pub longest_gap: Option<Gap>,
    /// Bytes over time.
    pub bins: Bins,
}

/// Time without delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// Time of the last delivery before it.
    pub from_ns: u64,
    /// Length of the gap.
    pub len_ns: u64,
}

/// Account of a sending end, from the kernel's TCP_INFO, or from a QUIC connection's own counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Number of bytes handed to the kernel.
    pub written: u64,
    /// Number of bytes acknowledged; zero for QUIC, which does not report it.
    pub acked: u64,
    /// Number of segments retransmitted, or of QUIC packets found lost, whose data was sent again.
    pub retransmits: u64,
    /// Number of retransmission time-outs, those of the SYN included; zero for QUIC, which does not report
    /// them.
    pub rtos: u64,
    /// True if the kernel counted the time-outs (Linux 6.7 and later). Otherwise they are inferred from
    /// samples of the back-off and are a lower bound.
    pub rtos_counted: bool,
    /// The kernel's smoothed round-trip time in microseconds, with one value per sample that found new data
    /// acknowledged.
    pub rtt_us: Option<Quantiles>,
    /// Smallest round-trip time that the kernel measured, in microseconds.
    pub min_rtt_us: Option<u32>,
    /// Payload per segment in bytes, without options.
    pub mss: u32,
    /// Congestion control in use.
    pub cc: String,
    /// Samples over time, if requested.
    pub series: Option<Series>,
}

/// Samples over time, in columns of equal length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// Times of the samples.
    pub t_ns: Vec<u64>,
    /// Congestion window in packets.
    pub cwnd_packets: Vec<u32>,
    /// Smoothed round-trip time in microseconds.
    pub srtt_us: Vec<u32>,
    /// Bytes acknowledged so far.
    pub acked_bytes: Vec<u64>,
    /// Segments in flight.
    pub unacked_packets: Vec<u32>,
    /// Window that the peer last advertised, in bytes (zero before Linux 6.2).
    pub window_bytes: Vec<u32>,
    /// Segments retransmitted so far.
    pub retransmits: Vec<u32>,
    /// Rate at which the kernel paces or would pace, in bits per second.
    pub pacing_bps: Vec<u64>,
}

/// Report of one end of a probe. A sender fills `sent`, `skipped` and `lateness_ns`, a sink the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// Name of the probe.
    pub id: String,
    /// Error, if the probe failed.
    pub error: Option<String>,
    /// Number of packets sent.
    pub sent: u64,
    /// Number of packets skipped because the sender was too late.
    pub skipped: u64,
    /// Lateness of the sender after each packet's time, in nanoseconds. It is not part of the delays.
    pub lateness_ns: Option<Quantiles>,
    /// Number of packets received.
    pub received: u64,
    /// Number of packets that arrived after one with a higher number.
    pub reordered: u64,
    /// Delay from just before the sending system call to the kernel's receive timestamp, in nanoseconds: the
    /// sender's system call, the path, and its emulator.
    pub delay_ns: Option<Quantiles>,
    /// Delay from just before the sending system call to just after the receiving one: `delay_ns` and the
    /// sink's wake-up.
    pub delay_app_ns: Option<Quantiles>,
    /// Deviation of the time between two packets' receive timestamps from the expected gap, if the packets
    /// are paced.
    #[serde(default)]
    pub gap_error_ns: Option<Quantiles>,
    /// Time between two of these timestamps.
    #[serde(default)]
    pub gaps_ns: Option<Quantiles>,
    /// Time from the first of these packets to the last, in nanoseconds.
    #[serde(default)]
    pub gaps_took_ns: u64,
}
