//! The state that the law *share* keeps of a flow, in the fields of a [`Pace`] that only releases at a rate use.

use super::Pace;
use crate::ack::{ShareRelease, Turn};
use crate::rate::{ByteClock, Rate};
use crate::time::{Duration, Time};

/// What is further ahead than this of the most that a flow gets is forgiven.
const MOST_AHEAD: Duration = Duration::from_millis(100);

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
