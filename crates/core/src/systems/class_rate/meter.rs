//! Rates that are measured.

use super::average::{Average, ONE};
use crate::time::{Duration, Time};

/// Rates are measured over so long at least.
const SPAN: Duration = Duration::from_millis(10);
/// Time in which an average of a rate follows downwards. What is free for others is theirs after a round trip
/// only, and windows that are still small would keep them from it.
pub(crate) const LESS: Duration = Duration::from_millis(10);

/// A rate in bits per second, on average.
#[derive(Clone, Copy, Default)]
pub(crate) struct Meter {
    /// Bytes since when.
    sum: u64,
    since: Time,
    average: Average,
}

impl Meter {
    /// Adds bytes.
    pub(crate) fn note(&mut self, bytes: u64, now: Time) {
        self.sum += bytes;
        let span = now.since(self.since);
        if span >= SPAN && (self.sum > 0 || self.average.value() > 0) {
            let bps = u128::from(self.sum) * 8_000_000_000 / u128::from(span.as_nanos());
            self.average.note(bps.min(1 << 40) as u64, now, LESS);
            (self.sum, self.since) = (0, now);
        }
    }

    /// Bits per second.
    pub(crate) fn bps(&self) -> u64 {
        self.average.value() / ONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meter_measures() {
        let mut m = Meter::default();
        // 1,000 bytes every millisecond for a second: 8 Mb/s.
        (1..=1_000).for_each(|ms| m.note(1_000, Time::from_millis(ms)));
        assert!((7_990_000..=8_000_000).contains(&m.bps()), "{}", m.bps());
        m.note(0, Time::from_secs(2));
        assert!(m.bps() < 100_000, "{}", m.bps());
    }
}
