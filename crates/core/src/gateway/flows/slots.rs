//! Memory that gateway and kernel share: a slot and a flow's bound for each record, and a tally and a bound
//! for each place of a class.

use crate::flow::FlowId;
use crate::steer::Slot;

/// Memory of the slots.
pub(in crate::gateway) enum Slots {
    Own(Box<[Slot]>),
    Shared(&'static [Slot]),
}

impl Slots {
    /// Slots for `n` records in memory of their own.
    pub(in crate::gateway) fn own(n: u32) -> Slots {
        Slots::Own((0..n).map(|_| Slot::default()).collect())
    }

    pub(in crate::gateway) fn all(&self) -> &[Slot] {
        match self {
            Slots::Own(slots) => slots,
            Slots::Shared(slots) => slots,
        }
    }
}

impl core::ops::Index<FlowId> for Slots {
    type Output = Slot;
    fn index(&self, i: FlowId) -> &Slot {
        &self.all()[i.index()]
    }
}

/// Memory of what hooks count of classes and flows: tallies and bounds.
pub(in crate::gateway) enum Places<T: 'static> {
    Own(Vec<T>),
    Shared(&'static [T]),
}

impl<T: Default> Places<T> {
    /// For `n` places in memory of their own.
    pub(in crate::gateway) fn own(n: u32) -> Places<T> {
        Places::Own((0..n).map(|_| T::default()).collect())
    }

    pub(in crate::gateway) fn all(&self) -> &[T] {
        match self {
            Places::Own(places) => places,
            Places::Shared(places) => places,
        }
    }

    /// Returns the largest number there can be, if it is bounded.
    pub(in crate::gateway) fn most(&self) -> Option<usize> {
        match self {
            Places::Own(_) => None,
            Places::Shared(places) => Some(places.len()),
        }
    }

    /// There is one for each of `n` places.
    pub(super) fn grow(&mut self, n: u32) {
        match self {
            Places::Own(places) => places.resize_with(n as usize, T::default),
            Places::Shared(_) => {}
        }
    }
}
