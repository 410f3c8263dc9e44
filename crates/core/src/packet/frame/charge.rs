//! The charge of a frame at a queue and a rate: for each packet that it stands for, IP bytes and a fixed
//! overhead, or the bytes that a link takes for it.

use super::Frame;
use crate::packet::{be16, pppoe, LinkLayer};

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
        let Packets { count, bytes, .. } = Packets::of(frame, head);
        Charge { packets: count, bytes: bytes + u64::from(overhead) * u64::from(count) }
    }

    /// Returns the charge for `frame`, whose first bytes are `head`, on a link with this layer. Each packet
    /// has its own overhead, minimum and cells.
    pub fn on_link(frame: &Frame, head: &[u8], layer: &LinkLayer) -> Charge {
        let Packets { count, bytes, full } = Packets::of(frame, head);
        let before = u64::from(count) - 1;
        let last = bytes.saturating_sub(before * full);
        Charge { packets: count, bytes: before * layer.bytes(full) + layer.bytes(last) }
    }

    /// Bytes of one of its packets.
    #[inline]
    pub fn of_one(&self) -> u64 {
        match self.packets {
            0 | 1 => self.bytes,
            n => self.bytes.div_ceil(u64::from(n)),
        }
    }
}

/// IP packets that a frame stands for.
struct Packets {
    /// Number of packets, at least 1.
    count: u32,
    /// IP bytes of all packets.
    bytes: u64,
    /// IP bytes of each packet but the last.
    full: u64,
}

impl Packets {
    /// Reads a frame of any kind: with tags, of any protocol, giant, or padded.
    fn of(frame: &Frame, head: &[u8]) -> Packets {
        if frame.is_draft() {
            return Packets { count: 1, bytes: frame.len().saturating_sub(ETHERNET) as u64, full: 0 };
        }
        let (ether_type, link) = link_header(head);
        let present = head.get(link..).unwrap_or(&[]);
        let mut bytes = frame.len().saturating_sub(link);
        if frame.len() <= MIN_FRAME {
            bytes = ip_length(ether_type, present).filter(|&n| n <= bytes).unwrap_or(bytes);
        }
        if frame.gso_size == 0 {
            return Packets { count: 1, bytes: bytes as u64, full: 0 };
        }
        // Each segment repeats the headers of the giant.
        let headers = ip_and_transport_headers(ether_type, present);
        let count = frame.segments(link + headers);
        bytes += headers * (count as usize - 1);
        let full = headers + usize::from(frame.gso_size);
        Packets { count, bytes: bytes as u64, full: full as u64 }
    }
}

/// Returns the ether type behind up to two VLAN tags and the header of a PPPoE session, and the length of all
/// of these headers.
pub(crate) fn link_header(head: &[u8]) -> (u16, usize) {
    let mut len = ETHERNET;
    let mut ether_type = be16(head, 12).unwrap_or(0);
    for _ in 0..2 {
        if matches!(ether_type, 0x8100 | 0x88a8) {
            ether_type = be16(head, len + 2).unwrap_or(0);
            len += TAG;
        }
    }
    if ether_type == pppoe::SESSION {
        if let Some(ipv6) = pppoe::carries_ipv6(head, len) {
            return (if ipv6 { 0x86dd } else { 0x0800 }, len + pppoe::LEN);
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
    use crate::packet::Cells;
    use proptest::prelude::*;

    fn charged(head: &[u8], len: usize, gso: u16, charge: impl Fn(&Frame, &[u8]) -> Charge) -> Charge {
        let mut pool = Frames::new(1, 2048, 0);
        let mut f = pool.receive_copy(head, len, Time::ZERO).unwrap();
        f.gso_size = gso;
        charge(&f, pool.bytes(&f))
    }

    fn charge(head: &[u8], len: usize, gso: u16, overhead: u16) -> Charge {
        charged(head, len, gso, |frame, head| Charge::of(frame, head, overhead))
    }

    fn on_link(head: &[u8], len: usize, gso: u16, layer: LinkLayer) -> Charge {
        charged(head, len, gso, |frame, head| Charge::on_link(frame, head, &layer))
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

    const PPPOE: LinkLayer = LinkLayer { overhead: 40, mpu: 0, cells: Cells::Atm };
    const DOCSIS: LinkLayer = LinkLayer { overhead: 18, mpu: 64, cells: Cells::None };

    /// 1540 bytes are 33 cells of 48, 80 are 2, 93 are 2. A cell has 53 bytes.
    #[test]
    fn each_packet_takes_its_own_cells() {
        for tags in 0..=2 {
            let c = on_link(&tcp4(tags, 1500), 1514 + 4 * tags, 0, PPPOE);
            assert_eq!(c, Charge { packets: 1, bytes: 1749 });
        }
        let mut ack = tcp4(0, 40);
        ack.truncate(60);
        assert_eq!([PPPOE, DOCSIS].map(|layer| on_link(&ack, 60, 0, layer).bytes), [106, 64]);
        let payload = 3 * 1448 + 1;
        let c = on_link(&tcp4(0, 52 + payload), 66 + usize::from(payload), 1448, PPPOE);
        assert_eq!(c, Charge { packets: 4, bytes: 3 * 1749 + 106 });
        let c = on_link(&tcp4(0, 52 + payload), 66 + usize::from(payload), 1448, DOCSIS);
        assert_eq!(c, Charge { packets: 4, bytes: 3 * 1518 + 71 });
    }

    proptest! {
        #[test]
        fn a_link_without_cells_charges_its_overhead(tags in 0usize..3, payload in 1u16..60_000, gso in 1u16..9_000, overhead in 0u16..=256) {
            let (head, len) = (tcp4(tags, 52 + payload), 66 + 4 * tags + usize::from(payload));
            let layer = LinkLayer { overhead: overhead as i16, mpu: 0, cells: Cells::None };
            prop_assert_eq!(on_link(&head, len, gso, layer), charge(&head, len, gso, overhead));
        }
        #[test]
        fn garbage_takes_cells_somehow(head in prop::collection::vec(any::<u8>(), 0..100), gso in any::<u16>()) {
            on_link(&head, head.len(), gso, PPPOE);
        }
        #[test]
        fn garbage_is_counted_somehow(head in prop::collection::vec(any::<u8>(), 0..100), gso in any::<u16>()) {
            charge(&head, head.len(), gso, u16::MAX);
        }
    }
}
