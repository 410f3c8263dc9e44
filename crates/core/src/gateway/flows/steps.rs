//! State behind turns of an ACK: what a flow's data does in the queues, the delay of the WAN, and ACKs that
//! have a time each ([`Driver::Delay`]).

use super::blocked::wheel;
use super::{direction_of, millis, Register};
use crate::ack::Window;
use crate::base::smooth;
use crate::classify::Direction;
use crate::flow::{flag, ClassId, FlowId, Key};
use crate::node::Cx;
use crate::systems::postack::{Alone, Came, Driver, Rules};
use crate::time::{Duration, Time};
use crate::wire::{Seq, TCP};

/// Time after which a flow that nothing is heard of does not count any more, in milliseconds.
const SILENT_MS: u32 = 1_000;

/// The longest delay that is measured: a record can keep no longer one.
const MOST_DELAY: Duration = Duration::from_secs(4);

impl Register {
    pub(in crate::gateway) fn scheme(&self, i: FlowId) -> Option<&'static dyn Rules> {
        self.classes.share(self.table[i].class)?.law.scheme()
    }

    /// Returns the event that gives the flow its turns of ACKs.
    pub(in crate::gateway) fn driver(&self, i: FlowId) -> Option<Driver> {
        self.scheme(i).map(Rules::driver)
    }

    /// Returns whether the flow's scheme needs to see its data.
    fn watches_data(&self, i: FlowId) -> bool {
        self.scheme(i).is_some_and(Rules::watches_data)
    }

    /// Data of the flow up to `end` is on its way. The next of it is to be seen as well: of a burst the last
    /// segment tells how much the sender has sent.
    fn watch_data(&mut self, i: FlowId, end: Seq, now: Time) {
        let Some(scheme) = self.scheme(i).filter(|scheme| scheme.watches_data()) else { return };
        scheme.sent(self.table[i].law.steps_mut(), end);
        self.slots[i].ask();
        self.enlist(i, now);
    }

    /// An ACK of the flow has left: the data that it brings is to be seen, and the flow is the last of its
    /// class that something was heard of.
    pub(in crate::gateway) fn look_at_data(&mut self, i: FlowId, now: Time) {
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

    fn drop_silent_first(&mut self, place: ClassId, now: Time) {
        let Some(first) = self.classes.share(place).and_then(|share| share.head()) else { return };
        self.drop_silent(first, now);
    }

    /// A flow that is listed and holds nothing counts no more without data on its way, or after a second.
    fn drop_silent(&mut self, i: FlowId, now: Time) {
        let r = &self.table[i];
        let silent = millis(now).wrapping_sub(r.seen_ms) > SILENT_MS;
        if r.has(flag::LISTED) && !r.holds() && (silent || !self.awaits_turn(i)) {
            self.unlist(i, now);
        }
    }

    /// Returns the time for which an ACK that comes now is held.
    fn delay(&self, i: FlowId) -> Duration {
        let r = &self.table[i];
        let Some(share) = self.classes.share(r.class) else { return Duration::ZERO };
        let delay = |scheme: &'static dyn Rules| scheme.delay(r, share.payload(r), self.rtt(r));
        share.law.scheme().map_or(Duration::ZERO, delay)
    }

    /// Returns the time at which an ACK that comes now leaves: no earlier than those before it.
    pub(super) fn due_of_ack(&mut self, i: FlowId, now: Time) -> Time {
        if self.driver(i) != Some(Driver::Delay) {
            return now;
        }
        let at = now + self.delay(i);
        let delayed = self.table[i].law.steps_mut().delayed_mut();
        delayed.last = delayed.last.max(at.as_nanos());
        Time::from_nanos(delayed.last)
    }

    /// The flow, which holds something, has a timer for its first ACK.
    pub(in crate::gateway) fn await_time(&mut self, cx: &mut Cx<'_>, i: FlowId) {
        let r = &self.table[i];
        if r.flags & (flag::ARMED | flag::CLOSED) != 0 || !r.holds() {
            return;
        }
        let first = r.law.steps().acks().head(cx.frames).map(|head| head.since);
        let due = first.unwrap_or_else(|| self.due_of_ack(i, cx.now));
        self.arm_at(i, due);
    }

    pub(in crate::gateway) fn arm_at(&mut self, i: FlowId, due: Time) {
        let r = &mut self.table[i];
        r.flags |= flag::WAITING;
        r.law.steps_mut().delayed_mut().next = due.as_nanos();
        self.start_timer(i, due);
    }

    /// Counts a flow that holds something or has data on its way among those of its class.
    pub(super) fn enlist_delayed(&mut self, i: FlowId, now: Time) {
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

    /// The record of the flow with this key, if its class releases ACKs by its data.
    pub(crate) fn follows_data(&self, direction: Direction, key: &Key) -> Result<FlowId, Alone> {
        if key.protocol() != TCP {
            return Err(Alone::NotTcp);
        }
        let i = self.table.find(key).ok_or(Alone::NoAcks)?;
        let r = &self.table[i];
        if direction_of(r) != direction {
            Err(Alone::NoAcks)
        } else if r.has(flag::PASSES) {
            Err(Alone::Untouched)
        } else if r.takes_steps() && r.has(flag::SYNCED) {
            Ok(i)
        } else {
            Err(Alone::NoAcks)
        }
    }

    /// A frame has come to the queue of a class.
    pub(crate) fn data_came(&mut self, now: Time, came: Came) {
        let Came { class, flow, frames, packets, bytes } = came;
        let place = self.classes.place(class);
        self.classes[place].note_data(bytes);
        let Some(of) = flow else { return }; // it was dropped
        let of = of.and_then(|i| self.is_of(i, place).then_some(i).ok_or(Alone::NoAcks));
        let Some(share) = self.classes.share_mut(place) else { return };
        let (queues, scheme) = (share.departures.queues, share.law.scheme());
        share.departures.note(true, now);
        let i = match of {
            Ok(i) => i,
            Err(why) => {
                if scheme.is_some_and(|scheme| scheme.driver().is_departure()) {
                    share.departures.others += packets;
                }
                return self.classes[place].scheduled_only.count(why, packets);
            }
        };
        match scheme {
            Some(scheme) if scheme.driver() != Driver::Queues => {
                scheme.came(self.table[i].law.steps_mut(), queues, packets);
                if scheme.counts(&self.table[i], queues) {
                    self.enlist(i, now);
                }
            }
            _ => self.note_frames(i, frames, now),
        }
    }

    /// Notes the number of frames of the flow in the queue of its class.
    pub(crate) fn note_frames(&mut self, i: FlowId, frames: u32, now: Time) {
        let r = &mut self.table[i];
        let Some(share) = self.classes.share(r.class).filter(|_| r.takes_steps()) else { return };
        if share.law.driver() != Some(Driver::Queues) {
            return;
        }
        r.law.steps_mut().set_packets(share.departures.queues, frames);
        match frames {
            0 => self.enlist(i, now),
            1 => {}
            _ => self.end_idle_grant(i, now),
        }
    }

    /// Queues have taken the place of those that flows knew of.
    pub(crate) fn queues_anew(&mut self, now: Time) {
        self.classes.shares_mut().for_each(|share| share.departures.run_empty(now));
    }

    /// Returns whether the flow is one of the class at this place, whose turns are of ACKs.
    pub(in crate::gateway) fn is_of(&self, i: FlowId, place: ClassId) -> bool {
        i < FlowId(self.table.capacity()) && {
            let r = &self.table[i];
            r.class == place && r.takes_steps() && r.has(flag::USED | flag::SYNCED) && !r.has(flag::CLOSED)
        }
    }

    /// Frames of the flow that wait in the queue of its class; with one queue, packets that came and had no
    /// turn.
    pub(in crate::gateway) fn packets_of(&self, i: FlowId) -> u32 {
        let r = &self.table[i];
        self.classes.share(r.class).map_or(0, |share| r.law.steps().packets(share.departures.queues))
    }

    /// Returns whether an ACK of the flow may leave as it comes.
    pub(in crate::gateway) fn may_pass(&self, i: FlowId) -> bool {
        self.table[i].is_ending()
            || match self.driver(i) {
                Some(Driver::Queues) => self.packets_of(i) == 0,
                Some(Driver::Delay) => self.delay(i) == Duration::ZERO,
                Some(Driver::Clock | Driver::Queue) | None => false,
            }
    }

    /// A flow that holds something is listed, if it has no data in the queue of its class.
    pub(super) fn enlist_idle(&mut self, i: FlowId, now: Time) {
        if self.packets_of(i) > 0 {
            return;
        }
        let place = self.table[i].class;
        let Some(share) = self.classes.share_mut(place) else { return };
        let list = share.departures;
        self.table[i].law.steps_mut().set_due(list.count.wrapping_add(list.flows));
        share.list_idle(&mut self.table, i);
        self.table[i].flags |= flag::LISTED;
        self.arm_idle(place, now);
    }

    /// While the class has nothing to send, turns come faster than it could send packets.
    pub(in crate::gateway) fn arm_idle(&mut self, place: ClassId, now: Time) {
        let Some(share) = self.classes.share(place) else { return };
        let timer = self.table.capacity() + place.0;
        if !share.departures.busy && share.head().is_some() && !self.timers.is_armed(timer) {
            let at = match share.law.driver() {
                Some(Driver::Queues) => now + share.idle_time(),
                _ => share.departures.next_idle.max(now),
            };
            self.timers.arm(wheel(self.classes.ack_out(place)), timer, at);
        }
    }

    /// Charges the flow's class for turns of the flow, each as a full segment.
    pub(in crate::gateway) fn spend_turns(&mut self, i: FlowId, turns: u32, now: Time) {
        let r = &self.table[i];
        let (place, segments, payload) = (r.class, r.segments(), u32::from(r.shared_payload()));
        let Some(share) = self.classes.share_mut(place) else { return };
        let cost = share.law.cost(&segments, turns.saturating_mul(payload));
        share.clock.spend(cost, now);
    }

    /// A segment of data that ends at `end` is on its way to its receiver: the acknowledgement of it will
    /// tell the delay of the WAN. Of data that has come from there it would tell that of the LAN, so for
    /// downloads the handshake's stays.
    pub(super) fn note_sent(&mut self, i: FlowId, end: Seq, now: Time) {
        let r = &mut self.table[i];
        let measured = r.takes_steps() && r.has(flag::SYNCED) && !r.has(flag::INWARD);
        if measured && r.law.steps().probe().is_none() && end.is_after(r.rx) {
            r.law.steps_mut().set_probe(end, now);
        }
        self.watch_data(i, end, now);
    }

    /// The receiver has acknowledged more. The delay of the WAN is an average as a sender's, as in
    /// section 2.4.3 of the paper.
    pub(super) fn note_delay(&mut self, i: FlowId, now: Time) {
        let r = &mut self.table[i];
        if !r.takes_steps() {
            return;
        }
        if r.law.steps().probe_is_older(MOST_DELAY, now) {
            return self.drop_probe(i);
        }
        if r.law.steps().probe().is_none_or(|end| end.is_after(r.rx)) {
            return;
        }
        let Some(delay) = r.law.steps_mut().probed(now) else { return };
        r.rtt_ns = smooth::eighth(r.rtt_ns, delay.as_nanos());
        self.ask_for_probe(i);
    }

    /// The next segment of the flow's data is to be seen, if its window is sized or its scheme needs it.
    pub(in crate::gateway) fn ask_for_probe(&self, i: FlowId) {
        let r = &self.table[i];
        let sizes = || !r.has(flag::INWARD) && self.policy(r).window != Window::Keep;
        if self.measures && r.takes_steps() && (sizes() || self.watches_data(i)) {
            self.slots[i].ask();
        }
    }

    /// A loss delays the acknowledgement of what comes behind it: that tells nothing of the path (Karn).
    pub(in crate::gateway) fn drop_probe(&mut self, i: FlowId) {
        if self.table[i].takes_steps() {
            self.table[i].law.steps_mut().end_probe();
            self.ask_for_probe(i);
        }
    }

    /// Turns that departures gave were had.
    pub(in crate::gateway) fn spend_departures(&mut self, place: ClassId, turns: u32, now: Time) {
        let Some(share) = self.classes.share_mut(place) else { return };
        share.departures.turns = share.departures.turns.saturating_sub_unsigned(turns);
        share.note_turn(now);
    }
}
