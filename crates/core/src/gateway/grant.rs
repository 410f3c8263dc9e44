//! Grants: what the hooks let pass of a flow whose rate does not bind
//! ([`Slot::grant`](crate::steer::Slot::grant)).
//!
//! Where nothing of a flow is held, no release is scheduled and its credit was earned, the next ACKs would
//! leave at once if they came here. So the hook is told to let them, as far as the credit goes and what will
//! have been earned by the next look. What has passed is charged when the flow is next looked at: when
//! anything of it comes, or when its timer says so, before the grant is likely to be used up. An average over
//! any time is therefore the same as without grants, plus what the rate carries from one look to the next;
//! and at once no more passes than a step and that, by a grant, and a step by the gateway.
//!
//! Flows get grants that have been free of the rate for long enough, so that one whose rate binds never has
//! one
//! ([`Pace::free`](crate::ack::Pace::free)); whose window can be sized by the hook; and whose ACKs carry no
//! state that is passed on here
//! (AccECN, marks that are still to be told); and whose class holds ACKs at all times. A grant that was not
//! used for 4 ms is not renewed: a flow that is silent has neither grant nor timer.

use super::{millis, Gateway};
use crate::ack::When;
use crate::flow::{flag, Record};
use crate::time::{Duration, Time};
use core::sync::atomic::Ordering::Relaxed;

/// Looks are at multiples of this, and of twice, four or eight times as much where they are as far apart, so
/// that those of many flows are one wake-up.
const GRID: Duration = Duration::from_micros(500);
/// Time to the next look, at most; and how close ACKs have to be to be worth a grant.
pub(super) const LONGEST: Duration = Duration::from_millis(4);

/// A flow before it is looked at.
#[derive(Clone, Copy)]
pub(super) struct Look {
    pub(super) tx: u32,
    /// Time at which the grant was made.
    pub(super) since: Time,
}

impl Gateway {
    /// Returns the state of the flow before a look, if it has a grant.
    #[inline]
    pub(super) fn granted(&self, i: u32) -> Option<Look> {
        let r = &self.table[i];
        r.has(flag::GRANTED).then(|| Look { tx: r.tx, since: r.kept().last_grant().1 })
    }

    /// The next ACKs of the flow may pass, if they would here. What has passed is looked at after `within`.
    pub(super) fn grant(&mut self, i: u32, now: Time, within: Duration) {
        let r = &self.table[i];
        let policy = self.classes.policy(r.class);
        let slot = &self.slots[i];
        if r.takes_turns() || !self.may_grant(i) {
            return;
        }
        let bytes = policy.release.free(&r.law, now, LONGEST, self.rtt(r)).min(1 << 30);
        let limit = self.window_limit(r);
        if bytes < 2 * u32::from(r.mss) {
            return;
        }
        slot.width.store(limit.unwrap_or(0), Relaxed);
        if slot.grant(r.tx.wrapping_add(bytes)) {
            self.table[i].set(flag::GRANTED, true);
            self.start_timer(i, shared_look(now, within));
        }
    }

    /// May ACKs of the flow pass that tell nothing but progress, as far as its rate allows?
    pub(super) fn may_grant(&self, i: u32) -> bool {
        let r = &self.table[i];
        self.hooked
            && !self.ends
            && r.generation == self.generation
            && (r.takes_steps() || self.classes.policy(r.class).hold.is_number())
            && self.classes.policy(r.class).when == When::Always
            && r.may_be_granted()
            && self.slots[i].window() != 0
    }

    /// As [`Gateway::grant`], for a flow that was just acknowledged `bytes`, and last something at `last`:
    /// one whose ACKs are far apart is better off without.
    pub(super) fn grant_busy(&mut self, i: u32, now: Time, last: Time, bytes: u32) {
        if now.since(last) <= LONGEST {
            let within = self.half_used(i, bytes, now.since(last));
            self.grant(i, now, within);
        }
    }

    /// Returns the time that half of a grant of a full step takes a flow that used `bytes` in `time`, at most
    /// [`LONGEST`].
    fn half_used(&self, i: u32, bytes: u32, time: Duration) -> Duration {
        let pace = self.table[i].law.pace();
        let meanwhile = pace.rate().map_or(0, |rate| rate.bytes_in(LONGEST));
        let half = (u128::from(pace.step()) + u128::from(meanwhile)) / 2;
        let ns = half * u128::from(time.as_nanos()) / u128::from(bytes.max(1));
        Duration::from_nanos(ns.min(u128::from(LONGEST.as_nanos())) as u64)
    }

    /// The flow's grant ends; what has passed is still to be charged. False if it had none.
    #[inline]
    pub(super) fn end_grant(&mut self, i: u32) -> bool {
        let granted = self.table[i].has(flag::GRANTED);
        if granted {
            self.take_back(i);
        }
        granted
    }

    /// Nothing of the flow passes any more.
    #[inline(never)]
    fn take_back(&mut self, i: u32) {
        self.unreserve(i);
        self.slots[i].revoke();
        self.table[i].set(flag::GRANTED, false);
        self.stop_timer(i);
    }

    /// The flow, whose grant has ended and was charged, gets another one if it used the last.
    pub(super) fn grant_again(&mut self, i: u32, now: Time, last: Look) {
        let r = &self.table[i];
        if r.takes_turns() {
            return self.grant_shared(i, now, Some(last));
        }
        let used = r.tx.wrapping_sub(last.tx);
        let silent = used == 0 && now.since(last.since) >= LONGEST;
        if silent || r.has(flag::ARMED) {
            return;
        }
        let within = self.half_used(i, used, now.since(last.since));
        self.table.touch(i, millis(now));
        self.grant(i, now, within);
    }
}

impl Record {
    /// The flow, which shares a rate, was granted so many bytes at `now`.
    pub(super) fn note_grant(&mut self, bytes: u32, now: Time) {
        match self.takes_steps() {
            true => self.law.steps_mut().note_grant(bytes, now),
            false => self.law.turn_mut().note_grant(bytes, now),
        }
    }

    /// May ACKs pass that tell nothing but progress?
    fn may_be_granted(&self) -> bool {
        let known = flag::SYNCED | flag::SHOWN | flag::SCALE_KNOWN | flag::EDGE_KNOWN;
        let not = flag::ARMED
            | flag::GRANTED
            | flag::CLOSED
            | flag::PASSES
            | flag::ACCECN
            | flag::SENDER_FIN
            | flag::RECEIVER_FIN;
        self.has(known) && self.flags & not == 0 && !self.holds() && self.window != 0 && self.marked <= 0
    }
}

/// The first multiple of [`GRID`] that is no earlier.
pub(super) fn on_grid(at: Time) -> Time {
    Time::from_nanos(at.as_nanos().next_multiple_of(GRID.as_nanos()))
}

/// Returns the time of the next look at what has passed, at most `within` from `now`. It is the last multiple
/// of the longest grid that is no longer than `within`, or the next one of the shortest grid.
fn shared_look(now: Time, within: Duration) -> Time {
    let doublings = (within.as_nanos() / GRID.as_nanos()).checked_ilog2().unwrap_or(0);
    let grid = GRID.as_nanos() << doublings;
    let next = (now.as_nanos() / grid + 1) * grid;
    let last = now.as_nanos().saturating_add(within.as_nanos()) / grid * grid;
    Time::from_nanos(last.max(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_of_many_flows_are_at_the_same_times() {
        let at = |now, within| {
            let look = shared_look(Time::from_micros(now), Duration::from_micros(within));
            look.as_nanos() / 1_000
        };
        let four: Vec<u64> = [0, 1, 3_999, 4_000, 4_100].map(|now| at(now, 4_000)).into();
        assert_eq!(four, [4_000, 4_000, 4_000, 8_000, 8_000]);
        assert_eq!([at(4_100, 3_900), at(4_100, 1_999), at(4_100, 700)], [8_000, 6_000, 4_500]);
        // Within less than the shortest.
        assert_eq!([at(4_100, 300), at(4_400, 300), at(4_500, 0)], [4_500, 4_500, 5_000]);
    }
}
