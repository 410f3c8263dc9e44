//! The most common pure ACKs: untagged IPv4 with timestamps. Every field has one place, so a few comparisons
//! of words exclude most other frames.

use super::plain::{MAPPED, NOP_NOP_TIMESTAMPS};
use super::sum::{add, is_valid};
use super::{array, be32, PlainAck, Seq, Timestamps, TCP};

/// Bytes of such a frame, without padding.
pub(crate) const USUAL_ACK: usize = 14 + 20 + 20 + 12;

/// Bytes of the TCP header with its timestamps.
const TCP_LEN: u64 = 20 + 12;
/// RFC 791 §3.1: IPv4, five words long, 52 bytes in all. The mask also excludes fragments.
const FIRST: u64 = 0x4500_0034_0000_0000;
const FIRST_MASK: u64 = 0xff00_ffff_0000_3fff;
/// RFC 9293 §3.1: eight words long, no flag but ACK.
const OFFSET_AND_FLAGS: u64 = 0x8010;

/// Parses such a frame, with the results of [`plain_ack`](super::plain_ack).
#[inline(always)]
pub(crate) fn usual_ack(bytes: &[u8; USUAL_ACK], verified: bool) -> Option<PlainAck> {
    let word = |at| array(bytes, at).map_or(0, u64::from_be_bytes);
    let half = |at| be32(bytes, at).map_or(0, u64::from);
    let (first, second, dst) = (word(14), word(22), half(30));
    let (ports_and_seq, ack, end) = (word(34), word(42), half(50));
    let is_usual = bytes[12..14] == [8, 0]
        && first & FIRST_MASK == FIRST
        && second >> 48 & 0xff == u64::from(TCP)
        && ack >> 16 & 0xffff == OFFSET_AND_FLAGS
        && half(54) == NOP_NOP_TIMESTAMPS;
    if !is_usual || !is_valid(add(add(first, second), dst)) {
        return None;
    }
    let (src, times) = (second & 0xffff_ffff, word(58));
    let pseudo_header = src + dst + TCP_LEN + u64::from(TCP);
    let sum = add(add(pseudo_header + end + NOP_NOP_TIMESTAMPS, ports_and_seq), add(ack, times));
    if verified && !is_valid(sum) {
        return None;
    }
    Some(PlainAck {
        macs: array(bytes, 0)?,
        tci: None,
        version: 4,
        tos: (first >> 48) as u8,
        ttl: (second >> 56) as u8,
        flow_label: 0,
        src: MAPPED | u128::from(src),
        dst: MAPPED | u128::from(dst),
        src_port: (ports_and_seq >> 48) as u16,
        dst_port: (ports_and_seq >> 32) as u16,
        seq: Seq(ports_and_seq as u32),
        ack: Seq((ack >> 32) as u32),
        window: ack as u16,
        timestamps: Some(Timestamps { value: (times >> 32) as u32, echo: times as u32 }),
    })
}
