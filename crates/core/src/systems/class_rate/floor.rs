//! A floor for TCP beside unresponsive traffic.
//!
//! Unresponsive traffic is charged to the clock of its class, and to those above it. If all of it were
//! charged as it passes, traffic at the class's rate would keep the clock ahead for ever, and no ACK would be
//! released. So it is charged no faster than at the rate less a [floor](ShareRelease::floor), or than TCP
//! leaves. The rest is a debt, which is paid in the intervals that follow: a burst counts as a whole. A debt
//! beyond 100 ms of the rate is written off.
//!
//! In a fair class the shares of the other flows leave TCP its own. There the floor is far below any share: a
//! tenth would be more than the share of one TCP flow beside forty others.

use super::average::ONE;
use super::debt::LUMP;
use super::node::List;
use super::{ClassTree, Share, ShareRelease, Shares};
use crate::flow::ClassId;
use crate::rate::Rate;
use crate::time::Time;

/// Part of the rate that TCP keeps in a fair class, whatever the shares are: one of so many.
const FAIR_FLOOR: u64 = 500;

impl Share {
    /// Rate that TCP keeps of `rate` beside unresponsive traffic.
    fn floor(&self, rate: Rate) -> Rate {
        if self.law.unresponsive.depth().is_some() {
            return Rate::from_bps(rate.bps() / FAIR_FLOOR).unwrap_or(rate);
        }
        ShareRelease::floor(rate, self.active.value().div_ceil(ONE))
    }

    /// Rate at which unresponsive traffic may be charged against `rate` while TCP competes.
    pub(super) fn pace(&self, rate: Rate) -> Rate {
        Rate::from_bps(rate.bps() - self.floor(rate).bps()).unwrap_or(rate)
    }

    /// Bits per second that its flows have together beside the unresponsive traffic.
    pub(crate) fn left_to_flows(&self) -> u64 {
        let rate = self.law.rate;
        rate.bps().saturating_sub(self.others.bps()).max(self.floor(rate).bps())
    }

    /// Charges this class alone unresponsive bytes. Returns those that are written off.
    fn charge_unresponsive(&mut self, bytes: u64, since: Time, now: Time) -> u64 {
        let (turns, pace) = (self.pace(self.law.rate), self.pace(self.clock.rate()));
        let (rate, bounded, quantum) = (self.law.rate, self.is_bounded(), i64::from(self.quantum));
        if let Some(node) = self.node_mut() {
            node.debt.owe(bytes, since, now);
            let paid = node.debt.pay(turns, 0, LUMP, now);
            let list = if node.is_below(now) { List::Below } else { List::Borrows };
            let deficit = &mut node.deficits[list as usize];
            // A class that takes no turns earns none: it begins with no more than a turn to make up for.
            let least = if node.standing.is_idle() { -quantum } else { -node.most_owed };
            *deficit = deficit.saturating_sub_unsigned(paid).max(least.min(*deficit));
            if let Some(own) = node.own.as_mut().filter(|_| list == List::Below) {
                own.charge_since(paid, since, now);
            }
            node.debt.write_off(rate);
        }
        match bounded {
            true => self.debt.charge(&mut self.clock, pace, bytes, (since, now)),
            false => 0,
        }
    }

    /// Bytes that would be written off of these.
    pub(crate) fn beyond(&self, bytes: u64, since: Time, now: Time) -> u64 {
        if !self.is_bounded() {
            return 0;
        }
        let (mut debt, mut clock) = (self.debt.clone(), self.clock.clone());
        debt.charge(&mut clock, self.pace(self.clock.rate()), bytes, (since, now))
    }
}

impl Shares {
    /// Returns whether a debt of unresponsive bytes is left in the class, or in one above it.
    pub(crate) fn owe(&self, place: ClassId) -> bool {
        let owes =
            |share: &Share| share.debt.bytes > 0 || share.node().is_some_and(|node| node.debt.bytes > 0);
        let mut above = core::iter::successors(self.get(place), |share| self.get(share.parent()?));
        above.any(owes)
    }
}

impl ClassTree<'_> {
    /// Charges a class, and those above it, unresponsive bytes that passed from `since` to `now`. Returns
    /// those that are written off.
    pub(crate) fn charge_unresponsive(&mut self, place: ClassId, bytes: u64, since: Time, now: Time) -> u64 {
        let mut beyond = 0;
        let mut at = place;
        while let Some(share) = self.shares.get_mut(at) {
            beyond = share.charge_unresponsive(bytes, since, now).max(beyond);
            let Some(parent) = share.parent() else { break };
            at = parent;
        }
        if at != place {
            self.settle(place, now);
        }
        beyond
    }
}
