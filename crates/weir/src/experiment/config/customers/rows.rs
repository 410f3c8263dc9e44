//! The rows of a list of customers.

use super::columns::{Column, Columns};
use super::entry::Entry;
use super::fields::Fields;
use super::sites::{self, Site};
use super::{guarantees, overlap, place, Customer, Faults};
use crate::experiment::config::diag::{Fault, Source};
use core::ops::Range;
use std::collections::HashMap;
use weir_core::ack::Unresponsive;
use weir_core::gateway::{Direction, Prefix};
use weir_core::rate::Rate;

/// What a row says.
struct Row {
    customer: Customer,
    places: Vec<Range<usize>>,
    least_at: [Range<usize>; 2],
    /// Where its identifier is, its rates, and its site.
    id_at: Range<usize>,
    rates_at: Range<usize>,
    site_at: Range<usize>,
    line: u64,
}

/// The customers of a list.
pub(super) fn customers(source: &Source, sites: Option<&[Site]>, faults: &mut Faults) -> Vec<Customer> {
    let mut reader = super::reader(source);
    let columns = match reader.headers() {
        Ok(header) => Columns::new(source, header, faults),
        Err(error) => {
            faults.note(0..0, Fault::bare(error.to_string()));
            None
        }
    };
    let Some(columns) = columns else { return Vec::new() };
    let by_id = sites.map(|sites| sites.iter().map(|site| site.id.as_str()).zip(0..).collect());
    let context = Context { source, columns: &columns, sites: by_id };
    let mut list = List { several_rows: columns.several_rows(), ..List::default() };
    for record in super::records(&mut reader, faults) {
        if let Some(row) = context.row(&record, faults) {
            list.add(row, faults);
        }
    }
    if list.entries.is_empty() && faults.list.is_empty() {
        faults.note(0..0, Fault::new("a list without customers", columns.example()));
    }
    overlap::check(&list.entries, faults);
    guarantees::check(&list.entries, sites.unwrap_or_default(), faults);
    list.entries.into_iter().map(|entry| entry.customer).collect()
}

/// What rows are read with.
struct Context<'a> {
    source: &'a Source,
    columns: &'a Columns,
    /// The places of sites, if there is a list of them.
    sites: Option<HashMap<&'a str, usize>>,
}

impl Context<'_> {
    /// What one row says; nothing if it is faulty.
    fn row(&self, record: &csv::StringRecord, faults: &mut Faults) -> Option<Row> {
        let before = faults.count;
        let start = record.position().map_or(0, |at| at.byte() as usize);
        let at = |i: usize| place::place(&self.source.text, start, i);
        let fields = Fields { source: self.source, columns: self.columns, record, at: &at };
        if let Some(fault) = self.columns.wrong_length(record.len()) {
            faults.note(at(0), fault);
            return None;
        }
        let (id, id_at) = fields.id(faults);
        if let Some(id) =
            id.as_ref().filter(|id| self.sites.as_ref().is_some_and(|s| s.contains_key(id.as_str())))
        {
            let help = "the classes of both would have the same names";
            faults.note(id_at.clone(), Fault::new(format!("\"{id}\" is a site's identifier too"), help));
        }
        let name = fields.text(Column::Name);
        let (prefixes, places) = fields.prefixes(faults).into_iter().unzip();
        let (down, rates_at) = fields.rate(Column::Down, faults);
        let (up, _) = fields.rate(Column::Up, faults);
        let (site, site_at) = self.site(&fields, faults);
        let least = [(Column::DownMin, down), (Column::UpMin, up)];
        let least = least.map(|(column, most)| self.least(&fields, column, most, site, faults));
        let [(down_min, down_at), (up_min, up_at)] = least;
        let line = record.position().map_or(0, csv::Position::line);
        let (id, down, up) = (id?, down?, up?);
        let customer = Customer {
            id,
            name,
            prefixes,
            down,
            up,
            site,
            down_min,
            up_min,
            off: false,
            unresponsive: Unresponsive::Bound,
        };
        let row = Row { customer, places, least_at: [down_at, up_at], id_at, rates_at, site_at, line };
        (faults.count == before).then_some(row)
    }

    /// The site, by its place.
    fn site(&self, fields: &Fields<'_>, faults: &mut Faults) -> (Option<usize>, Range<usize>) {
        let Some((id, at)) = fields.named(Column::Site) else { return (None, 0..0) };
        let site = match &self.sites {
            Some(sites) => {
                sites.get(id.as_str()).copied().ok_or_else(|| sites::unknown(&id, sites.keys().copied()))
            }
            // LibreQoS's lists name sites always.
            None if self.columns.several_rows() => return (None, at),
            None => Err(Fault::new(
                format!("no site is \"{id}\": there is no list of sites"),
                "name one beside `file`: sites = \"sites.csv\"",
            )),
        };
        (site.map_err(|fault| faults.note(at.clone(), fault)).ok(), at)
    }

    /// What it has at least of its site's rate.
    fn least(
        &self,
        fields: &Fields<'_>,
        column: Column,
        most: Option<Rate>,
        site: Option<usize>,
        faults: &mut Faults,
    ) -> (Option<Rate>, Range<usize>) {
        if self.columns.several_rows() && site.is_none() {
            return (None, 0..0);
        }
        let (least, at) = fields.rate_if_any(column, faults);
        let (Some(rate), Some(most)) = (least, most) else { return (least, at) };
        if site.is_none() {
            let help = "what a customer has at least, it has of the rate of its site";
            faults.note(at.clone(), Fault::new("a least rate without a site", help));
        } else if rate > most {
            let message = format!("at least {rate}, which is more than its rate of {most}");
            faults.note(at.clone(), Fault::bare(message));
        }
        (least, at)
    }
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
        let Row { customer, places, least_at, line, .. } = row;
        let Some(&known) = self.by_id.get(&customer.id) else {
            self.by_id.insert(customer.id.clone(), self.entries.len());
            self.entries.push(Entry { customer, places, least_at, line });
            return;
        };
        let entry = &mut self.entries[known];
        let (id, first) = (&customer.id, format!("its first row is line {}", entry.line));
        let rates = |c: &Customer| [Direction::In, Direction::Out].map(|d| (c.rate(d), c.least(d)));
        if !self.several_rows {
            faults.note(row.id_at, Fault::new(format!("customer \"{id}\" is there twice"), first));
        } else if rates(&entry.customer) != rates(&customer) {
            let (down, up) = (entry.customer.down, entry.customer.up);
            let message = format!("circuit \"{id}\" has other rates here");
            faults.note(row.rates_at, Fault::new(message, format!("{first}: {down} down, {up} up")));
        } else if entry.customer.site != customer.site {
            faults.note(row.site_at, Fault::new(format!("circuit \"{id}\" has another site here"), first));
        } else {
            let prefixes: Vec<Prefix> = customer.prefixes;
            entry.customer.prefixes.extend(prefixes);
            entry.places.extend(places);
        }
    }
}
