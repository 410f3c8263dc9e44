//! Giant segments, which stand for several packets: those of virtual machines do not say for how many.

use super::bound::{bounded, LIMIT};
use super::rig::*;
use crate::bpf::Hook;
use weir_core::gateway::Verdict;
use weir_core::rate::Rate;
use weir_core::steer::Limit;
use weir_core::wire::build::SegmentBuilder;

/// A class of 1 Gbit/s: all of these pass.
const WIDE: Limit = Limit { most: Some(Rate::mbit(1_000)), ..LIMIT };

/// Bytes and packets of a class, of TCP and others.
fn counted(rig: &Rig) -> (u64, u64) {
    let (tcp, others) = (rig.acks.bounds_of(0)[0].passed(), rig.acks.tallies()[0].counted());
    (tcp.free + others.bytes, tcp.packets + others.packets)
}

/// Payload of 2,900 bytes in packets of 1,000 are three, and the headers of two more (RFC 9293: 20 bytes, RFC
/// 768: 8, RFC 791: 20).
#[test]
fn giants_cost_what_their_packets_do() {
    if !privileged() {
        return;
    }
    let s = || SegmentBuilder::v4(B, A).ports(80, 5001).payload(2_900);
    let tagged = SegmentBuilder::v6(B6, A6).ports(80, 5001).payload(2_900).vlan(5).udp();
    let kinds = [(s(), 40), (s().ts(1, 2), 52), (s().udp(), 28), (tagged, 48)];
    for (segment, headers) in kinds {
        for said in [0, 3] {
            let rig = bounded(WIDE);
            let frame = segment.build();
            assert_eq!(rig.giant(Hook::Egress, &frame, 1_000, said).0, PASS);
            assert_eq!(counted(&rig), (2_900 + 3 * headers, 3), "{headers}, {said}");
            let counters = rig.acks.counters().unwrap();
            assert_eq!((counters.packets_out, counters.bytes_out), (3, frame.len() as u64 + 2 * 66));
        }
    }
}

/// A virtual machine's giant leaves whole, however short its IP header says that it is (`inet_gso_segment()`
/// writes lengths of its own).
#[test]
fn giants_do_not_hide_behind_a_short_length() {
    if !privileged() {
        return;
    }
    let rig = bounded(WIDE);
    let mut frame = SegmentBuilder::v4(B, A).ports(80, 7).udp().payload(2_900).build();
    frame[16..18].copy_from_slice(&60_u16.to_be_bytes());
    rig.giant(Hook::Egress, &frame, 1_000, 0);
    assert_eq!(counted(&rig), (2_900 + 3 * 28, 3));
}

/// 1 Mbit/s has room for 70,562 bytes: 24 times 2,900 and 28 times 3 bytes, or 8 of 1 byte a packet, each of
/// 2,900 packets.
#[test]
fn a_bound_holds_for_giants() {
    if !privileged() {
        return;
    }
    let frame = SegmentBuilder::v4(B, A).ports(80, 7).udp().payload(2_900).build();
    for (size, most) in [(1_000, 23..=25), (1, 0..=1)] {
        let rig = bounded(LIMIT);
        let passed = (0..100).filter(|_| rig.giant(Hook::Egress, &frame, size, 0).0 == PASS).count();
        assert!(most.contains(&passed), "{size}: {passed}");
    }
}

/// TCP that is left alone has a part of its own in what the class's tally counts: 2 of 3 packets.
#[test]
fn tcp_that_is_left_alone_is_told_from_unresponsive_traffic() {
    if !privileged() {
        return;
    }
    let rig = bounded(WIDE);
    let tcp = SegmentBuilder::v4(B, A).ports(80, 5001).payload(960).build();
    rig.acks.apply(&[Verdict::Count { key: key4(0, 0).reversed(), tally: Some(0) }]).unwrap();
    let datagram = SegmentBuilder::v4(B, A).ports(80, 5001).udp().payload(972).build();
    for frame in [&tcp, &datagram, &tcp] {
        assert_eq!(rig.hook(Hook::Egress, frame, 0).0, PASS);
    }
    assert_eq!(counted(&rig), (3_000, 3));
    let (bound, others) = (&rig.acks.bounds_of(0)[0], rig.acks.tallies()[0].counted());
    assert_eq!((bound.passed().untouched, bound.unresponsive(others.bytes)), (2_000, 1_000));
}

/// Interfaces count what leaves of that which goes out, and all that comes in.
#[test]
fn what_is_dropped_does_not_leave() {
    if !privileged() {
        return;
    }
    let rig = bounded(LIMIT);
    let frame = SegmentBuilder::v4(B, A).ports(80, 7).udp().payload(972).build();
    let passed = (0..200).filter(|_| rig.hook(Hook::Egress, &frame, 0).0 == PASS).count() as u64;
    (0..10).for_each(|_| drop(rig.hook(Hook::Ingress, &frame, 0)));
    let counters = rig.acks.counters().unwrap();
    assert_eq!(passed + counters.policed, 200);
    assert!((60..100).contains(&passed), "{passed}");
    assert_eq!((counters.packets_out, counters.bytes_out), (passed, 1_014 * passed));
    assert_eq!((counters.packets_in, counters.bytes_in), (10, 10_140));
}
