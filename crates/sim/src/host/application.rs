//! Applications: what they write, and when.

use super::Source;
use weir_core::rate::ByteClock;
use weir_core::time::{Duration, Time};

/// More than any run sends: the stream of an application without end.
const ENDLESS: u64 = 1 << 62;

/// An application that sends.
#[derive(Clone, Debug)]
pub(super) struct Application {
    source: Source,
    /// Of one that writes at a rate: its clock, when it writes next, and what it has written.
    pace: Option<(ByteClock, Time)>,
    written: u64,
    chunk: u64,
}

impl Application {
    /// Starts at `start`, and writes `chunk` bytes at a time if it has a rate.
    pub(super) fn new(source: Source, start: Time, chunk: u32) -> Application {
        let pace = source.rate.map(|rate| (ByteClock::new(rate), start));
        let written = if pace.is_some() { 0 } else { source.bytes.unwrap_or(ENDLESS) };
        Application { source, pace, written, chunk: u64::from(chunk) }
    }

    /// The end of what is written by `now`, and whether that is all there will be. `sent` is how far the
    /// connection has got: what an endless application has not handed over by its end is never sent.
    pub(super) fn written(&mut self, now: Time, sent: u64) -> (u64, bool) {
        let most = self.source.bytes.unwrap_or(ENDLESS);
        if now >= self.source.until {
            let end = if self.pace.is_some() { self.written } else { self.written.min(sent) };
            return (end, true);
        }
        if let Some((clock, next)) = &mut self.pace {
            while *next <= now && self.written < most {
                let chunk = self.chunk.min(most - self.written);
                self.written += chunk;
                *next += clock.advance(chunk).max(Duration::from_nanos(1));
            }
        }
        (self.written, self.source.bytes.is_some_and(|bytes| self.written >= bytes))
    }

    /// When [`Application::written`] changes by itself; [`Time::MAX`] for never.
    pub(super) fn next_deadline(&self) -> Time {
        let most = self.source.bytes.unwrap_or(ENDLESS);
        let chunk = self.pace.as_ref().filter(|_| self.written < most).map_or(Time::MAX, |p| p.1);
        chunk.min(self.source.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::rate::Rate;

    const MS: fn(u64) -> Time = Time::from_millis;

    #[test]
    fn a_rate_is_kept_in_chunks() {
        // 8 Mbit/s: 1000 bytes every millisecond, the first at the start.
        let source = Source { bytes: Some(3500), until: Time::MAX, rate: Some(Rate::mbit(8)) };
        let mut app = Application::new(source, MS(5), 1000);
        assert_eq!((app.written(MS(5), 0), app.next_deadline()), ((1000, false), MS(6)));
        assert_eq!(app.written(MS(7), 0), (3000, false));
        // The rest is half a chunk.
        assert_eq!((app.written(MS(8), 0), app.next_deadline()), ((3500, true), Time::MAX));
    }

    #[test]
    fn an_endless_one_ends_with_what_was_sent() {
        let source = Source { bytes: None, until: MS(10), rate: None };
        let mut app = Application::new(source, MS(0), 1000);
        assert_eq!(app.next_deadline(), MS(10));
        assert!(!app.written(MS(9), 5).1);
        assert_eq!(app.written(MS(10), 12_345), (12_345, true));
    }
}
