//! The two ends of a connection, as the segments that they send.

use crate::wire::build::SegmentBuilder;
use crate::wire::Flags;
use std::net::{Ipv4Addr, Ipv6Addr};

const SYN_ACK: Flags = Flags(Flags::SYN.0 | Flags::ACK.0);

/// A connection whose data goes one way, from its sender to its receiver. Bytes of data are counted from 0.
#[derive(Clone, Debug)]
pub struct Ends {
    /// Number of the connection, which is part of its addresses.
    pub number: u8,
    /// Over IPv6.
    pub v6: bool,
    /// VLAN tags: none, one (802.1Q), or two (802.1ad outside).
    pub tags: usize,
    /// PPPoE session, or 0 for none.
    pub session: u16,
    /// Ports, the sender's first.
    pub ports: (u16, u16),
    /// Initial sequence numbers, the sender's first.
    pub isn: (u32, u32),
    /// Window field of the receiver's segments.
    pub window: u16,
}

impl Default for Ends {
    /// Over IPv4, untagged, from port 40,000 to port 5,001. The sender's numbers wrap after 4,095 bytes.
    fn default() -> Ends {
        Ends {
            number: 0,
            v6: false,
            tags: 0,
            session: 0,
            ports: (40_000, 5_001),
            isn: (0xffff_f000, 5_000),
            window: 4_000,
        }
    }
}

impl Ends {
    /// A segment of the sender, without numbers.
    pub fn sender(&self) -> SegmentBuilder {
        let (mine, other) = self.macs();
        self.tagged(self.between(0, 1)).macs(mine, other).ports(self.ports.0, self.ports.1)
    }

    /// A segment of the receiver, without numbers.
    pub fn receiver(&self) -> SegmentBuilder {
        let (other, mine) = self.macs();
        let segment = self.tagged(self.between(1, 0)).macs(mine, other);
        segment.ports(self.ports.1, self.ports.0).window(self.window)
    }

    /// MAC addresses, the sender's first.
    pub fn macs(&self) -> ([u8; 6], [u8; 6]) {
        ([2, 0, 0, 0, self.number, 1], [2, 0, 0, 0, self.number, 2])
    }

    /// IPv4 addresses, the sender's first.
    pub fn v4(&self) -> (Ipv4Addr, Ipv4Addr) {
        let host = |side| Ipv4Addr::new(10, self.number, side, 1);
        (host(0), host(1))
    }

    fn between(&self, from: u16, to: u16) -> SegmentBuilder {
        let v6 = |side| Ipv6Addr::new(0x2001, 0xdb8, u16::from(self.number), 0, 0, 0, 0, side + 1);
        let v4 = |side| if side == 0 { self.v4().0 } else { self.v4().1 };
        if self.v6 {
            SegmentBuilder::v6(v6(from), v6(to))
        } else {
            SegmentBuilder::v4(v4(from), v4(to))
        }
    }

    fn tagged(&self, segment: SegmentBuilder) -> SegmentBuilder {
        let tagged = match self.tags {
            0 => segment,
            1 => segment.vlan(5),
            _ => segment.tag(0x88a8, 9).vlan(5),
        };
        match self.session {
            0 => tagged,
            session => tagged.pppoe(session),
        }
    }

    /// Returns the sequence number of byte `n` of the data.
    pub fn seq(&self, n: u32) -> u32 {
        self.isn.0.wrapping_add(1).wrapping_add(n)
    }

    /// The sender's SYN, without options.
    pub fn syn(&self) -> SegmentBuilder {
        self.sender().seq(self.isn.0).flags(Flags::SYN)
    }

    /// The receiver's answer, without options.
    pub fn syn_ack(&self) -> SegmentBuilder {
        self.receiver().seq(self.isn.1).ack(self.seq(0)).flags(SYN_ACK).window(64_000)
    }

    /// An ACK of the receiver for the first `n` bytes.
    pub fn ack(&self, n: u32) -> SegmentBuilder {
        self.receiver().seq(self.isn.1.wrapping_add(1)).ack(self.seq(n)).flags(Flags::ACK)
    }

    /// A segment of the sender that begins with byte `n`. Its payload is still to be set.
    pub fn data(&self, n: u32) -> SegmentBuilder {
        self.sender().seq(self.seq(n)).ack(self.isn.1.wrapping_add(1)).flags(Flags::ACK)
    }
}
