//! Frames made by scapy 2.8 (`vectors.py` beside this file), and the examples of the RFCs.

use super::super::build::SegmentBuilder;
use super::super::*;
use crate::packet::frame::Checksum;
use crate::wire::Seq;

const VECTORS: &str = include_str!("vectors.txt");

/// Returns the frame of this name.
pub(super) fn vector(name: &str) -> Vec<u8> {
    all().find(|(n, _)| *n == name).unwrap_or_else(|| panic!("no vector {name}")).1
}

/// Returns all frames with their names.
pub(super) fn all() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    VECTORS.lines().map(|line| {
        let (name, hex) = line.split_once(' ').unwrap();
        let digit = |i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap();
        (name, (0..hex.len()).step_by(2).map(digit).collect())
    })
}

fn parse(name: &str) -> (Vec<u8>, Packet, Tcp, TcpOptions) {
    let frame = vector(name);
    let p = packet(&frame, frame.len()).unwrap_or_else(|e| panic!("{name}: {e:?}"));
    let t = tcp(&frame, &p).unwrap_or_else(|e| panic!("{name}: {e:?}"));
    let o = tcp_options(&frame, &p, &t).unwrap_or_else(|e| panic!("{name}: {e:?}"));
    (frame, p, t, o)
}

fn reject(name: &str) -> Reject {
    let frame = vector(name);
    packet(&frame, frame.len()).and_then(|p| tcp(&frame, &p)).unwrap_err()
}

const TS: Timestamps = Timestamps { value: 0xdead_beef, echo: 0x0102_0304 };
const BLOCK: (Seq, Seq) = (Seq(0xffff_ff00), Seq(0x10));
const V4_SRC: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1];
const V4_DST: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 51, 100, 2];
const V6_SRC: [u8; 16] = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const V6_DST: [u8; 16] = [0x20, 1, 0x0d, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

/// Returns the fields that `vectors.py` puts in the ACKs without tags.
fn ack_fields() -> AckFields {
    AckFields {
        macs: [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1],
        vlan: Vlan::NONE,
        session: 0,
        version: 4,
        src: V4_SRC,
        dst: V4_DST,
        tos: 0,
        ttl: 57,
        flow_label: 0,
        src_port: 443,
        dst_port: 50_000,
        seq: Seq(0x0102_0304),
        ack: Seq(0xffff_fff0),
        flags: Flags::ACK,
        window: 501,
        timestamps: None,
        ecn: None,
        sack: None,
    }
}

#[test]
fn rfc_1071_section_3_example() {
    let data = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
    assert_eq!(checksum::sum(&data), 0xddf2);
}

#[test]
fn rfc_1624_section_4_example() {
    assert_eq!(checksum::update16(0xdd2f, 0x5555, 0x3285), 0x0000);
}

#[test]
fn every_field_of_an_ipv4_ack() {
    let (_, p, t, o) = parse("v4_ack_ts");
    let expected = Packet {
        vlan: Vlan::NONE,
        l3: 14,
        version: 4,
        src: V4_SRC,
        dst: V4_DST,
        protocol: 6,
        l4: 34,
        end: 66,
        tos: 0x28,
        ttl: 57,
        flow_label: 0,
        fragment: false,
    };
    assert_eq!(p, expected);
    let expected = Tcp {
        src_port: 443,
        dst_port: 50_000,
        seq: Seq(0x0102_0304),
        ack: Seq(0xffff_fff0),
        flags: Flags::ACK,
        window: 501,
        urgent: 0,
        header_len: 32,
        payload_len: 0,
    };
    assert_eq!(t, expected);
    assert_eq!(o, TcpOptions { timestamps: Some(TS), only_timestamps: true, ..TcpOptions::default() });
}

#[test]
fn every_field_of_a_tagged_ipv6_ack() {
    let (_, p, t, o) = parse("qinq_v6_ack_ts");
    let vlan = Vlan { count: 2, tpid: [0x88a8, 0x8100], tci: [7, 0xeffe] };
    let expected = Packet {
        vlan,
        l3: 22,
        version: 6,
        src: V6_SRC,
        dst: V6_DST,
        protocol: 6,
        l4: 62,
        end: 94,
        tos: 0xb8,
        ttl: 61,
        flow_label: 0xabcde,
        fragment: false,
    };
    assert_eq!(p, expected);
    assert_eq!((p.vlan.outer_id(), p.vlan.inner_id()), (7, 4094));
    assert_eq!((t.ack.0, o.timestamps), (0xffff_fff0, Some(TS)));
}

/// A packet in a session of PPPoE is read as it would be without, with all offsets behind the session's
/// header.
#[test]
fn packets_in_sessions_of_pppoe_are_read() {
    let (frame, p, t, o) = parse("pppoe_v4_ack_ts");
    let (_, plain, ..) = parse("v4_ack_ts");
    let (l3, l4, end) = (plain.l3 + 8, plain.l4 + 8, plain.end + 8);
    assert_eq!(p, Packet { l3, l4, end, tos: 0, ..plain });
    assert_eq!((p.session(&frame), t.ack.0, o.timestamps), (0x1234, 0xffff_fff0, Some(TS)));
    assert!(
        Control::Ppp == network_layer(&vector("pppoe_lcp")).1.unwrap() && p.charged_len(frame.len()) == 52
    );
    let (frame, p, t, _) = parse("pppoe_v6_data");
    let (plain_frame, plain, plain_tcp, _) = parse("v6_data");
    assert_eq!((p.session(&frame), plain.session(&plain_frame), t), (0xfffe, 0, plain_tcp));
    let (frame, p, _, o) = parse("qinq_pppoe_v6_ack_ts");
    assert_eq!((p.vlan.outer_id(), p.vlan.inner_id(), p.session(&frame)), (7, 4094, 0xf00f));
    assert_eq!((p.l3, p.l4, o.timestamps), (14 + 8 + 8, 14 + 8 + 8 + 40, Some(TS)));
    let frame = vector("pppoe_v4_udp");
    let p = packet(&frame, frame.len()).unwrap();
    assert_eq!((p.protocol, p.vlan.outer_id(), p.session(&frame)), (UDP, 100, 1));
}

#[test]
fn data_flags_and_urgent_pointer() {
    let (_, p, t, o) = parse("v4_data_sack");
    assert_eq!((p.ecn(), t.payload_len, t.flags), (1, 37, Flags::PSH | Flags::ACK));
    assert_eq!(o.sack.as_slice(), [(Seq(10), Seq(20)), (Seq(30), Seq(40))]);
    let (_, p, t, _) = parse("v6_data");
    assert_eq!((p.tos, p.flow_label), (2, 0x12345));
    assert_eq!((t.flags, t.urgent, t.payload_len), (Flags::FIN | Flags::ACK, 9, 37));
    let (_, p, t, _) = parse("v4_ip_options");
    assert_eq!((p.l4, t.payload_len), (38, 37));
}

#[test]
fn options_of_a_handshake() {
    let (_, _, t, o) = parse("v4_syn");
    assert_eq!(t.flags, Flags::SYN | Flags::ECE | Flags::CWR);
    assert_eq!((o.mss, o.sack_permitted), (Some(1460), true));
    // Sent as 15. RFC 7323 §2.3 says to take 14.
    assert_eq!(o.window_scale, Some(14));
    let (_, _, _, o) = parse("v4_syn_fast_open");
    assert!(o.fast_open);
}

#[test]
fn options_that_forbid_rewriting() {
    let (_, _, _, o) = parse("v4_md5");
    assert!(o.md5 && !o.ao && !o.mptcp);
    let (_, _, _, o) = parse("v4_ao");
    assert!(o.ao && !o.md5 && !o.mptcp);
    let (_, _, _, o) = parse("v4_mptcp");
    assert!(o.mptcp && !o.md5 && !o.ao);
    let (_, _, _, o) = parse("v4_unknown_option");
    assert_eq!((o.unknown, o.accecn, o.timestamps), (None, true, Some(TS)));
}

#[test]
fn ipv6_extension_headers_are_stepped_over() {
    let (_, p, t, o) = parse("v6_extensions");
    assert_eq!((p.l4, p.protocol), (14 + 40 + 8 + 8 + 24, 6));
    assert_eq!((t.payload_len, o.timestamps), (37, Some(TS)));
    let frame = vector("v6_source_routed");
    let p = packet(&frame, frame.len()).unwrap();
    assert_eq!((p.protocol, p.l4), (43, 54));
}

#[test]
fn what_is_not_tcp_is_rejected_for_what_it_is() {
    assert_eq!(reject("arp"), Reject::NotIp);
    assert_eq!(reject("three_tags"), Reject::NotIp);
    for name in ["v4_first_fragment", "v4_last_fragment", "v6_fragment"] {
        assert_eq!(reject(name), Reject::Fragment, "{name}");
    }
    assert_eq!(reject("pppoe_lcp"), Reject::NotIp);
    for name in ["v4_udp", "v4_icmp", "v6_udp", "v6_source_routed", "pppoe_v4_udp"] {
        assert_eq!(reject(name), Reject::NotTcp, "{name}");
    }
}

#[test]
fn padding_is_not_payload() {
    let (frame, p, t, _) = parse("v4_padded");
    assert_eq!((frame.len(), p.end, t.payload_len), (60, 54, 0));
}

#[test]
fn checksums_of_scapy_are_valid_and_are_what_fill_computes() {
    for (name, frame) in all() {
        let Ok(p) = packet(&frame, frame.len()) else { continue };
        let expected = match name {
            "v4_icmp" | "v6_source_routed" | "v4_udp_no_checksum" => Checksum::Invalid,
            _ => Checksum::Valid,
        };
        assert_eq!(checksum::verify(&frame, frame.len(), &p), expected, "{name}");
        assert_eq!(checksum::quick(&frame, frame.len(), &p), Checksum::Unknown, "{name}");
        if expected == Checksum::Valid {
            let mut filled = frame.clone();
            let field = p.l4 as usize + if p.protocol == TCP { 16 } else { 6 };
            filled[field..field + 2].copy_from_slice(&[0x12, 0x34]);
            assert!(checksum::fill(&mut filled, &p));
            assert_eq!(filled, frame, "{name}");
        }
    }
}

#[test]
fn generated_acks_are_scapys_byte_for_byte() {
    let qinq = Vlan { count: 2, tpid: [0x88a8, 0x8100], tci: [7, 0xeffe] };
    let q = Vlan { count: 1, tpid: [0x8100, 0], tci: [0x6064, 0] };
    let v4 = ack_fields();
    let v6 = AckFields { version: 6, src: V6_SRC, dst: V6_DST, ttl: 61, ..v4 };
    let timestamps = Some(TS);
    let longest = AckFields { vlan: qinq, tos: 0xb8, flow_label: 0xabcde, timestamps, ..v6 };
    for (name, fields) in [
        ("v4_ack", v4),
        ("v4_ack_ts", AckFields { tos: 0x28, timestamps, ..v4 }),
        ("vlan_v4_ack_ts", AckFields { vlan: q, timestamps, ..v4 }),
        ("v6_ack", v6),
        ("qinq_v6_ack_ts", longest),
        ("pppoe_v4_ack_ts", AckFields { session: 0x1234, timestamps, ..v4 }),
        ("qinq_pppoe_v6_ack_ts", AckFields { session: 0xf00f, ..longest }),
        ("v4_ack_sack", AckFields { sack: Some(BLOCK), ..v4 }),
        ("v6_ack_ts_sack", AckFields { timestamps, sack: Some(BLOCK), ..v6 }),
        ("qinq_v6_ack_ts_sack", AckFields { sack: Some((Seq(1), Seq(2))), ..longest }),
    ] {
        let mut expected = vector(name);
        expected.resize(expected.len().max(60), 0);
        // Left over from an earlier use of the chunk. None of it may leak into the padding.
        let mut buf = [0xaa; MAX_ACK_LEN];
        let len = emit_ack(&mut buf, &fields);
        assert_eq!(len, ack_len(&fields));
        assert_eq!(buf[..len], expected, "{name}");
        assert!(buf[len..].iter().all(|&b| b == 0xaa));
        assert_eq!(emit_ack(&mut buf[..len - 1], &fields), 0, "{name}");
    }
    // Three counters of 24 bits and a no-operation (RFC 9768 figure 3).
    let ecn = Some(EcnBytes::of_option(174, &[0, 0, 1, 0, 0, 2, 0, 0, 3]));
    assert_eq!(ack_len(&AckFields { sack: Some(BLOCK), ecn, session: 1, ..longest }), MAX_ACK_LEN);
}

/// Fields in the orders of RFC 9768 table 5, each list padded to four bytes.
#[test]
fn generated_acks_carry_counters_as_they_came() {
    for (kind, data) in [
        (172, &[0, 0, 1, 0, 0, 2, 0, 0, 3][..]),
        (174, &[0, 0, 1, 0, 0, 2, 0, 0, 3]),
        (172, &[1, 2, 3, 4, 5, 6]),
        (174, &[1, 2, 3]),
        (172, &[]),
    ] {
        let ecn = EcnBytes::of_option(kind, data);
        let fields = AckFields { ecn: Some(ecn), timestamps: Some(TS), ..ack_fields() };
        let mut buf = [0xaa; MAX_ACK_LEN];
        let len = emit_ack(&mut buf, &fields);
        let packet = packet(&buf[..len], len).unwrap();
        let tcp = tcp(&buf[..len], &packet).unwrap();
        assert_eq!(checksum::verify(&buf[..len], len, &packet), Checksum::Valid);
        assert_eq!(tcp_options(&buf[..len], &packet, &tcp).unwrap().accecn, !data.is_empty());
        let read = EcnBytes::read(&buf[..len], &packet, &tcp);
        assert_eq!(read, Some(ecn).filter(|ecn| !ecn.is_empty()), "{kind}");
    }
}

#[test]
fn the_builder_and_scapy_agree() {
    let v4 = || SegmentBuilder::v4([192, 0, 2, 1], [198, 51, 100, 2]).ports(443, 50_000).seq(0x0102_0304);
    let v6 = || {
        SegmentBuilder::v6(V6_SRC, V6_DST).ports(443, 50_000).seq(0x0102_0304).ack(0xffff_fff0).window(501)
    };
    let v4_ack = v4().ack(0xffff_fff0).window(501).ttl(57);
    assert_eq!(v4_ack.build(), vector("v4_ack"));
    let vlan = v4_ack.clone().vlan(0x6064).ts(TS.value, TS.echo);
    assert_eq!(vlan.build(), vector("vlan_v4_ack_ts"));
    let qinq = v6().ttl(61).tag(0x88a8, 7).vlan(0xeffe).tos(0xb8).flow_label(0xabcde).ts(TS.value, TS.echo);
    assert_eq!(qinq.build(), vector("qinq_v6_ack_ts"));
    let data = v6().tos(2).flow_label(0x12345).flags(Flags::FIN | Flags::ACK).urgent(9).payload(37);
    assert_eq!(data.build(), vector("v6_data"));
    assert_eq!(data.pppoe(0xfffe).build(), vector("pppoe_v6_data"));
    assert_eq!(v4_ack.pppoe(0x1234).ts(TS.value, TS.echo).build(), vector("pppoe_v4_ack_ts"));
    let udp = SegmentBuilder::v6(V6_SRC, V6_DST).ports(53, 4000).udp().payload(37);
    assert_eq!(udp.build(), vector("v6_udp"));
    let mut arp = vector("arp");
    arp.resize(60, 0);
    assert_eq!(build::arp([192, 0, 2, 1], [192, 0, 2, 2]), arp);
}
