//! Segments that a receiver has got out of order (RFC 2018, 2883).
//!
//! Received ranges above the cumulative acknowledgement are disjoint, not adjacent, and sorted. Each has a
//! stamp of its last growth. The newest ranges are also kept in order of age, because SACK blocks are
//! reported in that order. Nothing is allocated while everything arrives in order.

use std::collections::VecDeque;

/// Most SACK blocks that fit into TCP's options (RFC 2018 §3).
pub const MAX_BLOCKS: usize = 4;
/// Number of the newest ranges that are kept in order of age.
const RECENT: usize = 8;

/// A received range out of order.
#[derive(Clone, Copy, Debug)]
struct Range {
    start: u64,
    end: u64,
    /// Number of the segment that was last received into it.
    stamp: u64,
}

/// Result of a received segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Bytes newly in order.
    pub advanced: u64,
    /// Part of the segment that had been received before, for D-SACK; the first of several parts (RFC 2883
    /// §4).
    pub duplicate: Option<(u64, u64)>,
    /// The segment brought the next byte.
    pub in_order: bool,
    /// The segment filled a gap or part of one: it brought bytes below some received earlier (RFC 5681 §4.2).
    pub filled_gap: bool,
}

/// Receiver's side of a stream. Offsets count from the first byte of the stream, which is 0.
#[derive(Debug, Default)]
pub struct Reassembly {
    next: u64,
    /// Ranges above the next byte, from the first segment out of order on.
    above: Option<Box<Above>>,
}

/// Received ranges above the next byte in order.
#[derive(Debug, Default)]
struct Above {
    ranges: VecDeque<Range>,
    /// Number of segments received.
    received: u64,
    /// An offset in each of the newest ranges, newest first.
    recent: [u64; RECENT],
    recents: usize,
}

impl Reassembly {
    /// Creates a stream with nothing received.
    pub fn new() -> Reassembly {
        Reassembly::default()
    }

    /// Returns the next byte in order (RCV.NXT).
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Returns whether data is missing below received data.
    pub fn has_gap(&self) -> bool {
        self.above.as_ref().is_some_and(|above| !above.ranges.is_empty())
    }

    /// Receives bytes `start..end`. The caller has cut off the part beyond the window.
    pub fn receive(&mut self, start: u64, end: u64) -> Received {
        if start >= end {
            return Received::default();
        }
        if start <= self.next && !self.has_gap() {
            return self.receive_in_order(start, end);
        }
        self.receive_beside_gaps(start, end)
    }

    /// Receives bytes while data is missing below received data or below these bytes.
    #[inline(never)]
    fn receive_beside_gaps(&mut self, start: u64, end: u64) -> Received {
        let in_order = start <= self.next;
        let above = self.above.get_or_insert_default();
        above.received += 1;
        let mut received =
            Received { duplicate: above.duplicate(self.next, start, end), ..Received::default() };
        if end <= self.next {
            return received;
        }
        if in_order {
            (received.in_order, received.filled_gap) = (true, true);
            let before = core::mem::replace(&mut self.next, above.advance(end));
            received.advanced = self.next - before;
        } else {
            let top = above.ranges.back().map_or(0, |r| r.end);
            received.filled_gap = start < top && received.duplicate != Some((start, end.min(top)));
            above.insert(start, end);
        }
        above.refill();
        received
    }

    /// Receives bytes that begin at or before the next byte, while nothing above it has been received.
    fn receive_in_order(&mut self, start: u64, end: u64) -> Received {
        let duplicate = (start < self.next).then(|| (start, end.min(self.next)));
        let advanced = end.saturating_sub(self.next);
        self.next += advanced;
        Received { advanced, duplicate, in_order: advanced > 0, filled_gap: false }
    }

    /// Writes at most `max` SACK blocks. The first holds the segment received last, if it was out of order.
    /// The others are those reported most recently (RFC 2018 §4). Returns their number.
    pub fn blocks(&self, max: usize, out: &mut [(u64, u64); MAX_BLOCKS]) -> usize {
        self.above.as_ref().map_or(0, |above| above.blocks(max, out))
    }
}

impl Above {
    fn blocks(&self, max: usize, out: &mut [(u64, u64); MAX_BLOCKS]) -> usize {
        let n = self.recents.min(max).min(MAX_BLOCKS);
        for (block, &offset) in out.iter_mut().zip(&self.recent[..n]) {
            let r = self.ranges[self.after(offset)];
            *block = (r.start, r.end);
        }
        n
    }

    /// Returns the index of the first range that ends above `offset`.
    fn after(&self, offset: u64) -> usize {
        match self.ranges.back() {
            Some(last) if last.start <= offset => self.ranges.len() - usize::from(offset < last.end),
            _ => self.ranges.partition_point(|r| r.end <= offset),
        }
    }

    /// Returns the part of `start..end` that had been received before. Everything below `next` had.
    fn duplicate(&self, next: u64, start: u64, end: u64) -> Option<(u64, u64)> {
        if start < next {
            return Some((start, end.min(next)));
        }
        let r = self.ranges.get(self.after(start))?;
        (r.start < end).then(|| (start.max(r.start), end.min(r.end)))
    }

    /// Removes the ranges that `end` reaches. Returns the end of the data then in order.
    fn advance(&mut self, end: u64) -> u64 {
        let mut next = end;
        while let Some(r) = self.ranges.front().filter(|r| r.start <= next) {
            next = next.max(r.end);
            self.ranges.pop_front();
        }
        self.keep_recent(|offset| offset >= next);
        next
    }

    /// Adds a segment out of order, joining the ranges that it touches.
    fn insert(&mut self, start: u64, end: u64) {
        let first = match start {
            0 => 0,
            _ => self.after(start - 1), // a range that ends at `start` is touched too
        };
        let mut joined = Range { start, end, stamp: self.received };
        let mut last = first;
        while let Some(r) = self.ranges.get(last).filter(|r| r.start <= end) {
            joined.start = joined.start.min(r.start);
            joined.end = joined.end.max(r.end);
            last += 1;
        }
        if first == last {
            self.ranges.insert(first, joined);
        } else {
            self.ranges[first] = joined;
            self.ranges.drain(first + 1..last);
        }
        self.keep_recent(|offset| offset < joined.start || offset >= joined.end);
        self.push_recent(start);
    }

    fn keep_recent(&mut self, keep: impl Fn(u64) -> bool) {
        let mut kept = 0;
        for i in 0..self.recents {
            if keep(self.recent[i]) {
                self.recent[kept] = self.recent[i];
                kept += 1;
            }
        }
        self.recents = kept;
    }

    fn push_recent(&mut self, offset: u64) {
        self.recents = (self.recents + 1).min(RECENT);
        self.recent.copy_within(..self.recents - 1, 1);
        self.recent[0] = offset;
    }

    /// Finds the newest ranges again when too few of them are known. At least `RECENT - MAX_BLOCKS` of them
    /// have been joined or delivered since the last time.
    fn refill(&mut self) {
        if self.recents >= self.ranges.len().min(MAX_BLOCKS) {
            return;
        }
        let mut newest = [(0, 0); RECENT];
        let mut known = 0;
        for r in &self.ranges {
            let at = newest[..known].partition_point(|&(stamp, _)| stamp > r.stamp);
            if at < RECENT {
                known = (known + 1).min(RECENT);
                newest.copy_within(at..known - 1, at + 1);
                newest[at] = (r.stamp, r.start);
            }
        }
        self.recents = known;
        self.recent = newest.map(|(_, start)| start);
    }
}

#[cfg(test)]
mod tests;
