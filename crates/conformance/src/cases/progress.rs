//! Plain acknowledgements of progress.

use super::{open, open_stamped, Case};
use crate::script::{Script, Side, BACKLOG, MSS};
use crate::trace::Trace;
use crate::Verdict;
use weir_core::time::Duration;

const TOLD: &str = "held progress is told, never ahead of the receiver, never back, never twice";

pub(super) const CASES: &[Case] = &[
    Case::new("backlog", TOLD, "RFC 9293 §3.4, RFC 5681 §2", backlog),
    Case::new("one-stretch-ack", TOLD, "RFC 2525 §2.13", stretch),
    Case::new("trickle", TOLD, "RFC 9293 §3.4", trickle),
    Case::new("acks-overtake", TOLD, "RFC 9293 §3.10.7.4", overtake),
    Case::new("old-acks", TOLD, "RFC 9293 §3.10.7.4", old),
    Case::new("sequence-wrap", "numbers wrap at 2^32, of data and of ACKs", "RFC 9293 §3.4", wrap),
    Case::new(
        "data-on-acks",
        "payload passes at once and whole; its acknowledgement may wait",
        "RFC 9293 §3.8",
        talk,
    ),
    Case::new("data-retransmitted-on-acks", "data that is sent again passes again", "RFC 9293 §3.8.1", again),
    Case::new("silence", "nobody speaks for an end that is silent", "RFC 9293 §3.8.4", silence)
        .check(silent)
        .virtual_only(),
];

fn backlog(s: &mut Script) {
    open(s);
    s.backlog();
}

fn stretch(s: &mut Script) {
    open(s);
    s.send(BACKLOG).wait_ms(20).ack(BACKLOG);
}

fn trickle(s: &mut Script) {
    open(s);
    for n in 1..=10 {
        s.send(n * 2 * MSS).wait_ms(20).ack(n * 2 * MSS).wait_ms(30);
    }
}

/// Pairs of ACKs change places before they reach the middlebox.
fn overtake(s: &mut Script) {
    open(s);
    s.send(BACKLOG).wait_ms(20);
    for n in 0..BACKLOG / (4 * MSS) {
        s.wait_us(20).ack((4 * n + 4) * MSS).wait_us(20).ack((4 * n + 2) * MSS);
    }
    s.ack(BACKLOG);
}

fn old(s: &mut Script) {
    open(s);
    s.backlog();
    for n in [2, 20, 60] {
        let old = s.ack_for(n * MSS);
        s.wait_ms(1).put(Side::Receiver, old);
    }
}

fn wrap(s: &mut Script) {
    s.ends.isn = (0u32.wrapping_sub(BACKLOG / 2), 0u32.wrapping_sub(3_000));
    open_stamped(s);
    s.backlog();
    for _ in 0..4 {
        s.wait_ms(10).say(MSS);
    }
    s.backlog();
}

fn talk(s: &mut Script) {
    open_stamped(s);
    s.send(BACKLOG).wait_ms(20);
    for n in 1..=20 {
        s.wait_us(500).ack(n * 5 * MSS - 2_000).say(700).wait_us(500).ack(n * 5 * MSS);
    }
}

fn again(s: &mut Script) {
    open(s);
    s.backlog().say(1_000);
    let again = s.ack_for(BACKLOG).seq(s.said_seq(1_000)).payload(1_000);
    s.wait_ms(5).put(Side::Receiver, again).wait_ms(5).say(500);
}

fn silence(s: &mut Script) {
    open(s);
    s.backlog();
    s.wait_ms(70_000).ack(BACKLOG + MSS);
}

/// Checks that 140,000 bytes at 2 Mb/s are followed by silence for a minute.
fn silent(trace: &Trace) -> Verdict {
    let last = trace.script.end();
    let from = last.saturating_sub(Duration::from_secs(60));
    match trace.to(Side::Sender).find(|(at, _)| (from..last).contains(at)) {
        Some((at, _)) => Err(format!("at {at:?} an ACK is made although nothing has happened")),
        None => Ok(()),
    }
}
