//! What is not believed, and when it is after all.
//!
//! Anyone can send a segment with a flow's addresses, so one that cannot be the receiver's changes
//! nothing. But a gateway that is wrong about a flow (it missed a SYN on a reused port, say) must not
//! stay so: segments that fit each other, with none between that fits the flow, are the flow.

use super::after;
use crate::steer::Seen;

/// So many segments in a row that fit each other take a flow up anew. Behind hooks one of
/// [`DOUBT_SAMPLE`](crate::steer::DOUBT_SAMPLE) is shown.
const CONSISTENT: u32 = 8;
/// So many acknowledgements that advance make a flow of which no handshake was seen.
const MIDSTREAM: u32 = 3;
/// No segment overtakes another by more.
const OVERTAKEN_MS: u32 = 100;
/// So many believed segments settle a flow of which no handshake was seen: anyone can make up a few.
const SETTLED: u32 = 64;
/// How far the next segment's sequence number may be from the last.
const NEAR_SEQ: u32 = 1 << 22;
/// How far its acknowledgement may be ahead of the last: what a sample leaves out.
const NEAR_ACK: u32 = 1 << 26;

/// What is remembered of segments that were not believed, or of a flow before it is one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Doubt {
    seq: u32,
    ack: u32,
    /// Segments in a row that fitted.
    count: u32,
    /// Acknowledgements in a row that were older than what the sender knows.
    old: u32,
    /// Acknowledgements in a row with this sequence number, behind what has passed, since when (milliseconds).
    behind: (u32, u32, u32),
    /// Segments that were believed.
    believed: u32,
}

impl Doubt {
    /// A segment that cannot be the flow's. True when the flow is what these segments say.
    pub(super) fn disbelieved(&mut self, seen: &Seen) -> bool {
        self.note(seen, 0);
        self.count >= CONSISTENT
    }

    /// A segment of a flow without numbers. True when it has advanced often enough to be one.
    pub(super) fn candidate(&mut self, seen: &Seen) -> bool {
        self.note(seen, 1);
        self.count > MIDSTREAM
    }

    /// An acknowledgement older than what the sender knows, and not older than others by its timestamp. True
    /// when so many came that it is the receiver's last word.
    pub(super) fn outdated(&mut self) -> bool {
        self.old += 1;
        self.old >= CONSISTENT
    }

    /// An acknowledgement with a sequence number behind what has passed: segments overtake each other, but the receiver's
    /// next is later. True when it has not moved for so long that what has passed was not the receiver's.
    pub(super) fn lags(&mut self, seq: u32, now_ms: u32) -> bool {
        let (last, count, since) = self.behind;
        let (count, since) = if last == seq && count > 0 { (count + 1, since) } else { (1, now_ms) };
        self.behind = (seq, count, since);
        count >= CONSISTENT && now_ms.wrapping_sub(since) >= OVERTAKEN_MS
    }

    /// An acknowledgement with the sequence number that it should have.
    pub(super) fn in_sequence(&mut self) {
        self.behind.1 = 0;
    }

    /// A segment that is the flow's. True when there were so many that it is one even without a handshake.
    pub(super) fn believed(&mut self) -> bool {
        self.count = 0;
        self.believed = self.believed.saturating_add(1);
        self.believed >= SETTLED
    }

    /// An acknowledgement that is no older than what the sender knows.
    pub(super) fn current(&mut self) {
        self.old = 0;
    }

    /// Counts a segment that fits the last and advances by at least `least` bytes.
    fn note(&mut self, seen: &Seen, least: u32) {
        let near = (seen.seq.wrapping_sub(self.seq) as i32).unsigned_abs() <= NEAR_SEQ;
        let advance = seen.ack.wrapping_sub(self.ack);
        let fits = self.count > 0 && near && (least..=NEAR_ACK).contains(&advance);
        if self.count > 0 && near && advance == 0 && least > 0 {
            return; // it repeats the last
        }
        self.count = if fits { self.count + 1 } else { 1 };
        if !fits || after(seen.ack, self.ack) {
            self.ack = seen.ack;
        }
        self.seq = seen.seq;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(seq: u32, ack: u32) -> Seen {
        Seen { seq, ack, ..Seen::default() }
    }

    #[test]
    fn what_fits_is_believed_in_the_end() {
        let mut d = Doubt::default();
        let took = (0..20).position(|n| d.disbelieved(&seen(7, 1_448u32.wrapping_mul(n))));
        assert_eq!(took, Some(7));
        // Blind guesses do not fit each other.
        let mut d = Doubt::default();
        let guess = |n: u32| seen(n.wrapping_mul(0x9E37_79B9), n.wrapping_mul(0x85EB_CA6B));
        assert!(!(0..100_000).any(|n| d.disbelieved(&guess(n))));
    }

    #[test]
    fn three_advances_make_a_flow() {
        let mut d = Doubt::default();
        let acks = [5, 5, 10, 10, 15, 20];
        assert_eq!(acks.iter().position(|&n| d.candidate(&seen(1, n))), Some(5));
    }
}
