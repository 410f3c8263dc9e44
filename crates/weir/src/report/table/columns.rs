//! Metrics as columns: their headings, and their values as cells.

use super::clean;
use super::grid::Column;
use crate::result::metric::{Heading, Metric, Total, Value};
use crate::result::unit::Unit;
use crate::result::Counts;

/// Common unit of all rates of a table, for comparison at a glance: its name, and its size in bits per
/// second.
pub(super) type RateUnit = (&'static str, f64);

/// Returns the unit for a table with these rates.
pub(super) fn rate_unit(rates: impl Iterator<Item = f64>) -> RateUnit {
    if rates.fold(0.0, f64::max) >= 1e6 {
        ("Mbit/s", 1e6)
    } else {
        ("kbit/s", 1e3)
    }
}

/// Returns the metrics with a column, each with its heading.
pub(super) fn shown<T>(metrics: &'static [Metric<T>]) -> impl Iterator<Item = (&'static Metric<T>, Heading)> {
    metrics.iter().filter_map(|m| Some((m, m.column?)))
}

/// Returns the column of a metric; without `rates` each rate has a unit of its own.
pub(super) fn column<T>(metric: &Metric<T>, heading: Heading, rates: Option<RateUnit>) -> Column {
    match heading.below {
        _ if metric.has_names() => Column::words(heading.text),
        "" => Column::numbers(heading.text, unit(metric.unit, rates)),
        below => Column::numbers(heading.text, below),
    }
}

/// Returns the unit of a column, for its heading.
pub(super) fn unit(unit: Unit, rates: Option<RateUnit>) -> &'static str {
    match unit {
        Unit::Rate => rates.map_or("", |(name, _)| name),
        Unit::Micros => "ms",
        Unit::Seconds => "s",
        Unit::Share | Unit::Deviation => "%",
        Unit::Bytes | Unit::Count => "",
    }
}

/// Formats a value as a cell.
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

/// Formats a value with a known lower bound only; an empty cell if the bound is zero.
pub(super) fn at_least(unit: Unit, v: f64, rates: Option<RateUnit>) -> String {
    match v > 0.0 {
        true => format!(">={}", number(unit, v, rates)),
        false => String::new(),
    }
}

/// Formats the total of a metric over several things as a cell; empty if no value was measured.
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

/// Formats counts as `queue_full 12, loss 3`; empty for none.
pub(super) fn counts(c: &Counts) -> String {
    let some = c.iter().filter(|(_, n)| **n > 0);
    some.map(|(name, n)| format!("{} {n}", clean(name))).collect::<Vec<_>>().join(", ")
}

/// Returns the headings of the metrics with this total, for notes: `retr and rto`.
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

/// Returns whether the metric is a mean within a group.
pub(super) fn is_mean<T>(metric: &Metric<T>) -> bool {
    metric.total == Total::Mean
}
