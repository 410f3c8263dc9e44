//! Measurement of the [`crate::quality`] of flows by their segments, and queries of the results.

use super::slots::Places;
use super::Register;
use crate::classify::{Direction, DEEPEST};
use crate::flow::{flag, FlowId, Key};
use crate::quality::{self, Answer, Data, FlowQuality, Qualities, Quality, Repeat, Sight, Told};
use crate::steer::{slot_flag, Seen};
use crate::time::Time;
use crate::wire::{self, Packet, Seq, Tcp};
use zerocopy::FromZeros;

/// Measurements of flows and classes.
pub(in crate::gateway) struct Measures {
    /// Sight of each flow, by its place in the table.
    pub(in crate::gateway) sights: Places<Sight>,
    /// Results of each flow, by its place in the table.
    flows: Vec<FlowQuality>,
    pub(super) classes: Qualities,
}

impl Measures {
    /// For this many flows and classes.
    pub(in crate::gateway) fn new(flows: u32, classes: u32) -> Measures {
        Measures {
            sights: Places::own(flows),
            flows: FlowQuality::new_vec_zeroed(flows as usize).unwrap_or_default(),
            classes: Qualities::new(classes),
        }
    }

    #[inline(always)]
    pub(in crate::gateway) fn sight(&self, i: FlowId) -> &Sight {
        &self.sights.all()[i.index()]
    }

    /// The record is another connection's.
    pub(in crate::gateway) fn begin(&mut self, i: FlowId) {
        self.sight(i).begin();
        if let Some(flow) = self.flows.get_mut(i.index()) {
            *flow = FlowQuality::default();
        }
    }
}

impl Register {
    /// A segment of a flow's data comes, with this head, of whatever becomes of it. The hooks do this where
    /// there are some.
    #[inline]
    pub fn see_segment(
        &self,
        i: FlowId,
        direction: Direction,
        key: &Key,
        (head, packet, tcp): (&[u8], &Packet, &Tcp),
        now: Time,
    ) {
        let options = || wire::tcp_options(head, packet, tcp).ok()?.timestamps;
        let awaits = self.measured.sight(i).awaits_echo();
        let echo = if awaits { options().map(|t| t.echo) } else { None };
        self.see_data(i, direction, key, &Data::of(tcp, echo, now));
    }

    #[inline]
    fn see_data(&self, i: FlowId, direction: Direction, key: &Key, data: &Data) {
        let Some(repeat) = self.measured.sight(i).data(data, &self.told(i)) else { return };
        let bound = self.class_of(Some(i), direction, key).and_then(|p| self.bounds.all().get(p.index()));
        if let Some(bound) = bound {
            match repeat {
                Repeat::Again(packets) => bound.count_repeated(packets.into()),
                Repeat::Overtaken(packets) => bound.count_reordered(packets.into()),
            }
        }
    }

    fn told(&self, i: FlowId) -> Told {
        let slot = &self.slots[i];
        let (ack, edge) = slot.heard();
        Told { ack: ack.0, edge: slot.has(slot_flag::SCALED).then_some(edge.0) }
    }

    /// A segment of the receiver is about to pass, if it has a grant.
    #[inline]
    pub fn see_granted(&self, i: FlowId, seen: &Seen, now: Time) {
        let sight = self.measured.sight(i);
        if sight.awaits_ack(seen.ack.0) && self.slots[i].lets_pass(seen) {
            sight.passes(seen.ack.0, seen.ts, quality::units(now));
        }
    }

    /// An ACK of the receiver passes, as all do in a gateway that observes.
    pub fn see_passed(&self, i: FlowId, seen: &Seen, now: Time) {
        self.measured.sight(i).passes(seen.ack.0, seen.ts, quality::units(now));
    }

    /// An ACK of the receiver has come.
    #[inline(always)]
    pub(in crate::gateway) fn measure(&mut self, i: FlowId, ack: Seq, now: Time) {
        if self.measured.sight(i).is_answered(ack.0, quality::units(now)) {
            self.note_answer(i, now);
        }
    }

    #[cold]
    #[inline(never)]
    pub(in crate::gateway) fn note_answer(&mut self, i: FlowId, now: Time) {
        let (slot, sight) = (&self.slots[i], self.measured.sight(i));
        let answer = sight.answer(slot.ts(), slot.nxt().0, quality::units(now));
        self.measured.flows[i.index()].note_answer(&answer);
        self.note_sides(i, &answer, now);
    }

    fn note_sides(&mut self, i: FlowId, answer: &Answer, now: Time) {
        let r = &self.table[i];
        let way = usize::from(r.has(flag::INWARD));
        let parent = |class: &usize| self.config.classes.get(*class)?.nested?.parent;
        let first = self.classes.index(r.class);
        let upwards = core::iter::successors(first, parent).take(DEEPEST);
        for (side, time) in answer.sides() {
            let places = upwards.clone().map(|class| self.classes.place(class));
            self.measured.classes.note(way, places, side, time, now);
        }
    }

    /// An ACK of `ack` leaves at `at`.
    #[inline(always)]
    pub(in crate::gateway) fn measure_left(&self, i: FlowId, ack: Seq, at: Time) {
        let sight = self.measured.sight(i);
        if sight.is_held() {
            let slot = &self.slots[i];
            let ts = slot.has(slot_flag::TIMESTAMPS).then(|| slot.ts());
            sight.leaves(ack.0, ts, slot.nxt().0, quality::units(at));
        }
    }

    /// The handshake is over: from its first SYN it has taken `total`, of which the last part was the round
    /// trip to the receiver if its sender was the one that answered.
    pub(super) fn note_handshake(&mut self, i: FlowId, before_ns: u32, total_ns: u32, now: Time) {
        let units = |ns: u32| Some(ns >> 10).filter(|&units| units > 0);
        let Some(total) = units(total_ns) else { return };
        let (receiver, sender) = match total_ns > before_ns {
            true => (units(total_ns - before_ns), units(before_ns)),
            false => (Some(total), None),
        };
        let answer = Answer { receiver, sender, held: None };
        let flow = &mut self.measured.flows[i.index()];
        flow.note_set_up(total);
        flow.note_answer(&answer);
        self.note_sides(i, &answer, now);
    }

    /// The receiver has closed its window.
    pub(super) fn note_zero_window(&mut self, i: FlowId) {
        self.measured.flows[i.index()].note_zero_window();
    }

    /// Results of the flow with this key, and the counters of its data.
    pub fn quality_of(&self, key: &Key) -> Option<(FlowQuality, &Sight)> {
        let i = self.table.find(key)?;
        Some((self.measured.flows[i.index()], self.measured.sight(i)))
    }

    /// Distributions of the class with this index in the configuration, with all below it.
    pub fn quality_of_class(&self, class: usize) -> Option<&Quality> {
        self.measured.classes.of(self.classes.place(class))
    }

    /// Distributions of all data that goes out, and that comes in.
    pub fn quality_of_all(&self) -> &[Quality; 2] {
        self.measured.classes.ways()
    }

    /// Sight of each flow, by its place in the table.
    pub fn sights(&self) -> &[Sight] {
        self.measured.sights.all()
    }
}
