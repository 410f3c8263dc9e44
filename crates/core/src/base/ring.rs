//! Lists whose links are fields of the entries themselves.

use super::NONE;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The neighbours of a thing in its list; [`NONE`] at an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub(crate) struct Links {
    pub(crate) next: u32,
    pub(crate) prev: u32,
}

impl Links {
    pub(crate) const NONE: Links = Links { next: NONE, prev: NONE };
}

/// Numbered things, each of which is in one list at most.
pub(crate) trait Linked {
    fn links(&self, i: u32) -> Links;
    fn set_links(&mut self, i: u32, links: Links);
}

/// A list of things, from which any can be taken in constant time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring {
    head: u32,
    tail: u32,
}

impl Ring {
    pub(crate) const EMPTY: Ring = Ring { head: NONE, tail: NONE };

    /// Returns the member whose turn it is.
    pub(crate) fn head(&self) -> Option<u32> {
        Some(self.head).filter(|&i| i != NONE)
    }

    /// A thing that is in no list is the last of this one.
    pub(crate) fn push(&mut self, all: &mut impl Linked, i: u32) {
        let before = core::mem::replace(&mut self.tail, i);
        all.set_links(i, Links { next: NONE, prev: before });
        match before {
            NONE => self.head = i,
            before => link(all, before, |links| links.next = i),
        }
    }

    /// A thing that is in no list is the first of this one.
    pub(crate) fn push_front(&mut self, all: &mut impl Linked, i: u32) {
        let after = core::mem::replace(&mut self.head, i);
        all.set_links(i, Links { next: after, prev: NONE });
        match after {
            NONE => self.tail = i,
            after => link(all, after, |links| links.prev = i),
        }
    }

    /// Takes a thing out of this list, in which it is.
    pub(crate) fn remove(&mut self, all: &mut impl Linked, i: u32) {
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
    use proptest::prelude::*;

    impl Linked for [Links; 8] {
        fn links(&self, i: u32) -> Links {
            self[i as usize]
        }
        fn set_links(&mut self, i: u32, links: Links) {
            self[i as usize] = links;
        }
    }

    proptest! {
        /// Against a vector.
        #[test]
        fn like_a_vector(ops in prop::collection::vec((0u32..8, any::<bool>()), 1..100)) {
            let mut all = [Links::NONE; 8];
            let (mut ring, mut model) = (Ring::EMPTY, Vec::new());
            for (i, front) in ops {
                if let Some(at) = model.iter().position(|&m| m == i) {
                    model.remove(at);
                    ring.remove(&mut all, i);
                } else if front {
                    model.insert(0, i);
                    ring.push_front(&mut all, i);
                } else {
                    model.push(i);
                    ring.push(&mut all, i);
                }
                let after = |&i: &u32| Some(all.links(i).next).filter(|&i| i != NONE);
                let order: Vec<u32> = core::iter::successors(ring.head(), after).collect();
                prop_assert_eq!(&order, &model);
            }
        }
    }
}
