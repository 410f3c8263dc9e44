//! The hooks beside an engine that is late, hangs, has too much to do or is new.

use super::rig::*;
use super::rows::{becomes, later, next, passes, syn, taken, IN, OUT};
use crate::bpf::{AcksOptions, Budget};
use crate::sys::clock;
use crate::sys::epoll::Waiter;
use std::os::fd::AsFd;
use weir_core::gateway::Verdict;
use weir_core::steer::slot_flag::SCALED;
use weir_core::time::Duration;
use weir_core::wire::build::SegmentBuilder;
use weir_core::wire::{Flags, Seq};

#[test]
fn without_a_heartbeat_everything_passes_and_is_noted() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(options());
    let slot = rig.control(key4(0, 0), 0, SCALED);
    rig.fresh(false);
    passes(&mut rig, IN, next(v4()).ack(1300), false);
    passes(&mut rig, OUT, later(v4(), 1001).ack(1350).payload(100), false);
    // What cannot be true is not.
    passes(&mut rig, OUT, next(v4()).ack(9000).payload(100), false);
    let now = [slot.tx(), slot.nxt(), Seq(slot.ts()), slot.edge(), slot.sent()];
    assert_eq!(now, [1350, 1100, 1001, 1750, 1750]);
    for segment in [next(v6()), syn(), v6().flags(Flags::RST), next(v6()).flags(Flags::FIN)] {
        passes(&mut rig, IN, segment, false);
    }
    assert_eq!(rig.acks.counters().unwrap().passed_stale, 7);
    // The rescuer's ACKs are brought up to date.
    let (made, sent) = (next(v4()).ack(1351), later(v4(), 1001).ack(1351).seq(1100));
    assert_eq!(rig.send(&made.build()), (PASS, sent.build()));
}

#[test]
fn openings_and_endings_are_shown_to_an_engine_that_is_late() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(AcksOptions { size_in: true, ..options() });
    let slot = rig.control(key4(0, 0), 0, SCALED);
    let ago = |ms| clock::now().saturating_sub(Duration::from_millis(ms));
    for (beat, shown) in [(ago(100), true), (ago(2001), false)] {
        rig.acks.hooks.beat(beat);
        let fin = next(v4()).flags(Flags::FIN | Flags::ACK);
        for segment in [syn(), syn().flags(Flags::SYN | Flags::ACK), v4().flags(Flags::RST), fin] {
            passes(&mut rig, IN, segment, shown);
        }
        passes(&mut rig, IN, next(v6()), false);
        passes(&mut rig, IN, next(v4()).seq(1001).payload(1), false);
    }
    assert_eq!((slot.has_ended(), slot.nxt().0), (true, 1002));
}

/// The coarse clock says nothing of it: it may be some ticks late.
#[test]
fn an_engine_is_away_when_its_beat_is_older_than_the_limit() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(AcksOptions { stale: Duration::from_secs(4), ..options() });
    rig.control(key4(0, 0), 0, SCALED);
    for (milliseconds, away) in [(0, false), (1_900, false), (2_100, false), (3_500, false), (4_001, true)] {
        rig.acks.hooks.beat(clock::now().saturating_sub(Duration::from_millis(milliseconds)));
        if away {
            passes(&mut rig, IN, next(v4()), false);
        } else {
            taken(&mut rig, IN, next(v4()));
        }
    }
}

/// With a recent beat, and with a supervisor that was seen more than 50 ms ago or just now.
#[test]
fn an_engine_that_has_ended_is_away_where_no_supervisor_watches() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(options());
    rig.control(key4(0, 0), 0, SCALED);
    let ago = |ms| clock::now().saturating_sub(Duration::from_millis(ms));
    // It needs nobody while it lives.
    rig.acks.hooks.watched(ago(1_000));
    taken(&mut rig, IN, next(v4()));
    std::thread::scope(|scope| {
        let engine = scope.spawn(|| std::mem::forget(rig.acks.hooks.own().unwrap()));
        engine.join().unwrap();
    });
    for (seen, away) in [(1_000, true), (0, false)] {
        rig.acks.hooks.watched(ago(seen));
        rig.acks.hooks.beat(clock::now());
        if away {
            passes(&mut rig, IN, next(v4()), false);
        } else {
            taken(&mut rig, IN, next(v4()));
        }
    }
}

#[test]
fn a_direction_that_is_not_shaped_shows_openings_and_endings() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(AcksOptions { shape_out: false, ..options() });
    rig.control(key4(0, 0), 0, SCALED);
    // The ways in which headers lie, some of which are looked at more closely than others.
    let kinds = [
        v4(),
        v6(),
        v4().vlan(5),
        v6().tag(0x88a8, 7).tag(0x8100, 9),
        v4().ip_options(&[1; 8]),
        v6().extension(0, &[0; 6]).extension(60, &[0; 14]),
    ];
    for kind in kinds {
        for segment in [next(kind.clone()), next(kind.clone()).ack(1300).payload(100), kind.clone()] {
            passes(&mut rig, OUT, segment, false);
        }
        let flags = [Flags::SYN, Flags::SYN | Flags::ACK, Flags::RST, Flags::FIN | Flags::ACK];
        for flags in flags {
            passes(&mut rig, OUT, kind.clone().flags(flags), true);
        }
    }
    let counters = rig.acks.counters().unwrap();
    assert_eq!((counters.passed_known, counters.copied), (6 * 4, 6 * 4));
    taken(&mut rig, IN, next(v4()));
}

/// As [`a_direction_that_is_not_shaped_shows_openings_and_endings`], where frames begin with IP.
#[test]
fn so_it_does_without_ethernet_header() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(AcksOptions { ethernet: false, shape_out: false, ..options() });
    for kind in [v4(), v6()] {
        let data = next(kind.clone()).payload(700).build();
        assert_eq!(rig.hook(OUT, &data[14..], 0), (PASS, data[14..].to_vec()));
        assert_eq!(rig.records(), []);
        rig.hook(OUT, &kind.flags(Flags::FIN | Flags::ACK).build()[14..], 0);
        assert_eq!(rig.records().len(), 1);
    }
}

#[test]
fn flows_that_pass_are_remembered_for_a_generation() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(options());
    rig.acks.apply(&[Verdict::Pass { ack_key: key4(0, 0) }, Verdict::Pass { ack_key: key6(7, 9) }]).unwrap();
    passes(&mut rig, IN, next(v4()), false);
    passes(&mut rig, OUT, next(v4()).payload(9), false);
    // Priority bits of a tag are not part of the flow.
    passes(&mut rig, IN, next(v6()).tag(0x88a8, 0x2007).tag(0x8100, 0xf009), false);
    // A new connection may come under another class; the end may be that of the other direction.
    passes(&mut rig, IN, syn(), true);
    passes(&mut rig, IN, next(v4()).flags(Flags::FIN | Flags::ACK), true);
    passes(&mut rig, IN, v4().flags(Flags::RST), true);
    // Other flows: another port, another tag, the other direction.
    taken(&mut rig, IN, next(v4()).ports(5002, 80));
    taken(&mut rig, IN, next(v4()).vlan(3));
    taken(&mut rig, IN, SegmentBuilder::v4(B, A).ports(80, 5001));
    rig.acks.hooks.next_generation();
    taken(&mut rig, IN, next(v4()));
}

#[test]
fn entries_of_flows_that_are_gone_are_harmless() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(options());
    let slot = rig.control(key4(0, 0), 3, SCALED);
    let news = next(v4()).ack(1100).payload(9);
    becomes(&mut rig, IN, news.clone(), next(v4()).payload(9).window(125), true);
    slot.close();
    passes(&mut rig, IN, news.clone(), true);
    assert_eq!(rig.acks.counters().unwrap().passed_unknown, 1);
    let made = next(v4()).ack(9000).build();
    assert_eq!(rig.send(&made), (PASS, made.clone()));
    // A slot that is used again is another flow's.
    slot.open(77, SCALED, 1000, 1000, 0, 1400, 1400, 100, weir_core::steer::ticks(clock::now()));
    passes(&mut rig, IN, news.clone(), true);
    // Forgetting an earlier use leaves the later one.
    let key = key4(0, 0);
    let forget = |tag| Verdict::Forget { ack_key: key, slot: 3, tag };
    rig.acks.apply(&[Verdict::Shape { ack_key: key, slot: 3, tag: 77 }, forget(4)]).unwrap();
    taken(&mut rig, IN, next(v4()));
    slot.close();
    rig.acks.apply(&[forget(77), forget(77)]).unwrap();
    passes(&mut rig, IN, news, true);
    assert_eq!(rig.acks.counters().unwrap().passed_unknown, 3);
}

#[test]
fn many_flows_are_installed_at_once() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(AcksOptions { flows: 1000, ..options() });
    let key = |port: u32| flow_key((A.into(), port as u16), (B.into(), 80), 0, 0);
    let install: Vec<Verdict> =
        (0..1000).map(|n| Verdict::Shape { ack_key: key(n), slot: n, tag: n + 1 }).collect();
    rig.acks.apply(&install).unwrap();
    for n in [0, 255, 256, 999] {
        rig.acks.slots()[n as usize].open(
            n + 1,
            SCALED,
            1000,
            1000,
            0,
            1400,
            1400,
            100,
            weir_core::steer::ticks(clock::now()),
        );
        passes(&mut rig, IN, next(v4()).ports(n as u16, 80).payload(1), false);
    }
    rig.acks.slots()[999].close();
    let forget: Vec<Verdict> =
        (0..1000).map(|n| Verdict::Forget { ack_key: key(n), slot: n, tag: n + 1 }).collect();
    rig.acks.apply(&forget).unwrap();
    passes(&mut rig, IN, next(v4()).ports(999, 80).payload(1), true);
}

#[test]
fn entries_that_an_engine_left_behind_make_room() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(options());
    let key = |port: u32| flow_key((A.into(), port as u16), (B.into(), 80), 0, 0);
    let install = |n: u32, tag| Verdict::Shape { ack_key: key(n), slot: n % 8, tag };
    rig.acks.slots()[0].open(
        1,
        SCALED,
        1000,
        1000,
        0,
        1400,
        1400,
        100,
        weir_core::steer::ticks(clock::now()),
    );
    rig.acks.apply(&[install(0, 1)]).unwrap();
    // Many more than there is room for, none of them of a slot that is in use.
    for n in 1..500 {
        rig.acks.apply(&[install(n, 1000 + n)]).unwrap();
    }
    taken(&mut rig, IN, next(v4()).ports(0, 80));
    assert!((1..200).contains(&rig.acks.sweep().unwrap()));
    assert_eq!(rig.acks.sweep().unwrap(), 0);
    passes(&mut rig, IN, next(v4()).ports(0, 80).payload(1), false);
}

#[test]
fn unknown_segments_have_a_budget() {
    if !privileged() {
        return;
    }
    // One now, the next long after the test.
    let one = Budget::every(10_000_000_000, 1);
    let limited =
        AcksOptions { takes: one, copies: one, syns: one, opens: one, ends: one, size_in: true, ..options() };
    let mut rig = Rig::new(limited);
    taken(&mut rig, IN, next(v4()));
    // Not taken, but still shown.
    passes(&mut rig, OUT, next(v4()), true);
    passes(&mut rig, IN, next(v4()), false);
    passes(&mut rig, IN, next(v4()).payload(9), false);
    // Unknown segments leave room for SYNs, and those for their answers.
    passes(&mut rig, IN, syn(), true);
    passes(&mut rig, IN, syn(), false);
    taken(&mut rig, IN, syn().flags(Flags::SYN | Flags::ACK));
    passes(&mut rig, IN, syn().flags(Flags::SYN | Flags::ACK), false);
    passes(&mut rig, IN, v4().flags(Flags::RST), true);
    passes(&mut rig, IN, v4().flags(Flags::RST), false);
    // Controlled flows have none.
    rig.control(key4(0, 0), 0, SCALED);
    for _ in 0..10 {
        taken(&mut rig, IN, next(v4()));
    }
    assert_eq!(rig.acks.counters().unwrap().over_budget, 7);
}

#[test]
fn the_engine_is_woken_only_when_it_sleeps() {
    if !privileged() {
        return;
    }
    let mut rig = Rig::new(options());
    let mut waiter = Waiter::new().unwrap();
    waiter.add(rig.rings[0].as_fd(), 1).unwrap();
    let woken = |waiter: &mut Waiter| {
        let soon = clock::now() + Duration::from_millis(20);
        let mut ready = Vec::new();
        waiter.wait(soon, &mut ready).unwrap();
        !ready.is_empty()
    };
    let frame = next(v4()).build();
    rig.hook(IN, &frame, 0);
    // It must not sleep over what is there.
    assert!(!rig.acks.hooks.sleep(&rig.rings[0]));
    assert_eq!(rig.records().len(), 1);
    assert!(rig.acks.hooks.sleep(&rig.rings[0]));
    assert!(!woken(&mut waiter));
    rig.hook(IN, &frame, 0);
    assert!(woken(&mut waiter));
    rig.acks.hooks.awake();
    assert_eq!(rig.records().len(), 1);
}
