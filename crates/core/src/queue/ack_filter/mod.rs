//! Filtering of ACKs in front of a slow channel (Barakat and Altman, "On ACK Filtering on a Slow Reverse
//! Channel", 2000; sections are the paper's).
//!
//! A cumulative ACK makes older queued ones of its flow redundant
//! ([`redundant`](crate::systems::ack_filter::redundant)). Erasing them keeps the queue short, but a sender
//! in slow start grows by the ACKs that it gets. The policies therefore differ in when ACKs are erased
//! ([`Policy`]). The arriving ACK takes the place of the oldest one that it erases. No other packet is
//! affected, and the packets of a flow keep their order.
//!
//! - **Use** is measured at departures, by time sliding window (`meter`). The paper begins to filter a flow
//!   when its rate "exceeds the slow channel bandwidth divided by the number of active connections", which
//!   with one flow never happens. Here filtering begins above [`Params::on`] times that, and ends below
//!   [`Params::off`]. A flow is also filtered while more of its ACKs wait than its share carries in a round
//!   trip, or if its sender counts bytes (`growth`): ACKs that wait before the last one of a burst then
//!   only delay it. Flows of data count as active.
//! - **Service** is in order of arrival, or round-robin over flows by bytes. With the latter a bulk upload
//!   gets its share and no more, and so do ACKs. A flow that becomes backlogged has the next turn, within its
//!   share. New flows share one quantum of such turns. Erased ACKs are not charged. With [`Params::hosts`]
//!   hosts take turns in this way, and the flows of each in rounds of their own (`turns`).
//! - **CoDel** ([`Params::codel`]) judges each flow's packets other than pure ACKs, as in
//!   [FQ-CoDel](super::fq_codel).
//! - **Full queues** (§4.2): the arriving packet is dropped unless a better choice is known. With
//!   [`Policy::Delayed`], while nothing is filtered, the flow with the largest backlog loses its oldest
//!   packet. With [`Policy::DelayedPerFlow`] that flow loses its oldest packet if it has data queued or if
//!   that packet is redundant. Otherwise the flow with the fastest ACKs loses one. With room for few packets
//!   the channel would be idle if it lost more. "Largest" and "fastest" are to a factor of two.
//! - **As published**: [`Rule::Published`] filters a flow by its rate alone, and [`Params::drop`] chooses
//!   what a full queue drops.
//! - **State** is bounded: flows become inactive as their rates disappear. When more than [`Params::flows`]
//!   are active, filtering is classical, to which the other policies converge (§4.1). Beyond twice as many,
//!   further flows share one entry and are not filtered.
//!
//! Each call takes constant time, whatever the backlog and the number of flows. An ACK is compared with those
//! that it erases and one more, and erases 64 at most.

use super::backlog::Backlog;
use super::codel::{self, Fate};
use super::limit::{Bound, QueueLimit};
use super::sizes::Sizes;
use super::{mark, Discipline};
use crate::base::linked::LinkedList;
use crate::frame::{Frames, Head, Waiting};
use crate::node::Cx;
use crate::rate::Rate;
use crate::stats::DropReason;
use crate::systems::ack_filter::redundant::Ack;
use crate::time::Time;
use flows::Flows;
use gauge::Gauge;
use nodes::Nodes;
use turns::Turns;

mod arrive;
mod erase;
mod flows;
mod full;
mod gauge;
mod nodes;
mod policy;
#[cfg(test)]
mod tests;
mod turns;

pub use crate::systems::ack_filter::{Drop, Host, Measure, Params, Policy, Rule, Service, Threshold};

/// See the [module documentation](self).
#[derive(Debug)]
pub struct AckFilter {
    policy: Policy,
    service: Service,
    rule: Rule,
    drop: Option<Drop>,
    flows: Flows,
    /// Most flows whose rates are measured.
    most: u32,
    nodes: Nodes,
    /// Order of [`Service::Fifo`].
    order: LinkedList,
    /// Order of [`Service::RoundRobin`].
    turns: Turns,
    /// CoDel of each flow's packets that are not pure ACKs.
    codel: Option<codel::Params>,
    lengths: Sizes,
    speeds: Sizes,
    gauge: Gauge,
    holds: Bound,
    pub(super) backlog: Backlog,
}

/// A packet removed from the queue.
struct Taken {
    waiting: Waiting,
    flow: u32,
    ack: Option<Ack>,
    /// Time since which its place was taken.
    since: Time,
}

impl AckFilter {
    /// Returns a queue of `limit` in front of `rate`.
    pub fn new(params: Params, limit: QueueLimit, rate: Rate) -> AckFilter {
        let most = params.flows.clamp(1, 1 << 20);
        AckFilter {
            policy: params.policy,
            service: params.service,
            rule: params.rule,
            drop: params.drop,
            flows: Flows::new(2 * most, params.seed),
            most,
            nodes: Nodes::default(),
            order: LinkedList::EMPTY,
            turns: Turns::new(params.hosts, params.quantum, params.seed),
            codel: params.codel,
            lengths: Sizes::EMPTY,
            speeds: Sizes::EMPTY,
            gauge: Gauge::new(&params, rate),
            holds: Bound::new(limit, rate),
            backlog: Backlog::default(),
        }
    }

    /// Returns the number of active flows, for tests and samplers.
    pub fn active_flows(&self) -> u32 {
        self.flows.active()
    }

    /// Appends a packet to its flow.
    fn add(&mut self, i: u32, waiting: Waiting, ack: Option<Ack>, now: Time) {
        let charge = waiting.charge;
        let begins = self.flows.table[i as usize].packets == 0;
        let n = self.nodes.add(i, waiting, ack);
        let flow = &mut self.flows.table[i as usize];
        flow.count_in(charge, ack.is_some());
        flow.waiting.push(&mut self.nodes.own(), n);
        self.backlog.enter_first(charge);
        if begins {
            flow.host = self.turns.host_of(&flow.key);
            self.flows.begin(i);
        }
        match self.service {
            Service::Fifo => self.order.push(&mut self.nodes.order(), n),
            Service::RoundRobin if begins => {
                self.turns.begin(&mut self.flows.table, i, charge.bytes);
            }
            Service::RoundRobin => {}
        }
        self.sort(i, now);
    }

    /// Updates the order of a flow after a change of its backlog.
    fn sort(&mut self, i: u32, now: Time) {
        let flow = &self.flows.table[i as usize];
        let length = (flow.packets > 0).then_some(flow.bytes);
        let speed = (flow.acks > 0).then(|| flow.ack_rate.at(now, self.gauge.window()));
        self.lengths.set(&mut self.flows.table, i, length, |flow| &mut flow.length);
        self.speeds.set(&mut self.flows.table, i, speed, |flow| &mut flow.speed);
    }

    /// Removes a place.
    fn unlink(&mut self, n: u32) {
        let flow = self.nodes.all[n as usize].flow;
        if self.service == Service::Fifo {
            self.order.remove(&mut self.nodes.order(), n);
        }
        self.flows.table[flow as usize].waiting.remove(&mut self.nodes.own(), n);
        self.nodes.free(n);
    }

    /// Removes a packet. The caller ends its turn.
    fn take(&mut self, n: u32) -> Option<Taken> {
        let node = &mut self.nodes.all[n as usize];
        let (waiting, flow, ack, since) = (node.waiting.take()?, node.flow, node.ack, node.since);
        self.unlink(n);
        self.backlog.leave(waiting.charge);
        let of = &mut self.flows.table[flow as usize];
        of.count_out(waiting.charge, ack.is_some());
        if of.packets == 0 {
            of.codel.found_nothing();
            self.flows.end(flow);
        }
        Some(Taken { waiting, flow, ack, since })
    }

    /// Returns the packet that leaves next.
    fn next(&self) -> Option<u32> {
        match self.service {
            Service::Fifo => self.order.first(),
            Service::RoundRobin => self.flows.table[self.turns.next()? as usize].waiting.first(),
        }
    }

    fn take_next(&mut self) -> Option<Taken> {
        let taken = self.take(self.next()?)?;
        if self.service == Service::RoundRobin {
            let ends = self.flows.table[taken.flow as usize].packets == 0;
            self.turns.charge(&mut self.flows.table, taken.flow, taken.waiting.charge.bytes, ends);
        }
        Some(taken)
    }

    /// Lets CoDel judge the packet that leaves next. Returns its flow if it was dropped. `dropped` is the
    /// flow of the packet that was dropped just before. ACKs are not judged: newer ones keep them few.
    fn signal(&mut self, cx: &mut Cx<'_>, dropped: Option<u32>) -> Option<u32> {
        let (codel, n) = (self.codel?, self.next()?);
        let node = &mut self.nodes.all[n as usize];
        let (i, waiting) = (node.flow, node.waiting.as_mut().filter(|_| node.ack.is_none())?);
        let flow = &mut self.flows.table[i as usize];
        let (waited, behind) = (cx.now.since(waiting.since), flow.bytes - waiting.charge.bytes);
        if flow.codel.judge(&codel, cx.now, waited, behind, dropped == Some(i)) == Fate::Pass {
            return None;
        }
        if codel.ecn && mark::mark(cx.frames.parked_bytes_mut(&waiting.frame)) {
            flow.codel.marked(&codel);
            self.backlog.stats.marks += u64::from(waiting.charge.packets);
            return None;
        }
        let taken = self.take(n)?;
        self.backlog.drop(cx, taken.waiting, DropReason::Aqm);
        self.end_lost(i, cx.now);
        Some(i)
    }

    /// Ends the turn of a flow whose last packet was dropped.
    fn end_lost(&mut self, i: u32, now: Time) {
        if self.flows.table[i as usize].packets == 0 && self.service == Service::RoundRobin {
            self.turns.end(&mut self.flows.table, i);
        }
        self.sort(i, now);
    }

    /// Notes a departing packet of a flow.
    fn note_left(&mut self, i: u32, ack: Option<&Ack>, bytes: u64, since: Time, now: Time) {
        let window = self.gauge.window();
        let flow = &mut self.flows.table[i as usize];
        flow.rate.bytes(now, bytes, window);
        let opens = core::mem::take(&mut flow.syn_waits);
        if opens {
            flow.opened = Some(now);
        }
        flow.growth.note_left(opens);
        if let Some(ack) = ack {
            flow.ack_rate.bytes(now, bytes, window);
            flow.told.note(ack);
        }
        self.gauge.note_left(now, bytes, ack.map(|_| since));
        self.sort(i, now);
    }
}

impl Discipline for AckFilter {
    fn push(&mut self, cx: &mut Cx<'_>, waiting: Waiting) -> Option<DropReason> {
        let (i, ack) = self.meet(cx.frames, &waiting, cx.now);
        let charge = waiting.charge;
        self.codel.iter_mut().for_each(|codel| codel.note_packet(charge));
        if let Some(ack) = ack {
            if let Some(place) = self.make_place(cx, i, &ack, charge) {
                self.take_place(place, waiting, ack, cx.now);
                return None;
            }
        }
        let fits = match self.makes_room(cx.now) {
            true => self.holds.admits_alone(charge),
            false => self.holds.admits(&self.backlog, charge),
        };
        if !fits {
            return Some(self.backlog.drop(cx, waiting, DropReason::QueueFull));
        }
        self.add(i, waiting, ack, cx.now);
        let dropped = self.shorten(cx, i);
        self.backlog.note_peak();
        dropped.then_some(DropReason::QueueFull)
    }

    fn pass(&mut self, cx: &mut Cx<'_>, waiting: Waiting) -> Option<Waiting> {
        let (i, ack) = self.meet(cx.frames, &waiting, cx.now);
        self.note_left(i, ack.as_ref(), waiting.charge.bytes, cx.now, cx.now);
        if self.flows.table[i as usize].packets == 0 {
            self.flows.touch(i);
        }
        Some(waiting)
    }

    fn pop(&mut self, cx: &mut Cx<'_>) -> Option<Waiting> {
        let mut dropped = None;
        while let Some(flow) = self.signal(cx, dropped) {
            dropped = Some(flow);
        }
        let Taken { waiting, flow, ack, since } = self.take_next()?;
        self.note_left(flow, ack.as_ref(), waiting.charge.bytes, since, cx.now);
        Some(waiting)
    }

    fn head(&self, _: &Frames) -> Option<Head> {
        self.nodes.head(self.next()?)
    }

    fn release(&mut self, _: &Frames) -> Option<Waiting> {
        let taken = self.take_next()?;
        self.sort(taken.flow, Time::ZERO);
        Some(taken.waiting)
    }

    fn set_limit(&mut self, limit: QueueLimit, rate: Rate) {
        self.holds = Bound::new(limit, rate);
        self.gauge.set_rate(rate);
    }
}
