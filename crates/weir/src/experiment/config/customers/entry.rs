//! What the rows of a list say of a customer, and where.

use super::Customer;
use core::ops::Range;

/// A customer as its rows say it.
pub(super) struct Entry {
    pub customer: Customer,
    /// Where each of its prefixes is.
    pub places: Vec<Range<usize>>,
    /// Where its first row says what it has at least: downloading, uploading.
    pub least_at: [Range<usize>; 2],
    /// The line of its first row.
    pub line: u64,
}
