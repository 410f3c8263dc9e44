//! Decisions whether a segment is the flow's. What cannot be its receiver's is forwarded and changes nothing;
//! what fits is, and what is consistent in spite of it takes the flow up again
//! ([`Doubt`](crate::track::Doubt)).
//!
//! A segment that fits and cannot be changed is let through as it came ([`belief`](super::flows::belief)).

use super::flows::belief::{reason_of, Admitted, Reading, ALL, TELL_AGAIN};
use super::flows::segment::Headers;
use super::flows::stats::PassReason;
use super::Gateway;
use crate::flow::{flag, FlowId};
use crate::frame::Frame;
use crate::node::Cx;
use crate::track::Extensions;
use crate::wire::{Flags, Seq};

impl Gateway {
    /// Returns whether the segment is one of the flow as it is known, and the flow may be touched. One that
    /// is `here` has not left yet.
    pub(super) fn admit(
        &mut self,
        cx: &mut Cx<'_>,
        i: FlowId,
        segment: &Headers,
        reading: &Reading,
        frame: &Frame,
        here: bool,
    ) -> Admitted {
        let Reading { options, seen, .. } = reading;
        let (flags, tx) = (self.flows.table[i].flags, self.flows.table[i].tx);
        if flags & (flag::PASSES | flag::SYNCED) == flag::PASSES {
            return Admitted::Untouched(self.flows.still_passes(i));
        }
        if flags & flag::SYNCED == 0 {
            return self.flows.on_stranger(cx, i, segment, reading, frame, here);
        }
        self.flows.follow(i, cx.now);
        if segment.has(Flags::RST) {
            let reset = self.on_receiver_reset(cx, i, segment, here);
            return if reset { Admitted::Passes } else { Admitted::Untouched(PassReason::Implausible) };
        }
        if !segment.has(Flags::ACK) {
            return Admitted::Passes;
        }
        if !self.flows.slots[i].believes(seen) {
            if self.flows.table[i].doubt.disbelieved(seen.seq, seen.ack) {
                self.flows.renew(i, segment, options, cx, frame, false);
            }
            return Admitted::Untouched(PassReason::Implausible);
        }
        let r = &mut self.flows.table[i];
        let settled = r.doubt.believed() || r.has(flag::SCALE_KNOWN);
        if settled && r.has(flag::TRANSIENT) {
            self.flows.table.set_transient(i, false);
            self.flows.begin_least(i);
        }
        if self.flows.table[i].has(flag::CLOSED) {
            if self.flows.table[i].is_done() && !seen.ack.is_after(self.flows.table[i].fin) {
                return Admitted::Passes;
            }
            self.flows.revive(i, cx.now);
        }
        match self.note_oddity(cx, i, segment, reading, tx) {
            Some(reason) if !self.flows.table[i].has(flag::SYNCED) => Admitted::Untouched(reason),
            odd => {
                self.flows.tell(i);
                odd.map_or(Admitted::Believed, Admitted::Odd)
            }
        }
    }

    /// Notes whether a believed segment is odd. Returns why it is let through, if it is: itself, or its flow.
    fn note_oddity(
        &mut self,
        cx: &mut Cx<'_>,
        i: FlowId,
        segment: &Headers,
        reading: &Reading,
        tx: Seq,
    ) -> Option<PassReason> {
        if !self.flows.hooked && self.flows.slots[i].is_repetition(&reading.seen) {
            return None; // it is set back, as by a hook, which shows it to no engine
        }
        let r = &self.flows.table[i];
        let odd = reading.odd.or_else(|| segment.cannot_be_set_back(r, tx));
        let odd = odd.or_else(|| self.flows.tells_too_much(i, segment, reading, tx));
        let hearsay = self.flows.is_hearsay(i, segment.tcp.ack);
        let ahead = self.flows.is_ahead(i, &reading.seen);
        let odd = odd.or_else(|| (hearsay || ahead).then_some(PassReason::Implausible));
        let r = &mut self.flows.table[i];
        match odd {
            Some(_) => r.doubt.odd(Extensions::of(&reading.options)),
            None => r.doubt.clean(),
        }
        let passes = r.has(flag::PASSES);
        let midstream = !r.has(flag::SENDER_SYN | flag::RECEIVER_SYN);
        if let Some(reason) = reason_of(r.doubt.common(ALL)).filter(|_| midstream) {
            self.let_pass(cx, i, reason);
            return Some(reason);
        }
        if passes {
            return self.flows.note_passing(i, odd);
        }
        let reason = odd?;
        let r = &self.flows.table[i];
        if (hearsay
            || r.doubt.is_odd()
            || reason == PassReason::Early
            || self.flows.is_too_early(r, segment.tcp.ack))
            && self.flush(cx, i)
        {
            self.flows.pass_until_clean(i, reason);
        }
        Some(reason)
    }

    /// Lets a believed ACK without payload through as it came. What its sender learns by it is charged,
    /// unless the hooks count the flow's data.
    pub(super) fn let_through(
        &mut self,
        cx: &mut Cx<'_>,
        i: FlowId,
        segment: &Headers,
        reading: &Reading,
        frame: Frame,
    ) {
        let r = &self.flows.table[i];
        if r.has_news() || r.queues_acks() {
            self.flush(cx, i); // it keeps its place
        }
        let r = &self.flows.table[i];
        let (tx, acked) = (r.tx, r.acked);
        self.flows.note_passed(i, &reading.seen);
        self.flows.on_passed(cx, i, segment, &frame, tx);
        if self.flows.table[i].has(flag::PASSES)
            && acked >> TELL_AGAIN != self.flows.table[i].acked >> TELL_AGAIN
        {
            self.flows.count_untouched(i);
        }
        self.forward_untouched(cx, i, frame);
    }

    /// The flow passes for its connection's life, once what it holds has been passed on.
    fn let_pass(&mut self, cx: &mut Cx<'_>, i: FlowId, reason: PassReason) {
        if !self.flush(cx, i) {
            return; // the next segment tries again
        }
        self.flows.mark_passing(i, reason);
    }

    /// A RST of the data's receiver: the sender accepts it at its RCV.NXT alone (RFC 5961 §3.2). It may be
    /// forged all the same, so the next believed ACK revives the flow. What is held goes before one that is
    /// `here`.
    fn on_receiver_reset(&mut self, cx: &mut Cx<'_>, i: FlowId, segment: &Headers, here: bool) -> bool {
        if segment.tcp.seq != self.flows.table[i].seq {
            return false;
        }
        if here && !self.flows.table[i].doubt.has_retracted() {
            self.flush(cx, i);
        }
        self.flows.stats.reset += 1;
        self.flows.close(i, cx.now);
        true
    }
}
