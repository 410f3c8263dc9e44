//! What happens to a segment that acknowledges data of a controlled flow.
//!
//! Pure ACKs that only advance the number are absorbed into `rx` and released by time. Everything
//! that tells the sender more than progress leaves at once, after what is held: duplicates, SACK
//! blocks, closed windows, changes of ECE, FIN and RST. Segments with payload leave at once with
//! their ACK field set back to `tx`.

use super::generate::{write_ack, MAX_ACK_LEN};
use super::{ack_out, after, direction_of, Gateway, PassReason, Segment};
use crate::ack::{window, Arrival, Release};
use crate::flow::{flag, Record};
use crate::frame::{Checksum, Frame};
use crate::node::Cx;
use crate::time::Time;
use crate::wire::{self, Flags, TcpOptions};

/// An acknowledgement further than this from the last one is not believed.
const PLAUSIBLE_ACK: u32 = 1 << 30;
/// A sequence number of the receiver further than this from the last one is not believed.
const PLAUSIBLE_SEQ: u32 = 1 << 24;
/// AccECN's counter of three bits is passed on before it can have moved this far unseen.
const ACE_STEP: u8 = 4;

/// What becomes of a segment.
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

impl Gateway {
    pub(super) fn on_ack_direction(&mut self, cx: &mut Cx<'_>, i: u32, segment: &Segment, frame: Frame) {
        let out = ack_out(&self.table[i]);
        if self.table[i].has(flag::PASSES) {
            let reason = PassReason::ALL[usize::from(self.table[i].pass) % PassReason::ALL.len()];
            let (direction, key) = (direction_of(&self.table[i]), self.table[i].key);
            // A new connection may be one that can be controlled.
            let opens = segment.has(Flags::SYN) && !segment.has(Flags::ACK);
            if !opens {
                self.verdict(direction, &key, true);
                return self.pass(cx, out, frame, reason);
            }
        }
        let bytes = cx.frames.bytes(&frame);
        let parsed = wire::tcp_options(bytes, &segment.packet, &segment.tcp);
        let untouchable = match &parsed {
            Ok(options) => untouchable(options),
            Err(_) => Some(PassReason::Malformed),
        };
        let options = parsed.unwrap_or_default();
        if segment.has(Flags::SYN) {
            self.table[i].template.learn(bytes, &segment.packet);
            self.on_receiver_syn(cx, i, segment, &options);
            self.size_syn_ack(cx, i, segment, &frame);
            return self.forward(cx, out, frame);
        }
        if let Some(reason) = untouchable {
            self.flush(cx, i);
            self.disarm(i, cx.now);
            self.let_pass(i, reason);
            return self.pass(cx, out, frame, reason);
        }
        if !self.believable(i, segment) {
            return self.pass(cx, out, frame, PassReason::Implausible);
        }
        if segment.has(Flags::RST) {
            self.flush(cx, i);
            self.close(i);
            return self.forward(cx, out, frame);
        }
        if self.table[i].has(flag::CLOSED) || !segment.has(Flags::ACK) {
            return self.forward(cx, out, frame);
        }
        self.on_ack(cx, i, segment, &options, frame);
    }

    fn believable(&self, i: u32, segment: &Segment) -> bool {
        let r = &self.table[i];
        if !r.has(flag::SYNCED) || r.epoch != self.table.epoch() {
            return true;
        }
        let near = |a: u32, b: u32, limit: u32| (a.wrapping_sub(b) as i32).unsigned_abs() <= limit;
        let ack = !segment.has(Flags::ACK) || near(segment.tcp.ack, r.rx, PLAUSIBLE_ACK);
        ack && near(segment.tcp.seq, r.seq, PLAUSIBLE_SEQ)
    }

    fn on_ack(&mut self, cx: &mut Cx<'_>, i: u32, segment: &Segment, options: &TcpOptions, frame: Frame) {
        let ack = segment.tcp.ack;
        let in_step = self.table[i].has(flag::SYNCED) && self.table[i].epoch == self.table.epoch();
        if !in_step {
            self.take_up(cx, i, segment, options, frame);
            return;
        }
        self.table.set_transient(i, false);
        self.run_missed(cx, i);
        let fate = fate(&self.table[i], segment, options, self.window_limit(&self.table[i]));
        let before = self.held(i);
        let acked_before = self.table[i].tx;
        // What is held was acknowledged under the old flags, window and timestamps.
        if matches!(fate, Fate::AfterFlush) && before.bytes > 0 {
            self.generate(cx, i, self.table[i].rx, cx.now);
        }
        self.learn(i, cx, segment, options, &frame);
        let r = &mut self.table[i];
        let advance = ack.wrapping_sub(r.rx);
        if after(ack, r.rx) {
            r.rx = ack;
            r.pace.progressed(advance);
        }
        match fate {
            Fate::AfterFlush => {
                let class = usize::from(r.class);
                let early = r.rx.wrapping_sub(acked_before);
                r.pace.acknowledge_early(early);
                self.classes[class].acked_bytes += u64::from(r.rx.wrapping_sub(r.tx));
                r.tx = r.rx;
                r.held_acks = 0;
                r.echoes.clear();
                self.disarm(i, cx.now);
                self.forward_ack(cx, i, segment, frame, ack);
            }
            Fate::SetBack => {
                self.schedule(cx.now, i, options);
                let tx = self.table[i].tx;
                self.forward_ack(cx, i, segment, frame, if after(ack, tx) { tx } else { ack });
            }
            Fate::AsItCame => self.forward_ack(cx, i, segment, frame, ack),
            Fate::Hold => self.hold(cx, i, segment, options, frame),
            Fate::Absorb => self.absorb(cx, i, frame),
        }
        self.note_held(i, before);
        self.close_if_done(i);
    }

    /// First acknowledgement of a flow, or the first after the engine was away: the numbers start
    /// here, and it passes as it came.
    fn take_up(&mut self, cx: &mut Cx<'_>, i: u32, segment: &Segment, options: &TcpOptions, frame: Frame) {
        let before = self.held(i);
        let r = &mut self.table[i];
        r.set(flag::TIMESTAMPS, options.timestamps.is_some());
        if !r.has(flag::RECEIVER_SYN) {
            r.seq = segment.end();
        }
        r.set(flag::ECE, segment.has(Flags::ECE));
        r.ts_value = options.timestamps.map_or(0, |t| t.value);
        self.sync(i, &segment.packet, segment.tcp.ack, cx.now);
        self.table[i].seq = segment.end();
        self.learn(i, cx, segment, options, &frame);
        self.table.set_transient(i, false);
        self.forward_ack(cx, i, segment, frame, segment.tcp.ack);
        self.note_held(i, before);
    }

    /// Keeps what generated ACKs are made of.
    fn learn(&mut self, i: u32, cx: &Cx<'_>, segment: &Segment, options: &TcpOptions, frame: &Frame) {
        let r = &mut self.table[i];
        r.template.learn(cx.frames.bytes(frame), &segment.packet);
        if after(segment.end(), r.seq) {
            r.seq = segment.end();
        }
        if let Some(t) = options.timestamps {
            r.flags |= flag::TIMESTAMPS;
            if after(t.value, r.ts_value) {
                r.ts_value = t.value;
            }
        }
        if after(r.rx, segment.tcp.ack) {
            return; // an old segment: its window and flags are history
        }
        window::received(r, segment.tcp.ack, segment.tcp.window);
        r.set(flag::ECE, segment.has(Flags::ECE));
        r.ace = u8::from(segment.has(Flags::AE)) << 2
            | u8::from(segment.has(Flags::CWR)) << 1
            | u8::from(segment.has(Flags::ECE));
        if r.ace & 6 != 0 && segment.tcp.payload_len == 0 {
            r.flags |= flag::ACCECN; // a pure ACK carries neither AE nor CWR otherwise
        }
    }

    fn hold(&mut self, cx: &mut Cx<'_>, i: u32, segment: &Segment, options: &TcpOptions, frame: Frame) {
        let r = &mut self.table[i];
        if !r.has(flag::ARMED) && r.pace.arrive(cx.now, r.held()) == Arrival::Release {
            let class = usize::from(r.class);
            self.classes[class].acked_bytes += u64::from(r.rx.wrapping_sub(r.tx));
            r.tx = r.rx;
            r.echoes.clear();
            return self.forward_ack(cx, i, segment, frame, segment.tcp.ack);
        }
        r.held_acks += 1;
        self.arm(i, options);
        let moved = self.table[i].ace.wrapping_sub(self.table[i].ace_sent) & 7;
        if self.table[i].has(flag::ACCECN) && moved >= ACE_STEP {
            self.release_early(cx, i);
        }
        self.absorb(cx, i, frame);
    }

    /// Progress that came on a segment with payload waits like any other.
    fn schedule(&mut self, now: Time, i: u32, options: &TcpOptions) {
        let r = &mut self.table[i];
        if r.held() == 0 {
            return;
        }
        if !r.has(flag::ARMED) && r.pace.arrive(now, r.held()) == Arrival::Release {
            let class = usize::from(r.class);
            self.classes[class].acked_bytes += u64::from(r.held());
            r.tx = r.rx;
            r.echoes.clear();
            return;
        }
        self.arm(i, options);
    }

    fn arm(&mut self, i: u32, options: &TcpOptions) {
        let r = &mut self.table[i];
        if let Some(t) = options.timestamps {
            r.echoes.push(r.rx, t.echo);
        }
        if !r.has(flag::ARMED) {
            r.flags |= flag::ARMED;
            self.wheel.arm(i, Time::from_nanos(r.pace.due));
        }
    }

    /// Up to one segment ahead of its time, so that the sender sees a counter move.
    fn release_early(&mut self, cx: &mut Cx<'_>, i: u32) {
        let r = &mut self.table[i];
        let bytes = r.held().min(u32::from(r.mss));
        let to = r.tx.wrapping_add(bytes);
        if self.generate(cx, i, to, cx.now) {
            let r = &mut self.table[i];
            r.pace.acknowledge_early(bytes);
            if r.held() == 0 {
                self.disarm(i, cx.now);
            }
        }
    }

    /// Releases of this flow whose time came before `now` are carried out before it is looked at.
    fn run_missed(&mut self, cx: &mut Cx<'_>, i: u32) {
        let catch_up = self.catch_up(i).as_nanos();
        for _ in 0..1_000 {
            let r = &self.table[i];
            let due = r.pace.due;
            let missed = r.has(flag::ARMED) && due < cx.now.as_nanos();
            if !missed || cx.now.as_nanos() - due > catch_up {
                return;
            }
            self.wheel.disarm(i);
            self.table[i].set(flag::ARMED, false);
            self.release(cx, i);
        }
    }

    fn catch_up(&self, i: u32) -> crate::time::Duration {
        let Release::Rate(policy) = self.policy(&self.table[i]).release;
        policy.catch_up
    }

    /// The release time of a flow, just taken off the wheel, has come.
    pub(super) fn release(&mut self, cx: &mut Cx<'_>, i: u32) {
        let Release::Rate(policy) = self.policy(&self.table[i]).release;
        let rtt = self.rtt(&self.table[i]);
        let busy = self.outbox.busy(ack_out(&self.table[i]));
        let class = usize::from(self.table[i].class);
        let before = self.held(i);
        let r = &self.table[i];
        if before.bytes == 0 || r.has(flag::CLOSED) || r.epoch != self.table.epoch() {
            return self.disarm(i, cx.now);
        }
        let r = &mut self.table[i];
        self.classes[class].missed_releases += r.pace.skip_missed(cx.now, policy.catch_up);
        let at = Time::from_nanos(r.pace.due);
        let tick = r.pace.tick(&policy, rtt, r.mss, before.bytes);
        self.classes[class].slow_starts += u64::from(tick.entered_slow_start);
        let wanted = r.tx.wrapping_add(tick.release);
        let to = self.on_grid(i, wanted);
        self.table[i].pace.refund(wanted.wrapping_sub(to));
        if tick.release > 0 && (busy || !self.generate(cx, i, to, at)) {
            self.table[i].pace.refund(tick.release - wanted.wrapping_sub(to));
        }
        let r = &mut self.table[i];
        if r.held() > 0 {
            r.flags |= flag::ARMED;
            self.wheel.arm(i, Time::from_nanos(r.pace.due));
        } else {
            r.pace.stop(at);
        }
        self.note_held(i, before);
        self.close_if_done(i);
    }

    /// Passes on everything that the flow holds, at once.
    pub(super) fn flush(&mut self, cx: &mut Cx<'_>, i: u32) {
        let r = &self.table[i];
        let before = self.held(i);
        let live = !r.has(flag::CLOSED) && r.epoch == self.table.epoch();
        if before.bytes > 0 && live && self.generate(cx, i, r.rx, cx.now) {
            self.table[i].pace.acknowledge_early(before.bytes);
            self.note_held(i, before);
        }
        self.overtake(i, cx.now);
    }

    /// Nothing is held any more: it was passed on, or nobody is left to hear of it.
    pub(super) fn overtake(&mut self, i: u32, now: Time) {
        let before = self.held(i);
        let r = &mut self.table[i];
        r.tx = r.rx;
        r.held_acks = 0;
        r.echoes.clear();
        self.disarm(i, now);
        self.note_held(i, before);
    }

    pub(super) fn disarm(&mut self, i: u32, now: Time) {
        if self.table[i].has(flag::ARMED) {
            self.wheel.disarm(i);
            self.table[i].set(flag::ARMED, false);
        }
        self.table[i].pace.stop(now);
    }

    /// The flow passes untouched from here on.
    pub(super) fn let_pass(&mut self, i: u32, reason: PassReason) {
        let r = &mut self.table[i];
        if r.has(flag::PASSES) {
            return;
        }
        r.flags |= flag::PASSES;
        r.pass = reason as u8;
        self.classes[usize::from(r.class)].flows_passed += 1;
        let (direction, key) = (direction_of(r), r.key);
        self.verdict(direction, &key, true);
    }

    /// Makes an ACK up to `to` and sends it off as due at `at`. False when no frame is free: what
    /// is held stays held.
    fn generate(&mut self, cx: &mut Cx<'_>, i: u32, to: u32, at: Time) -> bool {
        let limit = self.window_limit(&self.table[i]);
        let Some(frame) = cx.frames.make(MAX_ACK_LEN, at) else {
            self.stats.pool_exhausted += 1;
            return false;
        };
        let r = &mut self.table[i];
        let released = to.wrapping_sub(r.tx);
        let field = window::advertise(r, to, limit);
        let len = write_ack(r, to, field, cx.frames.bytes_mut(&frame));
        let mut frame = cx.frames.truncate(frame, len);
        frame.checksum = Checksum::Valid;
        let gone = u64::from(r.held_acks) * u64::from(released) / u64::from(r.held().max(1));
        r.held_acks -= gone as u32;
        r.tx = to;
        r.ace_sent = r.ace;
        r.echoes.release(to);
        let class = &mut self.classes[usize::from(r.class)];
        class.acks_generated += 1;
        class.acked_bytes += u64::from(released);
        self.stats.ledger.made += 1;
        let out = ack_out(r);
        self.outbox.push(cx, &mut self.stats.ledger, out, at, frame);
        true
    }

    /// Forwards a segment of the receiver with `ack` in its ACK field and the window that may go
    /// with it.
    fn forward_ack(&mut self, cx: &mut Cx<'_>, i: u32, segment: &Segment, frame: Frame, ack: u32) {
        let limit = self.window_limit(&self.table[i]);
        let r = &mut self.table[i];
        let (out, class) = (ack_out(r), usize::from(r.class));
        let mut rewritten = false;
        if !after(r.tx, ack) {
            r.ace_sent = r.ace;
            // A window that is kept is touched only where the acknowledgement is.
            let field = if limit.is_none() && ack == segment.tcp.ack {
                window::forwarded(r, ack, segment.tcp.window);
                segment.tcp.window
            } else {
                window::advertise(r, ack, limit)
            };
            if field != segment.tcp.window {
                let bytes = cx.frames.bytes_mut(&frame);
                wire::set_window(bytes, &segment.packet, field, frame.checksum);
                rewritten = true;
            }
        }
        if ack != segment.tcp.ack {
            let bytes = cx.frames.bytes_mut(&frame);
            wire::set_ack(bytes, &segment.packet, ack, frame.checksum);
            rewritten = true;
        }
        let c = &mut self.classes[class];
        c.acks_rewritten += u64::from(rewritten);
        c.acks_forwarded += u64::from(!rewritten);
        self.forward(cx, out, frame);
    }

    fn absorb(&mut self, cx: &mut Cx<'_>, i: u32, frame: Frame) {
        self.classes[usize::from(self.table[i].class)].acks_absorbed += 1;
        self.stats.ledger.absorbed += 1;
        cx.frames.absorb(frame);
    }

    fn held(&self, i: u32) -> Held {
        let r = &self.table[i];
        Held { bytes: r.held(), acks: if r.held() > 0 { r.held_acks } else { 0 } }
    }

    /// Keeps the class's account of what is held.
    fn note_held(&mut self, i: u32, before: Held) {
        let now = self.held(i);
        let c = &mut self.classes[usize::from(self.table[i].class)];
        c.held_bytes = c.held_bytes + u64::from(now.bytes) - u64::from(before.bytes);
        c.held_bytes_peak = c.held_bytes_peak.max(c.held_bytes);
        c.held_acks = c.held_acks + u64::from(now.acks) - u64::from(before.acks);
        c.held_acks_peak = c.held_acks_peak.max(c.held_acks);
    }
}

/// What a flow holds.
#[derive(Clone, Copy)]
struct Held {
    bytes: u32,
    acks: u32,
}

/// What becomes of an acknowledgement, judged before the record learns from it.
fn fate(r: &Record, segment: &Segment, options: &TcpOptions, limit: Option<u32>) -> Fate {
    let t = &segment.tcp;
    let advances = after(t.ack, r.rx);
    let held = r.held() > 0;
    let ece_changes = !r.has(flag::ACCECN) && segment.has(Flags::ECE) != r.has(flag::ECE);
    let old = after(r.rx, t.ack);
    if segment.has(Flags::FIN) || options.sack.count > 0 {
        return Fate::AfterFlush;
    }
    // An old segment's window and flags are history.
    if !old && (t.window == 0 || ece_changes) {
        return Fate::AfterFlush;
    }
    // With payload, or out of sequence on purpose (keepalives and probes of the receiver).
    if t.payload_len > 0 || segment.has(Flags::URG) || after(r.seq, t.seq) {
        return Fate::SetBack;
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

fn untouchable(options: &TcpOptions) -> Option<PassReason> {
    if options.mptcp {
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
