//! Rates over time, from the bytes that a flow received bin by bin.

use crate::experiment::plan::Measure;
use crate::result::{FlowResult, RunResult};
use weir_core::time::Duration;

/// Bins of a flow that lie wholly inside the measured time and the flow's own life.
pub(super) struct Bins {
    /// Sum of the bytes before each bin from `offset` on. Bins outside are empty.
    before: Vec<f64>,
    offset: usize,
    /// First bin.
    pub first: usize,
    /// Bin after the last one.
    pub last: usize,
    bin: Duration,
}

impl Bins {
    /// Returns the bins of a flow; `None` if there is no whole bin, or received bytes were not recorded.
    pub fn of(m: &Measure, bin: Duration, result: &RunResult, f: &FlowResult) -> Option<Bins> {
        let (offset, received) = result.received(f, bin)?;
        let mut before = Vec::with_capacity(received.len() + 1);
        before.push(0.0);
        for bytes in received {
            before.push(before[before.len() - 1] + bytes);
        }
        let width = bin.as_nanos().max(1);
        let nanos = |s: f64| (s * 1e9).round().max(0.0) as u64;
        let from = m.from.as_nanos().max(nanos(f.start_s));
        let until =
            m.until.map_or(u64::MAX, Duration::as_nanos).min(nanos(f.end_s)).min(nanos(result.duration_s));
        let (first, last) = (from.div_ceil(width) as usize, (until / width) as usize);
        (first < last).then_some(Bins { before, offset, first, last, bin })
    }

    /// Returns the joint bins of several flows, such as those of a class, in all of the measured time; `None`
    /// if no bin is inside it.
    pub fn of_class(m: &Measure, bin: Duration, result: &RunResult, flows: &[&FlowResult]) -> Option<Bins> {
        let width = bin.as_nanos().max(1);
        let end = (result.duration_s * 1e9).round().max(0.0) as u64;
        let last = (m.until.map_or(u64::MAX, Duration::as_nanos).min(end) / width) as usize;
        let mut received = vec![0.0; last];
        for flow in flows {
            let (offset, bytes) = result.received(flow, bin)?;
            for (sum, bytes) in received.iter_mut().skip(offset).zip(bytes) {
                *sum += bytes;
            }
        }
        let first = m.from.as_nanos().div_ceil(width) as usize;
        let sum = |sum: &mut f64, bytes: f64| {
            *sum += bytes;
            Some(*sum)
        };
        let before = core::iter::once(0.0).chain(received.into_iter().scan(0.0, sum)).collect();
        (first < last).then_some(Bins { before, offset: 0, first, last, bin })
    }

    /// Returns the number of bins in `len`, at least one.
    pub fn count(&self, len: Duration) -> usize {
        (len.as_nanos() / self.bin.as_nanos().max(1)).max(1) as usize
    }

    /// Returns the rate in bits per second from bin `from` up to bin `to`.
    pub fn rate(&self, from: usize, to: usize) -> Option<f64> {
        let before = |bin: usize| self.before[bin.saturating_sub(self.offset).min(self.before.len() - 1)];
        let bytes = before(to) - before(from);
        (to > from).then(|| bytes * 8.0 / self.bin.saturating_mul((to - from) as u64).as_secs_f64())
    }

    /// Returns the window of length `len`, beginning at any bin, whose rate is ahead of all others.
    pub fn extreme(&self, len: Duration, ahead: impl Fn(f64, f64) -> bool) -> Option<(f64, (usize, usize))> {
        let n = self.count(len);
        let mut best = None;
        for from in self.first..=self.last.checked_sub(n)? {
            let rate = self.rate(from, from + n)?;
            if best.is_none_or(|(b, _)| ahead(rate, b)) {
                best = Some((rate, (from, from + n)));
            }
        }
        best
    }
}
