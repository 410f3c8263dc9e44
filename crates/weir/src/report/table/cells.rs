//! Cells of the tables of a running gateway.

use super::clean;

/// Width of the tables, in columns of a terminal.
pub(super) const WIDTH: usize = 80;

/// Cuts text after this many characters.
pub fn cut(text: &str, most: usize) -> String {
    let text = clean(text);
    match text.char_indices().nth(most) {
        None => text,
        Some(_) => text.chars().take(most - 1).chain(['~']).collect(),
    }
}

/// Formats a rate in Mbit/s with about three digits.
pub fn mbit(bps: f64) -> String {
    let mbit = bps / 1e6;
    match mbit {
        _ if mbit == 0.0 => "0".into(),
        _ if mbit < 9.9995 => format!("{mbit:.3}"),
        _ if mbit < 999.95 => format!("{mbit:.1}"),
        _ => format!("{mbit:.0}"),
    }
}

/// Formats bytes in MB with about three digits.
pub(super) fn megabytes(bytes: u64) -> String {
    mbit(bytes as f64)
}
