//! Choice of the next segment, and use of the congestion window: an unused window does not grow, and comes
//! down after a while.

use super::scoreboard::{Piece, Sent};
use super::Sender;
use crate::cc::{Departure, Phase};
use crate::tcp::config::{Recovery, TcpConfig};
use weir_core::time::Time;

/// Piece of the stream that leaves now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Start and length, including the FIN.
    pub piece: Piece,
    /// True for a retransmission.
    pub again: bool,
    /// True if it ends with the FIN.
    pub fin: bool,
    /// True if it reports that the window was reduced (CWR).
    pub cwr: bool,
    /// True if it is the second of a pair and carries PSH.
    pub push: bool,
}

/// Choice of the next piece, with fields as in [`Outgoing`].
struct Choice {
    piece: Piece,
    again: bool,
    push: bool,
}

/// Use of the congestion window (as Linux's `tcp_is_cwnd_limited`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// Most bytes in flight in this window of data.
    pub(super) most: u64,
    /// End of this window of data.
    pub(super) until: u64,
}

/// Part of the congestion window that the application leaves unused.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spare {
    /// Most bytes outstanding since `since`.
    pub(super) used: u64,
    /// Time when the window was last used up, or reduced towards the used part.
    pub(super) since: Time,
}

impl Sender {
    /// Takes the next piece that may leave at `now`, accounted as sent. Call it until it returns `None`.
    #[inline(always)]
    pub fn transmit(&mut self, config: &TcpConfig, now: Time) -> Option<Outgoing> {
        let Some(choice) = self.choose(config, now) else {
            if core::mem::take(&mut self.sending) {
                self.timers_on_all_sent(now);
                self.paired = false;
                self.validate(config, now);
            }
            return None;
        };
        self.sending = true;
        Some(self.leave(config, choice, now))
    }

    /// Returns whether nothing is in flight and nothing is to be sent. Then [`Sender::transmit`] would return
    /// `None` and change nothing.
    #[inline]
    pub fn rests(&self) -> bool {
        self.is_idle() && !self.waits_for_pace && !self.sending
    }

    #[inline(always)]
    fn choose(&mut self, config: &TcpConfig, now: Time) -> Option<Choice> {
        if self.is_idle() {
            self.waits_for_pace = false;
            return None;
        }
        self.waits_for_pace = self.is_early(now);
        if self.waits_for_pace {
            return None;
        }
        if self.probing {
            if let Some((piece, again)) = self.choose_probe() {
                return Some(Choice { piece, again, push: false });
            }
        }
        if let Some(piece) = self.board.next_lost() {
            if let Some(new) = self.choose_new_first() {
                return Some(self.pair(new));
            }
            if self.fast || self.fits(piece.len) && !self.sends_new_first() {
                self.fast = false;
                return Some(Choice { piece, again: true, push: false });
            }
            return None;
        }
        if self.board.is_empty() && self.board.nxt() < self.limit && self.last_sent < Time::MAX {
            self.restart(u64::from(config.initial_window) * u64::from(self.window.mss), now);
        }
        let Some(piece) = self.choose_new(config.nagle) else {
            let piece = self.choose_rescue()?;
            return Some(Choice { piece, again: true, push: false });
        };
        if !self.fits(piece.len) {
            self.used_up = true;
            return None;
        }
        if config.tso_segments > 1 && !self.worth_a_burst(config) {
            return None;
        }
        Some(self.pair(piece))
    }

    /// Returns the choice of a new piece, with PSH if it is the second of a pair.
    fn pair(&mut self, piece: Piece) -> Choice {
        let push = self.paired;
        self.paired = !push;
        Choice { piece, again: false, push }
    }

    pub(super) fn fits(&self, len: u32) -> bool {
        let in_flight = self.board.in_flight();
        in_flight == 0 || in_flight + u64::from(len.min(self.window.mss)) <= self.window.cwnd
    }

    /// Chooses the next new piece, by the written data and the peer's window.
    #[inline(always)]
    pub(super) fn choose_new(&mut self, nagle: bool) -> Option<Piece> {
        let start = self.board.nxt();
        let mss = u64::from(self.window.mss);
        let written = self.limit.saturating_sub(start);
        if written == 0 {
            self.note_app_limited();
            return None;
        }
        let room = self.edge.saturating_sub(start);
        let payload = written.min(self.fin - start).min(mss);
        let mut len = payload.min(room);
        let ends = start + len == self.fin;
        // The FIN needs no room in the peer's window.
        len += u64::from(ends);
        if len == 0 {
            self.wait_for_window();
            return None;
        }
        // Silly windows and Nagle (RFC 9293 §3.8.6.2.1, §3.7.4): a partial segment leaves only at the end, or
        // when nothing is in flight. Without Nagle all data that the application has written leaves.
        let waits = || nagle || room < payload && !self.is_within_chunk();
        if len < mss && !ends && !self.board.is_empty() && waits() {
            return None;
        }
        Some(Piece { start, len: len as u32 })
    }

    /// Returns whether the next new segment is handed down together with the one before. Then it may be the
    /// part of a segment with which the peer's window ends (Linux: `tcp_mss_split_point`). Alone such a part
    /// waits for the window (`tcp_snd_wnd_test`).
    fn is_within_chunk(&self) -> bool {
        self.paired || self.burst > 0
    }

    /// Chooses a piece when there is no new data: data that may be lost, and once in each recovery the last
    /// segment (NextSeg rules 3 and 4 of RFC 6675 §4). The rescue is for a tail without any news. A tail that
    /// has been retransmitted waits for its own answer.
    #[inline(never)]
    fn choose_rescue(&mut self) -> Option<Piece> {
        if self.recovery != Recovery::Sack || self.phase != Phase::Recovery {
            return None;
        }
        let mss = self.window.mss;
        if let Some(piece) = self.board.next_unsacked() {
            return Some(piece).filter(|_| self.fits(mss));
        }
        if self.board.una() <= self.losses().rescued || !self.fits(mss) {
            return None;
        }
        self.losses_mut().rescued = self.losses().recover;
        self.board.last_unsacked().filter(|piece| !self.board.sent_again(piece.start))
    }

    /// Chooses the tail loss probe to send, and returns whether it was sent before.
    #[inline(never)]
    fn choose_probe(&mut self) -> Option<(Piece, bool)> {
        self.probing = false;
        let start = self.board.nxt();
        let room = self.limit.min(self.edge).saturating_sub(start);
        if room > 0 && start < self.fin {
            let len = room.min(u64::from(self.window.mss));
            let len = if start + len >= self.fin { self.fin - start + 1 } else { len };
            return Some((Piece { start, len: len as u32 }, false));
        }
        if let Some(probe) = &mut self.timers.probe {
            probe.retransmitted = true;
        }
        self.board.last().map(|piece| (piece, true))
    }

    /// Returns whether a burst is worth sending. With segmentation offload a sender waits for a large burst,
    /// or until no data in flight could open the window further.
    #[inline(never)]
    fn worth_a_burst(&mut self, config: &TcpConfig) -> bool {
        let most = config.tso_segments.min(self.cc.most_at_once());
        if most <= 1 {
            return true;
        }
        if self.burst > 0 {
            self.burst -= 1;
            return true;
        }
        let mss = u64::from(self.window.mss);
        let window = self.window.cwnd.min(self.edge.saturating_sub(self.board.una()));
        // Linux: no more than a third of the window (`tcp_tso_win_divisor`).
        let burst = u64::from(most).min((window / mss / 3).max(1));
        let start = self.board.nxt();
        let by_cwnd = self.window.cwnd.saturating_sub(self.board.in_flight());
        let by_peer = self.edge.saturating_sub(start);
        let room = by_cwnd.min(by_peer);
        let all = self.limit - start;
        if room < burst * mss && room < all && !self.board.is_empty() {
            // Linux (`tcp_tso_should_defer`): a segment that waits for the congestion window is limited by
            // it.
            self.used_up |= by_cwnd <= by_peer;
            return false;
        }
        self.burst = (burst - 1) as u32;
        true
    }

    #[inline(never)]
    fn wait_for_window(&mut self) {
        if self.board.is_empty() && self.timers.persist == Time::MAX {
            let last = if self.last_sent == Time::MAX { Time::ZERO } else { self.last_sent };
            self.timers.persist = last + self.rtt.rto();
        }
    }

    /// Accounts a piece as retransmitted.
    #[inline(never)]
    fn leave_again(&mut self, piece: Piece, sent: Sent) {
        self.restart_on_first(piece.start, sent.at);
        if !self.board.awaits_resent() {
            self.losses_mut().again_since = sent.at;
        }
        self.board.retransmitted(piece.start, sent);
        self.losses_mut().retransmits += 1;
        if let Some(undo) = &mut self.undo {
            undo.note(piece);
        }
    }

    /// Accounts a piece as sent.
    #[inline(always)]
    fn leave(&mut self, config: &TcpConfig, choice: Choice, now: Time) -> Outgoing {
        let Choice { piece, again, push } = choice;
        if self.board.is_empty() {
            self.delivery.first_sent = now;
            self.delivery.at = now;
        }
        let sent = Sent {
            at: now,
            delivered: self.delivery.bytes,
            delivered_at: self.delivery.at,
            first_sent: self.delivery.first_sent,
            app_limited: self.delivery.app_limited != 0,
        };
        if again {
            self.leave_again(piece, sent);
        } else {
            self.board.sent_new(piece.len, sent);
        }
        if self.phase.reduces() {
            self.losses_mut().prr.sent(u64::from(piece.len));
        }
        let in_flight = self.board.in_flight();
        self.usage.most = self.usage.most.max(in_flight);
        if let Some(records) = &mut self.records {
            let last = Some(self.last_sent).filter(|&last| last < Time::MAX);
            records.leave(piece, again, last.map(|last| now.since(last)));
        }
        self.last_sent = now;
        self.timers_on_sent(!again, now);
        let Piece { start, len } = piece;
        let room = self.edge.saturating_sub(self.board.nxt());
        self.space(config, &Departure { now, start, len, again, in_flight, room });
        let cwr = !again && core::mem::take(&mut self.cwr);
        let end = piece.start + u64::from(piece.len);
        Outgoing { piece, again, fin: end > self.fin, cwr, push }
    }

    /// Returns whether the window alone kept the sender from sending more.
    pub(super) fn cwnd_limited(&mut self) -> bool {
        let (usage, used_up) = (self.usage, self.used_up);
        let limited = if self.window.in_slow_start() {
            self.window.cwnd < 2 * usage.most.max(self.board.in_flight())
        } else {
            used_up
        };
        if self.board.una() >= usage.until {
            self.usage = Usage { most: self.board.in_flight(), until: self.board.nxt() };
            self.used_up = false;
        }
        limited
    }

    /// Reduces a window that the application left partly unused for a whole RTO. It moves halfway to the used
    /// part, as in Linux (`tcp_cwnd_application_limited`, after RFC 2861 §3.2).
    pub(super) fn validate(&mut self, config: &TcpConfig, now: Time) {
        let outstanding = self.board.nxt() - self.board.una();
        let most = self.usage.most.max(outstanding);
        if self.used_up || self.window.in_slow_start() && self.window.cwnd < 2 * most {
            self.spare = Spare { used: 0, since: now };
            return;
        }
        self.spare.used = self.spare.used.max(outstanding);
        if now.since(self.spare.since) < self.rtt.rto() || self.cc.owns_recovery() {
            return;
        }
        let used = self.spare.used.max(u64::from(config.initial_window) * u64::from(self.window.mss));
        let waits = self.limit >= self.board.nxt() + u64::from(self.window.mss);
        if self.phase == Phase::Open && !waits && used < self.window.cwnd {
            self.window.ssthresh = self.window.ssthresh.max(self.window.cwnd / 4 * 3);
            self.window.cwnd = self.window.cwnd.midpoint(used);
        }
        self.spare = Spare { used: 0, since: now };
    }
}
