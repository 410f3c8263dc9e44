//! Mirrors of the structures in `abi.h`.

use crate::sys::pod::Pod;
use weir_core::flow::Key;

/// A flow as seen on the port it comes in on, everything in network order (`struct flow_key`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct FlowKey {
    /// Source address; IPv4 as `::ffff:a.b.c.d`.
    pub src: [u8; 16],
    /// Destination address.
    pub dst: [u8; 16],
    /// Source port.
    pub sport: [u8; 2],
    /// Destination port.
    pub dport: [u8; 2],
    /// As in [`weir_core::flow::Key::tags`].
    pub tags: [[u8; 2]; 2],
}
// SAFETY: arrays of bytes.
unsafe impl Pod for FlowKey {}

impl From<&Key> for FlowKey {
    fn from(key: &Key) -> FlowKey {
        FlowKey {
            src: key.src,
            dst: key.dst,
            sport: key.src_port.to_be_bytes(),
            dport: key.dst_port.to_be_bytes(),
            tags: key.tags.map(u16::to_be_bytes),
        }
    }
}

/// Addresses of the LAN whose flows one engine has (`struct home_key`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub(crate) struct HomeKey {
    pub bits: u32,
    pub address: [u8; 16],
}
// SAFETY: an integer and bytes, without padding.
unsafe impl Pod for HomeKey {}

/// Traffic of an address that no class takes, out and in (`struct unlisted`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct UnlistedCount {
    pub bytes: [u64; 2],
    pub packets: [u64; 2],
}
// SAFETY: integers without padding.
unsafe impl Pod for UnlistedCount {}

/// A prefix of a part of packets (`struct rule_key`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub(crate) struct RuleKey {
    pub bits: u32,
    pub engine: u8,
    pub table: u8,
    pub prefix: [u8; 16],
    pub pad: [u8; 2],
}
// SAFETY: integers and bytes without padding: the size is asserted below.
unsafe impl Pod for RuleKey {}

/// Rules of a prefix (`struct group`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct RuleGroup {
    pub class: u32,
    pub first: u32,
    pub count: u32,
}
// SAFETY: integers without padding.
unsafe impl Pod for RuleGroup {}

/// Parts of a word that says which rules hold (`enum rules_word`).
pub(crate) mod rules {
    pub const HALF: u32 = 1;
    pub const PARTS: u32 = 1;
    pub const BOUND: u32 = 128;
    /// Bits above: which version of the rules it is.
    pub const VERSION: u32 = 8;
    /// In `rule_key.table`: seen at ingress.
    pub const INWARD: u8 = 2;
    /// Position of the part.
    pub const PART: u8 = 2;
    /// Bits of `rule_key` in front of the prefix.
    pub const BITS: u32 = 16;
}

/// Verdict of the gateway on a flow (`struct flow`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Flow {
    pub slot: u32,
    pub tag: u32,
    /// Hooks note its class here.
    pub class: u64,
}
// SAFETY: integers without padding.
unsafe impl Pod for Flow {}

/// Tally and engine that count packets with a key (`struct counted`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Counted {
    pub generation: u32,
    /// [`NO_TALLY`]: none.
    pub tally: u32,
}
// SAFETY: integers without padding.
unsafe impl Pod for Counted {}

/// The number of no tally.
pub(crate) const NO_TALLY: u32 = u32::MAX;
/// Segments of TCP are counted too (`FIELDS_UNTOUCHED`).
pub(crate) const FIELDS_UNTOUCHED: u32 = 128;

/// Offsets in `struct hooks`.
pub(crate) mod hooks {
    pub const SIZE: usize = 128;
    pub const BEAT: usize = 0;
    pub const GENERATION: usize = 8;
    pub const WAKE: usize = 12;
    pub const OUT_TO: usize = 16;
    pub const IN_TO: usize = 20;
    pub const COUNT_OUT: usize = 24;
    pub const COUNT_IN: usize = 28;
    pub const COUNTING: usize = 32;
    pub const GONE: usize = 36;
    /// Offsets of the words for egress and ingress.
    pub const SHUT: [usize; 2] = [40, 44];
    pub const TRIAL: usize = 48;
    pub const OWNER: usize = 52;
    /// Offset of the word for egress. That for ingress is 4 bytes behind it.
    pub const RULES: usize = 56;
    /// Offsets of the counts for egress and ingress.
    pub const TAKEN: [usize; 2] = [64, 72];
    /// Offsets of the counts for egress and ingress.
    pub const SEEN: [usize; 2] = [80, 88];
    pub const HOME: usize = 100;
    pub const WATCHED: usize = 104;
    pub const KEPT_UNTIL: usize = 112;
    pub const BEGUN: usize = 120;
}

/// Bits of what a registered socket's frames are for (`enum role`).
pub mod role {
    /// They are to come in on the interface, as if they had just arrived, instead of going out.
    pub const TO_INGRESS: u32 = 1;
    /// They are plain ACKs that are brought up to date on their way.
    pub const RESTAMP: u32 = 2;
    /// They are an engine's, whose number is in the bits from [`NUMBER`] on: where they are seen is counted
    /// for it.
    pub const ENGINE: u32 = 4;
    /// See [`ENGINE`].
    pub const NUMBER: u32 = 8;
}

/// Segments a second that the engine is shown, and at once (`struct budget`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Budget {
    interval: u64,
    burst: u64,
}
// SAFETY: integers without padding.
unsafe impl Pod for Budget {}

impl Budget {
    /// `rate` a second, `burst` at once; neither is 0.
    pub const fn new(rate: u32, burst: u32) -> Budget {
        let interval = 1_000_000_000 / rate as u64;
        Budget::every(interval, burst)
    }

    /// One every `interval` nanoseconds, `burst` at once.
    pub const fn every(interval: u64, burst: u32) -> Budget {
        Budget { interval, burst: interval * burst as u64 }
    }
}

/// `struct acks_config`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct AcksConfig {
    pub stale: u64,
    pub absent: u64,
    /// In the order of `enum budgets`.
    pub budgets: [Budget; 5],
    pub ethernet: u8,
    pub shape_in: u8,
    pub shape_out: u8,
    pub size_in: u8,
    pub size_out: u8,
    pub assume: u8,
    pub role: u8,
    pub observe: u8,
    pub slots: u32,
    pub classes: u32,
    /// Odd.
    pub seed: u64,
    /// Keys of a hash of flows.
    pub keys: [u64; 5],
    pub recent: u32,
    pub conditions: u32,
    pub unread: u32,
    pub spills: u32,
}
// SAFETY: integers without padding: the size is asserted below.
unsafe impl Pod for AcksConfig {}

/// `struct all_config`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct AllConfig {
    pub stale: u64,
    pub ethernet: u8,
    pub behind: u8,
    pub spilled_out: u8,
    pub spilled_in: u8,
    pub pad: [u8; 4],
}
// SAFETY: integers without padding.
unsafe impl Pod for AllConfig {}

/// Metadata of a frame, beside its bytes (`struct metadata`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Metadata {
    /// The frame may not leave before this time of CLOCK_MONOTONIC, in nanoseconds; 0: at once.
    pub departure: u64,
    /// Number of the record; 0: there is no metadata.
    pub number: u32,
    /// `skb->mark`
    pub mark: u32,
    /// `skb->priority`
    pub priority: u32,
    /// `skb->queue_mapping`
    pub queue: u16,
    /// Number of the queue of the frame's flow, plus one; 0: that has not spilled.
    pub spilled: u16,
}
// SAFETY: integers without padding: the size is asserted below.
unsafe impl Pod for Metadata {}

/// Record of a frame that the engine sends (`struct outgoing`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Outgoing {
    /// Metadata that it leaves with.
    pub metadata: Metadata,
    /// Protocol of the outer tag that it is sent without, in network order; 0: it has all its tags.
    pub tag_protocol: u16,
    /// Value of that tag.
    pub tag: u16,
    /// Zero.
    pub pad: u32,
}
// SAFETY: integers without padding: the size is asserted below.
unsafe impl Pod for Outgoing {}

/// Records of frames that arrive at the engine, and of frames that leave it.
pub(crate) const ARRIVING: usize = 65_536;
pub(crate) const LEAVING: usize = 16_384;

/// Counters of the hooks of `acks` steering (`struct acks_counters`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct AcksCounters {
    /// Taken to the engine.
    pub taken: u64,
    /// Passed as they came, their headers shown to the engine.
    pub copied: u64,
    /// Passed with their ACK field set back.
    pub set_back: u64,
    /// Segments of controlled flows that passed as they came: nothing new.
    pub passed_flow: u64,
    /// Segments of flows that pass.
    pub passed_known: u64,
    /// Segments of flows that are not classified yet.
    pub passed_unknown: u64,
    /// Not TCP, fragments, malformed.
    pub passed_other: u64,
    /// The engine was away.
    pub passed_stale: u64,
    /// Segments of controlled flows that cannot be true.
    pub doubted: u64,
    /// Not shown or taken: the ring was full.
    pub ring_full: u64,
    /// Not shown or taken: too many of their kind.
    pub over_budget: u64,
    /// The engine's own, left as they came.
    pub own: u64,
    /// The engine's own, brought up to date.
    pub stamped: u64,
    /// The engine's own, discarded: something newer had left.
    pub discarded: u64,
    /// The kernel refused to rewrite.
    pub failed: u64,
    /// Passed by a grant; those that came through as they were are in `passed_flow` too, the others in
    /// `set_back`.
    pub granted: u64,
    /// Dropped: they exceed their class's rate, and ACKs cannot slow them.
    pub policed: u64,
    /// Segments with a wrong checksum. They passed as they came, and nothing was learnt from them.
    pub broken: u64,
    /// Bytes of frames that leave: the hooks let them pass.
    pub bytes_out: u64,
    /// Bytes of frames that came in, dropped or not, but for the engine's own.
    pub bytes_in: u64,
    /// MPLS, of `passed_other`.
    pub mpls: u64,
    /// GRE and IP in IP, of `passed_other`.
    pub tunnels: u64,
    /// Segments that leave by the interface on which they came in: they are controlled there.
    pub hairpins: u64,
    /// Packets of `bytes_out`; of a giant one, its segments.
    pub packets_out: u64,
    /// Packets of `bytes_in`.
    pub packets_in: u64,
    /// Bytes from IP headers on of packets that no class takes, out and in, where classes have bounds.
    pub unlisted_bytes: [u64; 2],
    /// These packets; of TCP those with payload.
    pub unlisted_packets: [u64; 2],
}
// SAFETY: integers without padding.
unsafe impl Pod for AcksCounters {}

/// Counters of the hooks of `all` steering (`struct all_counters`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct AllCounters {
    /// Redirected to the engine.
    pub taken: u64,
    /// The engine was away.
    pub passed_stale: u64,
    /// The engine's own.
    pub own: u64,
    /// Dropped behind a socket that had read them.
    pub dropped: u64,
    /// No room for an Ethernet header.
    pub failed: u64,
    /// Bytes that leave: the engine's, and those that pass.
    pub bytes_out: u64,
    /// Bytes that came in, but for the engine's.
    pub bytes_in: u64,
    /// Packets of `bytes_out`; of a giant one, its segments.
    pub packets_out: u64,
    /// Packets of `bytes_in`.
    pub packets_in: u64,
}
// SAFETY: integers without padding.
unsafe impl Pod for AllCounters {}

/// Bytes of a segment that its record holds at most.
pub const SEGMENT_HEAD: usize = 188;

/// Fields in front of the head in a record of the ring (`struct segment`).
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct SegmentHeader {
    pub time: u64,
    pub len: u32,
    pub head_len: [u8; 2],
    pub port: u8,
    pub fate: u8,
}
// SAFETY: integers without padding.
unsafe impl Pod for SegmentHeader {}

/// Offsets of `gso_size`, `queue`, the head, `mark` and `priority` in a record.
pub(crate) const SEGMENT_GSO: usize = 16;
pub(crate) const SEGMENT_QUEUE: usize = 18;
pub(crate) const SEGMENT_BYTES: usize = 20;
pub(crate) const SEGMENT_MARK: usize = SEGMENT_BYTES + SEGMENT_HEAD;
pub(crate) const SEGMENT_PRIORITY: usize = SEGMENT_MARK + 4;
/// Length of a record: eight bytes are its alignment.
pub(crate) const SEGMENT_SIZE: usize = (SEGMENT_PRIORITY + 4).next_multiple_of(8);

const _: () = assert!(size_of::<FlowKey>() == 40 && size_of::<HomeKey>() == 20);
const _: () = assert!(size_of::<RuleKey>() == 24 && size_of::<RuleGroup>() == 12);
const _: () =
    assert!(size_of::<Flow>() == 16 && size_of::<AcksConfig>() == 176 && size_of::<AllConfig>() == 16);
const _: () = assert!(size_of::<AcksCounters>() == 232 && size_of::<AllCounters>() == 72);
const _: () = assert!(size_of::<SegmentHeader>() == SEGMENT_GSO && SEGMENT_SIZE == 216);
const _: () = assert!(size_of::<Metadata>() == 24 && size_of::<Outgoing>() == 32);
