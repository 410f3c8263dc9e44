//! Sites as a file says them, and where.

use core::ops::Range;
use weir_core::rate::Rate;

/// A site as a file says it.
pub(super) struct Draft {
    pub id: String,
    pub id_at: Range<usize>,
    /// Other names that rows of customers may have for it.
    pub aliases: Vec<String>,
    /// The identifier that it has beside its name.
    pub number: Option<String>,
    /// The identifier of the site above it, and where that is.
    pub parent: Option<(String, Range<usize>)>,
    /// Its rates, downloading and uploading. Without one, it has that of the site above it.
    pub rates: [Option<Rate>; 2],
    /// It groups sites, and limits nothing.
    pub is_virtual: bool,
}
