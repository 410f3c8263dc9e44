//! Parsing from the Ethernet header to the transport header.

use super::ethernet::{inner, network_header, Vlan, HEADER, IPV4, IPV6};
use super::sum::sum;
use super::{array, be16, be32, Reject, TCP};

/// Bytes behind a packet that may be padding: Ethernet's least payload.
const PADDING: usize = 46;

/// Most IPv6 extension headers that are stepped over.
const MAX_EXTENSIONS: usize = 6;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;

/// Location of an IP packet in its frame, and the contents of its header. Offsets are in bytes from the start
/// of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// VLAN tags.
    pub vlan: Vlan,
    /// Offset of the IP header.
    pub l3: u16,
    /// IP version, 4 or 6.
    pub version: u8,
    /// Source address. IPv4 as `::ffff:a.b.c.d`.
    pub src: [u8; 16],
    /// Destination address. IPv4 as `::ffff:a.b.c.d`.
    pub dst: [u8; 16],
    /// Protocol of the transport header, after IPv6 extension headers. ESP, AH, a routing header before its
    /// last hop and a fragment header are not parsed further and appear here themselves.
    pub protocol: u8,
    /// Offset of the transport header.
    pub l4: u16,
    /// Offset of the end of the IP packet, at most the frame's length: Ethernet padding lies beyond.
    pub end: u32,
    /// IPv4 type of service or IPv6 traffic class: DSCP (6 bits) and ECN (2).
    pub tos: u8,
    /// IPv4 time to live or IPv6 hop limit.
    pub ttl: u8,
    /// IPv6 flow label, 20 bits. 0 for IPv4.
    pub flow_label: u32,
    /// The packet is a fragment ([`any_packet`]). The bytes at `l4` need not be a transport header.
    pub fragment: bool,
}

impl Packet {
    /// Bytes of the transport header and payload.
    pub const fn l4_len(&self) -> u32 {
        self.end.saturating_sub(self.l4 as u32)
    }
    /// Bytes from the IP header on, in a frame of `frame_len`. More behind the packet than padding counts:
    /// where frames are bridged it arrives.
    pub const fn charged_len(&self, frame_len: usize) -> u64 {
        let behind = frame_len.saturating_sub(self.end as usize);
        let end = if behind > PADDING { self.end as u64 + behind as u64 } else { self.end as u64 };
        end - self.l3 as u64
    }
    /// Returns the PPPoE session that the packet is in, of its frame `bytes`, or 0 if it is in none.
    pub fn session(&self, bytes: &[u8]) -> u16 {
        let link = HEADER + self.vlan.len();
        if usize::from(self.l3) <= link {
            return 0;
        }
        be16(bytes, link + 2).unwrap_or(0)
    }
    /// Returns whether the IP header has options, or extension headers.
    pub const fn has_options(&self) -> bool {
        let plain = if self.version == 6 { 40 } else { 20 };
        self.l4 != self.l3 + plain
    }
    /// The ECN field (RFC 3168): 0 not capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced.
    pub const fn ecn(&self) -> u8 {
        self.tos & 3
    }
}

/// Parses a frame of `frame_len` bytes, whose head is `bytes`, up to the transport header.
///
/// A wrong IPv4 header checksum makes the packet [`Reject::Malformed`], as does a length of 0. A length of 0
/// is accepted if the frame is longer than a length field can express: giant segments of Linux (BIG TCP) end
/// with the frame.
#[inline]
pub fn packet(bytes: &[u8], frame_len: usize) -> Result<Packet, Reject> {
    let found = any_packet(bytes, frame_len);
    match &found {
        Ok(packet) if packet.fragment => Err(Reject::Fragment),
        _ => found,
    }
}

/// Parses a frame as [`packet`] does, but accepts fragments.
#[inline]
pub fn any_packet(bytes: &[u8], frame_len: usize) -> Result<Packet, Reject> {
    let bytes = bytes.get(..frame_len).unwrap_or(bytes);
    let (vlan, ethertype, l3) = network_header(bytes)?;
    match ethertype {
        IPV4 => ipv4(bytes, frame_len, vlan, l3),
        IPV6 => ipv6(bytes, frame_len, vlan, l3),
        _ => Err(Reject::NotIp),
    }
}

/// Parses a frame that is no TCP segment as [`any_packet`] does. Of a packet that cannot be read as a whole,
/// a TCP segment that is none among them, it returns the addresses and the protocol that the IP header
/// names, as of a fragment: without ports, and with all that is left of the frame. Where an extension header
/// follows that of IPv6, the protocol is that of fragments. The packet may be inside of MPLS, of more tags
/// than two, or of PPPoE whose header says another length. `None` if no addresses are found.
pub fn other_packet(bytes: &[u8], frame_len: usize) -> Option<Packet> {
    match any_packet(bytes, frame_len) {
        Ok(packet) if packet.protocol != TCP || packet.fragment => Some(packet),
        _ => addresses(bytes, frame_len),
    }
}

/// See [`other_packet`].
fn addresses(bytes: &[u8], frame_len: usize) -> Option<Packet> {
    let bytes = bytes.get(..frame_len).unwrap_or(bytes);
    let (vlan, l3) = inner(bytes)?;
    let fixed: [u8; 20] = array(bytes, l3)?;
    let (src, dst, len) = match fixed[0] >> 4 {
        4 => (mapped(array(bytes, l3 + 12)?), mapped(array(bytes, l3 + 16)?), 20),
        6 => (array(bytes, l3 + 8)?, array(bytes, l3 + 24)?, 40),
        _ => return None,
    };
    let four = len == 20;
    let protocol = match fixed[if four { 9 } else { 6 }] {
        next if !four && is_extension(next) => FRAGMENT,
        protocol => protocol,
    };
    Some(Packet {
        vlan,
        l3: l3 as u16,
        version: fixed[0] >> 4,
        src,
        dst,
        protocol,
        l4: (l3 + len) as u16,
        end: frame_len as u32,
        tos: if four { fixed[1] } else { fixed[0] << 4 | fixed[1] >> 4 },
        ttl: fixed[if four { 8 } else { 7 }],
        flow_label: 0,
        fragment: true,
    })
}

/// RFC 791 §3.1.
#[inline]
fn ipv4(bytes: &[u8], frame_len: usize, vlan: Vlan, l3: usize) -> Result<Packet, Reject> {
    let fixed: [u8; 20] = array(bytes, l3).ok_or(Reject::Truncated)?;
    let header_len = 4 * (fixed[0] & 0xf) as usize;
    let total_len = length(u16::from_be_bytes([fixed[2], fixed[3]]), frame_len.saturating_sub(l3));
    if fixed[0] >> 4 != 4 || header_len < 20 || total_len < header_len {
        return Err(Reject::Malformed);
    }
    let header = bytes.get(l3..l3 + header_len).ok_or(Reject::Truncated)?;
    if sum(header) != 0xffff {
        return Err(Reject::Malformed);
    }
    if l3 + total_len > frame_len {
        return Err(Reject::Truncated);
    }
    Ok(Packet {
        vlan,
        l3: l3 as u16,
        version: 4,
        src: mapped([fixed[12], fixed[13], fixed[14], fixed[15]]),
        dst: mapped([fixed[16], fixed[17], fixed[18], fixed[19]]),
        protocol: fixed[9],
        l4: (l3 + header_len) as u16,
        end: (l3 + total_len) as u32,
        tos: fixed[1],
        ttl: fixed[8],
        flow_label: 0,
        // More fragments, or an offset.
        fragment: u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3fff != 0,
    })
}

/// Returns the length of a packet by its length field, with `rest` bytes left of its frame.
#[inline]
fn length(field: u16, rest: usize) -> usize {
    match field {
        0 if rest > 0xffff => rest,
        field => field.into(),
    }
}

/// Returns an IPv4 address as IPv6 (RFC 4291 §2.5.5.2).
#[inline]
pub(crate) fn mapped(a: [u8; 4]) -> [u8; 16] {
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a[0], a[1], a[2], a[3]]
}

/// RFC 8200 §3.
fn ipv6(bytes: &[u8], frame_len: usize, vlan: Vlan, l3: usize) -> Result<Packet, Reject> {
    let word = be32(bytes, l3).ok_or(Reject::Truncated)?;
    let [next, ttl] = array(bytes, l3 + 6).ok_or(Reject::Truncated)?;
    let src = array(bytes, l3 + 8).ok_or(Reject::Truncated)?;
    let dst = array(bytes, l3 + 24).ok_or(Reject::Truncated)?;
    let payload_len = be16(bytes, l3 + 4).ok_or(Reject::Truncated)?;
    let payload_len = length(payload_len, frame_len.saturating_sub(l3 + 40));
    if word >> 28 != 6 || payload_len == 0 {
        return Err(Reject::Malformed);
    }
    let end = l3 + 40 + payload_len;
    if end > frame_len {
        return Err(Reject::Truncated);
    }
    let (protocol, l4, fragment) = extensions(bytes, next, l3 + 40, end)?;
    Ok(Packet {
        vlan,
        l3: l3 as u16,
        version: 6,
        src,
        dst,
        protocol,
        l4: l4 as u16,
        end: end as u32,
        tos: (word >> 20) as u8,
        ttl,
        flow_label: word & 0xf_ffff,
        fragment,
    })
}

/// Returns whether this number of a next header is that of an extension header that is stepped over.
const fn is_extension(next: u8) -> bool {
    matches!(next, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION_OPTIONS)
}

/// Steps over extension headers (RFC 8200 §4) from `at` to the transport header or, in a fragment, to the
/// bytes behind the fragment header. A fragment with all of its packet is none (RFC 6946 §4).
fn extensions(bytes: &[u8], mut next: u8, mut at: usize, end: usize) -> Result<(u8, usize, bool), Reject> {
    for step in 0..=MAX_EXTENSIONS {
        if !is_extension(next) {
            return Ok((next, at, false));
        }
        // A hop-by-hop header is allowed only directly after the IPv6 header.
        if step == MAX_EXTENSIONS || (next == HOP_BY_HOP && step > 0) || at + 8 > end {
            return Err(Reject::Malformed);
        }
        let head: [u8; 8] = array(bytes, at).ok_or(Reject::Truncated)?;
        if next == FRAGMENT && is_fragment(head) {
            // Receivers read the next header of the first fragment alone, so a sender may write any into the
            // others.
            return Ok((FRAGMENT, at + 8, true));
        }
        // Segments left: the transport checksum covers another destination.
        if next == ROUTING && head[3] != 0 {
            return Ok((next, at, false));
        }
        // A fragment header has no length; a reserved field is in that one's place.
        at += if next == FRAGMENT { 8 } else { 8 * (head[1] as usize + 1) };
        if at > end {
            return Err(Reject::Malformed);
        }
        next = head[0];
    }
    Err(Reject::Malformed)
}

/// Returns whether a fragment header has an offset, or more fragments behind it (RFC 8200 §4.5).
fn is_fragment(head: [u8; 8]) -> bool {
    u16::from_be_bytes([head[2], head[3]]) & 0xfff9 != 0
}
