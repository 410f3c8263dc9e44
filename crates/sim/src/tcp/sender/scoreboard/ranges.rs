//! SACKed segments as ranges: SACKed data is stepped over as a whole.

use super::ring::Id;
use std::collections::VecDeque;

/// Run of consecutive SACKed segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    /// Stream offsets.
    pub start: u64,
    pub end: u64,
    /// Number of the first segment, and of the one after the last.
    pub first: Id,
    pub after: Id,
}

/// Disjoint, sorted ranges, never adjacent. The list is allocated with the first SACKed segment.
#[derive(Debug, Default)]
#[allow(clippy::box_collection)] // a quarter of the size: most senders never have one
pub(super) struct Ranges(Option<Box<VecDeque<Range>>>);

impl Ranges {
    /// Returns the end of the highest range.
    #[inline]
    pub fn end(&self) -> Option<u64> {
        self.0.as_ref()?.back().map(|r| r.end)
    }
    pub fn get(&self, i: usize) -> Option<&Range> {
        self.0.as_ref()?.get(i)
    }
    pub fn clear(&mut self) {
        self.0 = None;
    }
    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.0.as_ref().map_or(0, |all| all.capacity())
    }
    /// Returns the ranges from the highest down.
    pub fn descending(&self) -> impl Iterator<Item = &Range> {
        self.0.iter().flat_map(|all| all.iter().rev())
    }

    /// Returns the index of the first range that ends above `offset`.
    pub fn above(&self, offset: u64) -> usize {
        let Some(all) = &self.0 else { return 0 };
        match all.back() {
            // Most blocks are about the newest range.
            Some(last) if last.start <= offset => all.len() - usize::from(offset < last.end),
            _ => all.partition_point(|r| r.end <= offset),
        }
    }

    /// Returns `id`, or if it is SACKed the first segment after it that is not.
    pub fn skip(&self, id: Id) -> Id {
        let Some(all) = &self.0 else { return id };
        let i = all.partition_point(|r| r.after <= id);
        all.get(i).filter(|r| r.first <= id).map_or(id, |r| r.after)
    }

    /// Returns `end`, or the start of the SACKed range that ends there.
    pub fn skip_back(&self, end: Id) -> Id {
        self.0.as_ref().and_then(|all| all.back()).filter(|r| r.after == end).map_or(end, |r| r.first)
    }

    /// Inserts a range before the one with index `i`, joined with its neighbours if they touch it. Returns
    /// the index of the resulting range.
    pub fn insert(&mut self, i: usize, new: Range) -> usize {
        let all = self.0.get_or_insert_default();
        let joins_prev = i > 0 && all[i - 1].after == new.first;
        let joins_next = all.get(i).is_some_and(|r| r.first == new.after);
        match (joins_prev, joins_next) {
            (false, false) => all.insert(i, new),
            (false, true) => {
                let next = &mut all[i];
                (next.start, next.first) = (new.start, new.first);
            }
            (true, false) => {
                let prev = &mut all[i - 1];
                (prev.end, prev.after) = (new.end, new.after);
            }
            (true, true) => {
                let Some(next) = all.remove(i) else { return i };
                let prev = &mut all[i - 1];
                (prev.end, prev.after) = (next.end, next.after);
            }
        }
        i - usize::from(joins_prev)
    }

    /// Removes everything below `una` and below segment `first`, which is acknowledged.
    #[inline]
    pub fn advance(&mut self, una: u64, first: Id) {
        let Some(all) = &mut self.0 else { return };
        while all.front().is_some_and(|r| r.end <= una) {
            all.pop_front();
        }
        if let Some(r) = all.front_mut().filter(|r| r.start < una) {
            (r.start, r.first) = (una, first);
        }
    }
}
