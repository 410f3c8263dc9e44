//! Reading tables: every key is asked for by name and parsed on the spot; what was not asked for is
//! an unknown key. Faults are collected, so that one run shows all of them.

use super::diag::{listed, nearest, Diagnostic, Errors, Source};
use super::units::{self, Fault};
use super::value::found;
pub use super::value::{FromValue, Number, Positive, Scalar, Size};
use crate::result::World;
use core::ops::{Range, RangeInclusive};
use std::cell::RefCell;
use toml::de::{DeTable, DeValue};
use weir_core::time::Duration;

/// Where faults are collected, where keys that not every world has are noted, and times that bins of
/// received bytes must divide.
#[derive(Default)]
pub struct Sink {
    faults: RefCell<Vec<Diagnostic>>,
    only: RefCell<Vec<Only>>,
    times: RefCell<Vec<(Range<usize>, Duration)>>,
}

/// A key or a value that one world only can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Only {
    /// The world that can.
    pub world: World,
    /// What the other one says about it.
    pub refusal: Diagnostic,
}

impl Sink {
    /// Notes a fault.
    pub fn push(&self, span: Range<usize>, fault: Fault) {
        self.faults.borrow_mut().push(diagnostic(span, fault));
    }
    /// No faults so far?
    pub fn is_empty(&self) -> bool {
        self.faults.borrow().is_empty()
    }
    /// `value`, unless there were faults.
    pub fn finish<T>(self, source: &Source, value: Option<T>) -> Result<(T, Vec<Only>), Errors> {
        let faults = self.faults.into_inner();
        match value {
            Some(v) if faults.is_empty() => Ok((v, self.only.into_inner())),
            _ => Err(Errors::new(source, faults)),
        }
    }
}

fn diagnostic(span: Range<usize>, fault: Fault) -> Diagnostic {
    Diagnostic { span, message: fault.message, help: fault.help }
}

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

    /// The path of this table: `path.wan`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// A key with its path, for messages.
    fn full(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_string()
        } else {
            format!("{}.{key}", self.path)
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
        self.parsed(key, |n: u64| {
            if range.contains(&n) {
                Ok(n)
            } else {
                Err(Fault::bare(format!("{n} is not from {} to {}", range.start(), range.end())))
            }
        })
    }

    /// One of a closed set of names.
    pub fn choice<T: Copy>(&self, key: &'static str, known: &[(&str, T)], future: &[&str]) -> Option<T> {
        self.parsed(key, |s: String| units::choice(&s, "value", known, future))
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
                Fault::new(format!("`{}` together with `{first}`", self.full(last)), why),
            );
        }
    }

    /// Notes that a key that one world only has is used.
    pub fn note_only(&self, world: World, key: &'static str) {
        if let Some((span, _)) = self.entry(key) {
            let other = other(world).name();
            let message = format!("`{}` does not exist in the {other} world", self.full(key));
            let help = format!("it exists in the {} world only", world.name());
            self.only(world, span, Fault::new(message, help));
        }
    }

    /// Notes that the value of a key is one that one world only can do; the other says the fault.
    pub fn note_value(&self, world: World, key: &'static str, fault: Fault) {
        self.only(world, self.value_span(key), fault);
    }

    fn only(&self, world: World, span: Range<usize>, fault: Fault) {
        self.sink.only.borrow_mut().push(Only { world, refusal: diagnostic(span, fault) });
    }

    /// Notes a time that the bins of received bytes must divide.
    pub fn note_time(&self, key: &'static str, time: Duration) {
        self.sink.times.borrow_mut().push((self.value_span(key), time));
    }

    /// The times noted anywhere in the file, and where they are.
    pub fn times(&self) -> Vec<(Range<usize>, Duration)> {
        self.sink.times.borrow().clone()
    }

    /// A fault about some other part of the file.
    pub fn fault_at(&self, span: Range<usize>, fault: Fault) {
        self.sink.push(span, fault);
    }

    /// The elements of the array under a key; `None` if it is absent or one of them is faulty.
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
            match (parse(item.get_ref()), &mut out) {
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

    /// The table under a key.
    pub fn section(&self, key: &'static str) -> Option<Section<'a>> {
        let (key_span, value) = self.entry(key)?;
        match value.get_ref() {
            DeValue::Table(t) => {
                Some(Section::new(t, table_span(value, key_span), self.full(key), self.sink))
            }
            v => {
                let message = format!("`{}`: expected a table, found {}", self.full(key), found(v));
                let help = format!("write [{0}] above its keys", self.full(key));
                self.sink.push(value.span(), Fault::new(message, help));
                None
            }
        }
    }

    /// The tables of the array under a key; none if it is absent.
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
        if items.is_empty() {
            let message = format!("`{}`: an empty array", self.full(key));
            self.sink.push(value.span(), Fault::new(message, "leave the key out"));
        }
        let mut out = Vec::new();
        for item in items.iter() {
            match item.get_ref() {
                DeValue::Table(t) => {
                    out.push(Section::new(t, table_span(item, key_span.clone()), self.full(key), self.sink));
                }
                v => self.sink.push(
                    item.span(),
                    Fault::bare(format!("`{}`: expected a table, found {}", self.full(key), found(v))),
                ),
            }
        }
        out
    }

    /// Notes a fault for every key that nobody asked for, and for every key that is missing.
    pub fn finish(self) {
        self.check_done();
    }

    /// As [`Section::finish`], for a section that is only borrowed.
    pub fn check_done(&self) {
        let mut missing = self.missing.take();
        for (key, _) in self.table.iter() {
            let name: &str = key.get_ref();
            if self.asked.borrow().contains(&name) {
                continue;
            }
            let fault = self.unknown(name);
            // A misspelt key is not missing as well.
            let meant = self.guess(name);
            missing.retain(|(k, _)| Some(*k) != meant);
            self.sink.push(key.span(), fault);
        }
        for (key, example) in missing {
            self.fault_here(Fault::new(
                format!("missing key `{}`", self.full(key)),
                format!("for example: {key} = {example}"),
            ));
        }
    }

    /// The key that was probably meant: not one that is there.
    fn guess(&self, name: &str) -> Option<&'static str> {
        let asked = self.asked.borrow();
        let absent = asked.iter().copied().filter(|k| !self.is_there(k));
        nearest(name, absent)
    }

    fn unknown(&self, name: &str) -> Fault {
        let full = self.full(name);
        if let Some((_, what, why)) = self.refused.iter().find(|(k, ..)| *k == name) {
            return Fault::new(format!("`{full}` {what}"), *why);
        }
        let guess = self.guess(name).map_or(String::new(), |k| format!("did you mean `{k}`? "));
        let place =
            if self.path.is_empty() { "at the top".to_string() } else { format!("in `{}`", self.path) };
        let known = listed(self.asked.borrow().iter().copied());
        Fault::new(format!("unknown key `{full}`"), format!("{guess}known {place}: {known}"))
    }
}

/// The world that is not this one.
fn other(world: World) -> World {
    match world {
        World::Lab => World::Sim,
        World::Sim => World::Lab,
    }
}

/// The span of a table for messages: its header line, not all of its lines. A table that exists only
/// through its dotted children has an empty span; then the key stands for it.
fn table_span(value: &toml::Spanned<DeValue>, key: Range<usize>) -> Range<usize> {
    if value.span().is_empty() {
        key
    } else {
        value.span()
    }
}
