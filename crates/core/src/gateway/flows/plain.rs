//! The short way of what nearly always comes: a pure ACK that tells nothing but progress, of a flow whose
//! next release is scheduled. It changes a few numbers and is absorbed.
//!
//! Whatever does not hold of a segment, or of its flow, leaves both untouched to the way of all others
//! (`arrive`), which does the same to what comes here (its `tests`).

use super::stats::ClassStats;
use crate::ack::window;
use crate::flow::{flag, Record};
use crate::steer::{self, slot_flag, Seen, Slot};
use crate::time::Time;
use crate::wire::PlainAck;

/// Flags that the fast path checks: those that say what the flow is in the middle of.
pub(in crate::gateway) const ASKED: u32 = flag::INWARD
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

impl Record {
    /// Returns whether the flow is in the order of its releases, and nothing has to be found out first of an
    /// ACK that comes from this side, with timestamps or without.
    #[inline(always)]
    pub(super) fn is_backlogged(&self, from_lan: bool, timestamps: bool) -> bool {
        let side = if from_lan { flag::INWARD } else { 0 };
        let clock = if timestamps { flag::TIMESTAMPS } else { 0 };
        self.flags & ASKED == BACKLOGGED | side | clock && self.window != 0
    }

    /// The ACK is held.
    #[inline(always)]
    pub(in crate::gateway) fn keep(&mut self, class: &mut ClassStats, ack: &PlainAck, now: Time) {
        let before = self.held_now();
        self.doubt.met(now);
        self.template.learn_plain(ack);
        window::received(self, ack.ack, ack.window);
        self.ace = 0;
        self.law.pace_mut().progressed(ack.ack.since(self.rx));
        self.rx = ack.ack;
        self.held_acks += 1;
        if let Some(t) = ack.timestamps {
            self.echoes.push(ack.ack, t.echo);
        }
        class.note_held(before, self.held_now());
        class.acks_absorbed += 1;
    }

    /// Returns whether an ACK acknowledges more than any before, with an open window.
    #[inline(always)]
    pub(super) fn is_advanced_by(&self, seen: &Seen) -> bool {
        seen.window != 0 && seen.ack.is_after(self.rx) && seen.ack.is_after(self.tx)
    }
}

impl Slot {
    /// Returns whether an ACK without payload is what the receiver sends next, while the sender knows what
    /// the record says.
    #[inline(always)]
    pub(super) fn is_advanced_by(&self, seen: &Seen, r: &Record) -> bool {
        let tx = self.tx();
        seen.seq == self.nxt()
            && self.has(slot_flag::SCALED)
            && !tx.is_after(r.tx)
            && seen.ack.is_after(tx)
            && !seen.ack.is_after(self.edge())
            && self.granted().is_none()
    }
}

pub(in crate::gateway) fn seen(ack: &PlainAck, now: Time) -> Seen {
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
