//! [`plain_ack`] and [`usual_ack`] against the parsers of the parts.

use super::super::build::{SegmentBuilder, Sum};
use super::super::*;
use super::properties::segments;
use crate::packet::frame::Checksum;
use proptest::prelude::*;

/// Reads a pure ACK of the usual layout by the separate parsers.
fn by_parts(frame: &[u8]) -> Option<PlainAck> {
    let p = packet(frame, frame.len()).ok()?;
    let t = tcp(frame, &p).ok()?;
    let o = tcp_options(frame, &p, &t).ok()?;
    let tagged = match p.vlan.count {
        0 => false,
        1 if p.vlan.tpid[0] == 0x8100 => true,
        _ => return None,
    };
    let usual = !p.has_options() && p.session(frame) == 0 && (t.header_len == 20 || o.only_timestamps);
    let pure = t.flags == Flags::ACK && t.payload_len == 0;
    let valid = checksum::verify(frame, frame.len(), &p) == Checksum::Valid;
    (usual && pure && valid).then(|| PlainAck {
        macs: array(frame, 0).unwrap(),
        tci: tagged.then_some(p.vlan.tci[0]),
        version: p.version,
        tos: p.tos,
        ttl: p.ttl,
        flow_label: p.flow_label,
        src: u128::from_be_bytes(p.src),
        dst: u128::from_be_bytes(p.dst),
        src_port: t.src_port,
        dst_port: t.dst_port,
        seq: t.seq,
        ack: t.ack,
        window: t.window,
        timestamps: o.timestamps,
    })
}

/// Pure ACKs of the usual layout.
fn usual() -> impl Strategy<Value = SegmentBuilder> {
    let ends = (any::<bool>(), any::<[[u8; 16]; 2]>(), any::<(u16, u16)>(), any::<[[u8; 6]; 2]>());
    let outer = (prop::option::of(any::<u16>()), any::<(u8, u8)>(), 0u32..0x10_0000);
    let numbers = (any::<(u32, u32)>(), any::<u16>(), prop::option::of(any::<(u32, u32)>()), 0usize..100);
    (ends, outer, numbers).prop_map(|((v6, [src, dst], ports, macs), (tci, (tos, ttl), label), numbers)| {
        let four = |a: [u8; 16]| [a[0], a[1], a[2], a[3]];
        let mut s = if v6 { SegmentBuilder::v6(src, dst) } else { SegmentBuilder::v4(four(src), four(dst)) };
        if let Some(tci) = tci {
            s = s.vlan(tci);
        }
        let ((seq, ack), window, ts, pad) = numbers;
        if let Some((value, echo)) = ts {
            s = s.ts(value, echo);
        }
        let s = s.macs(macs[0], macs[1]).ports(ports.0, ports.1).tos(tos).ttl(ttl).flow_label(label);
        s.seq(seq).ack(ack).window(window).pad_to(pad)
    })
}

/// Reads a frame in one step, also by the shorter parser where that applies.
fn read(frame: &[u8]) -> Option<PlainAck> {
    let plain = plain_ack(frame, true);
    if let Some(usual) = <&[u8; USUAL_ACK]>::try_from(frame).ok().and_then(|bytes| usual_ack(bytes, true)) {
        assert_eq!(plain, Some(usual));
    }
    plain
}

#[test]
fn untagged_ipv4_with_timestamps_is_what_is_usual() {
    let s = SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).flags(Flags::ACK).ack(7);
    let frame = |s: &SegmentBuilder| -> [u8; USUAL_ACK] { s.build().try_into().unwrap() };
    let usual = s.clone().ts(1, 2);
    let ack = usual_ack(&frame(&usual), true).unwrap();
    assert_eq!((ack.version, ack.ack.0, ack.timestamps), (4, 7, Some(Timestamps { value: 1, echo: 2 })));
    assert_eq!(usual_ack(&frame(&usual.clone().flags(Flags::ACK.with(Flags::ECE))), true), None);
    assert_eq!(usual_ack(&frame(&s.clone().pad_to(USUAL_ACK)), true), None, "no timestamps");
    let partial = frame(&usual.checksum(Sum::Partial));
    assert_eq!((usual_ack(&partial, true), usual_ack(&partial, false)), (None, Some(ack)));
}

proptest! {
    #[test]
    fn a_usual_ack_is_read_as_its_parts_are(s in usual()) {
        let frame = s.build();
        let read = read(&frame);
        prop_assert!(read.is_some());
        prop_assert_eq!(read, by_parts(&frame));
        // A checksum that is still to be completed matters only if it is verified.
        let partial = s.clone().checksum(Sum::Partial).build();
        prop_assert_eq!(plain_ack(&partial, false), read);
    }

    #[test]
    fn one_byte_off_it_is_read_as_its_parts_are(s in usual(), at in any::<prop::sample::Index>(), byte: u8) {
        let mut frame = s.build();
        let at = at.index(frame.len());
        frame[at] = byte;
        prop_assert_eq!(read(&frame), by_parts(&frame));
        let cut = &frame[..at];
        prop_assert_eq!(plain_ack(cut, true), by_parts(cut));
    }

    #[test]
    fn of_any_segment_it_says_what_its_parts_say_or_nothing(s in segments(), ack: bool) {
        let s = if ack { s.flags(Flags::ACK).payload(0) } else { s };
        let frame = s.build();
        prop_assert_eq!(plain_ack(&frame, true), by_parts(&frame));
    }

    #[test]
    fn options_of_any_kind_are_told_apart(options in prop::collection::vec(0u8..12, 0..13)) {
        let frame = SegmentBuilder::v4([1; 4], [2; 4]).raw_options(&options).build();
        prop_assert_eq!(plain_ack(&frame, true), by_parts(&frame));
    }
}
