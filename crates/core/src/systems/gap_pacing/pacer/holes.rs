//! Use of the line's time between packets.

use super::{Next, Pacer, Slot};
use crate::systems::gap_pacing::size::LEAST_ON_WIRE;
use crate::systems::gap_pacing::{filler, Backend};
use crate::time::Time;

/// Longest run of fillers: the frame that stands for it has a length of 32 bits.
const LONGEST_RUN: u64 = 1 << 20;

impl Pacer {
    /// Returns the shortest hole that can be filled, or waited for. A line that was idle before can stay
    /// idle.
    pub(super) fn least_hole(&self) -> u64 {
        match self.backend {
            Backend::Gap if !self.line.idled() => LEAST_ON_WIRE,
            _ => 1,
        }
    }

    /// Returns whether a hole is reported only when it is over.
    pub(super) fn tells_afterwards(&self, hole: u64) -> bool {
        self.backend == Backend::Clock || self.port.runs || hole < LEAST_ON_WIRE
    }

    /// Returns the number of fillers that fill a hole next, and the bytes that they take together.
    pub(super) fn fillers(&self, hole: u64) -> (u64, u64) {
        let n = filler::count(hole, self.port.longest);
        match (self.backend, self.port.runs) {
            (Backend::Clock, _) => (0, hole),
            (Backend::Gap, _) if hole < LEAST_ON_WIRE => (0, hole),
            (Backend::Gap, true) if n <= LONGEST_RUN => (n, hole),
            (Backend::Gap, true) => (LONGEST_RUN, filler::end(hole, n, LONGEST_RUN)),
            (Backend::Gap, false) => (1, filler::end(hole, n, 1)),
        }
    }

    /// Fills a hole, or as much of it as is reported at once. Returns `None` where nothing is put on the
    /// line.
    pub(super) fn fill(&mut self, hole: u64) -> Option<Slot> {
        let (begins, (count, bytes)) = (self.line.at(), self.fillers(hole));
        self.line.put(bytes);
        self.note(count, bytes);
        let at = if self.tells_afterwards(hole) { self.line.at() } else { begins };
        (count > 0).then_some(Slot::Fillers { at, count, bytes })
    }

    fn note(&mut self, count: u64, bytes: u64) {
        if count > 0 {
            self.stats.fillers += count;
            self.stats.filler_bytes += bytes;
        }
    }

    /// Ends a run of fillers before the next filler, if a packet that is due at this unit arrives while a
    /// hole is being filled.
    pub(super) fn interrupt(&mut self, now: Time, due: u64) {
        let Next::Hole(hole) = self.next() else { return };
        if hole < LEAST_ON_WIRE {
            // The line is idle.
            return self.line.rest(now);
        }
        let filling = self.backend == Backend::Gap && self.port.runs && self.run.0 == 0;
        if !filling || now <= self.line.at() || due >= self.line.position() + hole {
            return;
        }
        let mut passed = self.line.passed(now);
        if self.line.after(passed) < now {
            passed += 1;
        }
        let (count, bytes) = filler::committed(hole, passed.min(hole), self.port.longest);
        self.line.put(bytes);
        self.run = (count, bytes);
        self.note(count, bytes);
    }
}
