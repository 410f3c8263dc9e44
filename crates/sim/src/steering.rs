//! A gateway that sees what it sees inline under `acks` steering, and nothing else.
//!
//! Inline, an XDP program brings the TCP segments that come in on a port with ACKs of controlled flows to the
//! gateway, except those of flows with the verdict to pass (their SYN, FIN and RST it gets all the same); data stays
//! in the kernel, and of its SYN, FIN and RST the gateway gets copies of the headers. [`Steered`] does the same around the same gateway: what is
//! not the gateway's leaves at once by the other port, in order with what the gateway sends.
//!
//! It differs in three ways, none of which hosts of the simulator bring about: the parser is the
//! core's, so that a segment with a wrong IPv4 checksum passes here and is passed by the gateway there; verdicts hold from
//! the moment they are given; and when there are too many of them all are forgotten, not the oldest, which costs a look
//! at some frames.

use core::hash::BuildHasherDefault;
use std::collections::hash_map::DefaultHasher;
use std::collections::{HashSet, VecDeque};
use weir_core::flow::Key;
use weir_core::frame::Frame;
use weir_core::gateway::{Config, Gateway, LAN, LAN_TAP, WAN, WAN_TAP};
use weir_core::node::{Cx, Node, Port, PortSet, Transmit};
use weir_core::stats::{DropReason, Ledger};
use weir_core::time::Time;
use weir_core::wire::{self, Flags, Packet, Tcp};

/// Flags of the segments that begin and end flows.
const CONTROL: Flags = Flags::SYN.with(Flags::FIN).with(Flags::RST);
/// Bytes of a header copy at most: what the kernel's observer copies.
const OBSERVED_HEAD: usize = 192;
/// Fewest flows whose verdict is remembered.
const MIN_VERDICTS: usize = 1024;

/// What the steering did with the frames that came in, counted as by the programs in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SteerStats {
    /// Frames on a port with ACKs that the gateway got.
    pub taken: u64,
    /// Frames on such a port that passed because their flow's verdict is to pass.
    pub passed_verdict: u64,
    /// Frames on such a port that passed because they are not TCP, or a fragment, or cut short.
    pub passed_other: u64,
    /// Frames on a port without ACKs of controlled flows, which all pass.
    pub passed_data: u64,
    /// Of these, SYN, FIN and RST whose headers the gateway got a copy of.
    pub observed: u64,
}

/// A gateway behind its steering. Ports are [`LAN`] and [`WAN`].
pub struct Steered {
    gateway: Gateway,
    /// By port: do ACKs of controlled flows come in there?
    ack_ports: [bool; 2],
    /// Frames on their way out, by port and time: what went past the gateway, and what it sent meanwhile.
    out: [VecDeque<(Time, Frame)>; 2],
    verdicts: Verdicts,
    stats: SteerStats,
    /// Frames received that went past the gateway, those of them dropped, and all frames sent.
    account: Ledger,
}

impl Steered {
    /// The gateway of this configuration, behind the steering that follows from it.
    pub fn new(config: Config) -> Steered {
        let (lan, wan) = config.ack_ports();
        let verdicts = Verdicts::new(config.max_flows as usize);
        Steered {
            gateway: Gateway::new(config),
            ack_ports: [lan, wan],
            out: [VecDeque::new(), VecDeque::new()],
            verdicts,
            stats: SteerStats::default(),
            account: Ledger::default(),
        }
    }

    /// The gateway.
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }
    /// The gateway, to be reconfigured.
    pub fn gateway_mut(&mut self) -> &mut Gateway {
        &mut self.gateway
    }
    /// What the steering did.
    pub fn stats(&self) -> &SteerStats {
        &self.stats
    }

    /// The conservation law's account, with the gateway's. Copies of headers are made here and absorbed by the
    /// gateway.
    pub fn ledger(&self) -> Ledger {
        let Ledger { mut received, mut made, absorbed, mut drops, .. } = self.gateway.stats().ledger;
        received = received - self.stats.observed + self.account.received;
        made += self.stats.observed;
        for (reason, count) in self.account.drops.iter() {
            (0..count).for_each(|_| drops.count(reason));
        }
        Ledger { received, made, sent: self.account.sent, absorbed, drops }
    }

    /// A frame came in where ACKs of controlled flows do.
    fn on_ack_port(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        let Some((packet, tcp)) = segment(cx, &frame) else {
            self.stats.passed_other += 1;
            return self.pass(cx, port, frame);
        };
        if self.verdicts.pass(&packet, &tcp) {
            self.stats.passed_verdict += 1;
            return self.pass(cx, port, frame);
        }
        self.stats.taken += 1;
        self.gateway.handle_frame(cx, port, frame);
        self.verdicts.learn(&mut self.gateway);
    }

    /// A frame came in where only data does.
    fn on_data_port(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        self.stats.passed_data += 1;
        if segment(cx, &frame).is_some_and(|(_, tcp)| tcp.flags.intersects(CONTROL)) {
            self.observe(cx, port, &frame);
        }
        self.pass(cx, port, frame);
    }

    /// Copies a frame's headers to the gateway.
    fn observe(&mut self, cx: &mut Cx<'_>, port: Port, frame: &Frame) {
        // The payload that the checksum covers is nowhere: what is known of it stays known.
        let Some(copy) = cx.frames.copy_head(frame, OBSERVED_HEAD, cx.now) else { return };
        self.stats.observed += 1;
        self.gateway.handle_frame(cx, if port == LAN { LAN_TAP } else { WAN_TAP }, copy);
        self.verdicts.learn(&mut self.gateway);
    }

    /// Forwards a frame that came in on `port` past the gateway.
    fn pass(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        self.account.received += 1;
        self.out[usize::from(port == LAN)].push_back((cx.now, frame));
    }

    /// Puts what the gateway has to send among what passes.
    fn merge(&mut self, cx: &mut Cx<'_>, writable: PortSet) {
        while let Some(Transmit { port, at, frame }) = self.gateway.poll_transmit(cx, writable) {
            let out = &mut self.out[usize::from(port.0)];
            let i = out.partition_point(|waiting| waiting.0 <= at);
            out.insert(i, (at, frame));
        }
    }

    /// When the first frame on its way out by a port in `writable` was due, and that port.
    fn next_out(&self, writable: PortSet) -> Option<(Time, Port)> {
        let front = |port: Port| {
            let first = self.out[usize::from(port.0)].front().filter(|_| writable.contains(port))?;
            Some((first.0, port))
        };
        [front(LAN), front(WAN)].into_iter().flatten().min()
    }
}

/// The TCP segment that a frame is, if it is one.
fn segment(cx: &Cx<'_>, frame: &Frame) -> Option<(Packet, Tcp)> {
    let head = cx.frames.bytes(frame);
    let packet = wire::packet(head, frame.len()).ok()?;
    Some((packet, wire::tcp(head, &packet).ok()?))
}

impl Node for Steered {
    fn handle_frame(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        match self.ack_ports.get(usize::from(port.0)) {
            Some(true) => self.on_ack_port(cx, port, frame),
            Some(false) => self.on_data_port(cx, port, frame),
            None => {
                self.account.received += 1;
                self.account.drops.count(DropReason::NotWired);
                cx.drop(frame, DropReason::NotWired);
            }
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
        let sent = if self.out.iter().all(VecDeque::is_empty) {
            self.gateway.poll_transmit(cx, writable)
        } else {
            self.merge(cx, writable);
            self.next_out(writable).and_then(|(_, port)| {
                let (at, frame) = self.out[usize::from(port.0)].pop_front()?;
                Some(Transmit { port, at, frame })
            })
        };
        self.account.sent += u64::from(sent.is_some());
        sent
    }

    fn next_deadline(&self, writable: PortSet) -> Option<Time> {
        let out = self.next_out(writable).map(|first| first.0);
        out.into_iter().chain(self.gateway.next_deadline(writable)).min()
    }
}

/// Flows whose ACKs may pass, as the port that they come in on shows them.
struct Verdicts {
    /// Never iterated; the hasher has no random seed.
    pass: HashSet<Key, BuildHasherDefault<DefaultHasher>>,
    limit: usize,
}

/// Verdicts fetched at a time.
const BATCH: usize = 64;

impl Verdicts {
    fn new(flows: usize) -> Verdicts {
        Verdicts { pass: HashSet::default(), limit: flows.max(MIN_VERDICTS) }
    }

    /// May this segment pass? A SYN may not: a new connection may come under another class than the last one
    /// on the same ports. FIN and RST may not: they end the flow of the other direction too.
    fn pass(&self, packet: &Packet, tcp: &Tcp) -> bool {
        !self.pass.is_empty()
            && !tcp.flags.intersects(CONTROL)
            && self.pass.contains(&Key::of_data(packet, tcp))
    }

    /// Fetches what the gateway has decided.
    fn learn(&mut self, gateway: &mut Gateway) {
        for verdict in gateway.verdicts(BATCH) {
            if !verdict.pass {
                self.pass.remove(&verdict.ack_key);
                continue;
            }
            if self.pass.len() >= self.limit {
                self.pass.clear();
            }
            self.pass.insert(verdict.ack_key);
        }
    }
}

#[cfg(test)]
mod tests;
