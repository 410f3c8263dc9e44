//! Headers to bytes and back.
//!
//! What a host sends is Ethernet, IPv4 and TCP as on the wire, options laid out as Linux does; the payload is only
//! a length. Transport checksums are not computed: frames are marked as valid, and whoever changes a header on the way
//! updates the field incrementally, which is right for any content.

use std::net::SocketAddrV4;
use weir_core::frame::{Checksum, Frame, Frames};
use weir_core::time::Time;
use weir_core::wire::{self, Flags, SackBlocks, Timestamps};

const ETHERNET: usize = 14;
/// Bytes of Ethernet and IPv4 headers.
const L4: usize = ETHERNET + 20;
/// Bytes of the fixed TCP header.
const TCP: usize = 20;
/// Longest frame head: 40 bytes of options.
const MAX_HEAD: usize = L4 + TCP + 40;
/// Two no-operations and the timestamps option: the first bytes of almost every option list.
const TIMESTAMPS: [u8; 4] = [1, 1, 8, 10];
/// Bytes of that with the values.
pub const TIMESTAMPS_LEN: u16 = 12;

/// Bytes of headers whose only option are timestamps.
const COMMON: usize = L4 + TCP + TIMESTAMPS_LEN as usize;

/// ECN field of a packet (RFC 3168 §5).
pub const ECT0: u8 = 2;
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
}

impl Segment {
    /// Are all of these flags set?
    pub const fn has(&self, flags: Flags) -> bool {
        self.flags.contains(flags)
    }

    /// Has it no options but timestamps?
    fn has_only_timestamps(&self) -> bool {
        self.sack.is_empty() && self.syn == SynOptions::default()
    }
}

/// The headers of one end of a connection, all but what changes from segment to segment.
#[derive(Clone, Debug)]
pub struct Header {
    bytes: [u8; L4 + 4],
    /// Sum of the IP header's words without total length and type of service, not folded.
    sum: u32,
}

impl Header {
    /// Headers from `local` to `remote`. TTL 64, DF, identification 0 (RFC 6864 §4.1).
    pub fn new(macs: ([u8; 6], [u8; 6]), local: SocketAddrV4, remote: SocketAddrV4) -> Header {
        let mut bytes = [0; L4 + 4];
        bytes[..6].copy_from_slice(&macs.1);
        bytes[6..12].copy_from_slice(&macs.0);
        bytes[12..14].copy_from_slice(&[8, 0]);
        bytes[14] = 0x45;
        bytes[20] = 0x40;
        bytes[22..24].copy_from_slice(&[64, wire::TCP]);
        bytes[26..30].copy_from_slice(&local.ip().octets());
        bytes[30..34].copy_from_slice(&remote.ip().octets());
        bytes[34..36].copy_from_slice(&local.port().to_be_bytes());
        bytes[36..38].copy_from_slice(&remote.port().to_be_bytes());
        let word = |i: usize| u32::from(u16::from_be_bytes([bytes[i], bytes[i + 1]]));
        let sum = (14..L4).step_by(2).map(word).sum();
        Header { bytes, sum }
    }

    /// The frame of `segment`, made in the pool; `None` when the pool has no chunk left.
    #[inline]
    pub fn emit(&self, frames: &mut Frames, segment: &Segment, now: Time) -> Option<Frame> {
        let mut frame = match segment.timestamps.filter(|_| segment.has_only_timestamps()) {
            Some(timestamps) => self.emit_common(frames, segment, timestamps, now)?,
            None => self.emit_any(frames, segment, now)?,
        };
        frame.checksum = Checksum::Valid;
        Some(frame)
    }

    /// As almost all segments of a connection are: timestamps are the only option.
    #[inline]
    fn emit_common(&self, frames: &mut Frames, s: &Segment, t: Timestamps, now: Time) -> Option<Frame> {
        let (frame, bytes) = frames.make_headers(COMMON, COMMON + s.payload as usize, now)?;
        let bytes: &mut [u8; COMMON] = bytes.first_chunk_mut()?;
        bytes[L4 + TCP..L4 + TCP + 4].copy_from_slice(&TIMESTAMPS);
        bytes[L4 + TCP + 4..L4 + TCP + 8].copy_from_slice(&t.value.to_be_bytes());
        bytes[L4 + TCP + 8..].copy_from_slice(&t.echo.to_be_bytes());
        self.fill(bytes.first_chunk_mut()?, s, usize::from(TIMESTAMPS_LEN));
        Some(frame)
    }

    #[cold]
    #[inline(never)]
    fn emit_any(&self, frames: &mut Frames, segment: &Segment, now: Time) -> Option<Frame> {
        let mut head = [0; MAX_HEAD];
        let options = put_options(&mut head[L4 + TCP..], segment);
        self.fill(head.first_chunk_mut()?, segment, options);
        let len = L4 + TCP + options;
        frames.make_head(&head[..len], len + segment.payload as usize, now)
    }

    /// Writes all but the options, which have so many bytes.
    fn fill(&self, head: &mut [u8; L4 + TCP], s: &Segment, options: usize) {
        let total = (L4 + TCP + options - ETHERNET) as u32 + s.payload;
        let checksum = ip_checksum(self.sum + u32::from(s.ecn) + (total & 0xffff));
        let offset = ((TCP + options) as u16 / 4) << 12;
        head[..L4 + 4].copy_from_slice(&self.bytes);
        head[15] = s.ecn;
        head[16..18].copy_from_slice(&(total as u16).to_be_bytes());
        head[24..26].copy_from_slice(&checksum.to_be_bytes());
        head[38..42].copy_from_slice(&s.seq.to_be_bytes());
        head[42..46].copy_from_slice(&s.ack.to_be_bytes());
        head[46..48].copy_from_slice(&(offset | s.flags.0).to_be_bytes());
        head[48..50].copy_from_slice(&s.window.to_be_bytes());
        head[50..].fill(0);
    }
}

fn ip_checksum(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
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
    if !s.sack.is_empty() {
        put(&[1, 1, 5, 2 + 8 * s.sack.count]);
        for (left, right) in s.sack.as_slice() {
            put(&left.to_be_bytes());
            put(&right.to_be_bytes());
        }
    }
    at
}

/// Who sent a segment to whom: IPv4 addresses and ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pair {
    /// Source address and port.
    pub from: (u32, u16),
    /// Destination address and port.
    pub to: (u32, u16),
}

/// The segment in a frame of `len` bytes of which `head` is present; `None` if it is no TCP over IPv4.
#[inline]
pub fn parse(head: &[u8], len: usize) -> Option<(Pair, Segment)> {
    match parse_common(head, len) {
        None => parse_any(head, len),
        common => common,
    }
}

/// Without IP options and fragments, and with timestamps as the only option, as hosts send most: all else is for the
/// general parser.
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
    let v4 = |a: &[u8; 16]| u32::from_be_bytes([a[12], a[13], a[14], a[15]]);
    let pair = Pair { from: (v4(&packet.src), tcp.src_port), to: (v4(&packet.dst), tcp.dst_port) };
    let segment = Segment {
        seq: tcp.seq,
        ack: tcp.ack,
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
        },
    };
    Some((pair, segment))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> Header {
        let at = |s: &str| s.parse().unwrap();
        Header::new(([2; 6], [4; 6]), at("10.0.0.1:10000"), at("10.0.0.2:5001"))
    }

    fn segments() -> impl Strategy<Value = Segment> {
        let timestamps = prop::option::of((any::<u32>(), any::<u32>()));
        let sack = prop::collection::vec(any::<(u32, u32)>(), 0..=3);
        let syn = (prop::option::of(any::<u16>()), prop::option::of(0u8..=14), any::<bool>());
        let fixed = (any::<u32>(), any::<u32>(), 0u16..0x200, any::<u16>(), 0u8..4, 0u32..60_000);
        (fixed, timestamps, sack, syn, any::<bool>()).prop_map(|(f, t, sack, syn, opens)| {
            let mut blocks = SackBlocks::default();
            if !opens {
                blocks.count = sack.len() as u8;
                blocks.blocks[..sack.len()].copy_from_slice(&sack);
            }
            Segment {
                seq: f.0,
                ack: f.1,
                flags: Flags(f.2),
                window: f.3,
                ecn: f.4,
                payload: f.5,
                timestamps: t.map(|(value, echo)| Timestamps { value, echo }),
                sack: blocks,
                syn: if opens {
                    SynOptions { mss: syn.0, window_scale: syn.1, sack_permitted: syn.2 }
                } else {
                    SynOptions::default()
                },
            }
        })
    }

    proptest! {
        /// Both readings of what is written, the short one and the project's general parser, give it back.
        #[test]
        fn what_is_written_is_read(s in segments()) {
            let mut frames = Frames::new(1, 128, 0);
            let frame = header().emit(&mut frames, &s, Time::ZERO).unwrap();
            let (bytes, len) = (frames.bytes(&frame).to_vec(), frame.len());
            let want = Some((Pair { from: (0x0a00_0001, 10_000), to: (0x0a00_0002, 5001) }, s));
            prop_assert_eq!(parse(&bytes, len), want);
            prop_assert_eq!(parse_any(&bytes, len), want);
            frames.absorb(frame);
        }

        #[test]
        fn garbage_is_refused_or_read_but_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..100), len in 0usize..2000) {
            parse(&bytes, len);
        }

        #[test]
        fn damaged_headers_too(s in segments(), at in 12usize..94, to in any::<u8>(), len in 0usize..2000) {
            let mut frames = Frames::new(1, 128, 0);
            let frame = header().emit(&mut frames, &s, Time::ZERO).unwrap();
            let mut bytes = frames.bytes(&frame).to_vec();
            if let Some(b) = bytes.get_mut(at) {
                *b = to;
            }
            parse(&bytes, len);
            frames.absorb(frame);
        }
    }
}
