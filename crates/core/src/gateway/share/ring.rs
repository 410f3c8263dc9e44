//! Lists of those that take turns. The links are fields of the entries themselves: records of flows, or
//! classes.

use crate::flow::{Table, NONE};

/// The neighbours of a thing in its list; [`NONE`] at an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Links {
    pub(super) next: u32,
    pub(super) prev: u32,
}

impl Links {
    pub(super) const NONE: Links = Links { next: NONE, prev: NONE };
}

/// Numbered things, each of which is in one list at most.
pub(super) trait Linked {
    fn links(&self, i: u32) -> Links;
    fn set_links(&mut self, i: u32, links: Links);
}

impl Linked for Table {
    fn links(&self, i: u32) -> Links {
        let turn = self[i].pace.turn();
        Links { next: turn.next, prev: turn.prev }
    }

    fn set_links(&mut self, i: u32, Links { next, prev }: Links) {
        let pace = &mut self[i].pace;
        pace.set_turn(crate::ack::Turn { next, prev, ..pace.turn() });
    }
}

/// A list of things, from which any can be taken in constant time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring {
    head: u32,
    tail: u32,
}

impl Ring {
    pub(super) const EMPTY: Ring = Ring { head: NONE, tail: NONE };

    /// Whose turn it is.
    pub(super) fn head(&self) -> Option<u32> {
        Some(self.head).filter(|&i| i != NONE)
    }

    /// A thing that is in no list is the last of this one.
    pub(super) fn push(&mut self, all: &mut impl Linked, i: u32) {
        let before = core::mem::replace(&mut self.tail, i);
        all.set_links(i, Links { next: NONE, prev: before });
        match before {
            NONE => self.head = i,
            before => link(all, before, |links| links.next = i),
        }
    }

    /// A thing that is in no list is the first of this one.
    pub(super) fn push_front(&mut self, all: &mut impl Linked, i: u32) {
        let after = core::mem::replace(&mut self.head, i);
        all.set_links(i, Links { next: after, prev: NONE });
        match after {
            NONE => self.tail = i,
            after => link(all, after, |links| links.prev = i),
        }
    }

    /// Takes a thing out of this list, in which it is.
    pub(super) fn remove(&mut self, all: &mut impl Linked, i: u32) {
        let Links { next, prev } = all.links(i);
        match prev {
            NONE => self.head = next,
            before => link(all, before, |links| links.next = next),
        }
        match next {
            NONE => self.tail = prev,
            after => link(all, after, |links| links.prev = prev),
        }
    }
}

/// Changes the links of a thing.
fn link(all: &mut impl Linked, i: u32, change: impl FnOnce(&mut Links)) {
    let mut links = all.links(i);
    change(&mut links);
    all.set_links(i, links);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::Key;
    use proptest::prelude::*;

    proptest! {
        /// Against a vector.
        #[test]
        fn like_a_vector(ops in prop::collection::vec((0u16..8, any::<bool>()), 1..100)) {
            let mut table = Table::new(8, 1);
            let ids: Vec<u32> =
                (0..8).map(|n| table.insert(Key { src_port: n, ..Key::default() }, 0, false, 0).unwrap()).collect();
            let (mut ring, mut model) = (Ring::EMPTY, Vec::new());
            for (op, front) in ops {
                let i = ids[usize::from(op)];
                if let Some(at) = model.iter().position(|&m| m == i) {
                    model.remove(at);
                    ring.remove(&mut table, i);
                } else if front {
                    model.insert(0, i);
                    ring.push_front(&mut table, i);
                } else {
                    model.push(i);
                    ring.push(&mut table, i);
                }
                let after = |&i: &u32| Some(table.links(i).next).filter(|&i| i != NONE);
                let order: Vec<u32> = core::iter::successors(ring.head(), after).collect();
                prop_assert_eq!(&order, &model);
            }
        }
    }
}
