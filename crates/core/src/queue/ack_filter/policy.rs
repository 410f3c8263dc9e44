//! The policies: how many ACKs an arriving one erases, and whether queued packets give way to new ones.

use super::{AckFilter, Drop, Policy, Rule, Threshold};
use crate::frame::Charge;
use crate::time::Time;

/// Most ACKs that one ACK erases. The next one continues.
const ERASED: usize = 64;

impl AckFilter {
    /// Returns how many ACKs of the flow an arriving one may erase.
    pub(super) fn may_erase(&mut self, i: u32, charge: Charge, now: Time) -> usize {
        let all = |filtered| if filtered { ERASED } else { 0 };
        let measured = self.policy.measures();
        let active = self.flows.active();
        if measured && active > self.most {
            self.backlog.stats.fallback += 1;
            return ERASED;
        }
        let flow = &mut self.flows.table[i as usize];
        match self.policy {
            Policy::None => 0,
            Policy::Static(threshold) => {
                let most = match threshold {
                    Threshold::Acks(n) => n.into(),
                    Threshold::Auto => self.gauge.threshold(charge.bytes),
                };
                usize::from(u64::from(flow.acks) >= most)
            }
            Policy::Classical => ERASED,
            Policy::Delayed => all(self.gauge.is_used(now)),
            Policy::DelayedPerFlow if self.rule == Rule::Adapted && flow.growth.counts_bytes() => ERASED,
            Policy::DelayedPerFlow => all(self.gauge.uses_its_share(flow, active, charge.bytes, now)),
        }
    }

    /// Returns whether queued packets give way to a new one.
    pub(super) fn makes_room(&mut self, now: Time) -> bool {
        match (self.drops(), self.policy) {
            (Some(drop), _) => drop != Drop::Tail,
            (None, Policy::None | Policy::Static(_) | Policy::Classical) => false,
            (None, Policy::Delayed) => !self.gauge.is_used(now),
            (None, Policy::DelayedPerFlow) => true,
        }
    }

    /// Returns what a full queue drops, unless the policy says it.
    pub(super) fn drops(&self) -> Option<Drop> {
        let published = self.policy == Policy::DelayedPerFlow && self.rule == Rule::Published;
        self.drop.or(published.then_some(Drop::Fastest))
    }
}
