//! A flow in its table, and the two lists that it is in: of its round, and of flows about as long.

use crate::frame::List;

/// No flow.
const NOBODY: u32 = u32::MAX;
/// No size: nothing waits.
pub(super) const NONE: u8 = u8::MAX;

/// Neighbours in a list.
#[derive(Clone, Copy, Debug)]
struct Links {
    before: u32,
    behind: u32,
}

const ALONE: Links = Links { before: NOBODY, behind: NOBODY };

/// A flow of which something waits; free if nothing does. One cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Flow {
    /// Its frames.
    pub(super) list: List,
    /// Bytes that wait.
    pub(super) bytes: u64,
    /// Bytes that it may still send in its round.
    pub(super) deficit: i64,
    turn: Links,
    size_links: Links,
    /// The round that it waits for.
    pub(super) round: u8,
    /// The power of two of its bytes.
    pub(super) size: u8,
}

const _: () = assert!(size_of::<Flow>() == 64);

impl Default for Flow {
    fn default() -> Flow {
        let (list, turn, size_links) = (List::new(), ALONE, ALONE);
        Flow { list, bytes: 0, deficit: 0, turn, size_links, round: 0, size: NONE }
    }
}

/// A list of flows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    first: u32,
    last: u32,
}

impl Ends {
    pub(super) const EMPTY: Ends = Ends { first: NOBODY, last: NOBODY };

    pub(super) fn is_empty(&self) -> bool {
        self.first == NOBODY
    }
    /// The first flow; no flow's number if there is none.
    pub(super) fn first(&self) -> u32 {
        self.first
    }
    /// Behind the others of a round.
    pub(super) fn push_turn(&mut self, flows: &mut [Flow], i: u32) {
        self.push(flows, i, |flow| &mut flow.turn);
    }
    pub(super) fn remove_turn(&mut self, flows: &mut [Flow], i: u32) {
        self.remove(flows, i, |flow| &mut flow.turn);
    }
    /// Behind the others that are about as long.
    pub(super) fn push_size(&mut self, flows: &mut [Flow], i: u32) {
        self.push(flows, i, |flow| &mut flow.size_links);
    }
    pub(super) fn remove_size(&mut self, flows: &mut [Flow], i: u32) {
        self.remove(flows, i, |flow| &mut flow.size_links);
    }

    #[inline]
    fn push(&mut self, flows: &mut [Flow], i: u32, of: fn(&mut Flow) -> &mut Links) {
        *of(&mut flows[i as usize]) = Links { before: self.last, behind: NOBODY };
        match flows.get_mut(self.last as usize) {
            Some(last) => of(last).behind = i,
            None => self.first = i,
        }
        self.last = i;
    }

    #[inline]
    fn remove(&mut self, flows: &mut [Flow], i: u32, of: fn(&mut Flow) -> &mut Links) {
        let Links { before, behind } = core::mem::replace(of(&mut flows[i as usize]), ALONE);
        match flows.get_mut(before as usize) {
            Some(flow) => of(flow).behind = behind,
            None => self.first = behind,
        }
        match flows.get_mut(behind as usize) {
            Some(flow) => of(flow).before = before,
            None => self.last = before,
        }
    }
}
