//! Packets of a class that ACKs cannot slow. They are charged to the class's clock whenever the gateway looks
//! at the clock, and the windows of the class's flows are shares of what these packets leave.

use crate::ack::Turns;
use crate::flow::Key;
use crate::frame::Frame;
use crate::gateway::{Direction, Gateway};
use crate::node::Cx;
use crate::steer::{Counted, Fields, Kind, Load, Tally};
use crate::systems::class_rate::Share;
use crate::time::Time;
use crate::wire;

/// Classes of a tree that are looked at in one call.
const LEAVES: usize = 4;

impl Gateway {
    /// Returns the tallies of all classes, by place.
    pub fn tallies(&self) -> &[Tally] {
        self.tallies.all()
    }

    /// Returns the unresponsive traffic that passed of the class with this index in the configuration, and
    /// that was dropped.
    pub fn others_of(&self, class: usize) -> Counted {
        let tally = self.tallies().get(self.classes.place(class) as usize);
        tally.map_or(Counted::default(), Tally::counted)
    }

    /// Bytes of the class with this index that its clock was not charged up to `now`, since it was too far
    /// ahead: what exceeded the rate and could not be held back.
    pub fn exceeded(&self, class: usize, now: Time) -> u64 {
        let place = self.classes.place(class);
        let Some((share, tally)) = self.classes.share(place).zip(self.tallies().get(place as usize)) else {
            return 0;
        };
        let passed = tally.counted().since(share.others.counted);
        let cost = share.law.cost_of_packets(passed.packets, passed.bytes);
        let since = share.others.at;
        let beyond = |place: u32| self.classes.share(place).map(|above| above.beyond(cost, since, now));
        let above = core::iter::successors(Some(place), |&at| self.classes.share(at)?.parent());
        self.classes[place].forgiven_bytes + above.filter_map(beyond).max().unwrap_or(0)
    }

    /// Returns the fields that hooks look at of packets that are not TCP, of uploads and downloads.
    pub fn counted_fields(&self) -> [Fields; 2] {
        [Direction::Out, Direction::In].map(|direction| self.config.fields(direction))
    }

    pub(in crate::gateway) fn counted_place(&self, direction: Direction, key: &Key) -> Option<u32> {
        let place = self.controls(direction, key)?;
        self.classes.share(place).map(|_| place)
    }

    /// The configuration's classes, which may be others than before, have their tallies: what was counted
    /// before they had is not charged to them.
    pub(in crate::gateway) fn tell_tallies(&mut self) {
        for ((configured, share), tally) in self.classes.shares_mut().zip(self.tallies.all()) {
            let Some(share) = share else { continue };
            let law = &share.law;
            let burst = law.unresponsive.burst().filter(|_| configured && law.turns == Turns::Bytes);
            let rate = burst.map(|_| share.most);
            tally.police(rate, burst.unwrap_or_default(), law.overhead_of_packet());
            if !core::mem::replace(&mut share.others.begun, true) {
                share.others.counted = tally.counted();
            }
        }
    }

    /// A packet that ACKs cannot slow has come in. A gateway without hooks counts it itself, and says whether
    /// it may pass.
    pub(in crate::gateway) fn passes_other(&self, cx: &Cx<'_>, from_lan: bool, frame: &Frame) -> bool {
        let Some((direction, key, bytes)) = other(cx, from_lan, frame) else {
            let direction = if from_lan { Direction::Out } else { Direction::In };
            return self.admits_unread(direction, cx.frames.bytes(frame), frame.len(), cx.now);
        };
        let load = Load { packets: 1, bytes, payload: 0, kind: Kind::Counted };
        self.admits(direction, &key, None, &load, cx.now)
    }

    /// A packet has passed that ACKs cannot slow and whose class the hooks did not know: they learn it.
    pub(in crate::gateway) fn count_shown(&mut self, cx: &Cx<'_>, from_lan: bool, frame: &Frame) {
        let Some((direction, key, bytes)) = other(cx, from_lan, frame) else { return };
        let fields = self.config.fields(direction);
        if !fields.has(Fields::COUNTED) {
            return;
        }
        let place = self.counted_place(direction, &key);
        if let Some(tally) = place.and_then(|place| self.tallies().get(place as usize)) {
            tally.count(1, bytes);
        }
        self.verdicts.count(fields.of(&key), place);
    }

    /// The data of a flow that passes untouched is charged to its class, if that shares a rate.
    pub(in crate::gateway) fn count_untouched(&mut self, i: u32) {
        let r = &self.table[i];
        self.count_data(r.key, r.class);
    }

    /// The data of a flow that is not controlled is charged to this class, if that shares a rate.
    pub(in crate::gateway) fn count_data(&mut self, key: Key, class: u32) {
        if self.classes.share(class).is_some() {
            self.verdicts.count(key, Some(class));
        }
    }

    /// The data of a flow that passed untouched is controlled by its ACKs again.
    pub(in crate::gateway) fn uncount(&mut self, i: u32) {
        let r = &self.table[i];
        if self.classes.share(r.class).is_some() {
            self.verdicts.count(r.key, None);
        }
    }

    /// Charges the classes below one at the top what has passed that is none of their flows': some of them,
    /// each time others.
    pub(super) fn charge_others(&mut self, top: u32, now: Time) {
        let leaves = |gateway: &Gateway| gateway.classes.share(top)?.node().map(|node| node.leaves.len());
        let Some(leaves) = leaves(self) else { return self.charge_others_of(top, now) };
        for _ in 0..LEAVES.min(leaves) {
            let Some(node) = self.classes.share_mut(top).and_then(Share::node_mut) else { return };
            let place = node.leaves[node.next_leaf % leaves];
            node.next_leaf = (node.next_leaf + 1) % leaves;
            node.looked = now;
            self.charge_others_of(place, now);
        }
    }

    /// Charges the class what has passed that is none of its flows', and what these have sent again.
    pub(super) fn charge_others_of(&mut self, place: u32, now: Time) {
        let Some(tally) = self.tallies.all().get(place as usize) else { return };
        let (counted, bound) = (tally.counted(), self.bounds.all().get(place as usize));
        let owes = self.classes.shares.owe(place);
        let Some(share) = self.classes.share_mut(place) else { return };
        let (cost, since) = share.others.look(&share.law, counted, now);
        let held = bound.filter(|bound| bound.is_set()).map(|bound| bound.passed().held);
        let again = held.map_or(0, |held| share.repeated(held));
        if cost > 0 || again > 0 || owes {
            let mut tree = self.tree(place);
            tree.note_others(place, cost, now);
            let forgiven = tree.charge_unresponsive(place, cost + again, since, now);
            let stats = &mut self.classes[place];
            stats.others_bytes += cost;
            stats.forgiven_bytes += forgiven;
        }
    }
}

/// Returns the direction, the key and the bytes from the IP header on of a frame that is no TCP segment.
/// `None` if it has no readable addresses.
fn other(cx: &Cx<'_>, from_lan: bool, frame: &Frame) -> Option<(Direction, Key, u64)> {
    let head = cx.frames.bytes(frame);
    let packet = wire::other_packet(head, frame.len())?;
    let direction = if from_lan { Direction::Out } else { Direction::In };
    Some((direction, Key::of_packet(head, &packet), packet.charged_len(frame.len())))
}
