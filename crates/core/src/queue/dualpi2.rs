//! DualPI2, the coupled AQM of two queues of RFC 9332. One queue is for senders that react to each mark (L4S:
//! ECT(1) and CE), with a delay of a millisecond. The other is for all other traffic (Classic).
//!
//! At each `update`, a proportional-integral controller moves the base probability p'. It uses two
//! differences: between the wait at the head of the queues and the target, and between this wait and the last
//! one (appendix A.1, fig. 6). Classic packets are dropped with p'², or marked if they are ECN-capable. L4S
//! packets are marked with the larger of k × p' and the probability of their own queue, a ramp from `step` on
//! (figs 4 and 5). There are no random draws: probabilities add up, and each whole one is a signal (`recur`).
//! While k × p' is 1 or more, there is overload. Then L4S packets are dropped with p'² too, and Classic
//! packets are dropped whatever their ECN field says (appendix A.2).
//!
//! The queues take turns by bytes, nine for the L4S queue to one for the Classic queue. §4.2.2 asks for a
//! scheduler that gives the L4S queue conditional priority; the weights are Linux's. As in Linux, the
//! controller uses the longer of the two waits, and both queues share one limit.
//!
//! Arithmetic is in integers, with probabilities in units of 2^-32. Updates that came due between
//! two calls are made up for, each as of its own time.

use super::backlog::Backlog;
use super::limit::{Bound, QueueLimit};
use super::{mark, Discipline};
use crate::frame::{Frames, Head, List, Waiting};
use crate::node::Cx;
use crate::rate::Rate;
use crate::stats::DropReason;
use crate::time::{Duration, Time};
use pi::Pi;

mod pi;
#[cfg(test)]
mod tests;

/// Probability 1.
const ONE: u64 = 1 << 32;
/// Weights of the queues, in tenths. Each L4S byte adds the Classic weight to the credit; each Classic byte
/// takes off the L4S weight.
const CLASSIC_SHARE: i64 = 1;
const L4S_SHARE: i64 = 9;

/// Parameters of DualPI2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Params {
    /// Target wait of Classic packets.
    pub target: Duration,
    /// Time between two updates of the controller; above zero.
    pub update: Duration,
    /// Wait at which the L4S queue's own marking begins.
    pub step: Duration,
    /// Further wait at which every L4S packet is marked; zero makes a step.
    pub range: Duration,
    /// k: ratio of the L4S marking probability to the square root of the Classic probability; 1 to 16.
    pub coupling: u8,
}

impl Default for Params {
    /// Defaults of RFC 9332, appendix A.1: 15 ms, 16 ms, a ramp from 0.8 to 1.2 ms, and k = 2.
    fn default() -> Params {
        Params {
            target: Duration::from_millis(15),
            update: Duration::from_millis(16),
            step: Duration::from_micros(800),
            range: Duration::from_micros(400),
            coupling: 2,
        }
    }
}

/// One of the two queues, and its accumulated share of a signal.
#[derive(Debug, Default)]
struct Lane {
    list: List,
    share: u64,
}

impl Lane {
    /// Adds `probability` to the share. Returns whether this packet is signalled: at most one signal per
    /// packet.
    fn recur(&mut self, probability: u64) -> bool {
        self.share += probability.min(ONE);
        let signal = self.share > ONE || probability >= ONE;
        self.share -= if signal { ONE.min(self.share) } else { 0 };
        signal
    }

    /// Returns the wait of the first packet.
    fn waited(&self, frames: &Frames, now: Time) -> Duration {
        self.list.head(frames).map_or(Duration::ZERO, |head| now.since(head.since))
    }
}

/// DualPI2. See the [module documentation](self).
#[derive(Debug)]
pub struct DualPi2 {
    classic: Lane,
    l4s: Lane,
    pi: Pi,
    /// Credit of the Classic queue, which is served next while this is above zero.
    credit: i64,
    pub(super) backlog: Backlog,
    params: Params,
    /// Limit at the rate of the link that the queues feed.
    holds: Bound,
}

/// Verdict on a packet that is about to leave.
enum Fate {
    Pass,
    Mark,
    Drop,
}

impl DualPi2 {
    /// Creates queues in front of `rate`, with room for `limit` together.
    pub fn new(params: Params, limit: QueueLimit, rate: Rate) -> DualPi2 {
        DualPi2 {
            classic: Lane::default(),
            l4s: Lane::default(),
            pi: Pi::new(params.target, params.update),
            credit: 0,
            backlog: Backlog::default(),
            params,
            holds: Bound::new(limit, rate),
        }
    }

    /// Runs the controller's updates up to `now`.
    fn update(&mut self, frames: &Frames, now: Time) {
        let DualPi2 { classic, l4s, pi, .. } = self;
        pi.catch_up(now, |at| classic.waited(frames, at).max(l4s.waited(frames, at)));
    }

    /// Returns whether the L4S queue is served next.
    fn is_l4s_next(&self) -> bool {
        !self.l4s.list.is_empty() && (self.classic.list.is_empty() || self.credit <= 0)
    }

    /// Moves the credit after a packet of one queue was served.
    fn take_turns(&mut self, l4s: bool, bytes: u64) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX >> 8);
        self.credit += if l4s { CLASSIC_SHARE * bytes } else { -L4S_SHARE * bytes };
        if self.backlog.packets() == 0 {
            self.credit = 0;
        }
    }

    /// Returns the L4S queue's own marking probability for this wait, if more packets wait behind.
    fn ramp(&self, waited: Duration) -> u64 {
        let Params { step, range, .. } = self.params;
        if self.l4s.list.is_empty() || waited < step {
            return 0;
        }
        let above = (waited - step).as_nanos();
        match range.as_nanos() {
            range if above >= range => ONE,
            range => (u128::from(above) * u128::from(ONE) / u128::from(range)) as u64,
        }
    }

    fn fate_of_l4s(&mut self, waited: Duration) -> Fate {
        let coupled = self.pi.probability() * u64::from(self.params.coupling);
        if coupled >= ONE {
            if self.l4s.recur(self.pi.squared()) {
                return Fate::Drop;
            }
            return Fate::Mark;
        }
        let probability = coupled.max(self.ramp(waited));
        if self.l4s.recur(probability) {
            Fate::Mark
        } else {
            Fate::Pass
        }
    }

    fn fate_of_classic(&mut self, frames: &Frames, waiting: &Waiting) -> Fate {
        if !self.classic.recur(self.pi.squared()) {
            return Fate::Pass;
        }
        let overload = self.pi.probability() * u64::from(self.params.coupling) >= ONE;
        match mark::field(frames.parked_bytes(&waiting.frame).0) {
            0 => Fate::Drop,
            _ if overload => Fate::Drop,
            _ => Fate::Mark,
        }
    }
}

/// Returns whether the packet is L4S: ECT(1) and CE have the lower bit (fig. 3).
fn is_l4s(frames: &Frames, waiting: &Waiting) -> bool {
    mark::field(frames.parked_bytes(&waiting.frame).0) & 1 == 1
}

impl DualPi2 {
    /// Marks or drops a packet that leaves; `None` if dropped.
    fn judge(&mut self, cx: &mut Cx<'_>, waiting: Waiting, l4s: bool) -> Option<Waiting> {
        let fate = match l4s {
            true => self.fate_of_l4s(cx.now.since(waiting.since)),
            false => self.fate_of_classic(cx.frames, &waiting),
        };
        match fate {
            Fate::Drop => {
                self.backlog.drop(cx, waiting, DropReason::Aqm);
                return None;
            }
            Fate::Mark if mark::mark(cx.frames.parked_bytes_mut(&waiting.frame)) => {
                self.backlog.stats.marks += u64::from(waiting.charge.packets);
            }
            Fate::Mark | Fate::Pass => {}
        }
        self.take_turns(l4s, waiting.charge.bytes);
        Some(waiting)
    }
}

impl Discipline for DualPi2 {
    fn push(&mut self, cx: &mut Cx<'_>, waiting: Waiting) -> Option<DropReason> {
        self.update(cx.frames, cx.now);
        if !self.holds.admits(&self.backlog, waiting.charge) {
            return Some(self.backlog.drop(cx, waiting, DropReason::QueueFull));
        }
        self.backlog.enter(waiting.charge);
        let l4s = is_l4s(cx.frames, &waiting);
        let lane = if l4s { &mut self.l4s } else { &mut self.classic };
        lane.list.push(cx.frames, waiting);
        None
    }

    fn pop(&mut self, cx: &mut Cx<'_>) -> Option<Waiting> {
        self.update(cx.frames, cx.now);
        loop {
            let l4s = self.is_l4s_next();
            let lane = if l4s { &mut self.l4s } else { &mut self.classic };
            let waiting = lane.list.pop(cx.frames)?;
            self.backlog.leave(waiting.charge);
            if let Some(waiting) = self.judge(cx, waiting, l4s) {
                return Some(waiting);
            }
        }
    }

    /// Enqueues, dequeues and judges every packet (RFC 9332 figs 2 to 5). The coupled probability outlasts
    /// the moment when the queues run empty.
    fn pass(&mut self, cx: &mut Cx<'_>, waiting: Waiting) -> Option<Waiting> {
        self.update(cx.frames, cx.now);
        let l4s = is_l4s(cx.frames, &waiting);
        self.judge(cx, waiting, l4s)
    }

    fn head(&self, frames: &Frames) -> Option<Head> {
        let lane = if self.is_l4s_next() { &self.l4s } else { &self.classic };
        lane.list.head(frames)
    }

    fn release(&mut self, frames: &Frames) -> Option<Waiting> {
        let waiting = self.l4s.list.pop(frames).or_else(|| self.classic.list.pop(frames))?;
        self.backlog.leave(waiting.charge);
        Some(waiting)
    }

    fn set_limit(&mut self, limit: QueueLimit, rate: Rate) {
        self.holds = Bound::new(limit, rate);
    }
}
