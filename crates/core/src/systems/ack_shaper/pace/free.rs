//! Flows whose rate does not bind: the time without a scheduled release, and the bytes that may pass in
//! advance.

use super::{clamp, Pace, FREE};
use crate::time::{Duration, Time};

/// Round trips without a backlog after which a flow's rate does not bind. A sender in slow start would have
/// grown from one segment to 64,000.
const FREE_ROUNDS: u64 = 16;
/// Shortest such time.
const FREE_LEAST: Duration = Duration::from_millis(2);

impl Pace {
    /// Returns the bytes that may pass before the flow is looked at again, at most `within` from now: those
    /// earned up to [`Pace::due`] and those to be earned until then. Returns 0 where the rate may bind: the
    /// flow has been backlogged lately, or has debt.
    pub fn free(&self, now: Time, within: Duration, rtt: Duration) -> u32 {
        let since = now.since(Time::from_nanos(self.mark));
        let long = since >= rtt.saturating_mul(FREE_ROUNDS).max(FREE_LEAST);
        if self.is(FREE) && long && !self.in_slow_start() && self.debt() == 0 {
            self.credit.saturating_add(self.rate().map_or(0, |r| clamp(r.bytes_in(within))))
        } else {
            0
        }
    }

    /// Charges `bytes` that have passed since [`Pace::due`] by permission of [`Pace::free`], while no release
    /// was scheduled. Credit earned up to `now` covers them. A step of what is left is kept, or `depth`
    /// bytes. An excess is debt.
    pub fn passed(&mut self, bytes: u32, now: Time, rtt: Duration, depth: u32) {
        self.limit_lag(rtt);
        let earned = self.earn_since_due(now);
        let credit = self.credit.saturating_add(earned);
        if bytes > credit {
            self.owe_at_least(bytes - credit);
        }
        self.told(bytes, 0);
        self.keep(credit.saturating_sub(bytes), depth);
    }

    /// Notes that no release is scheduled from `now` on.
    pub(super) fn set_free(&mut self, now: Time) {
        self.set(FREE, true);
        self.mark = now.as_nanos();
    }

    /// Notes that a release is scheduled.
    pub(super) fn end_free(&mut self) {
        if self.is(FREE) {
            self.set(FREE, false);
            self.mark = 0;
        }
    }
}
