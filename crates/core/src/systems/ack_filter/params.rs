//! Settings of an ACK filter.

use crate::queue::codel;
use crate::time::Duration;

/// Settings of an ACK filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Params {
    /// Condition under which ACKs are erased.
    pub policy: Policy,
    /// Order of service. Only [`Policy::DelayedPerFlow`] may have [`Service::RoundRobin`].
    pub service: Service,
    /// Rule by which [`Policy::DelayedPerFlow`] filters a flow.
    pub rule: Rule,
    /// Packet that a full queue drops. `None`: the policy says it.
    pub drop: Option<Drop>,
    /// Measurement of the channel's use.
    pub measure: Measure,
    /// Use above which filtering begins, in millionths of the channel or of a flow's share of it.
    pub on: u32,
    /// Use below which it ends. At most `on`.
    pub off: u32,
    /// Time sliding window of the measurement, above zero. `None`: the round-trip time that handshakes show.
    pub window: Option<Duration>,
    /// Most flows whose rates are measured, 1 to 1,048,576. With more active flows, filtering is classical.
    /// Each takes about 400 bytes.
    pub flows: u32,
    /// Bytes that each flow may send in a round, at least 1.
    pub quantum: u32,
    /// Hosts that have turns of their own, which their flows share. `None`: each flow has turns. Only
    /// [`Service::RoundRobin`] may have it.
    pub hosts: Option<Host>,
    /// CoDel of each flow's packets that are not pure ACKs. Only [`Service::RoundRobin`] may have it.
    pub codel: Option<codel::Params>,
    /// Seed of the hash. It keeps outsiders from choosing flows that collide.
    pub seed: u64,
}

impl Default for Params {
    /// Delayed filtering for each flow in turn, by the channel's rate: §4.1 with §3's threshold of 90 %.
    fn default() -> Params {
        Params {
            policy: Policy::DelayedPerFlow,
            service: Service::RoundRobin,
            rule: Rule::Adapted,
            drop: None,
            measure: Measure::Rate,
            on: 900_000,
            off: 800_000,
            window: None,
            flows: 1024,
            quantum: 1514,
            hosts: None,
            codel: None,
            seed: 1,
        }
    }
}

/// Condition under which ACKs are erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Policy {
    /// Never.
    None,
    /// At the threshold of queued ACKs of its flow, the arriving ACK erases the last one (§2.3).
    Static(Threshold),
    /// Always. The arriving ACK erases those of its flow (RFC 3449 §5.2.1).
    Classical,
    /// [Classical](Policy::Classical) filtering while the ACKs of all flows use the channel (§3).
    Delayed,
    /// [Classical](Policy::Classical) filtering of a flow whose ACKs use more than its share of the channel
    /// (§4).
    DelayedPerFlow,
}

impl Policy {
    /// Returns whether the policy measures the use of the channel.
    pub const fn measures(self) -> bool {
        matches!(self, Policy::Delayed | Policy::DelayedPerFlow)
    }
}

/// ACKs of a flow that may wait before one is erased: δ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Threshold {
    /// This many, at least 1.
    Acks(u32),
    /// `μ_r T / (d + 1)` (§2.2, equation 1), from the channel's rate, the round-trip time of handshakes, and
    /// the segments per ACK.
    Auto,
}

/// Rule by which the ACKs of a flow are filtered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Rule {
    /// The flow uses its share, more of its ACKs wait than that share carries in a round trip, or its sender
    /// counts bytes.
    Adapted,
    /// The flow uses its share (§4.1). A full queue drops the oldest ACK of the fastest flow (§4.2).
    Published,
}

/// Packet that a full queue drops (§4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Drop {
    /// The arriving packet.
    Tail,
    /// The oldest packet of the flow with the largest backlog.
    Longest,
    /// The oldest packet of the flow with the fastest ACKs.
    Fastest,
}

/// Order of service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Service {
    /// Order of arrival.
    Fifo,
    /// Each flow in turn, by bytes.
    RoundRobin,
}

/// End of a flow that is a host with turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Host {
    /// Source address.
    Source,
    /// Destination address.
    Destination,
}

/// Measurement of the channel's use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Measure {
    /// Departing bytes, against the rate of the queue (§3.1).
    Rate,
    /// Share of the time in which an ACK waits, for an unknown rate (§3).
    Presence,
}
