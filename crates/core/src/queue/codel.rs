//! CoDel, "Controlled Delay" (RFC 8289): it drops or marks frames when frames have waited too long for longer than a round trip.
//!
//! How long a frame waited is known when it leaves, so everything is decided then. If every frame of an interval waited longer
//! than the target, one frame is signalled, and the next after `interval / √n`, where n counts the signals (§5.3, the control law), until a frame
//! waited less. [`Law`] is this rule and nothing else: a discipline with many lists keeps one for each.
//!
//! Arithmetic is in whole nanoseconds: the control law is `⌊√(interval² / n)⌋`, which is `⌊interval / √n⌋` exactly.
//!
//! One thing differs from §5.5: with `ecn`, an ECN-capable packet is marked and leaves, as in Linux's `codel_dequeue`.

use super::backlog::Backlog;
use super::limit::{Bound, QueueLimit};
use super::{mark, Discipline};
use crate::frame::{Charge, Frames, Head, List, Waiting};
use crate::node::Cx;
use crate::rate::Rate;
use crate::stats::DropReason;
use crate::time::{Duration, Time};

#[cfg(test)]
mod tests;

/// What CoDel is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// How long a frame may wait for ever. RFC 8289 §4.3: 5 to 10 % of the interval.
    pub target: Duration,
    /// A round trip: how long a sender may take to react. Below 4.29 s it is exact; a longer one counts as that.
    pub interval: Duration,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// A full frame as charged, or less than one: as long as no more bytes than that wait, nothing is
    /// signalled (`maxpacket` of §5.5). A larger packet that comes takes its place.
    pub full_frame: u32,
}

impl Params {
    /// A packet comes: it may be the largest.
    pub(super) fn note_packet(&mut self, charge: Charge) {
        self.full_frame = self.full_frame.max(u32::try_from(charge.of_one()).unwrap_or(u32::MAX));
    }
}

impl Default for Params {
    /// RFC 8289 §4: 5 ms and 100 ms, and frames of Ethernet.
    fn default() -> Params {
        Params {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            ecn: false,
            full_frame: 1514,
        }
    }
}

/// What is to be done with a frame that is about to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It leaves.
    Pass,
    /// It is dropped, and the next one is judged; or it is marked ([`Law::marked`]) and leaves.
    Signal,
}

/// The state of one list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Law {
    /// When all frames will have waited too long for an interval; [`Time::MAX`] if the last one did not.
    first_above: Time,
    /// When the next frame is signalled, while `signals`.
    next: Time,
    /// Signals since `signals`, or what that began with.
    count: u32,
    /// `count` as it was when it began.
    began_with: u32,
    /// In the dropping state of the RFC.
    signals: bool,
    /// The last signal was the first of its kind: the frame behind it leaves whatever it waited.
    began: bool,
}

impl Default for Law {
    fn default() -> Law {
        let (first_above, next) = (Time::MAX, Time::ZERO);
        Law { first_above, next, count: 0, began_with: 0, signals: false, began: false }
    }
}

impl Law {
    /// What becomes of a frame that has `waited` and could leave `now`, with `behind` bytes waiting behind it. `again`: the
    /// frame before it was dropped, in the same moment, to signal.
    pub(super) fn judge(
        &mut self,
        p: &Params,
        now: Time,
        waited: Duration,
        behind: u64,
        again: bool,
    ) -> Fate {
        let above = self.is_above(p, now, waited, behind);
        match (self.signals, again) {
            (true, true) if self.began => Fate::Pass,
            (true, _) if !above => {
                self.signals = false;
                Fate::Pass
            }
            (true, again) => {
                if again {
                    self.next = self.law(p, self.next);
                }
                if now < self.next {
                    return Fate::Pass;
                }
                self.count += 1;
                self.began = false;
                Fate::Signal
            }
            (false, false) if above => {
                self.begin(p, now);
                Fate::Signal
            }
            (false, _) => Fate::Pass,
        }
    }

    /// The frame that was to signal was marked, and leaves.
    pub(super) fn marked(&mut self, p: &Params) {
        if !self.began {
            self.next = self.law(p, self.next);
        }
    }

    /// There was no frame to leave.
    pub(super) fn found_nothing(&mut self) {
        (self.first_above, self.signals) = (Time::MAX, false);
    }

    /// Have all frames waited too long for an interval?
    fn is_above(&mut self, p: &Params, now: Time, waited: Duration, behind: u64) -> bool {
        if waited < p.target || behind <= u64::from(p.full_frame) {
            self.first_above = Time::MAX;
            return false;
        }
        if self.first_above == Time::MAX {
            self.first_above = now + p.interval;
        }
        now >= self.first_above
    }

    /// The first signal. If the last ones are not long ago, it goes on with about the rate that was right then (§5.4).
    fn begin(&mut self, p: &Params, now: Time) {
        let grown = self.count.wrapping_sub(self.began_with);
        let recent = now.since(self.next) < p.interval.saturating_mul(16);
        self.count = if grown > 1 && recent { grown } else { 1 };
        self.began_with = self.count;
        self.next = self.law(p, now);
        (self.signals, self.began) = (true, true);
    }

    /// The control law: `t + interval / √count`.
    fn law(&self, p: &Params, t: Time) -> Time {
        let interval = p.interval.as_nanos().min(u32::MAX.into());
        t + Duration::from_nanos((interval * interval / u64::from(self.count.max(1))).isqrt())
    }
}

/// First in, first out, with CoDel where frames leave and drop tail where they come.
#[derive(Debug)]
pub struct Codel {
    list: List,
    pub(super) backlog: Backlog,
    law: Law,
    params: Params,
    /// The limit at the rate that the queue waits for.
    holds: Bound,
}

impl Codel {
    /// A queue in front of `rate` that holds `limit`.
    pub fn new(params: Params, limit: QueueLimit, rate: Rate) -> Codel {
        let (list, backlog, holds) = (List::new(), Backlog::default(), Bound::new(limit, rate));
        Codel { list, backlog, law: Law::default(), params, holds }
    }

    /// Marks the frame instead of dropping it, if that is wanted and can be done.
    fn mark(&mut self, cx: &mut Cx<'_>, waiting: &Waiting) -> bool {
        let marked = self.params.ecn && mark::mark(cx.frames.parked_bytes_mut(&waiting.frame));
        if marked {
            self.backlog.stats.marks += u64::from(waiting.charge.packets);
        }
        marked
    }
}

impl Discipline for Codel {
    fn push(&mut self, cx: &mut Cx<'_>, waiting: Waiting) -> Option<DropReason> {
        if !self.holds.admits(&self.backlog, waiting.charge) {
            return Some(self.backlog.drop(cx, waiting.frame, DropReason::QueueFull));
        }
        self.params.note_packet(waiting.charge);
        self.backlog.enter(waiting.charge);
        self.list.push(cx.frames, waiting);
        None
    }

    fn pop(&mut self, cx: &mut Cx<'_>) -> Option<Waiting> {
        let mut again = false;
        while let Some(waiting) = self.list.pop(cx.frames) {
            self.backlog.leave(waiting.charge);
            let (waited, behind) = (cx.now.since(waiting.since), self.backlog.bytes());
            if self.law.judge(&self.params, cx.now, waited, behind, again) == Fate::Pass {
                return Some(waiting);
            }
            if self.mark(cx, &waiting) {
                self.law.marked(&self.params);
                return Some(waiting);
            }
            self.backlog.drop(cx, waiting.frame, DropReason::Aqm);
            again = true;
        }
        self.law.found_nothing();
        None
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
    }
}
