//! Evaluation of a measure on a result.

use super::bins::Bins;
use crate::experiment::plan::{matches, Field, Measure, Quantity, SeriesKind, Subject};
use crate::result::metric::{Found, Metric, OverTime};
use crate::result::{Ancestry, ClassResult, FlowResult, RunResult};
use std::collections::{HashMap, HashSet};
use weir_core::time::Duration;

/// Measured value.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Value in the unit of its metric (bits per second, microseconds, …), or a lower bound of it.
    pub value: f64,
    /// Value, or an upper bound of it: infinite where only a lower bound is known.
    pub high: f64,
    /// Place of the value: a flow, with the time if one flow has several values.
    pub at: String,
    /// Rate that the gateway sets for the flow, in bits per second.
    pub flow_rate: Option<u64>,
    /// Weight in a mean. For a value of a series it is the time that the value held, in seconds; 1 otherwise.
    pub weight: f64,
}

impl Sample {
    pub(super) fn new(value: f64, at: String) -> Sample {
        Sample { value, high: value, at, flow_rate: None, weight: 1.0 }
    }

    fn found(found: Found, at: String) -> Sample {
        Sample { high: found.high(), ..Sample::new(found.low(), at) }
    }

    /// Returns whether the value is known.
    pub fn is_known(&self) -> bool {
        self.high == self.value
    }
}

/// Measures. An empty answer means that there was nothing to measure: no such flow, a flow too short, or no
/// such value.
pub fn measure(m: &Measure, bin: Duration, result: &RunResult) -> Vec<Sample> {
    match (&m.subject, &m.quantity) {
        (Subject::Flow(pattern), quantity) => {
            let flows = flows(m, pattern, result);
            flows.into_iter().flat_map(|f| flow(m, quantity, bin, result, f)).collect()
        }
        (Subject::Class(pattern), Quantity::Goodput { over, length }) => {
            let mut flows: HashMap<&str, Vec<&FlowResult>> = HashMap::new();
            let ancestry = Ancestry::of(&result.classes);
            for f in &result.flows {
                ancestry.from(&f.class).for_each(|class| flows.entry(class).or_default().push(f));
            }
            let found = classes(pattern, result).filter_map(|c| {
                let own = flows.get(c.name.as_str()).map_or(&[][..], Vec::as_slice);
                Some((c.name.as_str(), Bins::of_class(m, bin, result, own)?))
            });
            found.flat_map(|(name, bins)| rates(&bins, bin, (*over, *length), name)).collect()
        }
        (Subject::Link(pattern), Quantity::Series { column, at }) => {
            let links = result.links.iter().filter(|l| matches(pattern, &l.name));
            links.flat_map(|l| series(m, column.name, *at, result, (&l.name, result.duration_s))).collect()
        }
        (Subject::Link(pattern), Quantity::Field { field: Field::Link(metric), count }) => {
            fields(result.links.iter().map(|l| (l.name.as_str(), l)), pattern, metric, *count)
        }
        (Subject::Class(pattern), Quantity::Field { field: Field::Class(metric), count }) => {
            fields(classes(pattern, result).map(|c| (c.name.as_str(), c)), "*", metric, *count)
        }
        (Subject::Gateway, Quantity::Field { field: Field::Gateway(metric), count }) => {
            fields(result.gateway.iter().map(|g| ("gateway", g)), "*", metric, *count)
        }
        // The parser makes no other measure.
        _ => Vec::new(),
    }
}

/// Returns the classes that a pattern means. A class above others carries what they carry, so it is meant by
/// its name alone and not by a `*`: otherwise sums would count flows twice.
fn classes<'a>(pattern: &'a str, result: &'a RunResult) -> impl Iterator<Item = &'a ClassResult> {
    let above: HashSet<&str> = result.classes.iter().filter_map(|c| c.parent.as_deref()).collect();
    let meant = move |c: &&ClassResult| {
        matches(pattern, &c.name) && (pattern == c.name || !above.contains(c.name.as_str()))
    };
    result.classes.iter().filter(meant)
}

/// Returns the flows that the pattern names.
fn flows<'a>(m: &Measure, pattern: &str, result: &'a RunResult) -> Vec<&'a FlowResult> {
    // An unfinished flow has the size that was planned for it.
    let size = |f: &FlowResult| f.size_bytes.unwrap_or(f.bytes);
    let fits = |f: &FlowResult| m.sizes.is_none_or(|(min, max)| (min..=max).contains(&size(f)));
    result.flows.iter().filter(|f| matches(pattern, &f.id) && fits(f)).collect()
}

/// Returns the joint value of flows that share something, and their number. The value is their bytes over one
/// window, the measured time, or the highest sum of their targets at any time. `None` where the sum of the
/// samples is right.
pub(super) fn joint(m: &Measure, bin: Duration, result: &RunResult) -> Option<(f64, usize)> {
    let Subject::Flow(pattern) = &m.subject else { return None };
    let flows = flows(m, pattern, result);
    if flows.is_empty() {
        return None;
    }
    let sum = match m.quantity {
        Quantity::Goodput { over: OverTime::Average, .. } => {
            let bins = Bins::of_class(m, bin, result, &flows)?;
            bins.rate(bins.first, bins.last)?
        }
        Quantity::Field { field: Field::Flow(metric), count: None } => metric.jointly?(&flows)?,
        _ => return None,
    };
    Some((sum, flows.len()))
}

fn fields<'a, T>(
    objects: impl Iterator<Item = (&'a str, &'a T)>,
    pattern: &str,
    metric: &Metric<T>,
    count: Option<&str>,
) -> Vec<Sample> {
    objects
        .filter(|(name, _)| matches(pattern, name))
        .filter_map(|(name, o)| Some(Sample::found(value(metric, count, o)?, name.to_string())))
        .collect()
}

/// Returns the value of a metric, or of its count called `count`.
fn value<T>(metric: &Metric<T>, count: Option<&str>, of: &T) -> Option<Found> {
    match count {
        Some(name) => metric.count_of(of, name).map(Found::Known),
        None => metric.found(of),
    }
}

/// Returns the samples of one flow.
fn flow(m: &Measure, quantity: &Quantity, bin: Duration, result: &RunResult, f: &FlowResult) -> Vec<Sample> {
    let sample = |found, at| Sample { flow_rate: f.target_bps, ..Sample::found(found, at) };
    match quantity {
        Quantity::Series { column, at } => {
            // What was acknowledged stays, but a connection that is over has no window.
            let over = f.until_s() < result.duration_s && column.kind != SeriesKind::Acked;
            let end_s = if over { f.until_s() } else { result.duration_s };
            series(m, column.name, *at, result, (&f.id, end_s))
        }
        Quantity::Field { field: Field::Flow(metric), count } => {
            value(metric, *count, f).map(|v| sample(v, f.id.clone())).into_iter().collect()
        }
        Quantity::Field { .. } => Vec::new(),
        Quantity::Goodput { over, length } => {
            let Some(bins) = Bins::of(m, bin, result, f) else { return Vec::new() };
            if *over == OverTime::Average && bins.whole_life {
                return vec![sample(Found::Known(f.goodput_bps), f.id.clone())];
            }
            let found = rates(&bins, bin, (*over, *length), &f.id);
            found.into_iter().map(|s| Sample { flow_rate: f.target_bps, ..s }).collect()
        }
    }
}

/// Returns rates of the subject called `name`. Each has its time unless it covers all of the measured time. A
/// rate that the bins do not tell is an unknown sample.
fn rates(bins: &Bins, bin: Duration, (over, length): (OverTime, Duration), name: &str) -> Vec<Sample> {
    let t = |i: usize| bin.saturating_mul(i as u64).as_secs_f64();
    let span = |(bps, (from, to))| Sample::new(bps, format!("{name}, {:.3} to {:.3} s", t(from), t(to)));
    let found: Vec<Sample> = match over {
        OverTime::Average => {
            let (low, high) = bins.average();
            return vec![Sample { high, ..Sample::new(low, name.to_string()) }];
        }
        OverTime::Intervals => bins.intervals(length).into_iter().map(span).collect(),
        OverTime::Highest => bins.extreme(length, |a, b| a > b).into_iter().map(span).collect(),
        OverTime::Lowest => bins.extreme(length, |a, b| a < b).into_iter().map(span).collect(),
    };
    if found.is_empty() {
        return vec![Sample { high: f64::INFINITY, ..Sample::new(0.0, name.to_string()) }];
    }
    found
}

/// Returns samples of a column of the series called `name`, whose values hold until the next row. They are
/// the value `at` a time, or all values that hold between `from` and `until`; the first may hold since before
/// `from`, and the last holds until `end_s`. Unknown values are no samples.
fn series(
    m: &Measure,
    column: &str,
    at: Option<Duration>,
    result: &RunResult,
    (name, end_s): (&str, f64),
) -> Vec<Sample> {
    let Some((t_s, values)) = result.column(name, column) else { return Vec::new() };
    let nanos = |s: f64| (s * 1e9).round().max(0.0) as u64;
    let (from, until) = match at {
        Some(at) if at.as_nanos() > nanos(end_s) => return Vec::new(),
        Some(at) => (at.as_nanos(), at.as_nanos() + 1),
        None => (m.from.as_nanos(), m.until.map_or(u64::MAX, Duration::as_nanos).min(nanos(end_s))),
    };
    let times: Vec<u64> = t_s.iter().map(|&t| nanos(t)).collect();
    let first = times.partition_point(|&t| t <= from).saturating_sub(1);
    let mut out = Vec::new();
    for (i, (&t, &value)) in times.iter().zip(values).enumerate().skip(first) {
        if t >= until {
            break;
        }
        let next = times.get(i + 1).copied().unwrap_or(until).min(until);
        let begin = t.max(from);
        if next > begin && !value.is_nan() {
            let shown = at.unwrap_or(Duration::from_nanos(begin)).as_secs_f64();
            let weight = (next - begin) as f64 / 1e9;
            out.push(Sample { weight, ..Sample::new(value, format!("{name} at {shown:.6} s")) });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_finds_no_class_that_is_above_others() {
        let class = |name: &str, parent: Option<&str>| ClassResult {
            name: name.into(),
            parent: parent.map(Into::into),
            ..ClassResult::default()
        };
        let of = vec![class("site", None), class("ada", Some("site")), class("ben", Some("site"))];
        let result = RunResult { classes: of, ..RunResult::default() };
        let found = |pattern| classes(pattern, &result).map(|c| c.name.as_str()).collect::<Vec<_>>();
        assert_eq!(found("*"), ["ada", "ben"]);
        assert_eq!(found("a*"), ["ada"]);
        assert_eq!(found("site"), ["site"]);
        assert_eq!(found("s*"), [""; 0]);
    }
}
