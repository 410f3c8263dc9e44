//! Connections that leave by the interface on which they come, as on a router with one: all their segments
//! come in. The rates are those of each direction's class.

use crate::support::*;
use weir_core::gateway::{ClassConfig, Config, Direction, LAN, WAN};
use weir_core::node::Port;
use weir_core::rate::Rate;
use weir_core::time::Time;
use weir_core::wire::Flags;

/// Bytes of a step of 10 ms, at 10 Mbit/s out and at 20 Mbit/s in.
const OUT: u32 = 12_500;
const IN: u32 = 25_000;

const SYN_ACK: Flags = Flags(Flags::SYN.0 | Flags::ACK.0);

fn both() -> Config {
    let inward = basic_with(|release| release.rate = Rate::mbit(20));
    Config {
        classes: vec![
            ClassConfig::controlled("out", Direction::Out, basic()),
            ClassConfig::controlled("in", Direction::In, inward),
        ],
        ..Config::default()
    }
}

/// The sender's SYN comes in at 0 ms, and is answered at these ports after 20, 21 … ms.
fn opened(answers: &[Port]) -> Net {
    let mut w = Net::with_config(both(), None);
    let syn = w.data_segment(0).seq(SENDER_ISN).ack(0).flags(Flags::SYN).mss(1460).window_scale(7);
    w.inject_at(ms(0), WAN, syn);
    for (n, &port) in (20..).zip(answers) {
        let answer = w.ack_segment(0).seq(RECEIVER_ISN).flags(SYN_ACK).window(64_000);
        w.inject_at(ms(n), port, answer.mss(1460).window_scale(7));
    }
    w.run(ms(300));
    w
}

/// The acknowledgements that pass after the receiver's of 50,000 bytes at 1 s.
fn steps_of(w: &mut Net, port: Port) -> Vec<(Time, u32)> {
    for (t, n) in [(400, 0), (1_000, 50_000)] {
        let ack = w.ack_segment(n);
        w.inject_at(ms(t), port, ack);
    }
    w.run(ms(999));
    numbers(&w.run(ms(1_100)))
}

fn every_10_ms(step: u32) -> Vec<(Time, u32)> {
    (1..=50_000 / step).map(|n| (ms(990 + 10 * u64::from(n)), n * step)).collect()
}

#[test]
fn data_of_both_ends_goes_out() {
    let mut w = opened(&[WAN]);
    assert_eq!(steps_of(&mut w, WAN), every_10_ms(OUT));
    // The ends change places: what the receiver sends is acknowledged by the sender.
    let back = w.data_segment(0).flags(Flags::ACK).window(WINDOW);
    for (t, n) in [(1_500, 0), (2_000, 50_000)] {
        w.inject_at(ms(t), WAN, back.clone().ack(RECEIVER_ISN + 1 + n));
    }
    w.run(ms(1_999));
    let acks: Vec<u32> = w.run(ms(2_100)).iter().map(|s| w.tcp(s).ack.0 - RECEIVER_ISN - 1).collect();
    assert_eq!(acks, [OUT, 2 * OUT, 3 * OUT, 4 * OUT]);
    w.finish();
}

#[test]
fn a_connection_on_the_same_ports_is_one_too() {
    let mut w = opened(&[WAN]);
    assert_eq!(steps_of(&mut w, WAN), every_10_ms(OUT));
    let (isn, receiver) = (SENDER_ISN.wrapping_add(1 << 30), RECEIVER_ISN + (1 << 30));
    let syn = w.data_segment(0).seq(isn).ack(0).flags(Flags::SYN).mss(1460).window_scale(7);
    w.inject_at(ms(2_000), WAN, syn);
    let answer = w.ack_segment(0).seq(receiver).ack(isn.wrapping_add(1)).flags(SYN_ACK).window(64_000);
    w.inject_at(ms(2_020), WAN, answer.mss(1460).window_scale(7));
    for (t, n) in [(2_400, 0), (3_000, 50_000)] {
        let ack = w.ack_segment(0).seq(receiver + 1).ack(isn.wrapping_add(1 + n));
        w.inject_at(ms(t), WAN, ack);
    }
    w.run(ms(2_999));
    let acks: Vec<u32> =
        w.run(ms(3_100)).iter().map(|s| w.tcp(s).ack.0.wrapping_sub(isn.wrapping_add(1))).collect();
    assert_eq!(acks, [OUT, 2 * OUT, 3 * OUT, 4 * OUT]);
    w.finish();
}

/// The WAN's side sends an answer in the name of the LAN's, which answers itself.
#[test]
fn an_answer_of_the_lan_s_side_is_believed() {
    for answers in [&[LAN][..], &[WAN, LAN], &[LAN, WAN], &[WAN, LAN, WAN]] {
        let mut w = opened(answers);
        assert_eq!(steps_of(&mut w, LAN), every_10_ms(IN), "{answers:?}");
        assert_eq!(w.rig.node().flows.flows().find(|f| f.acked_bytes > 0).unwrap().pass, None);
        w.finish();
    }
}

/// An ACK of the LAN's side shows that the connection goes on there, though no answer was seen there.
#[test]
fn an_ack_of_the_lan_s_side_is_believed() {
    let mut w = opened(&[WAN]);
    for n in 0..100 {
        let ack = w.ack_segment(n * 1_000);
        w.inject_at(ms(400 + u64::from(n)), LAN, ack);
    }
    w.run(ms(600));
    let held = w.ack_segment(150_000);
    w.inject_at(ms(1_000), LAN, held);
    let sent = numbers(&w.run(ms(1_000)));
    assert!(sent.iter().all(|&(_, n)| n < 150_000), "{sent:?}");
    w.run(ms(2_000));
    assert_eq!(w.all_numbers().last(), Some(&150_000));
    w.finish();
}
