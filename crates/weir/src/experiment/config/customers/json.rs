//! JSON with the places of its values.

use core::fmt;
use core::ops::Range;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A well-formed value, as it is written.
#[derive(Clone, Copy)]
pub(super) struct Written<'a> {
    file: &'a str,
    raw: &'a str,
}

/// A key of an object.
pub(super) struct Key<'a> {
    pub name: String,
    written: Written<'a>,
}

impl Key<'_> {
    pub fn place(&self) -> Range<usize> {
        self.written.place()
    }
}

impl<'a> Written<'a> {
    /// Returns the value that a whole file holds.
    pub fn whole(file: &'a str) -> serde_json::Result<Written<'a>> {
        serde_json::from_str::<&RawValue>(file).map(|raw| Written { file, raw: raw.get() })
    }

    /// Returns the place of the value in the file.
    pub fn place(&self) -> Range<usize> {
        let start = self.raw.as_ptr() as usize - self.file.as_ptr() as usize;
        start..start + self.raw.len()
    }

    /// Returns the text as it is written.
    pub fn text(&self) -> &'a str {
        self.raw
    }

    /// Returns the contents of a string, or `None` for any other value.
    pub fn string(&self) -> Option<String> {
        serde_json::from_str(self.raw).ok()
    }

    pub fn is_null(&self) -> bool {
        self.raw == "null"
    }

    pub fn is_object(&self) -> bool {
        self.raw.starts_with('{')
    }

    /// Returns the keys and values of an object, in the order of the file. A key may occur twice.
    pub fn object(&self) -> Option<Vec<(Key<'a>, Written<'a>)>> {
        let Object(pairs) = serde_json::from_str(self.raw).ok()?;
        let here = |raw: &'a RawValue| Written { file: self.file, raw: raw.get() };
        let pair = |(key, value): (&'a RawValue, &'a RawValue)| {
            Some((Key { name: here(key).string()?, written: here(key) }, here(value)))
        };
        pairs.into_iter().map(pair).collect()
    }
}

/// Pairs of an object, as they are written.
struct Object<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Object<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Object(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}
