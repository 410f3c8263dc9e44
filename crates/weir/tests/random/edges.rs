//! Values at the edges of what numbers can be. One quantity of a file gets one of them, with its unit or with
//! the smallest or largest of its kind.

use std::ops::Range;

/// Numbers at which types end, and beyond what anything here can have.
const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "2",
    "0.000000001",
    "1000",
    "65535",
    "65536",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "18446744073709551615",
    "99999999999999999999",
];

/// Units of a kind, from the smallest to the largest.
const UNITS: [&[&str]; 4] = [
    &["bit", "kbit", "Mbit", "Gbit"],
    &["ns", "us", "ms", "s", "min"],
    &["B", "kB", "KiB", "MB", "MiB", "GiB"],
    &["p", "kB", "bdp"],
];

/// Number of replacements of each quantity.
pub const EACH: usize = 3 * NUMBERS.len();

/// Number and unit, as places in the text.
pub struct Quantity {
    number: Range<usize>,
    unit: Range<usize>,
}

impl Quantity {
    /// Returns where it begins.
    pub fn start(&self) -> usize {
        self.number.start
    }
}

/// Finds quantities in values of TOML: digits behind a quote, a blank or a bracket, with the letters behind.
pub fn quantities(text: &str) -> Vec<Quantity> {
    let bytes = text.as_bytes();
    let end_of = |from: usize, belongs: fn(u8) -> bool| {
        bytes[from..].iter().position(|&b| !belongs(b)).map_or(bytes.len(), |n| from + n)
    };
    let (mut found, mut at, mut comment) = (Vec::new(), 1, false);
    while at < bytes.len() {
        comment = bytes[at] == b'#' || comment && bytes[at] != b'\n';
        if comment || !bytes[at].is_ascii_digit() || !b"'\" [".contains(&bytes[at - 1]) {
            at += 1;
            continue;
        }
        let number = at..end_of(at, |b| b.is_ascii_digit() || b == b'.' || b == b'_');
        let unit = number.end..end_of(number.end, |b| b.is_ascii_alphabetic());
        at = unit.end.max(at + 1);
        found.push(Quantity { number, unit });
    }
    found
}

/// Returns the text with the quantity at edge `n` of [`EACH`].
pub fn replaced(text: &str, quantity: &Quantity, n: usize) -> String {
    let Quantity { number, unit } = quantity;
    let own = &text[unit.clone()];
    let kind = UNITS.iter().find(|kind| kind.contains(&own));
    let unit_there = match (kind, n / NUMBERS.len()) {
        (Some(kind), 1) => kind[0],
        (Some(kind), 2) => kind[kind.len() - 1],
        _ => own,
    };
    [&text[..number.start], NUMBERS[n % NUMBERS.len()], unit_there, &text[unit.end..]].concat()
}
