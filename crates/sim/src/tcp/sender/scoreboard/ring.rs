//! Segments in flight: a ring in stream order, and through it a list in order of time.
//!
//! The list holds the segments for RACK: those with data believed to be in flight. It is in the order of the
//! last transmissions, as RACK_sent_after of RFC 8985 §6.2 requires. If the clock does not tell two
//! transmissions apart, the RFC uses the place in the stream. Here many segments leave in one nanosecond,
//! retransmissions among new segments, and their order is known.

use super::{Piece, Sent};
use crate::cache::prefetch;
use weir_core::time::Time;

/// Number of a segment, counted from the first ever sent. Never reused.
pub(super) type Id = u64;

/// Order of transmissions: time, and position within that instant, from 1 on (65,535 for all that follow).
pub(super) type Key = (Time, u16);
/// Key before any transmission.
pub(super) const NEVER: Key = (Time::ZERO, 0);

/// The receiver has the segment.
pub(super) const SACKED: u8 = 1;
/// The segment was marked lost.
pub(super) const LOST: u8 = 2;
/// The segment was retransmitted, after it was marked lost if it was.
pub(super) const RESENT: u8 = 4;
/// The segment was retransmitted at any time (Karn's algorithm).
pub(super) const RETRANSMITTED: u8 = 8;
/// The segment is in the list.
const LISTED: u8 = 16;
/// Number of places that always stay.
const FEW: usize = 4;
/// Marks the absence of a segment: the end of the list.
const NONE: Id = Id::MAX;

/// A segment in flight, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct InFlight {
    /// Last transmission.
    pub sent: Sent,
    /// Stream offset of its first byte.
    pub start: u64,
    /// Payload bytes.
    pub len: u32,
    /// Distance to the segments sent before and after it, as differences of [`Id`]; 0 for none. (A window has
    /// less than 2³¹ segments.)
    prev: i32,
    next: i32,
    /// Position of its last transmission within that instant.
    order: u16,
    /// State bits.
    pub flags: u8,
}

const _: () = assert!(size_of::<InFlight>() == 64);

impl InFlight {
    pub fn new(start: u64, len: u32, sent: Sent) -> InFlight {
        InFlight { sent, start, len, prev: 0, next: 0, order: 0, flags: 0 }
    }
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }
    pub fn piece(&self) -> Piece {
        Piece { start: self.start, len: self.len }
    }
    /// Returns the key of its last transmission.
    pub fn key(&self) -> Key {
        (self.sent.at, self.order)
    }
}

#[derive(Debug)]
pub(super) struct Ring {
    /// Places, a power of two or none. The lowest bits of a segment's number select its place.
    places: Box<[InFlight]>,
    /// Number of the first segment, and of the next to be sent.
    first: Id,
    end: Id,
    /// Ends of the list.
    head: Id,
    tail: Id,
    /// Position in the list, see [`Ring::last_before`].
    mark: Id,
    /// Last transmission: time and order of its [`Key`].
    last_at: Time,
    last_order: u16,
    /// Most segments present at once since the first place was last filled.
    most: u32,
    /// Number of visits of segments.
    #[cfg(test)]
    pub touched: std::cell::Cell<u64>,
}

impl Default for Ring {
    fn default() -> Ring {
        Ring {
            places: Box::default(),
            first: 0,
            end: 0,
            head: NONE,
            tail: NONE,
            mark: NONE,
            last_at: NEVER.0,
            last_order: NEVER.1,
            most: 0,
            #[cfg(test)]
            touched: Default::default(),
        }
    }
}

impl Ring {
    pub fn first_id(&self) -> Id {
        self.first
    }
    /// Returns the number of the next segment to be sent.
    pub fn end_id(&self) -> Id {
        self.end
    }
    pub fn holds(&self, id: Id) -> bool {
        (self.first..self.end).contains(&id)
    }
    pub fn front(&self) -> Option<&InFlight> {
        (self.first < self.end).then(|| &self.places[self.place(self.first)])
    }
    pub fn back(&self) -> Option<&InFlight> {
        (self.first < self.end).then(|| &self.places[self.place(self.end - 1)])
    }
    pub fn get(&self, id: Id) -> &InFlight {
        debug_assert!(self.holds(id));
        self.touch();
        &self.places[self.place(id)]
    }
    pub fn get_mut(&mut self, id: Id) -> &mut InFlight {
        debug_assert!(self.holds(id));
        self.touch();
        let place = self.place(id);
        &mut self.places[place]
    }

    /// Prefetches the first two segments, and the place of the next.
    #[inline]
    pub fn prefetch(&self) {
        for id in [self.first, self.first + 1, self.end] {
            self.places.get(self.place(id)).into_iter().for_each(prefetch);
        }
    }

    fn place(&self, id: Id) -> usize {
        id as usize & self.places.len().wrapping_sub(1)
    }

    /// Appends a new segment that has just left: it is the last, in the stream and in the list.
    #[inline(always)]
    pub fn push(&mut self, mut segment: InFlight) {
        let id = self.end;
        let held = id - self.first;
        if held == self.places.len() as u64 || self.place(id) == 0 {
            self.make_room(held);
        }
        self.most = self.most.max(held as u32 + 1);
        segment.order = self.next_order(segment.sent.at);
        segment.prev = distance(id, self.tail);
        segment.flags |= LISTED;
        (self.last_at, self.last_order) = segment.key();
        let place = self.place(id);
        self.places[place] = segment;
        self.end += 1;
        self.set_next(self.tail, id);
        self.tail = id;
    }

    /// Returns the position of the next transmission within the instant `at`.
    fn next_order(&self, at: Time) -> u16 {
        if self.last_at == at {
            self.last_order.saturating_add(1)
        } else {
            1
        }
    }

    /// Doubles the places if all hold segments. Otherwise all places have been filled in turn. If a quarter
    /// of them would have been enough, half of them go, since all places filled in turn should stay in the
    /// cache.
    #[inline(never)]
    fn make_room(&mut self, held: u64) {
        let places = self.places.len();
        if held == places as u64 {
            return self.resize((2 * places).max(1));
        }
        if places > FEW && 4 * u64::from(self.most) <= places as u64 {
            self.resize(places / 2);
        }
        self.most = 0;
    }

    /// Changes the number of places, and moves each segment to its own.
    #[cold]
    fn resize(&mut self, len: usize) {
        let mut places = vec![InFlight::new(0, 0, Sent::default()); len].into_boxed_slice();
        for id in self.first..self.end {
            places[id as usize & (len - 1)] = self.places[self.place(id)];
        }
        self.places = places;
    }

    /// Removes the first segment, also from the list.
    pub fn pop(&mut self) {
        self.unlink(self.first);
        self.first += 1;
    }

    /// Removes segments from the front that end by `una`, were never retransmitted, and come first in the
    /// list in the same order. Returns the first and the last of them.
    pub fn pop_run(&mut self, una: u64) -> Option<(&InFlight, &InFlight)> {
        let first = self.first;
        if self.head != first || first == self.end {
            return None;
        }
        let mut after = first;
        while after < self.end {
            let seg = self.get(after);
            if seg.end() > una || seg.flags != LISTED || (seg.next != 1 && after + 1 != self.end) {
                break;
            }
            after += 1;
        }
        if after == first {
            return None;
        }
        self.first = after;
        if self.mark != NONE && self.mark < after {
            self.mark = NONE;
        }
        if after == self.end {
            (self.head, self.tail) = (NONE, NONE);
        } else {
            self.head = after;
            self.get_mut(after).prev = 0;
        }
        Some((&self.places[self.place(first)], &self.places[self.place(after - 1)]))
    }

    /// Returns the first segment that starts at or above `offset`. Segments have at most `largest` bytes, and
    /// mostly exactly this number. So the place is computed, which is never too high, and searched if the
    /// result is too low.
    pub fn at_or_above(&self, offset: u64, largest: u32) -> Id {
        let Some(front) = self.front().filter(|s| s.start < offset) else {
            return self.first;
        };
        let guess = self.first + 1 + offset.saturating_sub(front.end()).div_ceil(u64::from(largest.max(1)));
        if self.holds(guess) && self.get(guess).start >= offset {
            return guess;
        }
        let below = |s: &InFlight| {
            self.touch();
            s.start < offset
        };
        let (mut low, mut high) = (self.first, self.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if below(&self.places[self.place(middle)]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Moves a segment that has just left again, as its `sent` says, to the end of the list.
    pub fn link(&mut self, id: Id) {
        let order = self.next_order(self.get(id).sent.at);
        let seg = self.get_mut(id);
        seg.order = order;
        (self.last_at, self.last_order) = seg.key();
        self.link_after(id, self.tail);
    }

    /// Inserts a segment into the list by its time. The search starts at `from`, which is not later, or at
    /// the beginning.
    pub fn link_from(&mut self, id: Id, from: Option<Id>) {
        let key = self.get(id).key();
        let mut after = from.unwrap_or(NONE);
        loop {
            let next = self.next(after);
            if next == NONE || self.get(next).key() > key {
                break;
            }
            after = next;
        }
        self.link_after(id, after);
    }

    /// Removes a segment from the list, if it is in it.
    pub fn unlink(&mut self, id: Id) {
        let seg = self.get_mut(id);
        if seg.flags & LISTED == 0 {
            return;
        }
        seg.flags &= !LISTED;
        let (prev, next) = (at(id, seg.prev), at(id, seg.next));
        self.set_next(prev, next);
        self.set_prev(next, prev);
        if self.mark == id {
            self.mark = prev;
        }
    }

    /// Returns the segment in the list that was sent first.
    pub fn oldest(&self) -> Option<Id> {
        Some(self.head).filter(|&id| id != NONE)
    }

    /// Returns the last segment in the list that was sent before `key`. `key` never decreases from call to
    /// call, so the search continues from the last answer.
    pub fn last_before(&mut self, key: Key) -> Option<Id> {
        loop {
            let next = self.next(self.mark);
            if next == NONE || self.get(next).key() >= key {
                return Some(self.mark).filter(|&id| id != NONE);
            }
            self.mark = next;
        }
    }

    /// Counts a visit of a segment, for the tests.
    fn touch(&self) {
        #[cfg(test)]
        self.touched.set(self.touched.get() + 1);
    }

    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.places.len()
    }

    /// Returns the next segment in the list.
    #[cfg(test)]
    pub fn after(&self, id: Id) -> Option<Id> {
        Some(self.next(id)).filter(|&next| next != NONE)
    }

    /// Returns the segment behind `id` in the list, or the first one.
    fn next(&self, id: Id) -> Id {
        if id == NONE {
            self.head
        } else {
            at(id, self.get(id).next)
        }
    }

    /// Inserts a segment into the list behind `prev`, or at its beginning.
    fn link_after(&mut self, id: Id, prev: Id) {
        let next = self.next(prev);
        let seg = self.get_mut(id);
        (seg.prev, seg.next) = (distance(id, prev), distance(id, next));
        seg.flags |= LISTED;
        self.set_next(prev, id);
        self.set_prev(next, id);
    }

    /// Sets the successor of `id`, or the beginning of the list.
    fn set_next(&mut self, id: Id, next: Id) {
        if id == NONE {
            self.head = next;
        } else {
            self.get_mut(id).next = distance(id, next);
        }
    }

    /// Sets the predecessor of `id`, or of the end of the list.
    fn set_prev(&mut self, id: Id, prev: Id) {
        if id == NONE {
            self.tail = prev;
        } else {
            self.get_mut(id).prev = distance(id, prev);
        }
    }
}

/// Returns the segment at a distance; [`NONE`] for 0.
fn at(id: Id, distance: i32) -> Id {
    if distance == 0 {
        NONE
    } else {
        id.wrapping_add_signed(i64::from(distance))
    }
}

/// Returns the distance from one segment to another; 0 to [`NONE`].
fn distance(from: Id, to: Id) -> i32 {
    if to == NONE {
        0
    } else {
        to.wrapping_sub(from) as i32
    }
}
