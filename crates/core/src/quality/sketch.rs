//! The distribution of times of many flows, in 544 bytes of counters.
//!
//! Buckets grow with the times: eight in each doubling, from 65 us to 8.6 s. A quantile is within a sixteenth
//! of the true one. Old samples count half after each [`AGE`], so that the distribution is of the last
//! minutes.

/// Buckets of each doubling.
const OF_DOUBLING: u32 = 8;
/// Doublings, and the one below the first.
const DOUBLINGS: u32 = 17;
const BELOW: u32 = 6;
const BUCKETS: usize = (DOUBLINGS * OF_DOUBLING) as usize;
/// Time after which samples count half, as a shift of nanoseconds: 275 s.
pub(super) const AGE: u32 = 38;

/// Bytes of a sketch's counters.
pub const BYTES: usize = core::mem::size_of::<Sketch>();

const _: () = assert!(BYTES <= 1_000);

/// Counters of times, in [`units`](super::units).
#[derive(Clone, Copy, Debug, PartialEq, Eq, zerocopy::FromZeros)]
pub struct Sketch {
    counts: [u32; BUCKETS],
}

impl Default for Sketch {
    fn default() -> Sketch {
        Sketch { counts: [0; BUCKETS] }
    }
}

/// Bucket of a time.
fn bucket(time: u32) -> usize {
    let doubling = 31 - (time | 1).leading_zeros();
    if doubling < BELOW {
        return 0;
    }
    let part = (time >> (doubling - 3)) & (OF_DOUBLING - 1);
    (((doubling - BELOW) * OF_DOUBLING + part) as usize).min(BUCKETS - 1)
}

/// Middle of a bucket.
fn middle(bucket: usize) -> u32 {
    let (doubling, part) = (bucket as u32 / OF_DOUBLING, bucket as u32 % OF_DOUBLING);
    let width = 1 << (doubling + BELOW - 3);
    (1 << (doubling + BELOW)) + part * width + width / 2
}

impl Sketch {
    /// Counts a time.
    pub fn add(&mut self, time: u32) {
        let count = &mut self.counts[bucket(time)];
        *count = count.saturating_add(1);
    }

    /// Adds the counters of another sketch.
    pub fn merge(&mut self, other: &Sketch) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(a, b)| *a = a.saturating_add(*b));
    }

    /// Lets this many times pass after which samples count half.
    pub fn age(&mut self, ages: u32) {
        self.counts.iter_mut().for_each(|count| *count = count.checked_shr(ages).unwrap_or(0));
    }

    /// Number of samples.
    pub fn samples(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// Returns quantiles in millionths, which ascend; 0 without samples.
    pub fn quantiles<const N: usize>(&self, ppm: [u32; N]) -> [u32; N] {
        let samples = self.samples();
        let mut found = [0; N];
        let (mut n, mut below) = (0, 0);
        for (bucket, &count) in self.counts.iter().enumerate().filter(|(_, &count)| count > 0) {
            below += u64::from(count);
            while n < N && below >= (samples * u64::from(ppm[n])).div_ceil(1_000_000).max(1) {
                found[n] = middle(bucket);
                n += 1;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_follow_each_other() {
        let mut last = 0;
        for time in 0..1 << 23 {
            let now = bucket(time);
            assert!(now == last || now == last + 1, "{time}");
            last = now;
        }
        assert_eq!((last, bucket(u32::MAX)), (BUCKETS - 1, BUCKETS - 1));
    }

    #[test]
    fn old_samples_count_half() {
        let mut sketch = Sketch::default();
        (0..1_000).for_each(|_| sketch.add(10_000));
        sketch.age(1);
        (0..499).for_each(|_| sketch.add(100_000));
        assert_eq!(sketch.samples(), 999);
        // 500 of 999 are old.
        let [half, most] = sketch.quantiles([500_000, 600_000]);
        assert!((9_400..10_600).contains(&half) && (94_000..106_000).contains(&most), "{half} {most}");
        sketch.age(40);
        assert_eq!((sketch.samples(), sketch.quantiles([500_000])), (0, [0]));
    }

    proptest! {
        /// Quantiles are within a sixteenth of those of the sorted times.
        #[test]
        fn quantiles_are_close(times in prop::collection::vec(64u32..1 << 22, 1..400)) {
            let mut sketch = Sketch::default();
            times.iter().for_each(|&time| sketch.add(time));
            let mut sorted = times;
            sorted.sort_unstable();
            let ppm = [10_000, 500_000, 900_000, 990_000];
            for (found, ppm) in sketch.quantiles(ppm).into_iter().zip(ppm) {
                let rank = (sorted.len() as u64 * u64::from(ppm)).div_ceil(1_000_000).max(1);
                let exact = sorted[rank as usize - 1];
                prop_assert!(found.abs_diff(exact) <= exact / 16 + 1, "{found} {exact}");
            }
        }
    }
}
