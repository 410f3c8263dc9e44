//! Forward RTO recovery: finds a time-out that was spurious by the ACKs after it, as Linux does
//! (`tcp_process_loss`). Without SACK by the basic algorithm (RFC 5682 §2.1), with SACK by the enhanced one
//! (§3.1).
//!
//! After the time-out only the first segment leaves again. If the next ACK advances, new data leaves before
//! anything else is retransmitted. An ACK of data that was sent once, before the time-out, says that the
//! time-out was spurious: its reduction is undone. A duplicate ACK, or a SACK of new data, says that the loss
//! was real.
//!
//! Linux differs from the RFC in three points. A spurious time-out restores window and threshold (RFC 4015
//! leaves this open). An ACK for more than the retransmitted segment is not enough without SACK, since it may
//! answer the retransmission. A duplicate ACK before the first advance leaves the question open.

use super::scoreboard::{Piece, Progress};
use super::{Arrived, Sender};
use crate::cc::Phase;
use weir_core::time::Time;

/// State after a time-out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Frto {
    /// The time-out is taken for a loss.
    #[default]
    Off,
    /// ACKs are watched after a time-out at this time.
    Watching(Time),
    /// New data goes before retransmissions until the next ACK.
    NewFirst(Time),
}

impl Frto {
    /// Returns the time of the time-out whose ACKs are watched.
    fn timed_out(self) -> Option<Time> {
        match self {
            Frto::Off => None,
            Frto::Watching(at) | Frto::NewFirst(at) => Some(at),
        }
    }
}

impl Sender {
    /// Begins to watch after a time-out in `phase`, the first one or one that follows another without an
    /// answer (RFC 5682 §2.1 step 1, §3.1). A time-out in the recovery of other losses is taken for a loss.
    pub(super) fn begin_frto(&mut self, phase: Phase, now: Time) {
        let watches = self.recovery.is_linux() && (!phase.repairs() || self.timers.backoffs > 0);
        self.losses_mut().frto = if watches { Frto::Watching(now) } else { Frto::Off };
    }

    /// Judges a time-out by an ACK that may follow it (steps 2 and 3).
    pub(super) fn judge_frto(&mut self, a: &Arrived, p: &Progress, repeated: bool, now: Time) {
        if self.phase != Phase::Loss {
            return;
        }
        let Some(timed_out) = self.losses().frto.timed_out() else { return };
        if self.shows_original(p, timed_out) {
            // No recovery point: Linux is in its open state afterwards.
            self.losses_mut().recover = 0;
            return self.undo(now);
        }
        let (nxt, recover) = (self.board.nxt(), self.losses().recover);
        self.losses_mut().frto = if nxt > recover {
            match p.sacked || repeated {
                true => Frto::Off,
                false => Frto::Watching(timed_out),
            }
        } else if p.acked == 0 {
            Frto::Watching(timed_out)
        } else if self.limit > nxt && a.edge > nxt {
            Frto::NewFirst(timed_out)
        } else {
            Frto::Off
        };
    }

    /// Returns whether an ACK covers data that was sent once, before the time-out.
    fn shows_original(&self, p: &Progress, timed_out: Time) -> bool {
        if self.recovery.uses_sack() {
            return p.fresh_since.is_some_and(|left| left <= timed_out);
        }
        p.acked > 0 && !p.retransmitted
    }

    /// Chooses new data that goes before retransmissions (step 2b). If none can leave, the time-out is taken
    /// for a loss.
    pub(super) fn choose_new_first(&mut self) -> Option<Piece> {
        if !self.sends_new_first() {
            return None;
        }
        let piece = self.choose_new(false).filter(|piece| self.fits(piece.len));
        if piece.is_none() && self.board.nxt() <= self.losses().recover {
            self.losses_mut().frto = Frto::Off;
        }
        piece
    }

    /// Returns whether new data goes before retransmissions.
    pub(super) fn sends_new_first(&self) -> bool {
        matches!(self.losses().frto, Frto::NewFirst(_))
    }
}
