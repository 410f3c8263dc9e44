//! Charges to a class and its flow, and what is given back. At any time `permitted = received + early` of
//! each flow.
//!
//! A class may guarantee each flow a rate. A flow has it if, when its receiver's first acknowledgement confirms
//! it, there is as much for it and for all that have it already; otherwise it has what they leave, and asks
//! again at each of its turns. SYNs pass in the kernel, so no connection is refused.
//!
//! Where equal shares would be less than the guarantee, flows that do not have it are given a part of a turn:
//! such that together they have what the others leave of the rate, and at least a 64th of the guarantee each,
//! so that none starves.

use crate::ack::Turn;
use crate::flow::flag;
use crate::gateway::Gateway;
use crate::systems::class_rate::Repeats;
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
        if r.has(flag::SHARED | flag::EDGE_WAITS) {
            self.permit_released(i, bytes, edge, now);
            self.enlist(i, now);
        } else if r.has(flag::SHARED) {
            self.permit(i, bytes, now);
        }
    }

    /// As [`Gateway::permit`], of what it was permitted from `since` to `now`.
    pub(in crate::gateway) fn permit_since(&mut self, i: u32, bytes: u32, since: Time, now: Time) {
        if self.table[i].is_ending() {
            return; // it has nothing more to send
        }
        self.charge(i, bytes, (since, now), |turn, quantum| {
            turn.permit(bytes, quantum);
            bytes
        });
    }

    /// The receiver has got so many bytes more. What its sender sent of its own accord is charged.
    pub(in crate::gateway) fn got(&mut self, i: u32, bytes: u32, since: Time, now: Time) {
        self.charge(i, bytes, (since, now), |turn, quantum| turn.received(bytes, quantum));
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

    /// Changes what is kept of a flow, and charges its class the bytes that this says, from `since` to `now`.
    fn charge(
        &mut self,
        i: u32,
        most: u32,
        (since, now): (Time, Time),
        change: impl FnOnce(&mut Turn, u32) -> u32,
    ) {
        let r = &mut self.table[i];
        let counted = most > 0 && !r.has(flag::STEPS); // turns of ACKs are charged as they are had
        let Some(share) = self.classes.share(r.class).filter(|_| counted) else { return };
        let bytes = change(r.law.turn_mut(), share.quantum);
        if bytes > 0 {
            let (place, cost) = (r.class, share.law.cost(&r.segments(), bytes));
            if let Some(most) = share.law.flow_max {
                r.law.turn_mut().spend(cost, most, now);
            }
            let forgiven = self.tree(place).charge(place, cost, since, now);
            let stats = &mut self.classes[place];
            stats.permitted_bytes += u64::from(bytes);
            stats.forgiven_bytes += forgiven;
        }
    }

    /// The first window of a flow is known: what its sender may send of it is charged before it is sent, or
    /// else short flows would come for nothing, and all others be late for it.
    pub(in crate::gateway) fn permit_first(&mut self, i: u32, now: Time) {
        let r = &self.table[i];
        if !r.has(flag::SHARED | flag::EDGE_KNOWN) || r.has(flag::STEPS) {
            return;
        }
        let window = r.edge.wrapping_sub(r.tx);
        self.begin_least(i);
        let r = &self.table[i];
        let Some(share) = self.classes.share(r.class) else { return };
        let bytes = share.law.initial(window, r.mss);
        self.permit(i, bytes, now);
    }

    /// What the sender was permitted and will not send, beyond `left` bytes, is given back.
    pub(in crate::gateway) fn give_back(&mut self, i: u32, left: u32, now: Time) {
        let r = &mut self.table[i];
        let counted = r.has(flag::SHARED) && !r.has(flag::STEPS);
        let Some(share) = self.classes.share(r.class).filter(|_| counted) else { return };
        let turn = r.law.turn_mut();
        let back = turn.early.saturating_sub(left);
        turn.early -= back;
        if back > 0 {
            let (place, cost) = (r.class, share.law.cost(&r.segments(), back));
            if let Some(most) = share.law.flow_max {
                r.law.turn_mut().unspend(cost, most);
            }
            self.classes[place].permitted_bytes -= u64::from(back);
            self.tree(place).give_back(place, cost, now);
        }
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
        if r.has(flag::SHARED | flag::EDGE_KNOWN) && !r.has(flag::STEPS) && !self.ask_for_least(i) {
            self.classes[self.table[i].class].best_effort += 1;
        }
    }

    /// The flow has the least rate of its class from now on, if there is room. False if there is not.
    pub(super) fn ask_for_least(&mut self, i: u32) -> bool {
        let r = &mut self.table[i];
        if r.has(flag::TRANSIENT) {
            return true; // a promise to whoever opens a connection is everybody's to take
        }
        let Some(share) = self.classes.share_mut(r.class).filter(|_| !r.has(flag::GUARANTEED)) else {
            return true;
        };
        let Some(least) = share.law.flow_min else { return true };
        if r.is_ending() || u64::from(share.sure + 1).saturating_mul(least.bps()) > share.there() {
            return r.is_ending();
        }
        share.sure += 1;
        share.listed_sure += u32::from(r.has(flag::LISTED));
        r.flags |= flag::GUARANTEED;
        self.classes[self.table[i].class].guaranteed += 1;
        true
    }

    /// The flow has the least rate no more: it ends, or is of another class.
    pub(in crate::gateway) fn give_up_least(&mut self, i: u32) {
        let r = &mut self.table[i];
        let Some(share) = self.classes.share_mut(r.class).filter(|_| r.has(flag::GUARANTEED)) else { return };
        share.sure -= 1;
        share.listed_sure -= u32::from(r.has(flag::LISTED));
        r.flags &= !flag::GUARANTEED;
        self.classes[self.table[i].class].guaranteed -= 1;
    }
}
