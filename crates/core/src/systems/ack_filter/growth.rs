//! Evidence whether a flow's sender needs every ACK.
//!
//! A sender that counts ACKs grows by a segment for each in slow start, so erasing them costs it time. One
//! that counts bytes (RFC 3465, Linux since 4.0) grows by the bytes of the newest ACK, so ACKs that wait
//! before that one cost it time.
//!
//! The traffic that comes back shows which one it is. A sender that began with four segments (RFC 3390) and
//! counts ACKs has one more segment in flight for each packet that it was sent. If more than that is
//! acknowledged in one round trip, it counts bytes, or it began with more, as senders that count bytes do
//! (RFC 6928). Once a hole was reported, acknowledgements cover data that arrived earlier, and nothing more
//! is concluded.

use super::redundant::{Ack, Role};
use crate::time::{Duration, Time};

/// Largest initial window of a sender that counts ACKs, in segments (RFC 3390).
const INITIAL_WINDOW: u32 = 4;

/// See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Growth {
    verdict: Verdict,
    /// Packets of the flow that have left since its SYN.
    left: u32,
    /// Start of the observed round trip.
    since: Option<Time>,
    /// True if the next ACK also acknowledges data of an earlier time.
    stale: bool,
    /// Bytes acknowledged in it, and the most that a sender that counts ACKs can have had in flight.
    came: u32,
    most: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Verdict {
    /// No conclusion is possible: the SYN was not seen, or there were losses.
    #[default]
    Open,
    /// The sender is being observed.
    Sought,
    /// The sender counts bytes.
    Bytes,
}

impl Growth {
    /// Returns the state of a flow that begins with a SYN.
    pub(crate) fn begin() -> Growth {
        Growth { verdict: Verdict::Sought, ..Growth::default() }
    }

    /// Notes a departing packet of the flow. `opens` tells that it is its SYN.
    pub(crate) fn note_left(&mut self, opens: bool) {
        self.left = if opens { 0 } else { self.left.saturating_add(1) };
    }

    /// Notes an ACK that acknowledges `beyond` bytes more than the one before it, of a flow with segments of
    /// `mss` and a round-trip time of at least `rtt`.
    pub(crate) fn note_ack(&mut self, ack: &Ack, beyond: u32, (mss, rtt): (u16, Duration), now: Time) {
        if self.verdict != Verdict::Sought || self.left == 0 {
            return;
        }
        if ack.role != Role::Progress || ack.tells_of_a_hole() || mss == 0 {
            self.verdict = Verdict::Open;
            return;
        }
        if self.since.is_none_or(|since| now.since(since) >= rtt) {
            let segments = INITIAL_WINDOW.saturating_add(self.left);
            (self.since, self.came, self.most) = (Some(now), 0, segments.saturating_mul(mss.into()));
        }
        if !core::mem::take(&mut self.stale) {
            self.came = self.came.saturating_add(beyond);
        }
        if self.came > self.most {
            self.verdict = Verdict::Bytes;
        }
    }

    /// Notes a packet of the flow that is no pure ACK, and may acknowledge data as well.
    pub(crate) fn note_other(&mut self) {
        (self.since, self.stale) = (None, true);
    }

    /// Returns whether its sender is known to count bytes.
    pub(crate) fn counts_bytes(&self) -> bool {
        self.verdict == Verdict::Bytes
    }
}
