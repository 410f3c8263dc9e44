//! Departures from the queue of a class.

use crate::stats::Histogram;

/// Number of leaves with a histogram of waiting times, 19 KB each.
pub(crate) const HISTOGRAMS: usize = 1024;

/// Departures from a leaf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeafStats {
    /// Packets (segments of giant frames).
    pub packets: u64,
    /// Bytes, as charged.
    pub bytes: u64,
    /// Borrowed part of the bytes.
    pub borrowed: u64,
    /// Nanoseconds that frames waited. Recorded for the first 1,024 leaves of a tree only.
    pub delay: Histogram,
    /// Recording of the delay.
    pub(crate) records_delay: bool,
}
