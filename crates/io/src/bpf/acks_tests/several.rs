//! Several engines: which of them a packet comes to.

use super::rig::*;
use crate::bpf::{AcksOptions, Home, Hook};
use weir_core::gateway::Verdict;
use weir_core::steer::slot_flag::SCALED;
use weir_core::steer::Fields;
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::Flags;

const IN: Hook = Hook::Ingress;
const OUT: Hook = Hook::Egress;
const ENGINES: usize = 3;

fn home(address: [u8; 16], bits: u8, engine: u32) -> Home {
    Home { address, bits, engine }
}

/// `B` is on the LAN of engine 1 where packets come in, and `A` on that of engine 2 where they leave; so is
/// all IPv6 of `A6`'s network.
fn homes() -> [Home; 3] {
    let (a, b) = (A.to_ipv6_mapped().octets(), B.to_ipv6_mapped().octets());
    [home(b, 128, 1), home(a, 120, 2), home(A6.octets(), 32, 2)]
}

fn rig() -> Rig {
    let rig = Rig::new(AcksOptions { engines: ENGINES as u32, tallies: 4, ..options() });
    rig.acks.homes().unwrap().expect("of several").replace(&homes()).unwrap();
    rig
}

/// Returns the number of records that each engine has got of a frame.
fn got(rig: &mut Rig, hook: Hook, segment: &SegmentBuilder) -> [usize; ENGINES] {
    rig.hook(hook, &segment.build(), 0);
    std::array::from_fn(|number| rig.records_of(number).len())
}

fn ack(segment: SegmentBuilder) -> SegmentBuilder {
    segment.seq(1000).ack(1300).window(100).ts(1000, 7)
}

#[test]
fn an_address_on_the_lan_has_an_engine() {
    if !privileged() {
        return;
    }
    let mut rig = rig();
    for kind in [Flags::SYN, Flags::SYN | Flags::ACK, Flags::ACK, Flags::RST, Flags::FIN | Flags::ACK] {
        let segment = v4().flags(kind);
        assert_eq!(got(&mut rig, IN, &segment), [0, 1, 0], "{kind:?}");
        assert_eq!(got(&mut rig, OUT, &segment), [0, 0, 1], "{kind:?}");
        assert_eq!(got(&mut rig, OUT, &v6().flags(kind)), [0, 0, 1], "{kind:?}");
        // No prefix tells of them.
        assert_eq!(got(&mut rig, IN, &v6().flags(kind)), [1, 0, 0], "{kind:?}");
        assert_eq!(
            got(&mut rig, OUT, &SegmentBuilder::v4([8, 0, 1, 1], B).flags(kind)),
            [1, 0, 0],
            "{kind:?}"
        );
    }
}

/// RFC 4632: the longest prefix tells.
#[test]
fn a_prefix_that_moves_takes_its_addresses_along() {
    if !privileged() {
        return;
    }
    let mut rig = rig();
    let list = rig.acks.homes().unwrap().unwrap();
    let [b, a, a6] = homes();
    list.replace(&[b, a, a6, home(a.address, 128, 1)]).unwrap();
    assert_eq!(got(&mut rig, OUT, &v4()), [0, 1, 0]);
    assert_eq!(got(&mut rig, OUT, &SegmentBuilder::v4([8, 0, 0, 9], B)), [0, 0, 1]);
    list.replace(&[b, Home { engine: 0, ..a }]).unwrap();
    assert_eq!(got(&mut rig, OUT, &v4()), [1, 0, 0]);
    assert_eq!(got(&mut rig, OUT, &v6()), [1, 0, 0], "a6 is not in the list any more");
    assert_eq!(got(&mut rig, IN, &v4()), [0, 1, 0]);
}

/// Until it says that it has given it up.
#[test]
fn a_flow_stays_with_the_engine_that_has_its_slot() {
    if !privileged() {
        return;
    }
    let mut rig = rig();
    let slot = rig.control_of(1, key4(0, 0), 3, SCALED);
    // It is the fourth of the second engine's eight.
    assert!(std::ptr::eq(slot, &rig.acks.slots()[11]));
    assert_eq!(got(&mut rig, OUT, &ack(v4())), [0, 1, 0]);
    slot.close();
    assert_eq!(got(&mut rig, OUT, &ack(v4())), [0, 0, 1]);
    // Its next engine takes it up; what the one before says late changes nothing.
    rig.control_of(2, key4(0, 0), 3, SCALED);
    rig.acks.apply_of(1, &[Verdict::Forget { ack_key: key4(0, 0), slot: 3, tag: 4 }]).unwrap();
    assert_eq!(got(&mut rig, OUT, &ack(v4())), [0, 0, 1]);
    assert_eq!(rig.acks.counters().unwrap().taken, 3);
    assert_eq!(rig.acks.sweep().unwrap(), 0);
}

#[test]
fn one_that_is_away_lets_its_own_flows_pass_alone() {
    if !privileged() {
        return;
    }
    let rig = rig();
    for (number, key) in [(1, key4(0, 0)), (2, key6(0, 0))] {
        rig.control_of(number, key, 0, SCALED);
    }
    rig.fresh_of(1, false);
    let (four, six) = (ack(v4()), ack(v6()));
    assert_eq!(rig.hook(OUT, &four.build(), 0).0, PASS);
    assert_eq!(rig.hook(OUT, &six.build(), 0).0, REDIRECT);
    assert_eq!(rig.acks.counters().unwrap().passed_stale, 1);
    // What passed is noted, as ever.
    assert_eq!(rig.acks.slots_of(1)[0].tx(), 1300);
    assert_eq!(rig.acks.slots_of(2)[0].tx(), 1000);
    rig.fresh_of(1, true);
    assert_eq!(rig.hook(OUT, &ack(v4()).ack(1350).build(), 0).0, REDIRECT);
}

#[test]
fn what_one_says_of_passing_flows_is_nothing_to_the_others() {
    if !privileged() {
        return;
    }
    let mut rig = rig();
    let pass = [Verdict::Pass { ack_key: key4(0, 0) }];
    // The flow is engine 2's at egress.
    for number in [0, 1] {
        rig.acks.apply_of(number, &pass).unwrap();
        assert_eq!(got(&mut rig, OUT, &ack(v4())), [0, 0, 1], "{number}");
    }
    rig.acks.apply_of(2, &pass).unwrap();
    assert_eq!(got(&mut rig, OUT, &ack(v4())), [0, 0, 0]);
    rig.acks.hooks_of(2).next_generation();
    assert_eq!(got(&mut rig, OUT, &ack(v4())), [0, 0, 1]);
}

#[test]
fn each_counts_in_tallies_of_its_own() {
    if !privileged() {
        return;
    }
    let mut rig = rig();
    let fields = Fields::COUNTED.and(Fields::SRC);
    let datagram = v4().udp().payload(100);
    assert_eq!(got(&mut rig, OUT, &datagram), [0, 0, 0], "nothing is counted");
    rig.acks.hooks_of(2).count([fields, Fields::NONE]);
    assert_eq!(got(&mut rig, OUT, &datagram), [0, 0, 1], "shown, since it is not known");
    assert_eq!(got(&mut rig, IN, &datagram), [0, 0, 0], "of engine 1, which counts nothing");
    let frame = datagram.build();
    let packet = weir_core::wire::any_packet(&frame, frame.len()).unwrap();
    let key = fields.of(&weir_core::flow::Key::of_packet(&frame, &packet));
    // What another engine says of the same packets is not believed.
    rig.acks.apply_of(1, &[Verdict::Count { key, tally: Some(1) }]).unwrap();
    assert_eq!(got(&mut rig, OUT, &datagram), [0, 0, 1]);
    rig.acks.apply_of(2, &[Verdict::Count { key, tally: Some(1) }]).unwrap();
    assert_eq!(got(&mut rig, OUT, &datagram), [0, 0, 0]);
    let packets = |tally: &weir_core::steer::Tally| tally.counted().packets;
    let counted: Vec<u64> = rig.acks.tallies().iter().map(packets).collect();
    // The second of the third engine's four.
    assert_eq!(counted, [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
}

#[test]
fn only_the_engine_that_gets_something_is_woken() {
    if !privileged() {
        return;
    }
    let rig = rig();
    let sleeps = |number: usize| rig.acks.hooks_of(number).sleep(&rig.rings[number]);
    assert!((0..ENGINES).all(sleeps));
    rig.hook(IN, &v4().build(), 0);
    let readable: Vec<bool> =
        rig.rings.iter().map(|ring| crate::sys::epoll::is_readable(std::os::fd::AsFd::as_fd(ring))).collect();
    assert_eq!(readable, [false, true, false]);
}
