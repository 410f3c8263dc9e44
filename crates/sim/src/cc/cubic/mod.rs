//! CUBIC (RFC 9438). Windows are bytes; the remainder of a division is carried to the next ACK.
//!
//! Linux (`tcp_cubic.c`) differs from the RFC in these points, which [`CubicRules::Linux`] follows:
//!
//! - The target is W_cubic at `t` plus the smallest RTT, not the smoothed one.
//! - W_est always grows by alpha = 8/15. In the RFC it grows by 9/17, and by 1 once it has reached
//!   cwnd_prior. Linux moves cwnd towards W_est within a round instead of setting it.
//! - At least 1 segment in 100 rounds is added. While W_max is unknown (after a slow start that ended without
//!   a loss, or after a time-out), at least 5 % of the window is added in each round.
//! - Windows are whole segments. The target's distance from W_max and the result of fast convergence are
//!   rounded down, which matters at windows of ten segments. The pace is recomputed when the window changes,
//!   and otherwise 32 times a second. Segments acknowledged at a slower pace count at once at a faster one
//!   (`linux`).
//! - Undoing a spurious reduction restores the window only; the curve restarts.
//! - Rounds limited by the application count as time; idle ones do not.
//! - Slow start looks for its end by HyStart of 2011, unless the flow's options say otherwise.
//!
//! Both compute ssthresh from cwnd, not from FlightSize. RFC 9438 §4.6 allows it to a sender that does not
//! grow an unused window. Left out: the RFC's reduction to one segment by repeated marks; the threshold is
//! two segments at least.

mod curve;
mod linux;
mod rfc9438;
#[cfg(test)]
mod tests;

use super::hystart::SlowStartEnd;
use super::increase::Increase;
use super::{Ack, Congestion, CongestionControl, CubicRules, Hystart, Options, Window};
use weir_core::time::{Duration, Time};

/// beta_cubic = 7/10 (RFC 9438 §4.6).
const BETA_NUM: u64 = 7;
const BETA_DEN: u64 = 10;

/// State that a reduction changes and its undoing restores (RFC 9438 §4.9.2).
#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    /// W_max in bytes; 0 while it is not known.
    w_max: u64,
    /// Window when congestion last set ssthresh, in bytes. Before that it is 0, so W_est is above it. §4.10
    /// requires this for a first slow start that ends without a loss.
    cwnd_prior: u64,
    /// `None` from a reduction to the first growth after it.
    stage: Option<Stage>,
}

/// A congestion avoidance stage.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Rfc9438(rfc9438::Stage),
    Linux(linux::Stage),
}

/// CUBIC sender.
#[derive(Clone, Debug)]
pub struct Cubic {
    rules: CubicRules,
    fast_convergence: bool,
    abc: bool,
    increase: Increase,
    end: SlowStartEnd,
    memory: Memory,
    /// Growth state of the Linux rules.
    growth: linux::Growth,
    undo: Option<(Memory, SlowStartEnd)>,
    /// Time of the last ACK outside recovery, or of the last restart.
    last: Time,
}

impl Cubic {
    /// Creates CUBIC with these options.
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
            growth: linux::Growth::new(),
            undo: None,
            last: Time::ZERO,
        }
    }

    /// Constructor for [`super::CONTROLS`].
    pub(super) fn make(options: &Options) -> Box<dyn CongestionControl> {
        Box::new(Cubic::new(options))
    }

    /// Begins congestion avoidance at the window `w_max`, as if it had been reached before.
    pub(super) fn begin_at(&mut self, w_max: u64) {
        self.memory = Memory { w_max, cwnd_prior: w_max, stage: None };
        self.growth.reset();
    }

    /// Grows the window in congestion avoidance by `bytes` acknowledged.
    fn avoid(&mut self, w: &mut Window, ack: &Ack, bytes: u64) {
        let bytes = if self.abc { bytes } else { u64::from(w.mss) };
        let Memory { w_max, cwnd_prior, stage } = &mut self.memory;
        let linux = self.rules == CubicRules::Linux;
        let stage = stage.get_or_insert_with(|| match linux {
            true => Stage::Linux(linux::Stage::new(w, *w_max, ack.now)),
            false => Stage::Rfc9438(rfc9438::Stage::new(w, *w_max, ack.now)),
        });
        match stage {
            Stage::Rfc9438(stage) => stage.grow(w, ack, bytes, *cwnd_prior),
            Stage::Linux(stage) => self.growth.avoid(stage, w, ack, bytes, *w_max != 0),
        }
    }

    /// Moves the epoch by time that does not count (§5.8).
    fn skip(&mut self, idle: Duration) {
        match &mut self.memory.stage {
            Some(Stage::Rfc9438(stage)) => stage.epoch += idle,
            Some(Stage::Linux(stage)) => stage.epoch += idle,
            None => {}
        }
    }
}

impl CongestionControl for Cubic {
    fn on_ack(&mut self, w: &mut Window, ack: &Ack) {
        if ack.phase.reduces() {
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
            self.undo = Some((self.memory, self.end.clone()));
        }
        self.end.on_congestion(congestion);
        let mss = u64::from(w.mss);
        // Linux counts windows in segments.
        let unit = if self.rules == CubicRules::Linux { mss.max(1) } else { 1 };
        let share = |num: u64, den: u64| {
            (u128::from(w.cwnd) * u128::from(num) / u128::from(den)) as u64 / unit * unit
        };
        let memory = &mut self.memory;
        memory.cwnd_prior = w.cwnd;
        memory.w_max = match congestion {
            // Avoidance itself sets the next W_max when it begins (§4.8).
            Congestion::Timeout => 0,
            // Fast convergence (§4.7): W_max = cwnd (1 + beta) / 2.
            _ if self.fast_convergence && w.cwnd < memory.w_max => share(BETA_DEN + BETA_NUM, 2 * BETA_DEN),
            _ => w.cwnd,
        };
        memory.stage = None;
        self.growth.reset();
        w.ssthresh = share(BETA_NUM, BETA_DEN).max(2 * mss);
    }

    fn on_undo(&mut self, w: &mut Window, _now: Time) {
        // The undo is skipped if the window has since grown beyond its earlier value (§4.9.2).
        if let Some((memory, end)) = self.undo.take() {
            if w.cwnd <= self.memory.cwnd_prior {
                (self.memory, self.end) = (memory, end);
            }
        }
    }

    fn on_restart(&mut self, _w: &mut Window, now: Time, idle: Duration, _by_application: bool) {
        self.skip(idle);
        self.last = now;
    }
}
