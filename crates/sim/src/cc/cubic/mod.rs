//! CUBIC (RFC 9438). Windows are bytes; what a division leaves over is carried to the next ACK.
//!
//! Linux (`tcp_cubic.c`) differs from the RFC in these points, which [`CubicRules::Linux`] follows:
//!
//! - the target is W_cubic at `t` plus the smallest RTT, not the smoothed one;
//! - W_est always grows by alpha = 9/17 (the RFC: by 1 once it has reached cwnd_prior), and cwnd
//!   approaches it within a round instead of being set to it;
//! - at least 1 segment in 100 rounds is added, and where W_max is not known (after a slow start that
//!   ended without a loss, or after a time-out) at least 5 % of the window in each round;
//! - a spurious reduction is undone in the window only; the curve starts anew;
//! - rounds in which the application limits what is sent count as time, idle ones do not;
//! - slow start looks for its end by HyStart of 2011, unless the flow's options say otherwise.
//!
//! Both compute ssthresh from cwnd, not from FlightSize; RFC 9438 §4.6 allows it to a sender that does not
//! grow a window that it does not use. Not here: the RFC's reduction to one segment by repeated marks; the
//! threshold is two segments at least.

mod curve;
#[cfg(test)]
mod tests;

use super::hystart::SlowStartEnd;
use super::increase::Increase;
use super::{Ack, Congestion, CongestionControl, CubicRules, Hystart, Options, Phase, Window};
use curve::Curve;
use weir_core::time::{Duration, Time};

/// beta_cubic = 7/10 (RFC 9438 §4.6).
const BETA_NUM: u64 = 7;
const BETA_DEN: u64 = 10;
/// alpha_cubic = 3 (1 - beta) / (1 + beta) = 9/17 (§4.3).
const ALPHA_NUM: u64 = 9;
const ALPHA_DEN: u64 = 17;

/// A congestion avoidance stage.
#[derive(Clone, Copy, Debug)]
struct Stage {
    /// t_epoch, moved on by what does not count as time.
    epoch: Time,
    curve: Curve,
    /// W_est in bytes, and what its last division left over.
    w_est: u64,
    w_est_rem: u64,
    /// What the last division of cwnd's growth left over.
    cwnd_rem: u64,
}

/// What a reduction changes and its undoing brings back (RFC 9438 §4.9.2).
#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    /// W_max in bytes; 0 while it is not known.
    w_max: u64,
    /// Window when congestion last set ssthresh, in bytes. 0 before: W_est is above it, which is what
    /// §4.10 wants of a first slow start that ends without a loss.
    cwnd_prior: u64,
    /// `None` from a reduction to the first growth after it.
    stage: Option<Stage>,
}

/// CUBIC.
#[derive(Clone, Debug)]
pub struct Cubic {
    rules: CubicRules,
    fast_convergence: bool,
    abc: bool,
    increase: Increase,
    end: SlowStartEnd,
    memory: Memory,
    undo: Option<(Memory, SlowStartEnd)>,
    /// The last ACK outside recovery, or the last restart.
    last: Time,
}

impl Cubic {
    /// CUBIC with these options.
    pub fn new(options: &Options) -> Cubic {
        let usual = match options.cubic {
            CubicRules::Rfc9438 => Hystart::PlusPlus,
            CubicRules::Linux => Hystart::Classic,
        };
        let hystart = options.hystart.unwrap_or(usual);
        Cubic {
            rules: options.cubic,
            fast_convergence: options.fast_convergence,
            abc: options.abc,
            increase: Increase::new(options),
            end: SlowStartEnd::new(hystart, options.paced),
            memory: Memory::default(),
            undo: None,
            last: Time::ZERO,
        }
    }

    /// For [`super::CONTROLS`].
    pub(super) fn make(options: &Options) -> Box<dyn CongestionControl> {
        Box::new(Cubic::new(options))
    }

    /// Congestion avoidance by `bytes` acknowledged.
    fn avoid(&mut self, w: &mut Window, ack: &Ack, bytes: u64) {
        let bytes = if self.abc { bytes } else { u64::from(w.mss) };
        let Memory { w_max, cwnd_prior, stage } = &mut self.memory;
        let stage = stage.get_or_insert_with(|| Stage::new(w, *w_max, ack.now));
        match self.rules {
            CubicRules::Rfc9438 => stage.grow(w, ack, bytes, *cwnd_prior),
            CubicRules::Linux => stage.grow_as_linux(w, ack, bytes, *w_max != 0),
        }
    }

    /// Moves the epoch by time that does not count (§5.8).
    fn skip(&mut self, idle: Duration) {
        if let Some(stage) = &mut self.memory.stage {
            stage.epoch += idle;
        }
    }
}

impl Stage {
    fn new(w: &Window, w_max: u64, now: Time) -> Stage {
        let curve = Curve::new(w.cwnd, w_max, w.mss);
        Stage { epoch: now, curve, w_est: w.cwnd, w_est_rem: 0, cwnd_rem: 0 }
    }

    /// §4.2 to §4.5.
    fn grow(&mut self, w: &mut Window, ack: &Ack, bytes: u64, cwnd_prior: u64) {
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

    /// See the module on the differences.
    fn grow_as_linux(&mut self, w: &mut Window, ack: &Ack, bytes: u64, w_max_known: bool) {
        self.estimate(w, bytes, ALPHA_NUM);
        let t = ack.now.since(self.epoch);
        let floor = if w_max_known { u64::from(w.mss) / 100 } else { w.cwnd / 20 };
        let target = self.curve.at(t + ack.min_rtt).max(self.w_est).saturating_sub(w.cwnd);
        self.add(w, bytes, target.max(floor).min(w.cwnd / 2));
    }

    /// Equation 4, by bytes: alpha segments per window, alpha in seventeenths.
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

impl CongestionControl for Cubic {
    fn on_ack(&mut self, w: &mut Window, ack: &Ack) {
        if ack.phase == Phase::Recovery {
            return;
        }
        let since_last = ack.now.since(self.last);
        self.last = ack.now;
        if w.in_slow_start() {
            self.end.on_ack(w, ack);
        }
        if !ack.cwnd_limited {
            if self.rules == CubicRules::Rfc9438 {
                self.skip(since_last);
            }
            return;
        }
        let mut bytes = ack.growth();
        if bytes != 0 && w.in_slow_start() {
            bytes = self.increase.slow_start(w, bytes, ack.phase, self.end.brake());
        }
        if bytes != 0 {
            self.avoid(w, ack, bytes);
        }
    }

    fn on_congestion(&mut self, w: &mut Window, _now: Time, _in_flight: u64, congestion: Congestion) {
        if self.rules == CubicRules::Rfc9438 {
            self.undo = Some((self.memory, self.end));
        }
        self.end.on_congestion(congestion);
        let memory = &mut self.memory;
        memory.cwnd_prior = w.cwnd;
        memory.w_max = match congestion {
            // W_max is where avoidance begins next (§4.8).
            Congestion::Timeout => 0,
            // Fast convergence (§4.7): W_max = cwnd (1 + beta) / 2.
            _ if self.fast_convergence && w.cwnd < memory.w_max => {
                w.cwnd.saturating_mul(BETA_DEN + BETA_NUM) / (2 * BETA_DEN)
            }
            _ => w.cwnd,
        };
        memory.stage = None;
        let reduced = (u128::from(w.cwnd) * u128::from(BETA_NUM) / u128::from(BETA_DEN)) as u64;
        let mss = u64::from(w.mss);
        // Linux counts its window in segments.
        let whole = if self.rules == CubicRules::Linux { reduced / mss.max(1) * mss } else { reduced };
        w.ssthresh = whole.max(2 * mss);
    }

    fn on_undo(&mut self, w: &mut Window, _now: Time) {
        // Not if the window has grown beyond what it was since (§4.9.2).
        if let Some((memory, end)) = self.undo.take() {
            if w.cwnd <= self.memory.cwnd_prior {
                (self.memory, self.end) = (memory, end);
            }
        }
    }

    fn on_restart(&mut self, _w: &mut Window, now: Time, idle: Duration) {
        self.skip(idle);
        self.last = now;
    }
}
