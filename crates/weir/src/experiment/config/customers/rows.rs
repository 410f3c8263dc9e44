//! Rows of a list of customers.

use super::columns::{Column, Columns};
use super::entry::Entry;
use super::fields::Fields;
use super::sites::Sites;
use super::sqm::Sqm;
use super::table::{self, Row};
use super::{guarantees, label, overlap, Customer, Faults};
use crate::experiment::config::diag::{Fault, Source};
use core::ops::Range;
use std::collections::HashMap;
use weir_core::ack::Unresponsive;
use weir_core::gateway::Direction;
use weir_core::rate::Rate;

/// Parsed contents of a row.
struct Said {
    customer: Customer,
    places: Vec<Range<usize>>,
    least_at: [Range<usize>; 2],
    /// Places of the identifier, the name, the rates and the site.
    id_at: Range<usize>,
    name_at: Range<usize>,
    rates_at: Range<usize>,
    site_at: Range<usize>,
    sqm_at: Range<usize>,
    /// The queue disciplines are unknown ones, of which customers without queues have no use.
    unknown_sqm: bool,
    line: u64,
}

/// Reads the customers of a list. `queued` says whether they have queues, of uploads and of downloads.
pub(super) fn customers(
    source: &Source,
    sites: Option<&Sites>,
    queued: [bool; 2],
    faults: &mut Faults,
) -> Vec<Customer> {
    let rows = table::rows(source, faults);
    let Some((header, rows)) = rows.split_first() else {
        if faults.count == 0 {
            faults.note(0..0, Fault::new("a list without columns", "its first row: id,prefixes,down,up"));
        }
        return Vec::new();
    };
    let Some(columns) = Columns::new(header, faults) else { return Vec::new() };
    let labels =
        sites.iter().flat_map(|sites| &sites.list).map(|site| (site.name.as_str(), site.id.as_str()));
    let context = Context { source, columns: &columns, sites, queued, site_labels: labels.collect() };
    let mut list = List { several_rows: columns.several_rows(), ..List::default() };
    let mut unused = None;
    for row in rows {
        if let Some(said) = context.row(row, faults) {
            if unused.is_none() {
                unused = context.unused(&said).map(|fault| (said.sqm_at.clone(), fault));
            }
            list.add(said, faults);
        }
    }
    if let Some((at, fault)) = unused {
        faults.remark(at, fault);
    }
    if list.entries.is_empty() && faults.list.is_empty() {
        faults.note(0..0, nobody(faults, &columns));
    }
    overlap::check(&list.entries, faults);
    let below = sites.map_or(&[][..], |sites| &sites.list);
    match columns.several_rows() {
        true => guarantees::fit(&mut list.entries, below, faults),
        false => guarantees::check(&list.entries, below, faults),
    }
    list.entries.into_iter().map(|entry| entry.customer).collect()
}

/// Returns the fault of a list without customers.
fn nobody(faults: &Faults, columns: &Columns) -> Fault {
    match faults.notes.first() {
        Some(first) => Fault::new("a list in which nobody can be shaped", first.message.clone()),
        None => Fault::new("a list without customers", columns.example()),
    }
}

/// Context in which rows are read.
struct Context<'a> {
    source: &'a Source,
    columns: &'a Columns,
    sites: Option<&'a Sites>,
    /// True where customers have queues, of uploads and of downloads.
    queued: [bool; 2],
    /// Identifiers of sites by their labels.
    site_labels: HashMap<&'a str, &'a str>,
}

impl Context<'_> {
    /// Parses a row. Returns `None` if it is faulty or left out.
    fn row(&self, row: &Row, faults: &mut Faults) -> Option<Said> {
        let before = faults.count;
        if self.columns.repeated(row) {
            let help = "it is left out";
            faults.remark(row.place(0), Fault::new("the header once more", help));
            return None;
        }
        if let Some(fault) = self.columns.wrong_length(row) {
            faults.note(row.place(0), fault);
            return None;
        }
        let fields = Fields { source: self.source, columns: self.columns, row };
        let id = fields.id(faults);
        if let Some((id, label)) = &id {
            if let Some(site) = self.site_labels.get(label.as_str()) {
                let fault = label::taken("customer", id, &format!("site \"{site}\""));
                faults.note(fields.place(Column::Id), fault);
            }
        }
        let (prefixes, places): (Vec<_>, Vec<_>) = fields.prefixes(faults).into_iter().unzip();
        let has_no_address = prefixes.is_empty() && faults.count == before;
        let rate = |column: Column, faults: &mut Faults| match has_no_address {
            true => fields.rate_if_any(column, faults),
            false => fields.rate(column, faults),
        };
        let [down, up] = [Column::Down, Column::Up].map(|column| rate(column, faults));
        let site = self.site(&fields, faults);
        let least = [(Column::DownMin, down), (Column::UpMin, up)];
        let [down_min, up_min] = least.map(|(column, most)| self.least(&fields, column, most, site, faults));
        let mut of_sqm = Faults::default();
        let queued = self.queued.contains(&true);
        let (sqm, sqm_at) = fields.sqm(if queued { faults } else { &mut of_sqm });
        if faults.count == before && has_no_address {
            let id = id.map_or(String::new(), |(id, _)| id);
            let column = [Column::Prefixes, Column::V4, Column::V6].into_iter();
            let at = column.flat_map(|column| self.columns.of(column)).next();
            let at = row.place(at.map_or(0, |(i, _)| i));
            let message = format!("customer \"{id}\" has no address here");
            faults.remark(at, Fault::new(message, "this row is left out"));
            return None;
        }
        let ((id, label), down, up) = (id?, down?, up?);
        let name = fields.text(Column::Name).to_owned();
        let (off, unresponsive) = (false, Unresponsive::Bound);
        let customer =
            Customer { id, label, name, prefixes, down, up, site, down_min, up_min, off, unresponsive, sqm };
        let said = Said {
            customer,
            places,
            least_at: [Column::DownMin, Column::UpMin].map(|column| fields.place(column)),
            id_at: fields.place(Column::Id),
            name_at: fields.place(Column::Name),
            rates_at: fields.place(Column::Down),
            site_at: fields.place(Column::Site),
            sqm_at,
            unknown_sqm: of_sqm.count > 0,
            line: row.line,
        };
        (faults.count == before).then_some(said)
    }

    /// Returns the remark about queue disciplines of a direction in which customers have no queues. They may
    /// have no discipline there.
    fn unused(&self, said: &Said) -> Option<Fault> {
        let named = |k: usize| said.customer.sqm[k].is_some_and(|sqm| sqm != Sqm::None);
        let unused = |k: usize| !self.queued[k] && (said.unknown_sqm || named(k));
        let of = match [unused(0), unused(1)] {
            [false, false] => return None,
            [true, false] => " for uploads",
            [false, true] => " for downloads",
            [true, true] => "",
        };
        let help = "`queues` gives customers queues: \"up\", \"down\" or \"both\"";
        Some(Fault::new(format!("column \"sqm\" has no effect{of}: customers have no queues there"), help))
    }

    /// Returns the index of the row's site.
    fn site(&self, fields: &Fields<'_>, faults: &mut Faults) -> Option<usize> {
        if self.columns.several_rows() {
            return self.parent_node(fields, faults);
        }
        let has = |name: &str| self.sites.is_some_and(|sites| sites.named(name).is_some());
        let (id, at) = (fields.named(Column::Site, has)?, fields.place(Column::Site));
        let fault = match self.sites {
            Some(sites) => match sites.named(id) {
                Some(site) => return site,
                None => sites.unknown(id),
            },
            None => Fault::new(
                format!("no site is \"{id}\": there is no list of sites"),
                "name one beside `file`: sites = \"sites.csv\"",
            ),
        };
        faults.note(at, fault);
        None
    }

    /// Returns the site of a device, found by the identifier or the name of its parent. LibreQoS's lists
    /// always name parents, even without a list of sites, and its programs name some that are in no list.
    fn parent_node(&self, fields: &Fields<'_>, faults: &mut Faults) -> Option<usize> {
        let sites = self.sites.filter(|sites| !sites.is_flat())?;
        let (name, number) = (Column::Site, Column::SiteId);
        let [name, number] = [name, number].map(|column| fields.named(column, |_| false));
        let named = name.and_then(|name| sites.named(name));
        let numbered = number.and_then(|number| sites.numbered(number));
        let (said, column) = match (name, number) {
            (Some(name), _) => (name, Column::Site),
            (None, Some(number)) => (number, Column::SiteId),
            (None, None) => return None,
        };
        let at = fields.place(column);
        match (numbered, named) {
            (Some(by_number), Some(by_name)) if by_number != by_name => {
                let message =
                    format!("site \"{said}\" has another identifier than \"{}\"", number.unwrap_or_default());
                faults.remark(at, Fault::new(message, "the identifier counts"));
                by_number
            }
            (Some(site), _) | (None, Some(site)) => site,
            (None, None) => {
                let fault = sites.unknown(said);
                let message = format!("{}: the customer's rates hold, below no site", fault.message);
                faults.remark(at, Fault { message, ..fault });
                None
            }
        }
    }

    /// Returns the guaranteed rate, out of the site's rate.
    fn least(
        &self,
        fields: &Fields<'_>,
        column: Column,
        most: Option<Rate>,
        site: Option<usize>,
        faults: &mut Faults,
    ) -> Option<Rate> {
        let (rate, at) = (fields.rate_if_any(column, faults)?, fields.place(column));
        match (site, most) {
            // Holds without a site too: columns that are shifted by one look like this.
            (_, Some(most)) if rate > most => {
                let message = format!("at least {rate}, which is more than its rate of {most}");
                faults.note(at, Fault::bare(message));
            }
            // LibreQoS's lists always have guaranteed rates.
            (None, _) if self.columns.several_rows() => return None,
            (None, _) => {
                let help = "what a customer has at least, it has of the rate of its site";
                faults.note(at, Fault::new("a least rate without a site", help));
            }
            _ => {}
        }
        Some(rate)
    }
}

/// Customers in the order of their first rows.
#[derive(Default)]
struct List {
    entries: Vec<Entry>,
    by_label: HashMap<String, usize>,
    /// True if rows with the same identifier belong to one customer.
    several_rows: bool,
}

impl List {
    fn add(&mut self, row: Said, faults: &mut Faults) {
        let Said { customer, places, least_at, line, .. } = row;
        let Some(&known) = self.by_label.get(&customer.label) else {
            self.by_label.insert(customer.label.clone(), self.entries.len());
            self.entries.push(Entry { customer, places, least_at, line });
            return;
        };
        let entry = &mut self.entries[known];
        let (id, first) = (&customer.id, format!("its first row is line {}", entry.line));
        let rates = |c: &Customer| [Direction::In, Direction::Out].map(|d| (c.rate(d), c.least(d)));
        if *id != entry.customer.id {
            let other = format!("\"{}\" in line {}", entry.customer.id, entry.line);
            faults.note(row.id_at, label::taken("customer", id, &other));
        } else if !self.several_rows {
            faults.note(row.id_at, Fault::new(format!("customer \"{id}\" is there twice"), first));
        } else if rates(&entry.customer) != rates(&customer) {
            let (down, up) = (entry.customer.down, entry.customer.up);
            let message = format!("circuit \"{id}\" has other rates here");
            faults.note(row.rates_at, Fault::new(message, format!("{first}: {down} down, {up} up")));
        } else if entry.customer.site != customer.site {
            faults.note(row.site_at, Fault::new(format!("circuit \"{id}\" has another site here"), first));
        } else {
            // A spreadsheet shows identifiers such as 100001 and 100002 as 1.00E+05, and writes that.
            let names = [&entry.customer.name, &customer.name];
            if names[0] != names[1] && names.iter().all(|name| !name.is_empty()) {
                let message = format!("circuit \"{id}\" has another name here: \"{}\"", names[1]);
                let help = format!("{first}, \"{}\": all its rows share one rate", names[0]);
                faults.remark(row.name_at, Fault::new(message, help));
            }
            let of_first = &mut entry.customer.sqm;
            match [*of_first, customer.sqm] {
                [[None, None], _] => *of_first = customer.sqm,
                [_, [None, None]] => {}
                [first, here] if first == here => {}
                _ => {
                    let message = format!("circuit \"{id}\" has other queue disciplines here");
                    faults.remark(row.sqm_at, Fault::new(message, "those that came first count"));
                }
            }
            entry.customer.prefixes.extend(customer.prefixes);
            entry.places.extend(places);
        }
    }
}
