//! Measurements of flows: random data through the programs and through [`Sight::data`].

use super::bound::bounded;
use super::random::Random;
use super::rig::*;
use crate::bpf::Hook;
use crate::sys::clock::now;
use weir_core::quality::{units, Data, Sight, Told};
use weir_core::steer::{slot_flag, Limit, Slot};
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::Flags;
use weir_core::wire::Seq;

/// No packet is dropped.
const ALL: Limit = Limit::NONE;
const EDGE: u32 = 200_000;

/// The flow of slot 0, from 1,000 on.
fn flow(rig: &Rig, flags: u32) -> (&'static Slot, &'static Sight) {
    let slot = rig.control(key4(0, 0), 0, flags);
    slot.assume(|numbers| (numbers.edge, numbers.sent) = (Seq(EDGE), Seq(EDGE)));
    let sight = &rig.acks.sights_of(0)[0];
    sight.begin();
    sight.open(1_000);
    (slot, sight)
}

#[test]
fn the_programs_count_and_measure_data_as_the_functions_do() {
    if !privileged() {
        return;
    }
    let mut all = 0;
    for (seed, flags) in [(1, slot_flag::SCALED), (2, slot_flag::SCALED), (3, 0)] {
        let rig = bounded(ALL);
        let (_, sight) = flow(&rig, flags);
        let (model, mut random) = (Sight::default(), Random(seed));
        model.open(1_000);
        let told = Told { ack: 1_000, edge: (flags != 0).then_some(EDGE) };
        let (mut next, mut found) = (1_000, (0, 0));
        for step in 0..2_000 {
            // Mostly the next; at times something before, or behind a hole, or beyond what may be sent.
            let at = match random.below(20) {
                0..=2 => next - random.below(6_000).min(u64::from(next) - 1) as u32,
                3 => next + random.below(3_000) as u32,
                4 => EDGE + random.below(3_000) as u32,
                5 => model.data_words()[2].max(1),
                _ => next,
            };
            let payload = random.pick(&[1, 100, 960, 1_400]);
            let echo = random.percent(60).then(|| 5_000 + step);
            let frame = SegmentBuilder::v4(B, A).ports(80, 5001).seq(at).payload(payload as usize);
            let frame = echo.map_or(frame.clone(), |echo| frame.ts(7, echo)).flags(Flags::ACK);
            let packets = if payload == 1_400 && random.percent(30) { 2 } else { 1 };
            let size = if packets == 2 { 700 } else { 0 };
            let data = Data { seq: at, payload, packets, echo, now: units(now()) };
            if let Some(repeat) = model.data(&data, &told) {
                match repeat {
                    weir_core::quality::Repeat::Again(packets) => found.0 += u64::from(packets),
                    weir_core::quality::Repeat::Overtaken(packets) => found.1 += u64::from(packets),
                }
            }
            let said = random.pick(&[0, packets as u16]);
            rig.giant(Hook::Egress, &frame.build(), size, said);
            // Times differ, and with them whether a hole was filled at once.
            let case = format!("seed {seed} step {step}: {data:?}\n{sight:?}\n{model:?}");
            assert_eq!(sight.data_words(), model.data_words(), "{case}");
            let both = |s: &Sight| s.repeated() + s.reordered();
            assert_eq!(both(sight), both(&model), "{case}");
            next = next.max(model.data_words()[0]);
            // Now and then an ACK leaves, or ends a measurement.
            if random.percent(5) {
                [sight, &model]
                    .into_iter()
                    .for_each(|s| s.passes(next, Some(5_000 + step + 20), units(now())));
            }
            if random.percent(2) {
                [sight, &model].into_iter().for_each(Sight::cancel);
            }
            if next > EDGE - 10_000 {
                break;
            }
        }
        let passed = rig.acks.bounds_of(0)[0].passed();
        assert_eq!(passed.repeated + passed.reordered, found.0 + found.1);
        all += found.0 + found.1;
    }
    assert!(all > 50, "{all}");
}

/// An ACK that passes by a grant ends the round trip to its receiver, and begins the other one.
#[test]
fn a_granted_ack_is_part_of_a_measurement() {
    if !privileged() {
        return;
    }
    for ts in [None, Some(1_010)] {
        let rig = bounded(ALL);
        let (slot, sight) = flow(&rig, slot_flag::SCALED);
        let data = |seq, echo| {
            let data = SegmentBuilder::v4(B, A).ports(80, 5001).seq(seq).payload(1_000).flags(Flags::ACK);
            rig.hook(Hook::Egress, &data.ts(7, echo).build(), 0);
        };
        data(1_000, 900);
        assert!(slot.grant(Seq(10_000)));
        let ack = v4().seq(1_000).ack(2_000).window(100).flags(Flags::ACK);
        let ack = ts.map_or(ack.clone(), |ts| ack.ts(ts, 7));
        let before = rig.acks.counters().unwrap().granted;
        assert_eq!(rig.hook(Hook::Ingress, &ack.build(), 0).0, PASS);
        assert_eq!(rig.acks.counters().unwrap().granted, before + 1);
        assert_eq!(sight.awaits_echo(), ts.is_some(), "{sight:?}");
        data(2_000, 1_009);
        assert_eq!(sight.awaits_echo(), ts.is_some());
        data(3_000, 1_010);
        assert!(!sight.awaits_echo(), "{sight:?}");
    }
}
