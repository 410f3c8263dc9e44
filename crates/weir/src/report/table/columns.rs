//! Metrics as columns: their headings, and their values as cells.

use super::clean;
use super::grid::Column;
use crate::result::metric::{Heading, Metric, Total, Value};
use crate::result::unit::Unit;
use crate::result::Counts;

/// The unit that all rates of a table are in, so that they can be compared at a glance: its name, and how many bits per
/// second it is.
pub(super) type RateUnit = (&'static str, f64);

/// The unit for a table with these rates.
pub(super) fn rate_unit(rates: impl Iterator<Item = f64>) -> RateUnit {
    if rates.fold(0.0, f64::max) >= 1e6 {
        ("Mbit/s", 1e6)
    } else {
        ("kbit/s", 1e3)
    }
}

/// The metrics that have a column, with its heading.
pub(super) fn shown<T>(metrics: &'static [Metric<T>]) -> impl Iterator<Item = (&'static Metric<T>, Heading)> {
    metrics.iter().filter_map(|m| Some((m, m.column?)))
}

/// The column of a metric; without `rates` each rate has a unit of its own.
pub(super) fn column<T>(metric: &Metric<T>, heading: Heading, rates: Option<RateUnit>) -> Column {
    match heading.below {
        _ if metric.has_names() => Column::words(heading.text),
        "" => Column::numbers(heading.text, unit(metric.unit, rates)),
        below => Column::numbers(heading.text, below),
    }
}

/// The unit of a column, for its heading.
pub(super) fn unit(unit: Unit, rates: Option<RateUnit>) -> &'static str {
    match unit {
        Unit::Rate => rates.map_or("", |(name, _)| name),
        Unit::Micros => "ms",
        Unit::Seconds => "s",
        Unit::Share | Unit::Deviation => "%",
        Unit::Bytes | Unit::Count => "",
    }
}

/// A value as a cell.
pub(super) fn number(unit: Unit, v: f64, rates: Option<RateUnit>) -> String {
    match (unit, rates) {
        (Unit::Rate, Some((_, bps))) => format!("{:.3}", v / bps),
        (Unit::Rate, None) | (Unit::Bytes, _) => unit.show(v),
        (Unit::Micros, _) => format!("{:.2}", v / 1e3),
        (Unit::Seconds, _) => format!("{v:.3}"),
        (Unit::Share, _) => format!("{:.1}", v * 100.0),
        (Unit::Deviation, _) => format!("{:+.2}", v * 100.0),
        (Unit::Count, _) => format!("{v:.0}"),
    }
}

/// A value of which only a lower bound is known; nothing where that says nothing.
pub(super) fn at_least(unit: Unit, v: f64, rates: Option<RateUnit>) -> String {
    match v > 0.0 {
        true => format!(">={}", number(unit, v, rates)),
        false => String::new(),
    }
}

/// The total of a metric over several things as a cell, empty if it was not measured of any.
pub(super) fn total<T>(metric: &Metric<T>, of: &[&T], rates: Option<RateUnit>) -> String {
    if let Some(Value::Counts(each)) = metric.value {
        let mut all = Counts::new();
        for (name, n) in of.iter().flat_map(|&of| each(of)) {
            *all.entry(name.clone()).or_default() += n;
        }
        return counts(&all);
    }
    let measured = metric.measured(of);
    metric.total_of(of).map_or(String::new(), |v| number(metric.unit, v, rates) + &measured.to_string())
}

/// `queue_full 12, loss 3`; empty for none.
pub(super) fn counts(c: &Counts) -> String {
    let some = c.iter().filter(|(_, n)| **n > 0);
    some.map(|(name, n)| format!("{} {n}", clean(name))).collect::<Vec<_>>().join(", ")
}

/// Headings of the metrics with this total, for notes: `retr and rto`.
pub(super) fn headings<T: 'static>(
    metrics: impl Iterator<Item = &'static Metric<T>>,
    wanted: impl Fn(&Metric<T>) -> bool,
) -> String {
    let names: Vec<&str> = metrics.filter(|m| wanted(m)).filter_map(|m| Some(m.column?.text)).collect();
    match names.split_last() {
        Some((last, [])) => last.to_string(),
        Some((last, init)) => format!("{} and {last}", init.join(", ")),
        None => "none".to_string(),
    }
}

/// Is the metric a mean within a group?
pub(super) fn is_mean<T>(metric: &Metric<T>) -> bool {
    metric.total == Total::Mean
}
