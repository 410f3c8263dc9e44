//! The sender's timers: retransmission (RFC 6298), tail loss probe and reordering (RFC 8985), persist
//! (RFC 9293 §3.8.6.1).

use super::config::Recovery;
use super::scoreboard::Progress;
use super::sender::{Arrived, Sender};
use crate::cc::{Congestion, Phase};
use weir_core::time::{Duration, Time};

/// Added to a probe's time-out when one segment is in flight, whose ACK the receiver may delay
/// (RFC 8985 §7.2: WCDelAckT).
const WORST_DELAYED_ACK: Duration = Duration::from_millis(200);
/// Time-outs without an answer after which a connection is given up (Linux: `tcp_retries2`).
pub(super) const MAX_BACKOFFS: u32 = 15;

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
        [self.rto, self.loss, self.reorder, self.persist].into_iter().flatten().min()
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

impl Sender {
    /// After an ACK: RFC 6298 §5.2–5.3, RFC 8985 §7.2 and §7.4.
    pub(super) fn set_timers(&mut self, a: &Arrived, p: &Progress, now: Time) {
        self.judge_probe(a, p, now);
        if self.board.is_empty() {
            (self.timers.rto, self.timers.loss, self.timers.reorder) = (None, None, None);
        } else if p.acked > 0 {
            // Not for a SACK: a hole whose retransmission was lost would wait for ever.
            self.timers.rto = Some(now + self.rtt.rto());
            self.schedule_probe(now);
        }
        if self.edge > self.board.nxt() || self.board.nxt() >= self.limit {
            self.timers.persist = None;
        }
    }

    /// A probe that was answered: if it was a retransmission and its original did not arrive as well, it has
    /// repaired a loss, which reduces the window as any other (RFC 8985 §7.4).
    fn judge_probe(&mut self, a: &Arrived, p: &Progress, now: Time) {
        let Some(probe) = self.timers.probe.filter(|probe| self.board.una() >= probe.end) else { return };
        let beyond = self.board.una() > probe.end;
        let twice = a.duplicate || (p.acked == 0 && a.pure);
        if probe.retransmitted && !beyond && !twice {
            return; // the next ACK tells
        }
        self.timers.probe = None;
        if probe.retransmitted && !twice && self.phase == Phase::Open {
            let in_flight = self.board.in_flight();
            self.cc.on_congestion(&mut self.window, now, in_flight, Congestion::Loss);
            if !self.cc.owns_recovery() {
                self.window.cwnd = self.window.ssthresh;
            }
            self.cc.on_recovered(&mut self.window, now);
        }
    }

    /// A tail loss probe is scheduled after new data and after ACKs, in the open state with SACK and
    /// nothing SACKed (RFC 8985 §7.2).
    pub(super) fn schedule_probe(&mut self, now: Time) {
        self.timers.loss = None;
        let may = self.recovery == Recovery::Rack
            && self.phase == Phase::Open
            && self.timers.probe.is_none()
            && self.board.sacked() == 0
            && self.rtt.srtt() > Duration::ZERO
            && !self.board.is_empty();
        if !may {
            return;
        }
        let mut after = self.rtt.srtt().saturating_mul(2);
        let fin = u64::from(self.fin.is_some_and(|fin| self.board.nxt() > fin));
        if self.board.nxt() - self.board.una() <= u64::from(self.window.mss) + fin {
            after = after + WORST_DELAYED_ACK;
        }
        // Never later than the time-out it stands for.
        self.timers.loss = self.timers.rto.map(|rto| rto.min(now + after));
    }

    /// Data has left: its timer runs (RFC 6298 §5.1).
    pub(super) fn timers_on_sent(&mut self, new: bool, now: Time) {
        if self.timers.rto.is_none() {
            self.timers.rto = Some(now + self.rtt.rto());
        }
        if new {
            self.schedule_probe(now);
        }
    }

    /// Runs what has expired by `now`.
    pub fn on_timers(&mut self, now: Time) -> Option<Expired> {
        let due = |t: Option<Time>| t.is_some_and(|t| t <= now);
        if due(self.timers.reorder) {
            self.timers.reorder = None;
            let lost = self.detect(now);
            if lost > 0 && self.phase == Phase::Open {
                self.begin_recovery(lost, now);
            }
            return Some(Expired::Repaired);
        }
        if due(self.timers.loss) {
            self.timers.loss = None;
            self.send_probe(now);
            return Some(Expired::Repaired);
        }
        if due(self.timers.rto) {
            if self.timers.backoffs >= MAX_BACKOFFS {
                return Some(Expired::GaveUp);
            }
            self.time_out(now);
            return Some(Expired::Repaired);
        }
        if due(self.timers.persist) {
            self.timers.backoffs += 1;
            self.rtt.backoff();
            self.timers.persist = Some(now + self.rtt.rto());
            return Some(Expired::ZeroWindowProbe);
        }
        None
    }

    /// TLP_send_probe of RFC 8985 §7.3: new data if there is some, otherwise the last segment again. It
    /// leaves with the next transmission.
    fn send_probe(&mut self, now: Time) {
        self.timers.probe = Some(Probe { end: self.board.nxt(), retransmitted: false });
        self.probing = true;
        self.timers.rto = Some(now + self.rtt.rto());
    }
}
