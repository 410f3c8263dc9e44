//! Numbers of flows and classes, in types of their own.
//!
//! Lists, timers, and the memory that hooks in the kernel share with a gateway know neither flows nor
//! classes. They have plain numbers.

/// Number of a flow's record in its [`Table`](super::Table).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowId(pub u32);

/// Number of a class in a gateway. The class keeps it, whatever a change of configuration does to the
/// order. Its index in the configuration is a `usize`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct ClassId(pub u32);

impl FlowId {
    /// Returns the place in a list that has an entry for each record.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl ClassId {
    /// Returns the place in a list that has an entry for each class.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
