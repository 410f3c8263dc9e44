//! Full queues (§4.2).

use super::flows::Flow;
use super::{AckFilter, Policy, Service};
use crate::node::Cx;
use crate::stats::DropReason;
use crate::time::Time;

impl AckFilter {
    /// Does what waits make room for what comes?
    pub(super) fn makes_room(&mut self, now: Time) -> bool {
        match self.policy {
            Policy::None | Policy::Static(_) | Policy::Classical => false,
            Policy::Delayed => !self.gauge.is_used(now),
            Policy::DelayedPerFlow => true,
        }
    }

    /// The flow that loses its oldest packet, and whether that one is redundant.
    fn victim(&self) -> Option<(u32, bool)> {
        let longest = self.lengths.most()?;
        let flow = &self.flows.table[longest as usize];
        match self.policy {
            Policy::DelayedPerFlow if flow.acks == flow.packets => match self.is_oldest_redundant(flow) {
                true => Some((longest, true)),
                false => self.speeds.most().map(|fastest| (fastest, false)),
            },
            _ => Some((longest, false)),
        }
    }

    /// Does the second packet of a flow say what the oldest one does?
    fn is_oldest_redundant(&self, flow: &Flow) -> bool {
        let ack = |n: u32| self.nodes.all[n as usize].ack.as_ref();
        let oldest = flow.waiting.first();
        let second = oldest.and_then(|n| self.nodes.all[n as usize].own.behind());
        match (oldest.and_then(ack), second.and_then(ack)) {
            (Some(older), Some(newer)) => {
                !flow.seen.is_accecn() && older.is_redundant(newer, None, &flow.told)
            }
            _ => false,
        }
    }

    /// Drops what is too much. Did the last packet that came go?
    pub(super) fn shorten(&mut self, cx: &mut Cx<'_>, i: u32) -> bool {
        let mut dropped = false;
        while self.holds.is_exceeded(&self.backlog) {
            let Some((victim, redundant)) = self.victim() else { break };
            let oldest = self.flows.table[victim as usize].waiting.first();
            let Some(taken) = oldest.and_then(|n| self.take(n)) else { break };
            match redundant {
                true => self.backlog.absorb(cx, taken.waiting.frame),
                false => _ = self.backlog.drop(cx, taken.waiting.frame, DropReason::QueueFull),
            }
            let ends = self.flows.table[victim as usize].packets == 0;
            if ends && self.service == Service::RoundRobin {
                self.rounds.end(&mut self.flows.table, victim);
                self.rounds.go_on();
            }
            dropped |= ends && victim == i;
            self.sort(victim, cx.now);
        }
        dropped
    }
}
