//! The gateway: a two-port node between LAN and WAN that controls the ACKs of the flows that its
//! classes take. Data is never held; frames that are not ACKs of a controlled flow leave at once.
//!
//! Where the kernel forwards the data itself (`acks` steering), copies of the few headers that are
//! needed come in on the taps and are absorbed.
//!
//! - `handshake`: what SYN, FIN and RST tell about a flow;
//! - `path`: what happens to a segment that acknowledges data of a controlled flow;
//! - `generate`: the ACKs that are made here;
//! - `sizing`: how large a window may be.

mod classify;
mod config;
mod generate;
mod handshake;
mod outbox;
mod path;
mod sizing;
mod stats;

pub use config::{ClassConfig, Config, Direction, Match, Prefix};
pub use generate::{rescue_ack, MAX_ACK_LEN};
pub use stats::{ClassStats, FlowStats, GatewayStats, PassReason};

use crate::ack::AckControl;
use crate::flow::{flag, Key, Record, Table, Wheel};
use crate::frame::{Checksum, Frame};
use crate::node::{Cx, Node, Port, PortSet, Transmit};
use crate::time::{Duration, Time};
use crate::wire::{self, Flags, Packet, Reject, Tcp};
use outbox::Outbox;

/// The port towards the LAN.
pub const LAN: Port = Port(0);
/// The port towards the WAN.
pub const WAN: Port = Port(1);
/// Copies of headers of frames that the kernel forwards after they came in on [`LAN`].
pub const LAN_TAP: Port = Port(2);
/// Copies of headers of frames that the kernel forwards after they came in on [`WAN`].
pub const WAN_TAP: Port = Port(3);
/// Copies of headers, as they were before, of segments that came from [`LAN`] and passed with their ACK field set
/// back.
pub const LAN_SET_BACK: Port = Port(4);
/// The same for segments that came from [`WAN`].
pub const WAN_SET_BACK: Port = Port(5);

/// Verdicts kept for the steering until it fetches them; a lost one costs a look at one more frame.
const MAX_VERDICTS: usize = 1024;

/// Whether the steering has to bring a flow's ACKs to the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The port that the ACKs come in on.
    pub port: Port,
    /// The flow as its ACKs show it: source is the receiver of the data.
    pub ack_key: Key,
    /// True: they may pass in the kernel. False: the gateway wants them.
    pub pass: bool,
}

/// The gateway. See the [module documentation](self).
pub struct Gateway {
    config: Config,
    table: Table,
    wheel: Wheel,
    outbox: Outbox,
    stats: GatewayStats,
    classes: Vec<ClassStats>,
    verdicts: Vec<Verdict>,
}

/// A TCP segment as it came in.
#[derive(Clone, Copy)]
struct Segment {
    packet: Packet,
    tcp: Tcp,
}

impl Gateway {
    /// A gateway with a flow table of its own.
    pub fn new(config: Config) -> Gateway {
        let table = Table::new(config.max_flows, config.seed);
        Gateway::with_table(config, table)
    }

    /// A gateway whose flow records live in shared memory, so that a supervisor can send what is
    /// held ([`rescue_ack`]) and the next engine takes the flows up again.
    pub fn with_records(config: Config, records: &'static mut [Record]) -> Gateway {
        let table = Table::shared(records, config.seed);
        Gateway::with_table(config, table)
    }

    fn with_table(config: Config, table: Table) -> Gateway {
        let classes = vec![ClassStats::default(); config.classes.len()];
        let mut gateway = Gateway {
            wheel: Wheel::new(table.capacity()),
            table,
            outbox: Outbox::new(),
            stats: GatewayStats::default(),
            classes,
            verdicts: Vec::with_capacity(MAX_VERDICTS),
            config,
        };
        gateway.reclassify();
        gateway
    }

    /// Records taken over from an earlier engine belong to the classes of this configuration.
    fn reclassify(&mut self) {
        for i in 0..self.table.capacity() {
            if !self.table[i].has(flag::USED) {
                continue;
            }
            let key = self.table[i].key;
            match self.config.classify(direction_of(&self.table[i]), &key) {
                Some(class) if self.config.classes[class].ack.is_some() => {
                    self.table[i].class = class as u16;
                    self.classes[class].flows += 1;
                }
                _ => self.table.remove(i),
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
        self.table.records().iter().filter(|r| r.has(flag::USED)).map(FlowStats::of)
    }
    /// The flow with this key, if it is in the table.
    pub fn flow(&self, key: &Key) -> Option<FlowStats> {
        self.table.find(key).map(|i| FlowStats::of(&self.table[i]))
    }
    /// The flow records, used or not.
    pub fn records(&self) -> &[Record] {
        self.table.records()
    }
    /// Takes at most `max` of the verdicts that changed since the last call, oldest first.
    pub fn verdicts(&mut self, max: usize) -> std::vec::Drain<'_, Verdict> {
        self.verdicts.drain(..max.min(self.verdicts.len()))
    }

    /// The engine was away for so long that frames passed without it: the numbers of every flow
    /// are taken up anew with its next ACK. What was held has been overtaken.
    pub fn resync(&mut self) {
        self.table.next_epoch();
        self.stats.resynced += 1;
    }

    /// Passes on everything that is held, before a shutdown.
    pub fn flush_all(&mut self, cx: &mut Cx<'_>) {
        for i in 0..self.table.capacity() {
            if self.table[i].has(flag::USED) {
                self.flush(cx, i);
            }
        }
    }

    fn on_tap(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        self.stats.observed += 1;
        let bytes = cx.frames.bytes(&frame);
        let from_lan = port == LAN_TAP;
        if let Ok(segment) = parse(bytes, frame.len()) {
            self.on_data_direction(cx, from_lan, &segment, frame.head_len(), &frame);
        }
        self.stats.ledger.absorbed += 1;
        cx.frames.absorb(frame);
    }

    fn on_port(&mut self, cx: &mut Cx<'_>, port: Port, mut frame: Frame) {
        let out = if port == LAN { WAN } else { LAN };
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
        self.on_data_direction(cx, port == LAN, &segment, frame.head_len(), &frame);
        let direction = if port == WAN { Direction::Out } else { Direction::In };
        let key = Key::of_ack(&segment.packet, &segment.tcp);
        match self.flow_of(cx, direction, &key) {
            Some(i) => self.on_ack_direction(cx, i, &segment, frame),
            None => {
                self.verdict(direction, &key, true);
                self.pass(cx, out, frame, PassReason::NoClass);
            }
        }
    }

    /// The flow's record, made if a class wants the flow.
    fn flow_of(&mut self, cx: &mut Cx<'_>, direction: Direction, key: &Key) -> Option<u32> {
        let now_ms = millis(cx.now);
        if let Some(i) = self.table.find(key) {
            self.table.touch(i, now_ms);
            return Some(i);
        }
        let class = self.config.classify(direction, key)?;
        self.config.classes[class].ack.as_ref()?;
        let i = match self.table.insert(*key, now_ms) {
            Some(i) => i,
            None => {
                let victim = self.table.victim()?;
                self.evict(cx, victim);
                self.table.insert(*key, now_ms)?
            }
        };
        self.expire(cx, now_ms);
        let r = &mut self.table[i];
        r.class = class as u16;
        r.mss = 1460;
        r.set(flag::INWARD, direction == Direction::In);
        self.classes[class].flows += 1;
        self.stats.flows = self.table.len();
        Some(i)
    }

    fn evict(&mut self, cx: &mut Cx<'_>, i: u32) {
        self.flush(cx, i);
        self.table.remove(i);
        self.stats.evicted += 1;
    }

    /// Forgets the flow that has been silent longest if it has been so for too long.
    fn expire(&mut self, cx: &mut Cx<'_>, now_ms: u32) {
        let limit = (self.config.idle_timeout.as_nanos() / 1_000_000).min(u64::from(u32::MAX / 2)) as u32;
        if let Some(i) = self.table.oldest() {
            if now_ms.wrapping_sub(self.table[i].seen_ms) > limit {
                self.flush(cx, i);
                self.table.remove(i);
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
    fn run_release(&mut self, cx: &mut Cx<'_>) -> bool {
        let Some(i) = self.wheel.pop(cx.now) else {
            return false;
        };
        self.table[i].set(flag::ARMED, false);
        self.release(cx, i);
        true
    }

    fn verdict(&mut self, direction: Direction, key: &Key, pass: bool) {
        if self.verdicts.len() < MAX_VERDICTS {
            let port = if direction == Direction::Out { WAN } else { LAN };
            self.verdicts.push(Verdict { port, ack_key: key.reversed(), pass });
        }
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
        match port {
            LAN | WAN => self.on_port(cx, port, frame),
            _ => self.on_tap(cx, port, frame),
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
        loop {
            // What is due first leaves first: releases up to now join what already waits.
            if let Some(t) = self.outbox.pop(&mut self.stats.ledger, writable) {
                return Some(t);
            }
            if !self.run_release(cx) {
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
