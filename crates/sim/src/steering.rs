//! A gateway behind the hooks of `acks` steering. It sees exactly the frames that it sees inline.
//!
//! Inline, two programs on the interface towards the WAN see every segment: one those from the LAN, the other
//! those from the WAN. They take ACKs of controlled flows to the gateway, set back the ACK field of segments
//! with payload, show the gateway copies of headers, and update its ACKs as they leave. [`Steered`] does the
//! same in the same order, with the same functions ([`weir_core::steer`]). Other frames leave at once by the
//! other port, in order with the gateway's frames.
//!
//! With queues behind it ([`Combined`](weir_core::combined::Combined)), its output waits in them, like the
//! packets that the hooks let pass inline.
//!
//! The bounds of the hooks apply here too ([`Bounds`]): budgets for traffic without a slot, and maps that
//! forget. The differences do not matter with hosts of the simulator: the parser is the core's, the gateway
//! is informed of everything at once, and verdicts apply immediately.

mod bounds;
mod flows;

use bounds::{source, Budgets, Unknown};
pub use bounds::{Bounds, Budget};
use flows::{Flows, Known, Opening};
use std::collections::VecDeque;
use weir_core::combined::Acks;
use weir_core::flow::{FlowId, Key};
use weir_core::frame::{Checksum, Frame};
use weir_core::gateway::{
    Config, Direction, Gateway, Register, LAN, LAN_SET_BACK, LAN_TAP, LAN_WHOLE, WAN, WAN_SET_BACK, WAN_TAP,
    WAN_WHOLE,
};
use weir_core::node::{Cx, Node, Port, PortSet, Transmit};
use weir_core::packet::mark;
use weir_core::stats::{DropReason, Ledger};
use weir_core::steer::{self, Action, Fields, FlowBound, Judgement, Kind, Load, Records, Seen};
use weir_core::time::Time;
use weir_core::wire::{self, Flags, Packet, Tcp};

/// Most bytes of a header copy, as the programs in the kernel copy.
const OBSERVED_HEAD: usize = 192;

/// Counts of the hooks' actions on incoming frames, as in the programs in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SteerStats {
    /// Frames taken to the gateway.
    pub taken: u64,
    /// Frames that passed unchanged.
    pub passed: u64,
    /// Frames that passed with their acknowledgement set back.
    pub set_back: u64,
    /// Frames that passed, with a copy of their headers for the gateway.
    pub copied: u64,
    /// ACKs of the gateway that were discarded because a newer one had left.
    pub discarded: u64,
    /// Frames that were not shown to the gateway because their budget was spent.
    pub over_budget: u64,
}

/// State of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Engine {
    Runs,
    /// The engine has been killed, and its held ACKs are about to be sent.
    Killed,
    /// The engine hangs, or the next one is not there yet.
    Away,
}

/// Gateway behind its steering. Its ports are [`LAN`] and [`WAN`].
pub struct Steered {
    gateway: Gateway,
    /// True for ports at which ACKs of controlled flows arrive.
    ack_ports: [bool; 2],
    /// Outgoing frames by port, in order of time: those that bypassed the gateway, and those that it sent.
    out: [VecDeque<(Time, Frame)>; 2],
    /// Due time of the last frame that left, for each port.
    last: [Time; 2],
    flows: Flows,
    budgets: Budgets,
    engine: Engine,
    /// The engine has just come back.
    resumes: bool,
    /// Time at which data last passed bounds that were not kept.
    unheld: Option<Time>,
    stats: SteerStats,
    /// Account of received frames that bypassed the gateway, dropped ones among them, all sent frames, and
    /// discarded ones.
    account: Ledger,
}

impl Steered {
    /// Returns a gateway with this configuration, behind the steering that it requires.
    pub fn new(config: Config) -> Steered {
        let bounds = Bounds::default();
        let passing = bounds.passing.max(config.max_flows as usize);
        Steered::within(config, &Bounds { passing, ..bounds })
    }

    /// Returns such a gateway behind hooks with these bounds.
    pub fn within(config: Config, bounds: &Bounds) -> Steered {
        let (lan, wan) = config.ack_ports();
        Steered {
            gateway: Gateway::hooked(config),
            ack_ports: [lan, wan],
            out: [VecDeque::new(), VecDeque::new()],
            last: [Time::ZERO; 2],
            flows: Flows::new(bounds),
            budgets: Budgets::new(bounds),
            engine: Engine::Runs,
            resumes: false,
            unheld: None,
            stats: SteerStats::default(),
            account: Ledger::default(),
        }
    }

    /// Returns the gateway.
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }
    /// Makes the engine hang. The hooks let everything pass until it is [back](Steered::come_back).
    pub fn hang(&mut self) {
        self.engine = Engine::Away;
    }
    /// Kills the engine. Its held ACKs are sent, and the hooks let everything pass until another engine is
    /// [there](Steered::come_back).
    pub fn kill(&mut self) {
        self.engine = Engine::Killed;
    }
    /// Resumes the flows, with the same engine or another with its records.
    pub fn come_back(&mut self) {
        (self.engine, self.resumes) = (Engine::Runs, true);
        self.gateway.flows.resync();
    }
    /// Returns the counts of the hooks.
    pub fn stats(&self) -> &SteerStats {
        &self.stats
    }

    /// Returns the account of all frames, including the gateway's. Copies of headers are made here and
    /// absorbed by the gateway.
    pub fn ledger(&self) -> Ledger {
        let Ledger { mut received, mut made, mut absorbed, mut drops, .. } =
            self.gateway.flows.stats().ledger;
        received = received - self.stats.copied + self.account.received;
        made += self.stats.copied;
        absorbed += self.account.absorbed;
        for (reason, count) in self.account.drops.iter() {
            (0..count).for_each(|_| drops.count(reason));
        }
        Ledger { received, made, sent: self.account.sent, absorbed, drops }
    }

    /// Handles a frame that arrived on `port`.
    fn on_frame(&mut self, cx: &mut Cx<'_>, port: Port, mut frame: Frame) {
        let Some((packet, tcp)) = segment(cx, &frame) else {
            return self.on_other(cx, port, frame);
        };
        let charged = steer::is_charged(packet.charged_len(frame.len()), tcp.payload_len.into());
        let admits = match charged {
            true => self.admits_segment(cx, port, &packet, &tcp, &frame),
            false => self.admits_bare(cx, port, &packet, &tcp, frame.len()),
        };
        if !admits && !self.observes() {
            return self.police(cx, frame);
        }
        let asked = self.is_asked_for(port, &packet, &tcp);
        let asked = if asked { cx.frames.copy_head(&frame, OBSERVED_HEAD, cx.now) } else { None };
        self.show(cx, if port == LAN { LAN_TAP } else { WAN_TAP }, asked);
        let action = match self.action(cx, port, &mut frame, &packet, &tcp) {
            Action::Take | Action::SetBack { report: true, .. } if self.observes() => Action::Copy,
            Action::SetBack { .. } if self.observes() => Action::Pass,
            action => action,
        };
        if tcp.flags.contains(Flags::SYN | Flags::ACK) && action != Action::Pass {
            self.recall_opening(cx, &packet, &tcp);
        }
        match action {
            Action::Take => {
                self.stats.taken += 1;
                self.hand_in(cx, port, frame);
            }
            Action::Pass => self.pass(cx, port, frame),
            Action::Copy => {
                let copy = cx.frames.copy_head(&frame, OBSERVED_HEAD, cx.now);
                self.pass(cx, port, frame);
                self.show(cx, if port == LAN { LAN_TAP } else { WAN_TAP }, copy);
            }
            Action::SetBack { ack, window, report } => {
                self.stats.set_back += 1;
                let copy = if report { cx.frames.copy_head(&frame, OBSERVED_HEAD, cx.now) } else { None };
                steer::set_back(cx.frames, &frame, &packet, ack, window);
                self.pass(cx, port, frame);
                self.show(cx, if port == LAN { LAN_SET_BACK } else { WAN_SET_BACK }, copy);
            }
        }
    }

    /// Shows the gateway the SYN that a segment answers, if it was not shown on arrival.
    fn recall_opening(&mut self, cx: &mut Cx<'_>, packet: &Packet, tcp: &Tcp) {
        let Some(opening) = self.flows.opening(&Key::of_data(packet, tcp), tcp.ack) else { return };
        let mut frame = cx.frames.make_head(opening.head(), opening.len, opening.at);
        if let Some(frame) = &mut frame {
            frame.checksum = Checksum::Valid;
        }
        self.show(cx, if opening.port == LAN { LAN_TAP } else { WAN_TAP }, frame);
    }

    /// Handles a frame that is no TCP segment. It is counted for the class that it is charged to.
    fn on_other(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        let direction = data_direction(port);
        if self.gateway.flows.is_bounded(direction) && self.engine == Engine::Runs {
            return match self.judge_other(cx, direction, &frame) {
                Judgement::Spills(number) => self.spill(cx, port, frame, number),
                Judgement::Dropped if !self.observes() => self.police(cx, frame),
                Judgement::Marked if !self.observes() => {
                    mark::mark(cx.frames.bytes_mut(&frame));
                    self.pass(cx, port, frame)
                }
                _ => self.pass(cx, port, frame),
            };
        }
        let head = cx.frames.bytes(&frame);
        let fields = self.gateway.flows.counted_fields()[usize::from(port == WAN)];
        let Some(packet) = wire::other_packet(head, frame.len()).filter(|_| fields.has(Fields::COUNTED))
        else {
            return self.pass(cx, port, frame);
        };
        let key = fields.of(&Key::of_packet(head, &packet));
        match self.flows.tally(&key) {
            Some(tally) if self.polices(cx, tally, &packet) && !self.observes() => self.police(cx, frame),
            None if self.engine == Engine::Runs && self.shows(cx, port, &packet, Unknown::Copies) => {
                let copy = cx.frames.copy_head(&frame, OBSERVED_HEAD, cx.now);
                self.pass(cx, port, frame);
                self.show(cx, if port == LAN { LAN_TAP } else { WAN_TAP }, copy);
            }
            _ => self.pass(cx, port, frame),
        }
    }

    /// Counts a packet. Returns true if it exceeds its class's rate and must be dropped.
    fn polices(&self, cx: &Cx<'_>, tally: Option<u32>, packet: &Packet) -> bool {
        let Some(tally) = tally.and_then(|n| self.gateway.flows.tallies().get(n as usize)) else {
            return false;
        };
        let bytes = u64::from(packet.end) - u64::from(packet.l3);
        if self.engine == Engine::Runs {
            return !tally.passes(1, bytes, cx.now, false);
        }
        tally.count(1, bytes);
        false
    }

    /// Returns what becomes of a packet that is not a TCP segment.
    fn judge_other(&self, cx: &Cx<'_>, direction: Direction, frame: &Frame) -> Judgement {
        let head = cx.frames.bytes(frame);
        self.gateway.flows.judge_frame(direction, head, frame.len(), !self.observes(), cx.now)
    }

    /// Redirects a frame whose flow has spilled to the engine.
    fn spill(&mut self, cx: &mut Cx<'_>, port: Port, mut frame: Frame, number: u16) {
        frame.hint = number;
        self.hand_in(cx, if port == LAN { LAN_WHOLE } else { WAN_WHOLE }, frame);
    }

    /// Returns whether a segment with data may pass. It is charged to its class, or counted if its flow
    /// passes untouched.
    fn admits_segment(&mut self, cx: &Cx<'_>, port: Port, packet: &Packet, tcp: &Tcp, frame: &Frame) -> bool {
        let direction = data_direction(port);
        let key = Key::of_data(packet, tcp);
        let untouched = self.flows.tally_of_segment(&key);
        let slot = self.flows.slot(&key.reversed(), self.gateway.flows.slots());
        if self.gateway.flows.is_bounded(direction) && tcp.payload_len > 0 {
            if let Some(slot) = slot {
                let segment = (cx.frames.bytes(frame), packet, tcp);
                self.gateway.flows.see_segment(FlowId(slot as u32), direction, &key, segment, cx.now);
            }
        }
        if self.gateway.flows.is_bounded(direction) && self.engine != Engine::Runs {
            self.unheld = Some(cx.now);
        }
        if !self.gateway.flows.is_bounded(direction) || self.engine != Engine::Runs {
            return untouched.is_none() || !self.polices(cx, untouched, packet);
        }
        let kind = match slot {
            Some(_) => Kind::Held,
            None if untouched.is_some() => Kind::Counted,
            None => Kind::Free,
        };
        let bytes = packet.charged_len(frame.len());
        let load = Load { packets: 1, bytes, payload: tcp.payload_len.into(), ecn: 0, kind };
        if let Some(slot) = slot {
            self.gateway.flows.flow_bounds()[slot].queue().see(cx.now);
        }
        if slot.is_some() && self.unheld.is_some_and(|unheld| steer::is_spared(unheld, cx.now)) {
            self.gateway.flows.spare(direction, &key, &load, cx.now);
            return true;
        }
        let admits = |flow: Option<&FlowBound>, sender| {
            let of = Records { flow, sender, ..Records::default() };
            self.gateway.flows.admits(direction, &key, of, &load, cx.now)
        };
        let is_current = self.unheld.is_none_or(|unheld| !steer::recovers(unheld, cx.now));
        match slot {
            Some(slot) => {
                let flow = &self.gateway.flows.flow_bounds()[slot];
                admits(Some(flow), is_current.then(|| flow.queue()))
            }
            None if !self.gateway.flows.bounds_flows(direction) => admits(None, None),
            None => self
                .flows
                .with_loose(&key, direction == Direction::In, cx.now, |flow| admits(Some(flow), None)),
        }
    }

    /// Returns whether a segment without data may pass.
    fn admits_bare(&self, cx: &Cx<'_>, port: Port, packet: &Packet, tcp: &Tcp, len: usize) -> bool {
        let direction = data_direction(port);
        let is_spared = self.unheld.is_some_and(|unheld| steer::is_spared(unheld, cx.now));
        if !self.gateway.flows.is_bounded(direction) || self.engine != Engine::Runs || is_spared {
            return true;
        }
        let (key, bytes) = (Key::of_data(packet, tcp), packet.charged_len(len));
        let is_held = || self.flows.slot(&key, self.gateway.flows.slots()).is_some();
        self.gateway.flows.admits_bare(direction, &key, bytes, cx.now, is_held)
    }

    /// Returns whether every frame passes as it came.
    fn observes(&self) -> bool {
        self.gateway.flows.config().observe
    }

    fn police(&mut self, cx: &mut Cx<'_>, frame: Frame) {
        self.account.received += 1;
        self.account.drops.count(DropReason::Policed);
        cx.drop(frame, DropReason::Policed);
    }

    /// Returns the action for a segment, by the tests of the programs in the kernel in their order.
    fn action(&mut self, cx: &Cx<'_>, port: Port, frame: &mut Frame, packet: &Packet, tcp: &Tcp) -> Action {
        let shaped = self.ack_ports[usize::from(port.0)];
        if tcp.flags.intersects(Flags::SYN | Flags::RST | Flags::FIN) && is_broken(cx, frame, packet) {
            return Action::Pass;
        }
        if self.engine != Engine::Runs {
            return self.bypass(cx, frame, packet, tcp);
        }
        if tcp.flags.contains(Flags::SYN) {
            // A new connection may have another verdict.
            self.flows.look_again(&Key::of_data(packet, tcp));
            // The window of an answer may have to be sized before the sender receives it.
            let answers = tcp.flags.contains(Flags::ACK);
            let which = if answers { Unknown::Opens } else { Unknown::Syns };
            return match self.shows(cx, port, packet, which) {
                true if answers && shaped => Action::Take,
                true => Action::Copy,
                false => {
                    if !answers {
                        let opening = Opening::new(cx.now, port, tcp, cx.frames.bytes(frame), frame.len());
                        self.flows.keep_opening(Key::of_data(packet, tcp), opening);
                    }
                    Action::Pass
                }
            };
        }
        if tcp.flags.contains(Flags::RST) {
            return match self.flows.find(&Key::of_data(packet, tcp), self.gateway.flows.slots()) {
                Known::Shaped(slot) if shaped && slot.takes_reset(tcp.seq) => {
                    slot.take();
                    frame.restamp = true;
                    Action::Take
                }
                _ => self.copy_within(cx, port, packet, Unknown::Ends),
            };
        }
        let ends = tcp.flags.contains(Flags::FIN);
        let key = Key::of_data(packet, tcp);
        let slot = self.flows.slot(&key, self.gateway.flows.slots()).filter(|_| shaped);
        if let Some(slot) = slot {
            return controlled(cx, &self.gateway.flows, FlowId(slot as u32), frame, packet, tcp);
        }
        let known = match self.flows.find(&key, self.gateway.flows.slots()) {
            _ if !shaped => true,
            Known::Shaped(_) | Known::Passes => true,
            Known::Not => false,
        };
        if !known && is_broken(cx, frame, packet) {
            return Action::Pass;
        }
        if ends {
            return self.copy_within(cx, port, packet, Unknown::Ends);
        }
        if known {
            return Action::Pass;
        }
        if tcp.payload_len == 0 && self.shows(cx, port, packet, Unknown::Takes) {
            return Action::Take;
        }
        self.copy_within(cx, port, packet, Unknown::Copies)
    }

    /// Takes one segment from the budget of the address on the LAN's side. Returns false if none is left.
    fn shows(&mut self, cx: &Cx<'_>, port: Port, packet: &Packet, which: Unknown) -> bool {
        let address = if port == LAN { &packet.src } else { &packet.dst };
        let within = self.budgets.within(which, source(address), cx.now);
        self.stats.over_budget += u64::from(!within);
        within
    }

    /// Returns the action of copying the headers, if the budget allows it.
    fn copy_within(&mut self, cx: &Cx<'_>, port: Port, packet: &Packet, which: Unknown) -> Action {
        match self.shows(cx, port, packet, which) {
            true => Action::Copy,
            false => Action::Pass,
        }
    }

    /// Returns whether the gateway wants the headers of the flow's next data segment, and this is one.
    fn is_asked_for(&self, port: Port, packet: &Packet, tcp: &Tcp) -> bool {
        let fields = self.gateway.flows.counted_fields()[usize::from(port == WAN)];
        if tcp.payload_len == 0 || !fields.has(Fields::MEASURED) || self.engine != Engine::Runs {
            return false;
        }
        match self.flows.find(&Key::of_ack(packet, tcp), self.gateway.flows.slots()) {
            Known::Shaped(slot) => slot.answers(),
            _ => false,
        }
    }

    /// Returns the action for a segment that passes because the engine is stalled.
    fn bypass(&self, cx: &Cx<'_>, frame: &Frame, packet: &Packet, tcp: &Tcp) -> Action {
        let known = self.flows.find(&Key::of_data(packet, tcp), self.gateway.flows.slots());
        if let (Known::Shaped(slot), false) = (known, tcp.flags.intersects(Flags::SYN | Flags::RST)) {
            let options = wire::tcp_options(cx.frames.bytes(frame), packet, tcp).unwrap_or_default();
            let seen = Seen::of(tcp, &options, cx.now);
            if slot.passes_on(&seen) && is_broken(cx, frame, packet) {
                return Action::Pass;
            }
            return slot.bypass(&seen);
        }
        Action::Pass
    }

    /// Hands the gateway a copy of headers, if there is one.
    fn show(&mut self, cx: &mut Cx<'_>, port: Port, copy: Option<Frame>) {
        if let Some(copy) = copy {
            self.stats.copied += 1;
            self.hand_in(cx, port, copy);
        }
    }

    fn hand_in(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        self.gateway.handle_frame(cx, port, frame);
        self.flows.learn(&mut self.gateway);
    }

    /// Forwards a frame that arrived on `port` past the gateway.
    fn pass(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        self.stats.passed += 1;
        self.account.received += 1;
        self.out[usize::from(port == LAN)].push_back((cx.now, frame));
    }

    /// Merges the gateway's frames into the outgoing ones.
    fn merge(&mut self, cx: &mut Cx<'_>, writable: PortSet) {
        match self.engine {
            Engine::Runs if core::mem::take(&mut self.resumes) => self.gateway.resync_spilled(cx),
            Engine::Runs => {}
            Engine::Killed => {
                self.gateway.resync_spilled(cx);
                while !self.gateway.flush_all(cx) {}
            }
            Engine::Away => return,
        }
        while let Some(Transmit { port, at, frame }) = self.gateway.poll_transmit(cx, writable) {
            let out = &mut self.out[usize::from(port.0)];
            let i = out.partition_point(|waiting| waiting.0 <= at);
            out.insert(i, (at, frame));
        }
        self.gateway.settle_spilled(cx.now);
        self.flows.learn(&mut self.gateway);
        if self.engine == Engine::Killed {
            self.engine = Engine::Away;
        }
    }

    /// Returns due time and port of the first outgoing frame, among the ports in `writable`.
    fn next_out(&self, writable: PortSet) -> Option<(Time, Port)> {
        let front = |port: Port| {
            let first = self.out[usize::from(port.0)].front().filter(|_| writable.contains(port))?;
            Some((first.0, port))
        };
        [front(LAN), front(WAN)].into_iter().flatten().min()
    }

    /// Updates an ACK of the gateway as it leaves. Returns false if a newer one has left.
    fn stamp(&self, cx: &mut Cx<'_>, frame: &Frame) -> bool {
        let Some((packet, tcp)) = segment(cx, frame).filter(|_| frame.restamp) else { return true };
        match self.flows.find(&Key::of_data(&packet, &tcp), self.gateway.flows.slots()) {
            Known::Shaped(slot) => {
                let stamp = slot.stamp(tcp.ack, tcp.window);
                steer::restamp(cx.frames, frame, &packet, &tcp, stamp)
            }
            _ => true,
        }
    }
}

/// Returns the action for a segment of a controlled flow.
fn controlled(
    cx: &Cx<'_>,
    flows: &Register,
    slot: FlowId,
    frame: &mut Frame,
    packet: &Packet,
    tcp: &Tcp,
) -> Action {
    let options = wire::tcp_options(cx.frames.bytes(frame), packet, tcp).unwrap_or_default();
    let seen = Seen::of(tcp, &options, cx.now);
    let (number, slot) = (slot, &flows.slots()[slot.index()]);
    if slot.wants_sum(&seen) && is_broken(cx, frame, packet) {
        return Action::Pass;
    }
    flows.see_granted(number, &seen, cx.now);
    let action = slot.segment(&seen);
    if flows.config().observe && !matches!(action, Action::Pass | Action::Copy) {
        slot.bypass(&seen);
        flows.see_passed(number, &seen, cx.now);
        return action;
    }
    if action == Action::Take {
        slot.take();
        frame.restamp = true;
    }
    action
}

/// Returns whether the segment's checksum is wrong. Such a segment passes unchanged, and nothing is learnt
/// from it.
fn is_broken(cx: &Cx<'_>, frame: &Frame, packet: &Packet) -> bool {
    match frame.checksum {
        Checksum::Unknown => wire::checksum::verify_frame(cx.frames, frame, packet) == Checksum::Invalid,
        state => state == Checksum::Invalid,
    }
}

/// Returns the direction of data that arrives on a port.
fn data_direction(port: Port) -> Direction {
    if port == LAN {
        Direction::Out
    } else {
        Direction::In
    }
}

/// Returns the TCP segment in a frame, if there is one.
fn segment(cx: &Cx<'_>, frame: &Frame) -> Option<(Packet, Tcp)> {
    let head = cx.frames.bytes(frame);
    let packet = wire::packet(head, frame.len()).ok()?;
    Some((packet, wire::tcp(head, &packet).ok()?))
}

impl Acks for Steered {
    fn gateway(&self) -> &Gateway {
        &self.gateway
    }
    fn gateway_mut(&mut self) -> &mut Gateway {
        &mut self.gateway
    }
}

impl Node for Steered {
    fn handle_frame(&mut self, cx: &mut Cx<'_>, port: Port, frame: Frame) {
        if port == LAN || port == WAN {
            return self.on_frame(cx, port, frame);
        }
        self.account.received += 1;
        self.account.drops.count(DropReason::NotWired);
        cx.drop(frame, DropReason::NotWired);
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
        loop {
            self.merge(cx, writable);
            let (_, port) = self.next_out(writable)?;
            let (at, frame) = self.out[usize::from(port.0)].pop_front()?;
            if self.stamp(cx, &frame) {
                self.account.sent += 1;
                // Releases that the gateway makes up for after its port was closed have older times than
                // frames that have passed.
                let last = &mut self.last[usize::from(port.0)];
                let at = at.max(*last);
                *last = at;
                return Some(Transmit { port, at, frame });
            }
            self.stats.discarded += 1;
            self.account.absorbed += 1;
            cx.frames.absorb(frame);
        }
    }

    /// Returns the due time of the first frame, unless it waits for its port, or the gateway's next release.
    fn next_deadline(&self, writable: PortSet) -> Option<Time> {
        let out = self.next_out(writable).map(|first| first.0);
        if self.engine != Engine::Runs {
            return out;
        }
        out.into_iter().chain(self.gateway.next_deadline(writable)).min()
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_absence;
#[cfg(test)]
mod tests_attacks;
#[cfg(test)]
mod tests_claims;
#[cfg(test)]
mod tests_grants;
#[cfg(test)]
mod tests_missed;
#[cfg(test)]
mod tests_neighbours;
#[cfg(test)]
mod tests_quality;
#[cfg(test)]
mod tests_unread;
#[cfg(test)]
mod tests_with_hosts;
