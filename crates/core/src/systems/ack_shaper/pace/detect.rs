//! Detection of slow start from the arriving progress (fig. 5).

use super::{Pace, BOUNDED, COUNT, HALVED, RECEIVED, REPAYS};
use crate::systems::ack_shaper::SlowStart;
use crate::time::Duration;

/// Silence after which the detector takes its next step, in bytes at the flow's rate. A receiver that merges
/// segments (GRO) acknowledges up to this many at once.
const SILENCE: u64 = 1 << 16;

impl Pace {
    /// Runs the detector. Returns true if slow start has just been detected.
    #[inline(always)]
    pub(super) fn detect(&mut self, slow_start: SlowStart, rtt: Duration, mss: u16, at: u64) -> bool {
        !self.is(BOUNDED) && self.detect_by_arrivals(slow_start, rtt, mss, at)
    }

    /// Runs the detector of [`Pace::detect`], for a sender that nothing else bounds.
    #[inline(never)]
    fn detect_by_arrivals(&mut self, slow_start: SlowStart, rtt: Duration, mss: u16, at: u64) -> bool {
        let SlowStart::Detect { enter_milli, exit_milli, gated } = slow_start else {
            return false;
        };
        let repays = if self.is(RECEIVED) { self.is(REPAYS) } else { self.ahead > 0 };
        if !self.smooth() || repays {
            return false; // recovery's bursts say nothing about slow start
        }
        if !self.in_slow_start() {
            let enter = self.smooth_milli > enter_milli;
            self.set(HALVED, enter);
            return enter;
        }
        let judged = !gated || (self.mark != 0 && at.saturating_sub(self.mark) >= self.settled(rtt, mss));
        if judged && self.smooth_milli < exit_milli {
            self.set(HALVED, false);
        }
        false
    }

    /// Adds the progress since the detector's last step to the moving average. Returns false if the step is
    /// still to come. Where less than a segment is released at a time (fig. 6) most release times see no
    /// progress. They are counted in the next ratio instead of each giving a ratio of zero.
    fn smooth(&mut self) -> bool {
        self.state += 1;
        let periods = u64::from(self.state & COUNT);
        let expected = self.rate().map_or(0, |r| r.bytes_in(self.period().saturating_mul(periods))).max(1);
        if self.progress == 0 && expected < SILENCE {
            return false;
        }
        self.state &= !COUNT;
        let ratio = u64::from(core::mem::take(&mut self.progress)) * 1000 / expected;
        self.smooth_milli = ((u64::from(self.smooth_milli) * 7 + ratio * 3) / 10).min(1_000_000) as u32;
        true
    }

    /// Returns the time for which a full step must have been held before the end of slow start is believed:
    /// the round trip and three steps of the detector.
    fn settled(&self, rtt: Duration, mss: u16) -> u64 {
        (rtt + self.beat(mss).saturating_mul(3)).as_nanos()
    }
}
