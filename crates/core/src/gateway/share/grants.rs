//! Grants of flows that share a rate which does not bind: what may pass of them without the gateway.
//!
//! As for flows with rates of their own ([`grant`](crate::gateway::grant)), but the credit is the class's:
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

use crate::flow::flag;
use crate::gateway::grant::{on_grid, Look, LONGEST};
use crate::gateway::{millis, Gateway};
use crate::systems::class_rate::portion;
use crate::systems::postack::Driver;
use crate::time::{Duration, Time};
use core::sync::atomic::Ordering::Relaxed;

/// A grant is worth so many segments at least.
const LEAST_SEGMENTS: u32 = 4;

/// Part of a class's rate that is granted, as time.
const AHEAD: Duration = Duration::from_micros(500);

impl Gateway {
    /// The next ACKs of a flow that shares a rate may pass, if that does not bind. `last` is how the flow was
    /// when its last grant was looked at.
    pub(in crate::gateway) fn grant_shared(&mut self, i: u32, now: Time, last: Option<Look>) {
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
    pub(super) fn used(&self, i: u32, now: Time, last: Option<Look>) -> Option<Option<(u32, Duration)>> {
        let used = last.map(|look| (self.table[i].tx.wrapping_sub(look.tx), now.since(look.since)));
        (!used.is_some_and(|(bytes, time)| bytes == 0 && time >= LONGEST)).then_some(used)
    }

    pub(super) fn grant_bytes(&mut self, i: u32, bytes: u32, within: Duration, now: Time) {
        let r = &self.table[i];
        if bytes < LEAST_SEGMENTS * u32::from(r.mss) {
            return;
        }
        let place = r.class;
        let limit = self.window_limit_at(r, r.tx.wrapping_add(bytes));
        let slot = &self.slots[i];
        slot.width.store(limit.unwrap_or(0), Relaxed);
        if slot.grant(r.tx.wrapping_add(bytes)) {
            let r = &mut self.table[i];
            r.set(flag::GRANTED, true);
            r.note_grant(bytes, now);
            self.table.touch(i, millis(now));
            self.tree(place).reserve(place, u64::from(bytes));
            self.start_timer(i, on_grid(now + within));
        }
    }

    /// Revokes what was granted to a flow.
    pub(in crate::gateway) fn unreserve(&mut self, i: u32) {
        let r = &self.table[i];
        if r.takes_turns() {
            let (place, (bytes, _)) = (r.class, r.kept().last_grant());
            self.tree(place).unreserve(place, u64::from(bytes));
        }
    }

    /// The next ACKs of a flow whose class releases them as its data leaves may pass, if hardly any data
    /// waits in the class. `last` is how the flow was when its last grant was looked at.
    fn grant_idle(&mut self, i: u32, now: Time, last: Option<Look>) {
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
    pub(super) fn end_idle_grant(&mut self, i: u32, now: Time) {
        let r = &self.table[i];
        let idle = self.classes.share(r.class).is_some_and(|share| share.departures.is_idle(now));
        if r.has(flag::GRANTED) && !idle {
            self.follow(i, now);
        }
    }
}
