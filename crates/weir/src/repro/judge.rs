//! Deviations from published values, and verdicts.

use serde::{de, Deserialize, Deserializer, Serialize};
use std::fmt;

/// Direction in which the values of a row are better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Higher values.
    Higher,
    /// Lower values.
    Lower,
    /// Neither: every distance from the published value is a deviation.
    #[default]
    Neither,
}

/// Allowed distance from a published value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// Part of the published value.
    Part(f64),
    /// Distance in the row's unit.
    Distance(f64),
}

impl Default for Tolerance {
    fn default() -> Tolerance {
        Tolerance::Part(0.0)
    }
}

impl<'de> Deserialize<'de> for Tolerance {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Tolerance, D::Error> {
        struct Any;
        impl de::Visitor<'_> for Any {
            type Value = Tolerance;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a percentage such as \"10%\", or a number in the row's unit")
            }
            fn visit_f64<E: de::Error>(self, v: f64) -> Result<Tolerance, E> {
                match v >= 0.0 && v.is_finite() {
                    true => Ok(Tolerance::Distance(v)),
                    false => Err(E::invalid_value(de::Unexpected::Float(v), &self)),
                }
            }
            fn visit_i64<E: de::Error>(self, v: i64) -> Result<Tolerance, E> {
                self.visit_f64(v as f64)
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Tolerance, E> {
                let part = percent(v).filter(|p| *p >= 0.0).map(Tolerance::Part);
                part.ok_or_else(|| E::invalid_value(de::Unexpected::Str(v), &self))
            }
        }
        d.deserialize_any(Any)
    }
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tolerance::Part(part) => write!(f, "{} %", short(part * 100.0)),
            Tolerance::Distance(distance) => write!(f, "{}", short(*distance)),
        }
    }
}

impl Tolerance {
    /// Returns the allowed distance from `value`.
    pub fn around(self, value: f64) -> f64 {
        match self {
            Tolerance::Part(part) => part * value.abs(),
            Tolerance::Distance(distance) => distance,
        }
    }
}

/// Place of a value beside a published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Outside of the tolerance and not better.
    Worse,
    /// Within the tolerance.
    Within,
    /// Outside of the tolerance and better.
    Better,
}

/// Places `found` beside the published range from `low` to `high`.
pub fn side(found: f64, (low, high): (f64, f64), tolerance: Tolerance, better: Better) -> Side {
    let (below, above) = (found < low - tolerance.around(low), found > high + tolerance.around(high));
    match (below, above, better) {
        _ if found.is_nan() => Side::Worse,
        (false, false, _) => Side::Within,
        (true, _, Better::Lower) | (_, true, Better::Higher) => Side::Better,
        _ => Side::Worse,
    }
}

/// Returns the distance of `found` from a published range, as a part of the range's nearer end; 0 inside.
/// `None` beside a published 0.
pub fn deviation(found: f64, (low, high): (f64, f64)) -> Option<f64> {
    let near = found.clamp(low, high);
    match near == found {
        true => Some(0.0),
        false => (near != 0.0).then(|| (found - near) / near.abs()),
    }
}

/// Verdict on a row, or on one of its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// At least one value, claim or check is not as published.
    Differs,
    /// There is no experiment of it here.
    NotReproducible,
    /// All is as published.
    Agrees,
    /// Nothing is worse than published, and something of Weir's is better.
    Better,
}

impl Verdict {
    /// Returns the verdict in words.
    pub const fn words(self) -> &'static str {
        match self {
            Verdict::Differs => "differs, because",
            Verdict::NotReproducible => "not reproducible here, because",
            Verdict::Agrees => "agrees",
            Verdict::Better => "better",
        }
    }

    /// Returns whether the verdict needs a reason.
    pub const fn needs_reason(self) -> bool {
        matches!(self, Verdict::Differs | Verdict::NotReproducible)
    }
}

/// Returns the verdict on a column from the places of its values.
pub fn column(sides: impl IntoIterator<Item = Side>) -> Verdict {
    let (mut worst, mut best) = (Side::Better, Side::Worse);
    for side in sides {
        (worst, best) = (worst.min(side), best.max(side));
    }
    match (worst, best) {
        (Side::Worse, _) => Verdict::Differs,
        (_, Side::Better) => Verdict::Better,
        _ => Verdict::Agrees,
    }
}

/// Parts of a row's verdict.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// Verdicts on the columns of the paper's scheme that have published values.
    pub as_published: Vec<Verdict>,
    /// Verdicts on Weir's columns, beside published values and beside the paper's scheme here.
    pub weir: Vec<Verdict>,
    /// Outcomes of claims and checks.
    pub holds: Vec<bool>,
    /// Flag: a value that the row asks for was not measured.
    pub missing: bool,
}

/// Returns the verdict on a row.
pub fn row(parts: &Parts) -> Verdict {
    if parts.missing || parts.holds.contains(&false) {
        return Verdict::Differs;
    }
    // A scheme as published that gives more than published is not what was published.
    let differs = |v: &Verdict| *v != Verdict::Agrees;
    if parts.as_published.iter().any(differs) || parts.weir.contains(&Verdict::Differs) {
        return Verdict::Differs;
    }
    if parts.weir.contains(&Verdict::Better) {
        return Verdict::Better;
    }
    match parts.as_published.is_empty() && parts.weir.is_empty() && parts.holds.is_empty() {
        true => Verdict::NotReproducible,
        false => Verdict::Agrees,
    }
}

/// Returns a percentage as a fraction.
pub fn percent(text: &str) -> Option<f64> {
    let number: f64 = text.strip_suffix('%')?.trim_end().parse().ok()?;
    number.is_finite().then_some(number / 100.0)
}

/// Formats a number with three to four digits.
pub fn short(v: f64) -> String {
    let decimals = match v.abs() {
        a if a >= 1000.0 || v == v.trunc() => 0,
        a if a >= 100.0 => 1,
        a if a >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{v:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Tolerance = Tolerance::Part(0.1);

    #[test]
    fn a_value_within_the_tolerance_of_a_range_agrees() {
        // 10 % of 90 and of 110: from 81 to 121.
        let place = |found, better| side(found, (90.0, 110.0), TEN, better);
        for (found, neither, higher, lower) in [
            (100.0, Side::Within, Side::Within, Side::Within),
            (81.0, Side::Within, Side::Within, Side::Within),
            (121.0, Side::Within, Side::Within, Side::Within),
            (80.9, Side::Worse, Side::Worse, Side::Better),
            (121.1, Side::Worse, Side::Better, Side::Worse),
            (f64::NAN, Side::Worse, Side::Worse, Side::Worse),
        ] {
            let found = [Better::Neither, Better::Higher, Better::Lower].map(|b| place(found, b));
            assert_eq!(found, [neither, higher, lower]);
        }
        // A distance in the row's unit: 2 of 0 losses, and 1 more.
        let losses = |found| side(found, (0.0, 0.0), Tolerance::Distance(2.0), Better::Lower);
        assert_eq!([losses(2.0), losses(3.0)], [Side::Within, Side::Worse]);
    }

    #[test]
    fn deviations_are_parts_of_the_nearer_end() {
        assert_eq!(deviation(105.0, (100.0, 100.0)), Some(0.05));
        assert_eq!(deviation(45.0, (90.0, 110.0)), Some(-0.5));
        assert_eq!(deviation(121.0, (90.0, 110.0)), Some(0.1));
        assert_eq!(deviation(100.0, (90.0, 110.0)), Some(0.0));
        assert_eq!(deviation(1.0, (0.0, 0.0)), None);
        assert_eq!(deviation(0.0, (0.0, 0.0)), Some(0.0));
    }

    #[test]
    fn one_worse_value_makes_a_column_differ() {
        assert_eq!(column([Side::Within, Side::Better, Side::Worse]), Verdict::Differs);
        assert_eq!(column([Side::Within, Side::Better]), Verdict::Better);
        assert_eq!(column([Side::Within; 2]), Verdict::Agrees);
    }

    #[test]
    fn verdicts_on_rows() {
        let (a, b, d) = (Verdict::Agrees, Verdict::Better, Verdict::Differs);
        let of = |as_published: &[Verdict], weir: &[Verdict], holds: &[bool]| {
            row(&Parts {
                as_published: as_published.into(),
                weir: weir.into(),
                holds: holds.into(),
                missing: false,
            })
        };
        assert_eq!(of(&[a], &[a, b], &[true]), Verdict::Better);
        assert_eq!(of(&[a], &[a], &[]), Verdict::Agrees);
        assert_eq!(of(&[], &[], &[true]), Verdict::Agrees);
        assert_eq!(of(&[], &[], &[]), Verdict::NotReproducible);
        for differing in [of(&[b], &[b], &[]), of(&[a], &[d], &[]), of(&[a], &[b], &[true, false])] {
            assert_eq!(differing, Verdict::Differs);
        }
        assert_eq!(row(&Parts { missing: true, ..Parts::default() }), Verdict::Differs);
    }

    #[test]
    fn tolerances_in_files() {
        #[derive(Deserialize)]
        struct File {
            tolerance: Tolerance,
        }
        let read = |text: &str| toml::from_str::<File>(text).map(|f| f.tolerance);
        assert_eq!(read("tolerance = \"2.5%\"").unwrap(), Tolerance::Part(0.025));
        assert_eq!(read("tolerance = 3").unwrap(), Tolerance::Distance(3.0));
        for wrong in ["\"10\"", "-1", "nan", "\"-5%\"", "true"] {
            assert!(read(&format!("tolerance = {wrong}")).is_err(), "{wrong}");
        }
    }
}
