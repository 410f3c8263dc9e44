//! The server of a link: takes one frame after the other from a queue and sends it bit by bit at a rate.
//!
//! The time at which a frame is through is known when its transmission begins, not before. The part of such a time that whole nanoseconds
//! cannot express is carried to the next frame of the same busy period.

use crate::frame::{Charge, Parked, Waiting};
use crate::rate::{ByteClock, Rate};
use crate::time::{Duration, Time};

/// The frame being serialized.
#[derive(Debug)]
struct Service {
    frame: Parked,
    charge: Charge,
    begun: Time,
}

/// A frame that has been serialized.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) frame: Parked,
    pub(super) charge: Charge,
    /// How long it took.
    pub(super) took: Duration,
}

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct Server {
    clock: ByteClock,
    /// Depth of the token bucket in bytes.
    burst: u64,
    /// How long the rate takes for those: what it may send at once after it has been idle.
    ahead: Duration,
    /// When the last bit of the last frame would have left without that.
    free_at: Time,
    service: Option<Service>,
    /// When the frame being serialized is through; never, if there is none or nothing is sent.
    done: Time,
    /// Since when nothing is sent; all times above are as of then.
    paused: Option<Time>,
}

impl Server {
    /// `burst` is the depth of the token bucket in bytes; 0 sends no bit early.
    pub(super) fn new(rate: Rate, burst: u64) -> Server {
        Server {
            clock: ByteClock::new(rate),
            burst,
            ahead: rate.time_for(burst),
            free_at: Time::ZERO,
            service: None,
            done: Time::MAX,
            paused: None,
        }
    }

    /// Is no frame being serialized?
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.service.is_none()
    }

    /// Is nothing sent, and nothing kept of when something was? With a bucket, tokens are.
    pub(super) fn is_settled(&self) -> bool {
        self.service.is_none() && self.burst == 0
    }

    /// When the frame being serialized is through; [`Time::MAX`] if there is none, or nothing is sent.
    #[inline]
    pub(super) fn done(&self) -> Time {
        self.done
    }

    /// Begins to serialize a frame at `now`. Call when idle.
    #[inline]
    pub(super) fn begin(&mut self, now: Time, waiting: Waiting) {
        let Waiting { frame, charge, .. } = waiting;
        let clock = self.paused.unwrap_or(now);
        self.fill(clock);
        self.free_at += self.clock.advance(charge.bytes);
        if self.paused.is_none() {
            self.done = self.free_at.max(now);
        }
        self.service = Some(Service { frame, charge, begun: now });
    }

    /// The bucket is full once the rate has been idle for as long as it takes to fill it.
    #[inline]
    fn fill(&mut self, now: Time) {
        let full = now.saturating_sub(self.ahead);
        if full > self.free_at {
            self.clock.idle();
            self.free_at = full;
        }
    }

    /// The rate is another one from `now` on, when the frame being serialized is not through yet: what is left of it
    /// is sent at the new rate. The tokens that have come together stay.
    pub(super) fn set_rate(&mut self, now: Time, rate: Rate) {
        self.fill(now);
        self.free_at = if self.free_at >= now {
            now + self.clock.set_rate(rate, self.free_at.since(now))
        } else {
            now.saturating_sub(self.clock.set_rate_idle(rate, now.since(self.free_at)))
        };
        self.ahead = rate.time_for(self.burst);
        if self.service.is_some() {
            self.done = self.free_at.max(now);
        }
    }

    /// Nothing is sent from `now` on: neither do tokens come together.
    pub(super) fn pause(&mut self, now: Time) {
        if self.paused.is_none() {
            self.fill(now);
            self.paused = Some(now);
            self.done = Time::MAX;
        }
    }

    /// From `now` on it is sent at this rate, also after a pause.
    pub(super) fn resume(&mut self, now: Time, rate: Rate) {
        if let Some(since) = self.paused.take() {
            self.free_at += now.since(since);
        }
        self.set_rate(now, rate);
    }

    /// The frame that was being serialized is through.
    #[inline]
    pub(super) fn finish(&mut self) -> Option<Served> {
        let Service { frame, charge, begun } = self.service.take()?;
        let done = core::mem::replace(&mut self.done, Time::MAX);
        Some(Served { frame, charge, took: done.since(begun) })
    }
}
