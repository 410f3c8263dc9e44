//! Scoreboard: the data in flight, SACKed and lost.
//!
//! Segments are kept in a ring in stream order. The work of an ACK takes amortized constant time per segment,
//! for any size of the window. SACKed ranges are stepped over as a whole. The search for losses (RFC 6675
//! IsLost, RFC 8985 §6.2) continues at its last position.
//!
//! - `ring`: the segments, and their order in time;
//! - `ranges`: the SACKed segments;
//! - `ack`: processing of an ACK;
//! - `loss`: marking, retransmitting, undoing;
//! - `rack`: losses found by time (RFC 8985).
//!
//! A piece is one segment, at most SMSS bytes, and stays one. A cumulative ACK within a piece leaves its
//! rest. A piece is SACKed when one range of the receiver covers it as a whole; Linux would split it.
//!
//! A piece that is not SACKed is counted in flight once unless it is lost, and once more if it has been
//! retransmitted since (Pipe of RFC 6675 §4).

mod ack;
mod loss;
mod rack;
mod ranges;
mod ring;
#[cfg(test)]
mod tests;

pub use ack::Witness;
pub use rack::Rack;

use crate::cache::prefetch_lines;
use core::mem::offset_of;
use rack::{Newest, Offer};
use ranges::Ranges;
use ring::{Id, InFlight, Ring, LOST, RESENT, RETRANSMITTED, SACKED};
use weir_core::time::{Duration, Time};

/// State of the delivery-rate estimator when a segment was sent
/// (draft-cheng-iccrg-delivery-rate-estimation §3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Time of the last transmission.
    pub at: Time,
    /// Total bytes delivered by then.
    pub delivered: u64,
    /// Time of the last of these deliveries.
    pub delivered_at: Time,
    /// Time of the first segment of the flight.
    pub first_sent: Time,
    /// True if the sender had no data to send then.
    pub app_limited: bool,
}

/// Piece of the stream in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Stream offset of its first byte.
    pub start: u64,
    /// Payload bytes, at least 1.
    pub len: u32,
}

/// Effects of an ACK on the scoreboard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes newly acknowledged cumulatively.
    pub acked: u64,
    /// Bytes newly delivered: those of `acked` that were not SACKed before, and those newly SACKed.
    pub delivered: u64,
    /// Round-trip time by the *oldest* segment newly acknowledged cumulatively that was never retransmitted
    /// (as in Linux, and RFC 6298 with delayed ACKs). SACKed segments are used if nothing was acknowledged
    /// cumulatively. A cumulative ACK that covers a retransmission gives no sample, since the data above it
    /// may have waited at the receiver.
    pub rtt: Option<Duration>,
    /// Round-trip time by the newest of them, for congestion controls that look for queueing delay.
    pub rtt_newest: Option<Duration>,
    /// Delivered segment that was sent last, and whether it was a retransmission. The delivery rate uses it.
    pub newest: Option<(Sent, bool)>,
    /// True if a segment was delivered below one SACKed earlier and had never been retransmitted: reordering.
    pub reordered: bool,
    /// True if the cumulative ACK covered a segment that had been retransmitted.
    pub retransmitted: bool,
    /// First transmission of the oldest delivered segment that was never retransmitted.
    pub fresh_since: Option<Time>,
    /// True if a segment was newly SACKed.
    pub sacked: bool,
    /// Newest delivered segments, for [`Scoreboard::rack_update`].
    offer: Offer,
}

/// Scoreboard of one sender. The fields that a purely receiving end touches come first, and those used only
/// for losses come last.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Scoreboard {
    una: u64,
    nxt: u64,
    /// Bytes that are SACKed; marked lost; retransmitted and not SACKed; marked lost and not retransmitted.
    sacked: u64,
    lost: u64,
    resent: u64,
    pending: u64,
    ring: Ring,
    /// Highest offset delivered so far (RACK.fack, RFC 8985 §6.2 step 3).
    fack: u64,
    sacked_segments: u32,
    /// Segments that have left the network by duplicate ACKs.
    duplicates: u32,
    /// Largest piece ever sent.
    smss: u32,
    seen_reordering: bool,
    ranges: Ranges,
    newest: Newest,
    /// First piece that is lost and not retransmitted, if `pending` is above 0.
    next_lost: Id,
    /// Number of the segment below which [`Scoreboard::mark_lost_by_sack`] has nothing left to do.
    loss_edge: Id,
    /// Number of the segment after the highest retransmitted one below [`Scoreboard::high_sacked`] (HighRxt,
    /// RFC 6675 §2).
    after_rxt: Id,
}

impl Scoreboard {
    /// Creates a scoreboard with nothing in flight; the stream begins at offset 0.
    pub fn new() -> Scoreboard {
        Scoreboard::default()
    }

    /// Offset of the end of the fields that any segment touches.
    pub const FIRST: usize = offset_of!(Scoreboard, sacked);

    /// Prefetches `lines` cache lines from there on, the first segments, and the place of the next.
    #[inline]
    pub fn prefetch_rest(&self, lines: usize) {
        prefetch_lines(&self.sacked, lines);
        self.ring.prefetch();
    }

    /// Returns whether nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.una == self.nxt
    }
    /// Returns SND.UNA: the start of the first piece in flight.
    pub fn una(&self) -> u64 {
        self.una
    }
    /// Returns the time of the last transmission of the first piece in flight.
    pub fn first_left(&self) -> Option<Time> {
        self.ring.front().map(|first| first.sent.at)
    }
    /// Returns SND.NXT: the start of the next new piece.
    pub fn nxt(&self) -> u64 {
        self.nxt
    }
    /// Returns the end of the highest SACKed piece; [`Scoreboard::una`] if nothing is SACKed.
    pub fn high_sacked(&self) -> u64 {
        self.ranges.end().unwrap_or(self.una)
    }
    /// Returns the bytes SACKed above [`Scoreboard::una`].
    pub fn sacked(&self) -> u64 {
        self.sacked
    }
    /// Returns the number of pieces SACKed above [`Scoreboard::una`] (RACK.segs_sacked, RFC 8985 §6.2 step
    /// 4).
    pub fn sacked_segments(&self) -> u32 {
        self.sacked_segments
    }
    /// Returns the retransmitted pieces that may be in flight.
    pub fn resent_pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        let ids = if self.resent > 0 { self.ring.first_id()..self.ring.end_id() } else { 0..0 };
        ids.map(|id| self.ring.get(id)).filter(|seg| seg.flags & RESENT != 0).map(InFlight::piece)
    }
    /// Returns whether a retransmission is in flight, or the first piece was ever retransmitted.
    pub fn awaits_resent(&self) -> bool {
        self.resent > 0 || self.ring.front().is_some_and(|first| first.flags & RETRANSMITTED != 0)
    }
    /// Returns whether data is marked lost that has not been retransmitted.
    pub fn lost_pending(&self) -> bool {
        self.pending > 0
    }
    /// Returns whether a segment has ever been delivered out of order (RACK.reordering_seen).
    pub fn seen_reordering(&self) -> bool {
        self.seen_reordering
    }

    /// Returns the bytes in flight: Pipe of RFC 6675 §4, less the segments that have left the network by
    /// duplicate ACKs.
    pub fn in_flight(&self) -> u64 {
        let pipe = self.nxt - self.una - self.sacked - self.lost + self.resent;
        if self.duplicates == 0 {
            return pipe;
        }
        let first =
            self.ring.front().filter(|s| s.flags & (SACKED | LOST) == 0).map_or(0, |s| u64::from(s.len));
        let above = self.nxt - self.una - self.sacked - self.lost - first;
        pipe - above.min(u64::from(self.duplicates) * u64::from(self.smss))
    }

    /// Records `len` new bytes, at least 1, sent from [`Scoreboard::nxt`] on. `sent.at` never goes back.
    #[inline(always)]
    pub fn sent_new(&mut self, len: u32, sent: Sent) {
        debug_assert!(len > 0);
        self.ring.push(InFlight::new(self.nxt, len, sent));
        self.nxt += u64::from(len);
        self.smss = self.smss.max(len);
    }

    /// Records a retransmission of the piece that starts at `start`: it is in flight again and the newest in
    /// time. Pieces that are SACKed or not in flight are ignored.
    pub fn retransmitted(&mut self, start: u64, sent: Sent) {
        let Some(id) = self.find(start).filter(|&id| self.ring.get(id).flags & SACKED == 0) else {
            return;
        };
        self.ring.unlink(id);
        let seg = self.ring.get_mut(id);
        let (len, before) = (u64::from(seg.len), seg.flags);
        seg.sent = sent;
        seg.flags |= RESENT | RETRANSMITTED;
        self.ring.link(id);
        if before & RESENT == 0 {
            self.resent += len;
            self.pending -= if before & LOST != 0 { len } else { 0 };
        }
        if start < self.high_sacked() {
            self.after_rxt = self.after_rxt.max(id + 1);
        }
        self.settle();
    }

    /// Returns the lowest piece marked lost and not retransmitted since (rule 1 of NextSeg, RFC 6675 §4).
    pub fn next_lost(&self) -> Option<Piece> {
        self.lost_pending().then(|| self.ring.get(self.next_lost).piece())
    }

    /// Returns the lowest unSACKed piece above everything retransmitted and below
    /// [`Scoreboard::high_sacked`], lost or not (rule 3 of NextSeg, RFC 6675 §4).
    pub fn next_unsacked(&self) -> Option<Piece> {
        let id = self.ranges.skip(self.after_rxt.max(self.ring.first_id()));
        let seg = (id < self.ring.end_id()).then(|| self.ring.get(id))?;
        (seg.start < self.high_sacked()).then(|| seg.piece())
    }

    /// Returns the highest piece that is not SACKed (rule 4 of NextSeg, the rescue retransmission).
    pub fn last_unsacked(&self) -> Option<Piece> {
        let end = self.ranges.skip_back(self.ring.end_id());
        (end > self.ring.first_id()).then(|| self.ring.get(end - 1).piece())
    }

    /// Returns whether the piece that starts at `start` has been retransmitted.
    pub fn sent_again(&self, start: u64) -> bool {
        self.find(start).is_some_and(|id| self.ring.get(id).flags & RETRANSMITTED != 0)
    }

    /// Returns the first piece in flight.
    pub fn first(&self) -> Option<Piece> {
        self.ring.front().map(InFlight::piece)
    }

    /// Returns the last piece in flight, for a tail loss probe (RFC 8985 §7.3).
    pub fn last(&self) -> Option<Piece> {
        self.ring.back().map(InFlight::piece)
    }

    /// Returns whether the first piece is SACKed. It cannot be the first in flight then, unless the receiver
    /// has discarded its data (RFC 2018 §8).
    pub fn reneged(&self) -> bool {
        self.ring.front().is_some_and(|s| s.flags & SACKED != 0)
    }

    /// Sets the number of duplicate ACKs, without SACK. `n` duplicate ACKs mean that `n` segments above the
    /// first have left the network. These do not count in flight (the inflation of RFC 5681 §3.2, done as
    /// Pipe). A cumulative ACK takes away one for each segment that it acknowledges beyond the first. So a
    /// partial ACK deflates by the acknowledged data and inflates by one segment (RFC 6582 §3.2 step 3).
    pub fn set_duplicates(&mut self, n: u32) {
        self.duplicates = n;
    }

    /// Returns the duplicate ACKs that count at present; see [`Scoreboard::set_duplicates`].
    pub fn duplicates(&self) -> u32 {
        self.duplicates
    }

    /// Returns the number of the piece that starts at `start`.
    fn find(&self, start: u64) -> Option<Id> {
        let known = |id: Id| self.ring.holds(id) && self.ring.get(id).start == start;
        let likely = [self.next_lost, self.ring.first_id(), self.ring.end_id().wrapping_sub(1)];
        if let Some(&id) = likely.iter().find(|&&id| known(id)) {
            return Some(id);
        }
        Some(self.ring.at_or_above(start, self.smss)).filter(|&id| known(id))
    }
}
