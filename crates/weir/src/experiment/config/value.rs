//! Values of a file as values of Rust types. A fault names the value found and the accepted values.

use super::addresses;
use super::decimal::Decimal;
use super::diag::{listed, nearest, Fault};
use super::learnt::{self, Kind};
use super::units;
use core::ops::RangeInclusive;
use toml::de::DeValue;
use weir_core::gateway::Prefix;
use weir_core::rate::Rate;
use weir_core::time::Duration;

/// Conversion from a value of a file.
pub trait FromValue: Sized {
    /// Parses the value; the fault names the value found and the accepted ones.
    fn from_value(value: &DeValue) -> Result<Self, Fault>;
}

/// Parses a probability above zero, in 10^-12.
pub(super) fn some(value: &DeValue) -> Result<u64, Fault> {
    above_zero(units::Probability::from_value(value)?.trillionths())
}

/// Returns the number unless it is 0.
pub(super) fn above_zero(n: u64) -> Result<u64, Fault> {
    match n {
        0 => Err(Fault::bare("must be greater than 0")),
        n => Ok(n),
    }
}

/// Parses a whole number from `range`.
pub(super) fn int(value: &DeValue, range: RangeInclusive<u64>) -> Result<u64, Fault> {
    learnt::kind(|| Kind::Whole(*range.start(), *range.end()));
    match whole(value)? {
        n if range.contains(&n) => Ok(n),
        n => Err(Fault::bare(format!("{n} is not from {} to {}", range.start(), range.end()))),
    }
}

/// Parses a whole number from `range`, which has negative ones.
pub(super) fn signed(value: &DeValue, range: RangeInclusive<i64>) -> Result<i64, Fault> {
    learnt::kind(|| Kind::Signed(*range.start(), *range.end()));
    let DeValue::Integer(i) = value else {
        return Err(Fault::bare(format!("expected a whole number, found {}", found(value))));
    };
    match i64::from_str_radix(&i.as_str().replace('_', ""), i.radix()) {
        Ok(n) if range.contains(&n) => Ok(n),
        _ => Err(Fault::bare(format!("{} is not from {} to {}", i.as_str(), range.start(), range.end()))),
    }
}

/// Parses a duration from `min` to `max`, and above zero.
pub(super) fn within(value: &DeValue, min: Duration, max: Duration) -> Result<Duration, Fault> {
    match Positive::from_value(value)? {
        Positive(d) if (min..=max).contains(&d) => Ok(d),
        Positive(d) => Err(Fault::bare(format!("{d} is not from {min} to {max}"))),
    }
}

/// Returns the value of one of a closed set of names. Names in `future` are known and not built yet: they are
/// refused as such.
pub fn choice<T: Copy>(text: &str, what: &str, known: &[(&str, T)], future: &[&str]) -> Result<T, Fault> {
    if let Some(&(_, value)) = known.iter().find(|(name, _)| *name == text) {
        return Ok(value);
    }
    let names = listed(known.iter().map(|(n, _)| *n));
    if future.contains(&text) {
        return Err(Fault::new(
            format!("the {what} `{text}` does not exist yet"),
            format!("what exists: {names}"),
        ));
    }
    let guess = match nearest(text, known.iter().map(|(n, _)| *n)) {
        Some(n) => format!("did you mean `{n}`? "),
        None => String::new(),
    };
    Err(Fault::new(format!("unknown {what} `{text}`"), format!("{guess}what exists: {names}")))
}

/// Parses one of a closed set of names. Names in `future` are known and not built yet.
pub(super) fn one_of<T: Copy>(value: &DeValue, known: &[(&str, T)], future: &[&str]) -> Result<T, Fault> {
    learnt::kind(|| Kind::Names(known.iter().map(|(name, _)| (*name).to_string()).collect()));
    choice(&string(value)?, "value", known, future)
}

/// Describes a value, for messages.
pub(super) fn found(value: &DeValue) -> String {
    match value {
        DeValue::String(s) => format!("the string \"{s}\""),
        DeValue::Integer(i) => format!("the integer {}", i.as_str()),
        DeValue::Float(x) => format!("the number {}", x.as_str()),
        DeValue::Boolean(b) => format!("the boolean {b}"),
        DeValue::Datetime(d) => format!("the date {d}"),
        DeValue::Array(_) => "an array".to_string(),
        DeValue::Table(_) => "a table".to_string(),
    }
}

/// Returns the text of a string, or of a number if numbers are accepted.
fn text(value: &DeValue, what: &str, example: &str, numbers: bool) -> Result<String, Fault> {
    match value {
        DeValue::String(s) => Ok(s.to_string()),
        DeValue::Integer(i) if numbers && i.radix() == 10 => Ok(i.as_str().to_string()),
        DeValue::Float(x) if numbers => Ok(x.as_str().to_string()),
        DeValue::Integer(i) if !numbers => {
            Err(Fault::new(format!("{} is a {what} without a unit", i.as_str()), format!("write {example}")))
        }
        v => Err(Fault::new(format!("expected a {what}, found {}", found(v)), format!("write {example}"))),
    }
}

macro_rules! from_text {
    ($type:ty, $kind:ident, $what:literal, $example:literal, $numbers:literal, $parse:path) => {
        impl FromValue for $type {
            fn from_value(value: &DeValue) -> Result<Self, Fault> {
                learnt::kind(|| Kind::$kind);
                $parse(&text(value, $what, $example, $numbers)?)
            }
        }
    };
}

from_text!(Rate, Rate, "rate", "\"10Mbit\"", false, units::rate);
from_text!(Duration, Time, "duration", "\"10ms\"", false, units::duration);
from_text!(units::Probability, Probability, "probability", "0.0001 or \"0.01%\"", true, units::probability);
from_text!(units::Limit, Limit, "queue limit", "\"100p\", \"64KiB\" or \"1bdp\"", false, units::queue);
from_text!(
    RangeInclusive<u16>,
    Ports,
    "port or range of ports",
    "5001 or \"5001-5008\"",
    true,
    addresses::ports
);
from_text!(Prefix, Prefix, "prefix", "\"10.1.0.0/16\"", false, addresses::prefix);

impl FromValue for String {
    fn from_value(value: &DeValue) -> Result<Self, Fault> {
        learnt::kind(|| Kind::Text);
        string(value)
    }
}

fn string(value: &DeValue) -> Result<String, Fault> {
    match value {
        DeValue::String(s) => Ok(s.to_string()),
        v => Err(Fault::bare(format!("expected a string, found {}", found(v)))),
    }
}

impl FromValue for bool {
    fn from_value(value: &DeValue) -> Result<Self, Fault> {
        learnt::kind(|| Kind::Switch);
        match value {
            DeValue::Boolean(b) => Ok(*b),
            v => Err(Fault::new(format!("expected true or false, found {}", found(v)), "without quotes")),
        }
    }
}

impl FromValue for u64 {
    fn from_value(value: &DeValue) -> Result<Self, Fault> {
        int(value, 0..=u64::MAX)
    }
}

fn whole(value: &DeValue) -> Result<u64, Fault> {
    match value {
        DeValue::Integer(i) => u64::from_str_radix(&i.as_str().replace('_', ""), i.radix())
            .map_err(|_| Fault::bare(format!("{} is out of range", i.as_str()))),
        v => Err(Fault::bare(format!("expected a whole number, found {}", found(v)))),
    }
}

/// Duration above zero.
pub struct Positive(pub Duration);

from_text!(Positive, Time, "duration", "\"10ms\"", false, positive);

fn positive(text: &str) -> Result<Positive, Fault> {
    units::positive_duration(text).map(Positive)
}

/// Size in bytes, as an integer or with a unit.
pub struct Size(pub u64);

from_text!(Size, Size, "size", "\"64KiB\" or 1500", true, size);

fn size(text: &str) -> Result<Size, Fault> {
    units::size(text).map(Size)
}

/// Plain decimal number.
pub struct Number(pub Decimal);

impl FromValue for Number {
    fn from_value(value: &DeValue) -> Result<Self, Fault> {
        learnt::kind(|| Kind::Number);
        let text = match value {
            DeValue::Integer(i) => i.as_str(),
            DeValue::Float(x) => x.as_str(),
            v => return Err(Fault::bare(format!("expected a number, found {}", found(v)))),
        };
        Decimal::parse(text)
            .map(Number)
            .ok_or_else(|| Fault::bare(format!("{text} is not a number that can be used here")))
    }
}

/// String, or a number as written: for keys whose meaning depends on other keys.
#[derive(Clone, Debug)]
pub enum Scalar {
    /// Text in quotes.
    Text(String),
    /// Bare number.
    Number(String),
}

impl FromValue for Scalar {
    fn from_value(value: &DeValue) -> Result<Self, Fault> {
        learnt::kind(|| Kind::Text);
        learnt::kind(|| Kind::Number);
        match value {
            DeValue::String(s) => Ok(Scalar::Text(s.to_string())),
            DeValue::Integer(i) if i.radix() == 10 => Ok(Scalar::Number(i.as_str().to_string())),
            DeValue::Float(x) => Ok(Scalar::Number(x.as_str().to_string())),
            v => Err(Fault::bare(format!("expected a string or a number, found {}", found(v)))),
        }
    }
}
