//! Reading of tables. Every key is requested by name and parsed at once; a key that was never requested is
//! unknown. Faults are collected, so that one run shows all of them.

mod finish;
mod nested;
mod notes;
mod sink;

pub use super::value::{FromValue, Number, Positive, Scalar, Size};
pub use sink::{Only, Sink};

use super::diag::{Diagnostic, Errors, Fault, Source};
use super::learnt;
use super::value::{int, one_of};
use core::ops::{Range, RangeInclusive};
use std::cell::RefCell;
use std::path::Path;
use toml::de::{DeTable, DeValue};
use toml::Spanned;
use weir_core::time::Duration;

/// Parses a file into its root table. Syntax errors are in the parser's words.
pub fn parse_toml(source: &Source) -> Result<toml::Spanned<DeTable<'_>>, Errors> {
    DeTable::parse(&source.text).map_err(|e| {
        let span = e.span().unwrap_or(0..0);
        let message = e.message().trim_end().replace('\n', "; ");
        Errors::new(source, vec![Diagnostic { span, message, help: None }])
    })
}

/// Refused key: its name, the message after the name, and the reason.
pub type Refused = (&'static str, &'static str, &'static str);

/// Message about keys that are not built yet.
pub const NOT_YET: &str = "does not exist yet";

/// Path of options, which have no place in a file.
const OPTIONS: &str = "--";

/// Builds a table from the options of a command. A value is the same as in a file: a number, a boolean, or
/// else a string.
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

/// Table being read.
pub struct Section<'a> {
    table: &'a DeTable<'a>,
    /// Place of the table's header, or of the table itself if it is inline.
    pub span: Range<usize>,
    path: String,
    /// Place in the schema: the path in the file, whatever messages call it.
    place: String,
    sink: &'a Sink,
    asked: RefCell<Vec<&'static str>>,
    /// Missing required keys, with an example of each.
    missing: RefCell<Vec<(&'static str, String)>>,
    /// Keys that are known and refused.
    refused: &'static [Refused],
}

impl<'a> Section<'a> {
    /// Returns the root table of a file.
    pub fn root(table: &'a toml::Spanned<DeTable<'a>>, sink: &'a Sink) -> Section<'a> {
        Section::new(table.get_ref(), 0..0, String::new(), String::new(), sink)
    }

    /// Returns the options of a command as a table of the keys that they are named after; messages name the
    /// options.
    pub fn options(table: &'a DeTable<'a>, sink: &'a Sink) -> Section<'a> {
        Section::new(table, 0..0, OPTIONS.to_string(), OPTIONS.to_string(), sink)
    }

    /// Returns the table of this name that stands for a value, read on its own.
    pub fn inline(table: &'a DeTable<'a>, name: &str, sink: &'a Sink) -> Section<'a> {
        Section::new(table, 0..0, name.to_string(), learnt::of_value(name), sink)
    }

    fn new(
        table: &'a DeTable<'a>,
        span: Range<usize>,
        path: String,
        place: String,
        sink: &'a Sink,
    ) -> Section<'a> {
        learnt::opened(&place);
        Section {
            table,
            span,
            path,
            place,
            sink,
            asked: RefCell::default(),
            missing: RefCell::default(),
            refused: &[],
        }
    }

    /// Refuses keys that do not exist here but that people may try.
    pub fn refuse(&mut self, refused: &'static [Refused]) {
        self.refused = refused;
    }

    fn entry(&self, key: &'static str) -> Option<(Range<usize>, &'a toml::Spanned<DeValue<'a>>)> {
        if !self.asked.borrow().contains(&key) {
            self.asked.borrow_mut().push(key);
            learnt::asked(&self.place, key);
        }
        // A table has few keys: looking at each is cheap, and gives the key's own span.
        self.table.iter().find(|(k, _)| k.get_ref() == key).map(|(k, v)| (k.span(), v))
    }

    /// Returns the value of a key, if it is present and right. The key does not become known.
    pub fn peek<T: FromValue>(&self, key: &str) -> Option<T> {
        let (_, value) = self.table.iter().find(|(k, _)| k.get_ref() == key)?;
        T::from_value(value.get_ref()).ok()
    }

    /// Returns whether the key is present. The key does not become known.
    pub fn is_there(&self, key: &str) -> bool {
        self.table.iter().any(|(k, _)| k.get_ref() == key)
    }

    /// Returns whether the key is present.
    pub fn has(&self, key: &'static str) -> bool {
        self.entry(key).is_some()
    }

    /// Returns the place of the key, or of the whole table if the key is absent.
    pub fn key_span(&self, key: &'static str) -> Range<usize> {
        self.entry(key).map_or(self.span.clone(), |(k, _)| k)
    }

    /// Returns the place of the value, or of the whole table if the key is absent.
    pub fn value_span(&self, key: &'static str) -> Range<usize> {
        self.entry(key).map_or(self.span.clone(), |(_, v)| v.span())
    }

    /// Notes a fault about the value of a key.
    pub fn fault(&self, key: &'static str, fault: Fault) {
        self.sink.push(self.value_span(key), fault);
    }

    /// Notes a fault about the value of a key, which the message names.
    pub fn fault_in(&self, key: &'static str, mut fault: Fault) {
        fault.message = format!("`{}`: {}", self.full(key), fault.message);
        self.fault(key, fault);
    }

    /// Notes a fault about a key itself.
    pub fn key_fault(&self, key: &'static str, fault: Fault) {
        self.sink.push(self.key_span(key), fault);
    }

    /// Returns whether the table has no keys.
    pub fn is_empty(&self) -> bool {
        self.table.iter().next().is_none()
    }

    /// Notes a fault about the table.
    pub fn fault_here(&self, fault: Fault) {
        self.sink.push(self.span.clone(), fault);
    }

    /// Returns whether no fault was found so far in the file.
    pub fn all_well(&self) -> bool {
        self.sink.is_empty()
    }

    /// Notes the duration of the run.
    pub fn lasts(&self, run: Option<Duration>) {
        self.sink.run.set(run);
    }

    /// Returns the duration of the run; `None` if it has none.
    pub fn run(&self) -> Option<Duration> {
        self.sink.run.get()
    }

    /// Returns the directory of the files that this one names; empty for options.
    pub fn directory(&self) -> &Path {
        &self.sink.directory
    }

    /// Returns the path of this table: `path.wan`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Notes that the table may have the key of a row.
    pub fn know<R>(&self, row: &R, key: &'static str) {
        learnt::known(row, &self.place, key);
    }

    /// Reads the value of a row of a table of keys.
    pub fn row<T, R>(&self, row: &R, key: &'static str, parse: impl FnOnce(&DeValue) -> Result<T, Fault>) {
        learnt::row(row, || self.value(key, parse));
    }

    /// Returns a key with its path, for messages.
    pub fn full(&self, key: &str) -> String {
        match self.path.as_str() {
            "" => key.to_string(),
            OPTIONS => format!("--{}", key.replace('_', "-")),
            path => format!("{path}.{key}"),
        }
    }

    /// Returns the value of a key; `None` if it is absent, or faulty, which is noted.
    pub fn get<T: FromValue>(&self, key: &'static str) -> Option<T> {
        self.value(key, T::from_value)
    }

    /// Returns whether the key is present with a table as its value.
    pub fn is_table(&self, key: &'static str) -> bool {
        self.entry(key).is_some_and(|(_, v)| matches!(v.get_ref(), DeValue::Table(_)))
    }

    /// Returns the value of a key, parsed by a function.
    pub fn value<T>(&self, key: &'static str, parse: impl FnOnce(&DeValue) -> Result<T, Fault>) -> Option<T> {
        let (_, value) = self.entry(key)?;
        match learnt::value(&self.place, key, || parse(value.get_ref())) {
            Ok(v) => Some(v),
            Err(fault) => {
                self.fault_in(key, fault);
                None
            }
        }
    }

    /// Returns the value of a key after a further conversion with checks.
    pub fn parsed<T: FromValue, U>(
        &self,
        key: &'static str,
        check: impl FnOnce(T) -> Result<U, Fault>,
    ) -> Option<U> {
        self.value(key, |v| T::from_value(v).and_then(check))
    }

    /// Returns a whole number from `range`.
    pub fn int(&self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        self.value(key, |value| int(value, range))
    }

    /// Returns one of a closed set of names.
    pub fn choice<T: Copy>(&self, key: &'static str, known: &[(&str, T)], future: &[&str]) -> Option<T> {
        self.value(key, |value| one_of(value, known, future))
    }

    /// Returns the value of a required key, as [`Section::get`] does.
    pub fn required<T: FromValue>(&self, key: &'static str, example: &str) -> Option<T> {
        self.need(key, example);
        self.get(key)
    }

    /// Requires a key; [`Section::finish`] notes a fault if it is absent.
    pub fn need(&self, key: &'static str, example: &str) {
        learnt::needed(&self.place, key);
        if !self.has(key) {
            self.missing.borrow_mut().push((key, example.to_string()));
        }
    }

    /// Notes a fault if more than one of these keys is present: they set the same value.
    pub fn at_most_one(&self, keys: &[&'static str], why: &str) {
        learnt::exclusive(&self.place, keys);
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
