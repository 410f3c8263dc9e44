//! The gateway: a two-port node between LAN and WAN that controls the ACKs of the flows that its
//! classes take. Data is never held; frames that are not ACKs of a controlled flow leave at once.
//!
//! Two ways of use. Behind *hooks* ([`crate::steer`]: programs in the kernel, or the simulator's) it gets
//! what they take on [`LAN`] and [`WAN`], and copies of headers of what passed; what both sides must know of
//! a flow is in its [`Slot`], and which slot is whose they learn from [`Register::verdicts`]. Without hooks
//! every frame comes in on [`LAN`] and [`WAN`], and the gateway plays their part on the slots, with the same
//! functions.
//!
//! What is known of flows and classes, and what may leave of them, is in [`flows`]. What sends is here:
//!
//! - `arrive`: segments as they come, those first that tell nothing but progress of what is held already;
//! - `connections`: the flow of a segment, looked up or made; `admit`: is the segment the flow's;
//! - `path`: what happens to what acknowledges data; `hold`: what is held, and goes before its time;
//! - `release`: the times at which it goes; `turns`, `steps`: where the flows of a class have turns;
//! - `spill`: packets that ACKs cannot slow, and that wait for their turn;
//! - `send`, `outbox`: the ACKs that leave;
//! - `announce`: loading what is kept of flows before it is needed.

mod admit;
mod announce;
mod arrive;
mod connections;
pub mod flows;
mod hold;
mod outbox;
mod path;
mod release;
mod send;
mod spill;
mod steps;
mod turns;

pub use crate::classify::{
    ClassConfig, Compiled, Condition, Config, Direction, Group, Match, Nested, Part, Prefix, Refused, Rules,
    DEEPEST, MOST_CONDITIONS, NO_CLASS,
};
pub use crate::node::{LAN, WAN};
pub use crate::systems::ack_shaper::Congestion;
pub use flows::accounts::{Accounts, ClassAccount};
pub use flows::generate::{rescue_ack, MAX_ACK_LEN};
pub use flows::stats::{ClassStats, FlowStats, GatewayStats, PassReason, ScheduledOnly};
pub use flows::verdicts::Verdict;
pub use flows::{Changed, Register, Unchangeable};

use crate::flow::{flag, FlowId, Record, Table, Timers};
use crate::frame::{Frame, Frames};
use crate::node::{Cx, Node, Port, PortSet, Transmit};
use crate::quality::Sight;
use crate::stats::DropReason;
use crate::steer::{Bound, FlowBound, Slot, Spill, Tally};
use crate::systems::class_rate::Share;
use crate::tcp::MarksOfFlows;
use crate::time::Time;
use arrive::Copied;
use core::cell::OnceCell;
use flows::accounts::{ClassAccounts, Kept};
use flows::blocked::Blocked;
use flows::classes::Classes;
use flows::quality::Measures;
use flows::slots::{Places, Slots};
use flows::verdicts::Verdicts;
use outbox::Outbox;

/// Copies of headers of frames that passed as they came after coming from the LAN.
pub const LAN_TAP: Port = Port(2);
/// Copies of headers of frames that passed as they came after coming from the WAN.
pub const WAN_TAP: Port = Port(3);
/// Copies of headers, as they came from the LAN, of segments that passed with their acknowledgement set back.
pub const LAN_SET_BACK: Port = Port(4);
/// Copies of headers, as they came from the WAN, of segments that passed with their acknowledgement set back.
pub const WAN_SET_BACK: Port = Port(5);

/// Port for whole frames from the LAN that wait in the queues of their classes, or of their flows.
pub const LAN_WHOLE: Port = Port(6);
/// Port for whole frames from the WAN that wait in the queues of their classes, or of their flows.
pub const WAN_WHOLE: Port = Port(7);

/// Flows looked at in one call of [`Gateway::flush_all`].
const FLUSH_BATCH: u32 = 4096;

/// The gateway. See the [module documentation](self).
pub struct Gateway {
    /// Flows and classes, and the settings.
    pub flows: Register,
    outbox: Outbox,
    /// Records before this one have been flushed.
    flushed: FlowId,
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

    /// A gateway behind hooks that find its slots with [`Register::slots`].
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
        self.flows.hooked_ports = ports;
        self
    }

    /// Counts unresponsive traffic in these tallies, which the hooks share. Earlier counts are not charged.
    /// Panics if there are fewer tallies than classes.
    #[must_use]
    pub fn counted_in(mut self, tallies: &'static [Tally]) -> Gateway {
        assert!(tallies.len() >= self.flows.classes.len() as usize, "a tally for each class");
        self.flows.tallies = Places::Shared(tallies);
        self.flows.classes.shares_mut().for_each(Share::count_anew);
        self.flows.tell_tallies();
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
        let mut flows = Register {
            timers: Timers::new(table.capacity() + classes.len()),
            measured: Measures::new(table.capacity(), classes.len()),
            marks: MarksOfFlows::new(table.capacity() as usize),
            blocked: Blocked::new(),
            unshown: if table.is_empty() { table.capacity() } else { 0 },
            flow_bounds: OnceCell::new(),
            table,
            slots,
            hooked,
            stats,
            tallies: Places::own(classes.len()),
            bounds: Places::own(classes.len()),
            unread: Places::own(2),
            strangers: OnceCell::new(),
            queues: OnceCell::new(),
            spills: None,
            spill_counts: None,
            spilled_from: Time::ZERO,
            spilling: [false; 2],
            bounded: [false; 2],
            bounded_flows: [false; 2],
            congestion: Congestion::default(),
            classes,
            generation: 0,
            hooked_ports: config.ack_ports(),
            verdicts: Verdicts::new(hooked),
            measures: config.classes.iter().any(ClassConfig::measures_delay),
            ends: false,
            now: Time::ZERO,
            config,
        };
        flows.tell_tallies();
        flows.set_bounds();
        flows.take_over();
        Gateway {
            flows,
            outbox: Outbox::new(),
            flushed: FlowId(0),
            #[cfg(test)]
            always_long: false,
        }
    }

    /// Returns this gateway with hooks that hold each class to its bound in these. Panics if there are fewer
    /// than classes.
    #[must_use]
    pub fn bounded_in(mut self, bounds: &'static [Bound]) -> Gateway {
        assert!(bounds.len() >= self.flows.classes.len() as usize, "a bound for each class");
        self.flows.bounds = Places::Shared(bounds);
        self.flows.set_bounds();
        self
    }

    /// Returns this gateway with hooks that hold what has no readable addresses to these bounds, one for each
    /// direction. Of several gateways one has them.
    #[must_use]
    pub fn unread_bounded_in(mut self, bounds: &'static [Bound]) -> Gateway {
        self.flows.unread = Places::Shared(bounds);
        self.flows.set_bounds();
        self
    }

    /// Returns this gateway with hooks that hold each flow to its own bound in these, one for each slot.
    /// Panics if there are fewer than records.
    #[must_use]
    pub fn flows_bounded_in(mut self, bounds: &'static [FlowBound]) -> Gateway {
        assert!(bounds.len() >= self.flows.table.capacity() as usize, "a record for each slot");
        self.flows.flow_bounds = OnceCell::from(Places::Shared(bounds));
        self
    }

    /// Returns this gateway with hooks that count in these what they send to the queues of flows that have
    /// spilled.
    #[must_use]
    pub fn spilled_in(mut self, counts: &'static [Spill]) -> Gateway {
        self.flows.spill_counts = Some(counts);
        self
    }

    /// Returns this gateway with hooks that see the data of each flow for these, one for each slot. Panics if
    /// there are fewer than records.
    #[must_use]
    pub fn seen_in(mut self, sights: &'static [Sight]) -> Gateway {
        assert!(sights.len() >= self.flows.table.capacity() as usize, "a sight for each slot");
        self.flows.measured.sights = Places::Shared(sights);
        self
    }

    /// Packets went past the engine before `cx.now`. Those of flows that have spilled which wait here, or are
    /// on their way, have been overtaken, and are dropped.
    pub fn resync_spilled(&mut self, cx: &mut Cx<'_>) {
        spill::resync_spilled(self, cx);
    }

    /// Packets that left up to `now` are with the kernel: hooks may let those behind them pass.
    pub fn settle_spilled(&mut self, now: Time) {
        spill::settle_spilled(self, now);
    }

    /// As [`Gateway::flush_all`], for a gateway that ends: its flows are the kernel's alone from here on,
    /// with the windows of their receivers.
    pub fn stop(&mut self, cx: &mut Cx<'_>) -> bool {
        self.flows.ends = true;
        spill::flush_spilled(self, cx);
        self.flush_all(cx)
    }

    /// Passes on what is held, for a bounded number of flows. False: call it again after
    /// `poll_transmit` gave what is due. What cannot be passed on stays in the records.
    pub fn flush_all(&mut self, cx: &mut Cx<'_>) -> bool {
        for _ in 0..FLUSH_BATCH {
            if self.flushed.0 == self.flows.table.capacity() {
                self.flushed = FlowId(0);
                return true;
            }
            if self.flows.table[self.flushed].has(flag::USED) && !self.let_go(cx, self.flushed) {
                return false;
            }
            self.flushed.0 += 1;
        }
        false
    }

    /// Returns whether nothing has come to be sent by any port, and no timer is due.
    #[inline]
    fn is_quiet(&self, now: Time) -> bool {
        self.outbox.is_empty() && self.flows.first_timer() > now
    }

    /// Transmits the frame that is due first. Releases up to now join what already waits.
    #[inline(never)]
    fn transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
        loop {
            if let Some((_, port)) = self.outbox.first(writable) {
                return self.outbox.pop(cx, &mut self.flows.stats.ledger, port);
            }
            if !self.run_release(cx, writable) {
                return None;
            }
        }
    }
}

impl Node for Gateway {
    fn announce(&self, frames: &Frames, coming: &[(Time, Port, Frame)]) {
        let Register { table, slots, timers, .. } = &self.flows;
        announce::Kept { table, slots, timers }.load(frames, coming);
    }

    fn handle_frame(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        self.flows.stats.ledger.received += 1;
        self.flows.now = cx.now;
        self.catch_up(cx);
        if port == LAN || port == WAN {
            if self.flows.config.observe {
                return self.observe(cx, port == LAN, frame);
            }
            return self.on_frame(cx, port == LAN, frame);
        }
        match port {
            LAN_WHOLE | WAN_WHOLE => spill::on_spilled(self, cx, port == LAN_WHOLE, frame),
            LAN_TAP | WAN_TAP => self.on_copy(cx, port == LAN_TAP, Copied::Passed, frame),
            LAN_SET_BACK | WAN_SET_BACK => self.on_copy(cx, port == LAN_SET_BACK, Copied::SetBack, frame),
            _ => {
                self.flows.stats.ledger.drops.count(DropReason::NotWired);
                cx.drop(frame, DropReason::NotWired);
            }
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
        self.flows.blocked.find_open(cx, &self.flows.timers, writable);
        if self.is_quiet(cx.now) {
            return None;
        }
        self.transmit(cx, writable)
    }

    fn next_deadline(&self, writable: PortSet) -> Option<Time> {
        match self.outbox.first(writable) {
            Some((due, _)) => Some(due),
            None => self.flows.next_release(writable),
        }
    }
}
