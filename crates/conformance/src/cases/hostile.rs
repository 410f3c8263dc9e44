//! Segments that other hosts send in the receiver's name.

use super::{open, open_stamped, Case};
use crate::script::{Opening, Script, Side, BACKLOG, MSS};
use weir_core::wire::build::{SegmentBuilder, Sum};
use weir_core::wire::Flags;

const NOTHING: &str = "what cannot be true passes as it came and changes nothing";

const LIMITED: &str = "a rate holds whatever is claimed";

pub(super) const CASES: &[Case] = &[
    Case::new("ack-beyond-the-window", NOTHING, "RFC 5961 §5", beyond).check(|t| t.untouched("forged")),
    Case::new("ack-out-of-sequence", NOTHING, "RFC 5961 §5", elsewhere).check(|t| t.untouched("forged")),
    Case::new("ack-without-the-flag", NOTHING, "RFC 9293 §3.10.7.4", no_flag)
        .check(|t| t.untouched("forged")),
    Case::new("one-unknown-option-mid-stream", LIMITED, "RFC 9293 §3.1", |s| {
        odd(s, |a| a.raw_options(&[253, 4, 0, 1]))
    })
    .check(|t| t.at_once("forged"))
    .floods(),
    Case::new("one-option-cut-short-mid-stream", LIMITED, "RFC 9293 §3.1", |s| {
        odd(s, |a| a.raw_options(&[8, 40, 1, 1]))
    })
    .check(|t| t.at_once("forged"))
    .floods(),
    Case::new("one-signature-mid-stream", LIMITED, "RFC 2385 §2.0", |s| {
        odd(s, |a| a.raw_options(&[19, 18, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 1, 1]))
    })
    .floods(),
    Case::new("timestamps-twice-mid-stream", LIMITED, "RFC 7323 §3.2", |s| {
        odd(s, |a| a.raw_options(&[8, 10, 0, 0, 3, 232, 0, 0, 0, 0, 8, 10, 0, 0, 3, 232, 0, 0, 0, 0]))
    })
    .floods(),
    Case::new("one-ip-option-mid-stream", LIMITED, "RFC 791 §3.1", |s| {
        odd(s, |a| a.ip_options(&[1, 1, 1, 1]))
    })
    .floods(),
    Case::new("odd-acks-ten-times-a-second", LIMITED, "RFC 9293 §3.1", |s| {
        open(s);
        flood(s, 0, |s| {
            let ack = s.ack_again().raw_options(&[253, 4, 0, 1]);
            s.forged().put(Side::Receiver, ack);
        });
    })
    .needs_bound(),
    Case::new("odd-acks-alone", LIMITED, "RFC 9293 §3.1", odd_alone).needs_bound(),
    Case::new(
        "timestamps-that-were-not-negotiated",
        "made ACKs have what the connection has",
        "RFC 7323 §3.2",
        stamps_from_nowhere,
    ),
    Case::new("more-than-the-rate", "a rate holds", "RFC 2475 §2.3.3.3", |s| {
        open(s);
        flood(s, 0, |_| ());
    })
    .floods(),
    Case::new("behind-a-flood-of-syns", "a rate holds whoever else begins", "RFC 4987 §2", behind_syns)
        .floods(),
    Case::new("ack-before-the-first", LIMITED, "RFC 5961 §5", before_the_first).floods(),
    Case::new("false-fin", LIMITED, "RFC 9293 §3.10.7.4", false_fin).check(|t| t.at_once("forged")).floods(),
    Case::new(
        "wrong-checksum-far-ahead",
        "what is under a wrong checksum is in no ACK that is made",
        "RFC 9293 §3.10.7",
        far_ahead,
    )
    .check(|t| t.untouched("forged")),
];

/// Steps of a flood, of two segments each: in 2.2 s twice the bytes that the suite's presets release.
const STEPS: u32 = 400;
/// Steps between two events of a flood.
const BETWEEN: u32 = 20;

/// Floods: the receiver acknowledges data faster than a middlebox passes the ACKs on, and `put` runs ten
/// times a second.
fn flood(s: &mut Script, from: u32, put: impl Fn(&mut Script)) {
    for n in 1..=STEPS {
        let end = from + n * 2 * MSS;
        s.send(end).wait_ms(1).ack(end).wait_us(4_500);
        if n % BETWEEN == 0 {
            put(s);
        }
    }
}

/// One odd ACK of the receiver in a flood, of a connection whose beginning was not seen.
fn odd(s: &mut Script, change: fn(SegmentBuilder) -> SegmentBuilder) {
    flood(s, 0, |s| {
        if s.has_sent() == BETWEEN * 2 * MSS {
            let ack = change(s.ack_again());
            s.forged().label("forged").put(Side::Receiver, ack);
        }
    });
}

/// A connection with data both ways that begins after a hundred unanswered SYNs.
fn behind_syns(s: &mut Script) {
    let syn = s.syn(&Opening::default());
    for n in 0..100 {
        s.put(Side::Sender, syn.clone().ports(20_000 + n, 80)).wait_us(10);
    }
    open(s);
    flood(s, 0, |s| {
        s.say(100);
    });
}

/// Each ACK of the receiver has an option that is unknown.
fn odd_alone(s: &mut Script) {
    open(s);
    for n in 1..=STEPS {
        let end = n * 2 * MSS;
        s.send(end).wait_ms(1);
        let ack = s.ack_for(end).raw_options(&[253, 4, 0, 1]);
        s.put(Side::Receiver, ack).wait_us(4_500);
    }
}

/// One ACK has timestamps, in a connection without.
fn stamps_from_nowhere(s: &mut Script) {
    open(s);
    s.backlog();
    let stamped = s.ack_again().ts(1_000, 0);
    s.wait_us(500).mimicked().put(Side::Receiver, stamped);
    s.wait_ms(5).send(BACKLOG + 40 * MSS).wait_ms(20).ack(BACKLOG + 40 * MSS);
}

/// An ACK with wild numbers and an unknown option, between the answer to the receiver's SYN and its first
/// ACK.
fn before_the_first(s: &mut Script) {
    let opening = Opening::default();
    let syn = s.syn_ack(&opening).ack(0).flags(Flags::SYN);
    let answer = s.syn(&opening).ack(s.ends.isn.1.wrapping_add(1)).flags(Flags::SYN | Flags::ACK);
    s.put(Side::Receiver, syn).wait_ms(20).put(Side::Sender, answer);
    s.opened(&opening);
    let wild = s.ack_for(0).seq(0x7777_7777).ack(0x3333_3333).raw_options(&[253, 4, 0, 1]);
    s.wait_ms(1).forged().put(Side::Receiver, wild).wait_ms(1).ack(0).wait_ms(60);
    flood(s, 0, |_| ());
}

/// A FIN in the sender's name that is not at the end of its data.
fn false_fin(s: &mut Script) {
    open(s);
    flood(s, 0, |s| {
        let fin = s.data(s.has_sent() + 20_000).flags(Flags::FIN | Flags::ACK);
        s.forged().label("forged").put(Side::Sender, fin);
    });
}

/// An ACK with a wrong checksum whose timestamp and window are far ahead; then both ends have data.
fn far_ahead(s: &mut Script) {
    open_stamped(s);
    s.backlog();
    let broken = s.ack_for(BACKLOG).ts(900_000 + (1 << 29), 1).window(u16::MAX).checksum(Sum::Wrong);
    s.wait_us(500).forged().label("forged").put(Side::Receiver, broken);
    for n in 1..=4 {
        s.wait_ms(5).say(500).wait_ms(5).send(BACKLOG + n * 4 * MSS).wait_ms(20).ack(BACKLOG + n * 4 * MSS);
    }
}

/// ACKs of more than the window ever allowed.
fn beyond(s: &mut Script) {
    open(s);
    s.backlog();
    for n in 1..=3 {
        let ack = s.ack_for(BACKLOG + 600_000 + n * MSS);
        s.wait_us(300).forged().label("forged").put(Side::Receiver, ack);
    }
    s.wait_ms(5).ack(BACKLOG).wait_ms(5).send(BACKLOG + 4 * MSS).wait_ms(20).ack(BACKLOG + 4 * MSS);
}

/// ACKs with sequence numbers that the sender does not accept.
fn elsewhere(s: &mut Script) {
    open(s);
    s.backlog();
    for n in 1..=3 {
        let ack = s.ack_for(BACKLOG + 2 * MSS).seq(s.said_seq(0).wrapping_add(0x4000_0000 * n));
        s.wait_us(300).forged().label("forged").put(Side::Receiver, ack);
    }
    s.wait_ms(5).ack(BACKLOG).wait_ms(5).send(BACKLOG + 4 * MSS).wait_ms(20).ack(BACKLOG + 4 * MSS);
}

/// A segment without ACK, whose acknowledgement does not count.
fn no_flag(s: &mut Script) {
    open(s);
    s.backlog();
    let segment = s.ack_for(BACKLOG + 20 * MSS).flags(Flags::PSH).payload(10);
    s.forged().label("forged").put(Side::Receiver, segment);
    s.wait_ms(5).ack(BACKLOG).wait_ms(5).send(BACKLOG + 4 * MSS).wait_ms(20).ack(BACKLOG + 4 * MSS);
}
