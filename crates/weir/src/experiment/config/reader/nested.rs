//! Tables and arrays in a table.

use super::Section;
use crate::experiment::config::diag::Fault;
use crate::experiment::config::learnt;
use crate::experiment::config::value::found;
use core::ops::Range;
use toml::de::DeValue;

impl<'a> Section<'a> {
    /// Returns the elements of the array under a key; `None` if it is absent or one of them is faulty.
    pub fn list<T>(
        &self,
        key: &'static str,
        example: &str,
        parse: impl Fn(&DeValue) -> Result<T, Fault>,
    ) -> Option<Vec<T>> {
        let (_, value) = self.entry(key)?;
        let DeValue::Array(items) = value.get_ref() else {
            let message = format!("expected an array, found {}", found(value.get_ref()));
            self.fault_in(key, Fault::new(message, format!("write {key} = {example}")));
            return None;
        };
        if items.is_empty() {
            self.fault_in(key, Fault::new("an empty array", format!("for example: {key} = {example}")));
            return None;
        }
        let mut out = Some(Vec::new());
        for item in items.iter() {
            match (learnt::items(&self.place, key, || parse(item.get_ref())), &mut out) {
                (Ok(v), Some(out)) => out.push(v),
                (Ok(_), None) => (),
                (Err(mut fault), _) => {
                    fault.message = format!("`{}`: {}", self.full(key), fault.message);
                    self.sink.push(item.span(), fault);
                    out = None;
                }
            }
        }
        out
    }

    /// Returns the table under a key.
    pub fn section(&self, key: &'static str) -> Option<Section<'a>> {
        let (key_span, value) = self.entry(key)?;
        let place = learnt::table(&self.place, key, false);
        match value.get_ref() {
            DeValue::Table(t) => {
                Some(Section::new(t, table_span(value, key_span), self.full(key), place, self.sink))
            }
            v => {
                let message = format!("`{}`: expected a table, found {}", self.full(key), found(v));
                let help = format!("write [{0}] above its keys", self.full(key));
                self.sink.push(value.span(), Fault::new(message, help));
                None
            }
        }
    }

    /// Returns the tables of the array under a key; none if it is absent.
    pub fn sections(&self, key: &'static str) -> Vec<Section<'a>> {
        let Some((key_span, value)) = self.entry(key) else {
            return Vec::new();
        };
        let DeValue::Array(items) = value.get_ref() else {
            let message = format!(
                "`{0}`: expected an array of tables, found {1}",
                self.full(key),
                found(value.get_ref())
            );
            let help = format!("write [[{0}]] above the keys of each", self.full(key));
            self.sink.push(key_span, Fault::new(message, help));
            return Vec::new();
        };
        let place = learnt::table(&self.place, key, true);
        if items.is_empty() {
            let message = format!("`{}`: an empty array", self.full(key));
            self.sink.push(value.span(), Fault::new(message, "leave the key out"));
        }
        let mut out = Vec::new();
        for item in items.iter() {
            match item.get_ref() {
                DeValue::Table(t) => {
                    let span = table_span(item, key_span.clone());
                    out.push(Section::new(t, span, self.full(key), place.clone(), self.sink));
                }
                v => self.sink.push(
                    item.span(),
                    Fault::bare(format!("`{}`: expected a table, found {}", self.full(key), found(v))),
                ),
            }
        }
        out
    }
}

/// Returns the span of a table for messages: its header line, not all of its lines. A table that exists only
/// through its dotted children has an empty span; then the key stands for it.
fn table_span(value: &toml::Spanned<DeValue>, key: Range<usize>) -> Range<usize> {
    if value.span().is_empty() {
        key
    } else {
        value.span()
    }
}
