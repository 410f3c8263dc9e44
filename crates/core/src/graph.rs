//! Nodes wired to each other, themselves a node. The wiring is data: an out-port of a node leads to a
//! port of another, or to one of the graph's own ports.
//!
//! Inside, the graph is the driver that [`crate::node`] asks for: it steps deadlines in (time, node, sequence)
//! order, where a node's number is the order of [`Graph::add`] and its frames keep theirs. Each node is
//! called with `now` = its due time, and the frames it sends are handed on with `now = at`, so the time at which
//! the graph is called changes nothing but how late the frames come out. A node that had nothing to send is polled
//! again only when its deadline comes, a frame was handed to it, or one of the graph's ports that it
//! feeds opened or closed.
//!
//! Frames for a port of the graph that is closed stay in their nodes. So do those that become due while
//! [`Node::handle_frame`] catches up; the polls after it fetch them.
//!
//! ```
//! use weir_core::{graph::Graph, link::{Config, Link}, node::Port};
//! let mut graph = Graph::new();
//! let near = graph.add(Link::new(Config::default()));
//! let far = graph.add(Link::new(Config::default()));
//! graph.input(Port(0), (near, Link::IN));
//! graph.wire((near, Link::OUT), (far, Link::IN));
//! graph.output((far, Link::OUT), Port(1));
//! assert_eq!(graph.get::<Link>(near).unwrap().stats().packets, 0);
//! ```

use crate::frame::Frame;
use crate::node::{Cx, Node, Port, PortSet, Transmit};
use crate::stats::DropReason;
use crate::time::Time;
use core::any::Any;

/// Ports that a node or a graph can have: a [`PortSet`]'s.
const PORTS: usize = 64;
/// Polls of one call. Only frames that go around in circles without delay reach it; the call then returns
/// and leaves the rest to the next one.
const POLLS_PER_CALL: u32 = 1 << 20;

/// A node of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(usize);

/// What a graph is made of: any node that can change threads.
pub trait Element: Node + Any + Send {
    /// For [`Graph::get`].
    fn as_any(&self) -> &dyn Any;
    /// For [`Graph::get_mut`].
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

/// Where an out-port leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    Node(usize, Port),
    Outside(Port),
}

struct Slot {
    node: Box<dyn Element>,
    /// By out-port.
    wires: [Option<To>; PORTS],
    /// `now` of the last call.
    clock: Time,
    /// Writable ports at the last poll that returned nothing.
    polled: Option<PortSet>,
    /// It then had a frame that waits for a port.
    blocked: bool,
}

impl Slot {
    /// The ports that can take a frame when those of the graph in `outside` can.
    fn writable(&self, outside: PortSet) -> PortSet {
        if outside == PortSet::ALL {
            return outside;
        }
        let mut set = PortSet::ALL;
        for (port, wire) in (0..).map(Port).zip(&self.wires) {
            if matches!(wire, Some(To::Outside(p)) if !outside.contains(*p)) {
                set = set.without(port);
            }
        }
        set
    }
}

/// See the [module documentation](self).
pub struct Graph {
    slots: Vec<Slot>,
    /// When to poll each slot.
    agenda: Agenda,
    /// By port of the graph: the node and its port.
    inputs: [Option<(usize, Port)>; PORTS],
    /// Slots that feed a port of the graph.
    edge: Vec<usize>,
    /// By port of the graph: `at` of its last frame.
    last_at: [Time; PORTS],
}

impl Default for Graph {
    fn default() -> Graph {
        Graph::new()
    }
}

impl Graph {
    /// A graph of nothing.
    pub fn new() -> Graph {
        Graph {
            slots: Vec::new(),
            agenda: Agenda::new(0),
            inputs: [None; PORTS],
            edge: Vec::new(),
            last_at: [Time::ZERO; PORTS],
        }
    }

    /// Adds a node, wired to nothing. Of nodes due at the same time, the one added first goes first.
    pub fn add(&mut self, node: impl Node + Send + 'static) -> NodeId {
        let wires = [None; PORTS];
        let node = Box::new(node);
        self.slots.push(Slot { node, wires, clock: Time::ZERO, polled: None, blocked: false });
        let i = self.slots.len() - 1;
        self.agenda.grow(i + 1);
        self.agenda.set(i, self.slots[i].node.next_deadline());
        NodeId(i)
    }

    /// Frames that leave `from` enter `to`. Replaces an earlier wire of the same port. Panics if a node is of
    /// another graph's number, or the port's above 63.
    pub fn wire(&mut self, from: (NodeId, Port), to: (NodeId, Port)) {
        assert!(to.0 .0 < self.slots.len(), "no such node");
        self.lead(from, To::Node(to.0 .0, to.1));
    }

    /// Frames that leave `from` leave the graph by its port `outside`. Panics as [`Graph::wire`].
    pub fn output(&mut self, from: (NodeId, Port), outside: Port) {
        assert!(usize::from(outside.0) < PORTS, "no such port");
        self.lead(from, To::Outside(outside));
    }

    /// Frames that come in on the graph's port `outside` enter `to`. Panics as [`Graph::wire`].
    pub fn input(&mut self, outside: Port, to: (NodeId, Port)) {
        assert!(to.0 .0 < self.slots.len(), "no such node");
        self.inputs[usize::from(outside.0)] = Some((to.0 .0, to.1));
    }

    fn lead(&mut self, (NodeId(from), port): (NodeId, Port), to: To) {
        self.slots[from].wires[usize::from(port.0)] = Some(to);
        let feeds = |s: &Slot| s.wires.iter().flatten().any(|w| matches!(w, To::Outside(_)));
        self.edge = (0..self.slots.len()).filter(|&i| feeds(&self.slots[i])).collect();
    }

    /// The node `id`, if it is a `T`.
    pub fn get<T: Node + Send + 'static>(&self, id: NodeId) -> Option<&T> {
        (*self.slots.get(id.0)?.node).as_any().downcast_ref()
    }
    /// The node `id`, if it is a `T`, to be reconfigured. Its deadline is looked at again by the next poll.
    pub fn get_mut<T: Node + Send + 'static>(&mut self, id: NodeId) -> Option<&mut T> {
        let slot = self.slots.get_mut(id.0)?;
        self.agenda.soonest(id.0, slot.clock);
        (*slot.node).as_any_mut().downcast_mut()
    }

    /// Puts those on the agenda whose answer may have changed because a port of the graph opened or
    /// closed, or because time passed while they waited for one: they may have hidden something else.
    fn look_at_edge(&mut self, now: Time, outside: PortSet) {
        for &i in &self.edge {
            let slot = &self.slots[i];
            let due = slot.node.next_deadline().map_or(now, |d| d.min(now));
            if slot.polled.is_some_and(|set| set != slot.writable(outside)) {
                self.agenda.soonest(i, due);
            } else if slot.blocked && slot.clock < now {
                self.agenda.soonest(i, now);
            }
        }
    }

    /// Steps what is due by `cx.now`, until a frame leaves the graph.
    fn step(&mut self, cx: &mut Cx<'_>, outside: PortSet) -> Option<Transmit> {
        for _ in 0..POLLS_PER_CALL {
            let (due, i) = self.agenda.first().filter(|&(due, _)| due <= cx.now)?;
            if let Some(sent) = self.poll(i, due, cx, outside) {
                if let Some(left) = self.hand_on(i, sent, cx) {
                    return Some(left);
                }
            }
        }
        None
    }

    fn poll(&mut self, i: usize, due: Time, cx: &mut Cx<'_>, outside: PortSet) -> Option<Transmit> {
        let slot = &mut self.slots[i];
        let writable = slot.writable(outside);
        let now = due.max(slot.clock);
        slot.clock = now;
        let sent = slot.node.poll_transmit(&mut Cx { now, frames: &mut *cx.frames }, writable);
        let deadline = slot.node.next_deadline();
        if sent.is_some() {
            // There may be more; the deadline tells its place among the others that are due.
            slot.polled = None;
            self.agenda.set(i, Some(deadline.map_or(now, |d| d.min(now))));
        } else {
            slot.polled = Some(writable);
            slot.blocked = deadline.is_some_and(|d| d <= now);
            self.agenda.set(i, deadline.filter(|&d| d > now));
        }
        sent
    }

    /// Takes a frame to where its port leads; returns it if that is outside.
    fn hand_on(&mut self, i: usize, sent: Transmit, cx: &mut Cx<'_>) -> Option<Transmit> {
        let Transmit { port, at, frame } = sent;
        match self.slots[i].wires.get(usize::from(port.0)).copied().flatten() {
            Some(To::Node(to, port)) => self.hand_to(to, port, at, frame, cx),
            Some(To::Outside(port)) => {
                // Frames of two nodes for one port that was closed may come out of order.
                let last = &mut self.last_at[usize::from(port.0)];
                *last = at.max(*last);
                return Some(Transmit { port, at: *last, frame });
            }
            None => cx.drop(frame, DropReason::NotWired),
        }
        None
    }

    fn hand_to(&mut self, to: usize, port: Port, at: Time, frame: Frame, cx: &mut Cx<'_>) {
        let slot = &mut self.slots[to];
        // A frame that waited for a port's opening comes with an old stamp: time goes not back for it.
        let now = at.max(slot.clock);
        slot.clock = now;
        slot.polled = None;
        slot.node.handle_frame(&mut Cx { now, frames: &mut *cx.frames }, port, frame);
        self.agenda.soonest(to, now);
    }
}

impl Node for Graph {
    fn handle_frame(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        if let Some(sent) = self.step(cx, PortSet::NONE) {
            debug_assert!(false, "a node sent on a closed port");
            cx.drop(sent.frame, DropReason::PortDown);
        }
        match self.inputs.get(usize::from(port.0)).copied().flatten() {
            Some((to, port)) => self.hand_to(to, port, cx.now, frame, cx),
            None => cx.drop(frame, DropReason::NotWired),
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
        self.look_at_edge(cx.now, writable);
        self.step(cx, writable)
    }

    /// The earliest of all nodes; one that waits for a port to open does not hide the others.
    fn next_deadline(&self) -> Option<Time> {
        let waiting = || self.edge.iter().map(|&i| &self.slots[i]).filter(|s| s.blocked);
        let first = self.agenda.first().map(|(due, _)| due);
        first.or_else(|| waiting().filter_map(|s| s.node.next_deadline()).min())
    }
}

/// When to poll each node: a tournament of times, whose winner is the earliest and among equals the
/// lowest number. Changing one takes log2(nodes) comparisons and no allocation.
struct Agenda {
    /// A binary tree from index 1; the leaves are its second half. `Time::MAX` is never.
    tree: Vec<Time>,
}

impl Agenda {
    fn new(nodes: usize) -> Agenda {
        Agenda { tree: vec![Time::MAX; 2 * nodes.next_power_of_two()] }
    }

    /// Makes room for `nodes`, with what is there kept.
    fn grow(&mut self, nodes: usize) {
        let had = self.tree.len() / 2;
        if nodes > had {
            let mut grown = Agenda::new(nodes);
            for (i, &due) in self.tree[had..].iter().enumerate() {
                grown.set(i, Some(due));
            }
            *self = grown;
        }
    }

    fn set(&mut self, node: usize, due: Option<Time>) {
        let mut i = self.tree.len() / 2 + node;
        self.tree[i] = due.unwrap_or(Time::MAX);
        while i > 1 {
            i /= 2;
            self.tree[i] = self.tree[2 * i].min(self.tree[2 * i + 1]);
        }
    }

    /// Not later than `due`.
    fn soonest(&mut self, node: usize, due: Time) {
        let i = self.tree.len() / 2 + node;
        if due < self.tree[i] {
            self.set(node, Some(due));
        }
    }

    fn first(&self) -> Option<(Time, usize)> {
        let due = self.tree[1];
        if due == Time::MAX {
            return None;
        }
        let mut i = 1;
        while i < self.tree.len() / 2 {
            i *= 2;
            if self.tree[i] != due {
                i += 1;
            }
        }
        Some((due, i - self.tree.len() / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{Config, Link, Loss, Path, QueueLimit};
    use crate::rate::Rate;
    use crate::rig::{Given, Rig, Sent, Wake};
    use crate::time::Duration;
    use proptest::prelude::*;

    const A: Port = Port(0);
    const B: Port = Port(1);

    fn us(n: u64) -> Time {
        Time::from_micros(n)
    }

    fn packet(tag: u8) -> Given {
        Given::bytes(&[tag; 60]).long(1514)
    }

    fn delay(us: u64) -> Config {
        Config { delay: Duration::from_micros(us), ..Config::default() }
    }

    fn mbit(n: u64, us: u64) -> Config {
        Config { rate: Some(Rate::mbit(n)), ..delay(us) }
    }

    fn stamps(sent: &[Sent]) -> Vec<(Time, u8)> {
        sent.iter().map(|s| (s.at, s.bytes[0])).collect()
    }

    /// A chain of links from `A` to `B`.
    fn chain(links: &[Config]) -> (Graph, Vec<NodeId>) {
        let mut g = Graph::new();
        let ids: Vec<_> = links.iter().map(|&c| g.add(Link::new(c))).collect();
        g.input(A, (ids[0], Link::IN));
        ids.windows(2).for_each(|w| g.wire((w[0], Link::OUT), (w[1], Link::IN)));
        g.output((ids[ids.len() - 1], Link::OUT), B);
        (g, ids)
    }

    #[test]
    fn two_links_add_their_delays_however_late_the_graph_is_called() {
        // 1,500 bytes take 1.2 ms and then 6 ms; 5 ms and 7 ms of delay.
        let late = Duration::from_millis(100);
        for wake in [Wake::Exact, Wake::Late(late), Wake::Lazy(late)] {
            let mut r = Rig::new(chain(&[mbit(10, 5000), mbit(2, 7000)]).0).wake(wake);
            r.inject(A, packet(1)).inject(A, packet(2)).inject(A, packet(3));
            let sent = r.run_until(Time::from_secs(1));
            assert_eq!(stamps(&sent), [(us(19_200), 1), (us(25_200), 2), (us(31_200), 3)]);
            assert!(sent.iter().all(|s| s.port == B));
            r.finish();
        }
    }

    #[test]
    fn what_is_due_together_goes_by_node_and_then_as_it_came() {
        let mut g = Graph::new();
        let first = g.add(Link::new(delay(10)));
        let second = g.add(Link::new(delay(10)));
        let both = g.add(Link::new(mbit(10, 0)));
        g.input(A, (second, Link::IN));
        g.input(B, (first, Link::IN));
        g.wire((first, Link::OUT), (both, Link::IN));
        g.wire((second, Link::OUT), (both, Link::IN));
        g.output((both, Link::OUT), A);
        let mut r = Rig::new(g);
        r.inject(A, packet(1)).inject(B, packet(2)).inject(B, packet(3)).inject(A, packet(4));
        let sent = r.run_until(Time::from_secs(1));
        assert_eq!(stamps(&sent), [(us(1210), 2), (us(2410), 3), (us(3610), 1), (us(4810), 4)]);
        r.finish();
    }

    #[test]
    fn ports_that_lead_nowhere_drop() {
        let mut g = Graph::new();
        let link = g.add(Link::new(delay(10)));
        g.input(A, (link, Link::IN));
        let mut r = Rig::new(g);
        r.inject(A, packet(1)).inject(Port(63), packet(2)).inject(Port(200), packet(3));
        assert_eq!(r.run_until(us(10)), []);
        assert_eq!(r.frames().drops().get(DropReason::NotWired), 3);
        r.finish();
    }

    #[test]
    fn catching_up_for_a_late_frame_loses_no_output() {
        let (mut g, _) = chain(&[delay(1), delay(1)]);
        let mut frames = crate::frame::Frames::new(4, 128, 0);
        for (at, tag) in [(0, 1), (5, 2), (9, 3)] {
            let f = frames.receive_copy(&[tag; 60], 60, us(at)).unwrap();
            g.handle_frame(&mut Cx { now: us(at), frames: &mut frames }, A, f);
        }
        let mut got = Vec::new();
        while let Some(t) = g.poll_transmit(&mut Cx { now: us(20), frames: &mut frames }, PortSet::ALL) {
            got.push((t.at, frames.bytes(&t.frame)[0]));
            frames.transmitted(t.frame);
        }
        assert_eq!(got, [(us(2), 1), (us(7), 2), (us(11), 3)]);
        assert_eq!(g.next_deadline(), None);
    }

    #[test]
    fn a_closed_port_holds_up_only_its_own_frames() {
        let mut g = Graph::new();
        let path = g.add(Path::new(delay(10), delay(20)));
        let back = g.add(Link::new(delay(30)));
        g.input(A, (path, Path::LAN));
        g.input(B, (path, Path::WAN));
        g.output((path, Path::WAN), B);
        g.wire((path, Path::LAN), (back, Link::IN));
        g.output((back, Link::OUT), A);
        let mut r = Rig::new(g);
        r.close(B, us(0), us(100)).inject(A, packet(1)).inject(B, packet(2));
        assert_eq!(stamps(&r.run_until(us(99))), [(us(50), 2)]);
        assert_eq!(stamps(&r.run_until(us(100))), [(us(10), 1)]);
        r.finish();
    }

    #[test]
    fn two_nodes_at_one_port_keep_its_stamps_in_order() {
        let mut g = Graph::new();
        for (port, us) in [(A, 10), (B, 20)] {
            let link = g.add(Link::new(delay(us)));
            g.input(port, (link, Link::IN));
            g.output((link, Link::OUT), A);
        }
        let mut r = Rig::new(g);
        r.close(A, us(0), us(100)).inject(B, packet(1)).inject(A, packet(2));
        r.at(us(50)).inject(A, packet(3)).inject(B, packet(4));
        let sent = r.run_until(us(100));
        assert_eq!(stamps(&sent), [(us(10), 2), (us(20), 1), (us(60), 3), (us(70), 4)]);
        r.finish();
    }

    #[test]
    fn a_node_that_does_not_name_its_oldest_frame_keeps_the_ports_order() {
        // The path names its way back's deadline (1 ms) while its way out (10 us) waits for the port.
        let mut g = Graph::new();
        let path = g.add(Path::new(delay(10), delay(1000)));
        let link = g.add(Link::new(delay(60)));
        g.input(A, (path, Path::LAN));
        g.input(B, (path, Path::WAN));
        g.input(Port(2), (link, Link::IN));
        g.output((path, Path::WAN), A);
        g.output((path, Path::LAN), B);
        g.output((link, Link::OUT), A);
        let mut r = Rig::new(g);
        r.close(A, us(0), us(100)).inject(A, packet(1)).inject(B, packet(2)).inject(Port(2), packet(3));
        assert_eq!(stamps(&r.run_until(us(2000))), [(us(60), 3), (us(60), 1), (us(1000), 2)]);
        r.finish();
    }

    /// Sends each frame by the port that its first byte names, as many microseconds later as the second says, and
    /// names only the earliest of all deadlines, though its port be closed.
    struct Hider(Vec<(Time, Port, Frame)>);

    impl Node for Hider {
        fn handle_frame(&mut self, cx: &mut Cx<'_>, _: Port, frame: Frame) {
            let b = cx.frames.bytes(&frame);
            self.0.push((cx.now + Duration::from_micros(b[1].into()), Port(b[0]), frame));
            self.0.sort_by_key(|f| f.0);
        }
        fn poll_transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
            let i = self.0.iter().position(|f| f.0 <= cx.now && writable.contains(f.1))?;
            let (at, port, frame) = self.0.remove(i);
            Some(Transmit { port, at, frame })
        }
        fn next_deadline(&self) -> Option<Time> {
            self.0.first().map(|f| f.0)
        }
    }

    #[test]
    fn a_deadline_hidden_behind_a_closed_port_is_found_as_time_passes() {
        let mut g = Graph::new();
        let hider = g.add(Hider(Vec::new()));
        g.input(A, (hider, A));
        g.output((hider, A), A);
        g.output((hider, B), B);
        let other = g.add(Link::new(delay(5)));
        g.input(B, (other, Link::IN));
        g.output((other, Link::OUT), Port(2));
        let mut r = Rig::new(g);
        r.close(A, us(0), us(100)).inject(A, &[0, 10]).inject(A, &[1, 20]);
        // Any call after 20 us finds it; this one is for another node.
        r.at(us(50)).inject(B, &[9, 9]);
        assert_eq!(stamps(&r.run_until(us(60))), [(us(20), 1), (us(55), 9)]);
        assert_eq!(stamps(&r.run_until(us(150))), [(us(10), 0)]);
        r.finish();
    }

    #[test]
    fn a_circle_without_delay_does_not_hang() {
        let (mut g, ids) = chain(&[delay(0), delay(0)]);
        g.wire((ids[1], Link::OUT), (ids[0], Link::IN));
        let mut frames = crate::frame::Frames::new(1, 128, 0);
        let f = frames.receive_copy(&[1; 60], 60, us(0)).unwrap();
        g.handle_frame(&mut Cx { now: us(0), frames: &mut frames }, A, f);
        assert_eq!(g.poll_transmit(&mut Cx { now: us(0), frames: &mut frames }, PortSet::ALL), None);
        assert_eq!(frames.free_chunks(), 0);
    }

    #[test]
    fn nodes_are_reached_by_type() {
        let (mut g, ids) = chain(&[delay(1), delay(2)]);
        assert_eq!(g.get::<Link>(ids[1]).unwrap().config(), &delay(2));
        assert!(g.get::<Path>(ids[0]).is_none() && g.get_mut::<Link>(ids[0]).is_some());
        assert!(g.get::<Link>(NodeId(2)).is_none());
    }

    #[test]
    fn the_agenda_names_the_earliest_and_of_equals_the_first() {
        let mut a = Agenda::new(0);
        for (i, t) in [7, 3, 9, 3, 8].into_iter().enumerate() {
            a.grow(i + 1);
            a.set(i, Some(us(t)));
        }
        let mut order = Vec::new();
        while let Some((_, i)) = a.first() {
            order.push(i);
            a.set(i, None);
        }
        assert_eq!(order, [1, 3, 0, 4, 2]);
    }

    proptest! {
        /// A graph of links is the links one after the other, at any lateness and whatever its port does.
        #[test]
        fn a_chain_is_its_links_in_turn(
            gaps in prop::collection::vec(0u64..3_000_000, 1..60),
            links in prop::collection::vec((1u64..40, 0u64..9000, 0u32..4, 2u64..9), 1..5),
            shut in (0u64..40_000, 0u64..40_000), late in 1u64..9_000_000,
        ) {
            let config = |&(rate, us, limit, n): &(u64, u64, u32, u64)| Config {
                queue: QueueLimit::Packets(limit), loss: Loss::every(n).unwrap(), ..mbit(rate, us)
            };
            let links: Vec<Config> = links.iter().map(config).collect();
            let mut now = 0;
            let mut timeline: Vec<(Time, u8)> = Vec::new();
            for (tag, gap) in (0..).zip(&gaps) {
                now += gap;
                timeline.push((Time::from_nanos(now), tag));
            }
            let arrivals = timeline.clone();
            for &c in &links {
                let mut r = Rig::new(Link::new(c));
                timeline.iter().for_each(|&(at, tag)| { r.at(at).inject(Link::IN, packet(tag)); });
                timeline = stamps(&r.run_until(Time::from_secs(9)));
            }
            let late = Duration::from_nanos(late);
            for wake in [Wake::Exact, Wake::Late(late), Wake::Lazy(late)] {
                let mut r = Rig::new(chain(&links).0).wake(wake);
                r.close(B, us(shut.0), us(shut.0 + shut.1));
                arrivals.iter().for_each(|&(at, tag)| { r.at(at).inject(A, packet(tag)); });
                prop_assert_eq!(&stamps(&r.run_until(Time::from_secs(9))), &timeline, "{:?}", wake);
                r.finish();
            }
        }
    }
}
