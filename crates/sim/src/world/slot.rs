//! A node and its state in a world.

use super::{Element, To};
use crate::host::Host;
use crate::tcp::segment::draft;
use core::any::Any;
use weir_core::frame::Frame;
use weir_core::link::Link;
use weir_core::node::{Cx, Node, Port, PortSet};
use weir_core::time::Time;

/// Node. The most frequent types have variants of their own, and are called directly.
pub(super) enum Kind {
    Link(Box<Link>),
    Host(Box<Host>),
    Other(Box<dyn Element>),
}

impl Kind {
    pub(super) fn new<T: Element>(node: T) -> Kind {
        let mut node = Some(node);
        if let Some(link) = take(&mut node) {
            return Kind::Link(Box::new(link));
        }
        if let Some(host) = take(&mut node) {
            return Kind::Host(Box::new(host));
        }
        Kind::Other(Box::new(node.expect("nobody has taken it")))
    }

    pub(super) fn as_any(&self) -> &dyn Any {
        match self {
            Kind::Link(link) => &**link,
            Kind::Host(host) => &**host,
            Kind::Other(node) => (**node).as_any(),
        }
    }

    pub(super) fn as_any_mut(&mut self) -> &mut dyn Any {
        match self {
            Kind::Link(link) => &mut **link,
            Kind::Host(host) => &mut **host,
            Kind::Other(node) => (**node).as_any_mut(),
        }
    }

    /// Returns the time of the next action; [`Time::MAX`] for never.
    #[inline]
    pub(super) fn deadline(&self) -> Time {
        match self {
            Kind::Link(link) => link.due(),
            Kind::Host(host) => host.due(),
            Kind::Other(node) => node.next_deadline(PortSet::ALL).unwrap_or(Time::MAX),
        }
    }

    /// Hands a frame to the node, with its headers written unless the node takes drafts. Returns the node's
    /// deadline.
    #[inline]
    pub(super) fn handle_frame(&mut self, cx: &mut Cx<'_>, port: Port, mut frame: Frame) -> Time {
        match self {
            Kind::Link(link) => {
                if frame.is_draft() && !link.takes_drafts() {
                    draft::write_out(cx.frames, &mut frame);
                }
                link.handle_frame(cx, port, frame);
                link.due()
            }
            Kind::Host(host) => {
                host.handle_frame(cx, port, frame);
                host.due()
            }
            Kind::Other(node) => hand_to(&mut **node, cx, port, frame),
        }
    }
}

#[inline(never)]
fn hand_to(node: &mut dyn Element, cx: &mut Cx<'_>, port: Port, mut frame: Frame) -> Time {
    if frame.is_draft() && !node.takes_drafts() {
        draft::write_out(cx.frames, &mut frame);
    }
    node.handle_frame(cx, port, frame);
    node.next_deadline(PortSet::ALL).unwrap_or(Time::MAX)
}

/// Returns the node, if it is a `U`.
fn take<T: Any, U: Any>(node: &mut Option<T>) -> Option<U> {
    (node as &mut dyn Any).downcast_mut::<Option<U>>()?.take()
}

/// Count of the frames that have left a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Number of frames.
    pub frames: u64,
    /// Number of their bytes.
    pub bytes: u64,
}

impl Passed {
    /// Counts a frame of `len` bytes.
    #[inline(always)]
    fn count(&mut self, len: usize) {
        self.frames += 1;
        self.bytes += len as u64;
    }
}

/// Destination and counts of a port.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lead {
    pub(super) to: To,
    /// Number of the port's captures plus one; 0 if it has none.
    pub(super) captures: u32,
    pub(super) passed: Passed,
}

/// Leads by out-port. Most nodes have two ports.
#[derive(Debug, Default)]
pub(super) struct Leads {
    first: [Lead; 2],
    more: Vec<Lead>,
}

impl Leads {
    /// Returns the lead of a port; `None` if it was never wired.
    #[inline]
    pub(super) fn get(&self, port: Port) -> Option<&Lead> {
        let port = usize::from(port.0);
        self.first.get(port).or_else(|| self.more.get(port - 2))
    }

    /// Counts a frame of `len` bytes that leaves a port. Returns the port's captures and destination, or
    /// `None` if it was never wired.
    #[inline]
    pub(super) fn pass(&mut self, port: Port, len: usize) -> Option<(u32, To)> {
        let lead = self.get_mut(port)?;
        lead.passed.count(len);
        Some((lead.captures, lead.to))
    }

    /// Counts a frame like [`Leads::pass`], for a port with known captures and destination.
    #[inline(always)]
    pub(super) fn count(&mut self, port: Port, len: usize) {
        if let Some(lead) = self.get_mut(port) {
            lead.passed.count(len);
        }
    }

    #[inline]
    fn get_mut(&mut self, port: Port) -> Option<&mut Lead> {
        let port = usize::from(port.0);
        match self.first.get_mut(port) {
            None => self.more.get_mut(port - 2),
            lead => lead,
        }
    }

    /// Returns the lead of a port for wiring.
    pub(super) fn entry(&mut self, port: Port) -> &mut Lead {
        let port = usize::from(port.0);
        if let Some(beyond) = (port + 1).checked_sub(2 + self.more.len()) {
            self.more.resize(self.more.len() + beyond, Lead::default());
        }
        match port {
            0 | 1 => &mut self.first[port],
            _ => &mut self.more[port - 2],
        }
    }
}

pub(super) struct Slot {
    pub(super) node: Kind,
    /// Time `now` of the last call.
    pub(super) clock: Time,
    /// Deadline as of the last call.
    pub(super) due: Time,
    /// The two earliest times that the agenda has for this node: a near deadline, and a far one behind it.
    /// [`Time::MAX`] for none.
    pub(super) wakes: [Time; 2],
    /// True if the node is in the queue of nodes to serve now.
    pub(super) ready: bool,
    /// True if the node must be polled when served, because a deadline is due or it was changed from outside.
    pub(super) poll: bool,
    pub(super) leads: Leads,
}

impl Slot {
    /// Updates the state after the node was handed a frame and its deadline is known. Returns whether it
    /// joins the queue of nodes to serve.
    #[inline(always)]
    pub(super) fn note_due(&mut self, now: Time) -> bool {
        self.poll |= self.due <= now;
        let joins = !self.ready && (self.poll || self.due < self.wakes[0]);
        self.ready |= joins;
        joins
    }

    pub(super) fn new(node: Kind, clock: Time) -> Slot {
        Slot {
            node,
            leads: Leads::default(),
            clock,
            due: Time::MAX,
            wakes: [Time::MAX; 2],
            ready: false,
            poll: false,
        }
    }
}

/// Borrows two slots at once, if they are distinct.
#[inline(always)]
pub(super) fn two(slots: &mut [Slot], i: usize, j: usize) -> Option<(&mut Slot, &mut Slot)> {
    if i < j {
        let (low, high) = slots.split_at_mut(j);
        Some((low.get_mut(i)?, high.first_mut()?))
    } else {
        let (low, high) = slots.split_at_mut(i);
        Some((high.first_mut()?, low.get_mut(j)?))
    }
}

/// Borrows three slots at once, if they are distinct.
#[inline(always)]
pub(super) fn three(slots: &mut [Slot], [i, j, k]: [usize; 3]) -> Option<[&mut Slot; 3]> {
    let (before, rest) = slots.split_at_mut_checked(i)?;
    let (slot, after) = rest.split_first_mut()?;
    let behind = |n: usize| n.checked_sub(i + 1);
    let (second, third) = match (behind(j), behind(k)) {
        (Some(j), Some(k)) => two(after, j, k)?,
        (Some(j), None) => (after.get_mut(j)?, before.get_mut(k)?),
        (None, Some(k)) => (before.get_mut(j)?, after.get_mut(k)?),
        (None, None) => two(before, j, k)?,
    };
    Some([slot, second, third])
}
