//! The identity of a flow: one direction of data of one connection, or packets of another protocol between
//! the same addresses.

use crate::packet::wire::{self, array, Packet, PlainAck, Tcp, TCP, UDP};
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
/// Protocol number in the key of an opening, in place of TCP's. The number is reserved (RFC 5237 names the
/// registry).
const OPENING: u8 = 255;
/// Bits of a VLAN identifier.
const ID: u16 = 0xfff;

/// A flow: `src` sends the data, `dst` receives it and acknowledges. IPv4 addresses are written as
/// IPv4-mapped IPv6 addresses (RFC 4291 §2.5.5.2). The protocol and VLAN identifiers are part of it:
/// customers behind different tags may use the same addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(C)]
pub struct Key {
    /// Address of the data's sender.
    pub src: [u8; 16],
    /// Address of the data's receiver.
    pub dst: [u8; 16],
    /// Port of the data's sender.
    pub src_port: u16,
    /// Port of the data's receiver.
    pub dst_port: u16,
    /// VLAN identifiers in the low twelve bits, outer first. Above them the protocol, its high four bits
    /// first. A tag's priority and drop eligibility are not part of a flow.
    pub tags: [u16; 2],
}

impl Key {
    /// Returns the key of a flow of this protocol from `src` to `dst`, untagged.
    pub fn new(protocol: u8, src: SocketAddr, dst: SocketAddr) -> Key {
        let octets = |end: SocketAddr| match end.ip() {
            IpAddr::V4(a) => a.to_ipv6_mapped().octets(),
            IpAddr::V6(a) => a.octets(),
        };
        Key { src: octets(src), dst: octets(dst), src_port: src.port(), dst_port: dst.port(), tags: [0; 2] }
            .with(protocol, [0; 2])
    }

    /// Returns the flow of any IP packet, in the packet's direction, for `bytes` parsed into `p`. Ports are
    /// those of TCP and UDP. For an ICMP echo and its answer both are the identifier. They are 0 for other
    /// protocols, and for fragments, since only the first has them. The protocol of IPv6's fragments is 44,
    /// that of their header.
    pub fn of_packet(bytes: &[u8], p: &Packet) -> Key {
        let [src_port, dst_port] = ports(bytes, p).unwrap_or_default();
        let protocol = if p.protocol == OPENING { 0 } else { p.protocol };
        let key = Key { src: p.src, dst: p.dst, src_port, dst_port, tags: [0; 2] };
        key.with(protocol, [p.vlan.outer_id(), p.vlan.inner_id()])
    }

    /// Returns the flow whose data a TCP segment acknowledges, without validation and for guesses only. The
    /// segment must have neither IP options nor extension headers.
    #[inline]
    pub fn glimpse(bytes: &[u8]) -> Option<Key> {
        let (vlan, l3, ipv6) = wire::network(bytes)?;
        let v4 = |at| array::<4>(bytes, at).map(wire::mapped);
        let (src, dst, l4) = match ipv6 {
            true => (array(bytes, l3 + 8)?, array(bytes, l3 + 24)?, l3 + 40),
            false => (v4(l3 + 12)?, v4(l3 + 16)?, l3 + 20),
        };
        let [a, b, c, d] = array(bytes, l4)?;
        let (src_port, dst_port) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let key = Key { src: dst, dst: src, src_port: dst_port, dst_port: src_port, tags: [0; 2] };
        Some(key.with(TCP, [vlan.outer_id(), vlan.inner_id()]))
    }

    /// Returns the flow of this segment's data.
    pub fn of_data(p: &Packet, t: &Tcp) -> Key {
        let key = Key { src: p.src, dst: p.dst, src_port: t.src_port, dst_port: t.dst_port, tags: [0; 2] };
        key.with(TCP, [p.vlan.outer_id(), p.vlan.inner_id()])
    }
    /// Returns the flow whose data this segment acknowledges.
    #[inline]
    pub fn of_ack(p: &Packet, t: &Tcp) -> Key {
        let key = Key { src: p.dst, dst: p.src, src_port: t.dst_port, dst_port: t.src_port, tags: [0; 2] };
        key.with(TCP, [p.vlan.outer_id(), p.vlan.inner_id()])
    }
    /// Returns the flow whose data a pure ACK acknowledges.
    #[inline]
    pub fn of_plain(ack: &PlainAck) -> Key {
        let [src, dst] = [ack.dst, ack.src].map(u128::to_be_bytes);
        let key = Key { src, dst, src_port: ack.dst_port, dst_port: ack.src_port, tags: [0; 2] };
        key.with(TCP, [ack.tci.unwrap_or(0), 0])
    }
    /// Returns the key with sender and receiver exchanged.
    #[must_use]
    pub fn reversed(&self) -> Key {
        Key { src: self.dst, dst: self.src, src_port: self.dst_port, dst_port: self.src_port, ..*self }
    }
    /// Returns the key behind these VLAN tags, outer first. 0 is no tag.
    #[must_use]
    pub fn tagged(self, ids: [u16; 2]) -> Key {
        self.with(self.protocol(), ids)
    }
    /// Returns the key with another protocol and other VLAN identifiers.
    #[inline]
    fn with(self, protocol: u8, ids: [u16; 2]) -> Key {
        let tag = |bits: u8, id: u16| u16::from(bits) << 12 | id & ID;
        Key { tags: [tag(protocol >> 4, ids[0]), tag(protocol & 0xf, ids[1])], ..self }
    }
    /// Returns the key for the opening of a TCP connection while another connection has this key. No packet
    /// has such a key.
    #[must_use]
    pub fn opening(&self) -> Key {
        self.with(OPENING, self.tags)
    }
    /// Returns whether it is the key of an [opening](Key::opening).
    pub fn is_opening(&self) -> bool {
        self.protocol() == OPENING
    }
    /// Returns the IP protocol.
    pub fn protocol(&self) -> u8 {
        (self.tags[0] >> 12 << 4 | self.tags[1] >> 12) as u8
    }
    /// Returns the outer VLAN identifier, 0 for untagged.
    pub fn vlan(&self) -> u16 {
        self.tags[0] & ID
    }
    /// Returns the inner VLAN identifier, 0 for at most one tag.
    pub fn inner_vlan(&self) -> u16 {
        self.tags[1] & ID
    }
    /// Returns the address of the data's sender.
    pub fn src_ip(&self) -> IpAddr {
        Ipv6Addr::from(self.src).to_canonical()
    }
    /// Returns the address of the data's receiver.
    pub fn dst_ip(&self) -> IpAddr {
        Ipv6Addr::from(self.dst).to_canonical()
    }
    /// Returns a keyed hash: folded 64×64-bit multiplications over the key's five words. Without knowledge of
    /// `seed`, addresses that share a bucket cannot be chosen.
    #[inline]
    pub fn hash(&self, seed: u64) -> u64 {
        let word = |b: &[u8; 16], at| u64::from_le_bytes(array(b, at).unwrap_or_default());
        let ports = u64::from(self.src_port) << 48
            | u64::from(self.dst_port) << 32
            | u64::from(self.tags[0]) << 16
            | u64::from(self.tags[1]);
        let mut h = seed ^ 0x9E37_79B9_7F4A_7C15;
        h = fold(h ^ word(&self.src, 0), 0xA076_1D64_78BD_642F ^ word(&self.src, 8) ^ seed.rotate_left(32));
        h = fold(h ^ word(&self.dst, 0), 0xE703_7ED1_A0B4_28DB ^ word(&self.dst, 8) ^ seed.rotate_left(16));
        fold(h ^ ports, 0x8EBC_6AF0_9C88_C6E3 ^ seed)
    }
}

/// Returns source and destination port of a packet that has them.
fn ports(bytes: &[u8], p: &Packet) -> Option<[u16; 2]> {
    if p.fragment {
        return None;
    }
    let [a, b, c, d, identifier @ ..]: [u8; 6] = array(bytes, p.l4.into())?;
    match (p.protocol, a) {
        (TCP | UDP, _) => Some([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]),
        // Echo and its answer (RFC 792, RFC 4443 §4).
        (ICMP, 8 | 0) | (ICMPV6, 128 | 129) => Some([u16::from_be_bytes(identifier); 2]),
        _ => None,
    }
}

fn fold(a: u64, b: u64) -> u64 {
    let m = u128::from(a) * u128::from(b);
    (m >> 64) as u64 ^ m as u64
}

impl core::fmt::Display for Key {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let end = SocketAddr::new;
        write!(f, "{} > {}", end(self.src_ip(), self.src_port), end(self.dst_ip(), self.dst_port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::wire::build::SegmentBuilder;
    use crate::packet::wire::Reject;

    /// The key of a frame of any IP packet.
    fn key(frame: &[u8]) -> Key {
        Key::of_packet(frame, &wire::any_packet(frame, frame.len()).unwrap())
    }

    /// An IPv4 packet (RFC 791 §3.1) from 10.0.0.1 to 10.0.0.2 in a frame.
    fn ipv4(protocol: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
        let mut header = vec![0x45, 0, 0, 20 + payload.len() as u8, 0, 7, 0, 0, 64, protocol, 0, 0];
        header[6..8].copy_from_slice(&fragment.to_be_bytes());
        header.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        let sum = !wire::checksum::sum(&header);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        [&[0; 12][..], &[8, 0], &header, payload].concat()
    }

    /// An IPv6 packet (RFC 8200 §3) from ::1 to ::2 in a frame.
    fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
        let mut header = vec![0x60, 0, 0, 0, 0, payload.len() as u8, next, 64];
        header.extend(Ipv6Addr::LOCALHOST.octets());
        header.extend(Ipv6Addr::from(2).octets());
        [&[0; 12][..], &[0x86, 0xdd], &header, payload].concat()
    }

    fn end(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn any_packet_has_a_flow() {
        let (a, b) =
            (|port| SocketAddr::from(([10, 0, 0, 1], port)), |port| SocketAddr::from(([10, 0, 0, 2], port)));
        let eight = [0x13, 0x89, 0, 80, 0xab, 0xcd, 0, 0];
        assert_eq!(key(&ipv4(17, 0, &eight)), Key::new(UDP, a(5001), b(80)));
        assert_eq!(key(&ipv4(47, 0, &eight)), Key::new(47, a(0), b(0)));
        // An echo request, and the answer, which is the reversed flow.
        let request = key(&ipv4(1, 0, &[8, 0, 0, 0, 0x12, 0x34, 0, 1]));
        assert_eq!(request, Key::new(ICMP, a(0x1234), b(0x1234)));
        let answer = key(&ipv4(1, 0, &[0, 0, 0, 0, 0x12, 0x34, 0, 1])).reversed();
        assert_eq!((answer.src_port, answer.protocol()), (request.src_port, 1));
        // Unreachable: no identifier there.
        assert_eq!(key(&ipv4(1, 0, &[3, 1, 0, 0, 0x12, 0x34, 0, 1])), Key::new(ICMP, a(0), b(0)));
        assert_eq!(
            key(&ipv6(58, &[129, 0, 0, 0, 0x12, 0x34, 0, 1])),
            Key::new(ICMPV6, end("[::1]:4660"), end("[::2]:4660"))
        );
        assert_eq!(key(&ipv4(17, 0, &[0x13, 0x89])), Key::new(UDP, a(0), b(0)), "too short for ports");
    }

    #[test]
    fn all_fragments_of_a_packet_are_of_one_flow() {
        let expected = Key::new(UDP, end("10.0.0.1:0"), end("10.0.0.2:0"));
        for fragment in [0x2000, 0x2001, 0x0007] {
            assert_eq!(key(&ipv4(17, fragment, &[1; 8])), expected);
            let frame = ipv4(17, fragment, &[1; 8]);
            assert_eq!(wire::packet(&frame, frame.len()), Err(Reject::Fragment));
        }
        // A fragment header (RFC 8200 §4.5): next header, reserved, offset, identification.
        // Its receiver takes the next header from the first fragment alone.
        for (next, field) in [(17, 1), (17, 9), (150, 9), (6, 8), (58, 16)] {
            let frame = ipv6(44, &[next, 0, 0, field, 0, 0, 0, 9, 0x13, 0x89, 0, 80]);
            assert_eq!(key(&frame), Key::new(44, end("[::1]:0"), end("[::2]:0")), "{next} {field}");
        }
    }

    /// A fragment header in a whole packet hides no ports (RFC 6946 §4).
    #[test]
    fn an_atomic_fragment_has_its_ports() {
        let frame = ipv6(44, &[17, 0, 0, 0, 0, 0, 0, 9, 0x13, 0x89, 0, 80, 0, 8, 0, 0]);
        assert_eq!(key(&frame), Key::new(UDP, end("[::1]:5001"), end("[::2]:80")));
    }

    #[test]
    fn a_glimpse_is_the_key_of_what_is_acknowledged() {
        let segment = SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).ports(1, 2);
        for frame in
            [segment.clone().build(), segment.vlan(7).build(), SegmentBuilder::v6([1; 16], [2; 16]).build()]
        {
            assert_eq!(Key::glimpse(&frame), Some(key(&frame).reversed()));
        }
        assert_eq!(Key::glimpse(&[0; 60]), None);
    }

    #[test]
    fn protocol_tags_and_openings_are_told_apart() {
        let segment = |tci: u16| {
            SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).ports(1, 2).tag(0x88a8, 0xeffe).vlan(tci).build()
        };
        let tagged = key(&segment(0x7fff));
        assert_eq!((tagged.protocol(), tagged.vlan(), tagged.inner_vlan()), (6, 0xffe, 0xfff));
        assert_eq!(tagged, key(&segment(0x0fff)), "priority is not part of it");
        let udp = tagged.with(UDP, tagged.tags);
        let all = [tagged, udp, tagged.opening(), tagged.reversed(), tagged.reversed().opening()];
        for (i, one) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|other| one != other && one.hash(1) != other.hash(1)));
        }
        let opening = tagged.opening();
        assert!(opening.is_opening() && !tagged.is_opening() && opening.reversed().is_opening());
        assert_eq!((opening.vlan(), opening.inner_vlan()), (tagged.vlan(), tagged.inner_vlan()));
        assert_eq!((size_of::<Key>(), key(&ipv4(255, 0, &[0; 8])).is_opening()), (40, false));
    }
}
