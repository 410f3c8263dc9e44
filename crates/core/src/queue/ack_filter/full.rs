//! Full queues (§4.2).

use super::flows::Flow;
use super::{AckFilter, Drop, Policy, Service};
use crate::node::Cx;
use crate::stats::DropReason;
use crate::systems::ack_filter::redundant::ACCECN_MOST;

impl AckFilter {
    /// Returns the flow that loses its oldest packet. If that packet is redundant, also returns the place of
    /// the next one, and how many ACKs it then stands for.
    fn victim(&self) -> Option<(u32, Option<(u32, u8)>)> {
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
    fn covers_oldest(&self, flow: &Flow) -> Option<(u32, u8)> {
        let node = |n: u32| &self.nodes.all[n as usize];
        let first = node(flow.waiting.first()?);
        let n = first.own.next()?;
        let second = node(n);
        let both = first.stands_for.saturating_add(second.stands_for);
        let hides = flow.seen.is_accecn() && both > ACCECN_MOST;
        let redundant = first.ack.as_ref()?.is_redundant(second.ack.as_ref()?, None, &flow.told);
        (redundant && !hides).then_some((n, both))
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
                None => _ = self.backlog.drop(cx, taken.waiting.frame, DropReason::QueueFull),
            }
            let ends = self.flows.table[victim as usize].packets == 0;
            if ends && self.service == Service::RoundRobin {
                self.rounds.end(&mut self.flows.table, victim);
                self.rounds.go_on(&mut self.flows.table);
            }
            dropped |= ends && victim == i;
            self.sort(victim, cx.now);
        }
        dropped
    }
}
