//! State of a flow, in 256 bytes of plain integers. The memory may be shared with a supervisor that sends
//! held ACKs when the engine dies. The flow's timer belongs to the wheel, and its place in the order of
//! activity to the table.

use super::{ClassId, Key, LawState};
use crate::base::time::Duration;
use crate::packet::wire::Seq;
use crate::packet::Segments;
use crate::tcp::track::Doubt;
use crate::tcp::Echoes;

/// Bytes of the timestamps option with its padding.
const TIMESTAMPS_LEN: u16 = 12;

/// Largest MSS that counts where flows share a rate: that of Ethernet's frames. SYNs may claim more than is
/// ever sent.
const ORDINARY_MSS: u16 = 1460;

/// Bits of [`Record::flags`].
pub mod flag {
    /// The record is in use.
    pub const USED: u32 = 1 << 0;
    /// The data's sender is on the WAN side (`Direction::In`).
    pub const INWARD: u32 = 1 << 1;
    /// The SYN of the data's sender was seen.
    pub const SENDER_SYN: u32 = 1 << 2;
    /// The SYN of the data's receiver was seen.
    pub const RECEIVER_SYN: u32 = 1 << 3;
    /// The sender's SYN offered window scaling.
    pub const SENDER_SCALES: u32 = 1 << 4;
    /// The receiver's SYN offered window scaling.
    pub const RECEIVER_SCALES: u32 = 1 << 5;
    /// An acknowledgement was seen in this epoch, so the record's numbers follow the receiver's.
    pub const SYNCED: u32 = 1 << 6;
    /// The receiver's segments carry timestamps.
    pub const TIMESTAMPS: u32 = 1 << 7;
    /// AccECN is in use: AE, CWR and ECE are a counter.
    pub const ACCECN: u32 = 1 << 8;
    /// The flow's ACKs are queued ([`Hold::Queue`](crate::ack::Hold::Queue)). With `STEPS`.
    pub const QUEUED: u32 = 1 << 9;
    /// The FIN of the data's sender was seen, and no later segment disproves it.
    pub const SENDER_FIN: u32 = 1 << 10;
    /// The FIN of the data's receiver was seen.
    pub const RECEIVER_FIN: u32 = 1 << 11;
    /// The connection is over, or was said to be. No ACK is generated for it, and it is forgotten soon.
    pub const CLOSED: u32 = 1 << 12;
    /// The flow is in the list of transient flows, which are evicted first.
    pub const TRANSIENT: u32 = 1 << 13;
    /// A SYN was sent more than once: its round trip cannot be measured (Karn).
    pub const SYN_REPEATED: u32 = 1 << 14;
    /// The flow passes, for the reason `pass`. With `SYNCED` it does so until it is clean again, otherwise as
    /// long as its connection lasts.
    pub const PASSES: u32 = 1 << 15;
    /// A release is scheduled.
    pub const ARMED: u32 = 1 << 16;
    /// Window scale is known (both SYNs were seen).
    pub const SCALE_KNOWN: u32 = 1 << 17;
    /// `edge` holds the right edge last forwarded.
    pub const EDGE_KNOWN: u32 = 1 << 18;
    /// Data below a held acknowledgement arrived twice, not yet reported to the sender: `block`.
    pub const TWICE: u32 = 1 << 19;
    /// A hole follows the held bytes, not yet reported to the sender: `block`. Never with a sized window.
    pub const HOLE: u32 = 1 << 20;
    /// For an unknown scale: acknowledgements up to `edge` go with the window field `right`, later ones with
    /// a smaller one, `window`.
    pub const PEAK: u32 = 1 << 21;
    /// The flow has the guarantee of its class. With `SHARED`.
    pub const GUARANTEED: u32 = 1 << 22;
    /// Turns in its class are of ACKs ([`Turns`](crate::ack::Turns)). With `SHARED`.
    pub const STEPS: u32 = 1 << 23;
    /// The kernel knows the flow's slot, and has not been told of its end.
    pub const SHOWN: u32 = 1 << 24;
    /// Progress is held only to rate-limit immediate ACKs. With `ARMED`.
    pub const WAITING: u32 = 1 << 25;
    /// The flow has a grant ([`Slot::grant`](crate::tcp::steer::Slot::grant)), and its timer is for a check
    /// of the bytes passed.
    pub const GRANTED: u32 = 1 << 26;
    /// The flow shares its class's rate.
    pub const SHARED: u32 = 1 << 27;
    /// The flow takes turns in its class.
    pub const LISTED: u32 = 1 << 28;
    /// No turn yet since the flow became backlogged. With `LISTED`.
    pub const FRESH: u32 = 1 << 29;
    /// The receiver has reported a loss since the last progress. With `SHARED`.
    pub const LOSS: u32 = 1 << 30;
    /// Bytes were acknowledged ahead of their turn, and the right edge stays until that comes. With `SHARED`.
    pub const EDGE_WAITS: u32 = 1 << 31;
}

/// Header fields of generated ACKs, copied from the receiver's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Template {
    /// Ethernet destination and source of the receiver's frames, as on the wire.
    pub macs: [u8; 12],
    /// VLAN tag control information, outer first.
    pub tci: [u16; 2],
    /// IPv6 flow label in bits 0–19. The others are the low bits of the PPPoE session's number.
    pub flow_label: u32,
    /// Number of VLAN tags in bits 0–1. Bits 2 and 3 mark the outer and the inner one as 802.1ad. The others
    /// are the high bits of the session's number, which is 0 without a session.
    pub tags: u8,
    /// IP version.
    pub version: u8,
    /// TOS or traffic class.
    pub tos: u8,
    /// TTL or hop limit.
    pub ttl: u8,
}

/// Bits of a flow label (RFC 8200).
const LABEL_BITS: u32 = 20;

impl Template {
    /// Returns the headers in a session of PPPoE. Its number fills bits that labels and tags leave free.
    #[must_use]
    #[inline]
    pub fn in_session(self, session: u16) -> Template {
        let low = u32::from(session & 0x0fff) << LABEL_BITS;
        Template { flow_label: self.flow_label | low, tags: self.tags | (session >> 12 << 4) as u8, ..self }
    }

    /// Returns the session of PPPoE, or 0 for none.
    #[inline]
    pub fn session(&self) -> u16 {
        (self.flow_label >> LABEL_BITS) as u16 | u16::from(self.tags >> 4) << 12
    }

    /// Returns the flow label.
    #[inline]
    pub fn label(&self) -> u32 {
        self.flow_label & ((1 << LABEL_BITS) - 1)
    }
}

/// A flow's record: four lines of memory of 64 bytes each, in two pairs, since processors load lines in
/// pairs. Sequence numbers are the data's. Their arithmetic is serial (RFC 1982).
///
/// The first line has the numbers that an arriving ACK and a release use under any policy. The second is the
/// policy's own. The third has the flow's identity, and hardly ever changes. The fourth has what is
/// remembered of single ACKs.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(128))]
pub struct Record {
    /// See [`flag`].
    pub flags: u32,
    /// Highest acknowledgement number received from the receiver.
    pub rx: Seq,
    /// Last acknowledgement number forwarded or generated towards the sender.
    pub tx: Seq,
    /// The receiver's SND.NXT, the sequence number of its pure ACKs.
    pub seq: Seq,
    /// The receiver's own right edge: the largest `ack + window` that it has sent. Without a scale see
    /// [`flag::PEAK`].
    pub right: Seq,
    /// Right edge of the window last forwarded, see [`flag::EDGE_KNOWN`]. Without a scale see [`flag::PEAK`].
    pub edge: Seq,
    /// Window field last received.
    pub window: u16,
    /// Payload bytes of a full segment.
    pub mss: u16,
    /// Shift of the receiver's window field, see [`flag::SCALE_KNOWN`].
    pub scale: u8,
    /// AccECN counter last received.
    pub ace: u8,
    /// AccECN counter last forwarded.
    pub ace_sent: u8,
    /// `PassReason` of a flow that passes, see [`flag::PASSES`].
    pub pass: u8,
    /// Place of the class.
    pub class: ClassId,
    /// Bytes acknowledged with ECE and not yet reported to the sender, less those reported in excess.
    pub marked: i32,
    /// Pure ACKs held as numbers since the last release.
    pub held_acks: u32,
    /// Round-trip time from the gateway to the receiver and, where seen, to the sender, in
    /// nanoseconds; 0 when unknown.
    pub rtt_ns: u32,
    /// Sequence number after the sender's FIN, see [`flag::SENDER_FIN`].
    pub fin: Seq,
    /// Last activity in milliseconds of the engine's time, wrapping.
    pub seen_ms: u32,
    /// Tag of the record's slot in its last use.
    pub tag: u32,
    /// Epoch of the table when the record was last synced.
    pub epoch: u16,
    /// Generation of the configuration that class and pace follow.
    pub generation: u16,

    /// State that the flow's law keeps.
    pub law: LawState,
    /// Bytes acknowledged towards the sender since this gateway began.
    pub acked: u64,

    /// Identity of the flow.
    pub key: Key,
    /// Headers of generated ACKs.
    pub template: Template,

    /// Held ACK numbers with the TSecr that came with them.
    pub echoes: Echoes,
    /// Segments that were not believed.
    pub doubt: Doubt,
    /// A SACK block for a later acknowledgement: of data received twice ([`flag::TWICE`]), or behind a hole
    /// ([`flag::HOLE`]). A block that begins at the hole stands for duplicates without a block; its right
    /// edge gives their number.
    pub block: (Seq, Seq),
}

impl Record {
    /// Returns the flow's full segments, in packets like the receiver's.
    pub fn segments(&self) -> Segments {
        let timestamps = self.has(flag::TIMESTAMPS);
        Segments {
            payload: self.payload_of(self.mss),
            ipv6: self.template.version == 6,
            tags: self.template.tags & 3,
            pppoe: self.template.session() != 0,
            options: if timestamps { TIMESTAMPS_LEN as u8 } else { 0 },
        }
    }

    /// Returns the payload of a segment of `mss` bytes that has the flow's options.
    fn payload_of(&self, mss: u16) -> u16 {
        let less = self.has(flag::TIMESTAMPS) || !self.has(flag::SENDER_SYN | flag::RECEIVER_SYN);
        if less {
            mss.saturating_sub(TIMESTAMPS_LEN).max(1)
        } else {
            mss
        }
    }

    /// Returns the MSS by which a flow is given anything beside others: at most an ordinary one, whatever
    /// the SYNs claim. Flows with larger segments are given as many bytes.
    pub(crate) fn shared_mss(&self) -> u32 {
        self.mss.min(ORDINARY_MSS).into()
    }

    /// Returns the payload of a segment of [`Record::shared_mss`].
    pub(crate) fn shared_payload(&self) -> u16 {
        self.payload_of(self.mss.min(ORDINARY_MSS)).max(1)
    }

    /// Returns whether all of these flags are set.
    pub fn has(&self, flags: u32) -> bool {
        self.flags & flags == flags
    }
    /// Sets or clears flags.
    pub fn set(&mut self, flags: u32, on: bool) {
        if on {
            self.flags |= flags;
        } else {
            self.flags &= !flags;
        }
    }
    /// Returns the flow's round-trip time, or `assumed` while it is unknown.
    #[inline]
    pub fn rtt(&self, assumed: Duration) -> Duration {
        match self.rtt_ns {
            0 => assumed,
            ns => Duration::from_nanos(u64::from(ns)),
        }
    }
    /// Returns the bytes acknowledged by the receiver and not passed on: `rx - tx`.
    #[inline]
    pub fn held(&self) -> u32 {
        if self.has(flag::SYNCED) {
            self.rx.since(self.tx)
        } else {
            0
        }
    }

    /// The tag of the slot's next use.
    pub(crate) fn next_tag(&self) -> u32 {
        self.tag.wrapping_add(1).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    #[test]
    fn all_state_of_a_flow_fits_in_256_bytes() {
        assert_eq!((size_of::<Record>(), align_of::<Record>()), (256, 128));
    }

    #[test]
    fn every_part_has_a_line_of_its_own() {
        let lines = [offset_of!(Record, flags), offset_of!(Record, law), offset_of!(Record, key)];
        assert_eq!((lines, offset_of!(Record, echoes)), ([0, 64, 128], 192));
    }
}
