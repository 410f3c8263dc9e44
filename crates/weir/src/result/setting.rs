//! Settings of a run by a sweep.

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// Settings that a sweep made, by the path of the key: `path.wan.out.loss` is 0.0001.
pub type Settings = BTreeMap<String, Setting>;

/// Value that a sweep set: results have it in its base unit, tables as written in the file.
#[derive(Clone, Debug)]
pub struct Setting {
    value: Value,
    written: String,
}

/// A value without a unit.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(untagged)]
enum Value {
    /// Yes or no.
    Flag(bool),
    /// Bits per second, seconds, bytes, a share from 0 to 1, a count.
    Number(f64),
    /// Value without a base unit: a name, a queue of `1bdp`.
    Text(String),
}

impl Setting {
    /// Creates a setting that is `written` like this in the file and has this value in its base unit.
    pub fn number(written: &str, value: f64) -> Setting {
        Setting { value: Value::Number(value), written: written.into() }
    }

    /// Creates a setting of yes or no.
    pub fn flag(value: bool) -> Setting {
        Setting { value: Value::Flag(value), written: value.to_string() }
    }
}

/// Creates a setting without a base unit.
impl From<&str> for Setting {
    fn from(text: &str) -> Setting {
        Setting { value: Value::Text(text.into()), written: text.into() }
    }
}

/// Settings are equal if their values are, whatever their notation: `10ms` is `0.01s`.
impl PartialEq for Setting {
    fn eq(&self, other: &Setting) -> bool {
        self.value == other.value
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl Serialize for Setting {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match &self.value {
            Value::Flag(flag) => s.serialize_bool(*flag),
            Value::Number(v) => super::series::number(*v, s),
            Value::Text(text) => s.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Setting, D::Error> {
        let value = Value::deserialize(d)?;
        let written = match &value {
            Value::Flag(flag) => flag.to_string(),
            Value::Number(v) => v.to_string(),
            Value::Text(text) => text.clone(),
        };
        Ok(Setting { value, written })
    }
}

/// Describes settings as they are written in the file.
pub fn describe(settings: &Settings) -> String {
    settings.iter().map(|(k, v)| format!("{k} = {v}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_numbers_and_come_back_equal() {
        let all: Settings = [
            ("cc", Setting::from("reno")),
            ("ecn", Setting::flag(true)),
            ("loss", Setting::number("0.1%", 0.001)),
            ("rate", Setting::number("10Mbit", 1e7)),
        ]
        .map(|(name, setting)| (name.to_string(), setting))
        .into();
        let text = serde_json::to_string(&all).unwrap();
        assert_eq!(text, r#"{"cc":"reno","ecn":true,"loss":0.001,"rate":10000000}"#);
        let read: Settings = serde_json::from_str(&text).unwrap();
        assert_eq!(read, all);
        assert_eq!(describe(&all), "cc = reno, ecn = true, loss = 0.1%, rate = 10Mbit");
        assert_eq!(describe(&read), "cc = reno, ecn = true, loss = 0.001, rate = 10000000");
        assert_ne!(Setting::number("1", 1.0), Setting::from("1"));
    }
}
