//! Quantiles of given values, and histograms of any number of values.

/// Returns the rank, from 1 on, of the quantile `ppm` of `count` values in order: ⌈count × ppm / 1,000,000⌉,
/// the "nearest rank" (definition 1 of Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996). At
/// least 1. `ppm` above a million counts as a million.
pub fn nearest_rank(count: u64, ppm: u32) -> u64 {
    let share = u128::from(count) * u128::from(ppm.min(1_000_000));
    (share.div_ceil(1_000_000) as u64).max(1)
}

/// Returns the smallest of `sorted` that at least `ppm` millionths of all do not exceed, by [`nearest_rank`].
/// It is always one of the values. `None` without values.
pub fn quantile<T: Copy>(sorted: &[T], ppm: u32) -> Option<T> {
    sorted.get(nearest_rank(sorted.len() as u64, ppm) as usize - 1).copied()
}

/// Sub-buckets per power of two. A bucket is at most 1/64 of its values wide, so its middle is within 0.8 %
/// of each of them.
const SUB_BITS: u32 = 6;
const SUB: usize = 1 << SUB_BITS;
/// Bits of the range. Values from 2^42 on (73 minutes in nanoseconds) share the last bucket.
const TOP_BITS: u32 = 42;
const BUCKETS: usize = (TOP_BITS - SUB_BITS) as usize * SUB + SUB;

/// A log-linear histogram of integers, for delays in nanoseconds (as HdrHistogram: Tene). Percentiles are
/// within 1 % up to 2^42 and exact below 128. The extremes are exact. 19 KB, allocated with the first value
/// that is not zero.
#[derive(Clone)]
pub struct Histogram {
    /// Buckets. Empty until there is a value above zero.
    buckets: Box<[u64]>,
    zeros: u64,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

impl core::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut s = f.debug_struct("Histogram");
        s.field("count", &self.count).field("p50", &self.p50()).field("p99", &self.p99());
        s.field("max", &self.max()).finish()
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Histogram) -> bool {
        let facts = |h: &Histogram| (h.zeros, h.count, h.sum, h.min, h.max);
        // Absent buckets are all zero.
        fn filled(h: &Histogram) -> impl Iterator<Item = (usize, &u64)> {
            h.buckets.iter().enumerate().filter(|b| *b.1 > 0)
        }
        facts(self) == facts(other) && filled(self).eq(filled(other))
    }
}

impl Eq for Histogram {}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Histogram {
        Histogram { buckets: Box::default(), zeros: 0, count: 0, sum: 0, min: u64::MAX, max: 0 }
    }
    /// Records a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.count += 1;
        if value == 0 {
            self.zeros += 1;
            self.min = 0;
            return;
        }
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.make_room();
        self.buckets[bucket_of(value)] += 1;
    }
    #[inline]
    fn make_room(&mut self) {
        if self.buckets.is_empty() {
            self.buckets = vec![0; BUCKETS].into();
        }
    }
    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.count
    }
    /// Returns the smallest, exactly. 0 when empty.
    pub fn min(&self) -> u64 {
        if self.count == 0 {
            0
        } else {
            self.min
        }
    }
    /// Returns the largest, exactly. 0 when empty.
    pub fn max(&self) -> u64 {
        self.max
    }
    /// Returns the mean, rounded down, exactly. 0 when empty.
    pub fn mean(&self) -> u64 {
        // The mean of `u64`s fits in a `u64`.
        (self.sum / u128::from(self.count.max(1))) as u64
    }
    /// Returns the smallest recorded value that at least `ppm` millionths of all do not exceed (nearest
    /// rank), within 1 %. 0 when empty. `ppm` above a million counts as a million.
    pub fn quantile(&self, ppm: u32) -> u64 {
        let rank = nearest_rank(self.count, ppm);
        let mut seen = self.zeros;
        if self.count > 0 && seen >= rank {
            return 0;
        }
        for (i, &n) in self.buckets.iter().enumerate() {
            seen += n;
            if seen >= rank {
                return middle_of(i).clamp(self.min(), self.max);
            }
        }
        0
    }
    /// Returns the median.
    pub fn p50(&self) -> u64 {
        self.quantile(500_000)
    }
    /// Returns the 99th percentile.
    pub fn p99(&self) -> u64 {
        self.quantile(990_000)
    }
    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        if !other.buckets.is_empty() {
            self.make_room();
        }
        for (a, b) in self.buckets.iter_mut().zip(&other.buckets) {
            *a += b;
        }
        self.zeros += other.zeros;
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
    /// Forgets all values.
    pub fn clear(&mut self) {
        self.buckets.fill(0);
        self.zeros = 0;
        (self.count, self.sum, self.min, self.max) = (0, 0, u64::MAX, 0);
    }
}

/// Returns the bucket of a value. Below 2 × `SUB` each value has one. Above, a power of two has `SUB`
/// buckets.
fn bucket_of(value: u64) -> usize {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(SUB_BITS + 1);
    let bucket = shift as usize * SUB + (value >> shift) as usize;
    bucket.min(BUCKETS - 1)
}

fn middle_of(bucket: usize) -> u64 {
    let shift = (bucket / SUB).saturating_sub(1);
    let low = ((bucket - shift * SUB) as u64) << shift;
    low + (1 << shift) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_of_values_at_hand() {
        // Ranks ⌈5 × 0.05⌉ = 1, ⌈5 × 0.4⌉ = 2, ⌈5 × 0.400001⌉ = 3, ⌈5 × 0.5⌉ = 3, ⌈5 × 0.99⌉ = 5.
        let five = [11, 22, 33, 44, 55];
        let found = [50_000, 400_000, 400_001, 500_000, 990_000].map(|ppm| quantile(&five, ppm));
        assert_eq!(found, [11, 22, 33, 33, 55].map(Some));
        let many: Vec<u32> = (1..=200).collect();
        let found = [0, 500_000, 900_000, 990_000, u32::MAX].map(|ppm| quantile(&many, ppm));
        assert_eq!(found, [1, 100, 180, 198, 200].map(Some));
        assert_eq!((quantile(&[7], 990_000), quantile::<u32>(&[], 500_000)), (Some(7), None));
        assert_eq!(nearest_rank(u64::MAX, 1_000_000), u64::MAX);
    }

    #[test]
    fn small_values_are_exact() {
        let mut h = Histogram::new();
        (1..=100).for_each(|v| h.record(v));
        assert_eq!((h.p50(), h.p99(), h.quantile(1_000_000), h.quantile(0)), (50, 99, 100, 1));
        assert_eq!((h.count(), h.min(), h.mean(), h.max()), (100, 1, 50, 100));
    }

    #[test]
    fn an_empty_histogram_is_all_zeros() {
        let mut h = Histogram::new();
        assert_eq!((h.count(), h.min(), h.mean(), h.max(), h.p50()), (0, 0, 0, 0, 0));
        h.record(u64::MAX);
        assert_eq!((h.p50(), h.max()), (u64::MAX, u64::MAX));
        h.clear();
        assert_eq!(h, Histogram::new());
    }

    #[test]
    fn zeros_are_values() {
        let mut h = Histogram::new();
        (0..3).for_each(|_| h.record(0));
        assert_eq!((h.count(), h.min(), h.mean(), h.max(), h.p99()), (3, 0, 0, 0, 0));
        let mut one = Histogram::new();
        one.record(5);
        assert_ne!(h, one);
        h.merge(&one);
        assert_eq!((h.p50(), h.quantile(750_000), h.quantile(750_001), h.min()), (0, 0, 5, 0));
    }

    proptest! {
        #[test]
        fn a_percentile_is_within_one_percent(values in prop::collection::vec(prop_oneof![0u64..3, 0u64..1 << 42], 1..200),
                                              ppm in 0u32..=1_000_000, split in 0usize..200) {
            let (mut a, mut b) = (Histogram::new(), Histogram::new());
            for (i, &v) in values.iter().enumerate() {
                if i < split { a.record(v) } else { b.record(v) }
            }
            a.merge(&b);
            let mut sorted = values;
            sorted.sort_unstable();
            let rank = (sorted.len() as u64 * u64::from(ppm)).div_ceil(1_000_000).max(1) as usize;
            let (exact, found) = (sorted[rank - 1], a.quantile(ppm));
            prop_assert!(found.abs_diff(exact) * 100 <= exact, "{found} for {exact}");
        }
    }
}
