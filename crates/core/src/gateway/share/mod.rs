//! Classes whose flows share one rate: a byte clock per class, and a deficit round robin over the flows that
//! hold something.
//!
//! What its senders may send because of what leaves here is charged to the class's [clock](clock::Clock) as
//! it leaves: first windows, releases, what a loss makes go early. What arrives without having been
//! permitted, since its sender's window grew, is charged as it arrives. While the clock is not ahead, the
//! flow whose turn it is gets its release. A flow that comes to hold something is *fresh* and goes before
//! those that have had their turn (FQ-CoDel, RFC 8290 §4.2), and a flow is *listed* until its turn comes and
//! nothing is held. No rate is computed for a flow: those that ask for less than the others get it, and the
//! others share the rest.
//!
//! Windows bound what is held, and with it what a sender that is let go may send at once: a flow's is its
//! share of the rate, for its round trip and what may wait here. The share is the rate over the average
//! number of flows listed. A window that became too large shrinks as its flow is released without its right
//! edge moving.
//!
//! Classes may be nested: then the clocks are a [tree], and which class has a turn is found before the flow.
//!
//! - [`clock`], [`average`]: the parts;
//! - `turns`: who is released next, and how much;
//! - `node`, `tree`: classes that borrow from each other;
//! - `rounds`: turns of an ACK, and the delay of the WAN;
//! - `departures`: turns of an ACK as data leaves the class's queue;
//! - `one_queue`: turns of an ACK as data leaves the one queue of a class;
//! - `account`: what is charged, and given back;
//! - `limits`: windows;
//! - `least`: flows that have a least rate, and those for which there is too little;
//! - `grants`: what the hooks let pass where the rate does not bind;
//! - `idle`: the same where nothing waits in the class's queue;
//! - `others`: what passes beside the flows, which ACKs cannot slow;
//! - `repeats`: what its flows send again;
//! - `floor`: what TCP keeps beside that.

mod account;
mod average;
mod clock;
mod departures;
mod floor;
mod grants;
mod idle;
mod least;
mod limits;
mod node;
mod one_queue;
mod others;
mod repeats;
mod rounds;
mod tree;
mod turns;

use crate::ack::ShareRelease;
use crate::base::ring::Ring;
use crate::gateway::Nested;
use crate::rate::Rate;
use crate::time::{Duration, Time};
use average::{Average, ONE};
use clock::Clock;
use departures::Departures;
use floor::Debt;
use node::Node;
use others::Others;
use repeats::Repeats;

/// Time between two times at which a class whose rate does not bind releases anything, at most.
const GAP: Duration = Duration::from_micros(200);

/// How fast the average number of flows follows when they become fewer, and where they leave some of the
/// rate.
const FEWER: Duration = Duration::from_millis(200);
const FEWER_IDLE: Duration = Duration::from_millis(50);

/// What is kept of a class whose flows share a rate.
pub(super) struct Share {
    /// Its rate is what the flows have together now.
    law: ShareRelease,
    /// The most that they may have.
    most: Rate,
    /// Bytes of a turn.
    quantum: u32,
    /// Of the most that it may send.
    clock: Clock,
    /// Flows that came to hold something and have not had a turn.
    fresh: Ring,
    /// Flows that have had one.
    old: Ring,
    /// How many flows are in the two lists.
    listed: u32,
    /// How many of them have the least rate of the class.
    listed_sure: u32,
    /// Flows that have it, listed or not.
    sure: u32,
    /// The average of that.
    active: Average,
    /// What passes beside its flows.
    others: Others,
    /// What its flows send again.
    repeats: Repeats,
    /// Unresponsive bytes that its clock is not charged yet.
    debt: Debt,
    /// When the next releases may be.
    next: Time,
    /// When something had to wait for its clock last.
    bound: Time,
    /// Bytes that the hooks may let pass, and that are not charged yet.
    granted: u64,
    /// What is known of its queue.
    departures: Departures,
    /// Its place in a tree, if it has one.
    node: Option<Box<Node>>,
}

impl Share {
    pub(super) fn new(law: &ShareRelease) -> Share {
        Share {
            law: *law,
            most: law.rate,
            quantum: law.quantum(),
            clock: Clock::new(law.rate, law.credit()),
            fresh: Ring::EMPTY,
            old: Ring::EMPTY,
            listed: 0,
            listed_sure: 0,
            sure: 0,
            active: Average::default(),
            others: Others::default(),
            repeats: Repeats::default(),
            debt: Debt::default(),
            next: Time::ZERO,
            bound: Time::ZERO,
            granted: 0,
            departures: Departures::default(),
            node: None,
        }
    }

    /// The settings are others from now on.
    pub(super) fn set_law(&mut self, law: &ShareRelease) {
        self.clock.set_rate(law.rate, law.credit());
        (self.law, self.most, self.quantum) = (*law, law.rate, law.quantum());
    }

    /// It is nested in the class at this place, or at the top.
    pub(super) fn nest(&mut self, nested: &Nested, parent: Option<u32>) {
        match &mut self.node {
            Some(node) => node.set(nested, parent),
            none => *none = Some(Box::new(Node::new(nested, parent))),
        }
        if let Some(bound) = nested.bound() {
            let credit = if parent.is_some() { node::credit(bound) } else { self.law.credit() };
            self.clock.set_rate(bound, credit);
        }
    }

    /// It is in no tree.
    pub(super) fn stand_alone(&mut self) {
        if self.node.take().is_some() {
            self.law.rate = self.most;
            self.clock.set_rate(self.most, self.law.credit());
        }
    }

    /// A class with flows is below this one, which is at the top.
    pub(super) fn has_leaf(&mut self, place: u32) {
        if let Some(node) = self.node_mut() {
            node.leaves.push(place);
        }
    }

    /// Whose turn it is.
    fn head(&self) -> Option<u32> {
        self.fresh.head().or(self.old.head())
    }

    /// Time between two times at which anything is released.
    fn gap(&self) -> Duration {
        GAP.min(self.law.rate.time_for(u64::from(self.quantum)))
    }

    /// What each flow has of the rate.
    fn each(&self) -> Rate {
        let bps =
            u128::from(self.left_to_flows()) * u128::from(ONE) / u128::from(self.active.value().max(ONE));
        Rate::from_bps(bps as u64).unwrap_or(self.law.rate)
    }

    /// The average follows the number of flows up to `now`.
    fn note_active(&mut self, now: Time) {
        let down = if self.clock.is_idle(now) { FEWER_IDLE } else { FEWER };
        self.active.note(u64::from(self.listed), now, down);
    }
}
