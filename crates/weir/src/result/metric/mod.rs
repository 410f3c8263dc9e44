//! Catalogue of the metrics that can be checked, shown and compared, one row each.
//!
//! A metric has a name, which is the path of its value in the result's JSON, a unit and a value. Its row also
//! says how the values of several flows (links, classes) are combined. Checks, tables, comparisons, summaries
//! and charts take their names from the catalogue.

mod flow;
mod gateway;
mod link;
mod series;
mod values;

pub use flow::FLOW;
pub use gateway::{CLASS, GATEWAY};
pub use link::LINK;
pub use series::{Recorded, SeriesKind, SERIES};
pub use values::Values;

use super::unit::Unit;
use super::{Counts, FlowResult};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Metric of a `T` of a result: of a flow, a link, a class or the gateway.
pub struct Metric<T: 'static> {
    /// Path of the value in the JSON of a `T`: `rtt_us.p50`.
    pub name: &'static str,
    /// Unit of the value.
    pub unit: Unit,
    /// Combination of the values of several things.
    pub total: Total,
    /// Part of the plan without which the metric is not measured.
    pub needs: Needs,
    /// Description in the words of the manual.
    pub about: &'static str,
    /// Source of the value in a `T`; `None` if it is only computed over time.
    pub value: Option<Value<T>>,
    /// Lower bound of a value that exists and is unknown, such as the completion time of a flow that had not
    /// ended. 0 where nothing is known. `None` if there is no value: then nothing can be measured.
    pub at_least: Option<fn(&T) -> Option<f64>>,
    /// Upper bound of such a value; `None` if there is none.
    pub at_most: Option<fn(&T) -> Option<f64>>,
    /// Joint value of several things that share something, such as the flows of a class or a run. Present
    /// only where it differs from the total.
    pub jointly: Option<Joint<T>>,
    /// Computation from the bytes that flows received over time, where a check asks for it.
    pub over_time: Option<OverTime>,
    /// Column in tables.
    pub column: Option<Heading>,
    /// Name in `[parity]`, if results are judged by the metric.
    pub judged: Option<&'static str>,
    /// Flag: checks can name the metric.
    pub checked: bool,
}

/// Source of a metric's value.
pub enum Value<T: 'static> {
    /// Number; `None` if it was not measured.
    Number(fn(&T) -> Option<f64>),
    /// Counts by name; the value is their sum.
    Counts(fn(&T) -> &Counts),
}

/// Knowledge of an existing value of a `T`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found {
    /// The value.
    Known(f64),
    /// Lower bound of the value.
    AtLeast(f64),
    /// Lower and upper bound of the value.
    Between(f64, f64),
}

impl Found {
    /// Returns the value, or its lower bound.
    pub const fn low(self) -> f64 {
        match self {
            Found::Known(v) | Found::AtLeast(v) | Found::Between(v, _) => v,
        }
    }

    /// Returns the value, or its upper bound, which may be infinite.
    pub const fn high(self) -> f64 {
        match self {
            Found::Known(v) | Found::Between(_, v) => v,
            Found::AtLeast(_) => f64::INFINITY,
        }
    }
}

/// Number of known values among the existing ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Number of known values.
    pub n: u64,
    /// Number of existing values.
    pub of: u64,
}

impl Measured {
    /// Returns whether all values are known.
    pub const fn is_all(self) -> bool {
        self.n == self.of
    }

    /// Adds the numbers of other things.
    pub const fn and(self, other: Measured) -> Measured {
        Measured { n: self.n + other.n, of: self.of + other.of }
    }

    /// Returns the known share; 1 if there is no value.
    pub fn share(self) -> f64 {
        if self.of == 0 {
            1.0
        } else {
            self.n as f64 / self.of as f64
        }
    }
}

/// Writes ` (3 of 4)`; writes an empty string if all values are known.
impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_all() {
            true => Ok(()),
            false => write!(f, " ({} of {})", self.n, self.of),
        }
    }
}

/// Computation of a joint value.
pub type Joint<T> = fn(&[&T]) -> Option<f64>;

/// Combination of several values into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Total {
    /// Their sum.
    Sum,
    /// Their arithmetic mean.
    Mean,
    /// The smallest.
    Least,
    /// The largest.
    Most,
    /// The one furthest from zero.
    Furthest,
    /// The common value if all are equal, and none otherwise.
    Same,
}

impl Total {
    /// Combines the values of a group. Returns `None` without values, except for sums.
    pub fn of(self, values: &[f64]) -> Option<f64> {
        match self {
            Total::Sum => Some(sum(values)),
            Total::Mean => mean(values),
            Total::Least => values.iter().copied().reduce(f64::min),
            Total::Most => values.iter().copied().reduce(f64::max),
            Total::Furthest => values.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs())),
            Total::Same => values.first().copied().filter(|first| values.iter().all(|v| v == first)),
        }
    }
}

fn sum(values: &[f64]) -> f64 {
    // The standard library's empty sum is -0.0.
    values.iter().fold(0.0, |sum, v| sum + v)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| sum(values) / values.len() as f64)
}

/// Part of a plan without which a metric is not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// No requirement.
    Nothing,
    /// A flow of TCP.
    Tcp,
    /// A flow of UDP.
    Udp,
    /// A flow with a last byte.
    LastByte,
    /// A gateway.
    Gateway,
    /// A flow with data both ways.
    BothWays,
    /// A flow of requests and responses.
    Requests,
    /// A flow whose application pauses.
    Pauses,
    /// A link with a rate, and so with a queue.
    Rate,
    /// A link that marks.
    Marking,
    /// A link with an ACK filter.
    Filter,
    /// A link with any emulation.
    Emulation,
    /// A class with a policy.
    Policy,
    /// A class with a queue.
    Queue,
    /// A class that guarantees each flow a rate.
    FlowMin,
    /// A class that is paced.
    Pace,
    /// The lab: in virtual time no processor time passes, and no engine is away.
    Lab,
}

/// Computation of a check from the bytes that a flow received over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverTime {
    /// The average over all of the measured time.
    Average,
    /// Each whole interval.
    Intervals,
    /// The highest of all windows.
    Highest,
    /// The lowest of all windows.
    Lowest,
}

impl OverTime {
    /// Returns the key for the length of the intervals or windows.
    pub const fn key(self) -> Option<&'static str> {
        match self {
            OverTime::Average => None,
            OverTime::Intervals => Some("every"),
            OverTime::Highest | OverTime::Lowest => Some("window"),
        }
    }
}

/// The heading of a metric's column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heading {
    /// First line.
    pub text: &'static str,
    /// Second line, where it is not the unit.
    pub below: &'static str,
    /// Tables with this column.
    pub tables: Tables,
}

/// Tables with a column; each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tables {
    /// Table of a run.
    Run,
    /// Comparisons, and JSON summaries of several seeds.
    Comparisons,
    /// All tables, those of several runs too.
    All,
}

impl<T> Metric<T> {
    /// Creates a metric with this name, unit and total. Its values are set by the calls that follow.
    const fn new(
        name: &'static str,
        unit: Unit,
        total: Total,
        needs: Needs,
        about: &'static str,
    ) -> Metric<T> {
        Metric {
            name,
            unit,
            total,
            needs,
            about,
            value: None,
            at_least: None,
            at_most: None,
            jointly: None,
            over_time: None,
            column: None,
            judged: None,
            checked: true,
        }
    }

    const fn number(mut self, of: fn(&T) -> Option<f64>) -> Metric<T> {
        self.value = Some(Value::Number(of));
        self
    }

    const fn counts(mut self, of: fn(&T) -> &Counts) -> Metric<T> {
        self.value = Some(Value::Counts(of));
        self
    }

    const fn at_least(mut self, of: fn(&T) -> Option<f64>) -> Metric<T> {
        self.at_least = Some(of);
        self
    }

    const fn at_most(mut self, of: fn(&T) -> Option<f64>) -> Metric<T> {
        self.at_most = Some(of);
        self
    }

    const fn jointly(mut self, of: Joint<T>) -> Metric<T> {
        self.jointly = Some(of);
        self
    }

    const fn over_time(mut self, how: OverTime) -> Metric<T> {
        self.over_time = Some(how);
        self
    }

    const fn column(mut self, text: &'static str, tables: Tables) -> Metric<T> {
        self.column = Some(Heading { text, below: "", tables });
        self
    }

    /// Adds a column with two lines of heading to the table of a run.
    const fn column_of(mut self, text: &'static str, below: &'static str) -> Metric<T> {
        self.column = Some(Heading { text, below, tables: Tables::Run });
        self
    }

    const fn judged_as(mut self, name: &'static str) -> Metric<T> {
        self.judged = Some(name);
        self
    }

    const fn unchecked(mut self) -> Metric<T> {
        self.checked = false;
        self
    }

    /// Returns the value in `of`; `None` if it was not measured.
    pub fn of(&self, of: &T) -> Option<f64> {
        match self.value.as_ref()? {
            Value::Number(number) => number(of),
            Value::Counts(counts) => {
                Some(counts(of).values().fold(0, |sum: u64, n| sum.saturating_add(*n)) as f64)
            }
        }
    }

    /// Returns the knowledge of the value in `of`; `None` if it has no value.
    pub fn found(&self, of: &T) -> Option<Found> {
        let bound = || {
            let low = self.at_least.and_then(|bound| bound(of))?;
            let high = self.at_most.and_then(|bound| bound(of));
            Some(high.map_or(Found::AtLeast(low), |high| Found::Between(low, high)))
        };
        self.of(of).map(Found::Known).or_else(bound)
    }

    /// Counts the known and the existing values.
    pub fn measured(&self, several: &[&T]) -> Measured {
        let found = || several.iter().filter_map(|of| self.found(of));
        let known = found().filter(|found| matches!(found, Found::Known(_)));
        Measured { n: known.count() as u64, of: found().count() as u64 }
    }

    /// Returns the total of the known values of several things; `None` if no value was measured.
    pub fn total_of(&self, several: &[&T]) -> Option<f64> {
        let values: Vec<f64> = several.iter().filter_map(|of| self.of(of)).collect();
        self.total.of(&values).filter(|_| !values.is_empty())
    }

    /// Returns the joint value of several things that share something; `None` if no value was measured.
    pub fn together(&self, several: &[&T]) -> Option<f64> {
        self.jointly.map_or_else(|| self.total_of(several), |joint| joint(several))
    }

    /// Returns the count called `name`: 0 if it did not occur.
    pub fn count_of(&self, of: &T, name: &str) -> Option<f64> {
        match self.value.as_ref()? {
            Value::Number(_) => None,
            Value::Counts(counts) => Some(counts(of).get(name).copied().unwrap_or(0) as f64),
        }
    }

    /// Returns whether the value is a sum of named counts.
    pub const fn has_names(&self) -> bool {
        matches!(self.value, Some(Value::Counts(_)))
    }

    /// Returns whether these tables have a column for the metric.
    pub fn is_in(&self, tables: Tables) -> bool {
        self.column.is_some_and(|c| c.tables >= tables)
    }
}

/// Metrics of the same things are equal if their names are.
impl<T> PartialEq for Metric<T> {
    fn eq(&self, other: &Metric<T>) -> bool {
        self.name == other.name
    }
}

impl<T> Eq for Metric<T> {}

impl<T> fmt::Debug for Metric<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Returns the metrics of flows in tables of several runs; those that results are judged by come first.
pub fn of_several(tables: Tables) -> impl Iterator<Item = &'static Metric<FlowResult>> {
    let shown =
        move |judged: bool| FLOW.iter().filter(move |m| m.is_in(tables) && m.judged.is_some() == judged);
    shown(true).chain(shown(false))
}

/// Returns the value; results write 0 for an unmeasured one.
fn measured(n: u64) -> Option<f64> {
    (n > 0).then_some(n as f64)
}

fn whole(n: u64) -> Option<f64> {
    Some(n as f64)
}

#[cfg(test)]
mod tests;
