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
        let Some(share) = self.shares.get(r.class).filter(|_| counted) else { return Charged::default() };
        let (bytes, charged) = change(r.law.turn_mut(), share.quantum);
        if bytes == 0 {
            return Charged::default();
        }
        let segments = r.segments();
        if let Some(most) = share.law.flow_max {
            r.law.turn_mut().spend(share.law.cost(&segments, bytes), most, now);
        }
        let forgiven = match charged {
            0 => 0,
            _ => self.charge(r.class, share.law.cost(&segments, charged), since, now),
        };
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
