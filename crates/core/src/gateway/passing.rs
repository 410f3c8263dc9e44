//! Segments and flows that are let through as they came, since ACKs of their shape cannot be made or changed.
//!
//! Three degrees, each with its exit:
//!
//! - *A segment*: its options are unknown or malformed, its IP header has some, or its window cannot be
//!   changed. The flow stays controlled, and what the segment acknowledges ahead of its time is charged.
//! - *Until clean*: so many believed segments of the flow were odd
//!   ([`Doubt::is_odd`](crate::track::Doubt::is_odd)), or one of them would acknowledge too much ahead of its
//!   time. The gateway still gets the flow's ACKs and follows its numbers ([`flag::PASSES`] with
//!   [`flag::SYNCED`]), and the flow comes back when it is clean again.
//! - *For the connection*: both SYNs have an extension with which ACKs cannot be made, or, where no handshake
//!   was seen, all of the last segments have it ([`flag::PASSES`] alone). Another handshake ends that.
//!
//! In the last two the class bounds the flow: the hooks are told which tally counts its data.

use super::{after, Gateway, Headers, PassReason};
use crate::ack::Window;
use crate::flow::{flag, Record};
use crate::frame::Frame;
use crate::node::Cx;
use crate::steer::Seen;
use crate::time::{Duration, Time};
use crate::track::Extensions;
use crate::wire::{self, Flags, Tcp, TcpOptions};

/// Odd segments in a row that show an extension of a flow in mid-stream, before its numbers are known and
/// after.
const ALL_CANDIDATES: u32 = 4;
const ALL: u32 = 8;
/// The hooks are told again which tally counts a flow each time that so many bytes of it were acknowledged: 1
/// MiB.
const TELL_AGAIN: u32 = 20;
/// Time at the flow's rate that odd segments may acknowledge ahead, where the window is kept.
const AHEAD: Duration = Duration::from_secs(2);

/// A segment of the receiver, as it was read.
pub(super) struct Reading {
    pub(super) options: TcpOptions,
    pub(super) seen: Seen,
    /// Reason for which the segment must not be changed, if there is one.
    pub(super) odd: Option<PassReason>,
}

impl Reading {
    /// Reads the segment whose headers are in `bytes`.
    #[inline]
    pub(super) fn of(bytes: &[u8], segment: &Headers, now: Time) -> Reading {
        let options = wire::read_options(bytes, &segment.packet, &segment.tcp);
        Reading { seen: Seen::of(&segment.tcp, &options, now), odd: oddity(segment, &options), options }
    }
}

impl Gateway {
    /// Notes whether a believed segment is odd. Returns why it is let through, if it is: itself, or its flow.
    pub(super) fn note_oddity(
        &mut self,
        cx: &mut Cx<'_>,
        i: u32,
        segment: &Headers,
        reading: &Reading,
        tx: u32,
    ) -> Option<PassReason> {
        if !self.hooked && self.slots[i].is_repetition(&reading.seen) {
            return None; // it is set back, as by a hook, which shows it to nobody
        }
        let r = &self.table[i];
        let odd = reading.odd.or_else(|| r.cannot_be_set_back(segment, tx));
        let odd = odd.or_else(|| self.tells_too_much(i, segment, reading, tx));
        let r = &mut self.table[i];
        match odd {
            Some(_) => r.doubt.odd(Extensions::of(&reading.options)),
            None => r.doubt.clean(),
        }
        let passes = r.has(flag::PASSES);
        let midstream = !r.has(flag::SENDER_SYN | flag::RECEIVER_SYN);
        if let Some(reason) = reason_of(r.doubt.common(ALL)).filter(|_| midstream) {
            self.let_pass(cx, i, reason);
            return Some(reason);
        }
        if passes {
            return self.note_passing(i, odd);
        }
        let reason = odd?;
        let r = &self.table[i];
        if (r.doubt.is_odd() || reason == PassReason::Early || self.is_too_early(r, segment.tcp.ack))
            && self.flush(cx, i)
        {
            self.pass_until_clean(i, reason);
        }
        Some(reason)
    }

    /// An ACK of a flow passes as it came.
    pub(super) fn count_passed(&mut self, i: u32, reason: PassReason) {
        self.stats.passed[reason as usize] += 1;
        self.classes[self.table[i].class].passed[reason as usize] += 1;
    }

    /// As [`Gateway::note_oddity`], of a flow that passes until it is clean.
    fn note_passing(&mut self, i: u32, odd: Option<PassReason>) -> Option<PassReason> {
        let r = &mut self.table[i];
        if r.doubt.is_clean() {
            r.flags &= !flag::PASSES;
            self.uncount(i);
            return None;
        }
        r.pass = odd.map_or(r.pass, |reason| reason as u8);
        Some(r.pass_reason())
    }

    /// The flow passes until it is clean again; it holds nothing.
    fn pass_until_clean(&mut self, i: u32, reason: PassReason) {
        self.end_grant(i);
        let r = &mut self.table[i];
        r.flags |= flag::PASSES;
        r.pass = reason as u8;
        self.classes[r.class].flows_passed[reason as usize] += 1;
        self.count_untouched(i);
    }

    /// Does a segment with payload pass that tells of a loss or of a window that closes or opens, and too
    /// much more: hooks set back what tells nothing but progress?
    fn tells_too_much(&self, i: u32, segment: &Headers, reading: &Reading, tx: u32) -> Option<PassReason> {
        let (r, Tcp { payload_len, window, ack, .. }) = (&self.table[i], segment.tcp);
        let tells = reading.seen.sack || window == 0 || r.window == 0;
        let passes = payload_len > 0 && tells && after(ack, tx);
        (passes && self.is_too_much(r, ack.wrapping_sub(tx))).then_some(PassReason::Early)
    }

    /// Would a segment for `ack` that is let through acknowledge too much ahead of its time?
    fn is_too_early(&self, r: &Record, ack: u32) -> bool {
        if !after(ack, r.tx) {
            return false;
        }
        let early = ack.wrapping_sub(r.tx);
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

    /// Lets a believed ACK without payload through as it came. What its sender learns by it is charged,
    /// unless the hooks count the flow's data.
    pub(super) fn let_through(
        &mut self,
        cx: &mut Cx<'_>,
        i: u32,
        segment: &Headers,
        reading: &Reading,
        frame: Frame,
    ) {
        let r = &self.table[i];
        if r.has_news() || r.queues_acks() {
            self.flush(cx, i); // it keeps its place
        }
        let r = &self.table[i];
        let (tx, acked) = (r.tx, r.acked);
        self.note_passed(i, &reading.seen);
        self.on_passed(cx, i, segment, &frame, tx);
        if self.table[i].has(flag::PASSES) && acked >> TELL_AGAIN != self.table[i].acked >> TELL_AGAIN {
            self.count_untouched(i);
        }
        self.forward_untouched(cx, i, frame);
    }

    /// Is what passes of the flow charged to its class by what the hooks count?
    pub(super) fn is_counted(&self, i: u32) -> bool {
        self.hooked && self.table[i].has(flag::PASSES)
    }

    /// Notes whether a segment is odd that may be one of a flow in mid-stream. Returns the extension that all
    /// such segments have had, as a reason to let the flow pass.
    pub(super) fn note_odd_candidate(&mut self, i: u32, reading: &Reading) -> Option<PassReason> {
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
    pub(super) fn note_extensions(&mut self, i: u32, options: &TcpOptions, answers: bool) {
        let (doubt, said) = (&mut self.table[i].doubt, Extensions::of(options));
        if !answers {
            doubt.offered(said);
        } else if let Some(reason) = reason_of(doubt.extensions().and(said)) {
            self.mark_passing(i, reason);
        }
    }

    /// The flow passes for its connection's life, once what it holds has been passed on.
    fn let_pass(&mut self, cx: &mut Cx<'_>, i: u32, reason: PassReason) {
        if !self.flush(cx, i) {
            return; // the next segment tries again
        }
        self.mark_passing(i, reason);
    }

    /// The flow passes for its connection's life.
    pub(super) fn mark_passing(&mut self, i: u32, reason: PassReason) {
        self.drop_held(i);
        let r = &mut self.table[i];
        r.flags |= flag::PASSES;
        r.pass = reason as u8;
        self.classes[r.class].flows_passed[reason as usize] += 1;
        self.still_passes(i);
    }

    /// The kernel is told again: it asks when it has forgotten, and after a SYN, which may open a connection
    /// that does not pass.
    pub(super) fn still_passes(&mut self, i: u32) -> PassReason {
        self.hide(i);
        let r = &self.table[i];
        if self.table.find(&r.key.opening()).is_none() {
            self.verdicts.pass(r.key.reversed());
            self.count_untouched(i);
        }
        self.table[i].pass_reason()
    }
}

impl Record {
    /// Returns why the flow passes; see [`flag::PASSES`].
    pub(super) fn pass_reason(&self) -> PassReason {
        PassReason::ALL[usize::from(self.pass) % PassReason::ALL.len()]
    }

    /// Does a segment pass because its acknowledgement, beyond `tx`, cannot wait: without the scale a right
    /// edge would move left?
    fn cannot_be_set_back(&self, segment: &Headers, tx: u32) -> Option<PassReason> {
        let Tcp { payload_len, window, ack, flags, .. } = segment.tcp;
        if self.has(flag::SCALE_KNOWN) || flags.contains(Flags::FIN) || !after(ack, tx) {
            return None;
        }
        let closes_or_opens = (window == 0) != (self.window == 0);
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

fn reason_of(extensions: Extensions) -> Option<PassReason> {
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
