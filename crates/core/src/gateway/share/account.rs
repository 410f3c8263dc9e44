//! Charges to a class and its flow, and what is given back. At any time `permitted = received + early` of
//! each flow.
//!
//! A class may guarantee each flow a rate. A flow has it if, when its receiver's first acknowledgement
//! confirms it, there is as much for it and for all that have it already; otherwise it has what they leave,
//! and asks again at each of its turns. SYNs pass in the kernel, so no connection is refused.
//!
//! Where equal shares would be less than the guarantee, flows that do not have it are given a part of a turn:
//! such that together they have what the others leave of the rate, and at least a 64th of the guarantee each,
//! so that none starves.

use crate::flow::{flag, Record};
use crate::gateway::blocked::wheel;
use crate::gateway::{ClassStats, Gateway};
use crate::systems::class_rate::{Charged, Guarantee, Repeats, Tree};
use crate::time::Time;

impl Gateway {
    /// The sender of a flow whose class has a rate may send so many bytes more.
    pub(in crate::gateway) fn permit(&mut self, i: u32, bytes: u32, now: Time) {
        self.permit_since(i, bytes, now, now);
    }

    /// An ACK for `bytes` more was made; the right edge was `edge` before. The sender may send as many more,
    /// or only up to the right edge: a window that shrinks, whose left edge moves alone, permits nothing.
    pub(super) fn permit_released(&mut self, i: u32, bytes: u32, edge: u32, now: Time) {
        let r = &self.table[i];
        let room = if r.has(flag::EDGE_KNOWN) {
            let open = (r.edge.wrapping_sub(r.rx) as i32).max(0) as u32;
            r.edge.wrapping_sub(edge).max(open.saturating_sub(r.law.turn().early))
        } else {
            u32::MAX
        };
        self.permit(i, bytes.min(room), now);
    }

    /// The receiver's own ACK for `bytes` more has left ahead of the flow's turn, where it shares a rate; the
    /// right edge was `edge` before.
    pub(in crate::gateway) fn permit_early(&mut self, i: u32, bytes: u32, edge: u32, now: Time) {
        let r = &self.table[i];
        if r.takes_turns() && r.has(flag::EDGE_WAITS) {
            self.permit_released(i, bytes, edge, now);
            self.enlist(i, now);
        } else if r.takes_turns() {
            self.permit(i, bytes, now);
        }
    }

    /// As [`Gateway::permit`], of what it was permitted from `since` to `now`.
    pub(in crate::gateway) fn permit_since(&mut self, i: u32, bytes: u32, since: Time, now: Time) {
        if self.table[i].is_ending() {
            return; // it has nothing more to send
        }
        let (r, mut tree, stats) = self.with_tree(i);
        tree.permit(r, bytes, (since, now)).count(stats);
    }

    /// The receiver has got so many bytes more. What its sender sent of its own accord is charged.
    pub(in crate::gateway) fn got(&mut self, i: u32, bytes: u32, since: Time, now: Time) {
        let (r, mut tree, stats) = self.with_tree(i);
        tree.got(r, bytes, (since, now)).count(stats);
        self.compare(i, bytes, Repeats::received);
    }

    /// The receiver tells of so many bytes that have arrived twice. Those that its sender has sent twice are
    /// charged when the class is looked at.
    pub(in crate::gateway) fn got_twice(&mut self, i: u32, bytes: u32) {
        self.compare(i, bytes, Repeats::arrived_twice);
    }

    /// Takes note of bytes of a flow for its class's repeats.
    fn compare(&mut self, i: u32, bytes: u32, note: impl FnOnce(&mut Repeats, u64)) {
        let r = &self.table[i];
        if let Some(share) = self.classes.share_mut(r.class) {
            let cost = share.law.cost(&r.segments(), bytes);
            note(&mut share.repeats, cost);
        }
    }

    /// The first window of a flow is known: what its sender may send of it is charged before it is sent, or
    /// else short flows would come for nothing, and all others be late for it.
    pub(in crate::gateway) fn permit_first(&mut self, i: u32, now: Time) {
        let r = &self.table[i];
        if !r.takes_turns() || !r.has(flag::EDGE_KNOWN) || r.takes_steps() {
            return;
        }
        let window = r.edge.wrapping_sub(r.tx);
        self.begin_least(i);
        let r = &self.table[i];
        let Some(share) = self.classes.share(r.class) else { return };
        let bytes = share.law.initial(window, r.mss);
        self.permit(i, bytes, now);
    }

    /// Gives back what the sender was permitted and will not send, beyond `left` bytes.
    pub(in crate::gateway) fn give_back(&mut self, i: u32, left: u32, now: Time) {
        let (r, mut tree, stats) = self.with_tree(i);
        stats.permitted_bytes -= u64::from(tree.take_back(r, left, now));
    }

    /// A flow, the tree that its class is in, and the totals of that class.
    fn with_tree(&mut self, i: u32) -> (&mut Record, Tree<'_>, &mut ClassStats) {
        let first = self.table.capacity();
        let r = &mut self.table[i];
        let wheel = wheel(self.classes.ack_out(r.class));
        let (shares, stats) = self.classes.split(r.class);
        (r, Tree { shares, timers: &mut self.timers, first, wheel }, stats)
    }

    /// The sender's FIN is known: what it was permitted beyond it cannot be sent.
    pub(in crate::gateway) fn has_ended(&mut self, i: u32, now: Time) {
        let r = &self.table[i];
        let left = (r.fin.wrapping_sub(r.rx) as i32).max(0) as u32;
        self.give_back(i, left, now);
        self.give_up_least(i);
    }

    /// A flow whose first window is known was confirmed by its receiver: it asks for the least rate.
    pub(in crate::gateway) fn begin_least(&mut self, i: u32) {
        let r = &self.table[i];
        if r.takes_turns() && r.has(flag::EDGE_KNOWN) && !r.takes_steps() && !self.ask_for_least(i) {
            self.classes[self.table[i].class].best_effort += 1;
        }
    }

    /// The flow has the guarantee of its class from now on, if there is room. False if there is not.
    pub(super) fn ask_for_least(&mut self, i: u32) -> bool {
        let r = &mut self.table[i];
        let ends = r.is_ending();
        let (shares, stats) = self.classes.split(r.class);
        match shares.get_mut(r.class).map(|share| share.guarantee(r, ends)) {
            Some(Guarantee::Given) => stats.guaranteed += 1,
            Some(Guarantee::NoRoom) => return false,
            Some(Guarantee::NotAsked) | None => {}
        }
        true
    }

    /// The flow has the guarantee no more: it ends, or is of another class.
    pub(in crate::gateway) fn give_up_least(&mut self, i: u32) {
        let r = &mut self.table[i];
        let (shares, stats) = self.classes.split(r.class);
        if shares.get_mut(r.class).is_some_and(|share| share.give_up(r)) {
            stats.guaranteed -= 1;
        }
    }
}

impl Charged {
    fn count(self, stats: &mut ClassStats) {
        stats.permitted_bytes += u64::from(self.bytes);
        stats.forgiven_bytes += self.forgiven;
    }
}
