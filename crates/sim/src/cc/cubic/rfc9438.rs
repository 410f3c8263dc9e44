//! Window growth of CUBIC in congestion avoidance by RFC 9438 §4.2 to §4.5. Windows are bytes; the remainder
//! of a division is carried to the next ACK.

use super::curve::Curve;
use crate::cc::{Ack, Window};
use weir_core::time::Time;

/// alpha_cubic = 3 (1 - beta) / (1 + beta) = 9/17 (§4.3).
const ALPHA_NUM: u64 = 9;
const ALPHA_DEN: u64 = 17;

/// A congestion avoidance stage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage {
    /// t_epoch, advanced by periods that do not count as time.
    pub(super) epoch: Time,
    curve: Curve,
    /// W_est in bytes, and the remainder of its last division.
    w_est: u64,
    w_est_rem: u64,
    /// Remainder of the last division of cwnd's growth.
    cwnd_rem: u64,
}

impl Stage {
    pub(super) fn new(w: &Window, w_max: u64, now: Time) -> Stage {
        let curve = Curve::new(w.cwnd, w_max, w.mss);
        Stage { epoch: now, curve, w_est: w.cwnd, w_est_rem: 0, cwnd_rem: 0 }
    }

    /// Grows the window by an ACK (§4.2 to §4.5).
    pub(super) fn grow(&mut self, w: &mut Window, ack: &Ack, bytes: u64, cwnd_prior: u64) {
        let alpha = if self.w_est >= cwnd_prior { ALPHA_DEN } else { ALPHA_NUM };
        self.estimate(w, bytes, alpha);
        let t = ack.now.since(self.epoch);
        if self.curve.at(t) < self.w_est {
            w.cwnd = w.cwnd.max(self.w_est);
            return;
        }
        let target = self.curve.at(t + ack.srtt).clamp(w.cwnd, w.cwnd.saturating_add(w.cwnd / 2));
        self.add(w, bytes, target - w.cwnd);
    }

    /// Updates W_est by equation 4, in bytes: alpha segments per window, with alpha in seventeenths.
    fn estimate(&mut self, w: &Window, bytes: u64, alpha: u64) {
        let n = bytes.saturating_mul(alpha * u64::from(w.mss)).saturating_add(self.w_est_rem);
        let window = w.cwnd.max(1).saturating_mul(ALPHA_DEN);
        self.w_est = self.w_est.saturating_add(n / window);
        self.w_est_rem = n % window;
    }

    /// Adds `per_window` bytes for each window acknowledged.
    fn add(&mut self, w: &mut Window, bytes: u64, per_window: u64) {
        let n = bytes.saturating_mul(per_window).saturating_add(self.cwnd_rem);
        let window = w.cwnd.max(1);
        w.cwnd = w.cwnd.saturating_add(n / window);
        self.cwnd_rem = n % window;
    }
}
