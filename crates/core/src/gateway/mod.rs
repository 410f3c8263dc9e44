//! The gateway: a two-port node between LAN and WAN that controls the ACKs of the flows that its
//! classes take. Data is never held; frames that are not ACKs of a controlled flow leave at once.
//!
//! Two ways of use. Behind *hooks* ([`crate::steer`]: programs in the kernel, or the simulator's) it gets
//! what they take on [`LAN`] and [`WAN`], and copies of headers of what passed; what both sides must know of
//! a flow is in its [`Slot`], and which slot is whose they learn from [`Gateway::verdicts`]. Without hooks
//! every frame comes in on [`LAN`] and [`WAN`], and the gateway plays their part on the slots, with the same
//! functions.
//!
//! A segment arrives (`arrive`, `segment`), and its flow is looked up or made (`flows`):
//!
//! - `plain`: the short way of ACKs that tell nothing but progress of what is held already;
//! - `handshake`, `end`: what SYN, FIN and RST tell about a flow, and how one begins and ends;
//! - `admit`: is a segment of the receiver the flow's; `passing`: segments and flows that are let through;
//! - `follow`: how a record follows its flow;
//! - `path`: what happens to what acknowledges data;
//! - `ack_queue`: ACKs that wait themselves;
//! - `hold`: what is held; `release`: the times at which it goes; `blocked`: releases that cannot be carried
//!   out;
//! - `send`, `generate`: the ACKs that leave;
//! - `share`: classes whose flows share a rate;
//! - `grant`: what the hooks let pass without it;
//! - `place`: what tells more than progress and waits all the same;
//! - `marks`: the congestion marks of what is held;
//! - `sizing`: how large a window may be;
//! - `verdicts`: what the kernel is told of flows;
//! - `bound`: what no class exceeds, whatever its flows do;
//! - `classes`, `change`: another configuration while flows live.

mod accounts;
mod ack_queue;
mod admit;
mod announce;
mod arrive;
mod blocked;
mod bound;
mod change;
mod classes;
mod end;
mod flows;
mod follow;
mod generate;
mod grant;
mod handshake;
mod held;
mod hold;
mod marks;
mod outbox;
mod passing;
mod path;
mod place;
mod plain;
mod release;
mod segment;
mod send;
mod share;
mod sizing;
mod slots;
mod stats;
mod verdicts;

pub use crate::classify::{
    ClassConfig, Compiled, Condition, Config, Direction, Group, Match, Nested, Part, Prefix, Refused, Rules,
    DEEPEST, MOST_CONDITIONS, NO_CLASS,
};
pub use crate::node::{LAN, WAN};
pub use crate::systems::ack_shaper::Congestion;
pub use accounts::{Accounts, ClassAccount};
use accounts::{ClassAccounts, Kept};
pub use change::{Changed, Unchangeable};
pub use generate::{rescue_ack, MAX_ACK_LEN};
pub use stats::{ClassStats, FlowStats, GatewayStats, PassReason, ScheduledOnly};
pub use verdicts::Verdict;

use crate::ack::AckControl;
use crate::flow::{flag, Record, Table, Timers};
use crate::frame::{Frame, Frames};
use crate::node::{Cx, Node, Port, PortSet, Transmit};
use crate::stats::DropReason;
use crate::steer::{after, Bound, FlowBound, Slot, Strangers, Tally};
use crate::systems::class_rate::Share;
use crate::time::{Duration, Time};
use crate::track::Doubt;
use arrive::Copied;
use blocked::Blocked;
use classes::Classes;
use core::cell::OnceCell;
use outbox::Outbox;
use segment::Headers;
use slots::{Places, Slots};
use verdicts::Verdicts;

/// Copies of headers of frames that passed as they came after coming from the LAN.
pub const LAN_TAP: Port = Port(2);
/// Copies of headers of frames that passed as they came after coming from the WAN.
pub const WAN_TAP: Port = Port(3);
/// Copies of headers, as they came from the LAN, of segments that passed with their acknowledgement set back.
pub const LAN_SET_BACK: Port = Port(4);
/// Copies of headers, as they came from the WAN, of segments that passed with their acknowledgement set back.
pub const WAN_SET_BACK: Port = Port(5);

/// Flows looked at in one call of [`Gateway::flush_all`].
const FLUSH_BATCH: u32 = 4096;

/// The gateway. See the [module documentation](self).
pub struct Gateway {
    config: Compiled,
    table: Table,
    slots: Slots,
    /// Hooks take, set back and stamp; otherwise the gateway does.
    hooked: bool,
    /// Timers of the flows whose ACKs leave by each port, and behind them of the classes, by place.
    timers: Timers<2>,
    blocked: Blocked,
    outbox: Outbox,
    stats: Kept<GatewayStats>,
    classes: Classes,
    /// Tallies of unresponsive traffic, by place of the class.
    tallies: Places<Tally>,
    /// Bound of each class, by place.
    bounds: Places<Bound>,
    /// Bounds of what has no readable addresses, in each direction.
    unread: Places<Bound>,
    /// Record of each flow's own bound, by its place in the table.
    flow_bounds: OnceCell<Places<FlowBound>>,
    /// Bounds of flows that have no place, in a gateway without hooks.
    strangers: OnceCell<Strangers>,
    /// Some class has a bound, of uploads and downloads.
    bounded: [bool; 2],
    /// Each flow of some class has one.
    bounded_flows: [bool; 2],
    /// Which classes are congested.
    congestion: Congestion,
    /// Generation of the configuration. A record with another one has not followed it yet.
    generation: u16,
    /// Ports at which ACKs of controlled flows came in at the start: `(lan, wan)`.
    hooked_ports: (bool, bool),
    verdicts: Verdicts,
    /// Records from here on may have slots that the kernel was not told of: those of an earlier engine.
    unshown: u32,
    /// A class has its windows sized for the delay of the WAN as measured.
    measures: bool,
    /// Records before this one have been flushed.
    flushed: u32,
    /// It has been told to stop: windows are the receivers' own.
    ends: bool,
    /// Time at which the last frame came.
    now: Time,
    #[cfg(test)]
    always_long: bool,
}

impl Gateway {
    /// A gateway on its own: every frame comes in on [`LAN`] or [`WAN`].
    pub fn new(config: impl Into<Compiled>) -> Gateway {
        let config = config.into();
        let table = Table::new(config.max_flows, config.seed);
        let slots = Slots::own(table.capacity());
        Gateway::with_table(config, table, slots, false, None)
    }

    /// A gateway behind hooks that find its slots with [`Gateway::slots`].
    pub fn hooked(config: impl Into<Compiled>) -> Gateway {
        let config = config.into();
        let table = Table::new(config.max_flows, config.seed);
        let slots = Slots::own(table.capacity());
        Gateway::with_table(config, table, slots, true, None)
    }

    /// A gateway behind hooks whose flow records live in shared memory, so that a supervisor can send what is
    /// held ([`rescue_ack`]) and the next engine goes on where this one ended. `slots` is shared with the
    /// hooks. Panics if there are fewer slots than records.
    pub fn with_shared(
        config: impl Into<Compiled>,
        records: &'static mut [Record],
        slots: &'static [Slot],
    ) -> Gateway {
        Gateway::with_accounts(config, records, slots, None)
    }

    /// As [`Gateway::with_shared`], with totals that outlive the gateway, too: a class goes on with the
    /// account that it had. Panics if there are fewer accounts than classes.
    pub fn with_accounts(
        config: impl Into<Compiled>,
        records: &'static mut [Record],
        slots: &'static [Slot],
        accounts: Option<Accounts>,
    ) -> Gateway {
        let config = config.into();
        assert!(slots.len() >= records.len(), "a slot for each record");
        let table = Table::shared(records, config.seed);
        Gateway::with_table(config, table, Slots::Shared(slots), true, accounts)
    }

    /// Takes ACKs that come in on these ports, `(lan, wan)`, by the hooks, whether or not the first
    /// configuration controls some there.
    #[must_use]
    pub fn hooked_at(mut self, ports: (bool, bool)) -> Gateway {
        self.hooked_ports = ports;
        self
    }

    /// Counts unresponsive traffic in these tallies, which the hooks share. Earlier counts are not charged.
    /// Panics if there are fewer tallies than classes.
    #[must_use]
    pub fn counted_in(mut self, tallies: &'static [Tally]) -> Gateway {
        assert!(tallies.len() >= self.classes.len() as usize, "a tally for each class");
        self.tallies = Places::Shared(tallies);
        self.classes.shares_mut().filter_map(|(_, share)| share).for_each(Share::count_anew);
        self.tell_tallies();
        self
    }

    fn with_table(
        config: Compiled,
        table: Table,
        slots: Slots,
        hooked: bool,
        accounts: Option<Accounts>,
    ) -> Gateway {
        let (stats, accounts) = match accounts {
            None => (Kept::Own(Box::default()), ClassAccounts::Own(Vec::new())),
            Some(Accounts { totals, classes, frames }) => {
                totals.begin_anew(frames);
                (Kept::Outlives(totals), ClassAccounts::Outlive(classes))
            }
        };
        let classes = Classes::new(&config, accounts);
        let mut gateway = Gateway {
            timers: Timers::new(table.capacity() + classes.len()),
            blocked: Blocked::new(),
            unshown: if table.is_empty() { table.capacity() } else { 0 },
            flow_bounds: OnceCell::new(),
            table,
            slots,
            hooked,
            outbox: Outbox::new(),
            stats,
            tallies: Places::own(classes.len()),
            bounds: Places::own(classes.len()),
            unread: Places::own(2),
            strangers: OnceCell::new(),
            bounded: [false; 2],
            bounded_flows: [false; 2],
            congestion: Congestion::default(),
            classes,
            generation: 0,
            hooked_ports: config.ack_ports(),
            verdicts: Verdicts::new(hooked),
            measures: config.classes.iter().any(ClassConfig::measures_delay),
            flushed: 0,
            ends: false,
            now: Time::ZERO,
            #[cfg(test)]
            always_long: false,
            config,
        };
        gateway.tell_tallies();
        gateway.set_bounds();
        gateway.take_over();
        gateway
    }

    /// Records of an earlier engine belong to the classes of this configuration; what they hold is scheduled.
    fn take_over(&mut self) {
        for i in 0..self.table.capacity() {
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
        self.compare_anew();
        self.stats.resynced += 1;
    }

    /// Returns this gateway with hooks that hold each class to its bound in these. Panics if there are fewer
    /// than classes.
    #[must_use]
    pub fn bounded_in(mut self, bounds: &'static [Bound]) -> Gateway {
        assert!(bounds.len() >= self.classes.len() as usize, "a bound for each class");
        self.bounds = Places::Shared(bounds);
        self.set_bounds();
        self
    }

    /// Returns this gateway with hooks that hold what has no readable addresses to these bounds, one for each
    /// direction. Of several gateways one has them.
    #[must_use]
    pub fn unread_bounded_in(mut self, bounds: &'static [Bound]) -> Gateway {
        self.unread = Places::Shared(bounds);
        self.set_bounds();
        self
    }

    /// Returns this gateway with hooks that hold each flow to its own bound in these, one for each slot.
    /// Panics if there are fewer than records.
    #[must_use]
    pub fn flows_bounded_in(mut self, bounds: &'static [FlowBound]) -> Gateway {
        assert!(bounds.len() >= self.table.capacity() as usize, "a record for each slot");
        self.flow_bounds = OnceCell::from(Places::Shared(bounds));
        self
    }

    /// As [`Gateway::flush_all`], for a gateway that ends: its flows are the kernel's alone from here on,
    /// with the windows of their receivers.
    pub fn stop(&mut self, cx: &mut Cx<'_>) -> bool {
        self.ends = true;
        self.flush_all(cx)
    }

    /// Passes on what is held, for a bounded number of flows. False: call it again after
    /// `poll_transmit` gave what is due. What cannot be passed on stays in the records.
    pub fn flush_all(&mut self, cx: &mut Cx<'_>) -> bool {
        for _ in 0..FLUSH_BATCH {
            if self.flushed == self.table.capacity() {
                self.flushed = 0;
                return true;
            }
            if self.table[self.flushed].has(flag::USED) && !self.let_go(cx, self.flushed) {
                return false;
            }
            self.flushed += 1;
        }
        false
    }

    /// Has nothing come that is to be sent, and is no timer due, by any port?
    #[inline]
    fn is_quiet(&self, now: Time) -> bool {
        self.outbox.is_empty() && self.first_timer() > now
    }

    /// Transmits the frame that is due first. Releases up to now join what already waits.
    #[inline(never)]
    fn transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
        loop {
            if let Some((_, port)) = self.outbox.first(writable) {
                return self.outbox.pop(cx, &mut self.stats.ledger, port);
            }
            if !self.run_release(cx, writable) {
                return None;
            }
        }
    }

    #[inline(always)]
    fn policy(&self, r: &Record) -> &AckControl {
        self.classes.policy(r.class)
    }

    /// From now on this says which classes are congested.
    pub fn heed(&mut self, congestion: Congestion) {
        self.congestion = congestion;
    }

    /// May ACKs of the flow be held now?
    #[inline]
    pub(super) fn is_engaged(&self, i: u32) -> bool {
        let r = &self.table[i];
        let index = self.classes.index(r.class).map(|index| index as u32);
        self.policy(r).engages(&self.congestion, index)
    }

    fn rtt(&self, r: &Record) -> Duration {
        r.rtt(self.config.assumed_rtt)
    }
}

impl Node for Gateway {
    fn announce(&self, frames: &Frames, coming: &[(Time, Port, Frame)]) {
        let Gateway { table, slots, timers, .. } = self;
        announce::Kept { table, slots, timers }.load(frames, coming);
    }

    fn handle_frame(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        self.stats.ledger.received += 1;
        self.now = cx.now;
        self.catch_up(cx);
        if port == LAN || port == WAN {
            return self.on_frame(cx, port == LAN, frame);
        }
        match port {
            LAN_TAP | WAN_TAP => self.on_copy(cx, port == LAN_TAP, Copied::Passed, frame),
            LAN_SET_BACK | WAN_SET_BACK => self.on_copy(cx, port == LAN_SET_BACK, Copied::SetBack, frame),
            _ => {
                self.stats.ledger.drops.count(DropReason::NotWired);
                cx.drop(frame, DropReason::NotWired);
            }
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
        self.blocked.find_open(cx, &self.timers, writable);
        if self.is_quiet(cx.now) {
            return None;
        }
        self.transmit(cx, writable)
    }

    fn next_deadline(&self, writable: PortSet) -> Option<Time> {
        match self.outbox.first(writable) {
            Some((due, _)) => Some(due),
            None => self.next_release(writable),
        }
    }
}

fn direction_of(r: &Record) -> Direction {
    if r.has(flag::INWARD) {
        Direction::In
    } else {
        Direction::Out
    }
}

/// The port among these at which something is due first, and when. [`Time::MAX`] stands for nothing.
#[inline]
fn earliest(ports: PortSet, due: impl Fn(Port) -> Time) -> Option<(Time, Port)> {
    let due = |port| if ports.contains(port) { due(port) } else { Time::MAX };
    let (lan, wan) = (due(LAN), due(WAN));
    let first = if wan < lan { (wan, WAN) } else { (lan, LAN) };
    (first.0 < Time::MAX).then_some(first)
}

/// The port towards the data's sender, where ACKs leave.
fn ack_out(r: &Record) -> Port {
    if r.has(flag::INWARD) {
        WAN
    } else {
        LAN
    }
}

fn millis(t: Time) -> u32 {
    (t.as_nanos() / 1_000_000) as u32
}
