//! Events in a binary heap.

use super::{Agenda, Entry};
use core::cmp::Reverse;
use std::collections::BinaryHeap;
use weir_core::time::Time;

/// Binary heap. A few events are adjacent in memory. A push or pop takes at most log2(events) steps.
#[derive(Debug, Default)]
pub struct Heap(BinaryHeap<Reverse<Entry>>);

impl Heap {
    /// Returns an agenda without events.
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
