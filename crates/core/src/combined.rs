//! A gateway that controls ACKs and makes data wait, as one node: a [`Gateway`] behind the hooks of the kernel, and a [`Sharing`]
//! through which all its frames pass.
//!
//! ```text
//!  segments that hooks took or copied ──▶ LAN, WAN, taps ──▶ Gateway ──▶ ACKs ──┐
//!                                                                               ├──▶ Sharing ──▶ LAN, WAN
//!  whole frames of a direction ──────▶ LAN_WHOLE, WAN_WHOLE ────────────────────┘
//! ```
//!
//! The hooks come first, as on the host. Frames of a direction with queues that they do not take are redirected here whole. The ACKs that the gateway
//! sends wait in the queue of the class that takes them, like any other packet of their direction. The queues tell the gateway
//! which classes are [congested](crate::gateway::Congestion).

use crate::frame::{Frame, Frames};
use crate::gateway::{Gateway, LAN, WAN};
use crate::node::{Cx, Node, Port, PortSet, Transmit};
use crate::sharing::Sharing;
use crate::stats::Ledger;
use crate::time::Time;

/// Frames that came from the LAN, whole, to wait in the queues of their classes.
pub const LAN_WHOLE: Port = Port(6);
/// Frames that came from the WAN, whole, to wait in the queues of their classes.
pub const WAN_WHOLE: Port = Port(7);

/// See the [module documentation](self).
pub struct Combined {
    gateway: Gateway,
    sharing: Sharing,
    /// Ports that take frames, as the last poll said.
    open: PortSet,
    /// Of the last call.
    last: Time,
}

impl Combined {
    /// Of a gateway and a node of queues with the same configuration.
    pub fn new(mut gateway: Gateway, sharing: Sharing) -> Combined {
        gateway.heed(sharing.congestion());
        Combined { gateway, sharing, open: PortSet::ALL, last: Time::ZERO }
    }

    /// What controls ACKs.
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// The same, to be told something. After a change of its configuration [`Combined::replace`] follows.
    pub fn gateway_mut(&mut self) -> &mut Gateway {
        &mut self.gateway
    }

    /// What makes data wait.
    pub fn sharing(&self) -> &Sharing {
        &self.sharing
    }

    /// Queues of another configuration take over ([`Sharing::replace`]).
    pub fn replace(&mut self, cx: &mut Cx<'_>, next: Sharing) -> Sharing {
        self.catch_up(cx);
        let old = self.sharing.replace(cx, next);
        self.gateway.heed(self.sharing.congestion());
        old
    }

    /// The conservation law's account: what goes from one part to the other counts once.
    pub fn ledger(&self) -> Ledger {
        let (gateway, sharing) = (&self.gateway.stats().ledger, self.sharing.ledger());
        Ledger {
            received: gateway.received + sharing.received - gateway.sent,
            made: gateway.made,
            sent: sharing.sent,
            absorbed: gateway.absorbed + sharing.absorbed,
            drops: gateway.drops.with(&sharing.drops),
        }
    }

    /// What was due in either part before `cx.now`, or is now, has happened, each at its own time: queues first, which say what is
    /// congested.
    fn catch_up(&mut self, cx: &mut Cx<'_>) {
        while let Some(due) = self.gateway.next_deadline(self.open).filter(|&due| due <= cx.now) {
            self.last = self.last.max(due);
            let cx = &mut Cx { now: self.last, frames: cx.frames };
            self.sharing.catch_up(cx);
            while let Some(Transmit { port, frame, .. }) = self.gateway.poll_transmit(cx, self.open) {
                // What leaves by one side has come from the other.
                self.sharing.handle_frame(cx, if port == WAN { LAN } else { WAN }, frame);
            }
        }
        self.last = self.last.max(cx.now);
        self.sharing.catch_up(cx);
    }
}

impl Node for Combined {
    fn announce(&self, frames: &Frames, coming: &[(Time, Port, Frame)]) {
        self.gateway.announce(frames, coming);
    }

    fn handle_frame(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        self.catch_up(cx);
        match port {
            LAN_WHOLE => self.sharing.handle_frame(cx, LAN, frame),
            WAN_WHOLE => self.sharing.handle_frame(cx, WAN, frame),
            port => self.gateway.handle_frame(cx, port, frame),
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
        self.open = writable;
        self.catch_up(cx);
        self.sharing.poll_transmit(cx, writable)
    }

    fn next_deadline(&self, writable: PortSet) -> Option<Time> {
        let parts = [self.gateway.next_deadline(writable), self.sharing.next_deadline(writable)];
        parts.into_iter().flatten().min()
    }
}
