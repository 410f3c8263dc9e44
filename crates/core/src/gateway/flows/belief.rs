//! Belief in segments: what cannot be the receiver's changes nothing, what fits does, and what is consistent
//! in spite of it takes the flow up again ([`Doubt`](crate::track::Doubt)).
//!
//! Segments and flows are let through as they came, where ACKs of their shape cannot be made or changed.
//!
//! Three degrees, each with its exit:
//!
//! - *A segment*: its options are unknown or malformed, its IP header has some, or its window cannot be
//!   changed. The flow stays controlled, and what the segment acknowledges ahead of its time is charged.
//! - *Until clean*: this many believed segments of the flow were odd
//!   ([`Doubt::is_odd`](crate::track::Doubt::is_odd)), or one of them would acknowledge too much ahead of its
//!   time. The gateway still gets the flow's ACKs and follows its numbers ([`flag::PASSES`] with
//!   [`flag::SYNCED`]), and the flow comes back when it is clean again.
//! - *For the connection*: both SYNs have an extension with which ACKs cannot be made, or, where no handshake
//!   was seen, all of the last segments have it ([`flag::PASSES`] alone). Another handshake ends that.
//!
//! In the last two the class bounds the flow: the hooks are told which tally counts its data.

use super::segment::Headers;
use super::stats::PassReason;
use super::Register;
use crate::ack::Window;
use crate::flow::{flag, FlowId, Record};
use crate::frame::Frame;
use crate::node::Cx;
use crate::steer;
use crate::steer::Seen;
use crate::time::{Duration, Time};
use crate::track::{opening, Extensions};
use crate::wire::{self, Flags, Seq, Tcp, TcpOptions};

/// Odd segments in a row that show an extension of a flow in mid-stream, before its numbers are known and
/// after.
const ALL_CANDIDATES: u32 = 4;

pub(in crate::gateway) const ALL: u32 = 8;

/// The hooks are told again which tally counts a flow each time that this many bytes of it were acknowledged:
/// 1 MiB.
pub(in crate::gateway) const TELL_AGAIN: u32 = 20;

/// Time at the flow's rate that odd segments may acknowledge ahead, where the window is kept.
pub(super) const AHEAD: Duration = Duration::from_secs(2);

/// Bytes that the ACKs of a flow may be ahead, and time for which it may be followed, before its data has
/// been seen: 64 KiB, and the longest usual round trip. Its handshake was not.
const UNSEEN: u32 = 1 << 16;
const UNSEEN_TIME: Duration = Duration::from_millis(250);

/// Finding about a segment, before anything else.
pub(in crate::gateway) enum Admitted {
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

/// A segment of the receiver, as it was read.
pub(in crate::gateway) struct Reading {
    pub(in crate::gateway) options: TcpOptions,
    pub(in crate::gateway) seen: Seen,
    /// Reason for which the segment must not be changed, if there is one.
    pub(in crate::gateway) odd: Option<PassReason>,
}

impl Reading {
    /// Reads the segment whose headers are in `bytes`.
    #[inline]
    pub(in crate::gateway) fn of(bytes: &[u8], segment: &Headers, now: Time) -> Reading {
        let options = wire::read_options(bytes, &segment.packet, &segment.tcp);
        Reading { seen: Seen::of(&segment.tcp, &options, now), odd: oddity(segment, &options), options }
    }
}

impl Register {
    /// A segment of a flow without numbers: the first after its handshake, or one in mid-stream, which is
    /// taken up when it has advanced often enough. It passes, the first with a sized window.
    pub(in crate::gateway) fn on_stranger(
        &mut self,
        cx: &mut Cx<'_>,
        i: FlowId,
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
        if let Some(nxt) = ahead.filter(|&nxt| taken_up && nxt.is_after(seen.end())) {
            self.table[i].seq = nxt;
            self.slots[i].set_nxt(nxt);
        }
        if taken_up && sizes {
            return Admitted::First;
        }
        Admitted::Passes
    }

    /// Returns whether it is the connection whose handshake was seen, and of which nothing was seen since.
    /// Segments that passed by while no engine ran may have taken it far ahead.
    fn has_gone_on(&self, i: FlowId, segment: &Headers) -> bool {
        let slot = &self.slots[i];
        let ahead = |to: Seq, from: Seq| to.since(from) <= steer::ACK_RANGE;
        self.table[i].has(flag::SENDER_SYN | flag::RECEIVER_SYN | flag::SCALE_KNOWN)
            && self.table[i].doubt.is_unmet()
            && ahead(segment.tcp.seq, slot.nxt())
            && ahead(segment.tcp.ack, slot.tx())
    }

    /// Takes a flow up again with this segment, as one in mid-stream, because what was known of it is wrong.
    /// If the segment is `believed`, because it is the receiver's last word and only what the sender was
    /// thought to know is wrong, the connection is still the one whose handshake was seen, if one was, and
    /// its window is sized as before.
    pub(in crate::gateway) fn renew(
        &mut self,
        i: FlowId,
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
        i: FlowId,
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
        if let Some(account) = self.account(i) {
            account.take_up(cx.now);
        }
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
    pub(in crate::gateway) fn is_last_word(&mut self, i: FlowId, options: &TcpOptions, now: Time) -> bool {
        let newest = self.slots[i].ts();
        let overtaken = options.timestamps.is_some_and(|t| steer::after(newest, t.value));
        !overtaken && self.table[i].doubt.outdated(now)
    }

    /// A forged segment with payload may have moved the receiver's SND.NXT beyond what its sender accepts.
    /// The receiver's ACKs tell in time, and the made ones take their number.
    pub(in crate::gateway) fn check_sequence(&mut self, i: FlowId, seq: Seq, now: Time) {
        let slot = &self.slots[i];
        let doubt = &mut self.table[i].doubt;
        match seq.ahead_of(slot.nxt()) {
            0 => doubt.in_sequence(),
            ..0 if doubt.lags(seq, now) => slot.set_nxt(seq),
            _ => {}
        }
    }

    /// Notes whether an ACK without payload tells of payload that no hook has read, such as that of a
    /// fragment. A made ACK has a number that its sender has had then, and may be refused (RFC 9293 section
    /// 3.10.7.4). A second one that says so is believed. Returns whether it is the first, and may pass as it
    /// came: if the payload was lost, nothing is urgent.
    pub(in crate::gateway) fn is_ahead(&mut self, i: FlowId, seen: &Seen) -> bool {
        let slot = &self.slots[i];
        if !seen.is_pure() || !seen.seq.is_after(slot.nxt()) {
            return false;
        }
        if self.table[i].doubt.leads(seen.seq, self.now) {
            slot.set_nxt(seen.seq);
            return false;
        }
        !self.is_too_early(&self.table[i], seen.ack)
    }

    /// An ACK of a flow passes as it came.
    pub(in crate::gateway) fn count_passed(&mut self, i: FlowId, reason: PassReason) {
        self.stats.passed[reason as usize] += 1;
        self.classes[self.table[i].class].passed[reason as usize] += 1;
    }

    /// As `Gateway::note_oddity`, of a flow that passes until it is clean.
    pub(in crate::gateway) fn note_passing(
        &mut self,
        i: FlowId,
        odd: Option<PassReason>,
    ) -> Option<PassReason> {
        let r = &mut self.table[i];
        if r.doubt.is_clean() {
            r.flags &= !flag::PASSES;
            self.uncount(i);
            return None;
        }
        r.pass = odd.map_or(r.pass, |reason| reason as u8);
        Some(PassReason::of(r))
    }

    /// The flow passes until it is clean again; it holds nothing.
    pub(in crate::gateway) fn pass_until_clean(&mut self, i: FlowId, reason: PassReason) {
        self.end_grant(i);
        let r = &mut self.table[i];
        r.flags |= flag::PASSES;
        r.pass = reason as u8;
        self.classes[r.class].flows_passed[reason as usize] += 1;
        self.count_untouched(i);
    }

    /// Returns whether a segment with payload passes although it tells too much, because it tells of a loss
    /// or of a window that closes or opens. Hooks set back one that tells nothing but progress.
    pub(in crate::gateway) fn tells_too_much(
        &self,
        i: FlowId,
        segment: &Headers,
        reading: &Reading,
        tx: Seq,
    ) -> Option<PassReason> {
        let (r, Tcp { payload_len, window, ack, .. }) = (&self.table[i], segment.tcp);
        let tells = reading.seen.sack || window == 0 || r.window == 0;
        let passes = payload_len > 0 && tells && ack.is_after(tx) && !self.config.observe;
        (passes && self.is_too_much(r, ack.since(tx))).then_some(PassReason::Early)
    }

    /// Returns whether ACKs alone tell of the flow, the hooks having seen no data of it. Any host can send
    /// ACKs of a connection that does not exist; held, they would take the turns of others.
    pub(in crate::gateway) fn is_hearsay(&self, i: FlowId, ack: Seq) -> bool {
        let r = &self.table[i];
        if !self.hooked || !r.takes_turns() || r.has(flag::SENDER_SYN | flag::RECEIVER_SYN) {
            return false;
        }
        let Some(account) = self.account(i).filter(|account| !account.has_data()) else { return false };
        ack.beyond(r.tx) > UNSEEN || account.is_older_than(UNSEEN_TIME, self.now)
    }

    /// Returns whether a segment for `ack` that is let through would acknowledge too much ahead of its time.
    pub(in crate::gateway) fn is_too_early(&self, r: &Record, ack: Seq) -> bool {
        if !ack.is_after(r.tx) {
            return false;
        }
        let early = ack.since(r.tx);
        let shared = r.takes_turns();
        if shared && self.classes.shares.is_early(r, early, self.now) {
            return true;
        }
        let most = match self.policy(r).window {
            Window::Size { .. } => self.window_limit(r).map(u64::from),
            Window::Keep if shared => None, // its data waits in its class's queue
            Window::Keep => r.law.pace().rate().map(|rate| rate.bytes_in(AHEAD)),
        };
        let before = r.kept().ahead();
        most.is_some_and(|most| u64::from(early) + u64::from(before) > most)
    }

    /// Returns whether the hooks' counts charge what passes of the flow to its class.
    pub(in crate::gateway) fn is_counted(&self, i: FlowId) -> bool {
        self.hooked && self.table[i].has(flag::PASSES)
    }

    /// Notes whether a segment is odd that may be one of a flow in mid-stream. Returns the extension that all
    /// such segments have had, as a reason to let the flow pass.
    fn note_odd_candidate(&mut self, i: FlowId, reading: &Reading) -> Option<PassReason> {
        let r = &mut self.table[i];
        if r.flags & (flag::SENDER_SYN | flag::RECEIVER_SYN) != 0 {
            return None; // what the SYN offers is to be answered yet
        }
        match reading.odd {
            Some(_) => r.doubt.odd(Extensions::of(&reading.options)),
            None => r.doubt.clean(),
        }
        reason_of(r.doubt.common(ALL_CANDIDATES))
    }

    /// Notes the extensions that a SYN has. The flow passes for its connection's life if both SYNs have one.
    pub(super) fn note_extensions(&mut self, i: FlowId, options: &TcpOptions, answers: bool) {
        let (doubt, said) = (&mut self.table[i].doubt, Extensions::of(options));
        if !answers {
            doubt.offered(said);
        } else if let Some(reason) = reason_of(doubt.extensions().and(said)) {
            self.mark_passing(i, reason);
        }
    }

    /// The flow passes for its connection's life.
    pub(in crate::gateway) fn mark_passing(&mut self, i: FlowId, reason: PassReason) {
        self.drop_held(i);
        let r = &mut self.table[i];
        r.flags |= flag::PASSES;
        r.pass = reason as u8;
        self.classes[r.class].flows_passed[reason as usize] += 1;
        self.still_passes(i);
    }

    /// The kernel is told again: it asks when it has forgotten, and after a SYN, which may open a connection
    /// that does not pass.
    pub(in crate::gateway) fn still_passes(&mut self, i: FlowId) -> PassReason {
        self.hide(i);
        let r = &self.table[i];
        if self.table.find(&r.key.opening()).is_none() {
            self.verdicts.pass(r.key.reversed());
            self.count_untouched(i);
        }
        PassReason::of(&self.table[i])
    }
}

impl Headers {
    /// Returns whether the segment passes because its acknowledgement, beyond `tx`, cannot wait: without the
    /// scale a right edge would move left.
    pub(in crate::gateway) fn cannot_be_set_back(&self, r: &Record, tx: Seq) -> Option<PassReason> {
        let Tcp { payload_len, window, ack, flags, .. } = self.tcp;
        if r.has(flag::SCALE_KNOWN) || flags.contains(Flags::FIN) || !ack.is_after(tx) {
            return None;
        }
        let closes_or_opens = (window == 0) != (r.window == 0);
        (payload_len > 0 || closes_or_opens).then_some(PassReason::UnknownScale)
    }
}

/// Returns why a segment must not be changed, and no ACK made in its place, if so.
fn oddity(segment: &Headers, options: &TcpOptions) -> Option<PassReason> {
    // A giant segment with payload may have a jumbo option (RFC 2675) of its host's own.
    if segment.tcp.payload_len == 0 && segment.packet.has_options() {
        Some(PassReason::IpOptions)
    } else if options.malformed {
        Some(PassReason::Malformed)
    } else {
        let unknown = options.unknown.map(|_| PassReason::UnknownOption);
        reason_of(Extensions::of(options)).or(unknown)
    }
}

pub(in crate::gateway) fn reason_of(extensions: Extensions) -> Option<PassReason> {
    let has = |one: Extensions| extensions.and(one) == one;
    if extensions.is_empty() {
        None
    } else if has(Extensions::MPTCP) {
        Some(PassReason::Mptcp)
    } else if has(Extensions::AO) {
        Some(PassReason::TcpAo)
    } else {
        Some(PassReason::TcpMd5)
    }
}
