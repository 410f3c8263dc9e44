//! The propagation line: every frame comes out as it went in, later by the delay. It never limits.

use crate::frame::Frame;
use crate::time::{Duration, Time};
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Line {
    delay: Duration,
    flying: VecDeque<(Time, Frame)>,
}

impl Line {
    /// A line `delay` long with room for `frames` before its storage grows.
    pub(super) fn new(delay: Duration, frames: u64) -> Line {
        Line { delay, flying: super::storage(frames) }
    }
    pub(super) fn delay(&self) -> Duration {
        self.delay
    }
    /// A frame went in at `at`, which never decreases.
    pub(super) fn push(&mut self, at: Time, frame: Frame) {
        self.flying.push_back((at + self.delay, frame));
    }
    /// When the next frame comes out.
    pub(super) fn due(&self) -> Option<Time> {
        self.flying.front().map(|f| f.0)
    }
    /// The next frame that is out by `now`, and since when.
    pub(super) fn pop(&mut self, now: Time) -> Option<(Time, Frame)> {
        self.due().filter(|&due| due <= now)?;
        self.flying.pop_front()
    }
}
