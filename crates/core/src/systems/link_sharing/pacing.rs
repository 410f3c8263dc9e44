//! The paced classes of a direction, and the other traffic of their port.

use super::spreading::Spreading;
use super::way::Way;
use super::Sharing;
use crate::classify::Direction;
use crate::flow::Key;
use crate::frame::{Charge, Frame, Waiting};
use crate::node::Cx;
use crate::stats::DropReason;
use crate::systems::gap_pacing::{Each, Pacer, Size, Slot, FASTEST};
use crate::time::Time;
use crate::wire::{self, Flags, Packet, Tcp};

impl Sharing {
    /// Returns the pacer of a direction, if any of its classes is paced.
    pub fn pacer(&self, direction: Direction) -> Option<&Pacer> {
        self.ways[super::way_of(direction)].pacer.as_deref()
    }

    /// Returns the pacer of the class with this index in the configuration, and the class's number there.
    /// `None` if it is not paced.
    pub fn paced(&self, class: usize) -> Option<(&Pacer, usize)> {
        let place = (*self.places.get(class)?)?;
        let way = &self.ways[super::way_of(self.config.classes[class].direction)];
        Some((way.pacer.as_deref()?, way.paced(place)?))
    }

    /// Updates windows and connections, if any are followed, from a frame of the class at this place.
    pub(super) fn follow_connections(
        &mut self,
        cx: &Cx<'_>,
        way: usize,
        place: Option<usize>,
        frame: &Frame,
    ) {
        let follows = |way: &Way| way.windows.is_some() || way.admission.is_some();
        if !self.ways.iter().any(follows) {
            return;
        }
        let bytes = cx.frames.bytes(frame);
        let Some((packet, tcp)) = segment(bytes, frame.len()) else { return };
        // Windows are scaled only if both ends offer a shift (RFC 7323 §2.2).
        let shift = || wire::read_options(bytes, &packet, &tcp).window_scale;
        let scale = tcp.flags.contains(Flags::SYN).then(shift);
        let size = Size::of(Charge::of(frame, bytes, self.overhead), self.overhead, frame.len());
        let [there, back] = match way {
            0 => [0, 1],
            _ => [1, 0],
        };
        if let Some(class) = place.and_then(|place| self.ways[there].paced(place)) {
            self.ways[there].window_comes(class, Key::of_data(&packet, &tcp), &tcp, size, cx.now);
        }
        let key = Key::of_ack(&packet, &tcp);
        self.ways[back].window_is_acknowledged(&key, &tcp, scale, cx.now);
        self.ways[back].is_answered(&key, &tcp, scale, cx.now);
    }
}

impl Way {
    /// Gives the paced class at place `first` these further lanes.
    pub(super) fn spread(&mut self, first: usize, each: Each, further: Vec<usize>, seed: u64) {
        self.lanes.resize_with(self.lanes.len().max(first + 1), || None);
        self.lanes[first] = Some(Spreading::new(first, each, further, seed));
    }

    /// Returns the place at which a packet of the class at `place` waits.
    pub(super) fn lane(&mut self, place: usize, key: &Key) -> usize {
        let Some(Some(spreading)) = self.lanes.get_mut(place) else { return place };
        let (first, pacer) = (self.first_paced, &self.pacer);
        spreading.place(key, |place| {
            let paced = place.checked_sub(first);
            pacer.as_ref().zip(paced).is_some_and(|(pacer, paced)| pacer.leaf(paced).0.packets() == 0)
        })
    }

    /// Returns the number at the pacer of the class at this place, if it is paced.
    pub(super) fn paced(&self, place: usize) -> Option<usize> {
        place.checked_sub(self.first_paced).filter(|_| self.pacer.is_some())
    }

    /// Returns whether the direction has a queue.
    pub(super) fn has_queues(&self) -> bool {
        self.tree.is_some() || self.pacer.is_some()
    }

    /// Enqueues a frame of the class at this place, or passes it at once if it has none. Returns the reason
    /// if it was dropped instead.
    pub(super) fn push(
        &mut self,
        cx: &mut Cx<'_>,
        place: Option<usize>,
        waiting: Waiting,
    ) -> Option<DropReason> {
        let paced = place.and_then(|place| self.paced(place));
        let dropped = match (place, &mut self.tree, &mut self.pacer) {
            (place, _, Some(pacer)) if paced.is_some() || place.is_none() => pacer.push(cx, paced, waiting),
            (Some(place), Some(tree), _) => tree.push(cx, place, waiting),
            _ => {
                self.push_ready(cx.frames, waiting);
                return None;
            }
        };
        place.iter().for_each(|&place| self.watch(place));
        dropped
    }

    /// Returns the time at which the next frame leaves the queues, or may.
    pub(super) fn queues_due(&self) -> Option<Time> {
        let tree = self.tree.as_ref().and_then(|tree| tree.due());
        let pacer = self.pacer.as_ref().and_then(|pacer| pacer.due());
        tree.into_iter().chain(pacer).min()
    }

    /// Dequeues the next frame that could have left by now. Its `since` is the time at which it could. With a
    /// pacer, frames that leave the tree wait for the line.
    pub(super) fn pop_queues(&mut self, cx: &mut Cx<'_>) -> Option<Waiting> {
        loop {
            let Some(pacer) = &mut self.pacer else { return self.pop_tree(cx) };
            let first = pacer.due().filter(|&due| due <= cx.now);
            let tree = self.tree.as_ref().and_then(|tree| tree.due()).filter(|&due| due <= cx.now);
            if let Some(at) = tree.filter(|&at| first.is_none_or(|first| at <= first)) {
                let cx = &mut Cx { now: at, frames: cx.frames };
                let left = self.pop_tree(cx);
                if let (Some(waiting), Some(pacer)) = (left, &mut self.pacer) {
                    pacer.push(&mut Cx { now: waiting.since.max(at), frames: cx.frames }, None, waiting);
                }
                continue;
            }
            let Some(slot) = pacer.pop(cx) else {
                // Time passes for an idle tree, too: what comes next comes now.
                if let Some(tree) = &mut self.tree {
                    tree.advance(cx.frames, cx.now);
                }
                return None;
            };
            match slot {
                Slot::Packet { class, waiting, at } => {
                    if let Some(paced) = class {
                        let place = self.first_paced + paced;
                        self.watch(place);
                        self.follow_departure(cx.frames, place, waiting.charge.packets);
                    }
                    return Some(Waiting { since: at, ..waiting });
                }
                Slot::Fillers { at, count, bytes } => {
                    if let Some(waiting) = self.make_fillers(cx, at, count, bytes) {
                        return Some(waiting);
                    }
                }
            }
        }
    }

    /// Makes the frame that fills a hole, or stands for a run of fillers. Without memory for one, the line
    /// stays idle for as long.
    fn make_fillers(&mut self, cx: &mut Cx<'_>, at: Time, count: u64, bytes: u64) -> Option<Waiting> {
        let port = self.pacer.as_ref()?.port();
        debug_assert!(port.runs || count == 1);
        let frame = port.filler.make(cx.frames, port.source, bytes, !port.runs, at)?;
        self.fillers += 1;
        Some(Waiting { frame: cx.frames.park(frame), charge: Default::default(), since: at })
    }

    fn window_comes(&mut self, class: usize, key: Key, tcp: &Tcp, size: Size, now: Time) {
        if self.windows.as_mut().is_some_and(|windows| windows.comes(class, key, tcp, size, now)) {
            self.pace_by_window(class);
        }
    }

    fn window_is_acknowledged(&mut self, key: &Key, tcp: &Tcp, scale: Option<Option<u8>>, now: Time) {
        let windows = self.windows.as_mut();
        let class = windows.and_then(|windows| windows.is_acknowledged(key, tcp, scale, now));
        class.iter().for_each(|&class| self.pace_by_window(class));
    }

    /// Sets the rate of the class with this number to the rate of its flows' windows.
    fn pace_by_window(&mut self, class: usize) {
        let Some((windows, pacer)) = self.windows.as_ref().zip(self.pacer.as_mut()) else { return };
        let rate = windows.rate(class).unwrap_or(FASTEST).min(pacer.fastest());
        if pacer.rate(class) != rate {
            pacer.set_rate(class, rate);
        }
    }
}

fn segment(bytes: &[u8], len: usize) -> Option<(Packet, Tcp)> {
    let packet = wire::packet(bytes, len).ok()?;
    Some((packet, wire::tcp(bytes, &packet).ok()?))
}
