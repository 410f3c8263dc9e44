//! ACKs that an arriving ACK erases, and its place.

use super::AckFilter;
use crate::frame::{Charge, Waiting};
use crate::node::Cx;
use crate::systems::ack_filter::redundant::{Ack, Stands};
use crate::time::Time;

impl AckFilter {
    /// Erases the ACKs that the arriving one makes redundant. Returns the place of the last erased one, and
    /// how many ACKs the new one stands for.
    pub(super) fn make_place(
        &mut self,
        cx: &mut Cx<'_>,
        i: u32,
        newer: &Ack,
        charge: Charge,
    ) -> Option<(u32, Stands)> {
        let (mut place, mut stands_for) = (None, Stands::of(Some(newer)));
        for _ in 0..self.may_erase(i, charge, cx.now) {
            let flow = &self.flows.table[i as usize];
            let before = |n: u32| self.nodes.all[n as usize].own.prev();
            let Some(n) = place.map_or(flow.waiting.last(), before) else { break };
            let node = &self.nodes.all[n as usize];
            let Some(older) = &node.ack else { break };
            let both = stands_for.with(node.stands_for);
            let earlier = node.own.prev().and_then(|n| self.nodes.all[n as usize].ack.as_ref());
            if !both.fits(newer, &flow.seen) || !older.is_redundant(newer, earlier, &flow.told) {
                break;
            }
            self.erase(cx, n);
            if let Some(later) = place.replace(n) {
                self.unlink(later);
            }
            stands_for = both;
        }
        place.map(|n| (n, stands_for))
    }

    /// Erases the ACK in a place. The place stays.
    fn erase(&mut self, cx: &mut Cx<'_>, n: u32) {
        let node = &mut self.nodes.all[n as usize];
        let Some(waiting) = node.waiting.take() else { return };
        let flow = &mut self.flows.table[node.flow as usize];
        flow.count_out(waiting.charge, true);
        self.backlog.leave(waiting.charge);
        self.backlog.absorb(cx, waiting.frame);
    }

    /// Puts the ACK into the place of an erased one.
    pub(super) fn take_place(
        &mut self,
        (n, stands_for): (u32, Stands),
        waiting: Waiting,
        ack: Ack,
        now: Time,
    ) {
        let node = &mut self.nodes.all[n as usize];
        let (i, charge) = (node.flow, waiting.charge);
        (node.waiting, node.ack, node.stands_for) = (Some(waiting), Some(ack), stands_for);
        self.flows.table[i as usize].count_in(charge, true);
        self.backlog.enter(charge);
        self.sort(i, now);
    }
}
