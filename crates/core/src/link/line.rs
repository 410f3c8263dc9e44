//! The propagation line: it delays frames and never limits their number.
//!
//! A frame comes out when it is due, whatever entered before it. Where each frame is due later than the one
//! before, as on a line with one delay, the line is a ring. Where frames may overtake each other, it is a
//! heap by due time. Frames due at the same time come out in order of entry. Frames lie in the line itself
//! and are not parked: a ring is read in order, while places in the pool are scattered.

use super::jitter::{Jitter, Lateness, Reorder};
use crate::frame::Frame;
use crate::time::{Duration, Time};
use core::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

/// A frame in flight, ordered by exit time, then by entry.
#[derive(Debug)]
struct Flying {
    due: Time,
    nth: u64,
    frame: Frame,
}

impl Flying {
    fn key(&self) -> (Time, u64) {
        (self.due, self.nth)
    }
}

impl PartialEq for Flying {
    fn eq(&self, other: &Flying) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Flying {}
impl Ord for Flying {
    fn cmp(&self, other: &Flying) -> Ordering {
        self.key().cmp(&other.key())
    }
}
impl PartialOrd for Flying {
    fn partial_cmp(&self, other: &Flying) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Frames in flight.
#[derive(Debug)]
enum Frames {
    /// Frames that come out in order of entry, with their exit times.
    InOrder(VecDeque<(Time, Frame)>),
    /// Frames that overtake each other, and the number of all frames so far.
    ByDue(BinaryHeap<Reverse<Flying>>, u64),
}

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct Line {
    delay: Duration,
    /// Extra time on top of the delay, if any.
    lateness: Option<Box<Lateness>>,
    /// Exit time of the next frame. [`Time::MAX`] if there is none.
    next: Time,
    frames: Frames,
}

impl Line {
    /// Returns a line `delay` long. Random draws come from `seed`.
    pub(super) fn new(delay: Duration, jitter: Jitter, reorder: Reorder, seed: u64) -> Line {
        let frames = match jitter.overtakes() || reorder.overtakes() {
            true => Frames::ByDue(BinaryHeap::new(), 0),
            false => Frames::InOrder(VecDeque::new()),
        };
        let lateness = Lateness::new(jitter, reorder, seed).map(Box::new);
        Line { delay, lateness, next: Time::MAX, frames }
    }

    /// Adds a frame at `now`, which never goes back.
    pub(super) fn push(&mut self, now: Time, frame: Frame) {
        let due = match &mut self.lateness {
            None => now + self.delay,
            Some(lateness) => lateness.due(now, self.delay),
        };
        self.put(due, frame);
    }

    #[inline(always)]
    fn put(&mut self, due: Time, frame: Frame) {
        self.next = self.next.min(due);
        match &mut self.frames {
            Frames::InOrder(frames) => frames.push_back((due, frame)),
            Frames::ByDue(frames, nth) => {
                frames.push(Reverse(Flying { due, nth: *nth, frame }));
                *nth += 1;
            }
        }
    }

    /// Becomes the line `next`, which is empty, at `now`. What is left of a frame's time on the line changes
    /// by as much as the delay does. It is the new delay at most, so no frame comes out behind later ones.
    pub(super) fn change(&mut self, now: Time, next: Line) {
        let before = core::mem::replace(self, next);
        let (old, new) = (before.delay, self.delay);
        let frames: Vec<(Time, Frame)> = match before.frames {
            Frames::InOrder(frames) => frames.into(),
            Frames::ByDue(frames, _) => {
                let frames = frames.into_sorted_vec().into_iter().rev();
                frames.map(|Reverse(flying)| (flying.due, flying.frame)).collect()
            }
        };
        for (due, frame) in frames {
            let due = now + (due.since(now) + new).saturating_sub(old).min(new);
            self.lateness.iter_mut().for_each(|lateness| lateness.keep_behind(due));
            self.put(due, frame);
        }
    }

    /// Returns the exit time of the next frame on the line. [`Time::MAX`] if there is none.
    #[inline]
    pub(super) fn due(&self) -> Time {
        self.next
    }

    /// Returns whether all frames take exactly the delay.
    #[inline]
    pub(super) fn is_exact(&self) -> bool {
        self.lateness.is_none()
    }

    /// Returns the frames that come out next, if they are known.
    #[inline]
    pub(super) fn coming<const N: usize>(&self) -> [Option<&Frame>; N] {
        core::array::from_fn(|n| match &self.frames {
            Frames::InOrder(frames) => frames.get(n).map(|(_, frame)| frame),
            Frames::ByDue(frames, _) => frames.peek().filter(|_| n == 0).map(|Reverse(flying)| &flying.frame),
        })
    }

    /// Returns the next frame that comes out, and its exit time. Panics if there is none.
    #[inline(never)]
    pub(super) fn take(&mut self) -> (Time, Frame) {
        self.pop(Time::MAX).expect("a frame on the line")
    }

    /// Returns the next frame that is out by `now`, and its exit time.
    #[inline]
    pub(super) fn pop(&mut self, now: Time) -> Option<(Time, Frame)> {
        if self.next > now {
            return None;
        }
        let (popped, next) = match &mut self.frames {
            Frames::InOrder(frames) => (frames.pop_front(), frames.front().map(|&(due, _)| due)),
            Frames::ByDue(frames, _) => {
                let popped = frames.pop().map(|Reverse(flying)| (flying.due, flying.frame));
                (popped, frames.peek().map(|Reverse(flying)| flying.due))
            }
        };
        self.next = next.unwrap_or(Time::MAX);
        popped
    }
}
