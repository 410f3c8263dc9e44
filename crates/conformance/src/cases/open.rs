//! Beginnings of connections.

use super::{open, Case};
use crate::script::{Opening, Script, Side, BACKLOG, MSS};
use crate::trace::{Origin, Trace};
use crate::Verdict;
use weir_core::wire::Flags;

const PASSES: &str = "a SYN passes at once with its options; a window alone may be less";

pub(super) const CASES: &[Case] = &[
    Case::new("handshake", PASSES, "RFC 9293 §3.5", handshake).check(options_stay),
    Case::new("syn-retransmitted", PASSES, "RFC 9293 §3.8.1", repeated).check(options_stay),
    Case::new("simultaneous-open", PASSES, "RFC 9293 §3.5", both_open),
    Case::new("refused", "a refusal passes at once as it came", "RFC 9293 §3.5.2", refused)
        .check(|t| t.untouched("rst")),
    Case::new("fast-open", "data on a SYN passes with it", "RFC 7413 §4", fast_open)
        .check(|t| t.untouched("syn")),
    Case::new("fast-open-data-acknowledged", PASSES, "RFC 7413 §4.2", fast_open_answered),
    Case::new(
        "syn-on-a-live-connection",
        "a stray SYN ends nothing; the challenge ACK passes",
        "RFC 5961 §4",
        stray,
    )
    .check(|t| t.untouched("syn-again").and_then(|()| t.tells("challenge"))),
    Case::new(
        "port-reused",
        "nothing is said in the name of a connection that is over",
        "RFC 9293 §3.6.1",
        reused,
    )
    .check(of_this_connection),
];

fn handshake(s: &mut Script) {
    open(s);
    s.send(4 * MSS).wait_ms(20).ack(4 * MSS);
}

/// Checks that a SYN changes only in its window.
fn options_stay(trace: &Trace) -> Verdict {
    trace.untouched("syn")?;
    for (i, event) in trace.labelled("syn-ack") {
        let Some(out) = trace.left[i].map(|o| &trace.out[o]) else { return Err("a SYN-ACK was lost".into()) };
        if out.crossed.bytes.len() != event.frame.head.len() {
            return Err("a SYN-ACK has other options".into());
        }
    }
    Ok(())
}

fn repeated(s: &mut Script) {
    let opening = Opening::default();
    let (syn, answer) = (s.syn(&opening), s.syn_ack(&opening));
    for _ in 0..2 {
        s.label("syn").put(Side::Sender, syn.clone()).wait_ms(20);
        s.label("syn-ack").put(Side::Receiver, answer.clone()).wait_ms(1_000);
    }
    s.opened(&opening);
    s.confirm().backlog();
}

/// Both SYNs cross, and each is answered by a SYN-ACK.
fn both_open(s: &mut Script) {
    let opening = Opening::default();
    let (syn, back) = (s.syn(&opening), s.syn_ack(&opening).ack(0).flags(Flags::SYN));
    s.put(Side::Sender, syn.clone()).put(Side::Receiver, back).wait_ms(20);
    let from_sender = syn.ack(s.ends.isn.1.wrapping_add(1)).flags(Flags::SYN | Flags::ACK);
    let from_receiver = s.syn_ack(&opening);
    s.put(Side::Sender, from_sender).put(Side::Receiver, from_receiver).wait_ms(20);
    s.opened(&opening);
    s.ack(0).wait_ms(40).backlog();
}

fn refused(s: &mut Script) {
    let syn = s.syn(&Opening::default());
    let rst = s.ends.receiver().seq(0).ack(s.ends.seq(0)).flags(Flags::RST | Flags::ACK).window(0);
    s.put(Side::Sender, syn).wait_ms(20).label("rst").put(Side::Receiver, rst);
    s.over();
}

fn fast_open(s: &mut Script) {
    let opening = Opening::default();
    let syn = s.syn(&opening).fast_open(&[7; 8]).payload(500);
    s.label("syn").put(Side::Sender, syn).wait_ms(20);
    // The server does not take the data: only the SYN is acknowledged, and the data comes again.
    let answer = s.syn_ack(&opening);
    s.put(Side::Receiver, answer);
    s.opened(&opening);
    s.confirm().backlog();
}

fn fast_open_answered(s: &mut Script) {
    let opening = Opening::default();
    let syn = s.syn(&opening).fast_open(&[7; 8]).payload(500);
    s.label("syn").put(Side::Sender, syn).wait_ms(20);
    let answer = s.syn_ack(&opening).ack(s.ends.seq(500));
    s.put(Side::Receiver, answer);
    s.opened(&opening);
    // The server answers with data before the client has confirmed (RFC 7413 §4.2.2).
    let reply = s.ack_for(500).payload(1_000);
    s.put(Side::Receiver, reply).has_said(1_000);
    let confirm = s.data(500);
    s.put(Side::Sender, confirm).wait_ms(20).ack(500).wait_ms(60).backlog();
}

fn stray(s: &mut Script) {
    open(s);
    s.backlog();
    let syn = s.ends.syn().seq(77).mss(1_460);
    s.forged().label("syn-again").put(Side::Sender, syn).wait_ms(20);
    s.label("challenge").ack(BACKLOG);
    s.wait_ms(20).send(BACKLOG + 4 * MSS).wait_ms(20).ack(BACKLOG + 4 * MSS);
}

/// The sender begins a new connection while many of the receiver's acknowledgements are still held. Once the
/// new connection is acknowledged, they would be answered with a RST.
fn reused(s: &mut Script) {
    open(s);
    s.backlog();
    let rst = s.data(BACKLOG).flags(Flags::RST);
    s.put(Side::Sender, rst).wait_ms(5);
    s.over();
    s.ends.isn = (s.ends.isn.0.wrapping_add(50_000_000), s.ends.isn.1.wrapping_add(70_000_000));
    let opening = Opening::default();
    let (syn, answer) = (s.syn(&opening), s.syn_ack(&opening));
    s.put(Side::Sender, syn).wait_ms(20);
    s.label("answer").put(Side::Receiver, answer);
    let confirm = s.data(0);
    s.put(Side::Sender, confirm).wait_ms(20).ack(0).wait_ms(20);
    for n in 1..=50u32 {
        let data = s.data((n - 1) * 2 * MSS).payload(MSS as usize);
        s.put(Side::Sender, data).wait_us(20).ack(n * 2 * MSS);
    }
}

/// Checks that every ACK made after the second connection stands belongs to it, and that its last number is
/// told.
fn of_this_connection(trace: &Trace) -> Verdict {
    let Some((i, event)) = trace.labelled("answer").next() else { return Err("no answer".into()) };
    let Some(left) = trace.left[i] else { return Err("the answer was lost".into()) };
    let first = trace.segs[i].as_ref().map_or(0, |s| s.tcp.ack.0);
    let last = first.wrapping_add(BACKLOG);
    let reach = trace.out[left..].iter().filter(|o| o.crossed.to == Side::Sender);
    let mut told = first;
    for seg in reach.filter(|o| o.origin != Origin::Alien).filter_map(|o| o.seg.as_ref()) {
        if seg.tcp.ack.0.wrapping_sub(first) > BACKLOG {
            return Err(format!("after {:?} an ACK of the connection before is sent", event.at));
        }
        told = seg.tcp.ack.0;
    }
    if told != last {
        return Err("the last bytes of the second connection are never acknowledged".into());
    }
    Ok(())
}
