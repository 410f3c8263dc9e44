//! A customer as written in the rows of a list, with the places of the fields.

use super::Customer;
use core::ops::Range;

/// A customer as written in its rows.
pub(super) struct Entry {
    pub customer: Customer,
    /// Place of each prefix.
    pub places: Vec<Range<usize>>,
    /// Places of the guaranteed rates in the first row: downloads, uploads.
    pub least_at: [Range<usize>; 2],
    /// Line of the first row.
    pub line: u64,
}
