//! Running of a world: serving nodes at their deadlines, and delivering the frames that leave.

use super::slot::{two, Kind, Lead};
use super::through::is_first;
use super::{NodeId, To, World};
use crate::agenda::{Agenda, SEQUENCES};
use crate::host::WIRE;
use crate::tcp::segment::draft;
use core::mem::take;
use weir_core::frame::Frame;
use weir_core::link::Link;
use weir_core::node::{Cx, Node, Port, PortSet, Transmit};
use weir_core::stats::DropReason;
use weir_core::time::Time;

impl World {
    /// Runs everything that is due up to and including `end`. Stops early if frames circulate forever at one
    /// instant: the world is [stuck](World::stuck) there, and runs nothing more.
    pub fn run_until(&mut self, end: Time) {
        if self.stuck.is_some() {
            return;
        }
        self.until = end;
        self.serve_ready();
        let mut next = self.agenda.pop_until(end).filter(|_| self.stuck.is_none());
        while let Some((at, i)) = next {
            self.now = at;
            let alone = self.agenda.peek().is_none_or(|next| next > at);
            if self.wake(i as usize) {
                if alone {
                    next = self.serve_alone(i as usize);
                    continue;
                }
                self.make_ready(i as usize);
            }
            while let Some((_, i)) = self.agenda.pop_until(at) {
                if self.wake(i as usize) {
                    self.make_ready(i as usize);
                }
            }
            self.serve_ready();
            next = self.agenda.pop_until(end).filter(|_| self.stuck.is_none());
        }
        if self.stuck.is_none() {
            self.now = self.now.max(end);
        }
    }

    /// The instant at which frames circulate forever, if they do. Where nothing takes time, a sender with
    /// endless data never gets past it.
    pub fn stuck(&self) -> Option<Time> {
        self.stuck
    }

    /// Serves a node that is due alone, and everything that follows. A link continues without the agenda as
    /// long as its next action is the world's next event. Returns the agenda's next event.
    #[inline]
    fn serve_alone(&mut self, i: usize) -> Option<(Time, u32)> {
        loop {
            let due = self.serve(i);
            let Some(seq) = self.book(i, due) else {
                self.serve_ready();
                return self.agenda.pop_until(self.until);
            };
            self.booked = due;
            self.serve_ready();
            self.booked = Time::MAX;
            if self.stuck.is_some() {
                return None;
            }
            let (until, next) = (self.until, self.agenda.peek());
            let slot = &mut self.slots[i];
            if due > until || slot.wakes[0] != due || slot.due > due || next.is_some_and(|next| next <= due) {
                return self.agenda.exchange(due, seq, i as u32, until);
            }
            slot.wakes = [slot.wakes[1], Time::MAX];
            self.now = due;
        }
    }

    /// Handles the agenda's event for a node. Returns whether the node is due.
    #[inline(always)]
    fn wake(&mut self, i: usize) -> bool {
        let slot = &mut self.slots[i];
        if slot.wakes[0] != self.now {
            return false;
        }
        slot.wakes = [slot.wakes[1], Time::MAX];
        let due = slot.due;
        if due > self.now {
            self.put_on_agenda(i, due);
            return false;
        }
        slot.poll = true;
        true
    }

    /// Marks a node to be served now.
    pub(super) fn make_ready(&mut self, i: usize) {
        let slot = &mut self.slots[i];
        slot.poll = true;
        if !slot.ready {
            slot.ready = true;
            self.ready.push(i as u32);
        }
    }

    #[inline(always)]
    fn serve_ready(&mut self) {
        if !self.ready.is_empty() {
            self.serve_all_ready();
        }
    }

    #[inline(never)]
    fn serve_all_ready(&mut self) {
        let (mut began, mut limit) = (self.now, self.steps + self.steps_per_instant);
        while let Some(&i) = self.ready.get(self.served) {
            self.served += 1;
            let due = self.serve(i as usize);
            if due < Time::MAX {
                self.put_on_agenda(i as usize, due);
            }
            if self.steps >= limit {
                if self.now == began {
                    self.stuck = Some(self.now);
                    break;
                }
                (began, limit) = (self.now, self.steps + self.steps_per_instant);
            }
        }
        self.ready.clear();
        self.served = 0;
    }

    /// Takes all frames that a node sends now. Returns its next time if that is not on the agenda, otherwise
    /// [`Time::MAX`].
    #[inline(always)]
    fn serve(&mut self, i: usize) -> Time {
        self.steps += 1;
        let slot = &mut self.slots[i];
        slot.ready = false;
        slot.clock = self.now;
        let poll = take(&mut slot.poll);
        match slot.node {
            Kind::Link(_) if poll || slot.due <= self.now => return self.serve_link(i),
            // Frames that were handed in have not come out yet.
            Kind::Link(_) => return slot.due,
            Kind::Host(_) => self.serve_host(i),
            Kind::Other(_) => self.serve_other(i, poll),
        }
        Time::MAX
    }

    #[inline(never)]
    fn serve_link(&mut self, i: usize) -> Time {
        let Some(&Lead { to: To::Node(to, port), captures: 0, .. }) = self.slots[i].leads.get(Link::OUT)
        else {
            return self.serve_link_to_any(i);
        };
        match self.way_through(i, to) {
            Some(next) => self.serve_through(i, to, next),
            None => self.serve_link_to_host(i, (to, port)),
        }
    }

    /// Delivers all frames that link `i` sends now to its only destination, usually a host.
    #[inline(always)]
    fn serve_link_to_host(&mut self, i: usize, (to, port): (NodeId, Port)) -> Time {
        loop {
            let Some((from, slot)) = two(&mut self.slots, i, to.index()) else {
                return self.serve_link_to_any(i);
            };
            let (Kind::Link(link), Kind::Host(host)) = (&mut from.node, &mut slot.node) else {
                return self.serve_link_to_any(i);
            };
            if !link.is_out(&mut Cx { now: self.now, frames: &mut self.frames }) {
                return self.look_again(i);
            }
            let (at, frame) = link.take_out();
            let due = link.due();
            from.due = due;
            from.leads.count(Link::OUT, frame.len());
            if host.is_crowded() {
                host.foresee(&self.frames, link.coming());
            }
            self.steps += 1;
            slot.clock = at.max(slot.clock);
            host.handle_frame(&mut Cx { now: slot.clock, frames: &mut self.frames }, port, frame);
            slot.due = host.due();
            if slot.note_due(self.now) {
                self.ready.push(to.0);
            }
            if due > self.now && !self.goes_on(i, due) {
                return due;
            }
        }
    }

    #[inline(never)]
    pub(super) fn serve_link_to_any(&mut self, i: usize) -> Time {
        loop {
            let slot = &mut self.slots[i];
            let Kind::Link(link) = &mut slot.node else { return Time::MAX };
            if !link.is_out(&mut Cx { now: self.now, frames: &mut self.frames }) {
                return self.look_again(i);
            }
            let (at, frame) = link.take_out();
            slot.due = link.due();
            let way = slot.leads.pass(Link::OUT, frame.len());
            if let Some((_, To::Node(to, _))) = way {
                self.foretell(i, to);
            }
            self.hand_on(way, at, frame);
            let due = self.slots[i].due;
            if due > self.now && !self.goes_on(i, due) {
                return due;
            }
        }
    }

    /// Reads the deadline of link `i`, which has nothing to send now.
    #[cold]
    pub(super) fn look_again(&mut self, i: usize) -> Time {
        self.rearm(i);
        Time::MAX
    }

    /// Returns whether the next action of node `i`, at `due`, is the world's next event. If so, advances to
    /// that time without the agenda.
    #[inline]
    fn goes_on(&mut self, i: usize, due: Time) -> bool {
        let first = is_first(due, self.until, self.booked, &self.agenda);
        if !first || self.served < self.ready.len() {
            return false;
        }
        self.steps += 1;
        self.now = due;
        let slot = &mut self.slots[i];
        slot.clock = due;
        slot.wakes[1] = Time::MAX;
        true
    }

    /// Announces the next frames of link `i` to node `to`.
    fn foretell(&self, i: usize, to: NodeId) {
        if let (Kind::Link(link), Kind::Host(host)) = (&self.slots[i].node, &self.slots[to.index()].node) {
            if host.is_crowded() {
                host.foresee(&self.frames, link.coming());
            }
        }
    }

    #[inline(never)]
    fn serve_host(&mut self, i: usize) {
        let Kind::Host(host) = &mut self.slots[i].node else { return };
        host.run_timers(&mut Cx { now: self.now, frames: &mut self.frames });
        match self.slots[i].leads.get(WIRE) {
            Some(&Lead { to: To::Node(to, port), captures: 0, .. }) if self.is_link(to) => {
                self.send_all(i, (to, port));
            }
            _ => self.send_singly(i),
        }
        let slot = &mut self.slots[i];
        let Kind::Host(host) = &slot.node else { return };
        slot.due = host.due();
        let due = slot.due;
        self.arm(i, due);
    }

    #[inline]
    pub(super) fn is_link(&self, node: NodeId) -> bool {
        matches!(self.slots[node.index()].node, Kind::Link(_))
    }

    /// Sends all frames that leave host `i` to the link at its port.
    #[inline(always)]
    fn send_all(&mut self, i: usize, (to, port): (NodeId, Port)) {
        let Some((from, slot)) = two(&mut self.slots, i, to.index()) else { return };
        let Kind::Host(host) = &mut from.node else { return };
        for (at, mut frame) in host.leaving() {
            let Kind::Link(link) = &mut slot.node else { return };
            self.steps += 1;
            from.leads.count(WIRE, frame.len());
            slot.clock = at.max(slot.clock);
            let cx = &mut Cx { now: slot.clock, frames: &mut self.frames };
            if frame.is_draft() && !link.takes_drafts() {
                draft::write_out(cx.frames, &mut frame);
            }
            link.handle_frame(cx, port, frame);
            slot.due = link.due();
            if slot.note_due(self.now) {
                self.ready.push(to.0);
            }
        }
        host.give_up_large_buffer();
    }

    /// Sends the frames like [`World::send_all`], to any destination.
    #[inline(never)]
    fn send_singly(&mut self, i: usize) {
        let Kind::Host(host) = &mut self.slots[i].node else { return };
        let mut leaving = host.take_leaving();
        for (at, frame) in leaving.drain(..) {
            let way = self.slots[i].leads.pass(WIRE, frame.len());
            self.hand_on(way, at, frame);
        }
        if let Kind::Host(host) = &mut self.slots[i].node {
            host.give_back(leaving);
        }
    }

    /// Serves a node of another kind. Asks for its deadline first unless it was changed from outside, because
    /// polling may cost more.
    fn serve_other(&mut self, i: usize, mut poll: bool) {
        loop {
            let Kind::Other(node) = &mut self.slots[i].node else { return };
            if !poll && node.next_deadline(PortSet::ALL).is_none_or(|due| due > self.now) {
                break;
            }
            poll = false;
            let sent = node.poll_transmit(&mut Cx { now: self.now, frames: &mut self.frames }, PortSet::ALL);
            let Some(Transmit { port, at, frame }) = sent else { break };
            let way = self.slots[i].leads.pass(port, frame.len());
            self.hand_on(way, at, frame);
        }
        self.rearm(i);
    }

    /// Reads a node's deadline. The node is served now or put on the agenda.
    #[inline]
    pub(super) fn rearm(&mut self, i: usize) {
        let slot = &mut self.slots[i];
        slot.due = slot.node.deadline();
        let due = slot.due;
        self.arm(i, due);
    }

    #[inline]
    fn arm(&mut self, i: usize, due: Time) {
        if due <= self.now {
            self.make_ready(i);
        } else {
            self.put_on_agenda(i, due);
        }
    }

    /// Puts a node's deadline on the agenda, unless an earlier one is there for the node.
    #[inline]
    fn put_on_agenda(&mut self, i: usize, due: Time) {
        if let Some(seq) = self.book(i, due) {
            self.agenda.push(due, seq, i as u32);
        }
    }

    /// Returns the sequence number for a node's deadline on the agenda, or `None` if an earlier one is there
    /// for the node.
    #[inline]
    fn book(&mut self, i: usize, due: Time) -> Option<u64> {
        let slot = &mut self.slots[i];
        if due >= slot.wakes[0] {
            return None;
        }
        slot.wakes = [due, slot.wakes[0]];
        assert!(self.seq < SEQUENCES, "too many events");
        self.seq += 1;
        Some(self.seq - 1)
    }

    /// Delivers a frame that has left a port.
    #[inline]
    fn hand_on(&mut self, way: Option<(u32, To)>, at: Time, frame: Frame) {
        debug_assert!(at <= self.now, "sent at {at:?}, later than now {:?}", self.now);
        match way {
            Some((0, To::Node(node, port))) => self.hand_to((node, port), at, frame),
            Some((captures, to)) => self.show_and_route(captures, to, at, frame),
            None => self.frames.drop(frame, DropReason::NotWired),
        }
    }

    /// Delivers a frame like [`World::hand_on`], if it is captured or routed by address.
    #[inline(never)]
    fn show_and_route(&mut self, captures: u32, to: To, at: Time, mut frame: Frame) {
        if let Some(captures) = captures.checked_sub(1) {
            draft::write_out(&mut self.frames, &mut frame);
            let bytes = self.frames.bytes(&frame);
            self.captures[captures as usize].iter_mut().for_each(|see| see(at, bytes, frame.len()));
        }
        let to = match to {
            To::Node(node, port) => Some((node, port)),
            To::Routes(table) => {
                let routes = &self.routes[table as usize];
                match self.frames.draft(&frame) {
                    Some(draft) => routes.to(draft::destination(draft)),
                    None => routes.of_frame(self.frames.bytes(&frame)),
                }
            }
            To::Nowhere => None,
        };
        match to {
            Some(to) => self.hand_to(to, at, frame),
            None => self.frames.drop(frame, DropReason::NotWired),
        }
    }

    /// Hands a frame to a node. In most cases the node sends nothing at once, and its next action is on the
    /// agenda already. It then need not be served.
    #[inline(never)]
    pub(super) fn hand_to(&mut self, (node, port): (NodeId, Port), at: Time, frame: Frame) {
        self.steps += 1;
        let slot = &mut self.slots[node.index()];
        // A frame that was due earlier must not set a node's clock back.
        slot.clock = at.max(slot.clock);
        slot.due = slot.node.handle_frame(&mut Cx { now: slot.clock, frames: &mut self.frames }, port, frame);
        if slot.note_due(self.now) {
            self.ready.push(node.0);
        }
    }
}
