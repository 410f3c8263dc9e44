//! Lists of flows that take turns. The links are in the flows' records.

use crate::flow::{Table, NONE};

/// A list of records, from which any can be taken in constant time.
#[derive(Clone, Copy)]
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

    /// A flow that is in no list is the last of this one.
    pub(super) fn push(&mut self, table: &mut Table, i: u32) {
        let before = core::mem::replace(&mut self.tail, i);
        link(table, i, |prev, next| (*prev, *next) = (before, NONE));
        match before {
            NONE => self.head = i,
            before => link(table, before, |_, next| *next = i),
        }
    }

    /// Takes a flow out of this list, in which it is.
    pub(super) fn remove(&mut self, table: &mut Table, i: u32) {
        let turn = table[i].pace.turn();
        match turn.prev {
            NONE => self.head = turn.next,
            before => link(table, before, |_, next| *next = turn.next),
        }
        match turn.next {
            NONE => self.tail = turn.prev,
            after => link(table, after, |prev, _| *prev = turn.prev),
        }
    }
}

/// Changes the links of a flow: to the one before it, and to the one after it.
fn link(table: &mut Table, i: u32, change: impl FnOnce(&mut u32, &mut u32)) {
    let pace = &mut table[i].pace;
    let mut turn = pace.turn();
    change(&mut turn.prev, &mut turn.next);
    pace.set_turn(turn);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::Key;
    use proptest::prelude::*;

    proptest! {
        /// Against a vector.
        #[test]
        fn like_a_vector(ops in prop::collection::vec(0u16..8, 1..100)) {
            let mut table = Table::new(8, 1);
            let ids: Vec<u32> =
                (0..8).map(|n| table.insert(Key { src_port: n, ..Key::default() }, 0).unwrap()).collect();
            let (mut ring, mut model) = (Ring::EMPTY, Vec::new());
            for op in ops {
                let i = ids[usize::from(op)];
                if let Some(at) = model.iter().position(|&m| m == i) {
                    model.remove(at);
                    ring.remove(&mut table, i);
                } else {
                    model.push(i);
                    ring.push(&mut table, i);
                }
                let after = |&i: &u32| Some(table[i].pace.turn().next).filter(|&i| i != NONE);
                let order: Vec<u32> = core::iter::successors(ring.head(), after).collect();
                prop_assert_eq!(&order, &model);
            }
        }
    }
}
