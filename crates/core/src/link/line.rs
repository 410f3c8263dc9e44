//! The frames on a link, in the order in which they came and will leave: those that wait for the rate, the one
//! being serialized, and those in the propagation line, which delays and never limits.

use super::charge::Charge;
use crate::frame::Frame;
use crate::time::{Duration, Time};
use std::collections::VecDeque;

/// Room for frames before the storage grows, by doubling. A ring much larger than what is in it would go
/// through the cache for nothing.
const ROOM: usize = 64;

/// A frame on the link.
#[derive(Debug)]
pub(super) struct Transit {
    pub(super) frame: Frame,
    pub(super) charge: Charge,
    /// When it arrived.
    pub(super) since: Time,
    /// When it is serialized.
    pub(super) done: Time,
}

#[derive(Debug)]
pub(super) struct Line {
    delay: Duration,
    frames: VecDeque<Transit>,
    /// The last of them, not serialized yet.
    pending: usize,
    /// When the first of these is; never, if there is none.
    next_done: Time,
}

impl Line {
    /// A line `delay` long.
    pub(super) fn new(delay: Duration) -> Line {
        Line { delay, frames: VecDeque::with_capacity(ROOM), pending: 0, next_done: Time::MAX }
    }
    /// A frame came that is to be serialized; `done` never decreases.
    pub(super) fn push(&mut self, transit: Transit) {
        if self.pending == 0 {
            self.next_done = transit.done;
        }
        self.frames.push_back(transit);
        self.pending += 1;
    }
    /// A frame came that takes no time to serialize. Of one line, all frames do or none.
    pub(super) fn push_at_once(&mut self, now: Time, frame: Frame) {
        self.frames.push_back(Transit { frame, charge: Charge::default(), since: now, done: now });
    }
    /// Is no frame being serialized?
    pub(super) fn is_idle(&self) -> bool {
        self.pending == 0
    }
    /// When the frame being serialized is through; [`Time::MAX`] if there is none.
    pub(super) fn next_done(&self) -> Time {
        self.next_done
    }
    /// The frame being serialized is through. That frame, and the one that is serialized next.
    pub(super) fn served(&mut self) -> (Option<&Transit>, Option<&Transit>) {
        let first = self.frames.len() - self.pending;
        self.pending = self.pending.saturating_sub(1);
        let (served, next) = (self.frames.get(first), self.frames.get(first + 1));
        self.next_done = next.map_or(Time::MAX, |n| n.done);
        (served, next)
    }
    /// When the next frame comes out.
    pub(super) fn due(&self) -> Option<Time> {
        self.frames.front().map(|f| f.done + self.delay)
    }
    /// The next frame that is out by `now`, and since when. Call when everything serialized by `now` is known to be.
    pub(super) fn pop(&mut self, now: Time) -> Option<(Time, Frame)> {
        let due = self.due().filter(|&due| due <= now)?;
        self.frames.pop_front().map(|f| (due, f.frame))
    }
}
