//! Acknowledgements that tell of losses and of data that arrived twice.

use super::{open, Case};
use crate::script::{Script, Side, BACKLOG, MSS};
use crate::seg::after;
use crate::trace::Trace;
use crate::Verdict;

const AT_ONCE: &str =
    "duplicates and SACK blocks are told at once, in order, after what was acknowledged before";

pub(super) const CASES: &[Case] = &[
    Case::new("three-duplicates", AT_ONCE, "RFC 5681 §3.2", idle_duplicates).check(|t| t.tells("duplicate")),
    Case::new("duplicates-amid-held", AT_ONCE, "RFC 5681 §3.2", duplicates).check(|t| t.tells("duplicate")),
    Case::new("sack", AT_ONCE, "RFC 2018 §4", sack).check(|t| t.tells("sack")),
    Case::new("sack-amid-held", AT_ONCE, "RFC 2018 §4, RFC 6675 §4", sack_amid_held)
        .check(|t| t.tells("sack")),
    Case::new("sack-with-progress", AT_ONCE, "RFC 6675 §5", partial).check(|t| t.tells("sack")),
    Case::new("recovery", "what a retransmission filled is told", "RFC 6675 §5", recovery)
        .check(|t| t.tells("sack")),
    Case::new("dsack", "data that arrived twice is told, with an ACK of it", "RFC 2883 §4.1", dsack)
        .check(twice),
    Case::new("dsack-beside-a-hole", AT_ONCE, "RFC 2883 §4.2", dsack_and_hole).check(|t| t.tells("sack")),
];

fn idle_duplicates(s: &mut Script) {
    open(s);
    s.send(10 * MSS).wait_ms(20).ack(2 * MSS).wait_ms(100);
    for _ in 0..3 {
        s.wait_us(100).label("duplicate").ack(2 * MSS);
    }
    s.wait_ms(40).ack(10 * MSS);
}

fn duplicates(s: &mut Script) {
    open(s);
    s.backlog().send(BACKLOG + 10 * MSS).wait_ms(1);
    for _ in 0..3 {
        s.wait_us(100).label("duplicate").ack(BACKLOG);
    }
    s.wait_ms(40).ack(BACKLOG + 10 * MSS);
}

/// Sends the SACK of `n` segments behind the hole after byte `acked`.
fn hole(s: &mut Script, acked: u32, n: u32) {
    let block = (s.ends.seq(acked + MSS), s.ends.seq(acked + (n + 1) * MSS));
    let segment = s.ack_for(acked).sack(&[block]);
    s.label("sack").put(Side::Receiver, segment);
}

fn sack(s: &mut Script) {
    open(s);
    s.send(10 * MSS).wait_ms(20).ack(2 * MSS).wait_ms(100);
    hole(s, 2 * MSS, 1);
    s.wait_ms(40).ack(10 * MSS);
}

fn sack_amid_held(s: &mut Script) {
    open(s);
    s.backlog().send(BACKLOG + 10 * MSS).wait_ms(1);
    for n in 1..=6 {
        s.wait_us(100);
        hole(s, BACKLOG, n);
    }
    s.wait_ms(40).ack(BACKLOG + 10 * MSS);
}

/// A hole behind bytes that no ACK has told of yet.
fn partial(s: &mut Script) {
    open(s);
    s.backlog().send(BACKLOG + 20 * MSS).wait_ms(1);
    for n in 1..=4 {
        s.wait_us(100);
        hole(s, BACKLOG + n * 2 * MSS, 1);
    }
    s.wait_ms(40).ack(BACKLOG + 20 * MSS);
}

fn recovery(s: &mut Script) {
    open(s);
    s.backlog().send(BACKLOG + 20 * MSS).wait_ms(1);
    hole(s, BACKLOG, 6);
    let lost = s.data(BACKLOG).payload(MSS as usize);
    s.wait_ms(20).put(Side::Sender, lost);
    s.wait_ms(20).ack(BACKLOG + 7 * MSS);
    hole(s, BACKLOG + 7 * MSS, 5);
    s.wait_ms(40).ack(BACKLOG + 20 * MSS);
}

fn dsack(s: &mut Script) {
    open(s);
    s.backlog();
    let again = (s.ends.seq(BACKLOG - MSS), s.ends.seq(BACKLOG));
    let segment = s.ack_for(BACKLOG).sack(&[again]);
    s.wait_ms(20).label("dsack").put(Side::Receiver, segment);
}

/// Checks that the sender learns of the block with an acknowledgement beyond it: with a lower one the block
/// would mean a hole.
fn twice(trace: &Trace) -> Verdict {
    for (i, _) in trace.labelled("dsack") {
        let Some(block) = trace.segs[i].as_ref().and_then(|s| s.sack().first().copied()) else { continue };
        let told = trace.to(Side::Sender).find(|(_, seg)| seg.sack().contains(&block));
        match told {
            None => return Err("the sender never learns that a segment has arrived twice".into()),
            Some((_, seg)) if after(block.1, seg.tcp.ack.0) => {
                return Err("data that arrived twice is told as data beyond a hole".into())
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn dsack_and_hole(s: &mut Script) {
    open(s);
    s.backlog().send(BACKLOG + 10 * MSS).wait_ms(1);
    hole(s, BACKLOG, 1);
    let again = (s.ends.seq(BACKLOG + MSS), s.ends.seq(BACKLOG + 2 * MSS));
    let both = (s.ends.seq(BACKLOG + MSS), s.ends.seq(BACKLOG + 4 * MSS));
    let segment = s.ack_for(BACKLOG).sack(&[again, both]);
    s.wait_ms(1).label("sack").put(Side::Receiver, segment);
    s.wait_ms(40).ack(BACKLOG + 10 * MSS);
}
