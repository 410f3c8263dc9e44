//! Memory that outlives the engine: flow records that the supervisor can still read when the
//! engine has died or hangs.

use crate::sys::mmap::Mapping;
use crate::sys::pod::Pod;
use std::cell::Cell;
use std::io;

/// An array of `T` that this process and the children it forks share.
///
/// Each process may take it once, as the only reference of that process; the engine takes it when
/// it starts, the supervisor reads copies of what is in it. [`Pod`] makes sure that whatever a dying engine left
/// there is a value, and so is what one that hangs, and may go on at any time, is about to change.
pub struct Records<T: 'static> {
    memory: Cell<Option<&'static mut [T]>>,
}

impl<T: Pod> Records<T> {
    /// `count` records of zero bytes. Called before the engine is forked.
    pub fn alloc(count: usize) -> io::Result<Records<T>> {
        let map = Mapping::anonymous((count * size_of::<T>()).max(1), true)?;
        Ok(Records { memory: Cell::new(Some(map.leak())) })
    }

    /// The records, for the engine. `None` if this process has taken them before: a forked child
    /// has not.
    pub fn take(&self) -> Option<&'static mut [T]> {
        self.memory.take()
    }

    /// A copy of record number `i`, for the supervisor. Panics if this process has taken the records, or there is
    /// none of that number.
    pub fn copy(&self, i: usize) -> T {
        let memory = self.memory.take().expect("the records are with the supervisor");
        let record = std::ptr::from_ref(&memory[i]);
        // SAFETY: valid for reads; another process may be writing, which is why it is volatile: what is read is a
        // value whatever the bytes are (`Pod`).
        let copy = unsafe { record.read_volatile() };
        self.memory.set(Some(memory));
        copy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taken_once() {
        let records = Records::<u64>::alloc(3).unwrap();
        assert_eq!(records.copy(2), 0);
        let memory = records.take().unwrap();
        assert_eq!(memory.len(), 3);
        assert!(records.take().is_none());
    }
}
