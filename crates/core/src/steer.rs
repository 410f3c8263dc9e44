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

mod fields;
mod frame;
mod grant;
mod segment;
mod tally;

pub use fields::Fields;
pub use frame::{restamp, set_back};
pub use tally::{Counted, Tally};

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
    /// Not 0: the gateway is to get the headers of the next segment of the flow's data.
    asked: AtomicU32,
    spare: u32,
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
        self.asked.store(0, Relaxed);
        self.tag.store(tag, core::sync::atomic::Ordering::Release);
    }

    /// Ends the use of the slot.
    pub fn close(&self) {
        self.tag.store(0, Relaxed);
    }

    /// The gateway is to get the headers of the next segment of the flow's data.
    pub fn ask(&self) {
        self.asked.store(1, Relaxed);
    }

    /// A segment of the flow's data passes. Is the gateway to get its headers?
    pub fn answers(&self) -> bool {
        self.asked.load(Relaxed) != 0 && self.asked.swap(0, Relaxed) != 0
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
}

const _: () = assert!(core::mem::size_of::<Slot>() == 64);
