//! The sender's timers: retransmission (RFC 6298), tail loss probe and reordering (RFC 8985), persist
//! (RFC 9293 §3.8.6.1). What they do when they expire is in `expire`.

use weir_core::time::Time;

/// When the sender's timers expire; [`Time::MAX`] for one that does not run.
#[derive(Clone, Copy, Debug)]
pub struct Timers {
    /// Retransmission time-out.
    pub(super) rto: Time,
    /// Tail loss probe; it stands for the RTO while it is set.
    pub(super) loss: Time,
    /// RACK finds more lost.
    pub(super) reorder: Time,
    /// Zero-window probe.
    pub(super) persist: Time,
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
    /// The earliest.
    pub fn next(&self) -> Time {
        self.rto.min(self.loss).min(self.reorder.min(self.persist))
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
