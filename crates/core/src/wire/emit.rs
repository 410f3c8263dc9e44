//! Making ACKs.

use super::ethernet::{Vlan, HEADER, IPV4, IPV6};
use super::sum::{add, fold};
use super::{checksum, Flags, Timestamps, TCP};

/// Bytes of the longest frame that [`emit_ack`] makes: two tags, IPv6, timestamps.
pub const MAX_ACK_LEN: usize = HEADER + 8 + 40 + 20 + TIMESTAMPS_LEN;
/// Bytes of the shortest Ethernet frame, without FCS; shorter ones are padded with zeros.
const MIN_FRAME: usize = 60;
/// Two no-operations and the timestamps option.
const TIMESTAMPS_LEN: usize = 12;

/// Everything that a generated ACK is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFields {
    /// Source MAC address.
    pub src_mac: [u8; 6],
    /// Destination MAC address.
    pub dst_mac: [u8; 6],
    /// VLAN tags.
    pub vlan: Vlan,
    /// IP version: 4, or else 6.
    pub version: u8,
    /// Source address; of an IPv4 address the last four bytes count.
    pub src: [u8; 16],
    /// Destination address, likewise.
    pub dst: [u8; 16],
    /// Type of service or traffic class. Written as it is; a pure ACK is not ECN-capable (RFC 3168
    /// §6.1.4) unless the receiver's own were.
    pub tos: u8,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// IPv6 flow label, 20 bits.
    pub flow_label: u32,
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number: the receiver's SND.NXT.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Flags, [`Flags::ACK`] among them.
    pub flags: Flags,
    /// Window as on the wire, not scaled.
    pub window: u16,
    /// Timestamps, if the flow uses them.
    pub timestamps: Option<Timestamps>,
}

impl AckFields {
    const fn l3(&self) -> usize {
        HEADER + self.vlan.len()
    }
    const fn l4(&self) -> usize {
        self.l3() + if self.version == 4 { 20 } else { 40 }
    }
    const fn tcp_len(&self) -> usize {
        20 + if self.timestamps.is_some() { TIMESTAMPS_LEN } else { 0 }
    }
}

/// Length in bytes of the frame that [`emit_ack`] makes of these fields: 60 to [`MAX_ACK_LEN`].
pub const fn ack_len(f: &AckFields) -> usize {
    let len = f.l4() + f.tcp_len();
    if len < MIN_FRAME {
        MIN_FRAME
    } else {
        len
    }
}

/// Writes a complete pure ACK with valid IP and TCP checksums and returns the length of the frame, or
/// writes nothing and returns 0 if `buf` is too short for it ([`ack_len`]). IPv4: DF, identification
/// 0 (RFC 6864 §4.1). Timestamps are laid out as RFC 7323 appendix A recommends.
#[inline]
pub fn emit_ack(buf: &mut [u8], f: &AckFields) -> usize {
    let len = ack_len(f);
    let Some(frame) = buf.get_mut(..len) else { return 0 };
    let rest = ethernet(frame, f);
    let (rest, addresses) = if f.version == 4 { ipv4(rest, f) } else { ipv6(rest, f) };
    tcp(rest, f, addresses);
    len
}

/// Writes `bytes` at the start of `rest` and returns what follows. All of a header is there, by the frame's length.
#[inline]
fn write<const N: usize>(rest: &mut [u8], bytes: [u8; N]) -> &mut [u8] {
    let (to, rest) = rest.split_first_chunk_mut().expect("the frame has its length");
    *to = bytes;
    rest
}

#[inline]
fn ethernet<'a>(rest: &'a mut [u8], f: &AckFields) -> &'a mut [u8] {
    let mut rest = write(write(rest, f.dst_mac), f.src_mac);
    for tag in 0..f.vlan.tags() {
        let (tpid, tci) = (f.vlan.tpid[tag], f.vlan.tci[tag]);
        rest = write(rest, (u32::from(tpid) << 16 | u32::from(tci)).to_be_bytes());
    }
    write(rest, if f.version == 4 { IPV4 } else { IPV6 }.to_be_bytes())
}

/// Writes the header and returns, beside what follows, the sum of both addresses as 16-bit words.
#[inline]
fn ipv4<'a>(rest: &'a mut [u8], f: &AckFields) -> (&'a mut [u8], u64) {
    let [.., a, b, c, d] = f.src;
    let [.., e, g, h, i] = f.dst;
    let (src, dst) = (u64::from(u32::from_be_bytes([a, b, c, d])), u32::from_be_bytes([e, g, h, i]));
    const DONT_FRAGMENT: u64 = 0x4000;
    let total = 20 + f.tcp_len() as u64;
    let first = 0x45 << 56 | u64::from(f.tos) << 48 | total << 32 | DONT_FRAGMENT;
    let second = u64::from(f.ttl) << 56 | u64::from(TCP) << 48 | src;
    let addresses = src + u64::from(dst);
    let sum = add(add(first, second), u64::from(dst));
    let second = second | u64::from(!fold(sum)) << 32;
    (write(write(write(rest, first.to_be_bytes()), second.to_be_bytes()), dst.to_be_bytes()), addresses)
}

/// As [`ipv4`].
#[inline]
fn ipv6<'a>(rest: &'a mut [u8], f: &AckFields) -> (&'a mut [u8], u64) {
    let class_and_label = u64::from(f.tos) << 20 | u64::from(f.flow_label & 0xf_ffff);
    let lengths = (f.tcp_len() as u64) << 16 | u64::from(TCP) << 8 | u64::from(f.ttl);
    let first = (6 << 28 | class_and_label) << 32 | lengths;
    let sum = u64::from(checksum::sum(&f.src)) + u64::from(checksum::sum(&f.dst));
    (write(write(write(rest, first.to_be_bytes()), f.src), f.dst), sum)
}

/// Writes the header, and zeros behind it to the frame's end.
#[inline]
fn tcp(rest: &mut [u8], f: &AckFields, addresses: u64) {
    let len = f.tcp_len() as u64;
    let ports = u64::from(f.src_port) << 48 | u64::from(f.dst_port) << 32;
    let first = ports | u64::from(f.seq);
    let offset_and_flags = (len / 4) << 12 | u64::from(f.flags.0 & 0xfff);
    let second = u64::from(f.ack) << 32 | offset_and_flags << 16 | u64::from(f.window);
    let mut sum = add(add(first, second), addresses + len + u64::from(TCP));
    let rest = write(write(rest, first.to_be_bytes()), second.to_be_bytes());
    let Some(Timestamps { value, echo }) = f.timestamps else {
        let third = u32::from(!fold(sum)) << 16;
        return write(rest, third.to_be_bytes()).fill(0);
    };
    const NOP_NOP_TIMESTAMPS: u64 = 0x0101_080a;
    let fourth = u64::from(value) << 32 | u64::from(echo);
    sum = add(add(sum, NOP_NOP_TIMESTAMPS), fourth);
    let third = u64::from(!fold(sum)) << 48 | NOP_NOP_TIMESTAMPS;
    write(write(rest, third.to_be_bytes()), fourth.to_be_bytes()).fill(0);
}
