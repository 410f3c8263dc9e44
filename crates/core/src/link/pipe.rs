//! A drop-tail queue in front of one rate and one delay: the exit time of a frame is known when the frame enters.
//!
//! Nothing that happens later changes that time, except a new rate, which gives new times to all frames that are not through yet. So a frame lies at
//! one place from entry to exit. Its progress (transmission begins, transmission ends)
//! moves a mark along the frames when somebody calls. The results and the counters are those of the separate elements
//! ([`Bottleneck`](super::bottleneck::Bottleneck), [`Wire`]), and the tests compare the two.

use super::wire::Wire;
use super::{Aqm, Config, Damage};
use crate::frame::{Charge, Frame};
use crate::node::Cx;
use crate::queue::{Backlog, Bound, QueueLimit};
use crate::rate::{ByteClock, Rate};
use crate::stats::DropReason;
use crate::time::{Duration, Time};
use std::collections::VecDeque;

/// A frame on its way, in one cache line.
#[derive(Debug)]
struct Passing {
    /// When it is through, and how much later the last bit left than that ([`ByteClock::carried`]).
    done: Time,
    carried: u64,
    /// Since when it waits.
    since: Time,
    frame: Frame,
    packets: u32,
    /// Frames and overheads are shorter than 2³² bytes.
    bytes: u32,
}

const _: () = assert!(size_of::<Passing>() == 64);

impl Passing {
    fn charge(&self) -> Charge {
        Charge { packets: self.packets, bytes: self.bytes.into() }
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct Pipe {
    /// In the order in which they came: those that fly, the one in service, those that wait.
    frames: VecDeque<Passing>,
    flying: usize,
    /// When the one in service was begun, when it is through ([`Time::MAX`] if there is none), and its charge.
    begun: Time,
    done: Time,
    serving: Charge,
    /// When the next frame comes out; [`Time::MAX`] if there is none.
    out: Time,
    delay: Duration,
    clock: ByteClock,
    /// When the last bit of the last frame leaves.
    free_at: Time,
    limit: QueueLimit,
    /// The limit at this rate.
    holds: Bound,
    pub(super) backlog: Backlog,
}

impl Pipe {
    /// In front of this rate; `None` if what the configuration asks for takes more than one look at a frame.
    pub(super) fn new(config: &Config, rate: Rate) -> Option<Pipe> {
        let in_time = config.jitter.by == Duration::ZERO && !config.reorder.overtakes();
        let plain = config.trace.is_none() && config.mark.is_none() && config.aqm == Aqm::None;
        let simple = in_time && plain && config.burst == 0 && config.damage == Damage::NONE;
        simple.then(|| Pipe {
            frames: VecDeque::new(),
            flying: 0,
            begun: Time::ZERO,
            done: Time::MAX,
            serving: Charge::default(),
            out: Time::MAX,
            delay: config.delay,
            clock: ByteClock::new(rate),
            free_at: Time::ZERO,
            limit: config.queue,
            holds: Bound::new(config.queue, rate),
            backlog: Backlog::default(),
        })
    }

    /// Brings it up to `now`.
    #[inline]
    pub(super) fn advance(&mut self, now: Time, wire: &mut Wire) {
        while self.done <= now {
            self.step(wire);
        }
    }

    /// The frame in service is through, and the next one is begun. There is mostly one to be caught up with.
    #[inline(never)]
    fn step(&mut self, wire: &mut Wire) {
        let through = self.done;
        wire.count(self.serving, through.since(self.begun));
        self.flying += 1;
        self.done = Time::MAX;
        if let Some(next) = self.frames.get(self.flying) {
            wire.waited(through, next.since);
            (self.begun, self.done, self.serving) = (through, next.done, next.charge());
            self.backlog.leave(self.serving);
        }
    }

    /// A frame comes in. Call [`Pipe::advance`] before.
    #[inline]
    pub(super) fn arrive(&mut self, cx: &mut Cx<'_>, wire: &mut Wire, frame: Frame, charge: Charge) {
        let now = cx.now;
        if self.done < Time::MAX {
            if !self.holds.admits(&self.backlog, charge) {
                self.backlog.stats.drops.count(DropReason::QueueFull);
                return cx.drop(frame, DropReason::QueueFull);
            }
            self.backlog.enter(charge);
        } else if now > self.free_at {
            self.clock.idle();
            self.free_at = now;
        }
        self.free_at += self.clock.advance(charge.bytes);
        if self.done == Time::MAX {
            wire.waited(now, now);
            (self.begun, self.done, self.serving) = (now, self.free_at, charge);
        }
        if self.frames.is_empty() {
            self.out = self.free_at + self.delay;
        }
        let Charge { packets, bytes } = charge;
        let (done, carried) = (self.free_at, self.clock.carried());
        self.frames.push_back(Passing { done, carried, since: now, frame, packets, bytes: bytes as u32 });
    }

    /// When the next frame comes out; [`Time::MAX`] if there is none.
    #[inline]
    pub(super) fn due(&self) -> Time {
        self.out
    }

    /// The next frame that is out by `now`, and since when. Call [`Pipe::advance`] before.
    #[inline]
    pub(super) fn pop(&mut self, now: Time) -> Option<(Time, Frame)> {
        if self.out > now {
            return None;
        }
        let out = self.out;
        let Passing { frame, .. } = self.frames.pop_front()?;
        self.flying -= 1;
        self.out = self.frames.front().map_or(Time::MAX, |next| next.done + self.delay);
        Some((out, frame))
    }

    /// The frames that come out next.
    #[inline]
    pub(super) fn coming<const N: usize>(&self) -> [Option<&Frame>; N] {
        core::array::from_fn(|n| self.frames.get(n).map(|passing| &passing.frame))
    }

    /// The rate is another one from `now` on. Call [`Pipe::advance`] before.
    pub(super) fn set_rate(&mut self, now: Time, rate: Rate) {
        self.holds = Bound::new(self.limit, rate);
        let mut left = self.frames.iter_mut().skip(self.flying);
        let Some(serving) = left.next() else {
            if now > self.free_at {
                self.clock.idle();
            }
            self.free_at = now + self.clock.set_rate(rate, Duration::ZERO);
            return;
        };
        self.clock.carry(serving.carried);
        self.free_at = now + self.clock.set_rate(rate, serving.done.since(now));
        (serving.done, serving.carried) = (self.free_at, self.clock.carried());
        self.done = self.free_at;
        for waiting in left {
            self.free_at += self.clock.advance(waiting.bytes.into());
            (waiting.done, waiting.carried) = (self.free_at, self.clock.carried());
        }
        self.out = self.frames.front().map_or(Time::MAX, |next| next.done + self.delay);
    }
}
