//! Sites as written in a file, with their places in it.

use core::ops::Range;
use weir_core::rate::Rate;

/// A site as written in a file.
pub(super) struct Draft {
    pub id: String,
    pub id_at: Range<usize>,
    /// Alternative names that rows of customers may use.
    pub aliases: Vec<String>,
    /// Identifier besides the name.
    pub number: Option<String>,
    /// Identifier of the site above, and its place in the file.
    pub parent: Option<(String, Range<usize>)>,
    /// Rates of downloads and of uploads. A missing rate is inherited from the site above.
    pub rates: [Option<Rate>; 2],
    /// True for a site that only groups other sites and limits nothing.
    pub is_virtual: bool,
}
