//! Numbers by which flows are known, in a type of their own.

/// The number of a flow's record in its [`Table`](super::Table).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowId(pub u32);

impl FlowId {
    /// Returns the place in a list that has an entry for each record.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
