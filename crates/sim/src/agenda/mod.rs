//! The agenda: events in the order of (time, sequence).
//!
//! Times are exact to the nanosecond; of events at the same time, the one with the lower sequence number
//! comes first. An event is a number that means something to the caller only: a node, for the
//! [world](crate::world).
//!
//! The world uses [`Wheel`], which measured as fast as a heap with eight events pending and about twice as fast with
//! 10,000 (`cargo bench -p weir-sim --bench agenda`). [`Heap`] is there to be measured against, and as a second opinion
//! on the order in tests.

mod heap;
#[cfg(test)]
mod tests;
mod wheel;

pub use heap::Heap;
pub use wheel::Wheel;

use weir_core::time::Time;

/// Event numbers are below this.
pub const EVENTS: u32 = 1 << EVENT_BITS;
/// Sequence numbers are below this: at 20 million a second, 15 hours of work.
pub const SEQUENCES: u64 = 1 << (64 - EVENT_BITS);

const EVENT_BITS: u32 = 24;

/// Events by (time, sequence).
pub trait Agenda {
    /// `event`, below [`EVENTS`], comes at `at`, which is not before the event popped last. `seq`, below
    /// [`SEQUENCES`], is another one with every push, and higher than that of any event popped at this time.
    fn push(&mut self, at: Time, seq: u64, event: u32);
    /// Takes the first event.
    fn pop(&mut self) -> Option<(Time, u32)>;
    /// When the first event comes.
    fn peek(&self) -> Option<Time>;
    /// Takes the first event if it comes at `at` or before.
    fn pop_until(&mut self, at: Time) -> Option<(Time, u32)> {
        self.peek().filter(|&first| first <= at)?;
        self.pop()
    }
    /// As [`Agenda::push`], and then [`Agenda::pop_until`] `until`.
    fn exchange(&mut self, at: Time, seq: u64, event: u32, until: Time) -> Option<(Time, u32)> {
        self.push(at, seq, event);
        self.pop_until(until)
    }
}

/// An event, ordered as it comes: time, sequence and event from the highest bit down.
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
