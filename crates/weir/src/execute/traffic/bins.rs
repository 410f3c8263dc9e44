//! Bytes over time, in bins of equal length.

use serde::{Deserialize, Serialize};

/// Bytes received per bin. Bin `k` covers `[k * len_ns, (k + 1) * len_ns)` since the epoch. Bins before
/// `first` and after the last are empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bins {
    /// Length of a bin in nanoseconds.
    pub len_ns: u64,
    /// Number of the first bin that is stored.
    pub first: u64,
    /// Bytes of the bins from `first` on.
    pub bytes: Vec<u64>,
}

impl Bins {
    /// Returns empty bins of `len_ns` nanoseconds. Panics if that is zero.
    pub fn new(len_ns: u64) -> Bins {
        assert!(len_ns > 0, "bins need a length");
        Bins { len_ns, first: 0, bytes: Vec::new() }
    }

    /// Adds `bytes` at `at_ns`, which never goes backwards.
    pub fn record(&mut self, at_ns: u64, bytes: u64) {
        let bin = at_ns / self.len_ns;
        if self.bytes.is_empty() {
            self.first = bin;
        }
        let index = bin.saturating_sub(self.first) as usize;
        if self.bytes.len() <= index {
            self.bytes.resize(index + 1, 0);
        }
        self.bytes[index] += bytes;
    }

    /// Returns the sum of all bins.
    pub fn total(&self) -> u64 {
        self.bytes.iter().sum()
    }

    /// Returns the bytes of every bin from 0 up to `end_ns`, empty ones included.
    pub fn dense(&self, end_ns: u64) -> Vec<u64> {
        let mut out = vec![0; end_ns.div_ceil(self.len_ns) as usize];
        for (to, &bytes) in out.iter_mut().skip(self.first as usize).zip(&self.bytes) {
            *to = bytes;
        }
        out
    }

    /// Returns the bytes of the bins in `[from_ns, to_ns)`. A bin that straddles an end belongs to the
    /// interval it begins in, so each bin is in exactly one of several adjoining intervals.
    pub fn between(&self, from_ns: u64, to_ns: u64) -> u64 {
        let index =
            |t: u64| (t.div_ceil(self.len_ns).saturating_sub(self.first) as usize).min(self.bytes.len());
        self.bytes[index(from_ns)..index(to_ns).max(index(from_ns))].iter().sum()
    }

    /// Returns `(begin, length, bytes)` of each stretch of `interval_ns` in `[from_ns, to_ns)`, on the grid
    /// of the epoch. The first and the last may be shorter. The bin that contains `from_ns` counts.
    pub fn intervals(&self, from_ns: u64, to_ns: u64, interval_ns: u64) -> Vec<(u64, u64, u64)> {
        let mut out = Vec::new();
        let mut begin = from_ns;
        let mut counted = from_ns / self.len_ns * self.len_ns;
        while begin < to_ns {
            let end = ((begin / interval_ns + 1) * interval_ns).min(to_ns);
            out.push((begin, end - begin, self.between(counted, end)));
            begin = end;
            counted = end;
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bins_begin_where_the_bytes_do() {
        let mut b = Bins::new(10);
        b.record(35, 5);
        b.record(39, 1);
        b.record(40, 2);
        b.record(71, 3);
        assert_eq!((b.first, &b.bytes[..]), (3, &[6, 2, 0, 0, 3][..]));
        assert_eq!(b.total(), 11);
        assert_eq!(b.between(0, 40), 6);
        assert_eq!(b.between(40, 1000), 5);
        assert_eq!(b.between(1000, 2000), 0);
        assert_eq!(b.between(50, 40), 0);
        assert_eq!(b.dense(50), [0, 0, 0, 6, 2]);
        assert_eq!(b.dense(95).len(), 10);
    }

    #[test]
    fn intervals_stand_on_the_grid() {
        let mut b = Bins::new(10);
        for t in [15, 25, 95, 105, 205, 249] {
            b.record(t, 1);
        }
        assert_eq!(b.intervals(10, 250, 100), vec![(10, 90, 3), (100, 100, 1), (200, 50, 2)]);
        assert_eq!(b.intervals(10, 10, 100), vec![]);
        assert_eq!(b.intervals(13, 100, 100), vec![(13, 87, 3)]);
    }

    proptest! {
        #[test]
        fn intervals_share_nothing_and_miss_nothing(mut at in prop::collection::vec(0u64..5_000, 0..60),
                                                    len in 1u64..50, interval in 1u64..700) {
            at.sort_unstable();
            let mut b = Bins::new(len);
            for &t in &at {
                b.record(t, 1 + t % 7);
            }
            let sum: u64 = b.intervals(0, 6_000, interval).iter().map(|i| i.2).sum();
            prop_assert_eq!(sum, b.total());
        }
    }
}
