//! Answers to handshakes, judged by the numbers of the two SYNs.

/// Most data with a SYN (RFC 7413): a segment.
const FAST_OPEN: u32 = 1460;
/// Most bytes that the first ACK after a handshake may acknowledge: a window without a scale.
const FIRST_DATA: u32 = 1 << 17;
/// Largest gap behind the receiver's SYN, for segments lost on their way.
const SEQ_AHEAD: u32 = 1 << 16;

/// Returns whether a SYN that acknowledges `ack` answers the SYN of an end whose next number is `start`. It
/// acknowledges that, and at most the data that came with it.
pub const fn answers(start: u32, ack: u32) -> bool {
    ack.wrapping_sub(start) <= FAST_OPEN
}

/// Returns whether a segment at `seq`, which acknowledges `ack`, is the receiver's first after a handshake.
/// Behind their SYNs, the receiver is at `receiver` and the sender at `sender`.
pub const fn is_first(sender: u32, receiver: u32, seq: u32, ack: u32) -> bool {
    seq.wrapping_sub(receiver) <= SEQ_AHEAD && ack.wrapping_sub(sender) <= FIRST_DATA
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap() {
        assert!(answers(u32::MAX, 0) && answers(u32::MAX, 1_459) && !answers(u32::MAX, 1_460));
        assert!(!answers(5, 4), "not the SYN");
        let (sender, receiver) = (u32::MAX, 7);
        assert!(
            is_first(sender, receiver, 7, u32::MAX)
                && is_first(sender, receiver, 7 + SEQ_AHEAD, FIRST_DATA - 1)
        );
        assert!(!is_first(sender, receiver, 6, 0) && !is_first(sender, receiver, 7, FIRST_DATA));
    }
}
