//! Flows whose rate does not bind: since when no release is scheduled, and what may pass of them in advance.

use super::{Pace, FREE};
use crate::time::{Duration, Time};

/// A flow that has not been backlogged for so many round trips is one whose rate does not bind: a sender in slow start
/// would have got from one segment to 64,000.
const FREE_ROUNDS: u64 = 16;
/// And for so long at least.
const FREE_LEAST: Duration = Duration::from_millis(2);

impl Pace {
    /// Bytes that may pass before the flow is looked at again: what has been earned up to [`Pace::due`]. None where the rate
    /// may bind: the flow has been backlogged lately, or something is to be repaid.
    pub fn free(&self, now: Time, rtt: Duration) -> u32 {
        let since = now.since(Time::from_nanos(self.mark));
        let long = since >= rtt.saturating_mul(FREE_ROUNDS).max(FREE_LEAST);
        if self.is(FREE) && long && !self.in_slow_start() && self.debt() == 0 {
            self.credit
        } else {
            0
        }
    }

    /// While no release is scheduled, `bytes` have passed since [`Pace::due`] as [`Pace::free`] had said: as if they had gone
    /// before anything more was earned. What is beyond the credit is owed.
    pub fn passed(&mut self, bytes: u32, now: Time, rtt: Duration) {
        let covered = self.credit.min(bytes);
        self.credit -= covered;
        self.told(covered, 0);
        self.earn_idle(now);
        if bytes > covered {
            self.acknowledge_early(bytes - covered, None, rtt);
        }
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
