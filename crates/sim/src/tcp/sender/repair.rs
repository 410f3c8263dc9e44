//! Detection and repair of losses.

use super::dsack::{Range, Undo};
use super::duplicates::DUP_THRESH;
use super::prr::Prr;
use super::scoreboard::Progress;
use super::{Arrived, Sender, Spare, Usage};
use crate::cc::{Congestion, Phase};
use crate::tcp::config::Recovery;
use weir_core::time::{Duration, Time};

impl Sender {
    /// Finds the losses that an ACK reveals, and reacts to them. Returns the bytes newly found lost.
    pub(super) fn find_losses(&mut self, a: &Arrived, p: &Progress, repeated: bool, now: Time) -> u64 {
        let report = self.credible_report(a);
        if self.undo.is_some() {
            self.judge_undo(a, p, report, now);
        }
        self.judge_frto(a, p, repeated, now);
        if self.phase != Phase::Open && p.acked > 0 {
            self.end_recovery(now);
        }
        let lost = match self.recovery {
            Recovery::Rack => self.find_by_time(a, p, report, now),
            Recovery::Sack => self.board.mark_lost_by_sack(DUP_THRESH),
            _ => self.find_by_duplicates(p, repeated),
        };
        if lost > 0 {
            self.cc.on_lost(lost);
            self.begin_recovery(lost, now);
        }
        lost
    }

    /// Finds losses by RACK (RFC 8985 §6.2).
    fn find_by_time(&mut self, a: &Arrived, p: &Progress, report: Option<Range>, now: Time) -> u64 {
        let premature = report.is_some_and(|report| !self.reports_probe(report));
        if premature && self.board.seen_reordering() {
            let (una, nxt) = (self.board.una(), self.board.nxt());
            self.losses_mut().rack.on_dsack(una, nxt);
        }
        self.board.rack_update(p, now, self.rtt.min_rtt(), a.echoed);
        self.detect(now)
    }

    /// Marks the data that RACK finds lost by now, and sets the timer for later losses.
    pub(super) fn detect(&mut self, now: Time) -> u64 {
        if self.board.rack_rests() {
            self.timers.reorder = Time::MAX;
            return 0;
        }
        let window = self.losses().rack.reorder_window(
            self.board.seen_reordering(),
            self.rtt.min_rtt(),
            self.rtt.srtt(),
            self.phase.repairs(),
            self.board.sacked_segments(),
        );
        let (lost, wait) = self.board.rack_detect(now, window);
        self.timers.reorder = wait.map_or(Time::MAX, |d| now + d);
        lost
    }

    /// Begins a recovery for losses, unless there is one. In the window of data of a mark they are the same
    /// congestion: the window is not reduced a second time (RFC 3168 §6.1.2).
    #[inline(never)]
    pub(super) fn begin_recovery(&mut self, lost: u64, now: Time) {
        let reduced = match self.phase {
            Phase::Open => false,
            Phase::Reducing => true,
            Phase::Loss if !self.recovery.remembers() => false,
            Phase::Recovery | Phase::Loss => return,
        };
        self.losses_mut().recover = self.board.nxt();
        // RFC 6675 §5 (4.3): no rescue before more than the first retransmission is acknowledged.
        self.losses_mut().rescued =
            self.board.first().map_or(self.board.una(), |p| p.start + u64::from(p.len));
        self.fast = true;
        if reduced && !self.recovery.goes_back() {
            self.phase = Phase::Recovery;
            return;
        }
        let in_flight = self.board.in_flight() + lost;
        let flight = if self.recovery == Recovery::Linux { self.window.cwnd } else { in_flight };
        self.remember();
        self.cc.on_congestion(&mut self.window, now, in_flight, Congestion::Loss);
        if self.recovery.goes_back() {
            return self.go_back();
        }
        self.phase = Phase::Recovery;
        self.losses_mut().prr = Prr::begin(flight);
        if !self.cc.owns_recovery() && !self.uses_prr() {
            self.window.cwnd = self.window.ssthresh;
        }
    }

    /// Begins slow start from SND.UNA on, as after a time-out, without fast recovery.
    fn go_back(&mut self) {
        let lost = self.board.mark_all_lost(true);
        if lost > 0 {
            self.cc.on_lost(lost);
        }
        // Duplicate ACKs still in flight are for the same loss.
        self.board.set_duplicates(DUP_THRESH);
        self.window.cwnd = u64::from(self.window.mss);
        self.phase = Phase::Loss;
    }

    /// Reduces the window for a mark.
    #[inline(never)]
    pub(super) fn reduce(&mut self, now: Time) {
        let in_flight = self.board.in_flight();
        self.cc.on_congestion(&mut self.window, now, in_flight, Congestion::Ecn);
        self.losses_mut().reduced = self.board.nxt() + 1;
        self.cwr = true;
        self.undo = None;
        self.phase = Phase::Reducing;
        self.losses_mut().prr = Prr::begin(in_flight);
        if !self.cc.owns_recovery() && !self.uses_prr() {
            self.window.cwnd = self.window.ssthresh;
        }
    }

    /// Saves the state to which a spurious reduction must return.
    pub(super) fn remember(&mut self) {
        let (cwnd, ssthresh) = (self.window.cwnd, self.window.ssthresh);
        let mut undo = Undo::new(cwnd, ssthresh);
        // A retransmission in flight may be reported later.
        self.board.resent_pieces().for_each(|piece| undo.note(piece));
        self.undo = Some(Box::new(undo));
    }

    /// Ends a recovery or reduction after the cumulative ACK has advanced, if it is complete. Recovery ends
    /// when all data in flight at its beginning is acknowledged. Reno's ends with the first ACK that
    /// advances. Linux's without SACK ends when data above is acknowledged. A reduction for a mark ends when
    /// data sent after it is acknowledged.
    #[inline(never)]
    fn end_recovery(&mut self, now: Time) {
        let done = match self.phase {
            Phase::Open => false,
            Phase::Reducing => self.is_beyond_mark(),
            Phase::Recovery | Phase::Loss => {
                self.board.una() >= self.losses().recover || self.ends_with_any_advance()
            }
        };
        if !done {
            return;
        }
        if self.phase != Phase::Reducing && self.waits_above() {
            return self.forget_duplicates();
        }
        if self.phase.reduces() && !self.cc.owns_recovery() {
            self.window.cwnd = self.window.ssthresh;
        }
        if self.phase != Phase::Reducing {
            self.losses_mut().rack.on_recovery_exit();
        }
        self.phase = Phase::Open;
        self.forget_duplicates();
        self.cc.on_recovered(&mut self.window, now);
        // In Linux, retransmitted segments may be reported later (`tcp_fastretrans_alert`).
        if self.recovery != Recovery::Rack {
            self.undo = None;
        }
    }

    fn ends_with_any_advance(&self) -> bool {
        self.phase == Phase::Recovery && matches!(self.recovery, Recovery::Reno | Recovery::Ns2Reno)
    }

    /// Undoes a reduction that was spurious because the original arrived after all. Either its ACK is older
    /// than the retransmission (Eifel, RFC 3522), or every retransmission was reported to have arrived twice
    /// (RFC 3708).
    #[inline(never)]
    fn judge_undo(&mut self, a: &Arrived, p: &Progress, report: Option<Range>, now: Time) {
        let again_since = self.losses().again_since;
        let Some(undo) = &mut self.undo else { return };
        let duplicated = report.is_some_and(|report| undo.report(report));
        let older = a.echoed.is_some_and(|echoed| echoed < again_since);
        let original = p.acked > 0 && p.retransmitted && older && self.phase != Phase::Open;
        if original || duplicated {
            self.undo(now);
        }
    }

    /// Returns to the state before the last reduction.
    pub(super) fn undo(&mut self, now: Time) {
        if let Some(undo) = self.undo.take() {
            self.window.cwnd = self.window.cwnd.max(undo.cwnd);
            self.window.ssthresh = self.window.ssthresh.max(undo.ssthresh);
        }
        self.board.undo_lost();
        self.cc.on_undo(&mut self.window, now);
        self.phase = Phase::Open;
        self.board.set_duplicates(0);
    }

    /// Handles the expiry of the retransmission timer (RFC 6298 §5.4–5.6, RFC 5681 §3.1).
    pub(super) fn time_out(&mut self, now: Time) {
        self.losses_mut().rtos += 1;
        // As in Linux, each loss reduces the window once: not again if a recovery has already reduced it.
        let first = match self.phase {
            Phase::Open => true,
            Phase::Reducing => self.is_beyond_mark(),
            Phase::Recovery => self.board.una() >= self.losses().recover,
            Phase::Loss => self.timers.backoffs == 0,
        };
        self.begin_frto(self.phase, now);
        let in_flight = self.board.in_flight();
        let reneged = self.board.reneged();
        let lost = if self.recovery == Recovery::Rack && !reneged {
            self.board.rack_mark_on_timeout(now, Duration::ZERO)
        } else {
            self.board.mark_all_lost(reneged || !self.recovery.uses_sack())
        };
        self.cc.on_lost(lost);
        if first {
            if self.phase == Phase::Open {
                self.remember();
            }
            self.cc.on_congestion(&mut self.window, now, in_flight, Congestion::Timeout);
        }
        // The window is one segment more than the data in flight (Linux: `tcp_enter_loss`). If all is lost,
        // this is the loss window of RFC 5681 §3.1.
        self.window.cwnd = self.board.in_flight() + u64::from(self.window.mss);
        self.cc.on_timeout(&mut self.window, now);
        self.forget_duplicates();
        self.phase = Phase::Loss;
        self.losses_mut().recover = self.board.nxt();
        self.fast = true;
        self.burst = 0;
        self.timers.backoffs += 1;
        self.rtt.backoff();
        self.timers.loss = Time::MAX;
        self.timers.reorder = Time::MAX;
        self.timers.rto = now + self.rtt.rto();
    }

    /// Restarts sending after nothing was in flight. If the sender was idle for so long that the network may
    /// have changed (RFC 5681 §4.1), the window is halved for every RTO that has passed, down to the initial
    /// one, as in Linux.
    #[inline(never)]
    pub(super) fn restart(&mut self, initial: u64, now: Time) {
        let idle = now.since(self.last_sent);
        let rto = self.rtt.rto();
        if idle > rto && rto > Duration::ZERO && !self.cc.owns_recovery() {
            let floor = initial.min(self.window.cwnd);
            self.window.ssthresh = self.window.ssthresh.max(self.window.cwnd / 4 * 3);
            let halvings = (idle.as_nanos() / rto.as_nanos()).min(63);
            self.window.cwnd = (self.window.cwnd >> halvings).max(floor);
            self.usage = Usage { most: 0, until: self.board.nxt() };
            self.used_up = false;
            self.spare = Spare { used: 0, since: now };
        }
        self.cc.on_restart(&mut self.window, now, idle, self.delivery.app_limited != 0);
    }
}
