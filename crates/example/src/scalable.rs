//! Scalable TCP (Kelly, ACM CCR 33(2), 2003): a hundredth of a segment more for each that is acknowledged, an
//! eighth less after a loss.

use weir_core::time::Time;
use weir_sim::cc::{Ack, Congestion, CongestionControl, Window};

/// Scalable TCP, with the acknowledged bytes that have not made the window a byte larger yet.
#[derive(Debug, Default)]
pub struct Scalable(u64);

impl CongestionControl for Scalable {
    fn on_ack(&mut self, w: &mut Window, ack: &Ack) {
        if ack.phase.reduces() || !ack.cwnd_limited {
            return;
        }
        let slow_start = ack.growth().min(w.ssthresh.saturating_sub(w.cwnd));
        self.0 += ack.growth() - slow_start;
        w.cwnd += slow_start + self.0 / 100;
        self.0 %= 100;
    }

    fn on_congestion(&mut self, w: &mut Window, _now: Time, _in_flight: u64, _why: Congestion) {
        w.ssthresh = (w.cwnd - w.cwnd / 8).max(2 * u64::from(w.mss));
    }
}
