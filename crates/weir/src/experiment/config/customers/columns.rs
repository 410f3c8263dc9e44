//! Columns of a list.

use super::table::Row;
use super::Faults;
use crate::experiment::config::diag::{listed, nearest, Fault};

/// Meaning of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Id,
    /// Identifier of a device. A device without a circuit counts as a circuit of its own.
    Device,
    Name,
    Prefixes,
    V4,
    V6,
    Down,
    Up,
    /// Name of the site above the row's customer or site.
    Site,
    /// Identifier of that site, which it has besides its name.
    SiteId,
    /// Guaranteed rate of downloads, out of the site's rate.
    DownMin,
    /// Guaranteed rate of uploads, out of the site's rate.
    UpMin,
    /// Queue disciplines, each way.
    Sqm,
    /// A column that a gateway does not need.
    Other,
}

impl Column {
    /// Returns whether rows may end without this column, as they do in lists that older programs made.
    const fn may_be_missing(self) -> bool {
        matches!(self, Column::Sqm | Column::Other)
    }
}

/// A supported column.
struct Known {
    name: &'static str,
    says: Column,
    /// True if a list without this column is an error.
    needed: bool,
}

const fn needed(name: &'static str, says: Column) -> Known {
    Known { name, says, needed: true }
}

const fn optional(name: &'static str, says: Column) -> Known {
    Known { name, says, needed: false }
}

/// Weir's own columns.
static OWN: [Known; 8] = [
    needed("id", Column::Id),
    optional("name", Column::Name),
    needed("prefixes", Column::Prefixes),
    needed("down", Column::Down),
    needed("up", Column::Up),
    optional("site", Column::Site),
    optional("down_min", Column::DownMin),
    optional("up_min", Column::UpMin),
];

/// Columns of LibreQoS's ShapedDevices.csv. Columns that a gateway does not need are ignored.
static SHAPED_DEVICES: [Known; 17] = [
    needed("Circuit ID", Column::Id),
    optional("Circuit Name", Column::Name),
    optional("Device ID", Column::Device),
    optional("Device Name", Column::Other),
    optional("Parent Node", Column::Site),
    optional("Parent Node ID", Column::SiteId),
    optional("Anchor Node ID", Column::Other),
    optional("MAC", Column::Other),
    optional("RADIUS Username", Column::Other),
    optional("IPv4", Column::V4),
    optional("IPv6", Column::V6),
    optional("Download Min Mbps", Column::DownMin),
    optional("Upload Min Mbps", Column::UpMin),
    needed("Download Max Mbps", Column::Down),
    needed("Upload Max Mbps", Column::Up),
    optional("Comment", Column::Other),
    optional("sqm", Column::Sqm),
];

/// Alternative headings that programs write, in the form of [`plain`], and the column that each stands for.
const ALSO: [(&str, &str); 7] = [
    ("circuitiddonotduplicate", "Circuit ID"),
    ("id", "Anchor Node ID"),
    ("username", "RADIUS Username"),
    ("downloadmin", "Download Min Mbps"),
    ("uploadmin", "Upload Min Mbps"),
    ("downloadmax", "Download Max Mbps"),
    ("uploadmax", "Upload Max Mbps"),
];

/// Headings that people write, in the form of [`plain`], and the column that each means.
const MEANT: [(&str, &str); 26] = [
    ("ip", "prefixes"),
    ("ips", "prefixes"),
    ("ipaddress", "prefixes"),
    ("ipaddresses", "prefixes"),
    ("address", "prefixes"),
    ("addresses", "prefixes"),
    ("ipv4", "prefixes"),
    ("ipv6", "prefixes"),
    ("subnet", "prefixes"),
    ("network", "prefixes"),
    ("download", "down"),
    ("downloadrate", "down"),
    ("dl", "down"),
    ("upload", "up"),
    ("uploadrate", "up"),
    ("ul", "up"),
    ("customer", "id"),
    ("customerid", "id"),
    ("account", "id"),
    ("circuitid", "id"),
    ("customername", "name"),
    ("tower", "site"),
    ("ap", "site"),
    ("parent", "site"),
    ("parentnode", "site"),
    ("parentsite", "parent"),
];

/// Columns of a list of sites.
static SITES: [Known; 4] = [
    needed("id", Column::Id),
    optional("parent", Column::Site),
    needed("down", Column::Down),
    needed("up", Column::Up),
];

/// Kind of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Weir's own columns.
    Own,
    /// Columns of LibreQoS.
    ShapedDevices,
    /// Weir's own columns of sites.
    Sites,
}

impl Kind {
    fn known(self) -> &'static [Known] {
        match self {
            Kind::Own => &OWN,
            Kind::ShapedDevices => &SHAPED_DEVICES,
            Kind::Sites => &SITES,
        }
    }

    fn names(self) -> impl Iterator<Item = &'static str> + Clone {
        self.known().iter().map(|known| known.name)
    }

    /// Returns the index of the column with this heading.
    fn find(self, heading: &str) -> Option<usize> {
        if self != Kind::ShapedDevices {
            return self.names().position(|name| heading.eq_ignore_ascii_case(name));
        }
        let plain = plain(heading);
        let name = ALSO.iter().find(|(also, _)| *also == plain).map(|(_, name)| *name);
        self.names().position(|known| name.map_or_else(|| plain == self::plain(known), |name| name == known))
    }
}

/// Returns the letters and digits of a heading in lower case. LibreQoS's programs recognise columns by these.
fn plain(heading: &str) -> String {
    heading.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Columns of a file, in the order of the file.
pub(super) struct Columns {
    kind: Kind,
    /// Index of each among the known columns; `None` for an ignored column.
    order: Vec<Option<usize>>,
}

impl Columns {
    /// Reads the header of a list of customers. Returns `None` if it is faulty.
    pub fn new(header: &Row, faults: &mut Faults) -> Option<Columns> {
        let is_circuit = |heading: &str| {
            Kind::ShapedDevices.find(heading).is_some_and(|k| SHAPED_DEVICES[k].says == Column::Id)
        };
        let shaped_devices = header.fields.iter().any(is_circuit);
        Columns::among(if shaped_devices { Kind::ShapedDevices } else { Kind::Own }, header, faults)
    }

    /// Reads the header of a list of sites. Returns `None` if it is faulty.
    pub fn of_sites(header: &Row, faults: &mut Faults) -> Option<Columns> {
        Columns::among(Kind::Sites, header, faults)
    }

    fn among(kind: Kind, header: &Row, faults: &mut Faults) -> Option<Columns> {
        let before = faults.count;
        let mut order: Vec<Option<usize>> = header.fields.iter().map(|heading| kind.find(heading)).collect();
        if let Some(fault) = no_header(kind, header) {
            faults.note(header.place(0), fault);
            return None;
        }
        // A spreadsheet leaves columns without a heading behind the others.
        let named = header.fields.iter().enumerate().filter(|(_, heading)| !heading.is_empty());
        let named = named.last().map_or(0, |(last, _)| last + 1);
        if kind != Kind::ShapedDevices {
            order.truncate(named);
        }
        for (i, heading) in header.fields.iter().enumerate().take(named) {
            match order[i] {
                Some(_) if order[..i].contains(&order[i]) => {
                    faults.note(header.place(i), Fault::bare(format!("a second column \"{heading}\"")));
                }
                Some(_) => {}
                None => unknown(kind, &order, header, i, faults),
            }
        }
        if faults.count == before {
            let missing = |(k, known): &(usize, &Known)| known.needed && !order.contains(&Some(*k));
            for (_, Known { name, .. }) in kind.known().iter().enumerate().filter(missing) {
                let help = format!("the columns are {}", listed(kind.names()));
                faults.note(header.place(0), Fault::new(format!("the column \"{name}\" is missing"), help));
            }
        }
        (faults.count == before).then_some(Columns { kind, order })
    }

    /// True if several rows may describe one customer.
    pub fn several_rows(&self) -> bool {
        self.kind == Kind::ShapedDevices
    }

    /// True if rates are plain numbers in Mbit/s.
    pub fn in_mbps(&self) -> bool {
        self.kind == Kind::ShapedDevices
    }

    /// Returns the columns with this meaning: index in the file, and name.
    pub fn of(&self, column: Column) -> impl Iterator<Item = (usize, &'static str)> + '_ {
        let known = |(i, k): (usize, &Option<usize>)| Some((i, &self.kind.known()[(*k)?]));
        let named = self.order.iter().enumerate().filter_map(known);
        named.filter(move |(_, known)| known.says == column).map(|(i, known)| (i, known.name))
    }

    /// True if a row repeats the header. LibreQoS's programs append other lists together with their headers.
    pub fn repeated(&self, row: &Row) -> bool {
        let order: Vec<_> = row.fields.iter().map(|heading| self.kind.find(heading)).collect();
        self.several_rows() && order == self.order
    }

    /// Returns the fault of a row whose number of fields is wrong. In ShapedDevices.csv ignored columns at
    /// the end may be missing, and a comment may contain unquoted commas. In other lists fields beyond the
    /// columns are empty.
    pub fn wrong_length(&self, row: &Row) -> Option<Fault> {
        let (columns, fields) = (self.order.len(), row.fields.len());
        let says = |k: &Option<usize>| k.is_some_and(|k| !self.kind.known()[k].says.may_be_missing());
        let needed = self.order.iter().rposition(says).map_or(0, |last| last + 1);
        let right = match self.kind {
            Kind::ShapedDevices if needed < columns => fields >= needed,
            _ => fields == columns || fields > columns && row.fields.iter().skip(columns).all(str::is_empty),
        };
        (!right).then(|| {
            let help = match fields < columns {
                true => "fields that are empty have their commas, also at the end of a row",
                false => "a field with a comma in it stands in double quotes",
            };
            Fault::new(format!("a row with {fields} fields under {columns} columns"), help)
        })
    }

    /// True if a row with this number of fields has more fields than there are columns.
    pub fn surplus(&self, fields: usize) -> bool {
        fields > self.order.len()
    }

    /// Returns the index of the queue disciplines in a row with this number of fields. Commas of a comment
    /// without quotes move them, and they stay the last.
    pub fn sqm(&self, fields: usize) -> Option<usize> {
        let (i, _) = self.of(Column::Sqm).next()?;
        Some(if i + 1 == self.order.len() && self.surplus(fields) { fields - 1 } else { i })
    }

    /// Returns an example of a row.
    pub fn example(&self) -> &'static str {
        match self.several_rows() {
            true => "below the columns, a row for each device of a circuit",
            false => "below the columns: 17,Ada,10.1.2.0/24 2001:db8:17::/48,50Mbit,10Mbit",
        }
    }
}

/// Returns the fault of a first row without any column's name.
fn no_header(kind: Kind, header: &Row) -> Option<Fault> {
    let is_known = |heading: &str| kind.find(heading).is_some() || nearest(heading, kind.names()).is_some();
    let is_one = header.fields.len() == 1 && separator(&header.fields[0]).is_some();
    if header.fields.iter().any(is_known) || is_one {
        return None;
    }
    let theirs =
        if kind == Kind::Sites { "" } else { "; a list of LibreQoS has `Circuit ID` there, without `#`" };
    let help = format!("the columns are {}{theirs}", listed(kind.names()));
    Some(Fault::new("the first row is not the header: it names no column", help))
}

/// Returns the name of the characters that separate the headings of a row that is one field.
fn separator(heading: &str) -> Option<&'static str> {
    let others = [(';', "semicolons"), ('\t', "tabs"), ('|', "bars")];
    others.into_iter().find(|(c, _)| heading.contains(*c)).map(|(_, name)| name)
}

/// Notes an unknown column. In lists of other programs an unknown column is ignored, unless its heading
/// resembles that of a missing column.
fn unknown(kind: Kind, order: &[Option<usize>], header: &Row, i: usize, faults: &mut Faults) {
    let heading = &header.fields[i];
    let meant = |(k, known): &(usize, &Known)| {
        kind != Kind::ShapedDevices || !known.says.may_be_missing() && !order.contains(&Some(*k))
    };
    let candidates = kind.known().iter().enumerate().filter(meant).map(|(_, known)| known.name);
    let spelt = MEANT.iter().find(|(other, _)| *other == plain(heading)).map(|(_, name)| *name);
    let spelt = spelt.filter(|name| kind != Kind::ShapedDevices && kind.names().any(|known| known == *name));
    let guess = spelt.or_else(|| nearest(heading, candidates));
    let message = format!("unknown column \"{heading}\"");
    if let Some(name) = separator(heading).filter(|_| header.fields.len() == 1) {
        let help = format!("columns are separated by commas, not by {name}");
        faults.note(header.place(i), Fault::new(message, help));
    } else if kind == Kind::ShapedDevices && guess.is_none() {
        faults.remark(header.place(i), Fault::new(message, "it has no effect"));
    } else {
        let guess = guess.map_or(String::new(), |name| format!("did you mean `{name}`? "));
        let help = format!("{guess}the columns are {}", listed(kind.names()));
        faults.note(header.place(i), Fault::new(message, help));
    }
}
