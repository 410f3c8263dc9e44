//! The scoreboard: what is in flight, SACKed and lost.
//!
//! Segments are kept in a ring in stream order. Everything an ACK does costs amortized constant time per segment,
//! whatever the size of the window: ranges that are already SACKed are stepped over as a whole, and the search for losses
//! (RFC 6675 IsLost, RFC 8985 §6.2) continues where it stopped.
//!
//! - `ring`: the segments, and their order in time;
//! - `ranges`: which of them are SACKed;
//! - `ack`: what an ACK says;
//! - `loss`: marking, retransmitting, undoing;
//! - `rack`: losses found by time (RFC 8985).
//!
//! A piece is one segment, at most SMSS bytes, and stays one. A cumulative ACK within a piece leaves its rest. A piece
//! is SACKed when one range of the receiver covers it as a whole; Linux would split it.
//!
//! A piece that is not SACKed is counted in flight once unless it is lost, and once more if it has been sent again since
//! (Pipe of RFC 6675 §4).

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
    /// When the segment was (last) sent.
    pub at: Time,
    /// Bytes delivered in all by then.
    pub delivered: u64,
    /// When those were.
    pub delivered_at: Time,
    /// When the first segment of the flight was sent.
    pub first_sent: Time,
    /// Was the sender without data then?
    pub app_limited: bool,
}

/// A piece of the stream in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Stream offset of its first byte.
    pub start: u64,
    /// Payload bytes, at least 1.
    pub len: u32,
}

/// What an ACK did to the scoreboard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes newly acknowledged cumulatively.
    pub acked: u64,
    /// Bytes newly delivered: of `acked` those not SACKed before, and those newly SACKed.
    pub delivered: u64,
    /// Round-trip time by the *oldest* segment newly acknowledged cumulatively that was never
    /// retransmitted (as Linux and RFC 6298 with delayed ACKs); of SACKed ones if nothing was. A
    /// cumulative ACK that covers a retransmission gives none: what lies above it may have waited
    /// at the receiver.
    pub rtt: Option<Duration>,
    /// Likewise by the newest of them, for congestion controls that look for queueing delay.
    pub rtt_newest: Option<Duration>,
    /// The segment delivered by this ACK that was sent last, and whether it was a retransmission:
    /// what the delivery rate goes by.
    pub newest: Option<(Sent, bool)>,
    /// A segment was delivered below one SACKed earlier and had never been retransmitted: reordering.
    pub reordered: bool,
    /// The cumulative ACK covered a segment that had been retransmitted.
    pub retransmitted: bool,
    /// For [`Scoreboard::rack_update`].
    offer: Offer,
}

/// The scoreboard of one sender. What an end touches that only receives comes first, and last what only losses do.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Scoreboard {
    una: u64,
    nxt: u64,
    /// Bytes SACKed; marked lost; sent again and not SACKed; marked lost and not sent again.
    sacked: u64,
    lost: u64,
    resent: u64,
    pending: u64,
    ring: Ring,
    /// Highest offset delivered so far (RACK.fack, RFC 8985 §6.2 step 3).
    fack: u64,
    sacked_segments: u32,
    /// Segments that duplicate ACKs say have left the network.
    duplicates: u32,
    /// Largest piece ever sent.
    smss: u32,
    seen_reordering: bool,
    ranges: Ranges,
    newest: Newest,
    /// The first piece that is lost and not sent again, if `pending` says that there is one.
    next_lost: Id,
    /// Below it, [`Scoreboard::mark_lost_by_sack`] has nothing left to do.
    loss_edge: Id,
    /// Follows the highest piece sent again below [`Scoreboard::high_sacked`] (HighRxt, RFC 6675 §2).
    after_rxt: Id,
}

impl Scoreboard {
    /// Nothing in flight; the stream begins at offset 0.
    pub fn new() -> Scoreboard {
        Scoreboard::default()
    }

    /// Where in it what any segment touches ends.
    pub const FIRST: usize = offset_of!(Scoreboard, sacked);

    /// Brings into the cache so many lines from there on, the first segments, and the place of the next.
    #[inline]
    pub fn prefetch_rest(&self, lines: usize) {
        prefetch_lines(&self.sacked, lines);
        self.ring.prefetch();
    }

    /// Is nothing in flight?
    pub fn is_empty(&self) -> bool {
        self.una == self.nxt
    }
    /// SND.UNA: where the first piece in flight starts.
    pub fn una(&self) -> u64 {
        self.una
    }
    /// When the first piece in flight was sent last.
    pub fn first_left(&self) -> Option<Time> {
        self.ring.front().map(|first| first.sent.at)
    }
    /// SND.NXT: where the next new piece will start.
    pub fn nxt(&self) -> u64 {
        self.nxt
    }
    /// Where the highest SACKed piece ends; [`Scoreboard::una`] if nothing is SACKed.
    pub fn high_sacked(&self) -> u64 {
        self.ranges.end().unwrap_or(self.una)
    }
    /// Bytes SACKed above [`Scoreboard::una`].
    pub fn sacked(&self) -> u64 {
        self.sacked
    }
    /// Pieces SACKed above [`Scoreboard::una`] (RACK.segs_sacked, RFC 8985 §6.2 step 4).
    pub fn sacked_segments(&self) -> u32 {
        self.sacked_segments
    }
    /// Pieces that were sent again and may be on their way.
    pub fn resent_pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        let ids = if self.resent > 0 { self.ring.first_id()..self.ring.end_id() } else { 0..0 };
        ids.map(|id| self.ring.get(id)).filter(|seg| seg.flags & RESENT != 0).map(InFlight::piece)
    }
    /// Is a retransmission on its way, or was the first piece ever sent again?
    pub fn awaits_resent(&self) -> bool {
        self.resent > 0 || self.ring.front().is_some_and(|first| first.flags & RETRANSMITTED != 0)
    }
    /// Is something marked lost that has not been sent again?
    pub fn lost_pending(&self) -> bool {
        self.pending > 0
    }
    /// Has a segment ever been delivered out of order (RACK.reordering_seen)?
    pub fn seen_reordering(&self) -> bool {
        self.seen_reordering
    }

    /// Bytes in flight: Pipe of RFC 6675 §4, less what duplicate ACKs say has left the network.
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

    /// `len` new bytes, at least 1, were sent from [`Scoreboard::nxt`] on. `sent.at` never goes back.
    #[inline(always)]
    pub fn sent_new(&mut self, len: u32, sent: Sent) {
        debug_assert!(len > 0);
        self.ring.push(InFlight::new(self.nxt, len, sent));
        self.nxt += u64::from(len);
        self.smss = self.smss.max(len);
    }

    /// The piece that starts at `start` was sent again: it is in flight again and the newest in time. Pieces
    /// that are SACKed or not in flight are ignored.
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

    /// The lowest piece marked lost and not sent again since (rule 1 of NextSeg, RFC 6675 §4).
    pub fn next_lost(&self) -> Option<Piece> {
        self.lost_pending().then(|| self.ring.get(self.next_lost).piece())
    }

    /// The lowest piece above everything sent again and below [`Scoreboard::high_sacked`] that is not SACKed,
    /// lost or not (rule 3 of NextSeg, RFC 6675 §4).
    pub fn next_unsacked(&self) -> Option<Piece> {
        let id = self.ranges.skip(self.after_rxt.max(self.ring.first_id()));
        let seg = (id < self.ring.end_id()).then(|| self.ring.get(id))?;
        (seg.start < self.high_sacked()).then(|| seg.piece())
    }

    /// The highest piece that is not SACKed (rule 4 of NextSeg, the rescue retransmission).
    pub fn last_unsacked(&self) -> Option<Piece> {
        let end = self.ranges.skip_back(self.ring.end_id());
        (end > self.ring.first_id()).then(|| self.ring.get(end - 1).piece())
    }

    /// Has the piece that starts at `start` been sent again?
    pub fn sent_again(&self, start: u64) -> bool {
        self.find(start).is_some_and(|id| self.ring.get(id).flags & RETRANSMITTED != 0)
    }

    /// The first piece in flight.
    pub fn first(&self) -> Option<Piece> {
        self.ring.front().map(InFlight::piece)
    }

    /// The last piece in flight, for a tail loss probe (RFC 8985 §7.3).
    pub fn last(&self) -> Option<Piece> {
        self.ring.back().map(InFlight::piece)
    }

    /// Is the first piece SACKed? It cannot be the first in flight then, unless the receiver has thrown away
    /// what it had (RFC 2018 §8).
    pub fn reneged(&self) -> bool {
        self.ring.front().is_some_and(|s| s.flags & SACKED != 0)
    }

    /// Without SACK: `n` duplicate ACKs mean that `n` segments above the first have left the network; they
    /// are not counted in flight (the inflation of RFC 5681 §3.2, done as Pipe). A cumulative ACK takes
    /// away one for each segment that it acknowledges beyond the first: a partial ACK deflates by what it
    /// acknowledges and inflates by one segment (RFC 6582 §3.2 step 3).
    pub fn set_duplicates(&mut self, n: u32) {
        self.duplicates = n;
    }

    /// Duplicate ACKs that count at present; see [`Scoreboard::set_duplicates`].
    pub fn duplicates(&self) -> u32 {
        self.duplicates
    }

    /// The piece that starts at `start`.
    fn find(&self, start: u64) -> Option<Id> {
        let known = |id: Id| self.ring.holds(id) && self.ring.get(id).start == start;
        let likely = [self.next_lost, self.ring.first_id(), self.ring.end_id().wrapping_sub(1)];
        if let Some(&id) = likely.iter().find(|&&id| known(id)) {
            return Some(id);
        }
        Some(self.ring.at_or_above(start, self.smss)).filter(|&id| known(id))
    }
}
