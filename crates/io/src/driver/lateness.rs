//! Lateness of frames: time from when a frame was due until it was handed to the device.

use weir_core::stats::nearest_rank;
use weir_core::time::Duration;

/// Classes per doubling.
const FINE: u32 = 4;
const CLASSES: usize = 128;

/// A histogram with classes a fifth of their value wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lateness {
    counts: [u64; CLASSES],
    max: u64,
}

impl Default for Lateness {
    fn default() -> Lateness {
        Lateness { counts: [0; CLASSES], max: 0 }
    }
}

/// The class of `ns`: its highest set bit, and the two bits below.
fn class(ns: u64) -> usize {
    let ns = ns.max(FINE.into());
    let bits = ns.ilog2();
    let class = (bits - 2) * FINE + (ns >> (bits - 2)) as u32 - FINE;
    (class as usize).min(CLASSES - 1)
}

/// The largest value of a class.
fn top(class: usize) -> u64 {
    let (bits, part) = (class as u32 / FINE, class as u64 % u64::from(FINE));
    ((part + u64::from(FINE) + 1) << bits) - 1
}

impl Lateness {
    /// Adds a frame.
    pub fn add(&mut self, late: Duration) {
        self.counts[class(late.as_nanos())] += 1;
        self.max = self.max.max(late.as_nanos());
    }

    /// Number of frames.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Lateness of the latest frame.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// Lateness that `ppm` of a million frames do not exceed (nearest rank), rounded up by at most a fifth.
    pub fn quantile(&self, ppm: u32) -> Duration {
        let wanted = nearest_rank(self.count(), ppm);
        let mut seen = 0;
        for (class, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Duration::from_nanos(top(class).min(self.max));
            }
        }
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_their_values() {
        for ns in (4..100).chain([1 << 20, 3 << 30]) {
            let class = class(ns);
            assert!(ns <= top(class) && (class == 0 || ns > top(class - 1)), "{ns} in {class}");
        }
        assert_eq!(class(u64::MAX), CLASSES - 1);
    }

    #[test]
    fn quantiles() {
        let mut l = Lateness::default();
        assert_eq!(l.quantile(500_000), Duration::ZERO);
        for us in 1..=1000 {
            l.add(Duration::from_micros(us));
        }
        let median = l.quantile(500_000).as_nanos();
        assert!((500_000..625_000).contains(&median), "{median}");
        assert_eq!((l.quantile(1_000_000), l.count()), (Duration::from_millis(1), 1000));
    }
}
