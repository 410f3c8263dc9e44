//! Frames for tests and benchmarks, put together byte by byte and independently of the parser.
//!
//! ```
//! use weir_core::wire::{build::SegmentBuilder, Flags};
//! let segment = SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).ports(5000, 80);
//! let frame = segment.seq(1).ack(7).ts(3, 4).payload(10).build();
//! assert_eq!(frame.len(), 14 + 20 + 20 + 12 + 10);
//! ```
//!
//! Builders panic if the frame cannot be encoded (more than 40 bytes of options, a packet
//! longer than 65,535 bytes).

mod bytes;

use bytes::ethernet;
use core::net::{Ipv4Addr, Ipv6Addr};

use super::{Flags, Seq, TCP, UDP};

/// Content of the transport checksum field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sum {
    /// The right checksum.
    Valid,
    /// The sum of the pseudo-header, as Linux leaves it for a device to complete.
    Partial,
    /// The right checksum with its lowest bit flipped.
    Wrong,
    /// These 16 bits.
    Raw(u16),
}

#[derive(Clone, Copy, Debug)]
enum Addresses {
    V4([u8; 4], [u8; 4]),
    V6([u8; 16], [u8; 16]),
}

/// Builds a TCP segment, or with [`SegmentBuilder::udp`] a UDP datagram, in an Ethernet frame. By default a
/// pure ACK with a valid checksum from port 1000 to port 2000, TTL 64, window 65,535, no tag, no Ethernet
/// padding.
#[derive(Clone, Debug)]
pub struct SegmentBuilder {
    macs: ([u8; 6], [u8; 6]),
    tags: Vec<(u16, u16)>,
    session: Option<u16>,
    addresses: Addresses,
    protocol: u8,
    tos: u8,
    ttl: u8,
    flow_label: u32,
    ip_options: Vec<u8>,
    extensions: Vec<(u8, Vec<u8>)>,
    fragment: Option<(u16, bool)>,
    ports: (u16, u16),
    seq: Seq,
    ack: Seq,
    flags: Flags,
    window: u16,
    urgent: u16,
    options: Vec<u8>,
    payload: Vec<u8>,
    absent: usize,
    sum: Sum,
    min_len: usize,
}

impl SegmentBuilder {
    /// From `src` to `dst` over IPv4.
    pub fn v4(src: impl Into<Ipv4Addr>, dst: impl Into<Ipv4Addr>) -> SegmentBuilder {
        SegmentBuilder::new(Addresses::V4(src.into().octets(), dst.into().octets()))
    }
    /// From `src` to `dst` over IPv6.
    pub fn v6(src: impl Into<Ipv6Addr>, dst: impl Into<Ipv6Addr>) -> SegmentBuilder {
        SegmentBuilder::new(Addresses::V6(src.into().octets(), dst.into().octets()))
    }

    fn new(addresses: Addresses) -> SegmentBuilder {
        SegmentBuilder {
            macs: ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]),
            tags: Vec::new(),
            session: None,
            addresses,
            protocol: TCP,
            tos: 0,
            ttl: 64,
            flow_label: 0,
            ip_options: Vec::new(),
            extensions: Vec::new(),
            fragment: None,
            ports: (1000, 2000),
            seq: Seq(0),
            ack: Seq(0),
            flags: Flags::ACK,
            window: 65_535,
            urgent: 0,
            options: Vec::new(),
            payload: Vec::new(),
            absent: 0,
            sum: Sum::Valid,
            min_len: 0,
        }
    }

    /// MAC addresses, source first.
    #[must_use]
    pub fn macs(mut self, src: [u8; 6], dst: [u8; 6]) -> SegmentBuilder {
        self.macs = (src, dst);
        self
    }
    /// Adds an 802.1Q tag inside of those before.
    #[must_use]
    pub fn vlan(self, tci: u16) -> SegmentBuilder {
        self.tag(0x8100, tci)
    }
    /// Adds a tag of any type inside of those before.
    #[must_use]
    pub fn tag(mut self, tpid: u16, tci: u16) -> SegmentBuilder {
        self.tags.push((tpid, tci));
        self
    }
    /// Puts the packet into a session of PPPoE, inside of the tags.
    #[must_use]
    pub fn pppoe(mut self, session: u16) -> SegmentBuilder {
        self.session = Some(session);
        self
    }
    /// Type of service or traffic class.
    #[must_use]
    pub fn tos(mut self, tos: u8) -> SegmentBuilder {
        self.tos = tos;
        self
    }
    /// Time to live or hop limit.
    #[must_use]
    pub fn ttl(mut self, ttl: u8) -> SegmentBuilder {
        self.ttl = ttl;
        self
    }
    /// IPv6 flow label, 20 bits.
    #[must_use]
    pub fn flow_label(mut self, label: u32) -> SegmentBuilder {
        self.flow_label = label;
        self
    }
    /// IPv4 options, padded with zeros to a multiple of four.
    #[must_use]
    pub fn ip_options(mut self, options: &[u8]) -> SegmentBuilder {
        self.ip_options = options.to_vec();
        self.ip_options.resize(options.len().next_multiple_of(4), 0);
        self
    }
    /// Adds an IPv6 extension header of type `kind` with `body` after its two first bytes, padded
    /// with zeros to a multiple of eight.
    #[must_use]
    pub fn extension(mut self, kind: u8, body: &[u8]) -> SegmentBuilder {
        self.extensions.push((kind, body.to_vec()));
        self
    }
    /// Makes it a fragment at `offset` (in units of 8 bytes) with or without more to come. Over IPv6 a
    /// fragment header is added behind the extension headers.
    #[must_use]
    pub fn fragment(mut self, offset: u16, more: bool) -> SegmentBuilder {
        self.fragment = Some((offset, more));
        self
    }
    /// IP protocol number. The transport part does not change.
    #[must_use]
    pub fn protocol(mut self, protocol: u8) -> SegmentBuilder {
        self.protocol = protocol;
        self
    }
    /// A UDP datagram with these ports and payload instead of a TCP segment.
    #[must_use]
    pub fn udp(self) -> SegmentBuilder {
        self.protocol(UDP)
    }
    /// Ports, source first.
    #[must_use]
    pub fn ports(mut self, src: u16, dst: u16) -> SegmentBuilder {
        self.ports = (src, dst);
        self
    }
    /// Sequence number.
    #[must_use]
    pub fn seq(mut self, seq: impl Into<Seq>) -> SegmentBuilder {
        self.seq = seq.into();
        self
    }
    /// Acknowledgement number.
    #[must_use]
    pub fn ack(mut self, ack: impl Into<Seq>) -> SegmentBuilder {
        self.ack = ack.into();
        self
    }
    /// All flags. Only ACK by default.
    #[must_use]
    pub fn flags(mut self, flags: Flags) -> SegmentBuilder {
        self.flags = flags;
        self
    }
    /// Window as on the wire.
    #[must_use]
    pub fn window(mut self, window: u16) -> SegmentBuilder {
        self.window = window;
        self
    }
    /// Urgent pointer. The flag is set separately.
    #[must_use]
    pub fn urgent(mut self, urgent: u16) -> SegmentBuilder {
        self.urgent = urgent;
        self
    }
    /// Appends raw bytes to the options.
    #[must_use]
    pub fn raw_options(mut self, bytes: &[u8]) -> SegmentBuilder {
        self.options.extend_from_slice(bytes);
        self
    }
    /// Appends an option of any kind with the length that `data` gives it.
    #[must_use]
    pub fn option(self, kind: u8, data: &[u8]) -> SegmentBuilder {
        self.raw_options(&[kind, data.len() as u8 + 2]).raw_options(data)
    }
    /// Appends a maximum segment size.
    #[must_use]
    pub fn mss(self, mss: u16) -> SegmentBuilder {
        self.option(2, &mss.to_be_bytes())
    }
    /// Appends a no-operation and a window scale.
    #[must_use]
    pub fn window_scale(self, shift: u8) -> SegmentBuilder {
        self.raw_options(&[1]).option(3, &[shift])
    }
    /// Appends two no-operations and SACK-permitted.
    #[must_use]
    pub fn sack_permitted(self) -> SegmentBuilder {
        self.raw_options(&[1, 1]).option(4, &[])
    }
    /// Appends two no-operations and timestamps.
    #[must_use]
    pub fn ts(self, value: u32, echo: u32) -> SegmentBuilder {
        let both = (value as u64) << 32 | echo as u64;
        self.raw_options(&[1, 1]).option(8, &both.to_be_bytes())
    }
    /// Appends two no-operations and SACK blocks (left edge, right edge). For a duplicate SACK, give the
    /// duplicate as the first.
    #[must_use]
    pub fn sack<N: Into<Seq> + Copy>(self, blocks: &[(N, N)]) -> SegmentBuilder {
        let edges = blocks.iter().flat_map(|&(left, right)| [left.into(), right.into()]);
        let edges: Vec<u8> = edges.flat_map(|edge: Seq| edge.0.to_be_bytes()).collect();
        self.raw_options(&[1, 1]).option(5, &edges)
    }
    /// Appends an MD5 signature (of zeros).
    #[must_use]
    pub fn md5(self) -> SegmentBuilder {
        self.option(19, &[0; 16])
    }
    /// Appends a TCP-AO option with a 96-bit MAC (of zeros).
    #[must_use]
    pub fn ao(self) -> SegmentBuilder {
        self.option(29, &[0; 14])
    }
    /// Appends an MPTCP data sequence signal with a 4-byte data ACK.
    #[must_use]
    pub fn mptcp(self) -> SegmentBuilder {
        self.option(30, &[0x20, 0x01, 0, 0, 0, 1])
    }
    /// Appends a Fast Open cookie. An empty one is a request.
    #[must_use]
    pub fn fast_open(self, cookie: &[u8]) -> SegmentBuilder {
        self.option(34, cookie)
    }
    /// `len` bytes of payload: byte `i` is `i` modulo 251.
    #[must_use]
    pub fn payload(mut self, len: usize) -> SegmentBuilder {
        self.payload = (0..len).map(|i| (i % 251) as u8).collect();
        self
    }
    /// These bytes of payload.
    #[must_use]
    pub fn data(mut self, payload: &[u8]) -> SegmentBuilder {
        self.payload = payload.to_vec();
        self
    }
    /// Adds `len` absent bytes of payload behind the given ones. Only
    /// [`build_head`](SegmentBuilder::build_head) counts them.
    #[must_use]
    pub fn absent_payload(mut self, len: usize) -> SegmentBuilder {
        self.absent = len;
        self
    }
    /// Content of the transport checksum field.
    #[must_use]
    pub fn checksum(mut self, sum: Sum) -> SegmentBuilder {
        self.sum = sum;
        self
    }
    /// Pads the frame with zeros to at least `len` bytes, as Ethernet does to 60.
    #[must_use]
    pub fn pad_to(mut self, len: usize) -> SegmentBuilder {
        self.min_len = len;
        self
    }

    /// Returns the frame.
    pub fn build(&self) -> Vec<u8> {
        let mut frame = self.unpadded();
        frame.resize(frame.len().max(self.min_len), 0);
        frame
    }

    /// Returns the frame's headers without the payload, and its full length, as a simulated port delivers
    /// them.
    pub fn build_head(&self) -> (Vec<u8>, usize) {
        let mut frame = self.unpadded();
        let len = (frame.len() + self.absent).max(self.min_len);
        frame.truncate(frame.len() - self.payload.len());
        (frame, len)
    }
}

/// Ways to make an untagged frame with an IP packet one that cannot be read as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disguise {
    /// The version is none.
    Version,
    /// The header is too short, or the packet too long for its frame.
    Length,
    /// The TCP header has a length of 0.
    TcpLength,
    /// A PPPoE session whose header leaves the packet 39 bytes.
    Pppoe,
    /// MPLS with two labels.
    Mpls,
    /// Three VLAN tags.
    Tags,
    /// An EtherType for experiments (IEEE 802).
    EtherType,
    /// Such an EtherType, and four bytes in front of the packet.
    Behind,
}

impl Disguise {
    /// All of them.
    pub const ALL: [Disguise; 8] = [
        Disguise::Version,
        Disguise::Length,
        Disguise::TcpLength,
        Disguise::Pppoe,
        Disguise::Mpls,
        Disguise::Tags,
        Disguise::EtherType,
        Disguise::Behind,
    ];

    /// Returns whether the addresses can still be found.
    pub const fn shows_addresses(self) -> bool {
        !matches!(self, Disguise::Version | Disguise::Behind)
    }

    /// Disguises a frame.
    pub fn put_on(self, mut frame: Vec<u8>) -> Vec<u8> {
        let six = frame[12..14] == [0x86, 0xdd];
        match self {
            Disguise::Version => frame[14] = 0x30 | frame[14] & 0x0f,
            Disguise::Length if six => frame[18] = 0xff,
            Disguise::Length => frame[14] = 0x43,
            Disguise::TcpLength => frame[if six { 66 } else { 46 }] &= 0x0f,
            Disguise::Pppoe => {
                frame[12..14].copy_from_slice(&[0x88, 0x64]);
                let next = if six { 0x57 } else { 0x21 };
                frame.splice(14..14, [0x11, 0, 0, 1, 0, 41, 0, next]);
            }
            Disguise::Mpls => {
                frame[12..14].copy_from_slice(&[0x88, 0x47]);
                frame.splice(14..14, [0, 1, 0, 64, 0, 2, 1, 64]);
            }
            Disguise::Tags => {
                frame.splice(12..12, [0x88, 0xa8, 0, 0, 0x81, 0, 0, 0, 0x81, 0, 0, 0]);
            }
            Disguise::EtherType => frame[12..14].copy_from_slice(&[0x88, 0xb5]),
            Disguise::Behind => {
                frame[12..14].copy_from_slice(&[0x88, 0xb5]);
                frame.splice(14..14, [0; 4]);
            }
        }
        frame
    }
}

/// Returns an ARP request from `sender` for the MAC address of `target`.
pub fn arp(sender: impl Into<Ipv4Addr>, target: impl Into<Ipv4Addr>) -> Vec<u8> {
    let mac = [2, 0, 0, 0, 0, 1];
    let mut frame = ethernet((mac, [0xff; 6]), &[], 0x0806);
    frame.extend([0, 1, 8, 0, 6, 4, 0, 1]);
    frame.extend(mac);
    frame.extend(sender.into().octets());
    frame.extend([0; 6]);
    frame.extend(target.into().octets());
    frame.resize(60, 0);
    frame
}
