//! Decisions on segments of the receiver, and on ACKs that the gateway sends, by what the slot says.

use super::words::Writer::{self, Alone};
use super::{
    slot_flag, Action, Numbers, Seen, Slot, Stamp, ACK, ACK_RANGE, DOUBT_SAMPLE, FIN, PURE_BEHIND, SEQ_AHEAD,
    SEQ_BEHIND, URG,
};
use crate::packet::wire::Seq;
use crate::tcp::window;
use core::sync::atomic::Ordering::Relaxed;

impl Numbers {
    /// Returns whether the segment is a retransmission or a probe (keepalive: one before SND.NXT, RFC 9293
    /// section 3.8.4). An ACK without payload that a segment overtook is an ACK like any other.
    #[inline(always)]
    fn has_had(&self, seen: &Seen) -> bool {
        let probe = seen.seq == self.nxt.minus(1);
        self.nxt.is_after(seen.seq) && !seen.end().is_after(self.nxt) && (probe || !seen.is_pure())
    }
}

impl Slot {
    /// Returns whether this segment can be the receiver's. Its sequence number is near SND.NXT, and it
    /// acknowledges nothing beyond the receiver's right edge, nor anything so old that its sender would not
    /// accept it (RFC 5961 section 5.2: a largest window below SND.UNA).
    pub fn believes(&self, seen: &Seen) -> bool {
        self.can_be(&self.numbers(), seen)
    }

    #[inline(always)]
    fn can_be(&self, n: &Numbers, seen: &Seen) -> bool {
        let ahead = seen.seq.ahead_of(n.nxt);
        let behind = if seen.is_pure() { PURE_BEHIND } else { SEQ_BEHIND };
        if ahead > SEQ_AHEAD as i32 || ahead < -(behind as i32) {
            return false;
        }
        let progress = seen.ack.ahead_of(n.tx);
        if !self.has(slot_flag::SCALED) {
            return progress.unsigned_abs() <= ACK_RANGE;
        }
        progress >= -(0xffff_i32 << self.scale()) && !seen.ack.is_after(n.edge)
    }

    /// The right edge of an acknowledgement, if it is known.
    #[inline(always)]
    fn edge_of(&self, ack: Seq, window: u16) -> Option<Seq> {
        let scaled = self.has(slot_flag::SCALED);
        scaled.then(|| ack.plus(u32::from(window) << self.scale()))
    }

    /// Returns whether a segment, which is believed, tells more than that data passes. Without payload it
    /// does. With payload, what it says must be new. The caller of [`Slot::segment`] has summed it, and
    /// nothing comes here that has a wrong checksum: what a segment that tells nothing says is known already,
    /// but for its end and its TSval.
    #[inline(always)]
    fn tells(&self, n: &Numbers, seen: &Seen) -> bool {
        seen.payload == 0
            || seen.flags & (FIN | URG) != 0
            || seen.sack
            || seen.window != n.window
            || seen.ack.is_after(n.ack)
            || self.edge_of(seen.ack, seen.window).is_some_and(|edge| edge.is_after(n.edge))
    }

    /// Returns whether the segment has to be summed before [`Slot::segment`] sees it.
    pub fn wants_sum(&self, seen: &Seen) -> bool {
        let n = self.numbers();
        seen.flags & ACK != 0 && (!self.can_be(&n, seen) || self.tells(&n, seen))
    }

    /// Returns whether the segment has to be summed before [`Slot::bypass`] sees it. It has where its sender
    /// hears what it did not know.
    pub fn passes_on(&self, seen: &Seen) -> bool {
        let n = self.numbers();
        self.tells(&n, seen) || seen.ack.is_after(n.tx)
    }

    /// The receiver's numbers move forward; the window is that of a segment that is not older than the last.
    #[inline(always)]
    fn note(&self, by: Writer, n: &Numbers, seen: &Seen, ended: bool) {
        if self.doubts.load(Relaxed) != 0 {
            self.doubts.store(0, Relaxed);
        }
        if !self.is_own() {
            self.begin_own(by, n);
        }
        if seen.end() != seen.seq {
            self.pass(by, n.turn, seen.end());
        }
        if let Some(ts) = seen.ts {
            self.note_ts(by, ts, seen.at, seen.payload == 0);
        }
        self.say(by, seen.ack, self.edge_of(seen.ack, seen.window));
        let window = if n.nxt.is_after(seen.seq) { n.window } else { seen.window };
        if window != n.window || ended {
            self.note_last(by, (window != n.window).then_some(window), ended);
        }
    }

    /// As [`Slot::segment`] of an ACK without payload whose sequence number is the next, where the scale is
    /// known.
    #[inline(always)]
    pub(crate) fn note_next(&self, seen: &Seen) {
        self.doubts.store(0, Relaxed);
        if !self.is_own() {
            self.begin_own(Alone, &self.numbers());
        }
        if let Some(ts) = seen.ts {
            self.note_ts(Alone, ts, seen.at, true);
        }
        self.say(Alone, seen.ack, self.edge_of(seen.ack, seen.window));
        if self.window() != seen.window {
            self.note_last(Alone, Some(seen.window), false);
        }
    }

    /// A segment passes as it came: the sender knows its acknowledgement and its right edge.
    pub fn note_passed(&self, seen: &Seen) {
        self.note_passed_by(Alone, &self.numbers(), seen);
    }

    #[inline(always)]
    fn note_passed_by(&self, by: Writer, n: &Numbers, seen: &Seen) {
        self.note(by, n, seen, seen.flags & FIN != 0);
        self.tell(by, seen.ack, self.edge_of(seen.ack, seen.window));
    }

    /// As [`Slot::note_passed`], of what the gateway has seen pass before the hooks may have known of the
    /// slot.
    pub fn note_seen(&self, seen: &Seen) {
        let nxt = Some(seen.end()).filter(|&end| end != seen.seq);
        if let Some(ts) = seen.ts {
            self.note_ts_by_gateway(ts, seen.at);
        }
        self.note_by_gateway(
            seen.ack,
            self.edge_of(seen.ack, seen.window),
            nxt,
            seen.window,
            seen.flags & FIN != 0,
        );
    }

    /// Returns whether the segment is a retransmission or a probe, of which a hook tells nothing.
    pub fn is_repetition(&self, seen: &Seen) -> bool {
        self.numbers().has_had(seen)
    }

    /// As [`Slot::note_seen`], of a segment that the gateway lets leave as it came. No hook reads such a
    /// frame, so the gateway moves the hooks' word of what the sender knows, as one more of them would.
    pub fn note_left(&self, seen: &Seen) {
        self.note_seen(seen);
        let tag = self.tag.load(Relaxed);
        self.tell(Writer::Among(tag), seen.ack, self.edge_of(seen.ack, seen.window));
    }

    /// A segment of the receiver (not a SYN or RST) passes because the gateway is away, or cannot be told.
    /// What cannot be true changes nothing here either. A window that the gateway sizes stays within its
    /// bounds: an edge that went right could not be taken back, and the flow would stand still until it is
    /// used up.
    pub fn bypass(&self, seen: &Seen) -> Action {
        let n = self.numbers();
        if seen.flags & ACK == 0 || !self.can_be(&n, seen) {
            return Action::Pass;
        }
        self.bypass_by(Alone, &n, seen)
    }

    fn bypass_by(&self, by: Writer, n: &Numbers, seen: &Seen) -> Action {
        self.note(by, n, seen, seen.flags & FIN != 0);
        let window = self.bounded(n, seen);
        self.tell(by, seen.ack, self.edge_of(seen.ack, window));
        if window == seen.window {
            return Action::Pass;
        }
        Action::SetBack { ack: seen.ack, window, report: false }
    }

    /// The segment's window, at most `width` bytes of it or what the sender knows.
    fn bounded(&self, n: &Numbers, seen: &Seen) -> u16 {
        let width = self.width.load(Relaxed);
        if !self.has(slot_flag::SCALED | slot_flag::SIZED) || width == 0 || seen.window == 0 {
            return seen.window;
        }
        let scale = self.scale();
        let own = seen.ack.plus(u32::from(seen.window) << scale);
        let goal = seen.ack.plus(width);
        window::fit(seen.ack, scale, if n.sent.is_after(goal) { n.sent } else { goal }, own)
    }

    /// Treats a segment of the receiver (not a SYN or RST) while the gateway works. When it cannot
    /// be taken or set back (no room in the ring), [`Slot::bypass`] tells how it passes. A copy that cannot
    /// be made changes nothing: the segment was noted here, or is not believed.
    pub fn segment(&self, seen: &Seen) -> Action {
        self.segment_by(Alone, seen)
    }

    /// As [`Slot::segment`], of one of several hooks that run at once, which has found the slot with this
    /// tag.
    pub fn segment_among(&self, tag: u32, seen: &Seen) -> Action {
        self.segment_by(Writer::Among(tag), seen)
    }

    #[inline(always)]
    fn segment_by(&self, by: Writer, seen: &Seen) -> Action {
        let n = self.numbers();
        if let Writer::Among(tag) = by {
            // Of another use, or of two.
            super::words::barrier();
            if self.tag.load(Relaxed) != tag {
                return Action::Pass;
            }
        }
        if seen.flags & ACK == 0 {
            return Action::Pass;
        }
        if !self.can_be(&n, seen) {
            let doubts = self.doubts.fetch_add(1, Relaxed);
            return if doubts % DOUBT_SAMPLE == 0 { Action::Copy } else { Action::Pass };
        }
        self.believed_by(by, &n, seen)
    }

    /// As [`Slot::segment`], of an acknowledgement that is [believed](Slot::believes).
    pub fn believed(&self, seen: &Seen) -> Action {
        self.believed_by(Alone, &self.numbers(), seen)
    }

    #[inline(always)]
    fn believed_by(&self, by: Writer, n: &Numbers, seen: &Seen) -> Action {
        let progress = seen.ack.is_after(n.tx);
        // Nothing is learnt from the acknowledgement of a repetition, since the sender might not accept it,
        // and nothing leaks by it.
        if n.has_had(seen) {
            // The last segment again (a tail loss probe, RFC 8985 section 7): its sender's clock is newer,
            // and the peer takes that for the newest (RFC 7323 section 4.3), wherever it already has the
            // segment.
            if let Some(ts) = seen.ts.filter(|_| seen.end() == n.nxt) {
                self.note_ts(by, ts, seen.at, false);
            }
            return self.set_back(by, n, seen, if progress { n.tx } else { seen.ack }, false);
        }
        // A second FIN beyond the first is none (RFC 9293 section 3.10.7.4, eighth), but its acknowledgement
        // counts.
        if seen.flags & FIN != 0 && !n.ended {
            self.note_passed_by(by, n, seen);
            return Action::Copy;
        }
        if self.grants(n, seen) {
            return self.bypass_by(by, n, seen);
        }
        if seen.is_pure() {
            self.note(by, n, seen, false);
            return Action::Take;
        }
        let opens = n.window == 0 && seen.window != 0;
        let unknown = progress && !self.has(slot_flag::SCALED);
        if seen.sack || seen.window == 0 || opens || unknown {
            return match self.bypass_by(by, n, seen) {
                Action::SetBack { ack, window, .. } => Action::SetBack { ack, window, report: true },
                _ => Action::Copy,
            };
        }
        self.note(by, n, seen, false);
        // A made ACK that is stamped on another processor now either gets this timestamp, or shows here what
        // it acknowledges: refused for its age (PAWS) behind this segment, it told nothing that this one does
        // not.
        let n = &Numbers { tx: self.tx(), sent: self.sent(), ..*n };
        let progress = seen.ack.is_after(n.tx);
        self.set_back(by, n, seen, if progress { n.tx } else { seen.ack }, progress)
    }

    /// Returns whether [`Slot::segment`] lets a segment pass by a grant.
    pub fn lets_pass(&self, seen: &Seen) -> bool {
        let n = self.numbers();
        self.can_be(&n, seen) && self.grants(&n, seen)
    }

    /// Returns whether [`Slot::segment`] deals with a segment that has payload without a report.
    pub fn deals_with(&self, seen: &Seen) -> bool {
        let n = self.numbers();
        if !self.can_be(&n, seen) {
            return false;
        }
        let ends = seen.flags & FIN != 0 && !n.ended;
        let speaks = seen.sack || seen.window == 0 || n.window == 0;
        n.has_had(seen) || !ends && (self.grants(&n, seen) || !speaks && !seen.ack.is_after(n.tx))
    }

    /// The segment with `ack` in its ACK field, and a window that keeps the right edge.
    #[inline(always)]
    fn set_back(&self, by: Writer, n: &Numbers, seen: &Seen, ack: Seq, report: bool) -> Action {
        let window = if self.has(slot_flag::SCALED) && seen.window != 0 {
            self.window_of(by, n, seen, ack)
        } else {
            seen.window
        };
        if ack == seen.ack && window == seen.window {
            return Action::Pass;
        }
        Action::SetBack { ack, window, report }
    }

    /// The window field of a segment set back to `ack`: its own right edge, rounded down; with `SIZED` the
    /// one that the sender knows.
    #[inline(always)]
    fn window_of(&self, by: Writer, n: &Numbers, seen: &Seen, ack: Seq) -> u16 {
        let scale = self.scale();
        let own = seen.ack.plus(u32::from(seen.window) << scale);
        if self.has(slot_flag::SIZED) {
            return window::fit(ack, scale, n.sent, own);
        }
        let field = window::fit(ack, scale, own, own);
        self.tell(by, n.tx, Some(ack.plus(u32::from(field) << scale)));
        field
    }

    /// Returns whether a RST of the receiver with this sequence number goes to the gateway. It does where its
    /// sender will accept it (RFC 5961 §3.2) and something is held that is to be told before. Any other
    /// passes, and so does one that cannot be taken.
    pub fn takes_reset(&self, seq: Seq) -> bool {
        let n = self.numbers();
        seq == n.nxt && n.ack.is_after(n.tx)
    }

    /// An ACK that the gateway sends leaves towards the sender.
    #[inline(always)]
    pub fn stamp(&self, ack: Seq, window: u16) -> Stamp {
        self.stamp_by(Alone, ack, window)
    }

    /// As [`Slot::stamp`], where others are at the slot meanwhile.
    pub fn stamp_among(&self, tag: u32, ack: Seq, window: u16) -> Stamp {
        self.stamp_by(Writer::Among(tag), ack, window)
    }

    #[inline(always)]
    fn stamp_by(&self, by: Writer, ack: Seq, window: u16) -> Stamp {
        let n = self.numbers();
        if n.tx.is_after(ack) || (n.ended && !ack.is_after(n.tx)) {
            return Stamp::Discard;
        }
        let (mut field, mut edge) = (window, None);
        if self.has(slot_flag::SCALED) && window != 0 {
            let scale = self.scale();
            // The receiver's own window where nothing is held: it may be smaller than it was. Where something
            // is, the sender knows of an edge that goes with a later acknowledgement (`set_back`).
            let kept = !self.has(slot_flag::SIZED) && window == n.window && !n.ack.is_after(ack);
            // Never left of what the sender knows, never beyond what the receiver said.
            if !kept && n.sent.is_after(ack.plus(u32::from(field) << scale)) {
                field = field.max(window::fit(ack, scale, n.sent, n.edge));
            }
            edge = Some(ack.plus(u32::from(field) << scale));
        }
        self.tell(by, ack, edge);
        Stamp::Send { seq: self.nxt(), ts: self.ts(), window: field }
    }
}
