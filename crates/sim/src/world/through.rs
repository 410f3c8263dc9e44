//! From a link through a host into the next link: the host's response to a frame enters that link at once.
//!
//! A host that was handed a frame is served next if no other node waits, and then sends its response. This is
//! the case for almost all frames between hosts. Nothing happens in between, so the response can be sent
//! immediately, and the order of all events is unchanged.

use super::slot::{three, Kind, Lead, Leads};
use super::{NodeId, To, World};
use crate::agenda::Agenda;
use crate::host::WIRE;
use crate::tcp::segment::draft;
use crate::tcp::Exit;
use weir_core::frame::{Frame, Frames};
use weir_core::link::Link;
use weir_core::node::{Cx, Node, Port};
use weir_core::time::Time;

impl World {
    /// Returns the link that takes the frames of node `to`, if `to` is a host and no node waits to be served.
    /// The link must differ from `link`.
    #[inline(always)]
    pub(super) fn way_through(&self, link: usize, to: NodeId) -> Option<(NodeId, Port)> {
        let slot = &self.slots[to.index()];
        let (Kind::Host(host), Some(lead)) = (&slot.node, slot.leads.get(WIRE)) else { return None };
        let &Lead { to: To::Node(next, port), captures: 0, .. } = lead else { return None };
        let alone = self.served == self.ready.len() && host.is_cleared();
        (alone && next.index() != link && self.is_link(next)).then_some((next, port))
    }

    /// Delivers all frames that link `i` sends now to the host `to`, and the host's frames to the link
    /// `next`.
    #[inline(always)]
    pub(super) fn serve_through(&mut self, i: usize, to: NodeId, (next, port): (NodeId, Port)) -> Time {
        let World { slots, agenda, ready, frames, .. } = self;
        let Some([first, middle, last]) = three(slots, [i, to.index(), next.index()]) else {
            return self.serve_link_to_any(i);
        };
        loop {
            let (Kind::Link(link), Kind::Host(host), Kind::Link(beyond)) =
                (&mut first.node, &mut middle.node, &mut last.node)
            else {
                return self.serve_link_to_any(i);
            };
            if !link.is_out(&mut Cx { now: self.now, frames }) {
                return self.look_again(i);
            }
            let (at, frame) = link.take_out();
            first.due = link.due();
            first.leads.count(Link::OUT, frame.len());
            if host.is_crowded() {
                host.foresee(frames, link.coming());
            }
            middle.clock = at.max(middle.clock);
            let exit =
                &mut Onward { link: beyond, port, clock: &mut last.clock, leads: &mut middle.leads, sent: 0 };
            host.take_in(&mut Cx { now: middle.clock, frames }, frame, exit);
            let sent = exit.sent;
            self.steps += 1 + sent;
            let due = first.due;
            // The host is served after all frames that arrive now, but before the receivers of its frames.
            middle.due = if sent > 0 && due <= self.now { self.now } else { host.due() };
            if middle.note_due(self.now) {
                ready.push(to.0);
            }
            if sent > 0 {
                last.due = beyond.due();
                if last.note_due(self.now) {
                    ready.push(next.0);
                }
            }
            if due > self.now {
                let first_of_all = is_first(due, self.until, self.booked, agenda);
                if !first_of_all || self.served < ready.len() {
                    return due;
                }
                self.steps += 1;
                (self.now, first.clock, first.wakes[1]) = (due, due, Time::MAX);
            }
        }
    }
}

/// Exit directly into the next link.
struct Onward<'a> {
    link: &'a mut Link,
    port: Port,
    /// Clock of the link.
    clock: &'a mut Time,
    /// Leads of the host.
    leads: &'a mut Leads,
    sent: u64,
}

impl Exit for Onward<'_> {
    #[inline(always)]
    fn leave(&mut self, frames: &mut Frames, now: Time, mut frame: Frame) {
        self.sent += 1;
        self.leads.count(WIRE, frame.len());
        *self.clock = now.max(*self.clock);
        if frame.is_draft() && !self.link.takes_drafts() {
            draft::write_out(frames, &mut frame);
        }
        self.link.handle_frame(&mut Cx { now: *self.clock, frames }, self.port, frame);
    }
}

/// Returns whether no other event happens up to and including `due`.
#[inline(always)]
pub(super) fn is_first(due: Time, until: Time, booked: Time, agenda: &impl Agenda) -> bool {
    due <= until && due < booked && agenda.peek().is_none_or(|next| due < next)
}
