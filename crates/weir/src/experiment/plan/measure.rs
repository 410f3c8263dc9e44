//! Measures of a result, and the expected values.

use crate::result::metric::{Metric, Needs, OverTime, Recorded};
use crate::result::unit::Unit;
use crate::result::{Basis, ClassResult, FlowResult, GatewayResult, LinkResult};
use weir_core::link::{self, Aqm};
use weir_core::time::Duration;

/// Quantity measured from a result: a value, or one per flow, interval or position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Path as written in the file, such as `flow.ten.*.goodput_bps`.
    pub what: String,
    /// Subject of the measure.
    pub subject: Subject,
    /// Measured quantity of the subject.
    pub quantity: Quantity,
    /// Range of payload bytes that flows must have, inclusive; `None` is any.
    pub sizes: Option<(u64, u64)>,
    /// Start of the measured time in the run.
    pub from: Duration,
    /// End of the measured time in the run; `None` is the run's end.
    pub until: Option<Duration>,
}

/// Subject of a measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Flows whose identifier matches the pattern, in which `*` is any sequence of characters.
    Flow(String),
    /// Links whose name ([`Plan::links`](super::Plan::links)) matches the pattern.
    Link(String),
    /// Classes whose name matches the pattern.
    Class(String),
    /// The gateway as a whole.
    Gateway,
}

/// Returns whether `name` matches `pattern`, in which `*` is any sequence of characters, dots included.
pub fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => name
            .strip_prefix(head)
            .is_some_and(|rest| (0..=rest.len()).any(|i| rest.get(i..).is_some_and(|r| matches(tail, r)))),
    }
}

/// Returns whether a link provides the values that a metric needs.
pub fn has(link: &link::Config, needs: Needs) -> bool {
    match needs {
        Needs::Rate => link.rate.is_some(),
        Needs::Filter => matches!(link.aqm, Aqm::AckFilter(_)),
        Needs::Marking => link.mark.is_some() || link.aqm.marks(),
        Needs::Emulation => !link.is_bare(),
        _ => true,
    }
}

/// Measured quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Goodput, computed from the bytes that a flow received in the measured time.
    Goodput {
        /// Intervals that it is computed over.
        over: OverTime,
        /// Length of intervals or windows; for an average, all of the measured time.
        length: Duration,
    },
    /// A field of the result.
    Field {
        /// The metric.
        field: Field,
        /// Name of the only count to use, for counts by name.
        count: Option<&'static str>,
    },
    /// A column of the flow's or link's series. Each value holds until the next.
    Series {
        /// Column of the series.
        column: &'static Recorded,
        /// Time of the value. `None` is every value of the measured time, including the one at its beginning.
        at: Option<Duration>,
    },
}

/// Metric of the catalogue, by its subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Metric of flows.
    Flow(&'static Metric<FlowResult>),
    /// Metric of links.
    Link(&'static Metric<LinkResult>),
    /// Metric of classes.
    Class(&'static Metric<ClassResult>),
    /// Metric of the gateway.
    Gateway(&'static Metric<GatewayResult>),
}

impl Field {
    /// Returns the unit of the metric's values.
    pub const fn unit(self) -> Unit {
        match self {
            Field::Flow(m) => m.unit,
            Field::Link(m) => m.unit,
            Field::Class(m) => m.unit,
            Field::Gateway(m) => m.unit,
        }
    }
}

impl Quantity {
    /// Returns the unit of the quantity's values.
    pub const fn unit(&self) -> Unit {
        match self {
            Quantity::Goodput { .. } => Unit::Rate,
            Quantity::Field { field, .. } => field.unit(),
            Quantity::Series { column, .. } => column.unit,
        }
    }
}

/// Check on the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Expect {
    /// Measure to check.
    pub measure: Measure,
    /// Aggregate of several values; `None` checks each value.
    pub aggregate: Option<Aggregate>,
    /// Comparison.
    pub op: Op,
    /// Value to compare with.
    pub target: Target,
    /// Base of the target, if the target is a fraction of another value. The base's values are aggregated
    /// like those of `measure`, or by their mean if `aggregate` is `None`.
    pub of: Option<Of>,
    /// Allowed distance from the target.
    pub tolerance: Tolerance,
    /// Origin of the bound.
    pub basis: Option<Basis>,
}

/// Base that a target is a fraction of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Of {
    /// Another measure of the same run.
    Measure(Measure),
    /// Value of this measure and aggregate in the baseline of this name.
    Baseline(String),
}

/// Aggregate of several values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// Sum.
    Sum,
    /// Arithmetic mean.
    Mean,
    /// Minimum.
    Min,
    /// Maximum.
    Max,
    /// Standard deviation, of all values and not of a sample of them.
    Deviation,
    /// Percentile by nearest rank: the smallest value that at least this percentage of all values does not
    /// exceed.
    Percentile(u8),
}

/// Comparison of a value with the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// The value differs from the target by at most the tolerance.
    Within,
    /// The value is at most target + tolerance.
    AtMost,
    /// The value is at least target - tolerance.
    AtLeast,
}

/// Value to compare with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// Fixed value, in the unit of the metric.
    Value(f64),
    /// Rate that the gateway is configured to give the flow (`flow_rate` of its class).
    FlowRate,
}

/// Allowed distance from a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// Absolute distance, in the unit of the metric.
    Absolute(f64),
    /// Fraction of the target; 0.005 is 0.5 %.
    Relative(f64),
}

/// Values that a paper reports for the same experiment, shown beside the results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Source with its figure.
    pub source: String,
    /// Rows of the comparison.
    pub rows: Vec<ReferenceRow>,
}

/// One value that a paper reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceRow {
    /// Name of the value for readers.
    pub name: String,
    /// The paper's value as printed there.
    pub paper: String,
    /// Measure to show beside it.
    pub measure: Measure,
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        assert!(
            matches("ten.*", "ten.11")
                && matches("*", "")
                && matches("*.1", "a.b.1")
                && matches("a*c", "abc")
        );
        assert!(!matches("ten.*", "tend") && !matches("ten", "ten.0") && !matches("a*c", "ab"));
    }
}
