//! Memory that gateway and kernel share: a slot for each record, and a tally for each place of a class.

use crate::steer::{Slot, Tally};

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

/// Where the tallies live.
pub(super) enum Tallies {
    Own(Vec<Tally>),
    Shared(&'static [Tally]),
}

impl Tallies {
    /// Tallies for `n` places in memory of their own.
    pub(super) fn own(n: u32) -> Tallies {
        Tallies::Own((0..n).map(|_| Tally::default()).collect())
    }

    pub(super) fn all(&self) -> &[Tally] {
        match self {
            Tallies::Own(tallies) => tallies,
            Tallies::Shared(tallies) => tallies,
        }
    }

    /// How many there can be, if that is bounded.
    pub(super) fn most(&self) -> Option<usize> {
        match self {
            Tallies::Own(_) => None,
            Tallies::Shared(tallies) => Some(tallies.len()),
        }
    }

    /// There is one for each of `n` places.
    pub(super) fn grow(&mut self, n: u32) {
        match self {
            Tallies::Own(tallies) => tallies.resize_with(n as usize, Tally::default),
            Tallies::Shared(_) => {}
        }
    }
}
