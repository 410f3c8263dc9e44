//! Hybrid slow start (Ha and Rhee, "Taming the elephants", Computer Networks 55, 2011), with the thresholds
//! of Linux's CUBIC, which ends slow start in this way.
//!
//! Slow start ends when the ACKs of one round have arrived in one train for as long as the path's delay, or
//! when the delay of a round has grown. Unlike with HyStart++ this end is final, so jitter can bring it about
//! too early.

use super::threshold::rtt_thresh;
use crate::cc::{Ack, Window};
use weir_core::time::{Duration, Time};

/// Window in segments below which the detector is off.
const LOW_WINDOW: u64 = 16;
/// Minimum samples in a round before its delay counts.
const MIN_SAMPLES: u32 = 8;
/// Maximum gap between the ACKs of one train.
const ACK_DELTA: Duration = Duration::from_millis(2);
/// Allowance for the bursts of a host in a train: four giant frames, at most 1 ms.
const BURST_BYTES: u64 = 4 * 65_536;
const BURST_LONGEST: Duration = Duration::from_millis(1);

/// Detector state of one slow start.
#[derive(Clone, Copy, Debug)]
pub struct Classic {
    paced: bool,
    found: bool,
    /// SND.NXT at the start of the round.
    end: u64,
    began: Time,
    /// Time of the last ACK of the train that began the round.
    last_ack: Time,
    current_min: Duration,
    samples: u32,
}

impl Classic {
    pub(super) fn new(paced: bool) -> Classic {
        Classic {
            paced,
            found: false,
            end: 0,
            began: Time::ZERO,
            last_ack: Time::ZERO,
            current_min: Duration::MAX,
            samples: 0,
        }
    }

    /// Creates the state of the slow start after a time-out.
    pub(super) fn anew(&self) -> Classic {
        Classic::new(self.paced)
    }

    /// Returns true when slow start must end.
    pub(super) fn on_ack(&mut self, w: &Window, ack: &Ack) -> bool {
        let Some(rtt) = ack.rtt else { return false };
        if self.found {
            return false;
        }
        if ack.una > self.end {
            self.begin_round(ack);
        }
        if w.cwnd < LOW_WINDOW * u64::from(w.mss) {
            return false;
        }
        self.found = self.train_is_long(w, ack) || self.delay_has_grown(rtt, ack.min_rtt);
        self.found
    }

    fn begin_round(&mut self, ack: &Ack) {
        self.end = ack.nxt;
        self.began = ack.now;
        self.last_ack = ack.now;
        self.current_min = Duration::MAX;
        self.samples = 0;
    }

    /// Returns whether the train is longer than the delay. If the sender does not pace, Linux takes half of
    /// the delay: bursts arrive at twice the rate of the acknowledged data.
    fn train_is_long(&mut self, w: &Window, ack: &Ack) -> bool {
        if ack.now.since(self.last_ack) > ACK_DELTA {
            return false;
        }
        self.last_ack = ack.now;
        let long = (ack.min_rtt + burst(w, ack.srtt)).as_nanos();
        let long = if self.paced { long } else { long / 2 };
        ack.now.since(self.began).as_nanos() > long
    }

    fn delay_has_grown(&mut self, rtt: Duration, base: Duration) -> bool {
        self.current_min = self.current_min.min(rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        self.current_min > base + rtt_thresh(base)
    }
}

/// Returns the duration of a host's bursts at its slow-start rate, 2 cwnd / srtt.
pub(super) fn burst(w: &Window, srtt: Duration) -> Duration {
    let twice = w.cwnd.saturating_mul(2).max(1);
    let ns = u128::from(BURST_BYTES) * u128::from(srtt.as_nanos()) / u128::from(twice);
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX)).min(BURST_LONGEST)
}
