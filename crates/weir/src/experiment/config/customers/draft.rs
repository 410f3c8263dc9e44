//! What a file says of a site, and where.

use core::ops::Range;
use weir_core::rate::Rate;

/// A site as a file says it.
pub(super) struct Draft {
    pub id: String,
    pub id_at: Range<usize>,
    /// The identifier of the site above it, and where that is.
    pub parent: Option<(String, Range<usize>)>,
    pub down: Rate,
    pub up: Rate,
}
