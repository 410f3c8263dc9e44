//! The agenda: events in the order of (time, sequence).
//!
//! Times are exact to the nanosecond. Events at the same time are ordered by sequence number. An event is a
//! number whose meaning is the caller's: for the [world](crate::world), a node.
//!
//! The world uses [`Wheel`]. It measured as fast as a heap with eight events pending, and about twice as fast
//! with 10,000 (`cargo bench -p weir-sim --bench agenda`). [`Heap`] is there for comparison, and as a second
//! opinion on the order in tests.

mod heap;
#[cfg(test)]
mod tests;
mod wheel;

pub use heap::Heap;
pub use wheel::Wheel;

use weir_core::time::Time;

/// Upper limit of event numbers, exclusive.
pub const EVENTS: u32 = 1 << EVENT_BITS;
/// Upper limit of sequence numbers, exclusive: 15 hours of work at 20 million a second.
pub const SEQUENCES: u64 = 1 << (64 - EVENT_BITS);

const EVENT_BITS: u32 = 24;

/// Events by (time, sequence).
pub trait Agenda {
    /// Adds `event`, below [`EVENTS`], at `at`, which is not before the event popped last. `seq`, below
    /// [`SEQUENCES`], is unique, and higher than that of any event popped at this time.
    fn push(&mut self, at: Time, seq: u64, event: u32);
    /// Takes the first event.
    fn pop(&mut self) -> Option<(Time, u32)>;
    /// Returns the time of the first event.
    fn peek(&self) -> Option<Time>;
    /// Takes the first event if its time is `at` or earlier.
    fn pop_until(&mut self, at: Time) -> Option<(Time, u32)> {
        self.peek().filter(|&first| first <= at)?;
        self.pop()
    }
    /// Combines [`Agenda::push`] with [`Agenda::pop_until`] `until`.
    fn exchange(&mut self, at: Time, seq: u64, event: u32, until: Time) -> Option<(Time, u32)> {
        self.push(at, seq, event);
        self.pop_until(until)
    }
}

/// Event in its order: time, sequence and event number from the highest bit down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

impl Entry {
    fn new(at: Time, seq: u64, event: u32) -> Entry {
        debug_assert!(seq < SEQUENCES && event < EVENTS);
        Entry(u128::from(at.as_nanos()) << 64 | u128::from(seq << EVENT_BITS | u64::from(event)))
    }
    fn at(self) -> Time {
        Time::from_nanos((self.0 >> 64) as u64)
    }
    fn event(self) -> u32 {
        self.0 as u32 & (EVENTS - 1)
    }
}
