//! What is not believed, and when it is after all.
//!
//! Anyone can send a segment with a flow's addresses, so one that cannot be the receiver's changes
//! nothing. But a gateway that is wrong about a flow (it missed a SYN on a reused port, say) must not
//! stay so: segments that fit each other, with none between that fits the flow, are the flow.

/// So many segments in a row that fit each other take a flow up anew. Behind hooks one of
/// [`DOUBT_SAMPLE`](crate::steer::DOUBT_SAMPLE) is shown.
const CONSISTENT: u8 = 8;
/// So many acknowledgements that advance make a flow of which no handshake was seen.
const MIDSTREAM: u8 = 3;
/// No segment overtakes another by more.
const OVERTAKEN_MS: u32 = 100;
/// So many believed segments settle a flow of which no handshake was seen: anyone can make up a few.
const SETTLED: u8 = 64;
/// How far the next segment's sequence number may be from the last.
const NEAR_SEQ: u32 = 1 << 22;
/// How far its acknowledgement may be ahead of the last: what a sample leaves out.
const NEAR_ACK: u32 = 1 << 26;

/// What is remembered of segments that were not believed, or of a flow before it is one. Counts stop at 255.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Doubt {
    seq: u32,
    ack: u32,
    /// A sequence number behind what has passed.
    behind: u32,
    /// Since when acknowledgements have that number, in milliseconds.
    behind_since: u32,
    /// Acknowledgements in a row with that number.
    behind_count: u8,
    /// Segments in a row that fitted.
    count: u8,
    /// Acknowledgements in a row that were older than what the sender knows.
    old: u8,
    /// Segments that were believed.
    believed: u8,
}

impl Doubt {
    /// A segment that cannot be the flow's. True when the flow is what these segments say.
    pub fn disbelieved(&mut self, seq: u32, ack: u32) -> bool {
        self.note(seq, ack, 0);
        self.count >= CONSISTENT
    }

    /// A segment of a flow without numbers. True when it has advanced often enough to be one.
    pub fn candidate(&mut self, seq: u32, ack: u32) -> bool {
        self.note(seq, ack, 1);
        self.count > MIDSTREAM
    }

    /// An acknowledgement older than what the sender knows, and not older than others by its timestamp. True
    /// when so many came that it is the receiver's last word.
    pub fn outdated(&mut self) -> bool {
        self.old = self.old.saturating_add(1);
        self.old >= CONSISTENT
    }

    /// An acknowledgement with a sequence number behind what has passed: segments overtake each other, but the receiver's
    /// next is later. True when it has not moved for so long that what has passed was not the receiver's.
    pub fn lags(&mut self, seq: u32, now_ms: u32) -> bool {
        if self.behind != seq || self.behind_count == 0 {
            (self.behind, self.behind_count, self.behind_since) = (seq, 0, now_ms);
        }
        self.behind_count = self.behind_count.saturating_add(1);
        self.behind_count >= CONSISTENT && now_ms.wrapping_sub(self.behind_since) >= OVERTAKEN_MS
    }

    /// An acknowledgement with the sequence number that it should have.
    pub fn in_sequence(&mut self) {
        self.behind_count = 0;
    }

    /// A segment that is the flow's. True when there were so many that it is one even without a handshake.
    pub fn believed(&mut self) -> bool {
        self.count = 0;
        self.believed = self.believed.saturating_add(1);
        self.believed >= SETTLED
    }

    /// No segment was believed yet.
    pub fn is_unmet(&self) -> bool {
        self.believed == 0
    }

    /// Acknowledgements have passed that were what they should be.
    pub fn passed(&mut self) {
        self.current();
        self.in_sequence();
    }

    /// An acknowledgement that is no older than what the sender knows.
    pub fn current(&mut self) {
        self.old = 0;
    }

    /// Counts a segment that fits the last and advances by at least `least` bytes.
    fn note(&mut self, seq: u32, ack: u32, least: u32) {
        let near = (seq.wrapping_sub(self.seq) as i32).unsigned_abs() <= NEAR_SEQ;
        let advance = ack.wrapping_sub(self.ack);
        let fits = self.count > 0 && near && (least..=NEAR_ACK).contains(&advance);
        if self.count > 0 && near && advance == 0 && least > 0 {
            return; // it repeats the last
        }
        self.count = if fits { self.count.saturating_add(1) } else { 1 };
        if !fits || ack.wrapping_sub(self.ack) as i32 > 0 {
            self.ack = ack;
        }
        self.seq = seq;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_believed_in_the_end() {
        let mut d = Doubt::default();
        let took = (0..20).position(|n| d.disbelieved(7, 1_448u32.wrapping_mul(n)));
        assert_eq!(took, Some(7));
        // Blind guesses do not fit each other.
        let mut d = Doubt::default();
        let guess = |n: u32| (n.wrapping_mul(0x9E37_79B9), n.wrapping_mul(0x85EB_CA6B));
        assert!(!(0..100_000).map(guess).any(|(seq, ack)| d.disbelieved(seq, ack)));
    }

    #[test]
    fn three_advances_make_a_flow() {
        let mut d = Doubt::default();
        let acks = [5, 5, 10, 10, 15, 20];
        assert_eq!(acks.iter().position(|&n| d.candidate(1, n)), Some(5));
    }
}
