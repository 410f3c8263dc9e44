//! The short way of what nearly always comes: a pure ACK that tells nothing but progress, of a flow whose next release is
//! scheduled. It changes a few numbers and is absorbed.
//!
//! Whatever does not hold of a segment, or of its flow, leaves both untouched to the way of all others (`arrive`), which does the
//! same to what comes here (`tests`).

#[cfg(test)]
mod tests;

use super::hold::Held;
use super::{after, millis, Gateway};
use crate::ack::window;
use crate::flow::{flag, Key, Record};
use crate::frame::{Checksum, Frame};
use crate::node::Cx;
use crate::steer::{self, slot_flag, Seen, Slot};
use crate::time::Time;
use crate::wire::{self, PlainAck};
use core::sync::atomic::Ordering::Relaxed;

/// What is asked of a flow's flags: those that say of what it is in the middle,
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
    | flag::SHOWN
    | flag::GRANTED
    | flag::SHARED;
/// and the answer: in step with its receiver and in the order of its releases.
const BACKLOGGED: u32 = flag::SYNCED | flag::ARMED | flag::SCALE_KNOWN | flag::SHOWN;

impl Gateway {
    /// Deals with a frame that is here, if it is an ACK of that kind: it is to be absorbed. False: nothing has happened.
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
        match <&[u8; wire::USUAL_ACK]>::try_from(bytes) {
            Ok(usual) => self.takes_bytes(cx.now, from_lan, frame, usual),
            Err(_) => self.takes_others(cx.now, from_lan, frame, bytes),
        }
    }

    /// As [`Gateway::takes_bytes`], of as many as there may be.
    #[inline(never)]
    fn takes_others(&mut self, now: Time, from_lan: bool, frame: &Frame, bytes: &[u8]) -> bool {
        self.takes_bytes(now, from_lan, frame, bytes)
    }

    /// As [`Gateway::takes_plain`]; `bytes` are all of the frame. Each call is compiled for what is known of their number.
    #[inline(always)]
    fn takes_bytes(&mut self, now: Time, from_lan: bool, frame: &Frame, bytes: &[u8]) -> bool {
        let Some(ack) = wire::plain_ack(bytes, frame.checksum == Checksum::Unknown) else { return false };
        let Some(i) = self.table.find(&Key::of_plain(&ack)) else { return false };
        let seen = seen(&ack);
        if !self.is_progress(i, from_lan, &seen) {
            return false;
        }
        self.table.touch(i, millis(now));
        let Gateway { table, slots, classes, stats, hooked, .. } = self;
        let (r, slot) = (&mut table[i], &slots[i]);
        let held = r.rx.wrapping_sub(r.tx);
        let before = Held { bytes: held, acks: if held > 0 { r.held_acks } else { 0 } };
        r.catch_up(slot);
        if *hooked {
            slot.has_come(frame.received);
        } else {
            slot.note_taken(&seen);
        }
        r.doubt.met(now);
        r.template.learn_plain(&ack);
        window::received(r, seen.ack, seen.window);
        r.ace = 0;
        r.pace.progressed(seen.ack.wrapping_sub(r.rx));
        r.rx = seen.ack;
        r.held_acks += 1;
        if let Some(t) = ack.timestamps {
            r.echoes.push(seen.ack, t.echo);
        }
        let class = &mut classes[r.class];
        class.note_held(before, Held { bytes: seen.ack.wrapping_sub(r.tx), acks: r.held_acks });
        class.acks_absorbed += 1;
        stats.ledger.absorbed += 1;
        true
    }

    /// Does the segment tell nothing but progress of a flow that is backlogged, with nothing to be found out first?
    #[inline(always)]
    fn is_progress(&self, i: u32, from_lan: bool, seen: &Seen) -> bool {
        let (r, slot) = (&self.table[i], &self.slots[i]);
        let side = if from_lan { flag::INWARD } else { 0 };
        let clock = if seen.ts.is_some() { flag::TIMESTAMPS } else { 0 };
        r.flags & ASKED == BACKLOGGED | side | clock
            && (r.generation, r.epoch) == (self.generation, self.table.epoch())
            && self.policy(r).hold.is_number()
            && self.holds_back(r)
            && r.window != 0
            && r.is_advanced_by(seen)
            && slot.is_advanced_by(seen, r)
    }
}

impl Record {
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
        let tx = self.tx.load(Relaxed);
        seen.seq == self.nxt.load(Relaxed)
            && self.has(slot_flag::SCALED)
            && !after(tx, r.tx)
            && after(seen.ack, tx)
            && !after(seen.ack, self.edge.load(Relaxed))
            && self.granted().is_none()
    }
}

fn seen(ack: &PlainAck) -> Seen {
    Seen {
        flags: steer::ACK,
        seq: ack.seq,
        ack: ack.ack,
        window: ack.window,
        payload: 0,
        ts: ack.timestamps.map(|t| t.value),
        sack: false,
        plain: true,
    }
}
