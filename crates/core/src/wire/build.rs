//! Frames for tests and benchmarks, put together byte by byte and independently of the parser.
//!
//! ```
//! use weir_core::wire::{build::Segment, Flags};
//! let frame = Segment::v4([10, 0, 0, 1], [10, 0, 0, 2]).ports(5000, 80).seq(1).ack(7).ts(3, 4).payload(10).build();
//! assert_eq!(frame.len(), 14 + 20 + 20 + 12 + 10);
//! ```
//!
//! Builders panic when asked for what cannot be encoded (more than 40 bytes of options, a packet
//! longer than 65,535 bytes).

use core::net::{Ipv4Addr, Ipv6Addr};

use super::{Flags, TCP, UDP};

/// What is written to the transport checksum field.
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

/// Builds a TCP segment, or with [`Segment::udp`] a UDP datagram, in an Ethernet frame. By default a pure
/// ACK with a valid checksum from port 1000 to port 2000, TTL 64, window 65,535, no tag, no
/// Ethernet padding.
#[derive(Clone, Debug)]
pub struct Segment {
    macs: ([u8; 6], [u8; 6]),
    tags: Vec<(u16, u16)>,
    addresses: Addresses,
    protocol: u8,
    tos: u8,
    ttl: u8,
    flow_label: u32,
    ip_options: Vec<u8>,
    extensions: Vec<(u8, Vec<u8>)>,
    fragment: Option<(u16, bool)>,
    ports: (u16, u16),
    seq: u32,
    ack: u32,
    flags: Flags,
    window: u16,
    urgent: u16,
    options: Vec<u8>,
    payload: Vec<u8>,
    sum: Sum,
    min_len: usize,
}

impl Segment {
    /// From `src` to `dst` over IPv4.
    pub fn v4(src: impl Into<Ipv4Addr>, dst: impl Into<Ipv4Addr>) -> Segment {
        Segment::new(Addresses::V4(src.into().octets(), dst.into().octets()))
    }
    /// From `src` to `dst` over IPv6.
    pub fn v6(src: impl Into<Ipv6Addr>, dst: impl Into<Ipv6Addr>) -> Segment {
        Segment::new(Addresses::V6(src.into().octets(), dst.into().octets()))
    }

    fn new(addresses: Addresses) -> Segment {
        Segment {
            macs: ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]),
            tags: Vec::new(),
            addresses,
            protocol: TCP,
            tos: 0,
            ttl: 64,
            flow_label: 0,
            ip_options: Vec::new(),
            extensions: Vec::new(),
            fragment: None,
            ports: (1000, 2000),
            seq: 0,
            ack: 0,
            flags: Flags::ACK,
            window: 65_535,
            urgent: 0,
            options: Vec::new(),
            payload: Vec::new(),
            sum: Sum::Valid,
            min_len: 0,
        }
    }

    /// MAC addresses, source first.
    #[must_use]
    pub fn macs(mut self, src: [u8; 6], dst: [u8; 6]) -> Segment {
        self.macs = (src, dst);
        self
    }
    /// Adds an 802.1Q tag inside of those before.
    #[must_use]
    pub fn vlan(self, tci: u16) -> Segment {
        self.tag(0x8100, tci)
    }
    /// Adds a tag of any type inside of those before.
    #[must_use]
    pub fn tag(mut self, tpid: u16, tci: u16) -> Segment {
        self.tags.push((tpid, tci));
        self
    }
    /// Type of service or traffic class.
    #[must_use]
    pub fn tos(mut self, tos: u8) -> Segment {
        self.tos = tos;
        self
    }
    /// Time to live or hop limit.
    #[must_use]
    pub fn ttl(mut self, ttl: u8) -> Segment {
        self.ttl = ttl;
        self
    }
    /// IPv6 flow label, 20 bits.
    #[must_use]
    pub fn flow_label(mut self, label: u32) -> Segment {
        self.flow_label = label;
        self
    }
    /// IPv4 options, padded with zeros to a multiple of four.
    #[must_use]
    pub fn ip_options(mut self, options: &[u8]) -> Segment {
        self.ip_options = options.to_vec();
        self.ip_options.resize(options.len().next_multiple_of(4), 0);
        self
    }
    /// Adds an IPv6 extension header of type `kind` with `body` after its two first bytes, padded
    /// with zeros to a multiple of eight.
    #[must_use]
    pub fn extension(mut self, kind: u8, body: &[u8]) -> Segment {
        self.extensions.push((kind, body.to_vec()));
        self
    }
    /// Makes it a fragment at `offset` (in units of 8 bytes) with or without more to come. Over IPv6 a
    /// fragment header is added behind the extension headers.
    #[must_use]
    pub fn fragment(mut self, offset: u16, more: bool) -> Segment {
        self.fragment = Some((offset, more));
        self
    }
    /// IP protocol number; the transport part stays what it is.
    #[must_use]
    pub fn protocol(mut self, protocol: u8) -> Segment {
        self.protocol = protocol;
        self
    }
    /// A UDP datagram with these ports and payload instead of a TCP segment.
    #[must_use]
    pub fn udp(self) -> Segment {
        self.protocol(UDP)
    }
    /// Ports, source first.
    #[must_use]
    pub fn ports(mut self, src: u16, dst: u16) -> Segment {
        self.ports = (src, dst);
        self
    }
    /// Sequence number.
    #[must_use]
    pub fn seq(mut self, seq: u32) -> Segment {
        self.seq = seq;
        self
    }
    /// Acknowledgement number.
    #[must_use]
    pub fn ack(mut self, ack: u32) -> Segment {
        self.ack = ack;
        self
    }
    /// All flags; only ACK by default.
    #[must_use]
    pub fn flags(mut self, flags: Flags) -> Segment {
        self.flags = flags;
        self
    }
    /// Window as on the wire.
    #[must_use]
    pub fn window(mut self, window: u16) -> Segment {
        self.window = window;
        self
    }
    /// Urgent pointer; the flag is set apart.
    #[must_use]
    pub fn urgent(mut self, urgent: u16) -> Segment {
        self.urgent = urgent;
        self
    }
    /// Appends raw bytes to the options.
    #[must_use]
    pub fn raw_options(mut self, bytes: &[u8]) -> Segment {
        self.options.extend_from_slice(bytes);
        self
    }
    /// Appends an option of any kind with the length that `data` gives it.
    #[must_use]
    pub fn option(self, kind: u8, data: &[u8]) -> Segment {
        self.raw_options(&[kind, data.len() as u8 + 2]).raw_options(data)
    }
    /// Appends a maximum segment size.
    #[must_use]
    pub fn mss(self, mss: u16) -> Segment {
        self.option(2, &mss.to_be_bytes())
    }
    /// Appends a no-operation and a window scale.
    #[must_use]
    pub fn window_scale(self, shift: u8) -> Segment {
        self.raw_options(&[1]).option(3, &[shift])
    }
    /// Appends two no-operations and SACK-permitted.
    #[must_use]
    pub fn sack_permitted(self) -> Segment {
        self.raw_options(&[1, 1]).option(4, &[])
    }
    /// Appends two no-operations and timestamps.
    #[must_use]
    pub fn ts(self, value: u32, echo: u32) -> Segment {
        let both = (value as u64) << 32 | echo as u64;
        self.raw_options(&[1, 1]).option(8, &both.to_be_bytes())
    }
    /// Appends two no-operations and SACK blocks (left edge, right edge); for a duplicate SACK give
    /// the duplicate as the first.
    #[must_use]
    pub fn sack(self, blocks: &[(u32, u32)]) -> Segment {
        let edges: Vec<u8> =
            blocks.iter().flat_map(|&(l, r)| [l.to_be_bytes(), r.to_be_bytes()]).flatten().collect();
        self.raw_options(&[1, 1]).option(5, &edges)
    }
    /// Appends an MD5 signature (of zeros).
    #[must_use]
    pub fn md5(self) -> Segment {
        self.option(19, &[0; 16])
    }
    /// Appends a TCP-AO option with a 96-bit MAC (of zeros).
    #[must_use]
    pub fn ao(self) -> Segment {
        self.option(29, &[0; 14])
    }
    /// Appends an MPTCP data sequence signal with a 4-byte data ACK.
    #[must_use]
    pub fn mptcp(self) -> Segment {
        self.option(30, &[0x20, 0x01, 0, 0, 0, 1])
    }
    /// Appends a Fast Open cookie; empty asks for one.
    #[must_use]
    pub fn fast_open(self, cookie: &[u8]) -> Segment {
        self.option(34, cookie)
    }
    /// `len` bytes of payload: byte `i` is `i` modulo 251.
    #[must_use]
    pub fn payload(mut self, len: usize) -> Segment {
        self.payload = (0..len).map(|i| (i % 251) as u8).collect();
        self
    }
    /// These bytes of payload.
    #[must_use]
    pub fn data(mut self, payload: &[u8]) -> Segment {
        self.payload = payload.to_vec();
        self
    }
    /// What the transport checksum field holds.
    #[must_use]
    pub fn checksum(mut self, sum: Sum) -> Segment {
        self.sum = sum;
        self
    }
    /// Pads the frame with zeros to at least `len` bytes, as Ethernet does to 60.
    #[must_use]
    pub fn pad_to(mut self, len: usize) -> Segment {
        self.min_len = len;
        self
    }

    /// The frame.
    pub fn build(&self) -> Vec<u8> {
        let mut frame = self.unpadded();
        frame.resize(frame.len().max(self.min_len), 0);
        frame
    }

    /// The frame's headers without the payload, and its full length: what a simulated port delivers.
    pub fn build_head(&self) -> (Vec<u8>, usize) {
        let mut frame = self.unpadded();
        let len = frame.len().max(self.min_len);
        frame.truncate(frame.len() - self.payload.len());
        (frame, len)
    }

    fn unpadded(&self) -> Vec<u8> {
        let mut frame = ethernet(self.macs, &self.tags, self.ethertype());
        frame.extend(self.ip(&self.transport()));
        frame
    }

    fn ethertype(&self) -> u16 {
        match self.addresses {
            Addresses::V4(..) => 0x0800,
            Addresses::V6(..) => 0x86dd,
        }
    }

    fn transport(&self) -> Vec<u8> {
        let udp = self.protocol == UDP;
        let mut segment = if udp { self.udp_header() } else { self.tcp_header() };
        segment.extend(&self.payload);
        let at = if udp { 6 } else { 16 };
        let pseudo = self.pseudo_header(segment.len() as u32);
        let valid = match !naive_sum(&[&pseudo[..], &segment[..]].concat()) {
            0 if udp => 0xffff,
            sum => sum,
        };
        let sum = match self.sum {
            Sum::Valid => valid,
            Sum::Partial => naive_sum(&pseudo),
            Sum::Wrong => valid ^ 1,
            Sum::Raw(sum) => sum,
        };
        segment[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        segment
    }

    fn tcp_header(&self) -> Vec<u8> {
        let mut header = Vec::new();
        header.extend(self.ports.0.to_be_bytes());
        header.extend(self.ports.1.to_be_bytes());
        header.extend(self.seq.to_be_bytes());
        header.extend(self.ack.to_be_bytes());
        let options = self.options.len().next_multiple_of(4);
        assert!(options <= 40, "{options} bytes of TCP options");
        header.extend(((5 + options as u16 / 4) << 12 | self.flags.0).to_be_bytes());
        header.extend(self.window.to_be_bytes());
        header.extend([0, 0]);
        header.extend(self.urgent.to_be_bytes());
        header.extend(&self.options);
        header.resize(20 + options, 0);
        header
    }

    fn udp_header(&self) -> Vec<u8> {
        let len = 8 + self.payload.len() as u16;
        [self.ports.0, self.ports.1, len, 0].iter().flat_map(|f| f.to_be_bytes()).collect()
    }

    fn pseudo_header(&self, len: u32) -> Vec<u8> {
        let mut pseudo = match self.addresses {
            Addresses::V4(src, dst) => [src, dst].concat(),
            Addresses::V6(src, dst) => [src, dst].concat(),
        };
        pseudo.extend((self.protocol as u32).to_be_bytes());
        pseudo.extend(len.to_be_bytes());
        pseudo
    }

    fn ip(&self, transport: &[u8]) -> Vec<u8> {
        match self.addresses {
            Addresses::V4(src, dst) => self.ipv4(src, dst, transport),
            Addresses::V6(src, dst) => self.ipv6(src, dst, transport),
        }
    }

    fn ipv4(&self, src: [u8; 4], dst: [u8; 4], transport: &[u8]) -> Vec<u8> {
        let header_len = 20 + self.ip_options.len();
        let total = u16::try_from(header_len + transport.len()).expect("a packet of at most 65,535 bytes");
        let mut packet = vec![0x40 | (header_len / 4) as u8, self.tos];
        packet.extend(total.to_be_bytes());
        let fragment = match self.fragment {
            None => 0x4000,
            Some((offset, more)) => (more as u16) << 13 | offset,
        };
        packet.extend([0, 0]);
        packet.extend(fragment.to_be_bytes());
        packet.extend([self.ttl, self.protocol, 0, 0]);
        packet.extend([src, dst].concat());
        packet.extend(&self.ip_options);
        let sum = !naive_sum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend(transport);
        packet
    }

    fn ipv6(&self, src: [u8; 16], dst: [u8; 16], transport: &[u8]) -> Vec<u8> {
        let mut extensions = self.extensions.clone();
        if let Some((offset, more)) = self.fragment {
            let field = (offset << 3 | more as u16).to_be_bytes();
            extensions.push((44, vec![field[0], field[1], 0, 0, 0, 7]));
        }
        let mut payload = Vec::new();
        for (i, (_, body)) in extensions.iter().enumerate() {
            let len = (2 + body.len()).next_multiple_of(8);
            let next = extensions.get(i + 1).map_or(self.protocol, |e| e.0);
            let end = payload.len() + len;
            payload.extend([next, (len / 8 - 1) as u8]);
            payload.extend(body);
            payload.resize(end, 0);
        }
        payload.extend(transport);
        let payload_len = u16::try_from(payload.len()).expect("a payload of at most 65,535 bytes");
        let mut packet = Vec::new();
        packet.extend((6 << 28 | (self.tos as u32) << 20 | self.flow_label).to_be_bytes());
        packet.extend(payload_len.to_be_bytes());
        packet.extend([extensions.first().map_or(self.protocol, |e| e.0), self.ttl]);
        packet.extend([src, dst].concat());
        packet.extend(payload);
        packet
    }
}

/// An ARP request from `sender` for the MAC address of `target`.
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

fn ethernet(macs: ([u8; 6], [u8; 6]), tags: &[(u16, u16)], ethertype: u16) -> Vec<u8> {
    let mut header = [macs.1, macs.0].concat();
    for (tpid, tci) in tags {
        header.extend(tpid.to_be_bytes());
        header.extend(tci.to_be_bytes());
    }
    header.extend(ethertype.to_be_bytes());
    header
}

/// RFC 1071, word by word: what the fast sum is tested against.
fn naive_sum(data: &[u8]) -> u16 {
    let mut sum = 0u32;
    for word in data.chunks(2) {
        sum += (word[0] as u32) << 8 | *word.get(1).unwrap_or(&0) as u32;
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
