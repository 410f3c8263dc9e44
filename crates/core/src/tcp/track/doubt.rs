//! Segments that are not believed, and the conditions under which they are believed after all.
//!
//! Any host can send a segment with a flow's addresses, so a segment that cannot be the receiver's changes
//! nothing. A gateway that is wrong about a flow (because it missed a SYN on a reused port, say) must not
//! stay wrong. Segments that fit each other, with none between them that fits the flow, therefore become the
//! flow.
//!
//! Segments overtake each other, by the hundreds of a round trip where several processors carry them. An
//! overtaken segment arrives less than [`OVERTAKEN`] late, so no conclusion is drawn from it within that
//! time.
//!
//! A segment may fit and still be *odd*: it must not be changed, or an ACK made here would lack one of its
//! fields. One odd segment is let through. Where [`MANY`] of the last eight are odd the flow is let through,
//! until eight in a row are not. A single segment is cheap to send, and need not even arrive.

use super::Extensions;
use crate::base::time::Time;
use crate::packet::wire::Seq;

/// Consecutive segments, fitting each other, that restart a flow. Behind hooks only one of
/// [`DOUBT_SAMPLE`](crate::tcp::steer::DOUBT_SAMPLE) is seen.
const CONSISTENT: u8 = 8;
/// Advancing acknowledgements that establish a flow without a seen handshake.
const MIDSTREAM: u8 = 3;
/// Longest time by which a segment overtakes another: 100.7 ms, in [`ticks`].
const OVERTAKEN: u16 = 96;
/// Believed segments that settle a flow without a seen handshake. A few could be forged.
const SETTLED: u8 = 64;
/// Largest distance of the next segment's sequence number from the last.
const NEAR_SEQ: u32 = 1 << 22;
/// Largest advance of its acknowledgement, across the segments that a sample leaves out.
const NEAR_ACK: u32 = 1 << 26;

/// Odd segments among the last eight from which on a flow is let through.
const MANY: u32 = 4;

/// The evidence about a flow, in 20 bytes.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Doubt {
    seq: Seq,
    ack: Seq,
    /// A sequence number behind those that have passed, or ahead of them.
    behind: Seq,
    /// Time since which acknowledgements have that number, in [`ticks`].
    behind_since: u16,
    /// Time of the last acknowledgement that was no older than the sender's knowledge, in [`ticks`].
    current_at: u16,
    /// Consecutive acknowledgements older than the sender's knowledge (low four bits), and those with the
    /// number [`Doubt::behind`] (high four bits). Both stop at 15.
    late: u8,
    /// Consecutive segments that fitted each other (low four bits, stops at 15), the extensions common to all
    /// odd segments of the last run (three bits), and [`RETRACTED`].
    fits: u8,
    /// Segments that were believed. Stops at 255.
    believed: u8,
    /// Oddness of the last eight believed segments, one bit each, the newest lowest.
    odd: u8,
}

const _: () = assert!(size_of::<Doubt>() == 20);

/// Low half of a byte.
const LOW: u8 = 0x0f;
/// Place of the extensions in [`Doubt::fits`].
const EXTENSIONS: u32 = 4;
/// An end continued after it had said that it was at its end.
const RETRACTED: u8 = 1 << (EXTENSIONS + Extensions::BITS);

/// Returns `now` in units of 2^20 ns. They wrap after 68.7 s. After a silence of exactly that, a time seems
/// to be recent, and a conclusion is delayed by [`OVERTAKEN`].
fn ticks(now: Time) -> u16 {
    (now.as_nanos() >> 20) as u16
}

/// Returns whether `then` is so long ago that no segment sent before can still arrive.
fn is_over(then: u16, now: Time) -> bool {
    ticks(now).wrapping_sub(then) >= OVERTAKEN
}

impl Doubt {
    /// Notes a segment that cannot be the flow's. Returns true if the flow is what these segments say.
    pub fn disbelieved(&mut self, seq: Seq, ack: Seq) -> bool {
        self.note(seq, ack, 0);
        self.count() >= CONSISTENT
    }

    /// Notes a segment of a flow without numbers. Returns true if it has advanced often enough to be one.
    pub fn candidate(&mut self, seq: Seq, ack: Seq) -> bool {
        self.note(seq, ack, 1);
        self.count() > MIDSTREAM
    }

    /// Notes an acknowledgement older than the sender's knowledge, and not older than others by its
    /// timestamp. Returns true if it is the receiver's latest state: enough came in a row, and the last
    /// current one came too long before to have overtaken any of them.
    pub fn outdated(&mut self, now: Time) -> bool {
        self.late += u8::from(self.late & LOW < LOW);
        self.late & LOW >= CONSISTENT && is_over(self.current_at, now)
    }

    /// Notes an acknowledgement with a sequence number behind those that have passed. Segments overtake each
    /// other, but the receiver's next number is later. Returns true if the number has not moved for so long
    /// that the ones that passed were not the receiver's.
    pub fn lags(&mut self, seq: Seq, now: Time) -> bool {
        if self.behind != seq || self.late >> 4 == 0 {
            (self.behind, self.behind_since) = (seq, ticks(now));
            self.late &= LOW;
        }
        self.late = self.late.saturating_add(1 << 4) & !LOW | self.late & LOW;
        self.late >> 4 >= CONSISTENT && is_over(self.behind_since, now)
    }

    /// Notes an acknowledgement with a sequence number ahead of those that have passed. Returns true if the
    /// one before it had the same.
    pub fn leads(&mut self, seq: Seq, now: Time) -> bool {
        let again = self.behind == seq && self.late >> 4 != 0;
        (self.behind, self.behind_since, self.late) = (seq, ticks(now), 1 << 4 | self.late & LOW);
        again
    }

    /// Notes an acknowledgement with the expected sequence number.
    pub fn in_sequence(&mut self) {
        self.late &= LOW;
    }

    /// Notes a segment of the flow. Returns true if there were enough for a flow without a seen handshake.
    pub fn believed(&mut self) -> bool {
        self.fits &= !LOW;
        self.believed = self.believed.saturating_add(1);
        self.believed >= SETTLED
    }

    /// Notes a clean acknowledgement of a settled flow, with the expected sequence number and no older than
    /// the sender's knowledge.
    #[inline]
    pub fn met(&mut self, now: Time) {
        self.believed();
        self.passed(now);
        self.clean();
    }

    /// Returns the milliseconds since the last acknowledgement that was no older than the sender's knowledge.
    /// Valid below a minute.
    pub fn silence_ms(&self, now: Time) -> u32 {
        let ticks = u64::from(ticks(now).wrapping_sub(self.current_at));
        ((ticks << 20) / 1_000_000) as u32
    }

    /// Returns whether no segment has been believed yet.
    pub fn is_unmet(&self) -> bool {
        self.believed == 0
    }

    /// Notes that the expected acknowledgements have passed.
    pub fn passed(&mut self, now: Time) {
        (self.late, self.current_at) = (0, ticks(now));
    }

    /// Notes an acknowledgement that is no older than the sender's knowledge.
    pub fn current(&mut self, now: Time) {
        self.late &= !LOW;
        self.current_at = ticks(now);
    }

    /// Notes that a believed segment may be changed.
    #[inline]
    pub fn clean(&mut self) {
        self.odd <<= 1;
    }

    /// Notes that a believed segment is odd, and its extensions.
    pub fn odd(&mut self, extensions: Extensions) {
        let all = if self.odd & 1 == 0 { extensions } else { self.extensions().and(extensions) };
        self.odd = self.odd << 1 | 1;
        self.set_extensions(all);
    }

    /// Returns whether enough of the last believed segments are odd to let the flow through.
    pub fn is_odd(&self) -> bool {
        self.odd.count_ones() >= MANY
    }

    /// Returns whether none of the last eight believed segments was odd.
    pub fn is_clean(&self) -> bool {
        self.odd == 0
    }

    /// Returns the extensions common to the last `n` believed segments, at most eight.
    pub fn common(&self, n: u32) -> Extensions {
        if self.odd.trailing_ones() < n {
            return Extensions::NONE;
        }
        self.extensions()
    }

    /// Notes the extensions that the opening SYN offers. The connection has them once the answer has them,
    /// too.
    pub fn offered(&mut self, extensions: Extensions) {
        self.set_extensions(self.extensions().or(extensions));
    }

    /// Returns the extensions of the opening SYN, until another segment is believed.
    pub fn extensions(&self) -> Extensions {
        Extensions::of_bits(self.fits >> EXTENSIONS)
    }

    fn set_extensions(&mut self, extensions: Extensions) {
        self.fits = self.fits & (LOW | RETRACTED) | extensions.bits() << EXTENSIONS;
    }

    /// Notes that an end continued after it had said that it was at its end.
    pub fn retracted(&mut self) {
        self.fits |= RETRACTED;
    }

    /// Returns whether an end of this connection continued after it had said that it was at its end.
    pub fn has_retracted(&self) -> bool {
        self.fits & RETRACTED != 0
    }

    /// Returns the number of consecutive segments that fitted each other.
    fn count(&self) -> u8 {
        self.fits & LOW
    }

    /// Counts a segment that fits the last and advances by at least `least` bytes.
    fn note(&mut self, seq: Seq, ack: Seq, least: u32) {
        let near = (seq.ahead_of(self.seq)).unsigned_abs() <= NEAR_SEQ;
        let advance = ack.since(self.ack);
        let count = self.count();
        let fits = count > 0 && near && (least..=NEAR_ACK).contains(&advance);
        if count > 0 && near && advance == 0 && least > 0 {
            return; // it repeats the last
        }
        let count = if fits { (count + 1).min(LOW) } else { 1 };
        self.fits = self.fits & !LOW | count;
        if !fits || ack.is_after(self.ack) {
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
        let took = (0..20).position(|n| d.disbelieved(Seq(7), Seq(1_448u32.wrapping_mul(n))));
        assert_eq!(took, Some(7));
        // Blind guesses do not fit each other.
        let mut d = Doubt::default();
        let guess = |n: u32| (n.wrapping_mul(0x9E37_79B9), n.wrapping_mul(0x85EB_CA6B));
        assert!(!(0..100_000).map(guess).any(|(seq, ack)| d.disbelieved(Seq(seq), Seq(ack))));
    }

    #[test]
    fn what_was_overtaken_is_no_last_word() {
        let ms = Time::from_millis;
        let mut d = Doubt::default();
        d.current(ms(1_000));
        // 300 ACKs on another processor. The newest has overtaken all of them.
        assert!(!(0..300).any(|n| d.outdated(Time::from_micros(1_000_000 + 300 * n))));
        d.current(ms(1_091));
        // After that long without a current one, eight are enough.
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
            d.disbelieved(Seq(n), Seq(n));
            d.outdated(Time::from_millis(n.into()));
            d.lags(Seq(7), Time::from_millis(n.into()));
        }
        assert_eq!((d.extensions(), d.has_retracted(), d.is_clean()), (Extensions::AO, true, true));
        d.believed();
        d.current(Time::ZERO);
        assert_eq!((d.count(), d.late), (0, 0xf0));
        d.in_sequence();
        assert_eq!((d.extensions(), d.has_retracted(), d.late), (Extensions::AO, true, 0));
    }

    /// A number that led does not lag because of that: its payload may come behind it.
    #[test]
    fn a_number_that_led_does_not_lag_at_once() {
        let mut d = Doubt::default();
        let at = |us: u64| Time::from_micros(5_000_000 + us);
        assert!(!d.leads(Seq(9), at(0)));
        assert!(!(1..100).any(|n| d.lags(Seq(9), at(n))));
        assert!(d.lags(Seq(9), at(102_000)));
        assert!(d.leads(Seq(9), at(102_001)));
    }

    #[test]
    fn three_advances_make_a_flow() {
        let mut d = Doubt::default();
        let acks = [5, 5, 10, 10, 15, 20];
        assert_eq!(acks.iter().position(|&n| d.candidate(Seq(1), Seq(n))), Some(5));
    }
}
