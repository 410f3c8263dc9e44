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
mod json;
mod label;
mod network;
mod overlap;
mod rates;
mod rows;
pub mod sites;
mod split;
mod table;

pub(super) use class::classes;
pub use label::label;

use super::diag::{located, Diagnostic, Errors, Fault, Located, Source};
use super::policy;
use super::settings::{OfCustomer, Settings};
use core::ops::Range;
use sites::Sites;
use std::collections::HashMap;
use weir_core::ack::Unresponsive;
use weir_core::gateway::{Direction, Prefix};
use weir_core::rate::Rate;

/// Different faults of a file that are said.
const MOST_FAULTS: usize = 20;

/// A customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Customer {
    /// Its identifier, as the list has it.
    pub id: String,
    /// Its identifier as far as it can be in names of classes, which are `LABEL-up` and `LABEL-down`.
    pub label: String,
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

/// Reads a list of customers, of whom some may be below `sites`, if there is a list of these, with notes
/// about rows that are left out or count otherwise than they say. All errors of the file come at once, up to
/// a limit.
pub(super) fn read(
    source: &Source,
    sites: Option<&Sites>,
    settings: &Settings,
) -> Result<(Vec<Customer>, Vec<Located>), Errors> {
    let mut faults = Faults::default();
    let list = rows::customers(source, sites, &mut faults);
    let (mut list, notes) = faults.finish(source, list)?;
    set(&mut list, settings).map_err(|fault| Errors::of(source, fault))?;
    Ok((list, notes))
}

/// Lays what was set over the list.
fn set(list: &mut [Customer], settings: &Settings) -> Result<(), Fault> {
    let settings = settings.of_customers();
    if settings.is_empty() {
        return Ok(());
    }
    let by_label: HashMap<String, usize> = list.iter().map(|c| c.label.clone()).zip(0..).collect();
    for (id, OfCustomer { down, up, off }) in settings {
        let number = by_label.get(id).ok_or_else(|| Fault::bare(format!("there is no customer \"{id}\"")))?;
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

/// Faults of a file, of which the first are said, and notes about what is no fault.
#[derive(Default)]
struct Faults {
    list: Vec<Diagnostic>,
    count: usize,
    notes: Vec<Diagnostic>,
}

impl Faults {
    fn note(&mut self, span: Range<usize>, fault: Fault) {
        self.count += 1;
        if self.list.len() < MOST_FAULTS {
            self.list.push(Diagnostic { span, message: fault.message, help: fault.help });
        }
    }

    /// Says of something that is accepted what does not count.
    fn remark(&mut self, span: Range<usize>, fault: Fault) {
        self.notes.push(Diagnostic { span, message: fault.message, help: fault.help });
    }

    fn finish<T>(mut self, source: &Source, value: T) -> Result<(T, Vec<Located>), Errors> {
        if self.list.is_empty() {
            self.notes.sort_by_key(|note| note.span.start);
            return Ok((value, located(source, &self.notes)));
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
