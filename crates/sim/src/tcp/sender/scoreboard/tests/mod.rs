//! Tests of the scoreboard:
//!
//! - `timelines`: examples of RFCs, step by step;
//! - `model`: random operations against plain definitions, segment by segment;
//! - `rfc6675`: random losses against the RFC's own definitions, octet by octet;
//! - `cost`: number of visits per segment.

mod cost;
mod model;
mod rfc6675;
mod timelines;

use super::ring::{LOST, RESENT, SACKED};
use super::*;

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

fn sent(at: u64) -> Sent {
    Sent { at: ms(at), ..Sent::default() }
}

impl Scoreboard {
    /// Sends `n` pieces of `len` bytes at once.
    fn send(&mut self, n: u64, len: u32, at: u64) {
        (0..n).for_each(|_| self.sent_new(len, sent(at)));
    }

    /// Returns the bytes marked lost and not delivered yet, retransmitted or not.
    fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the number of visits so far.
    fn touched(&self) -> u64 {
        self.ring.touched.get()
    }

    /// Checks the invariants: the list is in order of time and has every segment in flight, and the ranges
    /// are the runs of SACKed segments.
    fn check(&self) {
        let ids = self.ring.first_id()..self.ring.end_id();
        let flags = |id: Id| self.ring.get(id).flags;
        let mut expected: Vec<Id> = ids
            .clone()
            .filter(|&id| flags(id) & SACKED == 0 && flags(id) & (LOST | RESENT) != LOST)
            .collect();
        expected.sort_by_key(|&id| self.ring.get(id).key());
        let listed: Vec<Id> = std::iter::successors(self.ring.oldest(), |&id| self.ring.after(id)).collect();
        assert_eq!(listed, expected);

        let mut runs: Vec<(u64, u64)> = Vec::new();
        for seg in ids.map(|id| self.ring.get(id)).filter(|s| s.flags & SACKED != 0) {
            match runs.last_mut().filter(|r| r.1 == seg.start) {
                Some(run) => run.1 = seg.end(),
                None => runs.push((seg.start, seg.end())),
            }
        }
        let mut ranges: Vec<(u64, u64)> = self.ranges.descending().map(|r| (r.start, r.end)).collect();
        ranges.reverse();
        assert_eq!(ranges, runs);
    }
}
