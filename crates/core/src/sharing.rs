//! Link sharing as a node between LAN and WAN: frames wait in the queues of their classes and leave at the rates of a
//! [tree](crate::class), one tree for each direction that has queued classes.
//!
//! An IP packet belongs to the first class of its direction that takes its flow ([`Key::of_packet`]): UDP, QUIC and ICMP as well as TCP. Of
//! fragments only the addresses count. Packets that no class takes, frames that are not IP, and all frames of a direction without queued classes pass at once,
//! through no queue and at no rate.
//!
//! A frame leaves when its transmission may begin, so the first frame of an idle link is not late. A giant segment is charged as the packets
//! that it stands for and leaves as a whole. Where its time on the link matters, the driver splits it beforehand.
//!
//! Classes that are [paced](crate::pace) are in no tree. They wait for their times at the port of their direction, and whatever else leaves there takes
//! what they leave of its line.

use crate::class::{LeafStats, Spec, Tree, Unsound};
use crate::flow::Key;
use crate::frame::{Charge, Frame, Frames, List, Waiting};
use crate::gateway::{
    Alone, ClassConfig, Compiled, Config, Congestion, Departure, Direction, Watch, LAN, WAN,
};
use crate::node::{Cx, Node, Port, PortSet, Transmit};
use crate::pace::{self, Pacer};
use crate::queue::Queue;
use crate::stats::{DropReason, Drops, Ledger};
use crate::time::Time;
use crate::wire;
use admission::Admission;
use cache::Cache;
use std::collections::VecDeque;
use windows::Windows;

pub(crate) use follow::Came;

pub use admission::AdmissionStats;

mod admission;
mod cache;
mod follow;
mod pacing;
mod replace;
#[cfg(test)]
mod tests;
mod windows;

/// A direction of a gateway, with its tree if it has queued classes.
#[derive(Debug)]
struct Way {
    tree: Option<Tree>,
    /// Of its paced classes, if it has any.
    pacer: Option<Box<Pacer>>,
    /// If a paced class follows the windows of its flows.
    windows: Option<Box<Windows>>,
    /// Classes of the tree: the places from here on are those of the pacer.
    first_paced: usize,
    /// Frames made to fill holes; a run of them is one.
    fillers: u64,
    /// Where its frames leave.
    out: Port,
    /// The port takes frames, as the last poll said.
    open: bool,
    /// Frames that have left the tree or passed it, with the times at which they did.
    ready: List,
    /// Of the first of them.
    ready_since: Option<Time>,
    cache: Cache,
    /// If a class guarantees its flows a rate.
    admission: Option<Box<Admission>>,
    /// By place in the tree; none at all if no class of the direction is to be watched.
    watches: Vec<Option<Watch>>,
    congestion: Congestion,
    /// By place in the tree: the class's index in the configuration, if its ACKs follow its data; none at all if no class's do, or
    /// nobody [listens](Sharing::listen).
    followed: Vec<Option<usize>>,
    /// Packets that have left such classes, of which nobody has heard.
    gone: VecDeque<(usize, Departure)>,
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Sharing {
    config: Compiled,
    ways: [Way; 2],
    /// By class of the configuration, its index in the tree of its direction; behind these come the paced classes.
    places: Vec<Option<usize>>,
    /// Bytes that a packet costs on top of its IP packet.
    overhead: u16,
    ledger: Ledger,
    /// See [`Sharing::next_loss`].
    lost: VecDeque<(u32, u32)>,
}

/// Why a configuration is refused, and the class of it that is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused<W = Why> {
    /// Its index in [`Config::classes`].
    pub class: usize,
    /// What is wrong with it.
    pub why: W,
}

/// What is wrong with a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its place in the tree.
    Tree(Unsound),
    /// How it is paced.
    Pace(pace::Unsound),
}

impl core::fmt::Display for Why {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Why::Tree(why) => why.fmt(f),
            Why::Pace(why) => why.fmt(f),
        }
    }
}

/// Is the class in the tree of a direction?
fn in_tree(class: &ClassConfig, direction: Direction) -> bool {
    class.direction == direction && class.share.is_some_and(|share| share.pace.is_none())
}

/// The tree of a direction: the classes, with parents among themselves, and the index of each in the configuration.
fn specs(config: &Config, direction: Direction) -> (Vec<Spec>, Vec<usize>) {
    let shares = |&i: &usize| in_tree(&config.classes[i], direction);
    let indices: Vec<usize> = (0..config.classes.len()).filter(shares).collect();
    let place = |i: usize| indices.binary_search(&i).unwrap_or(usize::MAX);
    let spec = |&i: &usize| config.classes[i].share.map(|s| Spec { parent: s.parent.map(place), ..s });
    (indices.iter().filter_map(spec).collect(), indices)
}

/// Are the queued classes of each direction a tree, with no more guarantees than there is, and can its paced ones be paced?
pub fn check(config: &Config) -> Result<(), Refused> {
    for direction in [Direction::Out, Direction::In] {
        let (specs, indices) = specs(config, direction);
        let refused = |why: Unsound| Refused { class: indices[why.class()], why: Why::Tree(why) };
        crate::class::check(&specs).map_err(refused)?;
        let (paced, indices) = pacing::paced(config, direction);
        let classes: Vec<pace::Class> = paced.iter().map(|(class, _)| *class).collect();
        let refused = |why: pace::Unsound| Refused { class: indices[why.class()], why: Why::Pace(why) };
        pace::check(&config.port, &classes).map_err(refused)?;
    }
    Ok(())
}

impl Sharing {
    /// The node for the queued classes of a configuration. A packet costs `overhead` bytes on top of IP.
    pub fn new(config: Config, overhead: u16) -> Result<Sharing, Refused> {
        let mut places = vec![None; config.classes.len()];
        let congestion = Congestion::new(config.classes.len());
        let mut way = |direction, out| {
            let (specs, indices) = specs(&config, direction);
            let (paced, at_pacer) = pacing::paced(&config, direction);
            let all = || indices.iter().chain(&at_pacer);
            all().enumerate().for_each(|(place, &i)| places[i] = Some(place));
            let tree = (!specs.is_empty()).then(|| Tree::new(&specs)).transpose();
            let tree = tree.map_err(|why| Refused { class: indices[why.class()], why: Why::Tree(why) })?;
            let pacer = (!paced.is_empty()).then(|| Pacer::new(config.port, &paced, overhead)).transpose();
            let pacer = pacer.map_err(|why| Refused { class: at_pacer[why.class()], why: Why::Pace(why) })?;
            let queued = tree.is_some() || pacer.is_some();
            let cache = Cache::new(if queued { config.max_flows } else { 1 }, config.seed);
            let mut watches: Vec<Option<Watch>> = all().map(|&i| Watch::of(i, &config.classes[i])).collect();
            if watches.iter().all(Option::is_none) {
                watches.clear();
            }
            let admission = Admission::of(&specs, config.max_flows, config.seed);
            let congestion = congestion.clone();
            let windows = Windows::of(&paced, config.max_flows, config.seed);
            let (ready, ready_since, fillers) = (List::new(), None, 0);
            let (pacer, first_paced) = (pacer.map(Box::new), specs.len());
            let (followed, gone) = (Vec::new(), VecDeque::new());
            Ok(Way {
                tree,
                pacer,
                windows,
                first_paced,
                fillers,
                out,
                open: true,
                ready,
                ready_since,
                cache,
                admission,
                watches,
                congestion,
                followed,
                gone,
            })
        };
        let ways = [way(Direction::Out, WAN)?, way(Direction::In, LAN)?];
        let (ledger, lost) = (Ledger::default(), VecDeque::new());
        Ok(Sharing { config: config.into(), ways, places, overhead, ledger, lost })
    }

    /// What it was told.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Which classes are congested, as their queues say; another one after [`Sharing::replace`].
    pub fn congestion(&self) -> Congestion {
        self.ways[0].congestion.clone()
    }

    /// The queue of the class with this index in the configuration, and what left it; `None` if it has no queue.
    pub fn leaf(&self, class: usize) -> Option<(&Queue, &LeafStats)> {
        let place = (*self.places.get(class)?)?;
        let way = &self.ways[way_of(self.config.classes[class].direction)];
        if let (Some(paced), Some(pacer)) = (way.paced(place), &way.pacer) {
            return Some(pacer.leaf(paced));
        }
        let tree = way.tree.as_ref()?;
        tree.is_leaf(place).then(|| (tree.queue(place), tree.leaf_stats(place)))
    }

    /// The connections of the class with this index in the configuration, if it guarantees them a rate.
    pub fn admission(&self, class: usize) -> Option<AdmissionStats> {
        let place = (*self.places.get(class)?)?;
        self.ways[way_of(self.config.classes[class].direction)].admission.as_ref()?.stats(place)
    }

    /// What could have left until now has left its queue.
    pub(crate) fn catch_up(&mut self, cx: &mut Cx<'_>) {
        self.ways.iter_mut().for_each(|way| way.catch_up(cx));
    }

    /// Drops of all queues, by reason.
    fn queue_drops(&self) -> Drops {
        self.queues().fold(Drops::default(), |sum, queue| sum.with(&queue.stats().drops))
    }

    /// Those of classes, and those of packets of no class that wait for what paced ones leave of a line.
    fn queues(&self) -> impl Iterator<Item = &Queue> {
        let leaves = (0..self.places.len()).filter_map(|class| Some(self.leaf(class)?.0));
        leaves.chain(self.ways.iter().filter_map(|way| Some(way.pacer.as_ref()?.unpaced())))
    }

    /// The conservation law's account.
    pub fn ledger(&self) -> Ledger {
        let absorbed = self.ledger.absorbed + self.queues().map(|queue| queue.stats().filtered).sum::<u64>();
        let made = self.ways.iter().map(|way| way.fillers).sum();
        Ledger { absorbed, drops: self.ledger.drops.with(&self.queue_drops()), made, ..self.ledger }
    }

    /// The place of the class that takes a frame of `len` bytes that begins with these, in the tree or at the pacer, and the frame's flow.
    fn classify(&mut self, bytes: &[u8], len: usize, way: usize) -> Option<(usize, Key)> {
        if !self.ways[way].has_queues() {
            return None;
        }
        let packet = wire::any_packet(bytes, len).ok()?;
        let key = Key::of_packet(bytes, &packet);
        let (config, places) = (&self.config, &self.places);
        let found = || places[config.classify(follow::DIRECTIONS[way], &key)?];
        Some((self.ways[way].cache.find(&key, found)?, key))
    }

    /// As [`Node::handle_frame`]; where ACKs follow the data of the frame's class, `flow` says which flow it is of, by its key. What that
    /// flow is to be told.
    pub(crate) fn enter(
        &mut self,
        cx: &mut Cx<'_>,
        port: Port,
        frame: Frame,
        flow: impl FnOnce(Direction, &Key) -> Result<u32, Alone>,
    ) -> Option<Came> {
        self.ledger.received += 1;
        let way = match port {
            LAN => 0,
            WAN => 1,
            _ => {
                self.ledger.drops.count(DropReason::NotWired);
                cx.drop(frame, DropReason::NotWired);
                return None;
            }
        };
        self.catch_up(cx);
        let found = self.classify(cx.frames.bytes(&frame), frame.len(), way);
        let place = found.map(|(place, _)| place);
        if let Some(refusal) = self.refusal(cx, way, place, &frame) {
            self.refuse(cx, way, frame, refusal);
            return None;
        }
        self.follow_windows(cx, way, place, &frame);
        let charge = Charge::of(&frame, cx.frames.bytes(&frame), self.overhead);
        let waiting = Waiting { frame: cx.frames.park(frame), charge, since: cx.now };
        let (direction, way) = (follow::DIRECTIONS[way], &mut self.ways[way]);
        let dropped = way.push(cx, place, waiting);
        let (place, key) = found?;
        if !way.is_followed(place) {
            return None;
        }
        // What was dropped for it is told all the same.
        let flow = dropped.is_none().then(|| flow(direction, &key));
        way.follow_arrival(place, flow, charge.packets, &mut self.lost)
    }
}

fn way_of(direction: Direction) -> usize {
    usize::from(direction == Direction::In)
}

impl Way {
    /// What could leave until now is ready.
    fn catch_up(&mut self, cx: &mut Cx<'_>) {
        if !self.open {
            return self.skip(cx);
        }
        while let Some(waiting) = self.pop_queues(cx) {
            self.push_ready(cx.frames, waiting);
        }
    }

    /// The next frame that could leave the tree until now, and since when.
    fn pop_tree(&mut self, cx: &mut Cx<'_>) -> Option<Waiting> {
        let tree = self.tree.as_mut()?;
        tree.advance(cx.frames, cx.now);
        let popped = tree.pop(cx)?;
        self.watch(popped.class);
        if !self.followed.is_empty() {
            self.follow_departure(cx.frames, popped.class);
        }
        Some(Waiting { since: popped.at, ..popped.waiting })
    }

    /// Frames have come to the class in this place, or left it.
    fn watch(&self, place: usize) {
        let Some(Some(watch)) = self.watches.get(place) else { return };
        match (self.paced(place), &self.pacer, &self.tree) {
            (Some(paced), Some(pacer), _) => watch.look(pacer.leaf(paced).0, &self.congestion),
            (None, _, Some(tree)) => watch.look(tree.queue(place), &self.congestion),
            _ => {}
        }
    }

    /// What could have left until now did not.
    fn skip(&mut self, cx: &Cx<'_>) {
        if let Some(tree) = &mut self.tree {
            tree.skip(cx.frames, cx.now);
        }
        if let Some(pacer) = &mut self.pacer {
            pacer.skip(cx.now);
        }
    }

    /// A frame leaves as soon as the port takes it.
    fn push_ready(&mut self, frames: &mut Frames, waiting: Waiting) {
        self.ready_since.get_or_insert(waiting.since);
        self.ready.push(frames, waiting);
    }

    /// The port takes frames, or not, from now on.
    fn set_open(&mut self, cx: &Cx<'_>, open: bool) {
        if !open || !self.open {
            self.skip(cx);
        }
        self.open = open;
    }

    /// When its next frame leaves, or may.
    fn due(&self) -> Option<Time> {
        self.ready_since.or_else(|| self.queues_due())
    }

    /// The next frame that has left by now, and when it did.
    fn pop(&mut self, cx: &mut Cx<'_>) -> Option<(Time, Frame)> {
        let waiting = match self.ready.pop(cx.frames) {
            None => self.pop_queues(cx)?,
            Some(waiting) => {
                self.ready_since = self.ready.head(cx.frames).map(|head| head.since);
                waiting
            }
        };
        Some((waiting.since, cx.frames.unpark(waiting.frame)))
    }
}

impl Node for Sharing {
    fn handle_frame(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        self.enter(cx, port, frame, |_, _| Err(Alone::NoAcks));
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
        for way in &mut self.ways {
            way.set_open(cx, writable.contains(way.out));
        }
        let due = |way: &Way| way.due().filter(|_| way.open);
        let order = match (due(&self.ways[0]), due(&self.ways[1])) {
            (Some(out), Some(inward)) if inward < out => [1, 0],
            _ => [0, 1],
        };
        for i in order {
            let way = &mut self.ways[i];
            if let Some((at, frame)) = way.open.then(|| way.pop(cx)).flatten() {
                self.ledger.sent += 1;
                return Some(Transmit { port: way.out, at, frame });
            }
        }
        None
    }

    fn next_deadline(&self, writable: PortSet) -> Option<Time> {
        let open = self.ways.iter().filter(|way| writable.contains(way.out));
        open.filter_map(Way::due).min()
    }
}
