//! What the programs in the kernel do with the TCP segments of a controlled flow (`acks` steering), as
//! plain functions on a [`Slot`]: the simulator runs these, and the BPF programs are held to them.
//!
//! Data never leaves the kernel. A hook on the WAN interface sees every segment that acknowledges data of
//! a controlled flow, in the flow's ACK direction: it takes pure ACKs to the gateway, sets the ACK field of
//! segments with payload back to what the sender may know, and stamps the ACKs that the gateway makes on
//! their way out. What both sides must know of a flow is its [`Slot`], in memory that they share.
//!
//! Where the policy would let ACKs pass at once, the gateway says so in advance, by a *grant*: a number up to which
//! plain segments pass without it.
//!
//! Two rules hold whatever happens. `tx` never lags what has passed, so that no made ACK is older than
//! what the sender has: every segment that passes is noted. And what cannot be true changes nothing
//! ([`Slot::believes`]).

mod frame;
mod grant;

pub use frame::{restamp, set_back};

use crate::ack::window;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Bits of [`Slot::flags`].
pub mod slot_flag {
    /// The shift of the receiver's window field is known: bits 24 and up of the flags.
    pub const SCALED: u32 = 1 << 0;
    /// The receiver's segments carry timestamps.
    pub const TIMESTAMPS: u32 = 1 << 1;
    /// The gateway sizes the window: the sender learns of a right edge only from made ACKs.
    pub const SIZED: u32 = 1 << 2;
    /// Position of the window's shift (0 to 14).
    pub const SCALE_SHIFT: u32 = 24;
}

/// How far ahead of SND.NXT a segment of the receiver is believed: segments that were lost before the
/// gateway leave a gap.
pub const SEQ_AHEAD: u32 = 1 << 16;
/// How far behind SND.NXT a segment with payload is taken for a retransmission.
pub const SEQ_BEHIND: u32 = 1 << 22;
/// How far behind SND.NXT an ACK without payload is believed: segments overtake each other.
pub const PURE_BEHIND: u32 = 1 << 17;
/// How far an acknowledgement may be from `tx` where the window's scale is not known.
pub const ACK_RANGE: u32 = 1 << 30;
/// One of so many disbelieved segments is shown to the gateway.
pub const DOUBT_SAMPLE: u32 = 16;

/// What the kernel and the gateway both know of a flow, in one line of memory. Numbers are those of the ACK
/// direction: the data's receiver sends segments, the data's sender gets them.
///
/// The gateway fills a slot before the kernel is told of it ([`Slot::open`]). From then on `tx`, `nxt`,
/// `ts`, `edge` and `sent` only move forward (serially), whoever moves them. What a hook does is done by one program at a
/// time here ([`Slot::segment`], [`Slot::bypass`], [`Slot::stamp`]): whoever runs these is alone with the slot.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Slot {
    /// Which use of the slot this is, 0: none. The kernel's entry of a flow names slot and tag; an entry whose tag
    /// is another one is of a flow that is gone.
    pub tag: AtomicU32,
    /// See [`slot_flag`].
    pub flags: AtomicU32,
    /// Highest acknowledgement number that has left towards the sender.
    pub tx: AtomicU32,
    /// End of what the receiver has sent, of all that passed: its SND.NXT, unless segments were lost on their way
    /// here. Only what takes up sequence numbers moves it: an ACK without payload is accepted at this number in
    /// any case, and a forged one could move it beyond what the sender accepts.
    pub nxt: AtomicU32,
    /// The receiver's newest TSval.
    pub ts: AtomicU32,
    /// The receiver's right edge: the largest `ack + window` that it has sent. With `SCALED` only.
    pub edge: AtomicU32,
    /// The right edge that has left towards the sender. With `SCALED` only.
    pub sent: AtomicU32,
    /// The window field that the receiver sent last.
    pub window: AtomicU32,
    /// Not 0 once the receiver's FIN has passed.
    pub ended: AtomicU32,
    /// Segments that were not believed since the last one that was.
    pub doubts: AtomicU32,
    /// Highest acknowledgement number that the receiver has sent: what is beyond `tx` is held.
    pub ack: AtomicU32,
    /// Largest window in bytes that the sender is to see; 0: any. With `SIZED` only.
    pub width: AtomicU32,
    /// Acknowledgement number up to which plain segments pass; 0: none does.
    grant: AtomicU32,
    /// The segment taken last, if the gateway has not had it yet: the low 32 bits of its time in nanoseconds, made odd;
    /// 0: none waits.
    waits: AtomicU32,
    spare: [u32; 2],
}

/// A segment of the receiver as the hook reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Flags of the TCP header, low eight bits.
    pub flags: u8,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Window field as on the wire.
    pub window: u16,
    /// Payload bytes, of all segments of a giant one.
    pub payload: u32,
    /// TSval, if the option is there.
    pub ts: Option<u32>,
    /// Is there a SACK option with at least one block?
    pub sack: bool,
    /// Its options are none, or timestamps after two NOPs (RFC 7323 appendix A).
    pub plain: bool,
}

/// TCP flags that a hook looks at.
pub const FIN: u8 = 0x01;
/// See [`FIN`].
pub const SYN: u8 = 0x02;
/// See [`FIN`].
pub const RST: u8 = 0x04;
/// See [`FIN`].
pub const PSH: u8 = 0x08;
/// See [`FIN`].
pub const ACK: u8 = 0x10;
/// See [`FIN`].
pub const URG: u8 = 0x20;

/// What becomes of a segment of a controlled flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It passes as it came; nobody needs to hear of it.
    Pass,
    /// It passes as it came, and the gateway gets a copy of its headers.
    Copy,
    /// It does not pass: the gateway has it.
    Take,
    /// It passes with these fields. `report`: the gateway gets a copy of its headers as they were.
    SetBack {
        /// ACK field.
        ack: u32,
        /// Window field.
        window: u16,
        /// It acknowledges what the gateway has not heard of.
        report: bool,
    },
}

/// What becomes of an ACK that the gateway sends, on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// It leaves with these fields.
    Send {
        /// Sequence number.
        seq: u32,
        /// TSval, if it carries timestamps.
        ts: u32,
        /// Window field.
        window: u16,
    },
    /// It does not leave: something newer has.
    Discard,
}

/// Is `a` after `b` in serial arithmetic (RFC 1982)?
pub const fn after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}

/// Moves `place` forward to `to`, never back, whoever else moves it.
fn advance(place: &AtomicU32, to: u32) {
    let mut old = place.load(Relaxed);
    while after(to, old) {
        match place.compare_exchange_weak(old, to, Relaxed, Relaxed) {
            Ok(_) => return,
            Err(now) => old = now,
        }
    }
}

/// As [`advance`], of a place that nobody else moves: without the cost of a locked instruction.
fn advance_alone(place: &AtomicU32, to: u32) {
    if after(to, place.load(Relaxed)) {
        place.store(to, Relaxed);
    }
}

impl Seen {
    /// Sequence number after the segment (SYN is never asked for).
    pub fn end(&self) -> u32 {
        self.seq.wrapping_add(self.payload).wrapping_add(u32::from(self.flags & FIN != 0))
    }

    /// Is it nothing but an acknowledgement?
    pub fn is_pure(&self) -> bool {
        self.payload == 0 && self.flags & (FIN | URG) == 0
    }
}

impl Slot {
    /// Begins a use of the slot for a flow whose sender has been acknowledged `tx` and whose receiver is at
    /// `nxt`; `edge` is the receiver's right edge, `sent` the one that the sender knows. `tag` is not 0 and
    /// not that of an earlier use.
    #[allow(clippy::too_many_arguments)]
    pub fn open(&self, tag: u32, flags: u32, tx: u32, nxt: u32, ts: u32, edge: u32, sent: u32, window: u16) {
        self.tag.store(0, Relaxed);
        self.flags.store(flags, Relaxed);
        self.tx.store(tx, Relaxed);
        self.nxt.store(nxt, Relaxed);
        self.ts.store(ts, Relaxed);
        self.edge.store(edge, Relaxed);
        self.sent.store(sent, Relaxed);
        self.window.store(u32::from(window), Relaxed);
        self.ended.store(0, Relaxed);
        self.doubts.store(0, Relaxed);
        self.ack.store(tx, Relaxed);
        self.width.store(0, Relaxed);
        self.grant.store(0, Relaxed);
        self.waits.store(0, Relaxed);
        self.tag.store(tag, core::sync::atomic::Ordering::Release);
    }

    /// Ends the use of the slot.
    pub fn close(&self) {
        self.tag.store(0, Relaxed);
    }

    /// Is the slot used?
    pub fn is_open(&self) -> bool {
        self.tag.load(Relaxed) != 0
    }

    /// Are all of these [`slot_flag`]s set?
    pub fn has(&self, flags: u32) -> bool {
        self.flags.load(Relaxed) & flags == flags
    }

    /// Shift of the window field.
    pub fn scale(&self) -> u32 {
        (self.flags.load(Relaxed) >> slot_flag::SCALE_SHIFT).min(14)
    }

    /// Can this segment be the receiver's? Its sequence number is near SND.NXT, and it acknowledges nothing
    /// beyond the receiver's right edge, nor anything so old that its sender would not accept it (RFC 5961
    /// section 5.2: a largest window below SND.UNA).
    pub fn believes(&self, seen: &Seen) -> bool {
        let ahead = seen.seq.wrapping_sub(self.nxt.load(Relaxed)) as i32;
        let behind = if seen.is_pure() { PURE_BEHIND } else { SEQ_BEHIND };
        if ahead > SEQ_AHEAD as i32 || ahead < -(behind as i32) {
            return false;
        }
        let progress = seen.ack.wrapping_sub(self.tx.load(Relaxed)) as i32;
        if !self.has(slot_flag::SCALED) {
            return progress.unsigned_abs() <= ACK_RANGE;
        }
        progress >= -(0xffff_i32 << self.scale()) && !after(seen.ack, self.edge.load(Relaxed))
    }

    /// The receiver's numbers move forward; window and timestamp are those of a segment that is not older than
    /// the last.
    #[inline]
    fn note(&self, seen: &Seen, advance: fn(&AtomicU32, u32)) {
        self.doubts.store(0, Relaxed);
        let behind = after(self.nxt.load(Relaxed), seen.seq);
        if seen.end() != seen.seq {
            advance(&self.nxt, seen.end());
        }
        if let Some(ts) = seen.ts {
            advance(&self.ts, ts);
        }
        advance(&self.ack, seen.ack);
        if self.has(slot_flag::SCALED) {
            advance(&self.edge, seen.ack.wrapping_add(u32::from(seen.window) << self.scale()));
        }
        if !behind {
            self.window.store(u32::from(seen.window), Relaxed);
        }
    }

    /// A segment passes as it came: the sender knows its acknowledgement and its right edge. The gateway may call this of a slot
    /// that a hook moves meanwhile.
    pub fn note_passed(&self, seen: &Seen) {
        self.note(seen, advance);
        advance(&self.tx, seen.ack);
        if self.has(slot_flag::SCALED) {
            advance(&self.sent, seen.ack.wrapping_add(u32::from(seen.window) << self.scale()));
        }
        if seen.flags & FIN != 0 {
            self.ended.store(1, Relaxed);
        }
    }

    /// A segment of the receiver (not a SYN or RST) passes because the gateway is away, or cannot be told. What cannot be
    /// true changes nothing here either. A window that the gateway sizes stays within its bounds: an edge that
    /// went right could not be taken back, and the flow would stand still until it is used up.
    pub fn bypass(&self, seen: &Seen) -> Action {
        if seen.flags & ACK == 0 || !self.believes(seen) {
            return Action::Pass;
        }
        self.note(seen, advance_alone);
        advance_alone(&self.tx, seen.ack);
        if seen.flags & FIN != 0 {
            self.ended.store(1, Relaxed);
        }
        let window = self.bounded(seen);
        if self.has(slot_flag::SCALED) {
            advance_alone(&self.sent, seen.ack.wrapping_add(u32::from(window) << self.scale()));
        }
        if window == seen.window {
            return Action::Pass;
        }
        Action::SetBack { ack: seen.ack, window, report: false }
    }

    /// The segment's window, at most `width` bytes of it or what the sender knows.
    fn bounded(&self, seen: &Seen) -> u16 {
        let width = self.width.load(Relaxed);
        if !self.has(slot_flag::SCALED | slot_flag::SIZED) || width == 0 || seen.window == 0 {
            return seen.window;
        }
        let (scale, sent) = (self.scale(), self.sent.load(Relaxed));
        let own = seen.ack.wrapping_add(u32::from(seen.window) << scale);
        let goal = seen.ack.wrapping_add(width);
        window::fit(seen.ack, scale, if after(sent, goal) { sent } else { goal }, own)
    }

    /// What becomes of a segment of the receiver (not a SYN or RST) while the gateway works. When it cannot be taken
    /// or set back (no room in the ring), [`Slot::bypass`] tells how it passes. A copy that cannot be made changes nothing: the segment was noted here, or is not believed.
    pub fn segment(&self, seen: &Seen) -> Action {
        if seen.flags & ACK == 0 {
            return Action::Pass;
        }
        if !self.believes(seen) {
            let doubts = self.doubts.fetch_add(1, Relaxed);
            return if doubts % DOUBT_SAMPLE == 0 { Action::Copy } else { Action::Pass };
        }
        self.believed(seen)
    }

    /// As [`Slot::segment`], of an acknowledgement that is [believed](Slot::believes).
    pub fn believed(&self, seen: &Seen) -> Action {
        let (tx, nxt) = (self.tx.load(Relaxed), self.nxt.load(Relaxed));
        // A retransmission or a probe (keepalive: one before SND.NXT, RFC 9293 section 3.8.4): nothing is learnt
        // from its acknowledgement, since the sender might not accept it, and nothing leaks by it. An
        // ACK without payload that a segment overtook is an ACK like any other.
        let probe = seen.seq == nxt.wrapping_sub(1);
        if after(nxt, seen.seq) && !after(seen.end(), nxt) && (probe || !seen.is_pure()) {
            // The last segment again (a tail loss probe, RFC 8985 section 7): its sender's clock is newer, and the peer
            // takes that for the newest (RFC 7323 section 4.3), wherever it already has the segment.
            if let Some(ts) = seen.ts.filter(|_| seen.end() == nxt) {
                advance_alone(&self.ts, ts);
            }
            let ack = if after(seen.ack, tx) { tx } else { seen.ack };
            return self.set_back(seen, ack, false);
        }
        if seen.flags & FIN != 0 {
            self.note_passed(seen);
            return Action::Copy;
        }
        if self.grants(seen) {
            return self.bypass(seen);
        }
        if seen.is_pure() {
            self.note(seen, advance_alone);
            return Action::Take;
        }
        let opens = self.window.load(Relaxed) == 0 && seen.window != 0;
        let unknown = after(seen.ack, tx) && !self.has(slot_flag::SCALED);
        if seen.sack || seen.window == 0 || opens || unknown {
            return match self.bypass(seen) {
                Action::SetBack { ack, window, .. } => Action::SetBack { ack, window, report: true },
                _ => Action::Copy,
            };
        }
        self.note(seen, advance_alone);
        // A made ACK that is stamped on another processor now either gets this timestamp, or shows here what it
        // acknowledges: refused for its age (PAWS) behind this segment, it told nothing that this one does not.
        let tx = self.tx.load(Relaxed);
        let progress = after(seen.ack, tx);
        self.set_back(seen, if progress { tx } else { seen.ack }, progress)
    }

    /// The segment with `ack` in its ACK field, and a window that keeps the right edge.
    fn set_back(&self, seen: &Seen, ack: u32, report: bool) -> Action {
        let window = if self.has(slot_flag::SCALED) && seen.window != 0 {
            self.window_of(seen, ack)
        } else {
            seen.window
        };
        if ack == seen.ack && window == seen.window {
            return Action::Pass;
        }
        Action::SetBack { ack, window, report }
    }

    /// The window field of a segment set back to `ack`: its own right edge, rounded down; with `SIZED` the
    /// one that the sender knows.
    fn window_of(&self, seen: &Seen, ack: u32) -> u16 {
        let scale = self.scale();
        let own = seen.ack.wrapping_add(u32::from(seen.window) << scale);
        if self.has(slot_flag::SIZED) {
            return window::fit(ack, scale, self.sent.load(Relaxed), own);
        }
        let field = window::fit(ack, scale, own, own);
        advance_alone(&self.sent, ack.wrapping_add(u32::from(field) << scale));
        field
    }

    /// An ACK that the gateway sends leaves towards the sender.
    pub fn stamp(&self, ack: u32, window: u16) -> Stamp {
        let tx = self.tx.load(Relaxed);
        if after(tx, ack) || (self.ended.load(Relaxed) != 0 && !after(ack, tx)) {
            return Stamp::Discard;
        }
        advance_alone(&self.tx, ack);
        let mut field = window;
        if self.has(slot_flag::SCALED) && window != 0 {
            let (scale, sent) = (self.scale(), self.sent.load(Relaxed));
            // The receiver's own window where nothing is held: it may be smaller than it was. Where something is, the
            // sender knows of an edge that goes with a later acknowledgement (`set_back`).
            let kept = !self.has(slot_flag::SIZED)
                && u32::from(window) == self.window.load(Relaxed)
                && !after(self.ack.load(Relaxed), ack);
            // Never left of what the sender knows, never beyond what the receiver said.
            if !kept && after(sent, ack.wrapping_add(u32::from(field) << scale)) {
                field = field.max(window::fit(ack, scale, sent, self.edge.load(Relaxed)));
            }
            advance_alone(&self.sent, ack.wrapping_add(u32::from(field) << scale));
        }
        Stamp::Send { seq: self.nxt.load(Relaxed), ts: self.ts.load(Relaxed), window: field }
    }
}

const _: () = assert!(core::mem::size_of::<Slot>() == 64);
