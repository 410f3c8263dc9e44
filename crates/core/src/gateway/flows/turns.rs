//! Order of flows in a class, and charges to a class and its flow: what is permitted, and what is given back.
//! At any time `permitted = received + early` of each flow.
//!
//! A class may guarantee each flow a rate. A flow has it if, when its receiver's first acknowledgement
//! confirms it, there is as much for it and for all that have it already; otherwise it has what they leave,
//! and asks again at each of its turns. SYNs pass in the kernel, so no connection is refused.
//!
//! Where equal shares would be less than the guarantee, flows that do not have it are given a part of a turn:
//! such that together they have what the others leave of the rate, and at least a 64th of the guarantee each,
//! so that none starves.
//!
//! Packets that ACKs cannot slow are charged to the class's clock whenever the gateway looks at the clock,
//! and the windows of the class's flows are shares of what these packets leave.

use super::blocked::wheel;
use super::permits::account_of;
use super::stats::ClassStats;
use super::Register;
use crate::ack::Window;
use crate::flow::{flag, ClassId, FlowId, Record};
use crate::steer::VirtualQueue;
use crate::systems::class_rate::{Charged, ClassTree, Guarantee, Share};
use crate::systems::postack::{Driver, TURN};
use crate::time::{Duration, Time};
use crate::wire::Seq;

/// Time at its share, beyond a round trip, in which a sender that is not limited by its window sends what it
/// was permitted.
const UNSENT: Duration = Duration::from_millis(100);

/// Classes of a tree that are looked at in one call: at least, and at most.
const LEAVES: [usize; 2] = [4, 32];
/// Time in which all are looked at, if that is no more than the most.
const LAP: Duration = Duration::from_millis(100);

/// Owner of the next turn of a class.
pub(in crate::gateway) enum Ready {
    /// A flow whose ACKs are controlled.
    Flow(FlowId),
    /// The queue of a flow that has spilled.
    Spilled(u32),
}

impl Register {
    /// A flow that holds something, or whose right edge waits, waits for its turn, unless it does already.
    pub(in crate::gateway) fn enlist(&mut self, i: FlowId, now: Time) {
        if self.table[i].has(flag::LISTED) || !self.awaits_turn(i) {
            return;
        }
        let r = &self.table[i];
        let place = r.class;
        let Some(share) = self.classes.share_mut(place) else { return };
        let driver = share.law.driver();
        match driver {
            Some(Driver::Queues) => return self.enlist_idle(i, now),
            Some(Driver::Delay) => return self.enlist_delayed(i, now),
            _ => {}
        }
        if share.law.flow_max.is_some() && r.law.turn().free_from() > now {
            return self.wait_alone(i);
        }
        share.note_active(now);
        share.listed += 1;
        share.listed_sure += u32::from(self.table[i].has(flag::GUARANTEED));
        // Who comes and goes as it likes, by RSTs that no end accepts, has no turn before others.
        let fresh = !self.table[i].doubt.has_retracted();
        let ring = if fresh { &mut share.fresh } else { &mut share.old };
        ring.push(&mut self.table, i.0);
        self.table[i].flags |= flag::LISTED;
        self.table[i].law.listed_mut().place.wait_from(now);
        self.table[i].set(flag::FRESH, fresh);
        match driver {
            Some(Driver::Queue) => self.arm_idle(place, now),
            _ => self.tree(place).settle(place, now),
        }
    }

    /// Returns whether there is anything that a turn of the flow is for: it holds something, its right edge
    /// waits, or it counts all the same.
    pub(in crate::gateway) fn awaits_turn(&self, i: FlowId) -> bool {
        let r = &self.table[i];
        r.holds() || r.has(flag::EDGE_WAITS) || r.takes_steps() && self.counts(i)
    }

    pub(super) fn counts(&self, i: FlowId) -> bool {
        let r = &self.table[i];
        self.classes.share(r.class).is_some_and(|share| {
            let queues = share.departures.queues;
            share.law.scheme().is_some_and(|scheme| scheme.counts(r, queues))
        })
    }

    /// A flow that holds something gets no more for now, with others or without: it has a timer.
    pub(in crate::gateway) fn wait_alone(&mut self, i: FlowId) {
        let r = &mut self.table[i];
        if r.flags & (flag::ARMED | flag::CLOSED) == 0 {
            r.flags |= flag::WAITING;
            let due = r.law.turn().free_from();
            self.start_timer(i, due);
        }
    }

    /// The flow takes no turns any more.
    pub(in crate::gateway) fn unlist(&mut self, i: FlowId, now: Time) {
        let r = &self.table[i];
        let place = r.class;
        let Some(share) = self.classes.share_mut(place).filter(|_| r.has(flag::LISTED)) else { return };
        share.note_active(now);
        share.listed -= 1;
        share.listed_sure -= u32::from(r.has(flag::GUARANTEED));
        let ring = if r.has(flag::FRESH) { &mut share.fresh } else { &mut share.old };
        ring.remove(&mut self.table, i.0);
        self.table[i].flags &= !(flag::LISTED | flag::FRESH);
        if share.node().is_some() && share.listed == 0 {
            self.tree(place).settle(place, now);
        }
    }

    /// The flow, whose turn it was, is the last of those that have had one.
    pub(in crate::gateway) fn queue_again(&mut self, i: FlowId) {
        let r = &self.table[i];
        let Some(share) = self.classes.share_mut(r.class) else { return };
        let ring = if r.has(flag::FRESH) { &mut share.fresh } else { &mut share.old };
        ring.remove(&mut self.table, i.0);
        share.old.push(&mut self.table, i.0);
        self.table[i].set(flag::FRESH, false);
    }

    /// The class at this place, with those that are above it.
    pub(in crate::gateway) fn tree(&mut self, place: ClassId) -> ClassTree<'_> {
        let wheel = wheel(self.classes.ack_out(place));
        ClassTree {
            shares: &mut self.classes.shares,
            timers: &mut self.timers,
            first: self.table.capacity(),
            wheel,
        }
    }

    /// Returns the flow whose turn it is below a class at the top, and the class of that flow, if the clock
    /// is not ahead.
    pub(in crate::gateway) fn ready(&mut self, top: ClassId, now: Time) -> Option<(Ready, ClassId)> {
        self.classes.share(top).filter(|share| share.may_release(now))?;
        let place = self.tree(top).pick(top)?;
        let share = self.classes.share(place)?;
        let ready = match share.spilled_turn() {
            Some(queue) => Ready::Spilled(queue),
            None => Ready::Flow(share.first(&self.table, now)?),
        };
        Some((ready, place))
    }

    /// Account of a flow's sender. `None`: no hook reads any.
    pub(super) fn account(&self, i: FlowId) -> Option<&VirtualQueue> {
        account_of(&self.flow_bounds, &self.bounds, self.table[i].class, i)
    }

    /// The sender may send `bytes` more, or up to its right edge where that is known, of which it has `sent`
    /// some already.
    fn permit_in_account(&self, i: FlowId, bytes: u32, sent: u32) {
        let Some(account) = self.account(i) else { return };
        let (r, most) = (&self.table[i], self.open_window(i));
        match r.has(flag::EDGE_KNOWN) {
            true => account.permit_to(r.edge, sent, most),
            false if r.takes_steps() || r.is_ending() => account.permit(bytes, most),
            false => account.permit(bytes, most.min(r.law.turn().early)),
        }
    }

    /// Bytes that a flow's sender may send beyond what its receiver has got: its window, or some time of its
    /// share where that is not known.
    pub(super) fn open_window(&self, i: FlowId) -> u32 {
        let r = &self.table[i];
        match self.classes.share(r.class) {
            _ if r.has(flag::EDGE_KNOWN) => r.edge.beyond(r.rx),
            Some(share) => share.payload(r).bytes_in(self.rtt(r) + UNSENT).min(1 << 30) as u32,
            None => u32::MAX,
        }
    }

    /// A flow is followed from here on, or was not for a while: its sender has as much under way as its
    /// window allows.
    pub(super) fn restart_account(&self, i: FlowId) {
        if let Some(account) = self.account(i) {
            let r = &self.table[i];
            let open = if r.has(flag::EDGE_KNOWN) { r.edge.beyond(r.rx) } else { 0 };
            let early = if r.takes_turns() && !r.takes_steps() { r.law.turn().early } else { 0 };
            account.restart_at(open.max(early), r.edge);
        }
    }

    /// The sender of a flow whose class has a rate may send this many bytes more.
    pub(super) fn permit(&mut self, i: FlowId, bytes: u32, now: Time) {
        self.permit_since(i, bytes, now, now);
    }

    /// An ACK for `bytes` more was made; the right edge was `edge` before. The sender may send as many more,
    /// or only up to the right edge: a window that shrinks, whose left edge moves alone, permits nothing.
    pub(in crate::gateway) fn permit_released(&mut self, i: FlowId, bytes: u32, edge: Seq, now: Time) {
        let r = &self.table[i];
        let room = if r.has(flag::EDGE_KNOWN) {
            let open = r.edge.beyond(r.rx);
            r.edge.since(edge).max(open.saturating_sub(r.law.turn().early))
        } else {
            u32::MAX
        };
        self.permit(i, bytes.min(room), now);
    }

    /// The receiver's own ACK for `bytes` more has left ahead of the flow's turn, where it shares a rate; the
    /// right edge was `edge` before.
    pub(in crate::gateway) fn permit_early(&mut self, i: FlowId, bytes: u32, edge: Seq, now: Time) {
        let r = &self.table[i];
        if r.takes_turns() && r.has(flag::EDGE_WAITS) {
            self.permit_released(i, bytes, edge, now);
            self.enlist(i, now);
        } else if r.takes_turns() {
            self.permit_told(i, bytes, now);
        }
    }

    /// The sender has heard of this many bytes already, and may have sent as many since.
    pub(super) fn permit_told(&mut self, i: FlowId, bytes: u32, now: Time) {
        let sent = self.account(i).map_or(0, |account| account.settle(bytes));
        self.permit_but(i, bytes, sent, now, now);
    }

    /// As [`Register::permit`], of what it was permitted from `since` to `now`.
    pub(super) fn permit_since(&mut self, i: FlowId, bytes: u32, since: Time, now: Time) {
        self.permit_but(i, bytes, 0, since, now);
    }

    /// As above, where `sent` bytes have been sent, and were charged as they passed.
    fn permit_but(&mut self, i: FlowId, bytes: u32, sent: u32, since: Time, now: Time) {
        if self.table[i].is_ending() {
            // It has nothing more to send. If that is not true, what is received is charged.
            return self.permit_in_account(i, bytes, 0);
        }
        let (r, mut tree, stats) = self.with_tree(i);
        tree.permit(r, bytes, bytes - sent, (since, now)).count(stats);
        self.permit_in_account(i, bytes - sent, sent);
    }

    /// The receiver has got this many bytes more. What its sender sent of its own accord is charged.
    pub(super) fn got(&mut self, i: FlowId, bytes: u32, since: Time, now: Time) {
        let first = self.table.capacity();
        let r = &mut self.table[i];
        let account = account_of(&self.flow_bounds, &self.bounds, r.class, i);
        let wheel = wheel(self.classes.ack_out(r.class));
        let (shares, stats) = self.classes.split(r.class);
        let mut tree = ClassTree { shares, timers: &mut self.timers, first, wheel };
        tree.got(r, bytes, account, (since, now)).count(stats);
    }

    /// The first window of a flow is known: what its sender may send of it is charged before it is sent, or
    /// else short flows would come for nothing, and all others be late for it.
    pub(super) fn permit_first(&mut self, i: FlowId, now: Time) {
        let r = &self.table[i];
        if !r.takes_turns() || !r.has(flag::EDGE_KNOWN) {
            return;
        }
        let (window, steps) = (r.edge.since(r.tx), r.takes_steps());
        self.begin_least(i);
        if steps {
            return;
        }
        let r = &self.table[i];
        let Some(share) = self.classes.share(r.class) else { return };
        let bytes = share.law.initial(window, r.mss);
        self.permit(i, bytes, now);
        self.restart_account(i);
    }

    /// Gives back what the sender was permitted and will not send, beyond `left` bytes.
    pub(super) fn give_back(&mut self, i: FlowId, left: u32, now: Time) {
        let (r, mut tree, stats) = self.with_tree(i);
        stats.permitted_bytes -= u64::from(tree.take_back(r, left, now));
    }

    /// A flow, the tree that its class is in, and the totals of that class.
    fn with_tree(&mut self, i: FlowId) -> (&mut Record, ClassTree<'_>, &mut ClassStats) {
        let first = self.table.capacity();
        let r = &mut self.table[i];
        let wheel = wheel(self.classes.ack_out(r.class));
        let (shares, stats) = self.classes.split(r.class);
        (r, ClassTree { shares, timers: &mut self.timers, first, wheel }, stats)
    }

    /// The sender's FIN is known: what it was permitted beyond it cannot be sent.
    pub(in crate::gateway) fn has_ended(&mut self, i: FlowId, now: Time) {
        let r = &self.table[i];
        let left = r.fin.beyond(r.rx);
        self.give_back(i, left, now);
        self.give_up_least(i);
    }

    /// A flow whose first window is known was confirmed by its receiver: it asks for the least rate.
    pub(in crate::gateway) fn begin_least(&mut self, i: FlowId) {
        let r = &self.table[i];
        if r.takes_turns() && r.has(flag::EDGE_KNOWN) && !self.ask_for_least(i) {
            self.classes[self.table[i].class].best_effort += 1;
        }
    }

    /// The flow has the guarantee of its class from now on, if there is room. False if there is not.
    pub(in crate::gateway) fn ask_for_least(&mut self, i: FlowId) -> bool {
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

    /// Returns whether the flow, whose turns are ACKs, has a right to the turn that it comes to. Otherwise it
    /// has earned a part of one, where flows of its class have a guarantee.
    pub(in crate::gateway) fn earns_turn(&mut self, i: FlowId) -> bool {
        if !self.has_parts(i) {
            return true;
        }
        self.ask_for_least(i);
        let r = &self.table[i];
        let part =
            self.classes.share(r.class).map_or(0, |share| share.part_of(r.has(flag::GUARANTEED), TURN));
        self.table[i].law.steps_mut().earn(part)
    }

    /// The flow has had this many turns of an ACK.
    pub(in crate::gateway) fn spend_parts(&mut self, i: FlowId, turns: u32) {
        if self.has_parts(i) {
            self.table[i].law.steps_mut().spend(turns);
        }
    }

    fn has_parts(&self, i: FlowId) -> bool {
        self.classes.share(self.table[i].class).is_some_and(|share| share.law.flow_min.is_some())
    }

    /// The flow has the guarantee no more: it ends, or is of another class.
    pub(super) fn give_up_least(&mut self, i: FlowId) {
        let r = &mut self.table[i];
        let (shares, stats) = self.classes.split(r.class);
        if shares.get_mut(r.class).is_some_and(|share| share.give_up(r)) {
            stats.guaranteed -= 1;
        }
    }

    /// Bytes of the class with this index that its clock was not charged up to `now`, since it was too far
    /// ahead: what exceeded the rate and could not be held back.
    pub fn exceeded(&self, class: usize, now: Time) -> u64 {
        let place = self.classes.place(class);
        let Some((share, tally)) = self.classes.share(place).zip(self.tallies().get(place.index())) else {
            return 0;
        };
        let passed = tally.counted().since(share.others.counted);
        let cost = share.law.counts.cost_of_packets(passed.packets, passed.bytes);
        let since = share.others.at;
        let beyond = |place: ClassId| self.classes.share(place).map(|above| above.beyond(cost, since, now));
        let above = core::iter::successors(Some(place), |&at| self.classes.share(at)?.parent());
        self.classes[place].forgiven_bytes + above.filter_map(beyond).max().unwrap_or(0)
    }

    /// Charges the classes below one at the top what has passed that is none of their flows': some of them,
    /// each time others.
    pub(in crate::gateway) fn charge_others(&mut self, top: ClassId, now: Time) {
        let tree = |gateway: &Register| {
            let node = gateway.classes.share(top)?.node()?;
            Some((node.leaves.len(), now.since(node.looked).min(LAP)))
        };
        let Some((leaves, elapsed)) = tree(self) else { return self.charge_others_of(top, now) };
        let due = leaves as u64 * elapsed.as_nanos() / LAP.as_nanos();
        for _ in 0..(due as usize).clamp(LEAVES[0], LEAVES[1]).min(leaves) {
            let Some(node) = self.classes.share_mut(top).and_then(Share::node_mut) else { return };
            let place = node.leaves[node.next_leaf % leaves];
            node.next_leaf = (node.next_leaf + 1) % leaves;
            node.looked = now;
            self.charge_others_of(place, now);
        }
    }

    /// Charges the class what has passed that is none of its flows', and what their senders were not
    /// permitted.
    fn charge_others_of(&mut self, place: ClassId, now: Time) {
        let Some(tally) = self.tallies.all().get(place.index()) else { return };
        let (counted, bound) = (tally.counted(), self.bounds.all().get(place.index()));
        let owes = self.classes.shares.owe(place);
        let Some(may) = self.classes.shares.limit_others(place, tally, now) else { return };
        let Some(share) = self.classes.share_mut(place) else { return };
        let (cost, since) = share.others.look(&share.law, counted, now);
        share.note_active(now);
        let beyond = bound.filter(|bound| bound.is_set()).map_or(0, |bound| {
            bound.fair().tell(share.law.rate_of_hooks(may), share.active.value());
            let passed = bound.passed();
            share.others.look_beyond(&share.law, passed.beyond.wrapping_add(passed.free), now)
        });
        self.classes.shares.tell_others(place);
        if cost > 0 || beyond > 0 || owes {
            let mut tree = self.tree(place);
            let forgiven = tree.charge_unresponsive(place, cost + beyond, since, now);
            let stats = &mut self.classes[place];
            stats.others_bytes += cost;
            stats.forgiven_bytes += forgiven;
        }
    }

    /// As [`Register::window_limit_at`], of a flow that shares its class's rate.
    pub(super) fn window_of_share(&self, r: &Record, to: Seq) -> Option<u32> {
        let times = self.times(r).filter(|_| !self.ends)?;
        self.classes.shares.window(&self.table, r, times, to, self.now)
    }

    /// The round-trip time of a flow, and how long what is acknowledged may wait, if its window is sized.
    pub(in crate::gateway) fn times(&self, r: &Record) -> Option<(Duration, Duration)> {
        match self.policy(r).window {
            Window::Size { standing_delay } => Some((self.rtt(r), standing_delay)),
            Window::Keep => None,
        }
    }

    /// Lets bytes go ahead of the flow's turn. Where the class has nothing to spare for what its sender might
    /// send for them, the right edge stays where it is until then.
    pub(in crate::gateway) fn keep_edge(&mut self, i: FlowId, bytes: u32, now: Time) {
        let r = &self.table[i];
        let waits = r.takes_turns()
            && r.has(flag::EDGE_KNOWN)
            && !r.takes_steps()
            && !r.is_ending()
            && self.times(r).is_some()
            && self.classes.shares.is_early(r, bytes, now);
        if waits {
            self.table[i].flags |= flag::EDGE_WAITS;
        }
    }

    /// Finds what the class of a flow has now, where it borrows.
    pub(super) fn entitle(&mut self, i: FlowId) {
        let (place, now) = (self.table[i].class, self.now);
        self.tree(place).entitle(place, now);
    }
}

impl Charged {
    pub(in crate::gateway) fn count(self, stats: &mut ClassStats) {
        stats.permitted_bytes += u64::from(self.bytes);
        stats.forgiven_bytes += self.forgiven;
    }
}
