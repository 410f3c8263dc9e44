//! Headers that contradict themselves, one field at a time.

use super::super::build::{arp, Disguise, SegmentBuilder, Sum};
use super::super::*;
use crate::packet::frame::Checksum;
use crate::wire::Seq;

fn v4() -> SegmentBuilder {
    SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2])
}

fn v6() -> SegmentBuilder {
    SegmentBuilder::v6([1; 16], [2; 16])
}

fn parse(frame: &[u8]) -> Result<TcpOptions, Reject> {
    let p = packet(frame, frame.len())?;
    tcp_options(frame, &p, &tcp(frame, &p)?)
}

/// Sets byte `at` of the frame, and corrects the IPv4 header checksum.
fn with_byte(segment: &SegmentBuilder, at: usize, value: u8) -> Vec<u8> {
    let mut frame = segment.build();
    frame[at] = value;
    if frame[12..14] == [8, 0] {
        frame[24..26].fill(0);
        let len = 4 * (frame[14] as usize & 0xf);
        let sum = !checksum::sum(&frame[14..14 + len]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
    }
    frame
}

#[test]
fn ipv4_headers() {
    let s = v4().payload(100);
    assert!(parse(&with_byte(&s, 22, 1)).is_ok(), "any time to live");
    assert!(parse(&with_byte(&s, 20, 0x80)).is_ok(), "the reserved bit");
    for (what, at, value, expected) in [
        ("version", 14, 0x55, Reject::Malformed),
        ("header length below 20", 14, 0x44, Reject::Malformed),
        ("total length below the header's", 17, 19, Reject::Malformed),
        ("total length beyond the frame", 16, 1, Reject::Truncated),
        ("more fragments", 20, 0x20, Reject::Fragment),
        ("fragment offset", 21, 1, Reject::Fragment),
    ] {
        assert_eq!(parse(&with_byte(&s, at, value)), Err(expected), "{what}");
    }
    assert_eq!(parse(&with_byte(&v4(), 17, 39)), Err(Reject::Malformed), "no room for TCP");
    let mut frame = s.build();
    frame[24] ^= 1;
    assert_eq!(parse(&frame), Err(Reject::Malformed), "header checksum");
}

#[test]
fn ipv6_headers() {
    let s = v6().payload(100);
    assert_eq!(parse(&with_byte(&s, 14, 0x40)), Err(Reject::Malformed), "version");
    assert_eq!(parse(&with_byte(&s, 19, 0)), Err(Reject::Malformed), "no payload or a jumbogram");
    assert_eq!(parse(&with_byte(&s, 18, 1)), Err(Reject::Truncated), "longer than the frame");
    assert_eq!(parse(&with_byte(&s, 19, 19)), Err(Reject::Malformed), "no room for TCP");
    for (offset, more) in [(0, true), (1, false), (0x1fff, true)] {
        assert_eq!(parse(&v6().fragment(offset, more).build()), Err(Reject::Fragment), "{offset} {more}");
    }
    for protocol in [50, 51, 59, 135] {
        assert_eq!(parse(&v6().protocol(protocol).build()), Err(Reject::NotTcp), "{protocol}");
    }
}

/// RFC 6946 §4: a fragment with all of its packet is a whole packet. The second byte of its header and two
/// bits behind the offset are reserved (RFC 8200 §4.5).
#[test]
fn an_atomic_fragment_is_a_whole_packet() {
    let s = v6().extension(0, &[0; 6]).fragment(0, false).payload(9);
    for (at, value) in [(63, 0), (63, 200), (65, 6)] {
        let frame = with_byte(&s, at, value);
        let p = packet(&frame, frame.len()).unwrap();
        assert_eq!((p.protocol, p.l4, p.fragment, p.has_options()), (TCP, 70, false, true), "{at}: {value}");
        assert_eq!(tcp(&frame, &p).unwrap().payload_len, 9);
        assert_eq!(checksum::verify(&frame, frame.len(), &p), Checksum::Valid);
    }
    // In the other places of the field it is a fragment.
    for (at, value) in [(64, 1), (65, 8), (65, 1)] {
        assert_eq!(parse(&with_byte(&s, at, value)), Err(Reject::Fragment), "{at}: {value}");
    }
    let mut cut = s.build();
    cut.truncate(68);
    assert_eq!(packet(&cut, 200), Err(Reject::Truncated));
}

#[test]
fn giant_segments_without_a_length_end_with_the_frame() {
    // The length field of the innermost header, filled with zeros: all of it for IPv4, a jumbogram for IPv6.
    let option = [0xc2, 4, 0, 1, 0x86, 0xa0];
    for segment in [v4(), v6().extension(0, &option)] {
        let mut frame = with_byte(&segment, 17, 0);
        if frame[12..14] != [8, 0] {
            frame[18..20].fill(0);
        }
        let head = frame.len();
        assert!(packet(&frame, head).is_err());
        let p = packet(&frame, 100_000).unwrap();
        assert_eq!((p.end, tcp(&frame, &p).unwrap().payload_len), (100_000, 100_000 - head as u32));
    }
}

#[test]
fn ipv6_extension_headers_are_bounded() {
    let chain = |n| (0..n).fold(v6(), |s, _| s.extension(60, &[]));
    assert!(parse(&chain(6).build()).is_ok());
    assert_eq!(parse(&chain(7).build()), Err(Reject::Malformed));
    let late = v6().extension(60, &[]).extension(0, &[]);
    assert_eq!(parse(&late.build()), Err(Reject::Malformed), "hop-by-hop options not first");
    let long = v6().extension(60, &[]);
    assert_eq!(parse(&with_byte(&long, 55, 3)), Err(Reject::Malformed), "longer than the packet");
}

/// RFC 2516 section 4: version and type 1, code 0 in a session, a length that the frame has, PPP's protocol.
/// The other end cuts what exceeds the length (`pppoe_rcv()` of Linux).
#[test]
fn headers_of_sessions_are_not_believed() {
    for segment in [v4().payload(90).vlan(5).pppoe(7), v6().payload(90).vlan(5).pppoe(7)] {
        let frame = segment.build();
        let ip = packet(&frame, frame.len()).unwrap();
        assert_eq!((ip.l3, ip.session(&frame)), (18 + 8, 7));
        for (at, byte) in
            [(18, 0x12), (18, 0x21), (19, 1), (19, 9), (25, 0x23), (24, 0xc0), (23, frame[23] - 1)]
        {
            let frame = with_byte(&segment, at, byte);
            assert_eq!(parse(&frame), Err(Reject::NotIp), "{at}");
        }
        let none = with_byte(&segment, 21, 0);
        assert_eq!(parse(&none), Err(Reject::NotIp), "no session");
        // A length beyond the frame says nothing: where the packet ends, its own header says.
        let long = with_byte(&segment, 22, 0xff);
        assert_eq!(packet(&long, long.len()), Ok(ip));
        for cut in 18..usize::from(ip.l3) + 6 {
            assert!(packet(&frame[..cut], frame.len()).is_err(), "{cut}");
        }
        let whole = frame.len();
        assert_eq!(packet(&frame, whole - 1), Err(Reject::Truncated));
    }
}

/// Control of links and protocols (RFC 1661 section 2) and PPPoE's discovery (RFC 2516 section 5).
#[test]
fn control_of_ppp_is_told_from_what_it_carries() {
    let session = |protocol: [u8; 2]| {
        let mut frame = v4().pppoe(7).build();
        frame[20..22].copy_from_slice(&protocol);
        frame
    };
    for protocol in [[0xc0, 0x21], [0x80, 0x21], [0x80, 0x57], [0xc0, 0x23], [0xc2, 0x23]] {
        assert_eq!(network_layer(&session(protocol)), (14, Some(Control::Ppp)), "{protocol:x?}");
    }
    for protocol in [[0, 0x21], [0, 0x57], [0, 0xfd], [0x40, 0x21]] {
        assert_eq!(network_layer(&session(protocol)), (14, None), "{protocol:x?}");
    }
    let mut discovery = v4().build();
    discovery[12..14].copy_from_slice(&[0x88, 0x63]);
    assert_eq!(network_layer(&discovery).1, Some(Control::Ppp));
    assert_eq!(network_layer(&arp([10, 0, 0, 1], [10, 0, 0, 2])).1, Some(Control::Arp));
    assert_eq!(network_layer(&v4().build()).1, None);
}

#[test]
fn addresses_are_found_in_what_cannot_be_read() {
    for segment in [v4().payload(900), v6().payload(900)] {
        let right = packet(&segment.build(), segment.build().len()).unwrap();
        for disguise in Disguise::ALL {
            let frame = disguise.put_on(segment.build());
            let found = other_packet(&frame, frame.len());
            assert_eq!(found.is_some(), disguise.shows_addresses(), "{disguise:?}");
            let Some(found) = found else { continue };
            let (at, end) = (frame.len() - (right.end - u32::from(right.l3)) as usize, frame.len() as u32);
            assert_eq!((found.src, found.dst), (right.src, right.dst), "{disguise:?}");
            assert_eq!((found.protocol, found.fragment, found.end), (TCP, true, end), "{disguise:?}");
            assert_eq!(usize::from(found.l3), at, "{disguise:?}");
            // Cut anywhere, it has addresses as long as all of its header is there.
            let head = at + if right.version == 6 { 40 } else { 20 };
            assert!(
                other_packet(&frame[..head], head).is_some()
                    && other_packet(&frame[..head - 1], head).is_none()
            );
        }
    }
    let chain = (0..7).fold(v6(), |s, _| s.extension(60, &[])).build();
    let found = other_packet(&chain, chain.len()).unwrap();
    assert_eq!((found.src, found.dst, found.protocol), ([1; 16], [2; 16], 44), "as of a fragment");
    assert!(other_packet(&arp([10, 0, 0, 1], [10, 0, 0, 2]), 60).is_none());
    // What can be read is as it was.
    let datagram = v4().udp().build();
    assert_eq!(other_packet(&datagram, datagram.len()), any_packet(&datagram, datagram.len()).ok());
}

#[test]
fn tcp_headers() {
    let s = v4();
    assert_eq!(parse(&with_byte(&s, 46, 0x40)), Err(Reject::Malformed), "data offset below 5");
    assert_eq!(parse(&with_byte(&s, 46, 0x60)), Err(Reject::Malformed), "data offset beyond the packet");
    assert!(parse(&with_byte(&s, 46, 0x5f)).is_ok(), "reserved bits");
    // Ethernet padding does not make room for a longer header.
    assert_eq!(parse(&with_byte(&s.pad_to(60), 46, 0x60)), Err(Reject::Malformed));
}

#[test]
fn option_lists() {
    let list = |bytes: &[u8]| parse(&v4().raw_options(bytes).build());
    for (what, bytes) in [
        ("length 0", &[8, 0, 0, 0][..]),
        ("length 1", &[200, 1, 0, 0]),
        ("no length", &[1, 1, 1, 8]),
        ("longer than the list", &[1, 1, 8, 10]),
        ("maximum segment size", &[2, 3, 1]),
        ("window scale", &[3, 4, 1, 1]),
        ("SACK permitted", &[4, 3, 0]),
        ("SACK without blocks", &[5, 2]),
        ("half a SACK block", &[5, 6, 0, 0, 0, 1]),
        ("timestamps", &[8, 9, 0, 0, 0, 0, 0, 0, 0]),
        ("MD5", &[19, 4, 0, 0]),
        ("authentication", &[29, 3, 0]),
        ("multipath", &[30, 2]),
        ("maximum segment size twice", &[2, 4, 5, 0, 2, 4, 5, 0]),
        ("SACK permitted twice", &[4, 2, 4, 2]),
    ] {
        assert_eq!(list(bytes), Err(Reject::Malformed), "{what}");
    }
    assert!(list(&[0, 8, 0, 0]).unwrap() == TcpOptions::default(), "what follows the end is not looked at");
    assert_eq!(list(&[]).unwrap(), TcpOptions::default());
    assert!(list(&[28, 4, 0, 1]).unwrap().user_timeout);
    assert!(list(&[254, 4, 0xf9, 0x89]).unwrap().fast_open);
    assert_eq!(list(&[254, 4, 0xe2, 0xd4, 253, 2]).unwrap().unknown, Some(254));
    assert_eq!(list(&[5, 34]).map(|_| ()), Err(Reject::Malformed));
    let four = [(1, 2), (3, 4), (5, 6), (7, 8)];
    assert_eq!(
        parse(&v4().sack(&four).build()).unwrap().sack.as_slice(),
        four.map(|(l, r)| (Seq(l), Seq(r)))
    );
}

#[test]
fn nothing_is_written_where_there_is_no_tcp() {
    for frame in [v4().udp().payload(40).build(), with_byte(&v4().pad_to(60), 17, 39)] {
        let p = packet(&frame, frame.len()).unwrap();
        let mut copy = frame.clone();
        assert!(
            !set_ack(&mut copy, &p, Seq(1), Checksum::Valid)
                && !set_window(&mut copy, &p, 1, Checksum::Partial)
        );
        assert_eq!(copy, frame);
    }
    let mut frame = v4().build();
    let p = packet(&frame, frame.len()).unwrap();
    let t = tcp(&frame, &p).unwrap();
    assert!(!set_timestamps(&mut frame, &p, &t, Timestamps::default(), Checksum::Valid));
}

/// Options are read like `tcp_parse_options` of Linux: unknown ones are skipped, and one that does not fit
/// ends the search.
#[test]
fn options_are_learnt_as_an_endpoint_reads_them() {
    let read = |raw: &[u8]| {
        let frame = v4().raw_options(raw).build();
        let p = packet(&frame, frame.len()).unwrap();
        let t = tcp(&frame, &p).unwrap();
        let found = read_options(&frame, &p, &t);
        assert_eq!(tcp_options(&frame, &p, &t).ok(), (!found.malformed).then_some(found));
        found
    };
    let ts = |n: u8| [8, 10, 0, 0, 0, n, 0, 0, 0, 7];
    let stamps = |n| Some(Timestamps { value: n, echo: 7 });
    // The last of two counts.
    let found = read(&[&ts(1)[..], &ts(2), &[1, 1]].concat());
    assert_eq!((found.timestamps, found.malformed), (stamps(2), true));
    // Options before one that is too long count. Those behind it do not.
    let found = read(&[&ts(1)[..], &[3, 3, 9], &[5, 40, 2, 4, 5, 0xb4, 1]].concat());
    assert_eq!((found.timestamps, found.window_scale, found.mss), (stamps(1), Some(9), None));
    assert!(found.malformed);
    // An option of a wrong length is skipped, and an unknown one.
    let found =
        read(&[&[2, 3, 5][..], &[200, 5, 1, 2, 3], &[19, 3, 0], &[3, 3, 7], &ts(3), &[1, 1]].concat());
    assert_eq!((found.mss, found.window_scale, found.timestamps), (None, Some(7), stamps(3)));
    assert_eq!((found.unknown, found.md5, found.malformed), (Some(200), false, true));
    // A length of one, and none at all.
    for raw in [[8, 1, 3, 3], [1, 1, 1, 8]] {
        let found = read(&raw);
        assert_eq!(found, TcpOptions { malformed: true, ..TcpOptions::default() });
    }
}

#[test]
fn an_absent_payload_leaves_the_checksum_unknown() {
    for sum in [Sum::Valid, Sum::Partial, Sum::Wrong] {
        for s in [v4(), v6(), v4().udp()] {
            let (mut head, len) = s.payload(1000).checksum(sum).build_head();
            let p = packet(&head, len).unwrap();
            assert_eq!(checksum::verify(&head, len, &p), Checksum::Unknown);
            assert_eq!(checksum::quick(&head, len, &p), Checksum::Unknown);
            assert!(!checksum::complete(&mut head, len));
        }
    }
}

#[test]
fn a_udp_checksum_of_zero_is_written_as_all_ones() {
    // Two bytes of payload that bring the sum to 0xffff: the checksum is as without them.
    let sum = v4().udp().data(&[0, 0]).build();
    let s = v4().udp().data(&sum[40..42]);
    let mut frame = s.clone().checksum(Sum::Partial).build();
    let len = frame.len();
    assert!(checksum::complete(&mut frame, len));
    assert_eq!(frame[40..42], [0xff, 0xff]);
    let p = packet(&frame, len).unwrap();
    assert_eq!(checksum::verify(&frame, len, &p), Checksum::Valid);
    let none = s.checksum(Sum::Raw(0)).build();
    assert_eq!(checksum::verify(&none, len, &p), Checksum::Invalid);
}
