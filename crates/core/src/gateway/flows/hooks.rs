//! Hooks: what they are told of flows and classes, and what a gateway without hooks does in their place.

use super::segment::Headers;
use super::slots::Places;
use super::verdicts::Verdict;
use super::{direction_of, Register};
use crate::ack::Window;
use crate::classify::Direction;
use crate::flow::{flag, ClassId, FlowId, Key, Record};
use crate::frame::Frame;
use crate::node::Cx;
use crate::packet::mark;
use crate::steer::{
    self, hash_of_host, hash_of_source, is_charged, slot_flag, Bound, Counted, Fields, FlowBound, FlowQueues,
    Judgement, Kind, Limit, Load, Records, Spill, Strangers, Tally,
};
use crate::time::{Duration, Time};
use crate::wire;
use crate::wire::{Control, TcpOptions};
use core::sync::atomic::Ordering::Relaxed;

impl Register {
    /// Opens the flow's slot with the record's numbers, and [tells](Register::tell_early) the kernel.
    pub(super) fn show(&mut self, i: FlowId, options: &TcpOptions) {
        let r = &self.table[i];
        let sent = if r.has(flag::EDGE_KNOWN) { r.edge } else { r.right };
        let ts = options.timestamps.map_or(0, |t| t.value);
        self.slots[i].open(
            r.next_tag(),
            self.slot_flags(r),
            r.tx,
            r.seq,
            ts,
            r.right,
            sent,
            r.window,
            steer::ticks(self.now),
        );
        self.measured.sight(i).open(r.tx.0);
        let limit = self.window_limit(&self.table[i]);
        self.slots[i].width.store(limit.unwrap_or(0), Relaxed);
        self.tell_early(i);
    }

    /// The data's sender has answered its receiver's SYN, in a segment with these `options`. What the
    /// receiver sends next brings its first window, and may carry payload that does not come here: so the
    /// hook is told how far it may go. The record's numbers begin with the receiver's first ACK all the same.
    pub(super) fn show_ahead(&mut self, i: FlowId, options: &TcpOptions) {
        let mut r = self.table[i];
        if !self.hooked
            || self.config.observe
            || r.has(flag::PASSES)
            || !r.has(flag::SENDER_SYN | flag::RECEIVER_SYN)
        {
            return;
        }
        let policy = *self.policy(&r);
        r.law = policy.release.begin(&r.segments(), true, self.now);
        r.obey(&policy);
        self.entitle(i);
        let Some(limit) = self.window_limit(&r) else { return };
        if r.has(flag::SHOWN) && !self.verdicts.has_room() {
            return;
        }
        // The answer repeats the receiver's timestamp (RFC 7323 section 3.2).
        let ts = options.timestamps.map_or(0, |t| t.echo);
        let (slot, tx) = (&self.slots[i], r.fin);
        slot.open(
            r.next_tag(),
            self.slot_flags(&r),
            tx,
            r.seq,
            ts,
            tx,
            tx.plus(limit),
            1,
            steer::ticks(self.now),
        );
        slot.width.store(limit, Relaxed);
        self.measured.sight(i).open(tx.0);
        self.tell_early(i);
    }

    fn slot_flags(&self, r: &Record) -> u32 {
        let sized = matches!(self.policy(r).window, Window::Size { .. }) && !self.config.observe;
        let mut flags = if r.has(flag::TIMESTAMPS) { slot_flag::TIMESTAMPS } else { 0 };
        if r.has(flag::SCALE_KNOWN) {
            flags |= slot_flag::SCALED | u32::from(r.scale) << slot_flag::SCALE_SHIFT;
            flags |= if sized { slot_flag::SIZED } else { 0 };
        }
        flags
    }

    /// The slot has been opened again. The kernel is told now, or, where so many connections are
    /// opened that most may be forged, with the first segment that shows that this one is not.
    fn tell_early(&mut self, i: FlowId) {
        let r = &mut self.table[i];
        r.tag = r.next_tag();
        if r.has(flag::SHOWN) || self.verdicts.may_tell_early(self.now) {
            r.set(flag::SHOWN, false); // the entry that the kernel has is replaced
            self.tell(i);
        }
    }

    /// Tells the kernel of the flow's slot, unless it knows. Until there is room its segments are those of an
    /// unknown flow.
    pub(in crate::gateway) fn tell(&mut self, i: FlowId) {
        if !self.table[i].has(flag::SHOWN) && self.verdicts.has_room_for_new() {
            self.table[i].flags |= flag::SHOWN;
            self.verdicts.push(self.shape(i));
        }
    }

    /// The kernel's entry for the flow.
    fn shape(&self, i: FlowId) -> Verdict {
        let r = &self.table[i];
        Verdict::Shape { ack_key: r.key.reversed(), slot: i.0, tag: r.tag }
    }

    /// The flow's slot is no longer used, and the kernel is told as soon as there is room.
    pub(in crate::gateway) fn hide(&mut self, i: FlowId) {
        self.slots[i].close();
        let r = &mut self.table[i];
        r.flags &= !flag::SYNCED;
        if r.has(flag::SHOWN) && self.verdicts.has_room() {
            r.flags &= !flag::SHOWN;
            self.verdicts.push(Verdict::Forget { ack_key: r.key.reversed(), slot: i.0, tag: r.tag });
        }
    }

    /// After a restart: the kernel may not have been told of slots that the last engine opened.
    fn show_again(&mut self) {
        while self.unshown < self.table.capacity() && self.verdicts.has_room() {
            let i = FlowId(self.unshown);
            if self.table[i].has(flag::USED | flag::SHOWN | flag::SYNCED) {
                let shape = self.shape(i);
                self.verdicts.push(shape);
            }
            if self.table[i].has(flag::USED | flag::PASSES) {
                self.count_untouched(i);
            }
            self.unshown += 1;
        }
    }

    /// Takes at most `max` of what the kernel is to be told, oldest first. After a restart all flows are told
    /// again.
    pub fn verdicts(&mut self, max: usize) -> impl Iterator<Item = Verdict> + '_ {
        self.show_again();
        self.verdicts.drain(max)
    }

    /// Returns the tallies of all classes, by place.
    pub fn tallies(&self) -> &[Tally] {
        self.tallies.all()
    }

    /// Returns the unresponsive traffic that passed of the class with this index in the configuration, and
    /// that was dropped.
    pub fn others_of(&self, class: usize) -> Counted {
        let place = self.classes.place(class);
        let passed = self.tallies().get(place.index()).map_or(Counted::default(), Tally::counted);
        let stats = &self.classes[place];
        Counted {
            packets: passed.packets + stats.spilled_packets,
            bytes: passed.bytes + stats.spilled_bytes,
            dropped: passed.dropped + stats.spill_dropped,
            dropped_bytes: passed.dropped_bytes + stats.spill_dropped_bytes,
        }
    }

    /// Returns the packets of the class with this index that queues of flows have marked.
    pub fn marked_of(&self, class: usize) -> u64 {
        let stats = &self.classes[self.classes.place(class)];
        self.bound_of(class).passed().marked + stats.spill_marked
    }

    /// Returns the fields that hooks look at of packets that are not TCP, of uploads and downloads.
    pub fn counted_fields(&self) -> [Fields; 2] {
        [Direction::Out, Direction::In].map(|direction| self.config.fields(direction))
    }

    fn counted_place(&self, direction: Direction, key: &Key) -> Option<ClassId> {
        let place = self.controls(direction, key)?;
        self.classes.share(place).map(|_| place)
    }

    /// The configuration's classes, which may be others than before, have their tallies: what was counted
    /// before they shared a rate is not charged to them. A class whose flows share none has no bucket.
    pub(in crate::gateway) fn tell_tallies(&mut self) {
        for (place, tally) in self.classes.ids().zip(self.tallies.all()) {
            let ack = self.classes.index(place).and_then(|class| self.config.classes[class].ack);
            let shares = ack.is_some_and(|ack| ack.release.share().is_some());
            let share = self.classes.share_mut(place);
            match share.and_then(|share| share.count_in(tally, shares)) {
                Some((rate, burst, overhead)) => tally.police(Some(rate), burst, overhead),
                None => tally.police(None, Duration::ZERO, 0),
            }
        }
    }

    /// Returns what becomes of a packet that ACKs cannot slow, in a gateway without hooks. It is counted.
    pub(in crate::gateway) fn judge_other(&self, cx: &Cx<'_>, from_lan: bool, frame: &Frame) -> Judgement {
        let direction = if from_lan { Direction::Out } else { Direction::In };
        self.judge_frame(direction, cx.frames.bytes(frame), frame.len(), false, cx.now)
    }

    /// Returns what becomes of a frame without a segment of TCP, which begins with `head` and is `len` bytes
    /// long. `spills` says whether the engine takes what spills. If it passes, it is charged to its class.
    pub fn judge_frame(
        &self,
        direction: Direction,
        head: &[u8],
        len: usize,
        spills: bool,
        now: Time,
    ) -> Judgement {
        let Some(packet) = wire::other_packet(head, len) else {
            return match self.admits_unread(direction, head, len, now) {
                true => Judgement::Passes,
                false => Judgement::Dropped,
            };
        };
        let (bytes, ecn) = (packet.charged_len(len), mark::field(head));
        if wire::is_of_link(head, &packet) {
            return match self.admits_alone(direction, head, bytes, now) {
                true => Judgement::Passes,
                false => Judgement::Dropped,
            };
        }
        let load = Load { packets: 1, bytes, payload: 0, ecn, kind: Kind::Counted };
        let key = Key::of_packet(head, &packet);
        let source = self.bounds_flows(direction).then(|| self.flow_bound_of(None, direction, &key));
        let of = Records { source, spills, ..Records::default() };
        let judgement = self.judge(direction, &key, of, &load, now);
        if judgement != Judgement::Dropped {
            self.count_quic(direction, &key, head, len);
        }
        judgement
    }

    /// A packet has passed that ACKs cannot slow. If it is of QUIC, its class counts its bytes.
    pub fn count_quic(&self, direction: Direction, key: &Key, head: &[u8], len: usize) {
        let Some(packet) = wire::other_packet(head, len).filter(|packet| wire::is_quic(head, packet)) else {
            return;
        };
        if let Some(bound) = self.controls(direction, key).and_then(|p| self.bounds.all().get(p.index())) {
            bound.count_quic(packet.charged_len(len));
        }
    }

    /// A packet has passed that ACKs cannot slow and whose class the hooks did not know: they learn it.
    pub(in crate::gateway) fn count_shown(&mut self, cx: &Cx<'_>, from_lan: bool, frame: &Frame) {
        let Some((direction, key, bytes)) = other(cx, from_lan, frame) else { return };
        let fields = self.config.fields(direction);
        if !fields.has(Fields::COUNTED) {
            return;
        }
        let place = self.counted_place(direction, &key);
        if let Some(tally) = place.and_then(|place| self.tallies().get(place.index())) {
            tally.count(1, bytes);
        }
        self.verdicts.count(fields.of(&key), place);
    }

    /// The data of a flow that passes untouched is charged to its class, if that shares a rate.
    pub(in crate::gateway) fn count_untouched(&mut self, i: FlowId) {
        let r = &self.table[i];
        self.count_data(r.key, r.class);
    }

    /// The data of a flow that is not controlled is charged to this class, if that shares a rate.
    pub(in crate::gateway) fn count_data(&mut self, key: Key, class: ClassId) {
        if self.classes.share(class).is_some() {
            self.verdicts.count(key, Some(class));
        }
    }

    /// The data of a flow that passed untouched is controlled by its ACKs again.
    pub(super) fn uncount(&mut self, i: FlowId) {
        let r = &self.table[i];
        if self.classes.share(r.class).is_some() {
            self.verdicts.count(r.key, None);
        }
    }

    /// Terms of each class, by place.
    pub fn bounds(&self) -> &[Bound] {
        self.bounds.all()
    }

    /// Bound of the class with this index in the configuration.
    pub fn bound_of(&self, class: usize) -> &Bound {
        &self.bounds.all()[self.classes.place(class).index()]
    }

    /// Returns whether a direction has a class with a bound.
    pub fn is_bounded(&self, direction: Direction) -> bool {
        self.bounded[usize::from(direction == Direction::In)]
    }

    /// Returns whether a direction has a class that bounds each of its flows.
    pub fn bounds_flows(&self, direction: Direction) -> bool {
        self.bounded_flows[usize::from(direction == Direction::In)]
    }

    /// Places of the configuration's classes, in its order.
    pub fn places(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.config.classes.len()).map(|class| self.classes.place(class).0)
    }

    /// The classes of the configuration have the bounds that it says, others have none.
    pub(in crate::gateway) fn set_bounds(&mut self) {
        (self.bounded, self.bounded_flows) = ([false; 2], [false; 2]);
        let bounds = self.bounds.all();
        for (place, bound) in self.classes.ids().zip(bounds) {
            let class = self.classes.index(place);
            let limit = class.and_then(|class| self.config.limit(class));
            let at = |class: u32| self.classes.place(class as usize).0;
            bound.set(limit.map(|limit| Limit { above: limit.above.map(at), ..limit }));
            if let Some(share) = self.classes.share(place).filter(|_| limit.is_some()) {
                bound.fair().tell(share.law.rate_of_hooks(share.most), share.active.value());
            }
            if let Some(class) = class.filter(|_| limit.is_some()) {
                let inward = self.config.classes[class].direction == Direction::In;
                self.bounded[usize::from(inward)] = true;
                self.bounded_flows[usize::from(inward)] |= bound.bounds_flows();
            }
        }
        self.set_unread();
        self.set_spilling();
    }

    /// Packets that came to the queues of flows that have spilled, of the class with this index in the
    /// configuration, and their bytes from the IP header on.
    pub fn spilled_of(&self, class: usize) -> (u64, u64) {
        let stats = &self.classes[self.classes.place(class)];
        (stats.spilled_packets, stats.spilled_bytes)
    }

    /// Returns whether flows of some class of this direction may spill.
    pub fn spills(&self, direction: Direction) -> bool {
        self.spilling[usize::from(direction == Direction::In)]
    }

    /// Counts that hooks share of the queues of flows that have spilled.
    pub(in crate::gateway) fn spill_counts(&self) -> &[Spill] {
        match self.spill_counts {
            Some(counts) => counts,
            None => self.queues.get_or_init(FlowQueues::default).spills(),
        }
    }

    /// Finds out whether flows of some class may spill.
    pub(in crate::gateway) fn set_spilling(&mut self) {
        self.spilling = [Direction::Out, Direction::In].map(|direction| self.config.spills(direction));
        if self.spills.is_none() && self.spilling != [false; 2] {
            self.spills = Some(Box::default());
        }
    }

    /// Packets without readable addresses, and those of the link's own, may have what the fastest class of
    /// their direction may have. None of them is a class's, so all of them together are worth one.
    fn set_unread(&self) {
        for (bound, direction) in self.unread.all().iter().zip([Direction::Out, Direction::In]) {
            let classes = self.config.classes.iter().enumerate();
            let of = classes.filter(|(_, class)| class.direction == direction);
            let most =
                of.filter_map(|(class, _)| self.config.limit(class)?.most).max_by_key(|rate| rate.bps());
            bound.set(most.map(|rate| Limit { most: Some(rate), ..Limit::NONE }));
        }
    }

    /// Bounds of what has no readable addresses, of uploads and downloads.
    pub fn unread(&self) -> &[Bound] {
        self.unread.all()
    }

    /// Returns whether a frame of `len` bytes with this head and without readable addresses may pass. It is
    /// charged to what its direction has for all such frames, and to its host's part of it.
    pub fn admits_unread(&self, direction: Direction, head: &[u8], len: usize, now: Time) -> bool {
        let (l3, control) = wire::network_layer(head);
        let bytes = len.saturating_sub(l3) as u64;
        // Without these nothing else would pass. Their packets have no room for anything but themselves.
        let most = match control {
            Some(Control::Arp) => ARP_MOST,
            Some(Control::Ppp) => PPP_CONTROL_MOST,
            None => 0,
        };
        bytes <= most || self.admits_alone(direction, head, bytes, now)
    }

    /// Returns whether these bytes of no class may pass, of a frame with this head. See
    /// [`Register::admits_unread`].
    fn admits_alone(&self, direction: Direction, head: &[u8], bytes: u64, now: Time) -> bool {
        let inward = direction == Direction::In;
        let Some(bound) = self.unread.all().get(usize::from(inward)) else { return true };
        let hash = hash_of_host(head, inward, self.config.seed | 1);
        bound.admits_alone(bytes, self.strangers.get_or_init(Strangers::default).of_host(hash, inward), now)
    }

    /// The record at this place is another flow's from now on.
    pub(in crate::gateway) fn begin_account(&self, i: FlowId, inward: bool) {
        let direction = if inward { Direction::In } else { Direction::Out };
        if self.is_bounded(direction) {
            self.flow_bounds()[i.index()].begin();
        }
    }

    /// Record of each flow's own bound, by its slot.
    pub fn flow_bounds(&self) -> &[FlowBound] {
        self.flow_bounds.get_or_init(|| Places::own(self.table.capacity())).all()
    }

    /// Returns whether this may pass, of the flow with this key and these records. It is charged to flow and
    /// class then.
    pub fn admits(&self, direction: Direction, key: &Key, of: Records<'_>, load: &Load, now: Time) -> bool {
        self.judge(direction, key, Records { spills: false, ..of }, load, now) != Judgement::Dropped
    }

    /// Returns what becomes of this, of the flow with this key and these records. If it passes, it is charged
    /// to flow and class.
    pub fn judge(
        &self,
        direction: Direction,
        key: &Key,
        of: Records<'_>,
        load: &Load,
        now: Time,
    ) -> Judgement {
        match self.controls(direction, key) {
            Some(place) => self.judge_in(place, key, of, load, now),
            None => Judgement::Passes,
        }
    }

    /// Lets held TCP pass that [is spared](steer::is_spared), whatever its class's bound.
    pub fn spare(&self, direction: Direction, key: &Key, load: &Load, now: Time) {
        if let Some(bound) = self.controls(direction, key).and_then(|p| self.bounds.all().get(p.index())) {
            bound.spare(load, now);
        }
    }

    /// Returns whether a segment of `bytes`, none of which is data, may pass. It is charged to its class
    /// then. `is_held` says whether the ACKs of its flow are controlled.
    pub fn admits_bare(
        &self,
        direction: Direction,
        key: &Key,
        bytes: u64,
        now: Time,
        is_held: impl FnOnce() -> bool,
    ) -> bool {
        let Some(place) = self.controls(direction, key) else { return true };
        let back = || Some(self.controls(direction.reversed(), &key.reversed())?.0);
        let inward = direction == Direction::In;
        let hash = hash_of_source(if inward { &key.dst } else { &key.src }, self.config.seed | 1);
        let host = self.strangers.get_or_init(Strangers::default).of_bare(hash, place.0, inward);
        steer::admits_bare(self.bounds.all(), place.0, bytes, now, back, is_held, host)
    }

    /// As [`Register::admits`], to the class at this place.
    #[inline]
    fn admits_to(&self, place: ClassId, key: &Key, of: Records<'_>, load: &Load, now: Time) -> bool {
        self.judge_in(place, key, of, load, now) != Judgement::Dropped
    }

    /// As [`Register::judge`], in the class at this place.
    #[inline]
    fn judge_in(&self, place: ClassId, key: &Key, of: Records<'_>, load: &Load, now: Time) -> Judgement {
        if of.flow.or(of.source).is_none() && self.classes.share(place).is_none() {
            return Judgement::Passes;
        }
        let is_fair = || self.bounds.all().get(place.index()).is_some_and(Bound::is_fair);
        let queues = (load.kind != Kind::Held && is_fair())
            .then(|| (self.queues.get_or_init(FlowQueues::default), key.hash(self.config.seed)));
        steer::judge(self.bounds.all(), self.tallies(), place.0, Records { queues, ..of }, load, now)
    }

    /// Returns whether a segment may pass, in a gateway without hooks. ACKs that are [taken in
    /// short](Register::takes) end here, and have no bound.
    pub(in crate::gateway) fn admits_data(
        &self,
        cx: &Cx<'_>,
        from_lan: bool,
        segment: &Headers,
        frame: &Frame,
    ) -> bool {
        let (bytes_of, len) = (cx.frames.bytes(frame), frame.len());
        let direction = if from_lan { Direction::Out } else { Direction::In };
        let payload = u64::from(segment.tcp.payload_len);
        let bytes = segment.packet.charged_len(len);
        if !self.is_bounded(direction) {
            return true;
        }
        let key = Key::of_data(&segment.packet, &segment.tcp);
        if !is_charged(bytes, payload) {
            let is_held = || self.table.find(&key.reversed()).is_some_and(|i| self.slots[i].is_open());
            return self.admits_bare(direction, &key, bytes, cx.now, is_held);
        }
        let flow = self.table.find(&key);
        if let Some(i) = flow.filter(|&i| payload > 0 && self.slots[i].is_open()) {
            self.see_segment(i, direction, &key, (bytes_of, &segment.packet, &segment.tcp), cx.now);
        }
        let load = Load { packets: 1, bytes, payload, ecn: 0, kind: self.kind_of(flow) };
        let Some(class) = self.class_of(flow, direction, &key) else { return true };
        let bound = self.flow_bound_of(flow, direction, &key);
        let sender = (load.kind == Kind::Held).then(|| bound.queue());
        let of = Records { flow: Some(bound), sender, ..Records::default() };
        self.admits_to(class, &key, of, &load, cx.now)
    }

    /// Place of the class that controls a flow, which may have a record.
    pub(super) fn class_of(&self, flow: Option<FlowId>, direction: Direction, key: &Key) -> Option<ClassId> {
        let record = flow.map(|i| &self.table[i]);
        let known = record.filter(|r| r.generation == self.generation && direction_of(r) == direction);
        known.map_or_else(|| self.controls(direction, key), |r| Some(r.class))
    }

    /// Kind of a segment with data for its class's bound, in a gateway without hooks.
    fn kind_of(&self, flow: Option<FlowId>) -> Kind {
        match flow {
            Some(i) if self.table[i].has(flag::PASSES) => Kind::Counted,
            Some(i) if self.slots[i].is_open() => Kind::Held,
            _ => Kind::Free,
        }
    }

    /// Record of a flow's own bound. Flows that have no place in the table share those of their sources.
    fn flow_bound_of(&self, flow: Option<FlowId>, direction: Direction, key: &Key) -> &FlowBound {
        let inward = direction == Direction::In;
        let source = || hash_of_source(if inward { &key.dst } else { &key.src }, self.config.seed | 1);
        flow.map_or_else(
            || self.strangers.get_or_init(Strangers::default).of_source(source(), inward),
            |i| &self.flow_bounds()[i.index()],
        )
    }
}

/// Bytes of an ARP packet with Ethernet's padding.
const ARP_MOST: u64 = 46;
/// Bytes of the longest packet of PPPoE's discovery or PPP's control that passes whatever others do. Longer
/// ones carry much for an authentication, and share the bound of what has no readable addresses.
const PPP_CONTROL_MOST: u64 = 128;

/// Returns the direction, the key and the bytes from the IP header on of a frame that is no TCP segment.
/// `None` if it has no readable addresses.
pub(in crate::gateway) fn other(cx: &Cx<'_>, from_lan: bool, frame: &Frame) -> Option<(Direction, Key, u64)> {
    let head = cx.frames.bytes(frame);
    let packet = wire::other_packet(head, frame.len())?;
    let direction = if from_lan { Direction::Out } else { Direction::In };
    Some((direction, Key::of_packet(head, &packet), packet.charged_len(frame.len())))
}
