//! Knowledge of a gateway about its flows and classes, and decisions by that. Nothing here sends a frame.
//!
//! - `handshake`: what SYN, FIN and RST tell about a flow; `belief`: what of a segment is believed, and which
//!   are let through; `follow`, `plain`: how a record follows its flow;
//! - `held`: what is held, and what waits behind it; `sizing`: how large a window may be;
//! - `turns`, `steps`: classes whose flows share a rate, and have turns of bytes or of ACKs;
//! - `grant`: what the hooks let pass without the gateway; `hooks`, `verdicts`: what they are told, and what
//!   is done in their place where there are none; `bound`: what no class exceeds, whatever its flows do;
//! - `generate`: an ACK out of a record; `quality`: what is measured of flows and classes;
//! - `classes`, `accounts`, `slots`, `stats`, `blocked`: the state that these work on.
//!
//! # A change of configuration
//!
//! A change of configuration while flows live. Nothing is done at once: each flow follows when it is next
//! touched, by a segment or its timer, so a change costs the same whatever the number of flows.
//!
//! # Classes whose flows share a rate
//!
//! They have a byte clock per class, and a deficit round robin over the flows that hold something.
//!
//! What its senders may send because of what leaves here is charged to the class's clock as
//! it leaves: first windows, releases, what a loss makes go early. What arrives without having been
//! permitted, since its sender's window grew, is charged as it arrives. While the clock is not ahead, the
//! flow whose turn it is gets its release. A flow that comes to hold something is *fresh* and goes before
//! those that have had their turn (FQ-CoDel, RFC 8290 §4.2), and a flow is *listed* until its turn comes and
//! nothing is held. No rate is computed for a flow: those that ask for less than the others get it, and the
//! others share the rest.
//!
//! Windows bound what is held, and with it what a sender that is let go may send at once: a flow's is its
//! share of the rate, for its round trip and what may wait here. The share is the rate over the average
//! number of flows listed. A window that became too large shrinks as its flow is released without its right
//! edge moving.
//!
//! Classes may be nested: then the clocks are a tree, and which class has a turn is found before the flow.
//!
//! The state of classes is in [`class_rate`](crate::systems::class_rate), that of queues in
//! [`postack`](crate::systems::postack).

pub(super) mod accounts;
pub(super) mod belief;
pub(super) mod blocked;
pub(super) mod bound;
pub(super) mod classes;
pub(super) mod follow;
pub(super) mod generate;
pub(super) mod grant;
pub(super) mod handshake;
pub(super) mod held;
pub(super) mod hooks;
pub(super) mod permits;
pub(super) mod plain;
pub(super) mod quality;
pub(super) mod segment;
pub(super) mod sizing;
pub(super) mod slots;
pub(super) mod stats;
pub(super) mod steps;
pub(super) mod turns;
pub(super) mod verdicts;

use crate::ack::{AckControl, Window};
use crate::classify::{ClassConfig, Compiled, Config, Direction};
use crate::flow::{flag, ClassId, FlowId, Key, Record, Table, Timers};
use crate::frame::Frame;
use crate::node::{Cx, Port, PortSet, LAN, WAN};
use crate::steer::{slot_flag, Bound, FlowBound, FlowQueues, Slot, Spill, Strangers, Tally};
use crate::systems::ack_shaper::Congestion;
use crate::systems::class_rate::{Share, Spills};
use crate::tcp::MarksOfFlows;
use crate::time::{Duration, Time};
use crate::track::Doubt;
use accounts::{ClassAccount, Kept};
use blocked::{wheel, Blocked};
use classes::Classes;
use core::cell::OnceCell;
use core::sync::atomic::Ordering::Relaxed;
use held::Held;
use quality::Measures;
use slots::{Places, Slots};
use stats::{ClassStats, FlowStats, GatewayStats};
use verdicts::Verdicts;

/// The flows and classes of a gateway: what is known of them, what they hold, when and how much of it may
/// leave, and what the hooks are told. It sends nothing: the [`Gateway`](super::Gateway) does, by what this
/// says.
pub struct Register {
    pub(super) config: Compiled,
    pub(super) table: Table,
    pub(super) slots: Slots,
    /// Hooks take, set back and stamp; otherwise the gateway does.
    pub(super) hooked: bool,
    /// Timers of the flows whose ACKs leave by each port, and behind them of the classes, by place.
    pub(super) timers: Timers<2>,
    pub(super) blocked: Blocked,
    pub(super) stats: Kept<GatewayStats>,
    pub(super) classes: Classes,
    /// Tallies of unresponsive traffic, by place of the class.
    pub(super) tallies: Places<Tally>,
    /// Bound of each class, by place.
    pub(super) bounds: Places<Bound>,
    /// Bounds of what has no readable addresses, in each direction.
    pub(super) unread: Places<Bound>,
    /// Record of each flow's own bound, by its place in the table.
    pub(super) flow_bounds: OnceCell<Places<FlowBound>>,
    /// Bounds of flows that have no place, in a gateway without hooks.
    pub(super) strangers: OnceCell<Strangers>,
    /// Virtual queues of flows that ACKs do not slow, where hooks are simulated or there are none.
    pub(super) queues: OnceCell<FlowQueues>,
    /// Queues of flows that have spilled, if any may.
    pub(super) spills: Option<Box<Spills>>,
    /// Counts of these that hooks share.
    pub(super) spill_counts: Option<&'static [Spill]>,
    /// Packets of flows that have spilled which came before this time have been overtaken.
    pub(super) spilled_from: Time,
    /// Flows of some class may spill, of uploads and downloads.
    pub(super) spilling: [bool; 2],
    /// Some class has a bound, of uploads and downloads.
    pub(super) bounded: [bool; 2],
    /// Each flow of some class has one.
    pub(super) bounded_flows: [bool; 2],
    /// Congestion of classes.
    pub(super) congestion: Congestion,
    /// Generation of the configuration. A record with another one has not followed it yet.
    pub(super) generation: u16,
    /// Ports at which ACKs of controlled flows came in at the start: `(lan, wan)`.
    pub(super) hooked_ports: (bool, bool),
    pub(super) verdicts: Verdicts,
    /// Records from here on may have slots that the kernel was not told of: those of an earlier engine.
    pub(super) unshown: u32,
    /// A class has its windows sized for the delay of the WAN as measured.
    pub(super) measures: bool,
    /// Quality of flows and classes.
    pub(super) measured: Measures,
    /// Counters of each AccECN flow, by its place in the table.
    pub(super) marks: MarksOfFlows,
    /// It has been told to stop: windows are the receivers' own.
    pub(super) ends: bool,
    /// Time at which the last frame came.
    pub(super) now: Time,
}

impl Register {
    /// Records of an earlier engine belong to the classes of this configuration; what they hold is scheduled.
    pub(super) fn take_over(&mut self) {
        for i in self.table.ids() {
            if !self.table[i].has(flag::USED) {
                self.slots[i].close();
                continue;
            }
            let key = self.table[i].key;
            match self.controls(direction_of(&self.table[i]), &key) {
                Some(class) => {
                    let r = &mut self.table[i];
                    if !(self.classes.outlive() && r.class == class) {
                        self.classes[class].flows += 1;
                        r.acked = 0;
                    }
                    (r.doubt, r.generation) = (Doubt::default(), self.generation);
                    self.table.set_class(i, class);
                    self.classes.join(class);
                    self.resume(i);
                }
                None => {
                    self.slots[i].close();
                    self.table.remove(i);
                }
            }
        }
        self.stats.flows = self.table.len().into();
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        self.config.config()
    }

    /// As above, with its rules compiled.
    pub fn compiled(&self) -> &Compiled {
        &self.config
    }

    /// Returns the memory shared with the hooks: one slot for each record.
    pub fn slots(&self) -> &[Slot] {
        self.slots.all()
    }

    /// The engine was away for so long that frames passed without it. The slots tell what the senders
    /// learnt meanwhile; it is not owed. What is held stays held.
    pub fn resync(&mut self) {
        self.table.next_epoch();
        self.stats.resynced += 1;
    }

    #[inline(always)]
    pub(super) fn policy(&self, r: &Record) -> &AckControl {
        self.classes.policy(r.class)
    }

    /// From now on this says which classes are congested.
    pub fn heed(&mut self, congestion: Congestion) {
        self.congestion = congestion;
    }

    /// Returns whether ACKs of the flow may be held now.
    #[inline]
    pub(super) fn is_engaged(&self, i: FlowId) -> bool {
        let r = &self.table[i];
        let index = self.classes.index(r.class).map(|index| index as u32);
        self.policy(r).engages(&self.congestion, index)
    }

    pub(super) fn rtt(&self, r: &Record) -> Duration {
        r.rtt(self.config.assumed_rtt)
    }

    /// The place of the class that controls the flow's ACKs.
    pub(super) fn controls(&self, direction: Direction, key: &Key) -> Option<ClassId> {
        let class = self.config.classify(direction, key)?;
        self.config.classes[class].ack.is_some().then(|| self.classes.place(class))
    }

    /// The record is free for another flow.
    pub(super) fn remove(&mut self, i: FlowId) {
        self.give_up_least(i);
        self.classes.leave(self.table[i].class);
        self.table.remove(i);
        self.stats.flows = self.table.len().into();
    }

    /// Returns the due time of the first release by one of these ports.
    #[inline]
    pub(super) fn next_release(&self, ports: PortSet) -> Option<Time> {
        self.first(ports).map(|(due, _)| self.blocked.earliest(due))
    }

    /// Returns the due time of the first timer, whatever its port; [`Time::MAX`] without one.
    #[inline]
    pub(super) fn first_timer(&self) -> Time {
        self.timers.next(wheel(LAN)).min(self.timers.next(wheel(WAN)))
    }

    /// Returns the due time of the first timer of flows whose ACKs leave by one of these ports, and that
    /// port.
    #[inline]
    pub(super) fn first(&self, ports: PortSet) -> Option<(Time, Port)> {
        earliest(ports, |port| self.timers.next(wheel(port)))
    }

    /// The flow, which has no timer, gets one.
    #[inline]
    pub(super) fn start_timer(&mut self, i: FlowId, due: Time) {
        let r = &mut self.table[i];
        r.flags |= flag::ARMED;
        self.timers.arm(wheel(ack_out(r)), i.0, due);
    }

    /// The flow has no timer any more, if it had one.
    pub(super) fn stop_timer(&mut self, i: FlowId) {
        let r = &mut self.table[i];
        if r.has(flag::ARMED) {
            self.timers.disarm(wheel(ack_out(r)), i.0);
        }
        r.flags &= !(flag::ARMED | flag::WAITING);
    }

    pub(super) fn absorb(&mut self, cx: &mut Cx<'_>, i: FlowId, frame: Frame) {
        self.count_absorbed(i);
        cx.frames.absorb(frame);
    }

    /// An ACK of the flow has been absorbed.
    #[inline]
    fn count_absorbed(&mut self, i: FlowId) {
        self.classes[self.table[i].class].acks_absorbed += 1;
        self.stats.ledger.absorbed += 1;
    }

    /// Totals of the gateway.
    pub fn stats(&self) -> &GatewayStats {
        &self.stats
    }

    /// Totals of each class, in the order of the configuration.
    pub fn class_stats(&self) -> impl ExactSizeIterator<Item = &ClassStats> {
        self.classes.stats()
    }

    /// The accounts of its classes, by place, with which another gateway goes on.
    pub fn accounts(&self) -> impl Iterator<Item = ClassAccount> + '_ {
        self.classes.accounts()
    }

    /// The flows in the table, in no particular order.
    pub fn flows(&self) -> impl Iterator<Item = FlowStats> + '_ {
        let shown = |r: &&Record| r.has(flag::USED) && !r.key.is_opening();
        self.table.records().iter().filter(shown).filter_map(|r| self.shown(r))
    }

    /// The flows that were active in the last `within` before `now`, 10 s at least, the latest first; none
    /// whose connection is over. Takes time for these only.
    pub fn active(&self, now: Time, within: Duration) -> impl Iterator<Item = FlowStats> + '_ {
        let within_ms = (within.as_nanos() / 1_000_000).min(u64::from(u32::MAX / 2)) as u32;
        let active = self.table.active(millis(now), within_ms).filter(|&i| {
            let r = &self.table[i];
            !r.key.is_opening() && !r.has(flag::CLOSED)
        });
        active.filter_map(|i| self.shown(&self.table[i]))
    }

    /// The flow with this key, if it is in the table.
    pub fn flow(&self, key: &Key) -> Option<FlowStats> {
        self.table.find(key).and_then(|i| self.shown(&self.table[i]))
    }

    /// The flow in the class that it has, or will have when it follows the configuration.
    pub(super) fn shown(&self, r: &Record) -> Option<FlowStats> {
        let place =
            if r.generation == self.generation { r.class } else { self.controls(direction_of(r), &r.key)? };
        Some(FlowStats::of(r, self.classes.index(place)?))
    }

    /// The flow records, used or not.
    pub fn records(&self) -> &[Record] {
        self.table.records()
    }

    /// Counts bytes acknowledged towards the sender of a flow.
    #[inline]
    pub(super) fn count_acked(&mut self, i: FlowId, bytes: u32) {
        let r = &mut self.table[i];
        r.count_acked(&mut self.classes[r.class], bytes);
    }

    /// Takes another configuration. Flows keep their numbers and handshakes, classes of the same name and
    /// direction what they counted. What a flow derives from its class (its rate, period and window) follows
    /// when it is next touched, and so does the class itself; what is held by a flow that no class controls
    /// any more is passed on then. The seed stays.
    pub fn reconfigure(&mut self, config: impl Into<Compiled>) -> Result<Changed, Unchangeable> {
        let mut config = config.into();
        if config.max_flows != self.config.max_flows {
            return Err(Unchangeable::MaxFlows);
        }
        let ((lan, wan), (had_lan, had_wan)) = (config.ack_ports(), self.hooked_ports);
        if self.hooked && (lan && !had_lan || wan && !had_wan) {
            return Err(Unchangeable::Ports);
        }
        let found = config.found_in(&self.config);
        if !self.classes.have_room(&config, found, self.tallies.most()) {
            return Err(Unchangeable::Classes);
        }
        let nested = self.classes.are_nested();
        self.classes.change(&config, found);
        config.set_seed(self.config.seed);
        let reclassified = config.takes_other_flows_than(&self.config);
        if reclassified {
            self.verdicts.forget_passing();
        }
        self.tallies.grow(self.classes.len());
        self.bounds.grow(self.classes.len());
        self.measured.classes.grow(self.classes.len());
        self.timers.grow(self.table.capacity() + self.classes.len());
        if nested || self.classes.are_nested() {
            self.stand_anew();
        }
        self.generation = self.generation.wrapping_add(1);
        self.measures = config.classes.iter().any(ClassConfig::measures_delay);
        let old = core::mem::replace(&mut self.config, config);
        self.tell_tallies();
        self.set_bounds();
        self.begin_flow_bounds();
        Ok(Changed { reclassified, old })
    }

    /// Forgets what flows sent in the last second: it kept to the rates of then, and those of now may be
    /// lower.
    fn begin_flow_bounds(&self) {
        let bounds = self.flow_bounds.get().map_or(&[][..], Places::all);
        bounds.iter().for_each(FlowBound::forget);
    }

    /// Classes stand where they belong in their trees, which are others.
    fn stand_anew(&mut self) {
        let now = self.now;
        for place in self.classes.ids() {
            self.tree(place).disarm(place);
        }
        for place in self.classes.ids() {
            if self.classes.share(place).is_some_and(Share::offers) {
                self.tree(place).settle(place, now);
            }
        }
    }

    /// The flow refers to another class, and what it holds is held there.
    pub(super) fn move_to(&mut self, cx: &mut Cx<'_>, i: FlowId, place: ClassId) {
        self.clear_acks(cx, i);
        self.unlist(i, self.now);
        self.give_up_least(i);
        self.end_grant(i);
        let (old, held) = (self.table[i].class, self.held(i));
        self.classes[old].held_bytes -= u64::from(held.bytes);
        self.classes[old].held_acks -= u64::from(held.acks);
        self.classes.leave(old);
        self.classes.join(place);
        self.classes[place].flows += 1;
        self.table.set_class(i, place);
        self.note_held(i, Held { bytes: 0, acks: 0 });
    }

    /// Derives what the flow has of its class.
    pub(super) fn derive(&mut self, i: FlowId, now: Time) {
        if !self.table[i].has(flag::SYNCED) {
            return; // it has nothing yet
        }
        self.follow_law(i, now);
        let policy = self.classes.policy(self.table[i].class);
        let sized = matches!(policy.window, Window::Size { .. });
        let r = &mut self.table[i];
        let segments = r.segments();
        policy.release.retune(&mut r.law, &segments, sized);
        if r.takes_turns() && !r.has(flag::CLOSED) {
            self.enlist(i, now); // of another class
        }
        let r = &self.table[i];
        let slot = &self.slots[i];
        let others = slot.flags.load(Relaxed) & !slot_flag::SIZED;
        slot.flags
            .store(others | if sized && r.has(flag::SCALE_KNOWN) { slot_flag::SIZED } else { 0 }, Relaxed);
        let limit = self.window_limit(&self.table[i]);
        self.slots[i].width.store(limit.unwrap_or(0), Relaxed);
    }

    /// Begins the law of release of the flow's class, if the flow keeps another law's state. Held bytes wait
    /// by it.
    fn follow_law(&mut self, i: FlowId, now: Time) {
        let policy = *self.policy(&self.table[i]);
        if self.table[i].obeys(&policy) {
            return;
        }
        self.unlist(i, now);
        self.give_up_least(i);
        if !self.table[i].has(flag::CLOSED) {
            self.end_grant(i);
            self.stop_timer(i);
        }
        let r = &mut self.table[i];
        r.law = policy.release.begin(&r.segments(), false, now);
        r.flags &= !flag::LOSS;
        r.obey(&policy);
        if !r.has(flag::CLOSED) {
            self.wait(i, now);
        }
    }
}

/// Reason why a running gateway cannot take a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unchangeable {
    /// The number of flows is that of the memory it was given.
    MaxFlows,
    /// ACKs come in on a port where none were controlled at the start, so the hooks do not take them.
    Ports,
    /// No place is free for the classes of the configuration: too many went while flows still refer to them.
    Classes,
}

impl core::fmt::Display for Unchangeable {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Unchangeable::MaxFlows => "the number of flows cannot change while it runs",
            Unchangeable::Ports => "a direction in which nothing was controlled cannot be while it runs",
            Unchangeable::Classes => "there is no room for these classes while it runs: restart the gateway",
        })
    }
}

/// Work that a change of configuration leaves.
pub struct Changed {
    /// A flow that passes untouched may be one to control now: the hooks are to forget which flows pass.
    pub reclassified: bool,
    /// The configuration of before. Dropping it takes time in proportion to its classes, and can be done by
    /// another thread.
    pub old: Compiled,
}

pub(super) fn direction_of(r: &Record) -> Direction {
    if r.has(flag::INWARD) {
        Direction::In
    } else {
        Direction::Out
    }
}

/// The port among these at which something is due first, and when. [`Time::MAX`] stands for nothing.
#[inline]
pub(super) fn earliest(ports: PortSet, due: impl Fn(Port) -> Time) -> Option<(Time, Port)> {
    let due = |port| if ports.contains(port) { due(port) } else { Time::MAX };
    let (lan, wan) = (due(LAN), due(WAN));
    let first = if wan < lan { (wan, WAN) } else { (lan, LAN) };
    (first.0 < Time::MAX).then_some(first)
}

/// The port towards the data's sender, where ACKs leave.
pub(super) fn ack_out(r: &Record) -> Port {
    if r.has(flag::INWARD) {
        WAN
    } else {
        LAN
    }
}

pub(super) fn millis(t: Time) -> u32 {
    (t.as_nanos() / 1_000_000) as u32
}
