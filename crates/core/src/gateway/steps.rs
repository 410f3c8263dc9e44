//! Turns of an ACK: by the class's clock (TCP rate control, PostACK section 2.4), at a time for each ACK, or
//! as data leaves the class's queues.
//!
//! # A queue for each flow (PostACK section 6)
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
//!
//! # One queue (PostACK sections 3.2 and 6: figs 4 and 5, clocked by departures)
//!
//! A turn of a flow is what brings a packet to the queue, or answers one that came beyond those that turns
//! were for. So there is a turn for each packet that leaves the queue, whatever the rate at which it does:
//! the queue neither grows while the class gets less than its rate, nor stays empty while it may send more.
//! Packets that no flow of the class has sent bring no turn.
//!
//! An empty queue owes nothing: whatever flows have sent has left. While it is empty turns come eight times
//! as often as the class could send a packet, until one of them brings data. Of a sender that has halved its
//! window half a window of ACKs does not; a timer at the class's rate would have the class send nothing
//! meanwhile.
//!
//! # By the class's clock
//!
//! The class has one clock, and each turn moves it on by what a full segment costs: so each of `n` flows has
//! a turn in the time in which its share of the rate carries a segment, and one whose neighbours hold nothing
//! has theirs as well. Where flows have a guarantee, those without it have parts of turns while there is too
//! little for all.

use super::turns::{Visit, GAP_STUCK};
use super::Gateway;
use crate::ack::{window, ShareRelease};
use crate::flow::{flag, ClassId, FlowId};
use crate::node::Cx;
use crate::systems::postack::{Departure, Driver, Next};

/// Listed flows that have a turn with a departure.
const TURNS: u32 = 2;

/// Flows looked at in one call.
pub(super) const VISITS: u32 = 32;

impl Gateway {
    /// A packet has left the queue of the class with this index.
    pub(crate) fn data_left(&mut self, cx: &mut Cx<'_>, class: usize, departure: Departure) {
        self.flows.now = cx.now;
        let place = self.flows.classes.place(class);
        self.flows.classes[place].note_data(departure.bytes);
        let Some(share) = self.flows.classes.share_mut(place) else { return };
        match share.law.driver() {
            Some(Driver::Queues) => {}
            Some(Driver::Queue) => return self.one_queue_left(cx, place, departure),
            Some(Driver::Clock | Driver::Delay) | None => return,
        }
        let list = &mut share.departures;
        list.count = list.count.wrapping_add(1);
        list.flows = departure.next.map_or(0, |next| next.flows);
        list.note(departure.next.is_some(), cx.now);
        if let Some((i, frames)) = departure.left.filter(|&(i, _)| self.flows.is_of(i, place)) {
            self.flows.note_frames(i, frames, cx.now);
        }
        if let Some(Next { flow: Some(i), frames: 1, packets, .. }) = departure.next {
            if self.flows.is_of(i, place) && self.revise(cx, i) && self.flows.is_of(i, place) {
                self.step(cx, i, packets);
            }
        }
        self.visit_listed(cx, place);
        self.flows.arm_idle(place, cx.now);
    }

    /// The flow has got something that is held, for `more` bytes: it waits for its turn.
    pub(super) fn await_step(&mut self, cx: &mut Cx<'_>, i: FlowId, more: u32) {
        if self.flows.table[i].is_ending() {
            self.release_all(cx, i); // which lets nothing be sent
        } else if self.flows.driver(i) == Some(Driver::Delay) {
            self.flows.await_time(cx, i);
        } else if self.flows.may_pass(i) {
            let payload = self.flows.table[i].shared_payload();
            self.release_turns(cx, i, ShareRelease::turns_for(more, payload));
        }
        self.flows.enlist(i, cx.now);
    }

    fn release_all(&mut self, cx: &mut Cx<'_>, i: FlowId) {
        let done = self.release_acks(cx, i);
        let r = &self.flows.table[i];
        if done && r.held() > 0 {
            let rx = r.rx;
            self.generate(cx, i, rx, cx.now);
        }
    }

    /// The flow has a turn, or this many: what they are worth leaves. Returns those that were used; `None`:
    /// nothing can leave now.
    pub(super) fn step(&mut self, cx: &mut Cx<'_>, i: FlowId, turns: u32) -> Option<u32> {
        self.flows.follow(i, cx.now);
        let before = self.flows.held(i);
        let used = self.release_turns(cx, i, turns);
        self.flows.note_held(i, before);
        self.flows.close_if_done(i, cx.now);
        self.flows.grant_shared(i, cx.now, None);
        used
    }

    /// As many ACKs of the flow leave as are worth this many turns, or an ACK for as many segments.
    fn release_turns(&mut self, cx: &mut Cx<'_>, i: FlowId, turns: u32) -> Option<u32> {
        if !self.flows.table[i].holds() {
            return Some(0);
        }
        if !self.flows.table[i].queues_acks() {
            return self.release_segments(cx, i, turns).then_some(turns);
        }
        let mut used = 0;
        while used < turns && self.flows.table[i].holds() {
            let Some(bytes) = self.release_ack(cx, i) else { return (used > 0).then_some(used) };
            used += ShareRelease::turns_for(bytes, self.flows.table[i].shared_payload());
        }
        Some(used)
    }

    /// An ACK for this many segments leaves, or for all that is held.
    fn release_segments(&mut self, cx: &mut Cx<'_>, i: FlowId, segments: u32) -> bool {
        let r = &self.flows.table[i];
        let bytes = segments.saturating_mul(u32::from(r.shared_payload())).min(r.held());
        let wanted = r.tx.plus(bytes);
        let (to, _) = window::on_grid(r, wanted, self.flows.window_limit(r));
        self.generate(cx, i, to, cx.now)
    }

    /// Listed flows whose turn it is have it; the first one in any case if the class has nothing to send.
    fn visit_listed(&mut self, cx: &mut Cx<'_>, place: ClassId) {
        let busy = self.flows.classes.share(place).is_some_and(|share| share.departures.busy);
        for _ in 0..if busy { TURNS } else { 1 } {
            let Some(share) = self.flows.classes.share(place) else { return };
            let Some(i) = share.first_listed() else { return };
            let due = self.flows.table[i].law.steps().due();
            if busy && (share.departures.count.wrapping_sub(due) as i32) < 0 {
                return;
            }
            if !self.revise(cx, i)
                || self.flows.table[i].class != place
                || !self.flows.table[i].has(flag::LISTED)
            {
                continue;
            }
            self.flows.unlist(i, cx.now);
            if self.flows.packets_of(i) > 0
                || self.flows.table[i].flags & (flag::CLOSED | flag::SYNCED) != flag::SYNCED
            {
                continue;
            }
            self.step(cx, i, 1);
            self.flows.enlist(i, cx.now);
        }
    }

    /// The time of a class has come that may have had nothing to send since its last turn.
    pub(super) fn serve_idle(&mut self, cx: &mut Cx<'_>, place: ClassId) {
        if self.flows.classes.share(place).is_some_and(|share| share.law.driver() == Some(Driver::Queue)) {
            return self.one_queue_idle(cx, place);
        }
        if self.flows.classes.share(place).is_some_and(|share| !share.departures.busy) {
            self.visit_listed(cx, place);
            self.flows.arm_idle(place, cx.now);
        }
    }

    /// It is the turn of a flow of the class in this place that holds something: it is released an ACK,
    /// unless its scheme has it skip the turn.
    pub(super) fn visit_step(&mut self, cx: &mut Cx<'_>, i: FlowId, place: ClassId) -> Visit {
        let Some(share) = self.flows.classes.share(place) else { return Visit::Stuck };
        let (Some(scheme), queues) = (share.law.scheme(), share.departures.queues) else {
            return Visit::Stuck;
        };
        self.flows.queue_again(i);
        if self.flows.table[i].law.steps().probe().is_none() {
            self.flows.ask_for_probe(i);
        }
        if !self.flows.earns_turn(i) {
            return Visit::Passed;
        }
        let mut used = 0;
        if !scheme.skips(self.flows.table[i].law.steps_mut(), queues) {
            let Some(turns) = self.step(cx, i, 1) else { return Visit::Stuck };
            scheme.released(self.flows.table[i].law.steps_mut(), queues, turns);
            used = turns;
        }
        match scheme.driver() {
            Driver::Clock => {
                self.flows.spend_parts(i, used.max(1));
                self.flows.spend_turns(i, used.max(1), cx.now);
            }
            Driver::Queue | Driver::Queues | Driver::Delay => {
                self.flows.spend_departures(place, used.max(1), cx.now)
            }
        }
        if used > 0 {
            Visit::Released
        } else {
            Visit::Passed
        }
    }

    /// The time of the flow's first ACK has come.
    pub(super) fn release_timely(&mut self, cx: &mut Cx<'_>, i: FlowId) {
        let before = self.flows.held(i);
        let due = |g: &Gateway, cx: &Cx<'_>| {
            let first = g.flows.table[i].law.steps().acks().head(cx.frames).map(|head| head.since);
            g.flows.table[i].holds() && first.is_none_or(|first| first <= cx.now)
        };
        let mut stuck = false;
        while !stuck && due(self, cx) {
            stuck = self.release_ack(cx, i).is_none() && self.flows.table[i].holds();
        }
        self.flows.note_held(i, before);
        match stuck {
            true => self.flows.arm_at(i, cx.now + GAP_STUCK),
            false => self.flows.await_time(cx, i),
        }
        self.flows.enlist(i, cx.now);
    }

    /// Packets have left the queue of the class at this place.
    fn one_queue_left(&mut self, cx: &mut Cx<'_>, place: ClassId, departure: Departure) {
        let Some(share) = self.flows.classes.share_mut(place) else { return };
        let list = &mut share.departures;
        let others = departure.packets.min(list.others);
        list.others -= others;
        list.turns = list.turns.saturating_add_unsigned(departure.packets - others);
        if departure.next.is_none() {
            list.run_empty(cx.now);
        }
        self.take_turns(cx, place);
        self.flows.arm_idle(place, cx.now);
    }

    /// The queue of the class at this place is empty, and a turn is due.
    fn one_queue_idle(&mut self, cx: &mut Cx<'_>, place: ClassId) {
        let Some(share) = self.flows.classes.share_mut(place) else { return };
        if share.departures.busy || share.departures.next_idle > cx.now {
            return self.flows.arm_idle(place, cx.now);
        }
        share.departures.turns = 1;
        self.take_turns(cx, place);
        self.flows.arm_idle(place, cx.now);
    }

    /// Flows have the turns that there are. Those that none of them needs are lost.
    fn take_turns(&mut self, cx: &mut Cx<'_>, place: ClassId) {
        for _ in 0..VISITS {
            let Some(share) = self.flows.classes.share(place) else { return };
            if share.departures.turns <= 0 {
                return;
            }
            let Some(i) = share.head() else { break };
            if self.visit(cx, i, place) == Visit::Stuck {
                break;
            }
        }
        if let Some(share) = self.flows.classes.share_mut(place).filter(|share| share.head().is_none()) {
            share.departures.turns = 0;
        }
    }
}
