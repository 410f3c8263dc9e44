//! Per-flow queues served by deficit round robin (Shreedhar and Varghese, SIGCOMM 1995).
//!
//! The addresses, ports, protocol and tags of a frame identify its flow ([`Key`]). Only backlogged flows need
//! room: a bounded table, in sets of eight ways, holds them by a keyed hash of the key. A flow that leaves in
//! debt keeps its way until a backlogged one needs it, and the flow that has just left until another one
//! leaves. If more than eight flows of a set are backlogged, two
//! of them share a queue until a queue is empty.
//!
//! Each operation takes constant time, whatever the number of flows. `rounds` decides the turns. Beyond the
//! limit, frames are dropped from the head of the longest flow, or of one more than half as long (`sizes`). A
//! flow may have an owner, which is told the number of its waiting frames ([`Pfq::claim`]).

use super::backlog::Backlog;
use super::limit::{Bound, QueueLimit};
use super::rounds::{Rounds, TakesTurns, Turn};
use super::sizes::{Size, Sizes};
use super::Discipline;
use crate::base::prefetch;
use crate::flow::Key;
use crate::frame::{Frames, Head, List, Waiting};
use crate::node::Cx;
use crate::rate::Rate;
use crate::stats::DropReason;
use crate::wire;

#[cfg(test)]
mod tests;

/// Ways per set.
const WAYS: usize = 8;
/// Tag of a free way.
const FREE: u32 = 0;
/// Number of flows below which everything stays in the caches.
const FEW: u32 = 4096;
/// Marks the absence of an owner or flow.
const NOBODY: u32 = u32::MAX;

/// A backlogged flow; a free entry if empty. One cache line.
#[derive(Debug)]
#[repr(align(64))]
struct Flow {
    /// Waiting frames.
    list: List,
    /// Waiting bytes.
    bytes: u64,
    turn: Turn,
    /// Place in the order of bytes.
    size: Size,
    /// Owner ([`Pfq::claim`]), or [`NOBODY`].
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

/// Parameters of per-flow queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Params {
    /// Flows that have a queue of their own, 8 to 16,777,216; rounded up to a power of two. Each takes 68
    /// bytes.
    pub flows: u32,
    /// Bytes that each flow may send in a round, at least 1. With a quantum of a full frame, each turn of
    /// full frames is one frame.
    pub quantum: u32,
    /// Seed of the hash, so that an outsider cannot aim at another flow's queue.
    pub seed: u64,
}

impl Default for Params {
    /// Defaults: 1,024 flows, a full Ethernet frame a round.
    fn default() -> Params {
        Params { flows: 1024, quantum: 1514, seed: 1 }
    }
}

/// Per-flow queues. See the [module documentation](self).
#[derive(Debug)]
pub struct Pfq {
    flows: Box<[Flow]>,
    /// Per set, a part of the hash of each backlogged flow, or [`FREE`]. A search reads half a cache line
    /// only.
    tags: Box<[[u32; WAYS]]>,
    rounds: Rounds,
    /// Order of the flows by bytes.
    sizes: Sizes,
    pub(super) backlog: Backlog,
    /// Seed of the hash.
    seed: u64,
    /// Limit at the rate of the link that the queue feeds.
    holds: Bound,
    /// Number of backlogged flows.
    waiting: u32,
    /// Flow of the last frame that arrived.
    came: u32,
    /// Flow that left last, unless in debt: it may go on with its turn.
    left: u32,
    /// Notices for owners: see [`Pfq::claim`].
    news: Vec<(u32, u32)>,
}

/// Next frame to leave, of a queue whose flows have owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coming {
    /// Owner of its flow.
    pub owner: Option<u32>,
    /// Waiting frames of its flow, with this one.
    pub frames: u32,
    /// Packets that it stands for.
    pub packets: u32,
    /// Number of backlogged flows.
    pub flows: u32,
}

impl Pfq {
    /// Creates queues in front of `rate`, with room for `limit` together.
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
            left: NOBODY,
            news: Vec::new(),
        }
    }

    /// Sets the owner of the flow whose frame arrived last, if that frame waits. `owner` is a number of the
    /// caller's. Returns the number of the flow's waiting frames. From now on the owner gets
    /// [news](Pfq::news) whenever this number falls.
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

    /// Drains the owners whose flows changed, each with the number of frames that wait now, in the order of
    /// the changes.
    pub fn news(&mut self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.news.drain(..)
    }

    /// Returns the next frame to leave.
    pub fn coming(&self, frames: &Frames) -> Option<Coming> {
        let flow = self.flows.get(self.rounds.next()? as usize)?;
        Some(Coming {
            owner: (flow.owner != NOBODY).then_some(flow.owner),
            frames: flow.list.len() as u32,
            packets: flow.list.head(frames)?.charge.packets,
            flows: self.waiting,
        })
    }

    /// Counts the flows with at least one waiting frame. For tests and samplers, since it scans all flows.
    pub fn waiting_flows(&self) -> usize {
        self.flows.iter().filter(|flow| !flow.list.is_empty()).count()
    }

    /// Returns the queue of the flow with this hash: its own, a free one, or another flow's.
    fn find(&mut self, hash: u64) -> u32 {
        let tag = (hash as u32).max(FREE + 1);
        let number = (hash >> 32) as usize % self.tags.len();
        let way = |tag| self.tags[number].iter().position(|&t| t == tag);
        let own = way(tag);
        let way = own.or_else(|| way(FREE)).or_else(|| self.vacate(number)).unwrap_or(tag as usize % WAYS);
        let i = number * WAYS + way;
        if own.is_none() && self.flows[i].list.is_empty() {
            self.tags[number][way] = tag;
            self.rounds.forget(&mut self.flows, i as u32);
        }
        i as u32
    }

    /// Returns a way of a full set whose flow has nothing waiting: one that owes nothing any more, or else
    /// any.
    fn vacate(&mut self, number: usize) -> Option<usize> {
        let ways = &mut self.flows[number * WAYS..][..WAYS];
        let idle = ways.iter().position(|flow| flow.list.is_empty())?;
        let paid = |flow: &mut Flow| flow.list.is_empty() && !self.rounds.owes(flow);
        Some(ways.iter_mut().position(paid).unwrap_or(idle))
    }

    /// Frees the way of the flow that left before this one. One that left in debt keeps its way.
    fn leave(&mut self, i: u32) {
        let owes = self.rounds.owes(&mut self.flows[i as usize]);
        let before = core::mem::replace(&mut self.left, if owes { NOBODY } else { i });
        if before != i && self.flows.get(before as usize).is_some_and(|flow| flow.list.is_empty()) {
            self.tags[before as usize / WAYS][before as usize % WAYS] = FREE;
        }
    }

    /// Sets the waiting bytes of a flow.
    fn set_bytes(&mut self, i: u32, bytes: u64) {
        let flow = &mut self.flows[i as usize];
        flow.bytes = bytes;
        let amount = (!flow.list.is_empty()).then_some(bytes);
        self.sizes.set(&mut self.flows, i, amount, |flow| &mut flow.size);
    }

    /// Dequeues the first frame of a flow.
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
        }
        self.backlog.leave(waiting.charge);
        self.set_bytes(i, bytes);
        Some(waiting)
    }

    /// Prefetches the cache lines of the turns after the next one, without waiting for any. For the second
    /// flow this is its frame; for the third it is the flow itself, which says where its frame is. With many
    /// flows, each line would otherwise be waited for, one after the other.
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

    /// Drops the excess from the longest flow. Returns whether this dropped the only frame in the queue of
    /// flow `i`.
    fn drop_from_longest(&mut self, cx: &mut Cx<'_>, i: u32) -> bool {
        let mut dropped = false;
        while self.holds.is_exceeded(&self.backlog) {
            let Some(longest) = self.sizes.most() else { break };
            let Some(waiting) = self.take(cx.frames, longest) else { break };
            self.backlog.drop(cx, waiting, DropReason::QueueFull);
            if self.flows[longest as usize].list.is_empty() {
                self.rounds.end(&mut self.flows, longest);
                self.leave(longest);
                dropped |= longest == i;
            }
        }
        self.rounds.go_on(&mut self.flows);
        dropped
    }
}

/// Returns a keyed hash of a frame's flow, or the hash of no flow if it is not IP.
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
            return Some(self.backlog.drop(cx, waiting, DropReason::QueueFull));
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
        if ends {
            self.leave(i);
        }
        self.load(frames);
        Some(waiting)
    }

    fn set_limit(&mut self, limit: QueueLimit, rate: Rate) {
        self.holds = Bound::new(limit, rate);
    }
}
