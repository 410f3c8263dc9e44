//! The least that a flow gets. A flow has it if, when its receiver's first acknowledgement confirms it, there
//! is as much for it and for all that have it already; otherwise it has what they leave, and asks again at
//! each of its turns. SYNs pass in the kernel, so no connection is refused.
//!
//! Where equal shares would be less than the least, flows that do not have it are given a part of a turn:
//! such that together they have what the others leave of the rate, and at least a 64th of the least each, so
//! that none starves.

use super::Share;
use crate::flow::flag;
use crate::gateway::Gateway;
use crate::rate::Rate;

/// The part of a turn that a flow has at least, as a divisor.
const LEAST_PART: u64 = 64;

impl Gateway {
    /// A flow whose first window is known was confirmed by its receiver: it asks for the least rate.
    pub(in crate::gateway) fn begin_least(&mut self, i: u32) {
        let r = &self.table[i];
        if r.has(flag::SHARED | flag::EDGE_KNOWN) && !r.has(flag::STEPS) && !self.ask_for_least(i) {
            self.classes[self.table[i].class].best_effort += 1;
        }
    }

    /// The flow has the least rate of its class from now on, if there is room. False if there is not.
    pub(super) fn ask_for_least(&mut self, i: u32) -> bool {
        let r = &mut self.table[i];
        if r.has(flag::TRANSIENT) {
            return true; // a promise to whoever opens a connection is everybody's to take
        }
        let Some(share) = self.classes.share_mut(r.class).filter(|_| !r.has(flag::GUARANTEED)) else {
            return true;
        };
        let Some(least) = share.law.flow_min else { return true };
        if r.is_ending() || u64::from(share.sure + 1).saturating_mul(least.bps()) > share.there() {
            return r.is_ending();
        }
        share.sure += 1;
        share.listed_sure += u32::from(r.has(flag::LISTED));
        r.flags |= flag::GUARANTEED;
        self.classes[self.table[i].class].guaranteed += 1;
        true
    }

    /// The flow has the least rate no more: it ends, or is of another class.
    pub(in crate::gateway) fn give_up_least(&mut self, i: u32) {
        let r = &mut self.table[i];
        let Some(share) = self.classes.share_mut(r.class).filter(|_| r.has(flag::GUARANTEED)) else { return };
        share.sure -= 1;
        share.listed_sure -= u32::from(r.has(flag::LISTED));
        r.flags &= !flag::GUARANTEED;
        self.classes[self.table[i].class].guaranteed -= 1;
    }
}

impl Share {
    /// Bits per second that its flows have now.
    fn there(&self) -> u64 {
        self.law.rate.bps().saturating_sub(self.others.bps())
    }

    /// What flows that hold something and have not the least rate are given of `amount`, where the others may
    /// be given all of it.
    pub(super) fn part_of(&self, sure: bool, amount: u32) -> u32 {
        let Some((left, wanted)) = self.shortage().filter(|_| !sure) else { return amount };
        (u128::from(amount) * u128::from(left) / u128::from(wanted)) as u32
    }

    /// What a flow has of the rate, with the least rate or without.
    pub(super) fn each_of(&self, sure: bool) -> Rate {
        let each = self.each();
        let (Some(least), Some((left, wanted))) = (self.law.flow_min, self.shortage()) else { return each };
        let bps = u128::from(least.bps()) * u128::from(left) / u128::from(wanted);
        if sure {
            each.max(least)
        } else {
            Rate::from_bps(bps as u64).map_or(each, |rate| rate.min(each))
        }
    }

    /// Where there is too little for those that hold something to have the least rate each: what flows that
    /// have it leave, and what the others would need. `None` if there is enough, or nobody has it.
    fn shortage(&self) -> Option<(u64, u64)> {
        let least = self.law.flow_min?.bps();
        let (sure, others) = (u64::from(self.listed_sure), u64::from(self.listed - self.listed_sure));
        let wanted = others.saturating_mul(least);
        let left = self.there().saturating_sub(sure.saturating_mul(least)).max(wanted / LEAST_PART);
        (sure > 0 && left < wanted).then_some((left, wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack::ShareRelease;

    #[test]
    fn flows_without_the_least_rate_have_what_the_others_leave() {
        let law = ShareRelease { flow_min: Some(Rate::mbit(3)), ..ShareRelease::new(Rate::mbit(10)) };
        let mut share = Share::new(&law);
        let parts = |share: &Share| (share.part_of(true, 2_920), share.part_of(false, 2_920));
        // Two with 3 of 10 Mb/s each: two more have 2 each, of the 3 that they would need.
        (share.listed, share.listed_sure) = (4, 2);
        assert_eq!(parts(&share), (2_920, 1_946));
        // One more has what the others have.
        (share.listed, share.listed_sure) = (3, 2);
        assert_eq!(parts(&share), (2_920, 2_920));
        // Nothing is left but a 64th.
        share.law.rate = Rate::mbit(6);
        assert_eq!(parts(&share), (2_920, 45));
        // Nobody has it: equal shares.
        (share.listed, share.listed_sure) = (9, 0);
        assert_eq!(parts(&share), (2_920, 2_920));
    }
}
