//! The charge of a frame at a queue and a rate: IP bytes and a fixed overhead for each packet that it stands
//! for.

use super::Frame;

/// Shortest Ethernet frame without FCS. Shorter IP packets are padded to it.
const MIN_FRAME: usize = 60;
const ETHERNET: usize = 14;
const TAG: usize = 4;

/// Cost of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Charge {
    /// Packets on the wire.
    pub packets: u32,
    /// Bytes that the rate and the queue's limit count.
    pub bytes: u64,
}

impl Charge {
    /// Returns the charge for `frame`, whose first bytes are `head`, at `overhead` bytes a packet on top of
    /// IP. Any content of the bytes is accepted. A draft is one packet without tags and padding.
    #[inline]
    pub fn of(frame: &Frame, head: &[u8], overhead: u16) -> Charge {
        let plain =
            || frame.gso_size == 0 && frame.len() > MIN_FRAME && head.get(12..ETHERNET) == Some(&[8, 0]);
        if frame.is_draft() || plain() {
            let bytes = frame.len().saturating_sub(ETHERNET) as u64;
            return Charge { packets: 1, bytes: bytes + u64::from(overhead) };
        }
        Charge::of_any(frame, head, overhead)
    }

    /// Bytes of one of its packets.
    #[inline]
    pub fn of_one(&self) -> u64 {
        match self.packets {
            0 | 1 => self.bytes,
            n => self.bytes.div_ceil(u64::from(n)),
        }
    }

    /// Handles frames with tags, of protocols other than IPv4, giants, and frames short enough to be padded.
    fn of_any(frame: &Frame, head: &[u8], overhead: u16) -> Charge {
        let (ether_type, link) = link_header(head);
        let present = head.get(link..).unwrap_or(&[]);
        let mut bytes = frame.len().saturating_sub(link);
        if frame.len() <= MIN_FRAME {
            bytes = ip_length(ether_type, present).filter(|&n| n <= bytes).unwrap_or(bytes);
        }
        let mut packets = 1;
        if frame.gso_size != 0 {
            // Each segment repeats the headers of the giant.
            let headers = ip_and_transport_headers(ether_type, present);
            packets = frame.segments(link + headers);
            bytes += headers * (packets as usize - 1);
        }
        Charge { packets, bytes: bytes as u64 + u64::from(overhead) * u64::from(packets) }
    }
}

pub(crate) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    let two = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([two[0], two[1]]))
}

/// Returns the ether type behind up to two VLAN tags, and the length of the header with them.
pub(crate) fn link_header(head: &[u8]) -> (u16, usize) {
    let mut len = ETHERNET;
    let mut ether_type = be16(head, 12).unwrap_or(0);
    for _ in 0..2 {
        if matches!(ether_type, 0x8100 | 0x88a8) {
            ether_type = be16(head, len + 2).unwrap_or(0);
            len += TAG;
        }
    }
    (ether_type, len)
}

/// Returns the length stated in an IP header, without padding.
fn ip_length(ether_type: u16, ip: &[u8]) -> Option<usize> {
    match ether_type {
        0x0800 => be16(ip, 2).map(usize::from).filter(|&n| n >= 20),
        0x86dd => be16(ip, 4).map(|n| usize::from(n) + 40),
        _ => None,
    }
}

/// Returns the bytes of the IP and transport headers in front of a giant's payload. IPv6 extension headers
/// are not parsed, since segmentation offloads do not take them.
fn ip_and_transport_headers(ether_type: u16, ip: &[u8]) -> usize {
    let at = |i: usize| ip.get(i).copied().unwrap_or(0);
    let (network, protocol) = match ether_type {
        0x0800 => (usize::from(at(0) & 15) * 4, at(9)),
        0x86dd => (40, at(6)),
        _ => return 0,
    };
    let transport = match protocol {
        6 => usize::from(at(network + 12) >> 4) * 4,
        17 => 8,
        _ => 0,
    };
    network + transport
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::time::Time;
    use crate::packet::frame::Frames;
    use proptest::prelude::*;

    fn charge(head: &[u8], len: usize, gso: u16, overhead: u16) -> Charge {
        let mut pool = Frames::new(1, 2048, 0);
        let mut f = pool.receive_copy(head, len, Time::ZERO).unwrap();
        f.gso_size = gso;
        Charge::of(&f, pool.bytes(&f), overhead)
    }

    /// Ethernet with `tags`, IPv4 with `len` as its total length, TCP with timestamps (32 bytes).
    fn tcp4(tags: usize, len: u16) -> Vec<u8> {
        let mut b = vec![0; 12];
        (0..tags).for_each(|_| b.extend([0x81, 0, 0, 5]));
        b.extend([8, 0, 0x45, 0]);
        b.extend(len.to_be_bytes());
        b.extend([0, 0, 0, 0, 64, 6]);
        b.resize(14 + 4 * tags + 20 + 12, 0);
        b.push(8 << 4);
        b.resize(14 + 4 * tags + 52, 0);
        b
    }

    #[test]
    fn ip_bytes_whatever_the_tags() {
        for tags in 0..=2 {
            let c = charge(&tcp4(tags, 1500), 1514 + 4 * tags, 0, 0);
            assert_eq!(c, Charge { packets: 1, bytes: 1500 });
        }
        assert_eq!(charge(&tcp4(0, 1500), 1514, 0, 38).bytes, 1538);
    }

    #[test]
    fn padding_is_not_counted() {
        let mut ack = tcp4(0, 40);
        ack.truncate(60);
        assert_eq!(charge(&ack, 60, 0, 0).bytes, 40);
        // A length that contradicts the frame is not believed.
        ack[16..18].copy_from_slice(&999u16.to_be_bytes());
        assert_eq!(charge(&ack, 60, 0, 0).bytes, 46);
    }

    #[test]
    fn a_giant_costs_what_its_segments_do() {
        // 3 × 1448 + 1 bytes behind 52 of headers: three full packets and one of 53 bytes.
        let payload = 3 * 1448 + 1;
        let c = charge(&tcp4(0, 52 + payload), 66 + usize::from(payload), 1448, 18);
        assert_eq!(c, Charge { packets: 4, bytes: 3 * 1518 + 53 + 18 });
    }

    proptest! {
        #[test]
        fn garbage_is_counted_somehow(head in prop::collection::vec(any::<u8>(), 0..100), gso in any::<u16>()) {
            charge(&head, head.len(), gso, u16::MAX);
        }
    }
}
