//! Congestion Experienced, set in the IP header of ECN-capable packets (RFC 3168 §5).
//!
//! The ECN field is part of no pseudo-header, so the transport checksum stays as it is. IPv4's header
//! checksum changes by the difference (RFC 1624).

use super::be16;
use crate::frame::link_header;
use crate::wire::checksum::update16;

/// Congestion Experienced in the two bits of the ECN field. Zero means not ECN-capable.
const CE: u8 = 0b11;

/// Sets Congestion Experienced in the packet at the start of `head`. Returns false and writes nothing unless
/// the packet is ECN-capable. A packet that arrived with the mark keeps it and need not be dropped (RFC 3168
/// §5, and Linux's `INET_ECN_set_ce`).
pub fn mark(head: &mut [u8]) -> bool {
    let (ether_type, at) = link_header(head);
    match (ether_type, head.get_mut(at..)) {
        (0x0800, Some(ip)) => mark_v4(ip),
        (0x86dd, Some(ip)) => mark_v6(ip),
        _ => false,
    }
}

/// Returns the ECN field of the packet at the start of `head`: 0 not capable, 1 ECT(1), 2 ECT(0), 3
/// congestion experienced. Returns 0 for other protocols than IP.
pub fn field(head: &[u8]) -> u8 {
    let (ether_type, at) = link_header(head);
    traffic_class(ether_type, &head[at.min(head.len())..]).map_or(0, |class| class & CE)
}

const ARP: u16 = 0x0806;
/// Codepoint of ARP, which has none: that of network control, CS7, as CAKE gives it.
const NETWORK_CONTROL: u8 = 56;

/// Returns the codepoint (DSCP, RFC 2474) of the packet at the start of `head`. Returns 0, best effort, for
/// other protocols than IP and ARP.
pub fn codepoint(head: &[u8]) -> u8 {
    let (ether_type, at) = link_header(head);
    if ether_type == ARP {
        return NETWORK_CONTROL;
    }
    traffic_class(ether_type, &head[at.min(head.len())..]).map_or(0, |class| class >> 2)
}

/// The byte of an IP header that has the codepoint and the ECN field (RFC 3168 §5).
fn traffic_class(ether_type: u16, ip: &[u8]) -> Option<u8> {
    match (ether_type, ip) {
        (0x0800, [version, tos, ..]) if version >> 4 == 4 => Some(*tos),
        (0x86dd, [version, next, ..]) if version >> 4 == 6 => Some(version << 4 | next >> 4),
        _ => None,
    }
}

fn mark_v4(ip: &mut [u8]) -> bool {
    let (Some(old), Some(checksum)) = (be16(ip, 0), be16(ip, 10)) else { return false };
    if ip.len() < 20 || ip[0] >> 4 != 4 || !capable(ip[1]) {
        return false;
    }
    if ip[1] & CE == CE {
        return true;
    }
    ip[1] |= CE;
    let updated = update16(checksum, old, old | u16::from(CE));
    ip[10..12].copy_from_slice(&updated.to_be_bytes());
    true
}

/// Marks an IPv6 packet. The traffic class begins in the middle of the first byte.
fn mark_v6(ip: &mut [u8]) -> bool {
    if ip.len() < 40 || ip[0] >> 4 != 6 || !capable(ip[1] >> 4) {
        return false;
    }
    ip[1] |= CE << 4;
    true
}

/// Returns whether the ECN field is ECT(0), ECT(1) or CE.
fn capable(traffic_class: u8) -> bool {
    traffic_class & CE != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{build::SegmentBuilder, checksum, packet};
    use proptest::prelude::*;

    /// Builds a whole packet, so that its checksums are computed and not updated.
    fn v4(traffic_class: u8) -> Vec<u8> {
        SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).tos(traffic_class).payload(100).build()
    }

    /// Both codepoints of ECN-capable transports become 11. Codepoint 11 stays, and 00 is not capable (RFC
    /// 3168 §5).
    #[test]
    fn both_ect_codepoints_are_marked_and_nothing_else() {
        for (ecn, marked) in [(0b00, false), (0b01, true), (0b10, true), (0b11, true)] {
            let mut b = v4(0xb8 | ecn);
            assert_eq!(field(&b), ecn);
            assert_eq!(mark(&mut b), marked, "{ecn:02b}");
            let expected = if marked { 0xbb } else { 0xb8 | ecn };
            assert_eq!(b, v4(expected));
            // RFC 1071 §1: a header with the right checksum sums to all ones.
            assert_eq!(checksum::sum(&b[14..34]), 0xffff);
            let p = packet(&b, b.len()).unwrap();
            assert_eq!(checksum::verify(&b, b.len(), &p), crate::frame::Checksum::Valid);
        }
    }

    #[test]
    fn ipv6_too_behind_tags() {
        let plain = SegmentBuilder::v6([0xfd; 16], [0xfe; 16]).build();
        for tags in 0..=2 {
            for (ecn, marked) in [(0b00u8, false), (0b01, true), (0b10, true), (0b11, true)] {
                let mut b = plain.clone();
                (0..tags).for_each(|_| drop(b.splice(12..12, [0x81, 0, 0, 5])));
                let ip = 14 + 4 * tags;
                // Traffic class 0xb8 | ecn and flow label 0x12345.
                b[ip..ip + 4].copy_from_slice(&[0x6b, 0x80 | ecn << 4 | 1, 0x23, 0x45]);
                let mut expected = b.clone();
                expected[ip + 1] = if marked { 0xb1 } else { 0x80 | ecn << 4 | 1 };
                assert_eq!(field(&b), ecn);
                assert_eq!(mark(&mut b), marked);
                assert_eq!(b, expected, "{tags} tags");
            }
        }
    }

    #[test]
    fn what_is_not_ip_is_left_alone() {
        let arp = [&[0xff; 12][..], &[8, 6], &[2; 46]].concat();
        let cut = v4(2)[..33].to_vec();
        let mut six_in_four = v4(2);
        six_in_four[14] = 0x65;
        for b in [arp, cut, six_in_four, vec![], vec![0x81; 13]] {
            let mut after = b.clone();
            assert!(!mark(&mut after));
            assert_eq!(after, b);
        }
    }

    proptest! {
        #[test]
        fn garbage_does_no_harm(mut head in prop::collection::vec(any::<u8>(), 0..80), v6: bool) {
            if head.len() > 14 {
                head[12..14].copy_from_slice(if v6 { &[0x86, 0xdd] } else { &[8, 0] });
            }
            field(&head);
            mark(&mut head);
        }
    }
}
