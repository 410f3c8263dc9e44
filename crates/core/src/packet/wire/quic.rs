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

/// Returns whether a packet that is no segment of TCP is of QUIC: a datagram of the port of HTTP/3 with the
/// bit that all packets have, or one of any port with a long header of a known version.
pub fn is_quic(head: &[u8], packet: &Packet) -> bool {
    let l4 = usize::from(packet.l4);
    let Some(head) = head.get(l4..l4 + HEAD).filter(|_| packet.protocol == UDP && !packet.fragment) else {
        return false;
    };
    let port = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let version = u32::from_be_bytes([head[9], head[10], head[11], head[12]]);
    head[8] & FIXED != 0
        && (port(0) == HTTPS || port(2) == HTTPS || head[8] & LONG != 0 && VERSIONS.contains(&version))
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
        // DTLS (RFC 6347) and DNS over the same port have another bit; nothing is too short.
        assert!(!is(443, 50_000, &[22, 254, 253, 0, 0, 0, 0]) && !is(443, 50_000, &[0x45, 1]));
    }
}
