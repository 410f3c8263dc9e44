//! A gateway that controls ACKs and queues data, as one node: a [`Gateway`] behind the hooks of the kernel,
//! and a [`Sharing`] through which all its frames pass.
//!
//! ```text
//!  segments that hooks took or copied ──▶ LAN, WAN, taps ──▶ Gateway ──▶ ACKs ──┐
//!                                                                               ├──▶ Sharing ──▶ LAN, WAN
//!  whole frames of a direction ──────▶ LAN_WHOLE, WAN_WHOLE ────────────────────┘
//! ```
//!
//! The hooks come first, as on the host. In a direction with queues, frames that the hooks do not take are
//! redirected here whole. The ACKs of the gateway wait in the queue of their class, like any other packet of
//! their direction. The queues tell the gateway which classes are [congested](crate::gateway::Congestion).
//! They also report arrivals and departures of classes whose ACKs [follow their data](crate::ack::Turns).
//!
//! In the simulator the hooks and the gateway are one node, which gets whole frames. Frames that it lets pass
//! go on to the queues.

use crate::classify::Direction;
use crate::frame::{Frame, Frames};
use crate::gateway::{Gateway, LAN, WAN};
use crate::node::{Cx, Node, Port, PortSet, Transmit};
use crate::stats::Ledger;
use crate::systems::link_sharing::Sharing;
use crate::time::Time;

pub use crate::gateway::{LAN_WHOLE, WAN_WHOLE};

/// A node that controls ACKs: a [`Gateway`], or one with the hooks around it.
pub trait Acks: Node {
    /// Returns the gateway in it.
    fn gateway(&self) -> &Gateway;
    /// Returns the gateway, for changes.
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
    /// Ports that take frames, by the last poll.
    open: PortSet,
    /// Time of the last call.
    last: Time,
}

impl<A: Acks> Combined<A> {
    /// Returns the node of a gateway and a node of queues with the same configuration.
    pub fn new(mut gateway: A, mut sharing: Sharing) -> Combined<A> {
        gateway.gateway_mut().flows.heed(sharing.congestion());
        sharing.listen();
        Combined { gateway, sharing, open: PortSet::ALL, last: Time::ZERO }
    }

    /// Returns the gateway.
    pub fn gateway(&self) -> &Gateway {
        self.gateway.gateway()
    }

    /// Returns the gateway, for changes. After a change of its configuration [`Combined::replace`] follows.
    pub fn gateway_mut(&mut self) -> &mut Gateway {
        self.gateway.gateway_mut()
    }

    /// Returns the node that controls ACKs, with the hooks around the gateway.
    pub fn acks(&self) -> &A {
        &self.gateway
    }

    /// Returns the queues.
    pub fn sharing(&self) -> &Sharing {
        &self.sharing
    }

    /// Replaces the queues by those of another configuration ([`Sharing::replace`]).
    pub fn replace(&mut self, cx: &mut Cx<'_>, mut next: Sharing) -> Sharing {
        self.catch_up(cx);
        next.listen();
        let old = self.sharing.replace(cx, next);
        let gateway = self.gateway.gateway_mut();
        gateway.flows.heed(self.sharing.congestion());
        gateway.flows.queues_anew(cx.now);
        old
    }

    /// Returns the time of the next event that concerns the other part: an ACK leaves the gateway, or data
    /// that ACKs follow leaves its queue.
    fn next_step(&self) -> Option<Time> {
        let departure = self.sharing.next_departure(self.open);
        [self.gateway.next_deadline(self.open), departure].into_iter().flatten().min()
    }

    /// Carries out everything that is due in either part by `cx.now`, each at its own time. Queues come
    /// first, since they report congestion and departures.
    fn catch_up(&mut self, cx: &mut Cx<'_>) {
        loop {
            while let Some(due) = self.next_step().filter(|&due| due <= cx.now) {
                self.step(&mut Cx { now: due, frames: cx.frames });
            }
            self.last = self.last.max(cx.now);
            self.leave(cx);
            if self.next_step().is_none_or(|due| due > cx.now) {
                return; // the departures of now have released nothing else that is due now
            }
        }
    }

    /// Carries out the events due at `cx.now`, or at the time of the last event if that is later.
    fn step(&mut self, cx: &mut Cx<'_>) {
        self.last = self.last.max(cx.now);
        let cx = &mut Cx { now: self.last, frames: cx.frames };
        self.leave(cx);
        while let Some(Transmit { port, frame, .. }) = self.gateway.poll_transmit(cx, self.open) {
            // Frames that leave by one side have entered by the other.
            self.enter(cx, if port == WAN { LAN } else { WAN }, frame);
        }
    }

    /// Dequeues frames, and reports them to the gateway.
    fn leave(&mut self, cx: &mut Cx<'_>) {
        self.sharing.catch_up(cx);
        while let Some((class, departure)) = self.sharing.next_gone() {
            self.gateway.gateway_mut().data_left(cx, class, departure);
        }
    }

    /// Hands a frame to the queues.
    fn enter(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        let gateway = self.gateway.gateway();
        let came =
            self.sharing.enter(cx, port, frame, |direction, key| gateway.flows.follows_data(direction, key));
        let gateway = self.gateway.gateway_mut();
        if let Some(came) = came {
            gateway.flows.data_came(cx.now, came);
        }
        while let Some((flow, frames)) = self.sharing.next_loss() {
            gateway.flows.note_frames(flow, frames, cx.now);
        }
    }
}

impl Combined {
    /// Returns the account of the conservation law. Frames that go from one part to the other count once.
    pub fn ledger(&self) -> Ledger {
        let (gateway, sharing) = (&self.gateway.flows.stats().ledger, self.sharing.ledger());
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
            LAN_WHOLE if !self.gateway().flows.spills(Direction::Out) => self.enter(cx, LAN, frame),
            WAN_WHOLE if !self.gateway().flows.spills(Direction::In) => self.enter(cx, WAN, frame),
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
