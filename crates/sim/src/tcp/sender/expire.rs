//! Setting of the sender's timers, and their expiry.

use super::scoreboard::Progress;
use super::timers::{Expired, Probe};
use super::{Arrived, Sender};
use crate::cc::{Congestion, Phase};
use crate::tcp::config::Recovery;
use weir_core::time::{Duration, Time};

/// Addition to a probe's time-out while one segment is in flight, since the receiver may delay its ACK (RFC
/// 8985 §7.2: WCDelAckT).
const WORST_DELAYED_ACK: Duration = Duration::from_millis(200);
/// Number of unanswered time-outs after which a connection is given up (Linux: `tcp_retries2`).
const MAX_BACKOFFS: u32 = 15;

impl Sender {
    /// Sets the timers after an ACK: RFC 6298 §5.2–5.3, RFC 8985 §7.2 and §7.4.
    pub(super) fn set_timers(&mut self, a: &Arrived, p: &Progress, now: Time) {
        if self.timers.probe.is_some() {
            self.judge_probe(a, p, now);
        }
        if self.board.is_empty() {
            (self.timers.rto, self.timers.loss, self.timers.reorder) = (Time::MAX, Time::MAX, Time::MAX);
        } else if p.acked > 0 {
            self.timers.rto = now + self.rtt.rto();
            self.schedule_probe(now);
        } else if self.is_older_than_first(p, now) {
            self.timers.rto = now + self.rtt.rto();
        }
        let opened = self.edge > self.board.nxt() || self.board.nxt() >= self.limit;
        if opened && self.timers.persist != Time::MAX {
            self.timers.persist = Time::MAX;
            self.rtt.reset_backoff();
        }
    }

    /// Judges an answered probe. If it was a retransmission and its original did not arrive as well, it has
    /// repaired a loss. This reduces the window as any other loss (RFC 8985 §7.4).
    #[inline(never)]
    fn judge_probe(&mut self, a: &Arrived, p: &Progress, now: Time) {
        let Some(probe) = self.timers.probe.filter(|probe| self.board.una() >= probe.end) else { return };
        let beyond = self.board.una() > probe.end;
        let reported = a.duplicate.is_some_and(|report| self.reports_probe(report));
        let twice = reported || p.acked == 0 && a.pure && a.tells_nothing();
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

    /// Schedules a tail loss probe after new data and after ACKs. It needs SACK, with nothing SACKed and
    /// nothing lost (RFC 8985 §7.2). As in Linux, it also runs while the window is reduced for a mark.
    pub(super) fn schedule_probe(&mut self, now: Time) {
        self.timers.loss = Time::MAX;
        let may = self.recovery == Recovery::Rack
            && matches!(self.phase, Phase::Open | Phase::Reducing)
            && self.timers.probe.is_none()
            && self.board.sacked() == 0
            && self.rtt.srtt() > Duration::ZERO
            && !self.board.is_empty();
        if !may {
            return;
        }
        let mut after = self.rtt.srtt().saturating_mul(2);
        let fin = u64::from(self.board.nxt() > self.fin);
        if self.board.nxt() - self.board.una() <= u64::from(self.window.mss) + fin {
            after = after + WORST_DELAYED_ACK;
        }
        // A probe never leaves later than the time-out that it replaces.
        if self.timers.rto != Time::MAX {
            self.timers.loss = self.timers.rto.min(now + after);
        }
    }

    /// Returns whether a SACK reported a segment sent before the retransmission of the first one. Then, as in
    /// Linux (`tcp_clean_rtx_queue`), the path is alive, and the timer restarts. Other SACKs do not restart
    /// it: a hole whose retransmission was lost would wait for ever.
    fn is_older_than_first(&self, p: &Progress, now: Time) -> bool {
        let first = self.board.first_left().filter(|_| self.recovery == Recovery::Rack);
        first.zip(p.rtt).is_some_and(|(left, rtt)| now.since(left) < rtt)
    }

    /// Restarts the retransmission timer when the first segment is retransmitted. It also replaces the
    /// probe's timer, as in Linux (`tcp_xmit_retransmit_queue`). RFC 6298 lets it run on.
    pub(super) fn restart_on_first(&mut self, start: u64, now: Time) {
        if self.recovery.is_linux() && start == self.board.una() {
            self.timers.rto = now + self.rtt.rto();
            self.timers.loss = Time::MAX;
        }
    }

    /// Starts the timer of data that has left (RFC 6298 §5.1).
    #[inline]
    pub(super) fn timers_on_sent(&mut self, new: bool, now: Time) {
        if self.timers.rto == Time::MAX {
            self.timers.rto = now + self.rtt.rto();
        }
        self.sent_new |= new;
    }

    /// Schedules the probe, once for everything that has left at this instant.
    #[inline]
    pub(super) fn timers_on_all_sent(&mut self, now: Time) {
        if core::mem::take(&mut self.sent_new) {
            self.schedule_probe(now);
        }
    }

    /// Runs the timers that have expired by `now`.
    pub fn on_timers(&mut self, now: Time) -> Option<Expired> {
        if self.timers.next() > now {
            return None;
        }
        if self.timers.reorder <= now {
            self.timers.reorder = Time::MAX;
            let lost = self.detect(now);
            if lost > 0 {
                self.cc.on_lost(lost);
            }
            if lost > 0 && matches!(self.phase, Phase::Open | Phase::Reducing) {
                self.begin_recovery(lost, now);
                self.reduce_in_proportion(u64::from(self.window.mss), false);
            }
            return Some(Expired::Repaired);
        }
        if self.timers.loss <= now {
            self.timers.loss = Time::MAX;
            self.send_probe(now);
            return Some(Expired::Repaired);
        }
        if self.timers.rto <= now {
            if self.timers.backoffs >= MAX_BACKOFFS {
                return Some(Expired::GaveUp);
            }
            self.time_out(now);
            return Some(Expired::Repaired);
        }
        if self.timers.persist <= now {
            self.timers.backoffs += 1;
            self.rtt.backoff();
            self.timers.persist = now + self.rtt.rto();
            return Some(Expired::ZeroWindowProbe);
        }
        None
    }

    /// Sends a probe (TLP_send_probe of RFC 8985 §7.3): new data if there is some, otherwise the last segment
    /// again. It leaves with the next transmission.
    fn send_probe(&mut self, now: Time) {
        self.timers.probe = Some(Probe { end: self.board.nxt(), retransmitted: false });
        self.probing = true;
        self.timers.rto = now + self.rtt.rto();
    }
}
