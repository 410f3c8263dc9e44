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
//! which classes are [congested](crate::gateway::Congestion), and what comes to the queues of classes whose ACKs
//! [follow their data](crate::ack::Turns), and leaves them.
//!
//! In the simulator the hooks and the gateway are one node, and whole frames come to it: what it lets pass goes on to the queues.

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

/// A node that controls ACKs: a [`Gateway`], or one with the hooks around it.
pub trait Acks: Node {
    /// The gateway in it.
    fn gateway(&self) -> &Gateway;
    /// The same, to be told something.
    fn gateway_mut(&mut self) -> &mut Gateway;
}

impl Acks for Gateway {
    fn gateway(&self) -> &Gateway {
        self
    }
    fn gateway_mut(&mut self) -> &mut Gateway {
        self
    }
}

/// See the [module documentation](self).
pub struct Combined<A = Gateway> {
    gateway: A,
    sharing: Sharing,
    /// Ports that take frames, as the last poll said.
    open: PortSet,
    /// Of the last call.
    last: Time,
}

impl<A: Acks> Combined<A> {
    /// Of a gateway and a node of queues with the same configuration.
    pub fn new(mut gateway: A, mut sharing: Sharing) -> Combined<A> {
        gateway.gateway_mut().heed(sharing.congestion());
        sharing.listen();
        Combined { gateway, sharing, open: PortSet::ALL, last: Time::ZERO }
    }

    /// What controls ACKs.
    pub fn gateway(&self) -> &Gateway {
        self.gateway.gateway()
    }

    /// The same, to be told something. After a change of its configuration [`Combined::replace`] follows.
    pub fn gateway_mut(&mut self) -> &mut Gateway {
        self.gateway.gateway_mut()
    }

    /// What controls ACKs, with the hooks around it.
    pub fn acks(&self) -> &A {
        &self.gateway
    }

    /// What makes data wait.
    pub fn sharing(&self) -> &Sharing {
        &self.sharing
    }

    /// Queues of another configuration take over ([`Sharing::replace`]).
    pub fn replace(&mut self, cx: &mut Cx<'_>, mut next: Sharing) -> Sharing {
        self.catch_up(cx);
        next.listen();
        let old = self.sharing.replace(cx, next);
        let gateway = self.gateway.gateway_mut();
        gateway.heed(self.sharing.congestion());
        gateway.queues_anew(cx.now);
        old
    }

    /// When something happens next that the other part is to be told: an ACK leaves the gateway, or data that ACKs follow leaves its queue.
    fn next_step(&self) -> Option<Time> {
        let departure = self.sharing.next_departure(self.open);
        [self.gateway.next_deadline(self.open), departure].into_iter().flatten().min()
    }

    /// What was due in either part before `cx.now`, or is now, has happened, each at its own time: queues first, which say what is
    /// congested and what has left.
    fn catch_up(&mut self, cx: &mut Cx<'_>) {
        loop {
            while let Some(due) = self.next_step().filter(|&due| due <= cx.now) {
                self.step(&mut Cx { now: due, frames: cx.frames });
            }
            self.last = self.last.max(cx.now);
            self.leave(cx);
            if self.next_step().is_none_or(|due| due > cx.now) {
                return; // what left now has released nothing that leaves now
            }
        }
    }

    /// What is due at `cx.now` happens, or as late as what has happened.
    fn step(&mut self, cx: &mut Cx<'_>) {
        self.last = self.last.max(cx.now);
        let cx = &mut Cx { now: self.last, frames: cx.frames };
        self.leave(cx);
        while let Some(Transmit { port, frame, .. }) = self.gateway.poll_transmit(cx, self.open) {
            // What leaves by one side has come from the other.
            self.enter(cx, if port == WAN { LAN } else { WAN }, frame);
        }
    }

    /// Frames leave their queues, and the gateway is told.
    fn leave(&mut self, cx: &mut Cx<'_>) {
        self.sharing.catch_up(cx);
        while let Some((class, departure)) = self.sharing.next_gone() {
            self.gateway.gateway_mut().data_left(cx, class, departure);
        }
    }

    /// A frame comes to the queues.
    fn enter(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        let gateway = self.gateway.gateway();
        let came = self.sharing.enter(cx, port, frame, |direction, key| gateway.follows_data(direction, key));
        let gateway = self.gateway.gateway_mut();
        if let Some(came) = came {
            gateway.data_came(cx.now, came);
        }
        while let Some((flow, frames)) = self.sharing.next_loss() {
            gateway.note_frames(flow, frames, cx.now);
        }
    }
}

impl Combined {
    /// The conservation law's account: what goes from one part to the other counts once.
    pub fn ledger(&self) -> Ledger {
        let (gateway, sharing) = (&self.gateway.stats().ledger, self.sharing.ledger());
        Ledger {
            received: gateway.received + sharing.received - gateway.sent,
            made: gateway.made + sharing.made,
            sent: sharing.sent,
            absorbed: gateway.absorbed + sharing.absorbed,
            drops: gateway.drops.with(&sharing.drops),
        }
    }
}

impl<A: Acks> Node for Combined<A> {
    fn announce(&self, frames: &Frames, coming: &[(Time, Port, Frame)]) {
        self.gateway.announce(frames, coming);
    }

    fn handle_frame(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        self.catch_up(cx);
        match port {
            LAN_WHOLE => self.enter(cx, LAN, frame),
            WAN_WHOLE => self.enter(cx, WAN, frame),
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
