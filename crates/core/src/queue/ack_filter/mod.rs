//! Filtering of ACKs in front of a slow channel (Barakat and Altman, "On ACK Filtering on a Slow Reverse Channel", 2000; sections are the
//! paper's).
//!
//! A cumulative ACK makes older ones of its flow that still wait redundant ([`crate::ack::filter`]). Erasing them keeps the queue short, but a
//! sender in slow start grows by the ACKs that it gets. So the policies differ in when ACKs are erased ([`Policy`]). The ACK that comes takes the
//! place of the oldest one that it erases. Nothing else is touched, and the packets of a flow keep their order.
//!
//! - **Use** is measured where packets leave, by time sliding window ([`meter`]). The paper begins to filter a flow when its
//!   rate "exceeds the slow channel bandwidth divided by the number of active connections", which with one flow never happens; here it
//!   begins above [`Params::on`] times that, and ends below [`Params::off`]. It is filtered, too, while more of its ACKs wait than its share carries in a round
//!   trip. Flows of data count as active.
//! - **Service** in the order of arrival, or for each flow in turn by bytes: then a bulk upload takes its share and no more, and so do
//!   ACKs. A flow of which something begins to wait has its turn next, once in a round. What is erased is charged to nobody.
//! - **Full queues** (§4.2): what comes is dropped where nothing better is known. With [`Policy::Delayed`], while nothing is filtered, the flow that has most
//!   waiting loses its oldest packet. With [`Policy::DelayedPerFlow`] so does the flow with the fastest ACKs, or the longest flow if it has data
//!   waiting. "Most" is to a factor of two.
//! - **State** is bounded: flows are active no more as their rates disappear. When more than [`Params::flows`] are active, filtering is
//!   classical, to which the others converge (§4.1); with twice as many, further flows are not told apart and not filtered.
//!
//! Each call takes constant time, whatever waits and however many flows there are: an ACK is compared with those that it erases and one more,
//! and erases [`ERASED`] at most.

use super::backlog::Backlog;
use super::limit::{Bound, QueueLimit};
use super::links::Ends;
use super::rounds::Rounds;
use super::sizes::Sizes;
use super::Discipline;
use crate::ack::filter::{Ack, Told, ACCECN_MOST};
use crate::flow::Key;
use crate::frame::{Charge, Frames, Head, Waiting};
use crate::node::Cx;
use crate::rate::Rate;
use crate::stats::DropReason;
use crate::time::Time;
use crate::wire::{self, Flags, Packet};
use flows::Flows;
use gauge::Gauge;
use nodes::Nodes;

mod flows;
mod gauge;
mod meter;
mod nodes;
mod params;
#[cfg(test)]
mod tests;

pub use params::{Measure, Params, Policy, Service, Threshold};

/// ACKs that one ACK erases at most; the next one goes on.
const ERASED: usize = 64;

/// See the [module documentation](self).
#[derive(Debug)]
pub struct AckFilter {
    policy: Policy,
    service: Service,
    flows: Flows,
    /// Flows whose rates are measured.
    most: u32,
    nodes: Nodes,
    /// Of [`Service::Fifo`].
    order: Ends,
    /// Of [`Service::RoundRobin`].
    rounds: Rounds,
    lengths: Sizes,
    speeds: Sizes,
    gauge: Gauge,
    holds: Bound,
    pub(super) backlog: Backlog,
}

/// A packet that has been taken out.
struct Taken {
    waiting: Waiting,
    flow: u32,
    ack: Option<Ack>,
    /// Since when its place was taken.
    since: Time,
}

impl AckFilter {
    /// A queue in front of `rate` that holds `limit`.
    pub fn new(params: Params, limit: QueueLimit, rate: Rate) -> AckFilter {
        let most = params.flows.clamp(1, 1 << 20);
        AckFilter {
            policy: params.policy,
            service: params.service,
            flows: Flows::new(2 * most, params.seed),
            most,
            nodes: Nodes::default(),
            order: Ends::EMPTY,
            rounds: Rounds::new(params.quantum),
            lengths: Sizes::EMPTY,
            speeds: Sizes::EMPTY,
            gauge: Gauge::new(&params, rate),
            holds: Bound::new(limit, rate),
            backlog: Backlog::default(),
        }
    }

    /// Flows that are active now: of tests and samplers.
    pub fn active_flows(&self) -> u32 {
        self.flows.active()
    }

    /// A packet arrives: its flow, and what it says if it is a pure ACK.
    fn meet(&mut self, frames: &Frames, waiting: &Waiting, now: Time) -> (u32, Option<Ack>) {
        let active = self.flows.active();
        self.flows.expire(|flow| self.gauge.is_over(flow, active, now));
        let frame = frames.parked(&waiting.frame);
        let bytes = frames.bytes(frame);
        let Ok(packet) = wire::any_packet(bytes, frame.len()) else {
            return (self.flows.find(Key::default(), now), None);
        };
        let i = self.flows.find(Key::of_packet(bytes, &packet), now);
        if i == self.flows.rest() {
            return (i, None);
        }
        match Ack::read(bytes, frame.len(), &packet, frame.checksum) {
            Some(mut ack) => {
                self.learn(i, &mut ack, now);
                (i, Some(ack))
            }
            None => {
                self.note_opening(i, bytes, &packet, now);
                (i, None)
            }
        }
    }

    fn learn(&mut self, i: u32, ack: &mut Ack, now: Time) {
        let flow = &mut self.flows.table[i as usize];
        if let Some(opened) = flow.opened.take() {
            self.gauge.note_handshake(now.since(opened));
        }
        let beyond = flow.seen.learn(ack);
        if beyond > 0 {
            self.gauge.note_progress(beyond, flow.mss);
        }
    }

    /// A SYN begins the flow anew, a RST ends it.
    fn note_opening(&mut self, i: u32, bytes: &[u8], packet: &Packet, now: Time) {
        let Some(tcp) = wire::tcp(bytes, packet).ok().filter(|_| !packet.fragment) else { return };
        if !tcp.flags.intersects(Flags::SYN.with(Flags::RST)) {
            return;
        }
        let flow = &mut self.flows.table[i as usize];
        flow.seen.forget();
        flow.told = Told::default();
        if tcp.flags.contains(Flags::SYN) {
            let options = wire::tcp_options(bytes, packet, &tcp).unwrap_or_default();
            flow.opened = Some(now);
            flow.mss = options.mss.unwrap_or(0);
            flow.seen.begin(options.window_scale);
        }
    }

    /// How many ACKs of the flow one that comes may erase.
    fn may_erase(&mut self, i: u32, charge: Charge, now: Time) -> usize {
        let all = |filtered| if filtered { ERASED } else { 0 };
        let measured = matches!(self.policy, Policy::Delayed | Policy::DelayedPerFlow);
        let active = self.flows.active();
        if measured && active > self.most {
            self.backlog.stats.fallback += 1;
            return ERASED;
        }
        let flow = &mut self.flows.table[i as usize];
        match self.policy {
            Policy::None => 0,
            Policy::Static(threshold) => {
                let most = match threshold {
                    Threshold::Acks(n) => n.into(),
                    Threshold::Auto => self.gauge.threshold(charge.bytes),
                };
                usize::from(u64::from(flow.acks) >= most)
            }
            Policy::Classical => ERASED,
            Policy::Delayed => all(self.gauge.is_used(now)),
            Policy::DelayedPerFlow => all(self.gauge.uses_its_share(flow, active, charge.bytes, now)),
        }
    }

    /// Erases what the ACK that comes makes redundant. The place that it takes, if it erases anything, and how many it stands for.
    fn make_place(&mut self, cx: &mut Cx<'_>, i: u32, newer: &Ack, charge: Charge) -> Option<(u32, u8)> {
        let (mut place, mut stands_for) = (None, 1u8);
        for _ in 0..self.may_erase(i, charge, cx.now) {
            let flow = &self.flows.table[i as usize];
            let before = |n: u32| self.nodes.all[n as usize].own.before();
            let Some(n) = place.map_or(flow.waiting.last(), before) else { break };
            let node = &self.nodes.all[n as usize];
            let Some(older) = &node.ack else { break };
            let both = stands_for.saturating_add(node.stands_for);
            let hides = flow.seen.is_accecn() && both > ACCECN_MOST;
            if hides || !older.is_redundant(newer, &flow.told) {
                break;
            }
            self.erase(cx, n);
            if let Some(later) = place.replace(n) {
                self.unlink(later);
            }
            stands_for = both;
        }
        place.map(|n| (n, stands_for))
    }

    /// The ACK in a place goes; the place stays.
    fn erase(&mut self, cx: &mut Cx<'_>, n: u32) {
        let node = &mut self.nodes.all[n as usize];
        let Some(waiting) = node.waiting.take() else { return };
        let flow = &mut self.flows.table[node.flow as usize];
        flow.count_out(waiting.charge, true);
        self.backlog.leave(waiting.charge);
        self.backlog.absorb(cx, waiting.frame);
    }

    /// The place goes.
    fn unlink(&mut self, n: u32) {
        let flow = self.nodes.all[n as usize].flow;
        if self.service == Service::Fifo {
            self.order.remove(&mut self.nodes.all, n, |node| &mut node.order);
        }
        self.flows.table[flow as usize].waiting.remove(&mut self.nodes.all, n, |node| &mut node.own);
        self.nodes.free(n);
    }

    /// The ACK takes a place that another one had.
    fn take_place(&mut self, (n, stands_for): (u32, u8), waiting: Waiting, ack: Ack, now: Time) {
        let node = &mut self.nodes.all[n as usize];
        let (i, charge) = (node.flow, waiting.charge);
        (node.waiting, node.ack, node.stands_for) = (Some(waiting), Some(ack), stands_for);
        self.flows.table[i as usize].count_in(charge, true);
        self.backlog.enter(charge);
        self.sort(i, now);
    }

    /// A packet waits behind all others of its flow.
    fn add(&mut self, i: u32, waiting: Waiting, ack: Option<Ack>, now: Time) {
        let charge = waiting.charge;
        let begins = self.flows.table[i as usize].packets == 0;
        let n = self.nodes.add(i, waiting, ack);
        let flow = &mut self.flows.table[i as usize];
        flow.count_in(charge, ack.is_some());
        flow.waiting.push(&mut self.nodes.all, n, |node| &mut node.own);
        self.backlog.enter_first(charge);
        if begins {
            self.flows.begin(i);
        }
        match self.service {
            Service::Fifo => self.order.push(&mut self.nodes.all, n, |node| &mut node.order),
            Service::RoundRobin if begins => self.rounds.begin_first(&mut self.flows.table, i),
            Service::RoundRobin => {}
        }
        self.sort(i, now);
    }

    /// What waits of a flow is another amount now.
    fn sort(&mut self, i: u32, now: Time) {
        let flow = &self.flows.table[i as usize];
        let length = (flow.packets > 0).then_some(flow.bytes);
        let speed = (flow.acks > 0).then(|| flow.ack_rate.at(now, self.gauge.window()));
        self.lengths.set(&mut self.flows.table, i, length, |flow| &mut flow.length);
        self.speeds.set(&mut self.flows.table, i, speed, |flow| &mut flow.speed);
    }

    /// Takes a packet out. Its turn is its taker's to end.
    fn take(&mut self, n: u32) -> Option<Taken> {
        let node = &mut self.nodes.all[n as usize];
        let (waiting, flow, ack, since) = (node.waiting.take()?, node.flow, node.ack, node.since);
        self.unlink(n);
        self.backlog.leave(waiting.charge);
        let of = &mut self.flows.table[flow as usize];
        of.count_out(waiting.charge, ack.is_some());
        if of.packets == 0 {
            self.flows.end(flow);
        }
        Some(Taken { waiting, flow, ack, since })
    }

    /// The packet that leaves next.
    fn next(&self) -> Option<u32> {
        match self.service {
            Service::Fifo => self.order.first(),
            Service::RoundRobin => self.flows.table[self.rounds.next()? as usize].waiting.first(),
        }
    }

    fn take_next(&mut self) -> Option<Taken> {
        let taken = self.take(self.next()?)?;
        if self.service == Service::RoundRobin {
            let ends = self.flows.table[taken.flow as usize].packets == 0;
            self.rounds.charge(&mut self.flows.table, taken.flow, taken.waiting.charge.bytes, ends);
        }
        Some(taken)
    }

    /// A packet of a flow leaves.
    fn note_left(&mut self, i: u32, ack: Option<&Ack>, bytes: u64, since: Time, now: Time) {
        let window = self.gauge.window();
        let flow = &mut self.flows.table[i as usize];
        flow.rate.bytes(now, bytes, window);
        if let Some(ack) = ack {
            flow.ack_rate.bytes(now, bytes, window);
            flow.told.note(ack);
        }
        self.gauge.note_left(now, bytes, ack.map(|_| since));
        self.sort(i, now);
    }

    /// Does what waits make room for what comes?
    fn makes_room(&mut self, now: Time) -> bool {
        match self.policy {
            Policy::None | Policy::Static(_) | Policy::Classical => false,
            Policy::Delayed => !self.gauge.is_used(now),
            Policy::DelayedPerFlow => true,
        }
    }

    /// The flow that loses its oldest packet.
    fn victim(&self) -> Option<u32> {
        let longest = self.lengths.most()?;
        let flow = &self.flows.table[longest as usize];
        match self.policy {
            Policy::DelayedPerFlow if flow.acks == flow.packets => self.speeds.most(),
            _ => Some(longest),
        }
    }

    /// Drops what is too much. Did the last packet that came go?
    fn shorten(&mut self, cx: &mut Cx<'_>, i: u32) -> bool {
        let mut dropped = false;
        while self.holds.is_exceeded(&self.backlog) {
            let Some(victim) = self.victim() else { break };
            let oldest = self.flows.table[victim as usize].waiting.first();
            let Some(taken) = oldest.and_then(|n| self.take(n)) else { break };
            self.backlog.drop(cx, taken.waiting.frame, DropReason::QueueFull);
            let ends = self.flows.table[victim as usize].packets == 0;
            if ends && self.service == Service::RoundRobin {
                self.rounds.end(&mut self.flows.table, victim);
                self.rounds.go_on();
            }
            dropped |= ends && victim == i;
            self.sort(victim, cx.now);
        }
        dropped
    }
}

impl Discipline for AckFilter {
    fn push(&mut self, cx: &mut Cx<'_>, waiting: Waiting) -> Option<DropReason> {
        let (i, ack) = self.meet(cx.frames, &waiting, cx.now);
        let charge = waiting.charge;
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
            return Some(self.backlog.drop(cx, waiting.frame, DropReason::QueueFull));
        }
        self.add(i, waiting, ack, cx.now);
        let dropped = self.shorten(cx, i);
        self.backlog.note_peak();
        dropped.then_some(DropReason::QueueFull)
    }

    fn pass(&mut self, cx: &mut Cx<'_>, waiting: &Waiting) {
        let (i, ack) = self.meet(cx.frames, waiting, cx.now);
        self.note_left(i, ack.as_ref(), waiting.charge.bytes, cx.now, cx.now);
        if self.flows.table[i as usize].packets == 0 {
            self.flows.touch(i);
        }
    }

    fn pop(&mut self, cx: &mut Cx<'_>) -> Option<Waiting> {
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
