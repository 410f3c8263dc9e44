//! Queues: in front of links, of a gateway's ports, and of classes.
//!
//! A queue decides which frames wait, which are lost, and in which order they leave. It does not decide when.
//! Its owner calls [`Queue::pop`] only once the frame can be sent and its departure is known. So a discipline
//! may change its decision about any waiting frame, and the rate may change meanwhile. Frames in flight after
//! the queue belong to a [link](crate::link).
//!
//! # The interface
//!
//! - [`Queue::push`]: a frame arrives at `cx.now`. The discipline keeps it, or drops it or others in its
//!   place.
//! - [`Queue::pass`]: a frame arrives and can be sent at once. It does not wait, but disciplines that judge
//!   arrivals or departures judge it.
//! - [`Queue::pop`]: one frame can be sent from `cx.now` on. The discipline may drop some before it finds
//!   this one.
//! - [`Queue::head`]: the frame that `pop` would consider first, with its charge and time of arrival.
//! - [`Queue::set_limit`], [`Queue::release`]: change the limit or rate; hand the waiting frames over to
//!   another queue.
//! - [`Queue::packets`], [`Queue::bytes`]: current length. [`Queue::stats`]: peaks, marks, and drops by
//!   reason.
//!
//! Times never go backwards from call to call. A frame ends in a queue by `cx.drop`, counted in
//! [`Stats::drops`], or an ACK filter absorbs it ([`Stats::filtered`]). Disciplines are told apart by one
//! match: no call is dynamic but those to a discipline that a program has added ([`own`]), and none
//! allocates. Frames are parked in the pool ([`List`](crate::frame::List)), so that a discipline may have one
//! list per flow.

pub mod ack_filter;
mod aqm;
mod backlog;
pub mod codel;
pub mod dualpi2;
mod fifo;
pub mod fq_codel;
mod leaf;
mod limit;
pub mod own;
pub mod pfq;
pub mod red;
mod rounds;
mod sizes;
#[cfg(test)]
mod tests;
pub mod tins;

use crate::packet::mark;

pub use ack_filter::AckFilter;
pub use aqm::Aqm;
pub(crate) use backlog::Backlog;
pub use backlog::Stats;
pub use codel::Codel;
pub use dualpi2::DualPi2;
pub use fifo::Fifo;
pub use fq_codel::FqCodel;
pub use leaf::LeafStats;
pub(crate) use leaf::HISTOGRAMS;
pub(crate) use limit::Bound;
pub use limit::QueueLimit;
pub use own::OwnQueue;
pub use pfq::Pfq;
pub use red::Red;
pub use tins::Tins;

use crate::frame::{Frames, Head, Waiting};
use crate::node::Cx;
use crate::rate::Rate;
use crate::stats::DropReason;

/// Interface of a discipline. A new discipline is a file that implements this, a variant of [`Queue`] and its
/// row in `each`. Its field `backlog` counts the waiting frames and the lost ones.
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
    /// First in, first out, drop tail, with optional step marking.
    Fifo(Fifo),
    /// First in, first out, with CoDel.
    Codel(Codel),
    /// One queue per flow, served in turn.
    Pfq(Box<Pfq>),
    /// One queue per flow, new ones first, each with CoDel.
    FqCodel(Box<FqCodel>),
    /// First in, first out, with RED.
    Red(Box<Red>),
    /// Two coupled queues.
    DualPi2(Box<DualPi2>),
    /// Erases ACKs that newer ones make redundant.
    AckFilter(Box<AckFilter>),
    /// Queues by codepoint.
    Tins(Box<Tins>),
    /// Discipline that a program has added.
    Own(Box<OwnQueue>),
}

/// Configuration of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Config {
    /// Limit of the queue.
    pub limit: QueueLimit,
    /// Discipline of the queue.
    pub kind: Kind,
    /// Tins, each with a queue like this.
    pub tins: Option<tins::Diffserv>,
}

/// Discipline with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Kind {
    /// First in, first out, drop tail.
    Fifo,
    /// First in, first out, with CoDel.
    Codel(codel::Params),
    /// One queue per flow, served in turn.
    Pfq(pfq::Params),
    /// One queue per flow, new ones first, each with CoDel.
    FqCodel {
        /// Parameters.
        params: fq_codel::Params,
        /// Seed of the hash, so that an outsider cannot aim at another flow's queue.
        seed: u64,
    },
    /// First in, first out, with RED.
    Red {
        /// Parameters.
        params: red::Params,
        /// Seed of the random draws.
        seed: u64,
    },
    /// Two coupled queues.
    DualPi2(dualpi2::Params),
    /// Erases ACKs that newer ones make redundant.
    AckFilter(ack_filter::Params),
}

impl Kind {
    /// Replaces the seed of hashes and draws.
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
    /// Builds a queue in front of `rate`.
    pub fn build(&self, rate: Rate) -> Queue {
        if let Some(diffserv) = self.tins {
            return Queue::Tins(Box::new(Tins::new(diffserv, self, rate)));
        }
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

/// Calls the discipline of a queue.
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
            Queue::Tins($discipline) => $call,
            Queue::Own($discipline) => $call,
        }
    };
}

impl Queue {
    /// Enqueues a frame that arrives at `cx.now`. Returns the reason if the frame was dropped instead.
    pub fn push(&mut self, cx: &mut Cx<'_>, waiting: Waiting) -> Option<DropReason> {
        each!(self, q => q.push(cx, waiting))
    }

    /// Takes over a frame that has waited in another queue. Signals nothing; the limit still applies.
    pub fn admit(&mut self, cx: &mut Cx<'_>, waiting: Waiting) {
        each!(self, q => q.admit(cx, waiting));
    }

    /// Passes a frame that arrives while nothing waits and can be sent at once, at `cx.now`. It does not
    /// wait, and no limit applies. Returns `None` if the discipline has dropped it all the same.
    pub fn pass(&mut self, cx: &mut Cx<'_>, waiting: Waiting) -> Option<Waiting> {
        each!(self, q => q.pass(cx, waiting))
    }

    /// Dequeues the next frame to send, which begins at `cx.now`. Returns `None` if no frame waits, or if all
    /// were dropped.
    pub fn pop(&mut self, cx: &mut Cx<'_>) -> Option<Waiting> {
        each!(self, q => q.pop(cx))
    }

    /// Returns the frame that [`Queue::pop`] would consider first, without dequeuing it.
    pub fn head(&self, frames: &Frames) -> Option<Head> {
        each!(self, q => q.head(frames))
    }

    /// Dequeues the next frame in the discipline's order without any signal. Used when a queue is given up.
    pub fn release(&mut self, frames: &Frames) -> Option<Waiting> {
        each!(self, q => q.release(frames))
    }

    /// Changes the limit and the rate of the link that the queue feeds. Waiting frames stay, even above the
    /// new limit, until frames arrive that find no room.
    pub fn set_limit(&mut self, limit: QueueLimit, rate: Rate) {
        each!(self, q => q.set_limit(limit, rate));
    }

    /// Continues the counters of another queue.
    pub fn set_stats(&mut self, stats: Stats) {
        *self.stats_mut() = stats;
    }

    pub(crate) fn stats_mut(&mut self) -> &mut Stats {
        &mut each!(self, q => &mut q.backlog).stats
    }

    /// Returns the number of waiting packets.
    pub fn packets(&self) -> u64 {
        self.backlog().packets()
    }
    /// Returns the number of waiting bytes, as charged.
    pub fn bytes(&self) -> u64 {
        self.backlog().bytes()
    }
    /// Returns the counters.
    pub fn stats(&self) -> &Stats {
        &self.backlog().stats
    }

    fn backlog(&self) -> &Backlog {
        each!(self, q => &q.backlog)
    }
}
