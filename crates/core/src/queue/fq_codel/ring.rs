//! Lists of queues, linked by their numbers.

use super::Flow;

/// Marks the absence of a queue.
pub(super) const NONE: u32 = u32::MAX;

/// First and last queue of a list.
#[derive(Debug)]
pub(super) struct Ring {
    first: u32,
    last: u32,
}

impl Ring {
    pub(super) const EMPTY: Ring = Ring { first: NONE, last: NONE };

    pub(super) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    pub(super) fn push(&mut self, flows: &mut [Flow], i: u32) {
        flows[i as usize].next = NONE;
        match self.first {
            NONE => self.first = i,
            _ => flows[self.last as usize].next = i,
        }
        self.last = i;
    }

    pub(super) fn pop(&mut self, flows: &[Flow]) -> Option<u32> {
        let i = self.first()?;
        self.first = flows[i as usize].next;
        Some(i)
    }

    pub(super) fn iter<'a>(&self, flows: &'a [Flow]) -> impl Iterator<Item = u32> + 'a {
        let next = |i: u32| (i != NONE).then_some(i);
        core::iter::successors(self.first(), move |i| next(flows[*i as usize].next))
    }
}
