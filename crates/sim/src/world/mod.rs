//! The world: nodes, their wiring and the event core that drives them.
//!
//! Nodes follow the contract of [`weir_core::node`]. The world is the driver that it requires, exact in
//! virtual time:
//!
//! - A node is asked for its deadline after it was handed a frame. It is polled when its deadline has come,
//!   until it has nothing more to send.
//! - A frame that leaves a port is handed at once to the port's destination, with `now` = the frame's `at`.
//!   Wires take no time; delay is a [link](weir_core::link::Link)'s.
//! - Simultaneous events happen in the order of their origin: first deadlines, in the order in which they
//!   were set, then nodes that were handed frames, first come, first served. Every port is always writable.
//!
//! So a run depends only on its nodes, wiring and seeds. A node's deadline is put on the
//! [agenda](crate::agenda) if it is earlier than the entry that is there. A deadline that has moved later is
//! noticed when the old entry comes.
//!
//! A port leads to one port of a node, or to one of many by destination address, and for datagrams by flow
//! ([`Routes`]), so switches are part of the wiring. Frames without a destination are dropped.
//!
//! The frame pool grows as needed. Nodes make frames with [`Frames::make`] and end them with [`Frames::drop`]
//! or [`Frames::absorb`]; [`World::finish`] closes the account.
//!
//! ```
//! use weir_core::{link::{Config, Link}, time::{Duration, Time}};
//! use weir_sim::world::World;
//! let mut world = World::new();
//! let delay = Config { delay: Duration::from_millis(5), ..Config::default() };
//! let (there, back) = (world.add(Link::new(delay)), world.add(Link::new(delay)));
//! world.wire((there, Link::OUT), (back, Link::IN));
//! world.hand_in((there, Link::IN), &[0; 60], 1514);
//! world.run_until(Time::from_millis(9));
//! assert_eq!((world.ledger().held(), world.next_deadline()), (1, Some(Time::from_millis(10))));
//! world.run_until(Time::from_millis(10)); // the way back leads nowhere
//! assert_eq!((world.ledger().held(), world.get::<Link>(back).unwrap().stats().packets), (0, 1));
//! ```

mod drive;
mod routes;
mod slot;
#[cfg(test)]
mod tests;
mod through;

pub use routes::Routes;
pub use slot::Passed;

use crate::agenda::{Agenda, Wheel, EVENTS};
use core::any::Any;
use core::fmt;
use slot::{Kind, Lead, Slot};
use weir_core::frame::Frames;
use weir_core::node::{Cx, Node, Port};
use weir_core::stats::{DropReason, Ledger};
use weir_core::time::Time;

/// Bytes of a chunk of the pool: Ethernet, IP and TCP headers with all options.
const CHUNK_SIZE: usize = 128;
/// Steps at one instant, seconds of work, after which frames are considered to circulate.
pub const STEPS_PER_INSTANT: u64 = 1 << 27;

/// Identifier of a node in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

impl NodeId {
    /// Returns the node's number. Nodes are counted from 0 in the order of [`World::add`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Callback for frames that leave a port, with the time, the bytes present, and the frame's length in bytes.
/// Captured frames have their headers written. To count frames, use [`World::passed`].
pub type Capture = Box<dyn FnMut(Time, &[u8], usize) + Send>;

/// Destination of an out-port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum To {
    #[default]
    Nowhere,
    Node(NodeId, Port),
    /// Destination by address, from this table.
    Routes(u32),
}

/// Node of a world, of any type that can change threads.
pub trait Element: Node + Any + Send {
    /// Returns the node for [`World::get`].
    fn as_any(&self) -> &dyn Any;
    /// Returns the node for [`World::get_mut`].
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<T: Node + Any + Send> Element for T {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// See the [module documentation](self).
pub struct World {
    slots: Vec<Slot>,
    agenda: Wheel,
    /// Sequence number of the next event.
    seq: u64,
    /// Nodes to serve now, and how many of them have been served.
    ready: Vec<u32>,
    served: usize,
    now: Time,
    /// Time up to which the world runs.
    until: Time,
    /// Time of a numbered event that is not on the agenda; [`Time::MAX`] if there is none.
    booked: Time,
    frames: Frames,
    routes: Vec<Routes>,
    /// Captures of each port that has any.
    captures: Vec<Vec<Capture>>,
    steps: u64,
    steps_per_instant: u64,
    /// See [`World::stuck`].
    stuck: Option<Time>,
}

impl Default for World {
    fn default() -> World {
        World::new()
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut s = f.debug_struct("World");
        s.field("now", &self.now).field("nodes", &self.slots.len()).field("steps", &self.steps).finish()
    }
}

impl World {
    /// Returns an empty world at time zero.
    pub fn new() -> World {
        World {
            slots: Vec::new(),
            agenda: Wheel::new(),
            seq: 0,
            ready: Vec::new(),
            served: 0,
            now: Time::ZERO,
            until: Time::ZERO,
            booked: Time::MAX,
            frames: Frames::growing(CHUNK_SIZE),
            routes: Vec::new(),
            captures: Vec::new(),
            steps: 0,
            steps_per_instant: STEPS_PER_INSTANT,
            stuck: None,
        }
    }

    /// Adds an unwired node. Panics at 2^24 nodes.
    pub fn add(&mut self, node: impl Node + Send + 'static) -> NodeId {
        let i = self.slots.len();
        assert!(i < EVENTS as usize, "too many nodes");
        self.slots.push(Slot::new(Kind::new(node), self.now));
        self.rearm(i);
        NodeId(i as u32)
    }

    /// Wires `from` to `to`, in place of the port's earlier destination. Panics if a node has the number of
    /// another world.
    pub fn wire(&mut self, from: (NodeId, Port), to: (NodeId, Port)) {
        assert!(to.0.index() < self.slots.len(), "no such node");
        self.lead(from).to = To::Node(to.0, to.1);
    }

    /// Routes frames that leave `from` by `routes`, in place of the port's earlier destination. A table for
    /// several ports is added once with [`World::routes`]. Panics like [`World::wire`].
    pub fn route(&mut self, from: (NodeId, Port), routes: Routes) {
        let table = self.routes(routes);
        self.route_by(from, table);
    }

    /// Adds a table for [`World::route_by`].
    pub fn routes(&mut self, routes: Routes) -> RoutesId {
        self.routes.push(routes);
        RoutesId(self.routes.len() as u32 - 1)
    }

    /// Routes frames like [`World::route`], by a table that several ports share, such as those of a switch.
    pub fn route_by(&mut self, from: (NodeId, Port), table: RoutesId) {
        assert!((table.0 as usize) < self.routes.len(), "no such table");
        self.lead(from).to = To::Routes(table.0);
    }

    /// Calls `see` for each frame that leaves `from`, before its delivery. A port may have several captures.
    /// Panics if the node has the number of another world.
    pub fn capture(&mut self, from: (NodeId, Port), see: Capture) {
        let next = self.captures.len() as u32 + 1;
        let lead = self.lead(from);
        if lead.captures == 0 {
            lead.captures = next;
            self.captures.push(Vec::new());
        }
        let port = self.lead(from).captures as usize - 1;
        self.captures[port].push(see);
    }

    /// Returns the count of frames that have left a port of a node so far. A port without a destination
    /// counts none.
    pub fn passed(&self, (node, port): (NodeId, Port)) -> Passed {
        let lead = self.slots.get(node.index()).and_then(|slot| slot.leads.get(port));
        lead.filter(|lead| lead.to != To::Nowhere).map_or(Passed::default(), |lead| lead.passed)
    }

    fn lead(&mut self, (node, port): (NodeId, Port)) -> &mut Lead {
        self.slots[node.index()].leads.entry(port)
    }

    /// Returns the node `id`, if it is a `T`.
    pub fn get<T: Node + Send + 'static>(&self, id: NodeId) -> Option<&T> {
        self.slots.get(id.index())?.node.as_any().downcast_ref()
    }

    /// Returns the node `id` for changes, if it is a `T`. It is polled when the world runs next.
    pub fn get_mut<T: Node + Send + 'static>(&mut self, id: NodeId) -> Option<&mut T> {
        self.slots.get(id.index())?;
        self.make_ready(id.index());
        self.slots[id.index()].node.as_any_mut().downcast_mut()
    }

    /// Calls a function on the node `id` now, if it is a `T`. It is polled when the world runs next.
    pub fn with_cx<T: Node + Send + 'static, R>(
        &mut self,
        id: NodeId,
        call: impl FnOnce(&mut T, &mut Cx<'_>) -> R,
    ) -> Option<R> {
        self.slots.get(id.index())?;
        self.make_ready(id.index());
        let slot = &mut self.slots[id.index()];
        slot.clock = self.now.max(slot.clock);
        let node = slot.node.as_any_mut().downcast_mut()?;
        Some(call(node, &mut Cx { now: slot.clock, frames: &mut self.frames }))
    }

    /// Returns the time up to which the world has run.
    pub fn now(&self) -> Time {
        self.now
    }
    /// Returns the number of nodes served and frames handed to nodes so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }
    /// Returns the frame pool.
    pub fn frames(&self) -> &Frames {
        &self.frames
    }
    /// Returns the account of all frames so far.
    pub fn ledger(&self) -> Ledger {
        self.frames.ledger()
    }
    /// Returns a time before which nothing happens; `None` if nothing ever will.
    pub fn next_deadline(&self) -> Option<Time> {
        if self.ready.is_empty() {
            self.agenda.peek()
        } else {
            Some(self.now)
        }
    }

    /// Hands in a new frame of `len` bytes to `to` now; `head` are the bytes present. Panics if these are
    /// more than 128, or if `to` has the number of another world.
    pub fn hand_in(&mut self, to: (NodeId, Port), head: &[u8], len: usize) {
        let frame = self.frames.receive_copy(head, len, self.now);
        let frame = frame.expect("at most as many bytes present as a chunk has");
        self.hand_to(to, self.now, frame);
    }

    /// Ends the run. Drops frames that are still held ([`DropReason::Shutdown`]), and closes the account.
    pub fn finish(self) -> Ledger {
        let mut ledger = self.ledger();
        let in_use = self.frames.chunks() - self.frames.free_chunks();
        debug_assert_eq!(ledger.held(), in_use as u64, "a frame came or went without account");
        (0..ledger.held()).for_each(|_| ledger.drops.count(DropReason::Shutdown));
        ledger
    }
}

/// Identifier of a table of routes in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoutesId(u32);
