//! The segments in flight: a ring in stream order, and through it a list in order of time.
//!
//! The list holds what RACK looks at: every segment of which something is thought to be in flight. It is in the order of
//! the (last) transmissions, which is what RACK_sent_after of RFC 8985 §6.2 asks for. The RFC goes by the place in the stream where
//! the clock does not tell two transmissions apart; here many leave in one nanosecond, retransmissions among new segments,
//! and their order is known.

use super::{Piece, Sent};
use crate::cache::prefetch;
use weir_core::time::Time;

/// Number of a segment, counted from the first ever sent. Never reused.
pub(super) type Id = u64;

/// Orders transmissions: when, and the how manieth it was in that instant, from 1 on (65,535 for all that follow).
pub(super) type Key = (Time, u16);
/// Before any transmission.
pub(super) const NEVER: Key = (Time::ZERO, 0);

/// The receiver has it.
pub(super) const SACKED: u8 = 1;
/// It was marked lost.
pub(super) const LOST: u8 = 2;
/// It was sent again, after it was marked lost if it was.
pub(super) const RESENT: u8 = 4;
/// It was sent again at any time (Karn's algorithm).
pub(super) const RETRANSMITTED: u8 = 8;
/// It is in the list.
const LISTED: u8 = 16;
/// So few places stay.
const FEW: usize = 4;
/// No segment: the end of the list.
const NONE: Id = Id::MAX;

/// A segment in flight, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct InFlight {
    /// Its last transmission.
    pub sent: Sent,
    /// Stream offset of its first byte.
    pub start: u64,
    /// Payload bytes.
    pub len: u32,
    /// Distance to the segments sent before and after it, as differences of [`Id`]; 0 for none. (A window has
    /// less than 2³¹ segments.)
    prev: i32,
    next: i32,
    /// The how manieth its last transmission was in that instant.
    order: u16,
    /// What is known of it.
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
    /// What orders it in time.
    pub fn key(&self) -> Key {
        (self.sent.at, self.order)
    }
}

#[derive(Debug)]
pub(super) struct Ring {
    /// A power of two of places, or none; a segment has the one that the lowest bits of its number say.
    places: Box<[InFlight]>,
    /// Number of the first, and of the next to be sent.
    first: Id,
    end: Id,
    /// Of the list.
    head: Id,
    tail: Id,
    /// A place in the list, see [`Ring::last_before`].
    mark: Id,
    /// The last transmission: time and order of its [`Key`].
    last_at: Time,
    last_order: u16,
    /// The most segments that were there at once since the first place was last filled.
    most: u32,
    /// How often a segment was looked at.
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
    /// Number of the next segment to be sent.
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

    /// Brings the first two segments into the cache, and the place of the next.
    #[inline]
    pub fn prefetch(&self) {
        for id in [self.first, self.first + 1, self.end] {
            self.places.get(self.place(id)).into_iter().for_each(prefetch);
        }
    }

    fn place(&self, id: Id) -> usize {
        id as usize & self.places.len().wrapping_sub(1)
    }

    /// A new segment has just left: it is the last, in the stream and in the list.
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

    /// The how manieth a transmission is that comes next, at this time.
    fn next_order(&self, at: Time) -> u16 {
        if self.last_at == at {
            self.last_order.saturating_add(1)
        } else {
            1
        }
    }

    /// Twice as many places if all hold segments. Otherwise all have been filled in turn: if a quarter of them would have done, half of them
    /// go, since what is filled in turn is to stay in the cache.
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

    /// So many places, and each segment at its own.
    #[cold]
    fn resize(&mut self, len: usize) {
        let mut places = vec![InFlight::new(0, 0, Sent::default()); len].into_boxed_slice();
        for id in self.first..self.end {
            places[id as usize & (len - 1)] = self.places[self.place(id)];
        }
        self.places = places;
    }

    /// Removes the first segment, from the list too.
    pub fn pop(&mut self) {
        self.unlink(self.first);
        self.first += 1;
    }

    /// Removes segments from the front that end by `una`, were never sent again, and come first in the list in the same
    /// order. Returns the first and the last of them.
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

    /// The first segment that starts at or above `offset`. They have at most `largest` bytes, and mostly just
    /// as many: its place is computed, which is never too high, and searched if the result is too low.
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

    /// A segment has just left again, as its `sent` says: puts it at the end of the list.
    pub fn link(&mut self, id: Id) {
        let order = self.next_order(self.get(id).sent.at);
        let seg = self.get_mut(id);
        seg.order = order;
        (self.last_at, self.last_order) = seg.key();
        self.link_after(id, self.tail);
    }

    /// Puts a segment into the list at the place of its time, coming from `from`, which is not later, or
    /// from the beginning.
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

    /// Takes a segment out of the list, if it is in it.
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

    /// The segment in the list that was sent first.
    pub fn oldest(&self) -> Option<Id> {
        Some(self.head).filter(|&id| id != NONE)
    }

    /// The last segment in the list that was sent before `key`, which never decreases from call to call:
    /// the search goes on from the last answer.
    pub fn last_before(&mut self, key: Key) -> Option<Id> {
        loop {
            let next = self.next(self.mark);
            if next == NONE || self.get(next).key() >= key {
                return Some(self.mark).filter(|&id| id != NONE);
            }
            self.mark = next;
        }
    }

    /// Counts, for the tests, that a segment is looked at.
    fn touch(&self) {
        #[cfg(test)]
        self.touched.set(self.touched.get() + 1);
    }

    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.places.len()
    }

    /// The next in the list.
    #[cfg(test)]
    pub fn after(&self, id: Id) -> Option<Id> {
        Some(self.next(id)).filter(|&next| next != NONE)
    }

    /// The segment behind `id` in the list, or the first.
    fn next(&self, id: Id) -> Id {
        if id == NONE {
            self.head
        } else {
            at(id, self.get(id).next)
        }
    }

    /// Puts a segment into the list behind `prev`, or at its beginning.
    fn link_after(&mut self, id: Id, prev: Id) {
        let next = self.next(prev);
        let seg = self.get_mut(id);
        (seg.prev, seg.next) = (distance(id, prev), distance(id, next));
        seg.flags |= LISTED;
        self.set_next(prev, id);
        self.set_prev(next, id);
    }

    /// What follows `id`, or begins the list.
    fn set_next(&mut self, id: Id, next: Id) {
        if id == NONE {
            self.head = next;
        } else {
            self.get_mut(id).next = distance(id, next);
        }
    }

    /// What `id`, or the end of the list, follows.
    fn set_prev(&mut self, id: Id, prev: Id) {
        if id == NONE {
            self.tail = prev;
        } else {
            self.get_mut(id).prev = distance(id, prev);
        }
    }
}

/// The segment at a distance; [`NONE`] at none.
fn at(id: Id, distance: i32) -> Id {
    if distance == 0 {
        NONE
    } else {
        id.wrapping_add_signed(i64::from(distance))
    }
}

/// How far it is from one segment to another; 0 to [`NONE`].
fn distance(from: Id, to: Id) -> i32 {
    if to == NONE {
        0
    } else {
        to.wrapping_sub(from) as i32
    }
}
