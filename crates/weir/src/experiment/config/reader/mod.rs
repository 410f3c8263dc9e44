//! Reading tables. Every key is asked for by name and parsed on the spot; a key that was not asked for is
//! unknown. Faults are collected, so that one run shows all of them.

mod finish;
mod nested;
mod notes;
mod sink;

pub use super::value::{FromValue, Number, Positive, Scalar, Size};
pub use sink::{Only, Sink};

use super::diag::{Diagnostic, Errors, Fault, Source};
use super::value::{int, one_of};
use core::ops::{Range, RangeInclusive};
use std::cell::RefCell;
use std::path::Path;
use toml::de::{DeTable, DeValue};
use toml::Spanned;

/// Parses a file into its root table. Syntax errors carry the parser's own words.
pub fn parse_toml(source: &Source) -> Result<toml::Spanned<DeTable<'_>>, Errors> {
    DeTable::parse(&source.text).map_err(|e| {
        let span = e.span().unwrap_or(0..0);
        let message = e.message().trim_end().replace('\n', "; ");
        Errors::new(source, vec![Diagnostic { span, message, help: None }])
    })
}

/// A key that is refused, what is said of it after its name, and why.
pub type Refused = (&'static str, &'static str, &'static str);

/// What is said of keys that are not built yet.
pub const NOT_YET: &str = "does not exist yet";

/// The path of options, which have no place in a file.
const OPTIONS: &str = "--";

/// The table that options of a command make. A value is what it would be in a file: a number, a boolean or else a
/// string.
pub fn options_table<'a>(options: &'a [(&str, String)]) -> DeTable<'a> {
    let mut table = DeTable::new();
    for (name, text) in options {
        let value = match DeValue::parse(text) {
            Ok(value) if !value.get_ref().is_str() => value.into_inner(),
            _ => DeValue::String(text.into()),
        };
        table.insert(Spanned::new(0..0, (*name).into()), Spanned::new(0..0, value));
    }
    table
}

/// A table being read.
pub struct Section<'a> {
    table: &'a DeTable<'a>,
    /// The table's header, or the table itself if it is inline.
    pub span: Range<usize>,
    path: String,
    sink: &'a Sink,
    asked: RefCell<Vec<&'static str>>,
    /// Required keys that are not there, with an example of each.
    missing: RefCell<Vec<(&'static str, String)>>,
    /// Keys that are known and refused.
    refused: &'static [Refused],
}

impl<'a> Section<'a> {
    /// The root table of a file.
    pub fn root(table: &'a toml::Spanned<DeTable<'a>>, sink: &'a Sink) -> Section<'a> {
        Section::new(table.get_ref(), 0..0, String::new(), sink)
    }

    /// Options of a command as a table of the keys that they are named after; messages name the options.
    pub fn options(table: &'a DeTable<'a>, sink: &'a Sink) -> Section<'a> {
        Section::new(table, 0..0, OPTIONS.to_string(), sink)
    }

    /// The table of this name that stands for a value, read for itself.
    pub fn inline(table: &'a DeTable<'a>, name: &str, sink: &'a Sink) -> Section<'a> {
        Section::new(table, 0..0, name.to_string(), sink)
    }

    fn new(table: &'a DeTable<'a>, span: Range<usize>, path: String, sink: &'a Sink) -> Section<'a> {
        Section {
            table,
            span,
            path,
            sink,
            asked: RefCell::default(),
            missing: RefCell::default(),
            refused: &[],
        }
    }

    /// Keys that are no keys here but that people may try.
    pub fn refuse(&mut self, refused: &'static [Refused]) {
        self.refused = refused;
    }

    fn entry(&self, key: &'static str) -> Option<(Range<usize>, &'a toml::Spanned<DeValue<'a>>)> {
        if !self.asked.borrow().contains(&key) {
            self.asked.borrow_mut().push(key);
        }
        // Few keys in a table: looking at each is cheap, and gives the key's own span.
        self.table.iter().find(|(k, _)| k.get_ref() == key).map(|(k, v)| (k.span(), v))
    }

    /// The value of a key, if it is there and right. It does not become a known one by this.
    pub fn peek<T: FromValue>(&self, key: &str) -> Option<T> {
        let (_, value) = self.table.iter().find(|(k, _)| k.get_ref() == key)?;
        T::from_value(value.get_ref()).ok()
    }

    /// Is the key there? It does not become a known one by this.
    pub fn is_there(&self, key: &str) -> bool {
        self.table.iter().any(|(k, _)| k.get_ref() == key)
    }

    /// Is the key there?
    pub fn has(&self, key: &'static str) -> bool {
        self.entry(key).is_some()
    }

    /// Where the key is, or the whole table if it is not there.
    pub fn key_span(&self, key: &'static str) -> Range<usize> {
        self.entry(key).map_or(self.span.clone(), |(k, _)| k)
    }

    /// Where its value is, or the whole table if the key is not there.
    pub fn value_span(&self, key: &'static str) -> Range<usize> {
        self.entry(key).map_or(self.span.clone(), |(_, v)| v.span())
    }

    /// A fault about the value of a key.
    pub fn fault(&self, key: &'static str, fault: Fault) {
        self.sink.push(self.value_span(key), fault);
    }

    /// A fault about the value of a key, which the message names.
    pub fn fault_in(&self, key: &'static str, mut fault: Fault) {
        fault.message = format!("`{}`: {}", self.full(key), fault.message);
        self.fault(key, fault);
    }

    /// A fault about a key itself.
    pub fn key_fault(&self, key: &'static str, fault: Fault) {
        self.sink.push(self.key_span(key), fault);
    }

    /// Has the table no keys at all?
    pub fn is_empty(&self) -> bool {
        self.table.iter().next().is_none()
    }

    /// A fault about the table.
    pub fn fault_here(&self, fault: Fault) {
        self.sink.push(self.span.clone(), fault);
    }

    /// Has nothing been wrong so far, anywhere in the file?
    pub fn all_well(&self) -> bool {
        self.sink.is_empty()
    }

    /// The directory that files are in which this one names; empty where options are read.
    pub fn directory(&self) -> &Path {
        &self.sink.directory
    }

    /// The path of this table: `path.wan`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// A key with its path, for messages.
    pub fn full(&self, key: &str) -> String {
        match self.path.as_str() {
            "" => key.to_string(),
            OPTIONS => format!("--{}", key.replace('_', "-")),
            path => format!("{path}.{key}"),
        }
    }

    /// The value of a key; `None` if it is absent or faulty, which is noted.
    pub fn get<T: FromValue>(&self, key: &'static str) -> Option<T> {
        self.value(key, T::from_value)
    }

    /// Is the key there with a table as its value?
    pub fn is_table(&self, key: &'static str) -> bool {
        self.entry(key).is_some_and(|(_, v)| matches!(v.get_ref(), DeValue::Table(_)))
    }

    /// The value of a key parsed by a function.
    pub fn value<T>(&self, key: &'static str, parse: impl FnOnce(&DeValue) -> Result<T, Fault>) -> Option<T> {
        let (_, value) = self.entry(key)?;
        match parse(value.get_ref()) {
            Ok(v) => Some(v),
            Err(fault) => {
                self.fault_in(key, fault);
                None
            }
        }
    }

    /// The value of a key made with a further check.
    pub fn parsed<T: FromValue, U>(
        &self,
        key: &'static str,
        check: impl FnOnce(T) -> Result<U, Fault>,
    ) -> Option<U> {
        self.value(key, |v| T::from_value(v).and_then(check))
    }

    /// A whole number from `range`.
    pub fn int(&self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        self.value(key, |value| int(value, range))
    }

    /// One of a closed set of names.
    pub fn choice<T: Copy>(&self, key: &'static str, known: &[(&str, T)], future: &[&str]) -> Option<T> {
        self.value(key, |value| one_of(value, known, future))
    }

    /// As [`Section::get`], but the key must be there.
    pub fn required<T: FromValue>(&self, key: &'static str, example: &str) -> Option<T> {
        self.need(key, example);
        self.get(key)
    }

    /// The key must be there; [`Section::finish`] notes a fault if it is not.
    pub fn need(&self, key: &'static str, example: &str) {
        if !self.has(key) {
            self.missing.borrow_mut().push((key, example.to_string()));
        }
    }

    /// Notes a fault if more than one of these keys is there: they say the same thing.
    pub fn at_most_one(&self, keys: &[&'static str], why: &str) {
        let there: Vec<_> = keys.iter().filter(|&&k| self.has(k)).collect();
        if let [first, .., last] = there.as_slice() {
            self.sink.push(
                self.key_span(last),
                Fault::new(
                    format!("`{}` cannot be combined with `{}`", self.full(last), self.full(first)),
                    why,
                ),
            );
        }
    }
}
