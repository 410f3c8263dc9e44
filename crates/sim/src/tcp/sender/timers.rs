//! Timers of the sender: retransmission (RFC 6298), tail loss probe and reordering (RFC 8985), persist (RFC
//! 9293 §3.8.6.1). `expire` handles their expiry.

use weir_core::time::Time;

/// Expiry times of the sender's timers; [`Time::MAX`] for one that does not run.
#[derive(Clone, Copy, Debug)]
pub struct Timers {
    /// Retransmission time-out.
    pub(super) rto: Time,
    /// Tail loss probe; it replaces the RTO while it is set.
    pub(super) loss: Time,
    /// Reordering timer, at which RACK may find more losses.
    pub(super) reorder: Time,
    /// Zero-window probe.
    pub(super) persist: Time,
    /// Time-outs since the last progress.
    pub(super) backoffs: u32,
    /// Tail loss probe in flight. All data in flight up to its `end` was sent before it.
    pub(super) probe: Option<Probe>,
}

/// Unanswered tail loss probe (TLP.end_seq, TLP.is_retrans).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    pub(super) end: u64,
    pub(super) retransmitted: bool,
}

impl Default for Timers {
    fn default() -> Timers {
        Timers {
            rto: Time::MAX,
            loss: Time::MAX,
            reorder: Time::MAX,
            persist: Time::MAX,
            backoffs: 0,
            probe: None,
        }
    }
}

impl Timers {
    /// Returns the earliest expiry.
    pub fn next(&self) -> Time {
        self.rto.min(self.loss).min(self.reorder.min(self.persist))
    }
}

/// Action that an expired timer requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// No further action: the sender continues by itself.
    Repaired,
    /// A segment without payload below the window, to make the peer report its window.
    ZeroWindowProbe,
    /// The connection is dead.
    GaveUp,
}
