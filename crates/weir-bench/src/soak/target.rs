//! Targets of the uploads, and the times in which they must be met.

use super::event::Happened;
use weir::execute::traffic::Bins;
use weir_core::rate::Rate;
use weir_core::time::{Duration, Time};

/// A time without events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// Start since the epoch, in nanoseconds.
    pub from_ns: u64,
    /// End since the epoch, in nanoseconds.
    pub to_ns: u64,
    /// Total rate of all uploads.
    pub rate: Rate,
}

impl Window {
    /// Returns the difference of `received` from the rate, in percent.
    pub fn error_percent(&self, received: &[&Bins]) -> f64 {
        let bytes: u64 = received.iter().map(|bins| bins.between(self.from_ns, self.to_ns)).sum();
        let wanted = self.rate.bps() as f64 * (self.to_ns - self.from_ns) as f64 / 8e9;
        (bytes as f64 / wanted - 1.0) * 100.0
    }
}

/// Returns the windows of this `length` between two events, from `calm` after the first on.
pub(super) fn calm(happened: &[Happened], epoch: Time, calm: Duration, length: Duration) -> Vec<Window> {
    let pairs = happened.windows(2).flat_map(|pair| {
        let (from, to) = (pair[0].until + calm, pair[1].from);
        let starts = (0u64..).map(move |k| from + Duration::from_nanos(k * length.as_nanos()));
        let starts = starts.take_while(move |&start| start + length <= to && start > epoch);
        starts.map(move |start| {
            let from_ns = start.since(epoch).as_nanos();
            Window { from_ns, to_ns: from_ns + length.as_nanos(), rate: pair[0].rate }
        })
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::super::event::Event;
    use super::*;

    #[test]
    fn windows_lie_between_what_happens() {
        let ms = Duration::from_millis;
        let epoch = Time::ZERO + ms(1_000);
        let happened = |from, until, mbit| Happened {
            event: Event::Reload,
            from: epoch + ms(from),
            until: epoch + ms(until),
            rate: Rate::mbit(mbit),
        };
        let all = [happened(0, 100, 8), happened(5_000, 5_100, 16), happened(8_000, 8_000, 8)];
        let found = calm(&all, epoch, ms(2_500), ms(1_000));
        // There are two whole seconds from 2.6 s to 5 s, and none from 7.6 s to 8 s.
        let window = |from_ms: u64| Window {
            from_ns: from_ms * 1_000_000,
            to_ns: (from_ms + 1_000) * 1_000_000,
            rate: Rate::mbit(8),
        };
        assert_eq!(found, [window(2_600), window(3_600)]);
        let mut bins = Bins::new(100_000_000);
        bins.record(2_700_000_000, 900_000);
        bins.record(3_700_000_000, 2_000_000);
        assert_eq!(found[0].error_percent(&[&bins]).round(), -10.0);
        assert_eq!(found[1].error_percent(&[&bins]).round(), 100.0);
    }
}
