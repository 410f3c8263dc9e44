//! Lists of a table's entries, linked by index.

/// Marks the absence of a neighbour.
const NOBODY: u32 = u32::MAX;

/// Neighbours in a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    before: u32,
    behind: u32,
}

impl Links {
    /// Links of an entry that is in no list.
    pub(super) const ALONE: Links = Links { before: NOBODY, behind: NOBODY };

    /// Returns the previous entry of the list.
    pub(super) fn before(self) -> Option<u32> {
        (self.before != NOBODY).then_some(self.before)
    }

    /// Returns the next entry of the list.
    pub(super) fn behind(self) -> Option<u32> {
        (self.behind != NOBODY).then_some(self.behind)
    }
}

/// List of entries. `of` selects the links that an entry has in this list.
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
    pub(super) fn first(&self) -> Option<u32> {
        (self.first != NOBODY).then_some(self.first)
    }
    pub(super) fn last(&self) -> Option<u32> {
        (self.last != NOBODY).then_some(self.last)
    }

    /// Appends an entry.
    #[inline]
    pub(super) fn push<T>(&mut self, table: &mut [T], i: u32, of: impl Fn(&mut T) -> &mut Links) {
        *of(&mut table[i as usize]) = Links { before: self.last, behind: NOBODY };
        match table.get_mut(self.last as usize) {
            Some(last) => of(last).behind = i,
            None => self.first = i,
        }
        self.last = i;
    }

    /// Prepends an entry.
    #[inline]
    pub(super) fn push_first<T>(&mut self, table: &mut [T], i: u32, of: impl Fn(&mut T) -> &mut Links) {
        *of(&mut table[i as usize]) = Links { before: NOBODY, behind: self.first };
        match table.get_mut(self.first as usize) {
            Some(first) => of(first).before = i,
            None => self.last = i,
        }
        self.first = i;
    }

    /// Removes an entry from this list, which must hold it.
    #[inline]
    pub(super) fn remove<T>(&mut self, table: &mut [T], i: u32, of: impl Fn(&mut T) -> &mut Links) {
        let Links { before, behind } = core::mem::replace(of(&mut table[i as usize]), Links::ALONE);
        match table.get_mut(before as usize) {
            Some(other) => of(other).behind = behind,
            None => self.first = behind,
        }
        match table.get_mut(behind as usize) {
            Some(other) => of(other).before = before,
            None => self.last = before,
        }
    }
}
