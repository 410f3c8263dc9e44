//! A host: any number of TCP endpoints behind one interface, and the applications that use them.
//!
//! A host is a [`Node`] with one port, [`WIRE`]. Its frames are Ethernet, IPv4 and
//! TCP headers; the payload is only a length, and checksums are marked as valid
//! ([`Checksum::Valid`]).
//!
//! Segments are handled one at a time, also those that arrive at the same nanosecond: what a segment makes its
//! endpoint send is decided before the next one is looked at.

mod application;
mod endpoint;
mod record;
mod slot;
#[cfg(test)]
mod tests;
mod timers;

pub use endpoint::{Change, Endpoint, EndpointId, EndpointReport, Source};

use crate::tcp::segment::{self, Pair, Segment};
use crate::tcp::Connection;
use record::Record;
use slot::{change, Last, Slot};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::net::SocketAddrV4;
use timers::Timers;
use weir_core::frame::{Checksum, Frame};
use weir_core::node::{Cx, Node, Port, PortSet, Transmit};
use weir_core::rng::Rng;
use weir_core::stats::DropReason;
use weir_core::time::Time;

/// The only port of a host.
pub const WIRE: Port = Port(0);

/// What a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// Its interface's address.
    pub mac: [u8; 6],
    /// The next hop's.
    pub next_hop: [u8; 6],
    /// Seed of initial sequence numbers and timestamps.
    pub seed: u64,
}

/// Finds endpoints by the peer's address and both ports; the own address is the host's.
type ByPair = HashMap<u64, u32, BuildHasherDefault<Mix>>;

/// A multiplicative hash; keys come from the experiment, not from an adversary.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u64(u64::from(b)));
    }
    fn write_u64(&mut self, n: u64) {
        let product = u128::from(self.0 ^ n) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

/// See the [module documentation](self).
pub struct Host {
    config: HostConfig,
    /// In boxes: those that are added do not move the others.
    #[allow(clippy::vec_box)]
    slots: Vec<Box<Slot>>,
    by_pair: ByPair,
    timers: Timers,
    /// Frames that leave with the next poll, and since when.
    leaving: VecDeque<(Time, Frame)>,
    rng: Rng,
    now: Time,
}

impl Host {
    /// A host without endpoints.
    pub fn new(config: HostConfig) -> Host {
        Host {
            config,
            slots: Vec::new(),
            by_pair: ByPair::default(),
            timers: Timers::default(),
            leaving: VecDeque::new(),
            rng: Rng::new(config.seed),
            now: Time::ZERO,
        }
    }

    /// Adds an endpoint; one that opens does so at its start. Panics if there is one with the same addresses and ports.
    pub fn add(&mut self, endpoint: Endpoint) -> EndpointId {
        let i = self.slots.len() as u32;
        let earlier = self.by_pair.insert(key(pair_of(&endpoint)), i);
        assert!(earlier.is_none(), "two endpoints from {} to {}", endpoint.local, endpoint.remote);
        let start = if endpoint.opens { endpoint.start } else { Time::MAX };
        self.slots.push(Box::new(Slot {
            endpoint,
            connection: None,
            application: None,
            record: Record::new(),
            last: None,
        }));
        self.timers.add();
        if start < Time::MAX {
            self.timers.arm(i, start);
        }
        EndpointId(i)
    }

    /// What became of an endpoint so far.
    pub fn report(&self, id: EndpointId) -> EndpointReport {
        let slot = &self.slots[id.0 as usize];
        let last =
            slot.connection.as_deref().map(Last::of).or(slot.last.as_deref().copied()).unwrap_or_default();
        EndpointReport {
            failure: last.failure,
            acked: last.acked,
            retransmits: last.retransmits,
            rtos: last.rtos,
            ..slot.record.report()
        }
    }

    /// The state of an endpoint's sender; `None` before it starts and after it has ended.
    pub fn sample(&self, id: EndpointId) -> Option<Change> {
        let slot = &self.slots[id.0 as usize];
        slot.connection.as_deref().map(|c| change(c, self.now))
    }

    /// Makes the connection of an endpoint.
    fn connect(&mut self, i: u32) {
        let macs = (self.config.mac, self.config.next_hop);
        let random = self.rng.next_u64();
        let slot = &mut self.slots[i as usize];
        let Endpoint { local, remote, .. } = slot.endpoint;
        let mut connection = Connection::new(slot.endpoint.tcp.clone(), macs, local, remote, random);
        if slot.endpoint.opens {
            connection.open();
        }
        slot.connection = Some(Box::new(connection));
    }

    /// A timer of endpoint `i` has fired.
    fn on_timer(&mut self, i: u32, cx: &mut Cx<'_>) {
        if self.slots[i as usize].fresh() {
            self.connect(i);
        }
        let slot = &mut self.slots[i as usize];
        if let Some(connection) = &mut slot.connection {
            connection.on_timers(cx.now);
            slot.note_change(cx.now);
        }
        self.act(i, cx);
    }

    fn on_segment(&mut self, pair: &Pair, s: &Segment, cx: &mut Cx<'_>) {
        let Some(&i) = self.by_pair.get(&key((pair.to, pair.from))) else {
            return; // of a connection that nobody here has
        };
        if self.slots[i as usize].fresh() && !self.slots[i as usize].endpoint.opens {
            self.connect(i);
        }
        let slot = &mut self.slots[i as usize];
        let Some(connection) = &mut slot.connection else {
            return; // of a connection that nobody here has
        };
        let delivered = connection.on_segment(s, cx.now);
        slot.note(&delivered, cx.now);
        slot.note_change(cx.now);
        self.act(i, cx);
    }

    /// Lets the application act, and the connection send what it now may.
    fn act(&mut self, i: u32, cx: &mut Cx<'_>) {
        let slot = &mut self.slots[i as usize];
        slot.run_application(cx.now);
        let Some(connection) = &mut slot.connection else { return };
        while let Some(frame) = connection.poll(cx.frames, cx.now) {
            slot.record.segments += 1;
            self.leaving.push_back((cx.now, frame));
        }
        slot.end_if_over(cx.now);
        if let Some(at) = slot.next_deadline() {
            // One that is armed too early fires in vain; that is cheaper than to move it with every ACK.
            self.timers.arm(i, at);
        }
    }
}

impl Node for Host {
    fn handle_frame(&mut self, cx: &mut Cx<'_>, _: Port, frame: Frame) {
        self.now = cx.now;
        if frame.checksum == Checksum::Invalid {
            return cx.drop(frame, DropReason::Corrupt);
        }
        let parsed = segment::parse(cx.frames.bytes(&frame), frame.len());
        match parsed {
            Some((pair, s)) => {
                cx.frames.absorb(frame);
                self.on_segment(&pair, &s, cx);
            }
            None => cx.drop(frame, DropReason::NotWired),
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
        self.now = self.now.max(cx.now);
        while let Some(i) = self.timers.pop(cx.now) {
            self.on_timer(i, cx);
        }
        if !writable.contains(WIRE) {
            return None;
        }
        let (at, frame) = self.leaving.pop_front()?;
        Some(Transmit { port: WIRE, at, frame })
    }

    fn next_deadline(&self, writable: PortSet) -> Option<Time> {
        match self.leaving.front() {
            Some(&(at, _)) if writable.contains(WIRE) => Some(at),
            _ => self.timers.next(),
        }
    }
}

/// Own and peer's address and port.
type Ends = ((u32, u16), (u32, u16));

fn pair_of(e: &Endpoint) -> Ends {
    let end = |a: SocketAddrV4| (a.ip().to_bits(), a.port());
    (end(e.local), end(e.remote))
}

/// A host has one address, so the peer's with both ports tells endpoints apart.
fn key((own, peer): Ends) -> u64 {
    u64::from(peer.0) << 32 | u64::from(peer.1) << 16 | u64::from(own.1)
}
