//! Marking of lost segments, and its undoing.

use super::ring::{Id, LOST, RESENT, SACKED};
use super::Scoreboard;

impl Scoreboard {
    /// Marks the segments that are lost by IsLost (RFC 6675 §4): at least `dup_thresh` separate SACKed ranges
    /// lie above them, or more than `dup_thresh - 1` segments' worth of SACKed bytes. If a piece has been
    /// retransmitted before, the retransmission stays in flight. A mark stays, even if two ranges of small
    /// pieces have become one since. Returns the bytes newly marked.
    pub fn mark_lost_by_sack(&mut self, dup_thresh: u32) -> u64 {
        let Some(edge) = self.lost_below(dup_thresh) else { return 0 };
        let mut newly = 0;
        let mut id = self.loss_edge.max(self.ring.first_id());
        while id < edge {
            let seg = self.ring.get_mut(id);
            if seg.flags & (SACKED | LOST) == 0 {
                seg.flags |= LOST;
                let (len, resent) = (u64::from(seg.len), seg.flags & RESENT != 0);
                newly += len;
                self.lost += len;
                if !resent {
                    self.await_retransmission(id, len);
                }
            }
            id += 1;
        }
        self.loss_edge = id;
        newly
    }

    /// Marks the first piece lost, if it is not: three duplicate ACKs or a partial ACK without SACK (RFC 5681
    /// §3.2, RFC 6582 §3.2). Returns the bytes newly marked.
    pub fn mark_first_lost(&mut self) -> u64 {
        match self.ring.front() {
            Some(seg) if seg.flags & LOST == 0 => self.lose(self.ring.first_id()),
            _ => 0,
        }
    }

    /// Marks the first piece lost even if it has been retransmitted. Returns its bytes that were in flight.
    pub fn lose_first(&mut self) -> u64 {
        if self.is_empty() {
            return 0;
        }
        self.lose(self.ring.first_id())
    }

    /// Marks all data lost that is not SACKed, including retransmissions, after the retransmission timer
    /// expired (RFC 6675 §5.1). Set `forget_sacks` if the receiver may have discarded SACKed data (RFC 2018
    /// §8), or if there is no SACK. Returns the bytes that were in flight.
    pub fn mark_all_lost(&mut self, forget_sacks: bool) -> u64 {
        if forget_sacks {
            self.forget_sacks();
        }
        let mut newly = 0;
        for id in self.ring.first_id()..self.ring.end_id() {
            newly += self.lose(id);
        }
        self.duplicates = 0;
        self.loss_edge = self.ring.end_id();
        self.after_rxt = self.ring.first_id();
        newly
    }

    /// Takes back the loss marks of pieces that have not been retransmitted, since there was no loss (F-RTO,
    /// RFC 5682; Eifel, RFC 4015). Returns their bytes.
    pub fn undo_lost(&mut self) -> u64 {
        if self.pending == 0 {
            return 0;
        }
        let mut last: Option<Id> = None;
        for id in self.next_lost..self.ring.end_id() {
            let seg = self.ring.get_mut(id);
            if seg.flags & (LOST | RESENT) == LOST {
                seg.flags &= !LOST;
                let key = seg.key();
                let from = last.filter(|&l| self.ring.get(l).key() <= key);
                self.ring.link_from(id, from);
                last = Some(id);
            }
        }
        let undone = core::mem::take(&mut self.pending);
        self.lost -= undone;
        self.loss_edge = self.ring.first_id();
        undone
    }

    /// Marks all of a piece lost that is in flight. Returns its bytes, 0 if nothing was in flight.
    pub(super) fn lose(&mut self, id: Id) -> u64 {
        let seg = self.ring.get_mut(id);
        let (len, before) = (u64::from(seg.len), seg.flags);
        if before & SACKED != 0 || before & (LOST | RESENT) == LOST {
            return 0;
        }
        seg.flags = before & !RESENT | LOST;
        self.lost += if before & LOST == 0 { len } else { 0 };
        self.resent -= if before & RESENT != 0 { len } else { 0 };
        self.await_retransmission(id, len);
        len
    }

    /// Moves `next_lost` up to the first piece that is lost and not retransmitted.
    pub(super) fn settle(&mut self) {
        if self.pending == 0 {
            return;
        }
        let mut id = self.next_lost.max(self.ring.first_id());
        loop {
            let flags = self.ring.get(id).flags;
            if flags & (LOST | RESENT) == LOST {
                break;
            }
            id = if flags & SACKED != 0 { self.ranges.skip(id) } else { id + 1 };
        }
        self.next_lost = id;
    }

    fn await_retransmission(&mut self, id: Id, len: u64) {
        self.next_lost = if self.pending == 0 { id } else { self.next_lost.min(id) };
        self.pending += len;
        self.ring.unlink(id);
    }

    /// Returns the number of the segment below which all unSACKed data is lost.
    fn lost_below(&self, dup_thresh: u32) -> Option<Id> {
        let enough = u64::from(dup_thresh.saturating_sub(1)) * u64::from(self.smss);
        let (mut ranges, mut bytes) = (0, 0);
        let edge = self.ranges.descending().find(|r| {
            ranges += 1;
            bytes += r.end - r.start;
            ranges >= dup_thresh || bytes > enough
        });
        edge.map(|r| r.first)
    }

    /// Forgets all SACKs. The segments are in no list afterwards: the caller marks them lost.
    fn forget_sacks(&mut self) {
        for id in self.ring.first_id()..self.ring.end_id() {
            self.ring.get_mut(id).flags &= !SACKED;
        }
        (self.sacked, self.sacked_segments) = (0, 0);
        self.fack = self.una;
        self.ranges.clear();
    }
}
