//! Queues: in front of links, of a gateway's ports, and of classes.
//!
//! A queue decides which frames wait, which are lost, and in which order they leave. It does not decide when: whoever owns
//! it takes a frame out with [`Queue::pop`] as soon as that can be sent, which is when its departure is known,
//! and not before. So a discipline may change its mind about any frame that waits, and a rate may
//! change while they do. What has left a queue and flies is a [link](crate::link)'s.
//!
//! # The interface
//!
//! - [`Queue::push`]: a frame arrives at `cx.now`. The discipline keeps it, or drops it or others in its place.
//! - [`Queue::pass`]: a frame arrives and can be sent at once: it does not wait, but disciplines that judge arrivals or departures judge it.
//! - [`Queue::pop`]: one frame can be sent from `cx.now` on. The discipline may drop some before it finds
//!   the one.
//! - [`Queue::head`]: the frame that `pop` would look at first, with its charge and the time it arrived.
//! - [`Queue::set_limit`], [`Queue::release`]: another limit or rate; what waits is handed over to another queue.
//! - [`Queue::packets`], [`Queue::bytes`]: what waits now. [`Queue::stats`]: peaks, marks, and drops by reason.
//!
//! Times never go backwards from call to call. A frame ends in a queue by `cx.drop`, and each such drop is in
//! [`Stats::drops`], or it is absorbed by an ACK filter ([`Stats::filtered`]). Disciplines are a closed set, told apart by one match: no call is dynamic, and none
//! allocates. Frames are parked in the pool ([`List`](crate::frame::List)), so that a discipline may have as many
//! lists as there are flows.

pub mod ack_filter;
mod aqm;
mod backlog;
pub mod codel;
pub mod dualpi2;
mod fifo;
pub mod fq_codel;
mod limit;
mod links;
mod mark;
pub mod pfq;
pub mod red;
mod rounds;
mod sizes;
#[cfg(test)]
mod tests;

pub use ack_filter::AckFilter;
pub use aqm::Aqm;
pub(crate) use backlog::Backlog;
pub use backlog::Stats;
pub use codel::Codel;
pub use dualpi2::DualPi2;
pub use fifo::Fifo;
pub use fq_codel::FqCodel;
pub(crate) use limit::Bound;
pub use limit::QueueLimit;
pub use pfq::Pfq;
pub use red::Red;

use crate::frame::{Frames, Head, Waiting};
use crate::node::Cx;
use crate::rate::Rate;
use crate::stats::DropReason;

/// What a discipline does. A new one is a file with this and with a field `backlog`, which counts what waits in it and what has become of the
/// rest, a variant of [`Queue`] and its row in `each`.
trait Discipline {
    /// See [`Queue::push`].
    fn push(&mut self, cx: &mut Cx<'_>, waiting: Waiting) -> Option<DropReason>;
    /// See [`Queue::admit`].
    fn admit(&mut self, cx: &mut Cx<'_>, waiting: Waiting) {
        self.push(cx, waiting);
    }
    /// See [`Queue::pass`].
    fn pass(&mut self, _cx: &mut Cx<'_>, waiting: Waiting) -> Option<Waiting> {
        Some(waiting)
    }
    /// See [`Queue::pop`].
    fn pop(&mut self, cx: &mut Cx<'_>) -> Option<Waiting>;
    /// See [`Queue::head`].
    fn head(&self, frames: &Frames) -> Option<Head>;
    /// See [`Queue::release`].
    fn release(&mut self, frames: &Frames) -> Option<Waiting>;
    /// See [`Queue::set_limit`].
    fn set_limit(&mut self, limit: QueueLimit, rate: Rate);
}

/// A queue of one of the disciplines.
#[derive(Debug)]
pub enum Queue {
    /// First in, first out, drop tail, with step marking if wanted.
    Fifo(Fifo),
    /// First in, first out, with CoDel.
    Codel(Codel),
    /// A queue for each flow, served in turn.
    Pfq(Box<Pfq>),
    /// A queue for each flow, new ones first, each with CoDel.
    FqCodel(Box<FqCodel>),
    /// First in, first out, with RED.
    Red(Box<Red>),
    /// Two queues, coupled.
    DualPi2(Box<DualPi2>),
    /// Erases ACKs that newer ones make redundant.
    AckFilter(Box<AckFilter>),
}

/// What a queue is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How much may wait.
    pub limit: QueueLimit,
    /// What is done with it.
    pub kind: Kind,
}

/// A discipline and what it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// First in, first out, drop tail.
    Fifo,
    /// First in, first out, with CoDel.
    Codel(codel::Params),
    /// A queue for each flow, served in turn.
    Pfq(pfq::Params),
    /// A queue for each flow, new ones first, each with CoDel.
    FqCodel {
        /// What it is told.
        params: fq_codel::Params,
        /// Seed of the hash, so that nobody outside can aim at the queue of another.
        seed: u64,
    },
    /// First in, first out, with RED.
    Red {
        /// What it is told.
        params: red::Params,
        /// Seed of what it draws.
        seed: u64,
    },
    /// Two queues, coupled.
    DualPi2(dualpi2::Params),
    /// Erases ACKs that newer ones make redundant.
    AckFilter(ack_filter::Params),
}

impl Kind {
    /// The same, whose hashes and draws come from `seed`.
    #[must_use]
    pub fn seeded(self, seed: u64) -> Kind {
        match self {
            Kind::Fifo | Kind::Codel(_) | Kind::DualPi2(_) => self,
            Kind::Pfq(params) => Kind::Pfq(pfq::Params { seed, ..params }),
            Kind::AckFilter(params) => Kind::AckFilter(ack_filter::Params { seed, ..params }),
            Kind::FqCodel { params, .. } => Kind::FqCodel { params, seed },
            Kind::Red { params, .. } => Kind::Red { params, seed },
        }
    }
}

impl Config {
    /// A queue in front of `rate`.
    pub fn build(&self, rate: Rate) -> Queue {
        match self.kind {
            Kind::Fifo => Queue::Fifo(Fifo::new(self.limit, None, rate)),
            Kind::Codel(params) => Queue::Codel(Codel::new(params, self.limit, rate)),
            Kind::Pfq(params) => Queue::Pfq(Box::new(Pfq::new(params, self.limit, rate))),
            Kind::FqCodel { params, seed } => {
                Queue::FqCodel(Box::new(FqCodel::new(params, self.limit, rate, seed)))
            }
            Kind::Red { params, seed } => Queue::Red(Box::new(Red::new(params, self.limit, rate, seed))),
            Kind::DualPi2(params) => Queue::DualPi2(Box::new(DualPi2::new(params, self.limit, rate))),
            Kind::AckFilter(params) => Queue::AckFilter(Box::new(AckFilter::new(params, self.limit, rate))),
        }
    }
}

/// Calls the discipline, whichever it is.
macro_rules! each {
    ($queue:expr, $discipline:ident => $call:expr) => {
        match $queue {
            Queue::Fifo($discipline) => $call,
            Queue::Codel($discipline) => $call,
            Queue::Pfq($discipline) => $call,
            Queue::FqCodel($discipline) => $call,
            Queue::Red($discipline) => $call,
            Queue::DualPi2($discipline) => $call,
            Queue::AckFilter($discipline) => $call,
        }
    };
}

impl Queue {
    /// A frame arrives, at `cx.now`. Why it was not taken in and has been dropped, if so.
    pub fn push(&mut self, cx: &mut Cx<'_>, waiting: Waiting) -> Option<DropReason> {
        each!(self, q => q.push(cx, waiting))
    }

    /// A frame has waited in another queue, and goes on here. Nothing is signalled; where its limit leaves room, it is taken in.
    pub fn admit(&mut self, cx: &mut Cx<'_>, waiting: Waiting) {
        each!(self, q => q.admit(cx, waiting));
    }

    /// A frame arrives while nothing waits, and can be sent at once, at `cx.now`. It does not wait, and no
    /// limit holds for it. `None` if the discipline has dropped it all the same.
    pub fn pass(&mut self, cx: &mut Cx<'_>, waiting: Waiting) -> Option<Waiting> {
        each!(self, q => q.pass(cx, waiting))
    }

    /// The next frame to be sent, which begins at `cx.now`. `None` if no frame waits, or none is left of those that did.
    pub fn pop(&mut self, cx: &mut Cx<'_>) -> Option<Waiting> {
        each!(self, q => q.pop(cx))
    }

    /// What is known of the frame that [`Queue::pop`] would look at first.
    pub fn head(&self, frames: &Frames) -> Option<Head> {
        each!(self, q => q.head(frames))
    }

    /// The next frame in the discipline's order, whatever it has waited: nothing is signalled. For a queue that is given up.
    pub fn release(&mut self, frames: &Frames) -> Option<Waiting> {
        each!(self, q => q.release(frames))
    }

    /// The limit, and the rate that the queue waits for, are others now. What it holds stays, even if that is more than its limit
    /// has become, until frames come for which there is no room.
    pub fn set_limit(&mut self, limit: QueueLimit, rate: Rate) {
        each!(self, q => q.set_limit(limit, rate));
    }

    /// It goes on counting from what another one has counted.
    pub fn set_stats(&mut self, stats: Stats) {
        *self.stats_mut() = stats;
    }

    pub(crate) fn stats_mut(&mut self) -> &mut Stats {
        &mut each!(self, q => &mut q.backlog).stats
    }

    /// Packets that wait.
    pub fn packets(&self) -> u64 {
        self.backlog().packets()
    }
    /// Bytes that wait, as charged.
    pub fn bytes(&self) -> u64 {
        self.backlog().bytes()
    }
    /// What the queue has done.
    pub fn stats(&self) -> &Stats {
        &self.backlog().stats
    }

    fn backlog(&self) -> &Backlog {
        each!(self, q => &q.backlog)
    }
}
