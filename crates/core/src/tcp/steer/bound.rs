//! The bound of a class: no second has more than 1.15 times the class's rate and 64 kB, whatever the ACKs of
//! its flows do.
//!
//! ACKs slow only what obeys them. A hook charges every packet with data to its class's record by the generic
//! cell rate algorithm (ITU-T I.371): the record is a virtual queue that is served a little faster than the
//! class's rate, and what finds no room in it is dropped. Traffic that keeps to its rate finds it empty. Two
//! parts make the bound: in any second passes at most what is served in it, 1.05 times the rate and a tick of
//! the kernel's coarse clock, and the room, 0.05 times the rate and 64 kB.
//!
//! Traffic that ACKs do not slow passes a second record first, the class's [`Tally`], at the class's rate, or
//! less where that would leave nothing to the class's TCP.
//!
//! A class that borrows has the bounds of those above it, too. What it has for itself passes them all: what a
//! sibling does cannot take it.
//!
//! Where each flow of a class has a rate, each has a record of its own, a [`FlowBound`]. A flow whose ACKs
//! are not controlled is one of its source's [`Strangers`](super::Strangers) until it has shown that it
//! lasts. What is no TCP has a [virtual queue](FlowQueues) for each flow, which is served at that rate.
//!
//! In a fair class each flow of such traffic has its [fair share](FairShare) instead, by a [virtual
//! queue](FlowQueues) of its own. What exceeds the share is dropped, or spills to the engine.
//!
//! A controlled sender that heeds no ACK has its [fair share](FairShare) of the class and no more: what it
//! sends beyond what it was permitted passes a [virtual queue](VirtualQueue). While the class has
//! controlled TCP, all that is not permitted leaves a quarter of the room to what is.

use super::due::{charge, has_room, room, served, unit};
use super::fair::{FairShare, Service};
use super::flow_bound::{FlowBound, FlowLimit};
use super::flow_queues::{Excess, FlowQueues, Queue};
use super::tally::Tally;
use super::virtual_queue::VirtualQueue;
use crate::base::rate::Rate;
use crate::base::time::{Duration, Time};
use crate::packet::Counts;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Served beyond the rate, as a part of it.
const BEYOND: u64 = 20;
/// Bytes of the longest segment without data: headers of IPv6 and TCP, with all of TCP's options. What is
/// longer carries something in its other headers.
const BARE: u64 = 40 + 60;
/// A host has a part of the rate of frames without readable addresses, whatever others send: one by this.
const QUIET: u64 = 16;
/// Time at that part of the rate that a host may be ahead of it, in nanoseconds.
const QUIET_DEPTH: u64 = 50_000_000;
/// Classes above one with flows, at most.
const DEEPEST: usize = 8;

/// Bits of [`Bound::counts`] above those of what a packet costs.
const PAYLOAD: u32 = 1 << 16;
const OWN: u32 = 1 << 17;
const FLOWS: u32 = 1 << 18;
/// Accounts of controlled senders are kept.
const PERMITS: u32 = 1 << 19;
/// Each flow that ACKs do not slow has a virtual queue of its own.
const FAIR: u32 = 1 << 20;
/// It is served at the rate that each flow has, and only what is no TCP has one.
const EACH: u32 = 1 << 21;

/// Record of what a class may send and has sent. Five lines of memory that hooks and gateway share; the last
/// four are for few classes and packets.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Bound {
    /// Time at which the virtual queue is empty, in nanoseconds of the hooks' clock.
    due: AtomicU64,
    /// Nanoseconds per byte in units of 2^-20; 0: the class has no bound.
    per_byte: AtomicU64,
    /// Place of the class by whose rate the queue of segments without data is served, plus one; 0: it is not
    /// known yet. Hooks write it.
    pub(super) bare_by: AtomicU32,
    /// Time at which controlled TCP was seen last, in units of 2^23 ns.
    tcp: AtomicU32,
    /// Place of the next class above with a bound, plus one; 0: none.
    above: AtomicU32,
    /// Cost of a packet: in the low 16 bits bytes beside those from its IP header on, and `PAYLOAD`; `OWN`
    /// and `FLOWS`, by which the second line is read only of classes that need it.
    counts: AtomicU32,
    /// Bytes of TCP whose ACKs are controlled, as the rate counts them.
    held: AtomicU64,
    /// Bytes of TCP whose ACKs are not.
    free: AtomicU64,
    /// Packets of both.
    packets: AtomicU64,
    /// Bytes of QUIC, which are among those that the tally counts.
    quic: AtomicU64,
    /// Record of the class's own guaranteed rate, if it borrows more.
    own_due: AtomicU64,
    own_per_byte: AtomicU64,
    /// Time at which the queue of segments without data is empty.
    pub(super) bare_due: AtomicU64,
    /// Bytes that each flow may have in any second; 0: flows have no bound.
    flow_most: AtomicU64,
    /// Packets that were dropped.
    dropped: AtomicU64,
    /// Their bytes.
    dropped_bytes: AtomicU64,
    /// Packets of controlled TCP that had passed before.
    repeated: AtomicU64,
    /// Packets of controlled TCP that others overtook.
    reordered: AtomicU64,
    fair: FairShare,
    /// Packets of TCP with data for whose ACKs there was made room.
    pub(super) acked: AtomicU64,
    /// Bytes of TCP whose ACKs pass, which are among those that the tally counts.
    untouched: AtomicU64,
    /// Most bytes that were found to be unresponsive.
    unresponsive: AtomicU64,
    spares: [AtomicU64; 5],
}

const _: () = assert!(core::mem::size_of::<Bound>() == 320);

/// Terms of a class's bound, from the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The most that it may send. `None`: as much as those above it.
    pub most: Option<Rate>,
    /// Guaranteed rate, if it borrows.
    pub own: Option<Rate>,
    /// Place of the next class above with a bound.
    pub above: Option<u32>,
    /// The most that each of its flows may send.
    pub flow: Option<FlowLimit>,
    /// True if the permissions of the senders of its controlled flows are known.
    pub permits: bool,
    /// Terms of the virtual queues that flows have which ACKs do not slow, if they have any.
    pub fair: Option<FairLimit>,
    /// Unit that the rates count.
    pub counts: Counts,
}

impl Limit {
    /// Terms that bound nothing.
    pub const NONE: Limit = Limit {
        most: None,
        own: None,
        above: None,
        flow: None,
        permits: false,
        fair: None,
        counts: Counts::Ip,
    };
}

/// Terms of the virtual queues of flows that ACKs do not slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairLimit {
    /// Depth of a queue, as time at the rate at which it is served.
    pub depth: Duration,
    /// Time at the fair share that waits in a queue when its flow spills. `None`: no flow does.
    pub spills: Option<Duration>,
    /// Rate at which a queue is served.
    pub share: Share,
}

/// Rate at which the virtual queue of a flow is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// The flow's fair share of the class.
    Fair {
        /// The most that it may be.
        most: Option<Rate>,
    },
    /// The rate that each flow of the class has. TCP has no such queue.
    Each(Rate),
}

impl Share {
    /// The most that a flow may have.
    fn most(self) -> Option<Rate> {
        match self {
            Share::Fair { most } => most,
            Share::Each(rate) => Some(rate),
        }
    }
}

/// Records of the flow of a packet, where the class has need of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Records<'a> {
    /// Record of the flow's own bound, if it is TCP.
    pub flow: Option<&'a FlowBound>,
    /// Record that new flows of the source share, of what is no segment of TCP.
    pub source: Option<&'a FlowBound>,
    /// Account of a controlled flow's sender, if that is current.
    pub sender: Option<&'a VirtualQueue>,
    /// Table of virtual queues, and a hash of the flow.
    pub queues: Option<(&'a FlowQueues, u64)>,
    /// The engine takes what spills.
    pub spills: bool,
}

/// Decision on packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// They pass.
    Passes,
    /// They pass, with Congestion Experienced in their IP headers.
    Marked,
    /// They are dropped.
    Dropped,
    /// They go to the queue of their flow in the engine. It has this number.
    Spills(u16),
}

/// Packets with data that come as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Number of packets: more than one of a giant packet.
    pub packets: u64,
    /// Their bytes from their IP headers on.
    pub bytes: u64,
    /// Their payload, if they are TCP.
    pub payload: u64,
    /// Their ECN field (RFC 3168), if they are not TCP.
    pub ecn: u8,
    /// Reason why they keep to the rate.
    pub kind: Kind,
}

/// Kinds of packets, by how they are kept to their class's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// TCP whose ACKs are controlled.
    Held,
    /// TCP whose ACKs are not, but whose class is not charged with it by a tally.
    Free,
    /// Traffic that the class's tally counts.
    Counted,
}

/// Returns whether a segment of so many bytes, from its IP header on, has to be charged.
pub const fn is_charged(bytes: u64, payload: u64) -> bool {
    payload > 0 || bytes > BARE
}

/// Bytes per second as nanoseconds per byte, in units of 2^-20; a tick that rounds to 0 is 1.
fn per_byte(rate: Rate, beyond: bool) -> u64 {
    let bps = u128::from(rate.bps());
    let bps = if beyond { bps + bps / u128::from(BEYOND) } else { bps };
    ((8_000_000_000u128 << 20) / bps).clamp(1, 1 << 44) as u64
}

/// TCP counts as there for so long after its last segment, in those units: three seconds, in which a sender
/// has sent again what was lost.
const STAYS: u32 = 358;

/// TCP that is held again after a time in which it was not held passes its bound for so long, in those units:
/// half a second. What is under way by then was sent at the rate of the path.
const SPARED: u32 = 60;

/// For so long after that time, in those units, accounts of senders are not current: three seconds.
const RECOVERS: u32 = 358;

/// Returns whether the senders' permissions are not known well at `now`, after data last passed at `unheld` a
/// bound that nothing kept.
pub fn recovers(unheld: Time, now: Time) -> bool {
    unit(now.as_nanos()).wrapping_sub(unit(unheld.as_nanos())) <= RECOVERS
}

/// Returns whether TCP whose ACKs are held is spared at `now`, after data last passed at `unheld` a bound
/// that nothing kept.
pub fn is_spared(unheld: Time, now: Time) -> bool {
    unit(now.as_nanos()).wrapping_sub(unit(unheld.as_nanos())) <= SPARED
}

impl Bound {
    /// From now on the class has this limit, or none. What has been counted stays.
    pub fn set(&self, limit: Option<Limit>) {
        let (most, own) = limit.map_or((None, None), |limit| (limit.most, limit.own));
        let rate = |rate: Option<Rate>| rate.map_or(0, |rate| per_byte(rate, true));
        let (most, own) = (rate(most), rate(own));
        let above = limit.and_then(|limit| limit.above);
        let flow = limit.and_then(|limit| limit.flow);
        let permits = limit.is_some_and(|limit| limit.permits);
        let fair = limit.and_then(|limit| limit.fair);
        let depth = fair.map_or(Duration::ZERO, |fair| fair.depth);
        let share = fair.map(|fair| fair.share);
        self.fair.set(share.and_then(Share::most), depth, fair.and_then(|fair| fair.spills));
        let parts = if own > 0 { OWN } else { 0 }
            | if flow.is_some() { FLOWS } else { 0 }
            | if permits { PERMITS } else { 0 }
            | if fair.is_some() { FAIR } else { 0 }
            | if let Some(Share::Each(_)) = share { EACH } else { 0 };
        let counts = limit.map_or(0, |limit| cost_of(limit.counts)) | parts;
        self.bare_by.store(0, Relaxed);
        self.flow_most.store(flow.map_or(0, |flow| flow.most()), Relaxed);
        self.own_per_byte.store(own, Relaxed);
        self.counts.store(counts, Relaxed);
        self.above.store(above.map_or(0, |place| place + 1), Relaxed);
        self.per_byte.store(most, Relaxed);
    }

    /// Leaves no room at `now`: from then on the class has what its rate serves.
    pub fn fill(&self, now: Time) {
        let per_byte = self.per_byte.load(Relaxed);
        if per_byte != 0 {
            self.due.fetch_max(now.as_nanos() + room(per_byte), Relaxed);
        }
    }

    /// Returns whether anything of the class is dropped, whatever its parents do.
    pub fn is_set(&self) -> bool {
        self.per_byte.load(Relaxed) != 0 || self.above.load(Relaxed) != 0 || self.bounds_flows()
    }

    /// Returns whether each flow has a bound.
    pub fn bounds_flows(&self) -> bool {
        self.flow_most.load(Relaxed) != 0
    }

    /// Cost of `load`.
    fn cost(&self, load: &Load) -> u64 {
        let counts = self.counts.load(Relaxed);
        let whole = load.bytes + load.packets * u64::from(counts & 0xffff);
        if counts & PAYLOAD == 0 || load.kind != Kind::Held {
            return whole;
        }
        // Segments that are nearly all headers are not free.
        load.payload.max(load.bytes / 4 * 3)
    }

    fn is_within(&self, cost: u64, quarters: u64, now: u64) -> bool {
        let per_byte = self.per_byte.load(Relaxed);
        per_byte == 0 || has_room(&self.due, per_byte, quarters, cost, now)
    }

    /// Returns whether the class is charged with all that its controlled flows send beyond their permissions.
    pub fn counts_beyond(&self) -> bool {
        self.counts.load(Relaxed) & PERMITS != 0
    }

    /// Returns whether flows that ACKs do not slow have virtual queues. Where each flow has a rate, TCP has
    /// none.
    pub fn is_fair(&self) -> bool {
        self.counts.load(Relaxed) & FAIR != 0
    }

    /// Returns whether each flow of what is no TCP has a virtual queue that is served at its own rate.
    pub fn is_each(&self) -> bool {
        self.counts.load(Relaxed) & EACH != 0
    }

    /// Rate at which virtual queues of flows that ACKs do not slow are served.
    fn service(&self) -> Service {
        if self.is_each() {
            self.fair.each()
        } else {
            self.fair.shared()
        }
    }

    /// As [`Bound::service`], at `now`, for which the share is found.
    fn service_at(&self, now: u64) -> Service {
        if !self.is_each() {
            // Flows that spill count as long as the gateway says so.
            let has_tcp = self.has_tcp(now) || self.fair.spills();
            self.fair.per_byte(has_tcp, now);
        }
        self.service()
    }

    /// Returns whether a controlled sender sends this, of the flow with this account, beyond its permission.
    fn is_beyond(&self, sender: &VirtualQueue) -> bool {
        self.counts_beyond() && !sender.is_permitted()
    }

    /// Nanoseconds per byte at which the virtual queue of a controlled flow is served, in units of 2^-20: a
    /// quarter more than its fair share. Its turns come in lumps, and what is lost of it is sent again.
    fn per_byte_beyond(&self, now: u64) -> u64 {
        let per_byte = self.fair.per_byte(true, now);
        per_byte - per_byte / 5
    }

    /// Returns whether a flow with this record is within what each flow of the class may send.
    fn flow_is_within(&self, flow: &FlowBound, cost: u64, now: u64) -> bool {
        let most = self.flow_most.load(Relaxed);
        most == 0 || flow.has_room(most, cost, now)
    }

    pub(super) fn is_within_own(&self, cost: u64, now: u64) -> bool {
        let per_byte = self.own_per_byte.load(Relaxed);
        self.counts.load(Relaxed) & OWN != 0 && has_room(&self.own_due, per_byte, 4, cost, now)
    }

    /// Charges what the class has for itself.
    pub(super) fn spend_own(&self, cost: u64, now: u64) {
        charge(&self.own_due, served(cost, self.own_per_byte.load(Relaxed)), now);
    }

    /// Returns whether TCP whose ACKs are controlled has been here lately.
    fn has_tcp(&self, now: u64) -> bool {
        unit(now).wrapping_sub(self.tcp.load(Relaxed)) <= STAYS
    }

    /// Counts TCP whose ACKs are held.
    fn count_held(&self, cost: u64, now: u64) {
        if self.tcp.load(Relaxed) != unit(now) {
            self.tcp.store(unit(now), Relaxed);
        }
        self.held.fetch_add(cost, Relaxed);
    }

    /// Lets held TCP pass at `now` that [is spared](is_spared). No record is charged with it.
    pub fn spare(&self, load: &Load, now: Time) {
        self.count_held(self.cost(load), now.as_nanos());
        self.packets.fetch_add(load.packets, Relaxed);
    }

    fn spend(&self, cost: u64, now: u64) {
        let per_byte = self.per_byte.load(Relaxed);
        if per_byte != 0 {
            charge(&self.due, served(cost, per_byte), now);
        }
    }

    /// Nanoseconds per byte, in units of 2^-20; 0: the class has no bound but those above it.
    pub(super) fn per_byte(&self) -> u64 {
        self.per_byte.load(Relaxed)
    }

    /// Counts a packet that is dropped.
    pub(super) fn count_dropped(&self, bytes: u64) {
        self.dropped.fetch_add(1, Relaxed);
        self.dropped_bytes.fetch_add(bytes, Relaxed);
    }

    /// Fair share of each of its flows.
    pub fn fair(&self) -> &FairShare {
        &self.fair
    }

    /// Returns whether so many bytes of no known class may pass at `now`. They are charged and counted then.
    /// Hosts within a part of the rate, by their records `own`, have a quarter of the room to themselves.
    pub(crate) fn admits_alone(&self, bytes: u64, own: &AtomicU64, now: Time) -> bool {
        let (at, per_byte) = (now.as_nanos(), self.per_byte() * QUIET);
        let is_quiet = own.load(Relaxed).saturating_sub(at) <= QUIET_DEPTH;
        if is_quiet {
            charge(own, served(bytes, per_byte), at);
        }
        if !self.is_within(bytes, if is_quiet { 4 } else { 3 }, at) {
            self.count_dropped(bytes);
            return false;
        }
        self.spend(bytes, at);
        self.free.fetch_add(bytes, Relaxed);
        self.packets.fetch_add(1, Relaxed);
        true
    }

    /// Packets of TCP with data that have passed.
    pub(super) fn packets(&self) -> u64 {
        self.packets.load(Relaxed)
    }

    /// Totals passed and dropped.
    pub fn passed(&self) -> Passed {
        Passed {
            held: self.held.load(Relaxed),
            free: self.free.load(Relaxed),
            beyond: self.fair.beyond(),
            marked: self.fair.marked(),
            packets: self.packets.load(Relaxed),
            dropped: self.dropped.load(Relaxed),
            dropped_bytes: self.dropped_bytes.load(Relaxed),
            repeated: self.repeated.load(Relaxed),
            reordered: self.reordered.load(Relaxed),
            quic: self.quic.load(Relaxed),
            untouched: self.untouched.load(Relaxed),
        }
    }

    /// Returns the part that is not TCP of `bytes` that the tally has counted. It never gets less, although
    /// both counters move on while they are read.
    pub fn unresponsive(&self, bytes: u64) -> u64 {
        let rest = bytes.saturating_sub(self.untouched.load(Relaxed));
        self.unresponsive.fetch_max(rest, Relaxed).max(rest)
    }

    /// Counts packets of controlled TCP that had passed before.
    pub fn count_repeated(&self, packets: u64) {
        self.repeated.fetch_add(packets, Relaxed);
    }

    /// Counts bytes of QUIC that passed.
    pub fn count_quic(&self, bytes: u64) {
        self.quic.fetch_add(bytes, Relaxed);
    }

    /// Counts packets of controlled TCP that others overtook.
    pub fn count_reordered(&self, packets: u64) {
        self.reordered.fetch_add(packets, Relaxed);
    }
}

/// Totals of a class, up to some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Bytes of TCP whose ACKs are controlled, as the rate counts them.
    pub held: u64,
    /// Bytes of TCP whose ACKs are not controlled, from their IP headers on.
    pub free: u64,
    /// Bytes of `held` beyond what their senders were permitted.
    pub beyond: u64,
    /// Packets of both, with payload.
    pub packets: u64,
    /// Packets that virtual queues of flows marked.
    pub marked: u64,
    /// Packets beyond the bound.
    pub dropped: u64,
    /// Their bytes.
    pub dropped_bytes: u64,
    /// Packets of controlled TCP that had passed before.
    pub repeated: u64,
    /// Packets of controlled TCP that others overtook.
    pub reordered: u64,
    /// Bytes of QUIC, from their IP headers on.
    pub quic: u64,
    /// Bytes of TCP whose ACKs pass untouched, from their IP headers on. The class's tally has them, too.
    pub untouched: u64,
}

/// Returns the cost of a packet for [`Bound::counts`]. A negative overhead is not taken off.
fn cost_of(counts: Counts) -> u32 {
    match counts {
        Counts::Payload => PAYLOAD,
        _ => counts.overhead_of_packet().max(0) as u32,
    }
}

/// Place of the next class above the one at this place.
pub(super) fn above(bounds: &[Bound], place: u32) -> Option<u32> {
    bounds.get(place as usize)?.above.load(Relaxed).checked_sub(1)
}

/// The classes that bound a class, it first.
pub(super) fn chain(bounds: &[Bound], place: u32) -> impl Iterator<Item = &Bound> {
    let places = core::iter::successors(Some(place), move |&at| above(bounds, at));
    places.map_while(move |at| bounds.get(at as usize)).take(DEEPEST)
}

/// Returns whether packets of the class at this place may pass at `now`, of a flow with these records. They
/// are charged and counted then. None spill.
pub fn admits(
    bounds: &[Bound],
    tallies: &[Tally],
    place: u32,
    of: Records<'_>,
    load: &Load,
    now: Time,
) -> bool {
    judge(bounds, tallies, place, Records { spills: false, ..of }, load, now) != Judgement::Dropped
}

/// Returns what becomes of packets of the class at this place at `now`, of a flow with these records. Those
/// that pass are charged and counted.
#[inline(always)]
pub fn judge(
    bounds: &[Bound],
    tallies: &[Tally],
    place: u32,
    of: Records<'_>,
    load: &Load,
    now: Time,
) -> Judgement {
    let Some((own, tally)) = bounds.get(place as usize).zip(tallies.get(place as usize)) else {
        return Judgement::Passes;
    };
    let Records { flow, source, sender, queues, spills } = of;
    let (cost, at) = (own.cost(load), now.as_nanos());
    let queues = queues.filter(|_| load.kind != Kind::Held && own.is_fair());
    let queue_of = |(queues, hash)| {
        let queue = FlowQueues::of(queues, hash, place, &own.fair, own.service(), at);
        (queue, own.service_at(at))
    };
    let (mut before, mut flow, mut queues) = (None, flow, queues);
    if own.is_each() {
        let of = queues.take().filter(|_| source.is_some());
        before = of.map(queue_of).filter(|(queue, _)| !matches!(queue, Queue::New));
        if before.is_none() {
            // Until a flow has a queue, it is one of its source's.
            flow = flow.or(source);
        }
    }
    if spills && load.kind == Kind::Counted && own.fair.spills() {
        if let Some(of) = queues {
            let (queue, service) = queue_of(of);
            let time = service.time(cost);
            match of.0.spill(queue, &own.fair, (load.ecn, load.packets), time, at) {
                Some(Excess::Spills(number)) => return Judgement::Spills(number),
                Some(Excess::Dropped) => {
                    tally.count_dropped(load.packets, load.bytes);
                    return Judgement::Dropped;
                }
                None => {}
            }
            before = Some((queue, service));
        }
    }
    let beyond = sender.filter(|sender| own.is_beyond(sender));
    let in_queue = if beyond.is_some() { served(cost, own.per_byte_beyond(at)) } else { 0 };
    if let Some(sender) = beyond {
        sender.count_beyond(load.payload as u32);
    }
    let beside_tcp = load.kind != Kind::Held && own.has_tcp(at);
    let quarters = if beyond.is_some() || beside_tcp { 3 } else { 4 };
    let is_own = own.is_within_own(cost, at);
    let fits = flow.is_none_or(|flow| own.flow_is_within(flow, cost, at))
        && beyond.is_none_or(|sender| sender.has_room(in_queue, at))
        && own.is_within(cost, quarters, at)
        && (is_own || chain(bounds, place).skip(1).all(|c| c.is_within(cost, quarters, at)));
    let queue = before.or_else(|| queues.filter(|_| fits).map(queue_of));
    let queued =
        fits && queue.is_none_or(|(queue, service)| queue.lets(&own.fair, load.ecn, cost, service, at));
    if !fits
        || load.kind == Kind::Free && !(queued && tally.admits(load.packets, load.bytes, now, beside_tcp))
    {
        own.dropped.fetch_add(load.packets, Relaxed);
        own.dropped_bytes.fetch_add(load.bytes, Relaxed);
        return Judgement::Dropped;
    }
    if load.kind == Kind::Counted {
        if !queued {
            tally.count_dropped(load.packets, load.bytes);
            return Judgement::Dropped;
        }
        if !tally.passes(load.packets, load.bytes, now, beside_tcp) {
            return Judgement::Dropped;
        }
    }
    chain(bounds, place).for_each(|bound| bound.spend(cost, at));
    if is_own {
        own.spend_own(cost, at);
    }
    if let Some(flow) = flow.filter(|_| own.bounds_flows()) {
        flow.charge(cost);
    }
    let mut marked = false;
    if let Some((queue, service)) = queue {
        marked = load.ecn != 0 && queue.marks(&own.fair, load.ecn, cost, service, at);
        queue.charge(&own.fair, cost, service, at);
    }
    if marked {
        own.fair.count_marked(load.packets);
    }
    if let Some(sender) = beyond {
        sender.enqueue(in_queue, at);
        own.fair.count_beyond(cost);
    } else if let Some(sender) = sender.filter(|_| own.counts_beyond()) {
        sender.pass(load.payload as u32, || served(cost, own.per_byte_beyond(at)), at);
    }
    if beyond.is_some() || load.kind != Kind::Held {
        own.fair.count(cost);
    }
    match load.kind {
        Kind::Held => own.count_held(cost, at),
        Kind::Free => {
            own.free.fetch_add(load.bytes, Relaxed);
        }
        Kind::Counted => return if marked { Judgement::Marked } else { Judgement::Passes },
    }
    own.packets.fetch_add(load.packets, Relaxed);
    Judgement::Passes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::time::Duration;

    const R: Rate = Rate::mbit(8); // a byte a microsecond

    /// 900 of 1,000 bytes are TCP's. A counter that is read a packet too early takes nothing back.
    #[test]
    fn unresponsive_bytes_never_get_less() {
        let bound = Bound::default();
        bound.untouched.store(900, Relaxed);
        assert_eq!([1_000, 999, 1_003].map(|bytes| bound.unresponsive(bytes)), [100, 100, 103]);
    }

    fn limit(most: Rate) -> Limit {
        Limit { most: Some(most), ..Limit::NONE }
    }

    fn records(n: usize) -> (Vec<Bound>, Vec<Tally>) {
        ((0..n).map(|_| Bound::default()).collect(), (0..n).map(|_| Tally::default()).collect())
    }

    fn load(bytes: u64, kind: Kind) -> Load {
        Load { packets: 1, bytes, payload: bytes - 40, ecn: 0, kind }
    }

    /// Bytes that pass of a packet every `gap` microseconds, from one second on, by second.
    fn by_second(
        bounds: &[Bound],
        tallies: &[Tally],
        gap: u64,
        seconds: u64,
        of: impl Fn(u64) -> Option<Load>,
    ) -> Vec<u64> {
        let mut passed = vec![0; seconds as usize];
        for us in (0..seconds * 1_000_000).step_by(gap as usize) {
            let Some(load) = of(us) else { continue };
            if admits(bounds, tallies, 0, Records::default(), &load, Time::from_micros(1_000_000 + us)) {
                passed[(us / 1_000_000) as usize] += load.bytes;
            }
        }
        passed
    }

    /// A megabyte a second: 1.15 MB and 64 kB at most.
    const MOST: u64 = 1_150_000 + 64_000;

    /// 2^23 ns are 8.389 ms, of which 60 are 503 ms.
    #[test]
    fn flows_are_spared_for_half_a_second_after_an_absence() {
        let (unheld, at) = (Time::from_secs(7), |ms| Time::from_secs(7) + Duration::from_millis(ms));
        assert!(is_spared(unheld, unheld) && is_spared(unheld, at(494)));
        assert!(!is_spared(unheld, at(512)) && !is_spared(unheld, at(100_000)));
        // It is counted, and charged to nothing: 5,000 bytes that come then find all of their room.
        let (bounds, tallies) = records(1);
        bounds[0].set(Some(limit(R)));
        (0..100).for_each(|_| bounds[0].spare(&load(100_000, Kind::Held), unheld));
        assert_eq!(bounds[0].passed(), Passed { held: 10_000_000, packets: 100, ..Passed::default() });
        assert!(admits(&bounds, &tallies, 0, Records::default(), &load(5_000, Kind::Held), unheld));
    }

    #[test]
    fn no_second_has_more_than_the_law_allows() {
        let (bounds, tallies) = records(1);
        bounds[0].set(Some(limit(R)));
        // Twenty times the rate, always, and in every other second.
        let always = by_second(&bounds, &tallies, 50, 6, |_| Some(load(1_000, Kind::Held)));
        assert!(always.iter().all(|bytes| (1_040_000..=MOST).contains(bytes)), "{always:?}");
        let (bounds, tallies) = records(1);
        bounds[0].set(Some(limit(R)));
        let on = |us: u64| (us / 1_000_000).is_multiple_of(2).then(|| load(1_000, Kind::Held));
        let by_turns = by_second(&bounds, &tallies, 50, 8, on);
        assert!(by_turns.iter().step_by(2).all(|bytes| (1_100_000..=MOST).contains(bytes)), "{by_turns:?}");
    }

    #[test]
    fn what_keeps_to_its_rate_loses_nothing() {
        let (bounds, tallies) = records(1);
        bounds[0].set(Some(limit(R)));
        // 1,000 bytes every millisecond, as 50 at once every 50 ms.
        let passed = (0..200u64).all(|n| {
            (0..50).all(|_| {
                admits(
                    &bounds,
                    &tallies,
                    0,
                    Records::default(),
                    &load(1_000, Kind::Held),
                    Time::from_millis(1_000 + 50 * n),
                )
            })
        });
        assert!(passed);
        assert_eq!(bounds[0].passed(), Passed { held: 10_000_000, packets: 10_000, ..Passed::default() });
    }

    #[test]
    fn a_packet_longer_than_the_room_passes_where_nothing_waits() {
        let (bounds, tallies) = records(1);
        bounds[0].set(Some(limit(Rate::kbit(64))));
        let giant = Load { packets: 350, bytes: 500_000, payload: 480_000, ecn: 0, kind: Kind::Held };
        assert!(admits(&bounds, &tallies, 0, Records::default(), &giant, Time::from_secs(1)));
        // A minute of the rate, and what it is paid with.
        assert!(!admits(
            &bounds,
            &tallies,
            0,
            Records::default(),
            &load(1_500, Kind::Held),
            Time::from_secs(50)
        ));
        assert!(admits(
            &bounds,
            &tallies,
            0,
            Records::default(),
            &load(1_500, Kind::Held),
            Time::from_secs(61)
        ));
    }

    #[test]
    fn unresponsive_traffic_leaves_a_part_to_the_others() {
        let (bounds, tallies) = records(1);
        bounds[0].set(Some(limit(R)));
        tallies[0].police(Some(R), Duration::from_millis(40), 0);
        let mut n = 0u64;
        let mut held = 0;
        for us in (0..4_000_000u64).step_by(50) {
            n += 1;
            let now = Time::from_micros(1_000_000 + us);
            let kind = if n.is_multiple_of(2) { Kind::Free } else { Kind::Counted };
            admits(&bounds, &tallies, 0, Records::default(), &load(1_000, kind), now);
            // A tenth of the rate.
            if us.is_multiple_of(10_000) {
                held += u64::from(admits(
                    &bounds,
                    &tallies,
                    0,
                    Records::default(),
                    &load(1_000, Kind::Held),
                    now,
                ));
            }
        }
        assert_eq!(held, 400, "nothing of it is lost");
        let all = tallies[0].counted().bytes + bounds[0].passed().free;
        assert!((3_600_000..=3_650_000).contains(&all), "nine tenths: {all}");
        // Three seconds after the last of it, the rate is theirs.
        let later = Time::from_secs(9);
        let times = (0..1_000_000u64).step_by(50).map(|us| later + Duration::from_micros(us));
        let passed = times
            .filter(|now| admits(&bounds, &tallies, 0, Records::default(), &load(1_000, Kind::Free), *now))
            .count();
        assert!((1_035..=1_045).contains(&passed), "{passed}");
    }

    #[test]
    fn what_a_class_has_for_itself_no_sibling_takes() {
        let (bounds, tallies) = records(3);
        let child = Limit { most: Some(R), own: Some(Rate::mbit(2)), above: Some(2), ..Limit::NONE };
        (0..2).for_each(|n| bounds[n].set(Some(child)));
        bounds[2].set(Some(limit(R)));
        let (mut passed, mut lost) = ([0u64; 2], 0);
        for us in (0..4_000_000u64).step_by(50) {
            let now = Time::from_micros(1_000_000 + us);
            passed[0] +=
                u64::from(admits(&bounds, &tallies, 0, Records::default(), &load(1_000, Kind::Held), now));
            if us.is_multiple_of(4_000) {
                let passes = admits(&bounds, &tallies, 1, Records::default(), &load(1_000, Kind::Held), now);
                passed[1] += u64::from(passes);
                lost += u64::from(!passes);
            }
        }
        assert_eq!((passed[1], lost), (1_000, 0), "2 Mbit/s for four seconds");
        assert!(passed[0] + passed[1] <= 4 * 1_050 + super::super::due::ROOM / 1_000 + 53, "{passed:?}");
    }

    #[test]
    fn segments_cost_what_the_rate_counts() {
        let bound = Bound::default();
        let cost = |counts, load: Load| {
            bound.set(Some(Limit { counts, ..limit(R) }));
            bound.cost(&load)
        };
        let full = Load { packets: 2, bytes: 3_000, payload: 2_896, ecn: 0, kind: Kind::Held };
        let all = [Counts::Payload, Counts::Ip, Counts::Frame, Counts::Wire].map(|counts| cost(counts, full));
        assert_eq!(all, [2_896, 3_000, 3_036, 3_076]);
        assert_eq!(cost(Counts::Payload, Load { payload: 100, ..full }), 2_250, "three quarters at least");
        assert_eq!(cost(Counts::Payload, Load { kind: Kind::Free, ..full }), 3_000);
    }
}
