mod chains;
mod malformed;
mod plain;
mod properties;
mod vectors;

use super::build::{SegmentBuilder, Sum};
use super::*;
use crate::packet::frame::Checksum;

#[test]
fn a_segment_is_read_back_as_built() {
    let frame = SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2])
        .vlan(0x2005)
        .ports(5000, 80)
        .seq(100)
        .ack(0xffff_fff0)
        .flags(Flags::ACK | Flags::PSH | Flags::AE)
        .window(1234)
        .ts(7, 8)
        .sack(&[(1, 2), (3, 4)])
        .payload(33)
        .build();
    let p = packet(&frame, frame.len()).unwrap();
    assert_eq!((p.vlan.outer_id(), p.vlan.inner_id(), p.l3, p.l4), (5, 0, 18, 38));
    let t = tcp(&frame, &p).unwrap();
    assert_eq!((t.src_port, t.dst_port, t.seq.0, t.ack.0, t.window), (5000, 80, 100, 0xffff_fff0, 1234));
    assert_eq!((t.flags, t.payload_len), (Flags::ACK | Flags::PSH | Flags::AE, 33));
    let o = tcp_options(&frame, &p, &t).unwrap();
    assert_eq!(o.timestamps, Some(Timestamps { value: 7, echo: 8 }));
    assert_eq!(o.sack.as_slice(), [(Seq(1), Seq(2)), (Seq(3), Seq(4))]);
    assert_eq!(checksum::verify(&frame, frame.len(), &p), Checksum::Valid);
}

#[test]
fn a_partial_checksum_is_completed() {
    for base in [SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]), SegmentBuilder::v6([1; 16], [2; 16])] {
        for base in [base.clone(), base.udp()] {
            let mut frame = base.clone().payload(5).checksum(Sum::Partial).build();
            let len = frame.len();
            let p = packet(&frame, len).unwrap();
            assert_eq!(checksum::quick(&frame, len, &p), Checksum::Partial);
            assert!(checksum::complete(&mut frame, len));
            assert_eq!(frame, base.payload(5).build());
        }
    }
}
