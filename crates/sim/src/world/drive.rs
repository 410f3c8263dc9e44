//! Running a world: whose deadline has come, and what becomes of the frames that leave.

use super::slot::Kind;
use super::{NodeId, To, World};
use crate::agenda::{Agenda, SEQUENCES};
use crate::host::{Host, WIRE};
use crate::tcp::segment::draft;
use weir_core::frame::Frame;
use weir_core::node::{Cx, Node, Port, PortSet, Transmit};
use weir_core::stats::DropReason;
use weir_core::time::Time;

impl World {
    /// Runs everything that is due up to and including `end`. Panics if frames go in circles at one
    /// instant for ever.
    pub fn run_until(&mut self, end: Time) {
        self.until = end;
        self.serve_ready();
        while let Some((at, i)) = self.agenda.pop_until(end) {
            self.now = at;
            let alone = self.agenda.peek().is_none_or(|next| next > at);
            if self.wake(i as usize) {
                if alone {
                    self.serve(i as usize);
                } else {
                    self.make_ready(i as usize);
                }
            }
            while let Some((_, i)) = self.agenda.pop_until(at) {
                if self.wake(i as usize) {
                    self.make_ready(i as usize);
                }
            }
            self.serve_ready();
        }
        self.now = self.now.max(end);
    }

    /// What was on the agenda for a node has come. Is it due?
    #[inline]
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

    /// The node is served now.
    pub(super) fn make_ready(&mut self, i: usize) {
        let slot = &mut self.slots[i];
        slot.poll = true;
        if !slot.ready {
            slot.ready = true;
            self.ready.push(i as u32);
        }
    }

    fn serve_ready(&mut self) {
        let limit = self.steps + self.steps_per_instant;
        while let Some(&i) = self.ready.get(self.served) {
            self.served += 1;
            self.serve(i as usize);
            assert!(self.steps < limit, "frames go in circles at {:?}", self.now);
        }
        self.ready.clear();
        self.served = 0;
    }

    /// Takes all that a node has to send now.
    fn serve(&mut self, i: usize) {
        self.steps += 1;
        let slot = &mut self.slots[i];
        slot.ready = false;
        slot.clock = self.now;
        let poll = core::mem::take(&mut slot.poll);
        match slot.node {
            Kind::Link(_) => self.serve_link(i),
            Kind::Host(_) => self.serve_host(i),
            Kind::Other(_) => self.serve_other(i, poll),
        }
    }

    fn serve_link(&mut self, i: usize) {
        loop {
            let slot = &mut self.slots[i];
            let Kind::Link(link) = &mut slot.node else { return };
            let sent = link.poll_transmit(&mut Cx { now: self.now, frames: &mut self.frames }, PortSet::ALL);
            let Some(Transmit { port, at, frame }) = sent else { return self.rearm(i) };
            slot.due = link.due();
            let way = slot.leads.pass(port, frame.len());
            if let Some((_, To::Node(to, _))) = way {
                self.foretell(i, to);
            }
            self.hand_on(way, at, frame);
            let due = self.slots[i].due;
            if due > self.now && !self.goes_on(i, due) {
                return self.put_on_agenda(i, due);
            }
        }
    }

    /// Is what node `i` does next, at `due`, the next thing that happens at all? Then it has become that time, and the agenda need not know.
    #[inline]
    fn goes_on(&mut self, i: usize, due: Time) -> bool {
        let first = due <= self.until && self.agenda.peek().is_none_or(|next| due < next);
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

    /// Node `to` gets the next frames of link `i` soon.
    #[inline]
    fn foretell(&self, i: usize, to: NodeId) {
        let Kind::Host(host) = &self.slots[to.index()].node else { return };
        if host.is_crowded() {
            self.tell(i, host);
        }
    }

    #[inline(never)]
    fn tell(&self, i: usize, host: &Host) {
        let Kind::Link(link) = &self.slots[i].node else { return };
        host.foresee(&self.frames, link.coming());
    }

    fn serve_host(&mut self, i: usize) {
        let Kind::Host(host) = &mut self.slots[i].node else { return };
        let mut leaving = host.take_leaving(&mut Cx { now: self.now, frames: &mut self.frames });
        for (at, frame) in leaving.drain(..) {
            let way = self.slots[i].leads.pass(WIRE, frame.len());
            self.hand_on(way, at, frame);
        }
        if let Kind::Host(host) = &mut self.slots[i].node {
            host.give_back(leaving);
        }
        self.rearm(i);
    }

    /// Of a node that was not changed from outside, the deadline is asked for first: polling it may cost more.
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

    /// Looks at a node's deadline: it is due, or the agenda gets it.
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

    /// The agenda gets a node's deadline, unless it has something earlier for the node.
    #[inline]
    fn put_on_agenda(&mut self, i: usize, due: Time) {
        let slot = &mut self.slots[i];
        if due < slot.wakes[0] {
            slot.wakes = [due, slot.wakes[0]];
            assert!(self.seq < SEQUENCES, "too many events");
            self.agenda.push(due, self.seq, i as u32);
            self.seq += 1;
        }
    }

    /// Takes a frame that has left a port to where that leads.
    #[inline]
    fn hand_on(&mut self, way: Option<(u32, To)>, at: Time, frame: Frame) {
        debug_assert!(at <= self.now, "sent at {at:?}, later than now {:?}", self.now);
        match way {
            Some((0, To::Node(node, port))) => self.hand_to((node, port), at, frame),
            Some((captures, to)) => self.show_and_route(captures, to, at, frame),
            None => self.frames.drop(frame, DropReason::NotWired),
        }
    }

    /// As [`World::hand_on`], of frames that are captured or find their way by address.
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

    /// Hands a frame to a node. Most make it send nothing at once, and what it does next is on the agenda already: then it
    /// need not be served.
    #[inline]
    pub(super) fn hand_to(&mut self, (node, port): (NodeId, Port), at: Time, frame: Frame) {
        self.steps += 1;
        let slot = &mut self.slots[node.index()];
        // A frame that was due earlier is no reason for a node's time to go back.
        slot.clock = at.max(slot.clock);
        let due = slot.node.handle_frame(&mut Cx { now: slot.clock, frames: &mut self.frames }, port, frame);
        slot.due = due;
        slot.poll |= due <= self.now;
        if !slot.ready && (slot.poll || due < slot.wakes[0]) {
            slot.ready = true;
            self.ready.push(node.0);
        }
    }
}
