//! Fields of a row.

use super::columns::{Column, Columns};
use super::rates::{is_zero, mbps};
use super::sqm::{self, Sqm};
use super::table::Row;
use super::{label, special, Faults};
use crate::experiment::config::diag::{Fault, Source};
use crate::experiment::config::{addresses, policy};
use core::net::IpAddr;
use core::ops::Range;
use weir_core::gateway::Prefix;
use weir_core::rate::Rate;

/// A row, and the columns that give its fields their meaning.
pub(super) struct Fields<'a> {
    pub source: &'a Source,
    pub columns: &'a Columns,
    pub row: &'a Row,
}

impl Fields<'_> {
    /// Returns the field in the first column with this meaning, or an empty text without such a column.
    pub fn text(&self, column: Column) -> &str {
        let field = self.columns.of(column).next().and_then(|(i, _)| self.row.fields.get(i));
        field.unwrap_or_default()
    }

    /// Returns the place of the field in the first column with this meaning.
    pub fn place(&self, column: Column) -> Range<usize> {
        self.columns.of(column).next().map_or(0..0, |(i, _)| self.row.place(i))
    }

    /// Returns the identifier, and its label for names of classes.
    pub fn id(&self, faults: &mut Faults) -> Option<(String, String)> {
        let (i, name) = self.columns.of(Column::Id).next()?;
        let mut id = self.text(Column::Id);
        if id.is_empty() {
            // A device without a circuit is a circuit of its own.
            id = self.text(Column::Device);
        }
        if id.is_empty() {
            let help = "each customer has an identifier of its own";
            faults.note(self.row.place(i), Fault::new(format!("column \"{name}\": empty"), help));
            return None;
        }
        let label = label::checked(id).map_err(|fault| {
            let message = format!("column \"{name}\": {}", fault.message);
            faults.note(self.row.place(i), Fault { message, ..fault });
        });
        Some((id.to_owned(), label.ok()?))
    }

    /// Returns all prefixes that a customer can have, and their places. There may be none.
    pub fn prefixes(&self, faults: &mut Faults) -> Vec<(Prefix, Range<usize>)> {
        let columns = [Column::Prefixes, Column::V4, Column::V6];
        let mut found = Vec::new();
        for column in columns {
            for (i, name) in self.columns.of(column) {
                let at = self.row.place(i);
                let text = self.row.fields.get(i).unwrap_or_default();
                let parts = text.split(|c: char| c.is_whitespace() || matches!(c, ';' | ','));
                let mut before = None;
                for part in parts.filter(|part| !part.is_empty()) {
                    let place = self.find(&at, part);
                    let before = before.replace(part);
                    match no_netmask(before, part).and_then(|()| self.prefix(part, column)) {
                        Ok(prefix) => match prefix.and_then(special::refused) {
                            Some(fault) => faults.remark(place, fault),
                            None => found.extend(prefix.map(|prefix| (prefix, place))),
                        },
                        Err(fault) => {
                            let message = format!("column \"{name}\": {}", fault.message);
                            faults.note(place, Fault { message, ..fault });
                        }
                    }
                }
            }
        }
        found
    }

    fn prefix(&self, part: &str, column: Column) -> Result<Option<Prefix>, Fault> {
        addresses::prefix(part).and_then(|prefix| self.family(prefix, column))
    }

    /// Checks that a prefix has the address family of its column. Returns `None` for the unspecified address,
    /// which some programs write where there is no address.
    fn family(&self, prefix: Prefix, column: Column) -> Result<Option<Prefix>, Fault> {
        let (address, family) = match prefix.addr() {
            IpAddr::V4(_) => (prefix.to_string(), "an IPv4 address"),
            IpAddr::V6(a) if a.to_ipv4_mapped().is_some() => (prefix.to_string(), "mapped from IPv4"),
            IpAddr::V6(_) => (prefix.to_string(), "an IPv6 address"),
        };
        let right = match column {
            Column::V4 => family == "an IPv4 address",
            Column::V6 => family == "an IPv6 address",
            _ => family != "mapped from IPv4",
        };
        if !right {
            let help = match self.columns.surplus(self.row.fields.len()) {
                true => "this row has more fields than there are columns: a field with a comma in it stands in double quotes",
                false => "the fields of a row stand below their columns, and addresses are written as packets have them",
            };
            return Err(Fault::new(format!("\"{address}\" is {family}"), help));
        }
        let whole = if prefix.addr().is_ipv4() { 32 } else { 128 };
        Ok((!prefix.addr().is_unspecified() || prefix.bits() < whole).then_some(prefix))
    }

    /// Returns the place of a part of a field.
    fn find(&self, at: &Range<usize>, part: &str) -> Range<usize> {
        let found = self.source.text.get(at.clone()).and_then(|field| field.find(part));
        found.map_or(at.clone(), |offset| at.start + offset..at.start + offset + part.len())
    }

    /// Returns the queue disciplines of uploads and of downloads, and their place.
    pub fn sqm(&self, faults: &mut Faults) -> ([Option<Sqm>; 2], Range<usize>) {
        let Some(i) = self.columns.sqm(self.row.fields.len()) else { return ([None; 2], 0..0) };
        let at = self.row.place(i);
        let read = sqm::read(self.row.fields.get(i).unwrap_or_default()).map_err(|fault| {
            let message = format!("column \"sqm\": {}", fault.message);
            faults.note(at.clone(), Fault { message, ..fault });
        });
        (read.unwrap_or_default(), at)
    }

    /// Returns the name in a column, if there is one. LibreQoS writes "none" for no name. In another list a
    /// site may be called so, which `has` tells.
    pub fn named(&self, column: Column, has: impl Fn(&str) -> bool) -> Option<&str> {
        let text = self.text(column);
        let is_name = text != "none" || !self.columns.several_rows() && has(text);
        (!text.is_empty() && is_name).then_some(text)
    }

    /// Returns the rate in a column, if there is one. An empty field and zero megabits are no rate.
    pub fn rate_if_any(&self, column: Column, faults: &mut Faults) -> Option<Rate> {
        let text = self.text(column);
        match text.is_empty() || self.columns.in_mbps() && is_zero(text) {
            true => None,
            false => self.rate(column, faults),
        }
    }

    /// Returns the rate in a column, which must be there.
    pub fn rate(&self, column: Column, faults: &mut Faults) -> Option<Rate> {
        let (_, name) = self.columns.of(column).next()?;
        let parsed = match (self.text(column), self.columns.in_mbps()) {
            ("", true) => Err(Fault::new("no rate", "megabits a second: 50, or 2.5")),
            ("", false) => Err(Fault::new("no rate", "for example 50Mbit")),
            (text, true) => mbps(text),
            (text, false) if text.contains('_') => {
                Err(Fault::new(format!("\"{text}\" is not a rate"), "digits are not separated: 1000Mbit"))
            }
            (text, false) => policy::flow_rate(text),
        };
        let parsed = parsed.map_err(|fault| {
            let message = format!("column \"{name}\": {}", fault.message);
            faults.note(self.place(column), Fault { message, ..fault });
        });
        parsed.ok()
    }
}

/// Fails for a netmask, which would be taken for an address. `before` is the part before it.
fn no_netmask(before: Option<&str>, part: &str) -> Result<(), Fault> {
    let Some(len) = part.parse().ok().and_then(addresses::netmask) else { return Ok(()) };
    let network =
        before.and_then(|before| Some((before, addresses::prefix(&format!("{before}/{len}")).ok()?)));
    let help = match network {
        Some((before, _)) => format!("did you mean \"{before}/{len}\"?"),
        None => format!("write its length behind the address: 10.1.0.0/{len}"),
    };
    Err(Fault::new(format!("\"{part}\" is a netmask"), help))
}
