//! One timer for each number below a capacity. Each timer is armed on one of several tracks, which are independent of each other:
//! timers that are due on a track that nobody looks at cost the others nothing.

mod lane;
mod ready;
mod slot;
mod track;
mod wheel;

#[cfg(test)]
mod tests;

use super::NONE;
use crate::time::Time;
use track::Track;

/// What is kept of each timer.
#[derive(Clone, Copy)]
struct Timer {
    /// When it was armed for last.
    due: u64,
    /// The turn in which it was armed; 0 when it is not.
    turn: u32,
    /// Where it is on its track.
    place: u32,
}

const IDLE: Timer = Timer { due: 0, turn: 0, place: NONE };

impl Timer {
    fn is_armed(&self) -> bool {
        self.turn != IDLE.turn
    }
}

/// Timers on `TRACKS` tracks. Every operation takes constant time.
pub struct Timers<const TRACKS: usize> {
    timers: Vec<Timer>,
    tracks: [Track; TRACKS],
}

impl<const TRACKS: usize> Timers<TRACKS> {
    /// Timers `0..capacity`, none armed.
    pub fn new(capacity: u32) -> Self {
        Timers::with_slots_of(capacity, wheel::MOST)
    }

    fn with_slots_of(capacity: u32, most: usize) -> Self {
        Timers {
            timers: vec![IDLE; capacity as usize],
            tracks: core::array::from_fn(|_| Track::with_slots_of(most)),
        }
    }

    /// There are at least so many timers.
    pub fn grow(&mut self, capacity: u32) {
        if capacity as usize > self.timers.len() {
            self.timers.resize(capacity as usize, IDLE);
        }
    }

    /// For when timer `i` was armed last.
    pub fn due(&self, i: u32) -> Time {
        Time::from_nanos(self.timers[i as usize].due)
    }

    /// Is timer `i` armed?
    pub fn is_armed(&self, i: u32) -> bool {
        self.timers[i as usize].is_armed()
    }

    /// Arms timer `i`, which is not armed, for `due` on a track. A time before that of the last timer that fired there is as good as
    /// that. [`Time::MAX`], which is none, comes a nanosecond early.
    pub fn arm(&mut self, track: usize, i: u32, due: Time) {
        self.tracks[track].arm(&mut self.timers, i, due.as_nanos());
    }

    /// As [`Timers::arm`], of a timer that is armed again and again after the same time. Many of them cost less.
    #[inline(always)]
    pub fn arm_again(&mut self, track: usize, i: u32, due: Time) {
        self.tracks[track].arm_again(&mut self.timers, i, due.as_nanos());
    }

    /// Disarms timer `i`, which is armed on this track.
    pub fn disarm(&mut self, track: usize, i: u32) {
        self.tracks[track].disarm(&mut self.timers, i);
    }

    /// The next timer of a track that is due at `now` or before, disarmed. Those due at the same nanosecond come in the order in
    /// which they were armed.
    #[inline]
    pub fn pop(&mut self, track: usize, now: Time) -> Option<u32> {
        self.tracks[track].pop(&mut self.timers, now.as_nanos())
    }

    /// When the first timer of a track is due; [`Time::MAX`] without one.
    #[inline]
    pub fn next(&self, track: usize) -> Time {
        Time::from_nanos(self.tracks[track].next())
    }

    /// Shows the timers that are due at `until` or before, as far as they are among the first `most` or so in their
    /// slots: what is about to fire can be loaded in time.
    pub fn soon(&self, until: Time, most: usize, mut show: impl FnMut(u32)) {
        let mut left = most;
        for track in &self.tracks {
            track.soon(&self.timers, until.as_nanos(), &mut left, &mut show);
        }
    }
}
