//! One timer for each number below a capacity. Each timer is armed on one of several independent tracks. Due
//! timers of a track that is not polled cost the others nothing.

mod lane;
mod ready;
mod slot;
mod track;
mod wheel;

#[cfg(test)]
mod tests;

use super::NONE;
use crate::base::time::Time;
use track::Track;

/// State of a timer.
#[derive(Clone, Copy)]
struct Timer {
    /// Time for which it was armed last.
    due: u64,
    /// Turn in which it was armed. 0 when it is not armed.
    turn: u32,
    /// Place on its track.
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
    /// Returns timers `0..capacity`, none armed.
    pub fn new(capacity: u32) -> Self {
        Timers::with_slots_of(capacity, wheel::MOST)
    }

    fn with_slots_of(capacity: u32, most: usize) -> Self {
        Timers {
            timers: vec![IDLE; capacity as usize],
            tracks: core::array::from_fn(|_| Track::with_slots_of(most)),
        }
    }

    /// Grows to at least `capacity` timers.
    pub fn grow(&mut self, capacity: u32) {
        if capacity as usize > self.timers.len() {
            self.timers.resize(capacity as usize, IDLE);
        }
    }

    /// Returns the time for which timer `i` was armed last.
    pub fn due(&self, i: u32) -> Time {
        Time::from_nanos(self.timers[i as usize].due)
    }

    /// Returns whether timer `i` is armed.
    pub fn is_armed(&self, i: u32) -> bool {
        self.timers[i as usize].is_armed()
    }

    /// Arms timer `i`, which is not armed, for `due` on a track. A time before that of the last timer that
    /// fired there counts as that time. [`Time::MAX`], which means no time, fires a nanosecond early.
    pub fn arm(&mut self, track: usize, i: u32, due: Time) {
        self.tracks[track].arm(&mut self.timers, i, due.as_nanos());
    }

    /// Arms a timer as [`Timers::arm`] does, for timers that are re-armed with a constant period. Many of
    /// them cost less.
    #[inline(always)]
    pub fn arm_again(&mut self, track: usize, i: u32, due: Time) {
        self.tracks[track].arm_again(&mut self.timers, i, due.as_nanos());
    }

    /// Disarms timer `i`, which is armed on this track.
    pub fn disarm(&mut self, track: usize, i: u32) {
        self.tracks[track].disarm(&mut self.timers, i);
    }

    /// Removes the next timer of a track that is due at `now` or before. Timers due at the same nanosecond
    /// fire in the order in which they were armed.
    #[inline]
    pub fn pop(&mut self, track: usize, now: Time) -> Option<u32> {
        self.tracks[track].pop(&mut self.timers, now.as_nanos())
    }

    /// Returns the due time of the first timer of a track. [`Time::MAX`] without one.
    #[inline]
    pub fn next(&self, track: usize) -> Time {
        Time::from_nanos(self.tracks[track].next())
    }

    /// Shows the timers that are due at `until` or before, for prefetching. About `most` are examined, from
    /// the front of their slots.
    pub fn soon(&self, until: Time, most: usize, mut show: impl FnMut(u32)) {
        let mut left = most;
        for track in &self.tracks {
            track.soon(&self.timers, until.as_nanos(), &mut left, &mut show);
        }
    }
}
