//! Order of a table's flows by amount: finds one with the largest amount in constant time, to a factor of
//! two.
//!
//! Flows are in lists by the power of two of their amount.

use crate::base::linked::{self, LinkedList, Links};

/// Power of two of a flow that is in no list.
const NONE: u8 = u8::MAX;

/// State of one flow in this order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    links: Links,
    /// Power of two of its amount.
    power: u8,
}

impl Size {
    /// State of a flow that is in no list.
    pub(super) const NONE: Size = Size { links: Links::NONE, power: NONE };
}

/// Order by amount. See the [module documentation](self). `of` selects the [`Size`] of a flow that belongs to
/// this order.
#[derive(Debug)]
pub(super) struct Sizes {
    lists: [LinkedList; 65],
    /// Bit set of the powers of two with at least one flow.
    occupied: u128,
}

impl Sizes {
    pub(super) const EMPTY: Sizes = Sizes { lists: [LinkedList::EMPTY; 65], occupied: 0 };

    /// Returns a flow with the largest amount, to a factor of two.
    pub(super) fn most(&self) -> Option<u32> {
        let power = 127u32.checked_sub(self.occupied.leading_zeros())?;
        self.lists[power as usize].first()
    }

    /// Sets the amount of a flow; `None` removes it.
    #[inline]
    pub(super) fn set<T, F>(&mut self, flows: &mut [T], i: u32, amount: Option<u64>, of: F)
    where
        F: Fn(&mut T) -> &mut Size,
    {
        let power = amount.map_or(NONE, |amount| (64 - amount.leading_zeros()) as u8);
        let old = core::mem::replace(&mut of(&mut flows[i as usize]).power, power);
        if old == power {
            return;
        }
        let mut links = linked::by(flows, |flow| &mut of(flow).links);
        if old != NONE {
            let list = &mut self.lists[usize::from(old)];
            list.remove(&mut links, i);
            if list.is_empty() {
                self.occupied &= !(1 << old);
            }
        }
        if power != NONE {
            self.lists[usize::from(power)].push(&mut links, i);
            self.occupied |= 1 << power;
        }
    }
}
