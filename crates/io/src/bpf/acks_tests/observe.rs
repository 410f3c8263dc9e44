//! Hooks that let everything pass as it came, and QUIC apart from other traffic that ACKs cannot slow.

use super::bound::{bounded, bounded_with, LIMIT};
use super::rig::*;
use crate::bpf::{Fate, Hook};
use weir_core::rate::Rate;
use weir_core::steer::{slot_flag, Limit};
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::{self, Flags};

#[test]
fn an_observed_frame_passes_as_it_came_and_is_shown() {
    if !privileged() {
        return;
    }
    let mut rig = bounded_with(LIMIT, true);
    rig.control(key4(0, 0), 3, slot_flag::SCALED | slot_flag::SIZED);
    let back = v4().seq(1_000).window(100).flags(Flags::ACK);
    let syn_ack = v4().ports(9, 80).seq(7).flags(Flags::SYN | Flags::ACK).mss(1_460);
    let frames = [
        // An ACK that would be taken, one of an unknown flow, data that would be set back, the
        // answer to a SYN, and a RST behind what would be held.
        (back.clone().ack(1_200), true),
        (v4().ports(4_000, 80).seq(5).ack(6).flags(Flags::ACK), true),
        (back.clone().ack(1_300).payload(100), true),
        (syn_ack, true),
        (v4().seq(1_100).flags(Flags::RST), true),
    ];
    for (frame, shown) in frames {
        let frame = frame.build();
        assert_eq!(rig.hook(Hook::Ingress, &frame, 0), (PASS, frame.clone()));
        let records = rig.records();
        assert_eq!(!records.is_empty(), shown, "{records:?}");
        assert!(records.iter().all(|record| record.fate == Fate::Passed), "{records:?}");
    }
    // 1 Mbit/s has room for 70 packets of 1,000 bytes: all others would be dropped, and pass.
    let datagram = SegmentBuilder::v4(B, A).ports(7, 8).payload(972).udp().build();
    for _ in 0..400 {
        assert_eq!(rig.hook(Hook::Egress, &datagram, 0), (PASS, datagram.clone()));
    }
    let dropped = rig.acks.tallies_of(0)[0].counted().dropped + rig.acks.bounds_of(0)[0].passed().dropped;
    // A machine that is slow serves more meanwhile.
    assert!((1..=330).contains(&dropped), "{dropped}");
}

#[test]
fn quic_is_counted_apart_as_the_core_knows_it() {
    if !privileged() {
        return;
    }
    let fast = Limit { most: Some(Rate::mbit(10_000)), ..LIMIT };
    let rig = bounded(fast);
    let padded = |head: [u8; 5]| [head.as_slice(), [7; 95].as_slice()].concat();
    let heads = [
        [0x45, 7, 7, 7, 7],
        [0x05, 7, 7, 7, 7],
        [0xc3, 0, 0, 0, 1],
        [0x83, 0, 0, 0, 1],
        [0xc3, 0x6b, 0x33, 0x43, 0xcf],
        [0xc3, 0, 0, 0, 7],
        [22, 254, 253, 0, 0],
        [20, 254, 255, 0, 0],
        [19, 254, 253, 0, 0],
        [26, 254, 253, 0, 0],
        [27, 254, 253, 0, 0],
        [22, 3, 3, 0, 0],
        [1, 0, 0, 0, 9],
        [4, 0, 0, 0, 9],
        [4, 0, 1, 0, 9],
        [5, 0, 0, 0, 9],
        [0, 0, 0, 0, 9],
    ];
    let ports = [(443, 50_000), (50_000, 443), (50_000, 4_433)];
    let sent = heads.into_iter().flat_map(|head| ports.map(|(from, to)| (from, to, head)));
    for (from, to, head) in sent {
        let payload = &padded(head);
        let packet = SegmentBuilder::v4(B, A).ports(from, to).data(payload).udp().build();
        let is_quic = wire::is_quic(&packet, &wire::other_packet(&packet, packet.len()).unwrap());
        let before = rig.acks.bounds_of(0)[0].passed().quic;
        for frame in [SegmentBuilder::v4(B, A), SegmentBuilder::v6(B6, A6)] {
            let frame = frame.ports(from, to).data(payload).udp().build();
            assert_eq!(rig.hook(Hook::Egress, &frame, 0).0, PASS);
        }
        // 100 bytes, UDP's header, and those of IPv4 and of IPv6.
        let expected = if is_quic { 2 * 108 + 20 + 40 } else { 0 };
        assert_eq!(rig.acks.bounds_of(0)[0].passed().quic - before, expected, "{from} {to} {head:?}");
    }
}
