//! Measures of a result, and the values that they must have.

use crate::result::metric::{Metric, Needs, OverTime, Recorded};
use crate::result::unit::Unit;
use crate::result::{ClassResult, FlowResult, GatewayResult, LinkResult};
use weir_core::link::{self, Aqm};
use weir_core::time::Duration;

/// Something measured from a result: a value, or one per flow, interval or position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// The path as it was written: `flow.ten.*.goodput_bps`.
    pub what: String,
    /// What it is about.
    pub subject: Subject,
    /// Which value of it.
    pub quantity: Quantity,
    /// Only flows that had so many bytes of payload, both included; `None` is any.
    pub sizes: Option<(u64, u64)>,
    /// Only from this time of the run on.
    pub from: Duration,
    /// Only up to this time of the run; `None` is the end.
    pub until: Option<Duration>,
}

/// What a measure is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Flows whose identifier matches the pattern, in which `*` is any run of characters.
    Flow(String),
    /// Links whose name ([`Plan::links`]) matches the pattern.
    Link(String),
    /// Classes whose name matches the pattern.
    Class(String),
    /// The gateway as a whole.
    Gateway,
}

/// Does `name` match `pattern`, in which `*` is any run of characters, dots included?
pub fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, tail)) => name
            .strip_prefix(head)
            .is_some_and(|rest| (0..=rest.len()).any(|i| rest.get(i..).is_some_and(|r| matches(tail, r)))),
    }
}

/// Has a link what a metric needs to be measured of it?
pub fn has(link: &link::Config, needs: Needs) -> bool {
    match needs {
        Needs::Rate => link.rate.is_some(),
        Needs::Filter => matches!(link.aqm, Aqm::AckFilter(_)),
        Needs::Marking => link.mark.is_some() || link.aqm.marks(),
        Needs::Emulation => !link.is_bare(),
        _ => true,
    }
}

/// Which value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Goodput, computed from what a flow received in the measured time.
    Goodput {
        /// Over what it is computed.
        over: OverTime,
        /// Length of intervals or windows; of an average all of the measured time.
        length: Duration,
    },
    /// A value of the result.
    Field {
        /// The metric.
        field: Field,
        /// Of counts by name, only the one of this name.
        count: Option<&'static str>,
    },
    /// A column of the flow's or link's series, which holds each value until the next.
    Series {
        /// The column.
        column: &'static Recorded,
        /// The value at this time; `None` is every value of the measured time, that at its beginning included.
        at: Option<Duration>,
    },
}

/// A metric of the catalogue, by what it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Of flows.
    Flow(&'static Metric<FlowResult>),
    /// Of links.
    Link(&'static Metric<LinkResult>),
    /// Of classes.
    Class(&'static Metric<ClassResult>),
    /// Of the gateway.
    Gateway(&'static Metric<GatewayResult>),
}

impl Field {
    /// Unit of its values.
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
    /// Unit of its values.
    pub const fn unit(&self) -> Unit {
        match self {
            Quantity::Goodput { .. } => Unit::Rate,
            Quantity::Field { field, .. } => field.unit(),
            Quantity::Series { column, .. } => column.unit,
        }
    }
}

/// A check on the result.
#[derive(Clone, Debug, PartialEq)]
pub struct Expect {
    /// What is measured.
    pub measure: Measure,
    /// How several values become one; `None` checks each.
    pub aggregate: Option<Aggregate>,
    /// The comparison.
    pub op: Op,
    /// What it is compared with.
    pub target: Target,
    /// The target is a part of this, its values made one as those of `measure` are; of their mean, where `aggregate` is `None`.
    pub of: Option<Of>,
    /// How far from the target is still right.
    pub tolerance: Tolerance,
}

/// What a target is a part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Of {
    /// Another measure of the same run.
    Measure(Measure),
    /// What is measured, in the baseline of this name, and aggregated in the same way.
    Baseline(String),
}

/// How several values become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// Their sum.
    Sum,
    /// Their arithmetic mean.
    Mean,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The nearest rank: the smallest value that so many percent of all do not exceed.
    Percentile(u8),
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// No further from the target than the tolerance, on either side.
    Within,
    /// At most target + tolerance.
    AtMost,
    /// At least target - tolerance.
    AtLeast,
}

/// What a value is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Target {
    /// This value, in the unit of the metric.
    Value(f64),
    /// The rate that the gateway is set to for the flow (`flow_rate` of its class).
    FlowRate,
}

/// How far from a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// This much, in the unit of the metric.
    Absolute(f64),
    /// This fraction of the target: 0.005 is 0.5 %.
    Relative(f64),
}

/// What a paper reports for the same experiment, to be shown beside what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The source, with its figure.
    pub source: String,
    /// The rows of the comparison.
    pub rows: Vec<ReferenceRow>,
}

/// One value that a paper reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceRow {
    /// What it is, for people.
    pub name: String,
    /// The paper's value as it is printed there.
    pub paper: String,
    /// What of ours stands beside it.
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
