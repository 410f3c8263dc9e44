//! Segments that are not believed, and when they are believed after all.
//!
//! Anyone can send a segment with a flow's addresses, so a segment that cannot be the receiver's changes
//! nothing. But a gateway that is wrong about a flow (because it missed a SYN on a reused port, say) must not
//! stay wrong: segments that fit each other, with none between them that fits the flow, become the flow.
//!
//! Segments overtake each other, those of a round trip by the hundred where several processors carry them. A segment that was
//! overtaken comes less than [`OVERTAKEN`] late, so no conclusion is drawn from it within that time.
//!
//! A segment may fit and still be *odd*: it must not be changed, or an ACK made here would lack something that it has.
//! One odd segment is let through. Where [`MANY`] of the last eight are odd the flow is let through, until eight in a
//! row are not: one segment is cheap to send, and need not even arrive.

use super::Extensions;
use crate::time::Time;

/// Segments in a row, fitting each other, that take a flow up anew. Behind hooks one of
/// [`DOUBT_SAMPLE`](crate::steer::DOUBT_SAMPLE) is shown.
const CONSISTENT: u8 = 8;
/// Advancing acknowledgements that make a flow of which no handshake was seen.
const MIDSTREAM: u8 = 3;
/// No segment overtakes another by more: 100.7 ms, in [`ticks`].
const OVERTAKEN: u16 = 96;
/// Believed segments that settle a flow of which no handshake was seen: anyone can make up a few.
const SETTLED: u8 = 64;
/// Largest distance of the next segment's sequence number from the last.
const NEAR_SEQ: u32 = 1 << 22;
/// Largest advance of its acknowledgement: what a sample leaves out.
const NEAR_ACK: u32 = 1 << 26;

/// Odd segments among the last eight with which a flow is let through.
const MANY: u32 = 4;

/// The evidence about a flow, in 20 bytes.
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
    /// Acknowledgements in a row that were older than what the sender knows (low four bits), and that had the number
    /// [`Doubt::behind`] (high four bits). Both stop at 15.
    late: u8,
    /// Segments in a row that fitted each other (low four bits, stops at 15), the extensions that all odd segments of
    /// the last run have (three bits), and [`RETRACTED`].
    fits: u8,
    /// Segments that were believed; stops at 255.
    believed: u8,
    /// One bit for each of the last eight believed segments, the newest lowest: was it odd?
    odd: u8,
}

const _: () = assert!(size_of::<Doubt>() == 20);

/// Low half of a byte.
const LOW: u8 = 0x0f;
/// Place of the extensions in [`Doubt::fits`].
const EXTENSIONS: u32 = 4;
/// An end has said that it was at its end, and gone on.
const RETRACTED: u8 = 1 << (EXTENSIONS + Extensions::BITS);

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
        self.count() >= CONSISTENT
    }

    /// A segment of a flow without numbers. True when it has advanced often enough to be one.
    pub fn candidate(&mut self, seq: u32, ack: u32) -> bool {
        self.note(seq, ack, 1);
        self.count() > MIDSTREAM
    }

    /// An acknowledgement older than what the sender knows, and not older than others by its timestamp. True when it is the
    /// receiver's last word: so many came in a row, and the last that was not old came so long before that it overtook none
    /// of them.
    pub fn outdated(&mut self, now: Time) -> bool {
        self.late += u8::from(self.late & LOW < LOW);
        self.late & LOW >= CONSISTENT && is_over(self.current_at, now)
    }

    /// An acknowledgement with a sequence number behind what has passed: segments overtake each other, but the receiver's
    /// next is later. True when it has not moved for so long that what has passed was not the receiver's.
    pub fn lags(&mut self, seq: u32, now: Time) -> bool {
        if self.behind != seq || self.late >> 4 == 0 {
            (self.behind, self.behind_since) = (seq, ticks(now));
            self.late &= LOW;
        }
        self.late = self.late.saturating_add(1 << 4) & !LOW | self.late & LOW;
        self.late >> 4 >= CONSISTENT && is_over(self.behind_since, now)
    }

    /// An acknowledgement with the sequence number that it should have.
    pub fn in_sequence(&mut self) {
        self.late &= LOW;
    }

    /// A segment that is the flow's. True when there were so many that it is one even without a handshake.
    pub fn believed(&mut self) -> bool {
        self.fits &= !LOW;
        self.believed = self.believed.saturating_add(1);
        self.believed >= SETTLED
    }

    /// An acknowledgement of a flow that is settled, no older than what the sender knows and with the sequence number that it
    /// should have, which may be touched.
    #[inline]
    pub fn met(&mut self, now: Time) {
        self.believed();
        self.passed(now);
        self.clean();
    }

    /// Milliseconds since an acknowledgement was last no older than what the sender knew, if that is less than a
    /// minute.
    pub fn silence_ms(&self, now: Time) -> u32 {
        let ticks = u64::from(ticks(now).wrapping_sub(self.current_at));
        ((ticks << 20) / 1_000_000) as u32
    }

    /// No segment was believed yet.
    pub fn is_unmet(&self) -> bool {
        self.believed == 0
    }

    /// Acknowledgements have passed that were what they should be.
    pub fn passed(&mut self, now: Time) {
        (self.late, self.current_at) = (0, ticks(now));
    }

    /// An acknowledgement that is no older than what the sender knows.
    pub fn current(&mut self, now: Time) {
        self.late &= !LOW;
        self.current_at = ticks(now);
    }

    /// A believed segment may be touched.
    #[inline]
    pub fn clean(&mut self) {
        self.odd <<= 1;
    }

    /// A believed segment is odd; it has these extensions.
    pub fn odd(&mut self, extensions: Extensions) {
        let all = if self.odd & 1 == 0 { extensions } else { self.extensions().and(extensions) };
        self.odd = self.odd << 1 | 1;
        self.set_extensions(all);
    }

    /// Are so many of the last believed segments odd that the flow is let through?
    pub fn is_odd(&self) -> bool {
        self.odd.count_ones() >= MANY
    }

    /// Was none of the last eight believed segments odd?
    pub fn is_clean(&self) -> bool {
        self.odd == 0
    }

    /// Returns what the last `n` believed segments, at most eight, have all had.
    pub fn common(&self, n: u32) -> Extensions {
        if self.odd.trailing_ones() < n {
            return Extensions::NONE;
        }
        self.extensions()
    }

    /// The SYN that opens the connection offers these extensions. They are its own once the answer has them.
    pub fn offered(&mut self, extensions: Extensions) {
        self.set_extensions(self.extensions().or(extensions));
    }

    /// Returns what the opening SYN has offered, before any other segment was believed.
    pub fn extensions(&self) -> Extensions {
        Extensions::of_bits(self.fits >> EXTENSIONS)
    }

    fn set_extensions(&mut self, extensions: Extensions) {
        self.fits = self.fits & (LOW | RETRACTED) | extensions.bits() << EXTENSIONS;
    }

    /// An end that said that it was at its end has gone on.
    pub fn retracted(&mut self) {
        self.fits |= RETRACTED;
    }

    /// Has an end of this connection gone on after it said that it was at its end?
    pub fn has_retracted(&self) -> bool {
        self.fits & RETRACTED != 0
    }

    /// Segments in a row that fitted each other.
    fn count(&self) -> u8 {
        self.fits & LOW
    }

    /// Counts a segment that fits the last and advances by at least `least` bytes.
    fn note(&mut self, seq: u32, ack: u32, least: u32) {
        let near = (seq.wrapping_sub(self.seq) as i32).unsigned_abs() <= NEAR_SEQ;
        let advance = ack.wrapping_sub(self.ack);
        let count = self.count();
        let fits = count > 0 && near && (least..=NEAR_ACK).contains(&advance);
        if count > 0 && near && advance == 0 && least > 0 {
            return; // it repeats the last
        }
        let count = if fits { (count + 1).min(LOW) } else { 1 };
        self.fits = self.fits & !LOW | count;
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
    fn a_flow_is_odd_while_four_of_eight_are_and_until_eight_are_not() {
        let mut d = Doubt::default();
        for _ in 0..3 {
            d.odd(Extensions::NONE);
            d.clean();
        }
        assert!(!d.is_odd());
        d.odd(Extensions::MD5);
        assert!(d.is_odd());
        let clean = (1..20).position(|_| {
            d.clean();
            d.is_clean()
        });
        assert_eq!(clean, Some(7), "the eighth");
        // One in eight is never many.
        for n in 0..100 {
            if n % 3 == 0 {
                d.odd(Extensions::NONE);
            } else {
                d.clean();
            }
            assert!(!d.is_odd());
        }
    }

    #[test]
    fn only_what_all_have_is_common() {
        let mut d = Doubt::default();
        let both = Extensions::MD5.or(Extensions::MPTCP);
        for extensions in [Extensions::NONE, both, Extensions::MPTCP, Extensions::MPTCP] {
            d.odd(extensions);
        }
        assert_eq!(d.common(3), Extensions::NONE, "the first of the run has none");
        d.clean();
        for extensions in [both, Extensions::MPTCP, both] {
            d.odd(extensions);
        }
        assert_eq!((d.common(3), d.common(4)), (Extensions::MPTCP, Extensions::NONE));
    }

    #[test]
    fn counts_do_not_spill_into_each_other() {
        let mut d = Doubt::default();
        d.offered(Extensions::AO);
        d.retracted();
        for n in 0..300 {
            d.disbelieved(n, n);
            d.outdated(Time::from_millis(n.into()));
            d.lags(7, Time::from_millis(n.into()));
        }
        assert_eq!((d.extensions(), d.has_retracted(), d.is_clean()), (Extensions::AO, true, true));
        d.believed();
        d.current(Time::ZERO);
        assert_eq!((d.count(), d.late), (0, 0xf0));
        d.in_sequence();
        assert_eq!((d.extensions(), d.has_retracted(), d.late), (Extensions::AO, true, 0));
    }

    #[test]
    fn three_advances_make_a_flow() {
        let mut d = Doubt::default();
        let acks = [5, 5, 10, 10, 15, 20];
        assert_eq!(acks.iter().position(|&n| d.candidate(1, n)), Some(5));
    }
}
