//! Per-flow queues served by deficit round robin (Shreedhar and Varghese, SIGCOMM 1995).
//!
//! The addresses, ports, protocol and tags of a frame say which flow it belongs to ([`Key`]). Only flows that have something waiting take
//! room: a bounded table, in sets of eight ways, holds them by a keyed hash of the key. Where more than eight flows of a set have
//! something waiting, two of them share a queue until a queue is empty.
//!
//! Each operation takes constant time, whatever the number of flows:
//!
//! - A flow may send as long as its deficit is above zero, and goes below zero with its last frame. It then waits for as many rounds as it
//!   takes, at a quantum a round, to make up for that. A giant segment is charged as the packets that it stands for, so it pays with
//!   the rounds that these take. The flows of one round are a list, and the rounds are a ring of lists.
//! - A flow that begins to wait does so behind the flows that have been served in this round. A flow that has nothing left is forgotten,
//!   and its debt with it.
//! - Beyond the limit, frames are dropped from the head of the longest flow, or of one that is more than half as long:
//!   flows are in lists by the power of two of their bytes.

use super::backlog::Backlog;
use super::limit::{Bound, QueueLimit};
use super::Discipline;
use crate::flow::Key;
use crate::frame::{Frames, Head, Waiting};
use crate::node::Cx;
use crate::rate::Rate;
use crate::stats::DropReason;
use crate::wire;
use links::{Ends, Flow, NONE};

mod links;
#[cfg(test)]
mod tests;

/// Ways of a set.
const WAYS: usize = 8;
/// The tag of no flow.
const FREE: u32 = 0;
/// Rounds that a flow waits at most.
const ROUNDS: usize = 64;

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
    rounds: [Ends; ROUNDS],
    /// Rounds in which a flow waits.
    occupied: u64,
    /// The round that is being served.
    round: u8,
    /// By the power of two of their bytes.
    sizes: [Ends; 65],
    /// Powers of two that a flow has.
    lengths: u128,
    pub(super) backlog: Backlog,
    params: Params,
    /// The limit at the rate that the queue waits for.
    holds: Bound,
}

impl Pfq {
    /// Queues in front of `rate` that hold `limit` together.
    pub fn new(params: Params, limit: QueueLimit, rate: Rate) -> Pfq {
        let count = (params.flows.clamp(WAYS as u32, 1 << 24) as usize).next_power_of_two();
        Pfq {
            flows: (0..count).map(|_| Flow::default()).collect(),
            tags: vec![[FREE; WAYS]; count / WAYS].into(),
            rounds: [Ends::EMPTY; ROUNDS],
            occupied: 0,
            round: 0,
            sizes: [Ends::EMPTY; 65],
            lengths: 0,
            backlog: Backlog::default(),
            params: Params { quantum: params.quantum.max(1), ..params },
            holds: Bound::new(limit, rate),
        }
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

    /// The flow waits for its turn: behind those that were served in this round.
    fn begin(&mut self, i: u32) {
        let rounds_on = u8::from(self.occupied != 0);
        self.flows[i as usize].deficit = i64::from(self.params.quantum);
        self.enter_round(i, rounds_on);
    }

    fn enter_round(&mut self, i: u32, rounds_on: u8) {
        let round = (self.round + rounds_on) % ROUNDS as u8;
        self.flows[i as usize].round = round;
        self.rounds[usize::from(round)].push_turn(&mut self.flows, i);
        self.occupied |= 1 << round;
    }

    fn leave_round(&mut self, i: u32) {
        let round = self.flows[i as usize].round;
        let ends = &mut self.rounds[usize::from(round)];
        ends.remove_turn(&mut self.flows, i);
        if ends.is_empty() {
            self.occupied &= !(1 << round);
        }
    }

    /// The next round in which a flow waits is served once this one is done.
    fn go_on(&mut self) {
        if self.occupied != 0 {
            let ahead = self.occupied.rotate_right(self.round.into()).trailing_zeros();
            self.round = (self.round + ahead as u8) % ROUNDS as u8;
        }
    }

    /// The flow has sent so many bytes.
    fn charge(&mut self, i: u32, bytes: u64) {
        let flow = &mut self.flows[i as usize];
        flow.deficit = flow.deficit.saturating_sub_unsigned(bytes);
        if flow.list.is_empty() {
            self.leave_round(i);
        } else if flow.deficit <= 0 {
            let quantum = i64::from(self.params.quantum);
            let rounds_on = (-flow.deficit / quantum + 1).min(ROUNDS as i64 - 1);
            flow.deficit = flow.deficit.saturating_add(rounds_on * quantum).max(1);
            self.leave_round(i);
            self.enter_round(i, rounds_on as u8);
        }
        self.go_on();
    }

    /// The flow has as many bytes waiting now.
    fn set_bytes(&mut self, i: u32, bytes: u64) {
        let flow = &mut self.flows[i as usize];
        let size = if flow.list.is_empty() { NONE } else { (64 - bytes.leading_zeros()) as u8 };
        flow.bytes = bytes;
        let old = core::mem::replace(&mut flow.size, size);
        if old == size {
            return;
        }
        if old != NONE {
            let ends = &mut self.sizes[usize::from(old)];
            ends.remove_size(&mut self.flows, i);
            if ends.is_empty() {
                self.lengths &= !(1 << old);
            }
        }
        if size != NONE {
            self.sizes[usize::from(size)].push_size(&mut self.flows, i);
            self.lengths |= 1 << size;
        }
    }

    /// Takes the first frame of a flow out.
    fn take(&mut self, frames: &Frames, i: u32) -> Option<Waiting> {
        let flow = &mut self.flows[i as usize];
        let waiting = flow.list.pop(frames)?;
        let bytes = flow.bytes - waiting.charge.bytes;
        if flow.list.is_empty() {
            self.tags[i as usize / WAYS][i as usize % WAYS] = FREE;
        }
        self.backlog.leave(waiting.charge);
        self.set_bytes(i, bytes);
        Some(waiting)
    }

    /// Drops from the longest flow what is too much. Was a frame dropped that waited alone in the queue of flow `i`?
    fn drop_from_longest(&mut self, cx: &mut Cx<'_>, i: u32) -> bool {
        let mut dropped = false;
        while self.holds.is_exceeded(&self.backlog) && self.lengths != 0 {
            let size = 127 - self.lengths.leading_zeros();
            let longest = self.sizes[size as usize].first();
            let Some(waiting) = self.take(cx.frames, longest) else { break };
            self.backlog.drop(cx, waiting.frame, DropReason::QueueFull);
            if self.flows[longest as usize].list.is_empty() {
                self.leave_round(longest);
                dropped |= longest == i;
            }
        }
        self.go_on();
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
        if !self.holds.admits_alone(charge) {
            return Some(self.backlog.drop(cx, waiting.frame, DropReason::QueueFull));
        }
        let i = self.find(hash(cx.frames, &waiting, self.params.seed));
        let flow = &mut self.flows[i as usize];
        let (begins, bytes) = (flow.list.is_empty(), flow.bytes + charge.bytes);
        flow.list.push(cx.frames, waiting);
        self.backlog.enter_first(charge);
        self.set_bytes(i, bytes);
        if begins {
            self.begin(i);
        }
        let dropped = self.drop_from_longest(cx, i);
        self.backlog.note_peak();
        dropped.then_some(DropReason::QueueFull)
    }

    fn pop(&mut self, cx: &mut Cx<'_>) -> Option<Waiting> {
        self.release(cx.frames)
    }

    fn head(&self, frames: &Frames) -> Option<Head> {
        let i = self.rounds[usize::from(self.round)].first();
        self.flows.get(i as usize)?.list.head(frames)
    }

    fn release(&mut self, frames: &Frames) -> Option<Waiting> {
        if self.occupied == 0 {
            return None;
        }
        let i = self.rounds[usize::from(self.round)].first();
        let waiting = self.take(frames, i)?;
        self.charge(i, waiting.charge.bytes);
        Some(waiting)
    }

    fn set_limit(&mut self, limit: QueueLimit, rate: Rate) {
        self.holds = Bound::new(limit, rate);
    }
}
