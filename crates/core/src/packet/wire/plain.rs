//! Pure ACKs of the common layout, parsed and verified in one step.
//!
//! Such a segment has no payload, no flag but ACK, no option but timestamps, no IP options and at most one
//! 802.1Q tag. Its fields lie at fixed places. The checksums are sums of the words that hold them, so each
//! word is loaded once. Any other layout is left to [`packet`](super::packet()) and the parsers behind it.
//! They give the same fields for this layout.

use super::ethernet::{IPV4, IPV6};
use super::sum::{add, is_valid};
use super::{Flags, Seq, Timestamps, TCP};

/// Contents of a pure ACK. IPv4 addresses are as in [`Packet`](super::Packet).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainAck {
    /// Destination and source MAC address.
    pub macs: [u8; 12],
    /// Control information of the 802.1Q tag, if there is one.
    pub tci: Option<u16>,
    /// IP version, 4 or 6.
    pub version: u8,
    /// IPv4 type of service or IPv6 traffic class.
    pub tos: u8,
    /// IPv4 time to live or IPv6 hop limit.
    pub ttl: u8,
    /// IPv6 flow label, 20 bits. 0 for IPv4.
    pub flow_label: u32,
    /// Source address as a number, its first byte the highest.
    pub src: u128,
    /// Destination address, likewise.
    pub dst: u128,
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number.
    pub seq: Seq,
    /// Acknowledgement number.
    pub ack: Seq,
    /// Window as on the wire, not scaled.
    pub window: u16,
    /// Timestamps, after two no-operations (RFC 7323 appendix A).
    pub timestamps: Option<Timestamps>,
}

const TAG: u16 = 0x8100;
/// Prefix of an IPv4 address as IPv6 (RFC 4291 §2.5.5.2).
pub(super) const MAPPED: u128 = 0xffff << 32;
/// Two no-operations, and kind and length of the timestamps option (RFC 7323 appendix A).
pub(super) const NOP_NOP_TIMESTAMPS: u64 = 0x0101_080a;

/// Parses the frame in `bytes`, if it is a pure ACK of that layout with a right header checksum. If
/// `verified`, the TCP checksum has to be right too.
pub fn plain_ack(bytes: &[u8], verified: bool) -> Option<PlainAck> {
    let (macs, rest) = bytes.split_first_chunk()?;
    let ([a, b], rest) = rest.split_first_chunk()?;
    let (tci, ethertype, rest) = match u16::from_be_bytes([*a, *b]) {
        TAG => {
            let (tag, rest) = rest.split_first_chunk::<4>()?;
            let word = u32::from_be_bytes(*tag);
            (Some((word >> 16) as u16), word as u16, rest)
        }
        ethertype => (None, ethertype, rest),
    };
    let ip = match ethertype {
        IPV4 => ipv4(rest)?,
        IPV6 => ipv6(rest)?,
        _ => return None,
    };
    let tcp = tcp(ip.rest, ip.len, ip.sum, verified)?;
    Some(PlainAck {
        macs: *macs,
        tci,
        version: ip.version,
        tos: ip.tos,
        ttl: ip.ttl,
        flow_label: ip.flow_label,
        src: ip.src,
        dst: ip.dst,
        src_port: tcp.src_port,
        dst_port: tcp.dst_port,
        seq: tcp.seq,
        ack: tcp.ack,
        window: tcp.window,
        timestamps: tcp.timestamps,
    })
}

/// Contents of an IP header, and the bytes behind it.
struct Ip<'a> {
    version: u8,
    tos: u8,
    ttl: u8,
    flow_label: u32,
    src: u128,
    dst: u128,
    /// Bytes of the IP packet behind the header.
    len: u64,
    /// Sum of both addresses.
    sum: u64,
    rest: &'a [u8],
}

/// RFC 791 §3.1.
#[inline(always)]
fn ipv4(bytes: &[u8]) -> Option<Ip<'_>> {
    const FIVE_WORDS: u64 = 0x45;
    const FRAGMENT: u64 = 0x3fff;
    let (header, rest) = bytes.split_first_chunk::<20>()?;
    let (first, second, dst) = (word(header, 0), word(header, 8), half(header, 16));
    let plain = first >> 56 == FIVE_WORDS && first & FRAGMENT == 0 && second >> 48 & 0xff == u64::from(TCP);
    if !plain || !is_valid(add(add(first, second), dst)) {
        return None;
    }
    let src = second & 0xffff_ffff;
    Some(Ip {
        version: 4,
        tos: (first >> 48) as u8,
        ttl: (second >> 56) as u8,
        flow_label: 0,
        src: MAPPED | u128::from(src),
        dst: MAPPED | u128::from(dst),
        len: (first >> 32 & 0xffff).checked_sub(20)?,
        sum: src + dst,
        rest,
    })
}

/// RFC 8200 §3.
#[inline(always)]
fn ipv6(bytes: &[u8]) -> Option<Ip<'_>> {
    let (header, rest) = bytes.split_first_chunk::<40>()?;
    let first = word(header, 0);
    if first >> 60 != 6 || first >> 8 & 0xff != u64::from(TCP) {
        return None;
    }
    let [a, b, c, d] = [8, 16, 24, 32].map(|at| word(header, at));
    let both = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
    Some(Ip {
        version: 6,
        tos: (first >> 52) as u8,
        ttl: first as u8,
        flow_label: (first >> 32) as u32 & 0xf_ffff,
        src: both(a, b),
        dst: both(c, d),
        len: first >> 16 & 0xffff,
        sum: add(add(a, b), add(c, d)),
        rest,
    })
}

/// Contents of a TCP header.
struct Tcp {
    src_port: u16,
    dst_port: u16,
    seq: Seq,
    ack: Seq,
    window: u16,
    timestamps: Option<Timestamps>,
}

/// Parses a segment of `len` bytes between addresses with the sum `sum` (RFC 9293 §3.1).
#[inline(always)]
fn tcp(bytes: &[u8], len: u64, sum: u64, verified: bool) -> Option<Tcp> {
    let (header, rest) = bytes.split_first_chunk::<20>()?;
    let (first, second, third) = (word(header, 0), word(header, 8), half(header, 16));
    let offset_and_flags = (len / 4) << 12 | u64::from(Flags::ACK.0);
    if second >> 16 & 0xffff != offset_and_flags {
        return None;
    }
    let sum = add(sum, len + u64::from(TCP));
    let mut sum = add(add(add(sum, first), second), third);
    let timestamps = match len {
        20 => None,
        32 => {
            let options = rest.first_chunk::<12>()?;
            let (kind, both) = (half(options, 0), word(options, 4));
            if kind != NOP_NOP_TIMESTAMPS {
                return None;
            }
            sum = add(add(sum, kind), both);
            Some(Timestamps { value: (both >> 32) as u32, echo: both as u32 })
        }
        _ => return None,
    };
    if verified && !is_valid(sum) {
        return None;
    }
    Some(Tcp {
        src_port: (first >> 48) as u16,
        dst_port: (first >> 32) as u16,
        seq: Seq(first as u32),
        ack: Seq((second >> 32) as u32),
        window: second as u16,
        timestamps,
    })
}

/// Returns eight bytes of a header as a number.
#[inline]
fn word<const N: usize>(header: &[u8; N], at: usize) -> u64 {
    super::array(header, at).map_or(0, u64::from_be_bytes)
}

/// Returns four bytes of a header as a number.
#[inline]
fn half<const N: usize>(header: &[u8; N], at: usize) -> u64 {
    super::be32(header, at).map_or(0, u64::from)
}
