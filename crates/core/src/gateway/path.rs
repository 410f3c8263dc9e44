//! The path of a segment that acknowledges data of a controlled flow.
//!
//! Pure ACKs that only advance the number are absorbed into `rx` and released by time. Everything
//! that tells the sender more than progress leaves at once, after what is held: duplicates, SACK
//! blocks, closed windows. Segments with payload leave at once with their ACK field set
//! back to `tx`; FIN and RST as they came. What keeps its place although it tells more is in `place`.

use super::admit::Admitted;
use super::passing::Reading;
use super::{ack_out, after, Copied, Gateway, Headers};
use crate::ack::window;
use crate::ack::{Fate, Kind, News, ACE_MOST};
use crate::flow::flag;
use crate::frame::Frame;
use crate::node::Cx;
use crate::steer::{self, Action, Seen};
use crate::wire::{Flags, TcpOptions};

/// AccECN's counter is passed on when it has moved this far unseen.
const ACE_STEP: u8 = 4;

impl Gateway {
    /// A segment that is here.
    pub(super) fn on_ack_direction(&mut self, cx: &mut Cx<'_>, i: u32, segment: &Headers, frame: Frame) {
        let out = ack_out(&self.table[i]);
        let look = self.granted(i);
        let (tx, shown) = (self.table[i].tx, self.table[i].has(flag::SHOWN));
        let reading = Reading::of(cx.frames.bytes(&frame), segment, cx.now);
        if shown && self.is_unreported(i, &reading.seen) {
            match self.slots[i].believed(&reading.seen) {
                Action::SetBack { ack, window, .. } => {
                    self.forward_set_back(cx, i, segment, frame, ack, window);
                }
                _ => self.forward_untouched(cx, i, frame),
            }
            return;
        }
        match self.admit(cx, i, segment, &reading, &frame, true) {
            Admitted::Odd(reason) if reading.seen.is_pure() => {
                self.count_passed(i, reason);
                return self.let_through(cx, i, segment, &reading, frame);
            }
            Admitted::Believed | Admitted::Odd(_) => {}
            Admitted::First => return self.forward_ack(cx, i, segment, frame, segment.tcp.ack),
            Admitted::Untouched(reason) => {
                self.count_passed(i, reason);
                return self.forward(cx, out, frame);
            }
            Admitted::Passes => return self.forward_untouched(cx, i, frame),
        }
        let Reading { options, seen, .. } = &reading;
        match self.action(i, seen, shown) {
            Action::Take => {
                self.take(cx, i, segment, options, frame);
                match look {
                    Some(look) => self.grant_again(i, cx.now, look),
                    None if self.table[i].takes_steps() => self.grant_shared(i, cx.now, None),
                    None => {}
                }
            }
            Action::Pass => self.forward_untouched(cx, i, frame),
            Action::Copy => {
                self.on_passed(cx, i, segment, &frame, tx);
                self.forward_untouched(cx, i, frame);
            }
            Action::SetBack { ack, window, report } => {
                self.learn(i, cx, segment, &frame);
                self.forward_set_back(cx, i, segment, frame, ack, window);
                if report {
                    self.on_set_back(cx, i, segment, options);
                }
            }
        }
    }

    /// Returns whether a hook, which this gateway is itself, deals with a segment of a flow that it was shown
    /// and does not report it. Such a segment changes nothing in the gateway, so that it does the same behind
    /// hooks.
    fn is_unreported(&self, i: u32, seen: &Seen) -> bool {
        !self.hooked
            && !seen.is_pure()
            && seen.flags & (steer::ACK | steer::RST) == steer::ACK
            && self.table[i].has(flag::SYNCED)
            && self.slots[i].deals_with(seen)
    }

    fn forward_set_back(
        &mut self,
        cx: &mut Cx<'_>,
        i: u32,
        segment: &Headers,
        frame: Frame,
        ack: u32,
        window: u16,
    ) {
        steer::set_back(cx.frames, &frame, &segment.packet, ack, window);
        self.classes[self.table[i].class].acks_rewritten += 1;
        self.forward(cx, ack_out(&self.table[i]), frame);
    }

    /// Returns what a hook has done with a segment that is here, or what it would do: of a flow that it was
    /// not `shown` it takes ACKs without payload.
    fn action(&self, i: u32, seen: &Seen, shown: bool) -> Action {
        if !self.hooked && shown {
            return self.slots[i].believed(seen);
        }
        if !seen.is_pure() {
            self.note_passed(i, seen);
            return Action::Copy;
        }
        if !shown {
            self.slots[i].believed(seen); // noted here alone
        }
        Action::Take
    }

    /// A segment passes, or has passed, as it came. Where there are hooks, the gateway notes it on its side.
    pub(super) fn note_passed(&self, i: u32, seen: &Seen) {
        match self.hooked {
            true => self.slots[i].note_left(seen),
            false => self.slots[i].note_passed(seen),
        }
    }

    /// The headers of a segment that passed.
    pub(super) fn on_ack_copy(
        &mut self,
        cx: &mut Cx<'_>,
        i: u32,
        segment: &Headers,
        copied: Copied,
        frame: &Frame,
    ) {
        let tx = self.table[i].tx;
        let reading = Reading::of(cx.frames.bytes(frame), segment, cx.now);
        match self.admit(cx, i, segment, &reading, frame, false) {
            Admitted::Believed | Admitted::Odd(_) => {}
            Admitted::Untouched(reason) => {
                self.count_passed(i, reason);
                return;
            }
            Admitted::Passes | Admitted::First => return,
        }
        let Reading { options, seen, .. } = &reading;
        match copied {
            Copied::Passed => {
                // The hook may not have known the slot yet.
                self.note_passed(i, seen);
                self.on_passed(cx, i, segment, frame, tx);
            }
            Copied::SetBack => {
                self.learn(i, cx, segment, frame);
                self.on_set_back(cx, i, segment, options);
            }
        }
    }

    /// A segment passed as it came: its sender knows its acknowledgement. What that tells ahead of its time
    /// is owed. `tx` is what the sender knew before.
    pub(super) fn on_passed(&mut self, cx: &mut Cx<'_>, i: u32, segment: &Headers, frame: &Frame, tx: u32) {
        self.follow(i, cx.now);
        self.learn(i, cx, segment, frame);
        if !after(tx, segment.tcp.ack) {
            self.table[i].doubt.current(cx.now);
        }
        if segment.has(Flags::FIN) {
            self.table[i].flags |= flag::RECEIVER_FIN;
            self.close_if_done(i, cx.now);
        }
    }

    /// A segment with payload passed, set back: its progress waits like any other.
    fn on_set_back(&mut self, cx: &mut Cx<'_>, i: u32, segment: &Headers, options: &TcpOptions) {
        self.follow(i, cx.now);
        self.table[i].doubt.current(cx.now);
        let before = self.held(i);
        self.progress(i, segment.tcp.ack, segment.has(Flags::ECE));
        let more = self.held(i).bytes.saturating_sub(before.bytes);
        if !self.table[i].has(flag::PASSES) {
            self.schedule(cx, i, options, more);
            return self.note_held(i, before);
        }
        self.note_held(i, before);
        if !self.flush(cx, i) {
            self.wait(i, cx.now);
        }
    }

    /// The receiver has acknowledged as much as this, with ECE or without.
    pub(super) fn progress(&mut self, i: u32, ack: u32, ece: bool) {
        let r = &mut self.table[i];
        if after(ack, r.rx) {
            let bytes = ack.wrapping_sub(r.rx);
            r.note_marks(bytes, ece);
            r.rx = ack;
            r.hole_filled();
            r.check_end();
            self.progressed(i, bytes, self.now, self.now);
            self.note_delay(i, self.now);
        }
    }

    /// An ACK without payload that is the gateway's to deal with.
    fn take(&mut self, cx: &mut Cx<'_>, i: u32, segment: &Headers, options: &TcpOptions, frame: Frame) {
        let ack = segment.tcp.ack;
        if !after(self.table[i].tx, ack) {
            self.table[i].doubt.current(cx.now);
        } else if self.is_last_word(i, options, cx.now) {
            self.renew(i, segment, options, cx, &frame, true);
            return self.forward_ack(cx, i, segment, frame, ack);
        }
        self.check_sequence(i, segment.tcp.seq, cx.now);
        let news = News::of(&self.table[i], &segment.tcp, options);
        self.show_counter(cx, i, &news);
        let out = ack_out(&self.table[i]);
        let r = &self.table[i];
        // Progress and whatever goes at once do not ask for it.
        let limit = if news.kind == Kind::Window { self.window_limit(r) } else { None };
        let fate = self.policy(r).hold.fate(&news, r, segment.tcp.window, limit);
        let mut fate = self.place(i, &news, fate, segment, options);
        if !self.outbox.has_room(out, 2) {
            fate = Fate::Hold; // its progress is kept, what else it tells is lost as by any queue
        }
        let before = self.held(i);
        // What is held was acknowledged under the old flags, window and timestamps.
        if matches!(fate, Fate::AfterFlush) {
            self.flush_for(cx, i, ack);
        }
        self.learn(i, cx, segment, &frame);
        self.progress(i, segment.tcp.ack, segment.has(Flags::ECE));
        if let (Kind::Twice, Some((left, right))) = (news.kind, options.sack.only_twice(ack)) {
            self.got_twice(i, right.wrapping_sub(left));
        }
        let loss = matches!(news.kind, Kind::Sack | Kind::Duplicate) && fate != Fate::Keep;
        if loss && self.table[i].takes_turns() {
            self.table[i].flags |= flag::LOSS;
            self.drop_probe(i);
        }
        let more = self.held(i).bytes.saturating_sub(before.bytes);
        match fate {
            Fate::AfterFlush => {
                let passed = (ack.wrapping_sub(self.table[i].tx) as i32).max(0) as u32;
                if passed > 0 {
                    self.count_acked(i, passed);
                    self.keep_edge(i, passed, cx.now);
                }
                let r = &mut self.table[i];
                let edge = r.edge;
                if after(ack, r.tx) {
                    r.told_marks(ack.wrapping_sub(r.tx), news.ece);
                    r.tx = ack;
                }
                r.echoes.clear();
                r.forget_news();
                if r.held() == 0 {
                    r.held_acks = 0;
                    self.settle(i, cx.now);
                }
                self.forward_ack(cx, i, segment, frame, ack);
                if passed > 0 {
                    self.permit_early(i, passed, edge, cx.now);
                }
            }
            Fate::SetBack => {
                self.schedule(cx, i, options, more);
                let tx = self.table[i].tx;
                self.forward_ack(cx, i, segment, frame, if after(ack, tx) { tx } else { ack });
            }
            Fate::AsItCame => self.forward_ack(cx, i, segment, frame, ack),
            Fate::Keep => self.keep(cx, i, segment, options, frame),
            Fate::Hold => self.hold(cx, i, segment, options, frame, more),
            Fate::Queue => {
                let only_progress = news.kind == Kind::Progress;
                self.queue_ack(cx, i, (segment, options), frame, only_progress);
            }
            Fate::Absorb => self.absorb(cx, i, frame),
        }
        self.show_held_counter(cx, i);
        self.note_held(i, before);
        self.close_if_done(i, cx.now);
    }

    /// Keeps what generated ACKs are made of.
    pub(super) fn learn(&mut self, i: u32, cx: &Cx<'_>, segment: &Headers, frame: &Frame) {
        let r = &mut self.table[i];
        r.template.learn(cx.frames.bytes(frame), &segment.packet);
        if after(r.rx, segment.tcp.ack) {
            return; // an old segment: its window and flags are history
        }
        window::received(r, segment.tcp.ack, segment.tcp.window);
        r.ace = segment.tcp.flags.ace();
        if segment.tcp.payload_len > 0 {
            r.ace_sent = r.ace; // it leaves with its flags
        }
        if r.ace & 6 != 0 && segment.tcp.payload_len == 0 {
            r.flags |= flag::ACCECN; // a pure ACK carries neither AE nor CWR otherwise
        }
    }

    /// An ACK is about to be held. If its counter would hide what the one before has told, that goes first.
    fn show_counter(&mut self, cx: &mut Cx<'_>, i: u32, news: &News) {
        let r = &self.table[i];
        if !r.has(flag::ACCECN) || r.held() == 0 {
            return;
        }
        if r.ace_unseen() + news.counter > ACE_MOST {
            self.release_early(cx, i);
        }
    }

    /// An ACK was held: its counter is shown before it can have gone around.
    fn show_held_counter(&mut self, cx: &mut Cx<'_>, i: u32) {
        let r = &self.table[i];
        if r.has(flag::ACCECN) && r.ace_unseen() >= ACE_STEP {
            self.release_early(cx, i);
        }
    }
}
