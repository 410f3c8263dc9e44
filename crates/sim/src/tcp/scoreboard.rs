//! What is in flight, SACKed and lost.
//!
//! Segments are kept in a ring in stream order. Everything an ACK does costs amortized constant time per segment,
//! whatever the size of the window: ranges that are already SACKed are stepped over as a whole, and the search for losses
//! (RFC 6675 IsLost, RFC 8985 §6.2) continues where it stopped.

use weir_core::time::{Duration, Time};

/// State of the delivery-rate estimator when a segment was sent
/// (draft-cheng-iccrg-delivery-rate-estimation §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// When the segment was (last) sent.
    pub at: Time,
    /// Bytes delivered in all by then.
    pub delivered: u64,
    /// When those were.
    pub delivered_at: Time,
    /// When the first segment of the flight was sent.
    pub first_sent: Time,
    /// Was the sender without data then?
    pub app_limited: bool,
}

/// A piece of the stream in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Stream offset of its first byte.
    pub start: u64,
    /// Payload bytes, at least 1.
    pub len: u32,
}

/// What an ACK did to the scoreboard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes newly acknowledged cumulatively.
    pub acked: u64,
    /// Bytes newly delivered: of `acked` those not SACKed before, and those newly SACKed.
    pub delivered: u64,
    /// Round-trip time by the *oldest* segment newly acknowledged cumulatively that was never
    /// retransmitted (as Linux and RFC 6298 with delayed ACKs); of SACKed ones if nothing was.
    pub rtt: Option<Duration>,
    /// Likewise by the newest of them, for congestion controls that look for queueing delay.
    pub rtt_newest: Option<Duration>,
    /// The segment delivered by this ACK that was sent last, and whether it was a retransmission:
    /// what RACK (RFC 8985 §6.2 step 2) and the delivery rate go by.
    pub newest: Option<(Sent, bool)>,
    /// A segment was delivered below one SACKed earlier and had never been retransmitted: reordering.
    pub reordered: bool,
    /// The cumulative ACK covered a segment that had been retransmitted.
    pub retransmitted: bool,
}

/// The scoreboard of one sender.
#[derive(Debug)]
pub struct Scoreboard {}
