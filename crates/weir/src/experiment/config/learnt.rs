//! Tables and keys as the reader asks for them. While [`learn`] runs, readers note every table that they
//! open, every key that they ask for, and the kinds of values that they accept.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

/// Kind of values that a reader accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Switch,
    Whole(u64, u64),
    Signed(i64, i64),
    Number,
    Rate,
    Time,
    Probability,
    Limit,
    Ports,
    Prefix,
    Size,
    /// One of these names.
    Names(Vec<String>),
    /// Table at this place.
    Table(String),
    /// Array of tables at this place.
    Tables(String),
}

/// Everything noted.
#[derive(Default)]
pub struct Learnt {
    /// Tables by their places: `path.wan`, `flow`; the root is at "".
    pub tables: BTreeMap<String, Table>,
    /// Kinds of the rows of tables of keys, which several places share.
    rows: HashMap<usize, Vec<Kind>>,
    /// Values being read, the innermost last.
    reading: Vec<Reading>,
}

/// A table at one place.
#[derive(Default)]
pub struct Table {
    /// Number of times that it was opened.
    pub opened: usize,
    /// Keys in the order in which the reader asks for them.
    pub keys: Vec<Key>,
    /// Keys of which a table has at most one.
    pub exclusive: Vec<Vec<&'static str>>,
}

/// A key of a table.
#[derive(Default)]
pub struct Key {
    pub name: &'static str,
    /// Number of times that it was required.
    pub needed: usize,
    pub kinds: Vec<Kind>,
    /// Kinds of the elements, for arrays.
    pub items: Vec<Kind>,
    rows: Vec<usize>,
}

enum Reading {
    Key(String, &'static str),
    Item(String, &'static str),
    Row(usize),
}

thread_local! {
    static LEARNT: RefCell<Option<Learnt>> = const { RefCell::new(None) };
}

/// Runs readers and returns everything noted meanwhile.
pub fn learn(read: impl FnOnce()) -> Learnt {
    LEARNT.set(Some(Learnt::default()));
    read();
    LEARNT.take().unwrap_or_default()
}

fn with(note: impl FnOnce(&mut Learnt)) {
    LEARNT.with_borrow_mut(|learnt| learnt.as_mut().map(note));
}

fn add<T: PartialEq>(to: &mut Vec<T>, value: T) {
    if !to.contains(&value) {
        to.push(value);
    }
}

impl Learnt {
    fn key(&mut self, place: &str, name: &'static str) -> &mut Key {
        let keys = &mut self.tables.entry(place.to_string()).or_default().keys;
        let at = keys.iter().position(|key| key.name == name).unwrap_or(keys.len());
        if at == keys.len() {
            keys.push(Key { name, ..Key::default() });
        }
        &mut keys[at]
    }

    /// Returns the kinds of a key, including those of its rows.
    pub fn kinds(&self, key: &Key) -> Vec<Kind> {
        let mut kinds = key.kinds.clone();
        let rows = key.rows.iter().filter_map(|row| self.rows.get(row)).flatten();
        rows.for_each(|kind| add(&mut kinds, kind.clone()));
        kinds
    }
}

/// Notes that a table is opened.
pub fn opened(place: &str) {
    with(|learnt| learnt.tables.entry(place.to_string()).or_default().opened += 1);
}

/// Notes that a key is asked for.
pub fn asked(place: &str, name: &'static str) {
    with(|learnt| {
        learnt.key(place, name);
    });
}

/// Notes that a key is required.
pub fn needed(place: &str, name: &'static str) {
    with(|learnt| learnt.key(place, name).needed += 1);
}

/// Notes that a table has at most one of these keys.
pub fn exclusive(place: &str, names: &[&'static str]) {
    with(|learnt| {
        add(&mut learnt.tables.entry(place.to_string()).or_default().exclusive, names.to_vec());
    });
}

/// Reads the value of a key.
pub fn value<T>(place: &str, name: &'static str, read: impl FnOnce() -> T) -> T {
    reading(|| Reading::Key(place.to_string(), name), read)
}

/// Reads the elements of the array under a key.
pub fn items<T>(place: &str, name: &'static str, read: impl FnOnce() -> T) -> T {
    reading(|| Reading::Item(place.to_string(), name), read)
}

/// Notes that the key of a row may be at a place.
pub fn known<R>(row: &R, place: &str, name: &'static str) {
    with(|learnt| add(&mut learnt.key(place, name).rows, address(row)));
}

/// Reads the value of a row, which has the same kinds at all places.
pub fn row<T, R>(row: &R, read: impl FnOnce() -> T) -> T {
    reading(|| Reading::Row(address(row)), read)
}

/// Returns what tells a row from others.
fn address<R>(row: &R) -> usize {
    std::ptr::from_ref(row) as usize
}

fn reading<T>(what: impl FnOnce() -> Reading, read: impl FnOnce() -> T) -> T {
    with(|learnt| learnt.reading.push(what()));
    let value = read();
    with(|learnt| drop(learnt.reading.pop()));
    value
}

/// Notes a kind that the value being read may have.
pub fn kind(make: impl FnOnce() -> Kind) {
    with(|learnt| {
        let kind = make();
        let mut reading = std::mem::take(&mut learnt.reading);
        match reading.last() {
            Some(Reading::Key(place, name)) => add(&mut learnt.key(place, name).kinds, kind.clone()),
            Some(Reading::Item(place, name)) => add(&mut learnt.key(place, name).items, kind.clone()),
            Some(Reading::Row(_)) | None => {}
        }
        if let [.., Reading::Row(row), Reading::Key(..)] = reading.as_slice() {
            add(learnt.rows.entry(*row).or_default(), kind);
        }
        std::mem::swap(&mut learnt.reading, &mut reading);
    });
}

/// Notes that the value of a key may be a table, or an array of tables, at its own place. Returns that place.
pub fn table(place: &str, name: &'static str, several: bool) -> String {
    let own = join(place, name);
    with(|learnt| {
        let kind = if several { Kind::Tables(own.clone()) } else { Kind::Table(own.clone()) };
        add(&mut learnt.key(place, name).kinds, kind);
    });
    own
}

/// Returns the place of the value being read, whose table is read on its own; and notes that it may be one.
pub fn of_value(name: &str) -> String {
    let mut place = name.to_string();
    with(|learnt| {
        if let Some(Reading::Key(table, key)) = learnt.reading.last() {
            place = join(table, key);
        }
    });
    kind(|| Kind::Table(place.clone()));
    place
}

fn join(place: &str, name: &str) -> String {
    match place {
        "" => name.to_string(),
        place => format!("{place}.{name}"),
    }
}
