//! The flow that a segment belongs to, and how flows come to be known, follow a change of configuration, and
//! are forgotten.
//!
//! SYNs are never delayed or changed.
//! A SYN changes nothing for a connection that lives until it is answered: its record is kept under a key of
//! its own ([`Key::opening`]) meanwhile.

use super::flows::handshake::LINGER;
use super::flows::segment::Headers;
use super::flows::stats::PassReason;
use super::flows::{direction_of, millis};
use super::Gateway;
use crate::classify::Direction;
use crate::flow::{flag, ClassId, FlowId, Key, Record};
use crate::frame::Frame;
use crate::node::Cx;
use crate::wire::{self, Flags};

/// Longest silence of a flow before it is established, or after it was over.
const TRANSIENT_MS: u32 = 120_000;

impl Gateway {
    /// The flow that a segment acknowledges data of, or why there is none.
    pub(super) fn flow_of_ack(
        &mut self,
        cx: &mut Cx<'_>,
        from_lan: bool,
        segment: &Headers,
    ) -> Result<FlowId, PassReason> {
        let direction = if from_lan { Direction::In } else { Direction::Out };
        let key = Key::of_ack(&segment.packet, &segment.tcp);
        if let Some(i) = self.flows.table.find(&key) {
            if direction_of(&self.flows.table[i]) == direction {
                if self.keeps(cx, i) {
                    return Ok(i);
                }
            } else if !(from_lan && self.flows.is_hairpin(&key) && self.retire(cx, i)) {
                // It came in where its flow's data does. With an ACK of the LAN's side that was a mistake.
                return Err(PassReason::Implausible);
            }
        }
        let Some(class) = self.flows.controls(direction, &key) else {
            self.flows.verdicts.pass(key.reversed());
            return Err(PassReason::NoClass);
        };
        self.begin_flow(cx, direction, &key, class).ok_or_else(|| {
            self.flows.classes[class].passed[PassReason::TableFull as usize] += 1;
            self.flows.count_data(key, class); // it shares what its class has for those without a place
            PassReason::TableFull
        })
    }

    /// The flow's record, made if a class wants the flow and there is room.
    fn flow_of(&mut self, cx: &mut Cx<'_>, direction: Direction, key: &Key) -> Option<FlowId> {
        if let Some(i) = self.flows.table.find(key) {
            if direction_of(&self.flows.table[i]) != direction {
                return None; // it came in where the flow's data does
            }
            if self.keeps(cx, i) {
                return Some(i);
            }
        }
        let class = self.flows.controls(direction, key)?;
        self.begin_flow(cx, direction, key, class)
    }

    /// The known flow is in use. False: no class controls it any more, and it is forgotten.
    pub(super) fn keeps(&mut self, cx: &mut Cx<'_>, i: FlowId) -> bool {
        let stays = self.revise(cx, i);
        if stays {
            self.flows.table.touch(i, millis(cx.now));
        }
        stays
    }

    /// Makes the record of a flow that this class wants, if there is room.
    fn begin_flow(
        &mut self,
        cx: &mut Cx<'_>,
        direction: Direction,
        key: &Key,
        class: ClassId,
    ) -> Option<FlowId> {
        let now_ms = millis(cx.now);
        self.expire(cx, now_ms);
        let inward = direction == Direction::In;
        let i = match self.flows.table.insert(*key, class, inward, now_ms) {
            Some(i) => i,
            None => {
                self.evict(cx, key, class, inward)?;
                self.flows.table.insert(*key, class, inward, now_ms)?
            }
        };
        self.flows.begin_account(i, inward);
        self.flows.measured.begin(i);
        let r = &mut self.flows.table[i];
        r.generation = self.flows.generation;
        r.mss = 1460;
        self.flows.classes.join(class);
        if !key.is_opening() {
            self.flows.classes[class].flows += 1;
        }
        self.flows.stats.flows = self.flows.table.len().into();
        Some(i)
    }

    /// Makes room for a flow of this key and class.
    fn evict(&mut self, cx: &mut Cx<'_>, key: &Key, class: ClassId, inward: bool) -> Option<()> {
        let victim = self.flows.table.victim(key, class, inward, cx.now)?;
        if !self.retire(cx, victim) {
            return None;
        }
        self.flows.stats.evicted += 1;
        Some(())
    }

    /// Forgets the flow that has been silent longest if it has been so for too long.
    fn expire(&mut self, cx: &mut Cx<'_>, now_ms: u32) {
        let idle =
            (self.flows.config.idle_timeout.as_nanos() / 1_000_000).min(u64::from(u32::MAX / 2)) as u32;
        for (transient, limit) in [(false, idle), (true, idle.min(TRANSIENT_MS))] {
            if let Some(i) = self.flows.table.longest_silent(transient) {
                if now_ms.wrapping_sub(self.flows.table[i].seen_ms) > limit {
                    self.retire(cx, i);
                }
            }
        }
    }

    /// Forgets a flow, after passing on what it holds. False if that, or telling the kernel, is not possible
    /// now.
    fn retire(&mut self, cx: &mut Cx<'_>, i: FlowId) -> bool {
        let shown = self.flows.table[i].has(flag::SHOWN);
        if shown && !self.flows.verdicts.has_room()
            || !self.flows.table[i].has(flag::CLOSED) && !self.flush(cx, i)
        {
            return false;
        }
        self.flows.clear_acks(cx, i);
        self.flows.drop_held(i);
        self.flows.hide(i);
        self.flows.remove(i);
        true
    }

    /// A flow that is over is forgotten, as soon as the kernel can be told.
    pub(super) fn forget(&mut self, cx: &mut Cx<'_>, i: FlowId) {
        if !self.retire(cx, i) {
            self.flows.start_timer(i, cx.now + LINGER);
        }
    }

    /// The flow follows a change of configuration, if there was one. False: no class controls it any more,
    /// and it is forgotten.
    #[inline]
    pub(super) fn revise(&mut self, cx: &mut Cx<'_>, i: FlowId) -> bool {
        self.flows.table[i].generation == self.flows.generation || self.adapt(cx, i)
    }

    /// As [`Gateway::revise`], where there was a change.
    #[cold]
    fn adapt(&mut self, cx: &mut Cx<'_>, i: FlowId) -> bool {
        let r = &self.flows.table[i];
        let Some(place) = self.flows.controls(direction_of(r), &r.key) else {
            // What it holds cannot be passed on now, perhaps: it goes on as it was until then.
            return !self.retire(cx, i);
        };
        if place != self.flows.table[i].class {
            self.flows.move_to(cx, i, place);
        }
        if !self.flows.table[i].obeys(self.flows.classes.policy(place)) {
            self.flows.clear_acks(cx, i);
        }
        self.flows.table[i].generation = self.flows.generation;
        self.flows.derive(i, cx.now);
        true
    }

    /// A SYN, with or without ACK: it opens or answers, in both directions of data. One that is `here` has
    /// not left yet.
    pub(super) fn on_syn(
        &mut self,
        cx: &mut Cx<'_>,
        from_lan: bool,
        segment: &Headers,
        frame: &Frame,
        here: bool,
    ) {
        let bytes = cx.frames.bytes(frame);
        let options = wire::read_options(bytes, &segment.packet, &segment.tcp);
        let key = Key::of_data(&segment.packet, &segment.tcp);
        let (data, ack) = match from_lan {
            true => (Direction::Out, Direction::In),
            false if self.leaves_as_it_came(cx, &key, segment) => (Direction::Out, Direction::Out),
            false => (Direction::In, Direction::Out),
        };
        // Hooks keep a SYN that they have no budget for, and show it with its answer.
        let kept = self.flows.hooked && !segment.has(Flags::ACK);
        let at = if kept { frame.received.min(cx.now) } else { cx.now };
        if let Some(i) = self.record_of_syn(cx, data, &key, flag::SENDER_SYN, segment) {
            self.flows.on_sender_syn(at, i, segment, &options);
        }
        let key = key.reversed();
        if let Some(i) = self.record_of_syn(cx, ack, &key, flag::RECEIVER_SYN, segment) {
            self.flows.table[i].template.learn(cx.frames.bytes(frame), &segment.packet);
            self.flows.on_receiver_syn(at, i, segment, &options, here);
        } else if self.flows.controls(ack, &key).is_none() {
            self.flows.verdicts.pass(key.reversed());
        }
    }

    /// The record that learns from a SYN of the side `whose`: of the connection that it opens, or of the one
    /// whose opening it answers.
    fn record_of_syn(
        &mut self,
        cx: &mut Cx<'_>,
        direction: Direction,
        key: &Key,
        whose: u32,
        segment: &Headers,
    ) -> Option<FlowId> {
        if segment.has(Flags::ACK) {
            return self.answered(cx, direction, key, whose, segment);
        }
        let known = self.flows.table.find(key);
        if known.is_some_and(|i| direction_of(&self.flows.table[i]) != direction) {
            return None; // it came in on the wrong side
        }
        let known = known.filter(|&i| self.flows.table[i].lives());
        let i = match known {
            Some(i) if self.flows.table[i].began_with(whose, segment) => {
                self.flows.table[i].flags |= flag::SYN_REPEATED;
                return None;
            }
            Some(_) => self.flow_in_place(cx, direction, &key.opening())?,
            None => self.flow_of(cx, direction, key)?,
        };
        if !self.flows.table[i].opens_with(whose, segment) {
            self.flows.begin(cx, i);
        }
        Some(i)
    }

    /// Returns whether the connection of a SYN that came in leaves by the interface on which it comes, as on
    /// a router with one: its SYN came in, and so does the answer. ACKs of both ends come in then, so the
    /// data of both goes out.
    ///
    /// A host on the WAN's side can send both. What it opened is kept until the LAN's side answers, and an
    /// ACK from there ends this, too ([`Gateway::flow_of_ack`]). A connection that lives stays as it is.
    fn leaves_as_it_came(&mut self, cx: &mut Cx<'_>, key: &Key, segment: &Headers) -> bool {
        if self.flows.is_hairpin(key) {
            return true;
        }
        let opener = key.reversed();
        let is_opening = |i: &FlowId| {
            let r = &self.flows.table[*i];
            direction_of(r) == Direction::In && r.is_answered(flag::RECEIVER_SYN, segment)
        };
        let answers = segment.has(Flags::ACK)
            && self.flows.opening_of(Direction::Out, key, flag::SENDER_SYN, segment).is_some()
            && self.flows.controls(Direction::Out, &opener).is_some();
        let Some(i) = self.flows.table.find(&opener).filter(|i| answers && is_opening(i)) else {
            return false;
        };
        let opening = self.flows.table[i];
        for (direction, key) in [(Direction::In, opener.opening()), (Direction::Out, opener)] {
            if self.adopted(cx, direction, &key, &opening).is_none() {
                return false;
            }
        }
        true
    }

    /// The record of a connection that begins in this direction, with what its opening tells.
    fn adopted(
        &mut self,
        cx: &mut Cx<'_>,
        direction: Direction,
        key: &Key,
        opening: &Record,
    ) -> Option<FlowId> {
        let i = self.flow_in_place(cx, direction, key)?;
        self.flows.begin(cx, i);
        self.flows.table[i].adopt(opening);
        self.flows.marks.forget(i.index());
        Some(i)
    }

    /// The flow's record, as [`Gateway::flow_of`], in place of one of the other direction.
    fn flow_in_place(&mut self, cx: &mut Cx<'_>, direction: Direction, key: &Key) -> Option<FlowId> {
        if let Some(i) = self.flows.table.find(key) {
            if direction_of(&self.flows.table[i]) != direction && !self.retire(cx, i) {
                return None;
            }
        }
        self.flow_of(cx, direction, key)
    }

    /// The record of the opening that a SYN with ACK answers.
    pub(super) fn answered(
        &mut self,
        cx: &mut Cx<'_>,
        direction: Direction,
        key: &Key,
        whose: u32,
        segment: &Headers,
    ) -> Option<FlowId> {
        let p = self.flows.opening_of(direction, key, whose, segment)?;
        if self.flows.table[p].key.is_opening() {
            let opening = self.flows.table[p];
            self.flows.remove(p);
            let i = self.adopted(cx, direction, key, &opening)?;
            let class = self.flows.table[i].class;
            self.flows.classes[class].flows += 1;
            return Some(i);
        }
        Some(p)
    }
}
