//! Turns in a class: which flow is released next, and how much of it.
//!
//! While the clock of a class is not ahead, the flow whose turn it is gets its release. A flow that comes to
//! hold something is *fresh* and goes before those that have had their turn (FQ-CoDel, RFC 8290 §4.2), and a
//! flow is *listed* until its turn comes and nothing is held.

use super::flows::turns::Ready;
use super::spill::visit_spilled;
use super::Gateway;
use crate::ack::window;
use crate::flow::{flag, ClassId, FlowId, Record};
use crate::node::{Cx, Port};
use crate::packet::wire::Seq;
use crate::systems::postack::Driver;
use crate::time::Duration;

/// Age beyond which missed turns are forfeited.
const CATCH_UP: Duration = Duration::from_millis(100);

/// Flows looked at in one call.
pub(super) const VISITS: u32 = 32;

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
    /// A flow has got something that is held, for `more` bytes. With turns of bytes its sender hears of some
    /// at once after a loss: it has waited long enough.
    pub(super) fn await_turn(&mut self, cx: &mut Cx<'_>, i: FlowId, more: u32) {
        let r = &mut self.flows.table[i];
        if r.takes_steps() {
            return self.await_step(cx, i, more);
        }
        let bytes = if r.is_ending() {
            r.held() // which lets nothing be sent
        } else if r.has(flag::LOSS) {
            r.held().min(2 * r.shared_mss())
        } else {
            0
        };
        r.set(flag::LOSS, false);
        if bytes > 0 {
            self.release_at_once(cx, i, self.flows.table[i].tx.plus(bytes));
        }
        self.flows.enlist(i, cx.now);
    }

    /// Makes an ACK up to `to`, whosever turn it is.
    pub(super) fn release_at_once(&mut self, cx: &mut Cx<'_>, i: FlowId, to: Seq) -> bool {
        let r = &self.flows.table[i];
        let (bytes, edge) = (to.since(r.tx), r.edge);
        self.flows.keep_edge(i, bytes, cx.now);
        let made = self.generate(cx, i, to, cx.now);
        if made {
            self.flows.permit_released(i, bytes, edge, cx.now);
        }
        self.flows.enlist(i, cx.now);
        made
    }

    /// The time of a class, whose timer was just taken off its wheel, has come: at most one ACK is made.
    #[inline(never)]
    pub(super) fn serve(&mut self, cx: &mut Cx<'_>, timer: u32, port: Port) {
        let (place, due) =
            (ClassId(timer - self.flows.table.capacity()), self.flows.timers.due(timer).min(cx.now));
        match self.flows.classes.share(place) {
            Some(share) if share.law.driver() == Some(Driver::Delay) => return,
            Some(share) if share.parent().is_some() => return self.flows.tree(place).settle(place, due),
            Some(share) if share.law.driver().is_some_and(Driver::is_departure) => {
                return self.serve_idle(cx, place)
            }
            _ => {}
        }
        let is_late = self.flows.blocked.was(port, due) || cx.now.since(due) > CATCH_UP;
        let now = if is_late { cx.now } else { due };
        let cx = &mut Cx { now, frames: cx.frames };
        self.flows.charge_others(place, now);
        let Some(share) = self.flows.classes.share_mut(place) else { return };
        share.begin(now);
        let mut released = false;
        for _ in 0..VISITS {
            let Some((ready, class)) = self.flows.ready(place, now) else { break };
            let i = match ready {
                Ready::Flow(i) => i,
                Ready::Spilled(queue) => {
                    visit_spilled(self, cx, queue, class);
                    continue;
                }
            };
            let r = &self.flows.table[i];
            let would = self.flows.awaits_turn(i) && (r.takes_steps() || is_due(r));
            if released && would {
                break;
            }
            match self.visit(cx, i, class) {
                Visit::Passed => {}
                Visit::Released => released = true,
                Visit::Stuck => return self.flows.tree(place).arm(place, now + GAP_STUCK),
            }
        }
        if let Some(share) = self.flows.classes.share_mut(place).filter(|s| s.may_release(now)) {
            share.next = now; // what is left goes together with this
        }
        self.flows.tree(place).arm(place, now);
    }

    /// It is the turn of a flow of the class in this place.
    pub(super) fn visit(&mut self, cx: &mut Cx<'_>, i: FlowId, place: ClassId) -> Visit {
        if !self.revise(cx, i) || !self.flows.table[i].has(flag::LISTED) || self.flows.table[i].class != place
        {
            return Visit::Passed;
        }
        self.flows.follow(i, cx.now);
        self.flows.tree(place).refresh(place, cx.now);
        let waits = self.flows.awaits_turn(i);
        let r = &mut self.flows.table[i];
        let steps = r.takes_steps();
        if !waits || r.flags & (flag::CLOSED | flag::SYNCED) != flag::SYNCED {
            r.set(flag::EDGE_WAITS, false);
            if r.has(flag::FRESH) {
                self.flows.queue_again(i);
            } else {
                self.flows.unlist(i, cx.now);
                if !steps {
                    self.flows.grant_shared(i, cx.now, None);
                }
            }
            return Visit::Passed;
        }
        if steps {
            return self.visit_step(cx, i, place);
        }
        let rests = self.flows.classes.share(place).is_some_and(|share| share.law.flow_max.is_some());
        if rests && self.flows.table[i].law.turn().free_from() > cx.now {
            self.flows.unlist(i, cx.now);
            self.flows.wait_alone(i);
            return Visit::Passed;
        }
        let r = &mut self.flows.table[i];
        if !is_due(r) {
            self.flows.ask_for_least(i);
            let sure = self.flows.table[i].has(flag::GUARANTEED);
            let payload = self.flows.table[i].shared_payload();
            let share = self.flows.classes.share_mut(place);
            let part = share.map_or(0, |share| {
                let earned = share.round.earn(share.law.turn(), payload);
                share.part_of(sure, earned) as i32
            });
            self.flows.table[i].law.turn_mut().deficit += part;
            self.flows.queue_again(i);
            return Visit::Passed;
        }
        if r.held() == 0 {
            return self.move_edge(cx, i);
        }
        r.set(flag::EDGE_WAITS, false);
        let before = self.flows.held(i);
        if !self.take_turn(cx, i) {
            return Visit::Stuck;
        }
        self.flows.table[i].law.listed_mut().place.wait_from(cx.now);
        self.flows.note_held(i, before);
        self.flows.close_if_done(i, cx.now);
        Visit::Released
    }

    /// The flow holds nothing, and its right edge waits: it moves by a turn's worth, until it is where it
    /// would be. After the receiver's FIN it moves only with what is acknowledged: hooks discard an ACK that
    /// could be a duplicate.
    fn move_edge(&mut self, cx: &mut Cx<'_>, i: FlowId) -> Visit {
        let r = &self.flows.table[i];
        let (tx, edge) = (r.tx, r.edge);
        let edge_of_turn = || {
            let times =
                self.flows.times(r).filter(|_| !self.flows.ends && !self.flows.slots[i].has_ended())?;
            let turn = self.flows.classes.shares.edge_of_turn(r, times)?;
            r.edge_moves(Some(turn.0)).then_some(turn)
        };
        let Some((limit, bytes)) = edge_of_turn() else {
            self.flows.table[i].set(flag::EDGE_WAITS, false);
            return Visit::Passed;
        };
        if !self.generate_with(cx, i, tx, cx.now, Some(limit)) {
            return Visit::Stuck;
        }
        self.flows.permit_released(i, bytes, edge, cx.now);
        self.flows.table[i].law.listed_mut().place.wait_from(cx.now);
        Visit::Released
    }

    /// The flow is released a turn's worth.
    fn take_turn(&mut self, cx: &mut Cx<'_>, i: FlowId) -> bool {
        let r = &self.flows.table[i];
        let Some(share) = self.flows.classes.share(r.class) else { return false };
        let (held, edge) = (r.held(), r.edge);
        let ends = r.is_ending();
        let turn = r.law.turn().bytes(share.law.turn(), r.shared_payload());
        let bytes = if ends { held } else { held.min(turn) };
        let payload = share.payload(r);
        let cut = self.flows.times(r).map_or(0, |times| self.flows.classes.shares.cut(r, times, bytes));
        let wanted = r.tx.plus(bytes + cut);
        let to = window::on_grid(r, wanted, self.flows.window_limit(r)).0;
        self.flows.table[i].law.turn_mut().set_share(payload);
        let made = self.generate(cx, i, to, cx.now);
        if made {
            // What was cut counts nowhere, and what goes beyond a turn counts as well.
            let left = bytes.wrapping_sub(wanted.since(to)) as i32;
            self.flows.permit_released(i, left.max(0) as u32, edge, cx.now);
        }
        made
    }
}

/// Returns whether the flow, whose turns are of bytes, has one now.
fn is_due(r: &Record) -> bool {
    r.law.turn().is_due(r.held(), r.shared_payload())
}

/// Until another try where no ACK can be made.
pub(super) const GAP_STUCK: Duration = Duration::from_micros(200);
