//! Records of endpoints, for their reports.

use super::{Change, EndpointReport};
use crate::cache::prefetch;
use core::mem::offset_of;
use weir_core::stats::{quantile, Histogram};
use weir_core::time::{Duration, Time};

/// Number of round-trip samples that are stored individually before a histogram (19 KB) is used. Later
/// samples are added to the histogram in batches of this size.
const FEW: usize = 512;

/// Time of an event's first occurrence, if it has occurred.
#[derive(Clone, Copy, Debug)]
pub(super) struct First(Time);

impl First {
    const NEVER: First = First(Time::MAX);

    /// Notes an occurrence.
    pub(super) fn note(&mut self, now: Time) {
        self.0 = self.0.min(now);
    }
    pub(super) fn has_been(self) -> bool {
        self.0 < Time::MAX
    }
    fn get(self) -> Option<Time> {
        self.has_been().then_some(self.0)
    }
}

/// Data that few endpoints have.
#[derive(Clone, Debug, Default)]
struct More {
    /// Changes in the order of time.
    trace: Vec<Change>,
    /// Durations of the bursts.
    bursts: Vec<Duration>,
    /// Time at which the burst was written that the connection's end cut.
    cut: Option<Time>,
    /// Round-trip times, if there are many.
    rtt: Option<Histogram>,
}

/// See the [module documentation](self). The fields that every segment uses come first.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct EndpointRecord {
    pub(super) segments: u64,
    /// Round-trip samples in nanoseconds: all of them, or those that are not yet in the histogram.
    rtt: Vec<u32>,
    received: u64,
    /// Time of the last delivery.
    last: Time,
    bins: Vec<u32>,
    /// End of the last bin, or of the flow's time if that comes earlier.
    next: Time,
    /// Number of the first bin.
    first_bin: usize,
    received_all: First,
    /// Length of a bin.
    bin: Duration,
    /// End of the flow's time, until a byte has come after it.
    until: Time,
    /// Bytes received in the flow's time, if others have come after it.
    in_time: Option<u64>,
    pub(super) established: First,
    pub(super) closed: First,
    more: Option<Box<More>>,
}

impl EndpointRecord {
    /// Returns an empty record with bins of this length, of a flow whose time ends at `until`.
    pub(super) fn new(bin: Duration, until: Time) -> EndpointRecord {
        EndpointRecord {
            bin,
            next: Time::ZERO,
            until,
            in_time: None,
            received: 0,
            last: Time::ZERO,
            bins: Vec::new(),
            segments: 0,
            established: First::NEVER,
            received_all: First::NEVER,
            rtt: Vec::new(),
            closed: First::NEVER,
            first_bin: 0,
            more: None,
        }
    }

    /// Offset of the end of the fields that every segment uses.
    pub(super) const FIRST: usize = offset_of!(EndpointRecord, received_all);

    /// Prefetches the places of the next values.
    #[inline]
    pub(super) fn prefetch(&self) {
        self.bins.last().into_iter().for_each(prefetch);
        self.rtt.last().into_iter().for_each(prefetch);
    }

    /// Records a delivery of `bytes` to the application.
    pub(super) fn received(&mut self, bytes: u64, now: Time) {
        if now >= self.next {
            self.begin_bin(now);
        }
        self.received += bytes;
        self.last = now;
        if let Some(last) = self.bins.last_mut() {
            *last = last.saturating_add(bytes.min(u64::from(u32::MAX)) as u32);
        }
    }

    /// Adds bins up to the one of this time, and ends the flow's time if this is after it.
    fn begin_bin(&mut self, now: Time) {
        if now >= self.until {
            (self.in_time, self.until) = (Some(self.received), Time::MAX);
        }
        let k = (now.as_nanos() / self.bin.as_nanos().max(1)) as usize;
        if self.bins.is_empty() {
            self.first_bin = k;
        }
        let k = k - self.first_bin;
        self.bins.resize(k + 1, 0);
        let bins_end = Time::ZERO + self.bin.saturating_mul((self.first_bin + self.bins.len()) as u64);
        self.next = bins_end.min(self.until);
    }

    /// Records the end of the peer's stream.
    pub(super) fn finished(&mut self, now: Time) {
        self.received_all.note(now);
    }

    /// Returns whether the peer's stream has ended.
    pub(super) fn has_finished(&self) -> bool {
        self.received_all.has_been()
    }

    /// Records a change, unless only its time differs from the last one.
    pub(super) fn change(&mut self, change: Change) {
        let trace = &mut self.more.get_or_insert_default().trace;
        if !trace.last().is_some_and(|last| Change { at: change.at, ..*last } == change) {
            trace.push(change);
        }
    }

    /// Records the duration of a burst.
    pub(super) fn burst(&mut self, took: Duration) {
        self.more.get_or_insert_default().bursts.push(took);
    }

    /// Records that the connection ended during the burst that was written at `since`.
    pub(super) fn cut_burst(&mut self, since: Time) {
        self.more.get_or_insert_default().cut = Some(since);
    }

    /// Records a sample of the round-trip time.
    #[inline]
    pub(super) fn round_trip(&mut self, rtt: Duration) {
        match u32::try_from(rtt.as_nanos()) {
            Ok(ns) if self.rtt.len() < FEW => self.rtt.push(ns),
            _ => self.sum_up(rtt),
        }
    }

    /// Adds the stored samples and this one to the histogram.
    #[cold]
    fn sum_up(&mut self, rtt: Duration) {
        let all = self.more.get_or_insert_default().rtt.get_or_insert_with(Histogram::new);
        self.rtt.drain(..).for_each(|ns| all.record(u64::from(ns)));
        all.record(rtt.as_nanos());
    }

    /// Returns the median and the 99th percentile, by nearest rank.
    fn quantiles(&self) -> Option<(Duration, Duration)> {
        let ns = Duration::from_nanos;
        if let Some(many) = self.more.as_ref().and_then(|more| more.rtt.as_ref()) {
            let mut all = many.clone();
            self.rtt.iter().for_each(|&ns| all.record(u64::from(ns)));
            return Some((ns(all.p50()), ns(all.p99())));
        }
        let mut sorted = self.rtt.clone();
        sorted.sort_unstable();
        let of = |ppm| quantile(&sorted, ppm).map(|all| ns(u64::from(all)));
        Some((of(500_000)?, of(990_000)?))
    }

    /// Returns the fields of the report that are recorded here.
    pub(super) fn report(&self) -> EndpointReport {
        EndpointReport {
            established: self.established.get(),
            closed: self.closed.get(),
            received: self.received,
            received_in_time: self.in_time.unwrap_or(self.received),
            last_received: (self.received > 0).then_some(self.last),
            received_all: self.received_all.get(),
            first_bin: self.first_bin,
            bins: self.bins.clone(),
            segments: self.segments,
            rtt: self.quantiles(),
            bursts: self.more.as_ref().map_or(Vec::new(), |more| more.bursts.clone()),
            burst_since: self.more.as_ref().and_then(|more| more.cut),
            trace: self.more.as_ref().map_or(Vec::new(), |more| more.trace.clone()),
            ..EndpointReport::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_and_quantiles() {
        let ms = Duration::from_millis;
        let mut r = EndpointRecord::new(ms(10), Time::from_millis(42));
        r.received(100, Time::from_millis(19));
        r.received(50, Time::from_millis(40));
        r.received(0, Time::from_millis(41));
        assert_eq!((r.report().first_bin, r.report().bins), (1, vec![100, 0, 0, 50]));
        // The flow's time ends within a bin.
        r.received(7, Time::from_millis(42));
        r.received(8, Time::from_millis(43));
        let report = r.report();
        assert_eq!((report.bins, report.received, report.received_in_time), (vec![100, 0, 0, 65], 165, 150));
        // From 1 to 1000 ms: few samples are exact, many within a percent.
        (1..=100).for_each(|n| r.round_trip(ms(n)));
        assert_eq!(r.report().rtt, Some((ms(50), ms(99))));
        (101..=1000).for_each(|n| r.round_trip(ms(n)));
        let (p50, p99) = r.report().rtt.unwrap();
        assert!(p50.as_nanos().abs_diff(500_000_000) < 5_000_000, "{p50}");
        assert!(p99.as_nanos().abs_diff(990_000_000) < 9_900_000, "{p99}");
    }
}
