//! Generation of ACKs.

use super::ethernet::{Vlan, HEADER, IPV4, IPV6};
use super::sum::{add, fold};
use super::{accecn, be32, checksum, EcnBytes, Flags, Seq, Timestamps, TCP};
use crate::packet::pppoe;

/// Bytes of the longest frame that [`emit_ack`] makes: two tags, PPPoE, IPv6, timestamps, counters of
/// Accurate ECN, a SACK block.
pub const MAX_ACK_LEN: usize =
    HEADER + 8 + pppoe::LEN + 40 + 20 + TIMESTAMPS_LEN + accecn::LONGEST + SACK_LEN;
/// Bytes of the shortest Ethernet frame, without FCS. Shorter ones are padded with zeros.
const MIN_FRAME: usize = 60;
/// Two no-operations and the timestamps option.
const TIMESTAMPS_LEN: usize = 12;
/// Two no-operations and the SACK option with one block.
const SACK_LEN: usize = 12;

/// Fields of a generated ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFields {
    /// Destination and source MAC address, as on the wire.
    pub macs: [u8; 12],
    /// VLAN tags.
    pub vlan: Vlan,
    /// PPPoE session (RFC 2516), or 0 for none.
    pub session: u16,
    /// IP version: 4, otherwise 6.
    pub version: u8,
    /// Source address. For IPv4 only the last four bytes count.
    pub src: [u8; 16],
    /// Destination address, likewise.
    pub dst: [u8; 16],
    /// Type of service or traffic class. Written unchanged. A pure ACK is not ECN-capable (RFC 3168 §6.1.4)
    /// unless the receiver's own were.
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
    pub seq: Seq,
    /// Acknowledgement number.
    pub ack: Seq,
    /// Flags, [`Flags::ACK`] among them.
    pub flags: Flags,
    /// Window as on the wire, not scaled.
    pub window: u16,
    /// Timestamps, if the flow uses them.
    pub timestamps: Option<Timestamps>,
    /// Counters of Accurate ECN's option, if it has one.
    pub ecn: Option<EcnBytes>,
    /// Left and right edge of a SACK block (RFC 2018 §3), if it has one.
    pub sack: Option<(Seq, Seq)>,
}

impl AckFields {
    #[inline(always)]
    const fn l3(&self) -> usize {
        HEADER + self.vlan.len() + if self.session == 0 { 0 } else { pppoe::LEN }
    }
    #[inline(always)]
    const fn l4(&self) -> usize {
        self.l3() + if self.version == 4 { 20 } else { 40 }
    }
    #[inline(always)]
    const fn tcp_len(&self) -> usize {
        let timestamps = if self.timestamps.is_some() { TIMESTAMPS_LEN } else { 0 };
        let ecn = match &self.ecn {
            Some(ecn) => ecn.len(),
            None => 0,
        };
        20 + timestamps + ecn + if self.sack.is_some() { SACK_LEN } else { 0 }
    }
}

/// Returns the length in bytes of the frame that [`emit_ack`] makes of these fields: 60 to [`MAX_ACK_LEN`].
#[inline(always)]
pub const fn ack_len(f: &AckFields) -> usize {
    let len = f.l4() + f.tcp_len();
    if len < MIN_FRAME {
        MIN_FRAME
    } else {
        len
    }
}

/// Writes a complete pure ACK with valid IP and TCP checksums and returns the length of the frame. Writes
/// nothing and returns 0 if `buf` is too short for it ([`ack_len`]). IPv4: DF, identification 0 (RFC 6864
/// §4.1). Timestamps are laid out as RFC 7323 appendix A recommends.
#[inline(never)]
pub fn emit_ack(buf: &mut [u8], f: &AckFields) -> usize {
    emit_known(buf, f)
}

/// Writes the ACK of [`emit_ack`], specialised for the fields that a caller knows at compile time. If
/// version, tags and timestamps are constant, so are all offsets.
#[inline(always)]
pub(crate) fn emit_known(buf: &mut [u8], f: &AckFields) -> usize {
    let len = ack_len(f);
    let Some(frame) = buf.get_mut(..len) else { return 0 };
    let rest = ethernet(frame, f);
    let (rest, addresses) = if f.version == 4 { ipv4(rest, f) } else { ipv6(rest, f) };
    tcp(rest, f, addresses);
    len
}

/// Splits off the first bytes of `rest`. The frame's length guarantees that there are enough.
#[inline]
fn cut<const N: usize>(rest: &mut [u8]) -> (&mut [u8; N], &mut [u8]) {
    rest.split_first_chunk_mut().expect("the frame has its length")
}

/// Writes eight bytes of a header.
#[inline]
fn set<const N: usize>(header: &mut [u8; N], at: usize, value: u64) {
    header[at..at + 8].copy_from_slice(&value.to_be_bytes());
}

/// Writes four bytes of a header.
#[inline]
fn set_half<const N: usize>(header: &mut [u8; N], at: usize, value: u64) {
    header[at..at + 4].copy_from_slice(&(value as u32).to_be_bytes());
}

#[inline(always)]
fn ethernet<'a>(rest: &'a mut [u8], f: &AckFields) -> &'a mut [u8] {
    let ethertype = match (f.session, f.version) {
        (0, 4) => IPV4,
        (0, _) => IPV6,
        _ => pppoe::SESSION,
    };
    let rest = link(rest, f, ethertype.to_be_bytes());
    if f.session == 0 {
        return rest;
    }
    let (header, rest) = cut::<{ pppoe::LEN }>(rest);
    let ip = f.l4() - f.l3() + f.tcp_len();
    *header = pppoe::header(f.session, f.version != 4, ip as u16);
    rest
}

/// Writes the header with its tags. Returns the bytes behind it.
#[inline(always)]
fn link<'a>(rest: &'a mut [u8], f: &AckFields, ethertype: [u8; 2]) -> &'a mut [u8] {
    if f.vlan.is_empty() {
        let (header, rest) = cut::<HEADER>(rest);
        header[..12].copy_from_slice(&f.macs);
        header[12..].copy_from_slice(&ethertype);
        return rest;
    }
    let (macs, mut rest) = cut(rest);
    *macs = f.macs;
    for tag in 0..f.vlan.tags() {
        let (to, behind) = cut(rest);
        let (tpid, tci) = (f.vlan.tpid[tag], f.vlan.tci[tag]);
        *to = (u32::from(tpid) << 16 | u32::from(tci)).to_be_bytes();
        rest = behind;
    }
    let (to, rest) = cut(rest);
    *to = ethertype;
    rest
}

/// Writes the header. Returns the bytes behind it, and the sum of both addresses as 16-bit words.
#[inline(always)]
fn ipv4<'a>(rest: &'a mut [u8], f: &AckFields) -> (&'a mut [u8], u64) {
    let address = |mapped: &[u8; 16]| be32(mapped, 12).map_or(0, u64::from);
    let (src, dst) = (address(&f.src), address(&f.dst));
    const DONT_FRAGMENT: u64 = 0x4000;
    let total = 20 + f.tcp_len() as u64;
    let first = 0x45 << 56 | u64::from(f.tos) << 48 | total << 32 | DONT_FRAGMENT;
    let second = u64::from(f.ttl) << 56 | u64::from(TCP) << 48 | src;
    let sum = fold(add(add(first, second), dst));
    let (header, rest) = cut::<20>(rest);
    set(header, 0, first);
    set(header, 8, second | u64::from(!sum) << 32);
    set_half(header, 16, dst);
    (rest, src + dst)
}

/// Writes the header, and returns the results of [`ipv4`].
#[inline(always)]
fn ipv6<'a>(rest: &'a mut [u8], f: &AckFields) -> (&'a mut [u8], u64) {
    let class_and_label = u64::from(f.tos) << 20 | u64::from(f.flow_label & 0xf_ffff);
    let lengths = (f.tcp_len() as u64) << 16 | u64::from(TCP) << 8 | u64::from(f.ttl);
    let (header, rest) = cut::<40>(rest);
    set(header, 0, (6 << 28 | class_and_label) << 32 | lengths);
    header[8..24].copy_from_slice(&f.src);
    header[24..].copy_from_slice(&f.dst);
    (rest, u64::from(checksum::sum(&f.src)) + u64::from(checksum::sum(&f.dst)))
}

/// Writes the header, and zeros behind it to the frame's end.
#[inline(always)]
fn tcp(rest: &mut [u8], f: &AckFields, addresses: u64) {
    let len = f.tcp_len() as u64;
    let ports = u64::from(f.src_port) << 48 | u64::from(f.dst_port) << 32;
    let first = ports | u64::from(f.seq.0);
    let offset_and_flags = (len / 4) << 12 | u64::from(f.flags.0 & 0xfff);
    let second = u64::from(f.ack.0) << 32 | offset_and_flags << 16 | u64::from(f.window);
    let mut sum = add(add(first, second), addresses + len + u64::from(TCP));
    let (header, mut rest) = cut::<20>(rest);
    set(header, 0, first);
    set(header, 8, second);
    if let Some(Timestamps { value, echo }) = f.timestamps {
        const NOP_NOP_TIMESTAMPS: u64 = 0x0101_080a;
        (rest, sum) = option(rest, sum, NOP_NOP_TIMESTAMPS, (value, echo));
    }
    if let Some(ecn) = &f.ecn {
        (rest, sum) = counters(rest, sum, ecn);
    }
    if let Some((left, right)) = f.sack {
        const NOP_NOP_SACK: u64 = 0x0101_050a;
        (rest, sum) = option(rest, sum, NOP_NOP_SACK, (left.0, right.0));
    }
    set_half(header, 16, u64::from(!fold(sum)) << 16);
    if !rest.is_empty() {
        rest.fill(0);
    }
}

/// Writes an option of ten bytes behind two no-operations. Returns the bytes behind it and the sum with it.
#[inline(always)]
fn option(rest: &mut [u8], sum: u64, kind: u64, (a, b): (u32, u32)) -> (&mut [u8], u64) {
    let both = u64::from(a) << 32 | u64::from(b);
    let (option, behind) = cut::<12>(rest);
    set_half(option, 0, kind);
    set(option, 4, both);
    (behind, add(add(sum, kind), both))
}

/// Writes the option of Accurate ECN. Returns the bytes behind it and the sum with it.
#[cold]
#[inline(never)]
fn counters<'a>(rest: &'a mut [u8], sum: u64, ecn: &EcnBytes) -> (&'a mut [u8], u64) {
    let (option, behind) = rest.split_at_mut(ecn.len());
    let bytes = ecn.option();
    option.copy_from_slice(&bytes[..ecn.len()]);
    (behind, add(sum, checksum::sum(option).into()))
}
