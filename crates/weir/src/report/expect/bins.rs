//! Rates over time, from the bytes that a flow received bin by bin.

use crate::experiment::plan::Measure;
use crate::result::{FlowResult, RunResult};
use weir_core::time::Duration;

/// Bins of a flow's life, or of all of the measured time.
pub(super) struct Bins {
    /// Sum of the bytes before each bin from `offset` on. Bins outside are empty.
    before: Vec<f64>,
    offset: usize,
    /// First bin that lies wholly inside the measured time and the flow's life.
    pub first: usize,
    /// Bin after the last one of these.
    pub last: usize,
    /// First bin that the flow's life in the measured time touches, and the one after the last.
    touched: (usize, usize),
    /// First bin of the measured time, and the one after the last.
    measured: (usize, usize),
    /// Length of the flow's life in the measured time.
    lasts: Duration,
    /// Flag: all of the flow's life is in the measured time.
    pub whole_life: bool,
    bin: Duration,
}

impl Bins {
    /// Returns the bins of a flow; `None` if it has no life in the measured time, or received bytes were not
    /// recorded.
    pub fn of(m: &Measure, bin: Duration, result: &RunResult, f: &FlowResult) -> Option<Bins> {
        let (offset, received) = result.received(f, bin)?;
        let mut before = Vec::with_capacity(received.len() + 1);
        before.push(0.0);
        for bytes in received {
            before.push(before[before.len() - 1] + bytes);
        }
        let width = bin.as_nanos().max(1);
        let (begin, end) = (nanos(f.start_s), nanos(f.end_s));
        let stop = m.until.map_or(u64::MAX, Duration::as_nanos).min(nanos(result.duration_s));
        let (from, until) = (m.from.as_nanos().max(begin), stop.min(end));
        let inside = |from: u64, until: u64| (from.div_ceil(width) as usize, (until / width) as usize);
        let (first, last) = inside(from, until);
        let touched = ((from / width) as usize, until.div_ceil(width) as usize);
        let measured = inside(m.from.as_nanos(), stop);
        let whole_life = from == begin && until == end;
        let lasts = Duration::from_nanos(until.saturating_sub(from));
        (from < until).then_some(Bins {
            before,
            offset,
            first,
            last,
            touched,
            measured,
            lasts,
            whole_life,
            bin,
        })
    }

    /// Returns the joint bins of several flows, such as those of a class, in all of the measured time; `None`
    /// if no bin is inside it.
    pub fn of_class(m: &Measure, bin: Duration, result: &RunResult, flows: &[&FlowResult]) -> Option<Bins> {
        let width = bin.as_nanos().max(1);
        let end = nanos(result.duration_s);
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
        let (span, lasts) = ((first, last), bin.saturating_mul(last.saturating_sub(first) as u64));
        (first < last).then_some(Bins {
            before,
            offset: 0,
            first,
            last,
            touched: span,
            measured: span,
            lasts,
            whole_life: false,
            bin,
        })
    }

    /// Returns the number of bins in `len`, at least one.
    pub fn count(&self, len: Duration) -> usize {
        (len.as_nanos() / self.bin.as_nanos().max(1)).max(1) as usize
    }

    /// Returns the rate in bits per second from bin `from` up to bin `to`, with zeros outside of the life.
    pub fn rate(&self, from: usize, to: usize) -> Option<f64> {
        let bytes = self.bytes(from.max(self.touched.0), to.min(self.touched.1));
        (to > from).then(|| bytes * 8.0 / self.bin.saturating_mul((to - from) as u64).as_secs_f64())
    }

    fn bytes(&self, from: usize, to: usize) -> f64 {
        let before = |bin: usize| self.before[bin.saturating_sub(self.offset).min(self.before.len() - 1)];
        before(to) - before(from)
    }

    /// Returns the average rate, or its bounds if no whole bin is inside: some of the bytes in the bins of a
    /// flow's start and end may have come outside of the measured time.
    pub fn average(&self) -> (f64, f64) {
        match self.rate(self.first, self.last) {
            Some(rate) => (rate, rate),
            None => (0.0, self.bytes(self.touched.0, self.touched.1) * 8.0 / self.lasts.as_secs_f64()),
        }
    }

    /// Returns the range of the first bins of windows of `n` bins in the measured time. A window lies inside
    /// the flow's life. A shorter life lies inside the window, which counts zeros around it.
    fn windows(&self, n: usize) -> Option<(usize, usize)> {
        let inside = self.last.checked_sub(n).filter(|latest| self.first <= *latest);
        inside.map(|latest| (self.first, latest)).or_else(|| {
            let ((begin, end), (from, until)) = (self.touched, self.measured);
            let (one, other) = (begin, end.saturating_sub(n));
            let (earliest, latest) = (one.min(other).max(from), one.max(other).min(until.checked_sub(n)?));
            (earliest <= latest).then_some((earliest, latest))
        })
    }

    /// Returns the window of length `len`, beginning at any bin, whose rate is ahead of all others.
    pub fn extreme(&self, len: Duration, ahead: impl Fn(f64, f64) -> bool) -> Option<(f64, (usize, usize))> {
        let n = self.count(len);
        let (earliest, latest) = self.windows(n)?;
        let mut best = None;
        for from in earliest..=latest {
            let rate = self.rate(from, from + n)?;
            if best.is_none_or(|(b, _)| ahead(rate, b)) {
                best = Some((rate, (from, from + n)));
            }
        }
        best
    }

    /// Returns each whole interval of length `len`, with its rate. A life shorter than one has one.
    pub fn intervals(&self, len: Duration) -> Vec<(f64, (usize, usize))> {
        let n = self.count(len);
        let starts = (self.first..).step_by(n).take_while(|s| s + n <= self.last);
        let whole: Vec<_> = starts.filter_map(|s| Some((self.rate(s, s + n)?, (s, s + n)))).collect();
        if whole.is_empty() {
            return self.extreme(len, |a, b| a > b).into_iter().collect();
        }
        whole
    }
}

fn nanos(s: f64) -> u64 {
    (s * 1e9).round().max(0.0) as u64
}
