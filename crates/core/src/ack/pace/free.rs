//! Flows whose rate does not bind: since when no release is scheduled, and how much may pass in advance.

use super::{clamp, Pace, FREE};
use crate::time::{Duration, Time};

/// A flow that has not been backlogged for so many round trips is one whose rate does not bind: a sender in slow start
/// would have got from one segment to 64,000.
const FREE_ROUNDS: u64 = 16;
/// And for so long at least.
const FREE_LEAST: Duration = Duration::from_millis(2);

impl Pace {
    /// Bytes that may pass before the flow is looked at again, which is `within` from now at the latest: what has been
    /// earned up to [`Pace::due`], and what will have been by then. None where the rate may bind: the flow has been backlogged
    /// lately, or something is to be repaid.
    pub fn free(&self, now: Time, within: Duration, rtt: Duration) -> u32 {
        let since = now.since(Time::from_nanos(self.mark));
        let long = since >= rtt.saturating_mul(FREE_ROUNDS).max(FREE_LEAST);
        if self.is(FREE) && long && !self.in_slow_start() && self.debt() == 0 {
            self.credit.saturating_add(self.rate().map_or(0, |r| clamp(r.bytes_in(within))))
        } else {
            0
        }
    }

    /// While no release is scheduled, `bytes` have passed since [`Pace::due`] as [`Pace::free`] had said. What has been earned
    /// up to `now` covers them, and of the rest a step is kept, or `depth` bytes. What is beyond that is owed.
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

    /// No release is scheduled from `now` on.
    pub(super) fn set_free(&mut self, now: Time) {
        self.set(FREE, true);
        self.mark = now.as_nanos();
    }

    /// A release is scheduled.
    pub(super) fn end_free(&mut self) {
        if self.is(FREE) {
            self.set(FREE, false);
            self.mark = 0;
        }
    }
}
