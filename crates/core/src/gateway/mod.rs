//! The gateway: a two-port node between LAN and WAN that controls the ACKs of the flows that its
//! classes take. Data is never held; frames that are not ACKs of a controlled flow leave at once.
//!
//! Two ways of use. Behind *hooks* ([`crate::steer`]: programs in the kernel, or the simulator's) it gets what
//! they take on [`LAN`] and [`WAN`], and copies of headers of what passed; what both sides must know of a flow is
//! in its [`Slot`], and which slot is whose they learn from [`Gateway::verdicts`]. Without hooks every frame
//! comes in on [`LAN`] and [`WAN`], and the gateway plays their part on the slots, with the same functions.
//!
//! - `handshake`: what SYN, FIN and RST tell about a flow, and how one begins and ends;
//! - `path`: what happens to a segment that acknowledges data of a controlled flow;
//! - `doubt`: segments that are not believed;
//! - `release`: what is held, and the times at which it goes;
//! - `generate`: the ACKs that are made here;
//! - `marks`: the congestion marks of what is held;
//! - `sizing`: how large a window may be.

mod classify;
mod config;
mod doubt;
mod generate;
mod handshake;
mod marks;
mod outbox;
mod path;
mod release;
mod sizing;
mod slots;
mod stats;
mod verdicts;

pub use config::{ClassConfig, Config, Direction, Match, Prefix};
pub use generate::{rescue_ack, MAX_ACK_LEN};
pub use stats::{ClassStats, FlowStats, GatewayStats, PassReason};
pub use verdicts::Verdict;

use crate::ack::AckControl;
use crate::flow::{flag, Key, Record, Table, Wheel};
use crate::frame::{Checksum, Frame};
use crate::node::{Cx, Node, Port, PortSet, Transmit};
use crate::stats::DropReason;
use crate::steer::Slot;
use crate::time::{Duration, Time};
use crate::wire::{self, Flags, Packet, Reject, Tcp};
use doubt::Doubt;
use outbox::Outbox;
use slots::Slots;
use verdicts::Verdicts;

/// The port towards the LAN.
pub const LAN: Port = Port(0);
/// The port towards the WAN.
pub const WAN: Port = Port(1);
/// Copies of headers of frames that passed as they came after coming from the LAN.
pub const LAN_TAP: Port = Port(2);
/// Copies of headers of frames that passed as they came after coming from the WAN.
pub const WAN_TAP: Port = Port(3);
/// Copies of headers, as they came from the LAN, of segments that passed with their acknowledgement set back.
pub const LAN_SET_BACK: Port = Port(4);
/// Copies of headers, as they came from the WAN, of segments that passed with their acknowledgement set back.
pub const WAN_SET_BACK: Port = Port(5);

/// How long a flow may be silent before it is established, or after it was over.
const TRANSIENT_MS: u32 = 120_000;
/// Flows looked at in one call of [`Gateway::flush_all`].
const FLUSH_BATCH: u32 = 4096;

/// The gateway. See the [module documentation](self).
pub struct Gateway {
    config: Config,
    table: Table,
    slots: Slots,
    /// One for each record.
    doubts: Box<[Doubt]>,
    /// Bytes acknowledged towards the sender of each record's flow.
    acked: Box<[u64]>,
    /// Hooks take, set back and stamp; otherwise the gateway does.
    hooked: bool,
    wheel: Wheel,
    outbox: Outbox,
    stats: GatewayStats,
    classes: Vec<ClassStats>,
    verdicts: Verdicts,
    /// Records from here on may have slots that the kernel was not told of: those of an earlier engine.
    unshown: u32,
    /// Records before this one have been flushed.
    flushed: u32,
    /// When the last frame came.
    now: Time,
}

/// How a segment is known here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Copied {
    /// It passed as it came.
    Passed,
    /// It passed with its acknowledgement set back.
    SetBack,
}

/// A TCP segment as it came in.
#[derive(Clone, Copy)]
struct Segment {
    packet: Packet,
    tcp: Tcp,
}

impl Gateway {
    /// A gateway on its own: every frame comes in on [`LAN`] or [`WAN`].
    pub fn new(config: Config) -> Gateway {
        let table = Table::new(config.max_flows, config.seed);
        let slots = Slots::own(table.capacity());
        Gateway::with_table(config, table, slots, false)
    }

    /// A gateway behind hooks that find its slots with [`Gateway::slots`].
    pub fn hooked(config: Config) -> Gateway {
        let table = Table::new(config.max_flows, config.seed);
        let slots = Slots::own(table.capacity());
        Gateway::with_table(config, table, slots, true)
    }

    /// A gateway behind hooks whose flow records live in shared memory, so that a supervisor can send what is
    /// held ([`rescue_ack`]) and the next engine goes on where this one ended. `slots` is shared with the
    /// hooks. Panics if there are fewer slots than records.
    pub fn with_shared(config: Config, records: &'static mut [Record], slots: &'static [Slot]) -> Gateway {
        assert!(slots.len() >= records.len(), "a slot for each record");
        let table = Table::shared(records, config.seed);
        Gateway::with_table(config, table, Slots::Shared(slots), true)
    }

    /// A gateway on its own whose flow records live in shared memory: what was learnt from handshakes outlives
    /// it.
    pub fn with_records(config: Config, records: &'static mut [Record]) -> Gateway {
        let table = Table::shared(records, config.seed);
        let slots = Slots::own(table.capacity());
        Gateway::with_table(config, table, slots, false)
    }

    fn with_table(config: Config, table: Table, slots: Slots, hooked: bool) -> Gateway {
        let classes = vec![ClassStats::default(); config.classes.len()];
        let mut gateway = Gateway {
            wheel: Wheel::new(table.capacity()),
            doubts: vec![Doubt::default(); table.capacity() as usize].into(),
            acked: vec![0; table.capacity() as usize].into(),
            unshown: if table.is_empty() { table.capacity() } else { 0 },
            table,
            slots,
            hooked,
            outbox: Outbox::new(),
            stats: GatewayStats::default(),
            classes,
            verdicts: Verdicts::new(hooked),
            flushed: 0,
            now: Time::ZERO,
            config,
        };
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
            match self.config.classify(direction_of(&self.table[i]), &key) {
                Some(class) if self.config.classes[class].ack.is_some() => {
                    self.table[i].class = class as u16;
                    self.classes[class].flows += 1;
                    self.resume(i);
                }
                _ => {
                    self.slots[i].close();
                    self.table.remove(i);
                }
            }
        }
        self.stats.flows = self.table.len();
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }
    /// Totals of the gateway.
    pub fn stats(&self) -> &GatewayStats {
        &self.stats
    }
    /// Totals of each class, in the order of the configuration.
    pub fn class_stats(&self) -> &[ClassStats] {
        &self.classes
    }
    /// The flows in the table, in no particular order.
    pub fn flows(&self) -> impl Iterator<Item = FlowStats> + '_ {
        let shown = |(_, r): &(&u64, &Record)| r.has(flag::USED) && !r.key.is_opening();
        self.acked.iter().zip(self.table.records()).filter(shown).map(|(&acked, r)| FlowStats::of(r, acked))
    }
    /// The flows that were active in the last `within` before `now`, 10 s at least, the latest first; none whose
    /// connection is over. Takes time for these only.
    pub fn active(&self, now: Time, within: Duration) -> impl Iterator<Item = FlowStats> + '_ {
        let within_ms = (within.as_nanos() / 1_000_000).min(u64::from(u32::MAX / 2)) as u32;
        let active = self.table.active(millis(now), within_ms).filter(|&i| {
            let r = &self.table[i];
            !r.key.is_opening() && !r.has(flag::CLOSED)
        });
        active.map(|i| FlowStats::of(&self.table[i], self.acked[i as usize]))
    }
    /// The flow with this key, if it is in the table.
    pub fn flow(&self, key: &Key) -> Option<FlowStats> {
        self.table.find(key).map(|i| FlowStats::of(&self.table[i], self.acked[i as usize]))
    }

    /// So many bytes more are acknowledged towards the sender of a flow.
    fn count_acked(&mut self, i: u32, bytes: u32) {
        self.acked[i as usize] += u64::from(bytes);
        self.classes[usize::from(self.table[i].class)].acked_bytes += u64::from(bytes);
    }
    /// The flow records, used or not.
    pub fn records(&self) -> &[Record] {
        self.table.records()
    }
    /// What is shared with the hooks: one slot for each record.
    pub fn slots(&self) -> &[Slot] {
        self.slots.all()
    }
    /// Takes at most `max` of what the kernel is to be told, oldest first. After a restart all flows are told
    /// again.
    pub fn verdicts(&mut self, max: usize) -> impl Iterator<Item = Verdict> + '_ {
        self.show_again();
        self.verdicts.drain(max)
    }

    /// The engine was away for so long that frames passed without it. The slots tell what the senders
    /// learnt meanwhile; it is not owed. What is held stays held.
    pub fn resync(&mut self) {
        self.table.next_epoch();
        self.stats.resynced += 1;
    }

    /// Passes on what is held, before a shutdown, for a bounded number of flows. False: call it again after
    /// `poll_transmit` gave what is due. What cannot be passed on stays in the records.
    pub fn flush_all(&mut self, cx: &mut Cx<'_>) -> bool {
        for _ in 0..FLUSH_BATCH {
            if self.flushed == self.table.capacity() {
                self.flushed = 0;
                return true;
            }
            if self.table[self.flushed].has(flag::USED) && !self.flush(cx, self.flushed) {
                return false;
            }
            self.flushed += 1;
        }
        false
    }

    /// The headers of a segment that passed.
    fn on_copy(&mut self, cx: &mut Cx<'_>, from_lan: bool, copied: Copied, frame: Frame) {
        self.stats.observed += 1;
        let bytes = cx.frames.bytes(&frame);
        let parsed = parse(bytes, frame.len()).ok().filter(|s| !is_broken(bytes, &frame, &s.packet));
        if let Some(segment) = parsed {
            if segment.has(Flags::SYN) {
                self.on_syn(cx, from_lan, &segment, &frame, false);
            } else {
                self.on_sender_segment(cx, from_lan, &segment);
                if let Ok(i) = self.flow_of_ack(cx, from_lan, &segment) {
                    self.on_ack_copy(cx, i, &segment, copied, &frame);
                }
            }
        }
        self.stats.ledger.absorbed += 1;
        cx.frames.absorb(frame);
    }

    /// A frame that is here.
    fn on_frame(&mut self, cx: &mut Cx<'_>, from_lan: bool, mut frame: Frame) {
        let out = if from_lan { WAN } else { LAN };
        let segment = match parse(cx.frames.bytes(&frame), frame.len()) {
            Ok(s) => s,
            Err(reject) => return self.pass(cx, out, frame, pass_reason(reject)),
        };
        self.stats.user_data_bytes += u64::from(segment.tcp.payload_len);
        if frame.checksum == Checksum::Unknown {
            frame.checksum = wire::checksum::verify(cx.frames.bytes(&frame), frame.len(), &segment.packet);
        }
        if frame.checksum == Checksum::Invalid {
            return self.pass(cx, out, frame, PassReason::BadChecksum);
        }
        if segment.has(Flags::SYN) {
            self.on_syn(cx, from_lan, &segment, &frame, true);
            self.size_syn_ack(cx, from_lan, &segment, &frame);
            return self.forward(cx, out, frame);
        }
        self.on_sender_segment(cx, from_lan, &segment);
        match self.flow_of_ack(cx, from_lan, &segment) {
            Ok(i) => self.on_ack_direction(cx, i, &segment, frame),
            Err(reason) => self.pass(cx, out, frame, reason),
        }
    }

    /// The flow that a segment acknowledges data of, or why there is none.
    fn flow_of_ack(&mut self, cx: &mut Cx<'_>, from_lan: bool, segment: &Segment) -> Result<u32, PassReason> {
        let direction = if from_lan { Direction::In } else { Direction::Out };
        let key = Key::of_ack(&segment.packet, &segment.tcp);
        if let Some(i) = self.flow_of(cx, direction, &key) {
            return Ok(i);
        }
        match self.table.find(&key) {
            Some(_) => Err(PassReason::Implausible), // it came in where its flow's data does
            None if self.controls(direction, &key).is_some() => Err(PassReason::TableFull),
            None => {
                self.verdicts.pass(key.reversed());
                Err(PassReason::NoClass)
            }
        }
    }

    /// The class that controls the flow's ACKs.
    fn controls(&self, direction: Direction, key: &Key) -> Option<usize> {
        let class = self.config.classify(direction, key)?;
        self.config.classes[class].ack.is_some().then_some(class)
    }

    /// The flow's record, made if a class wants the flow and there is room.
    fn flow_of(&mut self, cx: &mut Cx<'_>, direction: Direction, key: &Key) -> Option<u32> {
        let now_ms = millis(cx.now);
        if let Some(i) = self.table.find(key) {
            self.table.touch(i, now_ms);
            return Some(i).filter(|&i| direction_of(&self.table[i]) == direction);
        }
        let class = self.controls(direction, key)?;
        self.expire(cx, now_ms);
        let i = match self.table.insert(*key, now_ms) {
            Some(i) => i,
            None => {
                self.evict(cx, now_ms)?;
                self.table.insert(*key, now_ms)?
            }
        };
        self.doubts[i as usize] = Doubt::default();
        self.acked[i as usize] = 0;
        let r = &mut self.table[i];
        r.class = class as u16;
        r.mss = 1460;
        r.set(flag::INWARD, direction == Direction::In);
        if !key.is_opening() {
            self.classes[class].flows += 1;
        }
        self.stats.flows = self.table.len();
        Some(i)
    }

    /// Makes room for a flow.
    fn evict(&mut self, cx: &mut Cx<'_>, now_ms: u32) -> Option<()> {
        let victim = self.table.victim(now_ms)?;
        if !self.retire(cx, victim) {
            return None;
        }
        self.stats.evicted += 1;
        Some(())
    }

    /// Forgets the flow that has been silent longest if it has been so for too long.
    fn expire(&mut self, cx: &mut Cx<'_>, now_ms: u32) {
        let idle = (self.config.idle_timeout.as_nanos() / 1_000_000).min(u64::from(u32::MAX / 2)) as u32;
        for (transient, limit) in [(false, idle), (true, idle.min(TRANSIENT_MS))] {
            if let Some(i) = self.table.longest_silent(transient) {
                if now_ms.wrapping_sub(self.table[i].seen_ms) > limit {
                    self.retire(cx, i);
                }
            }
        }
    }

    /// Forwards a frame that is nobody's.
    fn pass(&mut self, cx: &mut Cx<'_>, out: Port, frame: Frame, reason: PassReason) {
        self.stats.passed[reason as usize] += 1;
        self.forward(cx, out, frame);
    }

    fn forward(&mut self, cx: &mut Cx<'_>, out: Port, frame: Frame) {
        self.outbox.push(cx, &mut self.stats.ledger, out, cx.now, frame);
    }

    /// Runs the release that is due, if any: at most one ACK.
    fn run_release(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> bool {
        let Some(i) = self.wheel.pop(cx.now) else {
            return false;
        };
        self.table[i].set(flag::ARMED, false);
        self.release(cx, i, writable);
        true
    }

    fn policy(&self, r: &Record) -> AckControl {
        match self.config.classes[r.class as usize].ack {
            Some(ack) => ack,
            None => unreachable!("records exist only for classes that control ACKs"),
        }
    }

    fn rtt(&self, r: &Record) -> Duration {
        match r.rtt_ns {
            0 => self.config.assumed_rtt,
            ns => Duration::from_nanos(u64::from(ns)),
        }
    }
}

impl Node for Gateway {
    fn handle_frame(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        self.stats.ledger.received += 1;
        self.now = cx.now;
        match port {
            LAN | WAN => self.on_frame(cx, port == LAN, frame),
            LAN_TAP | WAN_TAP => self.on_copy(cx, port == LAN_TAP, Copied::Passed, frame),
            LAN_SET_BACK | WAN_SET_BACK => self.on_copy(cx, port == LAN_SET_BACK, Copied::SetBack, frame),
            _ => {
                self.stats.ledger.drops.count(DropReason::NotWired);
                cx.drop(frame, DropReason::NotWired);
            }
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
        loop {
            // What is due first leaves first: releases up to now join what already waits.
            if let Some(t) = self.outbox.pop(&mut self.stats.ledger, writable) {
                return Some(t);
            }
            if !self.run_release(cx, writable) {
                return None;
            }
        }
    }

    fn next_deadline(&self, writable: PortSet) -> Option<Time> {
        self.outbox.due(writable).or_else(|| self.wheel.next())
    }
}

fn parse(bytes: &[u8], len: usize) -> Result<Segment, Reject> {
    let packet = wire::packet(bytes, len)?;
    let tcp = wire::tcp(bytes, &packet)?;
    Ok(Segment { packet, tcp })
}

/// Is the checksum of a frame that is here whole complete and wrong?
fn is_broken(bytes: &[u8], frame: &Frame, packet: &Packet) -> bool {
    frame.checksum == Checksum::Unknown
        && bytes.len() == frame.len()
        && wire::checksum::verify(bytes, frame.len(), packet) == Checksum::Invalid
}

fn pass_reason(reject: Reject) -> PassReason {
    match reject {
        Reject::NotIp | Reject::NotTcp => PassReason::NotTcp,
        Reject::Fragment => PassReason::Fragment,
        Reject::Truncated | Reject::Malformed => PassReason::Malformed,
    }
}

fn direction_of(r: &Record) -> Direction {
    if r.has(flag::INWARD) {
        Direction::In
    } else {
        Direction::Out
    }
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

/// Is `a` after `b` in serial arithmetic (RFC 1982)?
fn after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}

impl Segment {
    fn has(&self, flags: Flags) -> bool {
        self.tcp.flags.0 & flags.0 == flags.0
    }
    /// Sequence number after this segment.
    fn end(&self) -> u32 {
        let syn_fin = u32::from(self.has(Flags::SYN)) + u32::from(self.has(Flags::FIN));
        self.tcp.seq.wrapping_add(self.tcp.payload_len).wrapping_add(syn_fin)
    }
}
