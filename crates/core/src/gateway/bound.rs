//! Bounds of classes and flows: what the configuration says of them, and how a gateway without hooks keeps
//! them itself.

use super::slots::Places;
use super::{direction_of, Config, Direction, Gateway, Headers, Share};
use crate::ack::{AckControl, Counts, Unresponsive, When, Window};
use crate::flow::{flag, Key};
use crate::node::Cx;
use crate::steer::{
    self, hash_of_source, is_charged, Bound, FlowBound, FlowLimit, Kind, Limit, Load, Strangers,
};
use crate::time::{Duration, Time};
use crate::wire;

/// Time at its rate that a flow may be ahead whose window is kept: in slow start it sends up to twice what it
/// is acknowledged.
const AHEAD: Duration = Duration::from_secs(1);

/// Bytes of an ARP packet with Ethernet's padding.
const ARP_MOST: u64 = 46;

impl AckControl {
    /// Terms of the bound that each flow has of its own, if it has one. While ACKs are held for a congested
    /// queue alone, the queue is what bounds.
    fn flow_limit(&self) -> Option<FlowLimit> {
        let ahead = if self.window == Window::Keep { AHEAD } else { Duration::ZERO };
        self.release.flow_limit(ahead).filter(|_| self.when == When::Always)
    }
}

impl Config {
    /// Terms of the class with this index, if its flows share a rate or have one each. Places above it are
    /// indices.
    pub fn limit(&self, class: usize) -> Option<Limit> {
        let config = &self.classes[class];
        let ack = config.ack?;
        let flow = ack.flow_limit();
        let Some(law) = ack.release.share().copied() else {
            let counts = ack.release.counts();
            return flow.map(|_| Limit { most: None, own: None, above: None, flow, counts });
        };
        if !config.shares_rate() {
            return None;
        }
        if law.unresponsive == Unresponsive::Count {
            return None;
        }
        let Some(nested) = config.nested else {
            return Some(Limit { most: Some(law.rate), own: None, above: None, flow, counts: law.counts });
        };
        let parent = |class: &usize| self.classes[*class].nested?.parent;
        let bounded =
            |class: &usize| self.classes[*class].nested.is_some_and(|above| above.bound().is_some());
        let above = core::iter::successors(nested.parent, parent).take(super::DEEPEST).find(bounded);
        let own = nested.rate.filter(|_| nested.parent.is_some());
        let (most, above) = (nested.bound(), above.map(|class| class as u32));
        Some(Limit { most, own, above, flow, counts: law.counts })
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

    /// Does a direction have a class each flow of which has a bound?
    pub fn bounds_flows(&self, direction: Direction) -> bool {
        self.bounded_flows[usize::from(direction == Direction::In)]
    }

    /// Places of the configuration's classes, in its order.
    pub fn places(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.config.classes.len()).map(|class| self.classes.place(class))
    }

    /// The classes of the configuration have the bounds that it says, others have none.
    pub(super) fn set_bounds(&mut self) {
        (self.bounded, self.bounded_flows) = ([false; 2], [false; 2]);
        self.compare_anew();
        let bounds = self.bounds.all();
        for (place, bound) in (0..self.classes.len()).zip(bounds) {
            let class = self.classes.index(place);
            let limit = class.and_then(|class| self.config.limit(class));
            let at = |class: u32| self.classes.place(class as usize);
            bound.set(limit.map(|limit| Limit { above: limit.above.map(at), ..limit }));
            if let Some(class) = class.filter(|_| limit.is_some()) {
                let inward = self.config.classes[class].direction == Direction::In;
                self.bounded[usize::from(inward)] = true;
                self.bounded_flows[usize::from(inward)] |= bound.bounds_flows();
            }
        }
        self.set_unread();
    }

    /// Packets without readable addresses may have what the fastest class of their direction may have. None
    /// of them is a class's, so all of them together are worth one.
    fn set_unread(&self) {
        for (bound, direction) in self.unread.all().iter().zip([Direction::Out, Direction::In]) {
            let classes = self.config.classes.iter().enumerate();
            let of = classes.filter(|(_, class)| class.direction == direction);
            let most =
                of.filter_map(|(class, _)| self.config.limit(class)?.most).max_by_key(|rate| rate.bps());
            let counts = Counts::Ip;
            bound.set(most.map(|rate| Limit {
                most: Some(rate),
                own: None,
                above: None,
                flow: None,
                counts,
            }));
        }
    }

    /// Bounds of what has no readable addresses, of uploads and downloads.
    pub fn unread(&self) -> &[Bound] {
        self.unread.all()
    }

    /// May a frame of `len` bytes with this head pass that has no readable addresses? It is charged to what
    /// its direction has for all such frames.
    pub fn admits_unread(&self, direction: Direction, head: &[u8], len: usize, now: Time) -> bool {
        let Some(bound) = self.unread.all().get(usize::from(direction == Direction::In)) else { return true };
        let (l3, arp) = wire::network_layer(head);
        let bytes = len.saturating_sub(l3) as u64;
        // Without ARP nothing else would pass. Its packets have no room for anything but itself.
        arp && bytes <= ARP_MOST || bound.admits_alone(bytes, now)
    }

    /// Begins to compare what passed of classes with what was permitted from the next look on.
    pub(super) fn compare_anew(&mut self) {
        self.classes.shares_mut().filter_map(|(_, share)| share).for_each(Share::compare_anew);
    }

    /// Record of each flow's own bound, by its slot.
    pub fn flow_bounds(&self) -> &[FlowBound] {
        self.flow_bounds.get_or_init(|| Places::own(self.table.capacity())).all()
    }

    /// May this pass, of the flow with this key and record if it is TCP? It is charged to flow and class
    /// then.
    pub fn admits(
        &self,
        direction: Direction,
        key: &Key,
        flow: Option<&FlowBound>,
        load: &Load,
        now: Time,
    ) -> bool {
        self.controls(direction, key).is_none_or(|place| self.admits_to(place, flow, load, now))
    }

    /// Lets held TCP pass that [is spared](steer::is_spared), whatever its class's bound.
    pub fn spare(&self, direction: Direction, key: &Key, load: &Load, now: Time) {
        if let Some(bound) = self.controls(direction, key).and_then(|p| self.bounds.all().get(p as usize)) {
            bound.spare(load, now);
        }
    }

    /// As above, to the class at this place.
    fn admits_to(&self, place: u32, flow: Option<&FlowBound>, load: &Load, now: Time) -> bool {
        if flow.is_none() && self.classes.share(place).is_none() {
            return true;
        }
        steer::admits(self.bounds.all(), self.tallies(), place, flow, load, now)
    }

    /// May a segment pass, in a gateway without hooks?
    pub(super) fn admits_data(&self, cx: &Cx<'_>, from_lan: bool, segment: &Headers, len: usize) -> bool {
        let direction = if from_lan { Direction::Out } else { Direction::In };
        let payload = u64::from(segment.tcp.payload_len);
        let bytes = segment.packet.charged_len(len);
        if !is_charged(bytes, payload) || !self.is_bounded(direction) {
            return true;
        }
        let key = Key::of_data(&segment.packet, &segment.tcp);
        let place = self.table.find(&key);
        let load = Load { packets: 1, bytes, payload, kind: self.kind_of(place) };
        let Some(class) = self.class_of(place, direction, &key) else { return true };
        self.admits_to(class, Some(self.flow_bound_of(place, direction, &key)), &load, cx.now)
    }

    /// Place of the class that controls a flow, the record of which is at this place.
    fn class_of(&self, place: Option<u32>, direction: Direction, key: &Key) -> Option<u32> {
        let record = place.map(|i| &self.table[i]);
        let known = record.filter(|r| r.generation == self.generation && direction_of(r) == direction);
        known.map_or_else(|| self.controls(direction, key), |r| Some(r.class))
    }

    /// Kind of a segment with data for its class's bound, in a gateway without hooks. The record of its flow
    /// is at this place.
    fn kind_of(&self, place: Option<u32>) -> Kind {
        match place {
            Some(i) if self.table[i].has(flag::PASSES) => Kind::Counted,
            Some(i) if self.slots[i].is_open() => Kind::Held,
            _ => Kind::Free,
        }
    }

    /// Record of a flow's own bound. Flows that have no place in the table share those of their sources.
    fn flow_bound_of(&self, place: Option<u32>, direction: Direction, key: &Key) -> &FlowBound {
        let inward = direction == Direction::In;
        let source = || hash_of_source(if inward { &key.dst } else { &key.src }, self.config.seed | 1);
        place.map_or_else(
            || self.strangers.get_or_init(Strangers::default).of_source(source(), inward),
            |i| &self.flow_bounds()[i as usize],
        )
    }
}
