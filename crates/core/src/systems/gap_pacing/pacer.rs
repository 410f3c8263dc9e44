//! The pacer: queues of classes, the packets due on the line, and the line itself.

mod holes;

use super::line::Line;
use super::member::Member;
use super::size::{Size, FULL_ON_WIRE};
use super::{check, Backend, Port, Queued, Unsound, FASTEST};
use crate::base::heap::{Entry, Heap, NOWHERE};
use crate::frame::{Frames, Waiting};
use crate::node::Cx;
use crate::queue::LeafStats;
use crate::queue::{Fifo, Queue};
use crate::rate::Rate;
use crate::stats::DropReason;
use crate::time::Time;

/// The line of the `clock` back end: a byte is a nanosecond.
const NANOSECONDS: Rate = Rate::mbit(8_000);
/// Longest queue of packets of no class.
const UNPACED: u32 = 1000;

/// Something put on the line.
#[derive(Debug, PartialEq, Eq)]
pub enum Slot {
    /// A packet.
    Packet {
        /// Number of its class, if it has one.
        class: Option<usize>,
        /// The frame, with its time of arrival.
        waiting: Waiting,
        /// Time at which it begins.
        at: Time,
    },
    /// Fillers, as a run if the port has runs.
    Fillers {
        /// Time at which they begin, or at which a run ends.
        at: Time,
        /// Number of fillers.
        count: u64,
        /// Bytes that they take on the wire together.
        bytes: u64,
    },
}

/// Counters of a pacer that belong to no class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Fillers put on the line.
    pub fillers: u64,
    /// Bytes that fillers took on the wire.
    pub filler_bytes: u64,
    /// Byte times by which the schedule was held back, because the rates did not fit on the line.
    pub behind: u64,
}

/// Next item for the line.
enum Next {
    /// A packet of a class.
    Paced(u32),
    /// A packet of no class.
    Unpaced,
    /// Only fillers, for this many byte times.
    Hole(u64),
    Nothing,
}

/// Paces the packets of classes at a port. Call [`Pacer::pop`] until it returns `None` before anything else
/// at a new time. Times never go backwards.
#[derive(Debug)]
pub struct Pacer {
    port: Port,
    backend: Backend,
    line: Line,
    /// Bytes for each packet that charges count on top of IP.
    overhead: u16,
    members: Vec<Member>,
    /// Classes whose next packet is not due yet, by the unit at which it is.
    waits: Heap<u64>,
    /// Classes whose next packet is due, by its deadline: the unit at which the one after it is due.
    due: Heap<u64>,
    places: Vec<u32>,
    unpaced: Queue,
    /// Fillers and bytes of a run that was cut short and is not reported yet.
    run: (u64, u64),
    /// Most bytes that a packet has taken on the wire.
    largest: u64,
    stats: Stats,
}

impl Pacer {
    /// Returns a pacer of these classes, whose frames are charged with `overhead` bytes a packet on top of
    /// IP.
    pub fn new(port: Port, classes: &[Queued], overhead: u16) -> Result<Pacer, Unsound> {
        let alone: Vec<_> = classes.iter().map(|(class, _)| *class).collect();
        check(&port, &alone)?;
        let backend = alone.first().map_or(Backend::Clock, |class| class.backend);
        let rate = port.line.filter(|_| backend == Backend::Gap).unwrap_or(NANOSECONDS);
        let member = |(i, (class, queue)): (usize, &Queued)| {
            let rate = class.rate(port.line).ok_or(Unsound::ShareOfNothing(i))?;
            Ok(Member::new(i, class, rate, *queue))
        };
        Ok(Pacer {
            port,
            backend,
            line: Line::new(rate),
            overhead,
            members: classes.iter().enumerate().map(member).collect::<Result<_, _>>()?,
            waits: Heap::new(classes.len()),
            due: Heap::new(classes.len()),
            places: vec![NOWHERE; classes.len()],
            unpaced: Queue::Fifo(Fifo::of_packets(UNPACED)),
            run: (0, 0),
            largest: FULL_ON_WIRE,
            stats: Stats::default(),
        })
    }

    /// Returns the port.
    pub fn port(&self) -> &Port {
        &self.port
    }
    /// Returns the source of time.
    pub fn backend(&self) -> Backend {
        self.backend
    }
    /// Returns the counters that belong to no class.
    pub fn stats(&self) -> Stats {
        self.stats
    }
    /// Returns the byte times that have passed on the line, or nanoseconds, up to where it is free.
    pub fn position(&self) -> u64 {
        self.line.position()
    }
    /// Returns the queue of packets of no class, with its drops.
    pub fn unpaced(&self) -> &Queue {
        &self.unpaced
    }
    /// Returns the queue of the class with this number, and its departures. Panics if there is no such class.
    pub fn leaf(&self, class: usize) -> (&Queue, &LeafStats) {
        let member = &self.members[class];
        (&member.queue, &member.stats)
    }
    /// Mutable queue of [`Pacer::leaf`].
    pub(crate) fn queue_mut(&mut self, class: usize) -> &mut Queue {
        &mut self.members[class].queue
    }
    /// Returns the highest rate that a class can have.
    pub fn fastest(&self) -> Rate {
        self.port.line.unwrap_or(FASTEST)
    }
    /// Returns the rate of the class with this number. Panics if there is no such class.
    pub fn rate(&self, class: usize) -> Rate {
        self.members[class].rate()
    }

    /// Changes the rate of the class with this number after its next packet, to the line's at most. Panics if
    /// there is no such class.
    pub fn set_rate(&mut self, class: usize, rate: Rate) {
        let rate = if self.backend == Backend::Gap { rate.min(self.line.rate()) } else { rate };
        self.members[class].set_rate(rate);
    }

    /// Enqueues a frame at `cx.now`, in the class with this number or in the queue of no class. Returns the
    /// reason if it was dropped instead. Panics if there is no such class.
    pub fn push(&mut self, cx: &mut Cx<'_>, class: Option<usize>, waiting: Waiting) -> Option<DropReason> {
        if self.backend == Backend::Clock || self.is_idle() {
            self.line.rest(cx.now);
        }
        let Some(class) = class else {
            self.interrupt(cx.now, 0);
            return self.unpaced.push(cx, waiting);
        };
        let here = self.line.position() + self.line.passed(cx.now);
        let member = &mut self.members[class];
        let rested = member.queue.packets() == 0;
        let dropped = member.queue.push(cx, waiting);
        match (rested, member.queue.packets() == 0) {
            (true, false) => {
                member.begin(here);
                let due = member.next;
                self.interrupt(cx.now, due);
                self.plan(cx.frames, class as u32);
            }
            (false, true) => self.forget(class as u32),
            _ => {}
        }
        dropped
    }

    /// Returns the time at which the next item goes on the line. It is in the past if that could be already.
    pub fn due(&self) -> Option<Time> {
        match self.next() {
            Next::Nothing if self.run.0 == 0 => None,
            Next::Hole(hole) if self.run.0 == 0 && self.tells_afterwards(hole) => {
                Some(self.line.after(self.fillers(hole).1))
            }
            _ => Some(self.line.at()),
        }
    }

    /// Returns the next item for the line, if it is due by `cx.now`.
    pub fn pop(&mut self, cx: &mut Cx<'_>) -> Option<Slot> {
        while self.due().is_some_and(|due| due <= cx.now) {
            if self.run.0 > 0 {
                let (count, bytes) = core::mem::take(&mut self.run);
                return Some(Slot::Fillers { at: self.line.at(), count, bytes });
            }
            self.admit();
            match self.next() {
                Next::Paced(class) => {
                    if let Some(slot) = self.send(cx, class) {
                        return Some(slot);
                    }
                }
                Next::Unpaced => {
                    let at = self.line.at();
                    if let Some(waiting) = self.unpaced.pop(&mut Cx { now: at, frames: cx.frames }) {
                        self.put(cx.frames, &waiting);
                        return Some(Slot::Packet { class: None, waiting, at });
                    }
                }
                Next::Hole(hole) => {
                    if let Some(slot) = self.fill(hole) {
                        return Some(slot);
                    }
                }
                Next::Nothing => return None,
            }
        }
        None
    }

    /// Skips to `now` when nothing could leave: no time has passed for any class.
    pub fn skip(&mut self, now: Time) {
        self.line.stop(now);
    }

    /// Dequeues the next frame of a pacer that is given up, of a class or of none.
    pub fn release(&mut self, frames: &Frames, class: Option<usize>) -> Option<Waiting> {
        let queue = class.map_or(&mut self.unpaced, |class| &mut self.members[class].queue);
        queue.release(frames)
    }

    /// Continues the class with number `was` of another pacer, which stops at `now`, as the class with this
    /// number. Debt for sent bytes stays, and its counters continue. Frames come with [`Pacer::push`].
    pub fn adopt(&mut self, now: Time, class: usize, old: &mut Pacer, was: usize) {
        let here = old.line.position() + old.line.passed(now);
        let ahead = old.members[was].next.saturating_sub(here);
        let ahead = crate::rate::mul_div(ahead, self.line.rate().bps(), 0, old.line.rate().bps()).0;
        self.line.rest(now);
        let member = &mut self.members[class];
        member.next = self.line.position() + ahead;
        let records_delay = member.stats.records_delay;
        core::mem::swap(&mut member.stats, &mut old.members[was].stats);
        member.stats.records_delay = records_delay;
        let queue = &mut old.members[was].queue;
        member.queue.set_stats(core::mem::take(queue.stats_mut()));
    }

    /// Returns whether the pacer has nothing to put on the line.
    fn is_idle(&self) -> bool {
        self.waits.first().is_none() && self.due.first().is_none() && self.unpaced.packets() == 0
    }

    /// Returns the next item, as far as it is known.
    fn next(&self) -> Next {
        if let Some(Entry { id, .. }) = self.due.first() {
            return Next::Paced(id);
        }
        let wait = self.waits.first();
        let hole = wait.map(|wait| wait.key.saturating_sub(self.line.position()));
        match (wait, hole) {
            (Some(wait), Some(hole)) if hole < self.least_hole() => Next::Paced(wait.id),
            _ if self.unpaced.packets() > 0 => Next::Unpaced,
            (_, Some(hole)) => Next::Hole(hole),
            _ => Next::Nothing,
        }
    }

    /// Moves packets that have become due to the heap ordered by deadline.
    fn admit(&mut self) {
        let position = self.line.position();
        while let Some(Entry { id, .. }) = self.waits.first().filter(|wait| wait.key <= position) {
            let deadline = self.members[id as usize].deadline();
            self.waits.set(&mut self.places, id, None);
            self.due.set(&mut self.places, id, Some(deadline));
        }
    }

    /// Schedules the class's first packet for its due time.
    fn plan(&mut self, frames: &Frames, class: u32) {
        self.forget(class);
        let (member, line) = (&mut self.members[class as usize], self.line.rate());
        let Some(head) = member.queue.head(frames) else { return };
        member.plan(Size::expected(head.charge, self.overhead), line);
        let due = member.next;
        self.waits.set(&mut self.places, class, Some(due));
        self.admit();
    }

    /// Removes an empty class from the heaps.
    fn forget(&mut self, class: u32) {
        // The position does not tell which heap it is in.
        let heap = if self.due.holds(&self.places, class) { &mut self.due } else { &mut self.waits };
        heap.set(&mut self.places, class, None);
    }

    /// Puts a packet of the class on the line. `None` if its queue turns out to be empty.
    fn send(&mut self, cx: &mut Cx<'_>, class: u32) -> Option<Slot> {
        let at = self.line.at();
        let member = &mut self.members[class as usize];
        let waiting = member.queue.pop(&mut Cx { now: at, frames: cx.frames });
        let size = waiting.as_ref().map(|waiting| self.put(cx.frames, waiting));
        let (member, line) = (&mut self.members[class as usize], self.line.rate());
        if let (Some(waiting), Some(size)) = (&waiting, size) {
            member.charge(size, line);
            member.stats.packets += u64::from(waiting.charge.packets);
            member.stats.bytes += waiting.charge.bytes;
            if member.stats.records_delay {
                member.stats.delay.record(at.since(waiting.since).as_nanos());
            }
        }
        self.plan(cx.frames, class);
        self.hold_back();
        Some(Slot::Packet { class: Some(class as usize), waiting: waiting?, at })
    }

    /// Advances the line by the frame's time.
    fn put(&mut self, frames: &Frames, waiting: &Waiting) -> Size {
        let (_, len) = frames.parked_bytes(&waiting.frame);
        let size = Size::of(waiting.charge, self.overhead, len);
        if self.backend == Backend::Gap {
            self.largest = self.largest.max(size.wire());
            self.line.put(size.wire());
        }
        size
    }

    /// Holds the schedule back as a whole, if the earliest deadline is later than it could be with rates that
    /// fit on the line.
    fn hold_back(&mut self) {
        let Some(first) = self.due.first().filter(|_| self.backend == Backend::Gap) else { return };
        let latest = first.key + 2 * self.largest;
        let behind = self.line.position().saturating_sub(latest);
        self.line.hold_back(behind);
        self.stats.behind += behind;
    }
}
