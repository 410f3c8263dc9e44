//! The columns of a list.

use super::place::place;
use super::Faults;
use crate::experiment::config::diag::{listed, nearest, Fault, Source};

/// What a column says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Id,
    /// Of a device, which is its own circuit if it has none.
    Device,
    Name,
    Prefixes,
    V4,
    V6,
    Down,
    Up,
    /// The site that it is below.
    Site,
    /// What it has for itself of its site's rates.
    DownMin,
    UpMin,
    /// Nothing that a gateway needs.
    Other,
}

/// Weir's own columns, and which of them must be there.
const OWN: [(&str, Column, bool); 8] = [
    ("id", Column::Id, true),
    ("name", Column::Name, false),
    ("prefixes", Column::Prefixes, true),
    ("down", Column::Down, true),
    ("up", Column::Up, true),
    ("site", Column::Site, false),
    ("down_min", Column::DownMin, false),
    ("up_min", Column::UpMin, false),
];

/// Those of LibreQoS's ShapedDevices.csv. What only shapers with queues need of them says nothing here.
const SHAPED_DEVICES: [(&str, Column, bool); 14] = [
    ("Circuit ID", Column::Id, true),
    ("Circuit Name", Column::Name, false),
    ("Device ID", Column::Device, false),
    ("Device Name", Column::Other, false),
    ("Parent Node", Column::Site, false),
    ("MAC", Column::Other, false),
    ("IPv4", Column::V4, false),
    ("IPv6", Column::V6, false),
    ("Download Min Mbps", Column::DownMin, false),
    ("Upload Min Mbps", Column::UpMin, false),
    ("Download Max Mbps", Column::Down, true),
    ("Upload Max Mbps", Column::Up, true),
    ("Comment", Column::Other, false),
    ("sqm", Column::Other, false),
];

/// Those of a list of sites.
const SITES: [(&str, Column, bool); 4] = [
    ("id", Column::Id, true),
    ("parent", Column::Site, false),
    ("down", Column::Down, true),
    ("up", Column::Up, true),
];

/// The columns of a file, in its order.
pub(super) struct Columns {
    known: &'static [(&'static str, Column, bool)],
    /// Places in `known`.
    order: Vec<usize>,
}

impl Columns {
    /// Those of a header; `None` if it is faulty.
    pub fn new(source: &Source, header: &csv::StringRecord, faults: &mut Faults) -> Option<Columns> {
        let is = |name: &'static str| move |field: &str| field.eq_ignore_ascii_case(name);
        let shaped_devices = header.iter().any(is(SHAPED_DEVICES[0].0));
        let known: &[_] = if shaped_devices { &SHAPED_DEVICES } else { &OWN };
        Columns::among(known, source, header, faults)
    }

    /// Those of the header of a list of sites; `None` if it is faulty.
    pub fn of_sites(source: &Source, header: &csv::StringRecord, faults: &mut Faults) -> Option<Columns> {
        Columns::among(&SITES, source, header, faults)
    }

    fn among(
        known: &'static [(&'static str, Column, bool)],
        source: &Source,
        header: &csv::StringRecord,
        faults: &mut Faults,
    ) -> Option<Columns> {
        let start = header.position().map_or(0, |at| at.byte() as usize);
        let at = |i| place(&source.text, start, i);
        let names = || known.iter().map(|(name, ..)| *name);
        let before = faults.count;
        let mut order = Vec::new();
        for (i, field) in header.iter().enumerate() {
            match names().position(|name| field.eq_ignore_ascii_case(name)) {
                Some(k) if order.contains(&k) => {
                    faults.note(at(i), Fault::bare(format!("a second column \"{field}\"")));
                }
                Some(k) => order.push(k),
                None => {
                    let guess = nearest(field, names());
                    let guess = guess.map_or(String::new(), |name| format!("did you mean `{name}`? "));
                    let help = format!("{guess}the columns are {}", listed(names()));
                    faults.note(at(i), Fault::new(format!("unknown column \"{field}\""), help));
                }
            }
        }
        if faults.count == before {
            let missing = (0..).zip(known).filter(|(k, (.., needed))| *needed && !order.contains(k));
            for (_, (name, ..)) in missing {
                let help = format!("the columns are {}", listed(names()));
                faults.note(at(0), Fault::new(format!("the column \"{name}\" is missing"), help));
            }
        }
        (faults.count == before).then_some(Columns { known, order })
    }

    /// May several rows be one customer's?
    pub fn several_rows(&self) -> bool {
        self.known.len() == SHAPED_DEVICES.len()
    }

    /// Are rates numbers of Mbit/s?
    pub fn in_mbps(&self) -> bool {
        self.several_rows()
    }

    /// The columns that say this, with their names.
    pub fn of(&self, column: Column) -> impl Iterator<Item = (usize, &'static str)> + '_ {
        let named = self.order.iter().map(|&k| self.known[k]).enumerate();
        named.filter(move |(_, (_, c, _))| *c == column).map(|(i, (name, ..))| (i, name))
    }

    /// What is wrong with a row of so many fields. LibreQoS's own example has rows with more of them than columns.
    pub fn wrong_length(&self, fields: usize) -> Option<Fault> {
        let columns = self.order.len();
        let wrong = if self.several_rows() { fields < columns - 1 } else { fields != columns };
        wrong.then(|| {
            let help = "a field with a comma in it stands in double quotes";
            Fault::new(format!("a row with {fields} fields under {columns} columns"), help)
        })
    }

    /// A row as it might be.
    pub fn example(&self) -> &'static str {
        match self.several_rows() {
            true => "below the columns, a row for each device of a circuit",
            false => "below the columns: 17,Ada,10.1.2.0/24 2001:db8:17::/48,50Mbit,10Mbit",
        }
    }
}
