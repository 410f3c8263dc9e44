//! ACKs that leave: made here, or the receiver's with what may go with them.

use super::generate::{write_ack, MAX_ACK_LEN};
use super::{ack_out, after, Gateway, Segment};
use crate::ack::window;
use crate::frame::{Checksum, Frame};
use crate::node::Cx;
use crate::steer::{self, Stamp};
use crate::time::Time;
use core::sync::atomic::Ordering::Relaxed;

impl Gateway {
    /// Makes an ACK up to `to` and sends it off as due at `at`. False when there is no frame or no room for it:
    /// what is held stays held.
    pub(super) fn generate(&mut self, cx: &mut Cx<'_>, i: u32, to: u32, at: Time) -> bool {
        let limit = self.window_limit(&self.table[i]);
        self.slots[i].width.store(limit.unwrap_or(0), Relaxed);
        let out = ack_out(&self.table[i]);
        if !self.outbox.has_room(out, 1) {
            return false;
        }
        let Some(frame) = cx.frames.make(MAX_ACK_LEN, at) else {
            self.stats.pool_exhausted += 1;
            return false;
        };
        let r = &mut self.table[i];
        r.catch_up(&self.slots[i]);
        let released = to.wrapping_sub(r.tx);
        let mut field = window::advertise(r, to, limit);
        if !self.hooked {
            if let Stamp::Send { window, .. } = self.slots[i].stamp(to, field) {
                field = window;
            }
        }
        let ece = r.shows_ece();
        let len = write_ack(r, &self.slots[i], to, field, ece, cx.frames.bytes_mut(&frame));
        let mut frame = cx.frames.truncate(frame, len);
        (frame.checksum, frame.restamp) = (Checksum::Valid, true);
        let gone = u64::from(r.held_acks) * u64::from(released) / u64::from(r.held().max(1));
        r.held_acks -= gone as u32;
        r.tx = to;
        r.ace_sent = r.ace;
        r.told_marks(released, ece);
        r.echoes.release(to);
        self.classes[r.class].acks_generated += 1;
        self.count_acked(i, released);
        self.stats.ledger.made += 1;
        self.outbox.push(cx, &mut self.stats.ledger, out, at, frame);
        true
    }

    /// Forwards an ACK of the receiver with `ack` in its ACK field and the window that may go with it.
    pub(super) fn forward_ack(
        &mut self,
        cx: &mut Cx<'_>,
        i: u32,
        segment: &Segment,
        mut frame: Frame,
        ack: u32,
    ) {
        let r = &self.table[i];
        if after(r.tx, ack) {
            return self.forward_untouched(cx, i, frame); // it was overtaken, and tells something all the same
        }
        let limit = self.window_limit(r);
        let r = &mut self.table[i];
        let out = ack_out(r);
        r.ace_sent = r.ace;
        // A window that is kept is touched only where the acknowledgement is.
        let field = if limit.is_none() && ack == segment.tcp.ack {
            window::forwarded(r, ack, segment.tcp.window);
            segment.tcp.window
        } else {
            window::advertise(r, ack, limit)
        };
        let rewritten = field != segment.tcp.window || ack != segment.tcp.ack;
        if rewritten {
            steer::set_back(cx.frames, &frame, &segment.packet, ack, field);
        }
        frame.restamp = true;
        if !self.hooked {
            let stamp = self.slots[i].stamp(ack, field);
            if !steer::restamp(cx.frames, &frame, &segment.packet, &segment.tcp, stamp) {
                return self.absorb(cx, i, frame); // nothing new after a FIN
            }
        }
        let class = &mut self.classes[self.table[i].class];
        class.acks_rewritten += u64::from(rewritten);
        class.acks_forwarded += u64::from(!rewritten);
        self.forward(cx, out, frame);
    }

    /// Forwards a segment of the receiver as it came.
    pub(super) fn forward_untouched(&mut self, cx: &mut Cx<'_>, i: u32, frame: Frame) {
        let r = &self.table[i];
        self.classes[r.class].acks_forwarded += 1;
        self.forward(cx, ack_out(r), frame);
    }

    pub(super) fn absorb(&mut self, cx: &mut Cx<'_>, i: u32, frame: Frame) {
        self.classes[self.table[i].class].acks_absorbed += 1;
        self.stats.ledger.absorbed += 1;
        cx.frames.absorb(frame);
    }
}
