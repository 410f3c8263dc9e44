//! Steering of the TCP segments of a controlled flow (`acks` steering), as plain functions on a [`Slot`]. The
//! simulator runs these functions, and a differential test holds the BPF programs to them.
//!
//! Data never leaves the kernel. A hook on the WAN interface sees every segment that acknowledges data of
//! a controlled flow, in the flow's ACK direction: it takes pure ACKs to the gateway, sets the ACK field of
//! segments with payload back to what the sender may know, and stamps the ACKs that the gateway makes on
//! their way out. What both sides must know of a flow is its [`Slot`], in memory that they share.
//!
//! Where the policy would let ACKs pass at once, the gateway says so in advance, by a *grant*: a number up to
//! which plain segments pass without it.
//!
//! Two rules hold whatever happens. `tx` never lags what has passed, so that no made ACK is older than
//! what the sender has: every segment that passes is noted. And what cannot be true changes nothing
//! ([`Slot::believes`]).

mod bare;
mod bound;
mod clock;
pub(crate) mod congestion;
mod due;
mod fair;
mod fields;
mod flow_bound;
mod flow_queues;
mod frame;
mod grant;
mod segment;
mod strangers;
mod tally;
mod virtual_queue;
mod words;

pub use bare::admits_bare;
pub use bound::{
    admits, is_charged, is_spared, judge, recovers, Bound, FairLimit, Judgement, Kind, Limit, Load, Passed,
    Records, Share,
};
pub use fair::FairShare;
pub use fields::Fields;
pub use flow_bound::{FlowBound, FlowLimit};
pub use flow_queues::{FlowQueues, Spill};
pub use frame::{restamp, set_back};
pub use strangers::{hash_of_host, hash_of_source, Strangers};
pub use tally::{Counted, Tally};
pub use virtual_queue::VirtualQueue;
pub use words::Numbers;

use crate::base::time::Time;
use crate::packet::wire::Seq;
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use words::{AtomicU32, AtomicU64, Line};

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

/// Distance ahead of SND.NXT up to which a segment of the receiver is believed. Segments lost before the
/// gateway leave a gap.
pub const SEQ_AHEAD: u32 = 1 << 16;
/// Distance behind SND.NXT up to which a segment with payload is taken for a retransmission.
pub const SEQ_BEHIND: u32 = 1 << 22;
/// Distance behind SND.NXT up to which an ACK without payload is believed, since segments overtake each
/// other.
pub const PURE_BEHIND: u32 = 1 << 17;
/// Largest distance of an acknowledgement from `tx` where the window's scale is not known.
pub const ACK_RANGE: u32 = 1 << 30;
/// Ticks ahead of what time allows by which a TSval is believed at once. The delay on the way here may fall
/// by so much at most.
pub const CLOCK_SLACK: u32 = 1 << 10;
/// One of this many disbelieved segments is shown to the gateway.
pub const DOUBT_SAMPLE: u32 = 16;

/// State of a flow that kernel and gateway share, in a cache line for each of the two sides. Numbers are
/// those of the ACK direction: the data's receiver sends segments, the data's sender gets them.
///
/// Each side writes its own line alone, and readers take the serial maximum of both ([`Slot::numbers`]) until
/// the hooks have noted something: from then on their numbers count. Several hooks run at once: they move the
/// numbers of their line by an atomic maximum. What a hook noted wrongly, the gateway takes back with a new
/// turn ([`Slot::set_nxt`]): hooks note nothing under an old one. The gateway writes the hooks' line while it
/// opens the slot
/// ([`Slot::open`]), when its tag tells them that it is unused.
///
/// Hooks run one at a time here ([`Slot::segment`], [`Slot::bypass`], [`Slot::stamp`]): the program that runs
/// these is alone with the slot.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Slot {
    /// The gateway's numbers: those that the slot was opened with, and what passed before the kernel knew of
    /// it.
    gateway: Line,
    /// Number of this use of the slot, 0: none. The kernel's entry of a flow names slot and tag; an entry
    /// whose tag is another one is of a flow that is gone.
    pub tag: AtomicU32,
    /// See [`slot_flag`].
    pub flags: AtomicU32,
    /// Largest window in bytes that the sender is to see; 0: any. With `SIZED` only.
    pub width: AtomicU32,
    /// Segments taken that the gateway has had.
    come: AtomicU32,
    /// Acknowledgement number up to which plain segments pass, 0: none does; above it [`Slot::taken`] as it
    /// was then: what is taken ends the grant.
    grant: AtomicU64,
    /// Times that the gateway asked for the headers of the next segment of the flow's data.
    asked: AtomicU32,
    /// The window field and the end, as in `last`, until a hook has noted them.
    first: AtomicU32,
    /// The hooks' numbers.
    hooks: Line,
    /// The window field that the receiver sent last, and whether its FIN has passed.
    last: AtomicU32,
    /// Segments that were not believed since the last one that was.
    doubts: AtomicU32,
    /// Segments taken.
    taken: AtomicU32,
    /// Times that the gateway got what it asked for.
    answered: AtomicU32,
    /// A TSval too far ahead to be believed alone.
    candidate: AtomicU32,
    /// See `clock`.
    witnesses: AtomicU32,
    /// Time from which on segments are older than the newest TSval.
    behind_since: AtomicU32,
    spare: u32,
}

/// A segment of the receiver as the hook reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Flags of the TCP header, low eight bits.
    pub flags: u8,
    /// Sequence number.
    pub seq: Seq,
    /// Acknowledgement number.
    pub ack: Seq,
    /// Window field as on the wire.
    pub window: u16,
    /// Payload bytes, of all segments of a giant one.
    pub payload: u32,
    /// TSval, if the option is there.
    pub ts: Option<u32>,
    /// True if there is a SACK option with at least one block.
    pub sack: bool,
    /// True if it has no options, or timestamps after two NOPs (RFC 7323 appendix A).
    pub plain: bool,
    /// Time at which it was seen, in [`ticks`].
    pub at: u32,
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

/// Treatment of a segment of a controlled flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It passes as it came; no engine needs to hear of it.
    Pass,
    /// It passes as it came, and the gateway gets a copy of its headers.
    Copy,
    /// It does not pass: the gateway has it.
    Take,
    /// It passes with these fields. `report`: the gateway gets a copy of its headers as they were.
    SetBack {
        /// ACK field.
        ack: Seq,
        /// Window field.
        window: u16,
        /// It acknowledges what the gateway has not heard of.
        report: bool,
    },
}

/// Treatment of an ACK of the gateway on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamp {
    /// It leaves with these fields.
    Send {
        /// Sequence number.
        seq: Seq,
        /// TSval, if it carries timestamps.
        ts: u32,
        /// Window field.
        window: u16,
    },
    /// It does not leave: something newer has.
    Discard,
}

/// Returns whether one counter or timestamp is after another in serial arithmetic (RFC 1982).
pub const fn after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}

/// `now` in units of 2^20 ns, by which TSvals are judged.
pub const fn ticks(now: Time) -> u32 {
    (now.as_nanos() >> 20) as u32
}

impl Seen {
    /// Sequence number after the segment (SYN is never asked for).
    pub fn end(&self) -> Seq {
        self.seq.plus(self.payload).plus(u32::from(self.flags & FIN != 0))
    }

    /// Returns whether it is nothing but an acknowledgement.
    pub fn is_pure(&self) -> bool {
        self.payload == 0 && self.flags & (FIN | URG) == 0
    }
}

impl Slot {
    /// Begins a use of the slot for a flow whose sender has been acknowledged `tx` and whose receiver is at
    /// `nxt`, with the TSval `ts` at `at`; `edge` is the receiver's right edge, `sent` the one that the
    /// sender knows. `tag` is not 0 and not that of an earlier use.
    ///
    /// A hook that is at the slot meanwhile has read its numbers between two looks at the tag, and changes
    /// them by exchanges that fail where they are others now.
    #[allow(clippy::too_many_arguments)]
    pub fn open(
        &self,
        tag: u32,
        flags: u32,
        tx: impl Into<Seq>,
        nxt: impl Into<Seq>,
        ts: u32,
        edge: impl Into<Seq>,
        sent: impl Into<Seq>,
        window: u16,
        at: u32,
    ) {
        self.tag.store(0, Relaxed);
        words::barrier();
        self.flags.store(flags, Relaxed);
        self.width.store(0, Relaxed);
        self.grant.store(0, Relaxed);
        let (tx, nxt, edge, sent) = (tx.into(), nxt.into(), edge.into(), sent.into());
        let now = Numbers { tx, sent, ack: tx, edge, nxt, ts, window, ended: false, ..self.numbers() };
        self.put(&Numbers { turn: now.turn.wrapping_add(1), at, ..now });
        self.doubts.store(0, Relaxed);
        self.witnesses.store(0, Relaxed);
        self.come.store(self.taken.load(Relaxed), Relaxed);
        self.asked.store(self.answered.load(Relaxed), Relaxed);
        self.tag.store(tag, core::sync::atomic::Ordering::Release);
    }

    /// Ends the use of the slot.
    pub fn close(&self) {
        self.tag.store(0, Relaxed);
    }

    /// The gateway is to get the headers of the next segment of the flow's data.
    pub fn ask(&self) {
        self.asked.store(self.answered.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// A segment of the flow's data passes. Is the gateway to get its headers?
    pub fn answers(&self) -> bool {
        let (asked, answered) = (self.asked.load(Relaxed), self.answered.load(Relaxed));
        asked != answered && self.answered.compare_exchange(answered, asked, SeqCst, Relaxed).is_ok()
    }

    /// Returns whether the slot is used.
    pub fn is_open(&self) -> bool {
        self.tag.load(Relaxed) != 0
    }

    /// Returns whether all of these [`slot_flag`]s are set.
    pub fn has(&self, flags: u32) -> bool {
        self.flags.load(Relaxed) & flags == flags
    }

    /// Shift of the window field.
    pub fn scale(&self) -> u32 {
        (self.flags.load(Relaxed) >> slot_flag::SCALE_SHIFT).min(14)
    }
}

#[cfg(not(feature = "loom"))]
const _: () = assert!(core::mem::size_of::<Slot>() == 128);
