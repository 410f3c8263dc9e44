//! The catalogue of metrics: what can be checked, shown and compared, a row for each.
//!
//! A metric is its name, which is the path of its value in the result's JSON, its unit, the value, and how the values of
//! several flows (links, classes) become one. Checks, tables, comparisons, summaries and charts ask the catalogue, and
//! have no names of their own.

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

/// A value of a `T` of a result: of a flow, a link, a class or the gateway.
pub struct Metric<T: 'static> {
    /// Path of the value in the JSON of a `T`: `rtt_us.p50`.
    pub name: &'static str,
    /// Unit of the value.
    pub unit: Unit,
    /// How the values of several become one.
    pub total: Total,
    /// What there must be for it to be measured.
    pub needs: Needs,
    /// What it is, as the manual says it.
    pub about: &'static str,
    /// How it is found in a `T`; `None` if it is only computed over time.
    pub value: Option<Value<T>>,
    /// A lower bound of the value of a `T` that has one which is not known: its completion time, where it had
    /// not ended. 0 where nothing is known of it. `None` if it has none: nothing can be measured of it.
    pub at_least: Option<fn(&T) -> Option<f64>>,
    /// What several have together that share something, the flows of a class or of a run, where that is not the total.
    pub jointly: Option<Joint<T>>,
    /// How it is computed from what flows received over time, where a check asks for that.
    pub over_time: Option<OverTime>,
    /// Its column in tables.
    pub column: Option<Heading>,
    /// What `[parity]` calls it, if results are judged by it.
    pub judged: Option<&'static str>,
    /// Whether checks can name it.
    pub checked: bool,
}

/// How a metric is found.
pub enum Value<T: 'static> {
    /// A number; `None` if it was not measured.
    Number(fn(&T) -> Option<f64>),
    /// Counts by name, of which the sum is the value.
    Counts(fn(&T) -> &Counts),
}

/// Knowledge of the value of a `T` that has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Found {
    /// The value.
    Known(f64),
    /// A lower bound of it.
    AtLeast(f64),
}

impl Found {
    /// The value, or its lower bound.
    pub const fn low(self) -> f64 {
        match self {
            Found::Known(v) | Found::AtLeast(v) => v,
        }
    }

    /// The value, or infinity.
    pub const fn high(self) -> f64 {
        match self {
            Found::Known(v) => v,
            Found::AtLeast(_) => f64::INFINITY,
        }
    }
}

/// Numbers of things of which a value is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// Number of things of which it is known.
    pub n: u64,
    /// Number of things that have one.
    pub of: u64,
}

impl Measured {
    /// Returns whether it is known of all.
    pub const fn is_all(self) -> bool {
        self.n == self.of
    }

    /// Adds the numbers of others.
    pub const fn and(self, other: Measured) -> Measured {
        Measured { n: self.n + other.n, of: self.of + other.of }
    }

    /// The share of which it is known; of nothing, all.
    pub fn share(self) -> f64 {
        if self.of == 0 {
            1.0
        } else {
            self.n as f64 / self.of as f64
        }
    }
}

/// ` (3 of 4)`; empty where it is known of all.
impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_all() {
            true => Ok(()),
            false => write!(f, " ({} of {})", self.n, self.of),
        }
    }
}

/// What several have together.
pub type Joint<T> = fn(&[&T]) -> Option<f64>;

/// How several values become one.
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
    /// One value if all are the same, and none otherwise.
    Same,
}

impl Total {
    /// Of the values of a group; `None` of none, but for sums.
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
    // The sum of nothing that the standard library has is -0.0.
    values.iter().fold(0.0, |sum, v| sum + v)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| sum(values) / values.len() as f64)
}

/// What a plan must have for a metric to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
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
    /// A link that does anything at all.
    Emulation,
    /// A class with a policy.
    Policy,
    /// A class with a queue.
    Queue,
    /// A class that guarantees each of its flows a rate.
    FlowMin,
    /// A class that is paced.
    Pace,
    /// The lab: in virtual time nothing takes processor time, and no engine is away.
    Lab,
}

/// What a check computes from the bytes that a flow received over time.
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
    /// The key that gives the length of its intervals or windows.
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
    /// Its first line.
    pub text: &'static str,
    /// Its second line, where it is not the unit.
    pub below: &'static str,
    /// Which tables have the column.
    pub tables: Tables,
}

/// Which tables have a column, each those before it included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tables {
    /// That of a run.
    Run,
    /// Comparisons, and summaries of several seeds as JSON.
    Comparisons,
    /// Those of several runs: all of them.
    All,
}

impl<T> Metric<T> {
    /// A metric with this name, unit and total, that nothing is known of yet.
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

    /// A column of a run's table whose heading has a second line.
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

    /// The value in `of`; `None` if it was not measured.
    pub fn of(&self, of: &T) -> Option<f64> {
        match self.value.as_ref()? {
            Value::Number(number) => number(of),
            Value::Counts(counts) => Some(counts(of).values().sum::<u64>() as f64),
        }
    }

    /// Returns what is known of the value in `of`; `None` if it has none.
    pub fn found(&self, of: &T) -> Option<Found> {
        let bound = || self.at_least.and_then(|bound| bound(of)).map(Found::AtLeast);
        self.of(of).map(Found::Known).or_else(bound)
    }

    /// Counts the things of which it is known.
    pub fn measured(&self, several: &[&T]) -> Measured {
        let found = || several.iter().filter_map(|of| self.found(of));
        let known = found().filter(|found| matches!(found, Found::Known(_)));
        Measured { n: known.count() as u64, of: found().count() as u64 }
    }

    /// The total of several that are alike, of those of which it is known; `None` if it was not measured of
    /// any.
    pub fn total_of(&self, several: &[&T]) -> Option<f64> {
        let values: Vec<f64> = several.iter().filter_map(|of| self.of(of)).collect();
        self.total.of(&values).filter(|_| !values.is_empty())
    }

    /// What several have together that share something; `None` if it was not measured of any.
    pub fn together(&self, several: &[&T]) -> Option<f64> {
        self.jointly.map_or_else(|| self.total_of(several), |joint| joint(several))
    }

    /// Of counts by name, the one called `name`: 0 if it did not occur.
    pub fn count_of(&self, of: &T, name: &str) -> Option<f64> {
        match self.value.as_ref()? {
            Value::Number(_) => None,
            Value::Counts(counts) => Some(counts(of).get(name).copied().unwrap_or(0) as f64),
        }
    }

    /// Is its value a sum of counts that have names of their own?
    pub const fn has_names(&self) -> bool {
        matches!(self.value, Some(Value::Counts(_)))
    }

    /// Has it a column in these tables?
    pub fn is_in(&self, tables: Tables) -> bool {
        self.column.is_some_and(|c| c.tables >= tables)
    }
}

/// Two metrics of the same things are the same if they have the same name.
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

/// Metrics of flows in tables of several runs: those that results are judged by come first.
pub fn of_several(tables: Tables) -> impl Iterator<Item = &'static Metric<FlowResult>> {
    let shown =
        move |judged: bool| FLOW.iter().filter(move |m| m.is_in(tables) && m.judged.is_some() == judged);
    shown(true).chain(shown(false))
}

/// What was not measured is 0 in results.
fn measured(n: u64) -> Option<f64> {
    (n > 0).then_some(n as f64)
}

fn whole(n: u64) -> Option<f64> {
    Some(n as f64)
}

#[cfg(test)]
mod tests;
