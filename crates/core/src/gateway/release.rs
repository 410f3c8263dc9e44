//! Timers of flows, and releases of what is held.
//!
//! A flow that holds something has one timer. It is for a release at the flow's rate; or, where the rate has
//! already been earned, for the moment at which the next ACK may follow the last immediate one
//! ([`flag::WAITING`]: a flow that is not backlogged makes at most 5,000 ACKs a second, each of which costs
//! the hosts more than anything here). A flow that is over has one too: when it is forgotten.
//!
//! Releases are carried out at the times at which they are due, whenever that is found out: by a poll, or as
//! the next frame comes. Most are in time, and of a flow of which nothing else is to be found out
//! (`release`); what is found out of any other, and may come to something else than a release, is in
//! `prepare`.

use super::flows::blocked::{wheel, MADE_UP};
use super::flows::stats::ClassStats;
use super::flows::{ack_out, Register};
use super::send::{Maker, NewAck};
use super::Gateway;
use crate::ack::{window, AckControl, Arrival, Pace, Window};
use crate::flow::{flag, FlowId, Record, Timers};
use crate::node::{Cx, Port, PortSet, LAN, WAN};
use crate::steer::Slot;
use crate::systems::Kept;
use crate::time::{Duration, Time};

/// Time between two ACKs of a flow that is not backlogged, at most a period.
const GAP: Duration = Duration::from_micros(200);

/// Flags that are checked. Of all these, a regular flow is in step with its receiver and nothing else.
pub(super) const ASKED: u32 = flag::SYNCED
    | flag::CLOSED
    | flag::WAITING
    | flag::GRANTED
    | flag::SHARED
    | flag::SENDER_FIN
    | flag::RECEIVER_FIN;

/// Releases carried out as a frame comes, at most. Where more are due, the polls that follow carry them out.
const AT_ONCE: u32 = 128;

impl Gateway {
    /// Releases whose time came before `now` are carried out before anything else. Those of this very instant
    /// come with the next poll.
    #[inline]
    pub(super) fn catch_up(&mut self, cx: &mut Cx<'_>) {
        if self.flows.first_timer() < cx.now {
            self.carry_out(&mut Cx {
                now: cx.now.saturating_sub(Duration::from_nanos(1)),
                frames: cx.frames,
            });
        }
    }

    /// Carries out what is due before a frame that comes. A driver that has not polled hears of the frames
    /// for a port before more are made.
    #[cold]
    fn carry_out(&mut self, cx: &mut Cx<'_>) {
        for _ in 0..AT_ONCE {
            let busy = |port| self.outbox.busy(port);
            let ports = [LAN, WAN].into_iter().filter(|&port| !busy(port)).fold(PortSet::NONE, PortSet::with);
            if !self.run_release(cx, ports) {
                return;
            }
        }
    }

    /// Carries out the release that is due first by one of these ports, if any: at most one ACK.
    #[inline]
    pub(super) fn run_release(&mut self, cx: &mut Cx<'_>, ports: PortSet) -> bool {
        match self.flows.first(ports.and(self.flows.blocked.open())) {
            Some((due, port)) if due <= cx.now => self.run_due(cx, port),
            _ => false,
        }
    }

    /// Carries out the first release by a port, which is due.
    #[inline(always)]
    fn run_due(&mut self, cx: &mut Cx<'_>, port: Port) -> bool {
        if cx.frames.is_exhausted() {
            self.flows.stats.pool_exhausted += 1;
            self.flows.blocked.rest(&self.flows.timers, cx.now);
            return false;
        }
        let Some(i) = self.flows.timers.pop(wheel(port), cx.now) else { return false };
        if i < self.flows.table.capacity() {
            self.release(cx, FlowId(i), port);
        } else {
            self.serve(cx, i, port);
        }
        true
    }

    /// The time of a flow, just taken off its wheel, has come.
    #[inline(always)]
    pub(super) fn release(&mut self, cx: &mut Cx<'_>, i: FlowId, port: Port) {
        let state = (self.flows.generation, self.flows.table.epoch());
        let Gateway { flows, outbox, .. } = self;
        let Register {
            table,
            slots,
            timers,
            blocked,
            stats,
            classes,
            congestion,
            config,
            marks,
            hooked,
            ends,
            ..
        } = flows;
        let (r, slot) = (&mut table[i], &slots[i]);
        r.flags &= !flag::ARMED;
        let due = Time::from_nanos(r.law.pace().due);
        let in_time = due <= cx.now && !blocked.was(port, due);
        #[cfg(test)]
        let in_time = in_time && !self.always_long;
        if r.is_regular(slot, state) && in_time {
            let (policy, class, index) = classes.of_flow(r.class);
            if cx.now.since(due) <= policy.release.catch_up() && policy.engages(congestion, index) {
                r.catch_up(slot);
                let rtt = r.rtt(config.assumed_rtt);
                let maker = Maker { outbox, stats, marks: (marks, i.index()), hooked: *hooked };
                let out = Out { i, timers, maker, rtt, ends: *ends };
                r.tick(&mut Cx { now: due, frames: cx.frames }, slot, policy, class, out);
                let to = r.tx;
                return self.flows.measure_left(i, to, due);
            }
        }
        self.release_other(cx, i, port);
    }

    /// As [`Gateway::release`], of any flow.
    #[inline(never)]
    fn release_other(&mut self, cx: &mut Cx<'_>, i: FlowId, port: Port) {
        let r = &self.flows.table[i];
        if r.has(flag::CLOSED) {
            return self.forget(cx, i);
        }
        let due = r.timer().min(cx.now);
        let blocked = self.flows.blocked.was(port, due);
        let too_late = due < cx.now && cx.now.since(due) > self.flows.policy(r).release.catch_up();
        // What has passed since is looked at as of now.
        let looks = r.has(flag::GRANTED);
        let now = if blocked || too_late || looks { cx.now } else { due };
        let cx = &mut Cx { now, frames: cx.frames };
        let regular = self.is_regular(i);
        if regular {
            self.flows.table[i].catch_up(&self.flows.slots[i]);
        } else if !self.prepare(cx, i) {
            return;
        }
        self.tick(cx, i, blocked);
        if !regular {
            self.flows.close_if_done(i, now);
        }
    }

    fn is_regular(&self, i: FlowId) -> bool {
        #[cfg(test)]
        if self.always_long {
            return false;
        }
        let state = (self.flows.generation, self.flows.table.epoch());
        self.flows.table[i].is_regular(&self.flows.slots[i], state) && self.flows.is_engaged(i)
    }

    /// Finds out what there is to know of a flow whose time has come, and deals with it. True if that is a
    /// release time.
    fn prepare(&mut self, cx: &mut Cx<'_>, i: FlowId) -> bool {
        let now = cx.now;
        if !self.revise(cx, i) {
            return false;
        }
        let look = self.flows.granted(i);
        self.flows.follow(i, now);
        let engaged = self.flows.is_engaged(i);
        let r = &mut self.flows.table[i];
        if let Some(look) = look {
            self.flows.grant_again(i, now, look);
        } else if r.takes_steps() && r.has(flag::WAITING) {
            r.set(flag::WAITING, false);
            self.release_timely(cx, i);
        } else if r.takes_turns() {
            r.set(flag::WAITING, false);
            self.flows.enlist(i, now);
        } else if r.held() == 0 && r.law.pace().lag() == 0 {
            r.set(flag::WAITING, false);
            r.law.pace_mut().stop(now);
        } else if !engaged {
            let before = self.flows.held(i);
            self.pass_held(cx, i, self.flows.table[i].step());
            self.flows.note_held(i, before);
        } else if r.has(flag::WAITING) {
            self.end_gap(cx, i);
        } else {
            return true;
        }
        self.flows.close_if_done(i, now);
        false
    }

    /// The next ACK may follow the last.
    fn end_gap(&mut self, cx: &mut Cx<'_>, i: FlowId) {
        let (before, depth) = (self.flows.held(i), self.flows.policy(&self.flows.table[i]).release.depth());
        let r = &mut self.flows.table[i];
        let last = Time::from_nanos(r.law.pace().due);
        r.set(flag::WAITING, false);
        if r.law.pace_mut().arrive(cx.now, before.bytes, depth) == Arrival::Schedule {
            let due = r.timer();
            self.flows.start_timer(i, due);
        } else if !self.generate(cx, i, self.flows.table[i].rx, cx.now) {
            self.flows.table[i].law.pace_mut().refund(before.bytes);
            self.flows.wait(i, cx.now);
        } else {
            self.flows.grant_busy(i, cx.now, last, before.bytes);
        }
        self.flows.note_held(i, before);
    }

    /// A release time of a backlogged flow, whose port was `blocked` then. Those that it has missed are given
    /// up.
    fn tick(&mut self, cx: &mut Cx<'_>, i: FlowId, blocked: bool) {
        let Gateway { flows, outbox, .. } = self;
        let Register { table, slots, timers, stats, classes, config, marks, hooked, ends, .. } = flows;
        let (r, slot) = (&mut table[i], &slots[i]);
        let (policy, class, _) = classes.of_flow(r.class);
        let made_up = MADE_UP.max(r.law.pace().period().saturating_mul(2));
        let most = policy.release.catch_up();
        class.missed_releases +=
            r.law.pace_mut().skip_missed(cx.now, if blocked { most.min(made_up) } else { most });
        let rtt = r.rtt(config.assumed_rtt);
        let maker = Maker { outbox, stats, marks: (marks, i.index()), hooked: *hooked };
        r.tick(cx, slot, policy, class, Out { i, timers, maker, rtt, ends: *ends });
        let to = r.tx;
        self.flows.measure_left(i, to, cx.now);
    }
}

/// Destination of a flow's release.
pub(super) struct Out<'a> {
    i: FlowId,
    timers: &'a mut Timers<2>,
    maker: Maker<'a>,
    rtt: Duration,
    /// True if its window is the receiver's own.
    ends: bool,
}

impl Record {
    /// Returns whether the flow is in the order of its releases and holds something, and its record says all
    /// of it but what has moved forward in its slot. `state` is the generation and the epoch that it is to be
    /// of.
    #[inline(always)]
    fn is_regular(&self, slot: &Slot, state: (u16, u16)) -> bool {
        self.flags & ASKED == flag::SYNCED
            && self.rx != self.tx
            && (self.generation, self.epoch) == state
            && !slot.tx().is_after(self.tx)
    }

    /// A release time of the flow, which is backlogged: as much leaves as the policy says, and its timer is
    /// armed for the next.
    #[inline(always)]
    fn tick(
        &mut self,
        cx: &mut Cx<'_>,
        slot: &Slot,
        policy: &AckControl,
        class: &mut ClassStats,
        out: Out<'_>,
    ) {
        let Out { i, timers, mut maker, rtt, ends } = out;
        let before = self.held_now();
        let at = Time::from_nanos(self.law.pace().due);
        let lags = self.law.pace().lag() > 0;
        let tick = policy.release.tick(&mut self.law, rtt, self.mss, before.bytes);
        class.slow_starts += u64::from(tick.entered_slow_start);
        let window = if ends { &Window::Keep } else { &policy.window };
        let wanted = self.tx.plus(tick.release);
        let mut limit = self.window_limit(window, rtt);
        let (to, field) = window::on_grid(self, wanted, limit);
        let kept = wanted.since(to);
        if kept != 0 {
            self.change_release(kept, rtt, policy.release.depth());
            limit = self.window_limit(window, rtt);
        }
        let tells = tick.release > 0 || lags && self.edge_moves(limit);
        let bytes = to.since(self.tx);
        if tells && !maker.make(cx, self, slot, class, &NewAck { to, at, limit, field }) {
            self.law.pace_mut().refund(bytes);
        }
        let held = self.held_now();
        class.note_released(before, held);
        if held.bytes == 0 && self.law.pace().lag() == 0 {
            self.law.pace_mut().stop(at);
        } else {
            self.flags |= flag::ARMED;
            timers.arm_again(wheel(ack_out(self)), i.0, Time::from_nanos(self.law.pace().due));
        }
    }

    /// Returns the bytes of the flow's rate in a period.
    pub(super) fn step(&self) -> u32 {
        let pace = self.law.pace();
        let step = pace.rate().map_or(0, |rate| rate.bytes_in(pace.period()));
        step.min(u64::from(u32::MAX)) as u32
    }

    /// Returns the due time of the flow's timer. A flow whose turns are ACKs has one for its first ACK, if
    /// that has a time of its own, or for a look at a grant, which is as of the time at which that is found
    /// out.
    pub(super) fn timer(&self) -> Time {
        match self.kept() {
            Kept::Rate(pace) if self.has(flag::WAITING) => Time::from_nanos(pace.due) + gap(pace),
            Kept::Rate(pace) => Time::from_nanos(pace.due),
            Kept::Turn(turn) => turn.free_from(),
            Kept::Steps(steps) if self.has(flag::WAITING) => Time::from_nanos(steps.delayed().next),
            Kept::Steps(_) => Time::ZERO,
        }
    }

    /// Corrects a release of which `kept` bytes stay held. Below 0, that many more than meant leave.
    fn change_release(&mut self, kept: u32, rtt: Duration, depth: u32) {
        match kept as i32 {
            0.. => self.law.pace_mut().refund(kept),
            _ => self.law.pace_mut().acknowledge_early(kept.wrapping_neg(), None, rtt, depth),
        }
    }

    /// Returns whether an ACK now would follow the last immediate one too soon. A policer, which has a bucket
    /// of `depth`, makes no ACKs fewer.
    pub(super) fn is_soon(&self, now: Time, depth: u32) -> bool {
        depth == 0 && now < Time::from_nanos(self.law.pace().due) + gap(self.law.pace())
    }
}

/// Time between two ACKs of a flow that is not backlogged. Credit is earned meanwhile, so its rate is the
/// same.
pub(super) fn gap(pace: &Pace) -> Duration {
    GAP.min(pace.period())
}
