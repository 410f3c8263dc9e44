//! Single segments, as a congestion control may observe and time them.

use weir_core::time::{Duration, Time};

/// Segment of the stream that leaves now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Time of departure.
    pub now: Time,
    /// Stream offset of its first byte.
    pub start: u64,
    /// Bytes of payload, and one for the FIN.
    pub len: u32,
    /// True for a retransmission.
    pub again: bool,
    /// Bytes in flight, this segment included.
    pub in_flight: u64,
    /// Room in the receiver's window behind this segment, in bytes.
    pub room: u64,
}

/// Segment that an ACK delivered: acknowledged cumulatively, or by SACK for the first time.
///
/// [`Ack::now`](super::Ack::now) is the arrival time of its ACK, and [`Ack::ece`](super::Ack::ece) shows an
/// echoed mark. A receiver that echoes as in DCTCP (RFC 8257 §3.2) sends an ACK whenever the marks change, so
/// the echo is that of each segment. A receiver by RFC 3168 echoes until it learns of the reduction, so only
/// the first echo belongs to its segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// Stream offset of its first byte.
    pub start: u64,
    /// Bytes of payload, and one for the FIN.
    pub len: u32,
    /// Time of the last transmission.
    pub left: Time,
    /// Time since the previous segment sent, whichever that was; `None` for the first of the connection.
    pub gap: Option<Duration>,
    /// True if it was sent more than once: the transmission that arrived is unknown (Karn).
    pub again: bool,
    /// True if delivered by SACK, while earlier data was missing.
    pub sacked: bool,
}
