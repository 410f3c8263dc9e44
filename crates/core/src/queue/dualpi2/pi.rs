//! PI controller: a base probability that rises while packets wait longer than the target, and while their
//! wait grows.

use super::ONE;
use crate::time::{Duration, Time};

/// Gains per second of wait, in thousandths: 0.16 and 3.2 Hz for a target of 15 ms and round trips up to 100
/// ms (RFC 9332, appendix A.1, fig. 2).
const ALPHA: i128 = 160;
const BETA: i128 = 3200;
/// Nanoseconds in a second times thousandths.
const SCALE: i128 = 1_000_000_000_000;

/// PI controller. See the [module documentation](self).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pi {
    target: Duration,
    update: Duration,
    /// Time of the next update; `None` before the first packet.
    next: Option<Time>,
    /// Wait of the first packet at the last update.
    waited: Duration,
    /// p' in units of 2^-64, so that even the smallest update counts.
    base: u128,
}

impl Pi {
    pub(super) fn new(target: Duration, update: Duration) -> Pi {
        Pi { target, update, next: None, waited: Duration::ZERO, base: 0 }
    }

    /// p', in units of 2^-32.
    pub(super) fn probability(&self) -> u64 {
        (self.base >> 32) as u64
    }

    /// p'², in units of 2^-32.
    pub(super) fn squared(&self) -> u64 {
        let p = u128::from(self.probability());
        ((p * p) >> 32) as u64
    }

    /// Runs all updates up to `now`. `waited` returns the wait of the first packet at a given time, zero
    /// without a packet. Updates begin one interval after the first call. Call it before each enqueue and
    /// dequeue.
    pub(super) fn catch_up(&mut self, now: Time, waited: impl Fn(Time) -> Duration) {
        let mut next = self.next.unwrap_or(now + self.update);
        while next <= now {
            let waits = waited(next);
            if waits == Duration::ZERO && self.waited == Duration::ZERO && self.base == 0 {
                // Nothing changes until a packet waits, which is at `now` at the earliest.
                let idle = now.since(next).as_nanos() / self.update.as_nanos().max(1);
                next += self.update.saturating_mul(idle + 1);
                continue;
            }
            self.step(waits);
            next += self.update;
        }
        self.next = Some(next);
    }

    fn step(&mut self, waits: Duration) {
        let ns = |d: Duration| i128::from(d.as_nanos().min(1 << 40));
        let (off, grown) = (ns(waits) - ns(self.target), ns(waits) - ns(self.waited));
        let change = ((ALPHA * off + BETA * grown) << 64) / SCALE;
        let base = (self.base as i128).saturating_add(change);
        self.base = base.clamp(0, i128::from(ONE) << 32) as u128;
        self.waited = waits;
    }
}

#[cfg(test)]
impl Pi {
    /// Sets p', in units of 2^-32.
    pub(super) fn force(&mut self, probability: u64) {
        self.base = u128::from(probability) << 32;
    }

    pub(super) fn next(&self) -> Option<Time> {
        self.next
    }
}
