//! BBR's congestion window (draft-cardwell-iccrg-bbr-congestion-control-00 §4.2.3).

use super::bandwidth::{bytes_in, mul_div};
use super::{Bbr, Mode, CYCLE_UP, UNIT};
use crate::cc::{Ack, Phase, Window};

/// Smallest window, in segments: two in flight and two for ACKs of two segments each.
pub(super) const MIN_SEGMENTS: u64 = 4;
/// Pacing rate in bytes per second (1.2 Mb/s) below which a host sends single segments, and at least two
/// above.
const ONE_SEGMENT_RATE: u64 = 1_200_000 / 8;
/// Payload of a giant frame in bytes.
const GIANT: u64 = 65_536 - 1 - 320;

impl Bbr {
    /// Sets the window after an ACK.
    pub(super) fn set_cwnd(&mut self, w: &mut Window, ack: &Ack, phase: Phase) {
        let min = MIN_SEGMENTS * u64::from(w.mss);
        if ack.delivered > 0 && !self.recover_or_restore(w, ack, phase) {
            let target = self.target(w);
            if self.full.reached {
                w.cwnd = (w.cwnd + ack.delivered).min(target);
            } else if w.cwnd < target || ack.total_delivered < self.initial_cwnd {
                w.cwnd += ack.delivered;
            }
            w.cwnd = w.cwnd.max(min);
        }
        if self.mode == Mode::ProbeRtt {
            w.cwnd = w.cwnd.min(min);
        }
    }

    /// Returns the window of `gain` times the BDP in bytes, with room for the host's bursts.
    pub(super) fn inflight(&self, w: &Window, gain: u64) -> u64 {
        self.quantized(w, self.bdp(w, self.max_bw.max(), gain))
    }

    /// Estimates the bytes in the network when the next segment may leave, given `in_flight` now. Data
    /// delivered until then is taken off in whole segments. If the gain probes for more, the data that leaves
    /// then is added (`bbr_packets_in_net_at_edt`).
    pub(super) fn in_network(&self, w: &Window, ack: &Ack, in_flight: u64, gain: u64) -> u64 {
        let mss = u64::from(w.mss);
        let leaves = if gain > UNIT { self.burst(mss) * mss } else { 0 };
        let delivered = bytes_in(self.bandwidth(), ack.gap) / mss * mss;
        (in_flight + leaves).saturating_sub(delivered)
    }

    fn target(&self, w: &Window) -> u64 {
        let bw = self.bandwidth();
        let extra = if self.full.reached { self.aggregation.extra(bw) } else { 0 };
        self.quantized(w, self.bdp(w, bw, self.cwnd_gain()) + extra)
    }

    /// Returns `gain` times the BDP in bytes; before the first delay sample, the initial window.
    fn bdp(&self, w: &Window, bw: u64, gain: u64) -> u64 {
        match self.min_rtt {
            None => self.initial_cwnd.max(u64::from(w.mss)),
            Some(rtt) => mul_div(bytes_in(bw, rtt), gain, UNIT),
        }
    }

    /// Rounds as Linux does: whole segments, three bursts of the host, an even number for delayed ACKs, and
    /// room to probe with.
    fn quantized(&self, w: &Window, bytes: u64) -> u64 {
        let mss = u64::from(w.mss);
        let mut segments = bytes.div_ceil(mss) + 3 * self.burst(mss);
        segments += segments % 2;
        if matches!(self.mode, Mode::ProbeBw { phase: CYCLE_UP, .. }) {
            segments += 2;
        }
        segments.saturating_mul(mss)
    }

    /// Returns the segments that a host hands to its interface at once: about 1 ms of them.
    fn burst(&self, mss: u64) -> u64 {
        ((self.pacing_bytes() >> 10).min(GIANT) / mss).max(self.least_burst())
    }

    /// Returns the smallest burst in segments.
    pub(super) fn least_burst(&self) -> u64 {
        if self.pacing_bytes() < ONE_SEGMENT_RATE {
            1
        } else {
            2
        }
    }

    /// Returns the pacing rate in bytes per second.
    fn pacing_bytes(&self) -> u64 {
        self.pacing.map_or(0, |r| r.bps() / 8)
    }

    /// Handles recovery. In the first round one segment leaves for each delivered, later up to two.
    /// Afterwards the earlier window returns. Returns true if the window must not grow otherwise.
    fn recover_or_restore(&mut self, w: &mut Window, ack: &Ack, phase: Phase) -> bool {
        if ack.lost > 0 {
            w.cwnd = w.cwnd.saturating_sub(ack.lost).max(u64::from(w.mss));
        }
        if phase == Phase::Recovery && self.prior_phase != Phase::Recovery {
            self.conservation = true;
            self.round.end = ack.total_delivered;
            w.cwnd = ack.in_flight + ack.delivered;
        } else if phase == Phase::Open && self.prior_phase != Phase::Open {
            self.conservation = false;
            w.cwnd = w.cwnd.max(self.prior_cwnd);
        }
        self.prior_phase = phase;
        if self.conservation {
            w.cwnd = w.cwnd.max(ack.in_flight + ack.delivered);
        }
        self.conservation
    }

    /// Saves the last good window: one reduced neither by recovery nor by a delay probe.
    pub(super) fn save_cwnd(&mut self, w: &Window) {
        let good = self.prior_phase == Phase::Open && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if good { w.cwnd } else { self.prior_cwnd.max(w.cwnd) };
    }
}
