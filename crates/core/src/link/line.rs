//! The propagation line: it delays, and never limits.

use crate::frame::Parked;
use crate::time::{Duration, Time};
use std::collections::VecDeque;

/// Room for frames before the storage grows, by doubling. A ring much larger than what is in it would go
/// through the cache for nothing.
const ROOM: usize = 64;

/// The frames that fly, in the order in which they will come out, which is that in which they came.
#[derive(Debug)]
pub(super) struct Line {
    delay: Duration,
    /// When each of them comes out.
    frames: VecDeque<(Time, Parked)>,
}

impl Line {
    /// A line `delay` long.
    pub(super) fn new(delay: Duration) -> Line {
        Line { delay, frames: VecDeque::with_capacity(ROOM) }
    }
    /// A frame enters at `now`.
    pub(super) fn push(&mut self, now: Time, frame: Parked) {
        self.frames.push_back((now + self.delay, frame));
    }
    /// When the next frame comes out.
    pub(super) fn due(&self) -> Option<Time> {
        self.frames.front().map(|&(due, _)| due)
    }
    /// The next frame that is out by `now`, and since when.
    pub(super) fn pop(&mut self, now: Time) -> Option<(Time, Parked)> {
        self.due().filter(|&due| due <= now)?;
        self.frames.pop_front()
    }
}
