//! Per-flow queues served by deficit round robin (Shreedhar and Varghese, SIGCOMM 1995).
//!
//! The addresses, ports, protocol and tags of a frame say which flow it belongs to ([`Key`]). Only flows that have something waiting take
//! room: a bounded table, in sets of eight ways, holds them by a keyed hash of the key. Where more than eight flows of a set have
//! something waiting, two of them share a queue until a queue is empty.
//!
//! Each operation takes constant time, whatever the number of flows: turns are those of `rounds`, and beyond the limit, frames are dropped
//! from the head of the longest flow, or of one that is more than half as long (`sizes`).
//! A flow may have an owner, who is told how many of its frames wait ([`Pfq::claim`]).

use super::backlog::Backlog;
use super::limit::{Bound, QueueLimit};
use super::rounds::{Rounds, TakesTurns, Turn};
use super::sizes::{Size, Sizes};
use super::Discipline;
use crate::cache::prefetch;
use crate::flow::Key;
use crate::frame::{Frames, Head, List, Waiting};
use crate::node::Cx;
use crate::rate::Rate;
use crate::stats::DropReason;
use crate::wire;

#[cfg(test)]
mod tests;

/// Ways of a set.
const WAYS: usize = 8;
/// The tag of no flow.
const FREE: u32 = 0;
/// Below so many flows everything stays in the caches.
const FEW: u32 = 4096;
/// No owner, or no flow.
const NOBODY: u32 = u32::MAX;

/// A flow of which something waits; free if nothing does. One cache line.
#[derive(Debug)]
#[repr(align(64))]
struct Flow {
    /// Its frames.
    list: List,
    /// Bytes that wait.
    bytes: u64,
    turn: Turn,
    /// By its bytes.
    size: Size,
    /// Whose it is ([`Pfq::claim`]), or [`NOBODY`]'s.
    owner: u32,
}

const _: () = assert!(size_of::<Flow>() == 64);

impl Default for Flow {
    fn default() -> Flow {
        Flow { list: List::new(), bytes: 0, turn: Turn::NONE, size: Size::NONE, owner: NOBODY }
    }
}

impl TakesTurns for Flow {
    fn turn(&mut self) -> &mut Turn {
        &mut self.turn
    }
}

/// What per-flow queues are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Flows that have a queue of their own, 8 to 16,777,216; rounded up to a power of two. Each takes 68 bytes.
    pub flows: u32,
    /// Bytes that each flow may send in a round, at least 1; a full frame makes each turn of one of these one frame.
    pub quantum: u32,
    /// Seed of the hash, so that nobody outside can aim at the queue of another.
    pub seed: u64,
}

impl Default for Params {
    /// 1,024 flows, a full Ethernet frame a round.
    fn default() -> Params {
        Params { flows: 1024, quantum: 1514, seed: 1 }
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
pub struct Pfq {
    flows: Box<[Flow]>,
    /// By set, a part of the hash of each flow of which something waits, or [`FREE`]: half a cache line is all that a search looks at.
    tags: Box<[[u32; WAYS]]>,
    rounds: Rounds,
    /// By their bytes.
    sizes: Sizes,
    pub(super) backlog: Backlog,
    /// Of the hash.
    seed: u64,
    /// The limit at the rate that the queue waits for.
    holds: Bound,
    /// Flows of which something waits.
    waiting: u32,
    /// The flow of the last frame that came.
    came: u32,
    /// What owners are to be told: see [`Pfq::claim`].
    news: Vec<(u32, u32)>,
}

/// The frame that leaves next, of a queue whose flows have owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coming {
    /// Whose it is.
    pub owner: Option<u32>,
    /// Frames of its flow that wait, with this one.
    pub frames: u32,
    /// Packets that it stands for.
    pub packets: u32,
    /// Flows of which anything waits.
    pub flows: u32,
}

impl Pfq {
    /// Queues in front of `rate` that hold `limit` together.
    pub fn new(params: Params, limit: QueueLimit, rate: Rate) -> Pfq {
        let count = (params.flows.clamp(WAYS as u32, 1 << 24) as usize).next_power_of_two();
        Pfq {
            flows: (0..count).map(|_| Flow::default()).collect(),
            tags: vec![[FREE; WAYS]; count / WAYS].into(),
            rounds: Rounds::new(params.quantum),
            sizes: Sizes::EMPTY,
            backlog: Backlog::default(),
            seed: params.seed,
            holds: Bound::new(limit, rate),
            waiting: 0,
            came: NOBODY,
            news: Vec::new(),
        }
    }

    /// The flow of the frame that came last, if it waits, is `owner`'s, a number of the caller's. Returns how many of its frames wait. From
    /// now on there is [news](Pfq::news) for the owner whenever these become fewer.
    pub fn claim(&mut self, owner: Option<u32>) -> u32 {
        let came = self.flows.get_mut(self.came as usize);
        let Some(flow) = came.filter(|flow| !flow.list.is_empty()) else { return 0 };
        let before = core::mem::replace(&mut flow.owner, owner.unwrap_or(NOBODY));
        let frames = flow.list.len() as u32;
        if before != NOBODY && Some(before) != owner {
            self.news.push((before, 0)); // two flows share the queue
        }
        frames
    }

    /// Owners, and how many frames of their flows wait now, in the order in which that changed.
    pub fn news(&mut self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.news.drain(..)
    }

    /// The frame that leaves next.
    pub fn coming(&self, frames: &Frames) -> Option<Coming> {
        let flow = self.flows.get(self.rounds.next()? as usize)?;
        Some(Coming {
            owner: (flow.owner != NOBODY).then_some(flow.owner),
            frames: flow.list.len() as u32,
            packets: flow.list.head(frames)?.charge.packets,
            flows: self.waiting,
        })
    }

    /// Flows that wait with at least one frame: of tests and samplers, which may take their time.
    pub fn waiting_flows(&self) -> usize {
        self.flows.iter().filter(|flow| !flow.list.is_empty()).count()
    }

    /// The queue of the flow with this hash: its own, a free one, or one of another flow.
    fn find(&mut self, hash: u64) -> u32 {
        let tag = (hash as u32).max(FREE + 1);
        let number = (hash >> 32) as usize % self.tags.len();
        let set = &mut self.tags[number];
        let way = |tag| set.iter().position(|&t| t == tag);
        let way = way(tag).or_else(|| way(FREE)).unwrap_or(tag as usize % WAYS);
        if set[way] == FREE {
            set[way] = tag;
        }
        (number * WAYS + way) as u32
    }

    /// The flow has as many bytes waiting now.
    fn set_bytes(&mut self, i: u32, bytes: u64) {
        let flow = &mut self.flows[i as usize];
        flow.bytes = bytes;
        let amount = (!flow.list.is_empty()).then_some(bytes);
        self.sizes.set(&mut self.flows, i, amount, |flow| &mut flow.size);
    }

    /// Takes the first frame of a flow out.
    fn take(&mut self, frames: &Frames, i: u32) -> Option<Waiting> {
        let flow = &mut self.flows[i as usize];
        let waiting = flow.list.pop(frames)?;
        let bytes = flow.bytes - waiting.charge.bytes;
        let ends = flow.list.is_empty();
        if flow.owner != NOBODY {
            self.news.push((flow.owner, flow.list.len() as u32));
        }
        if ends {
            flow.owner = NOBODY;
            self.waiting -= 1;
            self.tags[i as usize / WAYS][i as usize % WAYS] = FREE;
        }
        self.backlog.leave(waiting.charge);
        self.set_bytes(i, bytes);
        Some(waiting)
    }

    /// Asks for the lines that the turns after the next one will look at, and waits for none: of the second flow its frame, of the third the
    /// flow itself, which says where its frame is. Of many flows each line would be waited for, one after the other.
    #[inline]
    fn load(&self, frames: &Frames) {
        if self.waiting < FEW {
            return;
        }
        let behind = |i: u32| self.flows[i as usize].turn.behind();
        let Some(second) = self.rounds.next().and_then(behind) else { return };
        self.flows[second as usize].list.load(frames);
        if let Some(third) = behind(second) {
            prefetch(&self.flows[third as usize]);
            prefetch(&self.tags[third as usize / WAYS]);
        }
    }

    /// Drops from the longest flow what is too much. Was a frame dropped that waited alone in the queue of flow `i`?
    fn drop_from_longest(&mut self, cx: &mut Cx<'_>, i: u32) -> bool {
        let mut dropped = false;
        while self.holds.is_exceeded(&self.backlog) {
            let Some(longest) = self.sizes.most() else { break };
            let Some(waiting) = self.take(cx.frames, longest) else { break };
            self.backlog.drop(cx, waiting.frame, DropReason::QueueFull);
            if self.flows[longest as usize].list.is_empty() {
                self.rounds.end(&mut self.flows, longest);
                dropped |= longest == i;
            }
        }
        self.rounds.go_on(&mut self.flows);
        dropped
    }
}

/// A keyed hash of the flow that a frame is of; that of nothing where it is not IP.
fn hash(frames: &Frames, waiting: &Waiting, seed: u64) -> u64 {
    let (bytes, len) = frames.parked_bytes(&waiting.frame);
    let key = wire::any_packet(bytes, len).map(|p| Key::of_packet(bytes, &p)).unwrap_or_default();
    key.hash(seed)
}

impl Discipline for Pfq {
    fn push(&mut self, cx: &mut Cx<'_>, waiting: Waiting) -> Option<DropReason> {
        let charge = waiting.charge;
        self.came = NOBODY;
        if !self.holds.admits_alone(charge) {
            return Some(self.backlog.drop(cx, waiting.frame, DropReason::QueueFull));
        }
        let i = self.find(hash(cx.frames, &waiting, self.seed));
        let flow = &mut self.flows[i as usize];
        let (begins, bytes) = (flow.list.is_empty(), flow.bytes + charge.bytes);
        flow.list.push(cx.frames, waiting);
        self.backlog.enter_first(charge);
        self.set_bytes(i, bytes);
        self.came = i;
        if begins {
            self.waiting += 1;
            self.rounds.begin(&mut self.flows, i);
        }
        let dropped = self.drop_from_longest(cx, i);
        self.backlog.note_peak();
        dropped.then_some(DropReason::QueueFull)
    }

    fn pop(&mut self, cx: &mut Cx<'_>) -> Option<Waiting> {
        self.release(cx.frames)
    }

    fn head(&self, frames: &Frames) -> Option<Head> {
        self.flows[self.rounds.next()? as usize].list.head(frames)
    }

    fn release(&mut self, frames: &Frames) -> Option<Waiting> {
        let i = self.rounds.next()?;
        let waiting = self.take(frames, i)?;
        let ends = self.flows[i as usize].list.is_empty();
        self.rounds.charge(&mut self.flows, i, waiting.charge.bytes, ends);
        self.load(frames);
        Some(waiting)
    }

    fn set_limit(&mut self, limit: QueueLimit, rate: Rate) {
        self.holds = Bound::new(limit, rate);
    }
}
