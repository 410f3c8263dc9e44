//! Held ACKs: how progress comes to be held, and goes ahead of its time, as a number or as ACKs that wait
//! themselves.

use super::flows::ack_out;
use super::flows::segment::{parse, Headers};
use super::release::gap;
use super::Gateway;
use crate::ack::Arrival;
use crate::flow::{flag, FlowId};
use crate::frame::Frame;
use crate::node::Cx;
use crate::time::Time;
use crate::wire::{Flags, Seq, TcpOptions};
use core::sync::atomic::Ordering::Relaxed;

impl Gateway {
    /// A pure ACK whose number is all that it tells, of this many bytes `more`.
    pub(super) fn hold(
        &mut self,
        cx: &mut Cx<'_>,
        i: FlowId,
        segment: &Headers,
        options: &TcpOptions,
        frame: Frame,
        more: u32,
    ) {
        if self.flows.table[i].takes_turns() {
            self.flows.table[i].held_acks += 1;
            self.flows.note_echo(i, options);
            self.await_turn(cx, i, more);
            return self.flows.absorb(cx, i, frame);
        }
        let room = self.outbox.has_room(ack_out(&self.flows.table[i]), 1);
        if room && !self.flows.is_engaged(i) {
            self.flows.stop_timer(i);
            if self.flows.table[i].held() > more.saturating_mul(2) {
                self.flows.table[i].held_acks += 1;
                self.flows.note_echo(i, options);
                self.pass_held(cx, i, more.saturating_mul(2));
                return self.flows.absorb(cx, i, frame);
            }
            self.flows.not_asked(i, cx.now);
            self.pass_on(cx, i, segment, frame);
            return;
        }
        let depth = self.flows.policy(&self.flows.table[i]).release.depth();
        let r = &mut self.flows.table[i];
        let idle = !r.has(flag::ARMED) && room && r.held() > 0 && !r.is_soon(cx.now, depth);
        let (last, held) = (Time::from_nanos(r.law.pace().due), r.held());
        if idle && r.law.pace_mut().arrive(cx.now, held, depth) == Arrival::Release {
            let passed = self.pass_on(cx, i, segment, frame);
            return self.flows.grant_busy(i, cx.now, last, passed);
        }
        r.held_acks += 1;
        self.flows.arm(cx, i, options, idle);
        self.flows.absorb(cx, i, frame);
    }

    /// An ACK leaves as it came, with all that was held. Returns the bytes that it acknowledges.
    fn pass_on(&mut self, cx: &mut Cx<'_>, i: FlowId, segment: &Headers, frame: Frame) -> u32 {
        let r = &self.flows.table[i];
        let (passed, to) = (r.held(), r.rx);
        if r.has_news() && self.generate(cx, i, to, cx.now) {
            self.flows.absorb(cx, i, frame);
            return passed;
        }
        let r = &mut self.flows.table[i];
        r.told_marks(passed, segment.has(Flags::ECE));
        (r.tx, r.held_acks) = (r.rx, 0);
        r.echoes.clear();
        r.forget_news();
        self.flows.count_acked(i, passed);
        self.forward_ack(cx, i, segment, frame, segment.tcp.ack);
        passed
    }

    /// Progress of this many bytes `more` that came on a segment with payload.
    pub(super) fn schedule(&mut self, cx: &mut Cx<'_>, i: FlowId, options: &TcpOptions, more: u32) {
        let r = &mut self.flows.table[i];
        if r.held() == 0 {
            return;
        }
        if r.takes_turns() {
            self.flows.note_echo(i, options);
            return self.await_turn(cx, i, more);
        }
        if !self.flows.is_engaged(i) {
            self.flows.note_echo(i, options);
            self.flows.stop_timer(i);
            return self.pass_held(cx, i, more.saturating_mul(2));
        }
        let depth = self.flows.policy(&self.flows.table[i]).release.depth();
        let r = &mut self.flows.table[i];
        let idle = !r.has(flag::ARMED) && !r.is_soon(cx.now, depth);
        let (last, held) = (Time::from_nanos(r.law.pace().due), r.held());
        if idle && r.law.pace_mut().arrive(cx.now, held, depth) == Arrival::Release {
            let to = r.rx;
            if let Some(t) = options.timestamps {
                r.echoes.push(r.rx, t.echo);
            }
            if self.generate(cx, i, to, cx.now) {
                return self.flows.grant_busy(i, cx.now, last, held);
            }
            self.flows.table[i].law.pace_mut().refund(held);
            return self.flows.wait(i, cx.now);
        }
        self.flows.arm(cx, i, options, idle);
    }

    /// Up to one segment ahead of its time, so that the sender sees a counter move.
    pub(super) fn release_early(&mut self, cx: &mut Cx<'_>, i: FlowId) {
        if self.flows.table[i].queues_acks() {
            return; // each ACK shows its own
        }
        let r = &self.flows.table[i];
        let bytes = r.held().min(r.shared_mss());
        if self.flows.is_too_much(r, bytes) {
            return;
        }
        let (to, ace) = (r.tx.plus(bytes), r.ace);
        self.flows.marks.of(i.index()).show(ace);
        if self.generate_early(cx, i, to) && self.flows.table[i].held() == 0 {
            self.flows.settle(i, cx.now);
        }
    }

    /// Makes an ACK up to `to` that does not wait for its time.
    fn generate_early(&mut self, cx: &mut Cx<'_>, i: FlowId, to: Seq) -> bool {
        if self.flows.table[i].takes_turns() {
            return self.release_at_once(cx, i, to);
        }
        let bytes = to.since(self.flows.table[i].tx);
        // Before the window is written, which lags behind by what is early.
        self.flows.told_early(i, bytes, cx.now);
        let made = self.generate(cx, i, to, cx.now);
        if !made {
            self.flows.table[i].law.pace_mut().refund(bytes);
        }
        made
    }

    /// Releases held bytes before an ACK for `ack` that tells more than progress and follows at once.
    pub(super) fn flush_for(&mut self, cx: &mut Cx<'_>, i: FlowId, ack: Seq) {
        self.flows.bound(i);
        let in_order = self.release_acks(cx, i);
        let r = &self.flows.table[i];
        let (held, rx) = (r.held(), r.rx);
        if held > 0 && in_order {
            self.generate_early(cx, i, rx);
        }
        if ack.is_after(rx) && !self.flows.table[i].takes_turns() {
            self.flows.told_early(i, ack.since(rx), cx.now);
        }
    }

    /// Passes on everything that the flow holds, at once. False if that is not possible now: it stays held.
    pub(super) fn flush(&mut self, cx: &mut Cx<'_>, i: FlowId) -> bool {
        self.flows.follow(i, cx.now);
        let before = self.flows.held(i);
        if !self.flows.table[i].holds() || self.flows.table[i].has(flag::CLOSED) {
            return true;
        }
        if !self.release_acks(cx, i) {
            self.flows.note_held(i, before);
            return false;
        }
        if self.flows.table[i].held() > 0 && !self.generate_early(cx, i, self.flows.table[i].rx) {
            self.flows.note_held(i, before);
            return false;
        }
        self.flows.settle(i, cx.now);
        self.flows.note_held(i, before);
        true
    }

    /// As [`Gateway::flush`]. Where the gateway ends, the receiver's own window goes too: a sender whose
    /// window lags behind would hear of more only when its persist timer runs out (RFC 9293 §3.8.6.1).
    pub(super) fn let_go(&mut self, cx: &mut Cx<'_>, i: FlowId) -> bool {
        if self.flows.ends {
            self.flows.slots[i].width.store(0, Relaxed);
        }
        if !self.flush(cx, i) {
            return false;
        }
        let r = &self.flows.table[i];
        let live = r.has(flag::SYNCED) && r.flags & (flag::CLOSED | flag::PASSES) == 0;
        !(self.flows.ends && live && self.flows.edge_moves(i))
            || self.generate(cx, i, self.flows.table[i].rx, cx.now)
    }

    /// Nothing is held back any more, and what is held leaves by and by: up to `most` bytes now, a segment at
    /// least, and a step after each period in which no ACK brings more. All at once would be as large a burst
    /// as the window. Where there is no room, it is tried again.
    pub(super) fn pass_held(&mut self, cx: &mut Cx<'_>, i: FlowId, most: u32) {
        self.flows.not_asked(i, cx.now);
        let r = &mut self.flows.table[i];
        r.set(flag::WAITING, false);
        let to = r.tx.plus(r.held().min(most.max(r.mss.into())));
        if self.generate(cx, i, to, cx.now) {
            let pace = self.flows.table[i].law.pace_mut();
            pace.due = (cx.now + pace.period()).saturating_sub(gap(pace)).as_nanos();
        }
        self.flows.wait(i, cx.now);
    }

    /// An ACK waits behind those that do, or leaves if its flow's turn is now. `only_progress`: it tells
    /// nothing else.
    pub(super) fn queue_ack(
        &mut self,
        cx: &mut Cx<'_>,
        i: FlowId,
        (segment, options): (&Headers, &TcpOptions),
        frame: Frame,
        only_progress: bool,
    ) {
        if self.flows.table[i].law.steps().waiting_acks() == 0 && !self.is_full(i) && self.flows.may_pass(i) {
            return self.leave(cx, i, segment, frame);
        }
        let waiting = self.flows.table[i].law.steps().waiting_acks();
        if !cx.frames.may_keep(waiting) {
            self.flows.note_echo(i, options); // its number is held still
            self.flows.absorb(cx, i, frame);
        } else {
            self.flows.park(cx, i, frame, only_progress);
        }
        self.await_turn(cx, i, 1); // one comes, one may go
    }

    /// Returns whether there is no room for an ACK of the flow.
    fn is_full(&self, i: FlowId) -> bool {
        !self.outbox.has_room(ack_out(&self.flows.table[i]), 1)
    }

    /// One ACK of what the flow holds leaves: the one that waits longest, or one for what is held without.
    /// Returns the bytes that it acknowledges; `None` if nothing is held, or nothing can leave now.
    pub(super) fn release_ack(&mut self, cx: &mut Cx<'_>, i: FlowId) -> Option<u32> {
        if self.is_full(i) {
            return None;
        }
        while let Some((frame, only_progress)) = self.flows.unpark(cx, i) {
            let parsed = parse(cx.frames.bytes(&frame), frame.len()).ok();
            let tx = self.flows.table[i].tx;
            match parsed.filter(|segment| !only_progress || segment.tcp.ack.is_after(tx)) {
                None => self.flows.absorb(cx, i, frame),
                Some(segment) => {
                    self.leave(cx, i, &segment, frame);
                    return Some(self.flows.table[i].tx.since(tx));
                }
            }
        }
        let r = &self.flows.table[i];
        let (held, rx) = (r.held(), r.rx);
        (held > 0 && self.generate(cx, i, rx, cx.now)).then_some(held)
    }

    /// An ACK of the flow leaves, as it came but for what has changed since. What the sender knows follows
    /// it.
    pub(super) fn leave(&mut self, cx: &mut Cx<'_>, i: FlowId, segment: &Headers, frame: Frame) {
        let (r, ack) = (&mut self.flows.table[i], segment.tcp.ack);
        if ack.is_after(r.tx) {
            let bytes = ack.since(r.tx);
            r.told_marks(bytes, segment.has(Flags::ECE));
            r.echoes.release(ack);
            r.tx = ack;
            self.flows.count_acked(i, bytes);
        }
        self.forward_ack(cx, i, segment, frame, ack);
        self.flows.look_at_data(i, cx.now);
    }

    /// All ACKs that wait leave. False if there is no room: those that are left wait still.
    pub(super) fn release_acks(&mut self, cx: &mut Cx<'_>, i: FlowId) -> bool {
        if !self.flows.table[i].queues_acks() {
            return true;
        }
        while self.flows.table[i].law.steps().waiting_acks() > 0 {
            if self.release_ack(cx, i).is_none() && self.flows.table[i].law.steps().waiting_acks() > 0 {
                return false;
            }
        }
        true
    }
}
