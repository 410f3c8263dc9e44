//! ACKs that have a time each ([`Driver::Delay`]), and flows that are counted by their data on its way.

use super::turns::GAP_STUCK;
use crate::flow::flag;
use crate::gateway::{millis, Gateway};
use crate::node::Cx;
use crate::systems::postack::{Driver, Rules};
use crate::time::{Duration, Time};

/// Time after which a flow that nothing is heard of does not count any more, in milliseconds.
const SILENT_MS: u32 = 1_000;

impl Gateway {
    fn scheme(&self, i: u32) -> Option<&'static dyn Rules> {
        self.classes.share(self.table[i].class)?.law.scheme()
    }

    /// Returns the event that gives the flow its turns of ACKs.
    pub(super) fn driver(&self, i: u32) -> Option<Driver> {
        self.scheme(i).map(Rules::driver)
    }

    /// Does the flow's scheme need to see its data?
    pub(super) fn watches_data(&self, i: u32) -> bool {
        self.scheme(i).is_some_and(Rules::watches_data)
    }

    /// Data of the flow up to `end` is on its way. The next of it is to be seen as well: of a burst the last
    /// segment tells how much the sender has sent.
    pub(super) fn watch_data(&mut self, i: u32, end: u32, now: Time) {
        let Some(scheme) = self.scheme(i).filter(|scheme| scheme.watches_data()) else { return };
        scheme.sent(self.table[i].law.steps_mut(), end);
        self.slots[i].ask();
        self.enlist(i, now);
    }

    /// An ACK of the flow has left: the data that it brings is to be seen, and the flow is the last of its
    /// class that something was heard of.
    pub(in crate::gateway) fn look_at_data(&mut self, i: u32, now: Time) {
        if !self.watches_data(i) {
            return;
        }
        self.slots[i].ask();
        if self.table[i].has(flag::LISTED) {
            self.queue_again(i);
        }
        self.drop_silent(i, now);
        self.drop_silent_first(self.table[i].class, now);
    }

    fn drop_silent_first(&mut self, place: u32, now: Time) {
        let Some(first) = self.classes.share(place).and_then(|share| share.head()) else { return };
        self.drop_silent(first, now);
    }

    /// A flow that is listed and holds nothing counts no more without data on its way, or after a second.
    fn drop_silent(&mut self, i: u32, now: Time) {
        let r = &self.table[i];
        let silent = millis(now).wrapping_sub(r.seen_ms) > SILENT_MS;
        if r.has(flag::LISTED) && !r.holds() && (silent || !self.awaits_turn(i)) {
            self.unlist(i, now);
        }
    }

    /// Returns the time for which an ACK that comes now is held.
    pub(super) fn delay(&self, i: u32) -> Duration {
        let r = &self.table[i];
        let Some(share) = self.classes.share(r.class) else { return Duration::ZERO };
        let delay = |scheme: &'static dyn Rules| scheme.delay(r, share.payload(r), self.rtt(r));
        share.law.scheme().map_or(Duration::ZERO, delay)
    }

    /// Returns the time at which an ACK that comes now leaves: no earlier than those before it.
    pub(in crate::gateway) fn due_of_ack(&mut self, i: u32, now: Time) -> Time {
        if self.driver(i) != Some(Driver::Delay) {
            return now;
        }
        let at = now + self.delay(i);
        let delayed = self.table[i].law.steps_mut().delayed_mut();
        delayed.last = delayed.last.max(at.as_nanos());
        Time::from_nanos(delayed.last)
    }

    /// The flow, which holds something, has a timer for its first ACK.
    pub(super) fn await_time(&mut self, cx: &mut Cx<'_>, i: u32) {
        let r = &self.table[i];
        if r.flags & (flag::ARMED | flag::CLOSED) != 0 || !r.holds() {
            return;
        }
        let first = r.law.steps().acks().head(cx.frames).map(|head| head.since);
        let due = first.unwrap_or_else(|| self.due_of_ack(i, cx.now));
        self.arm_at(i, due);
    }

    fn arm_at(&mut self, i: u32, due: Time) {
        let r = &mut self.table[i];
        r.flags |= flag::WAITING;
        r.law.steps_mut().delayed_mut().next = due.as_nanos();
        self.start_timer(i, due);
    }

    /// The time of the flow's first ACK has come.
    pub(in crate::gateway) fn release_timely(&mut self, cx: &mut Cx<'_>, i: u32) {
        let before = self.held(i);
        let due = |g: &Gateway, cx: &Cx<'_>| {
            let first = g.table[i].law.steps().acks().head(cx.frames).map(|head| head.since);
            g.table[i].holds() && first.is_none_or(|first| first <= cx.now)
        };
        let mut stuck = false;
        while !stuck && due(self, cx) {
            stuck = self.release_ack(cx, i).is_none() && self.table[i].holds();
        }
        self.note_held(i, before);
        match stuck {
            true => self.arm_at(i, cx.now + GAP_STUCK),
            false => self.await_time(cx, i),
        }
        self.enlist(i, cx.now);
    }

    /// Counts a flow that holds something or has data on its way among those of its class.
    pub(super) fn enlist_delayed(&mut self, i: u32, now: Time) {
        let Some(share) = self.classes.share_mut(self.table[i].class) else { return };
        share.note_active(now);
        share.list_idle(&mut self.table, i);
        share.note_active(now);
        let r = &mut self.table[i];
        r.flags |= flag::LISTED;
        if r.holds() && r.flags & (flag::ARMED | flag::CLOSED) == 0 {
            self.arm_at(i, now);
        }
    }
}
