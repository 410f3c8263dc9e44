//! State that a class with turns of bytes keeps of a flow.

use super::ShareRelease;
use crate::base::VirtualClock;
use crate::flow::{law_state, Place};
use crate::rate::Rate;
use crate::time::{Duration, Time};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Most that a flow may be ahead of its maximum rate, as time. Any excess is written off.
const MOST_AHEAD: Duration = Duration::from_millis(100);

/// State of a flow with turns of bytes.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub struct Turn {
    place: Place,
    /// Bytes that its sender was permitted to send and that the receiver has not been seen to get.
    pub early: u32,
    /// Bytes that it may be released in this round, at least minus two turns.
    pub deficit: i32,
    /// Bytes of the last grant, and its time.
    granted: u32,
    granted_at: u64,
    /// Earliest time at which a flow with a maximum rate may get more.
    free_from: u64,
    /// Remainder of the clock of its maximum rate.
    carried: u64,
    /// Share of the class's rate at its last turn, in payload bits per second. 0 before the first.
    share_bps: u64,
}

law_state!(pub Turn, turn, turn_mut);

impl Turn {
    /// Returns the state of a flow that begins at `now`.
    pub fn begin(now: Time) -> Turn {
        Turn {
            place: Place::NONE,
            early: 0,
            deficit: 0,
            granted: 0,
            granted_at: 0,
            free_from: now.as_nanos(),
            carried: 0,
            share_bps: 0,
        }
    }

    /// Permits the sender `bytes` more.
    pub fn permit(&mut self, bytes: u32, quantum: u32) {
        self.early = self.early.saturating_add(bytes);
        self.take(bytes, quantum);
    }

    /// Notes that the receiver has got `bytes` more. Returns those of them that were not permitted before,
    /// which is the growth of the sender's window.
    pub fn received(&mut self, bytes: u32, quantum: u32) -> u32 {
        let grown = bytes.saturating_sub(self.early);
        self.early = self.early.saturating_sub(bytes);
        self.take(grown, quantum);
        grown
    }

    fn take(&mut self, bytes: u32, quantum: u32) {
        let least = -(2 * quantum as i32);
        self.deficit = self.deficit.saturating_sub_unsigned(bytes).max(least);
    }

    /// Returns the earliest time at which a flow with a maximum rate may get more.
    pub fn free_from(&self) -> Time {
        Time::from_nanos(self.free_from)
    }

    /// Charges `bytes` to a flow whose maximum rate is `most`. An idle flow earns as much credit as an idle
    /// class.
    pub fn spend(&mut self, bytes: u64, most: Rate, now: Time) {
        let mut clock = VirtualClock::restored(most, self.free_from(), self.carried);
        clock.forfeit(now.saturating_sub(ShareRelease::new(most).credit()));
        clock.charge(bytes);
        (self.free_from, self.carried) = (clock.due().min(now + MOST_AHEAD).as_nanos(), clock.carried());
    }

    /// Gives back `bytes` of the spent ones, to a flow whose maximum rate is `most`.
    pub fn unspend(&mut self, bytes: u64, most: Rate) {
        self.free_from = self.free_from().saturating_sub(most.time_for(bytes)).as_nanos();
    }

    /// Notes that a flow without a maximum rate was granted `bytes` at `now`.
    pub fn note_grant(&mut self, bytes: u32, now: Time) {
        (self.granted, self.granted_at) = (bytes, now.as_nanos());
    }

    /// Returns the bytes of the last grant, and its time.
    pub fn last_grant(&self) -> (u32, Time) {
        (self.granted, Time::from_nanos(self.granted_at))
    }

    /// Sets the flow's current share of its class's rate, as payload.
    pub fn set_share(&mut self, share: Rate) {
        self.share_bps = share.bps();
    }

    /// Returns the flow's share of its class's rate at its last turn, as payload.
    pub fn share(&self) -> Option<Rate> {
        Rate::from_bps(self.share_bps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_arrives_unpermitted_is_growth() {
        let mut turn = Turn { early: 1_000, deficit: 500, ..Turn::begin(Time::ZERO) };
        assert_eq!(turn.received(800, 3_000), 0);
        assert_eq!((turn.early, turn.deficit), (200, 500));
        assert_eq!(turn.received(1_500, 3_000), 1_300);
        assert_eq!((turn.early, turn.deficit), (0, -800));
        turn.permit(9_000, 3_000);
        assert_eq!((turn.early, turn.deficit), (9_000, -6_000), "two turns behind at most");
    }
}
