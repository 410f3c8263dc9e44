//! FQ-CoDel, "Flow Queue CoDel" (RFC 8290): hashes flows into queues, each with its own CoDel. A deficit
//! round robin that prefers new queues serves them.
//!
//! - The hash of a frame's flow selects its queue ([`Key`]). A queue that was empty becomes a new one, with a
//!   quantum to send (§4.1). Flows that fall into one queue share it.
//! - New queues are served before old ones, each until its deficit is used up. It then gets another quantum
//!   and becomes the last of the old ones. A queue that is found empty leaves the list. A new queue becomes
//!   an old one first, so that no flow stays new by sending little at a time (§4.2).
//! - Beyond the limit, the queue with most bytes loses half of its bytes from its head, up to 64 frames
//!   (§4.1).
//! - Each queue's CoDel judges by that queue's bytes.

use super::backlog::Backlog;
use super::codel::{self, Fate, Law};
use super::limit::{Bound, QueueLimit};
use super::{mark, Discipline};
use crate::base::linked::{self, Linked, LinkedList, Links};
use crate::flow::Key;
use crate::frame::{Frames, Head, List, Waiting};
use crate::node::Cx;
use crate::rate::Rate;
use crate::stats::DropReason;
use crate::wire;

#[cfg(test)]
mod tests;

/// Maximum number of frames dropped at once from the longest queue.
const BATCH: usize = 64;

/// Parameters of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Params {
    /// Number of queues that flows are hashed into, 1 to 65,536.
    pub flows: u32,
    /// Bytes that a queue may send per turn; above zero.
    pub quantum: u32,
    /// Parameters of each queue's CoDel.
    pub codel: codel::Params,
}

impl Default for Params {
    /// Defaults of RFC 8290 §5.2: 1,024 queues of 1,514 bytes, with marking where possible (§5.2.6).
    fn default() -> Params {
        let codel = codel::Params { ecn: true, ..codel::Params::default() };
        Params { flows: 1024, quantum: 1514, codel }
    }
}

/// One of the queues.
#[derive(Debug)]
pub(super) struct Flow {
    list: List,
    bytes: u64,
    law: Law,
    deficit: i64,
    /// True while in the list of new or old queues.
    active: bool,
    links: Links,
}

/// Returns the links in the lists of new and old queues.
fn links(flows: &mut [Flow]) -> impl Linked + '_ {
    linked::by(flows, |flow| &mut flow.links)
}

/// FQ-CoDel. See the [module documentation](self).
#[derive(Debug)]
pub struct FqCodel {
    flows: Box<[Flow]>,
    new: LinkedList,
    old: LinkedList,
    pub(super) backlog: Backlog,
    params: Params,
    seed: u64,
    /// Limit at the rate of the link that the queues feed.
    holds: Bound,
}

impl FqCodel {
    /// Creates queues in front of `rate`, with room for `limit` together. The hash is keyed with `seed`.
    pub fn new(params: Params, limit: QueueLimit, rate: Rate, seed: u64) -> FqCodel {
        let empty = || Flow {
            list: List::new(),
            bytes: 0,
            law: Law::default(),
            deficit: 0,
            active: false,
            links: Links::NONE,
        };
        FqCodel {
            flows: (0..params.flows.clamp(1, 1 << 16)).map(|_| empty()).collect(),
            new: LinkedList::EMPTY,
            old: LinkedList::EMPTY,
            backlog: Backlog::default(),
            params: Params { quantum: params.quantum.max(1), ..params },
            seed,
            holds: Bound::new(limit, rate),
        }
    }

    fn queue_of(&self, frames: &Frames, waiting: &Waiting) -> u32 {
        let (bytes, len) = frames.parked_bytes(&waiting.frame);
        let key = wire::any_packet(bytes, len).map(|p| Key::of_packet(bytes, &p)).unwrap_or_default();
        ((u128::from(key.hash(self.seed)) * self.flows.len() as u128) >> 64) as u32
    }

    /// Dequeues the first frame of a queue.
    fn take(&mut self, frames: &Frames, i: u32) -> Option<Waiting> {
        let flow = &mut self.flows[i as usize];
        let waiting = flow.list.pop(frames)?;
        flow.bytes -= waiting.charge.bytes;
        self.backlog.leave(waiting.charge);
        Some(waiting)
    }

    /// Drops from the longest queue. Returns whether queue `i` is empty as a result.
    fn shorten(&mut self, cx: &mut Cx<'_>, i: u32) -> bool {
        let longest = (0..).zip(&*self.flows).max_by_key(|(n, flow)| (flow.bytes, core::cmp::Reverse(*n)));
        let Some((longest, keep)) = longest.map(|(n, flow)| (n, flow.bytes / 2)) else { return false };
        for _ in 0..BATCH {
            let Some(waiting) = self.take(cx.frames, longest) else { break };
            self.backlog.drop(cx, waiting, DropReason::QueueFull);
            if self.flows[longest as usize].bytes <= keep {
                break;
            }
        }
        longest == i && self.flows[i as usize].list.is_empty()
    }

    /// Dequeues the next frame of a queue that its CoDel lets leave.
    fn judged(&mut self, cx: &mut Cx<'_>, i: u32) -> Option<Waiting> {
        let codel = self.params.codel;
        let mut again = false;
        while let Some(waiting) = self.take(cx.frames, i) {
            let Flow { law, bytes, .. } = &mut self.flows[i as usize];
            if law.judge(&codel, cx.now, cx.now.since(waiting.since), *bytes, again) == Fate::Pass {
                return Some(waiting);
            }
            if codel.ecn && mark::mark(cx.frames.parked_bytes_mut(&waiting.frame)) {
                law.marked(&codel);
                self.backlog.stats.marks += u64::from(waiting.charge.packets);
                return Some(waiting);
            }
            self.backlog.drop(cx, waiting, DropReason::Aqm);
            again = true;
        }
        self.flows[i as usize].law.found_nothing();
        None
    }

    /// Returns the queue whose turn it is, and whether it is a new one.
    fn turn(&self) -> Option<(u32, bool)> {
        self.new.first().map(|i| (i, true)).or_else(|| self.old.first().map(|i| (i, false)))
    }

    /// Moves the queue whose turn it was behind the old ones, or out of the lists.
    fn pass_turn(&mut self, new: bool, stays: bool) {
        let list = if new { &mut self.new } else { &mut self.old };
        let Some(i) = list.first() else { return };
        list.remove(&mut links(&mut self.flows), i);
        match stays {
            true => self.old.push(&mut links(&mut self.flows), i),
            false => self.flows[i as usize].active = false,
        }
    }
}

impl Discipline for FqCodel {
    fn push(&mut self, cx: &mut Cx<'_>, waiting: Waiting) -> Option<DropReason> {
        let i = self.queue_of(cx.frames, &waiting);
        self.params.codel.note_packet(waiting.charge);
        let flow = &mut self.flows[i as usize];
        flow.bytes += waiting.charge.bytes;
        self.backlog.enter_first(waiting.charge);
        flow.list.push(cx.frames, waiting);
        if !flow.active {
            (flow.active, flow.deficit) = (true, self.params.quantum.into());
            self.new.push(&mut links(&mut self.flows), i);
        }
        let mut lost = false;
        while self.holds.is_exceeded(&self.backlog) {
            lost |= self.shorten(cx, i);
        }
        self.backlog.note_peak();
        lost.then_some(DropReason::QueueFull)
    }

    fn pop(&mut self, cx: &mut Cx<'_>) -> Option<Waiting> {
        while let Some((i, new)) = self.turn() {
            let flow = &mut self.flows[i as usize];
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.params.quantum);
                self.pass_turn(new, true);
                continue;
            }
            if let Some(waiting) = self.judged(cx, i) {
                let bytes = i64::try_from(waiting.charge.bytes).unwrap_or(i64::MAX);
                let flow = &mut self.flows[i as usize];
                flow.deficit = flow.deficit.saturating_sub(bytes);
                return Some(waiting);
            }
            self.pass_turn(new, new && self.old.first().is_some());
        }
        None
    }

    /// Finds the first frame of the queue that is the first to send, after as many turns as this takes.
    fn head(&self, frames: &Frames) -> Option<Head> {
        let quantum = i64::from(self.params.quantum);
        let turns = |flow: &Flow| if flow.deficit > 0 { 0 } else { 1 - flow.deficit / quantum };
        let waiting = [self.new, self.old];
        let waiting = waiting.iter().flat_map(|list| list.iter(|i| self.flows[i as usize].links));
        let waiting = waiting.map(|i| &self.flows[i as usize]).filter(|flow| !flow.list.is_empty());
        waiting.min_by_key(|flow| turns(flow)).and_then(|flow| flow.list.head(frames))
    }

    fn release(&mut self, frames: &Frames) -> Option<Waiting> {
        loop {
            let (i, new) = self.turn()?;
            if let Some(waiting) = self.take(frames, i) {
                return Some(waiting);
            }
            self.pass_turn(new, false);
        }
    }

    fn set_limit(&mut self, limit: QueueLimit, rate: Rate) {
        self.holds = Bound::new(limit, rate);
    }
}
