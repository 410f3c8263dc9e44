//! Bounds of classes: what the configuration says of them, and how a gateway without hooks keeps them itself.

use super::{Config, Direction, Gateway, Headers};
use crate::ack::Unresponsive;
use crate::flow::{flag, Key};
use crate::node::Cx;
use crate::steer::{self, Bound, Kind, Limit, Load};
use crate::time::Time;

impl Config {
    /// Terms of the class with this index, if its flows share a rate. Places above it are indices.
    pub fn limit(&self, class: usize) -> Option<Limit> {
        let config = &self.classes[class];
        let law = config.ack?.release.share().copied().filter(|_| config.shares_rate())?;
        if law.unresponsive == Unresponsive::Count {
            return None;
        }
        let Some(nested) = config.nested else {
            return Some(Limit { most: Some(law.rate), own: None, above: None, counts: law.counts });
        };
        let parent = |class: &usize| self.classes[*class].nested?.parent;
        let bounded =
            |class: &usize| self.classes[*class].nested.is_some_and(|above| above.bound().is_some());
        let above = core::iter::successors(nested.parent, parent).take(super::DEEPEST).find(bounded);
        let own = nested.rate.filter(|_| nested.parent.is_some());
        Some(Limit { most: nested.bound(), own, above: above.map(|class| class as u32), counts: law.counts })
    }
}

impl Gateway {
    /// Terms of each class, by place.
    pub fn bounds(&self) -> &[Bound] {
        self.bounds.all()
    }

    /// Bound of the class with this index in the configuration.
    pub fn bound_of(&self, class: usize) -> &Bound {
        &self.bounds.all()[self.classes.place(class) as usize]
    }

    /// Does a direction have a class with a bound?
    pub fn is_bounded(&self, direction: Direction) -> bool {
        self.bounded[usize::from(direction == Direction::In)]
    }

    /// Places of the configuration's classes, in its order.
    pub fn places(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.config.classes.len()).map(|class| self.classes.place(class))
    }

    /// The classes of the configuration have the bounds that it says, others have none.
    pub(super) fn set_bounds(&mut self) {
        self.bounded = [false; 2];
        let bounds = self.bounds.all();
        for (place, bound) in (0..self.classes.len()).zip(bounds) {
            let class = self.classes.index(place);
            let limit = class.and_then(|class| self.config.limit(class));
            let at = |class: u32| self.classes.place(class as usize);
            bound.set(limit.map(|limit| Limit { above: limit.above.map(at), ..limit }));
            if let Some(class) = class.filter(|_| limit.is_some()) {
                let inward = self.config.classes[class].direction == Direction::In;
                self.bounded[usize::from(inward)] = true;
            }
        }
    }

    /// May this pass, of the flow with this key? It is charged to the class then.
    pub fn admits(&self, direction: Direction, key: &Key, load: &Load, now: Time) -> bool {
        let Some(place) = self.counted_place(direction, key) else { return true };
        steer::admits(self.bounds.all(), self.tallies(), place, load, now)
    }

    /// May a segment pass, in a gateway without hooks?
    pub(super) fn admits_data(&self, cx: &Cx<'_>, from_lan: bool, segment: &Headers) -> bool {
        let direction = if from_lan { Direction::Out } else { Direction::In };
        let payload = u64::from(segment.tcp.payload_len);
        if payload == 0 || !self.is_bounded(direction) {
            return true;
        }
        let key = Key::of_data(&segment.packet, &segment.tcp);
        let bytes = u64::from(segment.packet.end) - u64::from(segment.packet.l3);
        let load = Load { packets: 1, bytes, payload, kind: self.kind_of(&key) };
        self.admits(direction, &key, &load, cx.now)
    }

    /// Kind of a segment with data for its class's bound, in a gateway without hooks.
    pub(super) fn kind_of(&self, key: &Key) -> Kind {
        match self.table.find(key) {
            Some(i) if self.table[i].has(flag::PASSES) => Kind::Counted,
            Some(i) if self.slots[i].is_open() => Kind::Held,
            _ => Kind::Free,
        }
    }
}
