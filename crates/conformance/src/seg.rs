//! A frame as a TCP segment.

use std::ops::Range;
use weir_core::wire::{self, Flags, Packet, Tcp, TcpOptions};

/// Addresses and ports of a flow, the source's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flow {
    /// Source and destination address, IPv4 ones mapped into IPv6.
    pub addresses: ([u8; 16], [u8; 16]),
    /// Source and destination port.
    pub ports: (u16, u16),
}

/// A TCP segment that is not a fragment.
#[derive(Clone, Debug)]
pub struct Seg {
    /// IP packet of the segment.
    pub packet: Packet,
    /// PPPoE session that it is in, or 0.
    pub session: u16,
    /// Fixed header.
    pub tcp: Tcp,
    /// Options; `None` if they are malformed.
    pub options: Option<TcpOptions>,
    /// Place of the payload in the frame.
    pub payload: Range<usize>,
}

/// Returns whether `a` is after `b` in serial arithmetic (RFC 1982).
pub(crate) fn after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}

impl Seg {
    /// Parses the segment in a frame, if there is one.
    pub fn of(bytes: &[u8]) -> Option<Seg> {
        let packet = wire::packet(bytes, bytes.len()).ok()?;
        let tcp = wire::tcp(bytes, &packet).ok()?;
        let options = wire::tcp_options(bytes, &packet, &tcp).ok();
        let begin = packet.l4 as usize + usize::from(tcp.header_len);
        let payload = begin..begin + tcp.payload_len as usize;
        Some(Seg { packet, session: packet.session(bytes), tcp, options, payload })
    }

    /// Flow of the segment.
    pub fn flow(&self) -> Flow {
        Flow { addresses: (self.packet.src, self.packet.dst), ports: (self.tcp.src_port, self.tcp.dst_port) }
    }

    /// Returns whether it has any of these flags.
    pub fn has(&self, flags: Flags) -> bool {
        self.tcp.flags.intersects(flags)
    }

    /// Sequence number after the segment.
    pub fn end(&self) -> u32 {
        let flags = u32::from(self.has(Flags::SYN)) + u32::from(self.has(Flags::FIN));
        self.tcp.seq.0.wrapping_add(self.tcp.payload_len).wrapping_add(flags)
    }

    /// Returns whether it is a plain acknowledgement.
    pub fn is_ack(&self) -> bool {
        let others = Flags::SYN | Flags::FIN | Flags::RST | Flags::URG;
        self.tcp.payload_len == 0 && self.has(Flags::ACK) && !self.has(others)
    }

    /// SACK blocks (RFC 2018).
    pub fn sack(&self) -> Vec<(u32, u32)> {
        let blocks = self.options.iter().flat_map(|options| options.sack.as_slice());
        blocks.map(|(left, right)| (left.0, right.0)).collect()
    }

    /// TSval and TSecr (RFC 7323).
    pub fn stamps(&self) -> Option<(u32, u32)> {
        self.options.as_ref()?.timestamps.map(|t| (t.value, t.echo))
    }

    /// Returns whether only its sender may make such options: signed ones, those of several paths, or unknown
    /// ones.
    pub fn is_foreign(&self) -> bool {
        self.options.is_none_or(|o| o.mptcp || o.ao || o.md5 || o.unknown.is_some())
            || self.packet.has_options()
    }

    /// Right edge with a window of this shift; that of a SYN is not scaled (RFC 7323 §2.2).
    pub fn edge(&self, shift: u8) -> u32 {
        let shift = if self.has(Flags::SYN) { 0 } else { shift };
        self.tcp.ack.0.wrapping_add(u32::from(self.tcp.window) << shift)
    }
}
