//! A drop-tail queue in front of one rate and one delay: the exit time of a frame is known when the frame
//! enters.
//!
//! Only a new rate changes that time later, and it gives new times to all frames that are not through yet. A
//! frame therefore lies at one place from entry to exit. Its progress (transmission begins, transmission
//! ends) moves a mark along the frames with each call. The results and the counters are those of the separate
//! elements ([`Bottleneck`](super::bottleneck::Bottleneck), [`Wire`]), and the tests compare the two.

use super::ring::{Passing, Ring};
use super::wire::Wire;
use super::{Aqm, Config, Damage};
use crate::base::VirtualClock;
use crate::frame::{Charge, Frame};
use crate::node::Cx;
use crate::queue::{Backlog, Bound, QueueLimit};
use crate::rate::Rate;
use crate::stats::DropReason;
use crate::time::{Duration, Time};

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct Pipe {
    /// Frames in order of entry: those in flight, the one in service, those that wait.
    frames: Ring,
    /// Number of the frame in service, or of the next to arrive.
    serving: usize,
    /// Begin and end of the frame in service, and its charge. The end is [`Time::MAX`] if there is none.
    begun: Time,
    done: Time,
    charge: Charge,
    /// Exit time of the next frame. [`Time::MAX`] if there is none.
    out: Time,
    delay: Duration,
    /// Departure of the last bit of the last frame.
    clock: VirtualClock,
    /// Nanoseconds per byte of the clock's rate, where that is a whole number.
    ns_per_byte: Option<u64>,
    limit: QueueLimit,
    /// The limit at this rate.
    holds: Bound,
    pub(super) backlog: Backlog,
}

impl Pipe {
    /// Returns a pipe with this rate. `None` if the configuration has an element that handles a frame more
    /// than once.
    pub(super) fn new(config: &Config, rate: Rate) -> Option<Pipe> {
        let in_time = config.jitter.by == Duration::ZERO && !config.reorder.overtakes();
        let plain = config.trace.is_none() && config.mark.is_none() && config.aqm == Aqm::None;
        let simple = in_time && plain && config.burst == 0 && config.damage == Damage::NONE;
        simple.then(|| Pipe {
            frames: Ring::default(),
            serving: 0,
            begun: Time::ZERO,
            done: Time::MAX,
            charge: Charge::default(),
            out: Time::MAX,
            delay: config.delay,
            clock: VirtualClock::new(rate, Time::ZERO),
            ns_per_byte: rate.whole_ns_per_byte(),
            limit: config.queue,
            holds: Bound::new(config.queue, rate),
            backlog: Backlog::default(),
        })
    }

    /// Advances to `now`.
    #[inline(always)]
    pub(super) fn advance(&mut self, now: Time, wire: &mut Wire) {
        while self.done <= now {
            self.step(wire);
        }
    }

    /// Ends the frame in service, and begins the next one. Mostly a call has one such step.
    #[inline(always)]
    fn step(&mut self, wire: &mut Wire) {
        let through = self.done;
        wire.count(self.charge, through.since(self.begun));
        self.serving += 1;
        self.done = Time::MAX;
        if let Some(next) = self.frames.get(self.serving) {
            wire.waited(through, next.since);
            (self.begun, self.done, self.charge) = (through, next.done, next.charge());
            self.backlog.leave(self.charge);
        }
    }

    /// Takes in a frame. Call [`Pipe::advance`] before.
    #[inline(always)]
    pub(super) fn arrive(&mut self, cx: &mut Cx<'_>, wire: &mut Wire, frame: Frame, charge: Charge) {
        let now = cx.now;
        if self.done < Time::MAX {
            if !self.holds.admits(&self.backlog, charge) {
                self.backlog.stats.drops.count(DropReason::QueueFull);
                self.backlog.stats.dropped_bytes += charge.bytes;
                return cx.drop(frame, DropReason::QueueFull);
            }
            self.backlog.enter(charge);
        } else {
            self.clock.forfeit(now);
        }
        self.charge(charge.bytes);
        let done = self.clock.due();
        if self.done == Time::MAX {
            wire.waited(now, now);
            (self.begun, self.done, self.charge) = (now, done, charge);
        }
        if self.frames.is_empty() {
            self.out = done + self.delay;
        }
        let Charge { packets, bytes } = charge;
        let carried = self.clock.carried();
        self.frames.push(Passing { done, carried, since: now, frame, packets, bytes: bytes as u32 });
    }

    /// Charges `bytes`. Where a byte takes whole nanoseconds, the carried fraction
    /// does not change.
    #[inline(always)]
    fn charge(&mut self, bytes: u64) {
        match self.ns_per_byte {
            Some(ns) => self.clock.postpone(Duration::from_nanos(bytes.saturating_mul(ns))),
            None => self.clock.charge(bytes),
        }
    }

    /// Returns the exit time of the next frame. [`Time::MAX`] if there is none.
    #[inline]
    pub(super) fn due(&self) -> Time {
        self.out
    }

    /// Returns the next frame that comes out, and its exit time. There must be one.
    #[inline(always)]
    pub(super) fn take(&mut self) -> (Time, Frame) {
        let out = self.out;
        let frame = self.frames.take();
        self.out = self.first_out();
        if self.out == Time::MAX {
            self.frames.rest();
        }
        (out, frame)
    }

    /// Returns the exit time of the first frame. [`Time::MAX`] if there is none.
    #[inline(always)]
    fn first_out(&self) -> Time {
        self.frames.get(self.frames.first()).map_or(Time::MAX, |first| first.done + self.delay)
    }

    /// Returns the frames that come out next.
    #[inline]
    pub(super) fn coming<const N: usize>(&self) -> [Option<&Frame>; N] {
        core::array::from_fn(|n| self.frames.get(self.frames.first() + n).map(|passing| &passing.frame))
    }

    /// Changes the rate from `now` on. Call [`Pipe::advance`] before.
    pub(super) fn set_rate(&mut self, now: Time, rate: Rate) {
        self.holds = Bound::new(self.limit, rate);
        self.ns_per_byte = rate.whole_ns_per_byte();
        let Some(serving) = self.frames.get_mut(self.serving) else {
            self.clock.forfeit(now);
            return self.clock.set_rate(now, rate);
        };
        self.clock = VirtualClock::restored(self.clock.rate(), serving.done, serving.carried);
        self.clock.set_rate(now, rate);
        (serving.done, serving.carried) = (self.clock.due(), self.clock.carried());
        self.done = self.clock.due();
        for number in self.serving + 1..self.frames.end() {
            let Some(waiting) = self.frames.get_mut(number) else { break };
            self.clock.charge(waiting.bytes.into());
            (waiting.done, waiting.carried) = (self.clock.due(), self.clock.carried());
        }
        self.out = self.first_out();
    }
}
