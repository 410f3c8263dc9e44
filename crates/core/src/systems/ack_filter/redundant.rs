//! ACKs in a queue that a newer ACK of the same flow makes redundant, so that they may be erased.
//!
//! RFC 3449 §5.2.1 and the rules of Linux's `sch_cake` are the yardstick. Windows, fragments and checksums,
//! which `sch_cake` ignores, are checked too. An ACK is never erased unless all of this holds:
//!
//! - Both are TCP without payload, IP options and fragments, with right checksums, no flag but ACK and the
//!   ECN bits, and no option but timestamps, SACK and one of Accurate ECN. Any other option (MPTCP, TCP-AO,
//!   MD5, unknown ones) keeps both.
//! - The older one told its sender progress, or was a duplicate with SACK blocks after three duplicates have
//!   left. Duplicates without SACK, duplicate SACKs, ACKs that close, open or only change the window, and
//!   reordered ACKs are kept.
//! - The newer one acknowledges more. Over a duplicate it may acknowledge as much, with a window that is no
//!   smaller if the older one opened it.
//! - The newer one covers all SACK blocks of the older one, except those of the ACK before the older one and
//!   of the last ACK to leave.
//! - The newer one is no older by its timestamps. It has the same sequence number and the same type of
//!   service. Its window is not closed. If the receiver moves its right edge left, the newer edge is the one
//!   that counts for the sender in either case.
//! - The newer one has the same ECN bits, or counts the bytes that came with CE (RFC 9768 §3.2.3). It has
//!   each counter that the older one has, and none of them is behind.
//! - The newer one acknowledges nothing beyond the window of the older one, at the scale that the receiver's
//!   SYN has offered, or at any scale if no SYN was seen.
//! - In an Accurate ECN flow an ACK stands for seven packets at most ([`Stands::fits`]): the full segments of
//!   what each ACK acknowledges, two at least for progress (RFC 9293 §3.8.6.3), one for a duplicate
//!   (RFC 5681 §4.2). These then cannot hide that the three-bit counter has wrapped (RFC 9768 §3.2.2.5). One
//!   that counts the bytes that came with CE, as all ACKs of the flow have lately, stands for any number in
//!   which the counter has moved by six at most: its sender then knows that it has not wrapped (appendix
//!   A.2.2). Linux does not if it has heard ACKs without the option among them: it estimates the bytes of
//!   these.

use crate::frame::Checksum;
use crate::steer;
use crate::track::receiver::{could_follow, Acks, Receiver, MOST_SCALE};
use crate::wire::{self, checksum, EcnBytes, Flags, Packet, SackBlocks, Seq, TcpOptions, Timestamps};

use crate::tcp::Kind;

/// Packets that an ACK may stand for in an Accurate ECN flow: eight marks take more.
const PACKETS_MOST: u8 = 7;
/// Marks that it may stand for if it counts their bytes. The bytes of more than those that it tells take more
/// than half of a full segment each (RFC 9768 appendix A.2.2).
const MARKS_MOST: u8 = 6;
/// ACKs with the option after one without it until a sender's counts of bytes are relied on again.
const SETTLED: u8 = 64;
/// Payload of a full segment of a flow whose SYN was not seen: Ethernet's.
const FULL: u32 = 1_460;
/// Duplicates that make a sender retransmit (RFC 5681 §3.2).
pub const DUPLICATES: u8 = 3;
/// The bits by which an ACK may report congestion.
const ECN: Flags = Flags::ECE.with(Flags::CWR).with(Flags::AE);

/// Contents of an ACK that decide redundancy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Acknowledgement number.
    pub ack: Seq,
    seq: Seq,
    window: u16,
    /// Shift of its window, at most.
    scale: u8,
    ecn: Flags,
    tos: u8,
    timestamps: Option<Timestamps>,
    sack: SackBlocks,
    /// Counters of Accurate ECN's option.
    counted: Option<EcnBytes>,
    /// Distance that Accurate ECN's counter of packets has moved since the ACK before it, or full segments
    /// that were marked, if these are more. 255 stands for more.
    marks: u8,
    /// Packets that it acknowledges. 255 stands for more.
    packets: u8,
    /// Larger window than the ACK before it.
    opens: bool,
    /// News for its sender, as far as redundancy goes.
    pub role: Role,
}

/// News that an ACK brings its sender, as far as redundancy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An ACK that is kept, and makes no other one redundant.
    Alone,
    /// An ACK that is kept.
    Kept,
    /// An ACK that acknowledges more than those before it.
    Progress,
    /// An ACK with the number of the one before it, which reports a hole by SACK blocks.
    Duplicate,
}

/// State kept of a flow's ACKs: the last one that arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    receiver: Receiver,
    accecn: bool,
    /// Accurate ECN's counter of packets in the last one.
    ace: u8,
    /// ACKs with Accurate ECN's option that are still to come after one without it.
    unsettled: u8,
    /// Counters of the option in the last one.
    counted: Option<EcnBytes>,
}

/// Number of packets that a waiting ACK stands for, its own included, and of marks. 255 stands for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stands {
    packets: u8,
    marks: u8,
}

impl Stands {
    /// An ACK that stands for itself.
    pub fn of(ack: Option<&Ack>) -> Stands {
        let least = if ack.is_some_and(|ack| ack.role == Role::Duplicate) { 1 } else { 2 };
        let (packets, marks) = ack.map_or((0, 0), |ack| (ack.packets, ack.marks));
        Stands { packets: packets.max(least), marks }
    }

    /// Returns what one ACK stands for instead of two.
    pub fn with(self, other: Stands) -> Stands {
        let Stands { packets, marks } = other;
        Stands { packets: self.packets.saturating_add(packets), marks: self.marks.saturating_add(marks) }
    }

    /// Returns whether this ACK of the flow may stand for so much.
    pub fn fits(self, ack: &Ack, flow: &Seen) -> bool {
        let counts = ack.counted.is_some_and(|counted| counted.counts_marks()) && flow.unsettled == 0;
        !flow.accecn || (self.packets <= PACKETS_MOST || counts) && self.marks <= MARKS_MOST
    }
}

impl Ack {
    /// Parses the packet `p` in these bytes as a pure ACK. Returns `None` if it is something else or anything
    /// about it is unusual. A checksum in the state `Unknown` is verified. The role is [`Role::Alone`] until
    /// [`Seen::learn`] has set it.
    pub fn read(bytes: &[u8], frame_len: usize, p: &Packet, state: Checksum) -> Option<Ack> {
        if p.fragment || p.has_options() {
            return None;
        }
        let tcp = wire::tcp(bytes, p).ok()?;
        let plain = tcp.payload_len == 0 && tcp.flags.without(ECN) == Flags::ACK && tcp.urgent == 0;
        if !plain {
            return None;
        }
        let options = wire::tcp_options(bytes, p, &tcp).ok()?;
        let TcpOptions { timestamps, sack, only_timestamps, accecn, .. } = options;
        if options != (TcpOptions { timestamps, sack, only_timestamps, accecn, ..TcpOptions::default() }) {
            return None;
        }
        let counted = if accecn { Some(EcnBytes::read(bytes, p, &tcp)?) } else { None };
        let state = match state {
            Checksum::Unknown => checksum::verify(bytes, frame_len, p),
            known => known,
        };
        let wire::Tcp { ack, seq, window, flags, .. } = tcp;
        let (ecn, tos, opens, role, scale) = (flags & ECN, p.tos, false, Role::Alone, MOST_SCALE);
        matches!(state, Checksum::Valid | Checksum::Partial).then_some(Ack {
            ack,
            seq,
            window,
            scale,
            ecn,
            tos,
            timestamps,
            sack,
            counted,
            marks: 0,
            packets: 0,
            opens,
            role,
        })
    }

    /// Returns whether it has SACK blocks.
    pub fn tells_of_a_hole(&self) -> bool {
        !self.sack.is_empty()
    }

    /// Returns whether this ACK, queued directly before `newer` in the same flow, may be erased. `before` is
    /// the ACK that waits directly before it.
    pub fn is_redundant(&self, newer: &Ack, before: Option<&Ack>, told: &Told) -> bool {
        let tells = |block| {
            newer.sack.cover(block)
                || told.sack.cover(block)
                || before.is_some_and(|before| before.role != Role::Alone && before.sack.cover(block))
        };
        let more = match self.role {
            Role::Progress => newer.ack.is_after(self.ack),
            Role::Duplicate => {
                let opened = self.opens && newer.window < self.window;
                told.duplicates_of(self.ack) >= DUPLICATES && !self.ack.is_after(newer.ack) && !opened
            }
            Role::Alone | Role::Kept => false,
        };
        let same = |a: &Ack| (a.seq, a.tos);
        more && newer.role != Role::Alone
            && same(self) == same(newer)
            && self.tells_no_other_marks(newer)
            && newer.window != 0
            && could_follow(self.ack, (self.window, self.scale), newer.ack)
            && in_order(self.timestamps, newer.timestamps)
            && self.sack.as_slice().iter().all(|&block| !block.1.is_after(newer.ack) || tells(block))
    }
}

impl Ack {
    /// Returns whether `newer` tells of all marks that this ACK tells of.
    fn tells_no_other_marks(&self, newer: &Ack) -> bool {
        match (&self.counted, &newer.counted) {
            (None, None) => self.ecn == newer.ecn,
            (older, Some(counted)) => {
                (self.ecn == newer.ecn || counted.counts_marks())
                    && older.is_none_or(|older| counted.covers(&older))
            }
            (Some(_), None) => false,
        }
    }
}

/// News brought by the ACKs of a flow that have left its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// SACK blocks of the last ACK that had any.
    sack: SackBlocks,
    /// The number of the last duplicate.
    number: Seq,
    /// Duplicates with that number. Three stands for more.
    duplicates: u8,
}

impl Told {
    /// Notes that an ACK leaves.
    pub fn note(&mut self, ack: &Ack) {
        if !ack.sack.is_empty() && ack.role != Role::Alone {
            self.sack = ack.sack;
        }
        if ack.role == Role::Duplicate {
            let before = self.duplicates_of(ack.ack);
            (self.number, self.duplicates) = (ack.ack, (before + 1).min(DUPLICATES));
        }
    }

    fn duplicates_of(&self, number: Seq) -> u8 {
        if self.number == number {
            self.duplicates
        } else {
            0
        }
    }
}

/// Returns whether the second timestamps are no older than the first, by both clocks.
fn in_order(older: Option<Timestamps>, newer: Option<Timestamps>) -> bool {
    match (older, newer) {
        (None, None) => true,
        (Some(a), Some(b)) => !steer::after(a.value, b.value) && !steer::after(a.echo, b.echo),
        _ => false,
    }
}

impl Seen {
    /// Sets the role of an arriving ACK of the flow, and remembers the ACK. Returns how far it acknowledges
    /// beyond the last one, in bytes. `mss` is the payload of a full segment, or 0 if it is not known.
    pub fn learn(&mut self, ack: &mut Ack, mss: u16) -> u32 {
        if ack.ecn.intersects(Flags::AE.with(Flags::CWR)) || ack.counted.is_some() {
            self.accecn = true;
        }
        let last = self.receiver.last();
        ack.scale = self.receiver.scale();
        let beyond = match self.receiver.acks(ack.ack, ack.window) {
            Acks::Disbelieved => {
                if !self.receiver.is_known() {
                    self.forget();
                }
                return 0;
            }
            Acks::First => {
                ack.role = Role::Kept;
                0
            }
            Acks::More(beyond) => {
                ack.role = role(last, ack);
                beyond
            }
        };
        ack.opens = ack.window > last.1;
        if self.accecn {
            self.learn_counters(ack, beyond, if mss == 0 { FULL } else { mss.into() });
        }
        beyond
    }

    /// Notes packets and marks that an ACK of an Accurate ECN flow tells of. It acknowledges `beyond` bytes
    /// more, in segments of `full` bytes.
    fn learn_counters(&mut self, ack: &mut Ack, beyond: u32, full: u32) {
        let counts = ack.counted.is_some_and(|counted| counted.counts_marks());
        self.unsettled = if counts { self.unsettled.saturating_sub(1) } else { SETTLED };
        ack.packets = beyond.div_ceil(full).min(u8::MAX.into()) as u8;
        let moved = ack.ecn.ace().wrapping_sub(core::mem::replace(&mut self.ace, ack.ecn.ace())) & 7;
        let before = core::mem::replace(&mut self.counted, ack.counted);
        let marked = ack.counted.zip(before).and_then(|(new, old)| new.marked_since(&old)).unwrap_or(0);
        ack.marks = (marked / full).clamp(moved.into(), u8::MAX.into()) as u8;
    }

    /// Forgets the flow's ACKs, because the flow ends or proves to be another one.
    pub fn forget(&mut self) {
        *self = Seen::default();
    }

    /// Begins the flow with a SYN of the ACKs' sender, which offers this window shift (RFC 7323 §2.2).
    pub fn begin(&mut self, scale: Option<u8>) {
        *self = Seen { receiver: Receiver::begun(scale), ..Seen::default() };
    }

    /// Returns whether its ACKs carry Accurate ECN's counter.
    #[cfg(test)]
    pub fn is_accecn(&self) -> bool {
        self.accecn
    }
}

/// News that an ACK brings its sender after the `last` one, a number and a window.
fn role(last: (Seq, u16), ack: &Ack) -> Role {
    let open = ack.window != 0 && last.1 != 0;
    match Kind::of(last, (ack.ack, ack.window), &ack.sack) {
        Kind::Progress => Role::Progress,
        Kind::Sack if !open || ack.sack.reports_duplicate(ack.ack) => Role::Kept,
        Kind::Sack if ack.ack != last.0 => Role::Progress,
        Kind::Sack => Role::Duplicate,
        Kind::Old => Role::Alone,
        Kind::Twice | Kind::Closed | Kind::Opens | Kind::Duplicate | Kind::Window => Role::Kept,
    }
}

#[cfg(test)]
mod tests;
