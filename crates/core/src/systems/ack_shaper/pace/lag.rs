//! The lag of the right edge, where the advertised window bounds how far a sender can be ahead.

use super::{Pace, BOUNDED, HALVED};
use crate::time::Duration;

impl Pace {
    /// Notes that the advertised window bounds how far the sender can be ahead. Slow start need not be looked
    /// for.
    pub fn bounded(&mut self) {
        if !self.is(BOUNDED) {
            self.set(BOUNDED, true);
            self.progress = 0;
        }
        self.set(HALVED, false);
    }

    /// Returns the bytes acknowledged ahead of the rate, by which the right edge lags behind. Where the
    /// window is sized, bytes that a loss made known at once then let no burst be sent.
    pub fn lag(&self) -> u32 {
        if self.is(BOUNDED) {
            (self.progress as i32).max(0) as u32
        } else {
            0
        }
    }

    /// Adds `earned` bytes to what the rate allows. Returns how many of them the right edge lagged behind.
    #[inline(always)]
    pub(super) fn lag_less(&mut self, earned: u32, rtt: Duration) -> u32 {
        if !self.is(BOUNDED) {
            return 0;
        }
        let caught_up = self.lag().min(earned);
        self.told(0, earned);
        self.limit_lag(rtt);
        caught_up
    }

    /// Notes that `bytes` were acknowledged and that the rate allowed `entitled` bytes.
    pub(super) fn told(&mut self, bytes: u32, entitled: u32) {
        if self.is(BOUNDED) {
            let lag = self.progress as i32;
            self.progress = lag.saturating_add_unsigned(bytes).saturating_sub_unsigned(entitled) as u32;
        }
    }

    /// Limits how far the account falls behind to a round trip's worth. While a loss is repaired nothing is
    /// acknowledged in sequence, and then a round trip's worth at once.
    #[inline(always)]
    pub(super) fn limit_lag(&mut self, rtt: Duration) {
        if self.is(BOUNDED) && (self.progress as i32) < 0 {
            let round = self.rate().map_or(0, |r| r.bytes_in(rtt + self.period().saturating_mul(2)));
            let round = round.min(1 << 30) as i32;
            self.progress = (self.progress as i32).max(-round) as u32;
        }
    }
}
