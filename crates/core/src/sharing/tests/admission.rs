//! Connections that are refused when there is too little for them.

use super::*;
use crate::class::{FlowMin, Refusal};
use crate::wire::Flags;

/// 100 kb/s for TCP, and what UDP leaves of 100 kb/s more; each connection has at least 40 kb/s.
fn guaranteed(refusal: Refusal) -> Config {
    let pfq = queue::Config { limit: QueueLimit::Packets(100), kind: Kind::Pfq(Default::default()) };
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

/// A packet of 250 bytes every 20 ms from `from` to `until`: 100 kb/s.
fn calls(r: &mut Rig<Sharing>, from: u64, until: u64) {
    (from..until).step_by(20).for_each(|at| {
        r.at(ms(at)).inject(LAN, packet(true, 9, 250));
    });
}

/// How many connections have the guarantee, and how many SYNs were refused.
fn admitted(r: &Rig<Sharing>) -> (u32, u64) {
    let stats = r.node().admission(1).expect("tcp guarantees a rate");
    (stats.flows, stats.refused)
}

#[test]
fn a_connection_is_refused_while_others_use_what_it_would_need() {
    let mut r = rig(guaranteed(Refusal::Drop));
    calls(&mut r, 0, 4_000);
    r.run_until(ms(4_000));
    // 100 kb/s are left: 40 for each of two, and not for a third.
    for (port, expected) in [(1, (1, 0)), (2, (2, 0)), (3, (2, 1)), (2, (2, 1))] {
        r.at(ms(4_000)).inject(LAN, segment(port, Flags::SYN));
        r.run_until(ms(4_000));
        assert_eq!(admitted(&r), expected, "{port}");
    }
    r.run_until(ms(4_040));
    // What is open may send. One in mid-stream has what it has already.
    r.at(ms(4_050)).inject(LAN, data(1)).inject(LAN, data(4));
    let ports =
        |sent: Vec<Sent>| stamps(&sent).into_iter().map(|(_, p)| p).filter(|&p| p != 9).collect::<Vec<_>>();
    assert_eq!(ports(r.run_until(ms(4_100))), [1, 4]);
    assert_eq!(admitted(&r), (3, 1));
    // The calls have ended for two seconds: 200 kb/s are there.
    r.run_until(ms(9_000));
    r.at(ms(9_000))
        .inject(LAN, segment(3, Flags::SYN))
        .inject(LAN, segment(5, Flags::SYN))
        .inject(LAN, segment(6, Flags::SYN));
    assert_eq!(ports(r.run_until(ms(9_100))), [3, 5]);
    assert_eq!(admitted(&r), (5, 2));
    // One ends.
    r.at(ms(9_200)).inject(LAN, segment(5, Flags::FIN.with(Flags::ACK)));
    r.run_until(ms(9_200));
    assert_eq!(admitted(&r), (4, 2));
    assert_eq!(r.node().ledger().drops.get(DropReason::Refused), 2);
    // After a minute of silence nobody has a guarantee, and a new one asks.
    r.at(ms(80_000)).inject(LAN, segment(7, Flags::SYN));
    r.run_until(ms(80_100));
    assert_eq!(admitted(&r), (1, 2));
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
    // Five have room in 200 kb/s. The sixth is answered, as if nobody listened.
    let (out, back): (Vec<_>, Vec<_>) = sent.into_iter().partition(|s| s.port == WAN);
    assert_eq!((out.len(), back.len()), (5, 1));
    let packet = wire::packet(&back[0].bytes, back[0].bytes.len()).unwrap();
    let tcp = wire::tcp(&back[0].bytes, &packet).unwrap();
    assert_eq!((tcp.src_port, tcp.dst_port, tcp.ack), (80, 6, 100));
    assert_eq!(tcp.flags, Flags::RST.with(Flags::ACK));
    // Where the other side opens, the answer becomes a RST and goes on.
    r.inject(LAN, segment(7, Flags::SYN.with(Flags::ACK)));
    let sent = r.run_until(ms(200));
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
    // Six of 30 kb/s fit, and the one that ends is one of those of before.
    r.inject(LAN, segment(8, Flags::SYN))
        .inject(LAN, segment(9, Flags::SYN))
        .inject(LAN, segment(1, Flags::RST));
    r.run_until(ms(20));
    assert_eq!(r.node().admission(2).map(|a| (a.flows, a.refused)), Some((5, 2)));
    r.finish();
}
