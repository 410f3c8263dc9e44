//! Packets that no router forwards: hosts and routers of one link find each other by them.

use super::packet::Packet;
use super::{array, TCP};
use core::net::Ipv6Addr;

const ICMPV6: u8 = 58;
/// Most bytes of such a packet from its IP header on: as many as any host can take (RFC 1122 §3.3.2), and no
/// message of DHCP is longer unless its receiver says so (RFC 2131 §2).
const LINK_MOST: u32 = 576;
/// Most bytes of one of neighbour discovery between other addresses: few options are in use with them.
const NEIGHBOUR_MOST: u32 = 128;

/// Returns whether this is a packet of the link's own: [by its addresses](has_address_of_link), or one of
/// IPv6's neighbour discovery with a hop limit of 255 (RFC 4861 §4), whose addresses may be any. It has come
/// by no router, but one behind a bridge may forward it.
pub fn is_of_link(bytes: &[u8], p: &Packet) -> bool {
    has_address_of_link(p)
        || p.version == 6 && p.ttl == 255 && is_within(p, NEIGHBOUR_MOST) && is_neighbour_discovery(bytes, p)
}

/// Returns whether this is from or to an address of the link's scope (RFC 4291 §2.5.6, §2.7), to 224.0.0.0/24
/// (RFC 5771 §4) or to all of its hosts (RFC 919 §7), which no router forwards. So are multicast listener
/// discovery, IGMP's queries, DHCP, OSPF and VRRP. A segment of TCP is none, nor is a longer packet.
pub fn has_address_of_link(p: &Packet) -> bool {
    let has = is_to_all(p.dst) || is_of_scope(p.src) || is_of_scope(p.dst);
    has && p.protocol != TCP && is_within(p, LINK_MOST)
}

/// Returns whether the packet has at most this many bytes from its IP header on.
fn is_within(p: &Packet, most: u32) -> bool {
    p.end.saturating_sub(p.l3.into()) <= most
}

/// Returns whether this is the limited broadcast, or a multicast group of the link, of IPv4.
fn is_to_all(address: [u8; 16]) -> bool {
    let four = Ipv6Addr::from(address).to_ipv4_mapped();
    four.is_some_and(|four| four.is_broadcast() || four.octets()[..3] == [224, 0, 0])
}

/// Returns whether this is an address of IPv6 of the link's scope: fe80::/10, or ff02::/16 with any flags.
fn is_of_scope([first, second, ..]: [u8; 16]) -> bool {
    (first == 0xfe && second & 0xc0 == 0x80) || (first == 0xff && second & 0xf == 2)
}

/// Solicitations and advertisements of routers and neighbours, and redirects.
fn is_neighbour_discovery(bytes: &[u8], p: &Packet) -> bool {
    let kind = array(bytes, p.l4.into()).map(|[kind]| kind);
    p.protocol == ICMPV6 && kind.is_some_and(|kind| (133..=137).contains(&kind))
}

#[cfg(test)]
mod tests {
    use super::super::build::SegmentBuilder;
    use super::super::other_packet;
    use super::*;
    use core::net::Ipv4Addr;

    fn is(s: SegmentBuilder) -> bool {
        let frame = s.build();
        is_of_link(&frame, &other_packet(&frame, frame.len()).unwrap())
    }

    fn v4(src: &str, dst: &str) -> SegmentBuilder {
        SegmentBuilder::v4(src.parse::<Ipv4Addr>().unwrap(), dst.parse::<Ipv4Addr>().unwrap()).udp()
    }

    fn v6(src: &str, dst: &str) -> SegmentBuilder {
        SegmentBuilder::v6(src.parse::<Ipv6Addr>().unwrap(), dst.parse::<Ipv6Addr>().unwrap()).udp()
    }

    const GLOBAL: [&str; 2] = ["2001:db8::1", "2001:db8::2"];

    #[test]
    fn addresses_of_the_link_are_known() {
        for to in ["224.0.0.0", "224.0.0.18", "224.0.0.255", "255.255.255.255"] {
            assert!(is(v4("0.0.0.0", to)), "{to}");
        }
        for to in ["224.0.1.0", "223.0.0.1", "239.255.255.250", "255.255.255.254", "10.0.0.255"] {
            assert!(!is(v4("10.0.0.1", to)), "{to}");
        }
        for other in ["fe80::1", "febf::1", "ff02::1:2", "ff12::1"] {
            assert!(is(v6("2001:db8::1", other)), "{other}");
        }
        for other in ["fec0::1", "fe00::1", "fd00::1", "ff05::1:3", "ff0e::1", "::ffff:1.2.3.4"] {
            assert!(!is(v6("2001:db8::1", other)), "{other}");
        }
        assert!(is(v6("fe80::1", "2001:db8::1")));
    }

    #[test]
    fn neighbour_discovery_has_had_no_router() {
        let [src, dst] = GLOBAL;
        // The type is the first byte behind the headers.
        let of_type = |kind: u16| v6(src, dst).ports(kind << 8, 0).protocol(ICMPV6);
        for kind in 128..=143 {
            assert_eq!(is(of_type(kind).ttl(255)), (133..=137).contains(&kind), "{kind}");
            assert!(!is(of_type(kind).ttl(254)), "{kind}");
        }
        assert!(is(of_type(136).ttl(255).extension(0, &[0; 6])));
        assert!(!is(of_type(136).ttl(255).fragment(0, true)));
        assert!(is(of_type(136).ttl(255).payload(68)) && !is(of_type(136).ttl(255).payload(69)));
        let four = v4("10.0.0.1", "10.0.0.2").ports(135 << 8, 0).protocol(ICMPV6).ttl(255);
        assert!(!is(four), "IPv4 has none");
    }

    #[test]
    fn a_segment_of_tcp_is_none() {
        let [src, dst] = ["fe80::1", "fe80::2"].map(|address| address.parse::<Ipv6Addr>().unwrap());
        let frame = SegmentBuilder::v6(src, dst).build();
        assert!(!has_address_of_link(&super::super::packet(&frame, frame.len()).unwrap()));
    }

    /// 576 bytes are as many as any host can take (RFC 1122 section 3.3.2).
    #[test]
    fn a_long_packet_is_as_others() {
        assert!(
            is(v4("10.0.0.1", "224.0.0.5").payload(548)) && !is(v4("10.0.0.1", "224.0.0.5").payload(549))
        );
        assert!(is(v6("fe80::1", "fe80::2").payload(528)) && !is(v6("fe80::1", "fe80::2").payload(529)));
    }
}
