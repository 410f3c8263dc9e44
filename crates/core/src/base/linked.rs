//! Doubly linked lists of numbered entries. Links are a field of the entries, or a table beside them. Any
//! entry leaves its list in constant time, and nothing is allocated.
//!
//! Two other lists are not this one: frames wait in queues that only their head leaves, so one link is enough
//! (`packet::frame::List`); and a sender's segments are linked by their distance, which is half as long
//! (`weir_sim::tcp::sender::scoreboard`).

use super::NONE;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Neighbours of an entry in its list; [`NONE`] at an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct Links {
    next: u32,
    prev: u32,
}

impl Links {
    /// Links of an entry that is in no list.
    pub(crate) const NONE: Links = Links { next: NONE, prev: NONE };

    /// Returns the entry behind this one.
    pub(crate) fn next(self) -> Option<u32> {
        (self.next != NONE).then_some(self.next)
    }

    /// Returns the entry before this one.
    pub(crate) fn prev(self) -> Option<u32> {
        (self.prev != NONE).then_some(self.prev)
    }
}

/// Numbered entries with links. Each is in one list at most.
pub(crate) trait Linked {
    /// Returns the links of an entry, or `None` if there is no such entry.
    fn links(&mut self, i: u32) -> Option<&mut Links>;
}

impl Linked for [Links] {
    #[inline]
    fn links(&mut self, i: u32) -> Option<&mut Links> {
        self.get_mut(i as usize)
    }
}

/// Returns the entries of a table by the links that `of` selects.
#[inline]
pub(crate) fn by<T, F: Fn(&mut T) -> &mut Links>(all: &mut [T], of: F) -> impl Linked + use<'_, T, F> {
    Select(all, of)
}

struct Select<'a, T, F>(&'a mut [T], F);

impl<T, F: Fn(&mut T) -> &mut Links> Linked for Select<'_, T, F> {
    #[inline]
    fn links(&mut self, i: u32) -> Option<&mut Links> {
        self.0.get_mut(i as usize).map(&self.1)
    }
}

/// A list: its ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkedList {
    first: u32,
    last: u32,
}

impl LinkedList {
    pub(crate) const EMPTY: LinkedList = LinkedList { first: NONE, last: NONE };

    pub(crate) fn is_empty(&self) -> bool {
        self.first == NONE
    }

    pub(crate) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    pub(crate) fn last(&self) -> Option<u32> {
        (self.last != NONE).then_some(self.last)
    }

    /// Appends an entry that is in no list.
    #[inline]
    pub(crate) fn push(&mut self, all: &mut (impl Linked + ?Sized), i: u32) {
        let Some(links) = all.links(i) else { return };
        *links = Links { next: NONE, prev: self.last };
        match all.links(self.last) {
            Some(last) => last.next = i,
            None => self.first = i,
        }
        self.last = i;
    }

    /// Prepends an entry that is in no list.
    #[inline]
    pub(crate) fn push_first(&mut self, all: &mut (impl Linked + ?Sized), i: u32) {
        let Some(links) = all.links(i) else { return };
        *links = Links { next: self.first, prev: NONE };
        match all.links(self.first) {
            Some(first) => first.prev = i,
            None => self.last = i,
        }
        self.first = i;
    }

    /// Removes an entry of this list.
    #[inline]
    pub(crate) fn remove(&mut self, all: &mut (impl Linked + ?Sized), i: u32) {
        let Some(links) = all.links(i) else { return };
        let Links { next, prev } = *links;
        match all.links(prev) {
            Some(links) => links.next = next,
            None => self.first = next,
        }
        match all.links(next) {
            Some(links) => links.prev = prev,
            None => self.last = prev,
        }
    }

    /// Turns the list, so that it begins with the entry behind `i` and ends with `i`.
    pub(crate) fn begin_behind(&mut self, all: &mut (impl Linked + ?Sized), i: u32) {
        let Some(next) = all.links(i).and_then(|links| links.next()) else { return };
        let (first, last) = (self.first, self.last);
        let mut set = |i, change: fn(&mut Links, u32), to| all.links(i).map(|links| change(links, to));
        set(last, |links, to| links.next = to, first);
        set(first, |links, to| links.prev = to, last);
        set(i, |links, to| links.next = to, NONE);
        set(next, |links, to| links.prev = to, NONE);
        (self.first, self.last) = (next, i);
    }

    /// Returns the entries in their order. `links` returns those of an entry.
    pub(crate) fn iter(&self, links: impl Fn(u32) -> Links) -> impl Iterator<Item = u32> {
        core::iter::successors(self.first(), move |&i| links(i).next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug)]
    enum Op {
        Push(usize, u32),
        PushFirst(usize, u32),
        Turn(u32),
    }

    fn ops() -> impl Strategy<Value = Vec<Op>> {
        let one = prop_oneof![
            (0usize..2, 0u32..8).prop_map(|(to, i)| Op::Push(to, i)),
            (0usize..2, 0u32..8).prop_map(|(to, i)| Op::PushFirst(to, i)),
            (0u32..8).prop_map(Op::Turn),
        ];
        prop::collection::vec(one, 1..200)
    }

    proptest! {
        /// Compares with a vector for each list. An entry that is in a list leaves it.
        #[test]
        fn like_vectors(ops in ops()) {
            let mut all = [Links::NONE; 8];
            let mut lists = [LinkedList::EMPTY; 2];
            let mut model = [Vec::new(), Vec::new()];
            for op in ops {
                let (Op::Push(_, i) | Op::PushFirst(_, i) | Op::Turn(i)) = op;
                let found = model.iter().position(|list| list.contains(&i));
                match (op, found) {
                    (Op::Turn(_), None) => {}
                    (Op::Turn(_), Some(of)) => {
                        lists[of].begin_behind(&mut all[..], i);
                        let at = model[of].iter().position(|&n| n == i).unwrap();
                        model[of].rotate_left(at + 1);
                    }
                    (_, Some(of)) => {
                        lists[of].remove(&mut all[..], i);
                        model[of].retain(|&n| n != i);
                    }
                    (Op::Push(to, _), None) => {
                        lists[to].push(&mut all[..], i);
                        model[to].push(i);
                    }
                    (Op::PushFirst(to, _), None) => {
                        lists[to].push_first(&mut all[..], i);
                        model[to].insert(0, i);
                    }
                }
                for (list, model) in lists.iter().zip(&model) {
                    prop_assert_eq!(&list.iter(|i| all[i as usize]).collect::<Vec<_>>(), model);
                    let back = core::iter::successors(list.last(), |&i| all[i as usize].prev());
                    prop_assert_eq!(back.collect::<Vec<_>>(), model.iter().rev().copied().collect::<Vec<_>>());
                    prop_assert_eq!(list.is_empty(), model.is_empty());
                }
            }
        }
    }
}
