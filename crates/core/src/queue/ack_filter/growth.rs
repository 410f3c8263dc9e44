//! Whether a flow's sender needs every ACK.
//!
//! A sender that counts ACKs grows by a segment for each in slow start, so that erasing them costs it time. One that counts bytes (RFC 3465, Linux since
//! 4.0) grows by what the newest ACK acknowledges, so that what costs it time are ACKs that wait before that one. Which one it is, is seen by what
//! comes back. A sender that began with four segments (RFC 3390) and counts ACKs has one segment more under way for each packet that it was
//! sent. Where more than that is acknowledged in one round trip, it counts bytes, or it began with more, as senders do that count bytes (RFC 6928). Once
//! a hole was told of, acknowledgements tell what has come earlier, and nothing more is concluded.

use crate::ack::filter::{Ack, Role};
use crate::time::{Duration, Time};

/// Segments that a sender begins with at most which counts ACKs (RFC 3390).
const INITIAL_WINDOW: u32 = 4;

/// See the [module documentation](self).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Growth {
    verdict: Verdict,
    /// Packets of the flow that have left since its SYN.
    left: u32,
    /// When the round trip began that is being looked at.
    since: Option<Time>,
    /// What the next ACK acknowledges is not all of this round trip.
    stale: bool,
    /// Bytes acknowledged in it, and the most that a sender which counts ACKs can have had under way.
    came: u32,
    most: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Verdict {
    /// Its SYN was not seen, or it had losses: nothing will be known.
    #[default]
    Open,
    /// It is looked at.
    Sought,
    /// It counts bytes.
    Bytes,
}

impl Growth {
    /// The flow begins with a SYN.
    pub(super) fn begin() -> Growth {
        Growth { verdict: Verdict::Sought, ..Growth::default() }
    }

    /// A packet of the flow leaves; `opens`: it is its SYN.
    pub(super) fn note_left(&mut self, opens: bool) {
        self.left = if opens { 0 } else { self.left.saturating_add(1) };
    }

    /// An ACK comes that acknowledges so many bytes `beyond` the one before it, of a flow with segments of `mss` and a round-trip time of `rtt` at least.
    pub(super) fn note_ack(&mut self, ack: &Ack, beyond: u32, (mss, rtt): (u16, Duration), now: Time) {
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

    /// A packet of the flow comes that is no pure ACK, and may acknowledge something as well.
    pub(super) fn note_other(&mut self) {
        (self.since, self.stale) = (None, true);
    }

    /// Does its sender count bytes, as far as is known?
    pub(super) fn counts_bytes(&self) -> bool {
        self.verdict == Verdict::Bytes
    }
}
