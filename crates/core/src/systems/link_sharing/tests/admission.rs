//! Connections that are refused when the rate left is too low.

use super::*;
use crate::classify::spec::{FlowMin, Refusal};
use crate::wire::Flags;

/// 100 kb/s for TCP, and the rest that UDP leaves of 100 kb/s more. Each connection has at least 40 kb/s.
fn guaranteed(refusal: Refusal) -> Config {
    let pfq =
        queue::Config { limit: QueueLimit::Packets(100), kind: Kind::Pfq(Default::default()), tins: None };
    let flow_min = Some(FlowMin { rate: Rate::kbit(40), refusal });
    let tcp = Spec { rate: Some(Rate::kbit(100)), queue: Some(pfq), flow_min, ..Spec::of(Some(2)) };
    let udp = Spec { rate: Some(Rate::kbit(100)), queue: Some(FIFO), ..Spec::of(Some(2)) };
    let link = Spec { rate: Some(Rate::kbit(200)), ..Spec::of(None) };
    let classes = vec![class("udp", Some(UDP), udp), class("tcp", Some(TCP), tcp), class("link", None, link)];
    Config { classes, ..Config::default() }
}

fn segment(port: u16, flags: Flags) -> TestFrame {
    let segment = SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).ports(port, 80).seq(99).flags(flags);
    TestFrame::bytes(&segment.build())
}

/// A segment with 60 bytes.
fn data(port: u16) -> TestFrame {
    let segment = SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).ports(port, 80).seq(100).payload(60);
    TestFrame::bytes(&segment.build())
}

/// The other end acknowledges `bytes` bytes behind the SYN, or the SYN if `flags` has it.
fn answer(port: u16, bytes: u32, flags: Flags) -> TestFrame {
    let segment = SegmentBuilder::v4([10, 0, 0, 2], [10, 0, 0, 1]).ports(80, port).seq(7).ack(100 + bytes);
    TestFrame::bytes(&segment.flags(flags).build())
}

/// Opens a connection of a host `at` this time, answers it, and acknowledges its first data.
fn open(r: &mut Rig<Sharing>, at: u64, port: u16) {
    r.at(ms(at)).inject(LAN, segment(port, Flags::SYN));
    r.at(ms(at)).inject(WAN, answer(port, 0, Flags::SYN.with(Flags::ACK)));
    r.at(ms(at)).inject(LAN, data(port)).inject(WAN, answer(port, 60, Flags::ACK));
}

/// A packet of 250 bytes every 20 ms from `from` to `until`: 100 kb/s.
fn calls(r: &mut Rig<Sharing>, from: u64, until: u64) {
    (from..until).step_by(20).for_each(|at| {
        r.at(ms(at)).inject(LAN, packet(true, 9, 250));
    });
}

/// Returns the number of connections with the guarantee, and the number of refused SYNs.
fn admitted(r: &Rig<Sharing>) -> (u32, u64) {
    let stats = r.node().admission(1).expect("tcp guarantees a rate");
    (stats.flows, stats.refused)
}

#[test]
fn a_connection_is_refused_while_others_use_what_it_would_need() {
    let mut r = rig(guaranteed(Refusal::Drop));
    calls(&mut r, 0, 4_000);
    r.run_until(ms(4_000));
    // 100 kb/s are left: 40 for each of two, and too little for a third.
    for (port, expected) in [(1, (1, 0)), (2, (2, 0)), (3, (2, 1)), (2, (2, 1))] {
        r.at(ms(4_000)).inject(LAN, segment(port, Flags::SYN));
        r.run_until(ms(4_000));
        assert_eq!(admitted(&r), expected, "{port}");
    }
    r.run_until(ms(4_040));
    // Open connections may send. One seen only in mid-stream passes, and has no guarantee.
    r.at(ms(4_050)).inject(LAN, data(1)).inject(LAN, data(4));
    let ports = |sent: Vec<Sent>| {
        let ours = sent.into_iter().filter(|s| s.port == WAN).collect::<Vec<_>>();
        stamps(&ours).into_iter().map(|(_, p)| p).filter(|&p| p != 9).collect::<Vec<_>>()
    };
    assert_eq!(ports(r.run_until(ms(4_100))), [1, 4]);
    assert_eq!(admitted(&r), (2, 1));
    // They are confirmed. Pending ones would be forgotten after three seconds.
    r.inject(WAN, answer(1, 60, Flags::ACK)).inject(LAN, data(2)).inject(WAN, answer(2, 60, Flags::ACK));
    r.run_until(ms(4_200));
    // The calls ended two seconds ago: 200 kb/s are available.
    r.run_until(ms(9_000));
    r.at(ms(9_000))
        .inject(LAN, segment(3, Flags::SYN))
        .inject(LAN, segment(5, Flags::SYN))
        .inject(LAN, segment(6, Flags::SYN));
    assert_eq!(ports(r.run_until(ms(9_100))), [3, 5, 6]);
    assert_eq!(admitted(&r), (5, 1));
    // One ends.
    r.at(ms(9_200)).inject(LAN, segment(5, Flags::FIN.with(Flags::ACK)));
    r.run_until(ms(9_200));
    assert_eq!(admitted(&r), (4, 1));
    assert_eq!(r.node().ledger().drops.get(DropReason::Refused), 1);
    // After a minute of silence no connection has a guarantee, and a new one asks.
    r.at(ms(80_000)).inject(LAN, segment(7, Flags::SYN));
    r.run_until(ms(80_100));
    assert_eq!(admitted(&r), (1, 1));
    r.finish();
}

/// Five have room in 200 kb/s.
fn idle() -> Rig<Sharing> {
    let mut r = rig(guaranteed(Refusal::Drop));
    r.run_until(ms(4_000));
    r
}

/// Segments of the host `n`.
fn from(n: u8, port: u16, flags: Flags, payload: usize) -> TestFrame {
    let segment = SegmentBuilder::v4([10, 0, 0, n], [10, 0, 0, 2]).ports(port, 80).seq(99).flags(flags);
    TestFrame::bytes(&segment.payload(payload).build())
}

#[test]
fn a_connection_that_never_was_has_no_guarantee() {
    let mut r = idle();
    for port in 1..=50 {
        r.inject(LAN, data(port));
    }
    r.run_until(ms(4_500));
    assert_eq!(admitted(&r), (0, 0));
    open(&mut r, 5_000, 77);
    r.run_until(ms(5_100));
    assert_eq!(admitted(&r), (1, 0));
    r.finish();
}

#[test]
fn a_syn_that_nobody_answers_is_pending_for_a_while() {
    let mut r = idle();
    for port in 1..=6 {
        r.inject(LAN, segment(port, Flags::SYN));
        // A server answers the SYNs of every host.
        r.inject(WAN, answer(port, 0, Flags::SYN.with(Flags::ACK)));
    }
    r.run_until(ms(4_500));
    assert_eq!(admitted(&r), (5, 1), "the sixth of one host");
    // It takes at most half from any other host.
    r.at(ms(4_600)).inject(LAN, from(9, 1, Flags::SYN, 0)).inject(LAN, from(9, 2, Flags::SYN, 0));
    r.run_until(ms(4_600));
    assert_eq!(admitted(&r), (5, 1));
    // After a second all give way.
    r.at(ms(5_100)).inject(LAN, segment(7, Flags::SYN));
    r.run_until(ms(5_100));
    assert_eq!(admitted(&r), (5, 1));
    // After three seconds all are forgotten.
    r.at(ms(9_000)).inject(LAN, segment(8, Flags::SYN));
    r.run_until(ms(9_100));
    assert_eq!(admitted(&r), (1, 1));
    r.finish();
}

#[test]
fn a_flood_of_syns_refuses_nobody_for_long() {
    let mut r = idle();
    // Ten a second from each of three hosts, never confirmed. One honest connection every two seconds.
    for tick in 0..300u64 {
        for host in 20..23 {
            let port = 1_000 + tick as u16;
            r.at(ms(4_000 + 100 * tick)).inject(LAN, from(host, port, Flags::SYN, 0));
        }
        if tick % 20 == 19 {
            let port = tick as u16;
            open(&mut r, 4_050 + 100 * tick, port);
            r.run_until(ms(4_050 + 100 * tick));
            let confirmed = (tick / 20 + 1).min(5) as u32;
            assert!(admitted(&r).0 >= confirmed, "{:?} at {tick}", admitted(&r));
        }
    }
    r.run_until(ms(40_000));
    r.inject(LAN, from(30, 1, Flags::SYN, 0));
    r.run_until(ms(40_001));
    // The flood is forgotten. Five confirmed connections have the whole rate.
    assert_eq!(admitted(&r).0, 5);
    r.finish();
}

#[test]
fn one_in_midstream_is_confirmed_after_three_windows() {
    let mut r = idle();
    let more = |n: u32| {
        let s = SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).ports(4, 80).seq(100 + 60 * n).payload(60);
        TestFrame::bytes(&s.build())
    };
    for n in 0..4 {
        let at = 4_000 + 100 * u64::from(n);
        // The sender's own segments do not count, nor do impossible ones.
        r.at(ms(at)).inject(LAN, more(n)).inject(WAN, answer(4, 60 * n + 61, Flags::ACK));
        r.run_until(ms(at));
        assert_eq!(admitted(&r), (0, 0), "{n}");
        r.at(ms(at + 50)).inject(WAN, answer(4, 60 * n + 60, Flags::ACK));
        r.run_until(ms(at + 60));
        if n >= 2 {
            break;
        }
    }
    assert_eq!(admitted(&r), (1, 0));
    r.finish();
}

#[test]
fn who_is_refused_with_a_reset_hears_so_at_once() {
    let mut r = rig(guaranteed(Refusal::Reset));
    r.run_until(ms(1));
    for port in 1..=6 {
        r.inject(LAN, segment(port, Flags::SYN));
    }
    let sent = r.run_until(ms(100));
    // Five have room in 200 kb/s. The sixth is answered as by a closed port.
    let (out, back): (Vec<_>, Vec<_>) = sent.into_iter().partition(|s| s.port == WAN);
    assert_eq!((out.len(), back.len()), (5, 1));
    let packet = wire::packet(&back[0].bytes, back[0].bytes.len()).unwrap();
    let tcp = wire::tcp(&back[0].bytes, &packet).unwrap();
    assert_eq!((tcp.src_port, tcp.dst_port, tcp.ack.0), (80, 6, 100));
    assert_eq!(tcp.flags, Flags::RST.with(Flags::ACK));
    for port in 1..=5 {
        r.inject(LAN, data(port)).inject(WAN, answer(port, 60, Flags::ACK));
    }
    r.run_until(ms(199));
    // Where the other side opens, the answer becomes a RST and goes on.
    r.inject(LAN, segment(7, Flags::SYN.with(Flags::ACK)));
    let sent = r.run_until(ms(299));
    assert_eq!((sent.len(), sent[0].port), (1, WAN));
    assert_eq!(admitted(&r), (5, 2));
    r.finish();
}

#[test]
fn guarantees_last_when_the_configuration_changes() {
    let mut r = rig(guaranteed(Refusal::Drop));
    r.run_until(ms(1));
    for port in 1..=6 {
        r.inject(LAN, segment(port, Flags::SYN));
    }
    r.run_until(ms(10));
    assert_eq!(admitted(&r), (5, 1));
    let mut next = guaranteed(Refusal::Drop);
    next.classes.swap(1, 2);
    for (i, parent) in [(0, 1), (2, 1)] {
        share(&mut next.classes[i], |spec| spec.parent = Some(parent));
    }
    share(&mut next.classes[2], |spec| {
        spec.flow_min = spec.flow_min.map(|min| FlowMin { rate: Rate::kbit(30), ..min })
    });
    replace(&mut r, next);
    assert_eq!(r.node().admission(2).map(|a| (a.flows, a.refused)), Some((5, 1)));
    // Six of 30 kb/s fit. The one that ends is one of the earlier ones.
    r.inject(LAN, segment(8, Flags::SYN))
        .inject(LAN, segment(9, Flags::SYN))
        .inject(LAN, segment(1, Flags::RST));
    r.run_until(ms(20));
    assert_eq!(r.node().admission(2).map(|a| (a.flows, a.refused)), Some((5, 2)));
    r.finish();
}
