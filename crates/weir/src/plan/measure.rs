//! What is measured from a result, and what it must be.

use weir_core::time::Duration;

/// Something measured from a result: a value, or one per flow, interval or position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// The path as it was written: `flow.ten.*.goodput_bps`.
    pub what: String,
    /// What it is about.
    pub subject: Subject,
    /// Which value of it.
    pub metric: Metric,
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

/// Which value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Average goodput over the measured time, in bits per second.
    Goodput,
    /// Goodput of each whole interval of this length, in bits per second.
    Intervals(Duration),
    /// The highest goodput over any window of this length that fits, in bits per second.
    MaxOver(Duration),
    /// The lowest, likewise.
    MinOver(Duration),
    /// A field of the result's object, by its path there: `["rtt_us", "p99"]`. A field that is an
    /// object of counts means their sum.
    Field(Vec<String>),
    /// A column of the flow's or link's series, which holds each value until the next.
    Series {
        /// Its name: `acked_bytes`.
        column: String,
        /// The value at this time; `None` is every value of the measured time, that at its beginning included.
        at: Option<Duration>,
    },
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
    /// How far from the target is still right.
    pub tolerance: Tolerance,
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
