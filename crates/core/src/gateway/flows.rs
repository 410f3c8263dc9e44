//! The flow that a segment belongs to, and how flows come to be known and are forgotten.

use super::end::LINGER;
use super::{direction_of, millis, Direction, Gateway, Headers, PassReason};
use crate::flow::{flag, Key};
use crate::node::Cx;

/// Longest silence of a flow before it is established, or after it was over.
const TRANSIENT_MS: u32 = 120_000;

impl Gateway {
    /// The flow that a segment acknowledges data of, or why there is none.
    pub(super) fn flow_of_ack(
        &mut self,
        cx: &mut Cx<'_>,
        from_lan: bool,
        segment: &Headers,
    ) -> Result<u32, PassReason> {
        let direction = if from_lan { Direction::In } else { Direction::Out };
        let key = Key::of_ack(&segment.packet, &segment.tcp);
        if let Some(i) = self.table.find(&key) {
            if direction_of(&self.table[i]) != direction {
                return Err(PassReason::Implausible); // it came in where its flow's data does
            }
            if self.keeps(cx, i) {
                return Ok(i);
            }
        }
        let Some(class) = self.controls(direction, &key) else {
            self.verdicts.pass(key.reversed());
            return Err(PassReason::NoClass);
        };
        self.begin_flow(cx, direction, &key, class).ok_or_else(|| {
            self.classes[class].passed[PassReason::TableFull as usize] += 1;
            self.count_data(key, class); // it shares what its class has for those without a place
            PassReason::TableFull
        })
    }

    /// The place of the class that controls the flow's ACKs.
    pub(super) fn controls(&self, direction: Direction, key: &Key) -> Option<u32> {
        let class = self.config.classify(direction, key)?;
        self.config.classes[class].ack.is_some().then(|| self.classes.place(class))
    }

    /// The flow's record, made if a class wants the flow and there is room.
    pub(super) fn flow_of(&mut self, cx: &mut Cx<'_>, direction: Direction, key: &Key) -> Option<u32> {
        if let Some(i) = self.table.find(key) {
            if direction_of(&self.table[i]) != direction {
                return None; // it came in where the flow's data does
            }
            if self.keeps(cx, i) {
                return Some(i);
            }
        }
        let class = self.controls(direction, key)?;
        self.begin_flow(cx, direction, key, class)
    }

    /// The known flow is in use. False: no class controls it any more, and it is forgotten.
    fn keeps(&mut self, cx: &mut Cx<'_>, i: u32) -> bool {
        let stays = self.revise(cx, i);
        if stays {
            self.table.touch(i, millis(cx.now));
        }
        stays
    }

    /// Makes the record of a flow that this class wants, if there is room.
    fn begin_flow(&mut self, cx: &mut Cx<'_>, direction: Direction, key: &Key, class: u32) -> Option<u32> {
        let now_ms = millis(cx.now);
        self.expire(cx, now_ms);
        let inward = direction == Direction::In;
        let i = match self.table.insert(*key, class, inward, now_ms) {
            Some(i) => i,
            None => {
                self.evict(cx, key, class, inward)?;
                self.table.insert(*key, class, inward, now_ms)?
            }
        };
        if let Some(bounds) = self.flow_bounds.get() {
            bounds.all()[i as usize].begin();
        }
        let r = &mut self.table[i];
        r.generation = self.generation;
        r.mss = 1460;
        self.classes.join(class);
        if !key.is_opening() {
            self.classes[class].flows += 1;
        }
        self.stats.flows = self.table.len().into();
        Some(i)
    }

    /// Makes room for a flow of this key and class.
    fn evict(&mut self, cx: &mut Cx<'_>, key: &Key, class: u32, inward: bool) -> Option<()> {
        let victim = self.table.victim(key, class, inward, cx.now)?;
        if !self.retire(cx, victim) {
            return None;
        }
        self.stats.evicted += 1;
        Some(())
    }

    /// Forgets the flow that has been silent longest if it has been so for too long.
    fn expire(&mut self, cx: &mut Cx<'_>, now_ms: u32) {
        let idle = (self.config.idle_timeout.as_nanos() / 1_000_000).min(u64::from(u32::MAX / 2)) as u32;
        for (transient, limit) in [(false, idle), (true, idle.min(TRANSIENT_MS))] {
            if let Some(i) = self.table.longest_silent(transient) {
                if now_ms.wrapping_sub(self.table[i].seen_ms) > limit {
                    self.retire(cx, i);
                }
            }
        }
    }

    /// Forgets a flow, after passing on what it holds. False if that, or telling the kernel, is not possible
    /// now.
    pub(super) fn retire(&mut self, cx: &mut Cx<'_>, i: u32) -> bool {
        let shown = self.table[i].has(flag::SHOWN);
        if shown && !self.verdicts.has_room() || !self.table[i].has(flag::CLOSED) && !self.flush(cx, i) {
            return false;
        }
        self.clear_acks(cx, i);
        self.drop_held(i);
        self.hide(i);
        self.remove(i);
        true
    }

    /// The record is free for another flow.
    pub(super) fn remove(&mut self, i: u32) {
        self.give_up_least(i);
        self.classes.leave(self.table[i].class);
        self.table.remove(i);
        self.stats.flows = self.table.len().into();
    }

    /// A flow that is over is forgotten, as soon as the kernel can be told.
    pub(super) fn forget(&mut self, cx: &mut Cx<'_>, i: u32) {
        if !self.retire(cx, i) {
            self.start_timer(i, cx.now + LINGER);
        }
    }
}
