//! ACKs that leave: made here, or the receiver's with what may go with them.

use super::flows::generate::{write_ack, MAX_ACK_LEN};
use super::flows::segment::Headers;
use super::flows::stats::{ClassStats, GatewayStats};
use super::flows::{ack_out, Register};
use super::outbox::Outbox;
use super::Gateway;
use crate::ack::window;
use crate::flow::{flag, FlowId, Record};
use crate::frame::{Checksum, Frame};
use crate::node::Cx;
use crate::packet::wire::Seq;
use crate::steer::{self, Slot, Stamp};
use crate::tcp::{Counters, MarksOfFlows};
use crate::time::Time;
use core::sync::atomic::Ordering::Relaxed;

/// Segments that an ACK made in an AccECN flow acknowledges at most, and the first one. Steps in which what
/// is held is acknowledged.
const SEGMENTS: u32 = 6;
const FIRST: u32 = 2;
const STEPS: u32 = 32;

/// An ACK that is to be made.
pub(super) struct NewAck {
    /// Number that it acknowledges.
    pub(super) to: Seq,
    /// Time at which it was due.
    pub(super) at: Time,
    /// The [most that the window may be](Register::window_limit).
    pub(super) limit: Option<u32>,
    /// Window field, if it is known already. The record is up to date with its slot then.
    pub(super) field: Option<u16>,
}

/// Place where ACKs that are made leave, and are counted.
pub(super) struct Maker<'a> {
    pub(super) outbox: &'a mut Outbox,
    pub(super) stats: &'a mut GatewayStats,
    /// Counters of AccECN flows, and the number of the flow.
    pub(super) marks: (&'a mut MarksOfFlows, usize),
    /// Hooks stamp what leaves.
    pub(super) hooked: bool,
}

impl Maker<'_> {
    /// Makes an ACK of a flow and sends it off. False when there is no frame or no room for it: what is held
    /// stays held.
    #[inline(always)]
    pub(super) fn make(
        &mut self,
        cx: &mut Cx<'_>,
        r: &mut Record,
        slot: &Slot,
        class: &mut ClassStats,
        ack: &NewAck,
    ) -> bool {
        if r.has(flag::ACCECN) {
            return self.make_counted(cx, (r, slot, class), ack);
        }
        self.make_one(cx, (r, slot, class), ack, None)
    }

    /// As [`Maker::make`], of an AccECN flow: in steps in which its sender takes a counter of three bits as
    /// it is. Of more than seven packets it assumes that the counter has gone around (RFC 9768 §3.2.2.5).
    #[cold]
    #[inline(never)]
    fn make_counted(
        &mut self,
        cx: &mut Cx<'_>,
        (r, slot, class): (&mut Record, &Slot, &mut ClassStats),
        ack: &NewAck,
    ) -> bool {
        let least = ack.to.since(r.tx) / STEPS;
        loop {
            // A first one of 0 would be taken for one that a middlebox has erased (§3.2.2.4).
            let segments = if r.acked == 0 { FIRST } else { SEGMENTS };
            let step = least.max(segments * u32::from(r.segments().payload));
            if ack.to.since(r.tx) <= step {
                break;
            }
            let part = NewAck { to: r.tx.plus(step), field: None, ..*ack };
            if !self.make_part(cx, (r, slot, class), &part) {
                return false;
            }
        }
        self.make_part(cx, (r, slot, class), ack)
    }

    /// Makes an ACK of an AccECN flow with the counters that are known up to its number.
    fn make_part(
        &mut self,
        cx: &mut Cx<'_>,
        (r, slot, class): (&mut Record, &Slot, &mut ClassStats),
        ack: &NewAck,
    ) -> bool {
        let counters = self.marks.0.known(self.marks.1).up_to(ack.to);
        if !self.make_one(cx, (r, slot, class), ack, counters.as_ref()) {
            return false;
        }
        if let Some(counters) = counters {
            self.marks.0.of(self.marks.1).told(ack.to, counters);
            r.ace_sent = counters.ace as u8;
        }
        true
    }

    #[inline(always)]
    fn make_one(
        &mut self,
        cx: &mut Cx<'_>,
        (r, slot, class): (&mut Record, &Slot, &mut ClassStats),
        ack: &NewAck,
        counters: Option<&Counters>,
    ) -> bool {
        let NewAck { to, at, limit, field } = *ack;
        slot.width.store(limit.unwrap_or(0), Relaxed);
        let out = ack_out(r);
        if !self.outbox.has_room(out, 1) {
            return false;
        }
        let Some((mut frame, bytes)) = cx.frames.make_headers(MAX_ACK_LEN, MAX_ACK_LEN, at) else {
            self.stats.pool_exhausted += 1;
            return false;
        };
        let released = to.since(r.tx);
        let mut field = match field {
            Some(field) => {
                window::forwarded(r, to, field);
                field
            }
            None => {
                r.catch_up(slot);
                window::advertise(r, to, limit)
            }
        };
        if !self.hooked {
            if let Stamp::Send { window, .. } = slot.stamp(to, field) {
                field = window;
            }
        }
        let ece = r.shows_ece();
        let len = write_ack(r, slot, (to, field, ece), counters, bytes);
        frame.cut(len);
        (frame.checksum, frame.restamp) = (Checksum::Valid, true);
        r.held_acks -= r.acks_of(released);
        r.tx = to;
        r.ace_sent = r.ace;
        r.told_marks(released, ece);
        r.echoes.release(to);
        class.acks_generated += 1;
        r.count_acked(class, released);
        self.stats.ledger.made += 1;
        self.outbox.push(cx, &mut self.stats.ledger, out, at, frame);
        let duplicates = r.told_news();
        if duplicates > 0 {
            self.repeat(cx, (r, slot, class), (at, field), duplicates);
        }
        true
    }

    /// The last ACK of a flow again, `times` over: duplicates of the receiver that had to wait.
    #[cold]
    fn repeat(
        &mut self,
        cx: &mut Cx<'_>,
        (r, slot, class): (&mut Record, &Slot, &mut ClassStats),
        (at, field): (Time, u16),
        times: u32,
    ) {
        let out = ack_out(r);
        for _ in 0..times {
            if !self.outbox.has_room(out, 1) {
                return;
            }
            let Some(mut frame) = cx.frames.make(MAX_ACK_LEN, at) else { return };
            let counters =
                if r.has(flag::ACCECN) { self.marks.0.known(self.marks.1).up_to(r.tx) } else { None };
            let said = (r.tx, field, r.shows_ece());
            let len = write_ack(r, slot, said, counters.as_ref(), cx.frames.bytes_mut(&frame));
            frame.cut(len);
            (frame.checksum, frame.restamp) = (Checksum::Valid, true);
            class.acks_generated += 1;
            self.stats.ledger.made += 1;
            self.outbox.push(cx, &mut self.stats.ledger, out, at, frame);
        }
    }
}

impl Gateway {
    /// Makes an ACK up to `to` and sends it off as due at `at`. False when there is no frame or no room for
    /// it: what is held stays held.
    pub(super) fn generate(&mut self, cx: &mut Cx<'_>, i: FlowId, to: Seq, at: Time) -> bool {
        self.generate_with(cx, i, to, at, self.flows.window_limit_at(&self.flows.table[i], to))
    }

    /// As [`Gateway::generate`], with a window of at most `limit` bytes.
    pub(super) fn generate_with(
        &mut self,
        cx: &mut Cx<'_>,
        i: FlowId,
        to: Seq,
        at: Time,
        limit: Option<u32>,
    ) -> bool {
        let Gateway { flows: Register { table, slots, classes, stats, marks, hooked, .. }, outbox, .. } =
            self;
        let r = &mut table[i];
        let class = &mut classes[r.class];
        let ack = NewAck { to, at, limit, field: None };
        let marks = (marks, i.index());
        let made = Maker { outbox, stats, marks, hooked: *hooked }.make(cx, r, &slots[i], class, &ack);
        if made {
            self.flows.measure_left(i, to, at);
        }
        made
    }

    /// Forwards an ACK of the receiver with `ack` in its ACK field and the window that may go with it.
    pub(super) fn forward_ack(
        &mut self,
        cx: &mut Cx<'_>,
        i: FlowId,
        segment: &Headers,
        mut frame: Frame,
        ack: Seq,
    ) {
        let r = &self.flows.table[i];
        if r.tx.is_after(ack) {
            return self.forward_untouched(cx, i, frame); // it was overtaken, and tells something all the same
        }
        let limit = self.flows.window_limit(r);
        let r = &mut self.flows.table[i];
        let out = ack_out(r);
        if r.has(flag::ACCECN) {
            self.flows.tell_counters(i, segment, cx.frames.bytes(&frame));
        }
        let r = &mut self.flows.table[i];
        // A window that is kept is touched only where the acknowledgement is. Of an ACK that has waited, the
        // record's is a newer one.
        let kept = limit.is_none() || r.queues_acks() && !r.has(flag::SCALE_KNOWN);
        let field = if kept && ack == segment.tcp.ack {
            window::forwarded(r, ack, segment.tcp.window);
            segment.tcp.window
        } else {
            window::advertise(r, ack, limit)
        };
        let rewritten = field != segment.tcp.window || ack != segment.tcp.ack;
        if rewritten {
            steer::set_back(cx.frames, &frame, &segment.packet, Seq(ack.0), field);
        }
        // After the receiver's FIN an ACK that is made twice would be a duplicate, so it is not stamped, and
        // does not leave. What the receiver itself repeats is one: of a loss, or of an answer to its sender.
        frame.restamp =
            !self.flows.table[i].has(flag::RECEIVER_FIN) || ack.is_after(self.flows.slots[i].tx());
        if !self.flows.hooked && frame.restamp {
            let stamp = self.flows.slots[i].stamp(ack, field);
            if !steer::restamp(cx.frames, &frame, &segment.packet, &segment.tcp, stamp) {
                return self.flows.absorb(cx, i, frame);
            }
        }
        self.flows.measure_left(i, ack, cx.now);
        let class = &mut self.flows.classes[self.flows.table[i].class];
        class.acks_rewritten += u64::from(rewritten);
        class.acks_forwarded += u64::from(!rewritten);
        self.forward(cx, out, frame);
    }

    /// Forwards a segment of the receiver as it came.
    pub(super) fn forward_untouched(&mut self, cx: &mut Cx<'_>, i: FlowId, frame: Frame) {
        let r = &self.flows.table[i];
        self.flows.classes[r.class].acks_forwarded += 1;
        self.forward(cx, ack_out(r), frame);
    }
}
