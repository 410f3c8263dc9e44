//! A host: any number of TCP endpoints behind one interface, and the applications that use them.
//!
//! A host is a [`Node`] with one port, [`WIRE`]. Its frames have Ethernet, IPv4 and TCP headers. They are
//! [drafts](Frame::is_draft), whose headers are written only when a node reads them. The payload is only a
//! length, and checksums are marked as valid ([`Checksum::Valid`]).
//!
//! Segments are handled one at a time, even if they arrive at the same nanosecond. The endpoint's response to
//! a segment is decided before the next one is read.

mod application;
mod endpoint;
mod keys;
mod record;
mod slot;
#[cfg(test)]
mod tests;
mod timers;

pub use endpoint::{Bursts, Change, Endpoint, EndpointId, EndpointReport, Source};

use crate::tcp::segment::{self, Addressed, Cookie, FastOpen, Segment};
use crate::tcp::{Connection, Exit};
use keys::{key, ByKey};
use slot::{change, Last, Origin, Slot};
use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use timers::Timers;
use weir_core::frame::{Checksum, Frame, Frames};
use weir_core::node::{Cx, Node, Port, PortSet, Transmit};
use weir_core::rng::Rng;
use weir_core::stats::DropReason;
use weir_core::time::{Duration, Time};

/// Number of endpoints above which a host does not stay in the processor's nearest cache.
const CROWD: usize = 128;
/// Most frames for which an empty buffer is kept.
const BUFFER: usize = 1024;

/// The only port of a host.
pub const WIRE: Port = Port(0);

/// Settings of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostConfig {
    /// Hardware address of the interface.
    pub mac: [u8; 6],
    /// Hardware address of the next hop.
    pub next_hop: [u8; 6],
    /// Seed of initial sequence numbers and timestamps.
    pub seed: u64,
}

impl HostConfig {
    /// Returns the Fast Open cookie for a client, made of its address and a secret (RFC 7413 §4.1.2).
    fn cookie_of(&self, client: Ipv4Addr) -> Cookie {
        Rng::new(self.seed ^ u64::from(client.to_bits()) << 16 ^ 7413).next_u64().to_be_bytes()
    }
}

/// See the [module documentation](self).
pub struct Host {
    config: HostConfig,
    /// Slots are boxed, so that adding one does not move the others.
    #[allow(clippy::vec_box)]
    slots: Vec<Box<Slot>>,
    by_key: ByKey,
    timers: Timers,
    /// Endpoint that opens after each endpoint's end, with the delay.
    followers: HashMap<u32, (u32, Duration)>,
    /// Frames that leave with the next poll, with their times.
    leaving: Vec<(Time, Frame)>,
    rng: Rng,
    /// Fast Open cookies, by the server that issued them.
    cookies: BTreeMap<Ipv4Addr, Cookie>,
    now: Time,
}

impl Host {
    /// Returns a host without endpoints.
    pub fn new(config: HostConfig) -> Host {
        Host {
            config,
            slots: Vec::new(),
            by_key: ByKey::default(),
            timers: Timers::default(),
            followers: HashMap::new(),
            leaving: Vec::new(),
            rng: Rng::new(config.seed),
            cookies: BTreeMap::new(),
            now: Time::ZERO,
        }
    }

    /// Adds an endpoint. If it opens, it does so at its start. Panics if there is one with the same addresses
    /// and ports.
    pub fn add(&mut self, endpoint: Endpoint) -> EndpointId {
        let i = self.slots.len() as u32;
        let earlier = self.by_key.insert(key(&endpoint), i);
        assert!(earlier.is_none(), "two endpoints from {} to {}", endpoint.local, endpoint.remote);
        let start = if endpoint.opens { endpoint.start } else { Time::MAX };
        self.slots.push(Box::new(Slot::new(key(&endpoint), endpoint)));
        self.timers.add();
        self.timers.set(i, start);
        EndpointId(i)
    }

    /// Makes an endpoint open `after` another one of this host has ended. The endpoint's start must be
    /// [`Time::MAX`]. If two endpoints follow the same one, the later call counts.
    pub fn follow(&mut self, id: EndpointId, other: EndpointId, after: Duration) {
        if let Some(origin) = &mut self.slots[id.0 as usize].origin {
            origin.start = Time::ZERO;
        }
        self.followers.insert(other.0, (id.0, after));
    }

    /// Returns the report of an endpoint up to now.
    pub fn report(&self, id: EndpointId) -> EndpointReport {
        let slot = &self.slots[id.0 as usize];
        let last =
            slot.connection.as_deref().map(Last::of).or(slot.last.as_deref().copied()).unwrap_or_default();
        let report = slot.record.report();
        let under_way = slot.application.as_ref().and_then(|application| application.burst_since());
        EndpointReport {
            failure: last.failure,
            acked: last.acked,
            retransmits: last.retransmits,
            rtos: last.rtos,
            burst_since: under_way.or(report.burst_since),
            ..report
        }
    }

    /// Returns the state of an endpoint's sender; `None` before it starts and after it has ended.
    pub fn sample(&self, id: EndpointId) -> Option<Change> {
        let slot = &self.slots[id.0 as usize];
        slot.connection.as_deref().map(|c| change(c, self.now))
    }

    /// Creates the connection of an endpoint.
    fn connect(&mut self, i: u32) {
        let macs = (self.config.mac, self.config.next_hop);
        let random = self.rng.next_u64();
        let slot = &mut self.slots[i as usize];
        let Some(Origin { tcp, local, remote, .. }) = slot.origin.as_deref() else { return };
        let mut connection = Connection::new(tcp.clone(), macs, *local, *remote, random);
        connection.set_number(i);
        let cookie = tcp.fast_open.then(|| self.cookies.get(remote.ip()).copied());
        match (slot.opens, cookie) {
            (true, None) => connection.open(),
            (true, Some(cookie)) => connection.open_fast(cookie, slot.written_at_first(tcp.mss)),
            (false, None) => {}
            (false, Some(_)) => connection.accept_fast(self.config.cookie_of(*remote.ip())),
        }
        slot.connection = Some(Box::new(connection));
    }

    /// Creates the connection of an endpoint that waits for its peer, when the first segment arrives.
    #[cold]
    fn meet(&mut self, i: u32) {
        let slot = &self.slots[i as usize];
        if slot.fresh() && !slot.opens {
            self.connect(i);
        }
    }

    /// Handles the timer of endpoint `i`. Its segments wait for the next poll.
    #[inline(never)]
    fn on_timer(&mut self, i: u32, cx: &mut Cx<'_>) {
        if self.slots[i as usize].fresh() {
            self.connect(i);
        }
        let slot = &mut self.slots[i as usize];
        if let Some(connection) = &mut slot.connection {
            connection.on_timers(cx.now);
            slot.note_change(cx.now);
        }
        let Host { timers, leaving, .. } = self;
        if act(slot, i, timers, cx, leaving) {
            self.start_follower(i, cx.now);
        }
    }

    /// Returns the endpoint of a segment, in most cases the one whose number it carries.
    #[inline]
    fn find(&self, to: &Addressed) -> Option<u32> {
        match self.slots.get(to.number as usize) {
            Some(slot) if slot.key == to.key => Some(to.number),
            _ => self.by_key.get(&to.key).copied(),
        }
    }

    /// Handles a frame that arrives at `cx.now`. The host's response leaves by `exit` before the next frame
    /// may arrive.
    #[inline(always)]
    pub(crate) fn take_in(&mut self, cx: &mut Cx<'_>, frame: Frame, exit: &mut impl Exit) {
        self.now = cx.now;
        if frame.checksum == Checksum::Invalid {
            return cx.drop(frame, DropReason::Corrupt);
        }
        // The segment is read in place, because a copy would stall until its fields are written.
        let read = segment::read(cx.frames, &frame);
        let Some((to, s)) = &read else { return cx.drop(frame, DropReason::NotWired) };
        cx.frames.absorb(frame);
        self.on_segment(*to, s, cx, exit);
    }

    #[inline(always)]
    fn on_segment(&mut self, to: Addressed, s: &Segment, cx: &mut Cx<'_>, exit: &mut impl Exit) {
        let Some(i) = self.find(&to) else {
            return; // the host has no such connection
        };
        if self.slots[i as usize].connection.is_none() {
            self.meet(i);
        }
        let Host { slots, timers, cookies, .. } = self;
        let slot = &mut *slots[i as usize];
        let Some(connection) = &mut slot.connection else {
            return; // the endpoint has no connection
        };
        connection.set_peer(to.sender);
        if let (true, Some(FastOpen::Cookie(cookie))) = (slot.opens, s.syn.fast_open) {
            cookies.insert(Ipv4Addr::from_bits((to.key >> 32) as u32), cookie);
        }
        let delivered = connection.on_segment(s, cx.now);
        slot.note(&delivered, cx.now);
        slot.note_change(cx.now);
        if act(slot, i, timers, cx, exit) {
            self.start_follower(i, cx.now);
        }
    }

    /// Returns whether the host has too many endpoints for their state to stay in the cache.
    #[inline]
    pub(crate) fn is_crowded(&self) -> bool {
        self.slots.len() > CROWD
    }

    /// Prefetches the state of the endpoints of the next frames. Each cache line holds the address of the
    /// next one, so a frame takes one step for each place that it advances: endpoint, connection, segments in
    /// flight. For consecutive frames of one endpoint, only the first is prefetched.
    pub(crate) fn foresee(&self, frames: &Frames, coming: [Option<&Frame>; 4]) {
        let [first, second, third, fourth] =
            coming.map(|frame| frame.map_or(Frame::NO_HINT, |frame| frame.hint));
        let slot = |hint: u16, before: u16| (hint != before).then(|| self.slots.get(usize::from(hint)))?;
        if let Some(draft) = coming[2].and_then(|frame| frames.draft(frame)) {
            segment::draft::prefetch(draft);
        }
        if let Some(slot) = slot(fourth, third) {
            slot.prefetch();
        }
        if let Some(connection) = slot(second, first).and_then(|slot| slot.connection.as_deref()) {
            connection.prefetch();
        }
        if let Some(slot) = self.slots.get(usize::from(first)) {
            slot.prefetch_last();
        }
    }

    /// Returns whether no frame waits for a poll.
    #[inline]
    pub(crate) fn is_cleared(&self) -> bool {
        self.leaving.is_empty()
    }

    /// Takes all frames that leave now. Call [`Host::run_timers`] first.
    #[inline(always)]
    pub(crate) fn leaving(&mut self) -> impl Iterator<Item = (Time, Frame)> + '_ {
        self.leaving.drain(..)
    }

    /// Frees the empty buffer of [`Host::leaving`] if it became large, as when many flows start at once.
    #[inline(always)]
    pub(crate) fn give_up_large_buffer(&mut self) {
        if self.leaving.capacity() > BUFFER {
            self.leaving = Vec::new();
        }
    }

    /// Takes all frames like [`Host::leaving`], with the buffer, which is [given back](Host::give_back)
    /// empty.
    pub(crate) fn take_leaving(&mut self) -> Vec<(Time, Frame)> {
        core::mem::take(&mut self.leaving)
    }

    /// Returns the buffer of [`Host::take_leaving`], unless a new one is in use.
    pub(crate) fn give_back(&mut self, buffer: Vec<(Time, Frame)>) {
        if self.leaving.is_empty() {
            self.leaving = buffer;
            self.give_up_large_buffer();
        }
    }

    /// Returns the time of the next action; [`Time::MAX`] for never.
    #[inline]
    pub(crate) fn due(&self) -> Time {
        match self.leaving.first() {
            Some(&(at, _)) => at,
            None => self.timers.next(),
        }
    }

    /// Runs the timers that are due by `cx.now`.
    #[inline(always)]
    pub(crate) fn run_timers(&mut self, cx: &mut Cx<'_>) {
        self.now = self.now.max(cx.now);
        if self.timers.next() <= cx.now {
            self.run_expired(cx);
        }
    }

    #[inline(never)]
    fn run_expired(&mut self, cx: &mut Cx<'_>) {
        while let Some(i) = self.timers.pop(cx.now) {
            self.on_timer(i, cx);
        }
    }

    #[cold]
    #[inline(never)]
    fn start_follower(&mut self, i: u32, now: Time) {
        if let Some(&(follower, after)) = self.followers.get(&i) {
            self.timers.set(follower, now + after);
        }
    }
}

impl Node for Host {
    fn takes_drafts(&self) -> bool {
        true
    }

    fn handle_frame(&mut self, cx: &mut Cx<'_>, _: Port, frame: Frame) {
        let mut leaving = core::mem::take(&mut self.leaving);
        self.take_in(cx, frame, &mut leaving);
        self.leaving = leaving;
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
        self.run_timers(cx);
        if !writable.contains(WIRE) {
            return None;
        }
        // The world takes all frames at once. Other drivers have few.
        let (at, frame) = (!self.leaving.is_empty()).then(|| self.leaving.remove(0))?;
        Some(Transmit { port: WIRE, at, frame })
    }

    fn next_deadline(&self, writable: PortSet) -> Option<Time> {
        let due = if writable.contains(WIRE) { self.due() } else { self.timers.next() };
        Some(due).filter(|&due| due < Time::MAX)
    }
}

/// Runs the application of endpoint `i` and sends its connection's segments by `exit`. Returns whether the
/// connection has just ended.
#[inline(always)]
fn act(slot: &mut Slot, i: u32, timers: &mut Timers, cx: &mut Cx<'_>, exit: &mut impl Exit) -> bool {
    slot.run_application(cx.now);
    let Some(connection) = &mut slot.connection else { return false };
    slot.record.segments += connection.send(cx.frames, cx.now, exit);
    let over = slot.end_if_over(cx.now);
    let due = slot.next_deadline();
    if slot.trace {
        // A trace also samples the bytes in flight at these times.
        timers.set_or_earlier(i, due);
    } else {
        timers.set(i, due);
    }
    over
}
