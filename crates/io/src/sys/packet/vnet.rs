//! The header that describes a frame's segmentation and checksum state (`struct virtio_net_hdr`), as packet
//! sockets with `PACKET_VNET_HDR` give and take it, in the byte order of the machine.

use crate::sys::pod::Pod;
use weir_core::frame::Checksum;
use weir_core::wire::{self, Flags};

/// As in `linux/virtio_net.h`.
const NEEDS_CHECKSUM: u8 = 1;
const DATA_VALID: u8 = 2;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
const GSO_ECN: u8 = 0x80;

const TCP: u8 = 6;
const UDP: u8 = 17;
/// Offsets of the checksum field in TCP and UDP headers.
const TCP_CHECKSUM: u16 = 16;
const UDP_CHECKSUM: u16 = 6;
const UDP_HEADER: u16 = 8;

/// `struct virtio_net_hdr`. The default says: one segment, nothing known of its checksum.
///
/// A frame that leaves as it came is best sent with the header it came with: [`Vnet::of`] knows TCP and UDP
/// only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Vnet {
    flags: u8,
    gso_type: u8,
    header_len: u16,
    gso_size: u16,
    checksum_start: u16,
    checksum_offset: u16,
}
// SAFETY: integers without padding: the size is asserted below.
unsafe impl Pod for Vnet {}
const _: () = assert!(size_of::<Vnet>() == Vnet::LEN);

impl Vnet {
    /// Bytes on the socket.
    pub const LEN: usize = 10;

    /// The header of a frame of `frame_len` bytes that starts with `bytes`: `None` if it is neither TCP nor UDP
    /// and needs more than the default, or cannot be cut into segments of `gso_size`.
    pub fn of(bytes: &[u8], frame_len: usize, gso_size: u16, checksum: Checksum) -> Option<Vnet> {
        if gso_size == 0 && checksum != Checksum::Partial {
            return Some(Vnet::default());
        }
        let packet = wire::packet(bytes, frame_len).ok()?;
        let (header, field) = match packet.protocol {
            TCP => (u16::from(wire::tcp(bytes, &packet).ok()?.header_len), TCP_CHECKSUM),
            UDP => (UDP_HEADER, UDP_CHECKSUM),
            _ => return None,
        };
        let mut vnet = Vnet {
            // The kernel makes segments only with checksums that are still to be completed.
            flags: NEEDS_CHECKSUM,
            checksum_start: packet.l4,
            checksum_offset: field,
            ..Vnet::default()
        };
        if gso_size > 0 {
            vnet.gso_type = match (packet.protocol, packet.version) {
                (UDP, _) => GSO_UDP_L4,
                (_, 4) => GSO_TCPV4,
                _ => GSO_TCPV6,
            };
            if packet.protocol == TCP && wire::tcp(bytes, &packet).ok()?.flags.contains(Flags::CWR) {
                vnet.gso_type |= GSO_ECN;
            }
            (vnet.gso_size, vnet.header_len) = (gso_size, packet.l4 + header);
        }
        Some(vnet)
    }

    /// Payload of each segment; 0 for a single one.
    pub fn gso_size(&self) -> u16 {
        match self.gso_type & !GSO_ECN {
            GSO_NONE => 0,
            _ => self.gso_size,
        }
    }

    /// What is known of the checksum.
    pub fn checksum(&self) -> Checksum {
        match self.flags {
            flags if flags & NEEDS_CHECKSUM != 0 => Checksum::Partial,
            flags if flags & DATA_VALID != 0 => Checksum::Valid,
            _ => Checksum::Unknown,
        }
    }

    /// The header after `bytes` more were put in front of the transport header: a VLAN tag.
    #[must_use]
    pub fn behind(mut self, bytes: u16) -> Vnet {
        if self.flags & NEEDS_CHECKSUM != 0 {
            self.checksum_start += bytes;
        }
        if self.gso_type != GSO_NONE {
            self.header_len += bytes;
        }
        self
    }

    /// What is sent, without the first `skip` bytes. That a device has found the checksum good is of no use
    /// to one that sends.
    pub(super) fn to_send(mut self, skip: u16) -> Vnet {
        self.flags &= NEEDS_CHECKSUM;
        self.checksum_start = self.checksum_start.saturating_sub(skip);
        self.header_len = self.header_len.saturating_sub(skip);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::wire::build::{arp, Segment, Sum};

    fn header(segment: Segment, gso_size: u16, checksum: Checksum) -> Option<Vnet> {
        let frame = segment.build();
        Vnet::of(&frame[..frame.len().min(128)], frame.len(), gso_size, checksum)
    }

    #[test]
    fn a_frame_says_what_its_header_must_say() {
        let v4 = Segment::v4([10, 0, 0, 1], [10, 0, 0, 2]).payload(3000);
        let v6 = Segment::v6([1; 8], [2; 8]).ts(1, 2).payload(3000).flags(Flags::ACK.with(Flags::CWR));
        assert_eq!(header(v4.clone(), 0, Checksum::Valid), Some(Vnet::default()));
        let partial = header(v4.clone().vlan(5).checksum(Sum::Partial), 0, Checksum::Partial).unwrap();
        assert_eq!((partial.flags, partial.gso_type), (NEEDS_CHECKSUM, GSO_NONE));
        assert_eq!((partial.checksum_start, partial.checksum_offset, partial.gso_size()), (38, 16, 0));
        assert_eq!(partial.checksum(), Checksum::Partial);
        let giant = header(v6, 1428, Checksum::Partial).unwrap();
        assert_eq!((giant.gso_type, giant.gso_size(), giant.header_len), (GSO_TCPV6 | GSO_ECN, 1428, 86));
        assert_eq!(giant.behind(4).header_len, 90);
        assert_eq!(giant.behind(4).checksum_start, 58);
        let udp = header(v4.clone().udp(), 1000, Checksum::Partial).unwrap();
        assert_eq!((udp.gso_type, udp.header_len, udp.checksum_offset), (GSO_UDP_L4, 42, 6));
        assert_eq!(header(v4.protocol(132), 0, Checksum::Partial), None);
        let arp = arp([10, 0, 0, 1], [10, 0, 0, 2]);
        assert_eq!(Vnet::of(&arp, arp.len(), 0, Checksum::Unknown), Some(Vnet::default()));
    }
}
