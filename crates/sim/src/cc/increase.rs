//! Window increase of RFC 5681: slow start and the additive increase of congestion avoidance, by bytes (RFC
//! 3465) or by ACKs. Reno, DCTCP and CUBIC (in slow start) share it.
//!
//! Byte counting follows Linux. Slow start hands the bytes left over at the threshold to avoidance. Avoidance
//! grows by one segment for each window acknowledged, so it grows in whole segments.

use super::hystart::Brake;
use super::{Ack, Options, Phase, Window};

/// Increase state of one flow.
#[derive(Clone, Copy, Debug)]
pub struct Increase {
    abc: bool,
    abc_limit: u32,
    /// Bytes acknowledged since avoidance last added a segment.
    counted: u64,
}

impl Increase {
    /// Creates the state with the flow's options and nothing counted.
    pub fn new(options: &Options) -> Increase {
        Increase { abc: options.abc, abc_limit: options.abc_limit, counted: 0 }
    }

    /// Grows the window in slow start by `bytes` acknowledged (RFC 5681 §3.1), as far as the brake allows.
    /// Returns the bytes left over for avoidance once the threshold is reached.
    pub fn slow_start(&self, w: &mut Window, bytes: u64, phase: Phase, brake: Brake) -> u64 {
        let mss = u64::from(w.mss);
        if !self.abc {
            w.cwnd = w.cwnd.saturating_add(mss / brake.divisor);
            return 0;
        }
        let limit = self.limit(phase).min(u64::from(brake.limit));
        let allowed = bytes.min(mss.saturating_mul(limit)) / brake.divisor;
        let taken = allowed.min(w.ssthresh.saturating_sub(w.cwnd));
        w.cwnd += taken;
        allowed - taken
    }

    /// Returns L of RFC 3465 §2.2 in segments. By §2.3 it is 1 after a time-out, when one ACK may cover much
    /// data that had arrived before. A flow without a limit (Linux) has none then either.
    fn limit(&self, phase: Phase) -> u64 {
        match phase {
            Phase::Loss if self.abc_limit != u32::MAX => 1,
            _ => u64::from(self.abc_limit),
        }
    }

    /// Grows the window in congestion avoidance by `bytes` acknowledged: one segment per window (RFC 3465
    /// §2.1). By ACKs it is SMSS * SMSS / cwnd for each (RFC 5681 equation 3).
    pub fn avoid(&mut self, w: &mut Window, bytes: u64) {
        let mss = u64::from(w.mss);
        if !self.abc {
            w.cwnd = w.cwnd.saturating_add((mss * mss / w.cwnd.max(1)).max(1));
            return;
        }
        self.counted = self.counted.saturating_add(bytes);
        if self.counted >= w.cwnd {
            let windows = self.counted / w.cwnd.max(1);
            self.counted -= windows * w.cwnd;
            w.cwnd = w.cwnd.saturating_add(windows.saturating_mul(mss));
        }
    }

    /// Grows the window by Reno's reaction to an ACK: slow start below the threshold, then avoidance. Uses
    /// [`Ack::growth`].
    pub fn on_ack(&mut self, w: &mut Window, ack: &Ack, brake: Brake) {
        let mut bytes = ack.growth();
        if bytes == 0 {
            return;
        }
        if w.in_slow_start() {
            bytes = self.slow_start(w, bytes, ack.phase, brake);
            if bytes == 0 {
                return;
            }
        }
        self.avoid(w, bytes);
    }

    /// Returns whether growth is by bytes, and so in whole segments. Otherwise it is by ACKs.
    pub const fn by_bytes(&self) -> bool {
        self.abc
    }

    /// Restarts counting after congestion.
    pub fn reset(&mut self) {
        self.counted = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    fn window(cwnd: u64, ssthresh: u64) -> Window {
        Window { cwnd, ssthresh, mss: MSS as u32 }
    }
    fn increase(abc: bool, abc_limit: u32) -> Increase {
        Increase::new(&Options { abc, abc_limit, ..Options::default() })
    }

    #[test]
    fn slow_start_hands_over_what_is_above_the_threshold() {
        let mut w = window(9 * MSS, 10 * MSS);
        let left = increase(true, u32::MAX).slow_start(&mut w, 3 * MSS, Phase::Open, Brake::NONE);
        assert_eq!((w.cwnd, left), (10 * MSS, 2 * MSS));
    }

    #[test]
    fn the_limit_of_one_ack_is_one_segment_after_a_time_out() {
        // RFC 3465 §2.3: L = 1 * SMSS in the slow start that follows a time-out.
        let i = increase(true, 2);
        let mut w = window(4 * MSS, u64::MAX);
        i.slow_start(&mut w, 3 * MSS, Phase::Open, Brake::NONE);
        assert_eq!(w.cwnd, 6 * MSS);
        i.slow_start(&mut w, 3 * MSS, Phase::Loss, Brake::NONE);
        assert_eq!(w.cwnd, 7 * MSS);
        // A flow without a limit has none after a time-out.
        increase(true, u32::MAX).slow_start(&mut w, 30 * MSS, Phase::Loss, Brake::NONE);
        assert_eq!(w.cwnd, 37 * MSS);
    }

    #[test]
    fn by_acks_slow_start_adds_a_segment_whatever_was_acknowledged() {
        let i = increase(false, u32::MAX);
        let mut w = window(4 * MSS, u64::MAX);
        for bytes in [1, MSS, 2 * MSS] {
            i.slow_start(&mut w, bytes, Phase::Open, Brake::NONE);
        }
        assert_eq!(w.cwnd, 7 * MSS);
    }

    #[test]
    fn avoidance_adds_a_segment_per_window() {
        let mut i = increase(true, u32::MAX);
        let mut w = window(10 * MSS, 0);
        for _ in 0..9 {
            i.avoid(&mut w, MSS);
        }
        assert_eq!(w.cwnd, 10 * MSS);
        i.avoid(&mut w, MSS);
        assert_eq!(w.cwnd, 11 * MSS);
        // 33 segments are three windows of 11, and one ACK may report all of them.
        i.avoid(&mut w, 33 * MSS);
        assert_eq!(w.cwnd, 14 * MSS);
    }

    #[test]
    fn by_acks_avoidance_follows_equation_3() {
        let mut i = increase(false, u32::MAX);
        let mut w = window(10 * MSS, 0);
        i.avoid(&mut w, 2 * MSS);
        assert_eq!(w.cwnd, 10 * MSS + 100);
        // 10^6 / 10100 = 99.0
        i.avoid(&mut w, 2 * MSS);
        assert_eq!(w.cwnd, 10 * MSS + 199);
        // RFC 5681 §3.1: a result of 0 is rounded up to 1 byte.
        let mut w = window(2000 * MSS, 0);
        i.avoid(&mut w, MSS);
        assert_eq!(w.cwnd, 2000 * MSS + 1);
    }
}
