//! A rate given as the opportunities of a trace. At each opportunity a number of bytes leaves at once, of one
//! frame or several.
//!
//! The opportunity that lets the first byte of a frame leave takes the frame from the queue. The frame is
//! through with the opportunity of its last byte. The part of an opportunity that finds the queue empty is
//! lost. So is an opportunity at the very time at which a frame arrives: the opportunity counts as earlier.
//! All times are those of the trace, whenever the link is called.

use super::server::Served;
use super::trace::Opportunities;
use crate::frame::{Charge, Parked, Waiting};
use crate::time::{Duration, Time};

/// A frame with some of its bytes sent.
#[derive(Debug)]
struct Begun {
    frame: Parked,
    charge: Charge,
    left: u64,
    at: Time,
}

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct Deliveries {
    trace: Opportunities,
    /// Start of this round of the trace.
    round: Time,
    /// Next opportunity of the round.
    next: usize,
    begun: Option<Begun>,
}

impl Deliveries {
    /// Returns the opportunities of a trace that begins at `epoch`.
    pub(super) fn new(trace: Opportunities, epoch: Time) -> Deliveries {
        Deliveries { trace, round: epoch, next: 0, begun: None }
    }

    /// Returns whether no frame has been begun.
    pub(super) fn is_idle(&self) -> bool {
        self.begun.is_none()
    }

    /// Returns the time of the next opportunity.
    pub(super) fn next(&self) -> Time {
        let ms = self.trace.at_ms.get(self.next).copied().unwrap_or(u64::MAX);
        self.round + Duration::from_millis(1).saturating_mul(ms)
    }

    /// Uses up the next opportunity.
    pub(super) fn step(&mut self) {
        self.next += 1;
        if self.next >= self.trace.at_ms.len() {
            self.next = 0;
            self.round += self.trace.period();
        }
    }

    /// Skips the opportunities up to and at `now`, which are lost.
    pub(super) fn skip(&mut self, now: Time) {
        let period = self.trace.period();
        let rounds = now.since(self.round).as_nanos() / period.as_nanos();
        if rounds > 0 {
            self.round += period.saturating_mul(rounds);
            self.next = 0;
        }
        let ms = now.since(self.round).as_nanos() / 1_000_000;
        self.next = self.next.max(self.trace.at_ms.partition_point(|&at| at <= ms));
        if self.next >= self.trace.at_ms.len() {
            self.next = self.trace.at_ms.len() - 1;
            self.step();
        }
        // The first of a round may be at its very beginning.
        while self.next() <= now {
            self.step();
        }
    }

    /// Begins a frame at `now`.
    pub(super) fn begin(&mut self, now: Time, waiting: Waiting) {
        let Waiting { frame, charge, .. } = waiting;
        self.begun = Some(Begun { frame, charge, left: charge.bytes, at: now });
    }

    /// Sends up to `room` of the remaining bytes of the frame that was begun. Returns the frame, at `now`, if
    /// those were its last.
    pub(super) fn send(&mut self, now: Time, room: &mut u64) -> Option<Served> {
        let begun = self.begun.as_mut()?;
        let sent = begun.left.min(*room);
        begun.left -= sent;
        *room -= sent;
        if begun.left > 0 {
            return None;
        }
        let Begun { frame, charge, at, .. } = self.begun.take()?;
        Some(Served { frame, charge, took: now.since(at) })
    }

    /// Returns the frame that was begun, to be sent by another service.
    pub(super) fn take(&mut self) -> Option<Waiting> {
        let Begun { frame, charge, at, .. } = self.begun.take()?;
        Some(Waiting { frame, charge, since: at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deliveries(at_ms: &'static [u64]) -> Deliveries {
        Deliveries::new(Opportunities { name: "t", at_ms }, Time::from_millis(100))
    }

    fn upcoming(deliveries: &mut Deliveries, n: usize) -> Vec<u64> {
        let next = |d: &mut Deliveries| {
            let at = d.next().as_nanos() / 1_000_000;
            d.step();
            at
        };
        (0..n).map(|_| next(deliveries)).collect()
    }

    /// The repetition of a trace begins at its last time, as `link_queue.cc` adds that to the base.
    #[test]
    fn a_trace_begins_anew_when_its_last_opportunity_has_passed() {
        assert_eq!(upcoming(&mut deliveries(&[2, 2, 5]), 7), [102, 102, 105, 107, 107, 110, 112]);
        assert_eq!(upcoming(&mut deliveries(&[0, 3]), 5), [100, 103, 103, 106, 106]);
        assert_eq!(upcoming(&mut deliveries(&[1]), 3), [101, 102, 103]);
    }

    #[test]
    fn what_is_skipped_is_what_has_passed() {
        for at_ms in [&[2, 2, 5][..], &[0, 3], &[0, 0, 7, 7], &[1], &[4, 9]] {
            for now in 100..160 {
                let mut stepped = deliveries(at_ms);
                while stepped.next() <= Time::from_millis(now) {
                    stepped.step();
                }
                let mut skipped = deliveries(at_ms);
                skipped.skip(Time::from_millis(now));
                assert_eq!(upcoming(&mut skipped, 5), upcoming(&mut stepped, 5), "{at_ms:?} {now}");
            }
        }
    }

    #[test]
    fn nothing_is_skipped_before_the_trace_begins() {
        let mut d = deliveries(&[1, 2]);
        d.skip(Time::from_millis(50));
        assert_eq!(d.next(), Time::from_millis(101));
    }
}
