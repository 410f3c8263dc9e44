//! Counting of packets that ACKs cannot slow: random packets are read, and counted, as by the core.

use super::random::Random;
use super::rig::*;
use crate::bpf::{AcksOptions, Fate, Hook};
use crate::sys::clock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use weir_core::flow::Key;
use weir_core::gateway::Verdict;
use weir_core::rate::Rate;
use weir_core::steer::{Counted, Fields, Tally};
use weir_core::time::{Duration, Time};
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::{self, Flags, Packet};

const TALLIES: u32 = 4;
/// Time of `Tally::burst`.
const BURST: Duration = Duration::from_millis(20);

fn rig() -> Rig {
    Rig::new(AcksOptions { tallies: TALLIES, ..options() })
}

fn all() -> Fields {
    Fields((1 << 7) - 1)
}

/// A packet of any kind, now and then of a kind that is not read as a whole.
fn packet(random: &mut Random) -> Vec<u8> {
    let port = |random: &mut Random| 5_000 + random.below(2) as u16;
    let (src, dst) = (random.below(2) as u8, random.below(2) as u8);
    let mut s = match random.percent(50) {
        true => SegmentBuilder::v4([8, 0, 0, src], [10, 0, 0, dst]),
        false => SegmentBuilder::v6([src; 16], [0x40 | dst; 16]),
    };
    s = s.ports(port(random), port(random)).payload(random.below(1400) as usize);
    if random.percent(20) {
        s = s.vlan(random.pick(&[5, 6, 0x2005]));
    }
    if random.percent(20) {
        s = s.extension(random.pick(&[0, 43, 60]), &[0, random.below(2) as u8, 0, 0, 0, 0]);
    }
    if random.percent(5) {
        s = s.extension(60, &[0; 6]).extension(0, &[0; 6]); // which must come first
    }
    if random.percent(20) {
        s = s.fragment(random.below(3) as u16, random.percent(50));
    }
    let protocol = random.pick(&[17, 17, 1, 58, 47, 50, 132, 255]);
    s = if protocol == 17 { s.udp() } else { s.protocol(protocol) };
    let mut frame = s.build();
    // As an echo, or something else of ICMP.
    if let Ok(p) = wire::any_packet(&frame, frame.len()).map(|p| usize::from(p.l4)) {
        frame[p] = random.pick(&[0, 8, 128, 129, 3]);
    }
    frame
}

/// Reads a frame that is no TCP segment as the core does.
fn read(frame: &[u8]) -> (Packet, Key) {
    let packet = wire::other_packet(frame, frame.len()).unwrap();
    (packet, Key::of_packet(frame, &packet))
}

#[test]
fn packets_are_known_by_what_rules_look_at() {
    if !privileged() {
        return;
    }
    let mut rig = rig();
    let mut random = Random(7);
    let (mut known, mut in_part) = (0, 0);
    for step in 0..4_000 {
        let way = random.pick(&[Fields::NONE, Fields::INWARD]);
        let fields = Fields(random.below(1 << 6) as u32).and(Fields::COUNTED).and(way);
        let frame = packet(&mut random);
        let said = format!("step {step} {fields:?} {frame:02x?}");
        let hook = random.pick(&[Hook::Ingress, Hook::Egress]);
        rig.acks.hooks.count(if hook == Hook::Egress {
            [fields, Fields::NONE]
        } else {
            [Fields::NONE, fields]
        });
        // No engine counts it yet: it is shown.
        assert_eq!(rig.hook(hook, &frame, 0), (PASS, frame.clone()), "{said}");
        let shown = rig.records();
        let (packet, key) = read(&frame);
        in_part += u32::from(wire::any_packet(&frame, frame.len()).is_err());
        assert_eq!((shown.len(), shown[0].fate), (1, Fate::Passed), "{said}");
        let number = random.below(u64::from(TALLIES)) as u32;
        rig.acks.apply(&[Verdict::Count { key: fields.of(&key), tally: Some(number) }]).unwrap();
        let tally = &rig.acks.tallies()[number as usize];
        let before = tally.counted();
        rig.hook(hook, &frame, 0);
        let bytes = u64::from(packet.end) - u64::from(packet.l3);
        let one = Counted { packets: 1, bytes, dropped: 0, dropped_bytes: 0 };
        assert_eq!((tally.counted().since(before), rig.records()), (one, vec![]), "{said}");
        // In the other direction nothing is looked at.
        rig.hook(if hook == Hook::Egress { Hook::Ingress } else { Hook::Egress }, &frame, 0);
        assert_eq!(tally.counted().since(before), one, "{said}");
        known += 1;
    }
    println!("{known} counted, {in_part} of them not read as a whole");
    assert!(known == 4_000 && in_part > 20);
}

#[test]
fn another_packet_is_another_if_a_rule_looks_at_the_difference() {
    if !privileged() {
        return;
    }
    let mut rig = rig();
    let one = || v4().ports(0, 0).udp().vlan(5);
    let others = [
        (Fields::SRC, SegmentBuilder::v4([8, 0, 0, 9], B).ports(0, 0).udp().vlan(5)),
        (Fields::DST, SegmentBuilder::v4(A, [10, 0, 0, 9]).ports(0, 0).udp().vlan(5)),
        (Fields::SRC_PORT, one().ports(5002, 0)),
        (Fields::DST_PORT, one().ports(0, 81)),
        (Fields::VLAN, v4().ports(0, 0).udp().vlan(6)),
        (Fields::PROTOCOL, v4().protocol(136).vlan(5)),
    ];
    // The same packet the other way is of another class.
    let ways = [Fields::COUNTED, Fields::COUNTED.and(Fields::INWARD)];
    rig.acks.hooks.count(ways);
    let learnt = ways.iter().zip([2, 3]);
    let learnt = learnt.map(|(way, n)| Verdict::Count { key: way.of(&Key::default()), tally: Some(n) });
    rig.acks.apply(&learnt.collect::<Vec<_>>()).unwrap();
    rig.hook(Hook::Egress, &one().build(), 0);
    (0..2).for_each(|_| drop(rig.hook(Hook::Ingress, &one().build(), 0)));
    let packets = |n: usize| rig.acks.tallies()[n].counted().packets;
    assert_eq!((packets(2), packets(3), rig.records().len()), (1, 2, 0));
    let counted = |rig: &Rig| rig.acks.tallies()[1].counted().packets;
    for (field, other) in others {
        for fields in [Fields(all().0 & !field.0), field.and(Fields::COUNTED)] {
            rig.acks.hooks.count([fields; 2]);
            let key = read(&one().build()).1;
            rig.acks.apply(&[Verdict::Count { key: fields.of(&key), tally: Some(1) }]).unwrap();
            let before = counted(&rig);
            rig.hook(Hook::Ingress, &other.build(), 0);
            let known = !fields.has(field);
            assert_eq!(
                (counted(&rig) - before, rig.records().len()),
                (known.into(), (!known).into()),
                "{field:?}"
            );
        }
    }
}

#[test]
fn who_counts_holds_until_it_is_said_anew() {
    if !privileged() {
        return;
    }
    let mut rig = rig();
    let frame = v4().udp().payload(100).build();
    let shown = |rig: &mut Rig| {
        rig.hook(Hook::Ingress, &frame, 0);
        rig.records().len()
    };
    let key = read(&frame).1;
    rig.acks.hooks.count([all(); 2]);
    rig.acks.apply(&[Verdict::Count { key: all().of(&key), tally: None }]).unwrap();
    assert_eq!(shown(&mut rig), 0, "nobody counts it");
    rig.acks.hooks.count([all(); 2]);
    assert_eq!(shown(&mut rig), 1);
    rig.fresh(false);
    assert_eq!(shown(&mut rig), 0, "nobody is there");
    rig.fresh(true);
    // A giant datagram stands for two: the bytes of one more pair of headers.
    rig.acks.apply(&[Verdict::Count { key: all().of(&key), tally: Some(2) }]).unwrap();
    rig.hook(Hook::Ingress, &frame, 50);
    let counted = rig.acks.tallies()[2].counted();
    assert_eq!((counted.packets, counted.bytes), (2, 128 + 28));
}

#[test]
fn data_of_flows_that_are_left_alone_is_counted() {
    if !privileged() {
        return;
    }
    let rig = rig();
    rig.acks.hooks.count([Fields::COUNTED; 2]);
    let data = || v4().flags(Flags::ACK).payload(1_000);
    rig.acks.apply(&[Verdict::Pass { ack_key: key4(0, 0).reversed() }]).unwrap();
    let tally = &rig.acks.tallies()[3];
    rig.hook(Hook::Ingress, &data().build(), 0);
    assert_eq!(tally.counted(), Counted::default());
    rig.acks.apply(&[Verdict::Count { key: key4(0, 0), tally: Some(3) }]).unwrap();
    rig.hook(Hook::Ingress, &data().build(), 0);
    rig.hook(Hook::Ingress, &data().payload(0).build(), 0);
    rig.hook(Hook::Ingress, &data().ports(1, 2).build(), 0);
    let once = Counted { packets: 1, bytes: 1_040, dropped: 0, dropped_bytes: 0 };
    assert_eq!(tally.counted(), once);
    let untouched = || rig.acks.bounds_of(0)[3].passed().untouched;
    assert_eq!(untouched(), 1_040);
    // It may be too much, too.
    tally.police(Some(Rate::kbit(8)), BURST, 0);
    assert_eq!(rig.hook(Hook::Ingress, &data().build(), 0).0, PASS);
    assert_eq!(rig.hook(Hook::Ingress, &data().build(), 0).0, REDIRECT);
    assert_eq!((tally.counted().dropped, rig.acks.counters().unwrap().policed), (1, 1));
    assert_eq!(untouched(), 2 * 1_040);
}

/// The words of a tally, of which the fifth is when what has passed would have at the rate.
fn words(tally: &Tally) -> &[AtomicU64; 8] {
    // SAFETY: a tally is eight words of 64 bits, as `abi.h` has it, which are only used as atomics.
    unsafe { &*std::ptr::from_ref(tally).cast() }
}

fn due(tally: &Tally) -> u64 {
    words(tally)[4].load(Relaxed)
}

/// Random packets at random rates: what passes, and how far that moves the bucket, is what the core says,
/// within the time that the kernel took.
#[test]
fn a_bucket_is_the_core_s() {
    if !privileged() {
        return;
    }
    let rig = rig();
    let mut random = Random(9);
    let fields = Fields::COUNTED;
    rig.acks.hooks.count([fields; 2]);
    rig.acks.apply(&[Verdict::Count { key: Key::default(), tally: Some(0) }]).unwrap();
    let tally = &rig.acks.tallies()[0];
    let (mut passed, mut dropped) = (0, 0);
    for step in 0..3_000 {
        let bytes = 28 + random.below(1_400);
        if step % 10 == 0 {
            let overhead = random.pick(&[-28, 0, 18, 38]);
            // From 8 kb/s on, evenly in the number of digits.
            let bps = 8_000 << random.below(24);
            tally.police(Rate::from_bps(bps + random.below(bps)), BURST, overhead);
            words(tally)[4].store(clock::now().as_nanos() + random.below(25_000_000), Relaxed);
        }
        // What it costs, as time: by a bucket of the same rate that is at rest.
        let (model, start) = (Tally::default(), Time::from_secs(1));
        words(&model)
            .iter()
            .zip(words(tally))
            .skip(5)
            .for_each(|(to, from)| to.store(from.load(Relaxed), Relaxed));
        assert!(model.passes(1, bytes, start, false));
        let costs = due(&model) - start.as_nanos();
        let (before, count, from) = (due(tally), tally.counted(), clock::now().as_nanos());
        let frame = v4().udp().payload(bytes as usize - 28).build();
        let answer = rig.hook(Hook::Ingress, &frame, 0).0;
        let until = clock::now().as_nanos();
        let said =
            format!("step {step}: {bytes} bytes, due {before}, {from} to {until}, then {}", due(tally));
        if answer == PASS {
            assert!(before <= until + BURST.as_nanos(), "{said}");
            let moved = due(tally) - costs;
            assert!(moved == before || moved >= from && moved <= until, "{said}");
            passed += 1;
        } else {
            assert!(before > from + BURST.as_nanos(), "{said}");
            assert_eq!((due(tally), tally.counted().since(count).dropped_bytes), (before, bytes), "{said}");
            dropped += 1;
        }
    }
    println!("{passed} passed, {dropped} dropped");
    assert!(passed > 500 && dropped > 500);
}
