//! Making ACKs.

use super::ethernet::{Vlan, HEADER, IPV4, IPV6};
use super::{checksum, Flags, Packet, Timestamps, TCP};

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
pub fn emit_ack(buf: &mut [u8], f: &AckFields) -> usize {
    let len = ack_len(f);
    let Some(frame) = buf.get_mut(..len) else { return 0 };
    frame.fill(0);
    let (l3, l4, end) = (f.l3(), f.l4(), f.l4() + f.tcp_len());
    ethernet(&mut frame[..l3], f);
    match f.version {
        4 => ipv4(&mut frame[l3..l4], f),
        _ => ipv6(&mut frame[l3..l4], f),
    }
    tcp(&mut frame[l4..end], f);
    checksum::fill(frame, &layout(f, l3, l4, end));
    len
}

/// What the parser would find, as far as the checksum needs it.
fn layout(f: &AckFields, l3: usize, l4: usize, end: usize) -> Packet {
    Packet {
        vlan: f.vlan,
        l3: l3 as u16,
        version: f.version,
        src: f.src,
        dst: f.dst,
        protocol: TCP,
        l4: l4 as u16,
        end: end as u32,
        tos: f.tos,
        ttl: f.ttl,
        flow_label: f.flow_label,
        fragment: false,
    }
}

fn ethernet(header: &mut [u8], f: &AckFields) {
    header[..6].copy_from_slice(&f.dst_mac);
    header[6..12].copy_from_slice(&f.src_mac);
    let mut at = 12;
    for tag in 0..f.vlan.tags() {
        header[at..at + 2].copy_from_slice(&f.vlan.tpid[tag].to_be_bytes());
        header[at + 2..at + 4].copy_from_slice(&f.vlan.tci[tag].to_be_bytes());
        at += 4;
    }
    let ethertype = if f.version == 4 { IPV4 } else { IPV6 };
    header[at..at + 2].copy_from_slice(&ethertype.to_be_bytes());
}

fn ipv4(header: &mut [u8], f: &AckFields) {
    header[0] = 0x45;
    header[1] = f.tos;
    header[2..4].copy_from_slice(&(20 + f.tcp_len() as u16).to_be_bytes());
    header[6] = 0x40;
    header[8] = f.ttl;
    header[9] = TCP;
    header[12..16].copy_from_slice(&f.src[12..]);
    header[16..20].copy_from_slice(&f.dst[12..]);
    let checksum = !checksum::sum(header);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

fn ipv6(header: &mut [u8], f: &AckFields) {
    let word = 6 << 28 | (f.tos as u32) << 20 | f.flow_label & 0xf_ffff;
    header[..4].copy_from_slice(&word.to_be_bytes());
    header[4..6].copy_from_slice(&(f.tcp_len() as u16).to_be_bytes());
    header[6] = TCP;
    header[7] = f.ttl;
    header[8..24].copy_from_slice(&f.src);
    header[24..40].copy_from_slice(&f.dst);
}

fn tcp(header: &mut [u8], f: &AckFields) {
    header[..2].copy_from_slice(&f.src_port.to_be_bytes());
    header[2..4].copy_from_slice(&f.dst_port.to_be_bytes());
    header[4..8].copy_from_slice(&f.seq.to_be_bytes());
    header[8..12].copy_from_slice(&f.ack.to_be_bytes());
    let offset = (f.tcp_len() as u16 / 4) << 12;
    header[12..14].copy_from_slice(&(offset | f.flags.0 & 0xfff).to_be_bytes());
    header[14..16].copy_from_slice(&f.window.to_be_bytes());
    if let Some(ts) = f.timestamps {
        header[20..24].copy_from_slice(&[1, 1, 8, 10]);
        header[24..28].copy_from_slice(&ts.value.to_be_bytes());
        header[28..32].copy_from_slice(&ts.echo.to_be_bytes());
    }
}
