//! Data of charts: conversion of series into points that can be drawn.

use crate::result::{FlowResult, Interval};
use std::collections::BTreeMap;
use weir_core::time::Duration;

/// Point of a curve: time in seconds, and a value.
pub(super) type Point = (f64, f64);

/// Approximate number of points of a curve over the whole width of a chart.
const POINTS: u64 = 200;

/// Returns the length of the windows in which received bytes are averaged. There are about [`POINTS`] windows
/// in a run. The length is 1, 2 or 5 times a power of ten of milliseconds, rounded up to whole bins.
pub(super) fn window(duration: Duration, bin: Duration) -> Duration {
    let bin = bin.as_nanos().max(1);
    let wanted = (duration.as_nanos() / POINTS).max(bin);
    let decades = (0..13).map(|e| 10u64.pow(e) * 1_000_000);
    let nice = decades.flat_map(|d| [d, 2 * d, 5 * d]).find(|n| *n >= wanted).unwrap_or(wanted);
    Duration::from_nanos(nice.div_ceil(bin) * bin)
}

/// Returns the goodput of windows in bits per second, each placed at the middle of the flow's life within it.
/// Windows with less than half of their length inside the flow's life are left out, and so are bytes that
/// came after it. `received` begins with bin `first`; bins outside it are empty.
pub(super) fn goodput(
    flow: &FlowResult,
    first: usize,
    received: &[f64],
    bin: Duration,
    window: Duration,
) -> Vec<Point> {
    let n = (window.as_nanos() / bin.as_nanos().max(1)).max(1) as usize;
    let at = |bins: usize| bin.saturating_mul(bins as u64).as_secs_f64();
    let bins = |s: f64| (s * 1e9 / bin.as_nanos().max(1) as f64).round().max(0.0) as usize;
    let (begin, end) = (bins(flow.start_s), bins(flow.end_s));
    let mut left = (flow.goodput_bps * (flow.end_s - flow.start_s) / 8.0).round();
    let point = |k: usize| {
        let within = |bin: usize| bin.clamp(first, first + received.len()) - first;
        let (from, to) = (at(k * n).max(flow.start_s), at((k + 1) * n).min(flow.end_s));
        let sum = received[within(k * n)..within((k + 1) * n)].iter().sum::<f64>().min(left);
        left -= sum;
        (to - from >= at(n) / 2.0).then(|| ((from + to) / 2.0, sum * 8.0 / (to - from)))
    };
    (begin / n..end.div_ceil(n)).filter_map(point).collect()
}

/// Thins `points`: stretches of length `width` with more points than can be told apart keep the lowest and
/// the highest.
pub(super) fn thinned(points: &[Point], width: f64) -> Vec<Point> {
    if points.len() <= 2 * POINTS as usize || width <= 0.0 {
        return points.to_vec();
    }
    let stretches = points.chunk_by(|a, b| (a.0 / width).floor() == (b.0 / width).floor());
    let ends = |stretch: &[Point]| {
        let mut at = (0, 0);
        for (i, p) in stretch.iter().enumerate() {
            if p.1 < stretch[at.0].1 {
                at.0 = i;
            }
            if p.1 > stretch[at.1].1 {
                at.1 = i;
            }
        }
        let (first, last) = (at.0.min(at.1), at.0.max(at.1));
        std::iter::once(stretch[first]).chain((first < last).then(|| stretch[last])).collect::<Vec<_>>()
    };
    stretches.flat_map(ends).collect()
}

/// Returns the corners of values that hold until the next one.
pub(super) fn held(points: &[Point]) -> Vec<Point> {
    let corner = |pair: &[Point]| [pair[0], (pair[1].0, pair[0].1)];
    let corners = points.windows(2).flat_map(corner);
    corners.chain(points.last().copied()).collect()
}

/// Returns the share in percent of `all` whose time is at most a time, as corners from 0 to `until`.
pub(super) fn cumulated(times: &[f64], all: usize, until: f64) -> Vec<Point> {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let share = |n: usize| 100.0 * n as f64 / all.max(1) as f64;
    let points = sorted.iter().zip(1..).map(|(t, n)| (*t, share(n)));
    let points: Vec<Point> =
        std::iter::once((0.0, 0.0)).chain(points).chain([(until, share(sorted.len()))]).collect();
    held(&points)
}

/// Summary of several curves in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    /// Middle of the stretch.
    pub t: f64,
    /// Smallest value of all curves.
    pub low: f64,
    /// Mean of all values.
    pub mean: f64,
    /// Largest value of all curves.
    pub high: f64,
}

/// Returns the smallest, mean and largest value of several curves, in stretches of length `width`. A stretch
/// without points is left out.
pub(super) fn spread(curves: &[Vec<Point>], width: f64) -> Vec<Spread> {
    let mut stretches: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (t, v) in curves.iter().flatten() {
        stretches.entry((t / width).floor().max(0.0) as u64).or_default().push(*v);
    }
    let one = |(k, values): (u64, Vec<f64>)| Spread {
        t: (k as f64 + 0.5) * width,
        low: values.iter().copied().fold(f64::INFINITY, f64::min),
        mean: values.iter().sum::<f64>() / values.len() as f64,
        high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    };
    stretches.into_iter().map(one).collect()
}

/// Returns the length of the steps of goodput: an interval, or as many as make about four times [`POINTS`]
/// of a run.
pub(super) fn step(interval: Duration, duration: Duration) -> Duration {
    let intervals = duration.as_nanos() / interval.as_nanos().max(1);
    interval.saturating_mul(intervals.div_ceil(4 * POINTS).max(1))
}

/// Returns the mean goodput of several flows as steps. Flows are given by their intervals. A
/// step is as long as one of these, or as several.
pub(super) fn steps<'a>(flows: impl Iterator<Item = &'a [Interval]>, step: Duration) -> Vec<Point> {
    let width = step.as_secs_f64();
    let mut stretches: BTreeMap<u64, Vec<(f64, f64, f64)>> = BTreeMap::new();
    for i in flows.flatten() {
        // Intervals begin at multiples of their length; the first of a flow may begin later.
        let k = (i.t_s / width + 1e-6).floor().max(0.0) as u64;
        stretches.entry(k).or_default().push((i.t_s, i.t_s + i.len_s, i.bps));
    }
    let step = |parts: Vec<(f64, f64, f64)>| {
        let from = parts.iter().map(|p| p.0).fold(f64::INFINITY, f64::min);
        let to = parts.iter().map(|p| p.1).fold(0.0, f64::max);
        let mean = parts.iter().map(|p| p.2).sum::<f64>() / parts.len() as f64;
        [(from, mean), (to, mean)]
    };
    stretches.into_values().flat_map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Returns a flow of 8 Mbit/s.
    fn flow(start_s: f64, end_s: f64) -> FlowResult {
        FlowResult { start_s, end_s, goodput_bps: 8e6, ..FlowResult::default() }
    }

    #[test]
    fn windows_are_round_and_of_whole_bins() {
        let w = |s, bin| window(Duration::from_secs(s), Duration::from_millis(bin));
        // 100 s / 200 is 500 ms exactly; 8 s / 200 is 40 ms, the next round number 50.
        assert_eq!(w(100, 10), Duration::from_millis(500));
        assert_eq!(w(8, 10), Duration::from_millis(50));
        // Windows are at least a bin long, and a multiple of one: 50 ms are no multiple of 8 ms.
        assert_eq!(w(1, 10), Duration::from_millis(10));
        assert_eq!(w(8, 8), Duration::from_millis(56));
    }

    #[test]
    fn goodput_of_a_flow_that_starts_late() {
        // Bins of 1 ms, windows of 4; the flow lives from 3 ms to 11 ms at 1000 bytes per ms: 8 Mbit/s. As
        // many come in the millisecond after it.
        let bins: Vec<f64> = (0..12).map(|i| if i >= 3 { 1000.0 } else { 0.0 }).collect();
        let got = goodput(&flow(0.003, 0.011), 0, &bins, MS, Duration::from_millis(4));
        // Bins outside its life may be missing.
        assert_eq!(got, goodput(&flow(0.003, 0.011), 3, &bins[3..11], MS, Duration::from_millis(4)));
        // The first window has a quarter of life, the last three quarters.
        let want = [(0.006, 8e6), (0.0095, 8e6)];
        assert_eq!(got.len(), 2, "{got:?}");
        for (g, w) in got.iter().zip(want) {
            assert!((g.0 - w.0).abs() < 1e-9 && (g.1 - w.1).abs() < 1e-3, "{got:?}");
        }
    }

    #[test]
    fn thinning_keeps_every_peak() {
        let mut points: Vec<Point> = (0..10_000).map(|i| (f64::from(i) / 100.0, 1.0)).collect();
        points[1234].1 = 9.0;
        points[1200].1 = -3.0;
        let got = thinned(&points, 1.0);
        assert!(got.contains(&(12.34, 9.0)) && got.contains(&(12.0, -3.0)), "{got:?}");
        assert!(got.windows(2).all(|w| w[0].0 < w[1].0));
        // 100 stretches with one point each, and two in the stretch with the peaks.
        assert_eq!(got.len(), 101);
        assert_eq!(thinned(&points[..10], 1.0), points[..10]);
    }

    #[test]
    fn values_hold_until_the_next_one() {
        assert_eq!(held(&[(0.0, 1.0), (2.0, 5.0)]), [(0.0, 1.0), (2.0, 1.0), (2.0, 5.0)]);
        assert_eq!(held(&[]), []);
    }

    #[test]
    fn shares_rise_to_those_that_completed() {
        // Three of four flows completed: at 1 s one of them, at 3 s two more.
        let got = cumulated(&[3.0, 1.0, 3.0], 4, 4.0);
        let at = |t: f64| got.iter().rev().find(|p| p.0 <= t).map(|p| p.1);
        assert_eq!([at(0.5), at(1.0), at(2.9), at(3.0), at(4.0)], [0.0, 25.0, 25.0, 75.0, 75.0].map(Some));
    }

    #[test]
    fn spread_of_two_curves() {
        let got = spread(&[vec![(0.1, 1.0), (2.5, 4.0)], vec![(0.9, 3.0)]], 1.0);
        let want = [
            Spread { t: 0.5, low: 1.0, mean: 2.0, high: 3.0 },
            Spread { t: 2.5, low: 4.0, mean: 4.0, high: 4.0 },
        ];
        assert_eq!(got, want);
    }

    #[test]
    fn steps_are_means_over_the_flows_that_live() {
        let interval = |t_s, len_s, bps| Interval { t_s, len_s, bytes: 0, bps };
        let a = [interval(0.0, 2.0, 4.0), interval(2.0, 2.0, 6.0)];
        let b = [interval(2.5, 1.5, 8.0)];
        let got = steps([a.as_slice(), b.as_slice()].into_iter(), Duration::from_secs(2));
        assert_eq!(got, [(0.0, 4.0), (2.0, 4.0), (2.0, 7.0), (4.0, 7.0)]);
    }

    /// 2,000,000 intervals of 1 us are 800 steps of 2.5 ms. A step has the mean of its intervals.
    #[test]
    fn steps_may_be_of_several_intervals() {
        let us = Duration::from_micros;
        assert_eq!(step(us(1), us(2_000_000)), us(2_500));
        assert_eq!(step(us(1_000_000), us(100_000_000)), us(1_000_000));
        let flow: Vec<Interval> = (0..2_000_000)
            .map(|k| Interval { t_s: f64::from(k) / 1e6, len_s: 1e-6, bytes: 0, bps: f64::from(k % 2) })
            .collect();
        let got = steps(std::iter::once(flow.as_slice()), us(2_500));
        assert_eq!((got.len(), got[2]), (1600, (0.0025, 0.5)));
    }
}
