//! Answers to handshakes, judged by the numbers of the two SYNs.

use crate::packet::wire::Seq;

/// Most data with a SYN (RFC 7413): a segment.
const FAST_OPEN: u32 = 1460;
/// Most bytes that the first ACK after a handshake may acknowledge: a window without a scale.
const FIRST_DATA: u32 = 1 << 17;
/// Largest gap behind the receiver's SYN, for segments lost on their way.
const SEQ_AHEAD: u32 = 1 << 16;

/// Returns whether a SYN that acknowledges `ack` answers the SYN of an end whose next number is `start`. It
/// acknowledges that, and at most the data that came with it.
pub const fn answers(start: Seq, ack: Seq) -> bool {
    ack.since(start) <= FAST_OPEN
}

/// Returns whether a segment at `seq`, which acknowledges `ack`, is the receiver's first after a handshake.
/// Behind their SYNs, the receiver is at `receiver` and the sender at `sender`.
pub const fn is_first(sender: Seq, receiver: Seq, seq: Seq, ack: Seq) -> bool {
    seq.since(receiver) <= SEQ_AHEAD && ack.since(sender) <= FIRST_DATA
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap() {
        assert!(
            answers(Seq(u32::MAX), Seq(0))
                && answers(Seq(u32::MAX), Seq(1_459))
                && !answers(Seq(u32::MAX), Seq(1_460))
        );
        assert!(!answers(Seq(5), Seq(4)), "not the SYN");
        let (sender, receiver) = (Seq(u32::MAX), Seq(7));
        assert!(
            is_first(sender, receiver, Seq(7), Seq(u32::MAX))
                && is_first(sender, receiver, Seq(7 + SEQ_AHEAD), Seq(FIRST_DATA - 1))
        );
        assert!(
            !is_first(sender, receiver, Seq(6), Seq(0))
                && !is_first(sender, receiver, Seq(7), Seq(FIRST_DATA))
        );
    }
}
