//! Single segments: what a congestion control may learn and decide of them.

use weir_core::time::{Duration, Time};

/// A segment of the stream that leaves now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// When.
    pub now: Time,
    /// Stream offset of its first byte.
    pub start: u64,
    /// Its bytes: payload, and one for the FIN.
    pub len: u32,
    /// It was sent before.
    pub again: bool,
    /// Bytes in flight, this segment included.
    pub in_flight: u64,
    /// Bytes that the receiver's window has room for behind it.
    pub room: u64,
}

/// A segment that an ACK delivered: acknowledged cumulatively, or by SACK for the first time.
///
/// When its ACK came is [`Ack::now`](super::Ack::now); whether that echoed a mark, [`Ack::ece`](super::Ack::ece). A receiver that
/// echoes as DCTCP's does (RFC 8257 §3.2) sends an ACK whenever the marks change, so the echo is that of each segment. One that
/// follows RFC 3168 echoes until it is told of the reduction, so only the first echo is that of its segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// Stream offset of its first byte.
    pub start: u64,
    /// Its bytes: payload, and one for the FIN.
    pub len: u32,
    /// When it left, for the last time.
    pub left: Time,
    /// How long after the segment sent before it, whichever that was; `None` for the first of the connection.
    pub gap: Option<Duration>,
    /// It was sent more than once: which of the transmissions arrived is not known (Karn).
    pub again: bool,
    /// By SACK, while something before it was missing.
    pub sacked: bool,
}
