//! Lists of customers: CSV files with a row for each, which becomes a class for each direction, and lists of the sites that they are
//! below.
//!
//! Two kinds are understood: Weir's own columns, and those of LibreQoS's ShapedDevices.csv, in which several rows may be devices of
//! one circuit. Sites are in a CSV file or in LibreQoS's network.json.

mod class;
mod columns;
mod draft;
mod entry;
mod fields;
mod guarantees;
mod network;
mod overlap;
mod place;
mod rows;
pub mod sites;

pub(super) use class::classes;

use super::diag::{Diagnostic, Errors, Fault, Source};
use super::policy;
use super::settings::{OfCustomer, Settings};
use core::ops::Range;
use sites::Site;
use std::collections::HashMap;
use weir_core::ack::Unresponsive;
use weir_core::gateway::{Direction, Prefix};
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
    /// The site that it is below, by its place in the list of sites.
    pub site: Option<usize>,
    /// What it has of its site's rate for itself, for what it downloads.
    pub down_min: Option<Rate>,
    /// The same for what it uploads.
    pub up_min: Option<Rate>,
    /// Its flows pass untouched for now.
    pub off: bool,
    /// What becomes of traffic that ACKs cannot slow.
    pub unresponsive: Unresponsive,
}

impl Customer {
    /// Its rate in this direction.
    pub fn rate(&self, direction: Direction) -> Rate {
        match direction {
            Direction::Out => self.up,
            Direction::In => self.down,
        }
    }

    /// What it has for itself of its site's rate in this direction.
    pub fn least(&self, direction: Direction) -> Option<Rate> {
        match direction {
            Direction::Out => self.up_min,
            Direction::In => self.down_min,
        }
    }
}

/// Reads a list of customers, of whom some may be below `sites`, if there is a list of these. All errors of the file come at once, up
/// to a limit.
pub(super) fn read(
    source: &Source,
    sites: Option<&[Site]>,
    settings: &Settings,
) -> Result<Vec<Customer>, Errors> {
    let mut faults = Faults::default();
    let list = rows::customers(source, sites, &mut faults);
    let mut list = faults.finish(source, list)?;
    set(&mut list, settings).map_err(|fault| Errors::of(source, fault))?;
    Ok(list)
}

/// A reader of rows that may be of different lengths, with comments.
fn reader(source: &Source) -> csv::Reader<&[u8]> {
    let mut builder = csv::ReaderBuilder::new();
    builder.flexible(true).trim(csv::Trim::All).comment(Some(b'#')).from_reader(source.text.as_bytes())
}

/// The rows that can be read.
fn records(reader: &mut csv::Reader<&[u8]>, faults: &mut Faults) -> Vec<csv::StringRecord> {
    let record = |record: csv::Result<csv::StringRecord>| match record {
        Ok(record) => Some(record),
        Err(error) => {
            let at = error.position().map_or(0, |at| at.byte() as usize);
            faults.note(at..at, Fault::bare(error.to_string()));
            None
        }
    };
    reader.records().filter_map(record).collect()
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
        rate_set(down, &mut customer.down)?;
        rate_set(up, &mut customer.up)?;
        customer.off = off;
        for direction in [Direction::In, Direction::Out] {
            let (rate, least) = (customer.rate(direction), customer.least(direction));
            if let Some(least) = least.filter(|&least| least > rate) {
                return Err(Fault::bare(format!(
                    "customer \"{id}\" has at least {least}, which is more than {rate}"
                )));
            }
        }
    }
    Ok(())
}

/// A rate becomes what was set, if anything was.
fn rate_set(text: Option<&str>, rate: &mut Rate) -> Result<(), Fault> {
    *rate = text.map_or(Ok(*rate), policy::flow_rate)?;
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
