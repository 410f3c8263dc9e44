//! Turns in a class: which flow is released next, and how much of it.

use crate::ack::window;
use crate::flow::flag;
use crate::gateway::blocked::wheel;
use crate::gateway::Gateway;
use crate::node::{Cx, Port};
use crate::systems::class_rate::Tree;
use crate::systems::postack::Driver;
use crate::time::{Duration, Time};

/// Turns further back than this are not made up for.
const CATCH_UP: Duration = Duration::from_millis(100);
/// Flows looked at in one call.
const VISITS: u32 = 32;

/// Outcome of a flow's turn.
#[derive(PartialEq, Eq)]
pub(super) enum Visit {
    /// It is another's turn, or its own again.
    Passed,
    /// An ACK was made.
    Released,
    /// None can be made now.
    Stuck,
}

impl Gateway {
    /// A flow that holds something, or whose right edge waits, waits for its turn, unless it does already.
    pub(in crate::gateway) fn enlist(&mut self, i: u32, now: Time) {
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
        ring.push(&mut self.table, i);
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
    pub(super) fn awaits_turn(&self, i: u32) -> bool {
        let r = &self.table[i];
        r.holds() || r.has(flag::EDGE_WAITS) || r.takes_steps() && self.counts(i)
    }

    fn counts(&self, i: u32) -> bool {
        let r = &self.table[i];
        self.classes.share(r.class).is_some_and(|share| {
            let queues = share.departures.queues;
            share.law.scheme().is_some_and(|scheme| scheme.counts(r, queues))
        })
    }

    /// A flow that holds something gets no more for now, whoever else there is: it has a timer.
    fn wait_alone(&mut self, i: u32) {
        let r = &mut self.table[i];
        if r.flags & (flag::ARMED | flag::CLOSED) == 0 {
            r.flags |= flag::WAITING;
            let due = r.law.turn().free_from();
            self.start_timer(i, due);
        }
    }

    /// The flow takes no turns any more.
    pub(in crate::gateway) fn unlist(&mut self, i: u32, now: Time) {
        let r = &self.table[i];
        let place = r.class;
        let Some(share) = self.classes.share_mut(place).filter(|_| r.has(flag::LISTED)) else { return };
        share.note_active(now);
        share.listed -= 1;
        share.listed_sure -= u32::from(r.has(flag::GUARANTEED));
        let ring = if r.has(flag::FRESH) { &mut share.fresh } else { &mut share.old };
        ring.remove(&mut self.table, i);
        self.table[i].flags &= !(flag::LISTED | flag::FRESH);
        if share.node().is_some() && share.listed == 0 {
            self.tree(place).settle(place, now);
        }
    }

    /// The flow, whose turn it was, is the last of those that have had one.
    pub(super) fn queue_again(&mut self, i: u32) {
        let r = &self.table[i];
        let Some(share) = self.classes.share_mut(r.class) else { return };
        let ring = if r.has(flag::FRESH) { &mut share.fresh } else { &mut share.old };
        ring.remove(&mut self.table, i);
        share.old.push(&mut self.table, i);
        self.table[i].set(flag::FRESH, false);
    }

    /// A flow has got something that is held, for `more` bytes. With turns of bytes its sender hears of some
    /// at once after a loss: it has waited long enough.
    pub(in crate::gateway) fn await_turn(&mut self, cx: &mut Cx<'_>, i: u32, more: u32) {
        let r = &mut self.table[i];
        if r.takes_steps() {
            return self.await_step(cx, i, more);
        }
        let bytes = if r.is_ending() {
            r.held() // which lets nothing be sent
        } else if r.has(flag::LOSS) {
            r.held().min(2 * u32::from(r.mss))
        } else {
            0
        };
        r.set(flag::LOSS, false);
        if bytes > 0 {
            self.release_at_once(cx, i, self.table[i].tx.wrapping_add(bytes));
        }
        self.enlist(i, cx.now);
    }

    /// Makes an ACK up to `to`, whosever turn it is.
    pub(in crate::gateway) fn release_at_once(&mut self, cx: &mut Cx<'_>, i: u32, to: u32) -> bool {
        let r = &self.table[i];
        let (bytes, edge) = (to.wrapping_sub(r.tx), r.edge);
        self.keep_edge(i, bytes, cx.now);
        let made = self.generate(cx, i, to, cx.now);
        if made {
            self.permit_released(i, bytes, edge, cx.now);
        }
        self.enlist(i, cx.now);
        made
    }

    /// The class at this place, with those that are above it.
    pub(in crate::gateway) fn tree(&mut self, place: u32) -> Tree<'_> {
        let wheel = wheel(self.classes.ack_out(place));
        Tree {
            shares: &mut self.classes.shares,
            timers: &mut self.timers,
            first: self.table.capacity(),
            wheel,
        }
    }

    /// The time of a class, whose timer was just taken off its wheel, has come: at most one ACK is made.
    #[inline(never)]
    pub(in crate::gateway) fn serve(&mut self, cx: &mut Cx<'_>, timer: u32, port: Port) {
        let (place, due) = (timer - self.table.capacity(), self.timers.due(timer).min(cx.now));
        match self.classes.share(place) {
            Some(share) if share.law.driver() == Some(Driver::Delay) => return,
            Some(share) if share.parent().is_some() => return self.tree(place).settle(place, due),
            Some(share) if share.law.driver().is_some_and(Driver::is_departure) => {
                return self.serve_idle(cx, place)
            }
            _ => {}
        }
        let is_late = self.blocked.was(port, due) || cx.now.since(due) > CATCH_UP;
        let now = if is_late { cx.now } else { due };
        let cx = &mut Cx { now, frames: cx.frames };
        self.charge_others(place, now);
        let Some(share) = self.classes.share_mut(place) else { return };
        share.begin(now);
        let mut released = false;
        for _ in 0..VISITS {
            let Some((i, class)) = self.ready(place, now) else { break };
            let r = &self.table[i];
            let would = self.awaits_turn(i) && (r.takes_steps() || r.law.turn().deficit > 0);
            if released && would {
                break;
            }
            match self.visit(cx, i, class) {
                Visit::Passed => {}
                Visit::Released => released = true,
                Visit::Stuck => return self.tree(place).arm(place, now + GAP_STUCK),
            }
        }
        if let Some(share) = self.classes.share_mut(place).filter(|s| s.may_release(now)) {
            share.next = now; // what is left goes together with this
        }
        self.tree(place).arm(place, now);
    }

    /// Returns the flow whose turn it is below a class at the top, and the class of that flow, if the clock
    /// is not ahead.
    fn ready(&mut self, top: u32, now: Time) -> Option<(u32, u32)> {
        self.classes.share(top).filter(|share| share.may_release(now))?;
        let place = self.tree(top).pick(top)?;
        Some((self.classes.share(place)?.first(&self.table, now)?, place))
    }

    /// It is the turn of a flow of the class in this place.
    pub(super) fn visit(&mut self, cx: &mut Cx<'_>, i: u32, place: u32) -> Visit {
        if !self.revise(cx, i) || !self.table[i].has(flag::LISTED) || self.table[i].class != place {
            return Visit::Passed;
        }
        self.follow(i, cx.now);
        self.tree(place).refresh(place, cx.now);
        let waits = self.awaits_turn(i);
        let r = &mut self.table[i];
        let steps = r.takes_steps();
        if !waits || r.flags & (flag::CLOSED | flag::SYNCED) != flag::SYNCED {
            r.set(flag::EDGE_WAITS, false);
            if r.has(flag::FRESH) {
                self.queue_again(i);
            } else {
                self.unlist(i, cx.now);
                if !steps {
                    self.grant_shared(i, cx.now, None);
                }
            }
            return Visit::Passed;
        }
        if steps {
            return self.visit_step(cx, i, place);
        }
        let rests = self.classes.share(place).is_some_and(|share| share.law.flow_max.is_some());
        if rests && self.table[i].law.turn().free_from() > cx.now {
            self.unlist(i, cx.now);
            self.wait_alone(i);
            return Visit::Passed;
        }
        let r = &mut self.table[i];
        if r.law.turn().deficit <= 0 {
            let payload = r.segments().payload;
            self.ask_for_least(i);
            let sure = self.table[i].has(flag::GUARANTEED);
            let share = self.classes.share(place);
            let part = share.map_or(0, |share| share.part_of(sure, share.law.turn(payload)) as i32);
            self.table[i].law.turn_mut().deficit += part;
            self.queue_again(i);
            return Visit::Passed;
        }
        if r.held() == 0 {
            return self.move_edge(cx, i);
        }
        r.set(flag::EDGE_WAITS, false);
        let before = self.held(i);
        if !self.take_turn(cx, i) {
            return Visit::Stuck;
        }
        self.table[i].law.listed_mut().place.wait_from(cx.now);
        self.note_held(i, before);
        self.close_if_done(i, cx.now);
        Visit::Released
    }

    /// The flow holds nothing, and its right edge waits: it moves by a turn's worth, until it is where it
    /// would be. After the receiver's FIN it moves only with what is acknowledged: hooks discard an ACK that
    /// could be a duplicate.
    fn move_edge(&mut self, cx: &mut Cx<'_>, i: u32) -> Visit {
        let r = &self.table[i];
        let (tx, edge) = (r.tx, r.edge);
        let edge_of_turn = || {
            let times = self.times(r).filter(|_| !self.ends && !self.slots[i].has_ended())?;
            let turn = self.classes.shares.edge_of_turn(r, times)?;
            r.edge_moves(Some(turn.0)).then_some(turn)
        };
        let Some((limit, bytes)) = edge_of_turn() else {
            self.table[i].set(flag::EDGE_WAITS, false);
            return Visit::Passed;
        };
        if !self.generate_with(cx, i, tx, cx.now, Some(limit)) {
            return Visit::Stuck;
        }
        self.permit_released(i, bytes, edge, cx.now);
        self.table[i].law.listed_mut().place.wait_from(cx.now);
        Visit::Released
    }

    /// The flow is released a turn's worth.
    fn take_turn(&mut self, cx: &mut Cx<'_>, i: u32) -> bool {
        let r = &self.table[i];
        let Some(share) = self.classes.share(r.class) else { return false };
        let (held, edge) = (r.held(), r.edge);
        let ends = r.is_ending();
        let bytes = if ends { held } else { held.min(share.law.turn(r.segments().payload)) };
        let payload = share.payload(r);
        let cut = self.times(r).map_or(0, |times| self.classes.shares.cut(r, times, bytes));
        let wanted = r.tx.wrapping_add(bytes + cut);
        let to = window::on_grid(r, wanted, self.window_limit(r)).0;
        self.table[i].law.turn_mut().set_share(payload);
        let made = self.generate(cx, i, to, cx.now);
        if made {
            // What was cut counts nowhere, and what goes beyond a turn counts as well.
            let left = bytes.wrapping_sub(wanted.wrapping_sub(to)) as i32;
            self.permit_released(i, left.max(0) as u32, edge, cx.now);
        }
        made
    }
}

/// Until another try where no ACK can be made.
pub(super) const GAP_STUCK: Duration = Duration::from_micros(200);
