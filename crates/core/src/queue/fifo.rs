//! First in, first out: drop tail, and a step that marks (ECN).

use super::backlog::Backlog;
use super::limit::{Bound, QueueLimit};
use super::{mark, Discipline};
use crate::frame::{Frames, Head, List, Waiting};
use crate::node::Cx;
use crate::rate::Rate;
use crate::stats::DropReason;

/// Queue that refuses packets that do not fit behind the waiting ones.
#[derive(Debug)]
pub struct Fifo {
    list: List,
    pub(super) backlog: Backlog,
    mark: Option<QueueLimit>,
    /// Limit and marking threshold at the rate of the link that the queue feeds.
    holds: Bound,
    marks_above: Bound,
}

impl Fifo {
    /// Creates a queue in front of `rate`, with room for `limit`. With `mark`, an ECN-capable packet that
    /// finds more than this waiting is marked.
    pub fn new(limit: QueueLimit, mark: Option<QueueLimit>, rate: Rate) -> Fifo {
        let unlimited = Bound::new(QueueLimit::Unlimited, rate);
        let (list, backlog) = (List::new(), Backlog::default());
        let mut fifo = Fifo { list, backlog, mark, holds: unlimited, marks_above: unlimited };
        fifo.set_limit(limit, rate);
        fifo
    }

    /// Creates a queue of `limit` packets at any rate.
    pub fn of_packets(limit: u32) -> Fifo {
        Fifo::new(QueueLimit::Packets(limit), None, Rate::mbit(1))
    }
}

impl Discipline for Fifo {
    fn push(&mut self, cx: &mut Cx<'_>, waiting: Waiting) -> Option<DropReason> {
        let charge = waiting.charge;
        if !self.holds.admits(&self.backlog, charge) {
            return Some(self.backlog.drop(cx, waiting, DropReason::QueueFull));
        }
        let congested = self.marks_above.is_exceeded(&self.backlog);
        if congested && mark::mark(cx.frames.parked_bytes_mut(&waiting.frame)) {
            self.backlog.stats.marks += u64::from(charge.packets);
        }
        self.backlog.enter(charge);
        self.list.push(cx.frames, waiting);
        None
    }

    fn pop(&mut self, cx: &mut Cx<'_>) -> Option<Waiting> {
        self.release(cx.frames)
    }

    fn head(&self, frames: &Frames) -> Option<Head> {
        self.list.head(frames)
    }

    fn release(&mut self, frames: &Frames) -> Option<Waiting> {
        let waiting = self.list.pop(frames)?;
        self.backlog.leave(waiting.charge);
        Some(waiting)
    }

    fn set_limit(&mut self, limit: QueueLimit, rate: Rate) {
        self.holds = Bound::new(limit, rate);
        self.marks_above = Bound::new(self.mark.unwrap_or(QueueLimit::Unlimited), rate);
    }
}
