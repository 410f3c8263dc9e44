//! Segments that are not believed, and when they are believed after all.
//!
//! Anyone can send a segment with a flow's addresses, so a segment that cannot be the receiver's changes
//! nothing. But a gateway that is wrong about a flow (because it missed a SYN on a reused port, say) must not
//! stay wrong: segments that fit each other, with none between them that fits the flow, become the flow.
//!
//! Segments overtake each other, those of a round trip by the hundred where several processors carry them. A segment that was
//! overtaken comes less than [`OVERTAKEN`] late, so no conclusion is drawn from it within that time.

use crate::time::Time;

/// So many segments in a row that fit each other take a flow up anew. Behind hooks one of
/// [`DOUBT_SAMPLE`](crate::steer::DOUBT_SAMPLE) is shown.
const CONSISTENT: u8 = 8;
/// So many acknowledgements that advance make a flow of which no handshake was seen.
const MIDSTREAM: u8 = 3;
/// No segment overtakes another by more: 100.7 ms, in [`ticks`].
const OVERTAKEN: u16 = 96;
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
    /// Since when acknowledgements have that number, in [`ticks`].
    behind_since: u16,
    /// When an acknowledgement was last no older than what the sender knew, in [`ticks`].
    current_at: u16,
    /// Acknowledgements in a row with that number.
    behind_count: u8,
    /// Segments in a row that fitted.
    count: u8,
    /// Acknowledgements in a row that were older than what the sender knows.
    old: u8,
    /// Segments that were believed.
    believed: u8,
}

/// `now` in units of 2^20 ns. They wrap after 68.7 s: after a silence of just that much, a time seems to have been a moment
/// ago, and what is made of it takes [`OVERTAKEN`] more.
fn ticks(now: Time) -> u16 {
    (now.as_nanos() >> 20) as u16
}

/// Was `then` so long ago that nothing sent before can come any more?
fn is_over(then: u16, now: Time) -> bool {
    ticks(now).wrapping_sub(then) >= OVERTAKEN
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

    /// An acknowledgement older than what the sender knows, and not older than others by its timestamp. True when it is the
    /// receiver's last word: so many came in a row, and the last that was not old came so long before that it overtook none
    /// of them.
    pub fn outdated(&mut self, now: Time) -> bool {
        self.old = self.old.saturating_add(1);
        self.old >= CONSISTENT && is_over(self.current_at, now)
    }

    /// An acknowledgement with a sequence number behind what has passed: segments overtake each other, but the receiver's
    /// next is later. True when it has not moved for so long that what has passed was not the receiver's.
    pub fn lags(&mut self, seq: u32, now: Time) -> bool {
        if self.behind != seq || self.behind_count == 0 {
            (self.behind, self.behind_count, self.behind_since) = (seq, 0, ticks(now));
        }
        self.behind_count = self.behind_count.saturating_add(1);
        self.behind_count >= CONSISTENT && is_over(self.behind_since, now)
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

    /// An acknowledgement of a flow that is settled, no older than what the sender knows and with the sequence number that it
    /// should have.
    #[inline]
    pub fn met(&mut self, now: Time) {
        self.believed();
        self.passed(now);
    }

    /// No segment was believed yet.
    pub fn is_unmet(&self) -> bool {
        self.believed == 0
    }

    /// Acknowledgements have passed that were what they should be.
    pub fn passed(&mut self, now: Time) {
        self.current(now);
        self.in_sequence();
    }

    /// An acknowledgement that is no older than what the sender knows.
    pub fn current(&mut self, now: Time) {
        (self.old, self.current_at) = (0, ticks(now));
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
    fn what_was_overtaken_is_no_last_word() {
        let ms = Time::from_millis;
        let mut d = Doubt::default();
        d.current(ms(1_000));
        // 300 ACKs on another processor, all of which the newest has overtaken.
        assert!(!(0..300).any(|n| d.outdated(Time::from_micros(1_000_000 + 300 * n))));
        d.current(ms(1_091));
        // None came for so long: eight are enough.
        assert_eq!((0..20).position(|n| d.outdated(ms(1_192 + n))), Some(7));
        // Times wrap after 68.7 s.
        d.current(ms(68_700));
        assert!(!(0..100).any(|n| d.outdated(ms(68_700 + n))));
        assert!(d.outdated(ms(68_802)));
    }

    #[test]
    fn three_advances_make_a_flow() {
        let mut d = Doubt::default();
        let acks = [5, 5, 10, 10, 15, 20];
        assert_eq!(acks.iter().position(|&n| d.candidate(1, n)), Some(5));
    }
}
