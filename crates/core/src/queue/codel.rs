//! CoDel, "Controlled Delay" (RFC 8289): drops or marks frames once frames have waited too long for more than
//! a round trip.
//!
//! The wait of a frame is known when it leaves, so every decision is made then. If every frame of an interval
//! waited longer than the target, one frame is signalled. The next follows after `interval / √n`, where n
//! counts the signals (§5.3, the control law), until a frame waited less. `Law` holds this rule alone, so a
//! discipline with many lists can keep one for each.
//!
//! Arithmetic is in whole nanoseconds. The control law is `⌊√(interval² / n)⌋`, which is exactly
//! `⌊interval / √n⌋`.
//!
//! One difference from §5.5: with `ecn`, an ECN-capable packet is marked and leaves, as in Linux's
//! `codel_dequeue`.

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

/// Parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Params {
    /// Wait that may persist. RFC 8289 §4.3: 5 to 10 % of the interval.
    pub target: Duration,
    /// A round trip: the time that a sender may take to react. Values below 4.29 s are exact; longer ones
    /// count as 4.29 s.
    pub interval: Duration,
    /// Mark ECN-capable packets instead of dropping them.
    pub ecn: bool,
    /// Charge of a full frame, or less. Nothing is signalled while at most this many bytes wait (`maxpacket`
    /// of §5.5). A larger packet that arrives raises the value.
    pub full_frame: u32,
}

impl Params {
    /// Raises the full frame to the size of an arriving packet.
    pub(super) fn note_packet(&mut self, charge: Charge) {
        self.full_frame = self.full_frame.max(u32::try_from(charge.of_one()).unwrap_or(u32::MAX));
    }
}

impl Default for Params {
    /// Defaults of RFC 8289 §4: 5 ms and 100 ms, and Ethernet frames.
    fn default() -> Params {
        Params {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            ecn: false,
            full_frame: 1514,
        }
    }
}

/// Verdict on a frame that is about to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The frame leaves.
    Pass,
    /// The frame is dropped and the next one is judged, or it is marked ([`Law::marked`]) and leaves.
    Signal,
}

/// State of one list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Law {
    /// Time at which all frames will have waited too long for an interval; [`Time::MAX`] if the last frame
    /// did not wait too long.
    first_above: Time,
    /// Time of the next signal, while `signals`.
    next: Time,
    /// n of the control law: the count at the start of the dropping state, plus one per later signal.
    count: u32,
    /// Value of `count` at the start of the dropping state.
    began_with: u32,
    /// True in the dropping state of the RFC.
    signals: bool,
    /// The last signal was the first of its dropping state: the next frame leaves however long it waited.
    began: bool,
}

impl Default for Law {
    fn default() -> Law {
        let (first_above, next) = (Time::MAX, Time::ZERO);
        Law { first_above, next, count: 0, began_with: 0, signals: false, began: false }
    }
}

impl Law {
    /// Judges a frame that has `waited` and could leave `now`, with `behind` bytes waiting behind it. `again`
    /// is true if the frame before it was dropped as a signal in the same moment.
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

    /// Records that the frame that was to signal was marked, and leaves.
    pub(super) fn marked(&mut self, p: &Params) {
        if !self.began {
            self.next = self.law(p, self.next);
        }
    }

    /// Records that no frame was there to leave.
    pub(super) fn found_nothing(&mut self) {
        (self.first_above, self.signals) = (Time::MAX, false);
    }

    /// Returns whether all frames have waited too long for an interval.
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

    /// Makes the first signal. If the last signals are recent, it continues at about the rate that was right
    /// then (§5.4).
    fn begin(&mut self, p: &Params, now: Time) {
        let grown = self.count.wrapping_sub(self.began_with);
        let recent = now.since(self.next) < p.interval.saturating_mul(16);
        self.count = if grown > 1 && recent { grown } else { 1 };
        self.began_with = self.count;
        self.next = self.law(p, now);
        (self.signals, self.began) = (true, true);
    }

    /// Control law: `t + interval / √count`.
    fn law(&self, p: &Params, t: Time) -> Time {
        let interval = p.interval.as_nanos().min(u32::MAX.into());
        t + Duration::from_nanos((interval * interval / u64::from(self.count.max(1))).isqrt())
    }
}

/// First in, first out, with CoDel at the head and drop tail on arrival.
#[derive(Debug)]
pub struct Codel {
    list: List,
    pub(super) backlog: Backlog,
    law: Law,
    params: Params,
    /// Limit at the rate of the link that the queue feeds.
    holds: Bound,
}

impl Codel {
    /// Creates a queue in front of `rate`, with room for `limit`.
    pub fn new(params: Params, limit: QueueLimit, rate: Rate) -> Codel {
        let (list, backlog, holds) = (List::new(), Backlog::default(), Bound::new(limit, rate));
        Codel { list, backlog, law: Law::default(), params, holds }
    }

    /// Marks the frame instead of dropping it, if `ecn` is set and the packet is ECN-capable.
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
            return Some(self.backlog.drop(cx, waiting, DropReason::QueueFull));
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
            self.backlog.drop(cx, waiting, DropReason::Aqm);
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
