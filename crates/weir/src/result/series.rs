//! Values over time.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use weir_core::time::Duration;

/// Columns of equal length over a column of times.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Series {
    /// Time of each row.
    #[serde(serialize_with = "numbers")]
    pub t_s: Vec<f64>,
    /// Other columns by name. `received_bytes` of a flow is the payload received from `t_s` until the next
    /// row, at the bin length of the plan. The simulator leaves out bins before its first byte and after its
    /// last one.
    #[serde(flatten)]
    pub columns: BTreeMap<String, Column>,
}

impl<'de> Deserialize<'de> for Series {
    /// Reads all columns alike: a flattened map would hold each value in a form of its own before.
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Series, D::Error> {
        let mut columns = BTreeMap::<String, Column>::deserialize(d)?;
        let t_s = columns.remove("t_s").ok_or_else(|| D::Error::missing_field("t_s"))?.0;
        match t_s.iter().any(|t| t.is_nan()) {
            true => Err(D::Error::custom("a row of a series without its time, `t_s`")),
            false => Ok(Series { t_s, columns }),
        }
    }
}

/// Column of a series. An unknown value is [`UNKNOWN`], which is `null` in JSON.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Column(#[serde(serialize_with = "numbers", deserialize_with = "known")] pub Vec<f64>);

/// Missing value: there was no RTT, or no slow-start threshold yet. It compares unequal to every value.
pub const UNKNOWN: f64 = f64::NAN;

/// Unknown values in the same place are equal.
impl PartialEq for Column {
    fn eq(&self, other: &Column) -> bool {
        let same = |(a, b): (&f64, &f64)| a == b || a.is_nan() && b.is_nan();
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(same)
    }
}

/// Name of the column behind expectations about goodput.
pub const RECEIVED: &str = "received_bytes";

impl Series {
    /// Builds the series of bytes received in bins of length `bin`, from bin 0 at the start of the run.
    pub fn received(bin: Duration, bytes: &[u64]) -> Series {
        Series::received_from(bin, 0, bytes)
    }

    /// Builds the series of [`Series::received`], beginning with bin `first`.
    pub fn received_from(bin: Duration, first: usize, bytes: &[u64]) -> Series {
        let t = |i: usize| bin.saturating_mul(i as u64).as_secs_f64();
        Series {
            t_s: (first..first + bytes.len()).map(t).collect(),
            columns: BTreeMap::from([(
                RECEIVED.to_string(),
                Column(bytes.iter().map(|&b| b as f64).collect()),
            )]),
        }
    }
}

/// Writes values. If all known ones are whole, they are written as integers: `12`, not `12.0`. Readers accept
/// both.
fn numbers<S: Serializer>(values: &[f64], s: S) -> Result<S::Ok, S::Error> {
    if values.iter().all(|&v| is_whole(v) || v.is_nan()) {
        s.collect_seq(values.iter().map(|&v| (!v.is_nan()).then_some(v as i64)))
    } else {
        // JSON has no NaN: unknown values are `null`.
        s.collect_seq(values)
    }
}

/// Returns whether a value is a whole number up to 2^53. Up to there every whole number has its own f64.
fn is_whole(v: f64) -> bool {
    v.fract() == 0.0 && v.abs() <= 9_007_199_254_740_992.0
}

/// Writes a value; a whole number is written as an integer.
pub(super) fn number<S: Serializer>(v: f64, s: S) -> Result<S::Ok, S::Error> {
    if is_whole(v) {
        s.serialize_i64(v as i64)
    } else {
        s.serialize_f64(v)
    }
}

/// Reads values, with [`UNKNOWN`] for `null`.
fn known<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<f64>, D::Error> {
    let values = Vec::<Option<f64>>::deserialize(d)?;
    Ok(values.into_iter().map(|v| v.unwrap_or(UNKNOWN)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_is_null() {
        for (values, text) in
            [(vec![UNKNOWN, 12.0, 7.0], "[null,12,7]"), (vec![UNKNOWN, 12.0, 0.5], "[null,12.0,0.5]")]
        {
            let column = Column(values);
            assert_eq!(serde_json::to_string(&column).unwrap(), text);
            assert_eq!(serde_json::from_str::<Column>(text).unwrap(), column);
        }
        assert_ne!(Column(vec![UNKNOWN, 1.0]), Column(vec![0.0, 1.0]));
    }

    #[test]
    fn rows_have_times() {
        let read = |text: &str| serde_json::from_str::<Series>(text).map_err(|e| e.to_string());
        assert_eq!(read(r#"{"t_s":[1],"b":[2],"a":[null]}"#).unwrap().columns.len(), 2);
        assert!(read(r#"{"t_s":[null],"a":[2]}"#).unwrap_err().starts_with("a row of a series without"));
        assert!(read(r#"{"a":[2]}"#).unwrap_err().starts_with("missing field `t_s`"));
    }
}
