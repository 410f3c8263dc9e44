//! Timers that go on independently of others: a wheel, and lanes beside it.
//!
//! Flows of one period are armed for their next release in the order in which the last was due. Such timers need no wheel: a queue
//! has them in their order. There are two of these *lanes*, and a timer goes to the one in whose order it is by the least. What
//! is in no lane's order goes to the wheel, and whatever is not armed again and again.

use super::lane::Lane;
use super::slot::{is_armed, Entry};
use super::wheel::Wheel;
use super::{Timer, IDLE};

/// Periods that have a lane each, if there are no more.
pub(super) const LANES: usize = 2;
/// In place of a lane's number.
const WHEEL: u32 = LANES as u32;
/// No timer is due later.
const LATEST: u64 = u64::MAX - 1;

/// See the module documentation. What is armed, and in which turn, the table of timers knows.
pub(super) struct Track {
    lanes: [Lane; LANES],
    pub(super) wheel: Wheel,
    /// When the first timer is due; `u64::MAX` without one.
    first: u64,
    /// When the timer that fired last was due.
    fired: u64,
    /// Of the timer that was armed last; never 0.
    turn: u32,
}

impl Track {
    /// A track whose wheel divides slots that have `most` timers.
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

    /// As [`Track::arm`], of a timer that is armed again and again after the same time.
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

    /// The lane whose last timer is due latest of those that are due no later than this.
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

    /// The next timer due at `now` or before, disarmed.
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

    /// Where the first timer is, of those due at the same time the one that was armed first.
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

    /// As [`Track::front`], where timers in several places are due first.
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

    /// When the first timer is due has changed.
    #[inline]
    fn look(&mut self) {
        self.first = self.lanes.iter().fold(self.wheel.next(), |first, lane| first.min(lane.due));
    }

    /// When the first timer is due; `u64::MAX` without one.
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.first
    }

    /// Shows the timers that are due at `until` or before, as far as they are among the first `left` or so in their lanes and
    /// slots.
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

/// Is a turn before another? They wrap.
fn is_before(turn: u32, other: u32) -> bool {
    (turn.wrapping_sub(other) as i32) < 0
}
