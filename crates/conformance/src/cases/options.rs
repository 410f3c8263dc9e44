//! TCP options: timestamps, and those that only an end can make.

use super::{open, open_stamped, Case};
use crate::script::{Opening, Script, Side, BACKLOG, MSS};
use crate::seg::after;
use crate::trace::Trace;
use crate::Verdict;
use weir_core::wire::build::SegmentBuilder;

const STAMPS: &str = "timestamps are the receiver's own, and never go back";
const FOREIGN: &str = "ACKs that only their end can make pass at once as they came";

pub(super) const CASES: &[Case] = &[
    Case::new("timestamps", STAMPS, "RFC 7323 §4.3", stamped).check(honest),
    Case::new("paws", STAMPS, "RFC 7323 §5.2", paws),
    Case::new("timestamps-wrap", STAMPS, "RFC 7323 §5.2", stamps_wrap),
    Case::new("timestamps-with-loss", STAMPS, "RFC 7323 §4.3, RFC 3522", stamps_and_loss)
        .check(|t| t.tells("sack")),
    Case::new("mptcp", FOREIGN, "RFC 8684 §3.3.2", mptcp).check(|t| t.untouched("signed")),
    Case::new("tcp-ao", FOREIGN, "RFC 5925 §5.1", ao).check(|t| t.untouched("signed")),
    Case::new("tcp-md5", FOREIGN, "RFC 2385 §2.0", md5).check(|t| t.untouched("signed")),
    Case::new("unknown-option", FOREIGN, "RFC 9293 §3.1", unknown).check(|t| t.untouched("signed")),
    Case::new("malformed-options", FOREIGN, "RFC 9293 §3.1", malformed).check(|t| t.untouched("signed")),
];

fn stamped(s: &mut Script) {
    open_stamped(s);
    // The clocks move on while ACKs come, so each ACK has different timestamps.
    s.send(BACKLOG).wait_ms(20);
    for n in 1..=20 {
        s.wait_ms(2).ack(n * 5 * MSS);
    }
}

/// Checks that an ACK has the TSecr of the receiver's first ACK at or above its number, or an older one. A
/// newer one would give the sender too short a round trip (RFC 7323 §4.3).
fn honest(trace: &Trace) -> Verdict {
    let events = trace.script.events().iter().zip(&trace.segs).filter(|(e, _)| e.from == Side::Receiver);
    let said: Vec<(u32, u32)> =
        events.filter_map(|(_, s)| Some((s.as_ref()?.tcp.ack.0, s.as_ref()?.stamps()?.1))).collect();
    let mut told = None;
    for out in trace.out.iter().filter(|o| o.crossed.to == Side::Sender) {
        let Some(seg) = &out.seg else { continue };
        // A number that the sender already knows measures nothing.
        let known = told.replace(seg.tcp.ack.0).is_some_and(|told| !after(seg.tcp.ack.0, told));
        let Some((_, echo)) = seg.stamps().filter(|_| out.is_touched() && !known) else { continue };
        let first = said.iter().find(|s| !after(seg.tcp.ack.0, s.0));
        if let Some((ack, right)) = first.filter(|f| after(echo, f.1)) {
            let (ack, n) = (trace.rel(*ack), trace.rel(seg.tcp.ack.0));
            return Err(format!("the ACK for {n} echoes {echo}, and that for {ack} echoed {right}"));
        }
    }
    Ok(())
}

/// Data with newer timestamps overtakes held ACKs.
fn paws(s: &mut Script) {
    open_stamped(s);
    s.backlog();
    for _ in 0..10 {
        s.wait_ms(20).say(300);
    }
}

fn stamps_wrap(s: &mut Script) {
    s.clocks(u32::MAX - 100, u32::MAX - 125);
    stamped(s);
}

fn stamps_and_loss(s: &mut Script) {
    open_stamped(s);
    s.backlog().send(BACKLOG + 10 * MSS).wait_ms(30);
    for n in 1..=3 {
        let block = (s.ends.seq(BACKLOG + MSS), s.ends.seq(BACKLOG + (n + 1) * MSS));
        let segment = s.ack_for(BACKLOG).sack(&[block]);
        s.wait_ms(3).label("sack").put(Side::Receiver, segment);
    }
    s.wait_ms(40).ack(BACKLOG + 10 * MSS);
}

/// A connection whose segments all carry an option of their own.
fn foreign(s: &mut Script, sign: impl Fn(SegmentBuilder) -> SegmentBuilder) {
    let opening = Opening::default();
    let (syn, answer) = (s.syn(&opening), s.syn_ack(&opening));
    s.label("signed").put(Side::Sender, sign(syn)).wait_ms(20);
    s.label("signed").put(Side::Receiver, sign(answer));
    s.opened(&opening);
    s.wait_ms(20);
    for n in 1..=50u32 {
        let data = s.data((n - 1) * 2 * MSS).payload(MSS as usize);
        s.label("signed").put(Side::Sender, sign(data)).wait_us(20);
        let ack = s.ack_for(n * 2 * MSS);
        s.label("signed").put(Side::Receiver, sign(ack));
    }
}

fn mptcp(s: &mut Script) {
    foreign(s, SegmentBuilder::mptcp);
}

fn ao(s: &mut Script) {
    foreign(s, SegmentBuilder::ao);
}

fn md5(s: &mut Script) {
    foreign(s, SegmentBuilder::md5);
}

/// Such options come among held ACKs.
fn in_the_middle(s: &mut Script, change: impl Fn(SegmentBuilder, u32) -> SegmentBuilder) {
    open(s);
    s.backlog().send(BACKLOG + 10 * MSS);
    for n in 1..=5 {
        let segment = change(s.ack_for(BACKLOG + n * 2 * MSS), n);
        s.wait_ms(1).label("signed").put(Side::Receiver, segment);
    }
}

fn unknown(s: &mut Script) {
    in_the_middle(s, |segment, n| segment.option(253, &[0x12, 0x34, n as u8]));
}

/// An option length beyond the header: an end ignores the option or the segment, and a middlebox passes it.
fn malformed(s: &mut Script) {
    in_the_middle(s, |segment, _| segment.raw_options(&[8, 10, 0, 0]));
}
