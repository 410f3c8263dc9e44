//! What happens to a segment that acknowledges data of a controlled flow.
//!
//! Pure ACKs that only advance the number are absorbed into `rx` and released by time. Everything
//! that tells the sender more than progress leaves at once, after what is held: duplicates, SACK
//! blocks, closed windows. Segments with payload leave at once with their ACK field set
//! back to `tx`; FIN and RST as they came.

use super::marks::ace_of;
use super::{ack_out, after, millis, Copied, Gateway, PassReason, Segment};
use crate::ack::window;
use crate::flow::{flag, Record};
use crate::frame::Frame;
use crate::node::Cx;
use crate::steer::{self, Action, Seen, SEQ_AHEAD};
use crate::time::Time;
use crate::wire::{self, Flags, TcpOptions};
use core::sync::atomic::Ordering::Relaxed;

/// How much the first ACK after a handshake may acknowledge: what a window without a scale allows.
const FIRST_DATA: u32 = 1 << 17;

/// What becomes of an ACK without payload.
enum Fate {
    /// Held progress first, then the segment as it came.
    AfterFlush,
    /// The segment with its ACK field set back to `tx`.
    SetBack,
    /// The segment as it came: nothing is held.
    AsItCame,
    /// Only its number is kept.
    Hold,
    /// It says nothing that is not known.
    Absorb,
}

/// What is found out about a segment before anything else.
enum Admitted {
    /// It passes untouched for this reason.
    Untouched(PassReason),
    /// It passes as it came, and what it tells is known.
    Passes,
    /// The first of its flow, which passes with a sized window.
    First,
    /// It is the receiver's, with these options.
    Believed(TcpOptions, Seen),
}

impl Gateway {
    /// A segment that is here.
    pub(super) fn on_ack_direction(&mut self, cx: &mut Cx<'_>, i: u32, segment: &Segment, frame: Frame) {
        let out = ack_out(&self.table[i]);
        let (tx, shown) = (self.table[i].tx, self.table[i].has(flag::SHOWN));
        let (options, seen) = match self.admit(cx, i, segment, &frame, true) {
            Admitted::First => return self.forward_ack(cx, i, segment, frame, segment.tcp.ack),
            Admitted::Untouched(reason) => return self.pass(cx, out, frame, reason),
            Admitted::Passes => return self.forward_untouched(cx, i, frame),
            Admitted::Believed(options, seen) => (options, seen),
        };
        match self.action(i, &seen, shown) {
            Action::Take => self.take(cx, i, segment, &options, frame),
            Action::Pass => self.forward_untouched(cx, i, frame),
            Action::Copy => {
                self.on_passed(cx, i, segment, &options, &frame, tx);
                self.forward_untouched(cx, i, frame);
            }
            Action::SetBack { ack, window, report } => {
                self.run_missed(cx, i);
                self.learn(i, cx, segment, &options, &frame);
                steer::set_back(cx.frames, &frame, &segment.packet, ack, window);
                self.classes[usize::from(self.table[i].class)].acks_rewritten += 1;
                self.forward(cx, out, frame);
                if report {
                    self.on_set_back(cx, i, segment, &options);
                }
            }
        }
    }

    /// What a hook has done with a segment that is here, or what it would do: of a flow that it was not `shown`
    /// it takes ACKs without payload.
    fn action(&self, i: u32, seen: &Seen, shown: bool) -> Action {
        if !self.hooked && shown {
            return self.slots[i].segment(seen);
        }
        if !seen.is_pure() {
            self.slots[i].note_passed(seen);
            return Action::Copy;
        }
        if !shown {
            self.slots[i].segment(seen); // noted here alone
        }
        Action::Take
    }

    /// The headers of a segment that passed.
    pub(super) fn on_ack_copy(
        &mut self,
        cx: &mut Cx<'_>,
        i: u32,
        segment: &Segment,
        copied: Copied,
        frame: &Frame,
    ) {
        let tx = self.table[i].tx;
        let (options, seen) = match self.admit(cx, i, segment, frame, false) {
            Admitted::Believed(options, seen) => (options, seen),
            Admitted::Untouched(reason) => {
                self.stats.passed[reason as usize] += 1;
                return;
            }
            Admitted::Passes | Admitted::First => return,
        };
        match copied {
            Copied::Passed => {
                // The hook may not have known the slot yet.
                self.slots[i].note_passed(&seen);
                self.on_passed(cx, i, segment, &options, frame, tx);
            }
            Copied::SetBack => {
                self.run_missed(cx, i);
                self.learn(i, cx, segment, &options, frame);
                self.on_set_back(cx, i, segment, &options);
            }
        }
    }

    /// Is the segment one of the flow as it is known, and may the flow be touched? One that is `here` has not left
    /// yet.
    fn admit(&mut self, cx: &mut Cx<'_>, i: u32, segment: &Segment, frame: &Frame, here: bool) -> Admitted {
        if self.table[i].has(flag::PASSES) {
            return Admitted::Untouched(self.still_passes(i));
        }
        let parsed = wire::tcp_options(cx.frames.bytes(frame), &segment.packet, &segment.tcp);
        let untouchable = match &parsed {
            Ok(options) => untouchable(segment, options),
            Err(_) => Some(PassReason::Malformed),
        };
        let options = parsed.unwrap_or_default();
        let seen = Seen::of(&segment.tcp, &options);
        if !self.table[i].has(flag::SYNCED) {
            match untouchable {
                Some(reason) => self.let_pass(cx, i, reason),
                None => return self.on_stranger(cx, i, segment, (&options, &seen), frame, here),
            }
            return Admitted::Passes;
        }
        self.follow(i, cx.now);
        if segment.has(Flags::RST) {
            let reset = self.on_receiver_reset(cx, i, segment);
            return if reset { Admitted::Passes } else { Admitted::Untouched(PassReason::Implausible) };
        }
        if !segment.has(Flags::ACK) {
            return Admitted::Passes;
        }
        if !self.slots[i].believes(&seen) {
            if self.doubts[i as usize].disbelieved(&seen) {
                self.renew(i, segment, &options, cx, frame);
            }
            return Admitted::Untouched(PassReason::Implausible);
        }
        if self.doubts[i as usize].believed() || self.table[i].has(flag::SCALE_KNOWN) {
            self.table.set_transient(i, false);
        }
        if let Some(reason) = untouchable {
            self.let_pass(cx, i, reason);
            return Admitted::Untouched(reason);
        }
        if self.table[i].has(flag::CLOSED) {
            if self.table[i].is_done() {
                return Admitted::Passes;
            }
            self.revive(i, cx.now);
        }
        self.tell(i);
        Admitted::Believed(options, seen)
    }

    /// A segment of a flow without numbers: the first after its handshake, or one in mid-stream, which is taken
    /// up when it has advanced often enough. It passes, the first with a sized window.
    fn on_stranger(
        &mut self,
        cx: &mut Cx<'_>,
        i: u32,
        segment: &Segment,
        (options, seen): (&TcpOptions, &Seen),
        frame: &Frame,
        here: bool,
    ) -> Admitted {
        let r = &self.table[i];
        if seen.flags & (steer::ACK | steer::RST | steer::FIN) != steer::ACK {
            return Admitted::Passes;
        }
        let first = r.has(flag::SENDER_SYN | flag::RECEIVER_SYN)
            && seen.seq.wrapping_sub(r.seq) <= SEQ_AHEAD
            && seen.ack.wrapping_sub(r.fin) <= FIRST_DATA;
        if !first && !self.doubts[i as usize].candidate(seen) {
            return Admitted::Passes;
        }
        if !first {
            self.table[i].forget_handshake();
        }
        let sizes = here && first && seen.is_pure();
        if self.take_up(i, segment, options, cx, frame, sizes) && sizes {
            return Admitted::First;
        }
        Admitted::Passes
    }

    /// The flow is not what was known of it: it is taken up as one in mid-stream.
    fn renew(&mut self, i: u32, segment: &Segment, options: &TcpOptions, cx: &Cx<'_>, frame: &Frame) {
        self.table[i].forget_handshake();
        if self.take_up(i, segment, options, cx, frame, false) {
            self.stats.renewed += 1;
        }
    }

    /// The flow's numbers start with this segment, which passes as it came, or `sizes` its window.
    fn take_up(
        &mut self,
        i: u32,
        segment: &Segment,
        options: &TcpOptions,
        cx: &Cx<'_>,
        frame: &Frame,
        sizes: bool,
    ) -> bool {
        if !self.sync(i, segment, options, cx.now) {
            return false;
        }
        self.learn(i, cx, segment, options, frame);
        let known = self.table[i].has(flag::SCALE_KNOWN);
        self.table.set_transient(i, !known);
        let scale = self.table[i].scale;
        self.begin_edges(i, segment, scale, sizes);
        self.tell(i);
        true
    }

    /// A segment passed as it came: its sender knows its acknowledgement. What that tells ahead of its time is
    /// owed. `tx` is what the sender knew before.
    fn on_passed(
        &mut self,
        cx: &mut Cx<'_>,
        i: u32,
        segment: &Segment,
        options: &TcpOptions,
        frame: &Frame,
        tx: u32,
    ) {
        self.follow(i, cx.now);
        self.learn(i, cx, segment, options, frame);
        if segment.has(Flags::FIN) {
            self.table[i].flags |= flag::RECEIVER_FIN;
            self.close_if_done(i, cx.now);
        } else if segment.tcp.payload_len > 0
            && after(segment.tcp.ack, tx)
            && !self.table[i].has(flag::SCALE_KNOWN)
        {
            // Set back, its right edge would move left.
            self.let_pass(cx, i, PassReason::UnknownScale);
        }
    }

    /// A segment with payload passed, set back: its progress waits like any other.
    fn on_set_back(&mut self, cx: &mut Cx<'_>, i: u32, segment: &Segment, options: &TcpOptions) {
        self.follow(i, cx.now);
        let before = self.held(i);
        self.progress(i, segment);
        self.schedule(cx, i, options);
        self.note_held(i, before);
    }

    /// The receiver has acknowledged as much as this segment says.
    fn progress(&mut self, i: u32, segment: &Segment) {
        let r = &mut self.table[i];
        let ack = segment.tcp.ack;
        if after(ack, r.rx) {
            r.pace.progressed(ack.wrapping_sub(r.rx));
            r.note_marks(ack.wrapping_sub(r.rx), segment.has(Flags::ECE));
            r.rx = ack;
        }
    }

    /// An ACK without payload that is the gateway's to deal with.
    fn take(&mut self, cx: &mut Cx<'_>, i: u32, segment: &Segment, options: &TcpOptions, frame: Frame) {
        let ack = segment.tcp.ack;
        self.run_missed(cx, i);
        if !after(self.table[i].tx, ack) {
            self.doubts[i as usize].current();
        } else if self.is_last_word(i, options) {
            self.renew(i, segment, options, cx, &frame);
            return self.forward_untouched(cx, i, frame);
        }
        self.check_sequence(i, segment.tcp.seq, cx.now);
        self.show_counter(cx, i, segment);
        let out = ack_out(&self.table[i]);
        let limit = self.window_limit(&self.table[i]);
        let mut fate = fate(&self.table[i], segment, options, limit);
        if !self.outbox.has_room(out, 2) {
            fate = Fate::Hold; // its progress is kept, what else it tells is lost as by any queue
        }
        let before = self.held(i);
        // What is held was acknowledged under the old flags, window and timestamps.
        if matches!(fate, Fate::AfterFlush) {
            self.flush_for(cx, i, ack);
        }
        self.learn(i, cx, segment, options, &frame);
        self.progress(i, segment);
        match fate {
            Fate::AfterFlush => {
                let passed = ack.wrapping_sub(self.table[i].tx);
                if passed as i32 > 0 {
                    self.count_acked(i, passed);
                }
                let r = &mut self.table[i];
                if after(ack, r.tx) {
                    r.told_marks(ack.wrapping_sub(r.tx), segment.has(Flags::ECE));
                    r.tx = ack;
                }
                r.echoes.clear();
                if r.held() == 0 {
                    r.held_acks = 0;
                    self.settle(i, cx.now);
                }
                self.forward_ack(cx, i, segment, frame, ack);
            }
            Fate::SetBack => {
                self.schedule(cx, i, options);
                let tx = self.table[i].tx;
                self.forward_ack(cx, i, segment, frame, if after(ack, tx) { tx } else { ack });
            }
            Fate::AsItCame => self.forward_ack(cx, i, segment, frame, ack),
            Fate::Hold => self.hold(cx, i, segment, options, frame),
            Fate::Absorb => self.absorb(cx, i, frame),
        }
        self.show_held_counter(cx, i);
        self.note_held(i, before);
        self.close_if_done(i, cx.now);
    }

    /// A forged segment with payload may have moved the receiver's SND.NXT beyond what its sender accepts. The
    /// receiver's ACKs tell in time, and the made ones take their number.
    fn check_sequence(&mut self, i: u32, seq: u32, now: Time) {
        let slot = &self.slots[i];
        let doubt = &mut self.doubts[i as usize];
        if !after(slot.nxt.load(Relaxed), seq) {
            doubt.in_sequence();
        } else if doubt.lags(seq, millis(now)) {
            slot.nxt.store(seq, Relaxed);
        }
    }

    /// An ACK older than what the sender knows was overtaken, or what the sender is thought to know is wrong.
    /// The latter, if many come in a row that no other overtook by its timestamp.
    fn is_last_word(&mut self, i: u32, options: &TcpOptions) -> bool {
        let newest = self.slots[i].ts.load(Relaxed);
        let overtaken = options.timestamps.is_some_and(|t| after(newest, t.value));
        !overtaken && self.doubts[i as usize].outdated()
    }

    /// Keeps what generated ACKs are made of.
    fn learn(&mut self, i: u32, cx: &Cx<'_>, segment: &Segment, options: &TcpOptions, frame: &Frame) {
        let r = &mut self.table[i];
        r.template.learn(cx.frames.bytes(frame), &segment.packet);
        if options.timestamps.is_some() {
            r.flags |= flag::TIMESTAMPS;
        }
        if after(r.rx, segment.tcp.ack) {
            return; // an old segment: its window and flags are history
        }
        window::received(r, segment.tcp.ack, segment.tcp.window);
        r.ace = ace_of(segment);
        if segment.tcp.payload_len > 0 {
            r.ace_sent = r.ace; // it leaves with its flags
        }
        if r.ace & 6 != 0 && segment.tcp.payload_len == 0 {
            r.flags |= flag::ACCECN; // a pure ACK carries neither AE nor CWR otherwise
        }
    }

    /// The flow passes untouched from here on, once what it holds has been passed on.
    pub(super) fn let_pass(&mut self, cx: &mut Cx<'_>, i: u32, reason: PassReason) {
        if !self.flush(cx, i) {
            return; // the next segment tries again
        }
        self.mark_passing(i, reason);
    }

    /// The flow passes untouched from here on.
    pub(super) fn mark_passing(&mut self, i: u32, reason: PassReason) {
        self.drop_held(i);
        let r = &mut self.table[i];
        r.flags |= flag::PASSES;
        r.pass = reason as u8;
        self.classes[usize::from(r.class)].flows_passed += 1;
        self.still_passes(i);
    }

    /// The kernel is told again: it asks when it has forgotten, and after a SYN, which may open a connection that
    /// does not pass.
    fn still_passes(&mut self, i: u32) -> PassReason {
        self.hide(i);
        let r = &self.table[i];
        if self.table.find(&r.key.opening()).is_none() {
            self.verdicts.pass(r.key.reversed());
        }
        PassReason::ALL[usize::from(r.pass) % PassReason::ALL.len()]
    }
}

/// What becomes of an acknowledgement, judged before the record learns from it.
fn fate(r: &Record, segment: &Segment, options: &TcpOptions, limit: Option<u32>) -> Fate {
    let t = &segment.tcp;
    let advances = after(t.ack, r.rx);
    let held = r.held() > 0;
    let old = after(r.rx, t.ack);
    if options.sack.count > 0 {
        return Fate::AfterFlush;
    }
    // An old segment's window is history.
    let opens = t.window != 0 && r.window == 0;
    if !old && (t.window == 0 || opens) {
        return Fate::AfterFlush;
    }
    if old {
        return Fate::Absorb;
    }
    let shrinks = t.window < r.window;
    if shrinks && held && !r.has(flag::SCALE_KNOWN) {
        // How far the right edge would move left cannot be told.
        return Fate::AfterFlush;
    }
    if advances {
        return Fate::Hold;
    }
    let same = t.window == r.window;
    if !held && (same || limit.is_none()) {
        return Fate::AsItCame;
    }
    if same {
        return Fate::AfterFlush; // a duplicate
    }
    if window::is_news(r, t.window, limit) {
        Fate::SetBack
    } else {
        Fate::Absorb
    }
}

fn untouchable(segment: &Segment, options: &TcpOptions) -> Option<PassReason> {
    // A giant segment with payload may have a jumbo option (RFC 2675) of its host's own.
    if segment.tcp.payload_len == 0 && segment.packet.has_options() {
        Some(PassReason::IpOptions)
    } else if options.mptcp {
        Some(PassReason::Mptcp)
    } else if options.ao {
        Some(PassReason::TcpAo)
    } else if options.md5 {
        Some(PassReason::TcpMd5)
    } else if options.unknown.is_some() {
        Some(PassReason::UnknownOption)
    } else {
        None
    }
}
