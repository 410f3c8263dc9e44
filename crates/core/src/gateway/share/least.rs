//! The least that a flow gets. A flow has it if, when its receiver's first acknowledgement confirms it, there
//! is as much for it and for all that have it already; otherwise it has what they leave, and asks again at
//! each of its turns. SYNs pass in the kernel, so no connection is refused.
//!
//! Where equal shares would be less than the least, flows that do not have it are given a part of a turn:
//! such that together they have what the others leave of the rate, and at least a 64th of the least each, so
//! that none starves.

use crate::flow::flag;
use crate::gateway::Gateway;

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
