//! Independent timers: a wheel, and lanes beside it.
//!
//! Flows of one period are armed for their next release in the order in which the last was due. A queue keeps
//! such timers in order without a wheel. There are two of these *lanes*. A timer that is re-armed with a
//! constant period goes to the lane that it follows most closely. All other timers go to the wheel.

use super::lane::Lane;
use super::slot::{is_armed, Entry};
use super::wheel::Wheel;
use super::{Timer, IDLE};

/// Number of lanes, and so of periods with a lane each.
pub(super) const LANES: usize = 2;
/// Place of a timer on the wheel.
const WHEEL: u32 = LANES as u32;
/// Latest due time of any timer.
const LATEST: u64 = u64::MAX - 1;

/// See the module documentation. The table of timers keeps which timers are armed, and in which turn.
pub(super) struct Track {
    lanes: [Lane; LANES],
    pub(super) wheel: Wheel,
    /// Due time of the first timer. `u64::MAX` without one.
    first: u64,
    /// Due time of the timer that fired last.
    fired: u64,
    /// Turn of the timer that was armed last. Never 0.
    turn: u32,
}

impl Track {
    /// Returns a track whose wheel divides slots that have `most` timers.
    pub(super) fn with_slots_of(most: usize) -> Track {
        Track {
            lanes: [const { Lane::new() }; LANES],
            wheel: Wheel::with_slots_of(most),
            first: u64::MAX,
            fired: 0,
            turn: 0,
        }
    }

    /// Arms timer `i`, which is not armed.
    pub(super) fn arm(&mut self, timers: &mut [Timer], i: u32, due: u64) {
        let entry = self.entry(timers, i, due);
        self.arm_on_wheel(timers, entry);
    }

    /// Arms a timer as [`Track::arm`] does, for timers that are re-armed with a constant period.
    #[inline(always)]
    pub(super) fn arm_again(&mut self, timers: &mut [Timer], i: u32, due: u64) {
        let entry = self.entry(timers, i, due);
        let place = self.place(entry.due);
        let Some(lane) = self.lanes.get_mut(place as usize) else {
            return self.arm_on_wheel(timers, entry);
        };
        lane.push(entry);
        timers[i as usize] = Timer { due: entry.due, turn: entry.turn, place };
        self.first = self.first.min(entry.due);
    }

    #[inline(always)]
    fn entry(&mut self, timers: &[Timer], i: u32, due: u64) -> Entry {
        debug_assert!(!timers[i as usize].is_armed(), "timer {i} is armed");
        self.turn = self.turn.wrapping_add(1).max(1);
        Entry { due: due.max(self.fired).min(LATEST), timer: i, turn: self.turn }
    }

    #[inline(never)]
    fn arm_on_wheel(&mut self, timers: &mut [Timer], entry: Entry) {
        let due = self.wheel.arm(timers, entry);
        timers[entry.timer as usize] = Timer { due, turn: entry.turn, place: WHEEL };
        self.first = self.first.min(due);
    }

    /// Returns the lane whose last timer is due latest, among the lanes that take a timer due then.
    #[inline(always)]
    fn place(&self, due: u64) -> u32 {
        let (mut place, mut latest) = (WHEEL, 0);
        for (n, lane) in self.lanes.iter().enumerate() {
            if lane.from <= due && lane.from >= latest {
                (place, latest) = (n as u32, lane.from);
            }
        }
        place
    }

    /// Disarms timer `i`, which is armed here.
    pub(super) fn disarm(&mut self, timers: &mut [Timer], i: u32) {
        let timer = &mut timers[i as usize];
        debug_assert!(timer.is_armed(), "timer {i} is not armed");
        let Timer { due, place, .. } = *timer;
        *timer = Timer { due, ..IDLE };
        match self.lanes.get_mut(place as usize) {
            Some(lane) => lane.disarm(timers, due),
            None => self.wheel.disarm(timers, due),
        }
        if due == self.first {
            self.look();
        }
    }

    /// Removes the next timer due at `now` or before.
    #[inline]
    pub(super) fn pop(&mut self, timers: &mut [Timer], now: u64) -> Option<u32> {
        if self.first > now.min(LATEST) {
            return None;
        }
        let place = self.front(timers);
        let entry = match self.lanes.get_mut(place as usize) {
            Some(lane) => lane.pop(timers)?,
            None => self.wheel.pop(timers)?,
        };
        timers[entry.timer as usize].turn = IDLE.turn;
        self.fired = self.fired.max(entry.due);
        self.look();
        Some(entry.timer)
    }

    /// Returns the place of the first timer. Among timers due at the same time, the one armed first counts.
    #[inline(always)]
    fn front(&mut self, timers: &[Timer]) -> u32 {
        let mut places = u32::from(self.wheel.next() == self.first);
        let mut place = WHEEL;
        for (n, lane) in self.lanes.iter().enumerate() {
            if lane.due == self.first {
                (place, places) = (n as u32, places + 1);
            }
        }
        if places > 1 {
            return self.armed_first(timers);
        }
        place
    }

    /// Decides for [`Track::front`] between several places whose timers are due first.
    #[cold]
    fn armed_first(&mut self, timers: &[Timer]) -> u32 {
        let (mut place, mut first) = (WHEEL, None);
        if self.wheel.next() == self.first {
            first = self.wheel.turn(timers);
        }
        for (n, lane) in self.lanes.iter().enumerate().filter(|(_, lane)| lane.due == self.first) {
            let turn = lane.turn();
            if first.zip(turn).is_none_or(|(first, turn)| is_before(turn, first)) {
                (place, first) = (n as u32, turn);
            }
        }
        place
    }

    /// Updates the due time of the first timer.
    #[inline]
    fn look(&mut self) {
        self.first = self.lanes.iter().fold(self.wheel.next(), |first, lane| first.min(lane.due));
    }

    /// Returns the due time of the first timer. `u64::MAX` without one.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.first
    }

    /// Shows the timers that are due at `until` or before. About `left` are examined, from the front of their
    /// lanes and slots.
    pub(super) fn soon(&self, timers: &[Timer], until: u64, left: &mut usize, show: &mut impl FnMut(u32)) {
        if self.first > until {
            return;
        }
        for lane in &self.lanes {
            let due = lane.until(until).filter(|entry| is_armed(timers, entry)).take(*left);
            *left -= due.map(|entry| show(entry.timer)).count();
        }
        self.wheel.soon(timers, until, left, show);
    }
}

/// Returns whether a turn is before another. Turns wrap.
fn is_before(turn: u32, other: u32) -> bool {
    (turn.wrapping_sub(other) as i32) < 0
}
