//! Lists of customers, and lists of the sites above them. A list of customers is a CSV file. Each customer
//! becomes two classes, one per direction.
//!
//! Two formats are read: Weir's own columns with a row for each customer, and LibreQoS's ShapedDevices.csv,
//! in which several rows may describe devices of one circuit. Sites are in a CSV file or in LibreQoS's
//! network.json.

mod class;
mod columns;
mod draft;
mod entry;
mod fields;
mod guarantees;
mod json;
mod label;
pub mod named;
mod network;
mod overlap;
mod rates;
mod rows;
pub mod sites;
mod special;
mod split;
mod sqm;
mod table;

pub(super) use class::classes;
pub use label::label;

use super::diag::{located, Diagnostic, Errors, Fault, Located, Source};
use super::policy;
use super::settings::{OfCustomer, Settings};
use core::ops::Range;
use sites::Sites;
use sqm::Sqm;
use std::collections::HashMap;
use weir_core::ack::Unresponsive;
use weir_core::gateway::{Direction, Prefix};
use weir_core::rate::Rate;

/// Maximum number of faults that are reported for a file.
const MOST_FAULTS: usize = 20;

/// Number of flows of a customer that have a queue of their own, unless `flows` says it.
pub(super) const FLOWS_OF_CUSTOMER: u32 = 64;

/// A customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Customer {
    /// Identifier, as written in the list.
    pub id: String,
    /// Identifier in the form that names of classes allow. The classes are `LABEL-up` and `LABEL-down`.
    pub label: String,
    /// Name, for people only.
    pub name: String,
    /// Addresses. No other customer has any of them.
    pub prefixes: Vec<Prefix>,
    /// Rate of downloads.
    pub down: Rate,
    /// Rate of uploads.
    pub up: Rate,
    /// Site above the customer, as an index into the list of sites.
    pub site: Option<usize>,
    /// Guaranteed rate of downloads, out of the site's rate.
    pub down_min: Option<Rate>,
    /// Guaranteed rate of uploads, out of the site's rate.
    pub up_min: Option<Rate>,
    /// True while the customer's flows pass untouched.
    pub off: bool,
    /// Treatment of unresponsive traffic, which ACKs cannot slow.
    pub unresponsive: Unresponsive,
    /// Queue disciplines of uploads and of downloads. `None`: that of the list.
    pub sqm: [Option<Sqm>; 2],
}

impl Customer {
    /// Returns the rate in this direction.
    pub fn rate(&self, direction: Direction) -> Rate {
        match direction {
            Direction::Out => self.up,
            Direction::In => self.down,
        }
    }

    /// Returns the guaranteed rate in this direction.
    pub fn least(&self, direction: Direction) -> Option<Rate> {
        match direction {
            Direction::Out => self.up_min,
            Direction::In => self.down_min,
        }
    }
}

/// Reads a list of customers. `sites` are the sites that customers may be below, if there is a list of sites.
/// `queued` says whether customers have queues, of uploads and of downloads.
/// Returns the customers, and notes about rows that are left out or count otherwise than they are written.
/// All errors of the file are returned at once, up to a limit.
pub(super) fn read(
    source: &Source,
    sites: Option<&Sites>,
    queued: [bool; 2],
    settings: &Settings,
) -> Result<(Vec<Customer>, Vec<Located>), Errors> {
    let mut faults = Faults::default();
    let list = rows::customers(source, sites, queued, &mut faults);
    let (mut list, notes) = faults.finish(source, list)?;
    set(&mut list, settings).map_err(|fault| Errors::of(source, fault))?;
    Ok((list, notes))
}

/// Applies the settings to the list.
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

/// Replaces a rate by the one that was set, if one was set.
fn rate_set(text: Option<&str>, rate: &mut Rate) -> Result<(), Fault> {
    *rate = text.map_or(Ok(*rate), policy::flow_rate)?;
    Ok(())
}

/// Faults of a file, and notes about accepted oddities. Only the first faults are kept; all are counted.
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

    /// Adds a note about something that is accepted but has no effect.
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
