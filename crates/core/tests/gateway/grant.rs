//! Grants, as the gateway makes them and takes account of them. The test plays the hooks. 10 Mb/s are 1,250
//! bytes a millisecond, 12,500 a step, and 5,000 in the 4 ms to the next look.

use crate::support::*;
use weir_core::ack::{AckControl, Meter};
use weir_core::gateway::{Gateway, LAN_TAP, WAN};
use weir_core::node::{Node, PortSet};
use weir_core::rate::Rate;
use weir_core::rig::Rig;
use weir_core::time::Time;
use weir_core::wire::{Flags, Seq};

/// A flow that has just got a grant, at 1,001 ms, for all but the last 1,000 bytes of a step and what 4 ms
/// carry.
fn granted() -> Net {
    granted_with(Net::hooked(basic()))
}

fn granted_with(mut w: Net) -> Net {
    w.ack_at(ms(1_000), 1_000);
    w.ack_at(ms(1_001), 2_000);
    w.run(ms(1_001));
    assert_eq!(w.slot().granted().map(|to| to.0), Some(w.abs(2_000 + 11_500 + 5_000)));
    w
}

fn acked(w: &Net) -> u64 {
    w.rig.node().flows.flows().next().unwrap().acked_bytes
}

#[test]
fn what_has_passed_is_charged_at_the_next_look() {
    for meter in [Meter::Acked, Meter::Received] {
        let mut w = granted_with(Net::hooked(basic_with(|r| r.meter = meter)));
        w.kernel_passed(12_000);
        // Half of 17,500 bytes take 8 ms at the pace of before: the look is within 4 ms, the most, at a
        // multiple of that.
        assert_eq!(w.rig.node().next_deadline(PortSet::ALL), Some(ms(1_004)));
        assert!(w.run(ms(1_004)).is_empty());
        // 11,500 - 10,000, what 3 ms have earned, and what the next 4 will.
        assert_eq!(w.slot().granted().map(|to| to.0), Some(w.abs(12_000 + 1_500 + 3_750 + 5_000)));
        assert_eq!((acked(&w), w.debt()), (12_000, 0));
        // At the pace of the last 3 ms half of 17,500 bytes take 2.6.
        assert_eq!(w.rig.node().next_deadline(PortSet::ALL), Some(ms(1_006)));
        w.finish();
    }
}

#[test]
fn what_passed_beyond_the_credit_is_owed() {
    for meter in [Meter::Acked, Meter::Received] {
        // Two hooks at once, or one that had read the grant when it was taken back.
        let mut w = granted_with(Net::hooked(basic_with(|r| r.meter = meter)));
        w.kernel_passed(30_000);
        w.run(ms(1_004));
        // 28,000 bytes; a step less 1,000 and 3 ms cover 15,250.
        assert_eq!((w.slot().granted(), w.debt()), (None, 28_000 - 15_250));
    }
}

/// A grant is for what will have been earned by the next look: what passes sooner, and makes the look come
/// sooner, is owed.
#[test]
fn a_grant_that_is_used_up_at_once_is_not_followed_by_another() {
    // No window bounds the sender, so what is owed is what it was acknowledged, with either meter.
    for meter in [Meter::Acked, Meter::Received] {
        let mut w = granted_with(Net::hooked(basic_with(|r| r.meter = meter)));
        w.kernel_passed(18_500);
        w.ack_at(ms(1_002), 18_600);
        w.run(ms(1_002));
        // 16,500 bytes; a step less 1,000 and a millisecond cover 12,750.
        assert_eq!((w.slot().granted(), w.debt()), (None, 16_500 - 12_750));
    }
}

#[test]
fn an_engine_that_was_away_is_owed_nothing() {
    let mut w = granted();
    w.kernel_passed(300_000);
    w.rig.node_mut().flows.resync();
    w.run(ms(1_005));
    assert_eq!((acked(&w), w.debt()), (300_000, 0));
}

#[test]
fn another_engine_begins_without_grants() {
    let w = granted();
    let (records, slots) = w.shared();
    assert!(slots[0].grant(Seq(w.abs(13_500))));
    w.kernel_passed(13_000);
    slots[0].assume(|n| n.tx = Seq(w.abs(13_000)));
    let mut next = Net::with_shared(w.rig.node().flows.config().clone(), records, slots);
    assert_eq!(slots[0].granted(), None);
    // What passed meanwhile has been told; there is nothing to release.
    assert!(next.run(ms(3_000)).is_empty());
    let record = &next.rig.node().flows.records()[0];
    assert_eq!((record.held(), record.tx.0), (0, w.abs(13_000)));
}

#[test]
fn a_flow_that_is_made_another_or_none_has_no_grant() {
    // Another rate is followed with the next look.
    let mut w = granted();
    let config = config(basic_with(|r| r.rate = Rate::mbit(1)));
    w.rig.node_mut().flows.reconfigure(config).unwrap();
    w.kernel_passed(3_000);
    w.run(ms(1_005));
    // 1 Mb/s every 10 ms: a step is 1,250 bytes, less than two segments.
    assert_eq!(w.slot().granted(), None);
    // A FIN of the data's sender.
    let mut w = granted();
    let fin = w.data_segment(9_000).flags(Flags(Flags::FIN.0 | Flags::ACK.0));
    w.inject_at(ms(1_002), LAN_TAP, fin);
    w.run(ms(1_002));
    assert_eq!(w.slot().granted(), None);
    w.ack_at(ms(1_003), 5_000);
    w.run(ms(1_003));
    assert_eq!(w.slot().granted(), None);
    // Its end.
    let mut w = granted();
    w.kernel_passed(5_000);
    while !w.rig.with_cx(|gateway, cx| gateway.stop(cx)) {}
    assert_eq!(w.slot().granted(), None);
    w.finish();
}

#[test]
fn a_flow_whose_acks_carry_a_counter_has_no_grant() {
    let mut w = Net::new(basic(), None);
    w.rig = Rig::new(Gateway::hooked(config(basic())));
    let syn = Flags(Flags::SYN.0 | Flags::AE.0 | Flags::CWR.0 | Flags::ECE.0);
    w.handshake_flags(syn, Flags(Flags::SYN.0 | Flags::ACK.0 | Flags::CWR.0));
    for n in 1..1_000u32 {
        // A counter of 4: neither CWR nor ECE.
        let (at, segment) = (ms(1_000 + u64::from(n)), w.ack_segment(n * 100));
        w.inject_at(at, WAN, segment.flags(Flags(Flags::ACK.0 | Flags::AE.0)));
        w.run(at);
        assert_eq!(w.slot().granted(), None);
    }
}

#[test]
fn acks_that_others_overtook_do_not_take_the_flow_back() {
    // Two processors of the receiver: those of the one pass, those of the other come late.
    let mut w = granted();
    let renewed = w.rig.node().flows.stats().renewed;
    for n in 1..50u32 {
        w.kernel_passed(2_000 + 10 * n);
        let at = Time::from_micros(1_001_000 + 50 * u64::from(n));
        w.ack_at(at, 1_500);
        w.run(at);
    }
    assert_eq!(w.rig.node().flows.stats().renewed, renewed);
    assert_eq!(w.slot().tx(), w.abs(2_490));
}

/// Flows of a class with 100 Mb/s, of which 1 ms is kept and 4 ms are ahead: 12,500 and 50,000 bytes. A flow
/// gets half of what is free at most, and at first half of that.
#[test]
fn what_a_class_does_not_use_is_granted_to_its_flows() {
    let mut w = Net::hooked(AckControl::ack_share(Rate::mbit(100)));
    w.ack_at(ms(2_000), 1_000);
    w.run(ms(2_000));
    assert_eq!(w.slot().granted().map(|to| to.0), Some(w.abs(1_000 + (12_500 - 1_000 + 50_000) / 4)));
    w.kernel_passed(11_000);
    assert_eq!(w.rig.node().next_deadline(PortSet::ALL), Some(ms(2_001)));
    assert!(w.run(ms(2_001)).is_empty());
    assert_eq!(acked(&w), 11_000);
    // Twice as much as it used would be 80,000 in 4 ms. There are 31,250, half of which take 1.6 ms.
    assert_eq!(w.slot().granted().map(|to| to.0), Some(w.abs(11_000 + (12_500 + 50_000) / 2)));
    assert_eq!(w.rig.node().next_deadline(PortSet::ALL), Some(ms(2_003)));
    // What is ahead of the rate ends it: nothing is granted, nor for 16 round trips.
    w.ack_at(ms(2_002), 60_000);
    w.run(ms(2_100));
    assert_eq!((w.slot().granted(), acked(&w)), (None, 60_000));
    w.ack_at(ms(2_200), 61_000);
    w.run(ms(2_200));
    assert_eq!((w.slot().granted(), acked(&w)), (None, 61_000));
    w.ack_at(ms(6_000), 62_000);
    w.run(ms(6_000));
    assert!(w.slot().granted().is_some());
    w.finish();
}
