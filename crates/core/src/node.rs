//! The contract of everything that moves frames: the gateway, a WAN direction, a simulated host.
//!
//! # Calling contract
//!
//! A node reads no clock, owns no thread and does no I/O. A driver calls it:
//!
//! 1. [`Node::handle_frame`] whenever a frame arrives on a port, with `cx.now` the time of its arrival. `now`
//!    never goes backwards from call to call.
//! 2. [`Node::poll_transmit`] when [`Node::next_deadline`] has come, which any `handle_frame` may cause,
//!    until it returns `None`. Each [`Transmit`] has `at <= now`, the time at which the frame was *due*. `at`
//!    never decreases per port and travels with the frame: the next node is called with `now = at`, so late
//!    wake-ups do not add up from hop to hop.
//! 3. [`Node::next_deadline`] at any time. It returns the time at which the poll with the same `writable` has
//!    something to do, or `None`. The time is at or before `now` if a frame can be sent already. After the
//!    poll it is `None` or later than `now`: frames that only wait for a port that is not writable have no
//!    deadline. They are returned by the poll that the driver makes when the port has become writable.
//!
//! Both `&mut` calls first bring the node's state up to `now`, then act. A driver that wakes late steps every
//! missed deadline in (time, node, sequence) order before it hands in frames that arrived later. Early or
//! repeated calls change nothing observable. The work of one call is bounded, whatever the number of flows.
//!
//! `writable` is the set of ports that can take a frame now. A node returns no frame for any other port and
//! keeps its frames for them, so a full ring on one port never blocks the other. Only the driver knows the
//! ports. A port becomes writable with the poll that says so. The deadlines that it missed are not stepped at
//! their own times, since no frame could leave then. Until the next poll a node may assume the ports of the
//! last one.

use crate::frame::{Frame, Frames};
use crate::stats::DropReason;
use crate::time::Time;

/// One of a node's ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u8);

/// The port of a two-port node towards the LAN.
pub const LAN: Port = Port(0);
/// The port of a two-port node towards the WAN.
pub const WAN: Port = Port(1);

/// A set of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PortSet(u64);

impl PortSet {
    /// No port.
    pub const NONE: PortSet = PortSet(0);
    /// Every port.
    pub const ALL: PortSet = PortSet(u64::MAX);

    /// This set and `port`. Panics if the port's number is above 63.
    #[must_use]
    pub const fn with(self, port: Port) -> PortSet {
        PortSet(self.0 | 1 << port.0)
    }
    /// This set without `port`.
    #[must_use]
    pub const fn without(self, port: Port) -> PortSet {
        PortSet(self.0 & !(1 << port.0))
    }
    /// The ports in both sets.
    #[must_use]
    pub const fn and(self, other: PortSet) -> PortSet {
        PortSet(self.0 & other.0)
    }
    /// Returns whether `port` is in the set.
    pub const fn contains(self, port: Port) -> bool {
        self.0 & 1 << port.0 != 0
    }
}

/// Context of a call: the time, and the pool of frames.
pub struct Cx<'a> {
    /// The time of this call.
    pub now: Time,
    /// The pool of all frames of this engine.
    pub frames: &'a mut Frames,
}

impl Cx<'_> {
    /// Drops a frame, see [`Frames::drop`].
    pub fn drop(&mut self, frame: Frame, reason: DropReason) {
        self.frames.drop(frame, reason);
    }
}

/// A frame on its way out.
#[derive(Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The port it leaves by.
    pub port: Port,
    /// Time at which it was due, at most the `now` of the call.
    pub at: Time,
    /// The frame itself.
    pub frame: Frame,
}

/// See the [module documentation](self) for the calling contract.
pub trait Node {
    /// Announces frames that are about to be handed in, in this order, each with its time of arrival and its
    /// port. A node with many flows can prefetch their state at once. The call changes nothing and is
    /// optional.
    fn announce(&self, _frames: &Frames, _coming: &[(Time, Port, Frame)]) {}
    /// Returns whether the node can be handed [drafts](Frame::is_draft). Other nodes get frames with written
    /// headers.
    fn takes_drafts(&self) -> bool {
        false
    }
    /// Handles a frame that arrived on `port` at `cx.now`.
    fn handle_frame(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame);
    /// Returns the next due frame, if it leaves by a port in `writable`.
    fn poll_transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit>;
    /// Returns the time at which [`Node::poll_transmit`] with these ports has something to do next.
    fn next_deadline(&self, writable: PortSet) -> Option<Time>;
}

/// A node of any kind.
impl<N: Node + ?Sized> Node for Box<N> {
    fn announce(&self, frames: &Frames, coming: &[(Time, Port, Frame)]) {
        (**self).announce(frames, coming);
    }
    fn takes_drafts(&self) -> bool {
        (**self).takes_drafts()
    }
    fn handle_frame(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        (**self).handle_frame(cx, port, frame);
    }
    fn poll_transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
        (**self).poll_transmit(cx, writable)
    }
    fn next_deadline(&self, writable: PortSet) -> Option<Time> {
        (**self).next_deadline(writable)
    }
}
