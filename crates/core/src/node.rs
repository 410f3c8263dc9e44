//! The contract of everything that moves frames: the gateway, a WAN direction, a simulated host.
//!
//! # Calling contract
//!
//! A node reads no clock, owns no thread and does no I/O. A driver calls it:
//!
//! 1. [`Node::handle_frame`] whenever a frame arrives on a port, with `cx.now` the time it
//!    arrived. `now` never goes backwards from call to call.
//! 2. [`Node::poll_transmit`] when [`Node::next_deadline`] has come, which it may have with any
//!    `handle_frame`, until it returns `None`. Each [`Transmit`] carries `at <= now`: when the frame was *due*.
//!    `at` never decreases per port and travels with the frame: the next node is called with
//!    `now = at`, so waking late does not add up from hop to hop.
//! 3. [`Node::next_deadline`] at any time: `None`, or when the poll with the same `writable` has something to do,
//!    which is at or before `now` if it has something to send already. After the poll it is `None` or later than
//!    `now`: what only waits for a port that is not writable has no deadline. It comes out of the
//!    poll that the driver makes when the port has become writable.
//!
//! Both `&mut` calls first bring the node's state up to `now`, then act. A driver that wakes late
//! steps every missed deadline in (time, node, sequence) order before it hands in frames that
//! arrived later. Calls that come early or are repeated change nothing observable. The work of one
//! call is bounded, whatever the number of flows.
//!
//! `writable` says which ports can take a frame now. A node returns no frame for any other port
//! and keeps what it has for them, so a full ring on one port never blocks the other. Only the driver knows the
//! ports. One that becomes writable is so from the poll on that says so: the deadlines that it missed are not stepped at
//! their own times, since nothing could leave then. Until the next poll a node may take ports to be as the last one said.

use crate::frame::{Frame, Frames};
use crate::stats::DropReason;
use crate::time::Time;

/// One of a node's ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u8);

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
    /// Is `port` in the set?
    pub const fn contains(self, port: Port) -> bool {
        self.0 & 1 << port.0 != 0
    }
}

/// What a call is given: the time, and the pool that frames live in.
pub struct Cx<'a> {
    /// The time of this call.
    pub now: Time,
    /// The pool of all frames of this engine.
    pub frames: &'a mut Frames,
}

impl Cx<'_> {
    /// Drops a frame; see [`Frames::drop`].
    pub fn drop(&mut self, frame: Frame, reason: DropReason) {
        self.frames.drop(frame, reason);
    }
}

/// A frame on its way out.
#[derive(Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The port it leaves by.
    pub port: Port,
    /// When it was due, at most the `now` of the call.
    pub at: Time,
    /// The frame itself.
    pub frame: Frame,
}

/// See the [module documentation](self) for the calling contract.
pub trait Node {
    /// These frames are about to be handed in, each with the time at which it arrived and its port, in this order:
    /// whoever knows many flows can load what is kept of all of them at once. It changes nothing, and it need not be
    /// called.
    fn announce(&self, _frames: &Frames, _coming: &[(Time, Port, Frame)]) {}
    /// Can it be handed [drafts](Frame::is_draft)? Everybody else gets frames with their headers written.
    fn takes_drafts(&self) -> bool {
        false
    }
    /// A frame arrived on `port` at `cx.now`.
    fn handle_frame(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame);
    /// The next frame that is due, if it leaves by a port in `writable`.
    fn poll_transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit>;
    /// When [`Node::poll_transmit`] with these ports has something to do next.
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
