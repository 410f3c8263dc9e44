//! QUIC, as far as a packet tells that is not decrypted.

use super::packet::Packet;

/// Protocol number of UDP.
const UDP: u8 = 17;
/// The port of HTTP/3.
const HTTPS: u16 = 443;
/// Bits of a packet's first byte (RFC 9000 section 17).
const LONG: u8 = 0x80;
const FIXED: u8 = 0x40;
/// Versions 1 and 2 (RFC 9369).
const VERSIONS: [u32; 2] = [1, 0x6b33_43cf];
/// Bytes that are looked at: UDP's header, the first byte, and the version.
const HEAD: usize = 13;

/// Returns whether a packet that is no segment of TCP is of QUIC: a datagram of the port of HTTP/3 that is of
/// none of the tunnels that share this port, or one of any port with a long header of a known version. The
/// fixed bit says nothing of the former, since ends may agree to grease it (RFC 9287).
pub fn is_quic(head: &[u8], packet: &Packet) -> bool {
    let l4 = usize::from(packet.l4);
    let Some(head) = head.get(l4..l4 + HEAD).filter(|_| packet.protocol == UDP && !packet.fragment) else {
        return false;
    };
    let port = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let version = u32::from_be_bytes([head[9], head[10], head[11], head[12]]);
    if port(0) == HTTPS || port(2) == HTTPS {
        return !is_tunnel([head[8], head[9], head[10], head[11]]);
    }
    head[8] & (LONG | FIXED) == LONG | FIXED && VERSIONS.contains(&version)
}

/// Returns whether a datagram begins as a record of DTLS (RFC 9147 section 4: content types 20 to 26, and a
/// version whose first byte is 254), or as a message of WireGuard (types 1 to 4, and three zeros).
const fn is_tunnel(first: [u8; 4]) -> bool {
    matches!(first, [20..=26, 254, ..] | [1..=4, 0, 0, 0])
}

#[cfg(test)]
mod tests {
    use super::super::build::SegmentBuilder;
    use super::super::other_packet;
    use super::*;
    use std::net::Ipv4Addr;

    fn is(from: u16, to: u16, payload: &[u8]) -> bool {
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let frame = SegmentBuilder::v4(a, b).ports(from, to).data(payload).udp().build();
        is_quic(&frame, &other_packet(&frame, frame.len()).unwrap())
    }

    #[test]
    fn quic_is_known_by_its_port_or_its_long_header() {
        let short = [0x45, 1, 2, 3, 4, 5, 6];
        assert!(is(443, 50_000, &short) && is(50_000, 443, &short) && !is(50_000, 4_433, &short));
        for version in [[0, 0, 0, 1], [0x6b, 0x33, 0x43, 0xcf]] {
            let long = [&[0xc3], version.as_slice(), &[8, 1, 2]].concat();
            assert!(is(50_000, 4_433, &long) && is(443, 1, &long));
        }
        assert!(!is(50_000, 4_433, &[0xc3, 0, 0, 0, 7, 8, 1]), "no known version");
        assert!(!is(443, 50_000, &[0x45, 1]), "too short");
    }

    /// Each first byte that RFC 9287 allows: short (RFC 9000 section 17.3) and long headers, with the fixed
    /// bit and without. On other ports the bit is asked for, since RTP (RFC 3550) has a first byte of 128 to
    /// 191.
    #[test]
    fn a_greased_bit_hides_no_quic_of_the_port() {
        for first in 0..=255u8 {
            let packet = [first, 0, 0, 0, 1, 8, 1];
            let tunnel = (1..=4).contains(&first);
            assert_eq!([is(443, 50_000, &packet), is(50_000, 443, &packet)], [!tunnel; 2], "{first:#x}");
            assert_eq!(is(50_000, 4_433, &packet), first >= 0xc0, "{first:#x}");
            let short = [first, 0x5a, 3, 4, 5, 6, 7];
            assert!(is(443, 50_000, &short) && !is(50_000, 4_433, &short), "{first:#x}");
        }
    }

    /// Records of DTLS 1.0 and 1.2 (RFC 6347 section 4.1), and messages of WireGuard (its paper, section
    /// 5.4), over the same port.
    #[test]
    fn tunnels_of_the_port_are_no_quic() {
        for version in [255, 253] {
            for content in 20..=26 {
                assert!(!is(443, 50_000, &[content, 254, version, 0, 0, 0, 0]));
            }
        }
        for kind in 1..=4 {
            assert!(!is(50_000, 443, &[kind, 0, 0, 0, 9, 9, 9]));
        }
        assert!(is(443, 50_000, &[27, 254, 253, 0, 0, 0, 0]) && is(443, 50_000, &[5, 0, 0, 0, 9, 9, 9]));
        assert!(is(443, 50_000, &[22, 3, 3, 0, 0, 0, 0]) && is(443, 50_000, &[4, 0, 0, 1, 9, 9, 9]));
    }
}
