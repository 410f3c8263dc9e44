//! A frame as a TCP segment.

use std::ops::Range;
use weir_core::wire::{self, Flags, Packet, Tcp, TcpOptions};

/// Whose segments: addresses and ports, the source's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flow {
    /// Source and destination, IPv4 addresses mapped into IPv6.
    pub addresses: ([u8; 16], [u8; 16]),
    /// Source and destination.
    pub ports: (u16, u16),
}

/// A TCP segment that is not a fragment.
#[derive(Clone, Debug)]
pub struct Seg {
    /// Its IP packet.
    pub packet: Packet,
    /// Its fixed header.
    pub tcp: Tcp,
    /// Its options; `None` if they are malformed.
    pub options: Option<TcpOptions>,
    /// Where its payload is in the frame.
    pub payload: Range<usize>,
}

/// Is `a` after `b` in serial arithmetic (RFC 1982)?
pub(crate) fn after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}

impl Seg {
    /// The segment in a frame, if there is one.
    pub fn of(bytes: &[u8]) -> Option<Seg> {
        let packet = wire::packet(bytes, bytes.len()).ok()?;
        let tcp = wire::tcp(bytes, &packet).ok()?;
        let options = wire::tcp_options(bytes, &packet, &tcp).ok();
        let begin = packet.l4 as usize + usize::from(tcp.header_len);
        let payload = begin..begin + tcp.payload_len as usize;
        Some(Seg { packet, tcp, options, payload })
    }

    /// Whose it is.
    pub fn flow(&self) -> Flow {
        Flow { addresses: (self.packet.src, self.packet.dst), ports: (self.tcp.src_port, self.tcp.dst_port) }
    }

    /// Has it any of these flags?
    pub fn has(&self, flags: Flags) -> bool {
        self.tcp.flags.intersects(flags)
    }

    /// The sequence number after it.
    pub fn end(&self) -> u32 {
        let flags = u32::from(self.has(Flags::SYN)) + u32::from(self.has(Flags::FIN));
        self.tcp.seq.wrapping_add(self.tcp.payload_len).wrapping_add(flags)
    }

    /// An acknowledgement and nothing else.
    pub fn is_ack(&self) -> bool {
        let others = Flags::SYN | Flags::FIN | Flags::RST | Flags::URG;
        self.tcp.payload_len == 0 && self.has(Flags::ACK) && !self.has(others)
    }

    /// SACK blocks (RFC 2018).
    pub fn sack(&self) -> &[(u32, u32)] {
        self.options.as_ref().map_or(&[], |options| options.sack.as_slice())
    }

    /// TSval and TSecr (RFC 7323).
    pub fn stamps(&self) -> Option<(u32, u32)> {
        self.options.as_ref()?.timestamps.map(|t| (t.value, t.echo))
    }

    /// Are its options such that nobody but its sender may make the like: signed, of several paths, or unknown?
    pub fn is_foreign(&self) -> bool {
        self.options.is_none_or(|o| o.mptcp || o.ao || o.md5 || o.unknown.is_some())
            || self.packet.has_options()
    }

    /// Its right edge, with a window of this shift; that of a SYN is not scaled (RFC 7323 §2.2).
    pub fn edge(&self, shift: u8) -> u32 {
        let shift = if self.has(Flags::SYN) { 0 } else { shift };
        self.tcp.ack.wrapping_add(u32::from(self.tcp.window) << shift)
    }
}
