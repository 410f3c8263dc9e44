//! Decisions on segments of the receiver, and on ACKs that the gateway sends, by what the slot says.

use super::{
    after, slot_flag, Action, Seen, Slot, Stamp, ACK, ACK_RANGE, DOUBT_SAMPLE, FIN, PURE_BEHIND, SEQ_AHEAD,
    SEQ_BEHIND, URG,
};
use crate::ack::window;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Moves `place` forward to `to`, never back, whoever else moves it.
fn advance(place: &AtomicU32, to: u32) {
    let mut old = place.load(Relaxed);
    while after(to, old) {
        match place.compare_exchange_weak(old, to, Relaxed, Relaxed) {
            Ok(_) => return,
            Err(now) => old = now,
        }
    }
}

/// As [`advance`], of a place that nobody else moves: without the cost of a locked instruction.
fn advance_alone(place: &AtomicU32, to: u32) {
    if after(to, place.load(Relaxed)) {
        place.store(to, Relaxed);
    }
}

impl Slot {
    /// Can this segment be the receiver's? Its sequence number is near SND.NXT, and it acknowledges nothing
    /// beyond the receiver's right edge, nor anything so old that its sender would not accept it (RFC 5961
    /// section 5.2: a largest window below SND.UNA).
    pub fn believes(&self, seen: &Seen) -> bool {
        let ahead = seen.seq.wrapping_sub(self.nxt.load(Relaxed)) as i32;
        let behind = if seen.is_pure() { PURE_BEHIND } else { SEQ_BEHIND };
        if ahead > SEQ_AHEAD as i32 || ahead < -(behind as i32) {
            return false;
        }
        let progress = seen.ack.wrapping_sub(self.tx.load(Relaxed)) as i32;
        if !self.has(slot_flag::SCALED) {
            return progress.unsigned_abs() <= ACK_RANGE;
        }
        progress >= -(0xffff_i32 << self.scale()) && !after(seen.ack, self.edge.load(Relaxed))
    }

    /// Does a segment, which is believed, tell more than that data passes? Without payload it does. With payload, what it
    /// says must be new. Whoever runs [`Slot::segment`] has summed it, and nothing comes here that has a wrong checksum:
    /// what a segment that tells nothing says is known already, but for its end.
    pub fn tells(&self, seen: &Seen) -> bool {
        let edge = seen.ack.wrapping_add(u32::from(seen.window) << self.scale());
        seen.payload == 0
            || seen.flags & (FIN | URG) != 0
            || seen.sack
            || u32::from(seen.window) != self.window.load(Relaxed)
            || after(seen.ack, self.ack.load(Relaxed))
            || (self.has(slot_flag::SCALED) && after(edge, self.edge.load(Relaxed)))
    }

    /// Has the segment to be summed before [`Slot::segment`] sees it?
    pub fn wants_sum(&self, seen: &Seen) -> bool {
        seen.flags & ACK != 0 && (!self.believes(seen) || self.tells(seen))
    }

    /// Has the segment to be summed before [`Slot::bypass`] sees it? It has where its sender hears what it did not know.
    pub fn passes_on(&self, seen: &Seen) -> bool {
        self.tells(seen) || after(seen.ack, self.tx.load(Relaxed))
    }

    /// The receiver's numbers move forward; window and timestamp are those of a segment that is not older than
    /// the last.
    #[inline]
    fn note(&self, seen: &Seen, advance: fn(&AtomicU32, u32)) {
        self.doubts.store(0, Relaxed);
        let behind = after(self.nxt.load(Relaxed), seen.seq);
        if seen.end() != seen.seq {
            advance(&self.nxt, seen.end());
        }
        if let Some(ts) = seen.ts {
            advance(&self.ts, ts);
        }
        advance(&self.ack, seen.ack);
        if self.has(slot_flag::SCALED) {
            advance(&self.edge, seen.ack.wrapping_add(u32::from(seen.window) << self.scale()));
        }
        if !behind {
            self.window.store(u32::from(seen.window), Relaxed);
        }
    }

    /// As [`Slot::note_taken`], of an ACK whose sequence number is the next, where the scale is known.
    #[inline(always)]
    pub(crate) fn note_next(&self, seen: &Seen) {
        self.doubts.store(0, Relaxed);
        if let Some(ts) = seen.ts {
            advance_alone(&self.ts, ts);
        }
        advance_alone(&self.ack, seen.ack);
        advance_alone(&self.edge, seen.ack.wrapping_add(u32::from(seen.window) << self.scale()));
        self.window.store(u32::from(seen.window), Relaxed);
    }

    /// A segment passes as it came: the sender knows its acknowledgement and its right edge. The gateway may call this of a slot
    /// that a hook moves meanwhile.
    pub fn note_passed(&self, seen: &Seen) {
        self.note(seen, advance);
        advance(&self.tx, seen.ack);
        if self.has(slot_flag::SCALED) {
            advance(&self.sent, seen.ack.wrapping_add(u32::from(seen.window) << self.scale()));
        }
        if seen.flags & FIN != 0 {
            self.ended.store(1, Relaxed);
        }
    }

    /// An ACK without payload goes to the gateway: nothing of it has passed.
    #[inline]
    pub(crate) fn note_taken(&self, seen: &Seen) {
        self.note(seen, advance_alone);
    }

    /// A segment of the receiver (not a SYN or RST) passes because the gateway is away, or cannot be told. What cannot be
    /// true changes nothing here either. A window that the gateway sizes stays within its bounds: an edge that
    /// went right could not be taken back, and the flow would stand still until it is used up.
    pub fn bypass(&self, seen: &Seen) -> Action {
        if seen.flags & ACK == 0 || !self.believes(seen) {
            return Action::Pass;
        }
        self.note(seen, advance_alone);
        advance_alone(&self.tx, seen.ack);
        if seen.flags & FIN != 0 {
            self.ended.store(1, Relaxed);
        }
        let window = self.bounded(seen);
        if self.has(slot_flag::SCALED) {
            advance_alone(&self.sent, seen.ack.wrapping_add(u32::from(window) << self.scale()));
        }
        if window == seen.window {
            return Action::Pass;
        }
        Action::SetBack { ack: seen.ack, window, report: false }
    }

    /// The segment's window, at most `width` bytes of it or what the sender knows.
    fn bounded(&self, seen: &Seen) -> u16 {
        let width = self.width.load(Relaxed);
        if !self.has(slot_flag::SCALED | slot_flag::SIZED) || width == 0 || seen.window == 0 {
            return seen.window;
        }
        let (scale, sent) = (self.scale(), self.sent.load(Relaxed));
        let own = seen.ack.wrapping_add(u32::from(seen.window) << scale);
        let goal = seen.ack.wrapping_add(width);
        window::fit(seen.ack, scale, if after(sent, goal) { sent } else { goal }, own)
    }

    /// What becomes of a segment of the receiver (not a SYN or RST) while the gateway works. When it cannot be taken
    /// or set back (no room in the ring), [`Slot::bypass`] tells how it passes. A copy that cannot be made changes nothing: the segment was noted here, or is not believed.
    pub fn segment(&self, seen: &Seen) -> Action {
        if seen.flags & ACK == 0 {
            return Action::Pass;
        }
        if !self.believes(seen) {
            return self.doubt();
        }
        self.believed(seen)
    }

    /// A segment that is not believed passes: the gateway sees one of so many.
    fn doubt(&self) -> Action {
        let doubts = self.doubts.fetch_add(1, Relaxed);
        if doubts % DOUBT_SAMPLE == 0 {
            Action::Copy
        } else {
            Action::Pass
        }
    }

    /// As [`Slot::segment`], of an acknowledgement that is [believed](Slot::believes).
    pub fn believed(&self, seen: &Seen) -> Action {
        let (tx, nxt) = (self.tx.load(Relaxed), self.nxt.load(Relaxed));
        // A retransmission or a probe (keepalive: one before SND.NXT, RFC 9293 section 3.8.4): nothing is learnt
        // from its acknowledgement, since the sender might not accept it, and nothing leaks by it. An
        // ACK without payload that a segment overtook is an ACK like any other.
        let probe = seen.seq == nxt.wrapping_sub(1);
        if after(nxt, seen.seq) && !after(seen.end(), nxt) && (probe || !seen.is_pure()) {
            // The last segment again (a tail loss probe, RFC 8985 section 7): its sender's clock is newer, and the peer
            // takes that for the newest (RFC 7323 section 4.3), wherever it already has the segment.
            if let Some(ts) = seen.ts.filter(|_| seen.end() == nxt) {
                advance_alone(&self.ts, ts);
            }
            let ack = if after(seen.ack, tx) { tx } else { seen.ack };
            return self.set_back(seen, ack, false);
        }
        // A second FIN beyond the first is none (RFC 9293 section 3.10.7.4, eighth), but its acknowledgement counts.
        if seen.flags & FIN != 0 && self.ended.load(Relaxed) == 0 {
            self.note_passed(seen);
            return Action::Copy;
        }
        if self.grants(seen) {
            return self.bypass(seen);
        }
        if seen.is_pure() {
            self.note_taken(seen);
            return Action::Take;
        }
        let opens = self.window.load(Relaxed) == 0 && seen.window != 0;
        let unknown = after(seen.ack, tx) && !self.has(slot_flag::SCALED);
        if seen.sack || seen.window == 0 || opens || unknown {
            return match self.bypass(seen) {
                Action::SetBack { ack, window, .. } => Action::SetBack { ack, window, report: true },
                _ => Action::Copy,
            };
        }
        self.note(seen, advance_alone);
        // A made ACK that is stamped on another processor now either gets this timestamp, or shows here what it
        // acknowledges: refused for its age (PAWS) behind this segment, it told nothing that this one does not.
        let tx = self.tx.load(Relaxed);
        let progress = after(seen.ack, tx);
        self.set_back(seen, if progress { tx } else { seen.ack }, progress)
    }

    /// The segment with `ack` in its ACK field, and a window that keeps the right edge.
    fn set_back(&self, seen: &Seen, ack: u32, report: bool) -> Action {
        let window = if self.has(slot_flag::SCALED) && seen.window != 0 {
            self.window_of(seen, ack)
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
    fn window_of(&self, seen: &Seen, ack: u32) -> u16 {
        let scale = self.scale();
        let own = seen.ack.wrapping_add(u32::from(seen.window) << scale);
        if self.has(slot_flag::SIZED) {
            return window::fit(ack, scale, self.sent.load(Relaxed), own);
        }
        let field = window::fit(ack, scale, own, own);
        advance_alone(&self.sent, ack.wrapping_add(u32::from(field) << scale));
        field
    }

    /// Does a RST of the receiver with this sequence number go to the gateway? It does where its sender will accept it (RFC 5961 §3.2) and
    /// something is held that is to be told before. Any other passes, and so does one that cannot be taken.
    pub fn takes_reset(&self, seq: u32) -> bool {
        seq == self.nxt.load(Relaxed) && after(self.ack.load(Relaxed), self.tx.load(Relaxed))
    }

    /// An ACK that the gateway sends leaves towards the sender.
    #[inline(always)]
    pub fn stamp(&self, ack: u32, window: u16) -> Stamp {
        let tx = self.tx.load(Relaxed);
        if after(tx, ack) || (self.ended.load(Relaxed) != 0 && !after(ack, tx)) {
            return Stamp::Discard;
        }
        advance_alone(&self.tx, ack);
        let mut field = window;
        if self.has(slot_flag::SCALED) && window != 0 {
            let (scale, sent) = (self.scale(), self.sent.load(Relaxed));
            // The receiver's own window where nothing is held: it may be smaller than it was. Where something is, the
            // sender knows of an edge that goes with a later acknowledgement (`set_back`).
            let kept = !self.has(slot_flag::SIZED)
                && u32::from(window) == self.window.load(Relaxed)
                && !after(self.ack.load(Relaxed), ack);
            // Never left of what the sender knows, never beyond what the receiver said.
            if !kept && after(sent, ack.wrapping_add(u32::from(field) << scale)) {
                field = field.max(window::fit(ack, scale, sent, self.edge.load(Relaxed)));
            }
            advance_alone(&self.sent, ack.wrapping_add(u32::from(field) << scale));
        }
        Stamp::Send { seq: self.nxt.load(Relaxed), ts: self.ts.load(Relaxed), window: field }
    }
}
