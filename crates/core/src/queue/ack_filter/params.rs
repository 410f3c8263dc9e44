//! What an ACK filter is told.

use crate::time::Duration;

/// What an ACK filter is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// When ACKs are erased.
    pub policy: Policy,
    /// Who is served next. Only [`Policy::DelayedPerFlow`] may have [`Service::RoundRobin`].
    pub service: Service,
    /// How the use of the channel is measured.
    pub measure: Measure,
    /// Above this use filtering begins: millionths of the channel, or of a flow's share of it.
    pub on: u32,
    /// Below this use it ends; at most `on`.
    pub off: u32,
    /// Time sliding window of the measurement, above zero. `None`: the round-trip time that handshakes show.
    pub window: Option<Duration>,
    /// Flows whose rates are measured, 1 to 1,048,576. With more than that active, filtering is classical. Each takes about 400 bytes.
    pub flows: u32,
    /// Bytes that each flow may send in a round, at least 1.
    pub quantum: u32,
    /// Seed of the hash, so that nobody outside can aim at the place of another.
    pub seed: u64,
}

impl Default for Params {
    /// Delayed filtering for each flow in turn, by the channel's rate: §4.1 with §3's threshold of 90 %.
    fn default() -> Params {
        Params {
            policy: Policy::DelayedPerFlow,
            service: Service::RoundRobin,
            measure: Measure::Rate,
            on: 900_000,
            off: 800_000,
            window: None,
            flows: 1024,
            quantum: 1514,
            seed: 1,
        }
    }
}

/// When ACKs are erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Never.
    None,
    /// When so many of its flow wait: the one that came last, for the one that comes (§2.3).
    Static(Threshold),
    /// Always: those of its flow that wait, for the one that comes (RFC 3449 §5.2.1).
    Classical,
    /// As [`Policy::Classical`] while the ACKs of all flows use the channel (§3).
    Delayed,
    /// As [`Policy::Classical`] for a flow while its ACKs use more than its share of the channel (§4).
    DelayedPerFlow,
}

/// How many ACKs of a flow may wait before one is erased: δ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// So many, at least 1.
    Acks(u32),
    /// `μ_r T / (d + 1)` (§2.2, equation 1): of the channel's rate, the round-trip time that handshakes show, and the segments that ACKs
    /// acknowledge.
    Auto,
}

/// Who is served next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Who came first.
    Fifo,
    /// Each flow in turn, by bytes.
    RoundRobin,
}

/// How the use of the channel is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// By the bytes that leave, against the rate that the queue waits for (§3.1).
    Rate,
    /// By how much of the time an ACK waits, where the rate is not known (§3).
    Presence,
}
