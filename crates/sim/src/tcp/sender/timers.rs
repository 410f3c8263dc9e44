//! The sender's timers: retransmission (RFC 6298), tail loss probe and reordering (RFC 8985), persist
//! (RFC 9293 §3.8.6.1). What they do when they expire is in `expire`.

use weir_core::time::Time;

/// When the sender's timers expire.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timers {
    /// Retransmission time-out.
    pub(super) rto: Option<Time>,
    /// Tail loss probe; it stands for the RTO while it is set.
    pub(super) loss: Option<Time>,
    /// RACK finds more lost.
    pub(super) reorder: Option<Time>,
    /// Zero-window probe.
    pub(super) persist: Option<Time>,
    /// Time-outs since the last progress.
    pub(super) backoffs: u32,
    /// A tail loss probe is out: everything in flight up to here was sent before it ended.
    pub(super) probe: Option<Probe>,
}

/// A tail loss probe that has not been answered (TLP.end_seq, TLP.is_retrans).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    pub(super) end: u64,
    pub(super) retransmitted: bool,
}

impl Timers {
    /// The earliest.
    pub fn next(&self) -> Option<Time> {
        earliest(earliest(self.rto, self.loss), earliest(self.reorder, self.persist))
    }
}

/// The earlier of two times that there may be.
pub fn earliest(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// What an expired timer asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// Nothing but what the sender now does by itself.
    Repaired,
    /// A segment without payload below the window, to make the peer say how wide it is.
    ZeroWindowProbe,
    /// The connection is dead.
    GaveUp,
}
