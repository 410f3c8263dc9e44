//! Link sharing as a node between LAN and WAN. Frames wait in the queues of their classes and leave at the
//! rates of a [tree](classes). Each direction with queued classes has one tree.
//!
//! An IP packet belongs to the first class of its direction that matches its flow ([`Key::of_packet`]): UDP,
//! QUIC and ICMP as well as TCP. For fragments, and for what cannot be read as a whole, only the addresses
//! count. Packets that match no class pass at once, through no queue and at no rate. So do those
//! with an [address of the link's](wire::has_address_of_link), frames without readable addresses, and all
//! frames of a direction without queued classes.
//!
//! A frame leaves when its transmission may begin, so the first frame of an idle link is not late. A giant
//! segment is charged as the packets that it stands for and leaves as a whole. Where its time on the link
//! matters, the driver splits it beforehand.
//!
//! Classes that are [paced](crate::systems::gap_pacing) are in no tree. They wait for their times at the port
//! of their direction, and all other frames of that port use the rest of its line.

use crate::classify::{ClassConfig, Compiled, Config, Direction};
use crate::flow::{FlowId, Key};
use crate::frame::{Charge, Frame, Waiting};
use crate::node::{Cx, Node, Port, PortSet, Transmit, LAN, WAN};
use crate::queue::LeafStats;
use crate::queue::Queue;
use crate::stats::{DropReason, Drops, Ledger};
use crate::systems::ack_shaper::Congestion;
use crate::systems::gap_pacing::Spread;
use crate::systems::postack::{Alone, Came};
use crate::time::Time;
use crate::wire;
use std::collections::VecDeque;
use way::Way;

pub use admission::AdmissionStats;
pub use sound::{check, Refused, Why};

mod admission;
mod cache;
pub mod classes;
mod follow;
mod pacing;
mod refuse;
mod replace;
mod sound;
mod spreading;
#[cfg(test)]
mod tests;
mod watch;
mod way;
mod windows;

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Sharing {
    config: Compiled,
    ways: [Way; 2],
    /// By class of the configuration, its place: its index in the tree of its direction, followed by the
    /// paced classes.
    places: Vec<Option<usize>>,
    /// Bytes charged for a packet on top of its IP packet.
    overhead: u16,
    ledger: Ledger,
    /// Losses for [`Sharing::next_loss`].
    lost: VecDeque<(FlowId, u32)>,
}

impl Sharing {
    /// Returns the node for the queued classes of a configuration. A packet is charged with `overhead` bytes
    /// on top of IP, unless the configuration has a [`Config::link_layer`].
    pub fn new(config: Config, overhead: u16) -> Result<Sharing, Refused> {
        let mut places = vec![None; config.classes.len()];
        let congestion = Congestion::new(config.classes.len());
        let mut way = |direction, out| -> Result<Way, Refused> {
            let (way, classes) = Way::new(&config, direction, out, overhead, congestion.clone())?;
            classes.iter().enumerate().for_each(|(place, &i)| places[i] = Some(place));
            Ok(way)
        };
        let mut ways = [way(Direction::Out, WAN)?, way(Direction::In, LAN)?];
        spread(&config, &places, &mut ways);
        let (ledger, lost) = (Ledger::default(), VecDeque::new());
        Ok(Sharing { config: config.into(), ways, places, overhead, ledger, lost })
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the set of congested classes, by their queues. [`Sharing::replace`] makes it another one.
    pub fn congestion(&self) -> Congestion {
        self.ways[0].congestion.clone()
    }

    /// Returns the queue of the class with this index in the configuration, and its departures. `None` if it
    /// has no queue.
    pub fn leaf(&self, class: usize) -> Option<(&Queue, &LeafStats)> {
        let place = (*self.places.get(class)?)?;
        let way = &self.ways[way_of(self.config.classes[class].direction)];
        if let (Some(paced), Some(pacer)) = (way.paced(place), &way.pacer) {
            return Some(pacer.leaf(paced));
        }
        let tree = way.tree.as_ref()?;
        tree.is_leaf(place).then(|| (tree.queue(place), tree.leaf_stats(place)))
    }

    /// Returns the connections of the class with this index in the configuration, if it guarantees them a
    /// rate.
    pub fn admission(&self, class: usize) -> Option<AdmissionStats> {
        let place = (*self.places.get(class)?)?;
        self.ways[way_of(self.config.classes[class].direction)].admission.as_ref()?.stats(place)
    }

    /// Returns the number of segments that could not be those of the connections whose windows are followed.
    pub fn disbelieved(&self) -> u64 {
        self.ways.iter().filter_map(|way| Some(way.windows.as_ref()?.disbelieved())).sum()
    }

    /// Dequeues every frame that could have left by now.
    pub(crate) fn catch_up(&mut self, cx: &mut Cx<'_>) {
        self.ways.iter_mut().for_each(|way| way.catch_up(cx));
    }

    /// Returns the drops of all queues, by reason.
    fn queue_drops(&self) -> Drops {
        self.queues().fold(Drops::default(), |sum, queue| sum.with(&queue.stats().drops))
    }

    /// Returns the queues of classes, and those of packets of no class that use the rest of a paced line.
    fn queues(&self) -> impl Iterator<Item = &Queue> {
        let leaves = (0..self.places.len()).filter_map(|class| Some(self.leaf(class)?.0));
        leaves.chain(self.ways.iter().filter_map(|way| Some(way.pacer.as_ref()?.unpaced())))
    }

    /// Returns the account of the conservation law.
    pub fn ledger(&self) -> Ledger {
        let absorbed = self.ledger.absorbed + self.queues().map(|queue| queue.stats().filtered).sum::<u64>();
        let made = self.ways.iter().map(|way| way.fillers).sum();
        Ledger { absorbed, drops: self.ledger.drops.with(&self.queue_drops()), made, ..self.ledger }
    }

    /// Returns the place of the class for a frame of `len` bytes that begins with these, in the tree or at
    /// the pacer, and the frame's flow.
    fn classify(&mut self, bytes: &[u8], len: usize, way: usize) -> Option<(usize, Key)> {
        if !self.ways[way].has_queues() {
            return None;
        }
        let packet = wire::any_packet(bytes, len).ok().or_else(|| wire::other_packet(bytes, len))?;
        if wire::has_address_of_link(&packet) {
            return None;
        }
        let key = Key::of_packet(bytes, &packet);
        let (config, places) = (&self.config, &self.places);
        let found = || places[config.classify(follow::DIRECTIONS[way], &key)?];
        let place = self.ways[way].cache.find(&key, found)?;
        Some((self.ways[way].lane(place, &key), key))
    }

    /// Returns the charge for a frame of the class at this place. Frames of the tree are charged as the link
    /// carries them. Pacing measures Ethernet frames.
    #[inline]
    fn charge(&self, way: usize, place: Option<usize>, frame: &Frame, bytes: &[u8]) -> Charge {
        let in_tree = |place: usize| place < self.ways[way].first_paced;
        match self.config.link_layer.filter(|_| place.is_some_and(in_tree)) {
            Some(layer) => Charge::on_link(frame, bytes, &layer),
            None => Charge::of(frame, bytes, self.overhead),
        }
    }

    /// Handles a frame like [`Node::handle_frame`]. Where ACKs follow the data of the frame's class, `flow`
    /// finds the flow by its key. Returns the news for that flow.
    pub(crate) fn enter(
        &mut self,
        cx: &mut Cx<'_>,
        port: Port,
        frame: Frame,
        flow: impl FnOnce(Direction, &Key) -> Result<FlowId, Alone>,
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
        self.follow_connections(cx, way, place, &frame);
        let charge = self.charge(way, place, &frame, cx.frames.bytes(&frame));
        let waiting = Waiting { frame: cx.frames.park(frame), charge, since: cx.now };
        let (direction, way) = (follow::DIRECTIONS[way], &mut self.ways[way]);
        let dropped = way.push(cx, place, waiting);
        let (place, key) = found?;
        if !way.is_followed(place) {
            return None;
        }
        // Losses are reported even if the frame was dropped.
        let flow = dropped.is_none().then(|| flow(direction, &key));
        way.follow_arrival(place, flow, charge.packets, &mut self.lost)
    }
}

/// Gives the classes that have lanes the places of these.
fn spread(config: &Config, places: &[Option<usize>], ways: &mut [Way; 2]) {
    let part = |class: &ClassConfig| class.share.and_then(|share| share.spread);
    let mut further = (0..places.len()).filter(|&i| part(&config.classes[i]) == Some(Spread::Lane));
    for (class, first) in config.classes.iter().zip(places) {
        let (Some(Spread::Over(each, count)), Some(first)) = (part(class), first) else { continue };
        let lanes = further.by_ref().take(count.saturating_sub(1) as usize).filter_map(|i| places[i]);
        ways[way_of(class.direction)].spread(*first, each, lanes.collect(), config.seed);
    }
}

fn way_of(direction: Direction) -> usize {
    usize::from(direction == Direction::In)
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
