//! Disciplines that a program adds, under names of its own.
//!
//! The program decides, and this queue holds the frames: it keeps them in bands, first in, first out within
//! each, counts them, holds the limit, marks and drops. So every frame ends in one of the ways that a frame
//! may end in, whatever the program says.

use super::backlog::Backlog;
use super::limit::{Bound, QueueLimit};
use super::{mark, Discipline};
use crate::flow::Key;
use crate::frame::{Frames, Head, List, Waiting};
use crate::node::Cx;
use crate::rate::Rate;
use crate::registry::{Refused, Registry};
use crate::stats::DropReason;
use crate::time::Time;
use crate::wire;
use core::fmt;

#[cfg(test)]
mod tests;

/// Discipline of a program. It sees packets and lengths, and never touches a frame.
pub trait QueueDiscipline: fmt::Debug + Send {
    /// Returns the number of bands, from 1 to 65,536. Asked once.
    fn bands(&self) -> usize {
        1
    }

    /// Decides about a packet that arrives at `now` and for which there is room. `queue` is without it.
    fn on_arrival(&mut self, now: Time, packet: &Packet, queue: &Length<'_>) -> Arrival;

    /// Returns the band whose head leaves next. It is asked at any time and any number of times while
    /// packets wait. The default is the first band that has any. If the band is empty, that one is used.
    fn next(&self, queue: &Length<'_>) -> usize {
        queue.first()
    }

    /// Decides about the head of the band that is [next](QueueDiscipline::next), which can leave at `now`.
    /// `queue` is without it. After a packet that does not leave, the next one is asked about.
    fn on_departure(&mut self, _now: Time, _packet: &Packet, _queue: &Length<'_>) -> Departure {
        Departure::Send
    }
}

/// Packet, as a discipline sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Bytes, as the queue charges them: IP bytes and the link's overhead.
    pub bytes: u64,
    /// Number of packets that it stands for; more than 1 for a segment that is cut later.
    pub packets: u32,
    /// Hash of addresses, ports and protocol, by the seed of the queue.
    pub flow: u64,
    /// ECN field: 0 not capable, 1 ECT(1), 2 ECT(0), 3 congestion experienced (RFC 3168 §5).
    pub ecn: u8,
    /// Time of its arrival.
    pub since: Time,
}

/// Length of a band.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Band {
    /// Waiting frames.
    pub packets: u64,
    /// Waiting bytes, as charged.
    pub bytes: u64,
}

/// Length of the queue.
#[derive(Clone, Copy, Debug)]
pub struct Length<'a> {
    /// Waiting packets.
    pub packets: u64,
    /// Waiting bytes, as charged.
    pub bytes: u64,
    /// Bands.
    pub bands: &'a [Band],
}

impl Length<'_> {
    /// Returns the first band that has a packet; 0 if none has.
    pub fn first(&self) -> usize {
        self.bands.iter().position(|band| band.packets > 0).unwrap_or(0)
    }
}

/// Decision about a packet that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It waits in this band.
    Keep(usize),
    /// It is marked and waits in this band; it is dropped if it is not ECN-capable.
    Mark(usize),
    /// It is dropped.
    Drop,
}

/// Decision about a packet that could leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// It leaves.
    Send,
    /// It is marked and leaves; it is dropped if it is not ECN-capable.
    Mark,
    /// It is dropped.
    Drop,
}

/// Place of a discipline: what the queue feeds, and a seed for its draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Rate of the link.
    pub rate: Rate,
    /// Seed of hashes and random draws.
    pub seed: u64,
}

type Make = &'static (dyn Fn(&Place) -> Box<dyn QueueDiscipline> + Send + Sync);

static OWN: Registry<Make> = Registry::new();

/// Names that Weir's own disciplines have, or may get.
const TAKEN: [&str; 8] = ["none", "fifo", "pfq", "codel", "fq-codel", "red", "dualpi2", "cake"];

/// Discipline that was added, by its number.
#[derive(Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Own(u32);

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Numbers depend on the order of registration.
        write!(f, "Own({})", self.name())
    }
}

impl Own {
    /// Returns the discipline that was added under this name.
    pub fn by_name(name: &str) -> Option<Own> {
        OWN.number(name).map(Own)
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        OWN.named(self.0).map_or("", |(name, _)| name)
    }

    /// Returns its version; `None` if it came without one.
    pub fn version(self) -> Option<String> {
        OWN.named(self.0).and_then(|(_, version)| version)
    }
}

/// Adds a discipline under a name that is 1 to 64 letters, digits, `-` and `_`. A later one replaces an
/// earlier one with the same name, in queues that are made afterwards.
///
/// `version` tells apart the results of different states of the discipline. Stores of results ask for it. A
/// discipline that is part of the program may say `Some("")`: stores tell programs apart by their files.
///
/// # Errors
/// Fails if the name cannot stand in files, or if Weir has a discipline with this name.
pub fn register(
    name: &str,
    version: Option<&str>,
    make: impl Fn(&Place) -> Box<dyn QueueDiscipline> + Send + Sync + 'static,
) -> Result<(), Refused> {
    OWN.add(name, version, Box::leak(Box::new(make)), &TAKEN)
}

/// Returns the names of all that were added.
pub fn names() -> Vec<&'static str> {
    OWN.names()
}

/// Queue whose discipline a program has added.
#[derive(Debug)]
pub struct OwnQueue {
    lists: Box<[List]>,
    bands: Box<[Band]>,
    rules: Box<dyn QueueDiscipline>,
    pub(super) backlog: Backlog,
    /// Limit at the rate of the link that the queue feeds.
    holds: Bound,
    seed: u64,
}

impl OwnQueue {
    /// Creates a queue in front of `rate`, with room for `limit`.
    ///
    /// # Panics
    /// Panics if the discipline has no bands, or more than 65,536.
    pub fn new(own: Own, limit: QueueLimit, rate: Rate, seed: u64) -> OwnQueue {
        let make = OWN.make(own.0).expect("an entry is never removed");
        OwnQueue::with(make(&Place { rate, seed }), limit, rate, seed)
    }

    fn with(rules: Box<dyn QueueDiscipline>, limit: QueueLimit, rate: Rate, seed: u64) -> OwnQueue {
        let count = rules.bands();
        assert!((1..=65_536).contains(&count), "a queue of {count} bands: 1 to 65,536 are possible");
        let (lists, bands) = ((0..count).map(|_| List::new()).collect(), vec![Band::default(); count]);
        let backlog = Backlog::default();
        OwnQueue { lists, bands: bands.into(), rules, backlog, holds: Bound::new(limit, rate), seed }
    }

    fn length(&self) -> Length<'_> {
        Length { packets: self.backlog.packets(), bytes: self.backlog.bytes(), bands: &self.bands }
    }

    fn packet(&self, frames: &Frames, waiting: &Waiting) -> Packet {
        let (bytes, len) = frames.parked_bytes(&waiting.frame);
        let key = wire::any_packet(bytes, len).map(|p| Key::of_packet(bytes, &p)).unwrap_or_default();
        let (flow, ecn) = (key.hash(self.seed), mark::field(bytes));
        Packet {
            bytes: waiting.charge.bytes,
            packets: waiting.charge.packets,
            flow,
            ecn,
            since: waiting.since,
        }
    }

    /// Marks a frame, and returns whether it is ECN-capable.
    fn mark(&mut self, cx: &mut Cx<'_>, waiting: &Waiting) -> bool {
        let marked = mark::mark(cx.frames.parked_bytes_mut(&waiting.frame));
        if marked {
            self.backlog.stats.marks += u64::from(waiting.charge.packets);
        }
        marked
    }

    /// Asks about a frame that arrives. Returns its band, or `None` if it is to be dropped.
    fn arrival(&mut self, cx: &mut Cx<'_>, waiting: &Waiting) -> Option<usize> {
        let packet = self.packet(cx.frames, waiting);
        let (backlog, bands) = (&self.backlog, &self.bands);
        let length = Length { packets: backlog.packets(), bytes: backlog.bytes(), bands };
        let band = match self.rules.on_arrival(cx.now, &packet, &length) {
            Arrival::Keep(band) => band,
            Arrival::Mark(band) if self.mark(cx, waiting) => band,
            Arrival::Mark(_) | Arrival::Drop => return None,
        };
        assert!(band < self.bands.len(), "a packet for band {band} of {}", self.bands.len());
        Some(band)
    }

    /// Asks about a frame that could leave. Returns whether it does.
    fn departure(&mut self, cx: &mut Cx<'_>, waiting: &Waiting) -> bool {
        let packet = self.packet(cx.frames, waiting);
        let (backlog, bands) = (&self.backlog, &self.bands);
        let length = Length { packets: backlog.packets(), bytes: backlog.bytes(), bands };
        match self.rules.on_departure(cx.now, &packet, &length) {
            Departure::Send => true,
            Departure::Mark => self.mark(cx, waiting),
            Departure::Drop => false,
        }
    }

    /// Returns the band whose head leaves next; `None` if the queue is empty.
    fn next(&self) -> Option<usize> {
        let length = self.length();
        if length.packets == 0 {
            return None;
        }
        let next = self.rules.next(&length);
        Some(if self.bands.get(next).is_some_and(|band| band.packets > 0) { next } else { length.first() })
    }
}

impl Discipline for OwnQueue {
    fn push(&mut self, cx: &mut Cx<'_>, waiting: Waiting) -> Option<DropReason> {
        if !self.holds.admits(&self.backlog, waiting.charge) {
            return Some(self.backlog.drop(cx, waiting, DropReason::QueueFull));
        }
        let Some(band) = self.arrival(cx, &waiting) else {
            return Some(self.backlog.drop(cx, waiting, DropReason::Aqm));
        };
        self.backlog.enter(waiting.charge);
        self.bands[band].packets += 1;
        self.bands[band].bytes += waiting.charge.bytes;
        self.lists[band].push(cx.frames, waiting);
        None
    }

    fn pass(&mut self, cx: &mut Cx<'_>, waiting: Waiting) -> Option<Waiting> {
        if self.arrival(cx, &waiting).is_some() && self.departure(cx, &waiting) {
            return Some(waiting);
        }
        self.backlog.drop(cx, waiting, DropReason::Aqm);
        None
    }

    fn pop(&mut self, cx: &mut Cx<'_>) -> Option<Waiting> {
        while let Some(waiting) = self.release(cx.frames) {
            if self.departure(cx, &waiting) {
                return Some(waiting);
            }
            self.backlog.drop(cx, waiting, DropReason::Aqm);
        }
        None
    }

    fn head(&self, frames: &Frames) -> Option<Head> {
        self.lists[self.next()?].head(frames)
    }

    fn release(&mut self, frames: &Frames) -> Option<Waiting> {
        let band = self.next()?;
        let waiting = self.lists[band].pop(frames)?;
        self.bands[band].packets -= 1;
        self.bands[band].bytes -= waiting.charge.bytes;
        self.backlog.leave(waiting.charge);
        Some(waiting)
    }

    fn set_limit(&mut self, limit: QueueLimit, rate: Rate) {
        self.holds = Bound::new(limit, rate);
    }
}
