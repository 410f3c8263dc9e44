//! Distributions of sizes and times: a plain quantity, or a table that names one.
//!
//! ```toml
//! bytes = { uniform = ["1kB", "100kB"] }                       # both included
//! bytes = { exponential = "30kB" }                             # its mean
//! bytes = { pareto = "10kB", shape = 1.2, max = "10MB" }       # smallest value; lower draws become `min`
//! bytes = { bounded_pareto = "1kB", shape = 0.5, max = "5MB" } # nothing is drawn beyond
//! bytes = { list = ["1kB", "5kB", "5kB"] }                     # each alike
//! arrivals = { poisson = "100/s" }                             # exponential gaps of 10 ms on average
//! ```

use super::diag::Fault;
use super::reader::{FromValue, Number, Section, Size};
use super::units;
use super::value;
use toml::de::DeValue;
use weir_core::dist::Distribution;
use weir_core::time::Duration;

/// Quantity of a distribution.
#[derive(Clone, Copy)]
struct Quantity {
    parse: fn(&DeValue) -> Result<u64, Fault>,
    /// Two example values, for messages.
    pair: &'static str,
    /// Fault if all values are zero; `None` if zeros are allowed.
    zero: Option<&'static str>,
    /// Flag: rates of arrivals are allowed.
    poisson: bool,
}

/// Reads a distribution of sizes in bytes; not all of them may be zero.
pub(super) fn sizes(s: &Section, key: &'static str) -> Option<Distribution> {
    let parse = |v: &DeValue| Size::from_value(v).map(|Size(n)| n);
    read(
        s,
        key,
        Quantity {
            parse,
            pair: "[\"1kB\", \"100kB\"]",
            zero: Some("0 bytes: a flow has one at least"),
            poisson: false,
        },
    )
}

/// Reads a distribution of durations in nanoseconds; not all of them may be zero.
pub(super) fn times(s: &Section, key: &'static str) -> Option<Distribution> {
    read(
        s,
        key,
        Quantity { parse: nanos, pair: "[\"1ms\", \"10ms\"]", zero: Some("no time at all"), poisson: false },
    )
}

/// Reads a distribution of times between arrivals in nanoseconds.
pub(super) fn gaps(s: &Section, key: &'static str) -> Option<Distribution> {
    read(s, key, Quantity { parse: nanos, pair: "[\"1ms\", \"10ms\"]", zero: None, poisson: true })
}

fn nanos(value: &DeValue) -> Result<u64, Fault> {
    Duration::from_value(value).map(Duration::as_nanos)
}

fn read(s: &Section, key: &'static str, of: Quantity) -> Option<Distribution> {
    let found = match s.is_table(key) {
        false => s.value(key, of.parse).map(Distribution::Constant),
        true => s.section(key).and_then(|t| table(t, of)),
    }?;
    if let Some(wrong) = of.zero.filter(|_| largest(&found) == 0) {
        s.fault_in(key, Fault::bare(wrong));
        return None;
    }
    Some(found)
}

fn table(t: Section, of: Quantity) -> Option<Distribution> {
    const KINDS: [&str; 6] = ["uniform", "exponential", "pareto", "bounded_pareto", "list", "poisson"];
    let kinds = if of.poisson { &KINDS[..] } else { &KINDS[..5] };
    let given: Vec<_> = kinds.iter().copied().filter(|kind| t.has(kind)).collect();
    let found = match given.as_slice() {
        ["uniform"] => uniform(&t, of),
        ["exponential"] => {
            t.value("exponential", |v| above_zero(v, of)).map(|mean| Distribution::Exponential { mean })
        }
        ["pareto"] => pareto(&t, of),
        ["bounded_pareto"] => bounded_pareto(&t, of),
        ["list"] => t.list("list", of.pair, of.parse).map(Distribution::Empirical),
        ["poisson"] => t
            .parsed("poisson", |text: String| units::frequency(&text))
            .map(|gap| Distribution::Exponential { mean: gap.as_nanos() }),
        // The table has only unknown keys.
        [] if !t.is_empty() => None,
        [] => {
            let kinds = super::diag::listed(kinds.iter().copied());
            t.fault_here(Fault::new(
                format!("`{}` does not name a distribution", t.path()),
                format!("one of {kinds}"),
            ));
            None
        }
        _ => {
            t.at_most_one(kinds, "a value has one distribution");
            None
        }
    };
    t.finish();
    found
}

fn uniform(t: &Section, of: Quantity) -> Option<Distribution> {
    let values = t.list("uniform", of.pair, of.parse)?;
    let wrong = match values.as_slice() {
        &[min, max] if min <= max => return Some(Distribution::Uniform { min, max }),
        [_, _] => "the smallest value is above the largest".to_string(),
        values => format!("expected the smallest and the largest value, found {}", values.len()),
    };
    t.fault_in("uniform", Fault::new(wrong, format!("for example: uniform = {}", of.pair)));
    None
}

fn pareto(t: &Section, of: Quantity) -> Option<Distribution> {
    let scale = t.value("pareto", |v| above_zero(v, of));
    let shape = shape(t);
    let (min, max) = (t.value("min", of.parse), t.value("max", of.parse));
    let (scale, shape) = (scale?, shape?);
    if min.is_some_and(|min| min < scale) {
        t.fault_in("min", Fault::bare("less than the smallest value, `pareto`"));
    }
    let min = min.unwrap_or(scale);
    if max.is_some_and(|max| max < min) {
        t.fault_in("max", Fault::bare("less than the smallest value"));
    }
    Some(Distribution::Pareto { scale, shape, min, max })
}

fn bounded_pareto(t: &Section, of: Quantity) -> Option<Distribution> {
    let min = t.value("bounded_pareto", |v| above_zero(v, of));
    let shape = shape(t);
    t.need("max", "\"5MB\"");
    let max = t.value("max", of.parse);
    let (min, shape, max) = (min?, shape?, max?);
    if max < min {
        t.fault_in("max", Fault::bare("less than the smallest value, `bounded_pareto`"));
    }
    Some(Distribution::BoundedPareto { min, shape, max })
}

/// Reads the shape of a Pareto distribution.
fn shape(t: &Section) -> Option<f64> {
    t.need("shape", "1.2");
    t.parsed("shape", |Number(n): Number| match n.to_f64() {
        shape if (0.01..=100.0).contains(&shape) => Ok(shape),
        shape => Err(Fault::new(
            format!("{shape} is not from 0.01 to 100"),
            "the mean is finite above 1, the variance above 2",
        )),
    })
}

fn above_zero(value: &DeValue, of: Quantity) -> Result<u64, Fault> {
    value::above_zero((of.parse)(value)?)
}

/// Returns the largest value that can be drawn.
fn largest(d: &Distribution) -> u64 {
    match d {
        Distribution::Constant(n) => *n,
        Distribution::Uniform { max, .. } => *max,
        Distribution::Exponential { mean } => *mean,
        Distribution::Pareto { min, max, .. } => max.unwrap_or(*min),
        Distribution::BoundedPareto { max, .. } => *max,
        Distribution::Empirical(values) => values.iter().copied().max().unwrap_or(0),
    }
}
