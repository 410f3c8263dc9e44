//! State that a class with turns of bytes keeps of a flow.

use super::ShareRelease;
use crate::base::VirtualClock;
use crate::flow::{law_state, Place};
use crate::rate::Rate;
use crate::time::{Duration, Time};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Most that a flow may be ahead of its maximum rate, as time. Any excess is written off.
const MOST_AHEAD: Duration = Duration::from_millis(100);

/// Turns of a class that [`Round`] looks back on.
const LATELY: u16 = 1024;

/// State of a flow with turns of bytes.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub struct Turn {
    place: Place,
    /// Bytes that its sender was permitted to send and that the receiver has not been seen to get.
    pub early: u32,
    /// Bytes that it has earned in its rounds and was not released, at least minus two turns.
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

/// Earnings of each flow of a class in a round: the largest turn of its flows lately. So flows with segments
/// of one size have whole ones in each round, and others as many bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Round {
    bytes: u32,
    /// The largest turn since `left` was set.
    largest: u32,
    /// Turns until `bytes` is set to that.
    left: u16,
}

impl Round {
    /// Returns the bytes that a flow with segments of this payload earns, where turns are of about `quantum`
    /// bytes.
    pub(crate) fn earn(&mut self, quantum: u32, payload: u16) -> u32 {
        let turn = nearest(quantum, payload);
        if self.left == 0 {
            *self = Round { bytes: self.largest, largest: 0, left: LATELY };
        }
        self.left -= 1;
        self.largest = self.largest.max(turn);
        // The quantum was larger perhaps.
        self.bytes = self.bytes.min(quantum + quantum / 4).max(turn);
        self.bytes
    }
}

/// Returns the whole segments of this payload nearest to `bytes`, at least one, in bytes.
fn nearest(bytes: u32, payload: u16) -> u32 {
    let payload = u32::from(payload.max(1));
    ((bytes + payload / 2) / payload).max(1) * payload
}

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

    /// Returns whether a flow that holds `held` bytes has a turn: it has earned more than half of a segment
    /// of this payload, or all that it holds. What a turn left of a round gives none: others would wait twice
    /// as long.
    pub fn is_due(&self, held: u32, payload: u16) -> bool {
        self.earned() > u32::from(payload) / 2 || held > 0 && self.earned() >= held
    }

    /// Returns the bytes of a turn, where turns are of about `quantum` bytes: the whole segments of this
    /// payload that are nearest to it, or to what was earned beyond it; at least one.
    pub fn bytes(&self, quantum: u32, payload: u16) -> u32 {
        nearest(self.earned().max(quantum), payload)
    }

    fn earned(&self) -> u32 {
        self.deficit.max(0).unsigned_abs()
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
    fn a_turn_is_the_whole_segments_nearest_to_what_is_earned() {
        let with = |deficit| Turn { deficit, ..Turn::begin(Time::ZERO) };
        let of_round = [536, 1_000, 1_448, 1_460].map(|payload| with(2_920).bytes(2_920, payload));
        assert_eq!(of_round, [2_680, 3_000, 2_896, 2_920]);
        let of_ordinary = [-500, 1_460, 3_649, 3_650].map(|deficit| with(deficit).bytes(2_920, 1_460));
        assert_eq!(of_ordinary, [2_920, 2_920, 2_920, 4_380]);
        assert_eq!(
            [-1, 0, 730, 731].map(|deficit| with(deficit).is_due(0, 1_460)),
            [false, false, false, true]
        );
        assert_eq!([99, 100].map(|deficit| with(deficit).is_due(100, 1_460)), [false, true]);
    }

    #[test]
    fn a_round_earns_the_largest_turn_lately() {
        let mut round = Round::default();
        assert_eq!([round.earn(2_920, 1_448), round.earn(2_920, 1_448)], [2_896, 2_896]);
        assert_eq!([round.earn(2_920, 1_000), round.earn(2_920, 1_448)], [3_000, 3_000]);
        // All of the turns that are looked back on, twice: 1,000 bytes are not among the second ones.
        let last = (0..2 * u32::from(LATELY)).map(|_| round.earn(2_920, 1_448)).last();
        assert_eq!(last, Some(2_896));
        round.earn(29_200, 1_460);
        assert!(round.earn(2_920, 1_460) <= 3_650, "a class whose rate fell");
    }

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
