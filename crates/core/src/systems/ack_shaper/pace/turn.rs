//! State that the law *share* keeps of a flow, in fields of [`Pace`] that only releases at a rate use
//! otherwise.

use super::Pace;
use crate::rate::{ByteClock, Rate};
use crate::systems::class_rate::{ShareRelease, Turn};
use crate::time::{Duration, Time};

/// Most that a flow may be ahead of its maximum rate, as time. Any excess is written off.
const MOST_AHEAD: Duration = Duration::from_millis(100);

/// Binary logarithm of the unit of waiting times, in nanoseconds. Units of 2^10 ns wrap after 73 minutes.
const UNIT: u32 = 10;

fn units(now: Time) -> u32 {
    (now.as_nanos() >> UNIT) as u32
}

impl Pace {
    /// Returns the state of the law *share*.
    pub fn turn(&self) -> Turn {
        Turn { early: self.credit, deficit: self.ahead, next: self.smooth_milli, prev: self.progress }
    }

    /// Sets the state of [`Pace::turn`].
    pub fn set_turn(&mut self, turn: Turn) {
        (self.credit, self.ahead) = (turn.early, turn.deficit);
        (self.smooth_milli, self.progress) = (turn.next, turn.prev);
    }

    /// Notes that the flow waits for its next turn from `now` on.
    pub fn wait_from(&mut self, now: Time) {
        self.state = units(now);
    }

    /// Returns the time for which the flow has waited for its turn, if it waits.
    pub fn waited(&self, now: Time) -> Duration {
        Duration::from_nanos(u64::from(units(now).wrapping_sub(self.state)) << UNIT)
    }

    /// Returns the earliest time at which a flow with a maximum rate may get more.
    pub fn free_from(&self) -> Time {
        Time::from_nanos(self.due)
    }

    /// Charges `bytes` to a flow whose maximum rate is `most`. An idle flow earns as much credit as an idle
    /// class.
    pub fn spend(&mut self, bytes: u64, most: Rate, now: Time) {
        let earliest = now.saturating_sub(ShareRelease::new(most).credit());
        if self.free_from() < earliest {
            (self.due, self.mark) = (earliest.as_nanos(), 0);
        }
        let mut clock = ByteClock::new(most);
        clock.carry(self.mark);
        let due = self.free_from() + clock.advance(bytes);
        (self.due, self.mark) = (due.min(now + MOST_AHEAD).as_nanos(), clock.carried());
    }

    /// Gives back `bytes` of the spent ones, to a flow whose maximum rate is `most`.
    pub fn unspend(&mut self, bytes: u64, most: Rate) {
        self.due = self.free_from().saturating_sub(most.time_for(bytes)).as_nanos();
    }

    /// Notes that a flow without a maximum rate was granted `bytes` at `now`.
    pub fn note_grant(&mut self, bytes: u32, now: Time) {
        (self.due, self.period) = (now.as_nanos(), bytes);
    }

    /// Returns the bytes of the last grant.
    pub fn granted(&self) -> u32 {
        self.period
    }

    /// Sets the flow's current share of its class's rate, as payload.
    pub fn set_share(&mut self, share: Rate) {
        self.rate_bps = share.bps();
    }
}
