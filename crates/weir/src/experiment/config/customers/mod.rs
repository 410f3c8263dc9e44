//! Lists of customers: CSV files with a row for each, which becomes a class for each direction.
//!
//! Two kinds are understood: Weir's own columns, and those of LibreQoS's ShapedDevices.csv, in which several rows may be devices of
//! one circuit.

mod class;
mod columns;
mod fields;
mod overlap;
mod place;

pub(super) use class::classes;

use super::diag::{Diagnostic, Errors, Fault, Source};
use super::settings::{OfCustomer, Settings};
use columns::{Column, Columns};
use core::ops::Range;
use std::collections::HashMap;
use weir_core::gateway::Prefix;
use weir_core::rate::Rate;

/// Different faults of a file that are said.
const MOST_FAULTS: usize = 20;

/// A customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Customer {
    /// Its identifier, from which the names of its classes are made: `ID-up` and `ID-down`.
    pub id: String,
    /// Its name, for people.
    pub name: String,
    /// Its addresses, of which none is another customer's.
    pub prefixes: Vec<Prefix>,
    /// Rate of what it downloads.
    pub down: Rate,
    /// Rate of what it uploads.
    pub up: Rate,
    /// Its flows pass untouched for now.
    pub off: bool,
    /// What ACKs cannot slow is dropped where it exceeds the rate.
    pub police: bool,
}

/// A customer as its rows say it.
struct Entry {
    customer: Customer,
    /// Where each of its prefixes is.
    places: Vec<Range<usize>>,
    /// The line of its first row.
    line: u64,
}

/// What a row says.
struct Row {
    id: String,
    name: String,
    prefixes: Vec<(Prefix, Range<usize>)>,
    down: Rate,
    up: Rate,
    /// Where its identifier is, and where its rates are.
    id_at: Range<usize>,
    rates_at: Range<usize>,
    line: u64,
}

/// Reads a list. All errors of the file come at once, up to a limit.
pub(super) fn read(source: &Source, settings: &Settings) -> Result<Vec<Customer>, Errors> {
    let mut faults = Faults::default();
    let list = rows(source, &mut faults);
    let mut list = faults.finish(source, list)?;
    set(&mut list, settings).map_err(|fault| Errors::of(source, fault))?;
    Ok(list)
}

fn rows(source: &Source, faults: &mut Faults) -> Vec<Customer> {
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_reader(source.text.as_bytes());
    let columns = match reader.headers() {
        Ok(header) => Columns::new(source, header, faults),
        Err(error) => {
            faults.note(0..0, Fault::bare(error.to_string()));
            return Vec::new();
        }
    };
    let Some(columns) = columns else { return Vec::new() };
    let mut list = List { several_rows: columns.several_rows(), ..List::default() };
    for record in reader.records() {
        match record {
            Ok(record) => {
                if let Some(row) = row(source, &columns, &record, faults) {
                    list.add(row, faults);
                }
            }
            Err(error) => {
                let at = error.position().map_or(0, |at| at.byte() as usize);
                faults.note(at..at, Fault::bare(error.to_string()));
            }
        }
    }
    if list.entries.is_empty() && faults.list.is_empty() {
        faults.note(0..0, Fault::new("a list without customers", columns.example()));
    }
    overlap::check(source, &list.entries, faults);
    list.entries.into_iter().map(|entry| entry.customer).collect()
}

/// What one row says; nothing if it is faulty.
fn row(source: &Source, columns: &Columns, record: &csv::StringRecord, faults: &mut Faults) -> Option<Row> {
    let before = faults.count;
    let start = record.position().map_or(0, |at| at.byte() as usize);
    let at = |i: usize| place::place(&source.text, start, i);
    let fields = fields::Fields { source, columns, record, at: &at };
    if let Some(fault) = columns.wrong_length(record.len()) {
        faults.note(at(0), fault);
        return None;
    }
    let (id, id_at) = fields.id(faults);
    let name = fields.text(Column::Name);
    let prefixes = fields.prefixes(faults);
    let (down, rates_at) = fields.rate(Column::Down, faults);
    let (up, _) = fields.rate(Column::Up, faults);
    let line = record.position().map_or(0, csv::Position::line);
    let row = Row { id: id?, name, prefixes, down: down?, up: up?, id_at, rates_at, line };
    (faults.count == before).then_some(row)
}

/// Customers in the order of their first rows.
#[derive(Default)]
struct List {
    entries: Vec<Entry>,
    by_id: HashMap<String, usize>,
    /// Rows of the same identifier are one customer's.
    several_rows: bool,
}

impl List {
    fn add(&mut self, row: Row, faults: &mut Faults) {
        let (prefixes, places): (Vec<Prefix>, Vec<_>) = row.prefixes.into_iter().unzip();
        let Some(&known) = self.by_id.get(&row.id) else {
            self.by_id.insert(row.id.clone(), self.entries.len());
            let Row { id, name, down, up, line, .. } = row;
            let customer = Customer { id, name, prefixes, down, up, off: false, police: false };
            self.entries.push(Entry { customer, places, line });
            return;
        };
        let entry = &mut self.entries[known];
        let first = format!("its first row is line {}", entry.line);
        if !self.several_rows {
            let message = format!("customer \"{}\" is there twice", row.id);
            faults.note(row.id_at, Fault::new(message, first));
            return;
        }
        if (entry.customer.down, entry.customer.up) != (row.down, row.up) {
            let (down, up) = (entry.customer.down, entry.customer.up);
            let message = format!("circuit \"{}\" has other rates here", row.id);
            faults.note(row.rates_at, Fault::new(message, format!("{first}: {down} down, {up} up")));
            return;
        }
        entry.customer.prefixes.extend(prefixes);
        entry.places.extend(places);
    }
}

/// Lays what was set over the list.
fn set(list: &mut [Customer], settings: &Settings) -> Result<(), Fault> {
    let settings = settings.of_customers();
    if settings.is_empty() {
        return Ok(());
    }
    let by_id: HashMap<String, usize> = list.iter().map(|c| c.id.clone()).zip(0..).collect();
    for (id, OfCustomer { down, up, off }) in settings {
        let number = by_id.get(id).ok_or_else(|| Fault::bare(format!("there is no customer \"{id}\"")))?;
        let customer = &mut list[*number];
        for (rate, to) in [(down, &mut customer.down), (up, &mut customer.up)] {
            *to = rate.map_or(Ok(*to), super::policy::flow_rate)?;
        }
        customer.off = off;
    }
    Ok(())
}

/// Faults of a file, of which the first are said.
#[derive(Default)]
struct Faults {
    list: Vec<Diagnostic>,
    count: usize,
}

impl Faults {
    fn note(&mut self, span: Range<usize>, fault: Fault) {
        self.count += 1;
        if self.list.len() < MOST_FAULTS {
            self.list.push(Diagnostic { span, message: fault.message, help: fault.help });
        }
    }

    fn finish<T>(mut self, source: &Source, value: T) -> Result<T, Errors> {
        if self.list.is_empty() {
            return Ok(value);
        }
        let more = self.count - self.list.len();
        if let Some(last) = self.list.last_mut().filter(|_| more > 0) {
            last.help = Some(format!("{} further errors are not shown", more));
        }
        Err(Errors::new(source, self.list))
    }
}

#[cfg(test)]
mod tests;
