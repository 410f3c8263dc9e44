//! The server of a link: takes one frame after the other from a queue and sends it bit by bit at a rate.
//!
//! The time at which a frame is through is known only when its transmission begins. Fractions of a nanosecond
//! are carried to the next frame of the same busy period.

use crate::base::VirtualClock;
use crate::frame::{Charge, Parked, Waiting};
use crate::rate::Rate;
use crate::time::{Duration, Time};

/// The frame being serialized.
#[derive(Debug)]
struct Service {
    frame: Parked,
    charge: Charge,
    /// See [`Served::took`].
    takes: Duration,
}

/// A frame that has been serialized.
#[derive(Debug)]
pub(super) struct Served {
    pub(super) frame: Parked,
    pub(super) charge: Charge,
    /// Time that its bytes take at the rate, wherever the tokens came from.
    pub(super) took: Duration,
}

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct Server {
    /// Departure of the last bit of the last frame without the bucket.
    clock: VirtualClock,
    /// Depth of the token bucket in bytes.
    burst: u64,
    /// Time that the rate takes for the bucket. This much may be sent at once after an idle time.
    ahead: Duration,
    /// Resolution of the timer that waits for tokens. Zero waits exactly.
    timer: Duration,
    service: Option<Service>,
    /// Time at which the frame being serialized is through. [`Time::MAX`] if there is none, or during a
    /// pause.
    done: Time,
    /// Start of a pause. All times above are as of then.
    paused: Option<Time>,
}

impl Server {
    /// Returns a server. `burst` is the depth of the token bucket in bytes. 0 sends no bit early. A frame
    /// that has to wait leaves at a multiple of `timer`, if that is not zero.
    pub(super) fn new(rate: Rate, burst: u64, timer: Duration) -> Server {
        Server {
            clock: VirtualClock::new(rate, Time::ZERO),
            burst,
            ahead: rate.time_for(burst),
            timer,
            service: None,
            done: Time::MAX,
            paused: None,
        }
    }

    /// Returns whether no frame is being serialized.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.service.is_none()
    }

    /// Returns whether the server is idle and keeps no history. With a bucket it keeps tokens.
    pub(super) fn is_settled(&self) -> bool {
        self.service.is_none() && self.burst == 0
    }

    /// Returns the time at which the frame being serialized is through. [`Time::MAX`] if there is none, or
    /// during a pause.
    #[inline]
    pub(super) fn done(&self) -> Time {
        self.done
    }

    /// Begins to serialize a frame at `now`. Call when idle.
    #[inline]
    pub(super) fn begin(&mut self, now: Time, waiting: Waiting) {
        let Waiting { frame, charge, .. } = waiting;
        self.fill(self.paused.unwrap_or(now));
        // A driver that is late hands a frame over before the one in front of it is through.
        let before = self.clock.due().min(now);
        self.clock.charge(charge.bytes);
        let takes = self.clock.due().since(before);
        if self.paused.is_none() {
            self.done = self.due(now);
        }
        self.service = Some(Service { frame, charge, takes });
    }

    /// Returns when the frame being serialized is through, at `now` at the earliest.
    #[inline]
    fn due(&self, now: Time) -> Time {
        let free_at = self.clock.due();
        if free_at <= now {
            return now;
        }
        match self.timer.as_nanos() {
            0 => free_at,
            timer => Time::from_nanos(free_at.as_nanos().div_ceil(timer).saturating_mul(timer)),
        }
    }

    /// Fills the bucket for idle time. It is full after as long as the rate takes to fill it.
    #[inline]
    fn fill(&mut self, now: Time) {
        self.clock.forfeit(now.saturating_sub(self.ahead));
    }

    /// Changes the rate from `now` on. The rest of the frame being serialized is sent at the new rate.
    /// Collected tokens stay.
    pub(super) fn set_rate(&mut self, now: Time, rate: Rate) {
        self.fill(now);
        let before = self.clock.due();
        self.clock.set_rate(now, rate);
        self.ahead = rate.time_for(self.burst);
        if let Some(service) = &mut self.service {
            // Only debt is left to be sent. Credit keeps its bits and is none of the frame's.
            let (before, after) = (before.max(now), self.clock.due().max(now));
            service.takes = (service.takes + after.since(now)).saturating_sub(before.since(now));
            self.done = self.due(now);
        }
    }

    /// Pauses from `now` on: no frame is sent, and no tokens are collected.
    pub(super) fn pause(&mut self, now: Time) {
        if self.paused.is_none() {
            self.fill(now);
            self.paused = Some(now);
            self.done = Time::MAX;
        }
    }

    /// Sends at this rate from `now` on, also after a pause.
    pub(super) fn resume(&mut self, now: Time, rate: Rate) {
        if let Some(since) = self.paused.take() {
            self.clock.postpone(now.since(since));
        }
        self.set_rate(now, rate);
    }

    /// Ends the frame that was being serialized.
    #[inline]
    pub(super) fn finish(&mut self) -> Option<Served> {
        let Service { frame, charge, takes } = self.service.take()?;
        self.done = Time::MAX;
        Some(Served { frame, charge, took: takes })
    }
}
