//! Applications: the amounts and times of their writes.

use super::{Bursts, Source};
use weir_core::rate::ByteClock;
use weir_core::time::{Duration, Time};

/// Length of an endless application's stream, more than any run sends.
const ENDLESS: u64 = 1 << 62;
/// Chunks that wait to be sent while an application with a rate is not woken for further ones. One would do:
/// a sender with a whole segment to send waits for its window or its pace, and both are events of their own.
const AHEAD: u64 = 2;

impl Source {
    /// Returns the bytes of the first write. An application with a rate writes `chunk` bytes at a time.
    pub(super) fn at_first(&self, chunk: u64) -> u64 {
        let all = self.bytes.unwrap_or(ENDLESS);
        let part = self.rate.map(|_| chunk).or(self.bursts.map(|bursts| bursts.size));
        part.map_or(all, |part| all.min(part))
    }
}

/// An application that sends.
#[derive(Clone, Debug)]
pub(super) struct Application {
    /// Total bytes to write, or [`ENDLESS`].
    most: u64,
    /// Time at which the application stops writing.
    until: Time,
    /// Clock of an application with a rate, and the time of its next write.
    pace: Option<(ByteClock, Time)>,
    burst: Option<Burst>,
    written: u64,
    chunk: u64,
}

/// State of an application that pauses. `at` is the time of the unacknowledged write, or of the next write.
#[derive(Clone, Copy, Debug)]
struct Burst {
    of: Bursts,
    at: Time,
    under_way: bool,
}

impl Application {
    /// Starts at `start`. An application with a rate writes `chunk` bytes at a time.
    pub(super) fn new(source: Source, start: Time, chunk: u32) -> Application {
        let pace = source.rate.map(|rate| (ByteClock::new(rate), start));
        let burst = source.bursts.map(|of| Burst { of, at: start, under_way: false });
        let parts = pace.is_some() || burst.is_some();
        let most = source.bytes.unwrap_or(ENDLESS);
        let written = if parts { 0 } else { most };
        Application { most, until: source.until, pace, burst, written, chunk: u64::from(chunk) }
    }

    /// Returns the end of the data written by `now`, and whether the stream ends there. `sent` is the
    /// connection's progress. Data that has not been sent by the end of the flow's time is never sent.
    pub(super) fn written(&mut self, now: Time, sent: u64) -> (u64, bool) {
        let most = self.most;
        if now >= self.until {
            return (self.written.min(sent), true);
        }
        self.write_due(now);
        if let Some(burst) =
            self.burst.as_mut().filter(|b| !b.under_way && b.at <= now && self.written < most)
        {
            self.written += burst.of.size.min(most - self.written);
            (burst.at, burst.under_way) = (now, true);
        }
        let busy = self.burst.is_some_and(|burst| burst.under_way);
        (self.written, !busy && most < ENDLESS && self.written >= most)
    }

    /// Writes the chunks that are due by `now`, if the application has a rate.
    fn write_due(&mut self, now: Time) {
        let Some((clock, next)) = &mut self.pace else { return };
        if *next > now {
            return;
        }
        // Whole chunks that are over by now, in one step: after a pause there may be billions.
        let over = clock.rate().bytes_in(now.since(*next)).min(self.most - self.written);
        let bytes = (over / self.chunk).saturating_sub(1) * self.chunk;
        self.written += bytes;
        *next += clock.advance(bytes);
        while *next <= now && self.written < self.most {
            let chunk = self.chunk.min(self.most - self.written);
            self.written += chunk;
            *next += clock.advance(chunk).max(Duration::from_nanos(1));
        }
    }

    /// Returns the duration of the burst that `acked` completes. Called before the next data is
    /// [written](Application::written).
    pub(super) fn burst_over(&mut self, now: Time, acked: u64) -> Option<Duration> {
        let burst = self.burst.as_mut().filter(|burst| burst.under_way && acked >= self.written)?;
        let took = now.since(burst.at);
        (burst.at, burst.under_way) = (now + burst.of.pause, false);
        Some(took)
    }

    /// Returns the time at which the unacknowledged burst was written.
    pub(super) fn burst_since(&self) -> Option<Time> {
        self.burst.filter(|burst| burst.under_way).map(|burst| burst.at)
    }

    /// Returns whether more waits to be sent than the next event may send at once. `sent` is the connection's
    /// progress.
    fn is_ahead(&self, sent: u64) -> bool {
        self.pace.is_some() && self.written.saturating_sub(sent) >= AHEAD * self.chunk
    }

    /// Returns the time at which the application writes next or ends; [`Time::MAX`] for never.
    fn next_write(&self) -> Time {
        let burst = self.burst.map_or(Time::MAX, |burst| burst.at);
        let chunk = self.pace.as_ref().filter(|_| self.written < self.most).map_or(Time::MAX, |p| p.1);
        chunk.min(burst).min(self.until)
    }

    /// Returns the time at which [`Application::written`] changes without an ACK: [`Time::MAX`] for never,
    /// and [`Time::ZERO`] if any event of the connection may change it.
    pub(super) fn next_deadline(&self, sent: u64) -> Time {
        match self.burst_since().is_some() || self.is_ahead(sent) {
            true => Time::ZERO,
            false => self.next_write(),
        }
    }

    /// Returns the time of the next write that an application needs to be woken for, while it is asked at
    /// each event of the connection. [`Time::MAX`] for none.
    pub(super) fn next_wake(&self, sent: u64) -> Time {
        match (self.burst_since(), self.is_ahead(sent)) {
            // Any ACK may complete the burst.
            (Some(_), _) => Time::MAX,
            (None, true) => self.until,
            (None, false) => self.next_write(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_core::rate::Rate;

    const MS: fn(u64) -> Time = Time::from_millis;

    #[test]
    fn a_rate_is_kept_in_chunks() {
        // 8 Mbit/s are 1000 bytes every millisecond, the first at the start.
        let source = Source { bytes: Some(3500), until: Time::MAX, rate: Some(Rate::mbit(8)), bursts: None };
        let mut app = Application::new(source, MS(5), 1000);
        assert_eq!((app.written(MS(5), 0), app.next_deadline(0)), ((1000, false), MS(6)));
        assert_eq!(app.written(MS(7), 0), (3000, false));
        // The remainder is half a chunk.
        assert_eq!((app.written(MS(8), 3000), app.next_deadline(3000)), ((3500, true), Time::MAX));
    }

    #[test]
    fn bursts_are_a_pause_apart() {
        let bursts = Some(Bursts { size: 1000, pause: Duration::from_millis(10) });
        let source = Source { bytes: Some(1500), until: Time::MAX, rate: None, bursts };
        let mut app = Application::new(source, MS(5), 100);
        assert_eq!(app.written(MS(5), 0), (1000, false));
        assert_eq!((app.burst_over(MS(6), 999), app.next_deadline(0)), (None, Time::ZERO));
        assert_eq!(app.burst_since(), Some(MS(5)));
        assert_eq!(app.burst_over(MS(7), 1000), Some(Duration::from_millis(2)));
        assert_eq!((app.written(MS(16), 1000), app.next_deadline(0)), ((1000, false), MS(17)));
        assert_eq!(app.burst_since(), None);
        // The remainder is written. The application closes when it is acknowledged.
        assert_eq!(app.written(MS(17), 1000), (1500, false));
        assert_eq!(app.burst_over(MS(20), 1500), Some(Duration::from_millis(3)));
        assert_eq!(app.written(MS(20), 1500), (1500, true));
    }

    #[test]
    fn an_endless_one_ends_with_what_was_sent() {
        let source = Source { bytes: None, until: MS(10), rate: None, bursts: None };
        let mut app = Application::new(source, MS(0), 1000);
        assert_eq!(app.next_deadline(0), MS(10));
        assert!(!app.written(MS(9), 5).1);
        assert_eq!(app.written(MS(10), 12_345), (12_345, true));
    }

    /// 10 Tbit/s are 1.25 GB in a millisecond, a chunk every 0.8 ns. While two chunks wait to be sent, only
    /// the end of the flow's time needs a wake. Nothing that was not sent by then is sent later.
    #[test]
    fn a_rate_beyond_the_path_costs_no_wakes() {
        let source = Source { bytes: None, until: MS(9), rate: Some(Rate::mbit(10_000_000)), bursts: None };
        let mut app = Application::new(source, MS(5), 1000);
        assert_eq!((app.written(MS(6), 0), app.next_deadline(0)), ((1_250_001_000, false), Time::ZERO));
        assert_eq!((app.next_wake(1_249_999_000), app.next_wake(1_249_999_001)), (MS(9), app.next_write()));
        assert!(app.next_write() > MS(6) && app.next_write() < MS(7));
        assert_eq!(app.written(MS(9), 20_000), (20_000, true));
    }

    proptest! {
        /// Chunks in one step are those one by one.
        #[test]
        fn a_rate_keeps_its_times(bps in 1_000u64..50_000_000_000, chunk in 1u32..9000, steps in 1u64..2000) {
            let rate = Rate::from_bps(bps).unwrap();
            let source = Source { bytes: None, until: Time::MAX, rate: Some(rate), bursts: None };
            let [mut each, mut once] = [0, 1].map(|_| Application::new(source, MS(5), chunk));
            for _ in 0..steps {
                let at = each.next_write();
                each.written(at, u64::MAX);
            }
            let at = each.next_write().saturating_sub(Duration::from_nanos(1));
            once.written(at, u64::MAX);
            prop_assert_eq!((each.written, each.next_write()), (once.written, once.next_write()));
        }
    }
}
