//! News for a gateway about the data in the queues, whose departures release ACKs
//! ([`Turns`](crate::ack::Turns)).

use super::sound::{paced, specs};
use super::way::Way;
use super::Sharing;
use crate::classify::Direction;
use crate::flow::FlowId;
use crate::frame::Frames;
use crate::node::PortSet;
use crate::queue::{pfq::Coming, Queue};
use crate::systems::postack::{Alone, Came, Departure, Next};
use crate::time::Time;

impl Sharing {
    /// Starts the reports about data that ACKs follow.
    pub(crate) fn listen(&mut self) {
        let config = &self.config;
        for (way, direction) in self.ways.iter_mut().zip(DIRECTIONS) {
            let indices = specs(config, direction).1.into_iter().chain(paced(config, direction).1);
            let own = |i: usize| config.classes[i].follows_data().then_some(i);
            way.followed = indices.map(own).collect();
            if way.followed.iter().all(Option::is_none) {
                way.followed.clear();
            }
        }
    }

    /// Returns the time at which the next frame can leave a queue of a direction in which ACKs follow the
    /// data, by a port that takes frames.
    pub(crate) fn next_departure(&self, open: PortSet) -> Option<Time> {
        let followed = |way: &&Way| !way.followed.is_empty() && way.open && open.contains(way.out);
        self.ways.iter().filter(followed).filter_map(Way::queues_due).min()
    }

    /// Returns the next packet that has left a class whose ACKs follow its data, with the index of the class
    /// in the configuration.
    pub(crate) fn next_gone(&mut self) -> Option<(usize, Departure)> {
        self.ways.iter_mut().find_map(|way| way.gone.pop_front())
    }

    /// Returns the next flow that has lost queued frames other than by departure: its number, and the frames
    /// still queued.
    pub(crate) fn next_loss(&mut self) -> Option<(FlowId, u32)> {
        self.lost.pop_front()
    }
}

impl Way {
    /// Returns whether ACKs of the class at this place follow its data.
    pub(super) fn is_followed(&self, place: usize) -> bool {
        self.followed.get(place).is_some_and(Option::is_some)
    }

    /// Reports that a frame that stands for `packets` packets has left the class at this place.
    pub(super) fn follow_departure(&mut self, frames: &Frames, place: usize, packets: u32) {
        let Some(class) = self.followed.get(place).copied().flatten() else { return };
        let Some(queue) = self.queue_mut(place) else { return };
        let bytes = queue.bytes();
        let (left, next) = match queue {
            Queue::Pfq(queue) => {
                let left = queue.news().last().map(|(flow, frames)| (FlowId(flow), frames));
                let next = queue.coming(frames);
                let of = |c: Coming| Next {
                    flow: c.owner.map(FlowId),
                    frames: c.frames,
                    packets: c.packets,
                    flows: c.flows,
                };
                (left, next.map(of))
            }
            queue => {
                let waits = queue.packets() as u32;
                (None, (waits > 0).then_some(Next { flow: None, frames: waits, packets: waits, flows: 1 }))
            }
        };
        self.gone.push_back((class, Departure { packets, bytes, left, next }));
    }

    /// Returns the queue of the class at this place.
    fn queue_mut(&mut self, place: usize) -> Option<&mut Queue> {
        match self.paced(place) {
            Some(paced) => Some(self.pacer.as_mut()?.queue_mut(paced)),
            None => Some(self.tree.as_mut()?.queue_mut(place)),
        }
    }

    /// Reports that a frame of this flow, which stands for `packets` packets, has arrived in the class at
    /// this place.
    pub(super) fn follow_arrival(
        &mut self,
        place: usize,
        flow: Option<Result<FlowId, Alone>>,
        packets: u32,
        lost: &mut impl Extend<(FlowId, u32)>,
    ) -> Option<Came> {
        let class = self.followed.get(place).copied().flatten()?;
        let queue = self.queue_mut(place)?;
        let bytes = queue.bytes();
        let frames = match queue {
            Queue::Pfq(queue) => {
                let frames = queue.claim(flow.and_then(Result::ok).map(|i| i.0));
                lost.extend(queue.news().map(|(flow, frames)| (FlowId(flow), frames)));
                frames
            }
            _ => 0,
        };
        Some(Came { class, flow, frames, packets, bytes })
    }
}

/// Directions of the flows' data, in the order of the ways.
pub(super) const DIRECTIONS: [Direction; 2] = [Direction::Out, Direction::In];
