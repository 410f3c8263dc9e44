//! Charges to a class and its flow, and what is given back. At any time `permitted = received + early` of
//! each flow.

use super::{ClassTree, Turn};
use crate::flow::Record;
use crate::steer::VirtualQueue;
use crate::time::Time;

/// Bytes charged to a class and those above it.
#[derive(Default)]
pub(crate) struct Charged {
    /// Bytes of the flow.
    pub(crate) bytes: u32,
    /// Bytes of these, as the class counts them, that were forgiven since its clock is too far ahead.
    pub(crate) forgiven: u64,
}

impl ClassTree<'_> {
    /// The sender may send `bytes` more, which it was permitted in a span of time. Its class is charged
    /// `charged` of them: the others have passed, and were charged then.
    pub(crate) fn permit(&mut self, r: &mut Record, bytes: u32, charged: u32, span: (Time, Time)) -> Charged {
        self.charge_flow(r, bytes, span, |turn, quantum| {
            turn.permit(bytes, quantum);
            (bytes, charged)
        })
    }

    /// The receiver has got `bytes` more in a span of time. What its sender sent of its own accord is
    /// charged, unless a hook has seen it: it charged what passed, and receivers may tell of more.
    pub(crate) fn got(
        &mut self,
        r: &mut Record,
        bytes: u32,
        account: Option<&VirtualQueue>,
        span: (Time, Time),
    ) -> Charged {
        self.charge_flow(r, bytes, span, |turn, quantum| {
            let own = turn.received(bytes, quantum);
            (own, own - account.map_or(0, |account| account.settle(own)))
        })
    }

    /// Changes what is kept of a flow, and charges the flow and its class the bytes that this says. Turns of
    /// ACKs are charged as they are had.
    fn charge_flow(
        &mut self,
        r: &mut Record,
        most: u32,
        (since, now): (Time, Time),
        change: impl FnOnce(&mut Turn, u32) -> (u32, u32),
    ) -> Charged {
        let counted = most > 0 && !r.takes_steps();
        let Some(share) = self.shares.get_mut(r.class).filter(|_| counted) else { return Charged::default() };
        let (bytes, charged) = change(r.law.turn_mut(), share.quantum);
        if bytes == 0 {
            return Charged::default();
        }
        let segments = r.segments();
        let cost = share.law.cost(&segments, bytes);
        let charged = if charged == bytes { cost } else { share.law.cost(&segments, charged) };
        if let Some(most) = share.law.flow_max {
            r.law.turn_mut().spend(cost, most, now);
        }
        // All of them are the flow's part of its class, whenever that was charged.
        share.note_turns(cost as i64);
        let forgiven = if charged > 0 { self.charge(r.class, charged, since, now) } else { 0 };
        Charged { bytes, forgiven }
    }

    /// Takes back what the sender was permitted and will not send, beyond `left` bytes. Returns its bytes.
    pub(crate) fn take_back(&mut self, r: &mut Record, left: u32, now: Time) -> u32 {
        let counted = r.takes_turns() && !r.takes_steps();
        let Some(share) = self.shares.get(r.class).filter(|_| counted) else { return 0 };
        let turn = r.law.turn_mut();
        let back = turn.early.saturating_sub(left);
        turn.early -= back;
        if back > 0 {
            let cost = share.law.cost(&r.segments(), back);
            if let Some(most) = share.law.flow_max {
                r.law.turn_mut().unspend(cost, most);
            }
            self.give_back(r.class, cost, now);
        }
        back
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Share, ShareRelease, Shares};
    use super::*;
    use crate::base::Timers;
    use crate::flow::ClassId;
    use crate::rate::Rate;

    /// A flow is permitted 3,000 bytes, of which 2,000 were charged as they passed: it has had 3,000 all the
    /// same, and a queue that has spilled is as many behind.
    #[test]
    fn what_was_charged_before_is_a_part_of_the_class_too() {
        let (mut shares, mut timers, now) = (Shares::default(), Timers::new(8), Time::from_secs(1));
        let mut share = Share::new(&ShareRelease::new(Rate::mbit(50)));
        share.spilled.count = 1;
        shares.put(ClassId(0), Some(share));
        let mut r = Record { mss: 1_460, ..Record::default() };
        *r.law.turn_mut() = Turn::begin(now);
        let mut tree = ClassTree { shares: &mut shares, timers: &mut timers, first: 0, wheel: 0 };
        let charged = tree.permit(&mut r, 3_000, 1_000, (now, now));
        assert_eq!(charged.bytes, 3_000);
        let share = shares.get(ClassId(0)).unwrap();
        let (cost, part) = (share.law.cost(&r.segments(), 3_000), share.law.cost(&r.segments(), 1_000));
        assert_eq!(share.spilled.lead(), cost as i64);
        assert_eq!(share.clock.due(), now.saturating_sub(share.law.credit()) + share.law.rate.time_for(part));
    }
}
