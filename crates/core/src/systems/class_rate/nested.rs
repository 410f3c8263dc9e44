//! The place of a class in the tree of those that borrow from each other what they release by their ACKs.

use crate::rate::Rate;

/// Most classes from one at the top to one with flows, both included.
pub const DEEPEST: usize = 8;

/// Place of a class in such a tree, and the rates that it may send at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Nested {
    /// The class that it borrows from, by its index in [`Config::classes`](crate::classify::Config::classes);
    /// `None` at the top.
    pub parent: Option<usize>,
    /// Rate of the class itself; at the top, of all together. `None` if all that it sends is borrowed.
    pub rate: Option<Rate>,
    /// The most that it may send. `None`: what its parents may. At the top it is the rate.
    pub ceil: Option<Rate>,
    /// Weight among the children of one parent when they borrow: 1 to 1000.
    pub weight: u32,
    /// Others borrow from it: it takes no flows itself.
    pub lends: bool,
}

impl Nested {
    /// The most that it may send itself, whatever its parents may.
    pub(crate) fn bound(&self) -> Option<Rate> {
        if self.parent.is_none() {
            self.rate
        } else {
            self.ceil
        }
    }
}
