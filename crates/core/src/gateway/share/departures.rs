//! Classes whose ACKs are released as data leaves their queue (PostACK section 6), and what flows are told of
//! their data in it.
//!
//! Each time a packet leaves the queue of a class, the flow whose packet is next is looked at: if that is its
//! last, an ACK of the flow leaves with it, and the next data comes while it is sent. A flow with more
//! waiting holds its ACKs. An ACK of a flow without data in the queue goes at once, in its place. A flow that
//! holds something and has no data waiting is *listed*: as in the queues' own round robin it has a turn when
//! as many packets have left as flows had data, and a departure gives a turn to a constant number of them.
//!
//! While the queue is empty nothing leaves it, and what flows hold would wait for ever, at the end of a
//! transfer say. Then turns come eight times as often as the class could send a packet, until one of them
//! brings data: of a sender that has halved its window, half a window of ACKs does not.

use crate::ack::{window, ShareRelease};
use crate::flow::{flag, Key};
use crate::gateway::blocked::wheel;
use crate::gateway::{direction_of, Direction, Gateway};
use crate::node::Cx;
use crate::systems::postack::{Alone, Came, Departure, Driver, Next};
use crate::time::{Duration, Time};
use crate::wire::TCP;

/// Listed flows that have a turn with a departure.
const TURNS: u32 = 2;

impl Gateway {
    /// The record of the flow with this key, if its class releases ACKs by its data.
    pub(crate) fn follows_data(&self, direction: Direction, key: &Key) -> Result<u32, Alone> {
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
    pub(crate) fn note_frames(&mut self, i: u32, frames: u32, now: Time) {
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

    /// A packet has left the queue of the class with this index.
    pub(crate) fn data_left(&mut self, cx: &mut Cx<'_>, class: usize, departure: Departure) {
        self.now = cx.now;
        let place = self.classes.place(class);
        self.classes[place].note_data(departure.bytes);
        let Some(share) = self.classes.share_mut(place) else { return };
        match share.law.driver() {
            Some(Driver::Queues) => {}
            Some(Driver::Queue) => return self.one_queue_left(cx, place, departure),
            Some(Driver::Clock | Driver::Delay) | None => return,
        }
        let list = &mut share.departures;
        list.count = list.count.wrapping_add(1);
        list.flows = departure.next.map_or(0, |next| next.flows);
        list.note(departure.next.is_some(), cx.now);
        if let Some((i, frames)) = departure.left.filter(|&(i, _)| self.is_of(i, place)) {
            self.note_frames(i, frames, cx.now);
        }
        if let Some(Next { flow: Some(i), frames: 1, packets, .. }) = departure.next {
            if self.is_of(i, place) && self.revise(cx, i) && self.is_of(i, place) {
                self.step(cx, i, packets);
            }
        }
        self.visit_listed(cx, place);
        self.arm_idle(place, cx.now);
    }

    /// Queues have taken the place of those that flows knew of.
    pub(crate) fn queues_anew(&mut self, now: Time) {
        for (_, share) in self.classes.shares_mut() {
            let Some(share) = share else { continue };
            share.departures.run_empty(now);
        }
    }

    /// Is the flow one of the class at this place, whose turns are of ACKs?
    fn is_of(&self, i: u32, place: u32) -> bool {
        i < self.table.capacity() && {
            let r = &self.table[i];
            r.class == place && r.takes_steps() && r.has(flag::USED | flag::SYNCED) && !r.has(flag::CLOSED)
        }
    }

    /// Frames of the flow that wait in the queue of its class; with one queue, packets that came and had no
    /// turn.
    pub(in crate::gateway) fn packets_of(&self, i: u32) -> u32 {
        let r = &self.table[i];
        self.classes.share(r.class).map_or(0, |share| r.law.steps().packets(share.departures.queues))
    }

    /// May an ACK of the flow leave as it comes?
    pub(in crate::gateway) fn may_pass(&self, i: u32) -> bool {
        self.table[i].is_ending()
            || match self.driver(i) {
                Some(Driver::Queues) => self.packets_of(i) == 0,
                Some(Driver::Delay) => self.delay(i) == Duration::ZERO,
                Some(Driver::Clock | Driver::Queue) | None => false,
            }
    }

    /// The flow has got something that is held, for `more` bytes: it waits for its turn.
    pub(in crate::gateway) fn await_step(&mut self, cx: &mut Cx<'_>, i: u32, more: u32) {
        if self.table[i].is_ending() {
            self.release_all(cx, i); // which lets nothing be sent
        } else if self.driver(i) == Some(Driver::Delay) {
            self.await_time(cx, i);
        } else if self.may_pass(i) {
            let payload = self.table[i].segments().payload;
            self.release_turns(cx, i, ShareRelease::turns_for(more, payload));
        }
        self.enlist(i, cx.now);
    }

    fn release_all(&mut self, cx: &mut Cx<'_>, i: u32) {
        let done = self.release_acks(cx, i);
        let r = &self.table[i];
        if done && r.held() > 0 {
            let rx = r.rx;
            self.generate(cx, i, rx, cx.now);
        }
    }

    /// The flow has a turn, or so many: what they are worth leaves. Returns those that were used; `None`:
    /// nothing can leave now.
    pub(in crate::gateway) fn step(&mut self, cx: &mut Cx<'_>, i: u32, turns: u32) -> Option<u32> {
        self.follow(i, cx.now);
        let before = self.held(i);
        let used = self.release_turns(cx, i, turns);
        self.note_held(i, before);
        self.close_if_done(i, cx.now);
        self.grant_shared(i, cx.now, None);
        used
    }

    /// As many ACKs of the flow leave as are worth so many turns, or an ACK for as many segments.
    fn release_turns(&mut self, cx: &mut Cx<'_>, i: u32, turns: u32) -> Option<u32> {
        if !self.table[i].holds() {
            return Some(0);
        }
        if !self.table[i].queues_acks() {
            return self.release_segments(cx, i, turns).then_some(turns);
        }
        let mut used = 0;
        while used < turns && self.table[i].holds() {
            let Some(bytes) = self.release_ack(cx, i) else { return (used > 0).then_some(used) };
            used += ShareRelease::turns_for(bytes, self.table[i].segments().payload);
        }
        Some(used)
    }

    /// An ACK for so many segments leaves, or for all that is held.
    fn release_segments(&mut self, cx: &mut Cx<'_>, i: u32, segments: u32) -> bool {
        let r = &self.table[i];
        let bytes = segments.saturating_mul(u32::from(r.segments().payload)).min(r.held());
        let wanted = r.tx.wrapping_add(bytes);
        let (to, _) = window::on_grid(r, wanted, self.window_limit(r));
        self.generate(cx, i, to, cx.now)
    }

    /// Listed flows whose turn it is have it; the first one in any case if the class has nothing to send.
    fn visit_listed(&mut self, cx: &mut Cx<'_>, place: u32) {
        let busy = self.classes.share(place).is_some_and(|share| share.departures.busy);
        for _ in 0..if busy { TURNS } else { 1 } {
            let Some(share) = self.classes.share(place) else { return };
            let Some(i) = share.first_listed() else { return };
            let due = self.table[i].law.steps().due();
            if busy && (share.departures.count.wrapping_sub(due) as i32) < 0 {
                return;
            }
            if !self.revise(cx, i) || self.table[i].class != place || !self.table[i].has(flag::LISTED) {
                continue;
            }
            self.unlist(i, cx.now);
            if self.packets_of(i) > 0 || self.table[i].flags & (flag::CLOSED | flag::SYNCED) != flag::SYNCED {
                continue;
            }
            self.step(cx, i, 1);
            self.enlist(i, cx.now);
        }
    }

    /// A flow that holds something is listed, if it has no data in the queue of its class.
    pub(in crate::gateway) fn enlist_idle(&mut self, i: u32, now: Time) {
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
    pub(super) fn arm_idle(&mut self, place: u32, now: Time) {
        let Some(share) = self.classes.share(place) else { return };
        let timer = self.table.capacity() + place;
        if !share.departures.busy && share.head().is_some() && !self.timers.is_armed(timer) {
            let at = match share.law.driver() {
                Some(Driver::Queues) => now + share.idle_time(),
                _ => share.departures.next_idle.max(now),
            };
            self.timers.arm(wheel(self.classes.ack_out(place)), timer, at);
        }
    }

    /// The time of a class has come that may have had nothing to send since its last turn.
    pub(in crate::gateway) fn serve_idle(&mut self, cx: &mut Cx<'_>, place: u32) {
        if self.classes.share(place).is_some_and(|share| share.law.driver() == Some(Driver::Queue)) {
            return self.one_queue_idle(cx, place);
        }
        if self.classes.share(place).is_some_and(|share| !share.departures.busy) {
            self.visit_listed(cx, place);
            self.arm_idle(place, cx.now);
        }
    }
}
