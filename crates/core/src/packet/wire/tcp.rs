//! The fixed part of the TCP header (RFC 9293 §3.1).

use core::fmt;
use core::ops::{BitAnd, BitOr, BitOrAssign};

use super::{array, Packet, Reject, Seq, TCP};

/// The 12 bits beside the data offset: 3 reserved bits, AE, and the eight flags from CWR to FIN.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u16);

impl Flags {
    /// No flag.
    pub const NONE: Flags = Flags(0);
    /// No more data from the sender.
    pub const FIN: Flags = Flags(0x001);
    /// Synchronise sequence numbers.
    pub const SYN: Flags = Flags(0x002);
    /// Reset the connection.
    pub const RST: Flags = Flags(0x004);
    /// Push.
    pub const PSH: Flags = Flags(0x008);
    /// The acknowledgement number is valid.
    pub const ACK: Flags = Flags(0x010);
    /// The urgent pointer is valid.
    pub const URG: Flags = Flags(0x020);
    /// ECN echo (RFC 3168 §6.1).
    pub const ECE: Flags = Flags(0x040);
    /// Congestion window reduced (RFC 3168 §6.1).
    pub const CWR: Flags = Flags(0x080);
    /// Accurate ECN (RFC 9768), once the nonce sum (RFC 3540).
    pub const AE: Flags = Flags(0x100);

    /// Returns whether all of `other`'s flags are set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
    /// Returns whether any of `other`'s flags is set.
    pub const fn intersects(self, other: Flags) -> bool {
        self.0 & other.0 != 0
    }
    /// These flags and `other`'s.
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
    /// These flags without `other`'s.
    #[must_use]
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }
    /// Returns whether no flag is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// Returns the three ECN bits (AE, CWR, ECE) as the number 0 to 7 of the Accurate ECN counter.
    pub const fn ace(self) -> u8 {
        (self.0 >> 6 & 7) as u8
    }
    /// Returns the ECN bits for the value `ace`, 0 to 7, of the Accurate ECN counter.
    pub const fn of_ace(ace: u8) -> Flags {
        Flags((ace as u16 & 7) << 6)
    }
}

impl BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        self.with(other)
    }
}

impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Flags) {
        *self = self.with(other);
    }
}

impl BitAnd for Flags {
    type Output = Flags;
    fn bitand(self, other: Flags) -> Flags {
        Flags(self.0 & other.0)
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 9] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "AE"];
        f.write_str("Flags(")?;
        let mut separator = "";
        for (_, name) in NAMES.iter().enumerate().filter(|(bit, _)| self.0 >> bit & 1 != 0) {
            write!(f, "{separator}{name}")?;
            separator = "|";
        }
        match self.0 >> 9 {
            0 => f.write_str(")"),
            rest => write!(f, "{separator}{:#x})", rest << 9),
        }
    }
}

/// The fixed part of a TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number of the first payload byte, or of the SYN.
    pub seq: Seq,
    /// Acknowledgement number. Valid only with [`Flags::ACK`].
    pub ack: Seq,
    /// Flags.
    pub flags: Flags,
    /// Window as on the wire, not scaled.
    pub window: u16,
    /// Urgent pointer. Valid only with [`Flags::URG`].
    pub urgent: u16,
    /// Bytes of the header with its options, 20 to 60.
    pub header_len: u8,
    /// Bytes of payload, whether present or not.
    pub payload_len: u32,
}

/// Parses the TCP header of a packet that [`packet`](super::packet()) found in the same bytes. The header has
/// to be present with its options. The payload need not be.
#[inline]
pub fn tcp(bytes: &[u8], packet: &Packet) -> Result<Tcp, Reject> {
    if packet.protocol != TCP {
        return Err(Reject::NotTcp);
    }
    let at = packet.l4 as usize;
    let room = packet.l4_len();
    if room < 20 {
        return Err(Reject::Malformed);
    }
    let h: [u8; 20] = array(bytes, at).ok_or(Reject::Truncated)?;
    let header_len = 4 * (h[12] >> 4);
    if header_len < 20 || header_len as u32 > room {
        return Err(Reject::Malformed);
    }
    if bytes.len() < at + header_len as usize {
        return Err(Reject::Truncated);
    }
    Ok(Tcp {
        src_port: u16::from_be_bytes([h[0], h[1]]),
        dst_port: u16::from_be_bytes([h[2], h[3]]),
        seq: Seq(u32::from_be_bytes([h[4], h[5], h[6], h[7]])),
        ack: Seq(u32::from_be_bytes([h[8], h[9], h[10], h[11]])),
        flags: Flags(u16::from_be_bytes([h[12] & 0xf, h[13]])),
        window: u16::from_be_bytes([h[14], h[15]]),
        urgent: u16::from_be_bytes([h[18], h[19]]),
        header_len,
        payload_len: room - header_len as u32,
    })
}
