//! Full queues (§4.2).

use super::flows::Flow;
use super::{AckFilter, Drop, Policy};
use crate::node::Cx;
use crate::stats::DropReason;
use crate::systems::ack_filter::redundant::Stands;

impl AckFilter {
    /// Returns the flow that loses its oldest packet. If that packet is redundant, also returns the place of
    /// the next one, and how many ACKs it then stands for.
    fn victim(&self) -> Option<(u32, Option<(u32, Stands)>)> {
        let longest = self.lengths.most()?;
        match self.drops() {
            Some(Drop::Fastest) => return Some((self.speeds.most().unwrap_or(longest), None)),
            Some(Drop::Longest | Drop::Tail) => return Some((longest, None)),
            None => (),
        }
        let flow = &self.flows.table[longest as usize];
        match self.policy {
            Policy::DelayedPerFlow if flow.acks == flow.packets => match self.covers_oldest(flow) {
                None => self.speeds.most().map(|fastest| (fastest, None)),
                second => Some((longest, second)),
            },
            _ => Some((longest, None)),
        }
    }

    /// Returns the place of a flow's second packet if it makes the oldest redundant, and how many ACKs it
    /// then stands for.
    fn covers_oldest(&self, flow: &Flow) -> Option<(u32, Stands)> {
        let node = |n: u32| &self.nodes.all[n as usize];
        let first = node(flow.waiting.first()?);
        let n = first.own.next()?;
        let second = node(n);
        let both = first.stands_for.with(second.stands_for);
        let (older, newer) = (first.ack.as_ref()?, second.ack.as_ref()?);
        let redundant = older.is_redundant(newer, None, &flow.told);
        (redundant && both.fits(newer, &flow.seen)).then_some((n, both))
    }

    /// Drops packets beyond the limit. Returns whether the packet that arrived last was dropped.
    pub(super) fn shorten(&mut self, cx: &mut Cx<'_>, i: u32) -> bool {
        let mut dropped = false;
        while self.holds.is_exceeded(&self.backlog) {
            let Some((victim, second)) = self.victim() else { break };
            let oldest = self.flows.table[victim as usize].waiting.first();
            let Some(taken) = oldest.and_then(|n| self.take(n)) else { break };
            match second {
                Some((n, stands_for)) => {
                    self.nodes.all[n as usize].stands_for = stands_for;
                    self.backlog.absorb(cx, taken.waiting.frame);
                }
                None => _ = self.backlog.drop(cx, taken.waiting, DropReason::QueueFull),
            }
            dropped |= self.flows.table[victim as usize].packets == 0 && victim == i;
            self.end_lost(victim, cx.now);
        }
        dropped
    }
}
