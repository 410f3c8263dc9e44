//! What is held, and the times at which it goes.
//!
//! A flow that holds something has one timer. It is for a release at the flow's rate; or, where the rate has
//! already been earned, for the moment at which the next ACK may follow the last immediate one
//! ([`flag::WAITING`]: a flow that is not backlogged makes at most 5,000 ACKs a second, each of which costs the
//! hosts more than anything here); or for another try ([`flag::PARKED`]) where the port was blocked or no frame was
//! free. A flow that is over has one too: when it is forgotten.

use super::{ack_out, Gateway};
use crate::ack::{Arrival, Pace};
use crate::flow::{flag, Record};
use crate::node::{Cx, PortSet};
use crate::time::{Duration, Time};

/// Time between two ACKs of a flow that is not backlogged, at most a period.
const GAP: Duration = Duration::from_micros(200);
/// Time between two tries of a release that cannot be carried out, at least.
const RETRY: Duration = Duration::from_millis(1);
/// Release times that a parked flow makes up for: no more is earned while its port is blocked.
const PARKED_CATCH_UP: Duration = Duration::from_millis(5);

impl Gateway {
    /// Releases of this flow whose time came before `now` are carried out before it is looked at.
    pub(super) fn run_missed(&mut self, cx: &mut Cx<'_>, i: u32) {
        let catch_up = self.policy(&self.table[i]).release.catch_up();
        for _ in 0..1_000 {
            let r = &self.table[i];
            let runs = r.has(flag::ARMED) && r.flags & (flag::PARKED | flag::CLOSED) == 0;
            if !runs || r.timer() >= cx.now || cx.now.since(r.timer()) > catch_up {
                return;
            }
            self.wheel.disarm(i);
            self.table[i].set(flag::ARMED, false);
            self.release(cx, i, PortSet::ALL);
        }
    }

    /// The time of a flow, just taken off the wheel, has come.
    pub(super) fn release(&mut self, cx: &mut Cx<'_>, i: u32, writable: PortSet) {
        if self.table[i].has(flag::CLOSED) {
            return self.forget(cx, i);
        }
        if !self.revise(cx, i) {
            return;
        }
        self.follow(i, cx.now);
        let out = ack_out(&self.table[i]);
        if self.table[i].held() == 0 && self.table[i].pace.lag() == 0 {
            self.table[i].flags &= !(flag::WAITING | flag::PARKED);
            self.table[i].pace.stop(cx.now);
        } else if !writable.contains(out) || self.outbox.busy(out) {
            self.park(i, cx.now);
        } else if self.table[i].has(flag::WAITING) {
            self.end_gap(cx, i);
        } else {
            self.tick(cx, i);
        }
        self.close_if_done(i, cx.now);
    }

    /// The next ACK may follow the last.
    fn end_gap(&mut self, cx: &mut Cx<'_>, i: u32) {
        let before = self.held(i);
        let r = &mut self.table[i];
        let at = r.timer().min(cx.now); // later if the gap has become longer
        let late = r.has(flag::PARKED) || cx.now.since(at) > RETRY;
        let at = if late { cx.now } else { at };
        r.flags &= !(flag::WAITING | flag::PARKED);
        if r.pace.arrive(at, before.bytes) == Arrival::Schedule {
            r.flags |= flag::ARMED;
            self.wheel.arm(i, r.timer());
        } else if !self.generate(cx, i, self.table[i].rx, at) {
            self.table[i].pace.refund(before.bytes);
            self.table[i].flags |= flag::WAITING;
            self.park(i, cx.now);
        }
        self.note_held(i, before);
    }

    /// A release time of a backlogged flow.
    fn tick(&mut self, cx: &mut Cx<'_>, i: u32) {
        let rtt = self.rtt(&self.table[i]);
        let before = self.held(i);
        let law = &self.classes.policy(self.table[i].class).release;
        let r = &mut self.table[i];
        let parked = r.has(flag::PARKED);
        r.set(flag::PARKED, false);
        let made_up = PARKED_CATCH_UP.max(r.pace.period().saturating_mul(2));
        let catch_up = if parked { law.catch_up().min(made_up) } else { law.catch_up() };
        let missed = r.pace.skip_missed(cx.now, catch_up);
        let at = Time::from_nanos(r.pace.due);
        let lags = r.pace.lag() > 0;
        let tick = law.tick(&mut r.pace, rtt, r.mss, before.bytes);
        let class = &mut self.classes[r.class];
        class.missed_releases += missed;
        class.slow_starts += u64::from(tick.entered_slow_start);
        let wanted = r.tx.wrapping_add(tick.release);
        let to = self.on_grid(i, wanted);
        let kept = wanted.wrapping_sub(to);
        self.table[i].pace.refund(kept);
        let tells = tick.release > 0 || lags && self.edge_moves(i);
        if tells && !self.generate(cx, i, to, at) {
            self.table[i].pace.refund(tick.release - kept);
            self.park(i, cx.now);
        }
        let r = &mut self.table[i];
        if r.held() == 0 && r.pace.lag() == 0 {
            r.pace.stop(at);
        } else if !r.has(flag::ARMED) {
            r.flags |= flag::ARMED;
            self.wheel.arm(i, Time::from_nanos(r.pace.due));
        }
        self.note_held(i, before);
    }

    /// The release cannot be carried out now: another try follows.
    pub(super) fn park(&mut self, i: u32, now: Time) {
        let r = &mut self.table[i];
        r.flags |= flag::ARMED | flag::PARKED;
        self.wheel.arm(i, now + r.pace.period().max(RETRY));
    }
}

impl Record {
    /// When the flow's timer is due, unless it is parked.
    pub(super) fn timer(&self) -> Time {
        let due = Time::from_nanos(self.pace.due);
        if self.has(flag::WAITING) {
            due + gap(&self.pace)
        } else {
            due
        }
    }

    /// Would an ACK now follow the last immediate one too soon?
    pub(super) fn is_soon(&self, now: Time) -> bool {
        now < Time::from_nanos(self.pace.due) + gap(&self.pace)
    }
}

/// Time between two ACKs of a flow that is not backlogged. Credit is earned meanwhile, so its rate is the same.
fn gap(pace: &Pace) -> Duration {
    GAP.min(pace.period())
}
