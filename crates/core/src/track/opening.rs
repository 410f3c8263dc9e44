//! Answers to handshakes, judged by the numbers of the two SYNs.

/// Data that comes with a SYN at most (RFC 7413): a segment.
const FAST_OPEN: u32 = 1460;
/// Bytes that the first ACK after a handshake may acknowledge: a window without a scale.
const FIRST_DATA: u32 = 1 << 17;
/// Largest gap behind the receiver's SYN: segments may have been lost on their way.
const SEQ_AHEAD: u32 = 1 << 16;

/// Does a SYN that acknowledges `ack` answer the SYN behind which the other end goes on at `start`? It acknowledges that, and data that came
/// with it at most.
pub const fn answers(start: u32, ack: u32) -> bool {
    ack.wrapping_sub(start) <= FAST_OPEN
}

/// Is a segment at `seq`, which acknowledges `ack`, the receiver's first behind a handshake: with the receiver at `receiver` and the sender
/// at `sender` behind their SYNs?
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
