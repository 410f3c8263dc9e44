//! Recent rate of a class, averaged over two seconds. That is long enough for calls whose packets are some
//! 100 ms apart.

use crate::time::{Duration, Time};

/// Time over which the rate is averaged.
const SPAN: Duration = Duration::from_secs(2);

/// Bytes of the current span and of the one before. The latter counts for the part of the span that is still
/// to come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    since: Time,
    bytes: u64,
    before: u64,
}

impl Usage {
    /// Returns the span that contains `now`, with the bytes sent in it and in the one before.
    fn at(self, now: Time) -> Usage {
        let spans = now.since(self.since).as_nanos() / SPAN.as_nanos();
        match spans {
            0 => self,
            _ => Usage {
                since: self.since + SPAN.saturating_mul(spans),
                bytes: 0,
                before: if spans == 1 { self.bytes } else { 0 },
            },
        }
    }

    /// Counts `bytes` sent now.
    pub(super) fn note(&mut self, bytes: u64, now: Time) {
        *self = self.at(now);
        self.bytes += bytes;
    }

    /// Returns the rate in bits per second.
    pub(super) fn bps(self, now: Time) -> u64 {
        let Usage { since, bytes, before } = self.at(now);
        let (left, span) = (SPAN.saturating_sub(now.since(since)).as_nanos(), SPAN.as_nanos());
        let sum = u128::from(bytes) * u128::from(span) + u128::from(before) * u128::from(left);
        (sum * 8_000_000_000 / (u128::from(span) * u128::from(span))) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_rate_is_measured_and_forgotten_after_two_seconds() {
        let mut usage = Usage::default();
        // 200 bytes every 53,333 us are 30 kb/s.
        let at = |n: u64| Time::from_micros(n * 53_333);
        (0..100).for_each(|n| usage.note(200, at(n)));
        let last = at(99);
        assert!((29_200..=30_900).contains(&usage.bps(last)), "{}", usage.bps(last));
        let half = usage.bps(last + Duration::from_secs(1));
        assert!((13_500..=16_600).contains(&half), "{half}");
        assert_eq!(usage.bps(last + Duration::from_secs(4)), 0);
    }
}
