//! Queued packets with their positions in the order of arrival, in the whole queue and in their flow.

use crate::base::linked::{self, Linked, Links};
use crate::frame::{Head, Waiting};
use crate::systems::ack_filter::redundant::{Ack, Stands};
use crate::time::Time;

/// A queued packet.
#[derive(Debug)]
pub(super) struct Node {
    /// The packet. `None` in a free place, and in one that is about to be taken.
    pub(super) waiting: Option<Waiting>,
    pub(super) flow: u32,
    /// Links in the order of all packets.
    pub(super) order: Links,
    /// Links in the order of its flow.
    pub(super) own: Links,
    /// Time since which its place is taken, by an ACK that it stands for if there was one.
    pub(super) since: Time,
    /// Contents, if it is a pure ACK.
    pub(super) ack: Option<Ack>,
    /// ACKs and marks that it stands for.
    pub(super) stands_for: Stands,
}

/// Places of packets. They grow by doubling up to the largest backlog.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    pub(super) all: Vec<Node>,
    free: Vec<u32>,
}

impl Nodes {
    /// Returns a place for a packet of a flow.
    pub(super) fn add(&mut self, flow: u32, waiting: Waiting, ack: Option<Ack>) -> u32 {
        let (order, own, since) = (Links::NONE, Links::NONE, waiting.since);
        let stands_for = Stands::of(ack.as_ref());
        let node = Node { waiting: Some(waiting), flow, order, own, since, ack, stands_for };
        match self.free.pop() {
            Some(n) => {
                self.all[n as usize] = node;
                n
            }
            None => {
                self.all.push(node);
                self.all.len() as u32 - 1
            }
        }
    }

    /// Returns the links in the order of all packets.
    pub(super) fn order(&mut self) -> impl Linked + '_ {
        linked::by(&mut self.all, |node| &mut node.order)
    }

    /// Returns the links in the order of each flow.
    pub(super) fn own(&mut self) -> impl Linked + '_ {
        linked::by(&mut self.all, |node| &mut node.own)
    }

    /// Frees a place.
    pub(super) fn free(&mut self, n: u32) {
        self.free.push(n);
    }

    /// Returns the data of a queued packet.
    pub(super) fn head(&self, n: u32) -> Option<Head> {
        let Waiting { charge, since, .. } = self.all[n as usize].waiting.as_ref()?;
        Some(Head { charge: *charge, since: *since })
    }
}
