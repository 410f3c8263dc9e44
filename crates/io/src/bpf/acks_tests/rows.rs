//! The table of what a hook does with each kind of segment.

use super::rig::*;
use crate::bpf::{AcksCounters, AcksOptions, Fate, Hook};
use std::sync::atomic::Ordering::Relaxed;
use weir_core::steer::slot_flag::{SCALED, SIZED};
use weir_core::steer::{Fields, Slot};
use weir_core::wire::build::{arp, SegmentBuilder, Sum};
use weir_core::wire::{Flags, Seq};

pub(super) const IN: Hook = Hook::Ingress;
pub(super) const OUT: Hook = Hook::Egress;

pub(super) fn syn() -> SegmentBuilder {
    v4().flags(Flags::SYN).seq(5).mss(1460).sack_permitted().ts(1, 2).window_scale(7)
}

/// A segment of the flow of [`Rig::control`] that is the next one.
pub(super) fn next(segment: SegmentBuilder) -> SegmentBuilder {
    later(segment, 1000)
}

/// Returns a segment with another TSval.
pub(super) fn later(segment: SegmentBuilder, ts: u32) -> SegmentBuilder {
    segment.seq(1000).ack(1000).window(100).ts(ts, 7)
}

fn record(hook: Hook, fate: Fate, frame: &[u8]) -> Record {
    let head = frame[..frame.len().min(crate::bpf::SEGMENT_HEAD)].to_vec();
    Record { hook, fate, len: frame.len(), gso_size: 0, head }
}

/// The frame passes as it came; its headers are shown if `shown`.
pub(super) fn passes(rig: &mut Rig, hook: Hook, segment: SegmentBuilder, shown: bool) {
    let frame = segment.build();
    assert_eq!(rig.hook(hook, &frame, 0), (PASS, frame.clone()), "{segment:?}");
    let expected = shown.then(|| record(hook, Fate::Passed, &frame));
    assert_eq!(rig.records(), Vec::from_iter(expected), "{segment:?}");
}

/// The frame is taken whole.
pub(super) fn taken(rig: &mut Rig, hook: Hook, segment: SegmentBuilder) {
    let frame = segment.build();
    assert_eq!(rig.hook(hook, &frame, 0), (REDIRECT, frame.clone()), "{segment:?}");
    assert_eq!(rig.records(), [record(hook, Fate::Taken, &frame)], "{segment:?}");
}

/// The frame passes as `to`; it is reported as it was if `shown`.
pub(super) fn becomes(rig: &mut Rig, hook: Hook, segment: SegmentBuilder, to: SegmentBuilder, shown: bool) {
    let (frame, to) = (segment.build(), to.build());
    assert_eq!(rig.hook(hook, &frame, 0), (PASS, to), "{segment:?}");
    let expected = shown.then(|| record(hook, Fate::SetBack, &frame));
    assert_eq!(rig.records(), Vec::from_iter(expected), "{segment:?}");
}

#[test]
fn unknown_flows_are_shown() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(options());
    for hook in [IN, OUT] {
        passes(&mut rig, hook, syn(), true);
        passes(&mut rig, hook, syn().flags(Flags::SYN | Flags::ACK), true);
        passes(&mut rig, hook, v4().flags(Flags::RST), true);
        taken(&mut rig, hook, next(v4()));
        taken(&mut rig, hook, next(v6()).pad_to(60));
        taken(&mut rig, hook, v4().pad_to(60));
        passes(&mut rig, hook, next(v4()).payload(1400), true);
        passes(&mut rig, hook, next(v4()).flags(Flags::FIN | Flags::ACK), true);
        // Too long to be taken whole: shown instead.
        passes(&mut rig, hook, (0..6).fold(next(v6()), |s, _| s.extension(60, &[0; 22])), true);
    }
    assert_eq!(rig.acks.counters().unwrap().taken, 6);
}

#[test]
fn what_is_not_tcp_passes_unseen() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(options());
    let cut = |segment: SegmentBuilder, len: usize| segment.build()[..len].to_vec();
    let others = [
        arp(A, B),
        v4().udp().build(),
        v4().fragment(0, true).build(),
        v4().fragment(10, false).build(),
        v6().fragment(0, true).build(),
        v4().tag(0x88a8, 7).tag(0x8100, 9).tag(0x8100, 1).build(),
        v6().udp().build(),
        v6().extension(60, &[0; 6]).extension(0, &[0; 6]).build(),
        // Segments left.
        v6().extension(43, &[0, 1, 0, 0, 0, 0]).build(),
        // More extension headers than are followed.
        (0..7).fold(v6(), |s, _| s.extension(60, &[0; 6])).build(),
        cut(v4(), 53),
        cut(v4().vlan(5), 17),
        cut(v6(), 73),
        cut(v6().extension(0, &[0; 6]), 60),
    ];
    for (i, frame) in others.iter().enumerate() {
        assert_eq!(rig.hook(IN, frame, 0), (PASS, frame.clone()), "{i}");
    }
    assert_eq!(rig.records(), []);
    let counters = rig.acks.counters().unwrap();
    let bytes_in: usize = others.iter().map(Vec::len).sum();
    let (passed_other, bytes_in) = (others.len() as u64, bytes_in as u64);
    let packets_in = passed_other;
    let expect = AcksCounters { passed_other, bytes_in, packets_in, ..AcksCounters::default() };
    assert_eq!(counters, expect);
}

/// On a router with one interface both hooks see each segment, and the slot of its key is one: the hook at
/// ingress has it.
#[test]
fn a_segment_that_leaves_where_it_came_in_is_controlled_once() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(options());
    rig.control(key4(0, 0), 0, SCALED);
    let ack = next(v4()).ack(1100).build();
    assert_eq!(rig.hairpin(&ack), (PASS, ack.clone()));
    assert_eq!((rig.records().len(), rig.acks.counters().unwrap().hairpins), (0, 1));
    // By another one it would be taken.
    assert_eq!(rig.hook(OUT, &ack, 0).0, REDIRECT);
    assert_eq!(rig.records().len(), 1);
}

/// TCP inside of MPLS (RFC 3032), GRE (RFC 2784) and IP in IP (RFC 2003) is not looked for,
/// but counted.
#[test]
fn what_tcp_may_be_inside_of_is_counted_by_kind() {
    if !privileged() {
        return;
    }
    let rig = Rig::new(options());
    let plain = v4().build();
    let inside = |head: &[u8]| [&plain[..12], head, &plain[14..]].concat();
    let of_protocol = |protocol: u8| {
        let mut frame = plain.clone();
        frame[23] = protocol;
        frame
    };
    let frames = [
        inside(&[0x88, 0x47, 0, 6, 0x41, 64]),
        inside(&[0x88, 0x48, 0, 6, 0x41, 64]),
        of_protocol(47),
        of_protocol(4),
        of_protocol(41),
    ];
    for frame in &frames {
        assert_eq!(rig.hook(IN, frame, 0).0, PASS);
    }
    let AcksCounters { mpls, tunnels, passed_other, .. } = rig.acks.counters().unwrap();
    assert_eq!((mpls, tunnels, passed_other), (2, 3, 5));
}

#[test]
fn tags_sessions_and_extension_headers_are_followed() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(options());
    let flows = [
        (v4().vlan(0x2005), key4(5, 0)),
        (v4().tag(0x88a8, 7).tag(0x8100, 9), key4(7, 9)),
        (v4().ip_options(&[1; 8]), key4(0, 0)),
        (v6().extension(0, &[0; 6]).extension(60, &[0; 14]), key6(0, 0)),
        (v6().vlan(5).extension(43, &[0; 6]), key6(5, 0)),
        (v6().fragment(0, false), key6(0, 0)),
        (v4().pppoe(1), key4(0, 0)),
        (v6().vlan(5).pppoe(0xffff), key6(5, 0)),
        (v6().tag(0x88a8, 7).tag(0x8100, 9).pppoe(7).extension(60, &[0; 6]), key6(7, 9)),
    ];
    for (segment, key) in flows {
        rig.control(key, 0, SCALED);
        taken(&mut rig, IN, next(segment.clone()));
        let data = next(segment).payload(501);
        becomes(&mut rig, OUT, data.clone().ack(1100), data.window(125), true);
    }
}

#[test]
fn syn_acks_are_taken_where_they_are_sized() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(AcksOptions { size_in: true, ..options() });
    let syn_ack = syn().flags(Flags::SYN | Flags::ACK);
    taken(&mut rig, IN, syn_ack.clone());
    passes(&mut rig, OUT, syn_ack.clone(), true);
    passes(&mut rig, IN, syn(), true);
    rig.fresh(false);
    passes(&mut rig, IN, syn_ack, false);
}

#[test]
fn acks_of_a_controlled_flow_are_taken() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(options());
    for (segment, key) in [(v4(), key4(0, 0)), (v6(), key6(0, 0))] {
        let slot = rig.control(key, 0, SCALED);
        taken(&mut rig, IN, next(segment.clone()).ack(1300));
        taken(&mut rig, IN, next(segment.clone()).ack(1200).sack(&[(1300, 1400)]).window(0));
        taken(&mut rig, IN, next(segment.clone()).pad_to(60));
        assert_eq!((slot.tx().0, slot.edge().0), (1000, 1700));
        // What cannot be true passes; one of sixteen is shown.
        for doubt in 0..32 {
            passes(&mut rig, IN, next(segment.clone()).ack(1701), doubt % 16 == 0);
        }
    }
    assert_eq!(rig.acks.counters().unwrap().doubted, 64);
}

#[test]
fn payload_is_set_back_to_what_the_sender_may_know() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(options());
    for (segment, key) in [(v4(), key4(0, 0)), (v6(), key6(0, 0))] {
        let slot = rig.control(key, 0, SCALED);
        let data = |n: u32| {
            let data = later(segment.clone(), if n == 3 { 1001 } else { 1000 });
            data.seq(1000 + 100 * n).payload(100)
        };
        passes(&mut rig, IN, data(0), false);
        passes(&mut rig, IN, data(1).ack(900).window(125), false);
        // The right edge stays: 200 bytes are 50 of its units.
        becomes(&mut rig, IN, data(2).ack(1200), data(2).window(150), true);
        let marked = |s: SegmentBuilder| s.flags(Flags::ACK | Flags::ECE | Flags::PSH);
        becomes(&mut rig, IN, marked(data(3).ack(1202)), marked(data(3).window(150)), true);
        assert_eq!((slot.tx().0, slot.nxt().0), (1000, 1400));
        // A retransmission is set back, and is no news.
        becomes(&mut rig, IN, data(2).ack(1200), data(2).window(150), false);
        assert_eq!(slot.ts(), 1001);
        // Nothing is learnt from it, so it is not summed, and a wrong checksum stays as wrong as it was.
        let wrong = |s: SegmentBuilder| s.checksum(Sum::Wrong);
        becomes(&mut rig, IN, wrong(data(2).ack(1200)), wrong(data(2).window(150)), false);
    }
    let slot = rig.control(key4(0, 0), 0, SCALED | SIZED);
    let data = next(v4()).payload(100);
    becomes(&mut rig, IN, data.clone().window(200), data.clone(), false);
    assert_eq!((slot.sent().0, slot.edge().0), (1400, 1800));
}

/// RFC 9293 section 3.10.7: its receiver does nothing with such a segment.
#[test]
fn a_wrong_checksum_teaches_nothing() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(AcksOptions { size_in: true, ..options() });
    let wrong = |segment: SegmentBuilder| segment.checksum(Sum::Wrong);
    let words = |slot: &Slot| format!("{slot:?}");
    for (segment, key) in [(v4(), key4(0, 0)), (v6(), key6(0, 0))] {
        let slot = rig.control(key, 0, SCALED);
        let before = words(slot);
        let data = |len| next(segment.clone()).payload(len);
        let bad = [
            later(segment.clone(), 1 << 29).ack(1300),
            next(segment.clone()).ack(1300).sack(&[(1310, 1320)]).window(0),
            next(segment.clone()).ack(1_000_000),
            next(segment.clone()).flags(Flags::FIN | Flags::ACK),
            next(segment.clone()).flags(Flags::RST | Flags::ACK),
            data(1).ack(1001),
            data(3).window(200),
            data(511).ack(1001),
            data(1448).ack(1300),
            data(2500).ack(1300),
        ];
        for segment in bad {
            passes(&mut rig, IN, wrong(segment), false);
        }
        assert_eq!(words(slot), before);
        // It tells nothing new, and is not summed.
        passes(&mut rig, IN, wrong(data(100)), false);
        assert_eq!(slot.nxt(), 1100);
        // Long and odd, and right.
        let long = data(1447).seq(1100);
        becomes(&mut rig, IN, long.clone().ack(1100), long.window(125), true);
        let unknown = segment.clone().ports(9, 9);
        for bad in [unknown.clone(), unknown.clone().payload(700), unknown.flags(Flags::FIN | Flags::ACK)] {
            passes(&mut rig, IN, wrong(bad), false);
        }
    }
    passes(&mut rig, OUT, wrong(syn()), false);
    passes(&mut rig, IN, wrong(syn().flags(Flags::SYN | Flags::ACK)), false);
    rig.fresh(false);
    let slot = rig.control(key4(0, 0), 0, SCALED);
    let before = words(slot);
    passes(&mut rig, IN, wrong(later(v4(), 1 << 29).ack(1300)), false);
    passes(&mut rig, IN, wrong(next(v4()).ack(1300).payload(10)), false);
    assert_eq!(words(slot), before);
    assert_eq!(rig.acks.counters().unwrap().broken, 2 * 13 + 4);
}

#[test]
fn progress_passes_as_far_as_it_is_granted() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(options());
    for (segment, key) in [(v4(), key4(0, 0)), (v6(), key6(0, 0))] {
        let slot = rig.control(key, 0, SCALED);
        assert!(slot.grant(Seq(1_300)));
        passes(&mut rig, IN, next(segment.clone()).ack(1_100), false);
        passes(&mut rig, OUT, next(segment.clone()).ack(1_200).flags(Flags::ACK | Flags::PSH), false);
        passes(&mut rig, IN, next(segment.clone()).ack(1_250).payload(10), false);
        let later = |n| next(segment.clone()).seq(1_010).ack(n);
        assert_eq!((slot.tx().0, slot.nxt().0), (1_250, 1_010));
        // What is taken ends it, and it is not made again before that has come.
        let sack = later(1_260).sack(&[(1_270, 1_280)]).build();
        assert_eq!(rig.hook(IN, &sack, 0).0, REDIRECT);
        assert_eq!((slot.granted(), slot.grant(Seq(1_300))), (None, false));
        assert_eq!(rig.records().len(), 1);
        assert!(slot.grant(Seq(1_300)));
        taken(&mut rig, IN, later(1_301));
        assert!(slot.grant(Seq(1_300)));
        taken(&mut rig, IN, later(1_260).raw_options(&[1]));
        assert_eq!(slot.tx(), 1_250);
    }
    let slot = rig.control(key4(0, 0), 0, SCALED | SIZED);
    slot.width.store(200, Relaxed);
    assert!(slot.grant(Seq(1_300)));
    // 300 bytes beyond 1,100 are known already: 75 units of 4.
    becomes(&mut rig, IN, next(v4()).ack(1_100), next(v4()).ack(1_100).window(75), false);
    let counters = rig.acks.counters().unwrap();
    assert_eq!((counters.granted, counters.passed_flow, counters.set_back, counters.taken), (7, 6, 1, 6));
}

#[test]
fn news_that_only_payload_carries_passes() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(options());
    let slot = rig.control(key4(0, 0), 0, SCALED);
    let data = |n: u32| next(v4()).seq(1000 + 100 * n).payload(100);
    passes(&mut rig, IN, data(0).ack(1100).sack(&[(1200, 1300)]), true);
    passes(&mut rig, IN, data(1).ack(1200).window(0), true);
    passes(&mut rig, IN, data(2).ack(1300), true);
    assert_eq!((slot.tx().0, slot.nxt().0), (1300, 1300));
    // SACK without a block, and a segment without options.
    becomes(
        &mut rig,
        IN,
        data(3).ack(1304).option(5, &[]),
        data(3).ack(1300).option(5, &[]).window(101),
        true,
    );
    let bare = v4().seq(1400).window(100).payload(3);
    becomes(&mut rig, IN, bare.clone().ack(1308), bare.ack(1300).window(102), true);
    // Without the scale a flow in two directions passes.
    let slot = rig.control(key4(0, 0), 0, 0);
    passes(&mut rig, IN, data(0).ack(5000), true);
    assert_eq!(slot.tx(), 5000);
}

#[test]
fn the_end_passes_and_later_acks_are_discarded() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(options());
    let slot = rig.control(key4(0, 0), 0, SCALED);
    let ack = |n: u32| next(v4()).ack(n);
    let fin = next(v4()).flags(Flags::FIN | Flags::ACK).ack(1200).payload(10);
    passes(&mut rig, IN, fin, true);
    assert_eq!((slot.has_ended(), slot.nxt().0, slot.tx().0), (true, 1011, 1200));
    assert_eq!(rig.send(&ack(1200).build()).0, REDIRECT);
    assert_eq!(rig.send(&ack(1300).build()).0, PASS);
    passes(&mut rig, IN, v4().flags(Flags::RST).seq(1011), true);
    let counters = rig.acks.counters().unwrap();
    assert_eq!((counters.discarded, counters.stamped), (1, 1));
    // An end behind the end is none: 100 bytes are kept from the sender, and 25 more of the window's units of
    // 4.
    let again = v4().flags(Flags::FIN | Flags::ACK).seq(1011).window(100);
    becomes(&mut rig, IN, again.clone().ack(1400), again.ack(1300).window(125), true);
}

/// RFC 9293 §3.5.3, RFC 5961 §3.2.
#[test]
fn a_reset_goes_behind_what_is_held() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(options());
    rig.control(key4(0, 0), 0, SCALED);
    let reset = |seq| v4().flags(Flags::RST | Flags::ACK).seq(seq).ack(1200);
    passes(&mut rig, IN, reset(1000), true);
    taken(&mut rig, IN, next(v4()).ack(1200));
    passes(&mut rig, IN, reset(1001), true);
    taken(&mut rig, IN, reset(1000));
    // What is held has been told.
    assert_eq!(rig.send(&next(v4()).ack(1200).build()).0, PASS);
    passes(&mut rig, IN, reset(1000), true);
}

#[test]
fn made_acks_are_brought_up_to_date() {
    if !privileged() {
        return;
    }
    let rig = Rig::new(options());
    for (segment, key) in [(v4(), key4(5, 0)), (v6(), key6(5, 0))] {
        let slot = rig.control(key, 0, SCALED);
        slot.assume(|n| n.nxt = Seq(4_000_000_000));
        slot.assume(|n| n.ts = 0x1234_5678);
        slot.assume(|n| n.sent = Seq(1604));
        slot.assume(|n| n.edge = Seq(2000));
        slot.assume(|n| n.ack = Seq(1300));
        let made = |seq, ts| {
            let s = segment.clone().vlan(5).seq(seq).ack(1200);
            [
                s.clone().ts(ts, 9),
                s.clone(),
                s.clone().raw_options(&[1]).option(8, &[&u32::to_be_bytes(ts)[..], &[0, 0, 0, 9]].concat()),
                s.sack(&[(1, 2)]).ts(ts, 9),
            ]
        };
        for (before, after) in made(999, 1).into_iter().zip(made(4_000_000_000, 0x1234_5678)) {
            let (before, after) = (before.window(100).build(), after.window(101).build());
            assert_eq!(rig.send(&before), (PASS, after));
        }
        assert_eq!((slot.tx().0, slot.sent().0), (1200, 1604));
        // Nothing is held: the receiver's own window, though it was larger before.
        let last = segment.clone().vlan(5).seq(4_000_000_000).window(100).ack(1300).build();
        slot.assume(|n| n.sent = Seq(1900));
        assert_eq!(rig.send(&last), (PASS, last));
        let late = segment.vlan(5).ack(1199).build();
        assert_eq!(rig.send(&late).0, REDIRECT);
    }
    // Not of a flow that is controlled: left as it is.
    let other = next(v4()).vlan(6).build();
    assert_eq!(rig.send(&other), (PASS, other));
}

#[test]
fn giant_segments_count_whole() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(options());
    for (segment, key) in [(v4(), key4(0, 0)), (v6(), key6(0, 0))] {
        let slot = rig.control(key, 0, SCALED);
        let data = next(segment).payload(3000).checksum(Sum::Partial);
        let frame = data.clone().ack(1100).build();
        let (answer, after) = rig.hook(OUT, &frame, 1428);
        assert_eq!(answer, PASS);
        // Test runs know no checksum that is left to the device: it is taken for a complete one.
        let mut expected = data.window(125).build();
        let at = expected.len() - 3000 - 16;
        expected[at..at + 2].copy_from_slice(&after[at..at + 2]);
        assert_eq!(after, expected);
        assert_eq!(slot.nxt(), 4000);
        let [seen] = &rig.records()[..] else { panic!("one record") };
        assert_eq!((seen.gso_size, seen.len, seen.fate), (1428, frame.len(), Fate::SetBack));
        assert_eq!(seen.head, frame[..crate::bpf::SEGMENT_HEAD]);
    }
}

#[test]
fn segments_too_long_for_their_length_field_are_read() {
    if !privileged() {
        return;
    }
    let rig = Rig::new(options());
    // As Linux sends them: no length, over IPv6 with a jumbo payload option in front.
    let mut four = next(v4()).payload(2000).build();
    four[16..18].fill(0);
    let mut six = next(v6()).extension(0, &[0xc2, 4, 0, 1, 0, 0]).payload(2000).build();
    six[18..20].fill(0);
    for (frame, key) in [(four, key4(0, 0)), (six, key6(0, 0))] {
        let slot = rig.control(key, 0, SCALED);
        assert_eq!(rig.hook(OUT, &frame, 1000), (PASS, frame.clone()));
        assert_eq!(slot.nxt(), 3000);
        // Without segments it is malformed.
        assert_eq!(rig.hook(OUT, &frame, 0), (PASS, frame.clone()));
    }
    let counters = rig.acks.counters().unwrap();
    assert_eq!((counters.passed_flow, counters.passed_other), (2, 2));
}

#[test]
fn devices_without_ethernet_header() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(AcksOptions { ethernet: false, ..options() });
    for (segment, key, kind) in [(v4(), key4(0, 0), [8, 0]), (v6(), key6(0, 0), [0x86, 0xdd])] {
        let made_up = |frame: &[u8]| [&[0; 12], &kind[..], &frame[14..]].concat();
        rig.control(key, 0, SCALED);
        let ack = next(segment.clone()).build();
        assert_eq!(rig.hook(IN, &ack[14..], 0).0, REDIRECT);
        let data = next(segment.clone()).payload(700);
        let (before, after) = (data.clone().ack(1100).build(), data.window(125).build());
        assert_eq!(rig.hook(IN, &before[14..], 0), (PASS, after[14..].to_vec()));
        let expected = [(Fate::Taken, &ack), (Fate::SetBack, &before)];
        let expected = expected.map(|(fate, frame)| record(IN, fate, &made_up(frame)));
        assert_eq!(rig.records(), expected);
        let (made, sent) = (later(segment.clone(), 1).ack(1050), next(segment).ack(1050).seq(1700));
        let (made, sent) = (made.seq(3).build(), sent.window(112).build());
        assert_eq!(rig.send(&made[14..]), (PASS, sent[14..].to_vec()));
    }
}

/// The engine measures the delay of the WAN by a segment of data that it asks for.
#[test]
fn data_that_was_asked_for_is_shown_once() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(AcksOptions { shape_out: false, ..options() });
    let slot = rig.control(key4(0, 0), 3, SCALED);
    let back = SegmentBuilder::v4(B, A).ports(80, 5001).seq(9).ack(1000).flags(Flags::ACK);
    slot.ask();
    passes(&mut rig, OUT, back.clone().payload(1400), false); // nothing is measured in this direction
    rig.acks.hooks.count([Fields::MEASURED, Fields::NONE]);
    passes(&mut rig, OUT, back.clone(), false);
    passes(&mut rig, OUT, back.clone().ports(81, 5001).payload(1400), false);
    passes(&mut rig, OUT, back.clone().payload(1400), true);
    passes(&mut rig, OUT, back.clone().payload(1400), false);
    slot.ask();
    slot.close();
    passes(&mut rig, OUT, back.payload(1400), false);
}
