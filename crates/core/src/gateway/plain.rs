//! The short way of what nearly always comes: a pure ACK that tells nothing but progress, of a flow whose
//! next release is scheduled. It changes a few numbers and is absorbed.
//!
//! Whatever does not hold of a segment, or of its flow, leaves both untouched to the way of all others
//! (`arrive`), which does the same to what comes here (`tests`).

#[cfg(test)]
mod tests;

use super::{after, millis, ClassStats, Gateway};
use crate::ack::window;
use crate::flow::{flag, Key, Record};
use crate::frame::{Checksum, Frame};
use crate::node::Cx;
use crate::steer::{self, slot_flag, Seen, Slot};
use crate::time::Time;
use crate::wire::{self, PlainAck};

/// Flags that the fast path checks: those that say what the flow is in the middle of.
const ASKED: u32 = flag::INWARD
    | flag::SYNCED
    | flag::TIMESTAMPS
    | flag::ACCECN
    | flag::SENDER_FIN
    | flag::RECEIVER_FIN
    | flag::CLOSED
    | flag::TRANSIENT
    | flag::PASSES
    | flag::ARMED
    | flag::SCALE_KNOWN
    | flag::HOLE
    | flag::SHOWN
    | flag::GRANTED
    | flag::SHARED;
/// and the answer: in step with its receiver and in the order of its releases.
const BACKLOGGED: u32 = flag::SYNCED | flag::ARMED | flag::SCALE_KNOWN | flag::SHOWN;

impl Gateway {
    /// Deals with a frame that is here, if it is an ACK of that kind: it is to be absorbed. False: nothing
    /// has happened.
    #[inline]
    pub(super) fn takes_plain(&mut self, cx: &Cx<'_>, from_lan: bool, frame: &Frame) -> bool {
        #[cfg(test)]
        if self.always_long {
            return false;
        }
        let bytes = cx.frames.bytes(frame);
        if bytes.len() != frame.len() || frame.checksum == Checksum::Invalid {
            return false;
        }
        let verified = frame.checksum == Checksum::Unknown;
        let usual = <&[u8; wire::USUAL_ACK]>::try_from(bytes).ok();
        match usual.and_then(|bytes| wire::usual_ack(bytes, verified)) {
            Some(ack) => self.takes(cx.now, from_lan, frame.restamp, &ack),
            None => self.takes_unusual(cx.now, from_lan, frame, bytes),
        }
    }

    /// As [`Gateway::takes_plain`], of a frame that is laid out in another way than most; `bytes` are all of
    /// it.
    #[inline(never)]
    fn takes_unusual(&mut self, now: Time, from_lan: bool, frame: &Frame, bytes: &[u8]) -> bool {
        let ack = wire::plain_ack(bytes, frame.checksum == Checksum::Unknown);
        ack.is_some_and(|ack| self.takes(now, from_lan, frame.restamp, &ack))
    }

    /// As [`Gateway::takes_plain`], of an ACK that is `counted` among those of its slot that were taken. Each
    /// call is compiled for what is known of it.
    #[inline(always)]
    fn takes(&mut self, now: Time, from_lan: bool, counted: bool, ack: &PlainAck) -> bool {
        let Some(i) = self.table.find(&Key::of_plain(ack)) else { return false };
        let (seen, state) = (seen(ack, now), (self.generation, self.table.epoch()));
        let Gateway { table, slots, classes, congestion, stats, hooked, .. } = self;
        let (r, slot) = (&mut table[i], &slots[i]);
        let is_progress = r.is_backlogged(from_lan, seen.ts.is_some())
            && (r.generation, r.epoch) == state
            && !r.is_stale(millis(now))
            && r.is_advanced_by(&seen)
            && slot.is_advanced_by(&seen, r);
        if !is_progress {
            return false;
        }
        let (policy, class, index) = classes.of_flow(r.class);
        if !policy.hold.is_number() || !policy.engages(congestion, index) {
            return false;
        }
        r.catch_up(slot);
        if counted {
            slot.has_come();
        }
        if !*hooked {
            slot.note_next(&seen);
        }
        r.keep(class, ack, now);
        stats.ledger.absorbed += 1;
        true
    }
}

impl Record {
    /// Is the flow in the order of its releases, with nothing to be found out first of an ACK that comes from
    /// this side, with timestamps or without?
    #[inline(always)]
    fn is_backlogged(&self, from_lan: bool, timestamps: bool) -> bool {
        let side = if from_lan { flag::INWARD } else { 0 };
        let clock = if timestamps { flag::TIMESTAMPS } else { 0 };
        self.flags & ASKED == BACKLOGGED | side | clock && self.window != 0
    }

    /// The ACK is held.
    #[inline(always)]
    fn keep(&mut self, class: &mut ClassStats, ack: &PlainAck, now: Time) {
        let before = self.held_now();
        self.doubt.met(now);
        self.template.learn_plain(ack);
        window::received(self, ack.ack, ack.window);
        self.ace = 0;
        self.law.pace_mut().progressed(ack.ack.wrapping_sub(self.rx));
        self.rx = ack.ack;
        self.held_acks += 1;
        if let Some(t) = ack.timestamps {
            self.echoes.push(ack.ack, t.echo);
        }
        class.note_held(before, self.held_now());
        class.acks_absorbed += 1;
    }

    /// Does an ACK acknowledge more than any before, with an open window?
    #[inline(always)]
    fn is_advanced_by(&self, seen: &Seen) -> bool {
        seen.window != 0 && after(seen.ack, self.rx) && after(seen.ack, self.tx)
    }
}

impl Slot {
    /// Is an ACK without payload what the receiver sends next, while the sender knows what the record says?
    #[inline(always)]
    fn is_advanced_by(&self, seen: &Seen, r: &Record) -> bool {
        let tx = self.tx();
        seen.seq == self.nxt()
            && self.has(slot_flag::SCALED)
            && !after(tx, r.tx)
            && after(seen.ack, tx)
            && !after(seen.ack, self.edge())
            && self.granted().is_none()
    }
}

fn seen(ack: &PlainAck, now: Time) -> Seen {
    Seen {
        flags: steer::ACK,
        seq: ack.seq,
        ack: ack.ack,
        window: ack.window,
        payload: 0,
        ts: ack.timestamps.map(|t| t.value),
        sack: false,
        plain: true,
        at: steer::ticks(now),
    }
}
