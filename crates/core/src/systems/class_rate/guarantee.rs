//! Parts of a class's rate where flows have a guarantee.

use super::Share;
use crate::flow::{flag, Record};
use crate::rate::Rate;

/// The part of a turn that a flow has at least, as a divisor.
const LEAST_PART: u64 = 64;

/// Answer to a flow that asks for the guarantee of its class.
pub(crate) enum Guarantee {
    /// It has it from now on.
    Given,
    /// There is too little for it.
    NoRoom,
    /// There is none, it has it already, or it has nothing more to send.
    NotAsked,
}

impl Share {
    /// Gives a flow the guarantee, if there is room. `ends`: it has nothing more to send.
    pub(crate) fn guarantee(&mut self, r: &mut Record, ends: bool) -> Guarantee {
        // A promise for opening a connection is open to all.
        if r.flags & (flag::TRANSIENT | flag::GUARANTEED) != 0 {
            return Guarantee::NotAsked;
        }
        let Some(least) = self.law.flow_min.filter(|_| !ends) else { return Guarantee::NotAsked };
        if u64::from(self.sure + 1).saturating_mul(least.bps()) > self.there() {
            return Guarantee::NoRoom;
        }
        self.sure += 1;
        self.listed_sure += u32::from(r.has(flag::LISTED));
        r.flags |= flag::GUARANTEED;
        Guarantee::Given
    }

    /// Takes the guarantee from a flow. False if it had none.
    pub(crate) fn give_up(&mut self, r: &mut Record) -> bool {
        let had = r.has(flag::GUARANTEED);
        if had {
            self.sure -= 1;
            self.listed_sure -= u32::from(r.has(flag::LISTED));
            r.flags &= !flag::GUARANTEED;
        }
        had
    }

    /// Bits per second that its flows have now.
    fn there(&self) -> u64 {
        self.law.rate.bps().saturating_sub(self.others.bps())
    }

    /// Returns the part of `amount` for backlogged flows without a guarantee, where the others may be given
    /// all of it.
    pub(crate) fn part_of(&self, sure: bool, amount: u32) -> u32 {
        let Some((left, wanted)) = self.shortage().filter(|_| !sure) else { return amount };
        (u128::from(amount) * u128::from(left) / u128::from(wanted)) as u32
    }

    /// Returns a flow's share of the rate, with a guarantee (`sure`) or without.
    pub(crate) fn each_of(&self, sure: bool) -> Rate {
        let each = self.each();
        let (Some(least), Some((left, wanted))) = (self.law.flow_min, self.shortage()) else { return each };
        let bps = u128::from(least.bps()) * u128::from(left) / u128::from(wanted);
        if sure {
            each.max(least)
        } else {
            Rate::from_bps(bps as u64).map_or(each, |rate| rate.min(each))
        }
    }

    /// Returns what guaranteed flows leave, and what the others would need, where there is too little for
    /// every backlogged flow to have the least rate. `None` if there is enough, or no flow has a guarantee.
    pub(crate) fn shortage(&self) -> Option<(u64, u64)> {
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
    use crate::systems::class_rate::ShareRelease;

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
        // No flow has it: equal shares.
        (share.listed, share.listed_sure) = (9, 0);
        assert_eq!(parts(&share), (2_920, 2_920));
    }
}
