//! RED, "Random Early Detection" (Floyd and Jacobson, IEEE/ACM Transactions on Networking 1(4), 1993): drops
//! or marks frames with a probability that grows with the average queue length.
//!
//! The average is exponentially weighted. Its samples are the bytes that each arrival finds waiting (§4, fig.
//! 2), also if the server is idle. During idle time, the average falls as if small packets of [`SMALL`] bytes
//! had arrived (§11). Between the two thresholds the probability grows from 0 to `max_p`. It is spread out,
//! so that the distances between signals are uniform and not geometric (§7, method 2). From the upper
//! threshold to twice that threshold it grows on to 1: the "gentle" variant (Floyd, "Recommendation on using
//! the gentle_ variant of RED", 2000). Above that every frame is dropped, even an ECN-capable one (RFC 3168
//! §7).
//!
//! Arithmetic is in integers: the average is kept times 2^weight, as in §11, and probabilities are in units
//! of 10^-12. Two things are left out: adapting `max_p`, and probabilities that depend on a packet's length.

use super::backlog::Backlog;
use super::limit::{Bound, QueueLimit};
use super::{mark, Discipline};
use crate::frame::{Frames, Head, List, Waiting};
use crate::node::Cx;
use crate::rate::Rate;
use crate::rng::Rng;
use crate::stats::DropReason;
use crate::time::{Duration, Time};

#[cfg(test)]
mod tests;

/// Size of the packets by which the average falls during idle time, in bytes.
pub const SMALL: u64 = 1000;
/// Probability 1.
const ONE: u64 = 1_000_000_000_000;

/// Parameters of RED.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Params {
    /// Lower threshold: nothing is signalled up to this average, in bytes.
    pub min: u64,
    /// Upper threshold, above `min`: the probability is `max_p` here, and 1 at twice this average.
    pub max: u64,
    /// Probability at `max`, in units of 10^-12, at most 10^12.
    pub max_p: u64,
    /// Weight of each arrival in the average is 2^-weight; 0 to 24.
    pub weight: u8,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
}

impl Default for Params {
    /// Defaults of ns-2, by Floyd's recommendations of 1997: 5 and 15 full Ethernet frames, 10 %, 1/512.
    fn default() -> Params {
        Params { min: 5 * 1514, max: 15 * 1514, max_p: ONE / 10, weight: 9, ecn: false }
    }
}

/// Verdict on a frame that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Pass,
    /// The frame is dropped, or marked.
    Signal,
    /// The frame is dropped.
    Drop,
}

/// The average and the random draws.
#[derive(Debug)]
struct Law {
    params: Params,
    rng: Rng,
    /// Average times 2^weight.
    average: u64,
    /// Frames that passed since the last signal, while signals are possible.
    count: u64,
    /// True if `count` includes the last frame.
    counts: bool,
    /// Time at which the last frame will have been sent, if none waits.
    idle: Option<Time>,
}

impl Law {
    fn new(params: Params, seed: u64) -> Law {
        Law { params, rng: Rng::new(seed), average: 0, count: 0, counts: false, idle: Some(Time::ZERO) }
    }

    /// Judges a frame that arrives at `now` and finds `bytes` waiting. `small` is the time of a small packet.
    fn arrives(&mut self, now: Time, bytes: u64, small: Duration) -> Fate {
        self.follow(now, bytes, small);
        let p = match self.probability() {
            0 => {
                self.counts = false;
                return Fate::Pass;
            }
            p => p,
        };
        self.count = if self.counts { self.count + 1 } else { 0 };
        self.counts = p < ONE;
        if p >= ONE {
            return Fate::Drop;
        }
        // The signalling probability is p / (1 - count × p). The draw is from its divisor.
        let left = u128::from(ONE).saturating_sub(u128::from(self.count) * u128::from(p)) as u64;
        if left <= p || self.rng.below(left) < p {
            self.counts = false;
            return Fate::Signal;
        }
        Fate::Pass
    }

    fn follow(&mut self, now: Time, bytes: u64, small: Duration) {
        let weight = self.params.weight;
        if let Some(since) = self.idle.take() {
            let packets = now.since(since).as_nanos() / small.as_nanos().max(1);
            self.average = ((u128::from(self.average) * u128::from(power(weight, packets))) >> 32) as u64;
        }
        self.average = self.average - (self.average >> weight) + bytes;
    }

    /// Returns the probability before it is spread out.
    fn probability(&self) -> u64 {
        let Params { min, max, max_p, weight, .. } = self.params;
        let part = |of: u64, above: u64, range: u64| {
            (u128::from(of) * u128::from(above) / u128::from(range.max(1))) as u64
        };
        match self.average >> weight {
            average if average < min => 0,
            average if average < max => part(max_p, average - min, max - min),
            average if average < max.saturating_mul(2) => max_p + part(ONE - max_p, average - max, max),
            _ => ONE,
        }
    }
}

/// Computes (1 - 2^-weight)^n, in units of 2^-32, by squaring; each step rounds down.
fn power(weight: u8, mut n: u64) -> u64 {
    const UNIT: u64 = 1 << 32;
    let (mut base, mut result) = (UNIT - (UNIT >> weight), UNIT);
    while n > 0 && result > 0 {
        if n & 1 == 1 {
            result = (result * base) >> 32;
        }
        base = (base * base) >> 32;
        n >>= 1;
    }
    result
}

/// First in, first out, with RED on arrival.
#[derive(Debug)]
pub struct Red {
    list: List,
    pub(super) backlog: Backlog,
    law: Law,
    /// Limit at the rate of the link that the queue feeds.
    holds: Bound,
    rate: Rate,
}

impl Red {
    /// Creates a queue in front of `rate`, with room for `limit`. Random draws come from `seed`.
    pub fn new(params: Params, limit: QueueLimit, rate: Rate, seed: u64) -> Red {
        let (list, backlog, holds) = (List::new(), Backlog::default(), Bound::new(limit, rate));
        Red { list, backlog, law: Law::new(params, seed), holds, rate }
    }

    /// Returns the average of the waiting bytes.
    pub fn average(&self) -> u64 {
        self.law.average >> self.law.params.weight
    }
}

impl Red {
    /// Marks a signalled frame, if `ecn` is set and the packet is ECN-capable. Returns whether to drop it.
    fn drops(&mut self, cx: &mut Cx<'_>, waiting: &Waiting, fate: Fate) -> bool {
        let ecn = self.law.params.ecn && fate == Fate::Signal;
        let marked = ecn && mark::mark(cx.frames.parked_bytes_mut(&waiting.frame));
        if marked {
            self.backlog.stats.marks += u64::from(waiting.charge.packets);
        }
        fate != Fate::Pass && !marked
    }

    /// Records that the queue is empty, and that the server begins a frame of `bytes` now.
    fn rests_behind(&mut self, now: Time, bytes: u64) {
        self.law.idle = Some(now + self.rate.time_for(bytes));
    }
}

impl Discipline for Red {
    fn push(&mut self, cx: &mut Cx<'_>, waiting: Waiting) -> Option<DropReason> {
        // A frame may still be in transmission when none waits: the server is idle only after it.
        let idle = self.law.idle.map(|since| since.max(cx.now));
        let fate = self.law.arrives(cx.now, self.backlog.bytes(), self.rate.time_for(SMALL));
        if !self.holds.admits(&self.backlog, waiting.charge) {
            (self.law.counts, self.law.idle) = (false, idle);
            return Some(self.backlog.drop(cx, waiting, DropReason::QueueFull));
        }
        if self.drops(cx, &waiting, fate) {
            self.law.idle = idle;
            return Some(self.backlog.drop(cx, waiting, DropReason::Aqm));
        }
        self.admit(cx, waiting);
        None
    }

    /// Each arrival is a sample of the average, and may be signalled (Floyd and Jacobson 1993, fig. 2).
    fn pass(&mut self, cx: &mut Cx<'_>, waiting: Waiting) -> Option<Waiting> {
        let fate = self.law.arrives(cx.now, 0, self.rate.time_for(SMALL));
        if self.drops(cx, &waiting, fate) {
            self.rests_behind(cx.now, 0);
            self.backlog.drop(cx, waiting, DropReason::Aqm);
            return None;
        }
        self.rests_behind(cx.now, waiting.charge.bytes);
        Some(waiting)
    }

    fn admit(&mut self, cx: &mut Cx<'_>, waiting: Waiting) {
        self.law.idle = None;
        self.backlog.enter(waiting.charge);
        self.list.push(cx.frames, waiting);
    }

    fn pop(&mut self, cx: &mut Cx<'_>) -> Option<Waiting> {
        let waiting = self.list.pop(cx.frames)?;
        self.backlog.leave(waiting.charge);
        if self.list.is_empty() {
            self.rests_behind(cx.now, waiting.charge.bytes);
        }
        Some(waiting)
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
        (self.rate, self.holds) = (rate, Bound::new(limit, rate));
    }
}
