//! Segments: headers to bytes and back.
//!
//! A host sends Ethernet, IPv4 and TCP as on the wire, with options laid out as Linux does. The payload is
//! only a length. The bytes are written only when they are read: between hosts a segment is carried as it is
//! (`draft`). Transport checksums are not computed. Frames are marked as valid, and any change of a header on
//! the way updates the field incrementally, which is right for any content.

pub(crate) mod draft;
mod opaque;
#[cfg(test)]
mod tests;

use std::net::SocketAddrV4;
use weir_core::frame::{Checksum, Frame, Frames};
use weir_core::time::Time;
use weir_core::wire::{self, checksum, Flags, SackBlocks, Timestamps};

const ETHERNET: usize = 14;
/// Bytes of Ethernet and IPv4 headers.
const L4: usize = ETHERNET + 20;
/// Bytes of the fixed TCP header.
const TCP: usize = 20;
/// Longest frame head: 40 bytes of options.
const MAX_HEAD: usize = L4 + TCP + 40;
/// Two no-operations and the timestamps option: the first bytes of almost every option list.
const TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];
/// Bytes of the timestamps option with its values and padding.
pub const TIMESTAMPS_LEN: u16 = 12;

/// Bytes of headers with timestamps as the only option.
const COMMON: usize = L4 + TCP + TIMESTAMPS_LEN as usize;
/// Bytes of a [`Header`].
const ENDS: usize = 32;

/// ECN field of ECN-capable data (RFC 3168 §5).
pub const ECT0: u8 = 2;
/// ECN field of the data of L4S senders (RFC 9331).
pub const ECT1: u8 = 1;
/// Congestion experienced.
pub const CE: u8 = 3;

/// A TCP segment, as it is sent and as it is received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Flags.
    pub flags: Flags,
    /// Window as on the wire, not scaled.
    pub window: u16,
    /// ECN field of the IP header.
    pub ecn: u8,
    /// Payload bytes.
    pub payload: u32,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// SACK blocks.
    pub sack: SackBlocks,
    /// Options of a SYN.
    pub syn: SynOptions,
}

/// Options that only a SYN carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SynOptions {
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Window scale.
    pub window_scale: Option<u8>,
    /// SACK permitted.
    pub sack_permitted: bool,
    /// Fast Open.
    pub fast_open: Option<FastOpen>,
}

/// Fast Open cookie, which a server gives a client for its next connection. Eight bytes, as in Linux (RFC
/// 7413 §4.1.2 allows 4 to 16).
pub type Cookie = [u8; 8];

/// The Fast Open option of a SYN (RFC 7413 §4.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastOpen {
    /// Asks for a cookie.
    Ask,
    /// Shows or gives a cookie.
    Cookie(Cookie),
}

impl Segment {
    /// Returns whether all of these flags are set.
    pub const fn has(&self, flags: Flags) -> bool {
        self.flags.contains(flags)
    }

    /// Returns the bytes of the options of a segment other than a SYN.
    #[inline]
    fn options_len(&self) -> usize {
        let timestamps = if self.timestamps.is_some() { usize::from(TIMESTAMPS_LEN) } else { 0 };
        let sack = if self.sack.is_empty() { 0 } else { 4 + 8 * usize::from(self.sack.count) };
        timestamps + sack
    }
}

/// Addresses and ports of one end, equal for all segments that it sends.
#[derive(Clone, Debug)]
pub struct Header {
    /// Contents, least significant byte first: MAC addresses of destination and source, the [key](Pair::key)
    /// by which the receiver finds its endpoint, the IPv4 address of the destination, and the numbers of the
    /// sending and the receiving endpoint.
    ends: [u8; ENDS],
    /// [`draft::OPAQUE`] if the segments look like datagrams, or 0.
    opaque: u8,
    /// Codepoint, above the two bits of the ECN field.
    tos: u8,
}

impl Header {
    /// Creates headers from `local` to `remote`.
    pub fn new(macs: ([u8; 6], [u8; 6]), local: SocketAddrV4, remote: SocketAddrV4) -> Header {
        let end = |a: SocketAddrV4| (a.ip().to_bits(), a.port());
        let pair = Pair { from: end(local), to: end(remote) };
        let mut ends = [0; ENDS];
        ends[..6].copy_from_slice(&macs.1);
        ends[6..12].copy_from_slice(&macs.0);
        ends[12..20].copy_from_slice(&pair.key().to_le_bytes());
        ends[20..24].copy_from_slice(&pair.to.0.to_le_bytes());
        ends[24..].fill(0xff); // of no endpoint
        Header { ends, opaque: 0, tos: 0 }
    }

    /// Makes the segments look like datagrams, or not.
    pub fn set_opaque(&mut self, opaque: bool) {
        self.opaque = if opaque { draft::OPAQUE } else { 0 };
    }

    /// Sets the codepoint (DSCP).
    pub fn set_dscp(&mut self, dscp: u8) {
        self.tos = dscp << 2;
    }

    /// Sets the number of the sending endpoint on its host.
    pub fn set_number(&mut self, number: u32) {
        self.ends[24..28].copy_from_slice(&number.to_le_bytes());
    }

    /// Sets the number of the receiving endpoint on its host.
    #[inline]
    pub fn set_peer(&mut self, number: u32) {
        self.ends[28..].copy_from_slice(&number.to_le_bytes());
    }

    /// Returns the value for [`Frame::hint`].
    #[inline]
    fn hint(&self) -> u16 {
        let [.., a, b, c, d] = self.ends;
        u16::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or(Frame::NO_HINT)
    }

    /// Makes the frame of `segment`, which has no SYN options, as a draft in the pool. Returns `None` when
    /// the pool has no chunk left.
    #[inline(always)]
    pub fn emit(&self, frames: &mut Frames, segment: &Segment, now: Time) -> Option<Frame> {
        debug_assert_eq!(segment.syn, SynOptions::default());
        let mut frame = draft::make(frames, self, segment, now)?;
        frame.checksum = Checksum::Valid;
        Some(frame)
    }

    /// Makes the frame of any segment, with its headers written. Returns `None` when the pool has no chunk
    /// left.
    pub fn emit_written(&self, frames: &mut Frames, segment: &Segment, now: Time) -> Option<Frame> {
        let mut head = [0; MAX_HEAD];
        let len = self.write(&mut head, segment);
        let mut frame = frames.make_head(&head[..len], len + segment.payload as usize, now)?;
        frame.checksum = Checksum::Valid;
        Some(frame)
    }

    /// Writes the headers of a segment; returns their length. TTL 64, DF, identification 0 (RFC 6864 §4.1).
    fn write(&self, head: &mut [u8; MAX_HEAD], s: &Segment) -> usize {
        let e = &self.ends;
        let options = put_options(&mut head[L4 + TCP..], s);
        let total = (L4 + TCP + options - ETHERNET) as u32 + s.payload;
        let offset = ((TCP + options) as u16 / 4) << 12;
        head[..12].copy_from_slice(&e[..12]);
        head[12..16].copy_from_slice(&[8, 0, 0x45, self.tos | s.ecn]);
        head[16..18].copy_from_slice(&(total as u16).to_be_bytes());
        head[18..26].copy_from_slice(&[0, 0, 0x40, 0, 64, wire::TCP, 0, 0]);
        head[26..30].copy_from_slice(&[e[19], e[18], e[17], e[16]]);
        head[30..34].copy_from_slice(&[e[23], e[22], e[21], e[20]]);
        head[34..38].copy_from_slice(&[e[15], e[14], e[13], e[12]]);
        head[38..42].copy_from_slice(&s.seq.to_be_bytes());
        head[42..46].copy_from_slice(&s.ack.to_be_bytes());
        head[46..48].copy_from_slice(&(offset | s.flags.0).to_be_bytes());
        head[48..50].copy_from_slice(&s.window.to_be_bytes());
        if self.opaque != 0 {
            opaque::disguise(head);
        }
        let checksum = !checksum::sum(&head[ETHERNET..L4]);
        head[24..26].copy_from_slice(&checksum.to_be_bytes());
        L4 + TCP + options
    }
}

/// Writes the options of a segment; returns their length, a multiple of four.
fn put_options(out: &mut [u8], s: &Segment) -> usize {
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        out[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    if let Some(mss) = s.syn.mss {
        put(&[2, 4]);
        put(&mss.to_be_bytes());
    }
    if let Some(t) = s.timestamps {
        put(if s.syn.sack_permitted { &[4, 2, 8, 10] } else { &TIMESTAMPS });
        put(&t.value.to_be_bytes());
        put(&t.echo.to_be_bytes());
    } else if s.syn.sack_permitted {
        put(&[1, 1, 4, 2]);
    }
    if let Some(shift) = s.syn.window_scale {
        put(&[1, 3, 3, shift]);
    }
    match s.syn.fast_open {
        None => {}
        Some(FastOpen::Ask) => put(&[34, 2, 1, 1]),
        Some(FastOpen::Cookie(cookie)) => {
            put(&[34, 10]);
            put(&cookie);
            put(&[1, 1]);
        }
    }
    if !s.sack.is_empty() {
        put(&[1, 1, 5, 2 + 8 * s.sack.count]);
        for (left, right) in s.sack.as_slice() {
            put(&left.0.to_be_bytes());
            put(&right.0.to_be_bytes());
        }
    }
    at
}

/// Addresses and ports of a segment, IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pair {
    /// Source address and port.
    pub from: (u32, u16),
    /// Destination address and port.
    pub to: (u32, u16),
}

impl Pair {
    /// Returns the key by which a receiver with one address tells its endpoints apart: the sender's address
    /// and port, and the own port.
    pub fn key(&self) -> u64 {
        u64::from(self.from.0) << 32 | u64::from(self.from.1) << 16 | u64::from(self.to.1)
    }
}

/// Destination endpoint of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addressed {
    /// The [key](Pair::key) of the endpoint.
    pub key: u64,
    /// Number of the endpoint on its host, if the sender knows it.
    pub number: u32,
    /// Number of the sending endpoint, if it is known.
    pub sender: u32,
}

impl Addressed {
    /// Marks an unknown number.
    pub const UNKNOWN: u32 = u32::MAX;
}

/// Reads the segment in a frame and its destination, from the headers or before they were written. Returns
/// `None` if it is not TCP over IPv4.
#[inline(always)]
pub fn read(frames: &Frames, frame: &Frame) -> Option<(Addressed, Segment)> {
    match frames.draft(frame) {
        Some(draft) => draft::read(draft, frame.len()),
        None => read_headers(frames.bytes(frame), frame.len()),
    }
}

#[inline(never)]
fn read_headers(head: &[u8], len: usize) -> Option<(Addressed, Segment)> {
    let (pair, segment) = parse(head, len)?;
    let (number, sender) = (Addressed::UNKNOWN, Addressed::UNKNOWN);
    Some((Addressed { key: pair.key(), number, sender }, segment))
}

/// Parses the segment in a frame of `len` bytes of which `head` is present. Returns `None` if it is neither
/// TCP over IPv4 nor a segment of an [opaque](crate::tcp::TcpConfig::opaque) flow.
pub fn parse(head: &[u8], len: usize) -> Option<(Pair, Segment)> {
    match parse_common(head, len) {
        None if head.get(23) == Some(&wire::UDP) => parse_any(&opaque::reveal(head)?, len),
        None => parse_any(head, len),
        common => common,
    }
}

/// Parses the most frequent form: no IP options, no fragments, and timestamps as the only option. The general
/// parser handles all other forms.
#[inline]
fn parse_common(head: &[u8], len: usize) -> Option<(Pair, Segment)> {
    let head: &[u8; COMMON] = head.first_chunk()?;
    let be16 = |i: usize| u16::from_be_bytes([head[i], head[i + 1]]);
    let be32 = |i: usize| u32::from_be_bytes([head[i], head[i + 1], head[i + 2], head[i + 3]]);
    let plain = head[12..15] == [8, 0, 0x45]
        && be16(20) & 0x3fff == 0
        && head[23] == wire::TCP
        && head[L4 + 12] >> 4 == 8
        && head[L4 + TCP..L4 + TCP + 4] == TIMESTAMPS;
    let payload = usize::from(be16(16)).checked_sub(COMMON - ETHERNET)?;
    if !plain || COMMON + payload > len {
        return None;
    }
    let pair = Pair { from: (be32(26), be16(34)), to: (be32(30), be16(36)) };
    let segment = Segment {
        seq: be32(38),
        ack: be32(42),
        flags: Flags(be16(46) & 0xfff),
        window: be16(48),
        ecn: head[15] & 3,
        payload: payload as u32,
        timestamps: Some(Timestamps { value: be32(58), echo: be32(62) }),
        sack: SackBlocks::default(),
        syn: SynOptions::default(),
    };
    Some((pair, segment))
}

#[cold]
#[inline(never)]
fn parse_any(head: &[u8], len: usize) -> Option<(Pair, Segment)> {
    let packet = wire::packet(head, len).ok().filter(|p| p.version == 4)?;
    let tcp = wire::tcp(head, &packet).ok()?;
    let options = wire::tcp_options(head, &packet, &tcp).ok()?;
    let cookie = options.fast_open.then(|| wire::fast_open_cookie(head, &packet, &tcp)).flatten();
    let v4 = |a: &[u8; 16]| u32::from_be_bytes([a[12], a[13], a[14], a[15]]);
    let pair = Pair { from: (v4(&packet.src), tcp.src_port), to: (v4(&packet.dst), tcp.dst_port) };
    let segment = Segment {
        seq: tcp.seq.0,
        ack: tcp.ack.0,
        flags: tcp.flags,
        window: tcp.window,
        ecn: packet.ecn(),
        payload: tcp.payload_len,
        timestamps: options.timestamps,
        sack: options.sack,
        syn: SynOptions {
            mss: options.mss,
            window_scale: options.window_scale,
            sack_permitted: options.sack_permitted,
            fast_open: cookie.map(|cookie| cookie.try_into().map_or(FastOpen::Ask, FastOpen::Cookie)),
        },
    };
    Some((pair, segment))
}
