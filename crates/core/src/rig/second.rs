//! Bytes within any second: the law of bounds, for tests.

use crate::rate::Rate;
use crate::time::{Duration, Time};
use std::collections::VecDeque;

/// Bytes that any second may have beyond 1.15 times the rate, for a burst, a first window and a late timer.
const MORE: u64 = 64_000;
const SECOND: Duration = Duration::from_secs(1);

/// Bytes that a limit may let through in any second.
pub fn most(rate: Rate) -> u64 {
    rate.bytes_in(SECOND) * 115 / 100 + MORE
}

/// Bytes within the last second.
#[derive(Debug, Default)]
pub struct Second {
    bytes: VecDeque<(Time, u64)>,
    sum: u64,
}

impl Second {
    /// Returns the bytes of the second that ends at `at`, with `bytes` more in it.
    pub fn add(&mut self, at: Time, bytes: u64) -> u64 {
        self.bytes.push_back((at, bytes));
        self.sum += bytes;
        while let Some(&(first, bytes)) = self.bytes.front().filter(|b| b.0 + SECOND <= at) {
            debug_assert!(first < at);
            self.sum -= bytes;
            self.bytes.pop_front();
        }
        self.sum
    }

    /// Forgets all bytes.
    pub fn clear(&mut self) {
        *self = Second::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_second_counts() {
        let mut second = Second::default();
        let at = Time::from_millis;
        assert_eq!(second.add(at(100), 5), 5);
        assert_eq!(second.add(at(1_099), 7), 12);
        assert_eq!(second.add(at(1_100), 1), 8);
        assert_eq!(second.add(at(5_000), 2), 2);
        // 1.15 times 250,000, and 64,000.
        assert_eq!(most(Rate::mbit(2)), 351_500);
    }
}
