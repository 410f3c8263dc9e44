//! The path of a segment that acknowledges data of a controlled flow.
//!
//! Pure ACKs that only advance the number are absorbed into `rx` and released by time. Everything
//! that tells the sender more than progress leaves at once, after what is held: duplicates, SACK
//! blocks, closed windows. Segments with payload leave at once with their ACK field set
//! back to `tx`; FIN and RST as they came. What keeps its place although it tells more is in `flows/held`.

use super::arrive::Copied;
use super::flows::ack_out;
use super::flows::belief::{Admitted, Reading};
use super::flows::segment::Headers;
use super::Gateway;
use crate::ack::{Fate, Kind, News, ACE_MOST};
use crate::flow::{flag, FlowId};
use crate::frame::Frame;
use crate::node::Cx;
use crate::steer::{self, Action};
use crate::wire::{EcnBytes, Flags, Seq, TcpOptions};

/// AccECN's counter is passed on when it has moved this far unseen.
const ACE_STEP: u8 = 4;

impl Gateway {
    /// A segment that is here.
    pub(super) fn on_ack_direction(&mut self, cx: &mut Cx<'_>, i: FlowId, segment: &Headers, frame: Frame) {
        let out = ack_out(&self.flows.table[i]);
        let look = self.flows.granted(i);
        let (tx, shown) = (self.flows.table[i].tx, self.flows.table[i].has(flag::SHOWN));
        let reading = Reading::of(cx.frames.bytes(&frame), segment, cx.now);
        if shown && self.flows.is_unreported(i, &reading.seen) {
            self.flows.see_granted(i, &reading.seen, cx.now);
            match self.flows.slots[i].believed(&reading.seen) {
                Action::SetBack { ack, window, .. } => {
                    self.forward_set_back(cx, i, segment, frame, ack, window);
                }
                _ => self.forward_untouched(cx, i, frame),
            }
            return;
        }
        match self.admit(cx, i, segment, &reading, &frame, true) {
            Admitted::Odd(reason) if reading.seen.is_pure() => {
                self.flows.count_passed(i, reason);
                return self.let_through(cx, i, segment, &reading, frame);
            }
            Admitted::Believed | Admitted::Odd(_) => {}
            Admitted::First => return self.forward_ack(cx, i, segment, frame, segment.tcp.ack),
            Admitted::Untouched(reason) => {
                self.flows.count_passed(i, reason);
                return self.forward(cx, out, frame);
            }
            Admitted::Passes => return self.forward_untouched(cx, i, frame),
        }
        let Reading { options, seen, .. } = &reading;
        match self.flows.action(i, seen, shown) {
            Action::Take => {
                self.take(cx, i, segment, options, frame);
                match look {
                    Some(look) => self.flows.grant_again(i, cx.now, look),
                    None if self.flows.table[i].takes_steps() => self.flows.grant_shared(i, cx.now, None),
                    None => {}
                }
            }
            Action::Pass => self.forward_untouched(cx, i, frame),
            Action::Copy => {
                self.flows.on_passed(cx, i, segment, &frame, tx);
                self.forward_untouched(cx, i, frame);
            }
            Action::SetBack { ack, window, report } => {
                self.flows.learn(i, cx, segment, &frame);
                self.forward_set_back(cx, i, segment, frame, ack, window);
                if report {
                    self.on_set_back(cx, i, segment, options);
                }
            }
        }
    }

    fn forward_set_back(
        &mut self,
        cx: &mut Cx<'_>,
        i: FlowId,
        segment: &Headers,
        frame: Frame,
        ack: Seq,
        window: u16,
    ) {
        steer::set_back(cx.frames, &frame, &segment.packet, ack, window);
        self.flows.classes[self.flows.table[i].class].acks_rewritten += 1;
        self.forward(cx, ack_out(&self.flows.table[i]), frame);
    }

    /// The headers of a segment that passed.
    pub(super) fn on_ack_copy(
        &mut self,
        cx: &mut Cx<'_>,
        i: FlowId,
        segment: &Headers,
        copied: Copied,
        frame: &Frame,
    ) {
        let tx = self.flows.table[i].tx;
        let reading = Reading::of(cx.frames.bytes(frame), segment, cx.now);
        match self.admit(cx, i, segment, &reading, frame, false) {
            Admitted::Believed | Admitted::Odd(_) => {}
            Admitted::Untouched(reason) => {
                self.flows.count_passed(i, reason);
                return;
            }
            Admitted::Passes | Admitted::First => return,
        }
        let Reading { options, seen, .. } = &reading;
        match copied {
            Copied::Passed => {
                // The hook may not have known the slot yet.
                self.flows.note_passed(i, seen);
                if self.flows.config.observe {
                    self.flows.measure(i, seen.ack, cx.now);
                    self.flows.measure_left(i, seen.ack, cx.now);
                }
                self.flows.on_passed(cx, i, segment, frame, tx);
            }
            Copied::SetBack => {
                self.flows.learn(i, cx, segment, frame);
                self.on_set_back(cx, i, segment, options);
            }
        }
    }

    /// A segment with payload passed, set back: its progress waits like any other.
    fn on_set_back(&mut self, cx: &mut Cx<'_>, i: FlowId, segment: &Headers, options: &TcpOptions) {
        self.flows.follow(i, cx.now);
        self.flows.table[i].doubt.current(cx.now);
        let before = self.flows.held(i);
        self.flows.progress(i, segment.tcp.ack, segment.has(Flags::ECE));
        let more = self.flows.held(i).bytes.saturating_sub(before.bytes);
        if !self.flows.table[i].has(flag::PASSES) {
            self.schedule(cx, i, options, more);
            return self.flows.note_held(i, before);
        }
        self.flows.note_held(i, before);
        if !self.flush(cx, i) {
            self.flows.wait(i, cx.now);
        }
    }

    /// An ACK without payload that is the gateway's to deal with.
    pub(super) fn take(
        &mut self,
        cx: &mut Cx<'_>,
        i: FlowId,
        segment: &Headers,
        options: &TcpOptions,
        frame: Frame,
    ) {
        let ack = segment.tcp.ack;
        if !self.flows.table[i].tx.is_after(ack) {
            self.flows.table[i].doubt.current(cx.now);
        } else if self.flows.is_last_word(i, options, cx.now) {
            self.flows.renew(i, segment, options, cx, &frame, true);
            return self.forward_ack(cx, i, segment, frame, ack);
        }
        self.flows.check_sequence(i, segment.tcp.seq, cx.now);
        let news = News::of(&self.flows.table[i], &segment.tcp, options);
        self.show_counter(cx, i, &news);
        let out = ack_out(&self.flows.table[i]);
        let r = &self.flows.table[i];
        // Progress and whatever goes at once do not ask for it.
        let limit = if news.kind == Kind::Window { self.flows.window_limit(r) } else { None };
        let fate = self.flows.policy(r).hold.fate(&news, r, segment.tcp.window, limit);
        let mut fate = self.flows.place(i, &news, fate, segment, options);
        if fate == Fate::Hold && self.goes_around(cx, i, &news, segment, &frame) {
            fate = Fate::AfterFlush;
        }
        if !self.outbox.has_room(out, 2) {
            fate = Fate::Hold; // its progress is kept, what else it tells is lost as by any queue
        }
        let before = self.flows.held(i);
        // What is held was acknowledged under the old flags, window and timestamps.
        if matches!(fate, Fate::AfterFlush) {
            self.flush_for(cx, i, ack);
        }
        self.flows.learn(i, cx, segment, &frame);
        self.flows.progress(i, segment.tcp.ack, segment.has(Flags::ECE));
        let loss = matches!(news.kind, Kind::Sack | Kind::Duplicate) && fate != Fate::Keep;
        if loss && self.flows.table[i].takes_turns() {
            self.flows.table[i].flags |= flag::LOSS;
            self.flows.drop_probe(i);
        }
        let more = self.flows.held(i).bytes.saturating_sub(before.bytes);
        match fate {
            Fate::AfterFlush => {
                let passed = ack.beyond(self.flows.table[i].tx);
                if passed > 0 {
                    self.flows.count_acked(i, passed);
                    self.flows.keep_edge(i, passed, cx.now);
                }
                let r = &mut self.flows.table[i];
                let edge = r.edge;
                if ack.is_after(r.tx) {
                    r.told_marks(ack.since(r.tx), news.ece);
                    r.tx = ack;
                }
                r.echoes.clear();
                r.forget_news();
                if r.held() == 0 {
                    r.held_acks = 0;
                    self.flows.settle(i, cx.now);
                }
                self.forward_ack(cx, i, segment, frame, ack);
                if passed > 0 {
                    self.flows.permit_early(i, passed, edge, cx.now);
                }
            }
            Fate::SetBack => {
                self.schedule(cx, i, options, more);
                let tx = self.flows.table[i].tx;
                self.forward_ack(cx, i, segment, frame, if ack.is_after(tx) { tx } else { ack });
            }
            Fate::AsItCame => self.forward_ack(cx, i, segment, frame, ack),
            Fate::Keep => self.keep(cx, i, segment, options, frame),
            Fate::Hold => self.hold(cx, i, segment, options, frame, more),
            Fate::Queue => {
                let only_progress = news.kind == Kind::Progress;
                self.queue_ack(cx, i, (segment, options), frame, only_progress);
            }
            Fate::Absorb => self.flows.absorb(cx, i, frame),
        }
        self.show_held_counter(cx, i);
        self.flows.note_held(i, before);
        self.flows.close_if_done(i, cx.now);
    }

    /// Returns whether an ACK's counter of packets has gone around since the one before it. Its sender can
    /// tell by what it acknowledges, as it came.
    fn goes_around(&self, cx: &Cx<'_>, i: FlowId, news: &News, segment: &Headers, frame: &Frame) -> bool {
        let r = &self.flows.table[i];
        if !r.has(flag::ACCECN) || self.flows.is_too_much(r, segment.tcp.ack.since(r.tx)) {
            return false;
        }
        let bytes = EcnBytes::read(cx.frames.bytes(frame), &segment.packet, &segment.tcp);
        bytes.is_some_and(|bytes| self.flows.marks.known(i.index()).goes_around(&bytes, news.counter, r.mss))
    }

    /// An ACK is about to be held. If its counter would hide what the one before has told, that goes first.
    fn show_counter(&mut self, cx: &mut Cx<'_>, i: FlowId, news: &News) {
        let r = &self.flows.table[i];
        if !r.has(flag::ACCECN) || r.held() == 0 {
            return;
        }
        if r.ace_unseen() + news.counter > ACE_MOST {
            self.release_early(cx, i);
        }
    }

    /// An ACK was held: its counter is shown before it can have gone around.
    fn show_held_counter(&mut self, cx: &mut Cx<'_>, i: FlowId) {
        let r = &self.flows.table[i];
        if r.has(flag::ACCECN) && r.ace_unseen() >= ACE_STEP {
            self.release_early(cx, i);
        }
    }

    /// Keeps what the ACK tells with what is held, of which its own progress is part.
    pub(super) fn keep(
        &mut self,
        cx: &mut Cx<'_>,
        i: FlowId,
        segment: &Headers,
        options: &TcpOptions,
        frame: Frame,
    ) {
        let r = &mut self.flows.table[i];
        r.note_news(segment.tcp.ack, options);
        r.held_acks += 1;
        // Where nothing is held back, the sender hears of a loss with all that was.
        self.schedule(cx, i, options, u32::MAX);
        self.flows.absorb(cx, i, frame);
    }
}
