//! Held ACKs: how progress comes to be held, gets its timer, goes ahead of its time, and is counted.

use super::held::Held;
use super::release::gap;
use super::{ack_out, after, Gateway, Headers};
use crate::ack::Arrival;
use crate::flow::flag;
use crate::frame::Frame;
use crate::node::Cx;
use crate::time::Time;
use crate::wire::{Flags, TcpOptions};
use core::sync::atomic::Ordering::Relaxed;

impl Gateway {
    /// A pure ACK whose number is all that it tells, of so many bytes `more`.
    pub(super) fn hold(
        &mut self,
        cx: &mut Cx<'_>,
        i: u32,
        segment: &Headers,
        options: &TcpOptions,
        frame: Frame,
        more: u32,
    ) {
        if self.table[i].takes_turns() {
            self.table[i].held_acks += 1;
            self.note_echo(i, options);
            self.await_turn(cx, i, more);
            return self.absorb(cx, i, frame);
        }
        let room = self.outbox.has_room(ack_out(&self.table[i]), 1);
        if room && !self.is_engaged(i) {
            self.stop_timer(i);
            if self.table[i].held() > more.saturating_mul(2) {
                self.table[i].held_acks += 1;
                self.note_echo(i, options);
                self.pass_held(cx, i, more.saturating_mul(2));
                return self.absorb(cx, i, frame);
            }
            self.not_asked(i, cx.now);
            self.pass_on(cx, i, segment, frame);
            return;
        }
        let depth = self.policy(&self.table[i]).release.depth();
        let r = &mut self.table[i];
        let idle = !r.has(flag::ARMED) && room && r.held() > 0 && !r.is_soon(cx.now, depth);
        let (last, held) = (Time::from_nanos(r.law.pace().due), r.held());
        if idle && r.law.pace_mut().arrive(cx.now, held, depth) == Arrival::Release {
            let passed = self.pass_on(cx, i, segment, frame);
            return self.grant_busy(i, cx.now, last, passed);
        }
        r.held_acks += 1;
        self.arm(cx, i, options, idle);
        self.absorb(cx, i, frame);
    }

    /// An ACK leaves as it came, with all that was held. Returns the bytes that it acknowledges.
    fn pass_on(&mut self, cx: &mut Cx<'_>, i: u32, segment: &Headers, frame: Frame) -> u32 {
        let r = &self.table[i];
        let (passed, to) = (r.held(), r.rx);
        if r.has_news() && self.generate(cx, i, to, cx.now) {
            self.absorb(cx, i, frame);
            return passed;
        }
        let r = &mut self.table[i];
        r.told_marks(passed, segment.has(Flags::ECE));
        (r.tx, r.held_acks) = (r.rx, 0);
        r.echoes.clear();
        r.forget_news();
        self.count_acked(i, passed);
        self.forward_ack(cx, i, segment, frame, segment.tcp.ack);
        passed
    }

    /// Progress of so many bytes `more` that came on a segment with payload.
    pub(super) fn schedule(&mut self, cx: &mut Cx<'_>, i: u32, options: &TcpOptions, more: u32) {
        let r = &mut self.table[i];
        if r.held() == 0 {
            return;
        }
        if r.takes_turns() {
            self.note_echo(i, options);
            return self.await_turn(cx, i, more);
        }
        if !self.is_engaged(i) {
            self.note_echo(i, options);
            self.stop_timer(i);
            return self.pass_held(cx, i, more.saturating_mul(2));
        }
        let depth = self.policy(&self.table[i]).release.depth();
        let r = &mut self.table[i];
        let idle = !r.has(flag::ARMED) && !r.is_soon(cx.now, depth);
        let (last, held) = (Time::from_nanos(r.law.pace().due), r.held());
        if idle && r.law.pace_mut().arrive(cx.now, held, depth) == Arrival::Release {
            let to = r.rx;
            if let Some(t) = options.timestamps {
                r.echoes.push(r.rx, t.echo);
            }
            if self.generate(cx, i, to, cx.now) {
                return self.grant_busy(i, cx.now, last, held);
            }
            self.table[i].law.pace_mut().refund(held);
            return self.wait(i, cx.now);
        }
        self.arm(cx, i, options, idle);
    }

    /// Sets a timer for held bytes, unless one is set: for the release that is `scheduled`, or for the end of
    /// the gap after the last ACK.
    fn arm(&mut self, cx: &Cx<'_>, i: u32, options: &TcpOptions, scheduled: bool) {
        self.note_echo(i, options);
        if scheduled {
            let due = self.table[i].timer();
            self.start_timer(i, due);
        } else {
            self.wait(i, cx.now);
        }
    }

    /// Notes the TSecr of held bytes.
    pub(super) fn note_echo(&mut self, i: u32, options: &TcpOptions) {
        let r = &mut self.table[i];
        if let Some(t) = options.timestamps {
            r.echoes.push(r.rx, t.echo);
        }
    }

    /// Lets held bytes wait for the end of the gap after the last ACK, or for a turn, unless they wait
    /// already.
    pub(super) fn wait(&mut self, i: u32, now: Time) {
        if self.table[i].takes_turns() {
            return self.enlist(i, now);
        }
        let r = &mut self.table[i];
        if !r.has(flag::ARMED) && r.held() > 0 {
            r.flags |= flag::WAITING;
            let due = r.timer();
            self.start_timer(i, due);
        }
    }

    /// Up to one segment ahead of its time, so that the sender sees a counter move.
    pub(super) fn release_early(&mut self, cx: &mut Cx<'_>, i: u32) {
        if self.table[i].queues_acks() {
            return; // each ACK shows its own
        }
        let r = &self.table[i];
        let bytes = r.held().min(u32::from(r.mss));
        if self.is_too_much(r, bytes) {
            return;
        }
        let to = r.tx.wrapping_add(bytes);
        if self.generate_early(cx, i, to) && self.table[i].held() == 0 {
            self.settle(i, cx.now);
        }
    }

    /// Makes an ACK up to `to` that does not wait for its time.
    fn generate_early(&mut self, cx: &mut Cx<'_>, i: u32, to: u32) -> bool {
        if self.table[i].takes_turns() {
            return self.release_at_once(cx, i, to);
        }
        let bytes = to.wrapping_sub(self.table[i].tx);
        // Before the window is written, which lags behind by what is early.
        self.told_early(i, bytes, cx.now);
        let made = self.generate(cx, i, to, cx.now);
        if !made {
            self.table[i].law.pace_mut().refund(bytes);
        }
        made
    }

    /// Releases held bytes before an ACK for `ack` that tells more than progress and follows at once.
    pub(super) fn flush_for(&mut self, cx: &mut Cx<'_>, i: u32, ack: u32) {
        self.bound(i);
        let in_order = self.release_acks(cx, i);
        let r = &self.table[i];
        let (held, rx) = (r.held(), r.rx);
        if held > 0 && in_order {
            self.generate_early(cx, i, rx);
        }
        if after(ack, rx) && !self.table[i].takes_turns() {
            self.told_early(i, ack.wrapping_sub(rx), cx.now);
        }
    }

    /// Counts bytes that are acknowledged ahead of their time.
    pub(super) fn told_early(&mut self, i: u32, bytes: u32, now: Time) {
        if self.is_counted(i) {
            return;
        }
        if self.table[i].takes_turns() {
            return self.permit(i, bytes, now);
        }
        if !self.is_engaged(i) {
            return self.not_asked(i, now);
        }
        let r = &self.table[i];
        let (rtt, depth) = (self.rtt(r), self.policy(r).release.depth());
        let r = &mut self.table[i];
        let idle = (!r.has(flag::ARMED)).then_some(now);
        r.law.pace_mut().acknowledge_early(bytes, idle, rtt, depth);
    }

    /// Passes on everything that the flow holds, at once. False if that is not possible now: it stays held.
    pub(super) fn flush(&mut self, cx: &mut Cx<'_>, i: u32) -> bool {
        self.follow(i, cx.now);
        let before = self.held(i);
        if !self.table[i].holds() || self.table[i].has(flag::CLOSED) {
            return true;
        }
        if !self.release_acks(cx, i) {
            self.note_held(i, before);
            return false;
        }
        if self.table[i].held() > 0 && !self.generate_early(cx, i, self.table[i].rx) {
            self.note_held(i, before);
            return false;
        }
        self.settle(i, cx.now);
        self.note_held(i, before);
        true
    }

    /// As [`Gateway::flush`]. Where the gateway ends, the receiver's own window goes too: a sender whose
    /// window lags behind would hear of more only when its persist timer runs out (RFC 9293 §3.8.6.1).
    pub(super) fn let_go(&mut self, cx: &mut Cx<'_>, i: u32) -> bool {
        if self.ends {
            self.slots[i].width.store(0, Relaxed);
        }
        if !self.flush(cx, i) {
            return false;
        }
        let r = &self.table[i];
        let live = r.has(flag::SYNCED) && r.flags & (flag::CLOSED | flag::PASSES) == 0;
        !(self.ends && live && self.edge_moves(i)) || self.generate(cx, i, self.table[i].rx, cx.now)
    }

    /// Nobody is left to hear of what is held. ACKs that wait are [cleared](Gateway::clear_acks) before.
    pub(super) fn drop_held(&mut self, i: u32) {
        debug_assert!(!self.table[i].queues_acks() || self.table[i].law.steps().waiting_acks() == 0);
        let before = self.held(i);
        let r = &mut self.table[i];
        r.tx = r.rx;
        (r.held_acks, r.marked) = (0, 0);
        r.echoes.clear();
        r.forget_news();
        self.end_grant(i);
        self.stop_timer(i);
        self.unlist(i, self.now);
        self.note_held(i, before);
    }

    /// The flow's ACKs are not held now, so its rate is not asked.
    pub(super) fn not_asked(&mut self, i: u32, now: Time) {
        let depth = self.policy(&self.table[i]).release.depth();
        self.table[i].law.pace_mut().begin_anew(now, depth);
    }

    /// Nothing is held back any more, and what is held leaves by and by: up to `most` bytes now, a segment at
    /// least, and a step after each period in which no ACK brings more. All at once would be as large a burst
    /// as the window. Where there is no room, it is tried again.
    pub(super) fn pass_held(&mut self, cx: &mut Cx<'_>, i: u32, most: u32) {
        self.not_asked(i, cx.now);
        let r = &mut self.table[i];
        r.set(flag::WAITING, false);
        let to = r.tx.wrapping_add(r.held().min(most.max(r.mss.into())));
        if self.generate(cx, i, to, cx.now) {
            let pace = self.table[i].law.pace_mut();
            pace.due = (cx.now + pace.period()).saturating_sub(gap(pace)).as_nanos();
        }
        self.wait(i, cx.now);
    }

    /// Nothing is held any more. Releases go on while the right edge lags behind.
    pub(super) fn settle(&mut self, i: u32, now: Time) {
        let r = &self.table[i];
        if r.takes_turns() {
            return; // its turn comes and finds nothing
        }
        if r.law.pace().lag() > 0 && r.has(flag::ARMED) && !r.has(flag::WAITING) {
            return;
        }
        self.disarm(i, now);
        let r = &mut self.table[i];
        if r.law.pace().lag() > 0 {
            r.law.pace_mut().go_on(now);
            let due = r.timer();
            self.start_timer(i, due);
        }
    }

    /// No release is scheduled any more.
    pub(super) fn disarm(&mut self, i: u32, now: Time) {
        self.end_grant(i);
        let r = &mut self.table[i];
        if r.has(flag::ARMED) && r.flags & (flag::WAITING | flag::CLOSED) == 0 {
            r.law.pace_mut().stop(now);
        }
        self.stop_timer(i);
    }

    #[inline]
    pub(super) fn held(&self, i: u32) -> Held {
        self.table[i].held_now()
    }

    /// Keeps the class's account of what is held.
    #[inline]
    pub(super) fn note_held(&mut self, i: u32, before: Held) {
        let r = &self.table[i];
        self.classes[r.class].note_held(before, r.held_now());
    }
}
