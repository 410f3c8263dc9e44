//! The state that the law *share* keeps of a flow, in the fields of a [`Pace`] that only releases at a rate use.

use super::Pace;
use crate::ack::{ShareRelease, Turn};
use crate::rate::{ByteClock, Rate};
use crate::time::{Duration, Time};

/// What is further ahead than this of the most that a flow gets is forgiven.
const MOST_AHEAD: Duration = Duration::from_millis(100);

/// Waiting times are kept in units of 2^10 ns, which wrap after 73 minutes.
const UNIT: u32 = 10;

fn units(now: Time) -> u32 {
    (now.as_nanos() >> UNIT) as u32
}

impl Pace {
    /// What the law *share* keeps.
    pub fn turn(&self) -> Turn {
        Turn { early: self.credit, deficit: self.ahead, next: self.smooth_milli, prev: self.progress }
    }

    /// See [`Pace::turn`].
    pub fn set_turn(&mut self, turn: Turn) {
        (self.credit, self.ahead) = (turn.early, turn.deficit);
        (self.smooth_milli, self.progress) = (turn.next, turn.prev);
    }

    /// The flow waits for its next turn from `now` on.
    pub fn wait_from(&mut self, now: Time) {
        self.state = units(now);
    }

    /// Time for which the flow has waited for its turn, if it does.
    pub fn waited(&self, now: Time) -> Duration {
        Duration::from_nanos(u64::from(units(now).wrapping_sub(self.state)) << UNIT)
    }

    /// Of a flow that gets `most` at most: when it may get more.
    pub fn free_from(&self) -> Time {
        Time::from_nanos(self.due)
    }

    /// The flow, which gets `most` at most, gets `bytes`. What it earns while it asks for nothing is what a class earns.
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

    /// The flow, which gets `most` at most, does not get `bytes` of what it has spent.
    pub fn unspend(&mut self, bytes: u64, most: Rate) {
        self.due = self.free_from().saturating_sub(most.time_for(bytes)).as_nanos();
    }

    /// A flow with no such rate was granted so many bytes at `now`.
    pub fn note_grant(&mut self, bytes: u32, now: Time) {
        (self.due, self.period) = (now.as_nanos(), bytes);
    }

    /// The bytes of its last grant.
    pub fn granted(&self) -> u32 {
        self.period
    }

    /// What share of its class's rate the flow has now, as payload.
    pub fn set_share(&mut self, share: Rate) {
        self.rate_bps = share.bps();
    }
}
