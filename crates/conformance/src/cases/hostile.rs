//! What others send in the receiver's name.

use super::{open, Case};
use crate::script::{Script, Side, BACKLOG, MSS};
use weir_core::wire::Flags;

const NOTHING: &str = "what cannot be true passes as it came and changes nothing";

pub(super) const CASES: &[Case] = &[
    Case::new("ack-beyond-the-window", NOTHING, "RFC 5961 §5", beyond).check(|t| t.untouched("forged")),
    Case::new("ack-out-of-sequence", NOTHING, "RFC 5961 §5", elsewhere).check(|t| t.untouched("forged")),
    Case::new("ack-without-the-flag", NOTHING, "RFC 9293 §3.10.7.4", no_flag)
        .check(|t| t.untouched("forged")),
];

/// More is acknowledged than the window ever allowed.
fn beyond(s: &mut Script) {
    open(s);
    s.backlog();
    for n in 1..=3 {
        let ack = s.ack_for(BACKLOG + 600_000 + n * MSS);
        s.wait_us(300).forged().label("forged").put(Side::Receiver, ack);
    }
    s.wait_ms(5).ack(BACKLOG).wait_ms(5).send(BACKLOG + 4 * MSS).wait_ms(20).ack(BACKLOG + 4 * MSS);
}

/// A sequence number that the sender does not accept.
fn elsewhere(s: &mut Script) {
    open(s);
    s.backlog();
    for n in 1..=3 {
        let ack = s.ack_for(BACKLOG + 2 * MSS).seq(s.said_seq(0).wrapping_add(0x4000_0000 * n));
        s.wait_us(300).forged().label("forged").put(Side::Receiver, ack);
    }
    s.wait_ms(5).ack(BACKLOG).wait_ms(5).send(BACKLOG + 4 * MSS).wait_ms(20).ack(BACKLOG + 4 * MSS);
}

/// The acknowledgement of a segment without ACK counts for nothing.
fn no_flag(s: &mut Script) {
    open(s);
    s.backlog();
    let segment = s.ack_for(BACKLOG + 20 * MSS).flags(Flags::PSH).payload(10);
    s.forged().label("forged").put(Side::Receiver, segment);
    s.wait_ms(5).ack(BACKLOG).wait_ms(5).send(BACKLOG + 4 * MSS).wait_ms(20).ack(BACKLOG + 4 * MSS);
}
