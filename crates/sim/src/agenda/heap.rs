//! Events in a binary heap.

use super::{Agenda, Entry};
use core::cmp::Reverse;
use std::collections::BinaryHeap;
use weir_core::time::Time;

/// A binary heap: a few events are next to each other in memory, and a push or pop takes log2(events) steps at
/// most.
#[derive(Debug, Default)]
pub struct Heap(BinaryHeap<Reverse<Entry>>);

impl Heap {
    /// No events.
    pub fn new() -> Heap {
        Heap::default()
    }
}

impl Agenda for Heap {
    fn push(&mut self, at: Time, seq: u64, event: u32) {
        self.0.push(Reverse(Entry::new(at, seq, event)));
    }
    fn pop(&mut self) -> Option<(Time, u32)> {
        self.0.pop().map(|Reverse(e)| (e.at(), e.event()))
    }
    fn peek(&self) -> Option<Time> {
        self.0.peek().map(|Reverse(e)| e.at())
    }
}
