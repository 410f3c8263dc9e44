//! A node in its world.

use super::{Element, To};
use crate::host::Host;
use crate::tcp::segment::draft;
use core::any::Any;
use weir_core::frame::Frame;
use weir_core::link::Link;
use weir_core::node::{Cx, Node, Port, PortSet};
use weir_core::time::Time;

/// A node. What most nodes are is told apart, and called directly.
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

    /// When it has something to do; [`Time::MAX`] for never.
    #[inline]
    pub(super) fn deadline(&self) -> Time {
        match self {
            Kind::Link(link) => link.due(),
            Kind::Host(host) => host.due(),
            Kind::Other(node) => node.next_deadline(PortSet::ALL).unwrap_or(Time::MAX),
        }
    }

    /// Hands it a frame, with its headers written unless it takes a draft. Returns its deadline.
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

/// The node, if it is a `U`.
fn take<T: Any, U: Any>(node: &mut Option<T>) -> Option<U> {
    (node as &mut dyn Any).downcast_mut::<Option<U>>()?.take()
}

/// What has left a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Frames.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Passed {
    /// A frame of so many bytes.
    #[inline(always)]
    fn count(&mut self, len: usize) {
        self.frames += 1;
        self.bytes += len as u64;
    }
}

/// Where a port leads, and what has left it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lead {
    pub(super) to: To,
    /// One more than the number of its captures; 0 if there are none.
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
    /// `None` of a port that was never wired.
    #[inline]
    pub(super) fn get(&self, port: Port) -> Option<&Lead> {
        let port = usize::from(port.0);
        self.first.get(port).or_else(|| self.more.get(port - 2))
    }

    /// A frame of `len` bytes leaves a port: its captures, and where it leads. `None` of a port that was never wired.
    #[inline]
    pub(super) fn pass(&mut self, port: Port, len: usize) -> Option<(u32, To)> {
        let lead = self.get_mut(port)?;
        lead.passed.count(len);
        Some((lead.captures, lead.to))
    }

    /// As [`Leads::pass`], of a port of which that is known already.
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

    /// That of a port to be wired.
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
    /// `now` of the last call.
    pub(super) clock: Time,
    /// Its deadline, as of the last call.
    pub(super) due: Time,
    /// What the agenda has for this node: the two earliest times, of a near deadline and of a far one that it does not
    /// make forget. [`Time::MAX`] for none.
    pub(super) wakes: [Time; 2],
    /// In the queue of those to be served now.
    pub(super) ready: bool,
    /// Something is due, or was changed from outside: it is polled when it is served.
    pub(super) poll: bool,
    pub(super) leads: Leads,
}

impl Slot {
    /// It was handed a frame, and its deadline is known. Is it to be served, and is not among those that are?
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

/// Two slots at once, if they are two.
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

/// Three slots at once, if they are three.
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
