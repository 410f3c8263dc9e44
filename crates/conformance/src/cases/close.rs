//! Ends of connections, and urgent data.

use super::{open, Case};
use crate::script::{Script, Side, BACKLOG, MSS};
use weir_core::wire::Flags;

const FIN: Flags = Flags(Flags::FIN.0 | Flags::ACK.0);
const BEHIND: &str = "it passes at once, behind all that was acknowledged before";

pub(super) const CASES: &[Case] = &[
    Case::new("fin-of-receiver", BEHIND, "RFC 9293 §3.6", fin_of_receiver)
        .check(|t| t.at_once("fin").and_then(|()| t.told_before("fin"))),
    Case::new("fin-with-data", "the last data passes with its FIN", "RFC 9293 §3.6", fin_with_data)
        .check(|t| t.at_once("fin").and_then(|()| t.told_before("fin"))),
    Case::new("fin-retransmitted", "a FIN that is sent again passes again", "RFC 9293 §3.6", fin_again)
        .check(|t| t.at_once("fin")),
    Case::new("fin-of-sender", "it passes at once, and its ACK is told", "RFC 9293 §3.6", fin_of_sender)
        .check(|t| t.untouched("fin")),
    Case::new("half-closed", "data goes on after the receiver's FIN", "RFC 9293 §3.6", half_closed)
        .check(|t| t.at_once("fin")),
    Case::new(
        "loss-half-closed",
        "losses are told after the receiver's FIN too",
        "RFC 9293 §3.6, RFC 6675 §5",
        loss_half_closed,
    )
    .check(|t| t.tells("duplicate").and_then(|()| t.tells("sack"))),
    Case::new(
        "fin-of-sender-retransmitted",
        "it is acknowledged again after the receiver's FIN",
        "RFC 9293 §3.10.7.4",
        fin_answered_again,
    )
    .check(|t| t.at_once("fin").and_then(|()| t.tells("answer"))),
    Case::new(
        "simultaneous-close",
        "FINs that cross pass at once, and both are acknowledged",
        "RFC 9293 §3.6",
        both_close,
    )
    .check(|t| t.at_once("fin")),
    Case::new("silence-after-close", "nothing is said of a connection that is over", "RFC 9293 §3.6.1", over)
        .check(|t| t.silent_after("last"))
        .virtual_only(),
    Case::new(
        "rst-of-receiver",
        "it passes at once, and nothing is said behind it",
        "RFC 9293 §3.5.3",
        rst_of_receiver,
    )
    .check(|t| t.untouched("rst").and_then(|()| t.silent_after("rst"))),
    Case::new("rst-behind-what-is-held", BEHIND, "RFC 9293 §3.5.3", rst_of_receiver)
        .check(|t| t.untouched("rst").and_then(|()| t.told_before("rst"))),
    Case::new(
        "rst-of-sender",
        "it passes at once, and nothing is said to nobody",
        "RFC 9293 §3.5.3",
        rst_of_sender,
    )
    .check(|t| t.untouched("rst").and_then(|()| t.silent_after("rst"))),
    Case::new("rst-refused", "a RST that its receiver refuses ends nothing", "RFC 5961 §3.2", rst_refused)
        .check(|t| t.untouched("rst")),
    Case::new("urgent", "urgent segments pass at once with their pointer", "RFC 9293 §3.8.5", urgent)
        .check(|t| t.at_once("urgent")),
];

fn fin_of_receiver(s: &mut Script) {
    open(s);
    s.backlog();
    let fin = s.ack_for(BACKLOG).flags(FIN);
    s.label("fin").put(Side::Receiver, fin);
}

fn fin_with_data(s: &mut Script) {
    open(s);
    s.backlog();
    let fin = s.ack_for(BACKLOG).flags(FIN).payload(300);
    s.label("fin").put(Side::Receiver, fin);
}

fn fin_again(s: &mut Script) {
    open(s);
    s.backlog();
    for _ in 0..3 {
        let fin = s.ack_for(BACKLOG).flags(FIN);
        s.label("fin").put(Side::Receiver, fin).wait_ms(200);
    }
}

fn fin_of_sender(s: &mut Script) {
    open(s);
    s.backlog();
    let fin = s.data(BACKLOG).flags(FIN);
    s.label("fin").put(Side::Sender, fin).wait_ms(20).ack(BACKLOG + 1);
}

fn half_closed(s: &mut Script) {
    open(s);
    s.backlog();
    let fin = s.ack_for(BACKLOG).flags(FIN);
    s.label("fin").put(Side::Receiver, fin).has_said(1);
    let answer = s.data(BACKLOG);
    s.wait_ms(20).put(Side::Sender, answer).backlog();
}

/// The receiver has closed and goes on taking data, and a segment of the data is lost.
fn loss_half_closed(s: &mut Script) {
    half_closed(s);
    s.send(2 * BACKLOG + 10 * MSS).wait_ms(2);
    for _ in 0..3 {
        s.wait_us(100).label("duplicate").ack(2 * BACKLOG);
    }
    let block = (s.ends.seq(2 * BACKLOG + MSS), s.ends.seq(2 * BACKLOG + 2 * MSS));
    let sack = s.ack_for(2 * BACKLOG).sack(&[block]);
    s.wait_ms(1).label("sack").put(Side::Receiver, sack).wait_ms(40).ack(2 * BACKLOG + 10 * MSS);
}

/// The acknowledgement of the sender's FIN is lost on its way, so the FIN comes again and is answered again.
fn fin_answered_again(s: &mut Script) {
    both_close(s);
    for _ in 0..2 {
        let fin = s.data(BACKLOG).flags(FIN);
        s.wait_ms(700).label("fin").put(Side::Sender, fin).wait_ms(20).label("answer").ack(BACKLOG + 1);
    }
}

fn both_close(s: &mut Script) {
    open(s);
    s.backlog();
    let (ours, theirs) = (s.data(BACKLOG).flags(FIN), s.ack_for(BACKLOG).flags(FIN));
    s.label("fin").put(Side::Sender, ours);
    s.label("fin").put(Side::Receiver, theirs).has_said(1);
    let answer = s.data(BACKLOG + 1);
    s.wait_ms(20).put(Side::Sender, answer).ack(BACKLOG + 1);
}

fn over(s: &mut Script) {
    both_close(s);
    s.wait_ms(2_000).label("last").ack(BACKLOG + 1).wait_ms(60_000);
    let other = s.ends.sender().ports(9, 9).udp().payload(1);
    s.put(Side::Sender, other);
}

fn rst_of_receiver(s: &mut Script) {
    open(s);
    s.backlog();
    let rst = s.ack_for(BACKLOG).flags(Flags::RST | Flags::ACK);
    s.label("rst").put(Side::Receiver, rst);
    s.over();
}

/// The sender has forgotten the connection, and would answer further segments with RSTs.
fn rst_of_sender(s: &mut Script) {
    open(s);
    s.backlog();
    let rst = s.data(BACKLOG).flags(Flags::RST);
    s.label("rst").put(Side::Sender, rst);
    s.over();
}

/// A RST elsewhere than at RCV.NXT: its receiver answers with a challenge ACK and goes on.
fn rst_refused(s: &mut Script) {
    open(s);
    s.backlog();
    let rst = s.ack_for(BACKLOG).seq(s.said_seq(0).wrapping_add(1_000)).flags(Flags::RST);
    s.forged().label("rst").put(Side::Receiver, rst);
    let challenge = s.data(BACKLOG);
    s.wait_ms(1).put(Side::Sender, challenge).wait_ms(20);
    s.send(BACKLOG + 4 * MSS).wait_ms(20).ack(BACKLOG + 4 * MSS);
}

fn urgent(s: &mut Script) {
    open(s);
    s.backlog();
    let urg = Flags::URG | Flags::ACK;
    let segment = s.ack_for(BACKLOG).flags(urg).urgent(20).payload(40);
    s.label("urgent").put(Side::Receiver, segment).has_said(40);
    let alone = s.ack_for(BACKLOG).flags(urg).urgent(1);
    s.wait_ms(3).label("urgent").put(Side::Receiver, alone);
    let segment = s.data(BACKLOG).flags(urg).urgent(5).payload(10);
    s.wait_ms(3).label("urgent").put(Side::Sender, segment).wait_ms(20).ack(BACKLOG + 10);
}
