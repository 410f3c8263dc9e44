//! State changes of BBR, from start-up to probing for bandwidth (draft §4.3).

use super::{Bbr, Mode, CYCLE, FULL_ROUNDS, UNIT};
use crate::cc::{Ack, Window};
use weir_core::time::Time;

impl Bbr {
    /// Checks for a full pipe (§4.3.2.2).
    pub(super) fn check_full_pipe(&mut self, app_limited: bool) {
        if self.full.reached || !self.round.started || app_limited {
            return;
        }
        let bw = self.max_bw.max();
        if bw >= self.full.bw.saturating_add(self.full.bw / 4) {
            (self.full.bw, self.full.rounds) = (bw, 0);
            return;
        }
        self.full.rounds += 1;
        self.full.reached = self.full.rounds >= FULL_ROUNDS;
    }

    /// Advances the gain cycle (§4.3.4.3). Each phase lasts for the delay. Probing lasts until the queue
    /// shows it or a loss occurs. Draining ends early once the queue is gone.
    pub(super) fn update_cycle(&mut self, w: &Window, ack: &Ack) {
        let Mode::ProbeBw { phase, since } = self.mode else { return };
        let gain = self.pacing_gain();
        let full = self.min_rtt.is_some_and(|rtt| ack.now.since(since) > rtt);
        let in_network = || self.in_network(w, ack, ack.prior_in_flight, gain);
        let next = match gain {
            UNIT => full,
            g if g > UNIT => full && (ack.lost > 0 || in_network() >= self.inflight(w, g)),
            _ => full || in_network() <= self.inflight(w, UNIT),
        };
        if next {
            self.mode = Mode::ProbeBw { phase: (phase + 1) % CYCLE.len(), since: ack.now };
        }
    }

    /// Begins the cycle in any phase but the one that drains (§4.3.4.2).
    pub(super) fn enter_probe_bw(&mut self, now: Time) {
        let phase = (CYCLE.len() - self.rng.below(CYCLE.len() as u64 - 1) as usize) % CYCLE.len();
        self.mode = Mode::ProbeBw { phase, since: now };
    }

    /// Enters and leaves the drain state (§4.3.3).
    pub(super) fn check_drain(&mut self, w: &Window, ack: &Ack) {
        // The gain before the change.
        let gain = self.pacing_gain();
        if self.mode == Mode::Startup && self.full.reached {
            self.mode = Mode::Drain;
        }
        let drains = self.mode == Mode::Drain;
        if drains && self.in_network(w, ack, ack.in_flight, gain) <= self.inflight(w, UNIT) {
            self.enter_probe_bw(ack.now);
        }
    }
}
