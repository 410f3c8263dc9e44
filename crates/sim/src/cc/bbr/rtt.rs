//! BBR's estimate of the path's delay, and its probing for it (draft §4.1.2, §4.3.5).

use super::window::MIN_SEGMENTS;
use super::{Bbr, Mode};
use crate::cc::{Ack, Window};
use weir_core::time::{Duration, Time};

/// Validity of a delay estimate.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// Duration of a probe once little is in flight; it also lasts for a round.
const PROBE_TIME: Duration = Duration::from_millis(200);

impl Bbr {
    pub(super) fn update_min_rtt(&mut self, w: &mut Window, ack: &Ack) {
        let expired = ack.now > self.min_rtt_stamp + MIN_RTT_WINDOW;
        if let Some(rtt) = ack.rtt {
            let smaller = self.min_rtt.is_none_or(|min| rtt < min);
            if smaller || (expired && !maybe_delayed(w, ack)) {
                self.min_rtt = Some(rtt);
                self.min_rtt_stamp = ack.now;
            }
        }
        // An idle flow has drained its queue already.
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd(w);
            self.probe_done = None;
            self.probe_limited = None;
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(w, ack);
        }
        if ack.delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn probe_rtt(&mut self, w: &mut Window, ack: &Ack) {
        let from = self.probe_limited.map_or(ack.total_delivered, |(from, _)| from);
        self.probe_limited = Some((from, ack.total_delivered + ack.in_flight));
        match self.probe_done {
            None if ack.in_flight <= MIN_SEGMENTS * u64::from(w.mss) => {
                self.probe_done = Some(ack.now + PROBE_TIME);
                self.probe_round_done = false;
                self.round.end = ack.total_delivered;
            }
            None => {}
            Some(_) => {
                self.probe_round_done |= self.round.started;
                if self.probe_round_done {
                    self.check_probe_done(w, ack.now);
                }
            }
        }
    }

    pub(super) fn check_probe_done(&mut self, w: &mut Window, now: Time) {
        if self.probe_done.is_none_or(|done| now <= done) {
            return;
        }
        self.min_rtt_stamp = now;
        w.cwnd = w.cwnd.max(self.prior_cwnd);
        if self.full.reached {
            self.enter_probe_bw(now);
        } else {
            self.mode = Mode::Startup;
        }
    }

    /// Returns whether a segment sent at this total of delivered bytes was limited by a delay probe.
    pub(super) fn limited_by_probe(&self, prior_delivered: u64) -> bool {
        self.probe_limited.is_some_and(|(from, to)| (from..=to).contains(&prior_delivered))
    }
}

/// Returns whether the receiver may have delayed this ACK: a lone segment in its round, and not a full one.
fn maybe_delayed(w: &Window, ack: &Ack) -> bool {
    let alone = ack.sample.is_some_and(|s| s.prior_delivered + ack.delivered == ack.total_delivered);
    alone && ack.acked < u64::from(w.mss)
}
