//! Windows, and the segments that probe them.

use super::{open, Case};
use crate::script::{Opening, Script, Side, BACKLOG, MSS};
use crate::seg::after;
use crate::trace::{Origin, Trace};
use crate::Verdict;

const EDGE: &str = "the right edge never moves left, nor beyond the receiver's own";
const PROBE: &str = "probes and keepalives pass at once with their numbers, and so do their answers";

pub(super) const CASES: &[Case] = &[
    Case::new("window-update", "a wider window is told", "RFC 9293 §3.8.6", update).check(widest),
    Case::new("window-not-read", EDGE, "RFC 9293 §3.8.6", not_read),
    Case::new("zero-window", "a window that closes is told at once", "RFC 9293 §3.8.6.1", closes)
        .check(|t| t.tells("closed")),
    Case::new("window-opens", "a window that opens is told at once", "RFC 9293 §3.8.6.1", opens)
        .check(|t| t.tells("open")),
    Case::new("zero-window-probes", PROBE, "RFC 9293 §3.8.6.1", probes)
        .check(|t| t.untouched("probe").and_then(|()| t.tells("answer"))),
    Case::new("keepalive-of-sender", PROBE, "RFC 9293 §3.8.4, RFC 1122 §4.2.3.6", keepalive)
        .check(|t| t.untouched("keepalive").and_then(|()| t.tells("answer"))),
    Case::new("keepalive-of-receiver", PROBE, "RFC 9293 §3.8.4, RFC 1122 §4.2.3.6", keepalive_back)
        .check(|t| t.at_once("keepalive").and_then(|()| t.untouched("answer"))),
    Case::new("no-window-scale", EDGE, "RFC 7323 §2.2", no_scale),
    Case::new("one-side-scales", "one offer alone scales nothing", "RFC 7323 §2.2", one_side),
    Case::new("largest-scale", EDGE, "RFC 7323 §2.3, §2.4", largest),
    Case::new("largest-scale-not-read", EDGE, "RFC 7323 §2.4", largest_not_read),
    Case::new(
        "mid-stream",
        "without a handshake progress alone may be held: fields of windows stay the receiver's",
        "RFC 7323 §2.2",
        mid_stream,
    )
    .check(own_windows),
    Case::new("mid-stream-not-read", EDGE, "RFC 7323 §2.2", mid_stream_not_read).check(own_windows),
];

fn update(s: &mut Script) {
    open(s);
    s.backlog();
    for n in 1..=3 {
        s.ends.window += 500 * n;
        s.wait_ms(1).ack(BACKLOG);
    }
}

/// Checks that the sender finally knows the whole window, unless the middlebox may advertise less.
fn widest(trace: &Trace) -> Verdict {
    if trace.traits.sizes {
        return Ok(());
    }
    let shift = trace.script.scale_of(Side::Receiver);
    let newest = |edges: &mut dyn Iterator<Item = u32>| edges.reduce(|a, b| if after(b, a) { b } else { a });
    let said = trace.script.events().iter().zip(&trace.segs).filter(|(e, _)| e.from == Side::Receiver);
    let said = newest(&mut said.filter_map(|(_, s)| Some(s.as_ref()?.edge(shift))));
    let told = newest(&mut trace.to(Side::Sender).map(|(_, seg)| seg.edge(shift)));
    match (said, told) {
        (Some(said), Some(told)) if after(said, told) => {
            Err(format!("the sender never learns of {} bytes of the window", said.wrapping_sub(told)))
        }
        _ => Ok(()),
    }
}

/// The receiver's application reads nothing: each ACK reduces the window by the bytes that it acknowledges,
/// and the edge stays.
fn unread(s: &mut Script, shift: u8, step: u32) {
    s.send(BACKLOG).wait_ms(20);
    let edge = u32::from(s.ends.window) << shift;
    for n in 1..=BACKLOG / step {
        s.ends.window = ((edge - n * step) >> shift) as u16;
        s.wait_us(100).ack(n * step);
    }
}

fn not_read(s: &mut Script) {
    open(s);
    unread(s, 7, 2 * MSS);
}

fn closes(s: &mut Script) {
    open(s);
    s.backlog();
    s.ends.window = 0;
    s.label("closed").ack(BACKLOG);
}

fn opens(s: &mut Script) {
    closes(s);
    s.ends.window = 100;
    s.wait_ms(50).label("open").ack(BACKLOG).wait_ms(50);
    s.send(BACKLOG + 4 * MSS).wait_ms(20).ack(BACKLOG + 4 * MSS);
}

fn probes(s: &mut Script) {
    closes(s);
    for _ in 0..3 {
        let probe = s.data(BACKLOG).payload(1);
        s.wait_ms(200).label("probe").put(Side::Sender, probe);
        s.wait_ms(20).label("answer").ack(BACKLOG);
    }
}

/// Keepalives one byte before SND.NXT, without data and with a byte of garbage. Each is answered by a
/// repetition of the last ACK.
fn keepalive(s: &mut Script) {
    open(s);
    s.send(2 * MSS).wait_ms(20).ack(2 * MSS).wait_ms(500);
    for len in [0, 1] {
        let probe = s.data(2 * MSS - 1).payload(len);
        s.label("keepalive").put(Side::Sender, probe);
        s.wait_ms(20).label("answer").ack(2 * MSS).wait_ms(200);
    }
}

/// The receiver sends keepalives among held ACKs and later, and the sender answers.
fn keepalive_back(s: &mut Script) {
    open(s);
    s.say(100).backlog();
    for (len, ms) in [(0, 5), (1, 20), (0, 900)] {
        let probe = s.ack_for(BACKLOG).seq(s.said_seq(1)).payload(len);
        s.label("keepalive").put(Side::Receiver, probe);
        let answer = s.data(BACKLOG);
        s.wait_ms(20).label("answer").put(Side::Sender, answer).wait_ms(ms);
    }
}

fn no_scale(s: &mut Script) {
    s.ends.window = 60_000;
    s.open(Opening { scale: (None, None), ..Opening::default() });
    s.backlog().ack(BACKLOG);
}

fn one_side(s: &mut Script) {
    s.ends.window = 60_000;
    s.open(Opening { scale: (None, Some(7)), ..Opening::default() });
    s.backlog();
}

fn largest(s: &mut Script) {
    s.ends.window = 40;
    s.open(Opening { scale: (Some(14), Some(14)), ..Opening::default() });
    s.backlog();
    for n in 1..=20 {
        s.wait_us(300).ack(BACKLOG + 100 * n);
    }
}

fn largest_not_read(s: &mut Script) {
    s.ends.window = 40;
    s.open(Opening { scale: (Some(14), Some(14)), ..Opening::default() });
    unread(s, 14, 2 * MSS);
}

fn mid_stream(s: &mut Script) {
    s.mid_stream(7).backlog();
    s.ends.window += 300;
    s.wait_ms(5).ack(BACKLOG).backlog();
}

fn mid_stream_not_read(s: &mut Script) {
    s.mid_stream(7);
    unread(s, 7, 2 * MSS);
}

/// Checks that every window field of an ACK that was made is one that the receiver has sent.
fn own_windows(trace: &Trace) -> Verdict {
    let fields: Vec<u16> = trace.segs.iter().flatten().map(|seg| seg.tcp.window).collect();
    let made = trace.out.iter().filter(|o| o.origin == Origin::Made);
    match made.filter_map(|o| o.seg.as_ref()).find(|seg| !fields.contains(&seg.tcp.window)) {
        Some(seg) => Err(format!("a window of {} is written although its scale is unknown", seg.tcp.window)),
        None => Ok(()),
    }
}
