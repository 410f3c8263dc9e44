//! The fields of a row.

use super::columns::{Column, Columns};
use super::Faults;
use crate::experiment::config::decimal::Decimal;
use crate::experiment::config::diag::{Fault, Source};
use crate::experiment::config::{addresses, names, policy};
use core::ops::Range;
use weir_core::gateway::Prefix;
use weir_core::rate::Rate;

/// A row, with the places of its fields.
pub(super) struct Fields<'a> {
    pub source: &'a Source,
    pub columns: &'a Columns,
    pub record: &'a csv::StringRecord,
    pub at: &'a dyn Fn(usize) -> Range<usize>,
}

impl Fields<'_> {
    /// What the first of the columns has that says this; empty without one.
    pub fn text(&self, column: Column) -> String {
        let field = self.columns.of(column).next().and_then(|(i, _)| self.record.get(i));
        field.unwrap_or_default().to_owned()
    }

    /// The identifier and where it is.
    pub fn id(&self, faults: &mut Faults) -> (Option<String>, Range<usize>) {
        let Some((i, name)) = self.columns.of(Column::Id).next() else { return (None, 0..0) };
        let at = (self.at)(i);
        let mut id = self.text(Column::Id);
        if id.is_empty() {
            // A device without a circuit is one by itself.
            id = self.text(Column::Device);
        }
        if id.is_empty() {
            let help = "each customer has an identifier of its own";
            faults.note(at.clone(), Fault::new(format!("column \"{name}\": empty"), help));
            return (None, at);
        }
        // The names of its classes are a little longer.
        let named = names::name(format!("{id}-down")).map(|_| id.clone()).map_err(|_| {
            let help = "identifiers are 1 to 59 letters, digits, `-` and `_`";
            Fault::new(format!("column \"{name}\": \"{id}\" is not an identifier"), help)
        });
        (named.map_err(|fault| faults.note(at.clone(), fault)).ok(), at)
    }

    /// All prefixes and where each is; at least one.
    pub fn prefixes(&self, faults: &mut Faults) -> Vec<(Prefix, Range<usize>)> {
        let columns =
            || [Column::Prefixes, Column::V4, Column::V6].into_iter().flat_map(|c| self.columns.of(c));
        let mut found = Vec::new();
        let before = faults.count;
        for (i, name) in columns() {
            let at = (self.at)(i);
            let text = self.record.get(i).unwrap_or_default();
            for part in text.split([' ', ';', ',', '\t']).filter(|part| !part.is_empty()) {
                let place = self.find(&at, part);
                match addresses::prefix(part) {
                    Ok(prefix) => found.push((prefix, place)),
                    Err(fault) => {
                        let message = format!("column \"{name}\": {}", fault.message);
                        faults.note(place, Fault { message, ..fault });
                    }
                }
            }
        }
        if let (true, Some((i, name))) = (found.is_empty() && faults.count == before, columns().next()) {
            let help = "a customer has at least one address: \"10.1.2.0/24 2001:db8:17::/48\"";
            faults.note((self.at)(i), Fault::new(format!("column \"{name}\": no prefix"), help));
        }
        found
    }

    /// Where a part of a field is.
    fn find(&self, at: &Range<usize>, part: &str) -> Range<usize> {
        let found = self.source.text.get(at.clone()).and_then(|field| field.find(part));
        found.map_or(at.clone(), |offset| at.start + offset..at.start + offset + part.len())
    }

    /// What a column names, and where, unless it names nothing. LibreQoS writes "none" for that.
    pub fn named(&self, column: Column) -> Option<(String, Range<usize>)> {
        let (i, _) = self.columns.of(column).next()?;
        let text = self.text(column);
        (!text.is_empty() && text != "none").then(|| (text, (self.at)(i)))
    }

    /// A rate and where it is, if there is one. None is none, and so are zero megabits.
    pub fn rate_if_any(&self, column: Column, faults: &mut Faults) -> (Option<Rate>, Range<usize>) {
        let text = self.text(column);
        let is_none = text.is_empty()
            || self.columns.in_mbps() && Decimal::parse(&text).is_some_and(|number| number.times(1) == Ok(0));
        match (is_none, self.columns.of(column).next()) {
            (false, _) => self.rate(column, faults),
            (true, place) => (None, place.map_or(0..0, |(i, _)| (self.at)(i))),
        }
    }

    /// A rate and where it is.
    pub fn rate(&self, column: Column, faults: &mut Faults) -> (Option<Rate>, Range<usize>) {
        let Some((i, name)) = self.columns.of(column).next() else { return (None, 0..0) };
        let (at, text) = ((self.at)(i), self.record.get(i).unwrap_or_default());
        let parsed = match (text, self.columns.in_mbps()) {
            ("", true) => Err(Fault::new("no rate", "megabits a second: 50, or 2.5")),
            ("", false) => Err(Fault::new("no rate", "for example 50Mbit")),
            (text, true) => mbps(text),
            (text, false) => policy::flow_rate(text),
        };
        let parsed = parsed.map_err(|fault| {
            let message = format!("column \"{name}\": {}", fault.message);
            faults.note(at.clone(), Fault { message, ..fault });
        });
        (parsed.ok(), at)
    }
}

/// A rate as a number of megabits a second.
pub(super) fn mbps(text: &str) -> Result<Rate, Fault> {
    let wrong = || Fault::new(format!("\"{text}\" is not a rate"), "megabits a second: 50, or 2.5");
    let bps = Decimal::parse(text).and_then(|number| number.times(1_000_000).ok()).ok_or_else(wrong)?;
    match Rate::from_bps(bps) {
        Some(rate) => policy::in_range(rate),
        None => Err(Fault::new("a rate of zero would never send anything", "megabits a second: 50, or 2.5")),
    }
}
