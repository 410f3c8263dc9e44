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
//!
//! # Flows that share a rate
//!
//! As above, but the credit is the class's:
//! all that is granted is at most what the class has earned and what its rate carries by the next looks, 4
//! ms. So at any time no more than a turn or two and 4 ms of the rate is ahead of it, and over any time no
//! more than that is added to it. A class grants nothing while it is ahead of its clock, nor for 16 round
//! trips of the flow after: where the rate binds nothing is different.
//!
//! # Classes whose ACKs follow their data
//!
//! An ACK of a flow without data in the queue of its class goes at once (`departures`). Where that is so most
//! of the time, since the class is not what limits its flows, each ACK would come here for nothing but to be
//! sent on. So the hooks let them pass, as far as a grant goes: of all flows of a class together no more than
//! the class sends in half a millisecond. That is what its queue can get beyond what it would have had. The
//! grant of a flow ends as soon as more than one packet of it waits, and where the queue is not empty for a
//! quarter of the time none is made.

use super::{millis, Register};
use crate::ack::When;
use crate::flow::{flag, FlowId, Record};
use crate::packet::wire::Seq;
use crate::systems::class_rate::portion;
use crate::systems::postack::Driver;
use crate::time::{Duration, Time};
use core::sync::atomic::Ordering::Relaxed;

/// Looks are at multiples of this, and of twice, four or eight times as much where they are as far apart, so
/// that those of many flows are one wake-up.
const GRID: Duration = Duration::from_micros(500);

/// Time to the next look, at most; and how close ACKs have to be to be worth a grant.
const LONGEST: Duration = Duration::from_millis(4);

/// A grant is worth this many segments at least.
const LEAST_SEGMENTS: u32 = 4;

/// Part of a class's rate that is granted, as time.
pub(super) const AHEAD: Duration = Duration::from_micros(500);

/// A flow before it is looked at.
#[derive(Clone, Copy)]
pub(in crate::gateway) struct Look {
    pub(in crate::gateway) tx: Seq,
    /// Time at which the grant was made.
    pub(in crate::gateway) since: Time,
}

impl Register {
    /// Returns the state of the flow before a look, if it has a grant.
    #[inline]
    pub(in crate::gateway) fn granted(&self, i: FlowId) -> Option<Look> {
        let r = &self.table[i];
        r.has(flag::GRANTED).then(|| Look { tx: r.tx, since: r.kept().last_grant().1 })
    }

    /// The next ACKs of the flow may pass, if they would here. What has passed is looked at after `within`.
    pub(super) fn grant(&mut self, i: FlowId, now: Time, within: Duration) {
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
        if slot.grant(r.tx.plus(bytes)) {
            self.table[i].set(flag::GRANTED, true);
            self.start_timer(i, shared_look(now, within));
        }
    }

    /// Returns whether ACKs of the flow that tell nothing but progress may pass, as far as its rate allows.
    fn may_grant(&self, i: FlowId) -> bool {
        let r = &self.table[i];
        self.hooked
            && !self.ends
            && r.generation == self.generation
            && (r.takes_steps() || self.classes.policy(r.class).hold.is_number())
            && self.classes.policy(r.class).when == When::Always
            && r.may_be_granted()
            && self.slots[i].window() != 0
    }

    /// As [`Register::grant`], for a flow that was just acknowledged `bytes`, and last something at `last`:
    /// one whose ACKs are far apart is better off without.
    pub(in crate::gateway) fn grant_busy(&mut self, i: FlowId, now: Time, last: Time, bytes: u32) {
        if now.since(last) <= LONGEST {
            let within = self.half_used(i, bytes, now.since(last));
            self.grant(i, now, within);
        }
    }

    /// Returns the time that half of a grant of a full step takes a flow that used `bytes` in `time`, at most
    /// [`LONGEST`].
    fn half_used(&self, i: FlowId, bytes: u32, time: Duration) -> Duration {
        let pace = self.table[i].law.pace();
        let meanwhile = pace.rate().map_or(0, |rate| rate.bytes_in(LONGEST));
        let half = (u128::from(pace.step()) + u128::from(meanwhile)) / 2;
        let ns = half * u128::from(time.as_nanos()) / u128::from(bytes.max(1));
        Duration::from_nanos(ns.min(u128::from(LONGEST.as_nanos())) as u64)
    }

    /// The flow's grant ends; what has passed is still to be charged. False if it had none.
    #[inline]
    pub(super) fn end_grant(&mut self, i: FlowId) -> bool {
        let granted = self.table[i].has(flag::GRANTED);
        if granted {
            self.take_back(i);
        }
        granted
    }

    /// Nothing of the flow passes any more.
    #[inline(never)]
    pub(super) fn take_back(&mut self, i: FlowId) {
        self.unreserve(i);
        self.slots[i].revoke();
        self.table[i].set(flag::GRANTED, false);
        self.stop_timer(i);
    }

    /// The flow, whose grant has ended and was charged, gets another one if it used the last.
    pub(in crate::gateway) fn grant_again(&mut self, i: FlowId, now: Time, last: Look) {
        let r = &self.table[i];
        if r.takes_turns() {
            return self.grant_shared(i, now, Some(last));
        }
        let used = r.tx.since(last.tx);
        let silent = used == 0 && now.since(last.since) >= LONGEST;
        if silent || r.has(flag::ARMED) {
            return;
        }
        let within = self.half_used(i, used, now.since(last.since));
        self.table.touch(i, millis(now));
        self.grant(i, now, within);
    }

    /// The next ACKs of a flow that shares a rate may pass, if that does not bind. `last` is how the flow was
    /// when its last grant was looked at.
    pub(in crate::gateway) fn grant_shared(&mut self, i: FlowId, now: Time, last: Option<Look>) {
        let r = &self.table[i];
        let (place, rtt) = (r.class, self.rtt(r));
        let may = self.may_grant(i) && !r.has(flag::LISTED);
        if !may || self.classes.share(place).is_none_or(|share| share.law.flow_max.is_some()) {
            return;
        }
        if self.table[i].takes_steps() {
            return self.grant_idle(i, now, last);
        }
        let Some(used) = self.used(i, now, last) else { return };
        let top = self.classes.shares.top(place);
        if self.tree(top).is_due_for_others(top, now) {
            self.charge_others(top, now);
        }
        let most = self.tree(place).free(place, rtt, now) / 2;
        let (bytes, within) = portion(used, most);
        self.grant_bytes(i, bytes, within, now);
    }

    /// Returns what the flow used of its last grant, if it had one, and in which time. `None` if it is
    /// silent.
    pub(in crate::gateway) fn used(
        &self,
        i: FlowId,
        now: Time,
        last: Option<Look>,
    ) -> Option<Option<(u32, Duration)>> {
        let used = last.map(|look| (self.table[i].tx.since(look.tx), now.since(look.since)));
        (!used.is_some_and(|(bytes, time)| bytes == 0 && time >= LONGEST)).then_some(used)
    }

    fn grant_bytes(&mut self, i: FlowId, bytes: u32, within: Duration, now: Time) {
        let r = &self.table[i];
        if bytes < LEAST_SEGMENTS * u32::from(r.mss) {
            return;
        }
        let place = r.class;
        let limit = self.window_limit_at(r, r.tx.plus(bytes));
        let slot = &self.slots[i];
        slot.width.store(limit.unwrap_or(0), Relaxed);
        if slot.grant(r.tx.plus(bytes)) {
            let r = &mut self.table[i];
            r.set(flag::GRANTED, true);
            r.note_grant(bytes, now);
            if let Some(account) = self.account(i) {
                account.permit(bytes, u32::MAX);
            }
            self.table.touch(i, millis(now));
            self.tree(place).reserve(place, u64::from(bytes));
            self.start_timer(i, on_grid(now + within));
        }
    }

    /// Revokes what was granted to a flow.
    fn unreserve(&mut self, i: FlowId) {
        let r = &self.table[i];
        if r.takes_turns() {
            let (place, (bytes, _)) = (r.class, r.kept().last_grant());
            if let Some(account) = self.account(i) {
                account.take_back(bytes);
            }
            self.tree(place).unreserve(place, u64::from(bytes));
        }
    }

    /// The next ACKs of a flow whose class releases them as its data leaves may pass, if hardly any data
    /// waits in the class. `last` is how the flow was when its last grant was looked at.
    fn grant_idle(&mut self, i: FlowId, now: Time, last: Option<Look>) {
        let Some(share) = self.classes.share(self.table[i].class) else { return };
        let list = &share.departures;
        let follows = share.law.driver() == Some(Driver::Queues);
        if !follows || !list.is_idle(now) {
            return;
        }
        let most = share.law.rate.bytes_in(AHEAD).saturating_sub(share.granted);
        let Some(used) = self.used(i, now, last) else { return };
        let (bytes, within) = portion(used, most);
        self.grant_bytes(i, bytes, within, now);
    }

    /// More than one packet of the flow waits in the queue of its class: its ACKs wait from now on, unless
    /// hardly anything does.
    pub(super) fn end_idle_grant(&mut self, i: FlowId, now: Time) {
        let r = &self.table[i];
        let idle = self.classes.share(r.class).is_some_and(|share| share.departures.is_idle(now));
        if r.has(flag::GRANTED) && !idle {
            self.follow(i, now);
        }
    }
}

impl Record {
    /// The flow, which shares a rate, was granted this many bytes at `now`.
    fn note_grant(&mut self, bytes: u32, now: Time) {
        match self.takes_steps() {
            true => self.law.steps_mut().note_grant(bytes, now),
            false => self.law.turn_mut().note_grant(bytes, now),
        }
    }

    /// Returns whether ACKs that tell nothing but progress may pass.
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
pub(in crate::gateway) fn on_grid(at: Time) -> Time {
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
