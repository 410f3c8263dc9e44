//! The slots that gateway and kernel share, one for each record.

use crate::steer::Slot;

/// Where the slots live.
pub(super) enum Slots {
    Own(Box<[Slot]>),
    Shared(&'static [Slot]),
}

impl Slots {
    /// Slots for `n` records in memory of their own.
    pub(super) fn own(n: u32) -> Slots {
        Slots::Own((0..n).map(|_| Slot::default()).collect())
    }

    pub(super) fn all(&self) -> &[Slot] {
        match self {
            Slots::Own(slots) => slots,
            Slots::Shared(slots) => slots,
        }
    }
}

impl core::ops::Index<u32> for Slots {
    type Output = Slot;
    fn index(&self, i: u32) -> &Slot {
        &self.all()[i as usize]
    }
}
