//! Is a segment the flow's? What cannot be its receiver's is forwarded and changes nothing; what fits is, and
//! what is consistent in spite of it takes the flow up anew ([`Doubt`](crate::track::Doubt)).

use super::passing::Reading;
use super::{after, Gateway, Headers, PassReason};
use crate::flow::flag;
use crate::frame::Frame;
use crate::node::Cx;
use crate::steer;
use crate::time::Time;
use crate::track::opening;
use crate::wire::{Flags, TcpOptions};

/// Finding about a segment, before anything else.
pub(super) enum Admitted {
    /// It passes untouched for this reason.
    Untouched(PassReason),
    /// It passes as it came, and what it tells is known.
    Passes,
    /// The first of its flow, which passes with a sized window.
    First,
    /// It is the receiver's.
    Believed,
    /// It is the receiver's, and it or its flow is let through for this reason.
    Odd(PassReason),
}

impl Gateway {
    /// Is the segment one of the flow as it is known, and may the flow be touched? One that is `here` has not
    /// left yet.
    pub(super) fn admit(
        &mut self,
        cx: &mut Cx<'_>,
        i: u32,
        segment: &Headers,
        reading: &Reading,
        frame: &Frame,
        here: bool,
    ) -> Admitted {
        let Reading { options, seen, .. } = reading;
        let (flags, tx) = (self.table[i].flags, self.table[i].tx);
        if flags & (flag::PASSES | flag::SYNCED) == flag::PASSES {
            return Admitted::Untouched(self.still_passes(i));
        }
        if flags & flag::SYNCED == 0 {
            return self.on_stranger(cx, i, segment, reading, frame, here);
        }
        self.follow(i, cx.now);
        if segment.has(Flags::RST) {
            let reset = self.on_receiver_reset(cx, i, segment, here);
            return if reset { Admitted::Passes } else { Admitted::Untouched(PassReason::Implausible) };
        }
        if !segment.has(Flags::ACK) {
            return Admitted::Passes;
        }
        if !self.slots[i].believes(seen) {
            if self.table[i].doubt.disbelieved(seen.seq, seen.ack) {
                self.renew(i, segment, options, cx, frame, false);
            }
            return Admitted::Untouched(PassReason::Implausible);
        }
        let r = &mut self.table[i];
        let settled = r.doubt.believed() || r.has(flag::SCALE_KNOWN);
        if settled && r.has(flag::TRANSIENT) {
            self.table.set_transient(i, false);
            self.begin_least(i);
        }
        if self.table[i].has(flag::CLOSED) {
            if self.table[i].is_done() && !after(seen.ack, self.table[i].fin) {
                return Admitted::Passes;
            }
            self.revive(i, cx.now);
        }
        match self.note_oddity(cx, i, segment, reading, tx) {
            Some(reason) if !self.table[i].has(flag::SYNCED) => Admitted::Untouched(reason),
            odd => {
                self.tell(i);
                odd.map_or(Admitted::Believed, Admitted::Odd)
            }
        }
    }

    /// A segment of a flow without numbers: the first after its handshake, or one in mid-stream, which is
    /// taken up when it has advanced often enough. It passes, the first with a sized window.
    fn on_stranger(
        &mut self,
        cx: &mut Cx<'_>,
        i: u32,
        segment: &Headers,
        reading: &Reading,
        frame: &Frame,
        here: bool,
    ) -> Admitted {
        let (r, Reading { options, seen, odd }) = (&self.table[i], reading);
        if seen.flags & (steer::ACK | steer::RST | steer::FIN) != steer::ACK {
            return Admitted::Passes;
        }
        let first = r.has(flag::SENDER_SYN | flag::RECEIVER_SYN)
            && opening::is_first(r.fin, r.seq, seen.seq, seen.ack);
        if !first {
            let is_one = self.table[i].doubt.candidate(seen.seq, seen.ack);
            let common = self.note_odd_candidate(i, reading);
            if !is_one {
                return Admitted::Passes;
            }
            self.table[i].forget_handshake();
            if let Some(reason) = common {
                self.mark_passing(i, reason);
                return Admitted::Passes;
            }
        }
        // Behind hooks that know the flow already, what passed may have overtaken this.
        let ahead = (first && self.slots[i].is_open()).then(|| self.slots[i].nxt());
        let sizes = here && first && seen.is_pure() && odd.is_none();
        let taken_up = self.take_up(i, segment, options, cx, frame, sizes);
        if let Some(nxt) = ahead.filter(|&nxt| taken_up && after(nxt, seen.end())) {
            self.table[i].seq = nxt;
            self.slots[i].set_nxt(nxt);
        }
        if taken_up && sizes {
            return Admitted::First;
        }
        Admitted::Passes
    }

    /// Is it the connection whose handshake was seen, and nothing of it since? Segments that passed by while
    /// no engine ran may have taken it far ahead.
    fn has_gone_on(&self, i: u32, segment: &Headers) -> bool {
        let slot = &self.slots[i];
        let ahead = |to: u32, from: u32| to.wrapping_sub(from) <= steer::ACK_RANGE;
        self.table[i].has(flag::SENDER_SYN | flag::RECEIVER_SYN | flag::SCALE_KNOWN)
            && self.table[i].doubt.is_unmet()
            && ahead(segment.tcp.seq, slot.nxt())
            && ahead(segment.tcp.ack, slot.tx())
    }

    /// Takes a flow up again with this segment, as one in mid-stream, because what was known of it is wrong.
    /// If the segment is `believed`, because it is the receiver's last word and only what the sender was
    /// thought to know is wrong, the connection is still the one whose handshake was seen, if one was, and
    /// its window is sized as before.
    pub(super) fn renew(
        &mut self,
        i: u32,
        segment: &Headers,
        options: &TcpOptions,
        cx: &mut Cx<'_>,
        frame: &Frame,
        believed: bool,
    ) {
        self.clear_acks(cx, i);
        if !believed && !self.has_gone_on(i, segment) {
            self.table[i].forget_handshake();
        }
        if self.take_up(i, segment, options, cx, frame, believed) {
            self.stats.renewed += 1;
        }
    }

    /// The flow's numbers start with this segment, which passes as it came, or `sizes` its window.
    fn take_up(
        &mut self,
        i: u32,
        segment: &Headers,
        options: &TcpOptions,
        cx: &Cx<'_>,
        frame: &Frame,
        sizes: bool,
    ) -> bool {
        self.table[i].template.learn(cx.frames.bytes(frame), &segment.packet);
        if !self.sync(i, segment, options, cx.now) {
            return false;
        }
        self.learn(i, cx, segment, frame);
        let known = self.table[i].has(flag::SCALE_KNOWN);
        self.table.set_transient(i, !known);
        let scale = self.table[i].scale;
        self.begin_edges(i, segment, options, scale, sizes);
        self.tell(i);
        true
    }

    /// An ACK older than what the sender knows was overtaken, or what the sender is thought to know is wrong.
    /// The latter, if many come in a row that no other overtook by its timestamp, or by the time that has
    /// passed.
    pub(super) fn is_last_word(&mut self, i: u32, options: &TcpOptions, now: Time) -> bool {
        let newest = self.slots[i].ts();
        let overtaken = options.timestamps.is_some_and(|t| after(newest, t.value));
        !overtaken && self.table[i].doubt.outdated(now)
    }

    /// A forged segment with payload may have moved the receiver's SND.NXT beyond what its sender accepts.
    /// The receiver's ACKs tell in time, and the made ones take their number.
    pub(super) fn check_sequence(&mut self, i: u32, seq: u32, now: Time) {
        let slot = &self.slots[i];
        let doubt = &mut self.table[i].doubt;
        if !after(slot.nxt(), seq) {
            doubt.in_sequence();
        } else if doubt.lags(seq, now) {
            slot.set_nxt(seq);
        }
    }
}
