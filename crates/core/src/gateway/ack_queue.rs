//! ACKs that wait themselves ([`Hold::Queue`](crate::ack::Hold::Queue)), a queue for each flow.
//!
//! The record's numbers say what is held, as for every policy: `rx - tx` bytes. The queue is what the ACKs
//! told beside that, in the order in which they came. So a queue that is lost, because an engine died or the
//! pool is nearly used up, loses no progress: what it had acknowledged goes with an ACK that is made. An ACK
//! for progress that the sender has heard of meanwhile is absorbed instead of sent, since it would count as a
//! duplicate; a duplicate that waits stays one.

use super::segment::parse;
use super::{ack_out, after, Gateway, Headers};
use crate::frame::{Charge, Frame, List, Waiting};
use crate::node::Cx;
use crate::wire::{Flags, TcpOptions};

/// An ACK that waits is charged as so many packets if it tells nothing but progress, and as none if it tells
/// more.
const PROGRESS: u32 = 1;

impl Gateway {
    /// An ACK waits behind those that do, or leaves if its flow's turn is now. `only_progress`: it tells
    /// nothing else.
    pub(super) fn queue_ack(
        &mut self,
        cx: &mut Cx<'_>,
        i: u32,
        (segment, options): (&Headers, &TcpOptions),
        frame: Frame,
        only_progress: bool,
    ) {
        if self.table[i].law.steps().waiting_acks() == 0 && !self.is_full(i) && self.may_pass(i) {
            return self.leave(cx, i, segment, frame);
        }
        if cx.frames.is_scarce() {
            self.note_echo(i, options); // its number is held still
            self.absorb(cx, i, frame);
        } else {
            self.park(cx, i, frame, only_progress);
        }
        self.await_turn(cx, i, 1); // one comes, one may go
    }

    /// Is there no room for an ACK of the flow?
    fn is_full(&self, i: u32) -> bool {
        !self.outbox.has_room(ack_out(&self.table[i]), 1)
    }

    fn park(&mut self, cx: &mut Cx<'_>, i: u32, frame: Frame, only_progress: bool) {
        let charge = Charge { packets: if only_progress { PROGRESS } else { 0 }, bytes: frame.len() as u64 };
        let since = self.due_of_ack(i, cx.now);
        let waiting = Waiting { frame: cx.frames.park(frame), charge, since };
        let r = &mut self.table[i];
        let mut acks = r.law.steps().acks();
        acks.push(cx.frames, waiting);
        r.law.steps_mut().set_acks(&acks);
        let class = &mut self.classes[r.class];
        class.ack_queue_bytes += charge.bytes;
        class.ack_queue_bytes_peak = class.ack_queue_bytes_peak.max(class.ack_queue_bytes);
        class.note_data(class.data_bytes);
    }

    /// The ACK that waits longest waits no more. Does it tell nothing but progress?
    fn unpark(&mut self, cx: &mut Cx<'_>, i: u32) -> Option<(Frame, bool)> {
        let r = &mut self.table[i];
        let mut acks = r.law.steps().acks();
        let waiting = acks.pop(cx.frames)?;
        r.law.steps_mut().set_acks(&acks);
        self.classes[r.class].ack_queue_bytes -= waiting.charge.bytes;
        Some((cx.frames.unpark(waiting.frame), waiting.charge.packets == PROGRESS))
    }

    /// One ACK of what the flow holds leaves: the one that waits longest, or one for what is held without.
    /// Returns the bytes that it acknowledges; `None` if nothing is held, or nothing can leave now.
    pub(super) fn release_ack(&mut self, cx: &mut Cx<'_>, i: u32) -> Option<u32> {
        if self.is_full(i) {
            return None;
        }
        while let Some((frame, only_progress)) = self.unpark(cx, i) {
            let parsed = parse(cx.frames.bytes(&frame), frame.len()).ok();
            let tx = self.table[i].tx;
            match parsed.filter(|segment| !only_progress || after(segment.tcp.ack, tx)) {
                None => self.absorb(cx, i, frame),
                Some(segment) => {
                    self.leave(cx, i, &segment, frame);
                    return Some(self.table[i].tx.wrapping_sub(tx));
                }
            }
        }
        let r = &self.table[i];
        let (held, rx) = (r.held(), r.rx);
        (held > 0 && self.generate(cx, i, rx, cx.now)).then_some(held)
    }

    /// An ACK of the flow leaves, as it came but for what has changed since. What the sender knows follows
    /// it.
    fn leave(&mut self, cx: &mut Cx<'_>, i: u32, segment: &Headers, frame: Frame) {
        let (r, ack) = (&mut self.table[i], segment.tcp.ack);
        if after(ack, r.tx) {
            let bytes = ack.wrapping_sub(r.tx);
            r.told_marks(bytes, segment.has(Flags::ECE));
            r.echoes.release(ack);
            r.tx = ack;
            self.count_acked(i, bytes);
        }
        self.forward_ack(cx, i, segment, frame, ack);
        self.look_at_data(i, cx.now);
    }

    /// All ACKs that wait leave. False if there is no room: those that are left wait still.
    pub(super) fn release_acks(&mut self, cx: &mut Cx<'_>, i: u32) -> bool {
        if !self.table[i].queues_acks() {
            return true;
        }
        while self.table[i].law.steps().waiting_acks() > 0 {
            if self.release_ack(cx, i).is_none() && self.table[i].law.steps().waiting_acks() > 0 {
                return false;
            }
        }
        true
    }

    /// No ACK of the flow waits any more: what they acknowledge is held as a number, what else they tell is
    /// lost, as by any queue.
    pub(super) fn clear_acks(&mut self, cx: &mut Cx<'_>, i: u32) {
        if !self.table[i].queues_acks() {
            return;
        }
        let before = self.held(i);
        while let Some((frame, _)) = self.unpark(cx, i) {
            self.absorb(cx, i, frame);
        }
        self.note_held(i, before);
    }

    /// The ACKs that waited in an earlier engine were lost with its pool, and the data with its queues.
    pub(super) fn forget_acks(&mut self, i: u32) {
        let r = &mut self.table[i];
        if r.takes_steps() {
            r.law.steps_mut().forget_data();
            r.law.steps_mut().end_probe();
        }
        if r.queues_acks() {
            r.law.steps_mut().set_acks(&List::new());
        }
    }
}
